//! Meters: token buckets that colour packets green, yellow or red by the rates of RFC 2697 and RFC 2698.
//!
//! The idea: a bucket holds tokens in units of a billionth, so a rate of `r` tokens a second adds exactly `r`
//! units a nanosecond, and no rounding ever loses or invents one. Where `r` tokens arrive in a period of `p`
//! seconds, a token has a billion times `p` units, and again `r` of them arrive in a nanosecond. A cell keeps
//! its two buckets and the time they were last filled; they are filled when a packet asks, never by a clock.
//! Every sum stays below 2^64 because a full bucket does, and what arrives beyond that is cut off by
//! saturation.
//!
//! ```text
//! cell, 32 bytes:
//! +0               +8                    +16                  +24
//! +----------------+---------------------+--------------------+---------+
//! | last fill, ns  | committed, units    | second, units      | padding |   second: the excess bucket (RFC 2697)
//! +----------------+---------------------+--------------------+---------+           or the peak bucket (RFC 2698)
//! ```

#[cfg(feature = "reference")]
mod model;

#[cfg(feature = "reference")]
pub use model::MeterModel;

/// The most cells a meter has.
pub const MAX_CELLS: u32 = 1 << 28;
/// Units of a token where the period is a second.
const UNITS: u64 = 1_000_000_000;
/// The longest period: a day, in seconds.
pub const MAX_PERIOD: u32 = 86_400;

/// What a meter says of a packet. Greater is worse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Colour {
    /// Within the committed rate.
    #[default]
    Green = 0,
    /// Above the committed rate, within what is tolerated.
    Yellow = 1,
    /// Above all that is tolerated.
    Red = 2,
}

/// What a token stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A byte: a packet costs its length.
    Bytes,
    /// A packet: each costs one.
    Packets,
}

/// The rates (tokens in a period) and bucket sizes (tokens) of a meter; all buckets are full at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterRates {
    /// Single rate, three colours: RFC 2697. What the full committed bucket cannot take flows into the excess
    /// bucket.
    Single {
        /// CIR.
        committed: u64,
        /// CBS.
        committed_burst: u32,
        /// EBS.
        excess_burst: u32,
    },
    /// Two rates, three colours: RFC 2698.
    Two {
        /// CIR.
        committed: u64,
        /// CBS.
        committed_burst: u32,
        /// PIR.
        peak: u64,
        /// PBS.
        peak_burst: u32,
    },
}

/// The shape and the rules of a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterSpec {
    /// Cells, each with buckets of its own: 1 to [`MAX_CELLS`].
    pub cells: u32,
    /// Rates and bucket sizes of every cell.
    pub rates: MeterRates,
    /// In how many seconds so many tokens arrive as the rates say: 1 to [`MAX_PERIOD`].
    pub period: u32,
    /// What a token stands for.
    pub unit: Unit,
    /// Whether a packet never leaves with a better colour than it came with; otherwise that colour is
    /// ignored.
    pub aware: bool,
}

/// Why a meter cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MeterError {
    /// No cells or too many.
    #[error("a meter of {cells} cells; it has 1 to {MAX_CELLS}: declare another number")]
    Cells {
        /// The cells asked for.
        cells: u32,
    },
    /// RFC 2697, section 2: one of the bursts must be larger than zero.
    #[error("committed and excess burst are both 0, so no packet could pass: give one of them a size")]
    NoBurst,
    /// RFC 2698, section 2: both bursts must be larger than zero.
    #[error("the {burst} burst is 0, so no packet could be {colour}: give it a size")]
    EmptyBurst {
        /// Which one.
        burst: &'static str,
        /// The colour that needs it.
        colour: &'static str,
    },
    /// RFC 2698, section 2: the peak rate must not be below the committed rate.
    #[error("the peak rate {peak} is below the committed rate {committed}: raise it or lower the other")]
    PeakBelowCommitted {
        /// PIR.
        peak: u64,
        /// CIR.
        committed: u64,
    },
    /// The period is none, or too long.
    #[error("a period of {period} seconds; it has 1 to {MAX_PERIOD}: give the rates for another one")]
    Period {
        /// The period asked for.
        period: u32,
    },
    /// A full bucket has more units than 64 bits hold.
    #[error("a burst of {burst} tokens is too large for a rate in {period} seconds: the largest is {most}")]
    LargeBurst {
        /// The burst asked for.
        burst: u32,
        /// The period.
        period: u32,
        /// The largest burst of this period.
        most: u64,
    },
    /// The machine has no room for it.
    #[error("no memory for a meter of {cells} cells ({bytes} bytes): declare fewer")]
    Memory {
        /// The cells asked for.
        cells: u32,
        /// Their bytes.
        bytes: usize,
    },
}

impl MeterRates {
    /// The sizes of the committed bucket and of the second one, in tokens.
    fn bursts(&self) -> (u32, u32) {
        match *self {
            MeterRates::Single { committed_burst, excess_burst, .. } => (committed_burst, excess_burst),
            MeterRates::Two { committed_burst, peak_burst, .. } => (committed_burst, peak_burst),
        }
    }
}

impl MeterSpec {
    /// Bytes that a meter of so many cells allocates.
    pub fn allocated(cells: u32) -> u64 {
        u64::from(cells) * size_of::<Cell>() as u64
    }

    fn check(&self) -> Result<(), MeterError> {
        if self.cells == 0 || self.cells > MAX_CELLS {
            return Err(MeterError::Cells { cells: self.cells });
        }
        if self.period == 0 || self.period > MAX_PERIOD {
            return Err(MeterError::Period { period: self.period });
        }
        let (committed, second) = self.rates.bursts();
        let (burst, most) = (committed.max(second), MeterSpec::largest_burst(self.period));
        if u64::from(burst) > most {
            return Err(MeterError::LargeBurst { burst, period: self.period, most });
        }
        match self.rates {
            MeterRates::Single { committed_burst: 0, excess_burst: 0, .. } => Err(MeterError::NoBurst),
            MeterRates::Two { committed_burst: 0, .. } => {
                Err(MeterError::EmptyBurst { burst: "committed", colour: "green" })
            }
            MeterRates::Two { peak_burst: 0, .. } => {
                Err(MeterError::EmptyBurst { burst: "peak", colour: "green or yellow" })
            }
            MeterRates::Two { committed, peak, .. } if peak < committed => {
                Err(MeterError::PeakBelowCommitted { peak, committed })
            }
            _ => Ok(()),
        }
    }

    /// The largest burst of a meter with this period, in tokens: that of a full bucket whose units fit 64
    /// bits.
    pub fn largest_burst(period: u32) -> u64 {
        (u64::MAX / (UNITS * u64::from(period.clamp(1, MAX_PERIOD)))).min(u32::MAX.into())
    }

    /// Units of a token.
    #[inline]
    fn units(&self) -> u64 {
        UNITS * u64::from(self.period)
    }

    /// Tokens a packet of so many bytes costs.
    #[inline]
    fn cost(&self, bytes: u32) -> u64 {
        match self.unit {
            Unit::Bytes => u64::from(bytes),
            Unit::Packets => 1,
        }
    }

    /// The colour a packet counts as before any bucket is asked.
    #[inline]
    fn before(&self, colour: Colour) -> Colour {
        if self.aware { colour } else { Colour::Green }
    }
}

#[derive(Clone, Copy)]
#[repr(C, align(32))]
struct Cell {
    filled: u64,
    committed: u64,
    second: u64,
}

/// A meter with cells of its own; nothing is allocated after it is made.
///
/// ```
/// use tables::meter::{Colour, MeterRates, MeterSpec, MeterTable, Unit};
///
/// let rates = MeterRates::Single { committed: 1000, committed_burst: 100, excess_burst: 50 };
/// let mut meter = MeterTable::new(MeterSpec { cells: 1, rates, period: 1, unit: Unit::Bytes, aware: false })?;
/// assert_eq!(meter.mark(0, 100, Colour::Green, 0), Colour::Green);
/// assert_eq!(meter.mark(0, 50, Colour::Green, 0), Colour::Yellow);
/// assert_eq!(meter.mark(0, 50, Colour::Green, 0), Colour::Red);
/// assert_eq!(meter.mark(0, 50, Colour::Green, 50_000_000), Colour::Green);
/// # Ok::<(), tables::meter::MeterError>(())
/// ```
pub struct MeterTable {
    spec: MeterSpec,
    cells: Vec<Cell>,
}

impl MeterTable {
    /// A meter whose buckets are all full at time 0.
    pub fn new(spec: MeterSpec) -> Result<MeterTable, MeterError> {
        spec.check()?;
        let (committed, second) = spec.rates.bursts();
        let units = spec.units();
        let cell =
            Cell { filled: 0, committed: u64::from(committed) * units, second: u64::from(second) * units };
        let mut cells = Vec::new();
        let bytes = spec.cells as usize * size_of::<Cell>();
        cells
            .try_reserve_exact(spec.cells as usize)
            .map_err(|_| MeterError::Memory { cells: spec.cells, bytes })?;
        cells.resize(spec.cells as usize, cell);
        Ok(MeterTable { spec, cells })
    }

    /// The shape and the rules it was made with.
    pub fn spec(&self) -> &MeterSpec {
        &self.spec
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.cells.len() * size_of::<Cell>()
    }

    /// The colour of a packet of so many bytes at `now` (ns), which takes the tokens it is due. `colour` is
    /// the one it came with. A time before the cell's latest counts as that. A cell that does not exist marks
    /// red.
    #[inline]
    pub fn mark(&mut self, cell: u32, bytes: u32, colour: Colour, now: u64) -> Colour {
        let Some(state) = self.cells.get_mut(cell as usize) else { return Colour::Red };
        let passed = now.saturating_sub(state.filled);
        state.filled += passed;
        let units = self.spec.units();
        // What a bucket can never hold is as good as more.
        let cost = self.spec.cost(bytes).saturating_mul(units);
        let before = self.spec.before(colour);
        match self.spec.rates {
            MeterRates::Single { committed, committed_burst, excess_burst } => {
                let arrived = committed.saturating_mul(passed);
                let taken = arrived.min(u64::from(committed_burst) * units - state.committed);
                state.committed += taken;
                state.second += (arrived - taken).min(u64::from(excess_burst) * units - state.second);
                if before == Colour::Green && state.committed >= cost {
                    state.committed -= cost;
                    Colour::Green
                } else if before != Colour::Red && state.second >= cost {
                    state.second -= cost;
                    Colour::Yellow
                } else {
                    Colour::Red
                }
            }
            MeterRates::Two { committed, committed_burst, peak, peak_burst } => {
                fill(&mut state.committed, committed, passed, u64::from(committed_burst) * units);
                fill(&mut state.second, peak, passed, u64::from(peak_burst) * units);
                if before == Colour::Red || state.second < cost {
                    return Colour::Red;
                }
                state.second -= cost;
                if before == Colour::Yellow || state.committed < cost {
                    return Colour::Yellow;
                }
                state.committed -= cost;
                Colour::Green
            }
        }
    }
}

/// Adds what arrives in `passed` ns at `rate`, up to the bucket's size.
#[inline]
fn fill(bucket: &mut u64, rate: u64, passed: u64, full: u64) {
    *bucket = bucket.saturating_add(rate.saturating_mul(passed)).min(full);
}

#[cfg(test)]
mod tests;
