//! Promises about time, lengths and memory that no single crate can show alone.

use allocation_counter::measure;
use captures::generate::{Generator, Profile};
use captures::write::PcapWriter;
use engine::{Ledger, PacketBench, TimedPart, Worker};
use exec::{BackendKind, Outputs, load};
use ir::Program;
use lang::pipeline::{CompileOptions, Decode, compile};
use packet::{Batch, Frames, LinkType};
use ports::{CaptureLinks, CaptureSource, Ingress, IngressPolicy, MemorySource, Order};
use suite::corpus::{compile_file, root};

fn program(text: &str) -> Program {
    compile("case.rav", text, &|_| None, &CompileOptions::default()).program.expect("the case compiles")
}

fn firewall() -> Program {
    compile_file(&root().join("programs/firewall.rav"), Decode::Lazy)
        .expect("is there")
        .program
        .expect("compiles")
}

fn frames(packets: u64) -> Frames {
    let profile = Profile { packets, flows: 50, ..Profile::sample1() };
    let mut generator = Generator::new(&profile, 3).expect("the profile is sound");
    let (mut frames, mut bytes) = (Frames::new(), Vec::new());
    while let Some(stamp) = generator.next(&mut bytes) {
        frames.push(&bytes, stamp.wire, stamp.time);
    }
    frames
}

fn ingress() -> Ingress {
    Ingress::new("round-robin".parse::<IngressPolicy>().expect("a policy"), 5)
}

#[test]
fn time_never_goes_back() {
    let program = program("event at(when: time) { }  start stage all() { raise at(now) flood }");
    for back_end in BackendKind::ALL {
        let mut bench = PacketBench::new(&program, back_end, 2, 0).expect("loads");
        let mut seen = Vec::new();
        for time in [10, 5, 10, 30, 29, 0, 31] {
            seen.extend(bench.packet(1, &[0], time).raised.into_iter().map(|(_, args)| args[0]));
        }
        assert_eq!(seen, [10, 10, 10, 30, 30, 30, 31], "{back_end:?}");
    }
}

#[test]
fn bytes_are_those_on_the_wire_and_reads_those_that_were_captured() {
    let program = program(
        "import std.net.{ethernet}
         start decoder frame(eth: ethernet) { if length == 900 { send 2 } flood }",
    );
    for back_end in BackendKind::ALL {
        let mut backend = load(&program, back_end, 2, 0).expect("loads");
        let mut ledger = Ledger::new(&program, 2);
        let mut memory = vec![0; 256];
        let mut batch = Batch::new();
        batch.push(0, 14, 900, 1, 0);
        batch.push(0, 13, 1000, 1, 0);
        let mut outputs = Outputs::default();
        backend.run(&mut memory, &mut batch, &mut outputs);
        ledger.commit(&memory, &mut batch, &outputs);
        let short =
            program.reasons.iter().position(|reason| reason.name == "short(ethernet)").expect("is a reason");
        assert_eq!(ledger.received().bytes, 1900, "{back_end:?}");
        assert_eq!((ledger.forwarded().bytes, ledger.transmitted_by(2).bytes), (900, 900), "{back_end:?}");
        let dropped = ledger.dropped(short as u16);
        assert_eq!((dropped.packets, dropped.bytes), (1, 1000), "{back_end:?}");
    }
}

#[test]
fn the_packet_loop_allocates_nothing_for_a_packet() {
    let program = firewall();
    let mut backend = load(&program, BackendKind::Native, 5, 0).expect("loads");
    let mut ledger = Ledger::new(&program, 5);
    let mut allocations = |repeat: u64| {
        let mut source = MemorySource::new(frames(2_000), Order::Replay, repeat, false, ingress());
        let mut worker = Worker {
            backend: backend.as_mut(),
            ledger: &mut ledger,
            transmitter: None,
            selection: None,
            device_queue: None,
            order: None,
        };
        measure(|| {
            let finished = worker.run(&mut source, TimedPart::Whole);
            assert!(finished.error.is_none());
        })
        .count_total
    };
    allocations(1);
    assert_eq!(allocations(1), allocations(50), "the fiftyfold of packets takes more allocations");
}

#[test]
fn a_streamed_capture_takes_the_same_memory_however_long_it_is() {
    let program = firewall();
    let peak = |packets: u64| {
        let mut writer = PcapWriter::new(Vec::new(), LinkType::ETHERNET).expect("writes");
        for frame in frames(packets).iter() {
            writer.write(frame.time, frame.wire, frame.bytes).expect("writes");
        }
        let bytes = writer.finish().expect("writes");
        let length = bytes.len();
        let mut backend = load(&program, BackendKind::Native, 5, 0).expect("loads");
        let mut ledger = Ledger::new(&program, 5);
        let peak = measure(|| {
            let stream = captures::compressed::uncompressed(std::io::Cursor::new(bytes)).expect("opens");
            let mut source =
                CaptureSource::of_stream("case".into(), stream, CaptureLinks::Ethernet, ingress())
                    .expect("opens");
            let mut worker = Worker {
                backend: backend.as_mut(),
                ledger: &mut ledger,
                transmitter: None,
                selection: None,
                device_queue: None,
                order: None,
            };
            assert!(worker.run(&mut source, TimedPart::WithoutReceive).error.is_none());
        })
        .bytes_max;
        assert_eq!(ledger.received().packets, packets);
        (peak, length)
    };
    let ((short_peak, short), (long_peak, long)) = (peak(2_000), peak(40_000));
    assert!(long > 15 * short);
    assert!(
        long_peak <= short_peak + short_peak / 10,
        "{short_peak} bytes for {short}, {long_peak} for {long}"
    );
}
