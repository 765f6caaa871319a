//! The model of a meter, simple enough to be the reference: the text of RFC 2697 and RFC 2698 in exact
//! arithmetic of 128 bits.

use std::collections::BTreeMap;

use super::{Colour, MeterError, MeterRates, MeterSpec};

/// A meter over an ordered map of the cells that were ever asked: the judge of
/// [`MeterTable`](super::MeterTable).
pub struct MeterModel {
    spec: MeterSpec,
    cells: BTreeMap<u32, Cell>,
}

/// Tokens in units.
#[derive(Clone, Copy)]
struct Cell {
    time: u64,
    committed: u128,
    excess: u128,
    peak: u128,
}

impl MeterModel {
    /// A meter whose buckets are all full at time 0.
    pub fn new(spec: MeterSpec) -> Result<MeterModel, MeterError> {
        spec.check()?;
        Ok(MeterModel { spec, cells: BTreeMap::new() })
    }

    /// [`MeterTable::mark`](super::MeterTable::mark).
    pub fn mark(&mut self, cell: u32, bytes: u32, colour: Colour, now: u64) -> Colour {
        if cell >= self.spec.cells {
            return Colour::Red;
        }
        let units = 1_000_000_000 * u128::from(self.spec.period);
        let full = |burst: u32| u128::from(burst) * units;
        let (cbs, ebs, pbs) = match self.spec.rates {
            MeterRates::Single { committed_burst, excess_burst, .. } => {
                (full(committed_burst), full(excess_burst), 0)
            }
            MeterRates::Two { committed_burst, peak_burst, .. } => {
                (full(committed_burst), 0, full(peak_burst))
            }
        };
        let state =
            self.cells.entry(cell).or_insert(Cell { time: 0, committed: cbs, excess: ebs, peak: pbs });
        let now = now.max(state.time);
        let passed = u128::from(now - state.time);
        state.time = now;
        let size = u128::from(self.spec.cost(bytes)) * units;
        let came = self.spec.before(colour);
        match self.spec.rates {
            MeterRates::Single { committed, .. } => {
                // "If Tc is less than CBS, Tc is incremented by one, else if Te is less then EBS, Te is": the
                // sum of both grows by all that arrives, the committed bucket first.
                let arrived = u128::from(committed) * passed;
                let room = cbs - state.committed;
                if arrived <= room {
                    state.committed += arrived;
                } else {
                    state.committed = cbs;
                    state.excess = ebs.min(state.excess.saturating_add(arrived - room));
                }
                match came {
                    Colour::Green if state.committed >= size => {
                        state.committed -= size;
                        Colour::Green
                    }
                    Colour::Green | Colour::Yellow if state.excess >= size => {
                        state.excess -= size;
                        Colour::Yellow
                    }
                    _ => Colour::Red,
                }
            }
            MeterRates::Two { committed, peak, .. } => {
                state.committed = cbs.min(state.committed.saturating_add(u128::from(committed) * passed));
                state.peak = pbs.min(state.peak.saturating_add(u128::from(peak) * passed));
                if came == Colour::Red || state.peak < size {
                    Colour::Red
                } else if came == Colour::Yellow || state.committed < size {
                    state.peak -= size;
                    Colour::Yellow
                } else {
                    state.peak -= size;
                    state.committed -= size;
                    Colour::Green
                }
            }
        }
    }
}
