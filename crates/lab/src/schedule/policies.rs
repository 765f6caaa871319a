//! The schedules that are held against each other on a device.

use super::used::Used;
use exec::QueueDepth;
use offload::device_queue::Schedule;
use offload::policy::BatchingPolicy;
use std::time::Duration;

/// What Hermes waits for unless it is said: two warp arrival times, in quarters.
const QUARTERS: u32 = 8;
/// A packet's deadline, in times that the timeout is.
const DEADLINE: u32 = 4;

/// A schedule with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) schedule: Schedule,
    /// What its numbers are, in words; nothing where the name says all.
    pub(crate) line: String,
}

/// The fixed batch with which others are compared, and which says what a device carries.
pub(crate) fn batch(used: &Used<'_>) -> Named {
    let packets = used.most;
    let name = format!("batch:{packets}");
    Named { name, schedule: BatchingPolicy::FixedBatch { packets }.into(), line: String::new() }
}

/// Hermes.
pub(crate) fn hermes() -> Named {
    let (schedule, name) = (Schedule::Hermes { quarters: QUARTERS }, "hermes".to_owned());
    Named { name, schedule, line: String::new() }
}

/// All of them; `full` is how long a full batch takes alone.
pub(crate) fn all(used: &Used<'_>, full: Duration) -> Vec<Named> {
    let packets = used.most;
    // Whole microseconds, as one would write them.
    let micros = (full.as_nanos() as u64).div_ceil(1000).max(1);
    let (timeout, deadline) = (Duration::from_micros(micros), Duration::from_micros(micros) * DEADLINE);
    let named = |name: &str, policy: BatchingPolicy, line: String| Named {
        name: name.to_owned(),
        schedule: policy.into(),
        line,
    };
    vec![
        batch(used),
        named(
            "timeout",
            BatchingPolicy::BatchOrTimeout { packets, timeout },
            format!("timeout is {}us:{packets}, what a batch takes alone", timeout.as_micros()),
        ),
        named(
            "deadline",
            BatchingPolicy::Deadline { packets, deadline },
            format!("deadline is {}us:{packets}", deadline.as_micros()),
        ),
        named("cost", BatchingPolicy::CostModel { packets }, format!("cost is cost:{packets}")),
        hermes(),
    ]
}

/// The room of a device for a schedule.
pub(crate) fn depth(used: &Used<'_>, schedule: Schedule) -> QueueDepth {
    let depth = schedule.depth();
    match used.most {
        // As many places as for warps: what goes over at once is no more.
        most if most <= gpu::WARP => QueueDepth { packets: most, ..hermes().schedule.depth() },
        most => QueueDepth { packets: depth.packets.min(most), ..depth },
    }
}
