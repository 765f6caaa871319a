//! A program replaces another one: what its packets made goes over where the tables' shapes are the same, and
//! nothing changes where not.

use exec::replace::{ReplaceError, TakeoverReport, take_over};
use exec::{Backend, BackendKind, load};
use ir::{Entry, Match, Program};
use lang::pipeline::{CompileOptions, compile};
use packet::batch::Batch;

const OLD: &str = "
    table hosts: exact(mac: u48) -> port { capacity 8 age 10s evict refuse entries { 1 => 1 } }
    table nets: lpm(u16) -> port { capacity 8 age 10s }
    table gone: exact(u8) { capacity 8 age 10s evict refuse }
    start stage all() { flood }";

fn program(text: &str) -> Program {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
}

fn loaded(program: &Program, back_end: BackendKind) -> Box<dyn Backend> {
    load(program, back_end, 4, 1).expect("loads")
}

fn filled(back_end: BackendKind) -> (Program, Box<dyn Backend>) {
    let old = program(OLD);
    let mut running = loaded(&old, back_end);
    running.learn(0, &Entry::exact(&[7], &[2]), 1_000).expect("room");
    running.insert(0, &Entry::exact(&[8], &[3])).expect("room");
    let net = Entry { key: vec![Match::Prefix { value: 0x0a00, length: 8 }], value: vec![4], priority: 0 };
    running.learn(1, &net, 1_000).expect("room");
    running.learn(2, &Entry::exact(&[5], &[]), 1_000).expect("room");
    (old, running)
}

/// Lets a program take over for good.
fn carry_over(
    old: &mut dyn Backend,
    old_program: &Program,
    new: &mut dyn Backend,
    new_program: &Program,
    discard: &[String],
    now: u64,
) -> Result<TakeoverReport, ReplaceError> {
    let (mut carried, exchanged) = take_over(old, old_program, new, new_program, discard, now)?;
    carried.events_given_up = exchanged.keep(old, new);
    Ok(carried)
}

#[test]
fn what_packets_made_goes_over_and_goes_when_its_time_is_up() {
    for back_end in BackendKind::ALL {
        let (old, mut running) = filled(back_end);
        let text = OLD
            .replace("mac: u48", "address: u48")
            .replace("table gone", "table another")
            .replace("1 => 1", "9 => 1");
        let new = program(&text);
        let nets = running.entries(1);
        let mut next = loaded(&new, back_end);
        let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 2_000).expect("fits");
        assert_eq!(carried.tables, [("hosts".to_string(), 1), ("nets".to_string(), 1)]);
        let keys: Vec<Option<Vec<u128>>> =
            next.entries(0).iter().map(|(entry, _)| entry.exact_key()).collect();
        assert_eq!(keys, [Some(vec![7]), Some(vec![9])]);
        assert_eq!((next.entries(1), running.entries(1)), (nets, Vec::new()));
        assert!(next.entries(2).is_empty());
        // Prefixes changed their owner and keep their time; hosts, of which the text has some, were copied.
        let mut outputs = exec::Outputs::default();
        for (time, left) in [(10_000_000_999, (2, 1)), (10_000_001_999, (2, 0)), (10_000_002_000, (1, 0))] {
            next.advance(time, &mut outputs);
            assert_eq!((next.entries(0).len(), next.entries(1).len()), left);
        }
    }
}

#[test]
fn another_shape_is_refused_unless_its_entries_are_given_up() {
    let (old, mut running) = filled(BackendKind::Native);
    for (from, to) in [
        ("mac: u48", "mac: u40"),
        ("-> port { capacity 8 age 10s evict", "-> u16 { capacity 8 age 10s evict"),
        ("exact(mac: u48)", "exact(mac: u48, u8)"),
    ] {
        let new = program(&OLD.replacen(from, to, 1).replace("entries { 1 => 1 }", ""));
        let mut next = loaded(&new, BackendKind::Native);
        let refused = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 2_000);
        assert!(
            matches!(&refused, Err(ReplaceError::Misfit { name, .. }) if name == "hosts"),
            "{to}: {refused:?}"
        );
        assert!(next.entries(1).is_empty(), "nothing has gone over");
        let given_up = ["hosts".to_string()];
        let carried =
            carry_over(running.as_mut(), &old, next.as_mut(), &new, &given_up, 2_000).expect("given up");
        assert_eq!(carried.tables.len(), 2, "{to}");
    }
}

#[test]
fn no_room_is_told() {
    let (old, mut running) = filled(BackendKind::Native);
    let new = program(&OLD.replacen(
        "capacity 8 age 10s evict refuse entries { 1 => 1 }",
        "capacity 1 age 10s evict refuse entries { 1 => 1 }",
        1,
    ));
    let mut next = loaded(&new, BackendKind::Native);
    let refused = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 2_000);
    assert!(matches!(&refused, Err(ReplaceError::Entry { name, .. }) if name == "hosts"), "{refused:?}");
}

#[test]
fn a_shape_is_known_by_its_number_on_every_machine() {
    let old = program(OLD);
    assert_eq!(old.tables[0].shape(), "exact key Uint:48 value Port:16");
    assert_eq!(old.tables[0].shape(), program(&OLD.replace("mac:", "x:")).tables[0].shape());
    assert_ne!(old.tables[0].shape(), old.tables[1].shape());
}

const WITH_GROUPS: &str = "
    group listeners[9]: port { buckets 8 capacity 3 members { 5: 1 } }
    start stage all() {
        if in_port == 4 { remove listeners[5, 2] drop gone }
        insert listeners[5, in_port] else { drop full }
        multicast listeners[5]
    }";

/// Runs a packet by each of these ports.
fn arrive(backend: &mut dyn Backend, ports: &[u16]) {
    let mut memory = [0; 64];
    for &port in ports {
        let mut batch = Batch::new();
        assert!(batch.push(0, 64, 64, port, 1));
        backend.run(&mut memory, &mut batch, &mut exec::Outputs::default());
    }
}

#[test]
fn members_that_packets_made_go_over_and_others_do_not() {
    for back_end in BackendKind::ALL {
        let old = program(WITH_GROUPS);
        let mut running = loaded(&old, back_end);
        // 1 is a member by the program, 2 by a packet, 3 by a packet and then the control plane, 4 by the
        // control plane.
        arrive(running.as_mut(), &[1, 2, 3]);
        running.join(0, 5, &[3]).expect("it is there");
        running.join(0, 7, &[4]).expect("room");
        assert_eq!(running.learned_members(0), [(5, vec![2]), (5, vec![3])]);

        let new = program(&WITH_GROUPS.replace("5: 1", "5: 3"));
        let mut next = loaded(&new, back_end);
        let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 0).expect("fits");
        assert_eq!(carried.groups, [("listeners".to_string(), 2)]);
        assert_eq!(next.learned_members(0), [(5, vec![2])], "3 is one by the program now");
        assert!(next.leave(0, 5, &[2]) && next.leave(0, 5, &[3]) && !next.leave(0, 5, &[1]));
        assert!(!next.leave(0, 7, &[4]));

        arrive(running.as_mut(), &[4]);
        assert_eq!(running.learned_members(0), [(5, vec![3])], "a member that left does not go over");
    }
}

#[test]
fn a_group_of_another_shape_or_without_room_is_refused() {
    let old = program(WITH_GROUPS);
    let mut running = loaded(&old, BackendKind::Native);
    arrive(running.as_mut(), &[2, 3]);
    let mut replaced = |text: &str, given_up: &[String]| {
        let new = program(text);
        let mut next = loaded(&new, BackendKind::Native);
        carry_over(running.as_mut(), &old, next.as_mut(), &new, given_up, 0)
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
    for back_end in BackendKind::ALL {
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
            take_over(running.as_mut(), &old, next.as_mut(), &new, &[], 5_000).expect_err("no room");
        assert!(matches!(refused, ReplaceError::Entry { .. }), "{refused}");
        assert_eq!((running.entries(0), running.tables()), (entries.clone(), reports.clone()));
        // It fits, but somebody else did not agree.
        let mut next = loaded(&old, back_end);
        let (carried, exchanged) =
            take_over(running.as_mut(), &old, next.as_mut(), &old, &[], 5_000).expect("fits");
        assert_eq!(carried.tables, [("hosts".to_string(), 3), ("fixed".to_string(), 3)]);
        assert!(running.entries(0).is_empty());
        exchanged.undo(running.as_mut(), next.as_mut());
        assert_eq!((running.entries(0), running.tables()), (entries.clone(), reports));
        // It takes over; its entries end when they would have ended, and what happened before is not counted
        // again.
        let mut next = loaded(&old, back_end);
        let (_, exchanged) =
            take_over(running.as_mut(), &old, next.as_mut(), &old, &[], 5_000).expect("fits");
        let _ = exchanged.keep(running.as_mut(), next.as_mut());
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

#[test]
fn a_table_changes_its_owner_while_entries_that_ended_together_are_still_taken_out() {
    let text = "
        table hosts: exact(u48) -> port { capacity 64 age 10s evict lru }
        start stage all() { if length == 1 { learn hosts[1] = in_port }  flood }";
    let source = program(text);
    let (mut old, mut new) = (loaded(&source, BackendKind::Native), loaded(&source, BackendKind::Native));
    (0..40).for_each(|key| old.learn(0, &Entry::exact(&[key], &[2]), 0).expect("room"));
    at(old.as_mut(), 10_000_000_000, &[1]);
    let figures = |report: exec::TableReport| (report.entries, report.inserts, report.expired);
    assert_eq!(figures(old.tables().remove(0)), (0, 40, 40), "all have ended");
    let held = old.running_tables().remove(0).entries;
    assert!((32..40).contains(&held), "a packet takes out a few, not {}", 40 - held);
    assert_eq!(figures(old.running_tables().remove(0)), (held, 40, 40 - held));
    let taken = take_over(old.as_mut(), &source, new.as_mut(), &source, &[], 10_000_000_000);
    let (carried, exchanged) = taken.expect("fits");
    assert_eq!(carried.tables, [("hosts".to_string(), held)]);
    let _ = exchanged.keep(old.as_mut(), new.as_mut());
    assert_eq!(figures(new.running_tables().remove(0)), (held, held, 0));
    assert_eq!((figures(new.tables().remove(0)), new.entries(0)), ((0, held, held), Vec::new()));
    new.advance(10_000_000_001, &mut exec::Outputs::default());
    assert_eq!(figures(new.running_tables().remove(0)), (0, held, held));
}

const EVERYTHING: &str = "
    import std.net.ethernet
    meter policed[4]: packets { committed 1 burst 2 excess 0 }
    register last[4]: u16
    counter seen[4]
    counter ticks
    group servers: u16 { buckets 8 capacity 4 members { 1, 2 } }
    table ways: exact(u8) -> port { capacity 4 age 1h evict lru  default => 9 }
    event late(which: port) { set last[3] = which as u16  count ticks }
    every 1s { count ticks }
    start stage all() {
        set last[1] = last[1] +% 1
        count seen[2]
        if in_port == 4 {
            insert servers[77] else { drop gone }
            insert ways[default] = 3
            after 10s raise late(in_port)
        }
        match policed[0] { red => drop gone, else => flood }
    }";

/// What a packet by each of these ports does one after the other, at this time.
fn at(backend: &mut dyn Backend, time: u64, ports: &[u16]) -> Vec<packet::VerdictKind> {
    let mut memory = [0; 64];
    let verdict = |port: &u16| {
        let mut batch = Batch::new();
        assert!(batch.push(0, 64, 64, *port, time));
        backend.run(&mut memory, &mut batch, &mut exec::Outputs::default());
        batch.verdicts()[0].kind()
    };
    ports.iter().map(verdict).collect()
}

const SECOND: u64 = 1_000_000_000;

#[test]
fn what_both_declare_alike_goes_over_also_besides_tables() {
    use packet::VerdictKind::{Drop, Flood};
    let other = EVERYTHING
        .replace("    register last", "    register first: u64\n    register last")
        .replace("    counter seen", "    counter before[7]\n    counter seen")
        .replace("    event late", "    event early(which: u8, what: u8) { count ticks }\n    event late")
        .replace("    start stage", "    fn unused() -> u8 { 1 }\n    start stage");
    for text in [EVERYTHING, &other] {
        for back_end in BackendKind::ALL {
            let (old, new) = (program(EVERYTHING), program(text));
            let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
            assert_eq!(at(running.as_mut(), 5 * SECOND, &[4]), [Flood]);
            let carried =
                carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 5 * SECOND).expect("fits");
            assert_eq!((carried.anew.len(), carried.events_given_up), (0, 0), "{carried:?}");
            let number =
                |names: Vec<&str>, name: &str| names.iter().position(|other| *other == name).unwrap() as u32;
            let last = number(new.registers.iter().map(|one| one.name.as_str()).collect(), "last");
            let counters: Vec<&str> = new.counters.iter().map(|one| one.name.as_str()).collect();
            let (seen, ticks) = (number(counters.clone(), "seen"), number(counters, "ticks"));
            assert_eq!(next.register(last), [0, 1, 0, 0]);
            assert_eq!(next.counter(seen)[2], (1, 64));
            assert_eq!(next.learned_members(0), [(0, vec![77])]);
            // One of two tokens was spent.
            assert_eq!(at(next.as_mut(), 5 * SECOND, &[1, 1]), [Flood, Drop]);
            // The periodic handler comes when it would have come, at 6, 7, … 14 s, and so does the event, at
            // 15 s.
            assert_eq!(at(next.as_mut(), 15 * SECOND - 1, &[1]), [Flood]);
            assert_eq!((next.counter(ticks)[0].0, next.register(last)[3]), (9, 0));
            at(next.as_mut(), 15 * SECOND, &[1]);
            assert_eq!((next.counter(ticks)[0].0, next.register(last)[3]), (11, 4));
            assert_eq!(running.counter(0).iter().map(|cell| cell.0).sum::<u64>(), 0, "nothing counts twice");
        }
    }
}

#[test]
fn what_is_declared_otherwise_begins_anew_and_that_is_said() {
    for back_end in BackendKind::ALL {
        let text = EVERYTHING
            .replace("burst 2", "burst 1")
            .replace("last[4]: u16", "last[5]: u16")
            .replace("seen[4]", "seen[5]")
            .replace("event late(which: port)", "event late(which: port, more: u8)")
            .replace("late(in_port)", "late(in_port, 1)")
            .replace("every 1s", "every 2s");
        let (old, new) = (program(EVERYTHING), program(&text));
        let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
        at(running.as_mut(), 5 * SECOND, &[4]);
        let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 5 * SECOND).expect("fits");
        let anew: Vec<(&str, &str)> =
            carried.anew.iter().map(|(kind, name, ..)| (*kind, name.as_str())).collect();
        assert_eq!(
            anew,
            [("meter", "policed"), ("register", "last"), ("counter", "seen"), ("event", "late")]
        );
        assert_eq!(carried.events_given_up, 1);
        assert_eq!((next.register(0), next.counter(0)), (vec![0; 5], vec![(0, 0); 5]));
        at(next.as_mut(), 20 * SECOND, &[1]);
        assert_eq!(
            next.counter(1)[0].0,
            0,
            "the handler starts one period after the first packet, and no event came"
        );
    }
}

#[test]
fn members_keep_their_buckets_where_nobody_else_changed_the_group() {
    let text = "
        group servers: u16 { buckets 64 capacity 8 members { 1 weight 3, 2 } }
        start stage all() {
            if in_port == 4 { insert servers[77] else { drop gone }  insert servers[5] else { drop gone } }
            match servers[hash(in_port)] { some m => { if m == 77 { flood } drop gone } none => drop gone }
        }";
    for back_end in BackendKind::ALL {
        let all: Vec<u16> = (5..200).collect();
        let fresh = program(text);
        let mut running = loaded(&fresh, back_end);
        at(running.as_mut(), 1, &[4]);
        let before = at(running.as_mut(), 1, &all);
        let mut next = loaded(&fresh, back_end);
        carry_over(running.as_mut(), &fresh, next.as_mut(), &fresh, &[], 1).expect("fits");
        assert_eq!(at(next.as_mut(), 1, &all), before, "every flow stays where it was");
        // 5 joined behind 77; in ascending order it would be the other way round.
        next.join(0, 0, &[900]).expect("room");
        let mut last = loaded(&fresh, back_end);
        carry_over(next.as_mut(), &fresh, last.as_mut(), &fresh, &[], 1).expect("fits");
        assert_eq!(last.learned_members(0), [(0, vec![5]), (0, vec![77])]);
        assert_ne!(at(last.as_mut(), 1, &all), before);
    }
}

const NAT: &str = "
    import std.net.{ethernet, ipv4, udp}
    pool numbers: u16 { 1000..1009 }
    table out: exact(u16) -> u16 { capacity 16 idle 60s evict refuse releases numbers }
    start stage all() {
        match out[in_port as u16] {
            some n => { if n == 1000 { send 1 } if n == 1001 { send 2 } flood }
            none => {
                match take(numbers) {
                    some n => {
                        learn out[in_port as u16] = n else { drop gone }
                        if n == 1000 { send 1 } if n == 1001 { send 2 } flood
                    }
                    none => drop gone
                }
            }
        }
    }";

/// The items that the entries of the first table hold, and how many are free.
fn items(backend: &mut dyn Backend) -> Vec<u128> {
    let mut items: Vec<u128> = backend.entries(0).iter().map(|(entry, _)| entry.value[0]).collect();
    items.sort_unstable();
    items
}

#[test]
fn an_entry_keeps_its_item_of_a_pool_and_nobody_else_gets_it() {
    let variants = [
        ("the same program", NAT.to_string()),
        ("another capacity", NAT.replace("capacity 16", "capacity 20")),
        ("another idle time", NAT.replace("idle 60s", "idle 50s")),
        (
            "a table before",
            NAT.replace("    table out", "    table first: exact(u8) { entries { 1 } }\n    table out"),
        ),
        ("a larger pool", NAT.replace("1000..1009", "1000..1019")),
        (
            "a pool that begins before",
            NAT.replace("1000..1009", "999..1009").replace("take(numbers)", "take(numbers, 1)"),
        ),
        ("another pool", NAT.replace("numbers", "others")),
    ];
    for (what, text) in variants {
        for back_end in BackendKind::ALL {
            let (old, new) = (program(NAT), program(&text));
            let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
            at(running.as_mut(), SECOND, &[1, 2, 3]);
            let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], SECOND).expect("fits");
            assert!(carried.ended.is_empty(), "{what}: {carried:?}");
            let table = new.tables.iter().position(|table| table.name == "out").unwrap() as u32;
            at(next.as_mut(), SECOND, &[4]);
            let mut held: Vec<u128> = next.entries(table).iter().map(|(entry, _)| entry.value[0]).collect();
            held.sort_unstable();
            assert_eq!(held, [1000, 1001, 1002, 1003], "{what}, {back_end:?}");
            // All of them go, and all items come back.
            let mut outputs = exec::Outputs::default();
            next.advance(100 * SECOND, &mut outputs);
            at(next.as_mut(), 100 * SECOND, &[5, 6, 7, 8]);
            let mut held: Vec<u128> = next.entries(table).iter().map(|(entry, _)| entry.value[0]).collect();
            held.sort_unstable();
            assert_eq!(held, [1000, 1001, 1002, 1003], "{what}, {back_end:?}: all came back");
        }
    }
}

#[test]
fn an_entry_whose_item_the_pool_no_longer_has_ends_and_that_is_said() {
    for back_end in BackendKind::ALL {
        let (old, new) = (program(NAT), program(&NAT.replace("1000..1009", "1001..1004")));
        let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
        at(running.as_mut(), SECOND, &[1, 2, 3]);
        let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], SECOND).expect("fits");
        assert_eq!((carried.tables, carried.ended), (vec![("out".into(), 2)], vec![("out".into(), 1)]));
        assert_eq!(items(next.as_mut()), [1001, 1002]);
        at(next.as_mut(), SECOND, &[1]);
        assert_eq!(items(next.as_mut()), [1001, 1002, 1003]);
    }
}

#[test]
fn items_of_entries_that_do_not_go_over_come_back_and_other_taken_ones_stay_taken() {
    for back_end in BackendKind::ALL {
        let old = program(NAT);
        let mut running = loaded(&old, back_end);
        at(running.as_mut(), SECOND, &[1, 2]);
        let mut next = loaded(&old, back_end);
        let given_up = ["out".to_string()];
        carry_over(running.as_mut(), &old, next.as_mut(), &old, &given_up, SECOND).expect("fits");
        at(next.as_mut(), SECOND, &[3]);
        assert_eq!(items(next.as_mut()), [1000]);
        // An item that a packet took and put nowhere stays taken.
        let taking = NAT.replace("match out[in_port as u16]", "if in_port == 4 { match take(numbers) { some _ => {}, none => {} } flood }\n        match out[in_port as u16]");
        let new = program(&taking);
        let (mut running, mut next) = (loaded(&new, back_end), loaded(&new, back_end));
        at(running.as_mut(), SECOND, &[4]);
        carry_over(running.as_mut(), &new, next.as_mut(), &new, &[], SECOND).expect("fits");
        at(next.as_mut(), SECOND, &[1]);
        assert_eq!(items(next.as_mut()), [1001]);
    }
}

#[test]
fn entries_of_the_text_and_from_outside_hold_their_items() {
    let text = NAT.replace("releases numbers }", "releases numbers  entries { 9 => 1000 } }");
    for back_end in BackendKind::ALL {
        let old = program(&text);
        let mut running = loaded(&old, back_end);
        running.insert(0, &Entry::exact(&[8], &[1001])).expect("room");
        at(running.as_mut(), SECOND, &[1]);
        assert_eq!(items(running.as_mut()), [1000, 1001, 1002]);
        // What came from outside does not go over, and what packets made stays.
        let mut next = loaded(&old, back_end);
        carry_over(running.as_mut(), &old, next.as_mut(), &old, &[], SECOND).expect("fits");
        assert_eq!(items(next.as_mut()), [1000, 1002]);
        at(next.as_mut(), SECOND, &[2, 3]);
        assert_eq!(items(next.as_mut()), [1000, 1001, 1002, 1003]);
    }
}

/// An Ethernet frame with a UDP datagram from a host inside.
fn datagram(host: u8, port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let header = [0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, host, 192, 0, 2, 9];
    frame.extend(header);
    let sum: u32 = header.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    frame.extend(port.to_be_bytes());
    frame.extend([0, 53, 0, 8, 0, 0]);
    frame
}

#[test]
fn with_nat44_a_second_host_does_not_get_the_port_of_the_first_after_a_reload() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs/nat44.rav");
    let text = std::fs::read_to_string(path).expect("is there");
    for back_end in BackendKind::ALL {
        for (from, to) in [("", ""), ("capacity 64k idle 5min", "capacity 65k idle 5min")] {
            let (old, new) = (program(&text), program(&text.replace(from, to)));
            let port = |backend: &mut dyn Backend, frame: Vec<u8>| {
                let mut memory = vec![0; 256];
                memory[128..128 + frame.len()].copy_from_slice(&frame);
                let mut batch = Batch::new();
                batch.headroom = 128;
                assert!(batch.push(128, frame.len() as u32, frame.len() as u32, 1, SECOND));
                backend.run(&mut memory, &mut batch, &mut exec::Outputs::default());
                let frame = batch.bytes(&memory, 0).expect("is there");
                let address: [u8; 4] = frame[26..30].try_into().expect("four bytes");
                (address, u16::from_be_bytes([frame[34], frame[35]]))
            };
            let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
            let first = port(running.as_mut(), datagram(1, 40000));
            carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], SECOND).expect("fits");
            assert_eq!(port(next.as_mut(), datagram(1, 40000)), first, "the first host keeps its own");
            assert_ne!(port(next.as_mut(), datagram(5, 40000)), first, "{back_end:?} {to}");
        }
    }
}

#[test]
fn prefixes_that_went_over_raise_the_event_of_the_new_program_when_they_end() {
    let text = |event: &str, expires: &str| {
        program(&format!(
            "event {event}(net: ip4, length: u8, what: u8) {{}}
            event other() {{}}
            table nets: lpm(ip4) -> u8 {{ capacity 8 age 10s {expires} }}
            start stage all() {{ raise other()  flood }}"
        ))
    };
    let entry = |octet: u128, length| Entry {
        key: vec![Match::Prefix { value: octet << 24, length }],
        value: vec![octet],
        priority: 0,
    };
    let (old, new) = (text("gone", "expires gone"), text("ended", "expires ended"));
    let silent = text("gone", "");
    for back_end in BackendKind::ALL {
        let run = |from: &Program, to: &Program| {
            let (mut running, mut next) = (loaded(from, back_end), loaded(to, back_end));
            running.learn(0, &entry(10, 8), 0).expect("room");
            running.learn_for(0, &entry(20, 9), 11_000_000_000, 1_000_000_000).expect("room");
            let now = 11_500_000_000;
            carry_over(running.as_mut(), from, next.as_mut(), to, &[], now).expect("fits");
            let (mut outputs, mut ends) = (exec::Outputs::default(), Vec::new());
            for half in 23..50 {
                next.advance(half * 500_000_000, &mut outputs);
                ends.push((half, next.entries(0).len()));
            }
            ends.dedup_by_key(|(_, held)| *held);
            let arguments: Vec<_> = outputs.arguments.chunks(3).map(<[u128]>::to_vec).collect();
            (ends, arguments)
        };
        // The first one ended before, and nobody had looked at it.
        let (ends, raised) = run(&old, &new);
        assert_eq!(ends, [(23, 1), (24, 0)], "{back_end:?}");
        assert_eq!(raised, [vec![10 << 24, 8, 10], vec![20 << 24, 9, 20]]);
        // From a table without the event entries are copied, as if they were made now.
        let (ends, raised) = run(&silent, &new);
        assert_eq!((ends.last(), raised.len()), (Some(&(43, 0)), 2), "{back_end:?}");
        assert_eq!(run(&new, &silent).1, Vec::<Vec<u128>>::new());
    }
}

#[test]
fn entries_that_went_over_raise_the_event_of_the_new_program_when_they_end() {
    let old = program(
        "table hosts: exact(u16) -> u8 { capacity 8 age 10s evict lru expires gone }
        event gone(who: u16, what: u8) {}
        start stage all() { learn hosts[1] = 2  flood }",
    );
    let renamed = "table before: exact(u8) { capacity 4 age 1s evict lru }
        event other() {}
        table hosts: exact(u16) -> u8 { capacity 8 age 10s evict lru expires ended }
        event ended(who: u16, what: u8) {}
        start stage all() { learn hosts[1] = 2  learn before[1]  raise other()  flood }";
    let silent = renamed.replace(" expires ended", "").replace("event ended(who: u16, what: u8) {}", "");
    for back_end in BackendKind::ALL {
        // The age of the new program, and when the entries of the times 0 and 1 s end by it.
        for (age, ends) in [(10, [10, 11]), (4, [4, 5]), (60, [60, 61])] {
            let new = program(&renamed.replace("age 10s", &format!("age {age}s")));
            let (mut running, mut next) = (loaded(&old, back_end), loaded(&new, back_end));
            running.learn(0, &Entry::exact(&[7], &[2]), 0).expect("room");
            running.learn(0, &Entry::exact(&[3], &[5]), 1_000_000_000).expect("room");
            let now = 2_000_000_000;
            let carried = carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], now).expect("fits");
            assert_eq!(carried.tables, [("hosts".to_string(), 2)]);
            let mut raised = Vec::new();
            for second in 2..70 {
                let mut outputs = exec::Outputs::default();
                next.advance(second * 1_000_000_000, &mut outputs);
                let of = |at: usize| &outputs.arguments[outputs.raised[at].first as usize..][..2];
                raised.extend((0..outputs.raised.len()).map(|at| (second, of(at).to_vec())));
            }
            assert_eq!(raised, [(ends[0], vec![7, 2]), (ends[1], vec![3, 5])], "age {age}");
            assert!(next.entries(1).is_empty());
        }
        // From a table without the event entries are copied, as if they were made now. To one they end alone.
        let quiet = program(&silent);
        let new = program(renamed);
        let (mut running, mut next) = (loaded(&quiet, back_end), loaded(&new, back_end));
        running.learn(1, &Entry::exact(&[7], &[2]), 0).expect("room");
        carry_over(running.as_mut(), &quiet, next.as_mut(), &new, &[], 2_000_000_000).expect("fits");
        let mut outputs = exec::Outputs::default();
        next.advance(11_999_999_999, &mut outputs);
        assert!(outputs.raised.is_empty());
        next.advance(12_000_000_000, &mut outputs);
        assert_eq!((outputs.raised.len(), next.entries(1).len()), (1, 0));
        let (mut running, mut next) = (loaded(&new, back_end), loaded(&quiet, back_end));
        running.learn(1, &Entry::exact(&[7], &[2]), 0).expect("room");
        carry_over(running.as_mut(), &new, next.as_mut(), &quiet, &[], 2_000_000_000).expect("fits");
        next.advance(9_999_999_999, &mut outputs);
        assert_eq!(next.entries(1).len(), 1);
        next.advance(10_000_000_000, &mut outputs);
        assert_eq!((outputs.raised.len(), next.entries(1).len()), (1, 0));
    }
}

#[test]
fn the_first_limit_of_a_policy_lets_its_table_begin_anew() {
    let text = "
        policy edge(dport: u16) {
            hook forward { group web default block }
            pass => flood
            block => drop no
            group web { pass dport 80 }
        }
        reason no \"a rule, or the default\"
        start stage all() { goto edge.forward(80) }";
    let limited = text.replace("{ pass dport 80 }", "{ limit 1/s burst 1 pass dport 80  block dport 81 }");
    for back_end in BackendKind::ALL {
        let (old, new) = (program(text), program(&limited));
        let mut running = loaded(&old, back_end);
        let mut next = loaded(&new, back_end);
        let carried =
            carry_over(running.as_mut(), &old, next.as_mut(), &new, &[], 0).expect("it begins anew");
        let anew: Vec<&str> = carried.anew.iter().map(|(_, name, ..)| name.as_str()).collect();
        assert_eq!(anew, ["edge.forward"]);
        assert_eq!(next.entries_held(0), new.tables[0].entries.len() as u64);
    }
}
