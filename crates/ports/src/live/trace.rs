//! Writes what passes a port to a capture, with the direction, on a thread of its own.
//!
//! Packets are copied into chunks, which a bounded number of goes round between the packet loop and the thread that writes: the loop never waits, and what finds
//! no chunk with room is counted. A capture that is full becomes the one before, in the place of that one, and a new one begins: the
//! latest packets are always there, in at most twice the size.

use packet::capture::write::{Direction, Interface, PcapngWriter, Remarks};
use packet::{LinkType, MAXIMUM_CAPTURED};
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender, TryRecvError};
use std::thread::{self, JoinHandle};

/// Where what passes is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The capture. The one before lies beside it: `x.1.pcapng` beside `x.pcapng`.
    pub file: PathBuf,
    /// Bytes after which a new one begins.
    pub size: u64,
}

/// Chunks that each direction of each lane has.
const CHUNKS: usize = 16;
/// Bytes of a chunk, unless a single packet is longer.
const CHUNK: usize = 128 << 10;
/// Bytes before each packet of a chunk: time and length.
const PREFIX: usize = 12;

/// How long packets wait for a thread that is behind until it is asked again, in nanoseconds.
const AGAIN: u64 = 1_000_000;

/// Packets on their way to the thread, and whose they are.
struct Chunk {
    recorder: usize,
    bytes: Vec<u8>,
}

/// Where one direction of one lane writes packets to.
pub(crate) struct Recorder {
    number: usize,
    bytes: Vec<u8>,
    full: SyncSender<Chunk>,
    empty: Receiver<Vec<u8>>,
    /// Empty ones that came back.
    spare: Vec<Vec<u8>>,
    /// When the oldest packet that is not handed over passed, or the thread was last found to be behind.
    oldest: u64,
    own: u64,
    /// What the thread could not write.
    unwritten: Arc<AtomicU64>,
    /// Dropped after `full`, so that the last one ends the thread and then waits for it.
    _ending: Arc<Ending>,
}

struct Ending(Option<JoinHandle<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            // It ends by itself, and has nothing to say.
            let _ = thread.join();
        }
    }
}

/// Starts a capture of an interface; the recorders are for what comes in and what leaves, by turns.
///
/// # Errors
/// The file cannot be made.
pub(crate) fn start(trace: &Trace, interface: &str, recorders: usize) -> io::Result<Vec<Recorder>> {
    let mut writer = Writer::new(trace.clone(), interface.to_owned())?;
    let (full, chunks) = mpsc::sync_channel(CHUNKS * recorders);
    let unwritten: Vec<_> = (0..recorders).map(|_| Arc::new(AtomicU64::new(0))).collect();
    let (homes, empties): (Vec<_>, Vec<_>) = (0..recorders).map(|_| mpsc::sync_channel(CHUNKS)).unzip();
    for home in &homes {
        for _ in 1..CHUNKS {
            // There is room for all.
            let _ = home.try_send(Vec::with_capacity(CHUNK));
        }
    }
    let counters = unwritten.clone();
    let thread = thread::Builder::new()
        .name(format!("trace {interface}"))
        .spawn(move || writer.run(&chunks, &homes, &counters))?;
    let ending = Arc::new(Ending(Some(thread)));
    let recorders =
        (0..).zip(empties.into_iter().zip(unwritten)).map(|(number, (empty, unwritten))| Recorder {
            number,
            bytes: Vec::with_capacity(CHUNK),
            full: full.clone(),
            empty,
            spare: Vec::with_capacity(CHUNKS),
            oldest: 0,
            own: 0,
            unwritten,
            _ending: ending.clone(),
        });
    Ok(recorders.collect())
}

impl Recorder {
    /// Writes a packet down that passes at `time` (nanoseconds since 1970).
    pub(crate) fn record(&mut self, time: u64, frame: &[u8]) {
        if self.bytes.len() + PREFIX + frame.len() > CHUNK {
            self.give(1);
        }
        let room = self.bytes.is_empty() || self.bytes.len() + PREFIX + frame.len() <= CHUNK;
        if !room || frame.len() > MAXIMUM_CAPTURED as usize {
            self.own += 1;
            return;
        }
        if self.bytes.is_empty() {
            self.oldest = time;
        }
        self.bytes.extend_from_slice(&time.to_ne_bytes());
        self.bytes.extend_from_slice(&(frame.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(frame);
    }

    /// Gives the thread what there is, unless that is behind: then chunks are to be full.
    pub(crate) fn hand_over(&mut self) {
        self.give(CHUNKS / 2);
    }

    /// When to hand over what the thread was not ready for, in nanoseconds since 1970.
    pub(crate) fn due(&self) -> Option<u64> {
        (!self.bytes.is_empty()).then_some(self.oldest + AGAIN)
    }

    /// Gives the thread what there is, if at least so many chunks are empty.
    fn give(&mut self, empty: usize) {
        if self.bytes.is_empty() {
            return;
        }
        self.spare.extend(self.empty.try_iter());
        if self.spare.len() < empty {
            self.oldest += AGAIN;
            return;
        }
        if let Some(empty) = self.spare.pop() {
            let bytes = std::mem::replace(&mut self.bytes, empty);
            // As many chunks as there are have room, and the thread outlives the recorders.
            let _ = self.full.try_send(Chunk { recorder: self.number, bytes });
        }
    }

    /// How many packets were not written.
    pub(crate) fn lost(&self) -> u64 {
        self.own + self.unwritten.load(Ordering::Relaxed)
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        // The thread takes it: what it waits for are chunks.
        let _ = self.full.send(Chunk { recorder: self.number, bytes });
    }
}

/// What the thread does.
struct Writer {
    trace: Trace,
    interface: String,
    /// `None` once it could not be written.
    capture: Option<PcapngWriter<BufWriter<File>>>,
}

impl Writer {
    fn new(trace: Trace, interface: String) -> io::Result<Writer> {
        let mut writer = Writer { trace, interface, capture: None };
        writer.begin()?;
        Ok(writer)
    }

    /// Begins a new capture.
    fn begin(&mut self) -> io::Result<()> {
        let file = BufWriter::new(File::create(&self.trace.file)?);
        let interface = Interface { name: &self.interface, link: LinkType::ETHERNET };
        self.capture = Some(PcapngWriter::new(file, &[interface])?);
        Ok(())
    }

    /// Writes chunks until no recorder is left, and gives them back empty.
    fn run(&mut self, chunks: &Receiver<Chunk>, homes: &[SyncSender<Vec<u8>>], unwritten: &[Arc<AtomicU64>]) {
        let next = |capture: &mut Option<PcapngWriter<_>>| match chunks.try_recv() {
            Ok(chunk) => Some(chunk),
            Err(TryRecvError::Disconnected) => None,
            Err(TryRecvError::Empty) => {
                // Whoever looks at the file while nothing passes sees everything.
                if capture.as_mut().is_some_and(|capture| capture.flush().is_err()) {
                    *capture = None;
                }
                chunks.recv().ok()
            }
        };
        while let Some(Chunk { recorder, mut bytes }) = next(&mut self.capture) {
            for (time, frame) in packets(&bytes) {
                // Even numbers are what comes in.
                let direction = if recorder % 2 == 0 { Direction::In } else { Direction::Out };
                if self.write(direction, time, frame).is_err() {
                    self.capture = None;
                }
                if self.capture.is_none() {
                    unwritten[recorder].fetch_add(1, Ordering::Relaxed);
                }
            }
            bytes.clear();
            // The recorder may have gone.
            let _ = homes[recorder].try_send(bytes);
        }
    }

    fn write(&mut self, direction: Direction, time: u64, frame: &[u8]) -> io::Result<()> {
        if self.capture.as_ref().is_some_and(|capture| capture.written() >= self.trace.size) {
            if let Some(full) = self.capture.take() {
                full.finish()?;
            }
            fs::rename(&self.trace.file, before(&self.trace.file))?;
            self.begin()?;
        }
        let Some(capture) = &mut self.capture else { return Ok(()) };
        let remarks = Remarks { direction: Some(direction), comment: None };
        capture.write_with(0, time, frame.len() as u32, frame, remarks)
    }
}

/// The name of the capture before: `x.1.pcapng` for `x.pcapng`.
fn before(file: &Path) -> PathBuf {
    let ending = file.extension().map_or_else(|| "1".into(), |own| format!("1.{}", own.to_string_lossy()));
    file.with_extension(ending)
}

/// Times and packets of a chunk.
fn packets(mut bytes: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    std::iter::from_fn(move || {
        let (time, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (packet, rest) = rest.split_at_checked(u32::from_ne_bytes(*length) as usize)?;
        bytes = rest;
        Some((u64::from_ne_bytes(*time), packet))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Capture;

    fn numbers(file: &Path) -> Vec<u32> {
        let mut capture = Capture::open(File::open(file).expect("was made")).expect("a capture");
        let mut all = Vec::new();
        while let Some(record) = capture.next().expect("whole") {
            assert_eq!(record.time_ns, 7 + record.data.len() as u64);
            all.push(u32::from_be_bytes([record.data[0], record.data[1], record.data[2], record.data[3]]));
        }
        all
    }

    fn frame(number: u32) -> Vec<u8> {
        let mut frame = vec![1; 60 + number as usize % 1_000];
        frame[..4].copy_from_slice(&number.to_be_bytes());
        frame
    }

    fn trace(name: &str, size: u64) -> Trace {
        let file = std::env::temp_dir().join(format!("ravelin-trace-{}-{name}.pcapng", std::process::id()));
        Trace { file, size }
    }

    #[test]
    fn everything_is_written_or_counted_in_order() {
        let trace = trace("order", 1 << 30);
        let mut recorders = start(&trace, "eth0", 2).expect("can be made").into_iter();
        let (mut incoming, mut outgoing) = (recorders.next().expect("two"), recorders.next().expect("two"));
        // Three times what all chunks hold, as fast as it goes.
        let count = 12_000;
        for number in 0..count {
            let frame = frame(number);
            incoming.record(7 + frame.len() as u64, &frame);
            if number % 50 == 0 {
                incoming.hand_over();
            }
        }
        let last = frame(count);
        outgoing.record(7 + last.len() as u64, &last);
        let lost = incoming.lost();
        drop(incoming);
        drop(outgoing);
        drop(recorders);
        let numbers = numbers(&trace.file);
        assert!(numbers.is_sorted());
        assert_eq!(numbers.len() as u64 + lost, u64::from(count) + 1);
        assert!(numbers.len() >= 1_500, "the chunks alone hold that many: {}", numbers.len());
        fs::remove_file(&trace.file).expect("can be removed");
    }

    #[test]
    fn the_latest_packets_stay() {
        let trace = trace("latest", 100_000);
        let mut recorder = start(&trace, "eth0", 1).expect("can be made").remove(0);
        for number in 0..2_000 {
            let frame = frame(number);
            recorder.record(7 + frame.len() as u64, &frame);
            while recorder.bytes.len() > CHUNK / 2 {
                recorder.hand_over();
                thread::yield_now();
            }
        }
        assert_eq!(recorder.lost(), 0);
        drop(recorder);
        let older = before(&trace.file);
        for file in [&trace.file, &older] {
            assert!(fs::metadata(file).expect("was made").len() < 102_000);
        }
        let numbers: Vec<u32> = numbers(&older).into_iter().chain(numbers(&trace.file)).collect();
        let first = *numbers.first().expect("some");
        assert_eq!(numbers, (first..2_000).collect::<Vec<_>>());
        fs::remove_file(&trace.file).expect("can be removed");
        fs::remove_file(&older).expect("can be removed");
    }

    #[test]
    fn a_file_that_cannot_be_is_said_at_once() {
        let trace = Trace { file: "/dev/null/x.pcapng".into(), size: 1 };
        assert!(start(&trace, "eth0", 2).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_counted() {
        let trace = Trace { file: "/dev/full".into(), size: 1 << 30 };
        let Ok(recorders) = start(&trace, "eth0", 1) else { return };
        let mut recorder = recorders.into_iter().next().expect("one");
        for number in 0..100 {
            recorder.record(0, &frame(number));
        }
        recorder.hand_over();
        while recorder.lost() == 0 {
            recorder.record(0, &frame(0));
            recorder.hand_over();
            thread::yield_now();
        }
    }
}
