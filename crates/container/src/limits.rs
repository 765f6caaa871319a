//! How much a container may have: processes together, descriptors and memory of each process, files of each
//! folder, and memory together.
//!
//! ```text
//! processes together    the user namespace: Linux counts those of all its users (since Linux 5.14)
//! each process          limits that root inside cannot raise, since it has no right over the machine
//! memory together       a control group (`groups`), where the machine has them
//! ```

use crate::{ContainerError, failed};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Processes and threads of a container together.
pub const MOST_PROCESSES: u64 = 512;
/// Descriptors of a process.
pub const MOST_DESCRIPTORS: u64 = 1024;
/// Bytes of private memory of a process; and of all memory of a container, where there is a control group.
pub const MOST_MEMORY: u64 = 1 << 30;
/// The same where the process is the monitor of a virtual machine: it has the machine's memory, and reserves
/// more than it uses.
pub const MOST_MEMORY_OF_MONITOR: u64 = 4 << 30;
/// Terminals, of which the containers of a machine share some three thousand (`kernel.pty.max`).
pub(crate) const MOST_TERMINALS: u32 = 256;
/// Bytes of a folder that can be written.
pub(crate) const FOLDER_SIZE: &str = "64m";
/// Files of such a folder.
pub(crate) const FOLDER_FILES: &str = "16k";

/// Bytes of memory, of a container with the monitor of a virtual machine or without.
pub(crate) fn most_memory(monitor: bool) -> u64 {
    if monitor { MOST_MEMORY_OF_MONITOR } else { MOST_MEMORY }
}

/// Percent of the time of a processor that a process outside has where both want it. A virtual machine whose
/// clock stands still for long does not start.
pub(crate) fn share(monitor: bool) -> u64 {
    if monitor { 50 } else { 10 }
}

/// Lets this process, and those that it starts, have no more; it may be a `monitor`. Root inside has no right
/// over limits, so that they stay.
pub(crate) fn limit_process(monitor: bool) -> Result<(), ContainerError> {
    limit(Resource::Nproc, MOST_PROCESSES)?;
    limit(Resource::Nofile, MOST_DESCRIPTORS)?;
    limit(Resource::Data, most_memory(monitor))?;
    // Who started this may come before others; whoever is inside does not.
    limit(Resource::Rtprio, 0)?;
    limit(Resource::Nice, 0)?;
    // What a program leaves behind as it ends would lie in the folders.
    limit(Resource::Core, 0)
}

/// Lets a resource be no more than so much.
pub(crate) fn limit(resource: Resource, most: u64) -> Result<(), ContainerError> {
    let lower = |limit: Option<u64>| Some(limit.map_or(most, |limit| limit.min(most)));
    let Rlimit { current, maximum } = getrlimit(resource);
    let limits = Rlimit { current: lower(current), maximum: lower(maximum) };
    setrlimit(resource, limits).map_err(failed(format!("the limit of {resource:?}")))
}
