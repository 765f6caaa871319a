//! Tables that are built beside the packet loop and exchanged, and entries that are found by their key, on
//! both families of tables.

use exec::provision::provide;
use exec::{Backend, BackendKind, EntryError, Outputs, load};
use ir::{Entry, Match, Program};
use lang::pipeline::{CompileOptions, compile};

const TABLES: &str = "
table hosts: exact(mac) -> port { capacity 64  age 300s  evict refuse  entries { 02:00:00:00:00:01 => 1 } }
table routes: lpm(ip4) -> (port, u8) { capacity 64  entries { 10.0.0.0/8 => (1, 7), _ => (2, 0) } }
table acl: rules(ip4, u16) -> u8 { capacity 64  choose priority  entries { (_, 7) priority 3 => 1, (10.0.0.1, _) priority 9 => 2 } }
table words: patterns(bytes) -> u8 { capacity 8  entries { \"attack\" => 1 } }
pool numbers: u16 { 1..100 }
table taken: exact(mac) -> u16 { capacity 200  age 60s  evict refuse  releases numbers }
start stage all() { flood }
";

/// Other entries for the tables, each as the language writes them.
const OTHERS: [&str; 4] = [
    "02:00:00:00:00:07 => 3, 02:00:00:00:00:08 => 4",
    "10.0.0.0/9 => (3, 1), 10.1.2.3 => (4, 4)",
    "(10.0.0.0/8, 80..89) priority 1 => 4, (_, _) priority 0 => 5",
    "\"other\" nocase offset 2 => 9, hex \"00 ff\" depth 20 => 3",
];

fn program() -> Program {
    let compiled = compile("t.rav", TABLES, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

fn held(backend: &dyn Backend, table: u32) -> Vec<Entry> {
    backend.entries(table).into_iter().map(|(entry, _)| entry).collect()
}

#[test]
fn a_table_that_was_built_elsewhere_is_as_one_that_was_replaced() {
    let program = program();
    for kind in BackendKind::ALL {
        let [mut exchanged, mut replaced] = [1, 2].map(|seed| load(&program, kind, 4, seed).expect("loads"));
        for (table, text) in (0..).zip(OTHERS) {
            let entries = lang::entries::read(text, &program.tables[table as usize]).expect("reads");
            let before = held(exchanged.as_ref(), table);
            let draft = exchanged.table_draft(table).expect("can be changed");
            let beside = entries.clone();
            let mut built =
                std::thread::spawn(move || draft.build(beside)).join().expect("no panic").expect("has room");
            assert!(exchanged.take_built(table, &mut built));
            replaced.replace(table, entries.clone()).expect("has room");
            assert_eq!(held(exchanged.as_ref(), table), held(replaced.as_ref(), table), "{kind:?} {text}");
            for entry in &entries {
                let found = exchanged.entry(table, &entry.key, entry.priority);
                assert_eq!(found.as_ref(), Some(entry), "{kind:?}");
            }
            for gone in &before {
                assert_eq!(exchanged.entry(table, &gone.key, gone.priority), None, "{kind:?}");
            }
            // The old entries come back in the same way.
            assert!(exchanged.take_built(table, &mut built));
            assert_eq!(held(exchanged.as_ref(), table), before, "{kind:?}");
        }
    }
}

#[test]
fn what_was_built_for_another_table_or_holds_items_of_a_pool_is_not_taken() {
    let program = program();
    for kind in BackendKind::ALL {
        let mut backend = load(&program, kind, 4, 1).expect("loads");
        let mut of_hosts =
            backend.table_draft(0).expect("can be changed").build(Vec::new()).expect("has room");
        let before: Vec<_> = (0..5).map(|table| held(backend.as_ref(), table)).collect();
        for table in 1..5 {
            assert!(!backend.take_built(table, &mut of_hosts), "{kind:?} {table}");
        }
        let mut of_taken =
            backend.table_draft(4).expect("can be changed").build(Vec::new()).expect("has room");
        assert!(!backend.take_built(4, &mut of_taken), "{kind:?}");
        let after: Vec<_> = (0..5).map(|table| held(backend.as_ref(), table)).collect();
        assert_eq!(before, after);
        let many = vec![Entry::exact(&[7], &[1]); 65];
        assert!(backend.table_draft(0).expect("can be changed").build(many).is_err());
        let misfit = vec![Entry::exact(&[1 << 48], &[1])];
        assert!(backend.table_draft(0).expect("can be changed").build(misfit).is_err());
    }
}

const LIVING: &str = "
event gone(host: u16, port: u8) {}
table hosts: exact(u16) -> u8 { capacity 8  age 100s  idle 60s  evict refuse  expires gone }
event left(net: ip4, length: u8, port: u8) {}
table routes: lpm(ip4) -> u8 { capacity 8  age 100s  expires left }
table acl: rules(u16, u16) -> u8 { capacity 8  choose priority  age 100s }
table ageless: exact(u16) -> u8 { capacity 8  idle 60s  evict refuse }
start stage all() { flood }
";

const SECOND: u64 = 1_000_000_000;

#[test]
fn an_entry_lives_as_long_as_it_was_given_and_no_longer_than_the_age_of_its_table() {
    let compiled = compile("t.rav", LIVING, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let entry = |table: u32, number: u128| {
        let key = match table {
            1 => vec![Match::Prefix { value: number << 24, length: 8 }],
            2 => vec![Match::Exact(number), Match::Any],
            _ => vec![Match::Exact(number)],
        };
        Entry { key, value: vec![number], priority: 0 }
    };
    for kind in BackendKind::ALL {
        let mut backend = load(&program, kind, 4, 1).expect("loads");
        let (begin, mut outputs) = (1000 * SECOND, Outputs::default());
        for table in 0..3 {
            let early = backend.learn_for(table, &entry(table, 4), 98 * SECOND, SECOND);
            assert_eq!(early, Err(EntryError::Early { age: 100 * SECOND }));
        }
        backend.advance(begin, &mut outputs);
        for table in 0..3 {
            let mut learn =
                |number, lifetime| backend.learn_for(table, &entry(table, number), begin, lifetime);
            assert_eq!(learn(1, 30 * SECOND), Ok(()));
            // The later one counts, be it shorter or longer.
            assert_eq!((learn(2, 10 * SECOND), learn(2, 31 * SECOND)), (Ok(()), Ok(())));
            assert_eq!((learn(3, 50 * SECOND), learn(3, 30 * SECOND)), (Ok(()), Ok(())));
            assert_eq!(learn(4, 100 * SECOND), Ok(()));
            let wrong = Err(EntryError::Lifetime { age: 100 * SECOND });
            assert_eq!(
                (learn(5, 0), learn(5, 100 * SECOND + 1), learn(5, u64::MAX)),
                (wrong.clone(), wrong.clone(), wrong)
            );
        }
        assert_eq!(backend.learn_for(3, &entry(3, 1), begin, SECOND), Err(EntryError::Ageless));
        assert!(backend.due().is_some_and(|due| due <= begin + 30 * SECOND), "{kind:?}");
        let there = |backend: &dyn Backend, table: u32| -> Vec<u128> {
            (1..=5).filter(|&number| backend.entry(table, &entry(table, number).key, 0).is_some()).collect()
        };
        let mut advance = |time: u64, wanted: [&[u128]; 3]| {
            backend.advance(time, &mut outputs);
            for (table, wanted) in (0..).zip(wanted) {
                assert_eq!(there(backend.as_ref(), table), wanted, "{kind:?} {table} {time}");
            }
        };
        advance(begin + 30 * SECOND - 1, [&[1, 2, 3, 4]; 3]);
        advance(begin + 30 * SECOND, [&[2, 4]; 3]);
        advance(begin + 31 * SECOND, [&[4]; 3]);
        // Idle time ends the first one before its lifetime does.
        advance(begin + 60 * SECOND, [&[], &[4], &[4]]);
        advance(begin + 100 * SECOND, [&[]; 3]);
        let raised: Vec<(u32, u64, Vec<u128>)> = (outputs.raised.iter())
            .map(|raised| {
                let columns = program.events[raised.event as usize].params.len();
                let arguments = outputs.arguments[raised.first as usize..][..columns].to_vec();
                (raised.event, raised.time - begin, arguments)
            })
            .collect();
        let host = |time: u64, number| (0, time * SECOND, vec![number, number]);
        let prefix = |time: u64, number: u128| (1, time * SECOND, vec![number << 24, 8, number]);
        let wanted = [
            host(30, 1),
            host(30, 3),
            prefix(30, 1),
            prefix(30, 3),
            host(31, 2),
            prefix(31, 2),
            host(60, 4),
            prefix(100, 4),
        ];
        assert_eq!(raised, wanted, "{kind:?}");
    }
}

#[test]
fn an_entry_that_has_expired_is_not_found() {
    let program = program();
    for kind in BackendKind::ALL {
        let mut backend = load(&program, kind, 4, 1).expect("loads");
        let entry = Entry::exact(&[9], &[2]);
        backend.learn(0, &entry, 1_000_000_000).expect("has room");
        assert_eq!(backend.entry(0, &entry.key, 0).as_ref(), Some(&entry));
        backend.advance(302_000_000_000, &mut exec::Outputs::default());
        assert_eq!(backend.entry(0, &entry.key, 0), None, "{kind:?}");
    }
}

/// How often this thread has waited for the system to give it memory.
#[cfg(target_os = "linux")]
fn page_faults() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/stat").expect("Linux tells it");
    let behind_name = told.rsplit(')').next().expect("the name of the thread has an end");
    behind_name.split_whitespace().nth(7).expect("a column for it").parse().expect("a number")
}

/// The first entries of a large table find its memory there; those of one that is too large, as of one that
/// nobody provided, take it page by page.
#[test]
#[cfg(target_os = "linux")]
fn the_first_entries_of_a_large_table_wait_for_no_memory() {
    let faults = |capacity: u64, bytes: u64| {
        let text = format!(
            "table hosts: exact(u64) -> u32 {{ capacity {capacity}  evict refuse  age 1h }}
            start stage all() {{ flood }}"
        );
        let compiled = compile("t.rav", &text, &|_| None, &CompileOptions::default());
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let mut backend = load(&program, BackendKind::Native, 2, 1).expect("loads");
        provide(&program, bytes, backend.as_mut(), |_| true);
        let mut change = |number: u128| {
            let entry = Entry::exact(&[number * 0x9e37_79b9_7f4a_7c15 % (1 << 64)], &[1]);
            backend.insert(0, &entry).expect("room");
        };
        change(0);
        let before = page_faults();
        (1..4096).for_each(change);
        page_faults() - before
    };
    // Its memory is 26 MB, in which 4,000 keys meet every large page, and small ones by the thousand.
    let (without, with) = (faults(500_000, 0), faults(500_000, 64 << 20));
    assert!(without >= 5, "{without}: the test would show nothing");
    assert!(with < 5.min(without), "{with} and {without}");
    assert!(faults(500_000, 16 << 20) >= 5, "more than is provided");
}

/// What a removal of a rule leaves behind is due by itself, and goes in steps, also in a table without `age`.
#[test]
fn what_is_left_of_a_removed_rule_becomes_due() {
    let text = "table acl: rules(u16, u16) -> u16 { capacity 4000  choose priority }\n\
                start stage all() { match acl[1, 1] { some v => drop seen, none => drop unseen } }";
    let compiled = compile("t.rav", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let mut backend = load(&program, BackendKind::Native, 4, 1).expect("loads");
    let fixed = |at: u128| Entry {
        key: vec![Match::Exact(at * 13 % 65_536), Match::Exact(at * 7 % 65_536)],
        value: vec![at],
        priority: 1,
    };
    let everybody = Entry { key: vec![Match::Any, Match::Any], value: vec![7], priority: 2 };
    let entries = (1..3000).map(fixed).chain([everybody.clone()]).collect();
    backend.replace(0, entries).expect("has room");
    let (mut outputs, mut wakes) = (Outputs::default(), 0);
    backend.advance(1, &mut outputs);
    assert_eq!(backend.due(), None, "nothing ever ends here");
    assert!(backend.remove(0, &everybody.key, 2));
    while let Some(due) = backend.due() {
        backend.advance(due, &mut outputs);
        wakes += 1;
        assert!(wakes < 1000, "the sweep comes to its end");
    }
    assert!(wakes > 1, "a rule in all leaves is not removed in one go");
    assert_eq!(held(backend.as_ref(), 0).len(), 2999);
    assert_eq!(backend.entry(0, &everybody.key, 2), None);
}
