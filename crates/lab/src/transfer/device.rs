//! Ways over a device: a kernel with its tables, and batches that go there and back in one of several ways.

use super::functions::PACKETS;
use super::naive::{Naive, NaiveKernel};
use super::spans::{Delays, Spans};
use super::ways::Way;
use crate::device_run::{DeviceRun, DeviceSource, KernelCode, LabClock, ProgramCode, SlotKernel};
use crate::device_workload::{DeviceWorkload, PORTS, Packets};
use crate::measure::SEED;
use exec::kernel::{Back, CopiedPart, Kernel, KernelOptions};
use gpu::{Device, DeviceError, Geometry, Setup, SlotMemory, Submission};
use ir::Program;
use offload::Offload;
use packet::{BATCH, Batch, Verdict};
use std::sync::Arc;
use std::time::Duration;

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

impl Setting {
    /// Options of a kernel in this form.
    fn options(self, options: &KernelOptions) -> KernelOptions {
        KernelOptions { over: self.over, back: self.back, ..*options }
    }
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
    pub(crate) fn program(
        workload: &DeviceWorkload,
        is_bare: bool,
        options: &KernelOptions,
    ) -> Result<Loaded, String> {
        let offload = Offload::new(&workload.program, PORTS, SEED, options);
        let mut offload = offload.map_err(|error| error.to_string())?;
        let places = offload.kernel().plan.tables.len();
        let tables = (0..places).map(|place| offload.table_words(place).map_err(|error| error.to_string()));
        let tables = tables.collect::<Result<_, _>>()?;
        let plan = &offload.kernel().plan;
        if !plan.effects.is_empty() || plan.writes || plan.record_words > 0 {
            return Err("the program leaves more than verdicts".to_owned());
        }
        let mut empty = Box::new(workload.program.clone());
        empty.tables.iter_mut().for_each(|table| table.entries.clear());
        Ok(Loaded { code: Code::Program { empty, options: *options, is_bare }, tables })
    }

    /// The way over a device, for batches of so many packets.
    ///
    /// # Errors
    /// The device refuses the kernel, or does not have the setting; or the program has not.
    pub(crate) fn on<'a>(
        &self,
        device_source: &dyn DeviceSource,
        clock: &'a dyn LabClock,
        setting: Setting,
        packets: usize,
    ) -> Result<Box<dyn Way + 'a>, String> {
        let setup = Setup { memory: setting.memory, submission: setting.submission, timed: true };
        let open = |code: &dyn KernelCode, geometry: Geometry| {
            let mut device = device_source.open(code, geometry, setup)?;
            let mut tables = self.tables.iter().enumerate();
            tables.try_for_each(|(table, words)| device.upload(table, words)).map(|()| device)
        };
        let failed = |error: DeviceError| error.to_string();
        match &self.code {
            Code::Naive(naive) => {
                let kernel = NaiveKernel::new(naive, setting)?;
                let geometry = kernel.geometry(packets, setting.depth, self.tables.len());
                let device = open(&kernel, geometry).map_err(failed)?;
                Ok(OnDevice::boxed(kernel, device, clock, setting, false))
            }
            Code::Program { empty, options, is_bare } => {
                let kernel = Offload::new(empty, PORTS, SEED, &setting.options(options));
                let kernel = kernel.map_err(|error| error.to_string())?;
                let geometry = offload::geometry(kernel.kernel(), packets, setting.depth);
                let code = ProgramCode { kernel: kernel.kernel(), program: empty };
                let device = open(&code, geometry).map_err(failed)?;
                Ok(OnDevice::boxed(kernel, device, clock, setting, *is_bare))
            }
        }
    }

    /// Bytes that go over for a packet.
    pub(super) fn bytes_over(&self, setting: Setting) -> Option<u64> {
        match &self.code {
            Code::Naive(naive) => Some(NaiveKernel::new(naive, setting).ok()?.stride as u64),
            Code::Program { empty, options, .. } => {
                Some(Kernel::new(empty, PORTS, &setting.options(options)).ok()?.plan.bytes_over(1))
            }
        }
    }
}

/// A way over a device.
struct OnDevice<'a, K> {
    run: DeviceRun<K>,
    clock: &'a dyn LabClock,
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
    starts: Vec<Duration>,
    /// How long fetching took, and handing over.
    spent: [Duration; 2],
    /// When it was handed over.
    given: Duration,
}

impl<'a, K: SlotKernel + 'a> OnDevice<'a, K> {
    fn boxed(
        kernel: K,
        device: Box<dyn Device>,
        clock: &'a dyn LabClock,
        setting: Setting,
        is_bare: bool,
    ) -> Box<dyn Way + 'a> {
        let run = DeviceRun { kernel, device: Some(device) };
        let slots = (0..setting.depth).map(|_| Slot::default()).collect();
        Box::new(OnDevice { run, clock, is_bare, setting, batch: Box::default(), slots })
    }

    /// Writes what goes over for a batch.
    fn gather(
        &mut self,
        packets: &Packets,
        slot: usize,
        first: usize,
        count: usize,
    ) -> Result<(), DeviceError> {
        let starts = &mut self.slots[slot].starts;
        let mut input = self.run.fill(slot, count)?;
        for place in (0..count).step_by(BATCH) {
            starts.push(self.clock.now());
            packets.fill(&mut self.batch, first + place, BATCH.min(count - place));
            input.push(packets.frames.memory(), &self.batch);
        }
        Ok(())
    }

    /// Fetches and hands over a batch; `now` is when that began.
    fn give(
        &mut self,
        packets: &Packets,
        slot: usize,
        first: usize,
        count: usize,
        now: Duration,
    ) -> Result<Duration, DeviceError> {
        let mut begin = now;
        self.slots[slot].starts.clear();
        if !self.setting.ready {
            self.gather(packets, slot, first, count)?;
        } else if !self.slots[slot].ready {
            self.gather(packets, slot, 0, count)?;
            self.slots[slot].ready = true;
            begin = self.clock.now();
        }
        let gathered = self.clock.now();
        self.run.submit(slot, count)?;
        let end = self.clock.now();
        self.slots[slot].spent = [gathered - begin, end - gathered];
        self.slots[slot].given = gathered;
        Ok(end)
    }

    /// Waits for a batch and brings its verdicts to their places; `now` is when that began.
    fn take(
        &mut self,
        slot: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
        now: Duration,
    ) -> Result<(Spans, Duration), DeviceError> {
        self.run.poll(slot, true)?;
        let back = self.clock.now();
        let parts = self.run.device()?.parts(slot).unwrap_or_default();
        let own = &self.slots[slot];
        let mut results = self.run.results(slot, found.len())?;
        let mut end = back;
        if self.setting.ready {
            delays.saturating_record_n((back - own.given).as_nanos() as u64, found.len() as u64);
            results.verdicts(found);
        } else {
            for (found, start) in found.chunks_mut(BATCH).zip(&own.starts) {
                results.verdicts(found);
                end = self.clock.now();
                delays.saturating_record_n((end - *start).as_nanos() as u64, found.len() as u64);
            }
        }
        let [gather, away] = own.spent;
        let mut spans = Spans::of(gather, away + (back - now), parts, end - back);
        spans.processing = back - own.given;
        // What was read to be checked alone is in no part.
        Ok((spans, if self.setting.ready { self.clock.now() } else { end }))
    }

    fn go(
        &mut self,
        packets: &Packets,
        first: usize,
        batch: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, DeviceError> {
        let (count, depth) = (found.len() / batch, self.setting.depth);
        let mut spans = Spans::default();
        let mut now = self.clock.now();
        for step in 0..count + depth {
            if let Some(number) = step.checked_sub(depth) {
                let found = &mut found[number * batch..][..batch];
                let (taken, end) = self.take(number % depth, found, delays, now)?;
                spans.add(&taken);
                now = end;
            }
            if step < count {
                let from = (first + step * batch) % PACKETS;
                now = self.give(packets, step % depth, from, batch, now)?;
            }
        }
        Ok(spans)
    }
}

impl<'a, K: SlotKernel + 'a> Way for OnDevice<'a, K> {
    fn stretch(&self) -> usize {
        STRETCH
    }

    fn least(&self) -> usize {
        if self.setting.depth > 1 { PIPELINED } else { 1 }
    }

    fn repeats(&self) -> bool {
        self.setting.ready
    }

    fn is_bare(&self) -> bool {
        self.is_bare
    }

    fn run(
        &mut self,
        packets: &Packets,
        first: usize,
        batch: usize,
        found: &mut [Verdict],
        delays: &mut Delays,
    ) -> Result<Spans, String> {
        self.go(packets, first, batch, found, delays).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_run::Wall;
    use crate::plan::Length;
    use crate::transfer::functions::{Function, FunctionData};
    use crate::transfer::original::{Of, Printed};
    use crate::transfer::rows;
    use crate::transfer::ways::{Contender, in_turn};
    use gpu::{Host, Input, Parts, SlotOutput, study};

    /// Makes devices that say a wrong verdict on one packet, after so many batches.
    struct Liars(usize);

    impl DeviceSource for Liars {
        fn name(&self) -> String {
            "liars".to_owned()
        }

        fn model(&self) -> String {
            self.name()
        }

        fn memories(&self) -> &'static [SlotMemory] {
            &[SlotMemory::Mapped]
        }

        fn submissions(&self) -> &'static [Submission] {
            &[Submission::Queued]
        }

        fn open(
            &self,
            code: &dyn KernelCode,
            geometry: Geometry,
            _: Setup,
        ) -> Result<Box<dyn Device>, DeviceError> {
            Ok(Box::new(Liar { inner: code.host(geometry)?, left: self.0, said: Vec::new() }))
        }
    }

    struct Liar {
        inner: Host,
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
        let data = FunctionData::new(Function::Lpm, 500).expect("routes and packets");
        let loaded = Loaded::program(&data.whole, false, &KernelOptions::default()).expect("a kernel");
        let clock = Wall::default();
        let lie_after = |left: usize, setting: Setting| {
            Contender::new("a way", None, loaded.on(&Liars(left), &clock, setting, 128))
        };
        let serial = Setting {
            over: CopiedPart::Header,
            back: Back::Word,
            memory: SlotMemory::Mapped,
            submission: study::SERIAL,
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
            let came = in_turn(&data, &mut ways, 128, 2, Length::Repeat(32));
            for (came, lied) in came.iter().zip([true, true, false]) {
                let rows = rows::of("a case", came, Printed::at(Of::Device(4), 128));
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
