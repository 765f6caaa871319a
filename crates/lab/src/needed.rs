//! Programs of others that experiments over network interfaces need.

use crate::traffic::LabError;
use std::path::PathBuf;

/// A program and the package of Debian that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needed {
    /// The program.
    pub(crate) program: &'static str,
    package: &'static str,
}

/// Asks a host whether it is there.
pub(crate) const PING: Needed = Needed { program: "ping", package: "iputils-ping" };
/// Sends streams of TCP and counts them.
pub(crate) const IPERF3: Needed = Needed { program: "iperf3", package: "iperf3" };

/// Runs virtual machines.
pub(crate) const QEMU: Needed = Needed { program: "qemu-system-x86_64", package: "qemu-system-x86" };

impl Needed {
    /// The program's file, which stands in a directory of `PATH`.
    ///
    /// # Errors
    /// Why the program cannot be used, and what to do.
    pub(crate) fn found(self) -> Result<PathBuf, String> {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let mut there = std::env::split_paths(&paths).map(|directory| directory.join(self.program));
        let missing =
            || format!("{} is not installed (in Debian: apt install {})", self.program, self.package);
        there.find(|file| file.is_file()).ok_or_else(missing)
    }
}

/// Refuses an experiment before anything is measured.
///
/// # Errors
/// One of the programs is not there.
pub(crate) fn require(programs: &[Needed]) -> Result<(), LabError> {
    match programs.iter().find_map(|needed| needed.found().err()) {
        Some(why) => Err(LabError::Tables(format!("nothing can be measured: {why}"))),
        None => Ok(()),
    }
}
