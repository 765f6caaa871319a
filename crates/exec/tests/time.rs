//! Events, timers, expiry and their bounds: what happens between packets, the same on all back ends.

mod program;

use exec::state::{MAX_QUEUED, MAX_RUNS, MAX_TIMERS};
use exec::{BackendKind, Outputs, load};
use ir::*;
use packet::Frames;
use program::*;

/// One packet a time, each a single byte.
fn frames(times: &[u64]) -> Frames {
    let mut frames = Frames::new();
    times.iter().for_each(|time| frames.push(&[1], 60, *time));
    frames
}

fn event(name: &str, handler: u32) -> Event {
    Event { name: name.to_string(), params: columns(&[8]), handler }
}

/// Raises an event with a mark.
fn raise(build: &mut Build, event: u32, mark: u128, delay: Option<u128>) {
    let mark = build.constant(8, mark);
    let delay = delay.map(|delay| build.constant(64, delay));
    build.none(Op::Raise { event, args: vec![mark], delay });
}

/// A handler of one 8-bit parameter.
fn handler(name: &str) -> (Build, Value) {
    let mut build = Build::new(name);
    let mark = build.param(BlockId(0), 8);
    (build, mark)
}

/// Event, time and mark of all that was raised.
fn marks(seen: &Seen) -> Vec<(u32, u64, u128)> {
    seen.raised.iter().map(|raised| (raised.0, raised.1, raised.4[0])).collect()
}

#[test]
fn events_run_in_the_order_of_their_times_then_of_their_creation() {
    let mut packet = Build::new("packet");
    raise(&mut packet, 0, 1, Some(20));
    raise(&mut packet, 0, 2, Some(10));
    raise(&mut packet, 0, 3, None);
    raise(&mut packet, 0, 4, Some(10));
    packet.end(Terminator::Flood);
    let (mut first, mark) = handler("first");
    first.none(Op::Raise { event: 1, args: vec![mark], delay: None });
    first.end(Terminator::Done);
    let (second, _) = handler("second");
    let mut program = program(vec![packet, first, second]);
    program.events = vec![event("first", 1), event("second", 2)];
    let seen = agree(&allowed(program), &frames(&[100, 115, 200]));
    let raised = |time| [(0, time, 1), (0, time, 2), (0, time, 3), (0, time, 4), (1, time, 3)];
    let mut expected = raised(100).to_vec();
    expected.extend([(1, 110, 2), (1, 110, 4)]);
    expected.extend(raised(115));
    expected.extend([(1, 120, 1), (1, 125, 2), (1, 125, 4), (1, 135, 1)]);
    expected.extend(raised(200));
    assert_eq!(marks(&seen), expected);
    assert_eq!(seen.raised[4].3, exec::Output::BETWEEN);
}

#[test]
fn periodic_handlers_start_one_period_after_the_first_packet() {
    let mut packet = Build::new("packet");
    packet.end(Terminator::Flood);
    let mut tick = Build::new("tick");
    raise(&mut tick, 0, 9, None);
    tick.end(Terminator::Done);
    let (handled, _) = handler("handled");
    let mut program = program(vec![packet, tick, handled]);
    program.events = vec![event("tick", 2)];
    program.every = vec![Every { period: 10, handler: 1 }];
    let seen = agree(&allowed(program.clone()), &frames(&[1005, 1014, 1015, 1040, 900]));
    assert_eq!(marks(&seen), [(0, 1015, 9), (0, 1025, 9), (0, 1035, 9)]);
    for back_end in BackendKind::ALL {
        let mut backend = load(&allowed(program.clone()), back_end, 4, 1).expect("the program is sound");
        let mut outputs = Outputs::default();
        backend.advance(5, &mut outputs);
        backend.advance(35, &mut outputs);
        let times: Vec<u64> = outputs.raised.iter().map(|raised| raised.time).collect();
        assert_eq!(times, [15, 25, 35]);
    }
}

#[test]
fn entries_expire_before_the_timer_of_the_same_time_and_the_packet() {
    let mut packet = Build::new("packet");
    let key = packet.constant(8, 5);
    let found = packet.one(Op::Lookup { table: 0, key: vec![key] }, 1);
    packet.one(Op::Learn { table: 0, key: vec![key], value: Vec::new() }, 1);
    raise(&mut packet, 0, 1, Some(50));
    packet.none(Op::Count { counter: 0, index: None });
    let (hit, miss) = (packet.block(), packet.block());
    packet.end(Terminator::Branch(found, to(hit), to(miss)));
    packet.at(hit);
    packet.end(Terminator::Flood);
    packet.at(miss);
    packet.end(Terminator::Drop(2));
    let (mut look, _) = handler("look");
    let key = look.constant(8, 5);
    let found = look.one(Op::Lookup { table: 0, key: vec![key] }, 1);
    let shown = look.one(Op::Resize(found), 8);
    look.none(Op::Raise { event: 1, args: vec![shown], delay: None });
    look.end(Terminator::Done);
    let (shown, _) = handler("shown");
    let mut program = program(vec![packet, look, shown]);
    program.events = vec![event("look", 1), event("shown", 2)];
    program.counters = vec![Counter { name: "packets".to_string(), size: 1, indexed: false }];
    let mut hosts = table(&[8], &[], 10, Eviction::Lru);
    hosts.age = Some(50);
    program.tables = vec![hosts];
    let seen = agree(&allowed(program), &frames(&[0, 49, 98, 148, 1000]));
    let kinds: Vec<u8> = seen.verdicts.iter().map(|verdict| verdict.kind() as u8).collect();
    assert_eq!(kinds, [5, 2, 2, 5, 5]);
    let looks: Vec<(u64, u128)> =
        marks(&seen).iter().filter(|mark| mark.0 == 1).map(|mark| (mark.1, mark.2)).collect();
    assert_eq!(looks, [(50, 1), (99, 1), (148, 0), (198, 0)]);
    assert_eq!(seen.counters, [[(5, 300)]]);
    assert_eq!((seen.tables[0].inserts, seen.tables[0].expired), (3, 2));
}

#[test]
fn an_event_that_raises_itself_is_bounded() {
    let mut packet = Build::new("packet");
    raise(&mut packet, 0, 1, None);
    packet.end(Terminator::Flood);
    let (mut again, mark) = handler("again");
    again.none(Op::Raise { event: 0, args: vec![mark], delay: None });
    again.none(Op::Raise { event: 0, args: vec![mark], delay: None });
    again.end(Terminator::Done);
    let mut program = program(vec![packet, again]);
    program.events = vec![event("again", 1)];
    let seen = agree(&allowed(program), &frames(&[1, 2]));
    let raises = 2 + 3 * 2 * u64::from(MAX_RUNS);
    assert_eq!(seen.events[0] + seen.lost, raises);
    assert_eq!(seen.events[0], 1 + u64::from(MAX_RUNS) * 3 + MAX_QUEUED as u64 - 1);
}

#[test]
fn pending_timers_are_bounded_and_late_periods_are_skipped() {
    let mut packet = Build::new("packet");
    let count = 4096;
    let (head, body, out) = (packet.block(), packet.block(), packet.block());
    packet.end(Terminator::Jump(to(head)));
    packet.at(head);
    packet.end(Terminator::Fuel { slot: 0, cap: count, ok: to(body), out: to(out) });
    packet.at(body);
    raise(&mut packet, 0, 1, Some(1 << 40));
    packet.end(Terminator::Jump(to(head)));
    packet.at(out);
    packet.end(Terminator::Flood);
    let (late, _) = handler("late");
    let mut tick = Build::new("tick");
    tick.none(Op::Count { counter: 0, index: None });
    tick.end(Terminator::Done);
    let mut program = program(vec![packet, late, tick]);
    program.events = vec![event("late", 1)];
    program.every = vec![Every { period: 1000, handler: 2 }];
    program.counters = vec![Counter { name: "ticks".to_string(), size: 1, indexed: false }];
    program.slots = 1;
    let times: Vec<u64> = (0..17).chain([1 << 39, 1 << 39, (1 << 39) + 1500]).collect();
    let seen = agree(&allowed(program), &frames(&times));
    assert_eq!(seen.events[0], MAX_TIMERS as u64);
    assert_eq!(seen.lost, 4 * u64::from(count));
    assert_eq!(
        seen.counters,
        [[(u64::from(MAX_RUNS) + 2, 0)]],
        "4,096 of the many that were due, then two in time"
    );
}
