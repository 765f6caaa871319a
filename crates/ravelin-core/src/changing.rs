//! Changes entries of the program that runs as `control` wants it, at all workers or at none: first all that
//! are put, then all that are withdrawn, each in one step between two batches of a worker.

use crate::activation::{Activation, Running};
use crate::granted::{Admitted, ChangeRefusal};
use engine::live::Generation;
use exec::EntryError;
use ir::Entry;
use messages::control::EntryChange;
use ports::live::clock::{Clock, MachineClock};
use std::sync::Arc;
use std::time::Instant;

/// Why entries do not change.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    /// another program
    #[error("another program has taken over: ask for its tables again")]
    Changed,
    /// not within the rights
    #[error("{0}")]
    Refused(#[from] ChangeRefusal),
    /// no room
    #[error("{0}")]
    Entry(#[from] EntryError),
    /// a worker has ended
    #[error("a worker of the core has ended")]
    Ended,
}

/// An entry that was put, as it was before: with when it ends by its age, if it does.
pub(crate) type Before = Option<(Entry, Option<u64>)>;

impl Activation {
    /// Makes these changes for the program with this number, and returns how many entries were withdrawn. No
    /// other program takes over meanwhile.
    ///
    /// # Errors
    /// They may not or cannot be made; then none is.
    pub(crate) fn change(&self, number: u64, changes: &[EntryChange]) -> Result<u32, ChangeError> {
        let mut running = self.hold();
        let Running { active, granted, .. } = &mut *running;
        if active.number != number {
            return Err(ChangeError::Changed);
        }
        let admitted: Arc<[Admitted]> = granted.admit(changes, Instant::now())?.into();
        let put = admitted.clone();
        let made = self.remote().ask(move |generation, _| put_all(generation, &put));
        let made = made.ok_or(ChangeError::Ended)?;
        if made.iter().any(Result::is_err) {
            let undone = admitted.clone();
            let (made, mut failed): (Vec<_>, Vec<_>) = made
                .into_iter()
                .map(|made| made.map_or_else(|error| (Vec::new(), Some(error)), |made| (made, None)))
                .unzip();
            self.remote()
                .ask_each(made, move |generation, made| undo(generation, &undone, made))
                .ok_or(ChangeError::Ended)?;
            let error = failed.iter_mut().find_map(Option::take);
            return Err(error.map_or(ChangeError::Ended, ChangeError::Entry));
        }
        let withdrawn = admitted.clone();
        let counts = self.remote().ask(move |generation, _| withdraw(generation, &withdrawn));
        granted.made(&admitted);
        // Each worker has learned its own.
        counts.and_then(|counts| counts.into_iter().max()).ok_or(ChangeError::Ended)
    }
}

/// Puts entries, and returns what was there before; or undoes what it has put.
pub(crate) fn put_all(generation: &mut Generation, changes: &[Admitted]) -> Result<Vec<Before>, EntryError> {
    let mut made = Vec::new();
    for Admitted { table, entry, .. } in puts(changes) {
        let backend = &mut generation.backend;
        let before = backend.entry(*table, &entry.key, entry.priority);
        let before = before.map(|entry| {
            let ends = backend.age_of(*table, &entry.key, entry.priority);
            (entry, ends)
        });
        if let Err(error) = backend.insert(*table, entry) {
            undo(generation, changes, made);
            return Err(error);
        }
        made.push(before);
    }
    Ok(made)
}

/// Undoes the first of these changes, the last one of them first. What had the same key before gets its value
/// back, and ends by its age when it would have ended.
pub(crate) fn undo(generation: &mut Generation, changes: &[Admitted], made: Vec<Before>) {
    let changes: Vec<_> = puts(changes).zip(made).collect();
    for (Admitted { table, entry, .. }, before) in changes.into_iter().rev() {
        match before {
            None => drop(generation.backend.remove(*table, &entry.key, entry.priority)),
            // It is there with another value, so that it has room.
            Some((entry, Some(ends))) => {
                let _ = generation.backend.put_back(*table, &entry, MachineClock.program(), ends);
            }
            Some((entry, None)) => drop(generation.backend.insert(*table, &entry)),
        }
    }
}

/// Removes entries; returns how many were there.
fn withdraw(generation: &mut Generation, changes: &[Admitted]) -> u32 {
    let mut remove = |Admitted { table, entry, .. }: &Admitted| {
        u32::from(generation.backend.remove(*table, &entry.key, entry.priority))
    };
    changes.iter().filter(|change| !change.puts).map(&mut remove).sum()
}

fn puts(changes: &[Admitted]) -> impl Iterator<Item = &Admitted> {
    changes.iter().filter(|change| change.puts)
}
