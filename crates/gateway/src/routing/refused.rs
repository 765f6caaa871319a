//! Entries that the program's tables had no room for: when they are tried again, and what makes room first.

use super::effects::{self, Change, Effects, Filled, Refused};
use super::prefix::IpPrefix;
use super::rib::Source;
use super::router::Router;
use ir::{Entry, Match};
use std::collections::{BTreeMap, BTreeSet};

impl Router {
    /// These changes were made in the program's tables, but for those at some places, which found no room.
    /// Where others made room, as many that lacked it are to be put in, as they are now: whatever changed
    /// them meanwhile came before.
    pub(super) fn made<'a>(
        &mut self,
        changes: impl Iterator<Item = &'a Change>,
        refused: &[usize],
        effects: &mut Effects,
    ) {
        if refused.is_empty() && self.refused.is_empty() {
            return;
        }
        let (mut refused, mut room) = (refused.iter().peekable(), BTreeMap::<Filled, usize>::new());
        for (place, change) in changes.enumerate() {
            if refused.next_if_eq(&&place).is_some() {
                let new = self.refused.insert(change.table, &change.entry.key);
                self.account.entries_refused += u64::from(new);
            } else if !self.refused.remove(change) && !change.insert {
                *room.entry(change.table).or_default() += 1;
            }
        }
        for (table, count) in room {
            let keys = self.refused.take(table, count);
            if keys.is_empty() {
                continue;
            }
            // Of those that are wanted no more a removal is on its way, which counts as room for another.
            for entry in self.wanted_entries(table, keys) {
                self.refused.tries(table, &entry.key);
                effects.insert((table, entry));
            }
        }
    }

    /// A table of routes with this capacity is to be filled, in place of one of `old`. Routes of the kernel
    /// that are too many wait for room; those that had room before, and lower prefixes, go first. Routes of
    /// other sources are never left out: without room for these a program cannot be filled.
    pub(super) fn leave_out(&mut self, table: Filled, capacity: usize, old: &Refused) {
        let of_table = |prefix: &&IpPrefix| prefix.is_ipv4() == (table == Filled::Routes);
        let mut routes: Vec<(bool, bool, IpPrefix)> = self
            .fib_prefixes()
            .filter(of_table)
            .map(|prefix| {
                let of_kernel = matches!(self.rib.best(*prefix), Some((Source::Kernel, _)));
                (of_kernel, old.has(*prefix), *prefix)
            })
            .collect();
        if routes.len() <= capacity {
            return;
        }
        routes.sort_unstable();
        for (_, _, prefix) in routes.into_iter().skip(capacity).filter(|(of_kernel, ..)| *of_kernel) {
            self.refused.insert(table, &[prefix.key()]);
        }
    }

    /// What belongs into a table with these keys.
    fn wanted_entries(&self, table: Filled, keys: Vec<Vec<Match>>) -> Vec<Entry> {
        if let Filled::Routes | Filled::Routes6 = table {
            let route = |key: &Match| {
                let prefix = IpPrefix::of_key(key, table == Filled::Routes)?;
                Some(effects::route(prefix, self.number(prefix)?).1)
            };
            return keys.iter().filter_map(|key| route(key.first()?)).collect();
        }
        let keys: BTreeSet<Vec<Match>> = keys.into_iter().collect();
        self.entries(table).into_iter().filter(|entry| keys.contains(&entry.key)).collect()
    }

    /// Brings prefixes of the program in line with the routes. Where the table of one is full, those of it
    /// that lead nowhere any more make room first; otherwise what comes is there before something else goes.
    pub(super) fn update_all(&mut self, prefixes: &[IpPrefix], effects: &mut Effects) {
        let (gone, others): (Vec<IpPrefix>, Vec<IpPrefix>) = prefixes
            .iter()
            .partition(|prefix| self.refused.has_table_of(**prefix) && self.wanted(**prefix).is_none());
        for prefix in gone.into_iter().chain(others) {
            self.update(prefix, effects);
        }
    }
}
