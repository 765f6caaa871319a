//! `lab hermes`: the evaluation of Hermes (DAC 2011) repeated on a simulated device, with the scheduler that
//! real devices are driven with.
//!
//! What is simulated and what it does not say: `docs/hermes.md`.

mod baseline;
mod beyond;
mod device;
mod hardware;
mod panels;
mod sensitivity;
mod setting;
mod simulate;
mod source;
mod whole;
mod work;

pub(crate) use panels::{rows, runs};
pub(crate) use source::Source;

#[cfg(test)]
mod tests;

#[cfg(test)]
mod steps;
