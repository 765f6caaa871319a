//! The module `std.clamp`, by random segments: what it lowers is what a slow reader of the options finds, the
//! checksum is the one that a full computation gives, and nothing else changes.

use engine::PacketBench;
use exec::BackendKind;
use lang::pipeline::Decode;
use suite::corpus::{compile_file, root};
use suite::random::SuiteRandom;

const SYN: u8 = 2;

/// The paths of the program, by port.
const MTUS: [u16; 4] = [1_400, 1_400, 300, 30];

/// A frame with a segment.
struct Frame {
    bytes: Vec<u8>,
    /// Where the IP header ends.
    transport: usize,
    six: bool,
    /// The protocol is TCP, and this is no later fragment.
    has_segment: bool,
}

impl Frame {
    fn random(random: &mut SuiteRandom) -> Frame {
        let mut options = options(random);
        options.resize(options.len().next_multiple_of(4).min(40), 0);
        options.truncate(40);
        let size = random.below(5);
        let payload = some_bytes(random, size);
        let size = 20 + options.len() + payload.len();
        let (six, proto, fragment) =
            (random.one_in(2), if random.one_in(20) { 17 } else { 6 }, random.one_in(20));
        let mut bytes = vec![0; 12];
        if six {
            bytes.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, size as u8, proto, 64]);
            bytes.extend(some_bytes(random, 32));
        } else {
            bytes.extend([8, 0, 0x45, 0, 0, 20 + size as u8, 0, 0, 0, u8::from(fragment), 64, proto, 0, 0]);
            bytes.extend(some_bytes(random, 8));
        }
        let transport = bytes.len();
        bytes.extend(some_bytes(random, 12));
        let flags = if random.one_in(4) { random.below(256) as u8 } else { SYN };
        bytes.extend([((20 + options.len()) as u8 / 4) << 4, flags, 1, 2, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.extend(payload);
        let mut frame = Frame { bytes, transport, six, has_segment: proto == 6 && (six || !fragment) };
        frame.put_checksum();
        frame
    }

    /// The sum over pseudo header and segment, in 16 bits (RFC 1071).
    fn sum(&self) -> u16 {
        let (addresses, proto) = if self.six { (22..54, self.bytes[20]) } else { (26..34, self.bytes[23]) };
        let segment = &self.bytes[self.transport..];
        let words = |bytes: &[u8]| -> u32 {
            bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum()
        };
        let mut sum =
            words(&self.bytes[addresses]) + u32::from(proto) + segment.len() as u32 + words(segment);
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    fn put_checksum(&mut self) {
        let at = self.transport + 16;
        self.bytes[at..at + 2].fill(0);
        let check = !self.sum();
        self.bytes[at..at + 2].copy_from_slice(&check.to_be_bytes());
    }

    /// What must leave, and how many numbers were lowered.
    fn clamped(&self, mtu: u16) -> (Vec<u8>, usize) {
        let mut frame = Frame { bytes: self.bytes.clone(), ..*self };
        let most = if self.six { mtu.max(1_280) - 60 } else { mtu.max(68) - 40 };
        let segment = &mut frame.bytes[self.transport..];
        if !self.has_segment || segment[13] & SYN == 0 {
            return (frame.bytes, 0);
        }
        let size = usize::from(segment[12] >> 4) * 4;
        let mut options = &mut segment[20..size];
        let mut lowered = 0;
        loop {
            let size = match *options {
                [] | [0, ..] | [_] => break,
                [1, ..] => 1,
                [_, size, ..] if size < 2 || usize::from(size) > options.len() => break,
                [_, size, ..] => usize::from(size),
            };
            let (option, rest) = options.split_at_mut(size);
            if let [2, 4, high, low] = option
                && u16::from_be_bytes([*high, *low]) > most
            {
                [*high, *low] = most.to_be_bytes();
                lowered += 1;
            }
            options = rest;
        }
        frame.put_checksum();
        (frame.bytes, lowered)
    }
}

fn some_bytes(random: &mut SuiteRandom, count: u64) -> Vec<u8> {
    (0..count).map(|_| random.number() as u8).collect()
}

/// Options of a SYN, most of them sound.
fn options(random: &mut SuiteRandom) -> Vec<u8> {
    let mut options = Vec::new();
    for _ in 0..random.below(7) {
        match random.below(8) {
            0..3 => {
                options.extend([2, 4]);
                let number = *random.pick(&[0, 259, 260, 261, 1_339, 1_340, 1_360, 1_361, 1_460, 65_535]);
                options.extend(u16::to_be_bytes(number));
            }
            3 => options.push(1),
            4 => {
                let size = random.below(6);
                options.extend([random.below(256) as u8, 2 + size as u8]);
                options.extend(some_bytes(random, size));
            }
            5 => options.extend([2, random.below(7) as u8]),
            6 if random.one_in(4) => options.push(0),
            _ => {
                let size = random.below(3);
                options.extend(some_bytes(random, size));
            }
        }
    }
    options
}

#[test]
fn what_is_lowered_is_what_a_slow_reader_of_the_options_finds() {
    let compiled = compile_file(&root().join("suite/good/clamp.rav"), Decode::Lazy).expect("it can be read");
    let program = compiled.program.expect("it compiles");
    for (back_end, frames) in [(BackendKind::Native, 60_000), (BackendKind::Interpreter, 6_000)] {
        let mut bench = PacketBench::new(&program, back_end, 6, 0).expect("it loads");
        let mut random = SuiteRandom::new(1);
        let (mut numbers, mut several) = (0, 0);
        for round in 0..frames {
            let frame = Frame::random(&mut random);
            let port = 1 + random.below(4) as u16;
            let (wanted, lowered) = frame.clamped(MTUS[usize::from(port) - 1]);
            let outcome = bench.packet(port, &frame.bytes, 0);
            let way_out = if frame.six { 6 } else { 5 };
            assert_eq!(
                outcome.left,
                [(way_out, wanted)],
                "{back_end:?}, round {round}: {:02x?}",
                frame.bytes
            );
            numbers += lowered;
            several += usize::from(lowered > 1);
        }
        assert!(numbers > frames / 4 && several > frames / 20, "{numbers} numbers, {several} with several");
    }
}

/// A checksum that was wrong stays wrong by the same difference.
#[test]
fn a_wrong_checksum_is_not_repaired() {
    let compiled = compile_file(&root().join("suite/good/clamp.rav"), Decode::Lazy).expect("it can be read");
    let program = compiled.program.expect("it compiles");
    let mut bench = PacketBench::new(&program, BackendKind::Native, 6, 0).expect("it loads");
    let mut random = SuiteRandom::new(2);
    for round in 0..10_000 {
        let mut frame = Frame::random(&mut random);
        let at = frame.transport + 16;
        frame.bytes[at..at + 2].copy_from_slice(&(random.number() as u16).to_be_bytes());
        let before = frame.sum();
        let mut outcome = bench.packet(3, &frame.bytes, 0);
        let (_, left) = outcome.left.remove(0);
        let after = Frame { bytes: left, ..frame }.sum();
        assert_eq!(after % 0xffff, before % 0xffff, "round {round}: {:02x?}", frame.bytes);
    }
}
