//! `--schedule`: when packets are handed to a device, and whether they are.

use clap::Args;
use gpu::placement::Policy;
use std::str::FromStr;
use std::time::Duration;

/// Packets that are handed over together at most, unless it is said.
const PACKETS: usize = 8192;
/// The most that can be said.
const MOST: usize = 65_536;
/// How long a packet waits for others at most, unless it is said.
const TIMEOUT: Duration = Duration::from_micros(100);

/// When packets are handed over.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ScheduleArguments {
    /// When packets go to a device, and whether: batch:N, timeout:TIME, deadline:TIME or cost
    #[arg(
        long,
        value_name = "POLICY",
        long_help = "When packets are handed to a device, and whether they are (docs/gpu.md):
  batch:N            N at a time: packets wait until there are so many
  timeout:TIME[:N]   N at a time, or fewer once the first has waited so long; the default is timeout:100us
  deadline:TIME[:N]  as many as come while the device can still be done in time, counted from when the first came
  cost[:N]           at once, to the device or to the processor, whichever took less time over as many so far; the default with --back-end auto
N is at most 65536, and 8192 where it is not said."
    )]
    schedule: Option<Schedule>,
}

impl ScheduleArguments {
    /// The policy: what was said, or else what suits whoever chose a device, or left the choice.
    pub(crate) fn policy(&self, auto: bool) -> Policy {
        match (&self.schedule, auto) {
            (Some(schedule), _) => schedule.0,
            (None, true) => Policy::CostModel { packets: PACKETS },
            (None, false) => Policy::BatchOrTimeout { packets: PACKETS, timeout: TIMEOUT },
        }
    }
}

/// A policy as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Schedule(Policy);

impl FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Schedule, String> {
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
            "batch" => Policy::FixedBatch { packets: packets(Some(part("PACKETS")?))? },
            "timeout" => {
                let timeout = time(part("TIME")?)?;
                Policy::BatchOrTimeout { timeout, packets: packets(parts.next())? }
            }
            "deadline" => {
                let deadline = time(part("TIME")?)?;
                Policy::Deadline { deadline, packets: packets(parts.next())? }
            }
            "cost" => Policy::CostModel { packets: packets(parts.next())? },
            other => {
                return Err(format!(
                    "there is no policy `{other}`: they are batch, timeout, deadline and cost"
                ));
            }
        };
        match parts.next() {
            None => Ok(Schedule(policy)),
            Some(more) => Err(format!("`{more}` is too much: nothing follows the number of packets")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> Result<Policy, String> {
        text.parse().map(|Schedule(policy)| policy)
    }

    #[test]
    fn policies_as_they_are_written() {
        assert_eq!(policy("batch:512"), Ok(Policy::FixedBatch { packets: 512 }));
        let timeout = Duration::from_micros(50);
        assert_eq!(policy("timeout:50us"), Ok(Policy::BatchOrTimeout { packets: 8192, timeout }));
        assert_eq!(policy("timeout:50us:64"), Ok(Policy::BatchOrTimeout { packets: 64, timeout }));
        let deadline = Duration::from_millis(2);
        assert_eq!(policy("deadline:2ms"), Ok(Policy::Deadline { packets: 8192, deadline }));
        assert_eq!(policy("cost"), Ok(Policy::CostModel { packets: 8192 }));
        assert_eq!(policy("cost:65536"), Ok(Policy::CostModel { packets: 65_536 }));
        for (wrong, why) in [
            ("batch", "`batch` wants PACKETS"),
            ("batch:0", "`0` is not a number of packets"),
            ("cost:65537", "`65537` is not a number of packets"),
            ("timeout:soon", "`soon` is not a time"),
            ("deadline", "`deadline` wants TIME"),
            ("cost:9:9", "`9` is too much"),
            ("often", "there is no policy `often`"),
        ] {
            let error = policy(wrong).expect_err(wrong);
            assert!(error.contains(why), "{wrong}: {error}");
        }
    }
}
