//! Changes of single entries: made a few between two batches, at all workers or at none.
//!
//! ```text
//! slice ──► every worker makes its changes, as far as the time allows ──► all have made all of them
//!               ▲                                                        │ one worker refused what another took
//!               └──────── the changes behind it, once more ◄── undone from there on, last one first
//! ```
//!
//! A slice is bounded by number and by time, however many clients send however many. A worker that has an
//! entry for a key can always change or remove it, so it waits with that until no other worker can refuse the
//! change or one before it. What is undone is thus never more than entries that were not there before.

use super::schema::ended;
use crate::limits::{CHANGES, CHANGING};
use client::{RefusalCode, RefusalPlace, RequestRefusal};
use engine::live::{Generation, Remote};
use exec::EntryError;
use lang::ir::Entry;
use ports::live::clock::{Clock, MachineClock};
use std::sync::Arc;
use std::time::Instant;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Insert,
    Learn,
    Remove,
}

/// A change of one entry, which suits its table.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) table: u32,
    pub(super) action: Action,
    pub(super) entry: Entry,
}

/// How far one worker has come in a slice.
#[derive(Clone, Default)]
struct Progress {
    /// What became of each change that it made.
    results: Vec<Result<u32, EntryError>>,
    /// Whether it has an entry for the key of the next change. Then it cannot refuse it, and waits until no
    /// other worker can.
    waits: bool,
}

impl Progress {
    /// Whether this worker has made, or is sure to make, the change at this place of the slice.
    fn takes(&self, index: usize) -> bool {
        self.results.get(index).map_or(self.waits && self.results.len() == index, Result::is_ok)
    }

    fn refuses(&self, index: usize) -> bool {
        self.results.get(index).is_some_and(Result::is_err)
    }
}

/// Makes changes in their order, while the program with this number of a generation runs. Returns what became
/// of each.
pub(super) fn make(remote: &Remote, number: u64, changes: Vec<Change>) -> Vec<Result<u32, RequestRefusal>> {
    let changes: Arc<[Change]> = changes.into();
    let mut results = Vec::with_capacity(changes.len());
    while results.len() < changes.len() {
        let end = changes.len().min(results.len() + CHANGES);
        if let Err(fault) = slice(remote, number, &changes, end, &mut results) {
            results.resize(changes.len(), Err(fault));
        }
    }
    results
}

/// Makes the changes behind those that have results, up to `end` or to the first one that only some workers
/// take, which is undone.
fn slice(
    remote: &Remote,
    number: u64,
    changes: &Arc<[Change]>,
    end: usize,
    results: &mut Vec<Result<u32, RequestRefusal>>,
) -> Result<(), RequestRefusal> {
    let (begin, workers) = (results.len(), remote.workers());
    let (mut all, mut over) = (vec![Progress::default(); workers], None);
    // The first change that one worker takes and another refuses.
    let differing = |all: &[Progress]| {
        (0..end - begin).find(|&index| {
            all.iter().any(|progress| progress.takes(index))
                && all.iter().any(|progress| progress.refuses(index))
        })
    };
    while over.is_none() {
        let goal = differing(&all).unwrap_or(end - begin);
        if all.iter().all(|progress| progress.results.len() >= goal) {
            break;
        }
        let next = |progress: &Progress| {
            let index = progress.results.len().min(goal);
            (begin + index, workers == 1 || all.iter().all(|other| other.takes(index)))
        };
        let (changes, next) = (changes.clone(), all.iter().map(next).collect());
        let parts = remote.ask_each(next, move |generation, (from, sure): (usize, bool)| {
            let changes = &changes[from..begin + goal];
            (generation.number == number).then(|| part(generation, changes, sure, workers > 1))
        });
        let Some(parts) = parts else { return Err(ended()) };
        for (progress, part) in all.iter_mut().zip(parts) {
            match part {
                Some(part) if progress.results.len() < goal => {
                    progress.waits = part.waits;
                    progress.results.extend(part.results);
                }
                Some(_) => {}
                None => over = Some(changed()),
            }
        }
    }
    let whole = all.iter().map(|progress| progress.results.len()).min().unwrap_or(0);
    let agreed = differing(&all).unwrap_or(whole).min(whole);
    for index in 0..agreed {
        // Workers may have removed different numbers of entries: each has learned its own.
        let most = all.iter().map(|progress| progress.results[index].clone()).reduce(|a, b| Ok(a?.max(b?)));
        results.push(most.unwrap_or(Ok(0)).map_err(|error| refused(&error)));
    }
    if let Some(over) = over {
        return Err(over);
    }
    let Some(differing) = differing(&all) else { return Ok(()) };
    let failed = all.iter().zip(1..).find_map(|(progress, worker)| {
        let error = progress.results.get(differing)?.as_ref().err()?;
        Some(RequestRefusal { message: format!("worker {worker}: {error}"), ..refused(error) })
    });
    let undone = all.into_iter().map(|progress| progress.results.into_iter().skip(differing).collect());
    let (changes, first) = (changes.clone(), begin + differing);
    let parts = remote.ask_each(undone.collect(), move |generation, made: Vec<Result<u32, EntryError>>| {
        if generation.number == number {
            undo(generation, &changes[first..], made);
        }
    });
    parts.ok_or_else(ended)?;
    results.push(Err(failed.unwrap_or_else(changed)));
    Ok(())
}

/// Makes the first of these changes at one worker, as many as the time allows. With `keeps`, it stops before
/// a change of an entry that is there, unless the change is the first one and `sure`.
fn part(generation: &mut Generation, changes: &[Change], sure: bool, keeps: bool) -> Progress {
    let begun = Instant::now();
    let mut progress = Progress::default();
    for (index, change) in changes.iter().enumerate() {
        let Change { table, entry, .. } = change;
        let is_sure = !keeps || sure && index == 0;
        if !is_sure && generation.backend.entry(*table, &entry.key, entry.priority).is_some() {
            progress.waits = true;
            break;
        }
        progress.results.push(one(generation, change));
        if begun.elapsed() >= CHANGING {
            break;
        }
    }
    progress
}

fn one(generation: &mut Generation, Change { table, action, entry }: &Change) -> Result<u32, EntryError> {
    let backend = &mut *generation.backend;
    match action {
        Action::Insert => backend.insert(*table, entry).map(|()| 1),
        Action::Learn => backend.learn(*table, entry, MachineClock.program()).map(|()| 1),
        Action::Remove => Ok(backend.remove(*table, &entry.key, entry.priority).into()),
    }
}

/// Undoes changes at one worker, the last one first: all of them made entries that were not there before.
fn undo(generation: &mut Generation, changes: &[Change], made: Vec<Result<u32, EntryError>>) {
    for (Change { table, action, entry }, result) in changes.iter().zip(made).rev() {
        if result.is_ok() && *action != Action::Remove {
            generation.backend.remove(*table, &entry.key, entry.priority);
        }
    }
}

pub(super) fn changed() -> RequestRefusal {
    let message = "another program has taken over: ask for the schema again, and then for this";
    RequestRefusal::new(RefusalCode::Changed, RefusalPlace::NONE, message)
}

fn refused(error: &EntryError) -> RequestRefusal {
    let code = match error {
        EntryError::Key | EntryError::NoDefault => RefusalCode::Misfit,
        EntryError::Full { .. } => RefusalCode::Full,
        EntryError::Fixed => RefusalCode::Closed,
        EntryError::Refused(_) => RefusalCode::Refused,
    };
    RequestRefusal::new(code, RefusalPlace::entry(0), error.to_string())
}
