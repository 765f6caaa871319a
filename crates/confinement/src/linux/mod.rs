//! Confinement on Linux: what `launch` does, what the process itself does, and what a machine offers.

mod empty_root;
mod enter;
mod filter;
mod folder_root;
mod limits;
mod namespaces;
mod probe;
mod rights;
mod separate;
mod sys;

pub use enter::{Entered, enter, enter_to_read, lock};
pub use probe::probe;
pub use separate::{ProcessEnd, SeparateChild, SeparateError, SeparateStart, separate};
