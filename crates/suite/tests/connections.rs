//! The module `std.connections`, by the program `stateful`: TCP beside a slow model of it, over random
//! segments of a few connections.

mod segment;
mod tcp_model;

use engine::PacketBench;
use exec::BackendKind;
use packet::VerdictKind;
use segment::Segment;
use std::collections::BTreeMap;
use suite::corpus::shipped;
use suite::random::SuiteRandom;
use tcp_model::{Connection, Judgement, State};

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;

const SECOND: u64 = 1_000_000_000;

const FLAGS: [u8; 12] = [0x02, 0x02, 0x12, 0x12, 0x10, 0x10, 0x10, 0x18, 0x11, 0x14, 0x04, 0x30];

/// A frame of IPv4 with this segment from port `from` to port `to`.
fn frame(from_client: bool, client: u16, segment: &Segment) -> Vec<u8> {
    let (inside, outside) = (([10, 0, 0, 1], client), ([192, 0, 2, 9], 443));
    let (source, destination) = if from_client { (inside, outside) } else { (outside, inside) };
    let transport = segment.bytes(source.1, destination.1);
    let mut bytes = vec![0; 34];
    bytes[12..15].copy_from_slice(&[0x08, 0x00, 0x45]);
    bytes[16..18].copy_from_slice(&(20 + transport.len() as u16).to_be_bytes());
    bytes[22..24].copy_from_slice(&[64, 6]);
    bytes[26..30].copy_from_slice(&source.0);
    bytes[30..34].copy_from_slice(&destination.0);
    bytes.extend(transport);
    bytes
}

/// A segment that is near what the connection expects, or far from it.
fn segment(random: &mut SuiteRandom, connection: Option<&Connection>, from_client: bool) -> Segment {
    let flags = if random.one_in(40) { random.below(64) as u8 } else { *random.pick(&FLAGS) };
    let (own, others) = connection
        .map_or(([0x7fff_fff0, 0xffff_fff0, 3_000_000_000], [0xffff_fff0; 3]), |known| {
            known.numbers(from_client)
        });
    let mut near = |numbers: [u32; 3]| {
        let number = *random.pick(&numbers);
        match random.below(16) {
            0 => number.wrapping_add(1),
            1 => number.wrapping_sub(1),
            2 => number.wrapping_add(random.below(70_000) as u32),
            3 => number.wrapping_sub(random.below(70_000) as u32),
            4 => random.number() as u32,
            5 => 0,
            6 => number.wrapping_add(3_000_000_000),
            _ => number,
        }
    };
    let (seq, ack) = (near(own), near(others));
    let shift = (flags & 2 != 0 && !random.one_in(3)).then(|| random.below(16) as u8);
    let window = *random.pick(&[0, 1, 100, 1_000, 8_192, 65_535]);
    Segment { flags, seq, ack, window, shift, payload: *random.pick(&[0, 0, 0, 1, 5, 1_400]) }
}

/// The model's judgement, as the program's verdict: the port, or the reason.
fn modelled(
    known: &mut BTreeMap<u16, Connection>,
    client: u16,
    segment: &Segment,
    from_client: bool,
    spoofed: bool,
    now: u64,
) -> Result<u16, &'static str> {
    let Some(kind) = segment.kind() else { return Err("tcp_flags") };
    let to = if from_client { OUTSIDE } else { INSIDE };
    let judgement = match known.get_mut(&client).filter(|connection| connection.ends > now) {
        Some(connection) => connection.judge(segment, kind, from_client, spoofed, now),
        None if kind == tcp_model::SegmentKind::Syn => Judgement::Begins,
        None => Judgement::Drop("no_connection"),
    };
    match judgement {
        Judgement::Passes => Ok(to),
        Judgement::Drop(reason) => Err(reason),
        Judgement::Begins if from_client && !spoofed => {
            known.insert(client, Connection::begun(segment, now));
            Ok(to)
        }
        Judgement::Begins => Err("unasked"),
    }
}

/// Runs segments through the program and the model; the states that connections were in, each with how many
/// segments passed there.
fn agree(back_end: BackendKind, seed: u64, segments: usize) -> BTreeMap<String, usize> {
    let program = shipped("stateful.rav");
    let mut bench = PacketBench::new(&program, back_end, 2, seed).expect("it loads");
    let assured = program.tables.iter().position(|table| table.name == "tcp_assured").expect("it is there");
    let mut random = SuiteRandom::new(seed);
    let (mut known, mut seen, mut now) = (BTreeMap::new(), BTreeMap::new(), 0);
    for round in 0..segments {
        now += *random.pick(&[0, 1, 1, 1, 1_000, 1_000, SECOND / 10, SECOND]);
        if random.one_in(200) {
            now += *random.pick(&[10, 30, 60, 120, 121, 432_000]) * SECOND;
        }
        let (client, from_client) = (40_000 + random.below(3) as u16, random.one_in(2));
        let segment = segment(&mut random, known.get(&client), from_client);
        let before = known.get(&client).copied();
        // Somebody on the other side speaks for this end. A server that begins anew from inside would be
        // another connection, which the model does not have.
        let may_be_spoofed = before.is_some_and(|one| from_client || one.state != State::TimeWait);
        let spoofed = may_be_spoofed && before.is_some_and(|one| one.ends > now) && random.one_in(12);
        let wanted = modelled(&mut known, client, &segment, from_client, spoofed, now);
        let port = if from_client != spoofed { INSIDE } else { OUTSIDE };
        let verdict =
            bench.packet(port, &frame(from_client, client, &segment), now).verdict.expect("it has one");
        let found = match verdict.kind() {
            VerdictKind::Send => Ok(verdict.argument() as u16),
            _ => Err(program.reasons[verdict.argument() as usize].name.as_str()),
        };
        assert_eq!(found, wanted, "seed {seed}, segment {round}: {segment:?}\nof {before:?}");
        let live = |connection: &&Connection| connection.ends > now;
        let established = |connection: &&Connection| connection.state == State::Established;
        let count = known.values().filter(live).filter(established).count();
        let held = bench.backend().entries_held(assured as u32) as usize;
        assert_eq!(held, count, "seed {seed}, segment {round}: {segment:?}\nof {before:?}");
        if let (Ok(_), Some(connection)) = (wanted, known.get(&client)) {
            *seen.entry(format!("{:?}", connection.state)).or_default() += 1;
        }
    }
    seen
}

#[test]
fn tcp_is_followed_as_a_slow_model_of_it_follows_it() {
    for (back_end, seeds, segments) in
        [(BackendKind::Native, 40, 5_000), (BackendKind::Interpreter, 6, 4_000)]
    {
        let mut all: BTreeMap<String, usize> = BTreeMap::new();
        for seed in 0..seeds {
            for (state, count) in agree(back_end, seed, segments) {
                *all.entry(state).or_default() += count;
            }
        }
        assert_eq!(all.len(), 9, "{back_end:?}: not every state was seen: {all:?}");
        assert!(all.values().all(|&count| count >= 20), "{back_end:?}: {all:?}");
    }
}
