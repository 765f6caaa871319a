//! A program on a device: every batch goes over, and is committed when it is back; the processor takes over where the device cannot.
//!
//! A device that fails is given up: the batch that was under way is run by the processor, as nothing of it has been committed, and so is
//! everything behind it.

use exec::kernel::{Dialect, Kernel, Twin};
use exec::offload::{Offload, Returned, Update, Whole};
use exec::{BackEnd, EntryCount, EntryError, Observer, OnDevice, Outputs, Processor, TableReport};
use gpu::{CudaFound, Device, DeviceError, Found, Geometry, Host, Lane, Memory, Warp};
use lang::ir::{Entry, Match, Program};
use packet::batch::{BATCH, Batch};
use std::any::Any;
use std::sync::Arc;

/// A program whose packets a device runs.
pub struct Offloaded {
    offload: Offload,
    name: String,
    device: Option<Box<dyn Device>>,
    failure: Option<DeviceError>,
    /// So many batches stay on the processor before a table that has changed goes over again.
    pause: u32,
    /// How many it will be after the next batch in which a table changes: twice as many as the last time.
    next_pause: u32,
}

/// The most batches that stay on the processor where tables keep changing.
const LONGEST_PAUSE: u32 = 64;

/// What a device must have room for to run a kernel, so many packets at a time.
pub fn geometry(kernel: &Kernel, packets: usize, slots: usize) -> Geometry {
    let plan = &kernel.plan;
    Geometry {
        packets,
        stride: plan.bytes.stride() as usize,
        columns: plan.columns.len(),
        verdict_bits: 32,
        record_words: plan.record_words as usize,
        returns_bytes: plan.writes,
        slots,
        tables: plan.tables.len(),
    }
}

/// A kernel's twin on threads of this machine.
///
/// # Errors
/// The machine gives no thread.
pub fn host(kernel: &Kernel, program: &Program, ports: u16, geometry: Geometry) -> Result<Host, DeviceError> {
    Host::new(Box::new(Lanes(Twin::new(kernel, program, ports))), geometry, None)
}

/// The twin as what threads run.
struct Lanes(Twin);

impl Warp for Lanes {
    fn run(&self, lane: Lane<'_>, tables: &[Arc<Vec<u32>>]) -> u32 {
        let tables: Vec<&[u32]> = tables.iter().map(|words| words.as_slice()).collect();
        self.0.run(lane.bytes, lane.columns, lane.record, &tables)
    }
}

impl Offloaded {
    /// Puts a program on a device that `open` makes for its kernel.
    ///
    /// # Errors
    /// `open` fails.
    pub fn new(
        offload: Offload,
        open: impl FnOnce(&Kernel, Geometry) -> Result<Box<dyn Device>, DeviceError>,
    ) -> Result<Offloaded, DeviceError> {
        let device = open(offload.kernel(), geometry(offload.kernel(), BATCH, 1))?;
        Ok(Offloaded {
            offload,
            name: device.name(),
            device: Some(device),
            failure: None,
            pause: 0,
            next_pause: 1,
        })
    }

    /// Puts a program on an OpenCL device.
    ///
    /// # Errors
    /// The kernel does not build, or there is no memory.
    pub fn on_opencl(offload: Offload, device: &Found, memory: Memory) -> Result<Offloaded, DeviceError> {
        Offloaded::new(offload, |kernel, geometry| {
            let text = kernel.text(Dialect::OpenCl);
            Ok(Box::new(gpu::OpenCl::new(device, &text, geometry, memory)?))
        })
    }

    /// Puts a program on a CUDA device.
    ///
    /// # Errors
    /// There is no compiler, the kernel does not build, or there is no memory.
    pub fn on_cuda(offload: Offload, device: &CudaFound, memory: Memory) -> Result<Offloaded, DeviceError> {
        Offloaded::new(offload, |kernel, geometry| {
            let text = kernel.text(Dialect::Cuda);
            Ok(Box::new(gpu::Cuda::new(device, &text, geometry, memory)?))
        })
    }

    /// Puts a program on threads of this machine, as many as it has processors; `ports` is what the program was loaded with.
    ///
    /// # Errors
    /// The machine gives no thread.
    pub fn on_host(offload: Offload, program: &Program, ports: u16) -> Result<Offloaded, DeviceError> {
        Offloaded::new(offload, |kernel, geometry| Ok(Box::new(host(kernel, program, ports, geometry)?)))
    }

    fn run_on_device(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> Result<(), DeviceError> {
        let Some(device) = &mut self.device else {
            self.offload.run_here(memory, batch, outputs);
            return Ok(());
        };
        let stale: Vec<usize> = self.offload.stale().collect();
        if !stale.is_empty() && self.pause > 0 {
            self.pause -= 1;
            self.offload.run_here(memory, batch, outputs);
            return Ok(());
        }
        for table in stale {
            let update = self.offload.table_update(table);
            match update.map_err(|error| DeviceError::Table(error.to_string()))? {
                Update::Whole(words) => device.upload(table, &words)?,
                Update::Parts(parts) => {
                    parts.iter().try_for_each(|(first, words)| device.patch(table, *first, words))?
                }
            }
        }
        let whole = Whole { before: 0, packets: batch.len };
        let input = device.input(0)?;
        self.offload.gather(memory, batch, whole, input.bytes, input.columns);
        device.submit(0, batch.len)?;
        device.poll(0, true)?;
        let output = device.output(0)?;
        let returned = Returned { bytes: output.bytes, verdicts: output.verdicts, records: output.records };
        self.offload.commit(memory, batch, (whole, &returned), outputs);
        if self.offload.is_stale() {
            self.pause = self.next_pause;
            self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
        } else {
            self.next_pause = 1;
        }
        Ok(())
    }
}

impl Processor for Offloaded {
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        if batch.len == 0 {
            return;
        }
        if let Err(error) = self.run_on_device(memory, batch, outputs) {
            self.failure = Some(error);
            // Closing a device that has failed could wait for ever, and free what it still writes to.
            std::mem::forget(self.device.take());
            self.offload.run_here(memory, batch, outputs);
        }
    }

    fn run_observed(
        &mut self,
        program: (&Program, u16),
        observer: &mut (dyn Observer + Send),
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> bool {
        self.offload.processor().run_observed(program, observer, memory, batch, outputs)
    }

    fn advance(&mut self, now: u64, outputs: &mut Outputs) {
        self.offload.processor().advance(now, outputs);
    }

    fn tables(&self) -> Vec<TableReport> {
        self.offload.as_processor().tables()
    }

    fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)> {
        self.offload.as_processor().entries(table)
    }

    fn insert(&mut self, table: u32, entry: &Entry) -> Result<(), EntryError> {
        self.offload.processor().insert(table, entry)
    }

    fn learned(&self, table: u32) -> Vec<Entry> {
        self.offload.as_processor().learned(table)
    }

    fn learn(&mut self, table: u32, entry: &Entry, now: u64) -> Result<(), EntryError> {
        self.offload.processor().learn(table, entry, now)
    }

    fn exchange(&mut self, table: u32, other: &mut dyn Processor) -> bool {
        self.offload.processor().exchange(table, other)
    }

    fn count_anew(&mut self, table: u32) {
        self.offload.processor().count_anew(table);
    }

    fn as_any(&mut self) -> Option<&mut dyn Any> {
        self.offload.processor().as_any()
    }

    fn remove(&mut self, table: u32, key: &[Match], priority: u32) -> bool {
        self.offload.processor().remove(table, key, priority)
    }

    fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        self.offload.processor().replace(table, entries)
    }

    fn join(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        self.offload.processor().join(group, index, member)
    }

    fn learned_members(&self, group: u32) -> Vec<(u32, Vec<u128>)> {
        self.offload.as_processor().learned_members(group)
    }

    fn learn_member(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        self.offload.processor().learn_member(group, index, member)
    }

    fn leave(&mut self, group: u32, index: u32, member: &[u128]) -> bool {
        self.offload.processor().leave(group, index, member)
    }

    fn set_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError> {
        self.offload.processor().set_default(table, value)
    }

    fn register(&self, register: u32) -> Vec<u64> {
        self.offload.as_processor().register(register)
    }

    fn counter(&self, counter: u32) -> Vec<(u64, u64)> {
        self.offload.as_processor().counter(counter)
    }

    fn events(&self) -> Vec<u64> {
        self.offload.as_processor().events()
    }

    fn lost_events(&self) -> u64 {
        self.offload.as_processor().lost_events()
    }

    fn back_end(&self) -> BackEnd {
        BackEnd::Native
    }

    fn on_device(&self) -> Option<OnDevice> {
        Some(OnDevice {
            name: self.name.clone(),
            tally: self.offload.tally(),
            failure: self.failure.as_ref().map(DeviceError::to_string),
        })
    }
}
