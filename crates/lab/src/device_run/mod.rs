//! The driver of a device in experiments: it fills, submits and polls slots, and reads or commits what came
//! back.
//!
//! ```text
//! open ─► fill a slot: push, push, … ─► submit ─► poll ─► results: verdicts, or commit
//! ```
//!
//! The experiment says when each step is taken, and a [`LabClock`] how long it takes. The driver of the
//! product is [`offload::Offloaded`].

mod clock;
mod source;

pub use clock::{LabClock, Wall};
pub(crate) use source::{ChosenDevice, ProgramCode};
pub use source::{DeviceSource, KernelCode, find};

use exec::Outputs;
use gpu::{Device, DeviceError, Input, SlotOutput};
use offload::{Offload, Whole};
use packet::{Batch, Verdict};

/// The host's part of a kernel: what it writes into slots, and what it reads there.
pub(crate) trait SlotKernel {
    /// Writes what the kernel reads of a batch, which is the part `whole` of a slot.
    fn gather(&mut self, memory: &[u8], batch: &Batch, whole: Whole, input: &mut Input<'_>);

    /// Reads the verdicts on the packets behind `before` others; [`Verdict::PENDING`] stands for a packet
    /// that the host has to run.
    fn verdicts(&self, words: &[u32], before: usize, found: &mut [Verdict]);

    /// Counts a slot that was submitted.
    fn submitted(&mut self) {}
}

impl SlotKernel for Offload {
    fn gather(&mut self, memory: &[u8], batch: &Batch, whole: Whole, input: &mut Input<'_>) {
        Offload::gather(self, memory, batch, whole, input);
    }

    fn verdicts(&self, words: &[u32], before: usize, found: &mut [Verdict]) {
        let results = &self.kernel().plan.results;
        for (place, verdict) in found.iter_mut().enumerate() {
            let result = results.read(words, before + place);
            *verdict = results.verdict(result).unwrap_or(Verdict::PENDING);
        }
    }

    fn submitted(&mut self) {
        self.handed();
    }
}

/// A kernel and the device that runs it.
pub(crate) struct DeviceRun<K, D: ?Sized = dyn Device> {
    pub(crate) kernel: K,
    /// None until one is opened.
    pub(crate) device: Option<Box<D>>,
}

impl<K: SlotKernel, D: Device + ?Sized> DeviceRun<K, D> {
    /// The device.
    ///
    /// # Errors
    /// None is open.
    pub(crate) fn device(&mut self) -> Result<&mut D, DeviceError> {
        self.parts().map(|(_, device)| device)
    }

    fn parts(&mut self) -> Result<(&mut K, &mut D), DeviceError> {
        let closed = || DeviceError::missing("no device is open", "open one");
        Ok((&mut self.kernel, self.device.as_deref_mut().ok_or_else(closed)?))
    }

    /// Begins to fill a slot with so many packets.
    pub(crate) fn fill(&mut self, slot: usize, packets: usize) -> Result<SlotInput<'_, K>, DeviceError> {
        let (kernel, device) = self.parts()?;
        Ok(SlotInput { kernel, input: device.input(slot)?, whole: Whole { before: 0, packets } })
    }

    /// Submits a slot with so many packets.
    pub(crate) fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let (kernel, device) = self.parts()?;
        device.submit(slot, packets)?;
        kernel.submitted();
        Ok(())
    }

    /// Whether the device has run a slot; with `wait`, it returns when that is so.
    pub(crate) fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        self.device()?.poll(slot, wait)
    }

    /// What came back in a slot with so many packets, which is done.
    pub(crate) fn results(&mut self, slot: usize, packets: usize) -> Result<SlotResults<'_, K>, DeviceError> {
        let (kernel, device) = self.parts()?;
        Ok(SlotResults { kernel, output: device.output(slot)?, whole: Whole { before: 0, packets } })
    }
}

impl<D: Device + ?Sized> DeviceRun<Offload, D> {
    /// Copies all tables to the device, which has just been opened.
    pub(crate) fn upload(&mut self) -> Result<(), DeviceError> {
        let (offload, device) = self.parts()?;
        (0..offload.kernel().plan.tables.len()).try_for_each(|table| {
            let words = offload.table_words(table).map_err(|error| DeviceError::Table(error.to_string()))?;
            device.upload(table, &words)
        })
    }

    /// Copies the tables that have changed to the device. No slot is in flight.
    pub(crate) fn renew(&mut self) -> Result<(), DeviceError> {
        let (offload, device) = self.parts()?;
        offload::renew(offload, device)
    }
}

/// A slot that is filled batch by batch.
pub(crate) struct SlotInput<'a, K> {
    kernel: &'a mut K,
    input: Input<'a>,
    whole: Whole,
}

impl<K: SlotKernel> SlotInput<'_, K> {
    /// Appends the packets of a batch.
    pub(crate) fn push(&mut self, memory: &[u8], batch: &Batch) {
        self.kernel.gather(memory, batch, self.whole, &mut self.input);
        self.whole.before += batch.len;
    }
}

/// What came back in a slot, which is read in the order in which the slot was filled.
pub(crate) struct SlotResults<'a, K> {
    kernel: &'a mut K,
    output: SlotOutput<'a>,
    whole: Whole,
}

impl<K: SlotKernel> SlotResults<'_, K> {
    /// Reads the verdicts on the next packets.
    pub(crate) fn verdicts(&mut self, found: &mut [Verdict]) {
        self.kernel.verdicts(self.output.verdicts, self.whole.before, found);
        self.whole.before += found.len();
    }
}

impl SlotResults<'_, Offload> {
    /// Commits the next batch.
    pub(crate) fn commit(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        self.kernel.commit(memory, batch, self.whole, &self.output, outputs);
        self.whole.before += batch.len;
    }
}
