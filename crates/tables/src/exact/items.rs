//! An index from an item of a pool to the entry that holds it, so that an expired entry is found when
//! somebody needs its item.
//!
//! The idea: the deadlines of the entries lie in an [`Order`] whose leaves are the items, and here every
//! bound is exact, since whoever changes an entry says so, but after other times hold for all of them at
//! once. The first item from a number on whose entry has ended is then one way up and down, however many
//! there are. Each item is thought to have one holder. Where a program gives an item to two entries, which it
//! should not, nothing can be told any more.

use super::order::Order;
use super::slots::NoMemory;

/// The number of the item that a value is; none where it is no item.
pub type Numbering = Box<dyn Fn(&[u64]) -> Option<u32> + Send>;

/// The most items that are kept by number; with more of them, all that has ended is taken out where one is
/// asked for.
pub const MOST_NUMBERED: u32 = 1 << 22;

/// The entries by their items.
pub(super) struct Items {
    number: Numbering,
    deadlines: Order,
    /// The key of the entry that holds each item.
    keys: Vec<u64>,
    key_words: usize,
    items: usize,
    /// An item has been held by two entries at once.
    shared: bool,
}

impl Items {
    /// None of so many items is held.
    pub(super) fn new(items: u32, key_words: usize, number: Numbering) -> Result<Items, NoMemory> {
        let (items, mut keys) = (items as usize, Vec::new());
        let words = items * key_words;
        keys.try_reserve_exact(words).map_err(|_| NoMemory { bytes: words * size_of::<u64>() })?;
        keys.resize(words, 0);
        Ok(Items { number, deadlines: Order::of_leaves(items)?, keys, key_words, items, shared: false })
    }

    /// Bytes that are allocated for so many items.
    pub(super) fn allocated(items: u64, key_words: usize) -> u64 {
        Order::allocated_leaves(items).saturating_add(items.saturating_mul(8 * key_words as u64))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.deadlines.bytes() + self.keys.len() * size_of::<u64>()
    }

    /// Whether it can tell who holds an item.
    pub(super) fn are_known(&self) -> bool {
        !self.shared
    }

    fn item(&self, value: &[u64]) -> Option<usize> {
        (self.number)(value).map(|item| item as usize).filter(|item| *item < self.items)
    }

    /// The key of the entry that held an item last.
    pub(super) fn key(&self, item: usize) -> &[u64] {
        &self.keys[item * self.key_words..][..self.key_words]
    }

    /// An entry holds the item that its value is, up to this deadline.
    pub(super) fn hold(&mut self, value: &[u64], key: &[u64], deadline: u64) {
        let Some(item) = self.item(value) else { return };
        if self.deadlines.bound_of(item) != u64::MAX && self.key(item) != key {
            self.shared = true;
        }
        self.deadlines.set(item, Some(deadline));
        self.keys[item * self.key_words..][..self.key_words].copy_from_slice(key);
    }

    /// An entry no longer holds the item that its value was.
    pub(super) fn leave(&mut self, value: &[u64]) {
        if let Some(item) = self.item(value) {
            self.forget(item);
        }
    }

    /// Nobody holds an item.
    pub(super) fn forget(&mut self, item: usize) {
        self.deadlines.set(item, None);
    }

    /// Entries may end sooner than they were to, by so much at most.
    pub(super) fn hasten(&mut self, by: u64) {
        self.deadlines.hasten(by);
    }

    /// The first item from this one on, and behind the last the first of all, whose entry has ended at
    /// `horizon`.
    pub(super) fn first_ended(&self, from: u32, horizon: u64) -> Option<usize> {
        let from = from as usize % self.items.max(1);
        let next = |from| self.deadlines.next(from, horizon);
        next(from).or_else(|| next(0))
    }
}
