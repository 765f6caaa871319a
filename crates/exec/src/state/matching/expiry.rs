//! When entries of tables with prefixes and rules end that packets made, and which of them are still to be
//! taken out.

use crate::state::limits::STEPS_BEFORE_PACKET;
use std::collections::{BTreeMap, BTreeSet};

/// Taking an entry out of a search takes as long as so many steps of an exact table.
pub(in crate::state) const STEPS_OF_WITHDRAWAL: u32 = STEPS_BEFORE_PACKET;

/// When entries that packets made go. One whose deadline is at or before the horizon has ended, be it taken
/// out or not.
#[derive(Clone, Debug)]
pub(crate) struct Expiry<K> {
    age: Option<u64>,
    due: BTreeSet<(u64, K)>,
    /// Deadline and row of each.
    of: BTreeMap<K, (u64, u32)>,
    /// Entries have ended whose deadline is at or before it.
    pub(super) horizon: u64,
    /// How many have been taken out since their time was up.
    pub(crate) expired: u64,
}

impl<K: Ord + Copy> Expiry<K> {
    pub(super) fn new(age: Option<u64>) -> Expiry<K> {
        Expiry { age, due: BTreeSet::new(), of: BTreeMap::new(), horizon: 0, expired: 0 }
    }

    /// An entry is made or renewed; one of the program text or of the control plane, without a time, never
    /// goes. Says when it does; `u64::MAX` for never.
    pub(super) fn note(&mut self, key: K, now: Option<u64>, row: u32) -> u64 {
        self.forget(&key);
        let (Some(now), Some(age)) = (now, self.age) else { return u64::MAX };
        let deadline = now.saturating_add(age.max(1));
        if deadline < u64::MAX {
            self.due.insert((deadline, key));
        }
        self.of.insert(key, (deadline, row));
        deadline
    }

    /// An entry that packets made ends at this time, if it would end later. Says when it does, and
    /// which row it has.
    pub(super) fn end_by(&mut self, key: K, deadline: u64) -> Option<(u64, u32)> {
        let held = self.of.get_mut(&key)?;
        if deadline < held.0 {
            self.due.remove(&(held.0, key));
            self.due.insert((deadline, key));
            held.0 = deadline;
        }
        Some(*held)
    }

    /// An entry is known by another key from now on.
    pub(super) fn rename(&mut self, from: K, to: K) {
        if let Some(held) = self.of.remove(&from) {
            if self.due.remove(&(held.0, from)) {
                self.due.insert((held.0, to));
            }
            self.of.insert(to, held);
        }
    }

    pub(super) fn forget(&mut self, key: &K) {
        if let Some((deadline, _)) = self.of.remove(key) {
            self.due.remove(&(deadline, *key));
        }
    }

    /// Whether entries have ended that are still to be taken out.
    #[inline]
    pub(super) fn is_behind(&self) -> bool {
        self.next() <= self.horizon
    }

    /// Whether an entry has.
    #[inline]
    pub(super) fn has_ended(&self, key: &K) -> bool {
        self.is_behind() && self.of.get(key).is_some_and(|(deadline, _)| *deadline <= self.horizon)
    }

    /// One that has.
    pub(super) fn ended(&self) -> Option<K> {
        self.due.first().filter(|(deadline, _)| *deadline <= self.horizon).map(|(_, key)| *key)
    }

    /// How many have and are still to be taken out. It looks at each of them.
    pub(crate) fn left(&self) -> usize {
        self.due.iter().take_while(|(deadline, _)| *deadline <= self.horizon).count()
    }

    /// Those that have not, with their rows.
    pub(super) fn alive(&self) -> impl Iterator<Item = (K, u32)> {
        let held = self.of.iter().filter(|(_, (deadline, _))| *deadline > self.horizon);
        held.map(|(key, (_, row))| (*key, *row))
    }

    /// Numbers of which one at least is another whenever entries have ended.
    pub(crate) fn version(&self) -> [u64; 2] {
        [self.expired, if self.is_behind() { self.horizon } else { 0 }]
    }

    /// When the next one goes; `u64::MAX` for never.
    pub(crate) fn next(&self) -> u64 {
        self.first().map_or(u64::MAX, |(deadline, _)| deadline)
    }

    /// The next one that goes, and when.
    pub(crate) fn first(&self) -> Option<(u64, K)> {
        self.due.first().copied()
    }

    /// When an entry that packets made goes, and which row it has.
    pub(super) fn of(&self, key: &K) -> Option<(u64, u32)> {
        self.of.get(key).copied()
    }
}
