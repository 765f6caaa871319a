//! The outcome of a run, which is everything that a test can observe: verdicts, bytes, outputs, events,
//! tables, counters.

use crate::packet_generator::Arrivals;
use exec::{AsyncBackend, Backend, BackendKind, LoadError, OpenProof, Output, Outputs, TableReport, load};
use ir::Program;
use offload::device_queue::{DeviceQueue, Run, Schedule, Supply};
use packet::{BATCH, Batch, Verdict, VirtioHeader};
use std::convert::Infallible;
use std::fmt::Debug;
use std::time::Instant;

/// Seed of the tables' hash functions.
pub const SEED: u64 = 7;

/// A packet that left besides the received ones: port, cause, bytes, length on the wire, time, whether it is
/// a copy.
pub type SeenPacket = (u16, u32, Vec<u8>, u32, u64, bool);

/// An event: number, time, delay, cause, arguments.
pub type SeenEvent = (u32, u64, u64, u32, Vec<u128>);

/// A changed size: the number of the packet, its length on the wire before, and where and how it is cut.
pub type ChangedSize = (u32, u32, Option<(u32, u32)>);

/// Everything that can be seen of a run. Causes are packets counted from the first of all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunOutcome {
    /// One a packet.
    pub verdicts: Vec<Verdict>,
    /// Every packet as the program left it: bytes, and length on the wire.
    pub bytes: Vec<(Vec<u8>, u32)>,
    /// Packets that changed their length or are to be cut: number, length before, position and MTU.
    pub resized: Vec<ChangedSize>,
    /// What was sent besides.
    pub sent: Vec<SeenPacket>,
    /// Events in order.
    pub raised: Vec<SeenEvent>,
    /// Statistics of every table.
    pub tables: Vec<TableReport>,
    /// Entries of every table, sorted.
    pub entries: Vec<Vec<(ir::Entry, exec::EntryCount)>>,
    /// Members of every group that packets made: the index of the group, and columns.
    pub members: Vec<Vec<(u32, Vec<u128>)>>,
    /// Packets and bytes of every cell of every counter.
    pub counters: Vec<Vec<(u64, u64)>>,
    /// How often each event was raised.
    pub events: Vec<u64>,
    /// Events that were refused.
    pub lost: u64,
}

impl RunOutcome {
    /// The first part in which two runs differ, in words.
    pub fn difference(&self, other: &RunOutcome) -> Option<String> {
        let rest = |outcome: &RunOutcome| format!("{:?}, {} lost", outcome.events, outcome.lost);
        differing("verdict of packet", &self.verdicts, &other.verdicts)
            .or_else(|| differing_in_hex("bytes of packet", &self.bytes, &other.bytes))
            .or_else(|| differing("change of size", &self.resized, &other.resized))
            .or_else(|| differing_in_hex("output", &self.sent, &other.sent))
            .or_else(|| differing("event", &self.raised, &other.raised))
            .or_else(|| differing("entries of table", &self.entries, &other.entries))
            .or_else(|| differing("table", &self.tables, &other.tables))
            .or_else(|| differing("members of group", &self.members, &other.members))
            .or_else(|| differing("counter", &self.counters, &other.counters))
            .or_else(|| {
                (self != other).then(|| format!("numbers of events: {} and {}", rest(self), rest(other)))
            })
    }
}

/// Runs all packets in batches of `size` and then lets a second pass.
///
/// # Errors
/// If the back end cannot load the program.
pub fn see(
    program: &Program,
    back_end: BackendKind,
    arrivals: &Arrivals,
    ports: u16,
    size: usize,
) -> Result<RunOutcome, LoadError> {
    let mut backend = load(program, back_end, ports, SEED)?;
    Ok(see_on(program, backend.as_mut(), arrivals, size))
}

/// As [`see`], on a back end that has just been loaded with the program.
pub fn see_on(program: &Program, backend: &mut dyn Backend, arrivals: &Arrivals, size: usize) -> RunOutcome {
    let mut frames = arrivals.frames.clone();
    let mut watch = Watch::new(program, backend);
    let mut batch = Batch::new();
    let size = size.clamp(1, BATCH);
    for first in (0..frames.len()).step_by(size) {
        let count = frames.fill(&mut batch, first..first + size);
        batch.port[..count].copy_from_slice(&arrivals.ports[first..first + count]);
        let Ok(()) = watch.batch(frames.memory_mut(), &mut batch);
    }
    watch.end(arrivals)
}

/// As [`see`], with packets whose checksums may be open: the program gets those open that the proof admits,
/// and what it leaves open is finished afterwards.
///
/// # Errors
/// If the back end cannot load the program.
pub fn see_open(
    program: &Program,
    back_end: BackendKind,
    proof: OpenProof,
    arrivals: &Arrivals,
    ports: u16,
    size: usize,
) -> Result<RunOutcome, LoadError> {
    let mut backend = load(program, back_end, ports, SEED)?;
    let mut watch = Watch { proof: Some(proof), ..Watch::new(program, backend.as_mut()) };
    let mut frames = arrivals.frames.clone();
    let mut batch = Batch::new();
    for first in (0..frames.len()).step_by(size) {
        let count = frames.fill(&mut batch, first..first + size);
        batch.port[..count].copy_from_slice(&arrivals.ports[first..first + count]);
        let Ok(()) = watch.batch(frames.memory_mut(), &mut batch);
    }
    Ok(watch.end(arrivals))
}

/// As [`see_on`], packet by packet, each in memory of its own that begins with its headroom and ends where
/// the packet ends.
pub fn see_exactly(program: &Program, backend: &mut dyn Backend, arrivals: &Arrivals) -> RunOutcome {
    let mut watch = Watch::new(program, backend);
    let mut batch = Batch::new();
    for (index, frame) in arrivals.frames.iter().enumerate() {
        arrivals.frames.fill(&mut batch, index..index + 1);
        let room = batch.headroom as usize;
        let mut memory = vec![0xa5; room + frame.bytes.len()].into_boxed_slice();
        memory[room..].copy_from_slice(frame.bytes);
        (batch.frame[0], batch.port[0]) = (room as u64, arrivals.ports[index]);
        let Ok(()) = watch.batch(&mut memory, &mut batch);
    }
    watch.end(arrivals)
}

/// As [`see_on`], with packets held until as many can be run together as a schedule wants. `supply` says of
/// every batch but the last what comes behind it.
pub fn see_held(
    program: &Program,
    backend: &mut dyn Backend,
    arrivals: &Arrivals,
    schedule: Schedule,
    supply: Supply,
) -> RunOutcome {
    let mut frames = arrivals.frames.clone();
    let mut device_queue = DeviceQueue::new(backend, schedule, Instant::now()).expect("it is on a device");
    let mut watch = Watch::new(program, backend);
    let mut batch = Batch::new();
    for first in (0..frames.len()).step_by(BATCH) {
        let count = frames.fill(&mut batch, first..first + BATCH);
        batch.port[..count].copy_from_slice(&arrivals.ports[first..first + count]);
        let Ok(()) = device_queue.take(&mut watch, frames.memory_mut(), &batch);
        let Ok(_) = device_queue.run(&mut watch, supply);
    }
    let Ok(_) = device_queue.run(&mut watch, Supply::Ended);
    watch.end(arrivals)
}

/// What has been seen of a run so far.
struct Watch<'a> {
    program: &'a Program,
    backend: &'a mut dyn Backend,
    outputs: Outputs,
    /// What is shown of the program, if it gets packets with open checksums.
    proof: Option<OpenProof>,
    seen: RunOutcome,
}

impl<'a> Watch<'a> {
    fn new(program: &'a Program, backend: &'a mut dyn Backend) -> Watch<'a> {
        Watch { program, backend, outputs: Outputs::default(), proof: None, seen: RunOutcome::default() }
    }

    /// Lets a while pass behind the last packet, and looks at what is left.
    fn end(self, arrivals: &Arrivals) -> RunOutcome {
        let Watch { program, backend, mut outputs, mut seen, .. } = self;
        let last = arrivals.frames.iter().map(|frame| frame.time).max().unwrap_or(0);
        outputs.clear();
        backend.advance(last + 15_000_000, &mut outputs);
        add(program, &outputs, 0, &mut seen);
        finish(program, backend, &mut seen);
        seen
    }
}

impl Run for Watch<'_> {
    type Error = Infallible;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.backend.asynchronous()
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        let Watch { program, backend, outputs, proof, seen } = self;
        let first = seen.verdicts.len() as u32;
        outputs.clear();
        if let Some(proof) = proof {
            open(*proof, memory, batch, outputs);
        }
        backend.run(memory, batch, outputs);
        // Those that the back end has not finished already.
        let finished = outputs.open.iter().map(|virtio| !virtio.is_open()).collect::<Vec<_>>();
        for index in 0..if proof.is_some() { batch.len } else { 0 } {
            if !finished.get(index).is_some_and(|finished| *finished) {
                batch.finish_checksum(memory, index);
            }
        }
        seen.verdicts.extend_from_slice(batch.verdicts());
        let bytes = |i| batch.bytes(memory, i).unwrap_or_default().to_vec();
        seen.bytes.extend((0..batch.len).map(|i| (bytes(i), batch.wire[i])));
        add(program, outputs, first, seen);
        Ok(())
    }
}

/// Leaves the checksums of a batch open that the program may get so, and finishes the others that are.
fn open(proof: OpenProof, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
    let received = batch.clone();
    batch.clear();
    for index in 0..received.len {
        let [captured, wire] = [received.captured[index], received.wire[index]];
        batch.push(received.frame[index], captured, wire, received.port[index], received.time[index]);
        let frame = received.bytes(memory, index).unwrap_or_default();
        let virtio = VirtioHeader::unmarked(frame);
        let admitted = virtio.open_class(frame).is_some_and(|class| proof.classes.contains(class));
        batch.leave_unfinished(virtio);
        if !admitted {
            batch.finish_checksum(memory, index);
        }
    }
    if proof.quotes {
        outputs.open.extend((0..batch.len).map(|index| batch.virtio(index)));
    }
}

fn add(program: &Program, outputs: &Outputs, first: u32, seen: &mut RunOutcome) {
    let cause = |cause: u32| if cause == Output::BETWEEN { cause } else { cause + first };
    for sent in &outputs.packets {
        let bytes = outputs.bytes_of(sent).to_vec();
        seen.sent.push((sent.port, cause(sent.cause), bytes, sent.wire, sent.time, sent.copy));
    }
    for change in &outputs.resized {
        let cut = change.fragmenting.map(|cut| (cut.at, cut.mtu));
        seen.resized.push((change.packet + first, change.wire, cut));
    }
    for raised in &outputs.raised {
        let count = program.events[raised.event as usize].params.len();
        let args = outputs.arguments[raised.first as usize..][..count].to_vec();
        seen.raised.push((raised.event, raised.time, raised.delay, cause(raised.cause), args));
    }
}

fn finish(program: &Program, backend: &dyn Backend, seen: &mut RunOutcome) {
    seen.tables = backend.tables();
    seen.entries = (0..program.tables.len() as u32).map(|table| backend.entries(table)).collect();
    seen.members = (0..program.groups.len() as u32).map(|group| backend.learned_members(group)).collect();
    seen.counters = (0..program.counters.len() as u32).map(|counter| backend.counter(counter)).collect();
    seen.events = backend.events();
    seen.lost = backend.lost_events();
}

/// Where two lists of such items differ first, in words.
fn differing<T: PartialEq + Debug>(items: &str, a: &[T], b: &[T]) -> Option<String> {
    first_difference(a, b).map(|at| format!("{items} {at}: {:?} and {:?}", a.get(at), b.get(at)))
}

/// As [`differing`], with the numbers in hexadecimal digits.
fn differing_in_hex<T: PartialEq + Debug>(items: &str, a: &[T], b: &[T]) -> Option<String> {
    first_difference(a, b).map(|at| format!("{items} {at}: {:02x?} and {:02x?}", a.get(at), b.get(at)))
}

/// Where two lists differ first.
fn first_difference<T: PartialEq>(a: &[T], b: &[T]) -> Option<usize> {
    let common = a.iter().zip(b).position(|(a, b)| a != b);
    common.or_else(|| (a.len() != b.len()).then_some(a.len().min(b.len())))
}
