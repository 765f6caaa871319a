//! When entries of tables end, and those that raise an event then: the table tells when each ends, its
//! [`Deadlines`](tables::deadlines::Deadlines) which of them ends first.
//!
//! A hit moves the time of an entry without telling anybody, so the list knows for each entry a time before
//! which it does not end. Whoever asks for the first entry asks the table when that one really ends: then it
//! is the first, or it goes back into the list at its later time.

use super::{TableFamily, TablePlace, TableSet};
use crate::pack::MAX_WORDS;
use crate::state::ending::{EntryEnd, learn_listed};
use lang::ir::Entry;
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
            TablePlace::Exact(place) => {
                let (Some(key), packing) = (entry.exact_key(), &self.shapes[index].key) else { return };
                let mut words = [0; MAX_WORDS];
                packing.pack(key, &mut words[..packing.words]);
                let words = &words[..packing.words];
                self.exact[place].end_by(words, deadline);
                if let Some(deadlines) = &mut self.deadlines[index]
                    && let Some(ends) = self.exact[place].deadline_of(words).filter(|ends| *ends < u64::MAX)
                {
                    deadlines.note(words, ends);
                }
            }
            TablePlace::Prefixes(place) => self.prefixes[place].end_by(&entry.key, deadline),
            TablePlace::Rules(place) => self.rules[place].end_by(&entry.key, entry.priority, deadline),
            TablePlace::Patterns(_) => {}
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
        let (index, key) = (end.table as usize, self.key_of(end));
        if let (Some(deadlines), TablePlace::Exact(place)) = (&mut self.deadlines[index], self.places[index])
        {
            deadlines.forget(key);
            self.exact[place].expire_key(key);
        }
    }

    /// The words of the key of an entry whose time is up.
    pub(in crate::state) fn key_of<'a>(&self, end: &'a EntryEnd) -> &'a [u64] {
        &end.key[..self.shapes[end.table as usize].key.words]
    }

    /// The entry that ends first of those that raise an event then, if it ends at or before `time`; `None`
    /// too when `looks` at entries that were renewed meanwhile are spent.
    pub(in crate::state) fn next_end(&mut self, time: u64, looks: &mut u32) -> Option<EntryEnd> {
        loop {
            let firsts = (0..)
                .zip(&self.deadlines)
                .filter_map(|(table, deadlines)| deadlines.as_ref()?.first().map(|(due, _)| (due, table)));
            let (due, table) = firsts.min().filter(|(due, _)| *due <= time)?;
            let index = table as usize;
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
                    return Some(EntryEnd { time: due, table, key });
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
