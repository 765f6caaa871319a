//! Confinement on Linux: what `launch` does, what the process itself does, and what a machine offers.

mod empty_root;
mod enter;
mod filter;
mod folder_root;
mod limits;
mod namespaces;
#[cfg(feature = "start")]
mod probe;
mod rights;
#[cfg(feature = "start")]
mod separate;
mod sys;

pub use enter::{Entered, enter, enter_to_read, lock};
#[cfg(feature = "start")]
pub use probe::probe;
#[cfg(feature = "start")]
pub use separate::{ProcessEnd, SeparateChild, SeparateError, SeparateStart, separate};
