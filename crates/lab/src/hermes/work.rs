//! What a packet costs a lane of a device: instructions and memory, by application, from the packets and
//! tables themselves.
//!
//! The idea: a kernel's instructions are those before its loop and so many a turn of it, and how often it
//! turns (rules tried, bytes searched, nodes walked) is known from the packet and the table. Both numbers
//! were counted in our kernels, instruction by instruction, and a test counts again. What a lane reads and
//! writes follows from where headers, payload and tables lie.
//!
//! ```text
//!                 turns of the loop                sectors of its own (32 bytes)        sectors that all lanes share   trips to memory
//!  TTL            –                                header, and again if it leaves      –                              1
//!  header check   –                                header                               –                              1
//!  fragmentation  sectors of a frame that is cut   header; such a frame, twice          –                              1 and 1 a sector
//!  route lookup   nodes below the direct cells     header, direct cell, a node each     –                              2 and 1 a node
//!  classifier     groups of 32 rules to a fit      header and ports                     the rules of a group           1 and 1 a group
//!  DPI            bytes beyond the 31st               header and payload                   – (filters: shared memory)     1 a sector
//! ```

use crate::device_workload::PORTS;
use crate::programs::compile;
use crate::transfer::functions::{Function, FunctionData};
use aho_corasick::AhoCorasick;
use exec::kernel::KernelOptions;
use ir::{BytePattern, Entry, Match, Program};
use lang::pipeline::Decode;
use offload::Offload;
use std::collections::HashSet;
use tables::generate::Random;
use tables::generate::payload::{Literals, PatternsSpec, Payload, PayloadLiteral, PayloadSpec};

/// Bytes that a device's memory gives at once.
pub(crate) const SECTOR: u32 = 32;
/// Prefixes of the route lookup.
const ROUTES: usize = 100_000;
/// Patterns of the search: as many as filters of 16 KiB take.
const PATTERNS: usize = 300;
/// Packets whose work is known; a longer run begins again.
pub(crate) const PACKETS: usize = 4096;
/// The seed of all that is made.
const SEED: u64 = 1;
/// Sizes of simple IMIX with check sequences, each as often as there.
const IMIX: [usize; 12] = [64, 64, 64, 64, 64, 64, 64, 576, 576, 576, 576, 1500];
/// Registers of a thread by application, and the compiler that said so. A test writes it.
const REGISTERS: &str = include_str!("registers.txt");
/// Bytes that the search looks ahead.
const WINDOW: usize = 31;
/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;
/// Where the TTL and the checksum of an IPv4 header lie in a frame.
const TTL: usize = 22;
const CHECK: usize = 24;
/// The longest packet that is not cut.
const LONGEST: u64 = 576;

/// What a device is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Application {
    /// Searches payload for patterns by Bloom filters.
    Dpi,
    /// Tries 100 rules in order.
    Classifier,
    /// The longest prefix of the destination.
    Route,
    /// The TTL goes down.
    Ttl,
    /// The TTL of every second packet is used up, so that the lanes of a warp go two ways.
    Expiring,
    /// Version, lengths, source and checksum of the header are right.
    Header,
    /// Long packets are cut.
    Fragmentation,
}

/// What a packet costs its lane, and what its warp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Work {
    /// Instructions of the lane.
    pub(crate) instructions: u32,
    /// Sectors that this lane alone touches.
    pub(crate) own: u32,
    /// Sectors that every lane touches at the same time, so that they come once for all.
    pub(crate) shared: u32,
    /// How often it waits for memory.
    pub(crate) trips: u32,
    /// Bytes of the frame, with its check sequence.
    pub(crate) bytes: u32,
}

/// Instructions before a kernel's loop, and of a turn of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Law {
    /// Before and behind the loop.
    pub(crate) once: u32,
    /// Of one turn.
    pub(crate) turn: u32,
    /// Of what happens once and only to some packets: settling which of the rules that seem to fit does;
    /// filling the window of a search; counting down a TTL that is not used up.
    pub(crate) extra: u32,
}

/// What a packet makes of a kernel's loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turns {
    /// How often it turns.
    pub(crate) loops: u32,
    /// Whether a rule fits, the payload is longer than the window, or the TTL is not used up.
    pub(crate) extra: bool,
}

/// An application with packets.
pub(crate) struct Job {
    /// Its program, tables filled.
    pub(crate) program: Program,
    /// How its kernel is made.
    pub(crate) options: KernelOptions,
    /// Frames without check sequences.
    pub(crate) frames: Vec<Vec<u8>>,
    /// What each packet makes of the kernel's loop.
    pub(crate) turns: Vec<Turns>,
    /// The words of the kernel's table, none if it has none.
    pub(crate) image: Vec<u32>,
}

impl Turns {
    /// Of a search through the payload of a packet of so many bytes, check sequence included.
    pub(crate) fn of_payload(bytes: u32) -> Turns {
        let loops = bytes.saturating_sub((HEADERS + WINDOW) as u32 + 4);
        Turns { loops, extra: loops > 0 }
    }
}

impl Application {
    /// All: first those of the publication's figures, in its order, then those that it only names.
    pub(crate) const ALL: [Application; 7] = [
        Application::Dpi,
        Application::Classifier,
        Application::Route,
        Application::Ttl,
        Application::Expiring,
        Application::Header,
        Application::Fragmentation,
    ];

    /// How many of them are in the publication's figures, and so in what is said of all applications.
    pub(crate) const DRAWN: usize = 4;

    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Application::Dpi => "DPI",
            Application::Classifier => "classifier",
            Application::Route => "route lookup",
            Application::Ttl => "TTL",
            Application::Expiring => "expiring TTL",
            Application::Header => "header check",
            Application::Fragmentation => "fragmentation",
        }
    }

    /// Instructions of its kernel, of clang's optimised intermediate code, which is what the code for a
    /// device is made of. That of fragmentation hands a packet that has to be cut back to the host: a turn is
    /// what copying a sector takes by the word, eight loads and eight stores, and is not counted.
    pub(crate) fn law(self) -> Law {
        match self {
            Application::Dpi => Law { once: 3900, turn: 422, extra: 3700 },
            Application::Classifier => Law { once: 220, turn: 1545, extra: 12 },
            Application::Route => Law { once: 109, turn: 115, extra: 0 },
            Application::Ttl | Application::Expiring => Law { once: 48, turn: 0, extra: 46 },
            Application::Header => Law { once: 203, turn: 0, extra: 0 },
            Application::Fragmentation => Law { once: 54, turn: 16, extra: 0 },
        }
    }

    /// 32-bit registers of a thread of its kernel, as NVIDIA's compiler lays it out for sm_90.
    pub(crate) fn registers(self) -> u32 {
        // Those of one kernel have one line.
        let name = if self == Application::Expiring { Application::Ttl.name() } else { self.name() };
        let told = REGISTERS.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        // A test finds every application in the file.
        told.unwrap_or(u32::MAX)
    }

    /// Bytes of shared memory of a core: the search's filters, with what is chosen there at most.
    pub(crate) fn shared(self) -> u32 {
        if self == Application::Dpi { 16_384 } else { 0 }
    }

    /// What a packet costs that turns the loop so often and has so many bytes, check sequence included.
    pub(crate) fn work(self, turns: Turns, bytes: u32) -> Work {
        let Law { once, turn, extra } = self.law();
        let Turns { loops, .. } = turns;
        let sectors = |bytes: u32| bytes.div_ceil(SECTOR);
        let (own, shared, trips) = match self {
            // The filters lie in shared memory.
            Application::Dpi => (sectors(bytes - 4), 0, sectors(bytes - 4)),
            // 7 words to compare and 2 with the result for each of 32 rules.
            Application::Classifier => (sectors(38), loops * sectors(9 * 4 * 32), 1 + loops),
            Application::Route => (sectors(34) + 1 + loops, 0, 2 + loops),
            // What is read is written back, if the packet leaves.
            Application::Ttl | Application::Expiring => (sectors(34) * (1 + u32::from(turns.extra)), 0, 1),
            Application::Header => (sectors(34), 0, 1),
            // What is cut is read and written.
            Application::Fragmentation => (sectors(34) + 2 * loops, 0, 1 + loops),
        };
        Work { instructions: once + turn * loops + extra * u32::from(turns.extra), own, shared, trips, bytes }
    }

    fn text(self) -> &'static str {
        match self {
            Application::Dpi => include_str!("search.rav"),
            Application::Classifier => include_str!("classify.rav"),
            Application::Route => include_str!("../transfer/lpm.rav"),
            Application::Ttl | Application::Expiring => include_str!("ttl.rav"),
            Application::Header => include_str!("header.rav"),
            Application::Fragmentation => include_str!("fragment.rav"),
        }
    }

    /// The application with its tables and packets.
    pub(crate) fn job(self) -> Result<Job, String> {
        let options = KernelOptions { linear_rules: true, bloom: true, ..KernelOptions::default() };
        let (program, frames) = match self {
            Application::Dpi => search()?,
            Application::Classifier => {
                let (rules, frames) = first_packets(FunctionData::new(Function::Firewall, 1000)?);
                let mut program = compile("classify", self.text(), Decode::Lazy)?;
                program.tables[0].entries =
                    rules.tables.into_iter().flat_map(|table| table.entries).collect();
                (program, frames)
            }
            Application::Route => first_packets(FunctionData::new(Function::Lpm, ROUTES)?),
            Application::Ttl | Application::Expiring | Application::Header => {
                let frames = (0..PACKETS).map(|number| datagram(number, 60, [0].iter().cycle()));
                let mut frames: Vec<Vec<u8>> = frames.collect();
                if self == Application::Expiring {
                    frames.iter_mut().step_by(2).for_each(|frame| frame[TTL] = 1);
                }
                (compile("headers", self.text(), Decode::Lazy)?, frames)
            }
            Application::Fragmentation => {
                let mut random = Random::new(SEED);
                let frame = |number| datagram(number, size(&mut random), [0].iter().cycle());
                (compile("fragment", self.text(), Decode::Lazy)?, (0..PACKETS).map(frame).collect())
            }
        };
        let mut job = Job { program, options, frames, turns: Vec::new(), image: Vec::new() };
        let words = job.tables()?;
        job.image = words.first().map(|words| words[words[1] as usize..].to_vec()).unwrap_or_default();
        job.turns = job.frames.iter().map(|frame| self.turns(frame, &job.image)).collect();
        Ok(job)
    }

    /// How often a packet turns the loop. What is not IPv4 is dropped before it.
    pub(crate) fn turns(self, frame: &[u8], image: &[u32]) -> Turns {
        let number = |from: usize, bytes: usize| {
            let field = frame.get(from..from + bytes).unwrap_or_default();
            field.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        };
        let is_ip = number(12, 2) == 0x0800;
        let (loops, extra) = match self {
            Application::Dpi => return Turns::of_payload(frame.len() as u32 + 4),
            Application::Classifier if is_ip => {
                let (behind, protocol) = (14 + number(14, 1) as usize % 16 * 4, number(23, 1));
                let has_ports = number(20, 2) & 0x1fff == 0 && matches!(protocol, 6 | 17);
                let ports = if has_ports { [number(behind, 2), number(behind + 2, 2)] } else { [0; 2] };
                let key = [number(26, 4), number(30, 4), ports[0], ports[1], protocol];
                match tables::device::rules::find_linear(image, &key) {
                    tables::device::NONE => (image[4], false),
                    row => (row / 32 + 1, true),
                }
            }
            Application::Route if is_ip => (tables::device::lpm::nodes(image, number(30, 4).into()), false),
            Application::Ttl | Application::Expiring => (0, is_ip && number(TTL, 1) > 1),
            Application::Fragmentation if is_ip && number(16, 2) > LONGEST => {
                (frame.len().div_ceil(SECTOR as usize) as u32, false)
            }
            _ => (0, false),
        };
        Turns { loops, extra }
    }
}

impl Job {
    /// The words of the kernel's tables.
    pub(crate) fn tables(&self) -> Result<Vec<Vec<u32>>, String> {
        let offload = Offload::new(&self.program, PORTS, SEED, &self.options);
        let mut offload = offload.map_err(|error| error.to_string())?;
        let places = 0..offload.kernel().plan.tables.len();
        places.map(|place| offload.table_words(place).map_err(|error| error.to_string())).collect()
    }
}

/// The program of a function, with as many of its packets as have known work.
fn first_packets(data: FunctionData) -> (Program, Vec<Vec<u8>>) {
    let frames = data.whole.packets.frames.iter().take(PACKETS);
    let frames = frames.map(|frame| frame.bytes.to_vec()).collect();
    (data.whole.program, frames)
}

/// The search with patterns, and packets of UDP of the three sizes of simple IMIX with payload of words.
fn search() -> Result<(Program, Vec<Vec<u8>>), String> {
    let mut program = compile("search", Application::Dpi.text(), Decode::Lazy)?;
    let literals = Literals::new(&PatternsSpec { count: 2 * PATTERNS, nocase: 60, seed: SEED });
    let entry = |(number, literal): (u128, &PayloadLiteral)| {
        let bytes =
            BytePattern { bytes: literal.bytes.clone(), nocase: literal.nocase, offset: 0, depth: None };
        Entry { key: vec![Match::Bytes(Box::new(bytes))], value: vec![number], priority: 0 }
    };
    let spec = PayloadSpec { length: 1 << 20, planted: 0, opaque: 40, seed: SEED };
    let payload = Payload::new(&Literals { literals: Vec::new() }, &spec).bytes;
    // Of patterns that occur the search would end with the first one; harmless traffic is searched to its
    // end.
    let all = literals.literals.iter().map(|literal| &literal.bytes);
    let search = AhoCorasick::builder().ascii_case_insensitive(true).build(all);
    let search = search.map_err(|error| error.to_string())?;
    let found: HashSet<usize> =
        search.find_overlapping_iter(&payload).map(|place| place.pattern().as_usize()).collect();
    let absent = literals.literals.iter().enumerate().filter(|(number, _)| !found.contains(number));
    program.tables[0].entries =
        (0..).zip(absent.map(|(_, literal)| literal)).take(PATTERNS).map(entry).collect();
    let mut payload = payload.iter().cycle();
    let mut random = Random::new(SEED);
    let frames = (0..PACKETS).map(|number| datagram(number, size(&mut random), &mut payload)).collect();
    Ok((program, frames))
}

/// The bytes of one of the three sizes of simple IMIX, without check sequence.
fn size(random: &mut Random) -> usize {
    IMIX[random.below(IMIX.len() as u64) as usize] - 4
}

/// A UDP packet of so many bytes.
fn datagram<'a>(number: usize, size: usize, payload: impl Iterator<Item = &'a u8>) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0];
    frame.extend(((size - 14) as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 1, (number >> 8) as u8, number as u8, 10, 2, 0, 1]);
    let check = !packet::checksum::sum(&frame[14..]);
    frame[CHECK..CHECK + 2].copy_from_slice(&check.to_be_bytes());
    frame.extend([0x9c, 0x40, 0, 80]);
    frame.extend(((size - 34) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload.take(size - HEADERS));
    frame
}

#[cfg(test)]
mod tests;
