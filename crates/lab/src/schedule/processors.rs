//! The loop has a processor of its own, as `cores` gives one to a worker of a gateway; what a device starts
//! has the others.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::OnceLock;

/// Those that this process had before any was given to a loop; none where the system does not say, or there
/// is one alone.
fn all() -> Option<CpuSet> {
    static ALL: OnceLock<Option<CpuSet>> = OnceLock::new();
    *ALL.get_or_init(|| sched_getaffinity(None).ok().filter(|all| all.count() > 1))
}

/// Opens something that starts threads, and keeps the thread that calls on a processor which those do not
/// get.
pub(super) fn beside<T>(open: impl FnOnce() -> T) -> T {
    let Some(all) = all() else { return open() };
    let own = (0..CpuSet::MAX_CPU).find(|number| all.is_set(*number)).unwrap_or(0);
    let (mut alone, mut others) = (CpuSet::new(), all);
    alone.set(own);
    others.unset(own);
    // Where the system refuses, everything runs where it puts it.
    let _ = sched_setaffinity(None, &others);
    let opened = open();
    let _ = sched_setaffinity(None, &alone);
    opened
}

/// Lets the thread that calls run everywhere again.
pub(super) fn together() {
    if let Some(all) = all() {
        let _ = sched_setaffinity(None, &all);
    }
}
