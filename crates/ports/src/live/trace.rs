//! Traces: writes the packets that pass a port to a capture, with their direction, on a thread of its own.
//!
//! Packets are copied into chunks, which a bounded number of goes round between the packet loop and the
//! thread that writes: the loop never waits, and what finds no chunk with room is counted. A capture that is
//! full becomes the one before, in the place of that one, and a new one begins: the latest packets are always
//! there, in at most twice the size.
//!
//! Where the capture cannot be written, as on a full disk, what is not whole is cut off it, packets are
//! counted as missing, and it is tried again once a second: then a section of its own goes on behind what is
//! there.

use super::presence::Presence;
use captures::write::{CaptureRemarks, Direction, Interface, PcapngWriter};
use packet::{LinkType, MAXIMUM_CAPTURED};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Where what passes is written to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortTrace {
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

/// How long a capture that could not be written is left alone.
const LEFT_ALONE: Duration = Duration::from_secs(1);

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
pub(crate) fn start(
    trace: &PortTrace,
    interface: &str,
    recorders: usize,
    presence: Arc<Presence>,
) -> io::Result<Vec<Recorder>> {
    let writer = Writer::new(trace.clone(), interface.to_owned(), presence)?;
    recorders_of(writer, interface, recorders)
}

fn recorders_of(mut writer: Writer, interface: &str, recorders: usize) -> io::Result<Vec<Recorder>> {
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
    /// Writes a packet down that passes at `time` of the program; for people, the clock on the `wall` shows
    /// this.
    pub(crate) fn record(&mut self, time: u64, wall: u64, frame: &[u8]) {
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
        self.bytes.extend_from_slice(&wall.to_ne_bytes());
        self.bytes.extend_from_slice(&(frame.len() as u32).to_ne_bytes());
        self.bytes.extend_from_slice(frame);
    }

    /// Gives the thread what there is, unless that is behind: then chunks are to be full.
    pub(crate) fn hand_over(&mut self) {
        self.give(CHUNKS / 2);
    }

    /// When to hand over what the thread was not ready for, in the program's time.
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
    trace: PortTrace,
    interface: String,
    presence: Arc<Presence>,
    /// Nothing while it cannot be written.
    capture: Option<Open>,
    /// When it is tried again then.
    again: Instant,
    left_alone: Duration,
}

/// A capture that is written to.
struct Open {
    writer: PcapngWriter<BufWriter<File>>,
    /// The same file, to cut it.
    file: File,
    /// What it held before the writer began.
    before: u64,
    /// How long it is up to what was handed to the system whole, and how many packets came since, by
    /// recorder.
    whole: u64,
    since: Vec<u64>,
}

impl Open {
    /// The bytes that it has, or will have.
    fn length(&self) -> u64 {
        self.before + self.writer.written()
    }

    /// Hands everything to the system.
    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.whole = self.length();
        self.since.clear();
        Ok(())
    }

    /// Gives it up, and cuts off what is not there whole. How many packets that takes, by recorder.
    fn abandon(self) -> Vec<u64> {
        let Open { writer, file, whole, since, .. } = self;
        // It tries once more to write what it has, so it goes first.
        drop(writer);
        // What is no file has no length.
        let _ = file.set_len(whole);
        since
    }
}

impl Writer {
    fn new(trace: PortTrace, interface: String, presence: Arc<Presence>) -> io::Result<Writer> {
        let (again, left_alone) = (Instant::now(), LEFT_ALONE);
        let mut writer = Writer { trace, interface, presence, capture: None, again, left_alone };
        let file = File::create(&writer.trace.file)?;
        writer.capture = Some(writer.begin(file)?);
        Ok(writer)
    }

    /// Begins a section at the end of a file.
    fn begin(&self, file: File) -> io::Result<Open> {
        let before = file.metadata()?.len();
        let interface = Interface { name: &self.interface, link: LinkType::ETHERNET };
        let writer = PcapngWriter::new(BufWriter::with_capacity(CHUNK, file.try_clone()?), &[interface])?;
        Ok(Open { writer, file, before, whole: before, since: Vec::new() })
    }

    /// Writes chunks until no recorder is left, and gives them back empty.
    fn run(&mut self, chunks: &Receiver<Chunk>, homes: &[SyncSender<Vec<u8>>], unwritten: &[Arc<AtomicU64>]) {
        while let Ok(Chunk { recorder, mut bytes }) = chunks.recv() {
            self.try_again();
            for (time, frame) in packets(&bytes) {
                let written = self.write(recorder, time, frame);
                self.settle(written, unwritten);
                if self.capture.is_none() {
                    unwritten[recorder].fetch_add(1, Ordering::Relaxed);
                }
            }
            // Whoever looks at the file while nothing passes sees everything, and a chunk is worth a call.
            let flushed = self.capture.as_mut().map_or(Ok(()), Open::flush);
            self.settle(flushed, unwritten);
            bytes.clear();
            // The recorder may have gone.
            let _ = homes[recorder].try_send(bytes);
        }
    }

    /// Gives the capture up where something failed: packets that are not there whole are counted as missing.
    fn settle(&mut self, result: io::Result<()>, unwritten: &[Arc<AtomicU64>]) {
        let Err(error) = result else { return };
        for (lost, counter) in self.capture.take().map(Open::abandon).iter().flatten().zip(unwritten) {
            counter.fetch_add(*lost, Ordering::Relaxed);
        }
        self.again = Instant::now() + self.left_alone;
        let file = self.trace.file.display();
        self.presence.trace(Some(format!(
            "its trace {file} cannot be written: {error}; packets are missing in it until it can, which is tried each second"
        )));
    }

    /// What there is of the capture to go on with; one that is full makes way first, so that what cannot make
    /// way is not taken for mended.
    fn unfinished(&self) -> io::Result<File> {
        if fs::metadata(&self.trace.file).is_ok_and(|found| found.len() >= self.trace.size) {
            self.make_way()?;
        }
        OpenOptions::new().append(true).create(true).open(&self.trace.file)
    }

    /// A capture that is full becomes the one before.
    fn make_way(&self) -> io::Result<()> {
        fs::rename(&self.trace.file, before(&self.trace.file))
    }

    /// Goes on with a capture that could not be written, if it can be now.
    fn try_again(&mut self) {
        if self.capture.is_some() || Instant::now() < self.again {
            return;
        }
        let opened =
            self.unfinished().and_then(|file| self.begin(file)).and_then(|mut open| match open.flush() {
                Ok(()) => Ok(open),
                Err(error) => {
                    open.abandon();
                    Err(error)
                }
            });
        match opened {
            Ok(open) => {
                self.capture = Some(open);
                self.presence.trace(None);
            }
            // It was said why when it began.
            Err(_) => self.again = Instant::now() + self.left_alone,
        }
    }

    fn write(&mut self, recorder: usize, time: u64, frame: &[u8]) -> io::Result<()> {
        if let Some(open) = self.capture.as_mut().filter(|open| open.length() >= self.trace.size) {
            open.flush()?;
            self.make_way()?;
            self.capture = None;
            self.capture = Some(self.begin(File::create(&self.trace.file)?)?);
        }
        let Some(open) = &mut self.capture else { return Ok(()) };
        // Even numbers are what comes in.
        let direction = if recorder.is_multiple_of(2) { Direction::In } else { Direction::Out };
        let remarks = CaptureRemarks { direction: Some(direction), comment: None };
        open.since.resize(open.since.len().max(recorder + 1), 0);
        open.writer.write_with(0, time, frame.len() as u32, frame, remarks)?;
        open.since[recorder] += 1;
        Ok(())
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
    use captures::Capture;

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

    fn trace(name: &str, size: u64) -> PortTrace {
        let file = std::env::temp_dir().join(format!("ravelin-trace-{}-{name}.pcapng", std::process::id()));
        PortTrace { file, size }
    }

    #[test]
    fn everything_is_written_or_counted_in_order() {
        let trace = trace("order", 1 << 30);
        let mut recorders = start(&trace, "eth0", 2, Arc::default()).expect("can be made").into_iter();
        let (mut incoming, mut outgoing) = (recorders.next().expect("two"), recorders.next().expect("two"));
        // Three times what all chunks hold, as fast as it goes.
        let count = 12_000;
        for number in 0..count {
            let frame = frame(number);
            incoming.record(1, 7 + frame.len() as u64, &frame);
            if number % 50 == 0 {
                incoming.hand_over();
            }
        }
        let last = frame(count);
        outgoing.record(1, 7 + last.len() as u64, &last);
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
        let mut recorder = start(&trace, "eth0", 1, Arc::default()).expect("can be made").remove(0);
        for number in 0..2_000 {
            let frame = frame(number);
            recorder.record(1, 7 + frame.len() as u64, &frame);
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
        let trace = PortTrace { file: "/dev/null/x.pcapng".into(), size: 1 };
        assert!(start(&trace, "eth0", 2, Arc::default()).is_err());
    }

    /// A file that cannot be written takes the place of one that can, and goes again: as a disk that is full,
    /// and is no more.
    #[test]
    fn what_cannot_be_written_is_counted_and_said_and_goes_on_when_it_can_be() {
        let trace = trace("full", 1 << 30);
        let (disk, presence) = (trace.file.with_extension("disk"), Arc::new(Presence::default()));
        let link = |to: &Path| {
            // The first time there is none.
            let _ = fs::remove_file(&trace.file);
            std::os::unix::fs::symlink(to, &trace.file).expect("can be made");
        };
        link(Path::new("/dev/full"));
        let mut writer =
            Writer::new(trace.clone(), "eth0".into(), presence.clone()).expect("nothing is written yet");
        writer.left_alone = Duration::ZERO;
        let mut recorder = recorders_of(writer, "eth0", 1).expect("a thread").remove(0);
        let mut number = 0;
        let mut record = |recorder: &mut Recorder| {
            let frame = frame(number);
            recorder.record(1, 7 + frame.len() as u64, &frame);
            recorder.hand_over();
            number += 1;
            thread::yield_now();
            number
        };
        while presence.untraced().is_none() {
            record(&mut recorder);
        }
        assert!(presence.untraced().is_some_and(|why| why.contains("cannot be written: No space left")));
        link(&disk);
        while presence.untraced().is_some() {
            record(&mut recorder);
        }
        let some = record(&mut recorder);
        // Full again, and again not: what is there already stays whole, and a section of its own goes on
        // behind it.
        while fs::metadata(&disk).expect("is there").len() < 1000 {
            record(&mut recorder);
        }
        let (lost, last) = (recorder.unwritten.clone(), record(&mut recorder));
        let own = recorder.own;
        drop(recorder);
        assert!(last > some);
        let numbers = numbers(&disk);
        assert!(numbers.is_sorted(), "{numbers:?}");
        assert_eq!(numbers.len() as u64 + lost.load(Ordering::Relaxed) + own, u64::from(last));
        for file in [&trace.file, &disk] {
            fs::remove_file(file).expect("can be removed");
        }
    }

    #[test]
    fn what_is_cut_off_a_capture_is_what_was_not_whole() {
        let trace = trace("cut", 1 << 30);
        let writer = Writer::new(trace.clone(), "eth0".into(), Arc::default()).expect("can be made");
        let mut writer = writer;
        let lost = [Arc::new(AtomicU64::new(0))];
        let put = |writer: &mut Writer, number: u32| {
            let frame = frame(number);
            writer.write(0, 7 + frame.len() as u64, &frame).expect("there is room");
        };
        put(&mut writer, 0);
        writer.capture.as_mut().expect("is open").flush().expect("there is room");
        put(&mut writer, 1);
        writer.settle(Err(io::ErrorKind::StorageFull.into()), &lost);
        assert_eq!((numbers(&trace.file), lost[0].load(Ordering::Relaxed)), (vec![0], 1));
        writer.again = Instant::now();
        writer.try_again();
        put(&mut writer, 2);
        drop(writer);
        assert_eq!(numbers(&trace.file), [0, 2], "a section behind the other");
        fs::remove_file(&trace.file).expect("can be removed");
    }

    #[test]
    fn a_capture_that_cannot_make_way_is_not_said_to_be_written_again() {
        let (trace, presence) = (trace("way", 1000), Arc::new(Presence::default()));
        let older = before(&trace.file);
        // No file takes the place of a folder.
        fs::create_dir(&older).expect("can be made");
        let mut writer = Writer::new(trace.clone(), "eth0".into(), presence.clone()).expect("can be made");
        let lost = [Arc::new(AtomicU64::new(0))];
        let put = |writer: &mut Writer, number: u32| {
            let frame = frame(number);
            writer.write(0, 7 + frame.len() as u64, &frame)
        };
        let mut number = 0;
        while let Ok(()) = put(&mut writer, number) {
            number += 1;
        }
        writer.settle(Err(io::ErrorKind::IsADirectory.into()), &lost);
        let length = fs::metadata(&trace.file).expect("is there").len();
        for _ in 0..3 {
            writer.again = Instant::now();
            writer.try_again();
            assert!(presence.untraced().is_some() && writer.capture.is_none());
        }
        assert_eq!(fs::metadata(&trace.file).expect("is there").len(), length, "nothing is put behind it");
        fs::remove_dir(&older).expect("can be removed");
        writer.again = Instant::now();
        writer.try_again();
        assert_eq!(presence.untraced(), None);
        put(&mut writer, number).expect("there is room");
        drop(writer);
        assert_eq!(numbers(&older), (0..number).collect::<Vec<_>>());
        assert_eq!(numbers(&trace.file), [number]);
        for file in [&trace.file, &older] {
            fs::remove_file(file).expect("can be removed");
        }
    }
}
