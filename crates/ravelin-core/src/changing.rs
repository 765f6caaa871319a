//! Changes entries of the program that runs as `control` wants it, at all workers or at none: first all that
//! are inserted, then all that are removed, in steps between two batches of a worker, so that packets do not
//! wait for all of them.

use crate::activation::{Activation, Running};
use crate::granted::{Admitted, ChangeRefusal};
use engine::live::Generation;
use exec::EntryError;
use ir::Entry;
use messages::control::EntryChange;
use messages::limits::CHANGING;
use ports::live::clock::{Clock, MachineClock};
use std::cell::RefCell;
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

/// An entry that was inserted, as it was before: with when it ends by its age, if it does.
pub(crate) type Before = Option<(Entry, Option<u64>)>;

impl Activation {
    /// Makes these changes for the program with this number, and returns how many entries were removed. No
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
        if changes.is_empty() {
            return Ok(0);
        }
        let admitted: Arc<[Admitted]> = granted.admit(changes, Instant::now())?.into();
        let inserted = admitted.clone();
        let made = self.remote().ask_in_steps(Vec::new, move |generation, made| {
            in_turn(|| {
                let next = inserts(&inserted).nth(made.len())?;
                Some(insert_one(generation, next).map(|before| made.push(before)))
            })
            .map(|failed| (std::mem::take(made), failed))
        });
        let (made, failed): (Vec<_>, Vec<_>) = made.ok_or(ChangeError::Ended)?.into_iter().unzip();
        if let Some(error) = failed.into_iter().flatten().next() {
            let (undone, made) = (admitted.clone(), RefCell::new(made.into_iter()));
            let begin = || made.borrow_mut().next().unwrap_or_default();
            let undone = self.remote().ask_in_steps(begin, move |generation, made| {
                in_turn::<()>(|| {
                    let before = made.pop()?;
                    undo_one(generation, inserts(&undone).nth(made.len())?, before);
                    Some(Ok(()))
                })
            });
            return Err(undone.map_or(ChangeError::Ended, |_| ChangeError::Entry(error)));
        }
        let removed = admitted.clone();
        let gone = self.remote().ask_in_steps(Removed::default, move |generation, state| {
            in_turn::<()>(|| {
                state.one(generation, removals(&removed).nth(state.looked)?);
                Some(Ok(()))
            })
            .map(|_| std::mem::take(state))
        });
        let gone = gone.ok_or(ChangeError::Ended)?;
        // What stays at one worker counts.
        let stays = |change: &Admitted| gone.iter().any(|gone| gone.stays.contains(change));
        let admitted: Vec<_> = admitted.iter().filter(|change| !stays(change)).cloned().collect();
        granted.made(&admitted);
        // Each worker has learned its own.
        Ok(gone.iter().map(|gone| gone.count).max().unwrap_or_default())
    }
}

/// Makes one step after the other until there is none, or one fails; or until packets have waited as long as
/// they may: then there is no result yet.
fn in_turn<E>(mut step: impl FnMut() -> Option<Result<(), E>>) -> Option<Option<E>> {
    let begun = Instant::now();
    while begun.elapsed() < CHANGING {
        match step() {
            None => return Some(None),
            Some(Err(error)) => return Some(Some(error)),
            Some(Ok(())) => {}
        }
    }
    None
}

/// Inserts entries, and returns what was there before; or undoes what it has inserted.
pub(crate) fn insert_all(
    generation: &mut Generation,
    changes: &[Admitted],
) -> Result<Vec<Before>, EntryError> {
    let mut made = Vec::new();
    for change in inserts(changes) {
        match insert_one(generation, change) {
            Ok(before) => made.push(before),
            Err(error) => {
                undo(generation, changes, made);
                return Err(error);
            }
        }
    }
    Ok(made)
}

/// Inserts an entry, and returns what was there before.
fn insert_one(generation: &mut Generation, change: &Admitted) -> Result<Before, EntryError> {
    let Admitted { table, entry, .. } = change;
    let backend = &mut generation.backend;
    let before = backend.entry(*table, &entry.key, entry.priority);
    let before = before.map(|entry| {
        let ends = backend.age_of(*table, &entry.key, entry.priority);
        (entry, ends)
    });
    backend.insert(*table, entry).map(|()| before)
}

/// Undoes the first of these changes, the last one of them first.
pub(crate) fn undo(generation: &mut Generation, changes: &[Admitted], made: Vec<Before>) {
    let changes: Vec<_> = inserts(changes).zip(made).collect();
    changes.into_iter().rev().for_each(|(change, before)| undo_one(generation, change, before));
}

/// Undoes a change. What had the same key before gets its value back, and ends by its age when it would have
/// ended.
fn undo_one(generation: &mut Generation, Admitted { table, entry, .. }: &Admitted, before: Before) {
    match before {
        None => drop(generation.backend.remove(*table, &entry.key, entry.priority)),
        // It is there with another value, so that it has room.
        Some((entry, Some(ends))) => {
            let _ = generation.backend.put_back(*table, &entry, MachineClock.program(), ends);
        }
        Some((entry, None)) => drop(generation.backend.insert(*table, &entry)),
    }
}

/// What has become of entries that are to go.
#[derive(Default)]
struct Removed {
    /// At how many was looked.
    looked: usize,
    /// How many were there.
    count: u32,
    /// Those that are still there: a table of prefixes may need memory to remove one.
    stays: Vec<Admitted>,
}

impl Removed {
    fn one(&mut self, generation: &mut Generation, change: &Admitted) {
        let Admitted { table, entry, .. } = change;
        self.looked += 1;
        self.count += u32::from(generation.backend.remove(*table, &entry.key, entry.priority));
        if generation.backend.entry(*table, &entry.key, entry.priority).is_some() {
            self.stays.push(change.clone());
        }
    }
}

fn inserts(changes: &[Admitted]) -> impl Iterator<Item = &Admitted> {
    changes.iter().filter(|change| change.inserts)
}

fn removals(changes: &[Admitted]) -> impl Iterator<Item = &Admitted> {
    changes.iter().filter(|change| !change.inserts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activation::{Loading, Prepared, prepare};
    use crate::carried::{done_by_control, take_done};
    use crate::listing::Asked;
    use bundle::{KeyPrefix, TableRight};
    use engine::live::{self, Remote};
    use exec::BackendKind;
    use ir::Match;
    use ir::print::print;
    use lang::pipeline::{CompileOptions, compile};
    use messages::control::{EntryOperation, EntryPage, ShownMatch};
    use messages::limits::ENTRIES_AT_ONCE;
    use messages::takeover::TakeoverAnswer;
    use std::thread;
    use std::time::Duration;

    const PROGRAM: &str = "import std.net.ethernet
reason full \"no room\"
table hosts: exact(u8) -> u8 { capacity 4  age 1h  evict refuse }
table other: exact(u8) -> u8 { capacity 4 }
table many: exact(u8) -> u8 { capacity 200 }
table signed: exact(u8) -> u8 { capacity 4  entries { 5 => 1 } }
start decoder d(eth: ethernet) {
    learn hosts[7] = 1 else { }
    match other[7] { some x => drop full, none => drop full }
}";
    const LOADING: Loading = Loading { back_end: BackendKind::Bytecode, workers: 2, ports: 1, seed: 1 };

    fn insert(key: u128, value: u128) -> EntryChange {
        EntryChange { table: 0, length: 8, bits: key, operation: EntryOperation::Insert(vec![value]) }
    }

    fn remove(key: u128) -> EntryChange {
        EntryChange { table: 0, length: 8, bits: key, operation: EntryOperation::Remove }
    }

    /// What each worker has in `hosts`: keys and values.
    fn held(activation: &Activation) -> Vec<Vec<(u128, u128)>> {
        let all = activation.remote().ask(|generation, _| {
            let number = |entry: &Entry| match entry.key[0] {
                Match::Exact(key) => (key, entry.value[0]),
                _ => (0, 0),
            };
            generation.backend.entries(0).iter().map(|(entry, _)| number(entry)).collect()
        });
        all.expect("they run")
    }

    fn program() -> String {
        let compiled = compile("p.rav", PROGRAM, &|_| None, &CompileOptions::default());
        print(&compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
    }

    /// All keys of a table, any number of times.
    fn right(table: &str, most_entries: u32) -> TableRight {
        let prefixes = vec![KeyPrefix::new(8, 0, 0).expect("a prefix")];
        TableRight { table: table.to_owned(), prefixes, most_entries, changes_per_second: u32::MAX }
    }

    /// Workers that run the program with a right, as the second program of a core.
    fn running(right: TableRight) -> (Activation, Remote, thread::JoinHandle<()>) {
        let clock: Arc<dyn Clock> = Arc::new(MachineClock);
        let (loops, remote) = live::workers(vec![Vec::new(), Vec::new()], &clock).expect("descriptors");
        let prepared = prepare(&program(), &[right], LOADING, 2).expect("it loads");
        let activation = Activation::new(remote.clone(), LOADING);
        let resting = remote.rest();
        let generations =
            crate::activation::generations(crate::boot::program(), LOADING, 1).expect("it loads");
        let runs = remote.clone();
        let workers = thread::spawn(move || drop(live::run(loops, generations, &runs, &[])));
        activation.begin(prepared, resting).expect("they run");
        // The right begins as if a second's changes had been made.
        thread::sleep(Duration::from_millis(10));
        (activation, remote, workers)
    }

    #[test]
    fn entries_are_told_a_page_at_a_time_and_each_of_them_once() {
        let (activation, remote, workers) = running(right("many", 200));
        let of_many = |change| EntryChange { table: 2, ..change };
        for first in [0, 60, 120] {
            let changes: Vec<_> = (first..first + 60).map(|key| of_many(insert(key, key))).collect();
            activation.change(2, &changes).expect("within the right");
        }
        for (worker, own, count) in [(0, false, 180), (1, false, 180), (1, true, 0)] {
            let (mut place, mut told, mut pages) = (Some((0, 0)), Vec::new(), 0);
            while let Some(from) = place {
                let asked = Asked { number: 2, table: 2, worker };
                let EntryPage { entries, next } =
                    activation.entries(asked, own, from).expect("they are told");
                assert!(entries.len() <= ENTRIES_AT_ONCE);
                told.extend(entries.iter().map(|entry| entry.value[0]));
                (place, pages) = (next, pages + 1);
            }
            told.sort_unstable();
            assert!(pages > 2 && told.iter().copied().eq(0..count), "{told:?} on {pages} pages");
        }
        remote.stop();
        workers.join().expect("they end");
    }

    #[test]
    fn another_core_takes_over_what_was_removed_of_the_program_and_nothing_else() {
        let Prepared { mut generations, mut running } =
            prepare(&program(), &[right("signed", 2)], LOADING, 2).expect("it loads");
        let of_signed = |change| EntryChange { table: 3, ..change };
        let told = |generations: &[Generation]| done_by_control(&generations[0], &[], &[3]);
        assert_eq!(told(&generations), []);
        let done = [of_signed(remove(5)), of_signed(remove(6)), remove(5)];
        assert_eq!(take_done(&mut generations, &mut running.granted, &done), 1);
        assert!(generations.iter().all(|generation| generation.backend.entries(3).is_empty()));
        assert_eq!(told(&generations), [TakeoverAnswer::ByControl(vec![of_signed(remove(5))])]);
    }

    #[test]
    fn another_core_takes_over_what_was_inserted_counts_it_and_removes_nothing() {
        let Prepared { mut generations, mut running } =
            prepare(&program(), &[right("hosts", 2)], LOADING, 2).expect("it loads");
        let granted = &mut running.granted;
        assert_eq!(take_done(&mut generations, granted, &[insert(1, 1), insert(2, 1)]), 2);
        // A core that was taken over says more than there can be.
        assert_eq!(take_done(&mut generations, granted, &[remove(1), insert(3, 1)]), 0);
        assert_eq!(granted.held().count(), 2);
        let of_other = EntryChange { table: 1, ..insert(1, 1) };
        assert_eq!(take_done(&mut generations, granted, &[of_other]), 0);
        for generation in &generations {
            assert_eq!(generation.backend.entries(0).len(), 2);
        }
    }

    #[test]
    fn a_transaction_is_made_at_all_workers_or_at_none() {
        let (activation, remote, workers) = running(right("hosts", 9));
        let change = |changes: &[EntryChange]| activation.change(2, changes);

        assert_eq!(change(&[insert(1, 1), insert(2, 1)]).expect("within the right"), 0);
        assert_eq!(held(&activation), [[(1, 1), (2, 1)], [(1, 1), (2, 1)]]);
        // One worker has learned something of its own, and has room for one more; one entry would end.
        let learned = activation.remote().ask_at(1, |generation| {
            let now = MachineClock.program();
            generation.backend.learn(0, &Entry::exact(&[8], &[3]), now)
        });
        learned.expect("it runs").expect("there is room");
        let before = held(&activation);
        let ends = |activation: &Activation| {
            activation.remote().ask_at(1, |generation| generation.backend.age_of(0, &[Match::Exact(8)], 0))
        };
        let ended = ends(&activation);
        let full = change(&[insert(1, 5), remove(2), insert(8, 6), insert(3, 1), insert(4, 1)])
            .expect_err("no room");
        assert!(matches!(full, ChangeError::Entry(EntryError::Full { .. })), "{full}");
        assert_eq!((held(&activation), ends(&activation)), (before, ended), "as it was");
        assert_eq!(activation.hold().granted.held().count(), 2);

        assert_eq!(change(&[insert(1, 5), remove(2), insert(3, 1)]).expect("there is room"), 1);
        assert_eq!(held(&activation), [vec![(1, 5), (3, 1)], vec![(1, 5), (3, 1), (8, 3)]]);
        let told = |worker, own| {
            let asked = Asked { number: 2, table: 0, worker };
            let EntryPage { entries, next } = activation.entries(asked, own, (0, 0)).expect("they are told");
            assert_eq!(next, None);
            entries.into_iter().map(|entry| (entry.key[0], entry.value[0])).collect::<Vec<_>>()
        };
        let shown = [1, 3, 8].map(ShownMatch::Exact).into_iter().zip([5, 1, 3]).collect::<Vec<_>>();
        let sorted = |mut entries: Vec<(ShownMatch, u128)>| {
            entries.sort_by_key(|(_, value)| (5 - value) % 4);
            entries
        };
        assert_eq!(sorted(told(1, false)), sorted(shown.clone()));
        assert_eq!(told(1, true), shown[2..], "that of this worker alone");
        for wrong in [(3, 0, 0), (2, 9, 0), (2, 0, 2)] {
            let asked = Asked { number: wrong.0, table: wrong.1, worker: wrong.2 };
            assert!(activation.entries(asked, false, (u128::MAX, 255)).is_err());
        }
        let one = |length, bits| activation.entry(Asked { number: 2, table: 0, worker: 1 }, length, bits);
        assert_eq!(one(8, 8).expect("it is told").entries[0].value, [3]);
        assert!(one(8, 9).expect("there is none").entries.is_empty());
        assert!(one(7, 8).is_err() && one(8, 256).is_err());
        assert_eq!(change(&[remove(8), remove(9)]).expect("one worker has it"), 1);
        let not_its = EntryChange { table: 1, ..insert(1, 1) };
        assert!(matches!(
            change(&[insert(4, 4), not_its]),
            Err(ChangeError::Refused(ChangeRefusal::NoRight(_)))
        ));
        assert!(matches!(activation.change(1, &[insert(4, 4)]), Err(ChangeError::Changed)));
        assert_eq!(held(&activation), [[(1, 5), (3, 1)], [(1, 5), (3, 1)]]);
        assert_eq!(activation.hold().granted.held().count(), 2);

        // Another program begins with what was signed, and without rights nothing changes.
        activation.activate(&program(), &[]).expect("it takes over");
        assert_eq!(held(&activation), [[]; 2] as [[(u128, u128); 0]; 2]);
        assert!(matches!(
            activation.change(3, &[insert(1, 1)]),
            Err(ChangeError::Refused(ChangeRefusal::NoRight(_)))
        ));
        remote.stop();
        workers.join().expect("it ends");
    }
}
