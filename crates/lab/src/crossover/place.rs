//! Both places of a program: one state, whose packets the processor runs or a device, in order of arrival.
//! Every verdict is held against the interpreter's where it is given.

use crate::device_run::{DeviceRun, DeviceSource, LabClock, ProgramCode};
use crate::device_workload::{DeviceWorkload, PORTS};
use crate::measure::SEED;
use crate::plan::Length;
use exec::Outputs;
use exec::kernel::{CopiedPart, KernelOptions};
use gpu::{DeviceError, Setup};
use offload::policy::ExecutionPlace;
use offload::{ImageChanges, Offload};
use packet::{BATCH, Batch};
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

/// How a device is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// What is chosen about the kernel.
    pub(crate) options: KernelOptions,
    /// Memory and submission.
    pub(crate) setup: Setup,
    /// Batches under way at once.
    pub(crate) slots: usize,
}

impl Usage {
    /// In words.
    pub(crate) fn line(self) -> String {
        let Setup { memory, submission, .. } = self.setup;
        let over = match self.options.over {
            CopiedPart::Header => "what can be read",
            CopiedPart::Frame => "frames",
            CopiedPart::Page => "pages",
            CopiedPart::Packed => "only what is read",
            CopiedPart::InPlace => "frames in place",
        };
        let bits = self.options.back.bits();
        let under_way = match self.slots {
            1 => "one batch under way".to_owned(),
            slots => format!("{slots} batches under way, {submission}"),
        };
        format!("{over} goes over, {bits} bits come back, memory {memory}, {under_way}")
    }
}

/// What hears of packets that are done: their numbers, and when.
pub(crate) type Told<'a> = &'a mut dyn FnMut(Range<u64>, Duration);

/// Hears nothing.
pub(crate) fn nobody(_: Range<u64>, _: Duration) {}

/// A batch that is back from the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) packets: usize,
    /// How long the device was needed for it alone: from when it was begun or the one before was done.
    pub(crate) took: Duration,
}

/// A program on the processor and on a device.
pub(crate) struct Places<'a> {
    device_source: &'a dyn DeviceSource,
    clock: &'a dyn LabClock,
    workload: &'a mut DeviceWorkload,
    run: DeviceRun<Offload>,
    slots: usize,
    under_way: VecDeque<Flight>,
    /// The number of the next packet.
    next: u64,
    /// The slot of the next batch.
    slot: usize,
    last_done: Duration,
    spare: Vec<Box<Batch>>,
    outputs: Outputs,
}

struct Flight {
    slot: usize,
    first: u64,
    packets: usize,
    begun: Duration,
    parts: Vec<Box<Batch>>,
}

impl<'a> Places<'a> {
    /// Loads the program, and lets the processor run every packet once. There is no device yet.
    pub(crate) fn new(
        device_source: &'a dyn DeviceSource,
        clock: &'a dyn LabClock,
        workload: &'a mut DeviceWorkload,
    ) -> Result<Places<'a>, String> {
        let offload = Offload::new(&workload.program, PORTS, SEED, &workload.options);
        let mut places = Places {
            device_source,
            clock,
            run: DeviceRun { kernel: offload.map_err(|error| error.to_string())?, device: None },
            workload,
            slots: 0,
            under_way: VecDeque::new(),
            next: 0,
            slot: 0,
            last_done: Duration::ZERO,
            spare: Vec::new(),
            outputs: Outputs::default(),
        };
        places.warm_up()?;
        Ok(places)
    }

    /// Begins anew with another kernel, if the program can have it; otherwise nothing happens. Nothing is
    /// under way, and there is no device then.
    pub(crate) fn reload(&mut self, options: KernelOptions) -> Result<bool, String> {
        let Ok(offload) = Offload::new(&self.workload.program, PORTS, SEED, &options) else {
            return Ok(false);
        };
        (self.run, self.next) = (DeviceRun { kernel: offload, device: None }, 0);
        self.warm_up()?;
        Ok(true)
    }

    fn warm_up(&mut self) -> Result<(), String> {
        let packets = self.workload.len();
        while self.next < packets as u64 {
            self.here(BATCH.min(packets), &mut nobody)?;
        }
        Ok(())
    }

    /// What the program is called.
    pub(crate) fn name(&self) -> &'static str {
        self.workload.name
    }

    /// What was chosen about the kernel at first.
    pub(crate) fn options(&self) -> KernelOptions {
        self.workload.options
    }

    /// Makes a device for batches of so many packets. Nothing is under way.
    pub(crate) fn open(&mut self, usage: Usage, packets: usize) -> Result<(), String> {
        // The device before frees its memory first.
        self.run.device = None;
        let code = ProgramCode { kernel: self.run.kernel.kernel(), program: &self.workload.program };
        let geometry = offload::geometry(code.kernel, packets, usage.slots);
        let device = self.device_source.open(&code, geometry, usage.setup);
        self.run.device = Some(device.map_err(|error| error.to_string())?);
        (self.slots, self.slot) = (usage.slots, 0);
        self.run.upload().map_err(|error| {
            self.run.device = None;
            error.to_string()
        })
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The clock.
    pub(crate) fn clock(&self) -> &'a dyn LabClock {
        self.clock
    }

    /// How many batches are under way.
    pub(crate) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Whether another batch can be handed over now: there is a slot, and tables do not have to go over
    /// first.
    pub(crate) fn is_ready(&self) -> bool {
        self.under_way.is_empty()
            || self.under_way.len() < self.slots && self.run.kernel.changes() == ImageChanges::None
    }

    /// Of all packets that went to the device, how many it finished, and how many there were.
    pub(crate) fn finished(&self) -> (u64, u64) {
        let tally = self.run.kernel.tally();
        (tally.device, tally.device + tally.again + tally.changed)
    }

    /// Runs packets on the processor and says how long it took. Nothing is under way.
    pub(crate) fn here(&mut self, packets: usize, told: Told<'_>) -> Result<Duration, String> {
        let begun = self.clock.now();
        let mut left = packets;
        let mut batch = self.spare.pop().unwrap_or_default();
        while left > 0 {
            self.workload.fill(&mut batch, self.next, left.min(BATCH));
            self.outputs.clear();
            self.run.kernel.run_here(self.workload.memory(), &mut batch, &mut self.outputs);
            self.clock.ran(batch.len);
            if let Some(wrong) = self.workload.wrong(self.next, batch.verdicts()) {
                return Err(wrong);
            }
            let first = self.next;
            self.next += batch.len as u64;
            left -= batch.len;
            told(first..self.next, self.clock.now());
        }
        self.spare.push(batch);
        Ok(self.clock.now() - begun)
    }

    /// Hands packets over to the device. It is ready.
    pub(crate) fn submit(&mut self, packets: usize) -> Result<(), String> {
        self.hand_over(packets).map_err(|error| error.to_string())
    }

    fn hand_over(&mut self, packets: usize) -> Result<(), DeviceError> {
        let begun = self.clock.now();
        if self.under_way.is_empty() {
            self.run.renew()?;
        }
        let mut input = self.run.fill(self.slot, packets)?;
        let mut parts = Vec::with_capacity(packets.div_ceil(BATCH) + 1);
        let mut before = 0;
        while before < packets {
            let mut batch = self.spare.pop().unwrap_or_default();
            self.workload.fill(&mut batch, self.next + before as u64, (packets - before).min(BATCH));
            input.push(self.workload.packets.frames.memory(), &batch);
            before += batch.len;
            parts.push(batch);
        }
        self.run.submit(self.slot, packets)?;
        self.under_way.push_back(Flight { slot: self.slot, first: self.next, packets, begun, parts });
        self.next += packets as u64;
        self.slot = (self.slot + 1) % self.slots;
        Ok(())
    }

    /// Commits the oldest batch that is under way, if it is done; with `wait`, once it is.
    pub(crate) fn finish(&mut self, wait: bool, told: Told<'_>) -> Result<Option<Done>, String> {
        let Some(flight) = self.under_way.front() else { return Ok(None) };
        let done = self.run.poll(flight.slot, wait);
        if !done.map_err(|error| error.to_string())? {
            return Ok(None);
        }
        let Some(Flight { slot, first, packets, begun, parts }) = self.under_way.pop_front() else {
            return Ok(None);
        };
        let mut results = self.run.results(slot, packets).map_err(|error| error.to_string())?;
        let mut number = first;
        for mut batch in parts {
            self.outputs.clear();
            results.commit(self.workload.memory(), &mut batch, &mut self.outputs);
            if let Some(wrong) = self.workload.wrong(number, batch.verdicts()) {
                return Err(wrong);
            }
            let next = number + batch.len as u64;
            told(number..next, self.clock.now());
            number = next;
            self.spare.push(batch);
        }
        let now = self.clock.now();
        let took = now - begun.max(self.last_done);
        self.last_done = now;
        Ok(Some(Done { packets, took }))
    }

    /// Batch after batch of so many packets at a place until that is long enough, and at least one: seconds
    /// of a batch.
    pub(crate) fn repeat(
        &mut self,
        place: ExecutionPlace,
        packets: usize,
        length: Length,
    ) -> Result<f64, String> {
        let begin = self.clock.now();
        let mut batches = 0;
        while batches == 0 || !length.is_over(self.clock.now() - begin, batches) {
            if place == ExecutionPlace::Host {
                self.here(packets, &mut nobody)?;
            } else {
                while !self.is_ready() {
                    self.finish(true, &mut nobody)?;
                }
                self.submit(packets)?;
            }
            batches += 1;
        }
        while self.under_way() > 0 {
            self.finish(true, &mut nobody)?;
        }
        Ok((self.clock.now() - begin).as_secs_f64() / batches as f64)
    }
}
