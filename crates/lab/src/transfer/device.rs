//! Ways over a device: a kernel with its tables, and batches that go there and back in one of several ways.

use super::choice::Chosen;
use super::ground::{Ground, PACKETS, PORTS, fill};
use super::naive::Naive;
use super::spans::{Delays, Spans};
use super::ways::Way;
use crate::measure::SEED;
use exec::kernel::{AGAIN, Column, Dialect, Kernel};
use exec::offload::Offload;
use gpu::{Cuda, Device, DeviceError, Geometry, Host, Lane, Memory, OpenCl, Setup, Submission, Warp};
use lang::ir::Program;
use packet::{BATCH, Batch, Frames, Verdict};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of a packet's buffer in the original, all of which its first iteration copied.
const BUFFER: usize = 4096;
/// The bytes that the original's algorithms read, rounded up.
const HEADERS: usize = 48;
/// Packets that one call is to have at least.
const STRETCH: usize = 4096;
/// Batches that one call is to have at least where several are under way at once, so that its beginning and end weigh little.
const PIPELINED: usize = 8;

/// What goes over of every packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// A buffer of 4 KiB.
    Buffer,
    /// The header bytes that are read, rounded up.
    Headers,
}

impl Over {
    /// Its name in the report.
    pub(super) fn name(self) -> &'static str {
        match self {
            Over::Buffer => "4 KiB buffer",
            Over::Headers => "header bytes",
        }
    }
}

/// How packets get to a device and verdicts back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) over: Over,
    pub(crate) memory: Memory,
    pub(crate) submission: Submission,
    /// Batches that are under way at once.
    pub(crate) depth: usize,
    /// The batch lies ready and is not fetched, and nothing is done with its verdicts.
    pub(crate) ready: bool,
}

/// A kernel and its tables.
pub(crate) struct Loaded {
    code: Code,
    /// Bytes of a packet.
    stride: usize,
    columns: Vec<Column>,
    tables: Vec<Vec<u32>>,
}

enum Code {
    Naive(Arc<Naive>),
    Program(Box<(Kernel, Program)>),
}

impl Loaded {
    /// The original's algorithms.
    pub(super) fn naive(naive: &Arc<Naive>) -> Loaded {
        let tables = naive.tables().into_iter().map(<[u32]>::to_vec).collect();
        Loaded { code: Code::Naive(Arc::clone(naive)), stride: HEADERS, columns: Vec::new(), tables }
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
        let kernel = offload.kernel().clone();
        if !kernel.plan.effects.is_empty() || kernel.plan.writes || kernel.plan.record_words > 0 {
            return Err("the program leaves more than verdicts".to_owned());
        }
        let (stride, columns) = (kernel.plan.stride as usize, kernel.plan.columns.clone());
        let code = Code::Program(Box::new((kernel, ground.program.clone())));
        Ok(Loaded { code, stride, columns, tables })
    }

    /// It on a device, for batches of so many packets.
    ///
    /// # Errors
    /// The device refuses it, or does not have the setting.
    pub(crate) fn on(&self, device: &Chosen, setting: Setting, packets: usize) -> Result<OnDevice, String> {
        let device = self.open(device, setting, packets).map_err(|error| error.to_string())?;
        Ok(OnDevice::new(device, &self.columns, setting))
    }

    /// Puts it on a device.
    fn open(
        &self,
        device: &Chosen,
        setting: Setting,
        packets: usize,
    ) -> Result<Box<dyn Device>, DeviceError> {
        let stride = if setting.over == Over::Buffer { BUFFER } else { self.stride };
        let geometry = Geometry {
            packets,
            stride,
            columns: self.columns.len(),
            verdict_bits: 32,
            record_words: 0,
            returns_bytes: false,
            slots: setting.depth,
            tables: self.tables.len(),
        };
        let setup = Setup { memory: setting.memory, submission: setting.submission, timed: true };
        let mut made: Box<dyn Device> = match device {
            Chosen::OpenCl(found) => {
                Box::new(OpenCl::new(found, &self.text(Dialect::OpenCl, stride), geometry, setup)?)
            }
            Chosen::Cuda(found) => {
                Box::new(Cuda::new(found, &self.text(Dialect::Cuda, stride), geometry, setup)?)
            }
            Chosen::Host => Box::new(self.host(geometry)?),
        };
        for (place, words) in self.tables.iter().enumerate() {
            made.upload(place, words)?;
        }
        Ok(made)
    }

    fn text(&self, dialect: Dialect, stride: usize) -> String {
        match &self.code {
            Code::Naive(naive) => naive.text(stride),
            Code::Program(program) => {
                let text = program.0.text(dialect);
                // Only how far packets are apart is another.
                text.replace(
                    &format!("bytes + (u64)packet * {};", self.stride),
                    &format!("bytes + (u64)packet * {stride};"),
                )
            }
        }
    }

    fn host(&self, geometry: Geometry) -> Result<Host, DeviceError> {
        match &self.code {
            Code::Naive(naive) => Host::new(Box::new(Walk(Arc::clone(naive))), geometry, None),
            Code::Program(program) => engine::offload::host(&program.0, &program.1, PORTS, geometry),
        }
    }
}

/// The original's algorithms as what threads run.
struct Walk(Arc<Naive>);

impl Warp for Walk {
    fn run(&self, lane: Lane<'_>, _: &[Arc<Vec<u32>>]) -> u32 {
        self.0.verdict(lane.bytes).bits()
    }
}

/// A way over a device.
pub(crate) struct OnDevice {
    device: Box<dyn Device>,
    columns: Vec<Column>,
    setting: Setting,
    batch: Box<Batch>,
    slots: Vec<Slot>,
}

#[derive(Default)]
struct Slot {
    /// Whether the batch lies ready.
    ready: bool,
    /// When packets were fetched, 256 at a time.
    starts: Vec<Instant>,
    /// How long fetching took, and handing over.
    spent: [Duration; 2],
    /// When it was handed over.
    given: Option<Instant>,
}

impl OnDevice {
    /// A way over a device that has the kernel and its tables.
    pub(super) fn new(device: Box<dyn Device>, columns: &[Column], setting: Setting) -> OnDevice {
        let slots = (0..setting.depth).map(|_| Slot::default()).collect();
        OnDevice { device, columns: columns.to_vec(), setting, batch: Box::default(), slots }
    }

    /// Writes what goes over for a batch.
    fn gather(
        &mut self,
        frames: &Frames,
        slot: usize,
        (first, count): (usize, usize),
    ) -> Result<(), DeviceError> {
        let stride = self.device.geometry().stride;
        let starts = &mut self.slots[slot].starts;
        let input = self.device.input(slot)?;
        let (memory, batch) = (frames.memory(), &mut self.batch);
        for place in (0..count).step_by(BATCH) {
            starts.push(Instant::now());
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
                let times = words.iter_mut().zip(&batch.time);
                match column {
                    Column::Captured => words.copy_from_slice(&batch.captured[..batch.len]),
                    Column::Wire => words.copy_from_slice(&batch.wire[..batch.len]),
                    Column::Port => words.fill(1),
                    Column::TimeLow => times.for_each(|(word, time)| *word = *time as u32),
                    Column::TimeHigh => times.for_each(|(word, time)| *word = (*time >> 32) as u32),
                    // Of frames in place, which no setting has.
                    Column::Place => words.fill(0),
                }
            }
        }
        Ok(())
    }

    /// Fetches and hands over a batch; `now` is when that began.
    fn give(
        &mut self,
        frames: &Frames,
        slot: usize,
        (first, count): (usize, usize),
        now: Instant,
    ) -> Result<Instant, DeviceError> {
        let mut begin = now;
        self.slots[slot].starts.clear();
        if !self.setting.ready {
            self.gather(frames, slot, (first, count))?;
        } else if !self.slots[slot].ready {
            self.gather(frames, slot, (0, count))?;
            self.slots[slot].ready = true;
            begin = Instant::now();
        }
        let gathered = Instant::now();
        self.device.submit(slot, count)?;
        let end = Instant::now();
        self.slots[slot].spent = [gathered - begin, end - gathered];
        self.slots[slot].given = Some(gathered);
        Ok(end)
    }

    /// Waits for a batch and brings its verdicts to their places; `now` is when that began.
    fn take(
        &mut self,
        slot: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
        now: Instant,
    ) -> Result<(Spans, Instant), DeviceError> {
        self.device.poll(slot, true)?;
        let back = Instant::now();
        let parts = self.device.parts(slot).unwrap_or_default();
        let own = &self.slots[slot];
        let given = own.given.unwrap_or(now);
        let output = self.device.output(slot)?;
        let read = |found: &mut [Verdict], words: &[u32]| {
            for (verdict, word) in found.iter_mut().zip(words) {
                *verdict = if word & AGAIN != 0 { Verdict::PENDING } else { Verdict::from_bits(*word) };
            }
        };
        let mut end = back;
        if self.setting.ready {
            delays.saturating_record_n((back - given).as_nanos() as u64, found.len() as u64);
            read(found, output.verdicts);
        } else {
            let chunks = found.chunks_mut(BATCH).zip(output.verdicts.chunks(BATCH)).zip(&own.starts);
            for ((found, words), start) in chunks {
                read(found, words);
                end = Instant::now();
                delays.saturating_record_n((end - *start).as_nanos() as u64, found.len() as u64);
            }
        }
        let [gather, away] = own.spent;
        let mut spans = Spans::of(gather, away + (back - now), parts, end - back);
        spans.processing = back - given;
        // What was read to be checked alone is in no part.
        Ok((spans, if self.setting.ready { Instant::now() } else { end }))
    }

    fn go(
        &mut self,
        frames: &Frames,
        (first, batch): (usize, usize),
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, DeviceError> {
        let (count, depth) = (found.len() / batch, self.setting.depth);
        let mut spans = Spans::default();
        let mut now = Instant::now();
        for step in 0..count + depth {
            if let Some(number) = step.checked_sub(depth) {
                let found = &mut found[number * batch..][..batch];
                let (taken, end) = self.take(number % depth, found, delays, now)?;
                spans.add(&taken);
                now = end;
            }
            if step < count {
                let from = (first + step * batch) % PACKETS;
                now = self.give(frames, step % depth, (from, batch), now)?;
            }
        }
        Ok(spans)
    }
}

impl Way for OnDevice {
    fn batches(&self, batch: usize) -> usize {
        let least = if self.setting.depth > 1 { PIPELINED } else { 1 };
        (STRETCH / batch).max(least)
    }

    fn repeats(&self) -> bool {
        self.setting.ready
    }

    fn run(
        &mut self,
        frames: &Frames,
        from: (usize, usize),
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        self.go(frames, from, found, delays).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Length;
    use crate::transfer::ground::Function;
    use crate::transfer::rows;
    use crate::transfer::ways::{Contender, in_turn};
    use gpu::{Input, Output, Parts};

    /// A device that says a wrong verdict on one packet of one batch.
    struct Liar {
        inner: Box<dyn Device>,
        /// Batches until then.
        left: usize,
        said: Vec<u32>,
    }

    impl Device for Liar {
        fn name(&self) -> String {
            self.inner.name()
        }

        fn geometry(&self) -> &Geometry {
            self.inner.geometry()
        }

        fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
            self.inner.upload(table, words)
        }

        fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
            self.inner.patch(table, first, words)
        }

        fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
            self.inner.input(slot)
        }

        fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
            self.inner.submit(slot, packets)
        }

        fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
            self.inner.poll(slot, wait)
        }

        fn parts(&self, slot: usize) -> Option<Parts> {
            self.inner.parts(slot)
        }

        fn output(&mut self, slot: usize) -> Result<Output<'_>, DeviceError> {
            let output = self.inner.output(slot)?;
            self.said = output.verdicts.to_vec();
            if self.left == 0 {
                self.said[77] ^= 1;
            }
            self.left = self.left.wrapping_sub(1);
            Ok(Output { verdicts: &self.said, ..output })
        }
    }

    #[test]
    fn one_wrong_verdict_takes_every_figure_of_the_run_away() {
        let ground = Ground::new(Function::Lpm, 500).expect("a ground");
        let loaded = Loaded::program(&ground, &exec::kernel::Options::default()).expect("a kernel");
        let lie_after = |left: usize, setting: Setting| {
            let inner = loaded.open(&Chosen::Host, setting, 128).expect("threads");
            let liar = Liar { inner, left, said: Vec::new() };
            Contender::new("a way", None, Ok(OnDevice::new(Box::new(liar), &loaded.columns, setting)))
        };
        let serial = Setting {
            over: Over::Headers,
            memory: Memory::Mapped,
            submission: Submission::Serial,
            depth: 1,
            ready: false,
        };
        for setting in [
            serial,
            Setting { submission: Submission::Queued, depth: 2, ..serial },
            Setting { ready: true, ..serial },
        ] {
            // Among the first batches, in the middle, and never.
            let mut ways = [lie_after(0, setting), lie_after(70, setting), lie_after(usize::MAX, setting)];
            let mut ways: Vec<&mut Contender> = ways.iter_mut().collect();
            let came = in_turn(&ground, &mut ways, 128, (2, Length::Repeat(32)));
            for (came, lied) in came.iter().zip([true, true, false]) {
                let rows = rows::of("a case", came, Some(500.0));
                if lied {
                    assert_eq!(rows.len(), 1, "{rows:?}");
                    let row = &rows[0];
                    assert!(row.ours.is_none() && row.other.is_none() && row.paper.is_none(), "{row:?}");
                    assert!(row.what.contains("no figure, since the verdict on packet"), "{row:?}");
                } else {
                    assert!(rows.len() > 10 && rows.iter().all(|row| row.ours.is_some()), "{rows:?}");
                }
            }
        }
    }
}
