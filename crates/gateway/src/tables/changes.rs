//! Changes of single entries: made a few between two batches, at all workers or at none.
//!
//! ```text
//! slice ──► every worker makes its changes, as far as the time allows ──► all have made all of them
//!               ▲                                                        │ one worker refused what another took
//!               └──────── the changes behind it, once more ◄── undone from there on, last one first
//! ```
//!
//! A slice is bounded by number and by time, so a batch never waits longer for changes, however many clients
//! send however many.

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

/// What a change did at one worker.
struct Made {
    result: Result<u32, EntryError>,
    /// The entry that was there before, if it may be needed again.
    before: Option<Entry>,
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
    let mut made: Vec<Vec<Made>> = (0..workers).map(|_| Vec::new()).collect();
    let mut over = None;
    while over.is_none() && made.iter().any(|made| made.len() < end - begin) {
        let (changes, from) = (changes.clone(), made.iter().map(|made| begin + made.len()).collect());
        let parts = remote.ask_each(from, move |generation, from: usize| {
            (generation.number == number).then(|| part(generation, &changes[from..end], workers > 1))
        });
        let Some(parts) = parts else { return Err(ended()) };
        for (made, part) in made.iter_mut().zip(parts) {
            match part {
                Some(part) => made.extend(part),
                None => over = Some(changed()),
            }
        }
    }
    let whole = made.iter().map(Vec::len).min().unwrap_or(0);
    let takes = |made: &[Made], index: usize| made[index].result.is_ok();
    let differs = |index: &usize| made.iter().any(|other| takes(other, *index) != takes(&made[0], *index));
    let agreed = (0..whole).find(differs).unwrap_or(whole);
    for index in 0..agreed {
        // Workers may have removed different numbers of entries: each has learned its own.
        let most = made.iter().map(|made| made[index].result.clone()).reduce(|a, b| Ok(a?.max(b?)));
        results.push(most.unwrap_or(Ok(0)).map_err(|error| refused(&error)));
    }
    if let Some(over) = over {
        return Err(over);
    }
    if agreed == whole {
        return Ok(());
    }
    let failed = made.iter().zip(1..).find_map(|(made, worker)| {
        let error = made[agreed].result.as_ref().err()?;
        Some(RequestRefusal { message: format!("worker {worker}: {error}"), ..refused(error) })
    });
    let undone = made.into_iter().map(|made| made.into_iter().skip(agreed).collect()).collect();
    let (changes, first) = (changes.clone(), begin + agreed);
    let parts = remote.ask_each(undone, move |generation, made: Vec<Made>| {
        if generation.number == number {
            undo(generation, &changes[first..], made);
        }
    });
    parts.ok_or_else(ended)?;
    results.push(Err(failed.unwrap_or_else(changed)));
    Ok(())
}

/// Makes the first of these changes at one worker, as many as the time allows and at least one.
fn part(generation: &mut Generation, changes: &[Change], keeps: bool) -> Vec<Made> {
    let begun = Instant::now();
    let mut made = Vec::with_capacity(changes.len());
    for change in changes {
        made.push(one(generation, change, keeps));
        if begun.elapsed() >= CHANGING {
            break;
        }
    }
    made
}

fn one(generation: &mut Generation, Change { table, action, entry }: &Change, keeps: bool) -> Made {
    let backend = &mut *generation.backend;
    let before = if keeps { backend.entry(*table, &entry.key, entry.priority) } else { None };
    let result = match action {
        Action::Insert => backend.insert(*table, entry).map(|()| 1),
        Action::Learn => backend.learn(*table, entry, MachineClock.program()).map(|()| 1),
        Action::Remove => Ok(backend.remove(*table, &entry.key, entry.priority).into()),
    };
    Made { result, before }
}

/// Undoes changes at one worker, the last one first. An entry that packets had made begins its time anew.
fn undo(generation: &mut Generation, changes: &[Change], made: Vec<Made>) {
    let backend = &mut *generation.backend;
    for (Change { table, action, entry }, Made { result, before }) in changes.iter().zip(made).rev() {
        if result.is_err() {
            continue;
        }
        // An entry that was there finds its room again.
        let _ = match (before, action) {
            (Some(before), Action::Learn) => backend.learn(*table, &before, MachineClock.program()),
            (Some(before), _) => backend.insert(*table, &before),
            (None, _) => {
                backend.remove(*table, &entry.key, entry.priority);
                Ok(())
            }
        };
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
