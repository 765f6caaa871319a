//! The program `nat44`, judged by what a translation must keep: packets are those that came in but for one address, port and their checksums;
//! answers come back as they were sent; mappings are one to one and last as long as they should.
//!
//! `RAVELIN_DATA=DIRECTORY` names a folder with `captures/`; without it the captures are left out.

mod ends;

use ends::{End, Ends, ICMP, TCP, UDP, ends, number, place, put, rewritten, valid, without_wrong};
use engine::{Bench, Outcome};
use etherparse::PacketBuilder;
use exec::BackEnd;
use lang::ir::{Match, Program};
use lang::pipeline::Decode;
use packet::{Capture, VerdictKind};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use suite::corpus::{compile_file, root};
use suite::random::Random;

const INSIDE: u16 = 1;
const OUTSIDE: u16 = 2;

const SECOND: u64 = 1_000_000_000;

/// Flags of TCP in its fourteenth byte.
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
    used: u64,
}

/// The translation from outside of it.
struct Judge<'a> {
    bench: Bench<'a>,
    program: &'a Program,
    mappings: HashMap<(u8, End), Mapping>,
    /// Who held an address and port last.
    holders: HashMap<(u8, End), End>,
    now: u64,
    sent: u64,
    answered: u64,
    gone: u64,
}

/// How long a mapping lasts without packets, at least and at most.
fn lasts(proto: u8) -> (u64, u64) {
    match proto {
        TCP => (240 * SECOND, 7_440 * SECOND),
        UDP => (300 * SECOND, 300 * SECOND),
        _ => (60 * SECOND, 60 * SECOND),
    }
}

impl<'a> Judge<'a> {
    fn new(program: &'a Program, back_end: BackEnd) -> Judge<'a> {
        let bench = Bench::new(program, back_end, 2, 0).expect("it loads");
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

    fn reason(&self, outcome: &Outcome) -> Option<&str> {
        let verdict = outcome.verdict.expect("a packet has a verdict");
        let reason = (verdict.kind() == VerdictKind::Drop).then(|| verdict.argument() as usize)?;
        self.program.reasons.get(reason).map(|reason| reason.name.as_str())
    }

    fn run(&mut self, port: u16, frame: &[u8]) -> Outcome {
        self.bench.packet(port, frame, self.now)
    }

    /// How long the mapping of an end has not been used; none if there never was one.
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
        assert!(matches!(after.src.0, [198, 51, 100, 4..=7]), "{after:?}");
        assert!(proto == ICMP || after.src.1 >= 1024);
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
        self.mappings.insert((proto, src), Mapping { outside: after.src, used: self.now });
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
            // It went to whoever has the address and port now, and so renewed that mapping.
            let mapping = self.mappings.get_mut(&(proto, holder)).expect("a holder has a mapping");
            mapping.used = self.now;
            return;
        }
        assert!(idle < most, "{ends:?} came through after {idle} ns");
        let [(INSIDE, left)] = &outcome.left[..] else { panic!("one packet leaves: {outcome:?}") };
        let good = valid(frame);
        assert_eq!(valid(left), valid(&asked), "right checksums stay right, wrong ones wrong: {ends:?}");
        assert_eq!(without_wrong(left, good), without_wrong(frame, good), "the answer is what was sent");
        self.mappings.insert((proto, dst), Mapping { used: self.now, ..mapping });
        self.answered += 1;
    }

    /// Entries of a table: the first two parts of the key and of the value.
    fn pairs(&self, name: &str) -> BTreeMap<[u128; 2], [u128; 2]> {
        let table = self.program.tables.iter().position(|table| table.name == name).expect("it is declared");
        let entries = self.bench.processor().entries(table as u32);
        let exact = |part: &Match| match part {
            Match::Exact(value) => *value,
            other => panic!("{other:?} in an exact table"),
        };
        let pair = |(entry, _): (lang::ir::Entry, _)| {
            ([exact(&entry.key[0]), exact(&entry.key[1])], [entry.value[0], entry.value[1]])
        };
        entries.into_iter().map(pair).collect()
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
fn frame(random: &mut Random, proto: u8, from: End, to: End, flags: u8) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ipv4(from.0, to.0, 64);
    let payload: Vec<u8> = (0..random.below(40)).map(|_| random.number() as u8).collect();
    let mut frame = Vec::new();
    let written = match proto {
        TCP => {
            let mut step = builder.tcp(from.1, to.1, random.number() as u32, 1_000);
            if flags & SYN != 0 {
                step = step.syn();
            }
            if flags & ACK != 0 {
                step = step.ack(random.number() as u32);
            }
            if flags & RST != 0 {
                step = step.rst();
            }
            if flags & 1 != 0 {
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
fn traffic(judge: &mut Judge<'_>, random: &mut Random, packets: u32, pause: impl Fn(&mut Random) -> u64) {
    for _ in 0..packets {
        judge.now += pause(random);
        let proto = *random.pick(&[TCP, TCP, UDP, ICMP]);
        let inside = ([10, 0, 0, random.between(1, 6) as u8], *random.pick(&PORTS));
        let outside = ([192, 0, 2, random.between(1, 3) as u8], *random.pick(&[53, 443, inside.1]));
        let leaves = random.one_in(2);
        let flags = match proto {
            TCP => *random.pick(&[SYN, ACK, ACK, ACK | 8, ACK | 1, ACK | SYN, RST]),
            _ => u8::from(!leaves),
        };
        if leaves {
            let frame = frame(random, proto, inside, outside, flags);
            judge.leaves(&frame, ends(&frame).expect("it is sound"));
        } else {
            let frame = frame(random, proto, outside, inside, flags);
            judge.returns(&frame, ends(&frame).expect("it is sound"));
        }
        if random.one_in(20) {
            judge.one_to_one();
        }
    }
    judge.one_to_one();
}

const PORTS: [u16; 6] = [0, 53, 1_024, 2_000, 2_001, 65_535];

/// When nothing is sent any more, every table gets empty and every item is free again, so a host gets the ports that it has.
fn all_is_given_back(judge: &mut Judge<'_>, random: &mut Random) {
    judge.now += 8_000 * SECOND;
    judge.bench.advance(judge.now);
    for table in ["udp_out", "udp_in", "icmp_out", "icmp_in", "tcp_out", "tcp_in", "young_out", "young_in"] {
        assert_eq!(judge.pairs(table), BTreeMap::new(), "{table}");
    }
    for host in 1..=6 {
        for proto in [TCP, UDP, ICMP] {
            for port in PORTS.into_iter().filter(|port| *port >= 1_024) {
                let inside = ([10, 0, 0, host], port);
                let flags = if proto == TCP { SYN } else { 0 };
                let frame = frame(random, proto, inside, ([192, 0, 2, 1], 53), flags);
                judge.leaves(&frame, ends(&frame).expect("it is sound"));
                assert_eq!(judge.mappings[&(proto, inside)].outside.1, port, "{proto}");
            }
        }
        judge.now += 8_000 * SECOND;
    }
}

#[test]
fn made_traffic_goes_out_and_comes_back() {
    let program = program();
    for back_end in [BackEnd::Interpreter, BackEnd::Native] {
        let mut random = Random::new(44);
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
fn slow_connections_are_renewed_by_either_direction() {
    let program = program();
    for back_end in [BackEnd::Interpreter, BackEnd::Native] {
        let mut random = Random::new(45);
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
        let mut judge = Judge::new(&program, BackEnd::Native);
        // Who sent the first packet of a flow is inside.
        let mut inside: HashMap<(u8, End, End), bool> = HashMap::new();
        let mut others = 0;
        while let Some(record) = capture.next().expect("it is whole") {
            judge.now = judge.now.max(record.time_ns);
            let Some(found) = ends(record.data).filter(|found| found.dst.0[0] < 224) else {
                // Whatever it is, it is accounted for.
                let outcome = judge.run(INSIDE, record.data);
                assert_ne!(outcome.verdict.expect("a verdict").kind(), VerdictKind::Pending);
                others += 1;
                continue;
            };
            let Ends { proto, src, dst, kind } = found;
            if proto == ICMP && kind == 0 {
                judge.returns(record.data, found);
                continue;
            }
            let first = *inside.entry((proto, src, dst)).or_insert(true);
            inside.entry((proto, dst, src)).or_insert(false);
            if first { judge.leaves(record.data, found) } else { judge.returns(record.data, found) }
        }
        judge.one_to_one();
        println!(
            "{name}: {} out, {} back, {} after their time, {others} others",
            judge.sent, judge.answered, judge.gone
        );
        assert!(judge.sent > 3_000 && judge.answered > 3_000, "{} out, {} back", judge.sent, judge.answered);
    }
}
