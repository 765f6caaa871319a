//! Programs that are shown not to tell a long segment from the packets that it would be cut into: over random
//! segments, both mean the same, whether the program runs once for the segment or for each of its packets.

use exec::{BackendKind, SegmentProof};
use ir::{Op, Program};
use lang::pipeline::Decode;
use packet::segment::Segments;
use packet::{OpenClass, OpenClasses, VirtioHeader};
use std::ops::Range;
use suite::agree::{PORTS, compile_as};
use suite::class_packets::{known_to_programs, stamped};
use suite::corpus::{files, root, shipped};
use suite::outcome::{RunOutcome, see};
use suite::packet_generator::{self, Arrivals};
use suite::program_generator;
use suite::random::SuiteRandom;

/// The same packets as segments, of which some come whole, and cut.
#[derive(Default)]
struct Pair {
    whole: Arrivals,
    cut: Arrivals,
    /// Of every frame that comes whole, what it is, and which of the cut ones stand for it.
    parts: Vec<(Option<OpenClass>, VirtioHeader, Range<usize>)>,
}

/// TCP, to be cut into packets with so much data.
fn to_cut(class: OpenClass, size: u16) -> VirtioHeader {
    let mut header = [1, if class.six { 4 } else { 1 }, 0, 0, 0, 0, 0, 0, 16, 0];
    header[4..6].copy_from_slice(&size.to_ne_bytes());
    header[6..8].copy_from_slice(&(class.transport() as u16).to_ne_bytes());
    VirtioHeader::read(&header)
}

/// The packets of a segment, finished.
fn packets(frame: &[u8], virtio: &VirtioHeader) -> Vec<Vec<u8>> {
    let segments = Segments::of(frame, virtio).expect("can be cut");
    let piece = |number| {
        let mut piece = vec![0; segments.length(number)];
        segments.write(frame, number, &mut piece);
        piece
    };
    (0..segments.count()).map(piece).collect()
}

impl Pair {
    /// Adds a segment of one of these classes, or its packets on both sides if it is of another.
    fn push(&mut self, class: OpenClass, mut frame: Vec<u8>, at: (u64, u16, u16), whole: OpenClasses) {
        let (time, port, size) = at;
        let virtio = to_cut(class, size);
        assert!(virtio.restart(&mut frame));
        assert_eq!(virtio.open_class(&frame), Some(class));
        let first = self.cut.ports.len();
        for piece in packets(&frame, &virtio) {
            self.cut.push(&piece, piece.len() as u32, time, port);
            if !whole.contains(class) {
                let here = self.cut.ports.len() - 1;
                self.whole.push(&piece, piece.len() as u32, time, port);
                self.parts.push((None, VirtioHeader::NONE, here..here + 1));
            }
        }
        if whole.contains(class) {
            self.whole.push(&frame, frame.len() as u32, time, port);
            self.parts.push((Some(class), virtio, first..self.cut.ports.len()));
        }
    }

    /// What would have been seen if each segment had come cut; nothing where it cannot be cut any more, or
    /// something was done with the whole of it.
    fn as_cut(&self, whole: &RunOutcome) -> Option<RunOutcome> {
        let mut cut = RunOutcome { verdicts: Vec::new(), bytes: Vec::new(), ..whole.clone() };
        for (index, (class, virtio, packets_of)) in self.parts.iter().enumerate() {
            let (bytes, wire) = &whole.bytes[index];
            if class.is_none() {
                cut.verdicts.push(whole.verdicts[index]);
                cut.bytes.push((bytes.clone(), *wire));
                continue;
            }
            Segments::of(bytes, virtio)?;
            let pieces = packets(bytes, virtio);
            if pieces.len() != packets_of.len() || *wire as usize != bytes.len() {
                return None;
            }
            for piece in pieces {
                cut.verdicts.push(whole.verdicts[index]);
                let wire = piece.len() as u32;
                cut.bytes.push((piece, wire));
            }
        }
        let moved = |cause: &mut u32| {
            if let Some((_, _, packets)) = self.parts.get(*cause as usize) {
                *cause = packets.start as u32;
            }
        };
        cut.sent.iter_mut().for_each(|sent| moved(&mut sent.1));
        cut.raised.iter_mut().for_each(|raised| moved(&mut raised.3));
        cut.resized.iter_mut().for_each(|change| moved(&mut change.0));
        Some(cut)
    }
}

fn pair(
    segments: usize,
    seed: u64,
    whole: OpenClasses,
    pause: u64,
    frame: impl Fn(OpenClass, &mut SuiteRandom) -> Vec<u8>,
) -> Pair {
    let (mut pair, mut random) = (Pair::default(), SuiteRandom::new(seed));
    let classes: Vec<OpenClass> = OpenClass::ALL.into_iter().filter(|class| !class.udp).collect();
    let mut time = 1_000_000_000;
    for _ in 0..segments {
        let class = *random.pick(&classes);
        let mut frame = frame(class, &mut random);
        let data = frame.len() as u64 + random.below(6_000);
        frame.resize(data as usize, 0);
        for (place, byte) in frame.iter_mut().enumerate().skip(class.lengths().0) {
            *byte = byte.wrapping_add(place as u8);
        }
        let mut frame = stamped(class, frame, &mut random);
        // The header of TCP must be there, and one of IPv4 right.
        let header = class.transport() + 4 * usize::from(frame[class.transport() + 12] >> 4);
        if header > frame.len() {
            frame[class.transport() + 12] = 0x50;
        }
        if !class.six {
            let ip = class.ip()..class.ip() + 20;
            frame[ip.start + 10..ip.start + 12].fill(0);
            let right = !packet::checksum::sum(&frame[ip.clone()]);
            frame[ip.start + 10..ip.start + 12].copy_from_slice(&right.to_be_bytes());
        }
        time += if random.one_in(50) { pause } else { 700_000 };
        let size = random.between(8, 1_500) as u16;
        pair.push(class, frame, (time, random.between(1, u64::from(PORTS)) as u16, size), whole);
    }
    pair
}

/// Where a run with segments differs from one with their packets.
fn difference(program: &Program, pair: &Pair) -> Option<String> {
    for back_end in BackendKind::ALL {
        for size in [1, 64] {
            let cut = see(program, back_end, &pair.cut, PORTS, size).expect("it loads");
            let whole = see(program, back_end, &pair.whole, PORTS, size).expect("it loads");
            let found = match pair.as_cut(&whole) {
                Some(whole) => cut.difference(&whole),
                None => Some("a segment cannot be cut any more".to_owned()),
            };
            if let Some(what) = found {
                return Some(format!("{back_end:?}, batches of {size}: {what}"));
            }
        }
    }
    None
}

/// The program without its handlers and what it raises for them: one that has handlers gets packets.
fn without_handlers(mut program: Program) -> Program {
    program.functions.truncate(1);
    for block in program.functions.iter_mut().flat_map(|function| &mut function.blocks) {
        block.instructions.retain(|instruction| !matches!(instruction.op, Op::Raise { .. }));
    }
    program.tables.iter_mut().for_each(|table| table.expires = None);
    (program.events, program.every) = (Vec::new(), Vec::new());
    program
}

/// As if everything were shown.
fn unproven() -> OpenClasses {
    OpenClass::ALL.into_iter().filter(|class| !class.udp).collect()
}

#[test]
fn programs_of_the_repository_mean_the_same_with_whole_segments() {
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let program = shipped(name);
        let classes = SegmentProof::of(&program).classes;
        let packets = pair(500, 1, classes, 400_000_000_000, known_to_programs);
        assert_eq!(difference(&program, &packets), None, "{name}: {classes:?}");
    }
}

/// What stands in the way of IPv4 and IPv6 without a tag, program by program; nothing for those that are not
/// listed, and in most cases for tagged ones.
const REFUSED: [(&str, Option<&str>, Option<&str>); 12] = [
    ("dpi.rav", Some("counts"), Some("counts")),
    ("firewall_rules.rav", Some("asks a table that counts"), None),
    ("ids.rav", Some("reads what differs from packet to packet"), Some("has handlers")),
    ("learning_log.rav", Some("raises an event"), Some("raises an event")),
    ("load_balancer.rav", Some(WRITES), None),
    ("names_gateway.rav", Some("asks for the length"), Some("asks for the length")),
    ("nat44.rav", Some(WRITES), Some("has handlers")),
    ("policy.rav", Some("asks for the length"), Some("asks for the length")),
    ("router.rav", Some("reads what differs from packet to packet"), Some("asks for the length")),
    ("stateful.rav", Some("asks for the length"), Some("asks for the length")),
    ("vxlan_gateway.rav", Some("asks for the length"), None),
    ("waypoint.rav", Some("asks for the length"), Some("asks for the length")),
];
const WRITES: &str = "writes what is not the same in every packet, or what a checksum covers";

#[test]
fn what_stands_in_the_way_is_said() {
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let program = shipped(name);
        let refused = |six| SegmentProof::refusal(&program, OpenClass { six, udp: false, tagged: false });
        let found = [false, true].map(|six| refused(six).map(|refusal| refusal.what));
        let said = REFUSED.iter().find(|(listed, ..)| *listed == name);
        assert_eq!(found, said.map_or([None; 2], |(_, four, six)| [*four, *six]), "{name}");
    }
}

#[test]
fn programs_that_can_tell_are_refused_and_would_be_found() {
    let packets = pair(1_000, 3, unproven(), 400_000_000_000, known_to_programs);
    let ethernet = "import std.net.{ethernet, ipv4, tcp}\nstart decoder d(eth: ethernet) { match eth.type { 0x0800 => ip else => drop other } }\nreason other \"no\"\ncounter seen\ntable hosts: exact(mac) -> port { capacity 1  age 300s  evict lru }\ntable few: exact(mac) -> port { capacity 2  age 300s  evict refuse }\n";
    let plain = "decoder ip(ip: ipv4) { BODY }";
    let behind = "decoder ip(ip: ipv4) { if ip.frag != 0 { flood } match ip.proto { 6 => t else => flood } }\ndecoder t(t: tcp) { BODY }";
    for (what, decoders, body) in [
        ("a length", plain, "if length > 800 { drop other } flood"),
        ("IP's length", plain, "if ip.total > 800 { drop other } flood"),
        ("an identification", plain, "if ip.id & 1 == 1 { drop other } flood"),
        ("IP's checksum", plain, "if ip.check & 1 == 1 { drop other } flood"),
        ("a sequence number", behind, "if t.seq & 1 == 1 { drop other } flood"),
        ("a flag", behind, "if t.flags.fin { drop other } flood"),
        ("a count", plain, "count seen flood"),
        ("a copy", plain, "copy to 2 flood"),
        ("a write", plain, "set ip.id = 7 flood"),
        (
            "learned too late",
            plain,
            "match hosts[eth.dst] { some p => send p none => { learn hosts[eth.src] = in_port learn hosts[eth.dst] = 1 flood } }",
        ),
        ("refused", plain, "learn few[eth.src] = in_port else { drop other } flood"),
    ] {
        let text = format!("{ethernet}{}", decoders.replace("BODY", body));
        let compiled = compile_as(&text, Decode::Lazy);
        let program = compiled.program.unwrap_or_else(|| panic!("{what}: {:?}", compiled.diagnostics));
        let four = OpenClass { six: false, udp: false, tagged: false };
        assert!(!SegmentProof::of(&program).classes.contains(four), "{what}");
        assert!(difference(&program, &packets).is_some(), "{what}: nothing is found");
    }
}

/// Learning switches with so little room that addresses push each other out.
#[test]
fn programs_that_learn_first_mean_the_same_however_little_room_there_is() {
    for capacity in 1..5 {
        let text = format!(
            "import std.net.ethernet\ntable hosts: exact(mac) -> port {{ capacity {capacity}  age 1ms  evict lru }}\nstart decoder d(eth: ethernet) {{ learn hosts[eth.src] = in_port match hosts[eth.dst] {{ some p => send p none => flood }} }}"
        );
        let compiled = compile_as(&text, Decode::Lazy);
        let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
        let classes = SegmentProof::of(&program).classes;
        assert_eq!(classes, unproven());
        let packets = pair(500, capacity, classes, 5_000_000, known_to_programs);
        assert_eq!(difference(&program, &packets), None, "capacity {capacity}");
    }
}

#[test]
fn random_programs_mean_the_same_with_whole_segments() {
    let (mut admitted, mut refused, mut told) = (0, 0, 0);
    for seed in 0..120 {
        let generated = program_generator::generate(seed);
        let Some(program) = compile_as(&generated.text, Decode::Lazy).program else { continue };
        let program = without_handlers(program);
        let given = packet_generator::generate(&generated, seed, 100, PORTS);
        let frames: Vec<_> = given.frames.iter().map(|frame| frame.bytes.to_vec()).collect();
        let classes = SegmentProof::of(&program).classes;
        let of = |classes| pair(60, seed, classes, 400_000_000_000, |_, random| random.pick(&frames).clone());
        if let Some(what) = difference(&program, &of(classes)) {
            panic!("seed {seed}, {classes:?}: {what}\n{}", generated.text);
        }
        let whole = OpenClass::ALL.into_iter().filter(|class| classes.contains(*class)).count();
        (admitted, refused) = (admitted + whole, refused + 4 - whole);
        told += usize::from(difference(&program, &of(unproven())).is_some());
    }
    assert!(
        admitted > 20 && refused > 40 && told > 10,
        "{admitted} admitted, {refused} refused, {told} told"
    );
}
