//! Changes, lists and replacements at workers without ports, beside a slow twin that does one thing after the
//! other.

mod conversation;
mod filled;

use super::changes::{Action, Change};
use super::defaults::{self, Member};
use super::limits::{CHANGES, REPLACEMENT};
use super::listing::{self, Listing};
use super::replacing::Replacement;
use super::schema::{Known, describe};
use client::entry;
use client::message::RefusalPart;
use client::{KeyMatch, RefusalCode, RefusalPlace, RequestRefusal, TableEntry};
use engine::live::{self, Generation, Loaded, Remote};
use exec::{BackendKind, EntryError, load};
use ir::source::Sources;
use ir::{Entry, Match, Program};
use lang::pipeline::{CompileOptions, compile};
use packet::{Batch, Verdict};
use ports::live::clock::{Clock, MachineClock};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;

/// As many entries as the small tables hold.
const ROOM: usize = 12;

const PROGRAM: &str = "
table hosts: exact(u16) -> port { capacity 12  age 300s  evict refuse }
table routes: lpm(ip4) -> u8 { capacity 12  age 300s }
table acl: rules(u8, ip4) -> u8 { capacity 12  choose priority  age 300s }
table words: patterns(bytes) -> u8 { capacity 1000 }
table many: exact(u32) -> u16 { capacity 20k }
table pairs: exact(bool, u7) -> (bool, u9) { capacity 300 }
table policy: exact(u16) -> { pass, deny(code: u8), mark(level: u8) } { capacity 9 }
pool numbers: u16 { 1..100 }
table taken: exact(u16) -> u16 { capacity 200  age 60s  evict refuse  releases numbers }
table filters: exact(u16) -> { pass, deny(code: u8) } { capacity 9  default => pass }
table tallied: rules(u8) -> u8 { capacity 12  counted times }
group servers[3]: (ip4, u3) { buckets 64  capacity 4  members { 1: (10.0.0.1, 2) } }
group large: u8 { buckets 32k  capacity 4 }
event gone(host: u16) {}
start stage all() { match servers[2, hash(length)] { some (_, number) => send number as port, none => flood } }
";

fn program() -> (Arc<Program>, Arc<Sources>) {
    compiled(PROGRAM)
}

fn compiled(text: &str) -> (Arc<Program>, Arc<Sources>) {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    (Arc::new(program), Arc::new(compiled.sources))
}

fn known(workers: usize) -> Known {
    let program = program().0;
    Known { schema: describe(&program, "p.rav", 1, workers, &[]), program }
}

/// The changes of a client that has the tables for itself.
fn make(remote: &Remote, number: u64, changes: Vec<Change>) -> Vec<Result<u32, RequestRefusal>> {
    super::changes::make(remote, &Mutex::new(()), number, changes)
}

/// One worker's part of the program.
pub(super) fn generation() -> Generation {
    let (program, sources) = program();
    let backends = vec![load(&program, BackendKind::Native, 2, 1).expect("loads")];
    Loaded { program, sources, backends, schedule: None, steering: Vec::new() }.generations(2, 1).remove(0)
}

/// Runs `test` beside so many workers that have no ports.
fn beside(workers: usize, kind: BackendKind, test: impl FnOnce(&Remote, &Known)) {
    running(program(), workers, kind, |remote| test(remote, &known(workers)));
}

/// The same, with another program.
fn running(
    (program, sources): (Arc<Program>, Arc<Sources>),
    workers: usize,
    kind: BackendKind,
    test: impl FnOnce(&Remote),
) {
    let clock: Arc<dyn Clock> = Arc::new(MachineClock);
    let (crew, remote) =
        live::workers((0..workers).map(|_| Vec::new()).collect(), &clock).expect("descriptors");
    let backends = (0..workers).map(|_| load(&program, kind, 2, 1).expect("loads")).collect();
    let generations =
        Loaded { program, sources, backends, schedule: None, steering: Vec::new() }.generations(2, 1);
    thread::scope(|scope| {
        let stop = Stop(&remote);
        scope.spawn(|| drop(live::run(crew, generations, &remote, &[])));
        test(&remote);
        drop(stop);
    });
}

/// Ends the workers, also where a test fails.
struct Stop<'a>(&'a Remote);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// All entries of a table at one worker, or at any (0), with the worker that each is listed for.
fn listed(remote: &Remote, known: &Known, table: u16, worker: u16, most: u32) -> Vec<(u16, TableEntry)> {
    let (mut all, mut cursor) = (Vec::new(), Vec::new());
    loop {
        let asked = Listing { table, worker, most, cursor };
        let (part, next) = listing::list(remote, known, &asked).expect("is listed");
        assert!(part.len() <= most as usize);
        all.extend(part.into_iter().map(|listed| (listed.worker, listed.entry)));
        if next.is_empty() {
            return all;
        }
        cursor = next;
    }
}

/// What the twin holds: for each worker and table, values by key.
type Held = Vec<[BTreeMap<(Vec<Match>, u32), Vec<u128>>; 3]>;

/// One change, made at all of them if all have room.
fn twin(held: &mut Held, change: &Change) -> Option<u32> {
    let key = (change.entry.key.clone(), change.entry.priority);
    let tables = held.iter_mut().map(|tables| &mut tables[change.table as usize]);
    let tables: Vec<_> = tables.collect();
    if change.action == Action::Remove {
        let removed = tables.into_iter().map(|table| u32::from(table.remove(&key).is_some()));
        return Some(removed.fold(0, u32::max));
    }
    if !tables.iter().all(|table| table.contains_key(&key) || table.len() < ROOM) {
        return None;
    }
    tables.into_iter().for_each(|table| drop(table.insert(key.clone(), change.entry.value.clone())));
    Some(1)
}

/// Changes of few keys, so that many meet and tables become full.
fn change() -> impl Strategy<Value = Change> {
    let action = prop_oneof![5 => Just(Action::Insert), 1 => Just(Action::Learn { lifetime: None }),
        1 => (100..300_u64).prop_map(|seconds| Action::Learn { lifetime: Some(seconds * 1_000_000_000) }), 3 => Just(Action::Remove)];
    (0_u32..3, action, 0_u128..24, 0_u128..200).prop_map(|(table, action, key, value)| {
        let (key, priority) = match table {
            0 => (vec![Match::Exact(key)], 0),
            1 => (vec![Match::Prefix { value: key << 27, length: 5 }], 0),
            _ => (vec![Match::Exact(key / 3), Match::Any], key as u32 % 3),
        };
        // Only the first table has an age.
        let action = match action {
            Action::Learn { .. } if table != 0 => Action::Learn { lifetime: None },
            action => action,
        };
        let value = if action == Action::Remove { Vec::new() } else { vec![value] };
        Change { table, action, entry: Entry { key, value, priority } }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn changes_are_made_at_all_workers_or_at_none_as_one_after_the_other_would_be(
        before in prop::collection::vec((0_usize..3, change()), 0..40),
        changes in prop::collection::vec(change(), 1..3 * CHANGES),
        workers in 1_usize..4,
        native: bool,
    ) {
        let kind = if native { BackendKind::Native } else { BackendKind::Interpreter };
        let mut held: Held = (0..workers).map(|_| Default::default()).collect();
        // What packets have made at each worker differs.
        let mut alone = Vec::new();
        for (worker, change) in before {
            let worker = worker % workers;
            if change.action != Action::Remove {
                let of_one = &mut held[worker..=worker].to_vec();
                if twin(of_one, &change).is_some() {
                    held[worker] = of_one[0].clone();
                    alone.push((worker, change));
                }
            }
        }
        let wanted: Vec<Option<u32>> = changes.iter().map(|change| twin(&mut held, change)).collect();
        beside(workers, kind, |remote, known| {
            for (worker, Change { table, entry, .. }) in alone {
                let made = remote.ask_at(worker, move |generation| {
                    generation.backend.learn(table, &entry, MachineClock.program())
                });
                assert_eq!(made, Some(Ok(())));
            }
            let made = make(remote, 1, changes);
            let made: Vec<Option<u32>> = made.into_iter().map(Result::ok).collect();
            assert_eq!(made, wanted);
            for (worker, held) in (1..).zip(&held) {
                for (table, held) in (0..).zip(held) {
                    let listed = listed(remote, known, table, worker, 5).into_iter();
                    let there: BTreeMap<_, _> = listed
                        .map(|(_, entry)| {
                            let entry = known.entry(table, entry, 0).expect("suits");
                            ((entry.key, entry.priority), entry.value)
                        })
                        .collect();
                    assert_eq!(&there, held, "table {table} at worker {worker}");
                }
            }
            // Each entry that any worker has is listed once, for the first that has it so.
            for table in 0..3 {
                let all = listed(remote, known, table, 0, 4);
                let mut wanted = BTreeMap::new();
                for (worker, held) in (1..=workers as u16).zip(&held).rev() {
                    wanted.extend(held[usize::from(table)].iter().map(|entry| (entry, worker)));
                }
                assert_eq!(all.len(), wanted.len());
                for (worker, entry) in all {
                    let entry = known.entry(table, entry, 0).expect("suits");
                    assert_eq!(wanted.get(&(&(entry.key, entry.priority), &entry.value)), Some(&worker));
                }
            }
        });
    }
}

#[test]
fn a_change_that_one_worker_refuses_leaves_entries_of_others_as_they_were() {
    let change = |action, key| Change { table: 0, action, entry: Entry::exact(&[key], &[9]) };
    for (action, learned) in
        [Action::Insert, Action::Learn { lifetime: None }].into_iter().flat_map(|a| [(a, true), (a, false)])
    {
        beside(2, BackendKind::Native, |remote, _| {
            // The first worker is full; the second one has the key.
            let full = remote.ask_at(0, |generation| {
                let now = MachineClock.program();
                let mut learn = |key| generation.backend.learn(0, &Entry::exact(&[key], &[1]), now).is_ok();
                (100..100 + ROOM as u128).all(&mut learn)
            });
            let there = remote.ask_at(1, move |generation| {
                let entry = Entry::exact(&[7], &[1]);
                let backend = &mut *generation.backend;
                let now = MachineClock.program();
                if learned { backend.learn(0, &entry, now) } else { backend.insert(0, &entry) }
            });
            assert_eq!((full, there), (Some(true), Some(Ok(()))));
            let made =
                make(remote, 1, vec![change(action, 7), change(Action::Remove, 100), change(action, 8)]);
            let made: Vec<bool> = made.iter().map(Result::is_ok).collect();
            assert_eq!(made, [false, true, true]);
            let held = remote.ask_at(1, |generation| {
                let held = generation.backend.entry(0, &[Match::Exact(7)], 0).map(|held| held.value);
                let learned = generation.backend.learned(0);
                (held, learned.iter().any(|held| held.key == [Match::Exact(7)]))
            });
            assert_eq!(held, Some((Some(vec![1]), learned)), "{action:?}");
        });
    }
}

#[test]
fn a_default_entry_is_set_at_all_workers_if_the_program_has_one() {
    beside(2, BackendKind::Native, |remote, known| {
        let (turn, filters) = (Mutex::new(()), known.schema.table("filters").expect("is declared").0);
        let set = |table, value| defaults::set_default(remote, &turn, known, table, value);
        let now = || -> Vec<Vec<u128>> {
            let listed = defaults::default_of(remote, known, filters).expect("is asked");
            listed.into_iter().map(|one| one.columns).collect()
        };
        let pass = now();
        assert_eq!(pass.len(), 1, "both workers have the same");
        assert_eq!((set(filters, Some(vec![1, 7])), now()), (Ok(1), vec![vec![1, 7]]));
        assert_eq!((set(filters, None), now()), (Ok(1), Vec::new()));
        let refused = |table, value| set(table, value).map_err(|fault| fault.code);
        assert_eq!(refused(filters, Some(vec![9, 0])), Err(RefusalCode::Misfit), "no such variant");
        assert_eq!(refused(filters, Some(vec![0, 7])), Err(RefusalCode::Misfit), "of another variant");
        assert_eq!(refused(0, Some(vec![1])), Err(RefusalCode::Closed), "no lookup asks for one");
        assert_eq!(refused(99, None), Err(RefusalCode::Unknown));
        assert_eq!(now(), Vec::<Vec<u128>>::new());
    });
}

#[test]
fn a_member_joins_at_all_workers_or_at_none() {
    beside(2, BackendKind::Native, |remote, known| {
        let turn = Mutex::new(());
        let member = |index, number: u128| Member { group: 0, index, columns: vec![number, 1] };
        let join = |member| defaults::join(remote, &turn, known, member).map_err(|fault| fault.code);
        let leave = |member| defaults::leave(remote, &turn, known, member).map_err(|fault| fault.code);
        let listed = |index| -> Vec<(u16, u128)> {
            let members = defaults::members(remote, known, 0, index).expect("is asked");
            members.into_iter().map(|one| (one.worker, one.columns[0])).collect()
        };
        assert_eq!(listed(1), [(1, 0x0a00_0001)], "of the program text");
        assert_eq!((join(member(2, 7)), join(member(2, 7)), listed(2)), (Ok(1), Ok(1), vec![(1, 7)]));
        // Packets of the second worker have filled its group.
        let filled = remote.ask_at(1, |generation| {
            (20..24).map(|number| generation.backend.learn_member(0, 2, &[number, 1]).is_ok()).collect()
        });
        assert_eq!(filled, Some(vec![true, true, true, false]));
        assert_eq!(join(member(2, 9)), Err(RefusalCode::Full));
        assert_eq!(listed(2), [(1, 7), (2, 20), (2, 21), (2, 22)], "nobody has it");
        let made = || remote.ask_at(1, |generation| generation.backend.learned_members(0).len());
        assert_eq!((join(member(2, 20)), made()), (Ok(1), Some(3)), "it stays one that packets made");
        assert_eq!((leave(member(2, 21)), leave(member(2, 21)), made()), (Ok(1), Ok(0), Some(2)));
        assert_eq!((join(member(2, 9)), listed(2).len()), (Ok(1), 4));
        assert_eq!(join(member(3, 9)), Err(RefusalCode::Unknown));
        let large = Member { group: 1, index: 0, columns: vec![1] };
        assert_eq!(join(large), Err(RefusalCode::Closed));
    });
}

/// The second worker has no room for a member, so it joins nowhere, and flows at the first one stay where
/// they are: they would not, if it joined and left again.
#[test]
fn a_member_that_is_refused_moves_no_flow() {
    beside(2, BackendKind::Native, |remote, known| {
        let turn = Mutex::new(());
        let join = |number: u128| {
            let member = Member { group: 0, index: 2, columns: vec![number, number] };
            defaults::join(remote, &turn, known, member).map_err(|fault| fault.code)
        };
        // The members that packets of different lengths go to.
        let flows = || {
            let flows = remote.ask_at(0, |generation| {
                let (mut batch, mut outputs) = (Batch::new(), exec::Outputs::default());
                let mut flow = |length: usize| {
                    let mut memory = batch.hold_one(&vec![0; length], length as u32, 1, 0);
                    generation.backend.run(&mut memory, &mut batch, &mut outputs);
                    batch.verdicts()[0]
                };
                (60..260).map(&mut flow).collect::<Vec<_>>()
            });
            flows.expect("is asked")
        };
        assert_eq!([1, 2, 3].map(join), [Ok(1); 3]);
        let full = remote.ask_at(1, |generation| generation.backend.learn_member(0, 2, &[4, 4]).is_ok());
        assert_eq!(full, Some(true));
        let before = flows();
        // There are two ports, so what goes to the third member is dropped.
        for verdict in [Verdict::send(1), Verdict::send(2), Verdict::drop(0)] {
            assert!(before.contains(&verdict), "{verdict:?}");
        }
        assert_eq!(join(5), Err(RefusalCode::Full));
        assert_eq!(flows(), before);
    });
}

/// A part of a key, of any kind.
fn any_part() -> impl Strategy<Value = KeyMatch> {
    let number = || prop_oneof![0_u128..300, any::<u32>().prop_map(u128::from), any::<u128>()];
    prop_oneof![
        Just(KeyMatch::Any),
        number().prop_map(KeyMatch::Exact),
        (number(), 0_u8..40).prop_map(|(value, length)| KeyMatch::Prefix { value, length }),
        (number(), number()).prop_map(|(value, mask)| KeyMatch::Masked { value: value & mask, mask }),
        (number(), number()).prop_map(|(low, high)| KeyMatch::Range { low, high }),
        prop::collection::vec(any::<u8>(), 0..4).prop_map(|bytes| KeyMatch::Bytes {
            bytes,
            nocase: false,
            offset: 0,
            depth: None
        }),
    ]
}

proptest! {
    #[test]
    fn what_is_refused_as_a_misfit_is_what_the_table_itself_refuses(
        table in 0_u16..6,
        key in prop::collection::vec(any_part(), 1..3),
    ) {
        let (known, columns) = (known(1), known(1).schema.tables[usize::from(table)].keys.len().max(1));
        prop_assume!(key.len() >= columns);
        let key = key[..columns].to_vec();
        let value = vec![0; known.schema.tables[usize::from(table)].values.len()];
        let read = known.entry(table, TableEntry { key: key.clone(), priority: 0, value: value.clone() }, 0);
        let mut backend = load(&known.program, BackendKind::Interpreter, 2, 1).expect("loads");
        match read {
            Ok(entry) => prop_assert_eq!(backend.insert(table.into(), &entry), Ok(())),
            Err(RequestRefusal { code, place, .. }) => {
                prop_assert_eq!((code, place.part), (RefusalCode::Misfit, RefusalPart::Key));
                let entry = known.unchecked(key, value);
                prop_assert_eq!(backend.insert(table.into(), &entry), Err(EntryError::Key));
            }
        }
    }
}

#[test]
fn counts_are_those_of_one_worker_and_come_in_parts() {
    beside(2, BackendKind::Native, |remote, known| {
        let table = known.schema.table("tallied").expect("it is declared").0;
        let insert = |number: u128| {
            let entry = Entry { key: vec![Match::Exact(number)], value: vec![1], priority: 0 };
            Change { table: table.into(), action: Action::Insert, entry }
        };
        let made = make(remote, 1, (0..9).map(insert).collect());
        assert!(made.into_iter().all(|made| made == Ok(1)));
        let asked = |table, worker, cursor| {
            listing::counts(remote, known, &Listing { table, worker, most: 2, cursor })
        };
        for worker in [1, 2] {
            let (mut all, mut cursor) = (Vec::new(), Vec::new());
            loop {
                let (part, next) = asked(table, worker, cursor).expect("is told");
                assert!(part.len() <= 2);
                all.extend(part);
                cursor = next;
                if cursor.is_empty() {
                    break;
                }
            }
            assert_eq!(all.len(), 9);
            let unhit = client::EntryCountTold::default();
            assert!(all.iter().all(|counted| counted.worker == worker && counted.count == unhit));
        }
        let cursor = asked(table, 1, Vec::new()).expect("is told").1;
        let refused = asked(table, 2, cursor).expect_err("a cursor of another worker");
        assert_eq!(refused.code, RefusalCode::Malformed);
        for (table, worker, why) in
            [(0, 1, "count nothing"), (table, 0, "ask one of them"), (table, 3, "no worker 3")]
        {
            let refused = asked(table, worker, Vec::new()).expect_err("there is nothing to tell");
            assert!(refused.code == RefusalCode::Unknown && refused.message.contains(why), "{refused}");
        }
    });
}

#[test]
fn a_list_of_many_entries_comes_in_parts_whatever_is_asked_for() {
    beside(2, BackendKind::Native, |remote, known| {
        let insert = |number: u128| {
            let entry = Entry::exact(&[number], &[number % 7]);
            Change { table: 4, action: Action::Insert, entry }
        };
        let made = make(remote, 1, (0..9000).map(insert).collect());
        assert!(made.into_iter().all(|made| made == Ok(1)));
        for (most, least) in [(u32::MAX, 2), (1, 9000), (1000, 9)] {
            let (mut parts, mut seen, mut cursor) = (0, BTreeMap::new(), Vec::new());
            loop {
                let asked = Listing { table: 4, worker: 0, most, cursor };
                let (part, next) = listing::list(remote, known, &asked).expect("is listed");
                (parts, cursor) = (parts + 1, next);
                seen.extend(
                    part.into_iter().map(|listed| (format!("{:?}", listed.entry.key), listed.worker)),
                );
                if cursor.is_empty() {
                    break;
                }
            }
            assert!(parts >= least && seen.len() == 9000 && seen.values().all(|worker| *worker == 1));
        }
        let of_old = Known { schema: describe(&known.program, "p.rav", 9, 2, &[]), ..known.clone() };
        let asked = Listing { table: 4, worker: 0, most: 1, cursor: Vec::new() };
        let refused = listing::list(remote, &of_old, &asked).expect_err("another program");
        assert_eq!(refused.code, RefusalCode::Changed);
        let made = make(remote, 9, vec![insert(1)]);
        assert_eq!(made[0].as_ref().expect_err("another program").code, RefusalCode::Changed);
        for cursor in [vec![0], vec![0xff; 19], vec![0, 2].into_iter().chain([0; 17]).collect()] {
            let asked = Listing { cursor, table: 4, worker: 0, most: 1 };
            let refused = listing::list(remote, known, &asked).expect_err("no cursor");
            assert_eq!(refused.code, RefusalCode::Malformed);
        }
    });
}

#[test]
fn a_replacement_is_bounded_in_bytes_and_entries_and_one_is_made_at_a_time() {
    let (known, taken) = (known(1), Arc::new(AtomicBool::new(false)));
    let begin = |table| Replacement::begin(&taken, &known, table);
    let code = |begun: Result<Replacement, RequestRefusal>| begun.err().map(|refused| refused.code);
    assert_eq!(code(begin(7)), Some(RefusalCode::Closed), "its entries hold items of a pool");
    assert_eq!(code(begin(99)), Some(RefusalCode::Unknown));
    let mut words = begin(3).expect("nobody else does");
    assert_eq!(code(begin(3)), Some(RefusalCode::Limit));
    let mut bytes = Vec::new();
    let long = |length: usize| TableEntry {
        key: vec![KeyMatch::Bytes { bytes: vec![7; length], nocase: false, offset: 0, depth: None }],
        priority: 0,
        value: vec![1],
    };
    entry::push(&mut bytes, &known.schema.tables[3], &long(200_000), 0).expect("fits");
    let mut all = 0;
    let refused = loop {
        match words.more(&known, 1, &bytes) {
            Ok(1) => all += bytes.len(),
            Ok(_) => panic!("one was sent"),
            Err(refused) => break refused,
        }
    };
    assert_eq!(refused.code, RefusalCode::Limit);
    assert!(all <= REPLACEMENT && all + bytes.len() > REPLACEMENT);
    drop(words);
    // Too many; and a request of which the last entry is damaged is not taken at all.
    let mut many = begin(3).expect("the other one has ended");
    bytes.clear();
    (0..1000).for_each(|_| entry::push(&mut bytes, &known.schema.tables[3], &long(3), 0).expect("fits"));
    assert_eq!(
        many.more(&known, 1000, &bytes[..bytes.len() - 1]).expect_err("cut off").code,
        RefusalCode::Malformed
    );
    assert_eq!(many.more(&known, 999, &bytes).expect_err("too long").code, RefusalCode::Malformed);
    assert_eq!(many.more(&known, 1000, &bytes), Ok(1000));
    let one = &bytes[..bytes.len() / 1000];
    assert_eq!(many.more(&known, 1, one).expect_err("no room").code, RefusalCode::Full);
    assert_eq!(many.more(&known, u32::MAX, one).expect_err("no room").code, RefusalCode::Full);
}

#[test]
fn a_prefix_that_covers_too_many_addresses_is_not_changed_alone() {
    let known = known(1);
    let is_narrow = |table, key: Match| known.is_narrow(table, &[key]).map_err(|refused| refused.code);
    let prefix = |length| Match::Prefix { value: 0, length };
    for refused in [Match::Any, prefix(0), prefix(7)] {
        assert_eq!(is_narrow(1, refused), Err(RefusalCode::Closed));
    }
    for taken in [prefix(8), prefix(31), Match::Exact(7)] {
        assert_eq!(is_narrow(1, taken), Ok(()));
    }
    assert_eq!(is_narrow(0, Match::Exact(7)), Ok(()), "no table of prefixes");
}

#[test]
fn a_value_that_no_variant_has_is_refused_at_its_column() {
    let known = known(1);
    let refused = |value: [u128; 3]| {
        let entry = TableEntry { key: vec![KeyMatch::Exact(1)], priority: 0, value: value.to_vec() };
        known.entry(6, entry, 0).err().map(|refused| (refused.code, refused.place.part, refused.place.index))
    };
    for taken in [[0, 0, 0], [1, 7, 0], [2, 0, 7]] {
        assert_eq!(refused(taken), None);
    }
    for (value, column) in [([3, 0, 0], 0), ([0, 1, 0], 1), ([1, 7, 1], 2), ([2, 1, 7], 1)] {
        assert_eq!(refused(value), Some((RefusalCode::Misfit, RefusalPart::Value, column)));
    }
}

#[test]
fn which_changes_are_refused_is_said_with_a_way_out() {
    let program = program().0;
    let schema =
        describe(&program, "p.rav", 1, 1, &[(1, "from files: change those, as with `ip route add`")]);
    let refuses = |table: usize| {
        let refuses = &schema.tables[table].refuses;
        [&refuses.insert, &refuses.remove, &refuses.replace].map(Option::is_some)
    };
    assert_eq!(refuses(0), [false; 3]);
    assert_eq!(refuses(1), [true; 3]);
    assert_eq!(refuses(3), [true, true, false]);
    assert_eq!(refuses(7), [true, false, true]);
    assert!(schema.tables[1].refuses.insert.as_ref().is_some_and(|why| why.contains("ip route add")));
    assert_eq!(schema.events[0].arguments[0].bits, 16);
}
