//! A program replaces another one: what its packets made goes over where the tables' shapes are the same, and nothing changes where not.

use exec::replace::{ReplaceError, carry_over, take_over};
use exec::{BackEnd, Processor, load};
use lang::ir::{Entry, Match, Program};
use lang::pipeline::{Options, compile};
use packet::batch::Batch;

const OLD: &str = "
    table hosts: exact(mac: u48) -> port { capacity 8 age 10s evict refuse entries { 1 => 1 } }
    table nets: lpm(u16) -> port { capacity 8 age 10s }
    table gone: exact(u8) { capacity 8 age 10s evict refuse }
    start stage all() { flood }";

fn program(text: &str) -> Program {
    let compiled = compile("p.rav", text, &|_| None, &Options::default());
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn loaded(program: &Program, back_end: BackEnd) -> Box<dyn Processor> {
    load(program, back_end, 4, 1).expect("loads")
}

fn filled(back_end: BackEnd) -> (Program, Box<dyn Processor>) {
    let old = program(OLD);
    let mut running = loaded(&old, back_end);
    running.learn(0, &Entry::exact(&[7], &[2]), 1_000).expect("room");
    running.insert(0, &Entry::exact(&[8], &[3])).expect("room");
    let net = Entry { key: vec![Match::Prefix { value: 0x0a00, length: 8 }], value: vec![4], priority: 0 };
    running.learn(1, &net, 1_000).expect("room");
    running.learn(2, &Entry::exact(&[5], &[]), 1_000).expect("room");
    (old, running)
}

#[test]
fn what_packets_made_goes_over_and_goes_when_its_time_is_up() {
    for back_end in [BackEnd::Interpreter, BackEnd::Native] {
        let (old, running) = filled(back_end);
        let text = OLD
            .replace("mac: u48", "address: u48")
            .replace("table gone", "table another")
            .replace("1 => 1", "9 => 1");
        let new = program(&text);
        let mut next = loaded(&new, back_end);
        let carried = carry_over((running.as_ref(), &old), (next.as_mut(), &new), &[], 2_000).expect("fits");
        assert_eq!(carried.tables, [("hosts".to_string(), 1), ("nets".to_string(), 1)]);
        let keys: Vec<Option<Vec<u128>>> =
            next.entries(0).iter().map(|(entry, _)| entry.exact_key()).collect();
        assert_eq!(keys, [Some(vec![7]), Some(vec![9])]);
        assert_eq!(next.entries(1), running.entries(1));
        assert!(next.entries(2).is_empty());
        let mut outputs = exec::Outputs::default();
        next.advance(10_000_001_999, &mut outputs);
        assert_eq!((next.entries(0).len(), next.entries(1).len()), (2, 1));
        next.advance(10_000_002_000, &mut outputs);
        assert_eq!((next.entries(0).len(), next.entries(1).len()), (1, 0));
    }
}

#[test]
fn another_shape_is_refused_unless_its_entries_are_given_up() {
    let (old, running) = filled(BackEnd::Native);
    for (from, to) in [
        ("mac: u48", "mac: u40"),
        ("-> port { capacity 8 age 10s evict", "-> u16 { capacity 8 age 10s evict"),
        ("exact(mac: u48)", "exact(mac: u48, u8)"),
    ] {
        let new = program(&OLD.replacen(from, to, 1).replace("entries { 1 => 1 }", ""));
        let mut next = loaded(&new, BackEnd::Native);
        let refused = carry_over((running.as_ref(), &old), (next.as_mut(), &new), &[], 2_000);
        assert!(
            matches!(&refused, Err(ReplaceError::Misfit { name, .. }) if name == "hosts"),
            "{to}: {refused:?}"
        );
        assert!(next.entries(1).is_empty(), "nothing has gone over");
        let given_up = ["hosts".to_string()];
        let carried =
            carry_over((running.as_ref(), &old), (next.as_mut(), &new), &given_up, 2_000).expect("given up");
        assert_eq!(carried.tables.len(), 2, "{to}");
    }
}

#[test]
fn no_room_is_told() {
    let (old, running) = filled(BackEnd::Native);
    let new = program(&OLD.replacen(
        "capacity 8 age 10s evict refuse entries { 1 => 1 }",
        "capacity 1 age 10s evict refuse entries { 1 => 1 }",
        1,
    ));
    let mut next = loaded(&new, BackEnd::Native);
    let refused = carry_over((running.as_ref(), &old), (next.as_mut(), &new), &[], 2_000);
    assert!(matches!(&refused, Err(ReplaceError::Entry { name, .. }) if name == "hosts"), "{refused:?}");
}

#[test]
fn a_shape_is_known_by_its_number_on_every_machine() {
    let old = program(OLD);
    assert_eq!(old.tables[0].shape(), "exact key Uint:48 value Port:16");
    assert_eq!(old.tables[0].shape_hash(), program(&OLD.replace("mac:", "x:")).tables[0].shape_hash());
    assert_ne!(old.tables[0].shape_hash(), old.tables[1].shape_hash());
}

const WITH_GROUPS: &str = "
    group listeners[9]: port { buckets 8 capacity 3 members { 5: 1 } }
    start stage all() {
        if in_port == 4 { remove listeners[5, 2] drop gone }
        insert listeners[5, in_port] else { drop full }
        multicast listeners[5]
    }";

/// Runs a packet by each of these ports.
fn arrive(processor: &mut dyn Processor, ports: &[u16]) {
    let mut memory = [0; 64];
    for &port in ports {
        let mut batch = Batch::new();
        assert!(batch.push(0, 64, 64, port, 1));
        processor.run(&mut memory, &mut batch, &mut exec::Outputs::default());
    }
}

#[test]
fn members_that_packets_made_go_over_and_others_do_not() {
    for back_end in [BackEnd::Interpreter, BackEnd::Native] {
        let old = program(WITH_GROUPS);
        let mut running = loaded(&old, back_end);
        // 1 is a member by the program, 2 by a packet, 3 by both a packet and the control plane, 4 by the control plane.
        arrive(running.as_mut(), &[1, 2, 3]);
        running.join(0, 5, &[3]).expect("it is there");
        running.join(0, 7, &[4]).expect("room");
        assert_eq!(running.learned_members(0), [(5, vec![2])]);

        let new = program(&WITH_GROUPS.replace("5: 1", "5: 3"));
        let mut next = loaded(&new, back_end);
        let carried = carry_over((running.as_ref(), &old), (next.as_mut(), &new), &[], 0).expect("fits");
        assert_eq!(carried.groups, [("listeners".to_string(), 1)]);
        assert_eq!(next.learned_members(0), [(5, vec![2])], "it may go over once more");
        assert!(next.leave(0, 5, &[2]) && next.leave(0, 5, &[3]) && !next.leave(0, 5, &[1]));
        assert!(!next.leave(0, 7, &[4]));

        arrive(running.as_mut(), &[4]);
        assert!(running.learned_members(0).is_empty(), "a member that left does not go over");
    }
}

#[test]
fn a_group_of_another_shape_or_without_room_is_refused() {
    let old = program(WITH_GROUPS);
    let mut running = loaded(&old, BackEnd::Native);
    arrive(running.as_mut(), &[2, 3]);
    let replaced = |text: &str, given_up: &[String]| {
        let new = program(text);
        let mut next = loaded(&new, BackEnd::Native);
        carry_over((running.as_ref(), &old), (next.as_mut(), &new), given_up, 0)
    };
    let shaped = "group listeners: u16 { buckets 8 capacity 3 } start stage all() { flood }";
    let refused = replaced(shaped, &[]).expect_err("another shape");
    assert!(matches!(&refused, ReplaceError::Misfit { name, .. } if name == "listeners"), "{refused}");
    let carried = replaced(shaped, &["listeners".to_string()]).expect("given up");
    assert!(carried.groups.is_empty());
    let carried = replaced(&WITH_GROUPS.replace("capacity 3 members { 5: 1 }", "capacity 2"), &[]);
    assert_eq!(carried.expect("room for two").groups, [("listeners".to_string(), 2)]);
    let refused = replaced(&WITH_GROUPS.replace("capacity 3", "capacity 2"), &[]).expect_err("no room");
    assert!(matches!(&refused, ReplaceError::Entry { name, .. } if name == "listeners"), "{refused}");
    let fewer = WITH_GROUPS.replace("listeners[9]", "listeners[4]").replace("5: 1", "3: 1");
    let refused = replaced(&fewer, &[]).expect_err("no such group");
    assert!(refused.to_string().contains("there is no group 5"), "{refused}");
}

#[test]
fn a_table_that_is_kept_alike_changes_its_owner_and_comes_back_if_that_is_undone() {
    let text = "
        table hosts: exact(u48) -> port { capacity 8 age 10s evict lru }
        table fixed: exact(u8) -> port { capacity 8 age 10s evict refuse entries { 1 => 1 } }
        start stage all() { learn hosts[1] = in_port  learn fixed[1] = in_port else {}  flood }";
    let smaller = text.replace("capacity 8 age 10s evict refuse", "capacity 2 age 10s evict refuse");
    for back_end in [BackEnd::Interpreter, BackEnd::Native] {
        let (old, new) = (program(text), program(&smaller));
        let mut running = loaded(&old, back_end);
        for key in 0..3 {
            running.learn(0, &Entry::exact(&[key], &[2]), 1_000).expect("room");
            running.learn(1, &Entry::exact(&[100 + key], &[2]), 1_000).expect("room");
        }
        let entries = running.entries(0);
        let reports = running.tables();
        // Two entries of the second table have no room in the smaller one: the first one is given back.
        let mut next = loaded(&new, back_end);
        let refused =
            take_over((running.as_mut(), &old), (next.as_mut(), &new), &[], 5_000).expect_err("no room");
        assert!(matches!(refused, ReplaceError::Entry { .. }), "{refused}");
        assert_eq!((running.entries(0), running.tables()), (entries.clone(), reports.clone()));
        // It fits, but somebody else did not agree.
        let mut next = loaded(&old, back_end);
        let (carried, exchanged) =
            take_over((running.as_mut(), &old), (next.as_mut(), &old), &[], 5_000).expect("fits");
        assert_eq!(carried.tables, [("hosts".to_string(), 3), ("fixed".to_string(), 3)]);
        assert!(running.entries(0).is_empty());
        exchanged.undo(running.as_mut(), next.as_mut());
        assert_eq!((running.entries(0), running.tables()), (entries.clone(), reports));
        // It takes over; its entries end when they would have ended, and what happened before is not counted again.
        let mut next = loaded(&old, back_end);
        let (_, exchanged) =
            take_over((running.as_mut(), &old), (next.as_mut(), &old), &[], 5_000).expect("fits");
        exchanged.keep(next.as_mut());
        assert_eq!(next.entries(0), entries);
        let report = next.tables().remove(0);
        assert_eq!((report.entries, report.inserts, report.expired), (3, 3, 0));
        let mut outputs = exec::Outputs::default();
        next.advance(10_000_000_999, &mut outputs);
        assert_eq!(next.entries(0).len(), 3);
        next.advance(10_000_001_000, &mut outputs);
        assert_eq!(next.entries(0).len(), 0);
        assert_eq!(next.tables().remove(0).expired, 3);
    }
}
