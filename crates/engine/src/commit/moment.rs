//! What a ledger held at one moment, taken out of it a part at a time while packets go on being counted.
//!
//! The idea: at that moment the ledger changes places with an empty one, so nothing moves in what was counted
//! until then. A cell after the other is then told, added to what has been counted since, and emptied. In the
//! end the ledger has everything again, the other one is empty for the next time, and what was told is of one
//! moment, so it adds up.

use super::{Ledger, Volume};

/// A ledger that is being told.
pub(crate) struct Moment {
    /// What was counted up to the moment and has not been given back.
    frozen: Ledger,
    /// What has been told of it.
    told: Ledger,
}

impl Moment {
    /// The moment is now; `empty` is a ledger of the same program that has counted nothing.
    pub(crate) fn new(ledger: &mut Ledger, empty: Ledger) -> Moment {
        let frozen = std::mem::replace(ledger, empty);
        let told = Ledger {
            sets: frozen.sets.clone(),
            cells: Vec::with_capacity(frozen.cells.len()),
            received: Vec::with_capacity(frozen.received.len()),
            extra: Vec::with_capacity(frozen.extra.len()),
            grown: Vec::with_capacity(frozen.grown.len()),
            ..frozen
        };
        ledger.copies += told.copies;
        ledger.made += told.made;
        ledger.injected += told.injected;
        ledger.lost += told.lost;
        Moment { frozen, told }
    }

    /// Tells and gives back so many further cells at most, which it takes off `most`. Whether all have been.
    pub(crate) fn part(&mut self, ledger: &mut Ledger, most: &mut usize) -> bool {
        let Moment { frozen, told } = self;
        let volume = |all: &mut Volume, more: Volume| *all += more;
        move_on(&mut frozen.cells, &mut told.cells, &mut ledger.cells, most, volume);
        move_on(&mut frozen.received, &mut told.received, &mut ledger.received, most, volume);
        move_on(&mut frozen.extra, &mut told.extra, &mut ledger.extra, most, volume);
        let grown = |all: &mut (u64, i64), more: (u64, i64)| *all = (all.0 + more.0, all.1 + more.1);
        move_on(&mut frozen.grown, &mut told.grown, &mut ledger.grown, most, grown);
        told.grown.len() == frozen.grown.len()
    }

    /// What was told, and the ledger that is empty now.
    pub(crate) fn end(self) -> (Ledger, Ledger) {
        let Moment { mut frozen, told } = self;
        (frozen.copies, frozen.made, frozen.injected, frozen.lost) = (0, 0, 0, 0);
        (told, frozen)
    }
}

/// Tells the cells behind those that have been told, adds them to those that count now, and empties them.
fn move_on<T: Copy + Default>(
    frozen: &mut [T],
    told: &mut Vec<T>,
    now: &mut [T],
    most: &mut usize,
    add: impl Fn(&mut T, T),
) {
    let from = told.len();
    let end = frozen.len().min(from.saturating_add(*most));
    for (cell, now) in frozen[from..end].iter_mut().zip(&mut now[from..end]) {
        let held = std::mem::take(cell);
        told.push(held);
        add(now, held);
    }
    *most -= end - from;
}
