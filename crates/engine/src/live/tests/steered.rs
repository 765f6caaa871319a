//! Packets that come in at another worker than their own: the same account and the same verdicts as on one
//! worker.

use super::*;
use std::time::{Duration, Instant};

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(120);

/// Workers that steer what comes in by port 1.
struct Steered {
    bench: Bench,
    /// Packets that retired generations have counted: received, forwarded.
    retired: (u64, u64),
    played: u64,
}

impl Steered {
    fn new(text: &str, workers: usize) -> Steered {
        Steered { bench: Bench::running(workers, loaded(text, workers)), retired: (0, 0), played: 0 }
    }

    /// Puts a frame into a lane of port 1.
    fn put(&mut self, lane: usize, frame: Vec<u8>) {
        self.played += 1;
        self.bench.come[lane].lock().unwrap().push_back(frame);
    }

    /// Lets another program take over.
    fn replace(&mut self, text: &str, number: u64, discard: Vec<String>) {
        let new = loaded(text, self.bench.come.len()).generations(PORTS, number);
        let replaced = self.bench.remote.replace(new, discard).expect("all workers run");
        replaced.outcome.as_ref().expect("the shape is the same");
        let (received, forwarded) = account(&replaced.retired);
        self.retired = (self.retired.0 + received, self.retired.1 + forwarded);
    }

    /// Waits until every packet that was played is in the account of a worker.
    fn settle(&self) {
        let begun = Instant::now();
        loop {
            let received = self.bench.remote.ask(|generation, _| generation.ledger.received().packets);
            let received: u64 = received.expect("all workers run").iter().sum();
            if received + self.retired.0 == self.played {
                return;
            }
            let seen = (received, self.retired.0);
            assert!(begun.elapsed() < PATIENCE, "{seen:?} of {} packets are in the account", self.played);
            thread::yield_now();
        }
    }

    /// The frames that have left since the last call, sorted.
    fn left(&self) -> Vec<Vec<u8>> {
        let mut left: Vec<_> =
            self.bench.left.iter().flat_map(|cable| std::mem::take(&mut *cable.lock().unwrap())).collect();
        left.sort();
        left
    }
}

fn in_order(divisor: u16) -> String {
    format!(
        "{IN_ORDER}
steer decoder which(eth: ethernet) {{ match eth.type {{ 0x88b5 => by_flow, else => steer 0 }} }}
decoder by_flow(p: probe) {{ steer p.flow / {divisor} }}
"
    )
}

#[test]
fn every_packet_runs_once_in_order_at_its_own_worker_while_programs_take_over() {
    const FLOWS: u16 = 24;
    const CHUNK: u32 = 40;
    for workers in [2, 3] {
        let mut steered = Steered::new(&in_order(3), workers);
        for chunk in 0..20 {
            for at in chunk * CHUNK..(chunk + 1) * CHUNK {
                // The lane of a flow is seldom that of its worker.
                (0..FLOWS).for_each(|flow| steered.put(usize::from(flow) % workers, probe(flow, at)));
            }
            steered.replace(&in_order(3), u64::from(chunk) + 2, Vec::new());
            steered.settle();
        }
        let left = steered.left();
        let Steered { bench, retired, played } = steered;
        let last = bench.stop();
        only_own(&last, 3);
        let (received, forwarded) = account(&last);
        assert_eq!((received + retired.0, forwarded + retired.1), (played, played), "{workers} workers");
        assert_eq!(left.len() as u64, played, "each packet left once, in the order of its flow");
    }
}

/// Every worker has learned flows, and none of another worker.
fn only_own(parts: &[Generation], divisor: u128) {
    for (worker, part) in parts.iter().enumerate() {
        let flows = part.backend.learned(0);
        assert!(!flows.is_empty());
        for Entry { key, .. } in flows {
            let Match::Exact(flow) = key[0] else { panic!("the table is exact") };
            assert_eq!((flow / divisor) as usize % parts.len(), worker, "flow {flow}");
        }
    }
}

#[test]
fn what_an_earlier_program_has_steered_is_steered_again() {
    for round in 0..10 {
        let mut steered = Steered::new(&in_order(1), 2);
        for at in 0..40 {
            (0..24).for_each(|flow| steered.put(usize::from(flow) % 2, probe(flow, at)));
        }
        // What comes behind the takeover is out of order, but where it should be.
        steered.replace(&in_order(3), 2, vec!["last".to_string()]);
        (0..24).for_each(|flow| steered.put(usize::from(flow) % 2, probe(flow, 40)));
        steered.settle();
        let Steered { bench, retired, played } = steered;
        let last = bench.stop();
        only_own(&last, 3);
        assert_eq!(account(&last).0 + retired.0, played, "round {round}");
    }
}

#[test]
fn what_is_on_its_way_when_all_end_is_run() {
    for round in 0..20 {
        let mut steered = Steered::new(&in_order(1), 2);
        for at in 0..100 {
            (0..4).for_each(|flow| steered.put(usize::from(flow + 1) % 2, probe(flow, at)));
        }
        while steered.bench.come.iter().any(|cable| !cable.lock().unwrap().is_empty()) {
            thread::yield_now();
        }
        let Steered { bench, played, .. } = steered;
        assert_eq!(account(&bench.stop()), (played, played), "round {round}");
    }
}

#[test]
fn what_finds_no_room_is_dropped_by_name_and_counted_once() {
    let mut steered = Steered::new(&in_order(1), 2);
    // The worker of flow 1 stands still for as long as this lasts.
    let (release, held) = mpsc::channel::<()>();
    let (stands, standing) = mpsc::channel();
    let remote = steered.bench.remote.clone();
    let holder = thread::spawn(move || {
        remote.ask_at(1, move |_| {
            let _ = stands.send(());
            let _ = held.recv();
        })
    });
    standing.recv().expect("it stands still");
    const MANY: u32 = 20_000;
    for at in 0..MANY {
        steered.put(0, probe(1, at));
    }
    let begun = Instant::now();
    while !steered.bench.come[0].lock().unwrap().is_empty() {
        assert!(begun.elapsed() < PATIENCE, "worker 0 takes nothing");
        thread::yield_now();
    }
    drop(release);
    assert!(holder.join().expect("no panic").is_some());
    steered.settle();
    let last = steered.bench.stop();
    let busy = last[0].program.reasons.iter().position(|reason| reason.name == "worker_busy");
    let dropped = last[0].ledger.dropped(busy.expect("it has a name") as u16).packets;
    let (received, forwarded) = account(&last);
    assert!(dropped > 0 && dropped < u64::from(MANY), "{dropped}");
    assert_eq!(last[0].ledger.received().packets, dropped);
    // Of the first packets none is missing, so these go on.
    assert_eq!(received, u64::from(MANY));
    assert_eq!(forwarded + dropped, u64::from(MANY), "those that found room are the first ones");
    assert_eq!(last[0].recent.examples().count(), 8, "some are kept to be looked at");
}

/// Segments of many connections of TCP: a step is one segment of each.
fn steps(connections: u32) -> Vec<Vec<(u32, Vec<u8>)>> {
    let segment = |number: u32, reply: bool, seq: u32, ack: u32, flags: u8| {
        let client = (0x0a00_0001 + number / 3, 1024 + number as u16);
        let server = (0xc000_0200 + number % 7, 443u16);
        let (from, to) = if reply { (server, client) } else { (client, server) };
        let mut bytes = [0; 60].to_vec();
        bytes[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
        bytes[14..26].copy_from_slice(&[0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        bytes[26..30].copy_from_slice(&from.0.to_be_bytes());
        bytes[30..34].copy_from_slice(&to.0.to_be_bytes());
        bytes[34..36].copy_from_slice(&from.1.to_be_bytes());
        bytes[36..38].copy_from_slice(&to.1.to_be_bytes());
        bytes[38..42].copy_from_slice(&seq.to_be_bytes());
        bytes[42..46].copy_from_slice(&ack.to_be_bytes());
        bytes[46..50].copy_from_slice(&[0x50, flags, 0xff, 0xff]);
        bytes
    };
    // The last two are outside of the window, and of no connection.
    let shape = [
        (false, 1000, 0, 0x02),
        (true, 5000, 1001, 0x12),
        (false, 1001, 5001, 0x10),
        (true, 5001, 1001, 0x10),
        (false, 1001, 5001, 0x11),
        (true, 5001, 1002, 0x11),
        (false, 1002, 5002, 0x10),
        (false, 0x7000_0000, 5002, 0x10),
    ];
    let step = |&(reply, seq, ack, flags): &(bool, u32, u32, u8)| {
        (0..connections).map(|number| (number, segment(number, reply, seq, ack, flags))).collect()
    };
    let mut steps: Vec<Vec<(u32, Vec<u8>)>> = shape.iter().map(step).collect();
    steps.push((0..connections).map(|number| (number, segment(number + 30_000, true, 7, 7, 0x10))).collect());
    steps
}

/// `stateful` with both ends behind one port: what it lets pass leaves by port 2.
fn stateful() -> String {
    let text = include_str!("../../../../../programs/stateful.rav");
    let begin = text.find("test \"").expect("it has tests");
    format!("{}\nconst CHECK_PORTS: bool = false\n", &text[..begin])
}

#[test]
fn connections_mean_the_same_on_any_number_of_workers_wherever_packets_come_in() {
    let text = stateful();
    let run = |workers: usize, mut lane: Box<dyn FnMut() -> usize>| {
        let mut steered = Steered::new(&text, workers);
        let mut left = Vec::new();
        for step in steps(300) {
            for (_, frame) in step {
                steered.put(lane(), frame);
            }
            steered.settle();
            left.push(steered.left());
        }
        let last = steered.bench.stop();
        let drops = |name: &str| -> u64 {
            last.iter()
                .map(|part| {
                    let reasons = &part.program.reasons;
                    let reason = reasons.iter().position(|reason| reason.name == name).expect("declared");
                    part.ledger.dropped(reason as u16).packets
                })
                .sum()
        };
        let drops = ["tcp_window", "no_connection", "worker_busy"].map(drops);
        (left, drops, last.iter().map(|part| part.ledger.received().packets).collect::<Vec<_>>())
    };
    let one = run(1, Box::new(|| 0));
    assert_eq!(one.0.iter().map(Vec::len).collect::<Vec<_>>(), [300, 300, 300, 300, 300, 300, 300, 0, 0]);
    for workers in [2, 4] {
        let mut random = 7u64;
        let lane = move || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % workers
        };
        let several = run(workers, Box::new(lane));
        assert_eq!((&several.0, several.1), (&one.0, one.1), "{workers} workers");
        assert!(several.2.iter().all(|&packets| packets > 0), "each has some: {:?}", several.2);
    }
}
