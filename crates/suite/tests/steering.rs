//! Programs that steer their packets mean the same on one worker and on several: every packet runs at the
//! worker that the program names, which has tables of its own, and comes to the same end.
//!
//! The workers are run one packet after the other, so what differs is the steering alone. Workers that run at
//! the same time, and the rings between them, are tested in `engine::live`.

mod crossing_traffic;

use crossing_traffic::Traffic;
use engine::{PacketBench, PacketOutcome, live::worker_of};
use exec::BackendKind;
use ir::Program;
use lang::pipeline::Decode;
use lang::testcase::CaseStep;
use packet::VerdictKind;
use suite::corpus::{compile_file, files, root, shipped};
use suite::random::SuiteRandom;

const SECOND: u64 = 1_000_000_000;

/// Workers with tables of their own, and one with all of them.
struct Workers<'a> {
    one: PacketBench<'a>,
    several: Vec<PacketBench<'a>>,
    /// How many entries each table has of the text, as every worker has them.
    of_text: Vec<u64>,
    /// What steers, by all back ends.
    steering: [PacketBench<'a>; 3],
    /// How many packets each worker has run.
    packets: Vec<u64>,
}

impl<'a> Workers<'a> {
    fn new(program: &'a Program, workers: usize, ports: u16, back_end: BackendKind) -> Workers<'a> {
        let bench = |back_end| PacketBench::new(program, back_end, ports, 1).expect("it loads");
        let steering = program.steering.as_deref().expect("it steers");
        let steering = |back_end| PacketBench::new(steering, back_end, u16::MAX, 0).expect("it loads");
        let one = bench(back_end);
        Workers {
            of_text: entries(&one),
            one,
            several: (0..workers).map(|_| bench(back_end)).collect(),
            steering: BackendKind::ALL.map(steering),
            packets: vec![0; workers],
        }
    }

    /// Runs a packet on one worker and on its own; what became of it.
    fn packet(&mut self, port: u16, bytes: &[u8], time: u64) -> PacketOutcome {
        let keys = self.steering.each_mut().map(|steering| steering.packet(port, bytes, time));
        let [judged, others @ ..] = &keys;
        others.iter().for_each(|key| assert_eq!(key.verdict, judged.verdict, "all back ends steer alike"));
        let worker = worker_of(keys[0].verdict.expect("it has one"), self.several.len());
        self.packets[worker] += 1;
        let passed = self.advance(time);
        let (one, own) = (self.one.packet(port, bytes, time), self.several[worker].packet(port, bytes, time));
        assert_eq!(own, one, "at worker {worker} of {}: {bytes:02x?}", self.several.len());
        let waited = passed.waited.into_iter().chain(one.waited).collect();
        PacketOutcome { left: passed.left.into_iter().chain(one.left).collect(), waited, ..one }
    }

    /// Lets time pass on one worker and on all; what became of fragments whose first one did not come.
    fn advance(&mut self, time: u64) -> PacketOutcome {
        let one = self.one.advance(time);
        let mut own = PacketOutcome::default();
        for bench in &mut self.several {
            let PacketOutcome { left, waited, .. } = bench.advance(time);
            own.left.extend(left);
            own.waited.extend(waited);
        }
        let sorted = |outcome: &PacketOutcome| {
            let mut waited: Vec<_> =
                outcome.waited.iter().map(|it| (it.port, it.bytes.clone(), it.verdict.argument())).collect();
            waited.sort();
            let mut left = outcome.left.clone();
            left.sort();
            (waited, left)
        };
        assert_eq!(sorted(&own), sorted(&one), "of {} workers", self.several.len());
        one
    }

    /// Lets time pass, and compares the entries of all tables.
    fn compare(&mut self, time: u64) {
        self.advance(time);
        let mut sums = vec![0; entries(&self.one).len()];
        for bench in &mut self.several {
            sums.iter_mut().zip(entries(bench)).for_each(|(sum, entries)| *sum += entries);
        }
        let again = self.several.len() as u64 - 1;
        sums.iter_mut().zip(&self.of_text).for_each(|(sum, text)| *sum -= again * text);
        assert_eq!(sums, entries(&self.one));
    }
}

fn entries(bench: &PacketBench<'_>) -> Vec<u64> {
    bench.backend().tables().iter().map(|table| table.entries).collect()
}

#[test]
fn tests_in_programs_come_to_the_same_end_on_several_workers() {
    let (mut steered, mut run) = (0, 0);
    for path in files(&root().join("programs"), "rav").expect("there are programs") {
        let compiled = compile_file(&path, Decode::Lazy).expect("it can be read");
        let Some(program) = compiled.program.filter(|program| program.steering.is_some()) else { continue };
        steered += 1;
        for case in &compiled.tests {
            if case.steps.iter().any(hairpins) {
                continue;
            }
            run += 1;
            for count in [2, 3, 4] {
                let mut workers = Workers::new(&program, count, case.ports, BackendKind::Interpreter);
                let mut now = 0;
                for step in &case.steps {
                    match step {
                        CaseStep::Packet { port, bytes, time, .. } => {
                            now = *time;
                            workers.packet(*port, bytes, now);
                        }
                        CaseStep::Advance(time) => {
                            now = *time;
                            workers.compare(now);
                        }
                        CaseStep::Expect(..) => {}
                    }
                }
                workers.compare(now);
            }
        }
    }
    assert!(steered >= 2 && run >= 25, "{steered} programs, {run} tests");
}

/// Whether a host inside sends a packet to an address of the pool of `nat44`: two hosts, or a host and a
/// server, which may have two workers (docs/modules.md).
fn hairpins(step: &CaseStep) -> bool {
    let CaseStep::Packet { port: 1, bytes, .. } = step else { return false };
    bytes.get(30..33) == Some(&[198, 51, 100]) && (4..8).contains(&bytes[33])
}

#[test]
fn a_packet_between_hosts_of_two_workers_is_dropped_for_a_reason_of_its_own() {
    let program = shipped("nat44.rav");
    let mut several = Workers::new(&program, 2, 2, BackendKind::Interpreter).several;
    let datagram = |from: [u8; 4], to: [u8; 4], dst: u16| {
        let mut bytes =
            [&[2; 12][..], &[8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0], &from, &to].concat();
        bytes.extend([0x9c, 0x40].into_iter().chain(dst.to_be_bytes()).chain([0, 8, 0, 0]));
        bytes
    };
    // 10.0.0.1 is at the first worker and 10.0.0.65 at the second one, which has mapped its port 40000.
    let mapped = several[1].packet(1, &datagram([10, 0, 0, 65], [192, 0, 2, 9], 53), 0);
    let [(2, sent)] = &mapped.left[..] else { panic!("{mapped:?}") };
    let to = u16::from_be_bytes([sent[34], sent[35]]);
    let lost = several[0].packet(1, &datagram([10, 0, 0, 1], sent[26..30].try_into().expect("four"), to), 0);
    let verdict = lost.verdict.expect("it has one");
    let reason = verdict.reason().map(|reason| program.reasons[usize::from(reason)].name.as_str());
    assert_eq!(reason, Some("hairpin_unknown"), "{lost:?}");
}

/// What became of random traffic.
struct Agreed {
    passed: u64,
    /// Of them, those that had waited for the first fragment of their packet.
    waited: u64,
    /// By reason.
    dropped: Vec<u64>,
    /// By worker.
    packets: Vec<u64>,
}

fn agree(name: &str, workers: usize, seed: u64, packets: usize) -> Agreed {
    let program = shipped(name);
    let mut traffic = Traffic::new(name == "stateful.rav");
    let mut random = SuiteRandom::new(seed);
    let mut workers = Workers::new(&program, workers, 2, BackendKind::Native);
    let (mut now, mut passed, mut waited, mut dropped) = (0, 0, 0, vec![0; program.reasons.len()]);
    for _ in 0..packets {
        now += *random.pick(&[0, 1_000, 1_000_000, SECOND / 10]);
        if random.one_in(500) {
            now += *random.pick(&[10, 31, 61, 121]) * SECOND;
        }
        let (port, bytes) = traffic.next(&mut random);
        let outcome = workers.packet(port, &bytes, now);
        let late = outcome.waited.iter().map(|packet| (packet.verdict, 1));
        for (verdict, late) in outcome.verdict.into_iter().map(|verdict| (verdict, 0)).chain(late) {
            match verdict.kind() {
                VerdictKind::Send => (passed, waited) = (passed + 1, waited + late),
                _ => dropped[usize::from(verdict.argument())] += 1,
            }
        }
        for (port, bytes) in outcome.left {
            traffic.left(port, bytes);
        }
    }
    workers.compare(now);
    Agreed { passed, waited, dropped, packets: workers.packets }
}

#[test]
fn connections_fragments_and_errors_meet_at_their_worker() {
    for (name, seeds) in [("stateful.rav", 6), ("nat44.rav", 6)] {
        for seed in 0..seeds {
            let workers = [2, 3, 4][seed as usize % 3];
            let Agreed { passed, waited, dropped, packets } = agree(name, workers, seed, 3_000);
            assert!(passed > 900, "{name}, seed {seed}: only {passed} passed: {dropped:?}");
            assert!(waited > 0, "{name}, seed {seed}: no fragment came before its first");
            // The pool of nat44 has four addresses.
            let busy = packets.iter().filter(|&&packets| packets > 100).count();
            assert!(busy >= workers.min(4), "{name}, seed {seed}: {packets:?}");
        }
    }
}
