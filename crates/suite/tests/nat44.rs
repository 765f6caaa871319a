//! The program `nat44`, judged by what a translation must keep: packets are those that came in but for one
//! address, port and their checksums; answers come back as they were sent; mappings are one to one, lie in
//! their host's part of the pool and last as long as their host keeps them; and nobody takes what belongs to
//! others.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/`; without it the captures are left out.

mod ends;

use captures::Capture;
use ends::{End, Ends, ICMP, TCP, UDP, ends, number, place, put, rewritten, valid, without_wrong};
use engine::{PacketBench, PacketOutcome};
use etherparse::PacketBuilder;
use exec::BackendKind;
use ir::{Match, Program};
use lang::pipeline::Decode;
use packet::VerdictKind;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::path::PathBuf;
use suite::corpus::{compile_file, root};
use suite::random::SuiteRandom;

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;

const SECOND: u64 = 1_000_000_000;

/// Ports of TCP and of UDP that a host has, and identifiers of ICMP.
const PORTS_OF_ONE: u32 = 1_008;
const IDENTIFIERS_OF_ONE: u32 = 1_024;
/// What the end inside of a made connection sends, and the end outside.
const NUMBERS: [u32; 2] = [70_000, 90_000];

/// Flags of TCP in its fourteenth byte.
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

fn program() -> Program {
    let compiled = compile_file(&root().join("programs/nat44.rav"), Decode::Lazy).expect("nat44 can be read");
    compiled.program.expect("nat44 compiles")
}

/// What was found out about a mapping.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    outside: End,
    /// When its host sent the last packet that renews it.
    used: u64,
}

/// The translation from outside of it.
struct Judge<'a> {
    bench: PacketBench<'a>,
    program: &'a Program,
    mappings: HashMap<(u8, End), Mapping>,
    /// Who held an address and port last.
    holders: HashMap<(u8, End), End>,
    now: u64,
    sent: u64,
    answered: u64,
    gone: u64,
}

/// Whether an end outside lies in the part of a host.
fn is_part(proto: u8, host: [u8; 4], outside: End) -> bool {
    let (base, size, below) =
        if proto == ICMP { (65_536, IDENTIFIERS_OF_ONE, 0) } else { (64_512, PORTS_OF_ONE, 1_024) };
    let [198, 51, 100, last @ 4..=7] = outside.0 else { return false };
    let place = u32::from(last - 4) * base + u32::from(outside.1).wrapping_sub(below);
    u32::from(outside.1) >= below && place / size == u32::from(host[3])
}

/// The place of a port or identifier where all of its host's part is free.
fn preferred(proto: u8, (host, port): End) -> u16 {
    let (size, first) = if proto == ICMP { (IDENTIFIERS_OF_ONE, 0) } else { (PORTS_OF_ONE, 1_024) };
    (first + u32::from(host[3] % 64) * size + u32::from(port) % size) as u16
}

/// How long a mapping lasts without packets from its host, at least and at most. One of TCP may open for four
/// minutes, be connected by an answer, and close for four minutes by a reset of its other end.
fn lasts(proto: u8) -> (u64, u64) {
    match proto {
        TCP => (240 * SECOND, (240 + 7_440 + 240) * SECOND),
        UDP => (300 * SECOND, 300 * SECOND),
        _ => (60 * SECOND, 60 * SECOND),
    }
}

impl<'a> Judge<'a> {
    fn new(program: &'a Program, back_end: BackendKind) -> Judge<'a> {
        let bench = PacketBench::new(program, back_end, 2, 0).expect("it loads");
        Judge {
            bench,
            program,
            mappings: HashMap::new(),
            holders: HashMap::new(),
            now: 0,
            sent: 0,
            answered: 0,
            gone: 0,
        }
    }

    fn reason(&self, outcome: &PacketOutcome) -> Option<&str> {
        let verdict = outcome.verdict.expect("a packet has a verdict");
        let reason = (verdict.kind() == VerdictKind::Drop).then(|| verdict.argument() as usize)?;
        self.program.reasons.get(reason).map(|reason| reason.name.as_str())
    }

    fn run(&mut self, port: u16, frame: &[u8]) -> PacketOutcome {
        self.bench.packet(port, frame, self.now)
    }

    /// How long the host has not used the mapping of an end; none if there never was one.
    fn idle(&self, proto: u8, inside: End) -> Option<u64> {
        self.mappings.get(&(proto, inside)).map(|mapping| self.now - mapping.used)
    }

    /// A packet from inside.
    fn leaves(&mut self, frame: &[u8], ends: Ends) {
        let Ends { proto, src, .. } = ends;
        let outcome = self.run(INSIDE, frame);
        let idle = self.idle(proto, src);
        let (least, most) = lasts(proto);
        if let Some(reason) = self.reason(&outcome) {
            let reset = proto == TCP && ends.kind & RST != 0 && idle.is_none_or(|idle| idle >= least);
            assert!(reset && reason == "no_mapping", "{ends:?} was dropped: {reason}");
            return;
        }
        let reset = proto == TCP && ends.kind & RST != 0;
        assert!(!reset || idle.is_some_and(|idle| idle < most), "a reset makes no mapping");
        let [(OUTSIDE, left)] = &outcome.left[..] else { panic!("one packet leaves: {outcome:?}") };
        let after = ends::ends(left).expect("it is what it was");
        assert!(is_part(proto, src.0, after.src), "{src:?} is {:?}", after.src);
        let good = valid(frame);
        assert_eq!(valid(left), good, "right checksums stay right, wrong ones wrong: {ends:?}");
        let back = rewritten(left, Some(src), None);
        assert_eq!(without_wrong(&back, good), without_wrong(frame, good), "nothing else changes");
        if let (Some(known), Some(idle)) = (self.mappings.get(&(proto, src)), idle) {
            assert!(
                known.outside == after.src || idle >= least,
                "{ends:?} was {:?}, is {:?}",
                known.outside,
                after.src
            );
        }
        if let Some(holder) = self.holders.insert((proto, after.src), src).filter(|holder| *holder != src) {
            let idle = self.idle(proto, holder).expect("a holder has a mapping");
            let other = self.mappings[&(proto, holder)].outside != after.src;
            assert!(other || idle >= least, "{holder:?} and {src:?} are both {:?}", after.src);
        }
        // A reset renews nothing.
        let used = self.mappings.get(&(proto, src)).filter(|_| reset).map_or(self.now, |known| known.used);
        self.mappings.insert((proto, src), Mapping { outside: after.src, used });
        self.sent += 1;
    }

    /// A packet to an end inside, as it would come if nothing was translated.
    fn returns(&mut self, frame: &[u8], ends: Ends) {
        let Ends { proto, dst, .. } = ends;
        let Some(mapping) = self.mappings.get(&(proto, dst)).copied() else { return };
        let holder = self.holders[&(proto, mapping.outside)];
        let idle = self.now - mapping.used;
        let (least, most) = lasts(proto);
        let asked = rewritten(frame, None, Some(mapping.outside));
        let outcome = self.run(OUTSIDE, &asked);
        if let Some(reason) = self.reason(&outcome) {
            assert!(
                reason == "no_mapping" && idle >= least,
                "{ends:?} was dropped after {idle} ns: {reason}"
            );
            self.gone += 1;
            return;
        }
        if holder != dst {
            // It went to whoever has the address and port now.
            return;
        }
        assert!(idle < most, "{ends:?} came through after {idle} ns");
        let [(INSIDE, left)] = &outcome.left[..] else { panic!("one packet leaves: {outcome:?}") };
        let good = valid(frame);
        assert_eq!(valid(left), valid(&asked), "right checksums stay right, wrong ones wrong: {ends:?}");
        assert_eq!(without_wrong(left, good), without_wrong(frame, good), "the answer is what was sent");
        self.answered += 1;
    }

    fn all(&self, name: &str) -> Vec<ir::Entry> {
        let table = self.program.tables.iter().position(|table| table.name == name).expect("it is declared");
        self.bench.backend().entries(table as u32).into_iter().map(|(entry, _)| entry).collect()
    }

    /// How many entries a table has.
    fn entries(&self, name: &str) -> usize {
        self.all(name).len()
    }

    /// Entries of a table: the first two parts of the key and of the value.
    fn pairs(&self, name: &str) -> BTreeMap<[u128; 2], [u128; 2]> {
        let exact = |part: &Match| match part {
            Match::Exact(value) => *value,
            other => panic!("{other:?} in an exact table"),
        };
        let pair = |entry: ir::Entry| {
            ([exact(&entry.key[0]), exact(&entry.key[1])], [entry.value[0], entry.value[1]])
        };
        self.all(name).into_iter().map(pair).collect()
    }

    /// Each mapping stands in both tables of its protocol, and no two share an address and port.
    fn one_to_one(&self) {
        let mut held = Vec::new();
        for (out, inward) in
            [("udp_out", "udp_in"), ("icmp_out", "icmp_in"), ("tcp_out", "tcp_in"), ("young_out", "young_in")]
        {
            let (out, inward) = (self.pairs(out), self.pairs(inward));
            let turned: BTreeMap<_, _> = inward.iter().map(|(key, value)| (*value, *key)).collect();
            assert_eq!(turned, out);
            assert_eq!(turned.len(), inward.len());
            held.push(inward);
        }
        assert!(held[2].keys().all(|end| !held[3].contains_key(end)), "a connection is in one state");
    }
}

/// A packet between these ends.
fn frame(random: &mut SuiteRandom, proto: u8, from: End, to: End, flags: u8) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(from.0, to.0, 64);
    let payload: Vec<u8> = (0..random.below(40)).map(|_| random.number() as u8).collect();
    let mut frame = Vec::new();
    let written = match proto {
        TCP => {
            // Segments follow on each other, but for some of strangers.
            let [mut sent, mut acknowledged] =
                if from.0[0] == 10 { NUMBERS } else { [NUMBERS[1], NUMBERS[0] + 1] };
            if random.one_in(8) {
                (sent, acknowledged) = (random.number() as u32, random.number() as u32);
            }
            let mut step = builder.tcp(from.1, to.1, sent, 1_000);
            if flags & SYN != 0 {
                step = step.syn();
            }
            if flags & ACK != 0 {
                step = step.ack(acknowledged);
            }
            if flags & RST != 0 {
                step = step.rst();
            }
            if flags & FIN != 0 {
                step = step.fin();
            }
            step.write(&mut frame, &payload)
        }
        UDP => builder.udp(from.1, to.1).write(&mut frame, &payload),
        _ if flags == 0 => builder.icmpv4_echo_request(from.1, 7).write(&mut frame, &payload),
        _ => builder.icmpv4_echo_reply(to.1, 7).write(&mut frame, &payload),
    };
    written.expect("memory");
    // Sometimes without a checksum, sometimes with a wrong one.
    if proto == UDP && random.one_in(8) {
        put(&mut frame, 40, 0);
    } else if random.one_in(10) {
        let place = place(&frame);
        let wrong = number(&frame, place) ^ 0x0101;
        put(&mut frame, place, wrong);
    }
    frame
}

/// Random packets out and back; `pause` lets time pass before each.
fn traffic(
    judge: &mut Judge<'_>,
    random: &mut SuiteRandom,
    packets: u32,
    pause: impl Fn(&mut SuiteRandom) -> u64,
) {
    for _ in 0..packets {
        judge.now += pause(random);
        let proto = *random.pick(&[TCP, TCP, UDP, ICMP]);
        let inside = ([10, 0, 0, random.between(1, 6) as u8], *random.pick(&PORTS));
        let outside = ([192, 0, 2, random.between(1, 3) as u8], *random.pick(&[53, 443, inside.1]));
        let leaves = random.one_in(2);
        let flags = match proto {
            TCP => *random.pick(&[SYN, ACK, ACK, ACK | 8, ACK | FIN, ACK | SYN, RST]),
            _ => u8::from(!leaves),
        };
        if leaves {
            let frame = frame(random, proto, inside, outside, flags);
            judge.leaves(&frame, ends(&frame).expect("it is sound"));
        } else {
            let frame = frame(random, proto, outside, inside, flags);
            judge.returns(&frame, ends(&frame).expect("it is sound"));
        }
        if random.one_in(200) {
            judge.one_to_one();
        }
    }
    judge.one_to_one();
}

const PORTS: [u16; 6] = [0, 53, 1_024, 2_000, 2_001, 65_535];

/// When nothing is sent any more, every table gets empty and every item is free again, so a host gets the
/// ports that it has.
fn all_is_given_back(judge: &mut Judge<'_>, random: &mut SuiteRandom) {
    judge.now += 8_000 * SECOND;
    judge.bench.advance(judge.now);
    for table in ["udp_out", "udp_in", "icmp_out", "icmp_in", "tcp_out", "tcp_in", "young_out", "young_in"] {
        assert_eq!(judge.entries(table), 0, "{table}");
    }
    assert_eq!(judge.entries("spare"), 0);
    for host in 1..=6 {
        for proto in [TCP, UDP, ICMP] {
            for port in PORTS {
                let inside = ([10, 0, 0, host], port);
                let flags = if proto == TCP { SYN } else { 0 };
                let frame = frame(random, proto, inside, ([192, 0, 2, 1], 53), flags);
                judge.leaves(&frame, ends(&frame).expect("it is sound"));
                assert_eq!(
                    judge.mappings[&(proto, inside)].outside.1,
                    preferred(proto, inside),
                    "{proto} {inside:?}"
                );
                judge.now += 8_000 * SECOND;
            }
        }
    }
}

#[test]
fn made_traffic_goes_out_and_comes_back() {
    let program = program();
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(44);
        let mut judge = Judge::new(&program, back_end);
        traffic(&mut judge, &mut random, 6_000, |random| match random.below(1_200) {
            0 => random.below(8_000) * SECOND,
            1..=20 => random.below(330) * SECOND,
            _ => random.below(SECOND),
        });
        let Judge { sent, answered, gone, .. } = judge;
        assert!(sent > 2_000 && answered > 800 && gone > 100, "{sent} out, {answered} back, {gone} gone");
        all_is_given_back(&mut judge, &mut random);
    }
}

/// Pauses that only connections last over.
#[test]
fn slow_connections_are_renewed_by_packets_from_inside() {
    let program = program();
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(45);
        let mut judge = Judge::new(&program, back_end);
        traffic(&mut judge, &mut random, 4_000, |random| match random.below(20) {
            0 => random.below(4_000) * SECOND,
            _ => random.below(SECOND),
        });
        let Judge { sent, answered, gone, .. } = judge;
        assert!(sent > 1_000 && answered > 100 && gone > 100, "{sent} out, {answered} back, {gone} gone");
        all_is_given_back(&mut judge, &mut random);
    }
}

#[test]
fn real_flows_go_out_and_come_back() {
    let Some(data) = std::env::var_os("RAVELIN_DATA").map(PathBuf::from) else {
        println!("RAVELIN_DATA names no folder of captures: nothing was run");
        return;
    };
    let program = program();
    for name in ["s1like.pcap.zst", "4sics-151020-first150k.pcap.zst"] {
        let path = data.join("captures").join(name).display().to_string();
        let mut capture = Capture::open(ports::capture_in::open(&path).expect("it can be opened"))
            .expect("it is a capture");
        let mut judge = Judge::new(&program, BackendKind::Native);
        // Who sent the first packet of a flow is inside, and gets an address there.
        let mut inside: HashMap<(u8, End, End), bool> = HashMap::new();
        let mut hosts: HashMap<[u8; 4], u8> = HashMap::new();
        let mut others = 0;
        while let Some(record) = capture.next().expect("it is whole") {
            judge.now = judge.now.max(record.time_ns);
            let found = ends(record.data).filter(|found| {
                [found.src.0, found.dst.0].iter().all(|[a, b, c, _]| {
                    (1..224).contains(a)
                        && *a != 127
                        && (*a, *b) != (169, 254)
                        && (*a, *b, *c) != (10, 0, 0)
                        && (*a, *b, *c) != (198, 51, 100)
                })
            });
            let named = found.and_then(|found| {
                let Ends { proto, src, dst, kind } = found;
                let leaves = if proto == ICMP {
                    kind == 8
                } else {
                    inside.entry((proto, dst, src)).or_insert(false);
                    *inside.entry((proto, src, dst)).or_insert(true)
                };
                let next = u8::try_from(hosts.len() + 1).ok().filter(|next| *next < 255);
                let host = if leaves { src } else { dst };
                let host = match (hosts.get(&host.0), next) {
                    (Some(known), _) => *known,
                    (None, Some(next)) => *hosts.entry(host.0).or_insert(next),
                    (None, None) => return None,
                };
                Some((found, leaves, [10, 0, 0, host]))
            });
            let Some((found, leaves, host)) = named else {
                // Whatever it is, it is accounted for.
                let outcome = judge.run(INSIDE, record.data);
                assert_ne!(outcome.verdict.expect("a verdict").kind(), VerdictKind::Pending);
                others += 1;
                continue;
            };
            if leaves {
                let frame = rewritten(record.data, Some((host, found.src.1)), None);
                judge.leaves(&frame, ends(&frame).expect("it is sound"));
            } else {
                let frame = rewritten(record.data, None, Some((host, found.dst.1)));
                judge.returns(&frame, ends(&frame).expect("it is sound"));
            }
        }
        judge.one_to_one();
        println!(
            "{name}: {} out, {} back, {} after their time, {others} others",
            judge.sent, judge.answered, judge.gone
        );
        assert!(judge.sent > 3_000 && judge.answered > 3_000, "{} out, {} back", judge.sent, judge.answered);
    }
}

/// What a host that opens as many mappings as it can has of a protocol.
struct Opened {
    /// Packets that left, and that were dropped since all of the part was in use.
    left: u32,
    quota: u32,
    outside: HashSet<End>,
}

/// A host sends a first packet from so many of its ports; whoever was asked answers, or not.
fn open(judge: &mut Judge<'_>, proto: u8, host: [u8; 4], ports: Range<u16>, answered: bool) -> Opened {
    let mut random = SuiteRandom::new(9);
    let mut opened = Opened { left: 0, quota: 0, outside: HashSet::new() };
    for port in ports {
        judge.now += 1_000;
        let (inside, server) = ((host, port), ([192, 0, 2, 1], 53));
        let flags = if proto == TCP { SYN } else { 0 };
        let outcome = judge.run(INSIDE, &sound(&mut random, proto, inside, server, flags));
        if let Some(reason) = judge.reason(&outcome) {
            assert_eq!(reason, "quota");
            opened.quota += 1;
            continue;
        }
        let [(OUTSIDE, left)] = &outcome.left[..] else { panic!("one packet leaves: {outcome:?}") };
        let outside = ends::ends(left).expect("it is sound").src;
        assert!(is_part(proto, host, outside), "{proto}: {host:?} is {outside:?}");
        opened.left += 1;
        opened.outside.insert(outside);
        if answered {
            let flags = if proto == TCP { SYN | ACK } else { 1 };
            let outcome = judge.run(OUTSIDE, &sound(&mut random, proto, server, outside, flags));
            assert_eq!(judge.reason(&outcome), None);
        }
    }
    opened
}

/// A packet whose numbers follow on those of its other end.
fn sound(random: &mut SuiteRandom, proto: u8, from: End, to: End, flags: u8) -> Vec<u8> {
    loop {
        let frame = frame(random, proto, from, to, flags);
        let at = ends::transport(&frame);
        let first = |at: usize| u32::from_be_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        if proto != TCP || NUMBERS.contains(&first(at + 4)) {
            return frame;
        }
    }
}

const TABLES: [(u8, u32, &[&str]); 3] = [
    (TCP, PORTS_OF_ONE, &["tcp_out", "young_out"]),
    (UDP, PORTS_OF_ONE, &["udp_out"]),
    (ICMP, IDENTIFIERS_OF_ONE, &["icmp_out"]),
];

#[test]
fn a_host_that_opens_as_many_as_it_can_takes_no_more_than_its_part() {
    let program = program();
    for back_end in BackendKind::ALL {
        for (proto, size, tables) in TABLES {
            let mut judge = Judge::new(&program, back_end);
            let held = |judge: &Judge<'_>| tables.iter().map(|table| judge.entries(table)).sum::<usize>();
            // Nobody answers: what is new takes the place of what is old, and nothing of anybody else.
            let opened = open(&mut judge, proto, [10, 0, 0, 9], 1..4_001, false);
            assert_eq!((opened.left, opened.quota), (4_000, 0), "{proto}");
            assert_eq!((opened.outside.len(), held(&judge)), (size as usize, size as usize), "{proto}");
            let other = open(&mut judge, proto, [10, 0, 0, 10], 1..1_001, true);
            assert_eq!((other.left, other.quota), (1_000, 0), "{proto}");
            assert_eq!(held(&judge), size as usize + 1_000, "{proto}");
            // With everything answered nothing gives way, and the rest is dropped.
            let opened = open(&mut judge, proto, [10, 0, 0, 9], 10_001..14_001, true);
            assert_eq!((opened.left, opened.quota), (size, 4_000 - size), "{proto}");
            assert_eq!(held(&judge), size as usize + 1_000, "{proto}");
            let third = open(&mut judge, proto, [10, 0, 0, 200], 1..(size as u16 + 1), true);
            assert_eq!((third.left, third.quota), (size, 0), "{proto}");
            judge.one_to_one();
        }
    }
}

/// A packet from outside to every item of a part: such as find a mapping pass. Says how many do.
fn outsiders(
    judge: &mut Judge<'_>,
    proto: u8,
    outside: &HashSet<End>,
    packet: impl Fn(End) -> Vec<u8>,
) -> usize {
    let passed = |end: &&End| {
        let outcome = judge.run(OUTSIDE, &packet(**end));
        assert!(matches!(judge.reason(&outcome), None | Some("no_mapping")), "{proto}: {outcome:?}");
        judge.reason(&outcome).is_none()
    };
    outside.iter().filter(passed).count()
}

/// A packet of somebody whom nobody has asked.
fn stranger(proto: u8, end: End) -> Vec<u8> {
    sound(&mut SuiteRandom::new(4), proto, ([203, 0, 113, 9], 9), end, if proto == TCP { ACK } else { 1 })
}

/// One more packet of whom [`open`] asked.
fn asked(proto: u8, end: End) -> Vec<u8> {
    sound(&mut SuiteRandom::new(5), proto, ([192, 0, 2, 1], 53), end, if proto == TCP { ACK } else { 1 })
}

/// What a host sends to a stranger whose packet it does not want: a reset, or an error.
fn refusal(proto: u8, inside: End) -> Vec<u8> {
    let stranger = ([203, 0, 113, 9], 9);
    if proto == TCP {
        return sound(&mut SuiteRandom::new(6), TCP, inside, stranger, RST | ACK);
    }
    let quoted = sound(&mut SuiteRandom::new(6), proto, stranger, inside, 0);
    let mut error = Vec::new();
    let unreachable =
        etherparse::Icmpv4Type::DestinationUnreachable(etherparse::icmpv4::DestUnreachableHeader::Port);
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(inside.0, stranger.0, 64)
        .icmpv4(unreachable)
        .write(&mut error, &quoted[14..])
        .expect("memory");
    error
}

/// What a router says of a packet that was sent from an end outside: it did not arrive.
fn not_arrived(proto: u8, from: End) -> Vec<u8> {
    let quoted = sound(
        &mut SuiteRandom::new(3),
        proto,
        from,
        ([192, 0, 2, 1], 53),
        if proto == TCP { SYN } else { 0 },
    );
    let mut error = Vec::new();
    let time_exceeded =
        etherparse::Icmpv4Type::TimeExceeded(etherparse::icmpv4::TimeExceededCode::TtlExceededInTransit);
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([203, 0, 113, 9], from.0, 64)
        .icmpv4(time_exceeded)
        .write(&mut error, &quoted[14..])
        .expect("memory");
    error
}

/// A host that asks again and again keeps its mappings, whatever comes from outside; as long as nobody has
/// answered they give way to new ones.
#[test]
fn what_nobody_has_answered_gives_way_however_long_it_is_kept() {
    let program = program();
    let host = [10, 0, 0, 9];
    for back_end in BackendKind::ALL {
        for (proto, size, tables) in TABLES {
            let mut judge = Judge::new(&program, back_end);
            let held = |judge: &Judge<'_>| tables.iter().map(|table| judge.entries(table)).sum::<usize>();
            let ports = 1..(size as u16 + 1);
            let first = open(&mut judge, proto, host, ports.clone(), false);
            assert_eq!((first.left, held(&judge)), (size, size as usize), "{proto}");
            // Longer than anything lasts that is not renewed.
            for _ in 0..8 {
                judge.now += 50 * SECOND;
                for packet in [stranger, not_arrived] {
                    let found = outsiders(&mut judge, proto, &first.outside, |end| packet(proto, end));
                    assert_eq!(found, size as usize, "{proto}: all are there");
                }
                let again = open(&mut judge, proto, host, ports.clone(), false);
                assert!(
                    again.left == size && again.outside == first.outside,
                    "{proto}: it keeps what it has"
                );
            }
            let second = open(&mut judge, proto, host, 10_001..(10_001 + size as u16), true);
            assert_eq!((second.left, second.quota), (size, 0), "{proto}");
            assert_eq!(held(&judge), size as usize, "{proto}");
            judge.one_to_one();
        }
    }
}

/// A host opens all of its part and is answered; then it sends nothing but what packets from outside make it
/// send. However many of these come, from strangers, from whoever it asked or from routers, it gets its part
/// back in time.
#[test]
fn nobody_outside_keeps_what_a_host_has_left() {
    let program = program();
    let host = [10, 0, 0, 9];
    for back_end in BackendKind::ALL {
        for (proto, size, tables) in TABLES {
            let mut judge = Judge::new(&program, back_end);
            let held = |judge: &Judge<'_>| tables.iter().map(|table| judge.entries(table)).sum::<usize>();
            let ports = 1..(size as u16 + 1);
            let first = open(&mut judge, proto, host, ports.clone(), true);
            assert_eq!((first.left, held(&judge)), (size, size as usize), "{proto}");
            let refused = open(&mut judge, proto, host, 10_001..10_101, true);
            assert_eq!((refused.left, refused.quota), (0, 100), "{proto}: all of it is in use");
            let begin = judge.now;
            let lasts = if proto == TCP { 7_440 * SECOND } else { lasts(proto).1 };
            for round in 1..=7 {
                judge.now = begin + lasts * round / 7;
                for packet in [stranger, asked, not_arrived] {
                    let found = outsiders(&mut judge, proto, &first.outside, |end| packet(proto, end));
                    assert_eq!(found, if round == 7 { 0 } else { size as usize }, "{proto}: {round}");
                }
                for port in ports.clone().filter(|_| proto != ICMP) {
                    let answer = refusal(proto, (host, port));
                    let outcome = judge.run(INSIDE, &answer);
                    assert!(matches!(judge.reason(&outcome), None | Some("no_mapping")), "{outcome:?}");
                }
            }
            let second = open(&mut judge, proto, host, 10_001..(10_001 + size as u16), true);
            assert_eq!((second.left, second.quota), (size, 0), "{proto}");
            assert_eq!(held(&judge), size as usize, "{proto}");
            judge.one_to_one();
        }
    }
}

#[test]
fn every_table_has_room_for_the_whole_pool() {
    let program = program();
    for (proto, size, tables) in TABLES {
        for name in tables.iter().flat_map(|table| [(*table).to_owned(), table.replace("_out", "_in")]) {
            let table = program.tables.iter().find(|table| table.name == name).expect("it is declared");
            assert_eq!(table.capacity, size * 256, "{proto} {name}");
        }
    }
}

/// The flags and offset of a first fragment, and of the second one behind it.
const FIRST: u16 = 0x2000;
const SECOND_FRAGMENT: u16 = 2;

/// A fragment of a datagram.
fn fragment(from: End, to: End, id: u16, place: u16) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4(from.0, to.0, 64)
        .udp(from.1, to.1)
        .write(&mut frame, &[0; 8])
        .expect("memory");
    put(&mut frame, 18, id);
    put(&mut frame, 20, place);
    put(&mut frame, 38, 32);
    frame
}

/// A host, and somebody outside, begin so many packets in fragments that no table could hold them: another
/// host's fragments that are under way go on in both directions, and the flood holds no more than its part.
#[test]
fn no_flood_of_fragments_takes_those_of_other_hosts() {
    const OF_PART: usize = 16;
    let program = program();
    for back_end in BackendKind::ALL {
        let mut judge = Judge::new(&program, back_end);
        let server = ([192, 0, 2, 1], 53);
        let [quiet, loud] = [([10, 0, 0, 9], 40_000), ([10, 0, 0, 10], 40_000)];
        let begins = |judge: &mut Judge<'_>, port, from, to, id| {
            let outcome = judge.run(port, &fragment(from, to, id, FIRST));
            assert_eq!(judge.reason(&outcome), None);
            ends_of_first(&outcome.left[0].1)
        };
        let [outside, loud_outside] = [quiet, loud].map(|host| begins(&mut judge, INSIDE, host, server, 7));
        begins(&mut judge, OUTSIDE, server, outside, 7);
        for id in 0..6_000 {
            begins(&mut judge, INSIDE, loud, server, id);
            begins(&mut judge, OUTSIDE, ([203, 0, 113, (id % 250) as u8], 9), loud_outside, id);
        }
        for (port, from, to) in [(INSIDE, quiet, server), (OUTSIDE, server, outside)] {
            let outcome = judge.run(port, &fragment(from, to, 7, SECOND_FRAGMENT));
            assert_eq!(judge.reason(&outcome), None, "port {port}");
        }
        assert_eq!(judge.entries("pieces_out"), 1 + OF_PART);
        assert_eq!(judge.entries("pieces_in"), 1 + OF_PART);
    }
}

/// Packets of many hosts in four fragments each, and the answers, in a random order: all leave, each
/// translated as its first one and behind it (RFC 4787, REQ-14).
#[test]
fn fragments_in_any_order_are_translated_as_their_first() {
    let program = program();
    let server = ([192, 0, 2, 1], 53);
    for (back_end, seed) in [(BackendKind::Interpreter, 3), (BackendKind::Native, 4)] {
        let mut judge = Judge::new(&program, back_end);
        let mut random = SuiteRandom::new(seed);
        let mut waited = 0;
        for round in 0..40 {
            judge.now += SECOND;
            let mut pieces = Vec::new();
            for host in 1..30 {
                let (inside, id) = (([10, 0, 0, host], 40_000), round << 8 | u16::from(host));
                // Answers need to know where the host is outside.
                let known = judge.run(INSIDE, &fragment(inside, server, id | 0x80, FIRST));
                let outside = ends_of_first(&known.left[0].1);
                for place in [FIRST, FIRST | 2, FIRST | 4, 6] {
                    let there = (OUTSIDE, outside.0, id, place);
                    pieces.push((INSIDE, fragment(inside, server, id, place), there));
                    let back = (INSIDE, inside.0, id, place);
                    pieces.push((OUTSIDE, fragment(server, outside, id, place), back));
                }
            }
            for last in (1..pieces.len()).rev() {
                pieces.swap(last, random.below(last as u64 + 1) as usize);
            }
            let mut left = Vec::new();
            for (port, frame, _) in &pieces {
                judge.now += 1_000;
                let outcome = judge.run(*port, frame);
                waited += outcome.waited.len();
                // By which port, with which address of the host, of which packet, which fragment.
                left.extend(outcome.left.into_iter().map(|(by, frame)| {
                    let at = if by == OUTSIDE { 26 } else { 30 };
                    let address: [u8; 4] = frame[at..at + 4].try_into().expect("four bytes");
                    (by, address, number(&frame, 18), number(&frame, 20))
                }));
            }
            assert_eq!(left.len(), pieces.len(), "all leave, each once");
            for (.., wanted) in &pieces {
                let of = |place| left.iter().position(|one| *one == (wanted.0, wanted.1, wanted.2, place));
                let (own, first) = (of(wanted.3), of(FIRST));
                assert!(own.is_some() && own >= first && first.is_some(), "{wanted:?}: {own:?}, {first:?}");
            }
        }
        assert!(waited > 1_000, "only {waited} came before their first");
    }
}

/// The source of a first fragment: address and port.
fn ends_of_first(frame: &[u8]) -> End {
    ([frame[26], frame[27], frame[28], frame[29]], number(frame, 34))
}

/// A reset with a sequence number that its receiver does not expect leaves a connection its time.
#[test]
fn only_an_expected_reset_ends_a_connection() {
    let program = program();
    for back_end in BackendKind::ALL {
        let mut random = SuiteRandom::new(11);
        let (inside, server) = (([10, 0, 0, 9], 40_000), ([192, 0, 2, 1], 443));
        // What the host has acknowledged last, and its window, are those of `frame`.
        let expected = NUMBERS[1];
        let (mut ended, mut lasted) = (0, 0);
        for offset in [-1_i64, 0, 1, 999, 1_000, 1_001, 1 << 31]
            .into_iter()
            .chain((0..40).map(|_| i64::from(random.number() as u32) + 2_000))
        {
            let mut judge = Judge::new(&program, back_end);
            let mut numbers = SuiteRandom::new(12);
            let outside = {
                let outcome = judge.run(INSIDE, &sound(&mut numbers, TCP, inside, server, SYN));
                ends::ends(&outcome.left[0].1).expect("it is sound").src
            };
            judge.run(OUTSIDE, &sound(&mut numbers, TCP, server, outside, SYN | ACK));
            judge.run(INSIDE, &sound(&mut numbers, TCP, inside, server, ACK));
            assert_eq!(judge.entries("tcp_out"), 1);
            let mut reset = sound(&mut numbers, TCP, server, outside, RST);
            let number = (i64::from(expected) + offset) as u32;
            let at = ends::transport(&reset) + 4;
            reset[at..at + 4].copy_from_slice(&number.to_be_bytes());
            let passed = judge.run(OUTSIDE, &reset);
            assert_eq!(judge.reason(&passed), None, "it passes all the same");
            let good = number.wrapping_sub(expected) <= 1_000;
            judge.now += 241 * SECOND;
            let answer = judge.run(OUTSIDE, &sound(&mut numbers, TCP, server, outside, ACK));
            let gone = judge.reason(&answer) == Some("no_mapping");
            assert_eq!(gone, good, "{offset}");
            *if gone { &mut ended } else { &mut lasted } += 1;
        }
        assert!(ended == 4 && lasted > 40, "{ended} ended, {lasted} lasted");
    }
}
