//! Entries of the program that runs, as `control` is told them: a worker copies a few of them between two
//! batches.

use crate::activation::Activation;
use crate::granted::parts;
use bundle::KeyPrefix;
use exec::EntryPlace;
use ir::{Entry, Match, Table, TableKind};
use messages::control::{EntryPage, ShownEntry, ShownMatch};
use messages::limits::ENTRIES_AT_ONCE;

/// Why no entries are told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListError {
    /// another program
    #[error("another program has taken over: ask for its tables again")]
    Changed,
    /// no such table or worker
    #[error("the program that runs has no such table, or there is no such worker")]
    Nowhere,
    /// nobody may know
    #[error("`{0}` is `secret` in the program: its entries are told to nobody")]
    Secret(String),
    /// bytes
    #[error("a confined core does not tell the patterns of `{0}`: they stand in its policy")]
    Patterns(String),
    /// no key
    #[error("that is no key of the table `{0}`")]
    Key(String),
}

/// Which entries are asked for.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    /// The number of the program.
    pub(crate) number: u64,
    pub(crate) table: u32,
    /// From 0.
    pub(crate) worker: u16,
}

impl Activation {
    /// A few entries from a place on; with `own`, those alone that no worker before has.
    ///
    /// # Errors
    /// They are not told.
    pub(crate) fn entries(&self, asked: Asked, own: bool, place: (u128, u8)) -> Result<EntryPage, ListError> {
        self.declared(asked, |_| Ok(()))?;
        let Asked { number, table, worker } = asked;
        let part = self.remote().ask_at(worker.into(), move |generation| {
            let place = EntryPlace::of_numbers(place);
            let part = || generation.backend.entries_part(table, place, ENTRIES_AT_ONCE);
            (generation.number == number).then(part)
        });
        let (mut entries, next) = part.ok_or(ListError::Nowhere)?.ok_or(ListError::Changed)?;
        for before in 0..if own { worker } else { 0 } {
            let held = self.remote().ask_at(before.into(), move |generation| {
                let has = |entry: &Entry| {
                    let held = generation.backend.entry(table, &entry.key, entry.priority);
                    held.is_some_and(|held| held.value == entry.value)
                };
                (generation.number == number).then(|| {
                    entries.retain(|entry| !has(entry));
                    entries
                })
            });
            entries = held.ok_or(ListError::Nowhere)?.ok_or(ListError::Changed)?;
        }
        let entries = entries.into_iter().filter_map(shown).collect();
        Ok(EntryPage { entries, next: next.map(EntryPlace::numbers) })
    }

    /// The entry with this key, if there is one.
    ///
    /// # Errors
    /// It is not told.
    pub(crate) fn entry(&self, asked: Asked, length: u8, bits: u128) -> Result<EntryPage, ListError> {
        let Asked { number, table, worker } = asked;
        let key = self.declared(asked, |table| {
            let width = u8::try_from(table.key_bits()).unwrap_or(0);
            let key = KeyPrefix::new(width, length, bits).and_then(|key| parts(table, key));
            key.ok_or_else(|| ListError::Key(table.name.clone()))
        })?;
        let entry = self.remote().ask_at(worker.into(), move |generation| {
            (generation.number == number).then(|| generation.backend.entry(table, &key, 0))
        });
        let entry = entry.ok_or(ListError::Nowhere)?.ok_or(ListError::Changed)?;
        Ok(EntryPage { entries: entry.and_then(shown).into_iter().collect(), next: None })
    }

    /// What is made of a table whose entries may be told.
    fn declared<T>(
        &self,
        asked: Asked,
        make: impl FnOnce(&Table) -> Result<T, ListError>,
    ) -> Result<T, ListError> {
        let running = self.hold();
        if running.active.number != asked.number {
            return Err(ListError::Changed);
        }
        let table = running.granted.program().tables.get(asked.table as usize).ok_or(ListError::Nowhere)?;
        match table.kind {
            _ if table.secret => Err(ListError::Secret(table.name.clone())),
            TableKind::Patterns(_) => Err(ListError::Patterns(table.name.clone())),
            _ => make(table),
        }
    }
}

/// An entry that is no pattern.
fn shown(Entry { key, value, priority }: Entry) -> Option<ShownEntry> {
    let part = |part| match part {
        Match::Any => Some(ShownMatch::Any),
        Match::Exact(number) => Some(ShownMatch::Exact(number)),
        Match::Prefix { value, length } => Some(ShownMatch::Prefix(value, length)),
        Match::Masked { value, mask } => Some(ShownMatch::Masked(value, mask)),
        Match::Range { low, high } => Some(ShownMatch::Range(low, high)),
        Match::Bytes(_) => None,
    };
    Some(ShownEntry { key: key.into_iter().map(part).collect::<Option<_>>()?, value, priority })
}
