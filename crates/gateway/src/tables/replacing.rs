//! Replaces all entries of a table at once: the entries are collected, tables with them are built beside the
//! packet loop, one for each worker, and each worker exchanges its own in one step between two batches.

use super::changes::changed;
use super::limits::REPLACEMENT;
use super::schema::{Known, ended, refusal_of};
use client::entry::{self, BodyReader};
use client::{RefusalCode, RefusalPlace, RequestRefusal};
use engine::live::Remote;
use exec::BuiltTable;
use ir::Entry;
use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The entries that a client has sent so far.
pub(super) struct Replacement {
    table: u16,
    entries: Vec<Entry>,
    bytes: usize,
    _turn: Turn,
}

/// The turn to replace a table, which one client has at a time.
struct Turn(Arc<AtomicBool>);

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Replacement {
    /// Begins, unless another client is replacing a table.
    pub(super) fn begin(
        taken: &Arc<AtomicBool>,
        known: &Known,
        table: u16,
    ) -> Result<Replacement, RequestRefusal> {
        let (schema, _) = known.table(table)?;
        if let Some(why) = &schema.refuses.replace {
            return Err(RequestRefusal::new(RefusalCode::Closed, RefusalPlace::NONE, why));
        }
        if taken.swap(true, Ordering::Acquire) {
            let message = "another client is replacing a table: ask again later";
            return Err(RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message));
        }
        Ok(Replacement { table, entries: Vec::new(), bytes: 0, _turn: Turn(taken.clone()) })
    }

    /// Takes more entries, or none of them.
    pub(super) fn more(&mut self, known: &Known, count: u32, bytes: &[u8]) -> Result<u32, RequestRefusal> {
        let (schema, declared) = known.table(self.table)?;
        let had = self.entries.len();
        let taken = self.bytes + bytes.len();
        if taken > REPLACEMENT {
            let message =
                format!("the entries of a replacement have at most {REPLACEMENT} bytes in requests");
            return Err(RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message));
        }
        if had + count as usize > declared.capacity as usize {
            let message = format!("`{}` has room for {} entries", schema.name, declared.capacity);
            return Err(RequestRefusal::new(RefusalCode::Full, RefusalPlace::NONE, message));
        }
        let mut rest = BodyReader(bytes);
        let read = (0..count).try_for_each(|place| {
            let read = entry::entry(&mut rest, schema, place)?;
            self.entries.push(known.entry(self.table, read, place)?);
            Ok(())
        });
        if let Err(fault) = read.and_then(|()| rest.end()) {
            self.entries.truncate(had);
            return Err(fault);
        }
        self.bytes = taken;
        Ok(count)
    }

    /// Puts these entries in the place of those of the table; returns how many there are.
    /// Whoever has `turn` keeps others out of the tables.
    pub(super) fn commit(
        self,
        remote: &Remote,
        turn: &Mutex<()>,
        known: &Known,
    ) -> Result<u32, RequestRefusal> {
        let Replacement { table, mut entries, .. } = self;
        let (schema, _) = known.table(table)?;
        let count = entries.len() as u32;
        if schema.kind != "rules" {
            let mut keys = HashSet::with_capacity(entries.len());
            if let Some(place) = entries.iter().position(|entry| !keys.insert(&entry.key)) {
                let message = "the entry has the key of an earlier one";
                return Err(RequestRefusal::new(
                    RefusalCode::Misfit,
                    RefusalPlace::entry(place as u32),
                    message,
                ));
            }
        }
        let number = known.schema.generation;
        let drafts = remote.ask(move |generation, _| {
            (generation.number == number).then(|| generation.backend.table_draft(table.into()))
        });
        let (drafts, mut built) = (drafts.ok_or_else(ended)?, Vec::new());
        for (left, draft) in (0..drafts.len()).rev().zip(drafts) {
            let draft = draft.ok_or_else(changed)?.ok_or_else(closed)?;
            let of_worker = if left > 0 { entries.clone() } else { std::mem::take(&mut entries) };
            built.push(draft.build(of_worker).map_err(|error| refusal_of(&error, RefusalPlace::NONE))?);
        }
        let turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = remote.ask_each(built, move |generation, mut built: BuiltTable| {
            let same = generation.number == number;
            // What the worker had is dropped on the client's thread, since that may take long.
            (same && generation.backend.take_built(table.into(), &mut built), same, built)
        });
        drop(turn);
        for (taken, same, _) in taken.ok_or_else(ended)? {
            if !taken {
                return Err(if same { closed() } else { changed() });
            }
        }
        Ok(count)
    }
}

fn closed() -> RequestRefusal {
    RequestRefusal::new(
        RefusalCode::Closed,
        RefusalPlace::NONE,
        "this back end takes no entries from outside",
    )
}
