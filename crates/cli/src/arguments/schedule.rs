//! The option `--schedule`: whether and when packets are submitted to a device.

use clap::Args;
use offload::device_queue::Schedule;
use offload::policy::BatchingPolicy;
use std::str::FromStr;
use std::time::Duration;

/// Packets that are handed over together at most, unless it is said.
const PACKETS: usize = 8192;
/// The most that can be said.
const MOST: usize = 65_536;
/// How long a packet waits for others at most, unless it is said.
const TIMEOUT: Duration = Duration::from_micros(100);
/// Warp arrival times that a packet waits for a warp to fill, unless it is said, and the most.
const WARP_TIMES: u32 = 2;
const MOST_WARP_TIMES: u32 = 64;

/// When packets are handed over.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ScheduleArguments {
    /// When packets go to a device, and whether: batch:N, timeout:TIME, deadline:TIME, cost or hermes
    #[arg(
        long,
        value_name = "POLICY",
        long_help = "When packets are handed to a device, and whether they are (docs/gpu.md):
  batch:N            N at a time: packets wait until there are so many
  timeout:TIME[:N]   N at a time, or fewer once the first has waited so long; the default is timeout:100us
  deadline:TIME[:N]  as many as come while the device can still be done in time, counted from when the first came
  cost[:N]           at once, to the device or to the processor, whichever took less time over as many so far; the default with --back-end auto
  hermes[:K]         warps of 32 packets as they come, or fewer after K times as long as a warp takes to come, at most 100us (docs/hermes.md); K is 2 where it is not said
N is at most 65536, and 8192 where it is not said; K is a multiple of 0.25 up to 64."
    )]
    schedule: Option<Said>,
}

impl ScheduleArguments {
    /// Whether one was said.
    pub(crate) fn is_said(&self) -> bool {
        self.schedule.is_some()
    }

    /// The schedule: what was said, or else what suits whoever chose a device, or left the choice.
    pub(crate) fn schedule(&self, auto: bool) -> Schedule {
        match (&self.schedule, auto) {
            (Some(said), _) => said.0,
            (None, true) => BatchingPolicy::CostModel { packets: PACKETS }.into(),
            (None, false) => BatchingPolicy::BatchOrTimeout { packets: PACKETS, timeout: TIMEOUT }.into(),
        }
    }
}

/// A schedule as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Said(Schedule);

impl FromStr for Said {
    type Err = String;

    fn from_str(text: &str) -> Result<Said, String> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let mut part =
            |what: &str| parts.next().ok_or_else(|| format!("`{name}` wants {what}: `{name}:{what}`"));
        let time = |text: &str| {
            humantime::parse_duration(text)
                .map_err(|error| format!("`{text}` is not a time such as 100us or 2ms: {error}"))
        };
        let packets = |text: Option<&str>| match text.map(str::parse) {
            None => Ok(PACKETS),
            Some(Ok(packets @ 1..=MOST)) => Ok(packets),
            Some(_) => {
                Err(format!("`{}` is not a number of packets from 1 to {MOST}", text.unwrap_or_default()))
            }
        };
        let policy = match name {
            "batch" => BatchingPolicy::FixedBatch { packets: packets(Some(part("PACKETS")?))? },
            "timeout" => {
                let timeout = time(part("TIME")?)?;
                BatchingPolicy::BatchOrTimeout { timeout, packets: packets(parts.next())? }
            }
            "deadline" => {
                let deadline = time(part("TIME")?)?;
                BatchingPolicy::Deadline { deadline, packets: packets(parts.next())? }
            }
            "cost" => BatchingPolicy::CostModel { packets: packets(parts.next())? },
            "hermes" => {
                let quarters = parts.next().map_or(Ok(4 * WARP_TIMES), quarters)?;
                return ended(parts.next(), Schedule::Hermes { quarters });
            }
            other => {
                return Err(format!(
                    "there is no policy `{other}`: they are batch, timeout, deadline, cost and hermes"
                ));
            }
        };
        ended(parts.next(), policy.into())
    }
}

/// A schedule with nothing behind it.
fn ended(more: Option<&str>, schedule: Schedule) -> Result<Said, String> {
    match more {
        None => Ok(Said(schedule)),
        Some(more) => Err(format!("`{more}` is too much: nothing follows the number before it")),
    }
}

/// Quarters of warp arrival times.
fn quarters(text: &str) -> Result<u32, String> {
    let quarters = text.parse::<f64>().ok().map(|times| 4.0 * times);
    match quarters.filter(|quarters| quarters.fract() == 0.0) {
        Some(quarters) if (0.0..=f64::from(4 * MOST_WARP_TIMES)).contains(&quarters) => Ok(quarters as u32),
        _ => Err(format!(
            "`{text}` is not a number of warp arrival times: a multiple of 0.25 from 0 to {MOST_WARP_TIMES}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<BatchingPolicy, String> {
        text.parse().map(|Said(schedule)| match schedule {
            Schedule::Policy(policy) => policy,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn policies_as_they_are_written() {
        assert_eq!(policy("batch:512"), Ok(BatchingPolicy::FixedBatch { packets: 512 }));
        let timeout = Duration::from_micros(50);
        assert_eq!(policy("timeout:50us"), Ok(BatchingPolicy::BatchOrTimeout { packets: 8192, timeout }));
        assert_eq!(policy("timeout:50us:64"), Ok(BatchingPolicy::BatchOrTimeout { packets: 64, timeout }));
        let deadline = Duration::from_millis(2);
        assert_eq!(policy("deadline:2ms"), Ok(BatchingPolicy::Deadline { packets: 8192, deadline }));
        assert_eq!(policy("cost"), Ok(BatchingPolicy::CostModel { packets: 8192 }));
        let hermes = |quarters| Ok(Said(Schedule::Hermes { quarters }));
        assert_eq!(["hermes", "hermes:0.75", "hermes:0"].map(str::parse), [hermes(8), hermes(3), hermes(0)]);
        assert_eq!(policy("cost:65536"), Ok(BatchingPolicy::CostModel { packets: 65_536 }));
        for (wrong, why) in [
            ("batch", "`batch` wants PACKETS"),
            ("batch:0", "`0` is not a number of packets"),
            ("cost:65537", "`65537` is not a number of packets"),
            ("timeout:soon", "`soon` is not a time"),
            ("deadline", "`deadline` wants TIME"),
            ("cost:9:9", "`9` is too much"),
            ("often", "there is no policy `often`"),
            ("hermes:0.3", "`0.3` is not a number of warp arrival times"),
            ("hermes:65", "from 0 to 64"),
            ("hermes:NaN", "`NaN` is not"),
            ("hermes:1:2", "`2` is too much"),
        ] {
            let error = policy(wrong).expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
