//! Copies the state of a ledger at one moment, part by part, while packets go on being counted.
//!
//! The idea: at that moment the ledger is exchanged with an empty one, so its counts do not change any more.
//! Then its cells are copied one after the other; each cell is added to the current ledger and set to zero.
//! At the end, the current ledger has all counts again, the other one is empty for the next time, and the
//! copy is that of one moment, so it adds up.

use super::{Ledger, Volume};

/// A ledger that is being copied.
pub(crate) struct Moment {
    /// The counts up to the moment that were not given back yet.
    frozen: Ledger,
    /// The copy so far.
    told: Ledger,
}

impl Moment {
    /// Begins a copy: the moment is now. `empty` is a ledger of the same program that has counted nothing.
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

    /// Copies and gives back at most `most` further cells, and subtracts their number from `most`. Returns
    /// whether all cells are copied.
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

    /// The copy, and the ledger that is now empty.
    pub(crate) fn end(self) -> (Ledger, Ledger) {
        let Moment { mut frozen, told } = self;
        (frozen.copies, frozen.made, frozen.injected, frozen.lost) = (0, 0, 0, 0);
        (told, frozen)
    }
}

/// Copies the next cells, adds them to the current ones, and sets them to zero.
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
