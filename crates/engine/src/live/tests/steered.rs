//! Packets that come in at another worker than their own: the same account and the same verdicts as on one
//! worker.

use super::*;
use captures::generate::TcpStep;
use std::ops::Range;
use std::time::{Duration, Instant};
use tables::generate::Random;

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
fn steps(connections: u32) -> Vec<Vec<Vec<u8>>> {
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
    let all = |&(reply, sequence, acknowledgement, flags): &(bool, u32, u32, u8), numbers: Range<u32>| {
        let step = TcpStep { reply, sequence, acknowledgement, flags };
        numbers.map(|number| step.of_connection(number).to_vec()).collect()
    };
    let mut steps: Vec<Vec<Vec<u8>>> = shape.iter().map(|step| all(step, 0..connections)).collect();
    steps.push(all(&(true, 7, 7, 0x10), 30_000..30_000 + connections));
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
            for frame in step {
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
        let mut random = Random::new(7);
        let lane = move || random.below(workers as u64) as usize;
        let several = run(workers, Box::new(lane));
        assert_eq!((&several.0, several.1), (&one.0, one.1), "{workers} workers");
        assert!(several.2.iter().all(|&packets| packets > 0), "each has some: {:?}", several.2);
    }
}

/// The ways between two workers, with generations of a program.
fn two_by_hand(text: &str) -> (Vec<crossing::Crossing>, Vec<Generation>) {
    let bell = || ports::live::Waiter::new(&[]).expect("Linux has descriptors").bell();
    let mut crossings = crossing::crossings(&[bell(), bell()]);
    let mut generations = loaded(text, 2).generations(PORTS, 1);
    crossings.iter_mut().zip(&mut generations).for_each(|(crossing, part)| crossing.prepare(part));
    (crossings, generations)
}

#[test]
fn what_a_worker_that_fails_has_not_taken_is_in_the_account() {
    const MANY: u32 = 5_000;
    for taken in [0, 1, 7] {
        let (mut crossings, mut generations) = two_by_hand(&in_order(1));
        let (mut memory, mut batch) = (Vec::new(), Batch::new());
        batch.headroom = HEADROOM as u32;
        for at in 0..MANY {
            let (start, frame) = (HEADROOM, probe(1, at));
            memory.resize(start + frame.len() + SLACK, 0);
            memory[start..start + frame.len()].copy_from_slice(&frame);
            batch.clear();
            batch.push(start as u64, frame.len() as u32, frame.len() as u32, 1, 0);
            crossings[0].steer(&mut generations[0], &mut memory, &mut batch);
            assert!(batch.is_empty(), "it belongs to the other worker");
        }
        let mut ran = 0;
        for _ in 0..taken {
            let (from, parcel) = crossings[1].arrived().expect("there are many");
            ran += parcel.batch.len as u64;
            crossings[1].give_back(from, parcel);
        }
        assert!(!crossings[0].ends(), "the other one still has to take something");
        crossings[1].leaves();
        assert!(crossings[0].ends(), "nobody waits for a worker that has failed");
        for (crossing, generation) in crossings.iter_mut().zip(&mut generations) {
            crossing.leaves();
            crossing.drop_untaken(generation);
        }
        let busy = generations[0].worker_busy;
        assert_eq!(generations[0].program.reasons[usize::from(busy)].name, "worker_busy");
        assert_eq!(generations[0].ledger.dropped(busy).packets + ran, u64::from(MANY), "{taken} taken");
        assert_eq!(account(&generations), (u64::from(MANY) - ran, 0));
    }
}

#[test]
fn what_a_program_that_does_not_steer_drops_on_the_way_has_the_reason_of_its_own() {
    let part = loaded("start stage all() { flood }", 2).generations(PORTS, 1).remove(0);
    assert_eq!(part.program.reasons[usize::from(part.worker_busy)].name, "worker_busy");
}

/// Decides about packets of the machine, and hands them to the second worker.
const JUDGES: &str = r#"
import std.net.ethernet
start decoder frame(eth: ethernet) { if from_host { send in_port } send 2 }
steer decoder which(eth: ethernet) { steer 1 }
"#;

#[test]
fn what_the_machine_sent_under_an_earlier_program_leaves_by_its_port() {
    let left = [Cable::default(), Cable::default()];
    let lane = |port, left: &Cable| Lane {
        receive: Box::new(In {
            cable: Cable::default(),
            port,
            memory: Vec::new(),
            silent: UnixStream::pair().unwrap(),
        }),
        send: Box::new(Out(left.clone())),
    };
    let lanes = left.iter().map(|left| vec![lane(1, &Cable::default()), lane(2, left)]).collect();
    let (mut crew, remote) = super::workers(lanes, &machine()).unwrap();
    let bells: Vec<Bell> = remote.lines().iter().map(|line| line.bell.clone()).collect();
    let mut crossings = crossing::crossings(&bells);
    // Two packets of the machine and one of port 1 are on their way, steered by a program before this one.
    let mut earlier = loaded(JUDGES, 2).generations(PORTS, 1).remove(0);
    crossings[0].prepare(&mut earlier);
    let (mut memory, mut batch) = (vec![0; 3 * 256], Batch::new());
    for (flow, port) in [(7, 2 | ir::FROM_HOST), (8, 2 | ir::FROM_HOST), (9, 1)] {
        let (start, frame) = (batch.len * 256 + HEADROOM, probe(flow, 0));
        memory[start..start + frame.len()].copy_from_slice(&frame);
        batch.push(start as u64, frame.len() as u32, frame.len() as u32, port, 0);
    }
    crossings[0].steer(&mut earlier, &mut memory, &mut batch);
    crew.iter_mut().zip(crossings).for_each(|(worker, crossing)| worker.meets(crossing));
    let generations = loaded(IN_ORDER, 2).generations(PORTS, 2);
    let for_crew = remote.clone();
    let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
    // All workers run, and then end: what is on its way is run before.
    remote.ask(|_, _| ()).expect("all workers run");
    remote.stop();
    let Ended { generations: last, failure } = running.join().unwrap();
    assert!(failure.is_none(), "{failure:?}");
    assert_eq!(*left[1].lock().unwrap(), [probe(7, 0), probe(8, 0), probe(9, 0)]);
    assert_eq!(account(&last), (1, 1), "the program has run the one that came by a port");
    assert_eq!(last.iter().map(|part| part.ledger.injected()).sum::<u64>(), 2);
}

#[test]
fn parcels_take_the_memory_that_is_told_of() {
    assert_eq!(parcel_memory(1), (0, 0));
    for workers in [2, 3, 8, 64] {
        let (parcels, bytes) = parcel_memory(workers);
        let bell = ports::live::Waiter::new(&[]).expect("Linux has descriptors").bell();
        let crossings = crossing::crossings(&vec![bell; usize::from(workers)]);
        assert_eq!(crossings.iter().map(crossing::Crossing::parcels).sum::<usize>() as u64, parcels);
        assert!(bytes / parcels > 80 << 10 && bytes < 2 << 30, "{workers} workers: {bytes}");
    }
}

#[test]
fn parcels_are_known_to_be_there_from_the_first_program_that_steers() {
    const IDLE: &str = "start stage all() { flood }";
    let mut steered = Steered::new(IDLE, 2);
    let there = |steered: &Steered| steered.bench.remote.ask(|part, _| part.has_parcels).expect("all run");
    assert_eq!(there(&steered), [false, false]);
    steered.replace(&in_order(1), 2, Vec::new());
    assert_eq!(there(&steered), [true, true]);
    // They stay for a program that steers later.
    steered.replace(IDLE, 3, vec!["last".to_string()]);
    assert_eq!(there(&steered), [true, true]);
    steered.bench.stop();
    let alone = Steered::new(&in_order(1), 1);
    assert_eq!(there(&alone), [false], "one worker has nobody to send packets to");
    alone.bench.stop();
}
