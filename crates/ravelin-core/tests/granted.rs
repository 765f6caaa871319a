//! What a `control` that says anything gets admitted, against a model that looks at every change ever made.

use bundle::{KeyPrefix, TableRight};
use ir::Match;
use lang::pipeline::{CompileOptions, compile};
use messages::control::{EntryChange, EntryOperation};
use proptest::prelude::*;
use ravelin_core::granted::{ChangeRefusal, Granted};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

const PROGRAM: &str = "import std.net.{ethernet, ipv4}
reason lost \"no route\"
table routes: lpm(vrf: u8, dst: u8) -> port { capacity 8 }
table pairs: exact(a: u4, b: u4) -> (u3, u2) { capacity 8 }
table acl: rules(src: u8) -> { permit } { capacity 8 }
table free: exact(u8) -> port { capacity 8 }
table world: lpm(u32) -> port { capacity 8 }
pool numbers: u16 { 1..2 }
table holds: exact(u8) -> u16 { capacity 2  idle 9us  evict refuse  releases numbers }
start stage all() { drop lost }
";
const ROUTES: u32 = 0;
const PAIRS: u32 = 1;
const WORLD: u32 = 4;
const HOLDS: u32 = 5;

fn program() -> Arc<ir::Program> {
    static COMPILED: LazyLock<Arc<ir::Program>> = LazyLock::new(|| {
        let compiled = compile("p.rav", PROGRAM, &|_| None, &CompileOptions::default());
        Arc::new(compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics)))
    });
    COMPILED.clone()
}

/// Routes within 1/4 of the first table, and a part of the pairs; rates that divide a second.
fn rights() -> Vec<TableRight> {
    let right = |table: &str, prefixes: &[(u8, u8, u128)], most_entries, changes_per_second| TableRight {
        table: table.to_owned(),
        prefixes: prefixes
            .iter()
            .map(|&(width, length, bits)| KeyPrefix::new(width, length, bits).expect("a prefix"))
            .collect(),
        most_entries,
        changes_per_second,
    };
    vec![
        right("holds", &[(8, 0, 0)], 2, 1),
        right("pairs", &[(8, 2, 0x40)], 3, 4),
        right("routes", &[(16, 10, 0x0140)], 2, 5),
        right("world", &[(32, 0, 0)], 2, 2),
    ]
}

fn insert(table: u32, length: u8, bits: u128, value: &[u128]) -> EntryChange {
    EntryChange { table, length, bits, operation: EntryOperation::Insert(value.to_vec()) }
}

fn remove(table: u32, length: u8, bits: u128) -> EntryChange {
    EntryChange { table, length, bits, operation: EntryOperation::Remove }
}

/// Rights that began so long ago that a second's changes may be made at once.
fn granted() -> (Granted, Instant) {
    let begin = Instant::now();
    (Granted::new(program(), &rights(), begin), begin + Duration::from_secs(2))
}

#[test]
fn each_refusal_says_which_right_is_missing() {
    let table = |name: &str| name.to_owned();
    let cases = [
        (insert(9, 8, 0, &[1]), ChangeRefusal::NoTable(9)),
        (insert(2, 8, 0, &[0]), ChangeRefusal::NoRight(table("acl"))),
        (insert(3, 8, 0, &[1]), ChangeRefusal::NoRight(table("free"))),
        (remove(3, 8, 0), ChangeRefusal::NoRight(table("free"))),
        (insert(PAIRS, 8, 0x81, &[1, 1]), ChangeRefusal::Outside(table("pairs"))),
        (remove(PAIRS, 8, 0x81), ChangeRefusal::Outside(table("pairs"))),
        (insert(PAIRS, 7, 0x40, &[1, 1]), ChangeRefusal::Key(table("pairs"))),
        (insert(PAIRS, 8, 0x140, &[1, 1]), ChangeRefusal::Key(table("pairs"))),
        (insert(ROUTES, 9, 0x0100, &[1]), ChangeRefusal::Outside(table("routes"))),
        (insert(ROUTES, 12, 0x0141, &[1]), ChangeRefusal::Key(table("routes"))),
        (insert(ROUTES, 17, 0x0140, &[1]), ChangeRefusal::Key(table("routes"))),
        (insert(ROUTES, 7, 0, &[1]), ChangeRefusal::Key(table("routes"))),
        (insert(PAIRS, 8, 0x40, &[1]), ChangeRefusal::Value(table("pairs"))),
        (insert(PAIRS, 8, 0x40, &[8, 0]), ChangeRefusal::Value(table("pairs"))),
        (insert(PAIRS, 8, 0x40, &[u128::MAX, 0]), ChangeRefusal::Value(table("pairs"))),
        (insert(WORLD, 7, 0, &[1]), ChangeRefusal::Short { table: table("world"), shortest: 8 }),
        (remove(WORLD, 0, 0), ChangeRefusal::Short { table: table("world"), shortest: 8 }),
        (insert(HOLDS, 8, 1, &[1]), ChangeRefusal::Items(table("holds"))),
    ];
    let (mut granted, now) = granted();
    for (change, refusal) in cases {
        assert_eq!(granted.admit(std::slice::from_ref(&change), now), Err(refusal.clone()), "{change:?}");
        // Nothing of a transaction is admitted that has one of these.
        let transaction = [insert(PAIRS, 8, 0x41, &[1, 1]), change];
        assert_eq!(granted.admit(&transaction, now), Err(refusal));
    }
    let twice = [insert(PAIRS, 8, 0x41, &[1, 1]), remove(PAIRS, 8, 0x41)];
    assert_eq!(granted.admit(&twice, now), Err(ChangeRefusal::Twice(table("pairs"))));
    let five: Vec<_> = (0..5).map(|key| remove(PAIRS, 8, 0x40 + key)).collect();
    let at_once = ChangeRefusal::TooManyAtOnce { table: table("pairs"), most: 4, found: 5 };
    assert_eq!(granted.admit(&five, now), Err(at_once));
    let four: Vec<_> = (0..4).map(|key| insert(PAIRS, 8, 0x40 + key, &[1, 1])).collect();
    assert_eq!(granted.admit(&four, now), Err(ChangeRefusal::TooMany { table: table("pairs"), most: 3 }));
    // All of that has cost nothing.
    let admitted = granted.admit(&five[..4], now).expect("as many as in a second");
    assert_eq!(admitted[0].entry.key, [Match::Exact(4), Match::Exact(0)]);
    let too_fast = |most, wait| ChangeRefusal::TooFast { table: table("pairs"), most, wait };
    let wait = Duration::from_millis(250);
    assert_eq!(granted.admit(&five[..1], now), Err(too_fast(4, wait)));
    let now = now + wait;
    granted.admit(&five[..1], now).expect("it has waited");
    granted.admit(&[insert(WORLD, 8, 1 << 24, &[1]), remove(WORLD, 8, 2 << 24)], now).expect("long enough");
    granted.admit(&[remove(HOLDS, 8, 1)], now).expect("its item is free again");
    let route = granted.admit(&[insert(ROUTES, 12, 0x0140, &[1])], now).expect("another table");
    assert_eq!(route[0].entry.key, [Match::Exact(1), Match::Prefix { value: 0x40, length: 4 }]);
}

#[test]
fn nobody_gains_changes_by_a_program_that_begins() {
    let begin = Instant::now();
    let mut granted = Granted::new(program(), &rights(), begin);
    let change = remove(PAIRS, 8, 0x40);
    let wait = Duration::from_millis(250);
    let too_fast = ChangeRefusal::TooFast { table: "pairs".to_owned(), most: 4, wait };
    assert_eq!(granted.admit(std::slice::from_ref(&change), begin), Err(too_fast));
    granted.admit(std::slice::from_ref(&change), begin + wait).expect("it has waited");
}

/// What the model has seen.
#[derive(Default)]
struct Model {
    /// What is there because of rights.
    held: BTreeMap<(u32, u8, u128), ()>,
    /// When each change was admitted, in milliseconds since the program began, with its table.
    made: Vec<(u64, u32)>,
}

impl Model {
    /// Whether a change alone is one that a right is for.
    fn is_granted(change: &EntryChange) -> bool {
        let EntryChange { table, length, bits, operation } = change;
        let (key, value) = match *table {
            // The first byte is 1, and the next two bits are 01.
            ROUTES => {
                let behind = 16_u32.checked_sub((*length).into());
                let zeros = behind.is_some_and(|behind| bits % (1 << behind) == 0);
                (*length >= 10 && zeros && bits / 64 == 5, [16, 0])
            }
            PAIRS => (*length == 8 && bits / 64 == 1, [3, 2]),
            _ => return false,
        };
        let fits = |value: &[u128], widths: &[u32]| {
            value.len() == widths.len() && value.iter().zip(widths).all(|(value, bits)| value >> bits == 0)
        };
        key && match operation {
            EntryOperation::Remove => true,
            EntryOperation::Insert(columns) if *table == ROUTES => fits(columns, &value[..1]),
            EntryOperation::Insert(columns) => fits(columns, &value),
        }
    }

    /// Whether all of these may be made now.
    fn may(&self, changes: &[EntryChange], now: u64) -> bool {
        let key = |change: &EntryChange| (change.table, change.length, change.bits);
        let once =
            changes.iter().all(|one| changes.iter().filter(|other| key(one) == key(other)).count() == 1);
        if !once || !changes.iter().all(Model::is_granted) {
            return false;
        }
        [(ROUTES, 2, 5), (PAIRS, 3, 4)].into_iter().all(|(table, most, rate)| {
            let mut after = self.held.clone();
            let of_table = || changes.iter().filter(|change| change.table == table);
            for change in of_table() {
                match change.operation {
                    EntryOperation::Insert(_) => after.insert(key(change), ()),
                    EntryOperation::Remove => after.remove(&key(change)),
                };
            }
            let count =
                |held: &BTreeMap<(u32, u8, u128), ()>| held.keys().filter(|key| key.0 == table).count();
            let fits = count(&after) <= most;
            // In every time that ends now, no more than the rate allows for it and for one second more; the
            // beginning counts as a second's changes.
            let mut times: Vec<u64> =
                self.made.iter().filter(|made| made.1 == table).map(|made| made.0).collect();
            times.extend(of_table().map(|_| now));
            times.splice(0..0, std::iter::repeat_n(0, rate as usize));
            let slow = (0..times.len())
                .all(|first| (times.len() - first) as u64 * 1000 <= rate * (now - times[first] + 1000));
            fits && (of_table().count() == 0 || slow)
        })
    }

    fn make(&mut self, changes: &[EntryChange], now: u64) {
        for change in changes {
            self.made.push((now, change.table));
            let key = (change.table, change.length, change.bits);
            match change.operation {
                EntryOperation::Insert(_) => self.held.insert(key, ()),
                EntryOperation::Remove => self.held.remove(&key),
            };
        }
    }
}

/// Changes that are often within the rights, and often not.
fn change() -> impl Strategy<Value = EntryChange> {
    let near = prop_oneof![
        (prop::sample::select(vec![0, 1, 2, 3, 9_u32]), 0..20_u8, 0..0x200_u128, 0..3_u128),
        (Just(PAIRS), Just(8), 0x3e..0x84_u128, 0..5_u128),
        (Just(PAIRS), Just(8), 0x40..0x44_u128, 0..4_u128),
        (Just(ROUTES), 9..17_u8, (0..12_u128).prop_map(|part| 0x0130 + part * 8), 0..9_u128),
        (any::<u32>(), any::<u8>(), any::<u128>(), any::<u128>()),
    ];
    (near, prop::option::of(0..4_usize)).prop_map(|((table, length, bits, value), columns)| {
        let operation = match columns {
            None => EntryOperation::Remove,
            Some(0) => EntryOperation::Insert(vec![value; if table == ROUTES { 1 } else { 2 }]),
            Some(columns) => EntryOperation::Insert(vec![value; columns]),
        };
        EntryChange { table, length, bits, operation }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A `control` that is taken over and says anything changes nothing that is not granted, and one that
    /// stays within its rights is not refused.
    #[test]
    fn whatever_control_asks_for_only_what_is_granted_is_admitted(
        transactions in prop::collection::vec((0..400_u64, prop::collection::vec(change(), 0..4)), 1..60),
    ) {
        let begin = Instant::now();
        let (mut granted, mut model, mut time) =
            (Granted::new(program(), &rights(), begin), Model::default(), 0);
        for (wait, transaction) in transactions {
            time += wait;
            let admitted = granted.admit(&transaction, begin + Duration::from_millis(time));
            prop_assert_eq!(admitted.is_ok(), model.may(&transaction, time), "{:?} at {}: {:?}", transaction, time, admitted);
            if let Ok(admitted) = admitted {
                model.make(&transaction, time);
                granted.made(&admitted);
                let names = ["routes", "pairs"];
                for one in &admitted {
                    let table = &program().tables[one.table as usize];
                    prop_assert!(names.contains(&table.name.as_str()));
                    prop_assert!(table.kind.takes(&table.keys, &one.entry.key));
                }
            }
            let held: Vec<_> =
                granted.held().map(|(table, key)| (table, key.length(), key.bits())).collect();
            let mut expected: Vec<_> = model.held.keys().copied().collect();
            expected.sort_by_key(|&(table, length, bits)| (table, length, bits));
            prop_assert_eq!(held, expected);
        }
    }
}
