//! The entries of a table that raises an event when their time is up, in the order of these times.
//!
//! A hit moves the time of an entry without telling anybody, so the list knows for each entry a time before
//! which it does not end. Whoever asks for the first entry asks the table when that one really ends: then it
//! is the first, or it goes back into the list at its later time. Entries at one time are in the order of
//! their keys. An entry that was evicted stays in the list until its time, or until it is passed in the
//! rounds over the list that learns of new keys make, a few entries each time: so the list has at most twice
//! as many entries as the table.

use crate::pack::MAX_WORDS;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use tables::exact::Exact;

/// The words of a key, and zeros behind them.
pub(super) type WatchedKey = [u64; MAX_WORDS];

/// So many entries of the list are passed for each that comes into it.
const PASSED: usize = 4;

/// The list of a table.
#[derive(Debug, Default)]
pub(super) struct Watch {
    due: BTreeSet<(u64, WatchedKey)>,
    known: BTreeMap<WatchedKey, u64>,
    /// Where the next round over the list goes on.
    passed: WatchedKey,
}

/// The words of a key as the list keeps them.
pub(super) fn watched_key(key: &[u64]) -> WatchedKey {
    let mut words = [0; MAX_WORDS];
    words[..key.len()].copy_from_slice(key);
    words
}

/// An entry whose time is up, in a table that raises an event for it.
pub(super) struct EntryEnd {
    pub(super) time: u64,
    pub(super) table: u32,
    pub(super) key: WatchedKey,
}

impl Watch {
    /// Notes when a new entry of a table ends.
    pub(super) fn note_new<E: Exact>(&mut self, table: &mut E, key: &[u64]) {
        let ends = table.ends(key).unwrap_or(u64::MAX);
        self.note(key, ends, |key| table.peek(key).is_some());
    }

    /// A key has come into the table and ends at this time at the earliest; `is_held` says of a key whether
    /// the table still has it.
    pub(super) fn note(&mut self, key: &[u64], time: u64, is_held: impl Fn(&[u64]) -> bool) {
        let words = watched_key(key);
        // The entry of this key that was evicted is listed at an earlier time.
        if !self.known.contains_key(&words) {
            self.put(words, time);
        }
        for _ in 0..PASSED {
            let next = self.known.range((Bound::Excluded(self.passed), Bound::Unbounded)).next();
            let Some((next, _)) = next else {
                self.passed = [0; MAX_WORDS];
                break;
            };
            self.passed = *next;
            if !is_held(&next[..key.len()]) {
                self.forget(&self.passed.clone());
            }
        }
    }

    fn put(&mut self, key: WatchedKey, time: u64) {
        self.due.insert((time, key));
        self.known.insert(key, time);
    }

    /// A key ends at this later time.
    pub(super) fn postpone(&mut self, key: &WatchedKey, time: u64) {
        self.forget(key);
        self.put(*key, time);
    }

    /// A key has left the table.
    pub(super) fn forget(&mut self, key: &WatchedKey) {
        if let Some(time) = self.known.remove(key) {
            self.due.remove(&(time, *key));
        }
    }

    /// The key that comes first, and a time before which it does not end.
    pub(super) fn first(&self) -> Option<&(u64, WatchedKey)> {
        self.due.first()
    }

    /// How many keys are listed.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_first_is_the_one_that_ends_first_and_equal_times_are_in_order_of_keys() {
        let mut watch = Watch::default();
        for (key, time) in [(7, 30), (3, 20), (5, 20), (9, 10)] {
            watch.note(&[key], time, |_| true);
        }
        watch.postpone(&watched_key(&[9]), 25);
        watch.note(&[5], 90, |_| true);
        let mut order = Vec::new();
        while let Some((time, key)) = watch.first().copied() {
            order.push((time, key[0]));
            watch.forget(&key);
        }
        assert_eq!(order, [(20, 3), (20, 5), (25, 9), (30, 7)]);
        assert_eq!(watch.len(), 0);
    }

    #[test]
    fn what_a_full_table_evicts_does_not_gather_in_the_list() {
        let (mut watch, mut held, capacity) = (Watch::default(), HashSet::new(), 100);
        for key in 0..100_000_u64 {
            // Keys come in no order.
            let mixed = |key: u64| key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if key >= capacity {
                held.remove(&mixed(key - capacity));
            }
            held.insert(mixed(key));
            watch.note(&[mixed(key)], u64::MAX, |words| held.contains(&words[0]));
            assert!(watch.len() as u64 <= 2 * capacity, "{} after {key}", watch.len());
        }
    }
}
