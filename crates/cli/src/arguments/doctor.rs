//! The command line of `doctor`.

use clap::{Args, ValueEnum};

/// `ravelin doctor`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  ravelin doctor gpu
  ravelin doctor trust")]
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
    /// Which tier of trust this machine reaches, and what it lacks for the next: each layer of confinement is
    /// tried, and devices and programs are looked for
    Trust,
}
