//! Ways in which a batch of packets gets its verdicts: one core, by machine code or by the original's algorithms in Rust; or a device,
//! as one of the original's iterations.

use super::ground::{Ground, PORTS, fill};
use super::naive::Naive;
use crate::measure::SEED;
use exec::kernel::{AGAIN, Column, Dialect, Kernel};
use exec::offload::Offload;
use exec::{BackEnd, Outputs};
use gpu::{Device, Found, Geometry, Memory, OpenCl, Parts};
use hdrhistogram::Histogram;
use packet::{BATCH, Batch, Frames, Verdict};
use std::time::{Duration, Instant};

/// Bytes of a packet's buffer in the original, all of which its first iteration copied.
const BUFFER: usize = 4096;
/// The bytes that the original's algorithms read, rounded up.
const HEADERS: usize = 48;

/// Where the time of some batches went: every nanosecond belongs to one part.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spans {
    /// Fetching packets from their memory to where they are worked on or go over from.
    pub(crate) gather: Duration,
    /// What the device's clock says, or for one core the work alone.
    pub(crate) parts: Parts,
    /// What belongs to no other part between handing over and having it back: launching, waking.
    pub(crate) driver: Duration,
    /// Bringing verdicts to the batches.
    pub(crate) scatter: Duration,
    /// All of it by the clock.
    pub(crate) wall: Duration,
    /// What the device's clock said beyond the time that there was; its parts have been cut by it in proportion.
    pub(crate) beyond: Duration,
}

impl Spans {
    /// A batch that was fetched for `gather`, then away for `away`, then brought back for `scatter`. `parts` is what the device's clock
    /// says of the time away.
    pub(crate) fn of(gather: Duration, away: Duration, parts: Parts, scatter: Duration) -> Spans {
        let said = parts.copy_in + parts.kernel + parts.copy_out;
        let beyond = said.saturating_sub(away);
        let cut = |part: Duration| match beyond.is_zero() {
            true => part,
            // Rounded down, so that the sum is never more than there was.
            false => Duration::from_nanos((part.as_nanos() * away.as_nanos() / said.as_nanos()) as u64),
        };
        let parts =
            Parts { copy_in: cut(parts.copy_in), kernel: cut(parts.kernel), copy_out: cut(parts.copy_out) };
        let driver = away - (parts.copy_in + parts.kernel + parts.copy_out);
        Spans { gather, parts, driver, scatter, wall: gather + away + scatter, beyond }
    }

    /// Adds another batch.
    pub(crate) fn add(&mut self, other: &Spans) {
        self.gather += other.gather;
        self.parts.copy_in += other.parts.copy_in;
        self.parts.kernel += other.parts.kernel;
        self.parts.copy_out += other.parts.copy_out;
        self.driver += other.driver;
        self.scatter += other.scatter;
        self.wall += other.wall;
        self.beyond += other.beyond;
    }

    /// The sum of the parts.
    pub(crate) fn sum(&self) -> Duration {
        let Parts { copy_in, kernel, copy_out } = self.parts;
        self.gather + copy_in + kernel + copy_out + self.driver + self.scatter
    }
}

/// Delays of packets, in nanoseconds.
pub(crate) type Delays = Histogram<u64>;

/// Something that gives packets their verdicts.
pub(crate) trait Way {
    /// Whether it always runs the first packets.
    fn repeats(&self) -> bool {
        false
    }

    /// Runs packets from `first` on, as many as there are places for verdicts. The last argument takes every packet's delay, from when it
    /// was fetched until its verdict is known.
    ///
    /// # Errors
    /// What went wrong, in a sentence.
    fn run(
        &mut self,
        frames: &mut Frames,
        first: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String>;
}

/// A way on one core: `work` gives a batch its verdicts.
pub(crate) struct Core<W> {
    work: W,
    batch: Box<Batch>,
}

/// A program's machine code on one core.
pub(crate) fn native(ground: &Ground) -> Result<Core<impl FnMut(&mut [u8], &mut Batch) + use<>>, String> {
    let mut processor =
        exec::load(&ground.program, BackEnd::Native, PORTS, SEED).map_err(|error| error.to_string())?;
    let mut outputs = Outputs::default();
    let work = move |memory: &mut [u8], batch: &mut Batch| processor.run(memory, batch, &mut outputs);
    Ok(Core { work, batch: Box::default() })
}

/// The original's algorithms on one core.
pub(super) fn twin(naive: Naive) -> Core<impl FnMut(&mut [u8], &mut Batch)> {
    let work = move |memory: &mut [u8], batch: &mut Batch| {
        for place in 0..batch.len {
            batch.verdict[place] = naive.verdict(batch.bytes(memory, place).unwrap_or_default());
        }
    };
    Core { work, batch: Box::default() }
}

impl<W: FnMut(&mut [u8], &mut Batch)> Way for Core<W> {
    fn run(
        &mut self,
        frames: &mut Frames,
        first: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        let begin = Instant::now();
        let mut now = begin;
        let mut spans = Spans::default();
        for (place, found) in found.chunks_mut(BATCH).enumerate() {
            let start = now;
            fill(frames, &mut self.batch, first + place * BATCH, found.len());
            let filled = Instant::now();
            (self.work)(frames.memory_mut(), &mut self.batch);
            let worked = Instant::now();
            found.copy_from_slice(self.batch.verdicts());
            now = Instant::now();
            spans.gather += filled - start;
            spans.parts.kernel += worked - filled;
            spans.scatter += now - worked;
            delays.saturating_record_n((now - start).as_nanos() as u64, found.len() as u64);
        }
        spans.wall = now - begin;
        Ok(spans)
    }
}

/// The iterations of the original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Iteration {
    /// 4 KiB go over for every packet.
    Naive,
    /// The headers alone.
    Headers,
    /// From and to memory that the device reaches itself.
    Mapped,
    /// As the headers alone, of a batch that lies ready, and nothing is done with the verdicts.
    Ready,
}

impl Iteration {
    /// All, in order.
    pub(crate) const ALL: [Iteration; 4] =
        [Iteration::Naive, Iteration::Headers, Iteration::Mapped, Iteration::Ready];

    /// Its name in the report.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Iteration::Naive => "1 naive",
            Iteration::Headers => "2 headers only",
            Iteration::Mapped => "3 mapped memory",
            Iteration::Ready => "4 no gather and send",
        }
    }
}

/// A kernel and its tables.
pub(crate) struct Loaded {
    text: String,
    stride: usize,
    /// How the text says the stride, to be said otherwise.
    said: String,
    columns: Vec<Column>,
    tables: Vec<Vec<u32>>,
}

impl Loaded {
    /// The original's algorithms.
    pub(super) fn naive(naive: &Naive) -> Loaded {
        let tables = naive.tables().into_iter().map(<[u32]>::to_vec).collect();
        let said = format!("#define STRIDE {HEADERS}\n");
        Loaded { text: naive.text(HEADERS), stride: HEADERS, said, columns: Vec::new(), tables }
    }

    /// A program's kernel.
    ///
    /// # Errors
    /// It has none, or one whose verdicts are not all that it leaves.
    pub(crate) fn program(ground: &Ground, options: &exec::kernel::Options) -> Result<Loaded, String> {
        let offload = Offload::new(&ground.program, PORTS, SEED, options);
        let mut offload = offload.map_err(|error| error.to_string())?;
        let places = offload.kernel().plan.tables.len();
        let tables = (0..places).map(|place| offload.table_words(place).map_err(|error| error.to_string()));
        let tables = tables.collect::<Result<_, _>>()?;
        let kernel: &Kernel = offload.kernel();
        if !kernel.plan.effects.is_empty() || kernel.plan.writes || kernel.plan.record_words > 0 {
            return Err("the program leaves more than verdicts".to_owned());
        }
        let stride = kernel.plan.bytes.stride() as usize;
        let said = format!("bytes + (u64)packet * {stride};");
        Ok(Loaded {
            text: kernel.text(Dialect::OpenCl),
            stride,
            said,
            columns: kernel.plan.columns.clone(),
            tables,
        })
    }

    /// Puts it on a device as one of the iterations.
    ///
    /// # Errors
    /// The device refuses it.
    pub(crate) fn on(
        &self,
        device: &Found,
        iteration: Iteration,
        packets: usize,
    ) -> Result<OnDevice, String> {
        let (text, stride) = match iteration {
            Iteration::Naive => {
                if self.text.matches(&self.said).count() != 1 {
                    return Err("the kernel does not say at one place how far packets are apart".to_owned());
                }
                let other = self.said.replace(&self.stride.to_string(), &BUFFER.to_string());
                (self.text.replace(&self.said, &other), BUFFER)
            }
            _ => (self.text.clone(), self.stride),
        };
        let geometry = Geometry {
            packets,
            stride,
            columns: self.columns.len(),
            verdict_bits: 32,
            record_words: 0,
            returns_bytes: false,
            slots: 1,
            tables: self.tables.len(),
        };
        let memory = if iteration == Iteration::Mapped { Memory::Mapped } else { Memory::Copied };
        let made = || {
            let mut made = OpenCl::timed(device, &text, geometry, memory)?;
            for (place, words) in self.tables.iter().enumerate() {
                made.upload(place, words)?;
            }
            Ok(made)
        };
        let device = made().map_err(|error: gpu::DeviceError| error.to_string())?;
        let columns = self.columns.clone();
        Ok(OnDevice {
            device: Box::new(device),
            columns,
            iteration,
            ready: false,
            batch: Box::default(),
            starts: Vec::new(),
        })
    }
}

/// A way over a device.
pub(crate) struct OnDevice {
    device: Box<dyn Device>,
    columns: Vec<Column>,
    iteration: Iteration,
    /// Whether the batch lies ready.
    ready: bool,
    batch: Box<Batch>,
    /// When packets were fetched, 256 at a time.
    starts: Vec<Instant>,
}

impl OnDevice {
    fn gather(&mut self, frames: &Frames, first: usize, count: usize) -> Result<(), gpu::DeviceError> {
        let stride = self.device.geometry().stride;
        let input = self.device.input(0)?;
        let (memory, batch) = (frames.memory(), &mut self.batch);
        for place in (0..count).step_by(BATCH) {
            self.starts.push(Instant::now());
            fill(frames, batch, first + place, BATCH.min(count - place));
            for (number, bytes) in (0..batch.len).zip(input.bytes.chunks_exact_mut(stride).skip(place)) {
                let start = batch.frame[number] as usize;
                // Frames are followed by room in memory, so that a fixed length can be copied.
                match (stride.min(64), memory.get(start..start + 64)) {
                    (48, Some(frame)) => bytes[..48].copy_from_slice(&frame[..48]),
                    (length, Some(frame)) => bytes[..length].copy_from_slice(&frame[..length]),
                    _ => bytes.fill(0),
                }
            }
            for (column, words) in self.columns.iter().zip(input.columns.chunks_exact_mut(count)) {
                let words = &mut words[place..place + batch.len];
                match column {
                    Column::Captured => words.copy_from_slice(&batch.captured[..batch.len]),
                    Column::Wire => words.copy_from_slice(&batch.wire[..batch.len]),
                    Column::Port => words.fill(1),
                    Column::TimeLow => {
                        words.iter_mut().zip(&batch.time).for_each(|(word, time)| *word = *time as u32)
                    }
                    Column::TimeHigh => {
                        words
                            .iter_mut()
                            .zip(&batch.time)
                            .for_each(|(word, time)| *word = (*time >> 32) as u32);
                    }
                }
            }
        }
        Ok(())
    }

    fn go(
        &mut self,
        frames: &Frames,
        first: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, gpu::DeviceError> {
        let count = found.len();
        let lies_ready = self.iteration == Iteration::Ready;
        if lies_ready && !self.ready {
            self.gather(frames, first, count)?;
            self.ready = true;
        }
        self.starts.clear();
        let begin = Instant::now();
        if !lies_ready {
            self.gather(frames, first, count)?;
        }
        let gathered = Instant::now();
        self.device.submit(0, count)?;
        self.device.poll(0, true)?;
        let back = Instant::now();
        let read = |found: &mut [Verdict], words: &[u32]| {
            for (verdict, word) in found.iter_mut().zip(words) {
                *verdict = if word & AGAIN != 0 { Verdict::PENDING } else { Verdict::from_bits(*word) };
            }
        };
        let mut end = back;
        let output = self.device.output(0)?;
        if lies_ready {
            read(found, output.verdicts);
            delays.saturating_record_n((back - begin).as_nanos() as u64, count as u64);
        } else {
            let chunks = found.chunks_mut(BATCH).zip(output.verdicts.chunks(BATCH)).zip(&self.starts);
            for ((found, words), start) in chunks {
                read(found, words);
                end = Instant::now();
                delays.saturating_record_n((end - *start).as_nanos() as u64, found.len() as u64);
            }
        }
        let parts = self.device.parts(0).unwrap_or_default();
        Ok(Spans::of(gathered - begin, back - gathered, parts, end - back))
    }
}

impl Way for OnDevice {
    fn repeats(&self) -> bool {
        self.iteration == Iteration::Ready
    }

    fn run(
        &mut self,
        frames: &mut Frames,
        first: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        self.go(frames, first, found, delays).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_nanosecond_belongs_to_one_part_whatever_the_device_says() {
        let time = Duration::from_nanos;
        for (copy_in, kernel, copy_out) in
            [(0, 0, 0), (10, 20, 30), (333, 333, 334), (7, 1999, 1), (1000, 0, 7)]
        {
            let parts = Parts { copy_in: time(copy_in), kernel: time(kernel), copy_out: time(copy_out) };
            let spans = Spans::of(time(11), time(1000), parts, time(13));
            assert_eq!(spans.wall, time(1024));
            assert_eq!(spans.sum(), spans.wall, "{spans:?}");
            let said = copy_in + kernel + copy_out;
            assert_eq!(spans.beyond, time(said.saturating_sub(1000)));
            // What fits is left as the device said it; what does not is cut in proportion, to the nanosecond below.
            let kept = if said <= 1000 { kernel } else { kernel * 1000 / said };
            assert_eq!(spans.parts.kernel, time(kept));
        }
    }
}
