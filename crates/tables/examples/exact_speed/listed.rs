//! The table that the measured one is held against: entries linked in order of use and in order of learning.

/// The slots' neighbours in one order; the number after the last slot stands for both ends.
struct List {
    links: Vec<(u32, u32)>,
}

impl List {
    fn new(slots: usize) -> List {
        List { links: vec![(slots as u32, slots as u32); slots + 1] }
    }

    #[inline(always)]
    fn unlink(&mut self, slot: usize) {
        let (before, after) = self.links[slot];
        self.links[before as usize].1 = after;
        self.links[after as usize].0 = before;
    }

    #[inline(always)]
    fn append(&mut self, slot: usize) {
        let end = self.links.len() - 1;
        let last = self.links[end].0;
        self.links[slot] = (last, end as u32);
        self.links[last as usize].1 = slot as u32;
        self.links[end].0 = slot as u32;
    }

    /// The entry in slot `from` now lies in slot `to`.
    fn shift(&mut self, from: usize, to: usize) {
        let (before, after) = self.links[from];
        self.links[to] = (before, after);
        self.links[before as usize].1 = to as u32;
        self.links[after as usize].0 = to as u32;
    }

    fn first(&self) -> usize {
        self.links[self.links.len() - 1].1 as usize
    }
}

/// One-word keys and values, `age` and `lru` only: taken (1 or 0), key, value, time of the last learn.
pub(crate) struct Listed {
    slots: Vec<[u64; 4]>,
    by_use: List,
    by_learn: List,
    capacity: usize,
    entries: usize,
    moves: u64,
}

impl Listed {
    pub(crate) fn new(capacity: usize) -> Listed {
        let slots = (capacity * 2).next_power_of_two();
        Listed {
            slots: vec![[0; 4]; slots],
            by_use: List::new(slots),
            by_learn: List::new(slots),
            capacity,
            entries: 0,
            moves: 0,
        }
    }

    #[inline(always)]
    pub(crate) fn expire_if_due(&mut self, now: u64, age: u64) {
        let first = self.by_learn.first();
        if first < self.slots.len() && self.slots[first][3].saturating_add(age) <= now {
            self.vacate(first);
        }
    }

    #[inline(always)]
    pub(crate) fn learn(&mut self, key: u64, value: u64, now: u64) {
        let mut slot = self.probe(key);
        if self.slots[slot][0] == 0 {
            slot = self.insert(key);
        } else {
            self.by_use.unlink(slot);
            self.by_learn.unlink(slot);
        }
        self.by_use.append(slot);
        self.by_learn.append(slot);
        self.slots[slot][3] = now;
        if self.slots[slot][2] != value {
            self.slots[slot][2] = value;
            self.moves += 1;
        }
    }

    #[inline(always)]
    pub(crate) fn find(&mut self, key: u64) -> u64 {
        let slot = self.probe(key);
        if self.slots[slot][0] == 0 {
            return 0;
        }
        self.by_use.unlink(slot);
        self.by_use.append(slot);
        self.slots[slot][2]
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn prefetch(&self, key: u64) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let home = home(key) & (self.slots.len() - 1);
        // SAFETY: a prefetch reads nothing and faults at no address; SSE is part of x86-64.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>((&raw const self.slots[home]).cast());
            _mm_prefetch::<_MM_HINT_T0>((&raw const self.by_use.links[home]).cast());
            _mm_prefetch::<_MM_HINT_T0>((&raw const self.by_learn.links[home]).cast());
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn prefetch(&self, _key: u64) {}

    #[inline(never)]
    fn insert(&mut self, key: u64) -> usize {
        if self.entries == self.capacity {
            self.vacate(self.by_use.first());
        }
        let slot = self.probe(key);
        self.slots[slot] = [1, key, 0, 0];
        self.entries += 1;
        slot
    }

    #[inline(always)]
    fn probe(&self, key: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = home(key) & mask;
        while self.slots[slot][0] != 0 && self.slots[slot][1] != key {
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn vacate(&mut self, slot: usize) {
        self.by_use.unlink(slot);
        self.by_learn.unlink(slot);
        let mask = self.slots.len() - 1;
        let (mut hole, mut next) = (slot, (slot + 1) & mask);
        while self.slots[next][0] != 0 {
            let home = home(self.slots[next][1]);
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                self.slots[hole] = self.slots[next];
                self.by_use.shift(next, hole);
                self.by_learn.shift(next, hole);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        self.slots[hole][0] = 0;
        self.entries -= 1;
    }
}

#[inline(always)]
fn home(key: u64) -> usize {
    let product = u128::from(key ^ 0x9e37_79b9_7f4a_7c15) * 0xbf58_476d_1ce4_e5b9;
    (product as u64 ^ (product >> 64) as u64) as usize
}
