//! Changes of single entries: made a few between two batches, at all workers or at none.
//!
//! ```text
//! slice ──► every worker makes its changes, as far as the time allows ──► all have made all of them
//!               ▲                                                        │ one worker refused what another took
//!               └──────── the changes behind it, once more ◄── undone from there on, last one first
//! ```
//!
//! A slice is bounded by number and by time, however many clients send however many. A worker that already
//! holds the key waits until no other worker can refuse the change or one before it, and makes it last. If
//! its entry ends or goes just then and it refuses after all, the others put back what they had.
//!
//! With several workers, only one client is in a slice, from its first question to the end of what is undone,
//! and no program takes over meanwhile.

use super::limits::{CHANGES, CHANGING};
use super::schema::{ended, refusal_of};
use client::{RefusalCode, RefusalPlace, RequestRefusal};
use engine::live::{Generation, Remote};
use exec::EntryError;
use ir::Entry;
use ports::live::clock::{Clock, MachineClock};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What becomes of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Insert,
    Learn {
        /// After so many nanoseconds the entry ends at the latest.
        lifetime: Option<u64>,
    },
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
#[derive(Clone, Debug, PartialEq, Eq)]
struct Made {
    /// How many entries it changed.
    count: u32,
    /// The entry that was there before, where it may have to be put back.
    before: Option<Before>,
}

/// An entry before it was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Before {
    entry: Entry,
    /// When it ends by the age of its table, ns; `None` if it stays until it is removed.
    ends: Option<u64>,
}

/// How far one worker has come in a slice.
#[derive(Clone, Default)]
struct Progress {
    /// What became of each change that it made.
    results: Vec<Result<Made, EntryError>>,
    /// Whether it has an entry for the key of the next change. Then it waits until no other worker can refuse
    /// the change.
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
/// of each. Whoever has `turn` keeps others out of the tables meanwhile.
pub(super) fn make(
    remote: &Remote,
    turn: &Mutex<()>,
    number: u64,
    changes: Vec<Change>,
) -> Vec<Result<u32, RequestRefusal>> {
    let changes: Arc<[Change]> = changes.into();
    let mut results = Vec::with_capacity(changes.len());
    while results.len() < changes.len() {
        let end = changes.len().min(results.len() + CHANGES);
        // A worker alone makes each change in one step.
        let _turn = (remote.workers() > 1).then(|| turn.lock().unwrap_or_else(PoisonError::into_inner));
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
        let counts = all.iter().map(|progress| progress.results[index].clone().map(|made| made.count));
        let most = counts.reduce(|a, b| Ok(a?.max(b?)));
        results.push(most.unwrap_or(Ok(0)).map_err(|error| refusal_of(&error, RefusalPlace::entry(0))));
    }
    if let Some(over) = over {
        return Err(over);
    }
    let Some(differing) = differing(&all) else { return Ok(()) };
    let failed = all.iter().zip(1..).find_map(|(progress, worker)| {
        let error = progress.results.get(differing)?.as_ref().err()?;
        Some(RequestRefusal {
            message: format!("worker {worker}: {error}"),
            ..refusal_of(error, RefusalPlace::entry(0))
        })
    });
    let undone = all.into_iter().map(|progress| progress.results.into_iter().skip(differing).collect());
    let (changes, first) = (changes.clone(), begin + differing);
    let parts = remote.ask_each(undone.collect(), move |generation, made: Vec<Result<Made, EntryError>>| {
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
        let backend = &mut generation.backend;
        let before = keeps.then(|| backend.entry(*table, &entry.key, entry.priority)).flatten();
        let ends = before.as_ref().and_then(|held| backend.age_of(*table, &held.key, held.priority));
        let before = before.map(|entry| Before { entry, ends });
        if before.is_some() && !(sure && index == 0) {
            progress.waits = true;
            break;
        }
        progress.results.push(one(generation, change).map(|count| Made { count, before }));
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
        Action::Learn { lifetime: None } => backend.learn(*table, entry, MachineClock.program()).map(|()| 1),
        Action::Learn { lifetime: Some(lifetime) } => {
            backend.learn_for(*table, entry, MachineClock.program(), *lifetime).map(|()| 1)
        }
        Action::Remove => Ok(backend.remove(*table, &entry.key, entry.priority).into()),
    }
}

/// Undoes changes at one worker, the last one first. What had the same key before gets its value back, and
/// ends by its age when it would have ended; its idle time begins anew. Removing is never refused, nor
/// undone.
fn undo(generation: &mut Generation, changes: &[Change], made: Vec<Result<Made, EntryError>>) {
    for (Change { table, action, entry }, result) in changes.iter().zip(made).rev() {
        let Ok(Made { before, .. }) = result else { continue };
        match (action, before) {
            (Action::Remove, _) => {}
            (_, None) => {
                generation.backend.remove(*table, &entry.key, entry.priority);
            }
            // It is there with another value, so it has room.
            (_, Some(Before { entry, ends: Some(ends) })) => {
                let _ = generation.backend.put_back(*table, &entry, MachineClock.program(), ends);
            }
            (_, Some(Before { entry, ends: None })) => {
                let _ = generation.backend.insert(*table, &entry);
            }
        }
    }
}

pub(super) fn changed() -> RequestRefusal {
    let message = "another program has taken over: ask for the schema again, and then for this";
    RequestRefusal::new(RefusalCode::Changed, RefusalPlace::NONE, message)
}

#[cfg(test)]
mod tests {
    use super::super::tests::generation;
    use super::*;
    use ir::Match;

    fn change(table: u32, action: Action, key: Match, value: u128) -> Change {
        Change { table, action, entry: Entry { key: vec![key], value: vec![value], priority: 0 } }
    }

    /// What was learned from outside, and then overwritten by a change that was undone, ends when it would
    /// have ended; what stays stays.
    #[test]
    fn an_entry_that_is_put_back_keeps_its_time() {
        let (mut generation, mut outputs) = (generation(), exec::Outputs::default());
        let now = MachineClock.program();
        let of = |table: u32, action: Action, number: u128, value: u128| {
            let key = match table {
                0 => vec![Match::Exact(number)],
                1 => vec![Match::Prefix { value: number << 24, length: 8 }],
                _ => vec![Match::Exact(number), Match::Any],
            };
            Change { table, action, entry: Entry { key, value: vec![value], priority: 0 } }
        };
        let lasting = change(0, Action::Insert, Match::Exact(9), 1);
        assert_eq!(one(&mut generation, &lasting), Ok(1));
        let mut changes = Vec::new();
        for table in 0..3 {
            for (number, over) in [(1, Action::Insert), (2, Action::Learn { lifetime: None })] {
                let lifetime = Some(60_000_000_000);
                let learned = of(table, Action::Learn { lifetime }, number, 1);
                assert_eq!(one(&mut generation, &learned), Ok(1), "{table}");
                changes.push(of(table, over, number, 2));
            }
        }
        changes.push(change(0, Action::Learn { lifetime: None }, Match::Exact(9), 2));
        for change in changes {
            let changes = std::slice::from_ref(&change);
            let made = part(&mut generation, changes, true, true);
            assert_eq!(made.results.len(), 1);
            undo(&mut generation, changes, made.results);
        }
        let mut held = |at: u64| -> Vec<usize> {
            generation.backend.advance(at, &mut outputs);
            (0..3).map(|table| generation.backend.entries(table).len()).collect()
        };
        assert_eq!(held(now + 59_000_000_000), [3, 2, 2]);
        assert_eq!(held(now + 119_000_000_000), [1, 0, 0], "a minute after it was learned, and not later");
        let stays = generation.backend.entry(0, &[Match::Exact(9)], 0).map(|held| held.value);
        assert_eq!(stays, Some(vec![1]));
    }

    /// A worker overwrites an entry when all others are sure to make the change. If one of them refuses it
    /// after all, the entry is as it was.
    #[test]
    fn an_entry_that_was_overwritten_is_put_back() {
        let prefix = Match::Prefix { value: 0x0a00_0000, length: 8 };
        for (table, key) in [(0, Match::Exact(7)), (1, prefix)] {
            for action in [Action::Insert, Action::Learn { lifetime: None }] {
                let mut generation = generation();
                assert_eq!(one(&mut generation, &change(table, action, key.clone(), 1)), Ok(1));
                let other = change(table, action, Match::Exact(8), 3);
                let changes = [change(table, action, key.clone(), 2), other.clone()];
                let value = |generation: &mut Generation, key: &Match| {
                    let held = generation.backend.entry(table, std::slice::from_ref(key), 0);
                    held.map(|held| held.value)
                };
                let waiting = part(&mut generation, &changes, false, true);
                assert!(waiting.waits && waiting.results.is_empty());
                let made = part(&mut generation, &changes, true, true);
                assert_eq!(value(&mut generation, &key), Some(vec![2]), "{action:?} in table {table}");
                undo(&mut generation, &changes, made.results);
                assert_eq!(value(&mut generation, &key), Some(vec![1]), "{action:?} in table {table}");
                assert_eq!(value(&mut generation, &Match::Exact(8)), None, "{action:?} in table {table}");
            }
        }
    }
}
