//! The core of a gateway that is split into processes: it verifies programs, and runs packets by them. It has
//! no rights, no files and no network but the descriptors that it was given.
//!
//! ```text
//! started ─► no files, no rights ─► ports, threads ─► locked in, drops every packet ─► a program takes over ─► …
//! ```
//!
//! Until a program is there, [`boot`] decides: it drops every packet. A program comes as the text of its IR,
//! which the core reads and verifies itself, so that whoever wrote the text cannot have more done than a
//! program can say.

#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod activation;
mod answers;
pub mod boot;
mod guarded;
mod run;
mod supply;

pub use activation::{Activation, ActivationError};
pub use run::{CoreError, run};
