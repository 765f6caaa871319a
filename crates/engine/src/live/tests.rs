//! Workers over lanes of memory: the same packets on one worker and on several, and programs that replace
//! each other meanwhile.

mod guarded;
mod held;
mod host_share;
mod looks;
mod ordered;
mod other_ports;
mod resting;
mod steered;

use super::*;
use crate::filter::Filter;
use exec::{Backend, BackendKind, EntryPlace, load_measurable};
use ir::steering::declare_worker_busy;
use ir::{Entry, Match};
use lang::pipeline::{CompileOptions, compile};
use packet::region::{HEADROOM, SLACK};
use packet::{Batch, PortNumber, VirtioHeader};
use ports::live::clock::{MachineClock, Now};
use ports::live::{ReceiveLosses, Receiver, SendLosses, Sender};
use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// Every packet carries its flow and its number within it; one that is not the next of its flow is dropped.
/// So whatever is lost, comes twice, comes in another order, or finds the table without what the one before
/// it left there, is in the account.
const IN_ORDER: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason other "no probe"
reason out_of_order "not the next of its flow"
reason asked "the control side wants it"
table last: exact(u16) -> u32 { capacity 4k  idle 1h  evict lru }
table wanted: exact(u16) { capacity 16 }
start decoder frame(eth: ethernet) { match eth.type { 0x88b5 => check, else => drop other } }
decoder check(p: probe) {
    match wanted[p.flow] { some _ => { punt asked } none => {} }
    match last[p.flow] {
        some n => {
            learn last[p.flow] = p.number
            if p.number != n +% 1 { drop out_of_order }
        }
        none => {
            learn last[p.flow] = p.number
            if p.number != 0 { drop out_of_order }
        }
    }
    send 2
}
"#;
const PORTS: u16 = 2;

/// Frames that wait at a lane.
type Cable = Arc<Mutex<VecDeque<Vec<u8>>>>;

struct In {
    cable: Cable,
    port: PortNumber,
    memory: Vec<u8>,
    /// Something to wait for, which never comes: the loop looks again soon.
    silent: (UnixStream, UnixStream),
}

impl Receiver for In {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        const ROOM: usize = 256;
        batch.clear();
        batch.headroom = HEADROOM as u32;
        self.memory.resize(ROOM * packet::BATCH, 0);
        let mut cable = self.cable.lock().unwrap();
        while !batch.is_full() {
            let Some(frame) = cable.pop_front() else { break };
            let start = batch.len * ROOM + HEADROOM;
            self.memory[start..start + frame.len()].copy_from_slice(&frame);
            assert!(HEADROOM + frame.len() + SLACK <= ROOM);
            batch.push(start as u64, frame.len() as u32, frame.len() as u32, self.port, now.program);
        }
        &mut self.memory
    }

    fn descriptor(&self) -> RawFd {
        self.silent.0.as_raw_fd()
    }

    fn due(&self) -> Option<u64> {
        Some(MachineClock.program() + 1_000_000)
    }

    fn losses(&mut self) -> ReceiveLosses {
        ReceiveLosses::default()
    }
}

struct Out(Cable);

impl Sender for Out {
    fn send(&mut self, frame: &[u8], _offload: VirtioHeader) {
        self.0.lock().unwrap().push_back(frame.to_vec());
    }

    fn flush(&mut self) {}

    fn losses(&self) -> SendLosses {
        SendLosses::default()
    }
}

fn machine() -> Arc<dyn Clock> {
    Arc::new(MachineClock)
}

/// Workers with two ports each: what comes in by port 1, and what leaves by port 2.
struct Bench {
    come: Vec<Cable>,
    left: Vec<Cable>,
    remote: Remote,
    running: thread::JoinHandle<Ended>,
}

impl Bench {
    fn new(workers: usize) -> Bench {
        Bench::running(workers, loaded(IN_ORDER, workers))
    }

    /// Workers that run a program.
    fn running(workers: usize, loaded: Loaded) -> Bench {
        Bench::by(&machine(), workers, loaded)
    }

    /// Workers that run a program by a clock.
    fn by(clock: &Arc<dyn Clock>, workers: usize, loaded: Loaded) -> Bench {
        let cables = || (0..workers).map(|_| Cable::default()).collect::<Vec<_>>();
        let (come, left) = (cables(), cables());
        let lane = |port, come: &Cable, left: &Cable| Lane {
            receive: Box::new(In {
                cable: come.clone(),
                port,
                memory: Vec::new(),
                silent: UnixStream::pair().unwrap(),
            }),
            send: Box::new(Out(left.clone())),
        };
        let lanes = (come.iter().zip(&left))
            .map(|(come, left)| vec![lane(1, come, &Cable::default()), lane(2, &Cable::default(), left)])
            .collect();
        let (crew, remote) = super::workers(lanes, clock).unwrap();
        let generations = loaded.generations(PORTS, 1);
        let for_crew = remote.clone();
        let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
        Bench { come, left, remote, running }
    }

    /// Plays the numbers from `first` on of every flow, those of a flow to one worker; a lane holds no more
    /// than a ring would.
    fn play(&self, flows: u16, numbers: std::ops::Range<u32>) {
        for number in numbers {
            for flow in 0..flows {
                let cable = &self.come[usize::from(flow) % self.come.len()];
                while cable.lock().unwrap().len() > 4096 {
                    self.wait();
                }
                cable.lock().unwrap().push_back(probe(flow, number));
            }
        }
    }

    /// Waits until nothing waits at any lane, and a further batch has ended.
    fn settle(&self) {
        while self.come.iter().any(|cable| !cable.lock().unwrap().is_empty()) {
            self.wait();
        }
        self.remote.ask(|_, _| ()).expect("runs");
    }

    /// Lets the workers go on, which they cannot do once one of them has broken off.
    fn wait(&self) {
        assert!(!self.running.is_finished(), "the workers have ended, and packets wait");
        thread::yield_now();
    }

    fn stop(self) -> Vec<Generation> {
        self.remote.stop();
        let Ended { generations, failure } = self.running.join().unwrap();
        assert!(failure.is_none(), "{failure:?}");
        assert!(self.remote.ask(|_, _| ()).is_none(), "nobody answers any more");
        generations
    }
}

fn probe(flow: u16, number: u32) -> Vec<u8> {
    let mut frame = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb5".to_vec();
    frame.extend(flow.to_be_bytes());
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

fn loaded(text: &str, workers: usize) -> Loaded {
    loaded_as(BackendKind::Native, text, workers)
}

fn loaded_as(back_end: BackendKind, text: &str, workers: usize) -> Loaded {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    let mut program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    declare_worker_busy(&mut program).expect("there is a number left");
    let program = Arc::new(program);
    let backend = |_| load_measurable(&program, back_end, PORTS, 0).unwrap();
    let backends = (0..workers).map(backend).collect();
    let steering = load_steering(&program, back_end, workers as u16).expect("loads");
    Loaded { program, sources: Arc::new(compiled.sources), backends, schedule: None, steering }
}

/// Received, forwarded, and otherwise accounted for, of these parts together; in each alone the books
/// balance.
fn account(parts: &[Generation]) -> (u64, u64) {
    let mut sums = (0, 0);
    for Generation { ledger, program, .. } in parts {
        let reasons = 0..program.reasons.len() as u16;
        let other: u64 = reasons.map(|r| ledger.dropped(r).packets + ledger.punted(r).packets).sum();
        let (received, forwarded) = (ledger.received().packets, ledger.forwarded().packets);
        assert_eq!(received, forwarded + other);
        sums = (sums.0 + received, sums.1 + forwarded);
    }
    sums
}

#[test]
fn a_flow_sees_one_program_after_the_other_and_no_packet_is_lost_on_any_number_of_workers() {
    const FLOWS: u16 = 10;
    const NUMBERS: u32 = 3_000;
    for workers in [1, 3] {
        let bench = Bench::new(workers);
        let (mut received, mut forwarded, mut programs) = (0, 0, 1);
        thread::scope(|scope| {
            let player = scope.spawn(|| bench.play(FLOWS, 0..NUMBERS));
            while !player.is_finished() {
                programs += 1;
                let new = loaded(IN_ORDER, workers).generations(PORTS, programs);
                let replaced = bench.remote.replace(new, Vec::new()).expect("all workers run");
                assert_eq!(replaced.outcome.expect("the shape is the same").len(), workers);
                let (in_, out) = account(&replaced.retired);
                (received, forwarded) = (received + in_, forwarded + out);
            }
        });
        bench.settle();
        let mut sequences: HashMap<u16, Vec<u32>> = HashMap::new();
        for frame in bench.left.iter().flat_map(|cable| cable.lock().unwrap().clone()) {
            let flow = u16::from_be_bytes([frame[14], frame[15]]);
            let number = u32::from_be_bytes([frame[16], frame[17], frame[18], frame[19]]);
            sequences.entry(flow).or_default().push(number);
        }
        let last = bench.stop();
        assert!(last.iter().all(|part| part.number == programs));
        let (in_, out) = account(&last);
        let all = u64::from(FLOWS) * u64::from(NUMBERS);
        assert_eq!((received + in_, forwarded + out), (all, all), "{workers} workers, {programs} programs");
        assert_eq!(sequences.len(), usize::from(FLOWS));
        let whole: Vec<u32> = (0..NUMBERS).collect();
        assert!(sequences.values().all(|numbers| *numbers == whole), "in order within every flow");
    }
}

#[test]
fn a_program_takes_over_at_all_workers_or_at_none() {
    let bench = Bench::new(2);
    bench.play(4, 0..10);
    bench.settle();
    let other = IN_ORDER.replace("table last: exact(u16) -> u32", "table last: exact(u32) -> u32");
    let other = other.replace("last[p.flow]", "last[p.flow as u32]");
    let replaced = bench.remote.replace(loaded(&other, 2).generations(PORTS, 2), Vec::new()).expect("run");
    assert!(matches!(replaced.outcome, Err(ReplaceError::Misfit { .. })));
    assert_eq!(account(&replaced.retired), (0, 0), "the new one has not seen a packet");
    // What one worker has learned finds room; the table that takes over holds less than what the other one
    // has.
    bench.play(64, 10..11);
    bench.settle();
    let small = IN_ORDER.replace("capacity 4k", "capacity 20").replace("evict lru", "evict refuse");
    let small = small.replace("= p.number\n", "= p.number else {}\n");
    let discard = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let one = bench.remote.ask(|generation, _| generation.backend.learned(0).len()).expect("run");
    assert_eq!(one, [32, 32]);
    let replaced = bench.remote.replace(loaded(&small, 2).generations(PORTS, 2), Vec::new()).expect("run");
    assert!(
        matches!(replaced.outcome, Err(ReplaceError::Entry { .. })),
        "32 entries do not fit in 20 places"
    );
    assert_eq!(bench.remote.ask(|generation, _| generation.number), Some(vec![1, 1]));
    let replaced =
        bench.remote.replace(loaded(&small, 2).generations(PORTS, 2), discard(&["last"])).expect("run");
    assert!(replaced.outcome.is_ok());
    assert_eq!(bench.remote.ask(|generation, _| generation.number), Some(vec![2, 2]));
    bench.stop();
}

#[test]
fn what_control_does_reaches_all_workers() {
    let bench = Bench::new(3);
    let punts = bench.remote.punts(|_, _| None);
    let entry = Entry { key: vec![Match::Exact(7)], value: Vec::new(), priority: 0 };
    let put = bench.remote.ask(move |generation, _| generation.backend.insert(1, &entry));
    assert_eq!(put, Some(vec![Ok(()); 3]));
    bench.play(9, 0..3);
    bench.settle();
    let all: Vec<PuntedPackets> = punts.try_iter().collect();
    let told = |of: Punted<'_>| (of.reason.to_string(), of.port, of.bytes.to_vec());
    let punted = all.iter().flat_map(|some| (0..some.len()).filter_map(|index| some.packet(index).map(told)));
    let expected = (0..3).map(|number| ("asked".to_owned(), 1, probe(7, number)));
    assert_eq!(punted.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let frame = probe(99, 1);
    let injected = Injected { port: 2, bytes: frame.clone(), virtio: VirtioHeader::NONE };
    assert!(bench.remote.send(vec![injected.clone(), Injected { port: 9, ..injected }]));
    bench.settle();
    assert_eq!(bench.left[0].lock().unwrap().back(), Some(&frame));
    let last = bench.stop();
    assert_eq!(account(&last), (27, 24));
    let (injected, lost) = (last[0].ledger.injected(), last[0].ledger.lost());
    assert_eq!((injected, lost), (2, 1), "one of them had no port");
    let left: u64 = last.iter().map(|part| part.ledger.transmitted_by(2).packets).sum();
    assert_eq!(left, 24 + 1);
}

#[test]
fn packets_of_the_machine_pass_a_program_by_unless_it_decides_about_them() {
    const DECIDES: &str = r#"
import std.net.ethernet
reason forbidden "the machine may not send this"
start decoder frame(eth: ethernet) {
    if from_host {
        if eth.type == 0x88b5 { drop forbidden }
        send in_port
    }
    flood
}
"#;
    let frame = |kind: u8| [&[2; 12][..], &[0x88, kind], &[0; 46]].concat();
    let frames = || {
        let of = |port, kind| Injected { port, bytes: frame(kind), virtio: VirtioHeader::NONE };
        vec![of(2, 0xb5), of(2, 0xb6), of(1, 0xb6)]
    };
    for (text, left, received, injected) in
        [(IN_ORDER, vec![frame(0xb5), frame(0xb6)], 0, 3), (DECIDES, vec![frame(0xb6)], 3, 0)]
    {
        let bench = Bench::running(2, loaded(text, 2));
        // A filter asks for the port, and knows nothing of marks.
        let filter = || Filter::new("in_port == 2").expect("a filter");
        let wish = Wish { snap: 64, duration: Duration::from_secs(60), steps: None };
        let watching = bench.remote.watch(vec![filter(), filter()], wish).expect("runs");
        assert!(bench.remote.send_from_host(frames(), true));
        bench.settle();
        assert_eq!(*bench.left[0].lock().unwrap(), left);
        for _ in 0..if received > 0 { 2 } else { 0 } {
            let seen = watching.next(Duration::from_secs(20)).expect("runs").expect("it was seen");
            assert_eq!(seen.port, 2);
        }
        let last = bench.stop();
        account(&last);
        let ledger = &last[0].ledger;
        let by_port = [1, 2].map(|port| ledger.received_by(port).packets);
        assert_eq!((by_port.iter().sum::<u64>(), ledger.injected()), (received, injected));
        assert_eq!(by_port[1], if received > 0 { 2 } else { 0 });
    }
}

#[test]
fn between_two_batches_of_the_machine_every_port_has_its_turn() {
    const EITHER: &str = "start stage all() { if from_host { send in_port } flood }";
    const TURN: usize = 4 * packet::BATCH;
    let bench = Bench::running(1, loaded(EITHER, 1));
    let request = |request| assert!(bench.remote.lines()[0].request(request));
    // The worker waits until the turn is asked for, and packets are there, too.
    let (gate, wait) = mpsc::channel::<()>();
    request(Request::Ask(Box::new(move |_, _| {
        let _ = wait.recv();
    })));
    let frame = |kind: u8| vec![kind; 60];
    let frames = vec![Injected { port: 2, bytes: frame(1), virtio: VirtioHeader::NONE }; TURN];
    let (sent, done) = mpsc::channel();
    request(Request::FromHost { frames, cut: true, sent });
    bench.come[0].lock().unwrap().extend(vec![frame(2); 3 * TURN]);
    drop(gate);
    assert!(done.recv().is_err(), "nothing is ever sent");
    bench.settle();
    let left: Vec<u8> = bench.left[0].lock().unwrap().iter().map(|frame| frame[0]).collect();
    assert_eq!(left.iter().filter(|kind| **kind == 1).count(), TURN);
    let runs: Vec<usize> =
        left.chunk_by(|one, next| one == next).filter(|run| run[0] == 1).map(<[u8]>::len).collect();
    assert_eq!(runs, [packet::BATCH; 4]);
    let last = bench.stop();
    assert_eq!(account(&last), (4 * TURN as u64, 4 * TURN as u64));
}

#[test]
fn between_two_steps_of_work_every_port_has_its_turn_and_later_requests_wait() {
    const FLOOD: &str = "start stage all() { flood }";
    const STEPS: usize = 3;
    let bench = Bench::running(1, loaded(FLOOD, 1));
    let (gate, wait) = mpsc::channel::<()>();
    let (shut, is_shut) = mpsc::channel::<()>();
    let closed = Request::Ask(Box::new(move |_, _| {
        let _ = shut.send(());
        let _ = wait.recv();
    }));
    assert!(bench.remote.lines()[0].request(closed));
    is_shut.recv().expect("the worker waits at the gate");
    // More than the steps see.
    const COME: usize = (STEPS + 2) * packet::BATCH;
    bench.come[0].lock().unwrap().extend(vec![vec![2; 60]; COME]);
    let received = |generation: &Generation| generation.ledger.received_by(1).packets;
    let (worked, later) = thread::scope(|scope| {
        let begun = Arc::new(Mutex::new(false));
        let marks = begun.clone();
        let step = move |generation: &mut Generation, seen: &mut Vec<u64>| {
            seen.push(received(generation));
            (seen.len() == STEPS).then(|| std::mem::take(seen))
        };
        let remote = &bench.remote;
        let worked = scope.spawn(move || {
            let begin = move || {
                *marks.lock().unwrap() = true;
                Vec::new()
            };
            remote.ask_in_steps(begin, step)
        });
        while !*begun.lock().unwrap() {
            thread::yield_now();
        }
        let later = scope.spawn(|| bench.remote.ask(move |generation, _| received(generation)));
        drop(gate);
        (worked.join().unwrap(), later.join().unwrap())
    });
    let seen = worked.expect("runs").remove(0);
    assert!(seen.windows(2).all(|two| two[1] - two[0] == packet::BATCH as u64), "{seen:?}");
    assert!(later.expect("runs")[0] > seen[STEPS - 1], "{seen:?}");
    bench.settle();
    let last = bench.stop();
    assert_eq!(account(&last).0, COME as u64);
}

#[test]
fn each_worker_tells_its_entries_in_parts_from_places_of_its_own() {
    let bench = Bench::new(2);
    bench.play(600, 0..1);
    bench.settle();
    let whole = bench.remote.ask(|generation, _| generation.backend.entries(0)).expect("run");
    let mut told: Vec<Vec<Entry>> = vec![Vec::new(); 2];
    let mut next = vec![Some(EntryPlace::default()); 2];
    while next.iter().any(Option::is_some) {
        let part = |generation: &mut Generation, from: Option<EntryPlace>| {
            from.map(|from| generation.backend.entries_part(0, from, 16)).unwrap_or_default()
        };
        let parts = bench.remote.ask_each(next, part).expect("run");
        next = parts.iter().map(|part| part.1).collect();
        told.iter_mut().zip(parts).for_each(|(told, part)| told.extend(part.0));
    }
    for (mut told, whole) in told.into_iter().zip(whole) {
        assert!(whole.len() > 64, "both have some");
        told.sort();
        assert_eq!(told, whole.into_iter().map(|(entry, _)| entry).collect::<Vec<_>>());
    }
    bench.stop();
}

#[test]
fn a_measurement_has_every_packet_and_ends() {
    let bench = Bench::new(2);
    let measurement = thread::scope(|scope| {
        let measured = scope.spawn(|| bench.remote.measure(Duration::from_millis(300)));
        let other = scope.spawn(|| bench.remote.measure(Duration::from_millis(50)));
        for number in 0.. {
            if measured.is_finished() {
                break;
            }
            bench.play(2, number..number + 1);
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(other.join().unwrap().expect("two can be measured at once").workers, 2);
        measured.join().unwrap().expect("all workers run")
    });
    assert_eq!(measurement.workers, 2);
    assert!(measurement.seconds >= 0.3 && measurement.packets > 0);
    let batches: u64 = measurement.batches().iter().map(|&(_, batches)| batches).sum();
    assert!((1..=measurement.packets).contains(&batches));
    let stops = measurement.stops();
    assert_eq!(stops[0].name, "receive");
    let whole: f64 = stops.iter().map(|stop| stop.share).sum();
    assert!((whole - 1.0).abs() < 1e-6, "every cycle was at some stop: {whole}");
    let latency = measurement.latency();
    assert_eq!(latency.packets, measurement.packets, "all of them leave");
    assert!(latency.min <= latency.p50 && latency.p50 <= latency.p99 && latency.p99 <= latency.max);
    bench.stop();
}

/// Runs like [`IN_ORDER`], but for a stage that does sixty times as much as another.
fn uneven() -> String {
    let stages = "counter spins[64]
stage heavy() { for i in 0..60 { for j in 0..5 { count spins[i] } } goto light }
stage light() { count spins[63] send 2 }
";
    IN_ORDER.replace("    send 2\n}", "    goto heavy\n}") + stages
}

#[test]
fn stages_are_measured_on_and_off_and_no_packet_is_lost() {
    const FLOWS: u16 = 10;
    const NUMBERS: u32 = 3_000;
    let line = 1 + uneven().lines().position(|line| line.starts_with("stage heavy")).expect("is there");
    for workers in [1, 2] {
        let bench = Bench::new(workers);
        let new = loaded(&uneven(), workers).generations(PORTS, 2);
        assert!(bench.remote.replace(new, Vec::new()).expect("all workers run").outcome.is_ok());
        // However long the measured variant takes to compile, packets come until so many were measured at
        // once.
        let enough = |all: &[Measurement]| all.iter().any(|one| one.program().packets >= 256);
        let is_over = AtomicBool::new(false);
        let (measurements, numbers) = thread::scope(|scope| {
            let player = scope.spawn(|| {
                let mut numbers = 0;
                while numbers < NUMBERS || !is_over.load(Ordering::Relaxed) {
                    bench.play(FLOWS, numbers..numbers + 100);
                    numbers += 100;
                }
                numbers
            });
            let mut measurements = Vec::new();
            for times in 1.. {
                if player.is_finished() {
                    break;
                }
                // A slow machine has as many packets in a longer time.
                measurements.extend(bench.remote.measure(Duration::from_millis(20 * times.min(50))));
                is_over.store(enough(&measurements), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
            (measurements, player.join().unwrap())
        });
        bench.settle();
        let last = bench.stop();
        let all = u64::from(FLOWS) * u64::from(numbers);
        assert_eq!(account(&last), (all, all), "every packet found what the one before it left");
        let measured: Vec<&Measurement> =
            measurements.iter().filter(|measurement| measurement.program().packets > 0).collect();
        let most = measured.iter().map(|measurement| measurement.program().packets).max();
        let most = most.unwrap_or_else(|| panic!("{} measurements, {workers} workers", measurements.len()));
        for measurement in measured {
            let ProgramCosts { generation, packets, stages, .. } = measurement.program();
            assert_eq!((generation, &measurement.unmeasured), (2, &None));
            assert!(packets <= measurement.packets);
            let of = |name: &str| stages.iter().find(|stage| stage.name == name).expect(name);
            for name in ["frame", "check", "heavy", "light"] {
                assert_eq!(of(name).entered, packets, "{name}: every packet that was measured is there");
            }
            assert_eq!(of("heavy").place, format!("p.rav:{line}"));
            let (heavy, light) = (of("heavy"), of("light"));
            assert!(heavy.p50 <= heavy.p99 && light.p50 <= light.p99);
            // One interruption of this process moves a sum, and the median of a few packets.
            if packets == most {
                assert!(heavy.p50 > 3 * light.p50, "{heavy:?} beside {light:?}");
            }
            let whole: f64 = stages.iter().map(|stage| stage.share).sum();
            assert!((whole - 1.0).abs() < 1e-6, "every cycle of the program is at some stage: {whole}");
            let stops = measurement.stops();
            let run = stops.iter().find(|stop| stop.name == "run").expect("is there").cycles;
            let sum: u64 = stages.iter().map(|stage| stage.cycles).sum();
            assert!(sum <= run, "what was measured is a part of all that ran: {sum} of {run}");
        }
    }
}

#[test]
fn a_back_end_that_cannot_measure_stages_says_so() {
    let bench = Bench::new(1);
    let new = loaded_as(BackendKind::Bytecode, &uneven(), 1).generations(PORTS, 2);
    assert!(bench.remote.replace(new, Vec::new()).expect("it runs").outcome.is_ok());
    let measurement = bench.remote.measure(Duration::from_millis(1)).expect("it runs");
    let why = measurement.unmeasured.as_deref().expect("a reason");
    assert!(why.starts_with("bytecode does not tell"), "{why}");
    bench.stop();
}

#[test]
fn all_workers_end_when_one_does() {
    /// Breaks like a defect of a port would.
    struct Broken;
    impl Sender for Broken {
        fn send(&mut self, _frame: &[u8], _offload: VirtioHeader) {
            panic!("broken");
        }
        fn flush(&mut self) {}
        fn losses(&self) -> SendLosses {
            SendLosses::default()
        }
    }
    let cables = [Cable::default(), Cable::default()];
    let receive = |index: usize| -> Box<dyn Receiver> {
        let (cable, silent) = (cables[index].clone(), UnixStream::pair().unwrap());
        Box::new(In { cable, port: 1, memory: Vec::new(), silent })
    };
    let lanes = vec![
        vec![Lane { receive: receive(0), send: Box::new(Out(Cable::default())) }],
        vec![Lane { receive: receive(1), send: Box::new(Broken) }],
    ];
    let (crew, remote) = super::workers(lanes, &machine()).unwrap();
    let text = "start stage all() { send 1 }";
    let generations = loaded(text, 2).generations(1, 1);
    let for_crew = remote.clone();
    let running = thread::spawn(move || run(crew, generations, &for_crew, &[]));
    assert_eq!(remote.ask(|generation, _| generation.number), Some(vec![1, 1]));
    cables[1].lock().unwrap().push_back(probe(0, 0));
    assert!(running.join().is_err(), "the panic comes out");
    assert!(remote.ask(|_, _| ()).is_none());
    assert!(remote.replace(loaded(text, 2).generations(1, 2), Vec::new()).is_none());
}

#[test]
fn a_core_that_is_not_there_is_named() {
    let (crew, remote) = super::workers(vec![Vec::new(), Vec::new()], &machine()).unwrap();
    let generations = loaded("start stage all() { flood }", 2).generations(0, 1);
    let error = run(crew, generations, &remote, &[0, 60_000]).failure.expect("there are fewer cores");
    assert!(error.to_string().starts_with("worker 2 cannot stay on core 60000"), "{error}");
    assert!(remote.ask(|_, _| ()).is_none(), "the other worker has ended, too");
}

/// A clock that is moved by hand.
#[derive(Debug)]
struct Hand(Mutex<Now>);

impl Clock for Hand {
    fn now(&self) -> Now {
        *self.0.lock().unwrap()
    }
}

const SECOND: u64 = 1_000_000_000;

/// The flow of each packet is remembered for ten seconds; a packet whose flow is known leaves, and another
/// one is dropped.
const FOR_TEN_SECONDS: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason unknown "nothing of its flow within ten seconds"
table flows: exact(u16) { capacity 64  age 10s  evict lru }
counter ticks
every 1s { count ticks }
start decoder frame(eth: ethernet) { goto check }
decoder check(p: probe) {
    match flows[p.flow] { some _ => send 2, none => { learn flows[p.flow]  drop unknown } }
}
"#;

#[test]
fn a_step_of_the_clock_on_the_wall_ends_nothing_and_keeps_nothing_alive() {
    let hand = Arc::new(Hand(Mutex::new(Now { program: 1_000 * SECOND, wall: 1_700_000_000 * SECOND })));
    let clock: Arc<dyn Clock> = hand.clone();
    let bench = Bench::by(&clock, 1, loaded(FOR_TEN_SECONDS, 1));
    let ask = || {
        let look = |generation: &mut Generation, _: &[PortLosses]| {
            let ticks = generation.backend.counter(0)[0].0;
            (generation.ledger.received().packets, ticks, generation.backend.tables().remove(0).entries)
        };
        bench.remote.ask(look).unwrap().remove(0)
    };
    let mut played = 0;
    let mut play = |flow: u16| {
        bench.come[0].lock().unwrap().push_back(probe(flow, 0));
        played += 1;
        while ask().0 < played {
            thread::yield_now();
        }
        bench.left[0].lock().unwrap().len()
    };
    // Waits until the loop has seen what the clock shows now: a tick for every second.
    let wait_for = |ticks: u64| {
        while ask().1 < ticks {
            thread::yield_now();
        }
    };
    let hour = 3_600 * SECOND;
    let step = |program: u64, wall: &dyn Fn(u64) -> u64| {
        let mut now = hand.0.lock().unwrap();
        now.program += program;
        now.wall = wall(now.wall + program);
    };
    assert_eq!(play(7), 0, "it is not known yet");
    step(9 * SECOND, &|wall| wall + hour);
    wait_for(9);
    assert_eq!(ask().2, 1, "an hour on the wall is nothing");
    assert_eq!(play(7), 1);
    step(SECOND, &|wall| wall - 2 * hour);
    wait_for(10);
    assert_eq!(ask(), (2, 10, 0), "it ends after ten seconds, whatever the wall shows");
    assert_eq!(play(7), 1);
    step(9 * SECOND, &|wall| wall);
    wait_for(19);
    assert_eq!(ask().2, 1);
    bench.remote.stop();
    assert!(bench.running.join().unwrap().failure.is_none());
}

/// A program that says on which thread it is dropped.
struct Last(Box<dyn Backend>, mpsc::Sender<String>);

impl Drop for Last {
    fn drop(&mut self) {
        let _ = self.1.send(thread::current().name().unwrap_or("").to_owned());
    }
}

impl Backend for Last {
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut exec::Outputs) {
        self.0.run(memory, batch, outputs);
    }

    fn asynchronous(&mut self) -> Option<&mut dyn exec::AsyncBackend> {
        None
    }

    fn inspect(&mut self) -> Option<&mut dyn exec::Inspect> {
        None
    }

    fn advance(&mut self, now: u64, outputs: &mut exec::Outputs) {
        self.0.advance(now, outputs);
    }

    fn due(&self) -> Option<u64> {
        self.0.due()
    }

    fn control(&self) -> &(dyn exec::ProgramControl + 'static) {
        self.0.control()
    }

    fn control_mut(&mut self) -> &mut (dyn exec::ProgramControl + 'static) {
        self.0.control_mut()
    }

    fn on_device(&self) -> Option<exec::OnDevice> {
        None
    }

    fn back_end(&self) -> BackendKind {
        self.0.back_end()
    }
}

#[test]
fn a_program_that_was_replaced_is_dropped_away_from_the_packets() {
    let (sender, dropped) = mpsc::channel();
    let last = || {
        let mut loaded = loaded(IN_ORDER, 2);
        let wrap = |backend| -> Box<dyn Backend> { Box::new(Last(backend, sender.clone())) };
        loaded.backends = loaded.backends.into_iter().map(wrap).collect();
        loaded
    };
    let bench = Bench::running(2, last());
    bench.play(4, 0..10);
    let replaced = bench.remote.replace(last().generations(PORTS, 2), Vec::new()).expect("both run");
    assert!(dropped.try_recv().is_err(), "the old one is handed to whoever asked");
    let away = thread::Builder::new().name("away".to_owned());
    away.spawn(move || drop(replaced)).unwrap().join().unwrap();
    assert_eq!(dropped.try_iter().collect::<Vec<_>>(), ["away", "away"]);
    bench.remote.stop();
    assert!(bench.running.join().unwrap().failure.is_none());
}

/// Every flow gets a number of a pool, which is that of its place: 7000 and on.
const NUMBERED: &str = r#"
import std.net.ethernet
layout probe { flow: u16  number: u32 }
reason none_left "all numbers are taken"
pool numbers: u32 { 7000..7999 }
table given: exact(u16) -> u32 { capacity 1k  idle 1h  evict refuse  releases numbers }
start decoder frame(eth: ethernet) { goto check }
decoder check(p: probe) {
    match given[p.flow] {
        some n => set p.number = n
        none => {
            match take(numbers) {
                some n => { learn given[p.flow] = n else { drop none_left }  set p.number = n }
                none => drop none_left
            }
        }
    }
    send 2
}
"#;

#[test]
fn with_several_workers_each_flow_keeps_its_item_of_a_pool_and_no_other_gets_it() {
    let bench = Bench::running(2, loaded(NUMBERED, 2));
    let given = |flows: std::ops::Range<u16>| -> Vec<Vec<u32>> {
        let before = bench.left.iter().map(|cable| cable.lock().unwrap().len()).sum::<usize>();
        flows
            .clone()
            .for_each(|flow| bench.come[usize::from(flow % 2)].lock().unwrap().push_back(probe(flow, 0)));
        while bench.left.iter().map(|cable| cable.lock().unwrap().len()).sum::<usize>() < before + flows.len()
        {
            thread::yield_now();
        }
        let number = |frame: &Vec<u8>| u32::from_be_bytes([frame[16], frame[17], frame[18], frame[19]]);
        bench
            .left
            .iter()
            .map(|cable| cable.lock().unwrap().drain(..).map(|frame| number(&frame)).collect())
            .collect()
    };
    let first = given(0..100);
    for (number, text) in (2..).zip([NUMBERED.to_owned(), NUMBERED.replace("capacity 1k", "capacity 2k")]) {
        let replaced = bench.remote.replace(loaded(&text, 2).generations(PORTS, number), Vec::new());
        let carried = replaced.expect("both run").outcome.expect("it fits");
        assert_eq!(carried.iter().map(|part| part.tables[0].1).sum::<u64>(), 100);
        assert_eq!(given(0..100), first, "every flow keeps its own");
    }
    let more = given(100..200);
    for (first, more) in first.iter().zip(&more) {
        assert!(more.iter().all(|number| !first.contains(number)), "{first:?} {more:?}");
    }
    bench.remote.stop();
    assert!(bench.running.join().unwrap().failure.is_none());
}
