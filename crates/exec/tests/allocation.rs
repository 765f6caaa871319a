//! After warm-up no packet allocates: learning, hits, misses, copies, made packets, events and timers.

mod program;

use allocation_counter::measure;
use exec::{BackEnd, Outputs, load};
use lang::ir::*;
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
    packet.all(Op::Lookup { table: 0, key: vec![key] }, &[1, 16]);
    packet.none(Op::Copy(port));
    packet.none(Op::Emit { template: 0, values: vec![key], tail: Some(base), limit: None, port });
    packet.none(Op::Raise { event: 0, args: vec![key], delay: None });
    let delay = packet.constant(64, 500);
    packet.none(Op::Raise { event: 0, args: vec![key], delay: Some(delay) });
    packet.end(Terminator::Send(port));
    let mut handler = Build::new("handler");
    let key = handler.param(BlockId(0), 32);
    handler.none(Op::Remove { table: 0, key: vec![key] });
    let port = handler.constant(16, 1);
    handler.none(Op::Emit { template: 0, values: vec![key], tail: None, limit: None, port });
    handler.end(Terminator::Done);
    let mut program = program(vec![packet, handler]);
    let mut small = table(&[32], &[16], 30, Evict::Lru);
    small.age = Some(2000);
    let mut wide = table(&[64, 64, 64], &[16, 64], 30, Evict::Lru);
    wide.idle = Some(5000);
    program.tables = vec![small, wide];
    program.events = vec![Event { name: "event".to_string(), params: columns(&[32]), handler: 1 }];
    program.templates =
        vec![Template { bytes: vec![0; 60], holes: vec![Hole { bit: 9, width: 32 }], sums: Vec::new() }];
    let mut processor = load(&allowed(program), BackEnd::Native, 4, 1).expect("the program is sound");

    let (mut random, mut frames, mut outputs) = (Random(3), Frames::new(), Outputs::default());
    for _ in 0..256 {
        let key = random.below(100).to_be_bytes();
        frames.push(&[&key[4..], &key[4..], &[0; 52]].concat(), 60, 0);
    }
    let mut batch = Batch::new();
    let mut run = |round: u64| {
        frames.fill(&mut batch, 0..256);
        for i in 0..batch.len {
            (batch.port[i], batch.time[i]) = (i as u16 % 4 + 1, (round * 256 + i as u64) * 50);
        }
        outputs.clear();
        processor.run(frames.memory_mut(), &mut batch, &mut outputs);
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
    assert_eq!(warm.count_total, 0);
    assert_eq!(
        sent,
        40 * 256 * 4,
        "each packet makes a copy, a packet, and one more by each of its two events"
    );
    let tables = processor.tables();
    assert!(tables[0].inserts > 5000 && tables[1].evictions > 5000, "{tables:?}");
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
    let compiled = lang::pipeline::compile("p.rav", text, &|_| None, &lang::pipeline::Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let filled = || {
        let mut processor = load(&program, BackEnd::Native, 4, 1).expect("the program is sound");
        let fill = |key: &dyn Fn(u128) -> Vec<Match>, value: u128| -> Vec<Entry> {
            let entry = |number| Entry { key: key(number), value: vec![value], priority: 0 };
            (0..u128::from(MANY)).map(entry).collect()
        };
        let exact = Match::Exact;
        processor.replace(0, fill(&|number| vec![exact(number), Match::Any], 1)).expect("room");
        processor.replace(1, fill(&|number| vec![exact(number)], 1)).expect("room");
        processor.replace(2, fill(&|number| vec![exact(number)], 1)).expect("room");
        processor
    };
    let (mut running, mut next) = (filled(), filled());
    let made = Entry { key: vec![Match::Exact(77), Match::Exact(5)], value: vec![1], priority: 0 };
    running.learn(0, &made, 1).expect("room");
    let mut carried = None;
    let taking = measure(|| {
        let old: (&mut dyn exec::Processor, &Program) = (running.as_mut(), &program);
        let (told, exchanged) =
            exec::replace::take_over(old, (next.as_mut(), &program), &[], 1).expect("it is the same");
        exchanged.keep(running.as_mut(), next.as_mut());
        carried = Some(told);
    });
    let carried = carried.expect("it was told");
    assert_eq!(carried.tables, [("acl".into(), 1), ("routes".into(), 0), ("known".into(), 0)]);
    assert!(next.learned(0).contains(&made));
    assert!(taking.count_total < 1000, "{} allocations for {MANY} entries in each table", taking.count_total);
}
