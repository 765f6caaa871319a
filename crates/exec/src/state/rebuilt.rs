//! A table with other entries: built beside the packet loop, and exchanged with the present one between two
//! batches. Also finds single entries by their key.

use super::table_set::{TableFamily, TablePlace, TableSet};
use crate::backend::{BuiltTable, TableDraft};
use crate::errors::EntryError;
use ir::{Entry, Match};

/// A set that has one table, with these entries.
fn build<F: TableFamily>(
    declared: &ir::Table,
    seed: u64,
    entries: Vec<Entry>,
) -> Result<TableSet<F>, EntryError> {
    let suits = |entry: &Entry| {
        declared.kind.takes(&declared.keys, &entry.key) && entry.value.len() == declared.values.len()
    };
    if !entries.iter().all(suits) {
        return Err(EntryError::Key);
    }
    if entries.len() > declared.capacity as usize {
        return Err(EntryError::Full { capacity: declared.capacity as usize });
    }
    let program =
        ir::Program { tables: vec![ir::Table { entries, ..declared.clone() }], ..ir::Program::default() };
    TableSet::<F>::new(&program, seed).map_err(|cause| EntryError::Refused(cause.to_string()))
}

impl<F: TableFamily> TableSet<F> {
    /// What is needed to build a table anew on any thread.
    pub fn draft(&self, table: u32) -> TableDraft {
        let declared = self.declared[table as usize].clone();
        let seed = self.seed_of(table);
        TableDraft(Box::new(move |entries| Ok(BuiltTable(Box::new(build::<F>(&declared, seed, entries)?)))))
    }
}

impl<F: TableFamily> TableSet<F> {
    /// Replaces all entries by these. On an error nothing has changed.
    pub fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        let mut built = build::<F>(&self.declared[table as usize], self.seed_of(table), entries)?;
        let left = self.left_to_expire(table as usize);
        self.exchange_built(table, &mut built);
        self.count_expired(table, left);
        Ok(())
    }

    /// Exchanges a table with the one that was built for it, in the time of one operation. Entries that have
    /// ended and that nobody has removed go without being counted as expired. Returns whether that was done:
    /// only a table with the same declaration is taken.
    pub fn exchange_built(&mut self, table: u32, built: &mut TableSet<F>) -> bool {
        let index = table as usize;
        if built.declared.first() != self.declared.get(index) {
            return false;
        }
        let expired = self.expired_others(index);
        match (self.places[index], built.places.first()) {
            (TablePlace::Exact(place), Some(TablePlace::Exact(0))) => {
                std::mem::swap(&mut self.exact[place], &mut built.exact[0]);
            }
            (TablePlace::Prefixes(place), Some(TablePlace::Prefixes(0))) => {
                std::mem::swap(&mut self.prefixes[place], &mut built.prefixes[0]);
            }
            (TablePlace::Rules(place), Some(TablePlace::Rules(0))) => {
                std::mem::swap(&mut self.rules[place], &mut built.rules[0]);
            }
            (TablePlace::Patterns(place), Some(TablePlace::Patterns(0))) => {
                std::mem::swap(&mut self.patterns[place], &mut built.patterns[0]);
            }
            _ => return false,
        }
        self.exchange_deadlines(table, built, 0);
        self.note_replaced(table);
        self.count_expired(table, expired);
        true
    }

    /// The entry with exactly this key and priority; `None` if there is none, or it has expired.
    pub fn entry(&self, table: u32, key: &[Match], priority: u32) -> Option<Entry> {
        match self.places[table as usize] {
            TablePlace::Exact(_) => {
                let value = self.exact_value(table, key)?;
                Some(Entry { key: key.to_vec(), value, priority: 0 })
            }
            TablePlace::Prefixes(place) => self.prefixes[place].entry_of(key),
            TablePlace::Rules(place) => self.rules[place].entry_of(key, priority),
            TablePlace::Patterns(place) => self.patterns[place].entry_of(key),
        }
    }
}
