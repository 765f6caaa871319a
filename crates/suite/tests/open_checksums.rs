//! Programs that are shown not to tell packets with an open checksum from finished ones: over random packets,
//! both mean the same, whatever is sent of them.

use exec::{BackendKind, OpenProof};
use ir::Program;
use lang::pipeline::Decode;
use packet::{OpenClass, OpenClasses, VirtioHeader};
use suite::agree::{PORTS, compile_as};
use suite::class_packets::{known_to_programs, stamped};
use suite::corpus::{files, root, shipped};
use suite::outcome::{see, see_open};
use suite::packet_generator::{self, Arrivals};
use suite::program_generator;
use suite::random::SuiteRandom;

/// The same packets with open checksums, and with finished ones.
#[derive(Default)]
struct Pair {
    open: Arrivals,
    finished: Arrivals,
}

impl Pair {
    /// Adds a packet that begins as its class says.
    fn push(&mut self, class: OpenClass, mut frame: Vec<u8>, time: u64, port: u16) {
        let mut header = [1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let (start, offset) = (class.transport(), class.field().start - class.transport());
        header[6..8].copy_from_slice(&(start as u16).to_ne_bytes());
        header[8..10].copy_from_slice(&(offset as u16).to_ne_bytes());
        let virtio = VirtioHeader::read(&header);
        assert!(virtio.restart(&mut frame));
        assert_eq!(virtio.open_class(&frame), Some(class));
        self.open.push(&frame, frame.len() as u32, time, port);
        assert!(virtio.complete(&mut frame));
        self.finished.push(&frame, frame.len() as u32, time, port);
    }
}

fn pair(packets: usize, seed: u64, frame: impl Fn(OpenClass, &mut SuiteRandom) -> Vec<u8>) -> Pair {
    let (mut pair, mut random) = (Pair::default(), SuiteRandom::new(seed));
    for number in 0..packets as u64 {
        let class = *random.pick(&OpenClass::ALL);
        let frame = frame(class, &mut random);
        let frame = stamped(class, frame, &mut random);
        let port = random.between(1, u64::from(PORTS)) as u16;
        pair.push(class, frame, 1_000_000_000 + number * 700_000, port);
    }
    pair
}

/// Where a run with open checksums differs from one with finished ones.
fn difference(program: &Program, proof: OpenProof, pair: &Pair) -> Option<String> {
    for back_end in BackendKind::ALL {
        for size in [1, 64] {
            let finished = see(program, back_end, &pair.finished, PORTS, size).expect("it loads");
            let open = see_open(program, back_end, proof, &pair.open, PORTS, size).expect("it loads");
            if let Some(what) = finished.difference(&open) {
                return Some(format!("{back_end:?}, batches of {size}: {what}"));
            }
        }
    }
    None
}

/// As if everything were shown.
fn unproven() -> OpenProof {
    OpenProof { classes: OpenClass::ALL.into_iter().collect(), quotes: true }
}

#[test]
fn programs_of_the_repository_mean_the_same_with_open_checksums() {
    let packets = pair(3_000, 1, known_to_programs);
    for path in files(&root().join("programs"), "rav").expect("programs/ is there") {
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        let program = shipped(name);
        let proof = OpenProof::of(&program);
        assert_eq!(difference(&program, proof, &packets), None, "{name}: {proof:?}");
    }
}

#[test]
fn a_router_gets_every_class_open_and_quotes_finished_packets() {
    let program = shipped("router.rav");
    let proof = OpenProof::of(&program);
    assert_eq!(proof, unproven());
    let packets = pair(3_000, 2, known_to_programs);
    let seen = see_open(&program, BackendKind::Native, proof, &packets.open, PORTS, 64).expect("it loads");
    let quoted = seen.sent.iter().filter(|sent| sent.2.len() > 100).count();
    let cut = seen.resized.len();
    assert!(quoted > 10 && cut > 2, "{quoted} errors quote packets, and {cut} are cut");
    let blind = OpenProof { quotes: false, ..proof };
    assert!(difference(&program, blind, &packets).is_some(), "what is quoted open is seen");
}

/// The comparison finds programs that can tell, if nothing is shown of them.
#[test]
fn programs_that_read_or_change_what_the_checksum_covers_are_refused_and_would_be_found() {
    let packets = pair(2_000, 3, known_to_programs);
    let program = shipped("nat44.rav");
    assert_ne!(OpenProof::of(&program).classes, unproven().classes);
    assert!(difference(&program, unproven(), &packets).is_some(), "nothing is found");
    let ethernet = "import std.net.{ethernet, ipv4, tcp, udp}\nstart decoder d(eth: ethernet) { match eth.type { 0x0800 => ip else => drop other } }\nreason other \"no\"\n";
    for (what, body) in [
        (
            "a read",
            "decoder ip(ip: ipv4) { if ip.frag != 0 { flood } match ip.proto { 6 => t else => flood } }\ndecoder t(t: tcp) { if t.check == 0 { drop other } if t.check & 1 == 1 { send 2 } flood }",
        ),
        (
            "a datagram",
            "decoder ip(ip: ipv4) { if ip.frag != 0 { flood } match ip.proto { 17 => u else => flood } }\ndecoder u(u: udp) { if u.check & 1 == 1 { drop other } flood }",
        ),
        (
            "a write",
            "decoder ip(ip: ipv4) { if ip.frag != 0 { flood } match ip.proto { 17 => u else => flood } }\ndecoder u(u: udp) { set u.src = 7 flood }",
        ),
        ("an address", "decoder ip(ip: ipv4) { set ip.src = 10.0.0.1 flood }"),
        ("a cut", "decoder ip(ip: ipv4) { truncate to 60 flood }"),
    ] {
        let text = format!("{ethernet}{body}");
        let compiled = compile_as(&text, Decode::Lazy);
        let program = compiled.program.unwrap_or_else(|| panic!("{what}: {:?}", compiled.diagnostics));
        let six: OpenClasses = OpenClass::ALL.into_iter().filter(|class| class.six).collect();
        let four = OpenClass { six: false, udp: what != "a read", tagged: false };
        let proof = OpenProof::of(&program);
        assert!(!proof.classes.contains(four) && proof.classes.and(six) == six, "{what}: {proof:?}");
        assert!(difference(&program, unproven(), &packets).is_some(), "{what}: nothing is found");
    }
}

#[test]
fn random_programs_mean_the_same_with_open_checksums() {
    let (mut admitted, mut refused, mut told) = (0, 0, 0);
    for seed in 0..120 {
        let generated = program_generator::generate(seed);
        let Some(program) = compile_as(&generated.text, Decode::Lazy).program else { continue };
        let given = packet_generator::generate(&generated, seed, 200, PORTS);
        let frames: Vec<_> = given.frames.iter().map(|frame| frame.bytes.to_vec()).collect();
        let packets = pair(200, seed, |_, random| random.pick(&frames).clone());
        let proof = OpenProof::of(&program);
        if let Some(what) = difference(&program, proof, &packets) {
            panic!("seed {seed}, {proof:?}: {what}\n{}", generated.text);
        }
        let classes = OpenClass::ALL.into_iter().filter(|class| proof.classes.contains(*class)).count();
        (admitted, refused) = (admitted + classes, refused + 8 - classes);
        told += usize::from(difference(&program, unproven(), &packets).is_some());
    }
    assert!(
        admitted > 40 && refused > 40 && told > 10,
        "{admitted} admitted, {refused} refused, {told} told"
    );
}
