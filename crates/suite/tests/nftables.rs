//! Rule sets that ask for the state of a connection, made at random, mean the same in nftables and in a
//! program that imports `std.connections`: the same packets are sent through both, and the kernel judges.
//!
//! Where both say different things of a packet, the difference is one of those that [`classes`] names and
//! gives the reason of, or the test fails.
//!
//! `RAVELIN_SEED=n` asks for other rule sets and packets; a failure prints the seed.

#[path = "nftables/classes.rs"]
mod classes;
#[path = "nftables/flows.rs"]
mod flows;
#[path = "nftables/network.rs"]
mod network;
#[path = "nftables/packets.rs"]
mod packets;
#[path = "nftables/rules.rs"]
mod rules;
mod segment;
#[path = "nftables/tcp.rs"]
mod tcp;

use classes::{CLASSES, Said, class_of};
use engine::PacketBench;
use exec::BackendKind;
use network::Network;
use packet::VerdictKind;
use packets::{Packet, frame};
use rules::{FIRST_OUTCOME, OUTCOMES, PORTS, RuleSet};
use std::collections::{BTreeMap, BTreeSet};
use suite::random::SuiteRandom;

/// Sets that are loaded together.
const TOGETHER: u32 = 25;
const BATCHES: u32 = 20;
/// So many packets each set sees, or some more.
const PACKETS_OF_SET: usize = 110;
/// The sequences that run at once.
const RUNNING: usize = 40;

const MILLISECOND: u64 = 1_000_000;

fn seed() -> u64 {
    let seed = std::env::var("RAVELIN_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(16);
    println!("RAVELIN_SEED={seed}");
    seed
}

/// A packet in the order of sending: of which set of its batch, and of which sequence.
struct Sent {
    set: usize,
    flow: usize,
    packet: Packet,
}

/// The packets of some sets, their sequences mixed.
fn traffic(random: &mut SuiteRandom, sets: &[RuleSet]) -> Vec<Sent> {
    let mut waiting = Vec::new();
    let mut flows = 0;
    for (set, rules) in sets.iter().enumerate() {
        let (mut count, mut index) = (0, 0);
        while count < PACKETS_OF_SET {
            let packets = flows::flow(random, rules.number, index);
            count += packets.len();
            waiting.push((set, flows, packets.into_iter()));
            (index, flows) = (index + 1, flows + 1);
        }
    }
    let mut sent = Vec::new();
    while !waiting.is_empty() {
        let place = random.below(waiting.len().min(RUNNING) as u64) as usize;
        let (set, flow, packets) = &mut waiting[place];
        match packets.next() {
            Some(packet) => sent.push(Sent { set: *set, flow: *flow, packet }),
            None => drop(waiting.swap_remove(place)),
        }
    }
    sent
}

/// What the program says of each packet: a name of [`OUTCOMES`], or the reason of a drop with a minus before
/// it. Of fragments it is what it says of the first one that it drops, if there is one.
fn programmed(sets: &[RuleSet], sent: &[Sent], back_end: BackendKind) -> Vec<String> {
    let text = rules::program(sets);
    let compiled = lang::pipeline::compile("rules.rav", &text, &|_| None, &Default::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}\n{text}", compiled.diagnostics));
    let mut bench = PacketBench::new(&program, back_end, PORTS, 1).expect("it loads");
    let mut said = Vec::new();
    for (index, sent) in sent.iter().enumerate() {
        let port = 2 * sent.set as u16 + if sent.packet.from_inside { 1 } else { 2 };
        let mut pieces: Vec<String> = Vec::new();
        for piece in sent.packet.pieces(index as u16) {
            let frame = frame(&piece, [2; 6], [4; 6]);
            // A second fragment that comes first waits, and has its verdict behind that of its first.
            let outcome = bench.packet(port, &frame, index as u64 * MILLISECOND);
            let waited = outcome.waited.into_iter().map(|waited| waited.verdict);
            pieces.extend(outcome.verdict.into_iter().chain(waited).map(|verdict| {
                let argument = verdict.argument() as usize;
                match verdict.kind() {
                    VerdictKind::Send => OUTCOMES[argument - usize::from(FIRST_OUTCOME)].to_owned(),
                    _ => format!("-{}", program.reasons[argument].name),
                }
            }));
        }
        assert_eq!(pieces.len(), sent.packet.pieces(0).len(), "each has its verdict");
        assert_ne!(pieces[0], "-fragment_without_first", "a second fragment runs behind its first");
        let dropped = pieces.iter().position(|piece| piece.starts_with('-')).unwrap_or(0);
        said.push(pieces.swap_remove(dropped));
    }
    said
}

/// What was found of a batch.
#[derive(Default)]
struct Findings {
    judged: usize,
    passing: usize,
    /// Behind a difference in their sequence: from there on both know different things.
    unjudged: usize,
    classes: BTreeMap<&'static str, usize>,
    /// Differences of no class, as sequences.
    unexplained: Vec<String>,
}

impl Findings {
    fn of(sent: &[Sent], said: &[String], passed: &[bool]) -> Findings {
        let mut findings = Findings::default();
        let mut flows: BTreeMap<usize, Vec<Said>> = BTreeMap::new();
        let mut differ = BTreeSet::new();
        for ((sent, said), &passes) in sent.iter().zip(said).zip(passed) {
            if differ.contains(&sent.flow) {
                findings.unjudged += 1;
                continue;
            }
            let now = Said { packet: &sent.packet, module: said, passes };
            let earlier = flows.entry(sent.flow).or_default();
            findings.judged += 1;
            findings.passing += usize::from(passes);
            if passes == said.starts_with('-') {
                differ.insert(sent.flow);
                match class_of(&now, earlier) {
                    Some(class) => *findings.classes.entry(class.name).or_default() += 1,
                    None => findings.unexplained.push(shown(sent.set, earlier, &now)),
                }
            }
            earlier.push(now);
        }
        findings
    }

    fn add(&mut self, other: Findings) {
        self.judged += other.judged;
        self.passing += other.passing;
        self.unjudged += other.unjudged;
        for (class, count) in other.classes {
            *self.classes.entry(class).or_default() += count;
        }
    }
}

/// A sequence up to a difference: the side that it comes from, what it is, what both say.
fn shown(set: usize, earlier: &[Said], now: &Said) -> String {
    let line = |said: &Said| {
        let packet = said.packet;
        let side = if packet.from_inside { '>' } else { '<' };
        let verdict = if said.passes { "passes" } else { "is dropped" };
        let transport = if packet.flags() == 0 {
            format!("protocol {}", packet.proto)
        } else {
            let (flags, seq, ack) = (packet.flags(), packet.seq(), packet.ack());
            format!("flags {flags:#04x} seq {seq} ack {ack} bytes {}", packet.payload())
        };
        format!("  {side} {}: {transport}; module: {}; kernel: {verdict}\n", packet.label, said.module)
    };
    format!("set {set}:\n{}{}", earlier.iter().map(line).collect::<String>(), line(now))
}

/// What both say of a batch. A lost frame is told from a verdict: a marker is missing, or the difference is
/// gone when all is sent again through another router.
fn judged(network: &mut Network, sets: &[RuleSet], sent: &[Sent], said: &[String]) -> Findings {
    let rules = rules::nftables(sets);
    let packets: Vec<&Packet> = sent.iter().map(|sent| &sent.packet).collect();
    let mut lost = 0;
    let mut again: Option<Findings> = None;
    loop {
        network.load(&rules);
        match network.passes(&packets).map(|passed| Findings::of(sent, said, &passed)) {
            Some(findings) if findings.unexplained.is_empty() => return findings,
            // Twice the same.
            Some(findings)
                if again.as_ref().is_some_and(|again| again.unexplained == findings.unexplained) =>
            {
                return findings;
            }
            Some(findings) => again = Some(findings),
            None => lost += 1,
        }
        assert!(lost < 5, "in {lost} routers one after the other, a marker did not come within 20 s");
        *network = Network::new().expect("there was one before");
    }
}

#[test]
fn generated_rule_sets_mean_what_they_mean_in_nftables() {
    let Some(mut network) = Network::new() else { return };
    let mut random = SuiteRandom::new(seed());
    let mut all = Findings::default();
    for batch in 0..BATCHES {
        let numbers = batch * TOGETHER..(batch + 1) * TOGETHER;
        let sets: Vec<RuleSet> = numbers.map(|number| RuleSet::made(&mut random, number)).collect();
        let sent = traffic(&mut random, &sets);
        let back_end = if batch % 5 == 0 { BackendKind::Interpreter } else { BackendKind::Native };
        let said = programmed(&sets, &sent, back_end);
        let findings = judged(&mut network, &sets, &sent, &said);
        if !findings.unexplained.is_empty() {
            let (rules, program) = (rules::nftables(&sets), rules::program(&sets));
            panic!("batch {batch}: {}\n{rules}\n{program}", findings.unexplained.join("\n"));
        }
        all.add(findings);
    }
    let differ: usize = all.classes.values().sum();
    println!(
        "{} rule sets: {} packets judged, of which {} pass; {differ} differ, each explained, and {} come behind \
         these in their sequences",
        BATCHES * TOGETHER,
        all.judged,
        all.passing,
        all.unjudged
    );
    for class in CLASSES {
        println!("{:5} {}: {}", all.classes.get(class.name).unwrap_or(&0), class.name, class.reason);
    }
    assert!(all.judged >= 50_000, "{} packets are too few", all.judged);
    assert!(all.passing > all.judged / 4 && all.passing < all.judged * 3 / 4, "{} pass", all.passing);
    // Differences are rare, however they are explained, and hide little.
    assert!(differ < all.judged / 80 && all.unjudged < all.judged / 12, "{:?}", all.classes);
}
