//! When entries of tables end, and those that raise an event then: the table tells when each ends, its
//! [`Watch`] which of them ends first.

use super::{TableFamily, TablePlace, TableSet};
use crate::state::watch::{EntryEnd, Watch, WatchedKey, watched_key};
use tables::exact::Exact;

impl<F: TableFamily> TableSet<F> {
    /// When the first entry of all tables expires; `u64::MAX` for never.
    pub fn next_deadline(&self) -> u64 {
        let exact = self.places.iter().zip(&self.watches).filter_map(|(place, watch)| match (place, watch) {
            (TablePlace::Exact(_), Some(watch)) => watch.first().map(|(due, _)| *due),
            (TablePlace::Exact(place), None) => Some(self.exact[*place].next_deadline()),
            _ => None,
        });
        let prefixes = self.prefixes.iter().map(|table| table.expiry().next());
        let rules = self.rules.iter().map(|table| table.expiry().next());
        exact.chain(prefixes).chain(rules).min().unwrap_or(u64::MAX)
    }

    /// Exchanges what is known of when the entries of two tables end, if both raise events then.
    pub(in crate::state) fn exchange_watch(&mut self, table: u32, other: &mut TableSet<F>, theirs: u32) {
        let watches = (&mut self.watches[table as usize], &mut other.watches[theirs as usize]);
        if let (Some(ours), Some(theirs)) = watches {
            std::mem::swap(ours, theirs);
        }
    }

    /// Lists anew when the entries of a table end, if it raises an event then.
    pub(super) fn watch_all(&mut self, table: u32) {
        let TablePlace::Exact(place) = self.places[table as usize] else { return };
        let Some(watch) = &mut self.watches[table as usize] else { return };
        *watch = Watch::default();
        for held in self.exact[place].learned() {
            watch.note(&held.key, held.deadline.unwrap_or(u64::MAX), |_| true);
        }
    }

    /// A packet has made an entry: notes when it ends, if the table raises an event then.
    pub(in crate::state) fn watch(&mut self, table: u32, key: &[u64]) {
        if let (Some(watch), TablePlace::Exact(place)) =
            (&mut self.watches[table as usize], self.places[table as usize])
        {
            watch.note_new(&mut self.exact[place], key);
        }
    }

    /// A packet has removed an entry.
    pub(in crate::state) fn unwatch(&mut self, table: u32, key: &[u64]) {
        if let Some(watch) = &mut self.watches[table as usize] {
            watch.forget(&watched_key(key));
        }
    }

    /// Ends an entry whose time is up.
    pub(in crate::state) fn end(&mut self, table: u32, key: &WatchedKey) {
        if let (Some(watch), TablePlace::Exact(place)) =
            (&mut self.watches[table as usize], self.places[table as usize])
        {
            watch.forget(key);
            self.exact[place].end(&key[..self.shapes[table as usize].key.words]);
        }
    }

    /// The entry that ends first of those that raise an event then, if it ends at or before `time`; `None`
    /// too when `looks` at entries that were renewed meanwhile are spent.
    pub(in crate::state) fn next_end(&mut self, time: u64, looks: &mut u32) -> Option<EntryEnd> {
        loop {
            let firsts = (0..).zip(&self.watches).filter_map(|(table, watch)| {
                watch.as_ref()?.first().map(|&(due, key)| EntryEnd { time: due, table, key })
            });
            let end = firsts.min_by_key(|end| (end.time, end.table)).filter(|end| end.time <= time)?;
            let index = end.table as usize;
            let (TablePlace::Exact(place), Some(watch)) = (self.places[index], &mut self.watches[index])
            else {
                return None;
            };
            match self.exact[place].ends(&end.key[..self.shapes[index].key.words]) {
                Some(ends) if ends == end.time => return Some(end),
                Some(u64::MAX) | None => watch.forget(&end.key),
                Some(later) => watch.postpone(&end.key, later),
            }
            *looks = looks.saturating_sub(1);
            if *looks == 0 {
                return None;
            }
        }
    }
}
