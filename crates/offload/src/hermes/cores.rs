//! Cores and their slots: a bit a slot, and whose turn it is.
//!
//! ```text
//!  core     0         1         2                      a bit: the slot is free
//!        ┌─────────┬─────────┬─────────┐
//!        │ 00011011│ 00000000│ 11111111│               the next warp goes to the first core with a free slot,
//!        └─────────┴─────────┴─────────┘               counted round from the core after the one that got the last
//!                       ▲ turn
//! ```

/// The slots of all cores.
#[derive(Clone, Debug)]
pub(super) struct Cores {
    free: Box<[u64]>,
    all: u64,
    /// Bits of cores that failed, so that none of their slots is ever free.
    failed: Box<[bool]>,
    working: u16,
    turn: usize,
}

impl Cores {
    /// So many cores of so many slots, up to 64, all free.
    pub(super) fn new(cores: u16, slots: u8) -> Cores {
        let all = u64::MAX >> (64 - u32::from(slots));
        let count = usize::from(cores);
        Cores {
            free: vec![all; count].into(),
            all,
            failed: vec![false; count].into(),
            working: cores,
            turn: 0,
        }
    }

    /// A core and its slot that were free.
    pub(super) fn take(&mut self) -> Option<(u16, u8)> {
        let count = self.free.len();
        let core = (self.turn..count).chain(0..self.turn).find(|core| self.free[*core] != 0)?;
        let slot = self.free[core].trailing_zeros();
        self.free[core] &= !(1 << slot);
        self.turn = (core + 1) % count;
        Some((core as u16, slot as u8))
    }

    /// Frees a slot; false where it was free, or there is none.
    pub(super) fn give_back(&mut self, core: u16, slot: u8) -> bool {
        let core = usize::from(core);
        let runs = core < self.free.len()
            && !self.failed[core]
            && slot < 64
            && (self.all & !self.free[core]) >> slot & 1 == 1;
        if runs {
            self.free[core] |= 1 << slot;
        }
        runs
    }

    /// Takes a core out; the bits of the slots that were running.
    pub(super) fn fail(&mut self, core: u16) -> u64 {
        let Some(failed) = self.failed.get_mut(usize::from(core)) else { return 0 };
        if std::mem::replace(failed, true) {
            return 0;
        }
        self.working -= 1;
        let free = std::mem::take(&mut self.free[usize::from(core)]);
        self.all & !free
    }

    pub(super) fn none_works(&self) -> bool {
        self.working == 0
    }
}
