//! Ways over a device: a kernel with its tables, and batches that go there and back in one of several ways.

use super::choice::Chosen;
use super::naive::Naive;
use super::spans::{Delays, Spans};
use super::ways::Way;
use super::workload::{Judged, PACKETS, PORTS, fill};
use crate::measure::SEED;
use exec::kernel::{Back, CopiedPart, Dialect, KernelOptions, PAGE_BYTES};
use gpu::{
    Cuda, Device, DeviceError, Geometry, Host, HostLane, HostWarp, OpenCl, Setup, SlotMemory, Submission,
};
use lang::ir::Program;
use offload::{Offload, Whole};
use packet::{BATCH, Batch, Frames, Verdict};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bytes that the original's algorithms read, rounded up.
const HEADERS: usize = 48;
/// Packets that one call is to have at least.
const STRETCH: usize = 1024;
/// Batches that one call is to have at least where several are under way at once, so that its beginning and
/// end weigh little.
const PIPELINED: usize = 8;

/// How packets get to a device and verdicts back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    pub(crate) over: CopiedPart,
    pub(crate) back: Back,
    pub(crate) memory: SlotMemory,
    pub(crate) submission: Submission,
    /// Batches that are under way at once.
    pub(crate) depth: usize,
    /// The batch lies ready and is not fetched, and nothing is done with its verdicts.
    pub(crate) ready: bool,
}

/// A kernel and its tables.
pub(crate) struct Loaded {
    code: Code,
    tables: Vec<Vec<u32>>,
}

enum Code {
    Naive(Arc<Naive>),
    /// A program, without what its tables hold: kernels in every form are made of it.
    Program {
        empty: Box<Program>,
        options: KernelOptions,
        is_bare: bool,
    },
}

/// Who writes what goes over and reads what comes back.
enum Source {
    Naive,
    Program(Box<Offload>),
}

impl Loaded {
    /// The original's algorithms.
    pub(super) fn naive(naive: &Arc<Naive>) -> Loaded {
        let tables = naive.tables().into_iter().map(<[u32]>::to_vec).collect();
        Loaded { code: Code::Naive(Arc::clone(naive)), tables }
    }

    /// A program's kernel; `is_bare` tells that it is the one for packets that are known to be what they are.
    ///
    /// # Errors
    /// It has none, or one whose verdicts are not all that it leaves.
    pub(crate) fn program(judged: &Judged, is_bare: bool, options: &KernelOptions) -> Result<Loaded, String> {
        let offload = Offload::new(&judged.program, PORTS, SEED, options);
        let mut offload = offload.map_err(|error| error.to_string())?;
        let places = offload.kernel().plan.tables.len();
        let tables = (0..places).map(|place| offload.table_words(place).map_err(|error| error.to_string()));
        let tables = tables.collect::<Result<_, _>>()?;
        let plan = &offload.kernel().plan;
        if !plan.effects.is_empty() || plan.writes || plan.record_words > 0 {
            return Err("the program leaves more than verdicts".to_owned());
        }
        let mut empty = Box::new(judged.program.clone());
        empty.tables.iter_mut().for_each(|table| table.entries.clear());
        Ok(Loaded { code: Code::Program { empty, options: *options, is_bare }, tables })
    }

    /// It on a device, for batches of so many packets.
    ///
    /// # Errors
    /// The device refuses it, or does not have the setting; or the program has not.
    pub(crate) fn on(&self, device: &Chosen, setting: Setting, packets: usize) -> Result<OnDevice, String> {
        let source = self.source(setting)?;
        let device = self.open(device, &source, setting, packets).map_err(|error| error.to_string())?;
        Ok(self.over(device, source, setting))
    }

    /// Bytes that go over for a packet.
    pub(super) fn bytes_over(&self, setting: Setting) -> Option<u64> {
        match self.source(setting).ok()? {
            Source::Naive if setting.over == CopiedPart::Page => Some(PAGE_BYTES.into()),
            Source::Naive => Some(HEADERS as u64),
            Source::Program(offload) => Some(offload.kernel().plan.bytes_over(1)),
        }
    }

    fn over(&self, device: Box<dyn Device>, source: Source, setting: Setting) -> OnDevice {
        let slots = (0..setting.depth).map(|_| Slot::default()).collect();
        let is_bare = matches!(self.code, Code::Program { is_bare: true, .. });
        OnDevice { device, source, is_bare, setting, batch: Box::default(), slots }
    }

    fn source(&self, setting: Setting) -> Result<Source, String> {
        match &self.code {
            Code::Naive(_) => match (setting.over, setting.back) {
                (CopiedPart::Page | CopiedPart::Header, Back::Word) => Ok(Source::Naive),
                _ => Err("the original's kernel has no such form".to_owned()),
            },
            Code::Program { empty, options, .. } => {
                let options = KernelOptions { over: setting.over, back: setting.back, ..*options };
                let offload = Offload::new(empty, PORTS, SEED, &options);
                Ok(Source::Program(Box::new(offload.map_err(|error| error.to_string())?)))
            }
        }
    }

    /// Puts it on a device.
    fn open(
        &self,
        device: &Chosen,
        source: &Source,
        setting: Setting,
        packets: usize,
    ) -> Result<Box<dyn Device>, DeviceError> {
        let geometry = match source {
            Source::Naive => Geometry {
                packets,
                stride: if setting.over == CopiedPart::Page { PAGE_BYTES as usize } else { HEADERS },
                columns: 0,
                verdict_bits: 32,
                record_words: 0,
                returns_bytes: false,
                slots: setting.depth,
                tables: self.tables.len(),
            },
            Source::Program(offload) => offload::geometry(offload.kernel(), packets, setting.depth),
        };
        let text = |dialect: Dialect| match (&self.code, source) {
            (Code::Naive(naive), _) => naive.text(geometry.stride),
            (_, Source::Program(offload)) => offload.kernel().text(dialect),
            (_, Source::Naive) => String::new(),
        };
        let setup = Setup { memory: setting.memory, submission: setting.submission, timed: true };
        let mut made: Box<dyn Device> = match device {
            Chosen::OpenCl(found) => Box::new(OpenCl::new(found, &text(Dialect::OpenCl), geometry, setup)?),
            Chosen::Cuda(found) => Box::new(Cuda::new(found, &text(Dialect::Cuda), geometry, setup)?),
            Chosen::Host => Box::new(match (&self.code, source) {
                (Code::Program { empty, .. }, Source::Program(offload)) => {
                    offload::host(offload.kernel(), empty, PORTS, geometry)?
                }
                (Code::Naive(naive), _) => Host::new(Box::new(Walk(Arc::clone(naive))), geometry, None)?,
                (Code::Program { .. }, Source::Naive) => unreachable!("sources are made of the code"),
            }),
        };
        for (place, words) in self.tables.iter().enumerate() {
            made.upload(place, words)?;
        }
        Ok(made)
    }
}

/// The original's algorithms as what threads run.
struct Walk(Arc<Naive>);

impl HostWarp for Walk {
    fn run(&self, lane: HostLane<'_>, _: &[Arc<Vec<u32>>]) -> u32 {
        self.0.verdict(lane.bytes).bits()
    }
}

/// A way over a device.
pub(crate) struct OnDevice {
    device: Box<dyn Device>,
    source: Source,
    is_bare: bool,
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
            match &mut self.source {
                Source::Program(offload) => {
                    let whole = Whole { before: place, packets: count };
                    offload.gather(memory, batch, whole, input.bytes, input.columns);
                }
                Source::Naive => {
                    for (number, bytes) in
                        (0..batch.len).zip(input.bytes.chunks_exact_mut(stride).skip(place))
                    {
                        let start = batch.frame[number] as usize;
                        // Frames are followed by room in memory, so that a fixed length can be copied.
                        match (stride, memory.get(start..start + 64)) {
                            (HEADERS, Some(frame)) => bytes[..HEADERS].copy_from_slice(&frame[..HEADERS]),
                            (_, Some(frame)) => bytes[..64].copy_from_slice(frame),
                            _ => bytes.fill(0),
                        }
                    }
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
        let read = |found: &mut [Verdict], before: usize| match &self.source {
            Source::Naive => {
                let words = &output.verdicts[before..];
                found.iter_mut().zip(words).for_each(|(verdict, word)| *verdict = Verdict::from_bits(*word));
            }
            Source::Program(offload) => {
                let results = &offload.kernel().plan.results;
                for (place, verdict) in found.iter_mut().enumerate() {
                    let result = results.read(output.verdicts, before + place);
                    // What the processor is to run has no verdict, which is a wrong one here.
                    *verdict = results.verdict(result).unwrap_or(Verdict::PENDING);
                }
            }
        };
        let mut end = back;
        if self.setting.ready {
            delays.saturating_record_n((back - given).as_nanos() as u64, found.len() as u64);
            read(found, 0);
        } else {
            for (chunk, (found, start)) in found.chunks_mut(BATCH).zip(&own.starts).enumerate() {
                read(found, chunk * BATCH);
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

    fn is_bare(&self) -> bool {
        self.is_bare
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
    use crate::transfer::rows;
    use crate::transfer::ways::{Contender, in_turn};
    use crate::transfer::workload::{Function, Workload};
    use gpu::{Input, Parts, SlotOutput};

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

        fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
            let output = self.inner.output(slot)?;
            self.said = output.verdicts.to_vec();
            if self.left == 0 {
                self.said[77] ^= 1;
            }
            self.left = self.left.wrapping_sub(1);
            Ok(SlotOutput { verdicts: &self.said, ..output })
        }
    }

    #[test]
    fn one_wrong_verdict_takes_every_figure_of_the_run_away() {
        let workload = Workload::new(Function::Lpm, 500).expect("a ground");
        let loaded = Loaded::program(&workload.whole, false, &KernelOptions::default()).expect("a kernel");
        let lie_after = |left: usize, setting: Setting| {
            let source = loaded.source(setting).expect("it has the form");
            let inner = loaded.open(&Chosen::Host, &source, setting, 128).expect("threads");
            let liar = Liar { inner, left, said: Vec::new() };
            Contender::new("a way", None, Ok(loaded.over(Box::new(liar), source, setting)))
        };
        let serial = Setting {
            over: CopiedPart::Header,
            back: Back::Word,
            memory: SlotMemory::Mapped,
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
            let came = in_turn(&workload, &mut ways, 128, (2, Length::Repeat(32)));
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
