//! When entries of tables end, and those that raise an event then: the table tells when each ends, its
//! [`Deadlines`](tables::deadlines::Deadlines) which of them ends first.
//!
//! A hit moves the time of an entry without telling anybody, so the list knows for each entry a time before
//! which it does not end. Whoever asks for the first entry asks the table when that one really ends: then it
//! is the first, or it goes back into the list at its later time.

use super::{TableFamily, TablePlace, TableSet};
use crate::pack::{MAX_WORDS, Packing};
use crate::state::ending::{EndingKey, EntryEnd, learn_listed};
use crate::state::limits::LOOKS_FOR_STEP;
use crate::state::matching::STEPS_OF_WITHDRAWAL;
use ir::{Entry, Match};
use tables::exact::{Exact, Learned};

impl<F: TableFamily> TableSet<F> {
    /// When the first entry of all tables expires; `u64::MAX` for never.
    pub fn next_deadline(&self) -> u64 {
        let exact = self.places.iter().zip(&self.deadlines).filter_map(|(place, list)| match (place, list) {
            (TablePlace::Exact(_), Some(deadlines)) => deadlines.first().map(|(due, _)| due),
            (TablePlace::Exact(place), None) => Some(self.exact[*place].next_deadline()),
            _ => None,
        });
        let prefixes = self.prefixes.iter().map(|table| table.expiry().next());
        let rules = self.rules.iter().map(|table| table.expiry().next());
        exact.chain(prefixes).chain(rules).min().unwrap_or(u64::MAX)
    }

    /// Exchanges what is known of when the entries of two tables end, if both raise events then.
    pub(in crate::state) fn exchange_deadlines(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) {
        let lists = (&mut self.deadlines[table as usize], &mut other.deadlines[theirs as usize]);
        if let (Some(ours), Some(theirs)) = lists {
            std::mem::swap(ours, theirs);
        }
    }

    /// By how much entries of another table end sooner by the times of this one, at most.
    pub(super) fn sooner(&self, index: usize, other: &TableSet<F>, theirs: usize) -> u64 {
        let (ours, theirs) = (&self.declared[index], &other.declared[theirs]);
        let less = |ours: Option<u64>, theirs: Option<u64>| {
            theirs.zip(ours).map_or(0, |(theirs, ours)| theirs.max(1).saturating_sub(ours.max(1)))
        };
        less(ours.idle, theirs.idle).max(less(ours.age, theirs.age))
    }

    /// A packet learns an entry of an exact table.
    pub(in crate::state) fn learn(&mut self, table: u32, key: &[u64], value: &[u64], now: u64) -> Learned {
        let TablePlace::Exact(place) = self.places[table as usize] else { return Learned::Refused };
        learn_listed(&mut self.exact[place], &mut self.deadlines[table as usize], key, value, now)
    }

    /// An entry that packets made ends at this time, if it has an age and would end later.
    pub fn end_by(&mut self, table: u32, entry: &Entry, deadline: u64) {
        let index = table as usize;
        match self.places[index] {
            TablePlace::Exact(_) => {
                let (Some(key), packing) = (entry.exact_key(), &self.shapes[index].key) else { return };
                let mut words = [0; MAX_WORDS];
                packing.pack(key, &mut words[..packing.words]);
                let length = packing.words;
                self.end_key_by(table, &words[..length], deadline);
            }
            TablePlace::Prefixes(place) => self.prefixes[place].end_by(&entry.key, deadline),
            TablePlace::Rules(place) => self.rules[place].end_by(&entry.key, entry.priority, deadline),
            TablePlace::Patterns(_) => {}
        }
    }

    /// [`TableSet::end_by`] for the words of a key of an exact table. Whether there is an entry that ends at
    /// some time.
    pub(in crate::state) fn end_key_by(&mut self, table: u32, key: &[u64], deadline: u64) -> bool {
        let index = table as usize;
        let TablePlace::Exact(place) = self.places[index] else { return false };
        self.exact[place].end_by(key, deadline);
        let ends = self.exact[place].deadline_of(key).filter(|ends| *ends < u64::MAX);
        if let (Some(deadlines), Some(ends)) = (&mut self.deadlines[index], ends) {
            deadlines.note(key, ends);
        }
        ends.is_some()
    }

    /// When an entry ends by its age, `u64::MAX` without one; `None` if it stays until it is removed, or is
    /// not there.
    pub fn age_of(&self, table: u32, key: &[Match], priority: u32) -> Option<u64> {
        let index = table as usize;
        match self.places[index] {
            TablePlace::Exact(place) => {
                let entry = Entry { key: key.to_vec(), value: Vec::new(), priority };
                let (packing, mut words) = (&self.shapes[index].key, [0; MAX_WORDS]);
                packing.pack(entry.exact_key()?, &mut words[..packing.words]);
                self.exact[place].age_of(&words[..packing.words])
            }
            TablePlace::Prefixes(place) => self.prefixes[place].age_of(key),
            TablePlace::Rules(place) => self.rules[place].age_of(key, priority),
            TablePlace::Patterns(_) => None,
        }
    }

    /// A packet has removed an entry.
    pub(in crate::state) fn forget_deadline(&mut self, table: u32, key: &[u64]) {
        if let Some(deadlines) = &mut self.deadlines[table as usize] {
            deadlines.forget(key);
        }
    }

    /// Ends an entry whose time is up.
    pub(in crate::state) fn end(&mut self, end: &EntryEnd) {
        let index = end.table as usize;
        match (self.places[index], &end.key) {
            (TablePlace::Exact(place), EndingKey::Words(words)) => {
                let key = &words[..self.shapes[index].key.words];
                self.deadlines[index].iter_mut().for_each(|deadlines| deadlines.forget(key));
                self.exact[place].expire_key(key);
            }
            (TablePlace::Prefixes(place), EndingKey::Prefix(prefix)) => {
                self.prefixes[place].end_raising(*prefix);
            }
            _ => {}
        }
    }

    /// The columns of an entry whose time is up, as its event has them: of the key, the length of the prefix
    /// if it is one, of the value. Returns whether the entry is there.
    pub(in crate::state) fn ending_columns(&self, end: &EntryEnd, columns: &mut Vec<u128>) -> bool {
        let index = end.table as usize;
        let shape = &self.shapes[index];
        columns.clear();
        let value = match (self.places[index], &end.key) {
            (TablePlace::Exact(place), EndingKey::Words(words)) => {
                let key = &words[..shape.key.words];
                columns.extend(shape.key.places.iter().map(|place| Packing::unpack_one(place, key)));
                self.exact[place].peek(key)
            }
            (TablePlace::Prefixes(place), EndingKey::Prefix(prefix)) => {
                self.prefixes[place].ending_columns(*prefix, columns)
            }
            _ => None,
        };
        let Some(value) = value else { return false };
        columns.extend(shape.value.places.iter().map(|place| Packing::unpack_one(place, value)));
        true
    }

    /// The table whose entry may end first of those that raise an event then, and a time before which none
    /// does.
    fn first_end(&self) -> Option<(u64, u32)> {
        let raising = (0..).zip(&self.shapes).filter(|(_, shape)| shape.expires.is_some());
        let due = |table: u32| match self.places[table as usize] {
            TablePlace::Exact(_) => Some(self.deadlines[table as usize].as_ref()?.first()?.0),
            TablePlace::Prefixes(place) => Some(self.prefixes[place].expiry().first()?.0),
            _ => None,
        };
        raising.filter_map(|(table, _)| Some((due(table)?, table))).min()
    }

    /// The entry that ends first of those that raise an event then, if it ends at or before `time`; `None`
    /// too when `looks` are spent: on entries that were renewed meanwhile, and on prefixes, which take so
    /// many because taking one out of its table takes as long.
    pub(in crate::state) fn next_end(&mut self, time: u64, looks: &mut u32) -> Option<EntryEnd> {
        loop {
            let (due, table) = self.first_end().filter(|(due, _)| *due <= time)?;
            let index = table as usize;
            if let TablePlace::Prefixes(place) = self.places[index] {
                let (_, prefix) = self.prefixes[place].expiry().first()?;
                let left = looks.checked_sub(LOOKS_FOR_STEP * STEPS_OF_WITHDRAWAL);
                *looks = left.unwrap_or(0);
                left?;
                return Some(EntryEnd { time: due, table, key: EndingKey::Prefix(prefix) });
            }
            let (TablePlace::Exact(place), Some(deadlines)) =
                (self.places[index], &mut self.deadlines[index])
            else {
                return None;
            };
            let (_, first) = deadlines.first()?;
            match self.exact[place].deadline_of(first) {
                Some(ends) if ends == due => {
                    let mut key = [0; MAX_WORDS];
                    key[..first.len()].copy_from_slice(first);
                    return Some(EntryEnd { time: due, table, key: EndingKey::Words(key) });
                }
                Some(u64::MAX) | None => deadlines.forget_first(),
                Some(later) => deadlines.postpone_first(later),
            }
            *looks = looks.saturating_sub(1);
            if *looks == 0 {
                return None;
            }
        }
    }
}
