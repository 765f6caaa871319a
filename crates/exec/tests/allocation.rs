//! After warm-up no packet allocates: learning, hits, misses, copies, made packets, events and timers.

mod program;

use allocation_counter::measure;
use exec::{Backend, BackendKind, Outputs, load};
use ir::*;
use packet::{Batch, Frames};
use program::*;

#[test]
fn no_packet_allocates_after_warm_up() {
    let mut packet = Build::new("packet");
    let base = packet.constant(32, 0);
    packet.need(base, 8);
    let key = packet.one(Op::Load { base, offset: 0, bytes: 4, proven: 8 }, 32);
    let wide = packet.one(Op::Load { base, offset: 0, bytes: 8, proven: 8 }, 64);
    let port = packet.one(Op::InPort, 16);
    packet.one(Op::Learn { table: 0, key: vec![key], value: vec![port] }, 1);
    packet.one(Op::Learn { table: 1, key: vec![wide, wide, wide], value: vec![port, wide] }, 1);
    packet.one(Op::Learn { table: 2, key: vec![key], value: vec![port] }, 1);
    packet.all(Op::Lookup { table: 0, key: vec![key] }, &[1, 16]);
    packet.none(Op::Copy(port));
    packet.none(Op::Emit { template: 0, values: vec![key], tail: Some(base), limit: None, port });
    packet.none(Op::Raise { event: 0, args: vec![key], delay: None });
    let delay = packet.constant(64, 300_000);
    packet.none(Op::Raise { event: 0, args: vec![key], delay: Some(delay) });
    packet.end(Terminator::Send(port));
    let mut handler = Build::new("handler");
    let key = handler.param(BlockId(0), 32);
    handler.none(Op::Remove { table: 0, key: vec![key] });
    let port = handler.constant(16, 1);
    handler.none(Op::Emit { template: 0, values: vec![key], tail: None, limit: None, port });
    handler.end(Terminator::Done);
    let mut ended = Build::new("ended");
    ended.param(BlockId(0), 32);
    ended.param(BlockId(0), 16);
    ended.end(Terminator::Done);
    let mut program = program(vec![packet, handler, ended]);
    let mut small = table(&[32], &[16], 30, Eviction::Lru);
    small.age = Some(1_200_000);
    let mut wide = table(&[64, 64, 64], &[16, 64], 30, Eviction::Lru);
    wide.idle = Some(3_000_000);
    // Some entries end by their time, and some have to make room before.
    let mut ending = table(&[32], &[16], 30, Eviction::Lru);
    (ending.age, ending.expires) = (Some(1_000_000), Some(1));
    program.tables = vec![small, wide, ending];
    program.events = vec![
        Event { name: "event".to_string(), params: columns(&[32]), handler: 1 },
        Event { name: "ended".to_string(), params: columns(&[32, 16]), handler: 2 },
    ];
    program.templates =
        vec![Template { bytes: vec![0; 60], holes: vec![Hole { bit: 9, width: 32 }], sums: Vec::new() }];
    let program = allowed(program);
    [BackendKind::Bytecode, BackendKind::Native].into_iter().for_each(|kind| runs_without(&program, kind));
}

/// Runs 256 packets: they come by all ports, each later than the one before, also than those of other rounds.
fn run_round(
    backend: &mut dyn Backend,
    frames: &mut Frames,
    batch: &mut Batch,
    outputs: &mut Outputs,
    round: u64,
) {
    frames.fill(batch, 0..256);
    for i in 0..batch.len {
        (batch.port[i], batch.time[i]) = (i as u16 % 4 + 1, (round * 256 + i as u64) * 30_000);
    }
    outputs.clear();
    backend.run(frames.memory_mut(), batch, outputs);
}

/// Runs the program of the test above: each of its packets leaves, and three more besides.
fn runs_without(program: &Program, kind: BackendKind) {
    let mut backend = load(program, kind, 4, 1).expect("the program is sound");
    let (mut random, mut frames, mut outputs) = (Random(3), Frames::new(), Outputs::default());
    for _ in 0..256 {
        let key = random.below(100).to_be_bytes();
        frames.push(&[&key[4..], &key[4..], &[0; 52]].concat(), 60, 0);
    }
    let mut batch = Batch::new();
    let mut run = |round: u64| {
        run_round(backend.as_mut(), &mut frames, &mut batch, &mut outputs, round);
        outputs.packets.len()
    };
    let warming = measure(|| {
        (0..20).for_each(|round| {
            run(round);
        });
    });
    assert!(warming.count_total > 0, "the counter counts");
    let mut sent = 0;
    let warm = measure(|| sent = (20..60).map(&mut run).sum());
    assert_eq!(warm.count_total, 0, "{kind:?}");
    assert_eq!(
        sent,
        40 * 256 * 4,
        "each packet makes a copy, a packet, and one more by each of its two events"
    );
    let tables = backend.tables();
    assert!(tables[0].inserts > 5000 && tables[1].evictions > 5000, "{tables:?}");
    assert!(tables[2].expired > 1000 && tables[2].evictions > 1000, "{tables:?}");
}

/// Each kind of memory that a packet may ask or change without an insertion into prefixes or rules.
#[test]
fn no_search_and_no_cell_allocates_after_warm_up() {
    let text = "
        meter rates[64]: packets { committed 1000 burst 100 excess 0 }
        register last[64]: u32
        counter seen[64]
        pool items: u32 { 0..63 }
        table held: exact(u32) -> u32 { capacity 32 age 1ms evict refuse releases items }
        table routes: lpm(u32) -> port { entries { 0/8 => 1, 64/26 => 2, 1024/22 => 3 } }
        table acl: rules(a: u32, b: u16) -> bool { entries { (64, _) => true, (_, 5) => false } }
        table words: patterns(bytes) -> u8 { entries { \"abc\" => 1, hex \"00 00 00\" => 2 } }
        start decoder all(p: four) {
            let n = length as% u6
            match rates[n] { _ => {} }
            set last[n] = length
            count seen[n]
            match take(items) { some item => { learn held[length] = item else { count seen[0] } } none => {} }
            match words[clip(payload, 1500)] { some which => { count seen[1] } none => {} }
            match (routes[length], acl[length, 5]) {
                (some to, some _) => send to
                _ => flood
            }
        }
        layout four { first: u32 }";
    let compiled =
        lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    for kind in [BackendKind::Bytecode, BackendKind::Native] {
        let mut backend = load(&program, kind, 4, 1).expect("the program is sound");
        let (mut frames, mut outputs, mut batch) = (Frames::new(), Outputs::default(), Batch::new());
        for number in 0..256_usize {
            frames.push(&b"xxxxabc\0\0\0".repeat(1 + number), 60 + number as u32, 0);
        }
        let mut run = |round: u64| {
            run_round(backend.as_mut(), &mut frames, &mut batch, &mut outputs, round);
        };
        (0..20).for_each(&mut run);
        let warm = measure(|| (20..60).for_each(&mut run));
        assert_eq!(warm.count_total, 0, "{kind:?}");
        let reports = backend.tables();
        assert!(reports[0].inserts > 1000, "{reports:?}");
        assert!(backend.counter(0).iter().filter(|(packets, _)| *packets > 0).count() > 30);
    }
}

/// What does not change its owner as it is would be copied entry by entry, each with allocations of its own.
#[test]
fn a_takeover_does_not_touch_what_packets_did_not_make() {
    const MANY: u32 = 5_000;
    let text = "
        table acl: rules(a: u32, b: u16) -> bool { capacity 10k age 1h entries { (1, _) => true } }
        table routes: lpm(u32) -> port { capacity 10k age 1h }
        table known: exact(u32) -> port { capacity 10k age 1h evict refuse }
        start stage all() {
            insert acl[length, 5] = true else { drop gone }
            insert routes[length / 24] = in_port else { drop gone }
            learn known[length] = in_port else { drop gone }
            match acl[length, 7] { some _ => flood, none => drop gone }
        }";
    let compiled =
        lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let filled = || {
        let mut backend = load(&program, BackendKind::Native, 4, 1).expect("the program is sound");
        let fill = |key: &dyn Fn(u128) -> Vec<Match>, value: u128| -> Vec<Entry> {
            let entry = |number| Entry { key: key(number), value: vec![value], priority: 0 };
            (0..u128::from(MANY)).map(entry).collect()
        };
        let exact = Match::Exact;
        backend.replace(0, fill(&|number| vec![exact(number), Match::Any], 1)).expect("room");
        backend.replace(1, fill(&|number| vec![exact(number)], 1)).expect("room");
        backend.replace(2, fill(&|number| vec![exact(number)], 1)).expect("room");
        backend
    };
    let (mut running, mut next) = (filled(), filled());
    let made = Entry { key: vec![Match::Exact(77), Match::Exact(5)], value: vec![1], priority: 0 };
    running.learn(0, &made, 1).expect("room");
    let mut carried = None;
    let taking = measure(|| {
        let (told, exchanged) =
            exec::replace::take_over(running.as_mut(), &program, next.as_mut(), &program, &[], 1)
                .expect("it is the same");
        exchanged.keep(running.as_mut(), next.as_mut());
        carried = Some(told);
    });
    let carried = carried.expect("it was told");
    assert_eq!(carried.tables, [("acl".into(), 1), ("routes".into(), 0), ("known".into(), 0)]);
    assert!(next.learned(0).contains(&made));
    assert!(taking.count_total < 1000, "{} allocations for {MANY} entries in each table", taking.count_total);
}

/// What a takeover allocates, times and bytes, after so many packets that each left something everywhere.
fn taken_over_after(packets: u32, old: &str, new: &str) -> (u64, u64) {
    let compiled = |text: &str| {
        let compiled =
            lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::CompileOptions::default());
        compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
    };
    let (old_program, new_program) = (compiled(old), compiled(new));
    let loaded = |program: &Program| load(program, BackendKind::Native, 4, 1).expect("the program is sound");
    let (mut old, mut new) = (loaded(&old_program), loaded(&new_program));
    let (mut memory, mut outputs, mut flooded) = ([0; 64], Outputs::default(), 0);
    for first in (0..packets).step_by(256) {
        let mut batch = Batch::new();
        (first..packets.min(first + 256)).for_each(|number| assert!(batch.push(0, 64, number, 1, 1)));
        outputs.clear();
        old.run(&mut memory, &mut batch, &mut outputs);
        flooded += batch.verdicts().iter().filter(|one| one.kind() == packet::VerdictKind::Flood).count();
    }
    assert_eq!(flooded, packets as usize, "each found room everywhere");
    let mut given_up = None;
    let taking = measure(|| {
        let taken = exec::replace::take_over(old.as_mut(), &old_program, new.as_mut(), &new_program, &[], 1);
        let (carried, exchanged) = taken.expect("fits");
        assert!(carried.tables.iter().all(|(_, entries)| *entries == u64::from(packets)), "{carried:?}");
        given_up = Some(exchanged.keep(old.as_mut(), new.as_mut()));
    });
    assert_eq!(given_up, Some(0));
    (taking.count_total, taking.bytes_total)
}

#[test]
fn a_takeover_does_the_same_whatever_packets_made() {
    const TEXT: &str = "
        meter rates[4096]: packets { committed 1 burst 2 excess 0 }
        register last[4096]: u32
        counter seen[4096]
        pool items: u32 { 0..4095 }
        group members[4096]: u32 { buckets 8 capacity 2 }
        table hosts: exact(u32) -> port { capacity 4096 idle 60s evict lru }
        table wide: exact(u128, u128) -> u128 { capacity 4096 age 60s evict refuse }
        table held: exact(u32) -> u32 { capacity 4096 idle 60s age 1h evict refuse releases items }
        table routes: lpm(u32) -> port { capacity 4096 age 1h }
        table acl: rules(a: u32, b: u16) -> bool { capacity 4096 age 1h }
        event late(which: u12) { set last[which] = 1 }
        start stage all() {
            let n = length as% u12
            match rates[n] { _ => {} }
            set last[n] = n as u32
            count seen[n]
            learn hosts[n as u32] = in_port
            learn wide[n as u128, 1] = 7 else { drop full }
            match take(items) {
                some item => { learn held[n as u32] = item else { drop full } }
                none => { drop full }
            }
            insert members[n, n as u32] else { drop full }
            insert routes[n as u32 / 32] = in_port else { drop full }
            insert acl[n as u32, 5] = true else { drop full }
            after 10s raise late(n)
            flood
        }";
    let other_lives = TEXT.replace("capacity 4096 idle 60s evict", "capacity 99999 idle 30s evict");
    let other_lives = other_lives.replace("capacity 4096 age 60s", "capacity 4097 age 90s");
    let other_lives = other_lives.replace("idle 60s age 1h", "idle 50s age 2h");
    let further =
        "table first: exact(u8) { entries { 1 } }\n        pool others: u8 { 1..5 }\n        table hosts";
    let other_place = TEXT
        .replace("        table hosts", further)
        .replace("        pool items", "        pool before: u8 { 1..2 }\n        pool items");
    for (what, new) in [("alike", TEXT), ("other lives", &other_lives), ("other numbers", &other_place)] {
        let (few, many) = (taken_over_after(100, TEXT, new), taken_over_after(4_000, TEXT, new));
        assert_eq!(few.0, many.0, "{what}: allocations");
        // Room for entries that will move is asked for at once, and none of it is written.
        let room = 2 * 4_000 * 16 * if what == "other lives" { 3 } else { 0 };
        assert!(many.1 <= few.1 + room, "{what}: {few:?}, {many:?}");
    }
}

#[test]
fn programs_that_take_over_one_after_the_other_find_entries_where_they_belong() {
    let text = "
        table hosts: exact(u32) -> port { capacity 4096 idle 1h evict lru }
        start stage all() { learn hosts[length] = in_port  flood }";
    let larger = text.replace("4096", "16384");
    let programs = [text, &larger].map(|text| {
        let compiled =
            lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::CompileOptions::default());
        compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics))
    });
    let loaded =
        |number: usize| load(&programs[number % 2], BackendKind::Native, 4, 1).expect("the program is sound");
    for waits in [true, false] {
        let (mut running, mut outputs) = (loaded(0), Outputs::default());
        (0..4000).for_each(|key| running.learn(0, &Entry::exact(&[key], &[1]), 1).expect("room"));
        let mut most = 0;
        for number in 1..10_usize {
            let mut next = loaded(number);
            let taking = measure(|| {
                let (old, new) = (&programs[(number - 1) % 2], &programs[number % 2]);
                let taken = exec::replace::take_over(running.as_mut(), old, next.as_mut(), new, &[], 1);
                let _ = taken.expect("fits").1.keep(running.as_mut(), next.as_mut());
            });
            running = next;
            most = most.max(taking.count_total);
            // A few thousand entries move within a few milliseconds without packets, and as many packets that
            // find what has moved already.
            if waits {
                (0..20).for_each(|time| {
                    running.advance((number as u64 * 1000 + time) * 1_000_000, &mut outputs)
                });
            } else {
                let mut memory = [0; 64];
                for time in 0..10 {
                    let mut batch = Batch::new();
                    let begin = (number as u64 * 1000 + time * 10) * 1_000_000;
                    (0..256).for_each(|packet| assert!(batch.push(0, 64, 5, 1, begin + packet * 20_000)));
                    running.run(&mut memory, &mut batch, &mut outputs);
                }
            }
        }
        assert_eq!(running.entries(0).len(), 4000);
        assert!(most < 100, "{most} allocations: entries were copied");
    }
}
