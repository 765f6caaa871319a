//! Resource limits of a confined process.

use super::sys;
use crate::{Layer, Missing, Role};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// How many numbers of descriptors are looked at, at most.
const MOST_DESCRIPTORS: u32 = 65_536;

/// Limits the process to what it has and its role may add.
pub(super) fn apply(role: Role) -> Result<(), Missing> {
    let descriptors = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let descriptors = u32::try_from(descriptors).unwrap_or(u32::MAX);
    let open = sys::descriptors_end(descriptors.min(MOST_DESCRIPTORS));
    let limits = [
        (Resource::Nofile, "NOFILE", u64::from(open) + role.more_descriptors()),
        (Resource::Nproc, "NPROC", role.most_threads()),
        (Resource::Core, "CORE", 0),
        (Resource::Fsize, "FSIZE", 0),
        (Resource::Memlock, "MEMLOCK", 0),
        (Resource::Msgqueue, "MSGQUEUE", 0),
        (Resource::Rtprio, "RTPRIO", 0),
        (Resource::Nice, "NICE", 0),
    ];
    let memory = role.most_memory().map(|most| (Resource::Data, "DATA", most));
    for (resource, name, most) in limits.into_iter().chain(memory) {
        // A limit that is lower already stays.
        let most = getrlimit(resource).maximum.map_or(most, |there| there.min(most));
        let wanted = Rlimit { current: Some(most), maximum: Some(most) };
        setrlimit(resource, wanted).map_err(|error| missing(format!("setrlimit {name}: {error}")))?;
        if getrlimit(resource) != wanted {
            return Err(missing(format!("Linux has not taken {name} over")));
        }
    }
    Ok(())
}

fn missing(why: impl std::fmt::Display) -> Missing {
    Missing::new(Layer::Limits, why)
}

/// Fails if the error output is a file: the limits would end what is told there.
pub(super) fn check_error_output() -> Result<(), Missing> {
    if sys::error_output_is_file() {
        return Err(missing("the error output is a file, which may not grow: hand over a pipe"));
    }
    Ok(())
}
