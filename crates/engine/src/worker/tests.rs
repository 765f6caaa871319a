//! The packet loop over a back end that gives every packet the verdict of its first byte.

use super::*;
use crate::filter::Filter;
use crate::report::{Imbalance, Report, Setting, Times};
use exec::{BackendKind, Output, QueueDepth};
use ir::{Program, Reason};
use lang::pipeline::{CompileOptions, compile};
use offload::policy::BatchingPolicy;
use packet::{PortNumber, Verdict};
use ports::{Departure, Transmit};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::RefCell;

/// Gives every packet the verdict its first byte stands for, and sends a copy of each to port 2.
struct ByFirstByte {
    /// A program without tables and counters, for whoever asks what it holds.
    state: Box<dyn Backend>,
}

impl ByFirstByte {
    fn new() -> ByFirstByte {
        let text = "start stage repeat() { flood }";
        let compiled = compile("flood.rav", text, &|_| None, &CompileOptions::default());
        let program = compiled.program.expect("it is right");
        ByFirstByte { state: exec::load(&program, BackendKind::Interpreter, 3, 0).expect("it loads") }
    }
}

impl Backend for ByFirstByte {
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        for index in 0..batch.len {
            let bytes = batch.bytes(memory, index).unwrap_or_default();
            let start = outputs.bytes.len() as u32;
            outputs.bytes.extend_from_slice(bytes);
            outputs.packets.push(Output {
                port: 2,
                cause: index as u32,
                start,
                captured: bytes.len() as u32,
                wire: batch.wire[index],
                time: batch.time[index],
                copy: true,
            });
            batch.verdict[index] = match bytes.first() {
                Some(0) => Verdict::FLOOD,
                Some(1) => Verdict::send(1),
                Some(2) => Verdict::send(77),
                Some(3) => Verdict::punt(1),
                Some(4) => Verdict::drop(1),
                _ => Verdict::PENDING,
            };
        }
    }

    fn asynchronous(&mut self) -> Option<&mut dyn exec::AsyncBackend> {
        None
    }

    fn inspect(&mut self) -> Option<&mut dyn exec::Inspect> {
        None
    }

    fn advance(&mut self, _: u64, _: &mut Outputs) {}

    fn due(&self) -> Option<u64> {
        None
    }

    fn control(&self) -> &(dyn exec::ProgramControl + 'static) {
        self.state.control()
    }

    fn control_mut(&mut self) -> &mut (dyn exec::ProgramControl + 'static) {
        self.state.control_mut()
    }

    fn on_device(&self) -> Option<exec::OnDevice> {
        None
    }

    fn back_end(&self) -> BackendKind {
        BackendKind::Interpreter
    }
}

/// Batches of three packets with the first bytes given, then perhaps damage.
struct Packets {
    memory: Vec<u8>,
    left: Vec<u8>,
    damaged: bool,
}

impl Packets {
    fn new(first_bytes: &[u8], damaged: bool) -> Packets {
        let left = first_bytes.iter().rev().copied().collect();
        Packets { memory: vec![0; 3 * 64], left, damaged }
    }
}

impl Receive for Packets {
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        batch.clear();
        while batch.len < 3
            && let Some(first) = self.left.pop()
        {
            let frame = 64 * batch.len;
            self.memory[frame] = first;
            batch.push(frame as u64, 60, 100, 1, self.left.len() as u64);
        }
        if batch.is_empty() && self.damaged {
            let (name, link) = ("x.pcap".to_owned(), packet::LinkType::RAW);
            return Err(ReceiveError::LinkType { name, packet: 1, interface: 0, link });
        }
        Ok(&mut self.memory)
    }
}

/// Remembers port, first byte and comment of everything.
#[derive(Default)]
struct Remember(Vec<(PortNumber, u8, Option<String>)>);

impl Transmit for Remember {
    fn transmit(&mut self, packet: &Departure<'_>) -> io::Result<()> {
        assert_eq!((packet.bytes.len(), packet.wire), (60, 100));
        self.0.push((packet.port, packet.bytes[0], packet.comment.map(str::to_owned)));
        Ok(())
    }
}

fn program() -> Program {
    let reason = |name: &str| Reason { name: name.into(), help: "because".into() };
    Program { reasons: vec![reason("no_such_port"), reason("not_web")], ..Program::default() }
}

fn run(first_bytes: &[u8], damaged: bool) -> (Result<Report, Imbalance>, Remember, Finished) {
    let program = program();
    let mut ledger = Ledger::new(&program, 3);
    let mut sink = Remember::default();
    let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
    let mut worker = Worker {
        backend: &mut ByFirstByte::new(),
        ledger: &mut ledger,
        transmitter: Some(&mut transmitter),
        selection: None,
        device_queue: None,
        order: None,
    };
    let finished = worker.run(&mut Packets::new(first_bytes, damaged), TimedPart::WithoutReceive);
    let times = Times { packets: finished.packets, ..Times::default() };
    (Report::new(Setting::default(), &program, &ledger, &ByFirstByte::new(), times), sink, finished)
}

#[test]
fn what_is_received_is_forwarded_dropped_or_punted() {
    let (report, sink, finished) = run(&[0, 1, 2, 3, 4, 4, 0], false);
    let report = report.expect("balanced");
    assert!(finished.error.is_none());
    assert_eq!(report.received, crate::Volume { packets: 7, bytes: 700 });
    assert_eq!(report.forwarded, crate::Volume { packets: 3, bytes: 300 });
    assert_eq!((report.dropped(), report.punted()), (3, 1));
    assert_eq!(report.drops["not_web"], 2);
    assert_eq!(report.drops["no_such_port"], 1);
    assert_eq!(report.transmitted.packets, 2 + 1 + 2 + 7, "floods to two ports, a send, copies");
    assert_eq!(report.copies, 7);
    let sent = sink.0.iter().filter(|(port, ..)| *port != packet::NO_PORT).count() as u64;
    assert_eq!(sent, report.transmitted.packets, "what was counted is what was sent");
    assert!(sink.0.contains(&(0, 2, Some("no_such_port: because".into()))));
}

#[test]
fn everything_before_the_damage_is_processed() {
    let (report, _, finished) = run(&[0, 1, 4, 4], true);
    assert_eq!(report.expect("balanced").received.packets, 4);
    assert!(matches!(finished.error, Some(RunError::Receive(_))));
}

/// Takes so many packets and no more.
struct Narrow(usize);

impl Transmit for Narrow {
    fn transmit(&mut self, _packet: &Departure<'_>) -> io::Result<()> {
        self.0 = self.0.checked_sub(1).ok_or_else(|| io::Error::other("no space left"))?;
        Ok(())
    }
}

#[test]
fn packets_that_are_held_when_sending_fails_are_in_the_account() {
    let program = program();
    let mut ledger = Ledger::new(&program, 3);
    let mut sink = Narrow(2);
    let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
    let policy = BatchingPolicy::FixedBatch { packets: 4 };
    let mut device_queue =
        DeviceQueue::over(QueueDepth { packets: 4, device_batches: 2 }, 1, policy.into(), Instant::now());
    let mut worker = Worker {
        backend: &mut ByFirstByte::new(),
        ledger: &mut ledger,
        transmitter: Some(&mut transmitter),
        selection: None,
        device_queue: Some(&mut device_queue),
        order: None,
    };
    let finished = worker.run(&mut Packets::new(&[1; 30], false), TimedPart::Whole);
    assert!(matches!(finished.error, Some(RunError::Transmit(_))), "{:?}", finished.error);
    assert!(device_queue.is_empty());
    // Three come at a time, and four are run together: the sixth was there when the fourth could not be sent.
    assert_eq!(ledger.received().packets, 6);
}

#[test]
fn a_packet_without_a_verdict_is_an_imbalance() {
    let (report, ..) = run(&[0, 9], false);
    assert_eq!(report, Err(Imbalance::NoVerdict { packets: 1, back_end: "interpreter" }));
}

/// What passed a selection, over batches of three packets with the first bytes given; they wait for four
/// where they are held.
fn chosen(first_bytes: &[u8], selection: &mut Selection, held: bool) -> (Ledger, Ledger, Remember) {
    let program = program();
    let mut ledger = Ledger::new(&program, 3);
    let mut sink = Remember::default();
    let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
    let policy = BatchingPolicy::FixedBatch { packets: 4 };
    let mut device_queue = held.then(|| {
        DeviceQueue::over(QueueDepth { packets: 4, device_batches: 2 }, 1, policy.into(), Instant::now())
    });
    let mut worker = Worker {
        backend: &mut ByFirstByte::new(),
        ledger: &mut ledger,
        transmitter: Some(&mut transmitter),
        selection: Some(selection),
        device_queue: device_queue.as_mut(),
        order: None,
    };
    let finished = worker.run(&mut Packets::new(first_bytes, false), TimedPart::Whole);
    assert!(finished.error.is_none());
    let chosen = std::mem::replace(&mut selection.ledger, Ledger::new(&program, 3));
    (ledger, chosen, sink)
}

fn selection(filter: &str) -> Selection {
    Selection::new(Filter::new(filter).expect("a filter"), &program(), 3)
}

#[test]
fn a_batch_without_a_packet_that_is_wanted_is_not_the_end() {
    for held in [false, true] {
        let (all, dropped, sink) =
            chosen(&[1, 1, 1, 0, 1, 3, 1, 4, 1], &mut selection("verdict == drop"), held);
        assert_eq!((all.received().packets, dropped.received().packets), (9, 1), "held: {held}");
        assert_eq!(sink.0.len(), 2, "the packet with its reason, and its copy");
    }
}

#[test]
fn a_filter_and_its_contrary_are_the_whole() {
    let filters = ["verdict == drop", "verdict == flood", "reason == not_web", "port == 1", "out_port == 1"];
    let pair = |filter: &str| (selection(filter), selection(&format!("not ({filter})")));
    let all = RefCell::new((filters.map(pair), selection("")));
    let runs = (vec(0u8..5, 0..40), 0u8..5, any::<bool>());
    let outcome = TestRunner::default().run(&runs, |(mut first_bytes, rare, held)| {
        // One kind of packet comes last alone, so that whole batches have none of it.
        first_bytes.iter_mut().filter(|byte| **byte == rare).for_each(|byte| *byte = (rare + 1) % 5);
        first_bytes.push(rare);
        let (pairs, every) = &mut *all.borrow_mut();
        let mut whole = chosen(&first_bytes, every, held).2.0;
        whole.sort();
        let packets = first_bytes.len() as u64;
        for (one, contrary) in pairs {
            let (ran, these, sent) = chosen(&first_bytes, one, held);
            let (again, others, rest) = chosen(&first_bytes, contrary, held);
            prop_assert_eq!((ran.received().packets, again.received().packets), (packets, packets));
            prop_assert_eq!(these.received().packets + others.received().packets, packets, "{}", one.text());
            let mut both: Vec<_> = sent.0.into_iter().chain(rest.0).collect();
            both.sort();
            prop_assert_eq!(&both, &whole, "{}", one.text());
        }
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

/// Later fragments whose first one has not run are dropped.
const BEHIND_FIRST: &str = "import std.net.{ethernet, ipv4}
order fragments
reason no_first \"a later fragment, and its first did not run before it\"
table firsts: exact(u16) { capacity 64  age 30s  evict lru }
start decoder frame(eth: ethernet) { match eth.type { 0x0800 => check, else => flood } }
decoder check(ip: ipv4) {
    if ip.frag == 0 { learn firsts[ip.id]  flood }
    match firsts[ip.id] { some _ => flood, none => drop no_first }
}
";

/// Remembers identification and place of the fragments that leave.
#[derive(Default)]
struct Fragments(Vec<(u8, u8)>);

impl Transmit for Fragments {
    fn transmit(&mut self, packet: &Departure<'_>) -> io::Result<()> {
        if packet.port != packet::NO_PORT {
            self.0.push((packet.bytes[19], packet.bytes[21]));
        }
        Ok(())
    }
}

#[test]
fn fragments_of_a_capture_run_in_order_and_what_waits_at_its_end_is_counted() {
    use lang::pipeline::{CompileOptions, compile};
    let compiled = compile("p.rav", BEHIND_FIRST, &|_| None, &CompileOptions::default());
    let program = compiled.program.expect("compiles");
    // Identification, whether more follow, the place, milliseconds.
    let came =
        [(7, 0, 50, 0), (7, 0x20, 25, 1), (8, 0, 3, 2), (7, 0x20, 0, 3), (9, 0, 3, 500), (8, 0x20, 0, 1_002)];
    for (held, size) in [(false, 1), (false, 6), (true, 6)] {
        let mut frames = packet::Frames::new();
        for (id, more, place, time) in came {
            let mut frame = vec![2; 12];
            frame.extend([8, 0, 0x45, 0, 0, 46, 0, id, more, place, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 9]);
            frame.resize(60, 0);
            frames.push(&frame, 60, time * 1_000_000);
        }
        let mut ledger = Ledger::new(&program, 2);
        let mut sink = Fragments::default();
        let mut transmitter = Transmitter::new(&program, &mut sink as &mut dyn Transmit);
        let policy = BatchingPolicy::FixedBatch { packets: 4 };
        let mut device_queue = held.then(|| {
            DeviceQueue::over(QueueDepth { packets: 4, device_batches: 2 }, 1, policy.into(), Instant::now())
        });
        let mut order = crate::ordering::fragment_order(&program, 1).expect("the program asks for it");
        let mut backend = exec::load(&program, BackendKind::Native, 2, 0).expect("it loads");
        let mut source = InBatches { frames, size, next: 0 };
        let mut worker = Worker {
            backend: backend.as_mut(),
            ledger: &mut ledger,
            transmitter: Some(&mut transmitter),
            selection: None,
            device_queue: device_queue.as_mut(),
            order: Some(&mut order),
        };
        assert!(worker.run(&mut source, TimedPart::Whole).error.is_none());
        // The first of 8 comes as the second of its later one is over; that of 9 never.
        assert_eq!(sink.0, [(7, 0), (7, 50), (7, 25), (8, 0)], "{held}, {size}");
        let reason =
            program.reasons.iter().position(|reason| reason.name == "no_first").expect("it is there");
        assert_eq!((ledger.received().packets, ledger.dropped(reason as u16).packets), (6, 2));
    }
}

/// Frames in batches of so many, all by port 1.
struct InBatches {
    frames: packet::Frames,
    size: usize,
    next: usize,
}

impl Receive for InBatches {
    fn receive<'a>(&'a mut self, batch: &mut Batch) -> Result<&'a mut [u8], ReceiveError> {
        let count = self.frames.fill(batch, self.next..self.next + self.size);
        batch.port[..count].fill(1);
        self.next += count;
        Ok(self.frames.memory_mut())
    }
}
