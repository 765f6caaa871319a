//! What a scheduler is made for, and which settings cannot be.

use super::WARP;
use super::arrivals::{Flush, Rate};

/// The most entries of a FIFO or queue: half of what positions of 16 bits tell apart.
const MOST_ENTRIES: u16 = 1 << 15;
/// The most slots of a core: a bit each of a word.
const MOST_WARPS: u8 = 64;
/// The most that the shift of a mean can be: then 2,048 packets are what it looks back on.
const MOST_SHIFT: u32 = 8;
/// The most cores.
const MOST_CORES: u16 = 1024;

/// What a scheduler is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HermesSettings {
    /// Cores; from 1 to 1,024.
    pub cores: u16,
    /// Warps that run on a core at once; from 1 to 64.
    pub warps: u8,
    /// Packets of a full warp; from 1 to 32.
    pub warp: u8,
    /// Entries of the task FIFO; a power of two up to 32,768.
    pub tasks: u16,
    /// Entries of the commit queue; the same.
    pub commits: u16,
    /// When fewer packets than a warp are a task.
    pub flush: Flush,
}

/// Settings that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A number is outside its limits.
    #[error("{what}: {value} is not possible; from {least} to {most}")]
    Limit {
        /// What it is a number of.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The least that is possible.
        least: u64,
        /// The most.
        most: u64,
    },
    /// There is too little of something.
    #[error("{what}: {there} are not enough; {one} needs {needed}")]
    Room {
        /// What there is too little of.
        what: &'static str,
        /// What needs it.
        one: &'static str,
        /// How much is needed.
        needed: u64,
        /// How much there is.
        there: u64,
    },
    /// A number of entries that cannot be counted in bits.
    #[error("{what}: {value} is not a power of two; {below} is the nearest one below")]
    Power {
        /// What it is a number of.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// The largest power of two that is smaller.
        below: u64,
    },
}

impl Default for HermesSettings {
    /// Those of the publication: 8 cores of 32 warps, 1,024 entries each, and two warp arrival times of a
    /// rate that is learned.
    fn default() -> HermesSettings {
        let flush = Flush { quarters: 8, rate: Rate::Average { shift: 6 }, least: 100, most: 100_000 };
        HermesSettings { cores: 8, warps: 32, warp: WARP, tasks: 1024, commits: 1024, flush }
    }
}

impl HermesSettings {
    /// Whether they can be.
    ///
    /// # Errors
    /// The first one that cannot, with its limit.
    pub fn check(&self) -> Result<(), SettingsError> {
        limit("cores", self.cores, 1, MOST_CORES)?;
        limit("concurrent warps of a core", self.warps, 1, MOST_WARPS)?;
        limit("packets of a warp", self.warp, 1, WARP)?;
        entries("entries of the task FIFO", self.tasks)?;
        entries("entries of the commit queue", self.commits)?;
        limit("the longest wait for a warp, in nanoseconds", self.flush.most, self.flush.least, u64::MAX)?;
        match self.flush.rate {
            Rate::Fixed { gap } => limit("picoseconds between packets", gap, 1, u64::MAX),
            Rate::Window { packets } => limit("packets of a window", packets, 1, u32::MAX),
            Rate::Average { shift } => limit("the shift of a mean", shift, 0, MOST_SHIFT),
        }
    }
}

fn limit(
    what: &'static str,
    value: impl Into<u64>,
    least: u64,
    most: impl Into<u64>,
) -> Result<(), SettingsError> {
    let (value, most) = (value.into(), most.into());
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(SettingsError::Limit { what, value, least, most })
    }
}

fn entries(what: &'static str, value: u16) -> Result<(), SettingsError> {
    limit(what, value, 1, MOST_ENTRIES)?;
    match value.is_power_of_two() {
        true => Ok(()),
        false => Err(SettingsError::Power { what, value: value.into(), below: 1 << value.ilog2() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_with_the_limit() {
        let usual = HermesSettings::default();
        assert_eq!(usual.check(), Ok(()));
        let flush = |rate| Flush { rate, ..usual.flush };
        for (settings, sentence) in [
            (
                HermesSettings { tasks: 0, ..usual },
                "entries of the task FIFO: 0 is not possible; from 1 to 32768",
            ),
            (
                HermesSettings { commits: 1000, ..usual },
                "entries of the commit queue: 1000 is not a power of two; 512",
            ),
            (
                HermesSettings { warps: 65, ..usual },
                "concurrent warps of a core: 65 is not possible; from 1 to 64",
            ),
            (HermesSettings { cores: 0, ..usual }, "cores: 0 is not possible; from 1 to 1024"),
            (HermesSettings { warp: 33, ..usual }, "packets of a warp: 33 is not possible; from 1 to 32"),
            (
                HermesSettings { flush: flush(Rate::Fixed { gap: 0 }), ..usual },
                "picoseconds between packets: 0",
            ),
            (
                HermesSettings { flush: flush(Rate::Average { shift: 9 }), ..usual },
                "the shift of a mean: 9 is not possible; from 0 to 8",
            ),
            (
                HermesSettings { flush: Flush { least: 9, most: 8, ..usual.flush }, ..usual },
                "nanoseconds: 8 is not",
            ),
        ] {
            let error = settings.check().expect_err(sentence).to_string();
            assert!(error.contains(sentence), "{error}");
        }
    }
}
