//! The command line of `doctor`.

use clap::{Args, ValueEnum};

/// `ravelin doctor`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  ravelin doctor gpu")]
pub(crate) struct DoctorArguments {
    /// What is looked at
    #[arg(value_enum)]
    pub(crate) what: DoctorSubject,
}

/// What can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DoctorSubject {
    /// Devices for `--back-end opencl`, `cuda` and `auto`: libraries, drivers, memory, and a small kernel
    /// with its round trip
    Gpu,
}
