//! Which home slot holds the entry that is first by some rising measure (deadline, recency), kept lazily.
//!
//! The idea: entries whose keys hash to the same slot share one heap item, and its bound is at or below the measure of
//! each of them. Renewing an entry only raises its measure, so it leaves the heap alone; an item that reaches the top is
//! held against the entries themselves and sinks if they have moved on. One item a home slot at most, and one for each entry
//! that came from another generation, means that the heap never outgrows the room it was made with, whatever is inserted and removed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use super::slots::NoMemory;

/// The bound in the high half and the home slot in the low half: one comparison without a branch orders two of them.
type Item = u128;

/// A lazy priority queue of home slots.
pub(super) struct Order {
    items: BinaryHeap<Reverse<Item>>,
    /// One bit a home slot: it has an item.
    queued: Vec<u64>,
    /// By so much bounds are less than items say.
    sooner: u64,
}

impl Order {
    /// For `homes` home slots and `arriving` entries from elsewhere; allocates all it will ever need.
    pub(super) fn new(homes: usize, arriving: usize) -> Result<Order, NoMemory> {
        let most = homes + arriving;
        let bytes = most * size_of::<Item>();
        let (mut items, mut queued) = (BinaryHeap::new(), Vec::new());
        items.try_reserve_exact(most).map_err(|_| NoMemory { bytes })?;
        queued.try_reserve_exact(homes.div_ceil(64)).map_err(|_| NoMemory { bytes })?;
        queued.resize(homes.div_ceil(64), 0);
        Ok(Order { items, queued, sooner: 0 })
    }

    /// Makes room for so many entries from elsewhere in an order that has none; takes no longer for many.
    pub(super) fn expect(&mut self, arriving: usize) -> Result<(), NoMemory> {
        let most = self.items.capacity() + arriving;
        let mut items = BinaryHeap::new();
        items.try_reserve_exact(most).map_err(|_| NoMemory { bytes: most * size_of::<Item>() })?;
        self.items = items;
        Ok(())
    }

    /// All measures may become smaller by so much. Sums of measures and all of this are to stay numbers.
    pub(super) fn hasten(&mut self, by: u64) {
        self.sooner += by;
    }

    /// By how much in all.
    pub(super) fn hastened(&self) -> u64 {
        self.sooner
    }

    /// Bytes that are allocated for so many home slots.
    pub(super) fn allocated(homes: u64) -> u64 {
        homes.saturating_mul(size_of::<Item>() as u64).saturating_add(homes.div_ceil(64) * 8)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.items.capacity() * size_of::<Item>() + self.queued.len() * size_of::<u64>()
    }

    pub(super) fn is_queued(&self, home: usize) -> bool {
        self.queued[home / 64] & (1 << (home % 64)) != 0
    }

    /// An entry with this measure has come to live at `home`. The measure is at or above that of every entry queued so far,
    /// which is why an item that is already there need not change.
    pub(super) fn add(&mut self, home: usize, measure: u64) {
        if !self.is_queued(home) {
            self.admit(home, measure);
        }
    }

    /// An entry that another generation held has come to live at `home`. Its measure may be below what is queued for the home slot, so
    /// it gets an item of its own.
    pub(super) fn admit(&mut self, home: usize, measure: u64) {
        self.queued[home / 64] |= 1 << (home % 64);
        self.items.push(Reverse(item(measure.saturating_add(self.sooner), home)));
    }

    /// A lower bound of the smallest measure; `u64::MAX` if there is none.
    pub(super) fn bound(&self) -> u64 {
        self.items.peek().map_or(u64::MAX, |Reverse(item)| noted(*item).saturating_sub(self.sooner))
    }

    /// The slot of the entry with the smallest measure, if that is at or below `limit`. `first` says which entry of a home
    /// slot has the smallest measure now: (measure, slot). Each item that is looked at takes a step, of which there are so many.
    pub(super) fn first(
        &mut self,
        limit: u64,
        steps: &mut u32,
        first: impl Fn(usize) -> Option<(u64, usize)>,
    ) -> Option<usize> {
        loop {
            *steps = steps.checked_sub(1)?;
            let mut top = self.items.peek_mut()?;
            let (noted, home) = (noted(top.0), top.0 as u64 as usize);
            if noted.saturating_sub(self.sooner) > limit {
                return None;
            }
            match first(home) {
                None => {
                    PeekMut::pop(top);
                    self.queued[home / 64] &= !(1 << (home % 64));
                }
                Some((measure, slot)) if measure.saturating_add(self.sooner) <= noted => return Some(slot),
                Some((measure, _)) => top.0 = item(measure.saturating_add(self.sooner), home),
            }
        }
    }
}

fn item(noted: u64, home: usize) -> Item {
    Item::from(noted) << 64 | home as Item
}

fn noted(item: Item) -> u64 {
    (item >> 64) as u64
}
