//! Devices of OpenCL 1.2: builds a kernel from its text, and runs batches on it.
//!
//! Every queue is in order. Tables change only while no slot is under way, so a batch sees them as they were
//! when it was submitted.

#![allow(unsafe_code)]

mod errors;
mod flight;
mod found;
mod memory;
mod parts;
mod persistent;
mod serving;
mod study;
mod svm;

use self::errors::{failure, no_memory};
use self::flight::{Flight, drain, is_over};
use self::memory::{Region, Way};
use crate::device::{
    Device, DeviceError, FIRST_RUN, Geometry, Input, PATIENCE, Parts, Setup, SlotOutput, Submission, wait_for,
};
use crate::number::Number;
use crate::study::{GRAPH, SERIAL};
pub use found::{OpenClDevice, devices};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_NON_BLOCKING, cl_device_id};
pub use persistent::Persistent;
pub use serving::Serving;
use std::sync::Arc;
use std::time::Duration;

/// Threads of a work group: a multiple of what today's devices run in step. On processors it hardly matters.
const GROUP: usize = 64;
/// The arguments of `run_packets` before its tables: bytes, columns, verdicts, records, and how many packets.
const BEFORE_TABLES: u32 = 5;

/// A kernel on an OpenCL device.
pub struct OpenCl {
    name: Arc<str>,
    geometry: Geometry,
    setup: Setup,
    /// Threads of a work group.
    group: usize,
    slots: Vec<Slot>,
    tables: Vec<Buffer<u32>>,
    table_words: Vec<usize>,
    queues: Vec<CommandQueue>,
    context: Context,
    program: Program,
    /// How long anything is waited for.
    patience: Duration,
    /// Something may be under way for ever, and whatever it uses is not given back.
    is_lost: bool,
}

/// The buffers of a batch, and the kernel with its arguments.
struct Slot {
    bytes: Region<u8>,
    columns: Region<u32>,
    verdicts: Region<u32>,
    records: Region<u32>,
    kernel: Kernel,
    queue: usize,
    /// Its way on the device.
    under_way: Option<Flight>,
    /// The same, once it is done.
    over: Option<Flight>,
}

impl OpenCl {
    /// Builds a kernel from its text, which has the entry point `run_packets`, on a device.
    ///
    /// # Errors
    /// The text does not build, there is no memory, or it is to submit graphs, which OpenCL has not.
    pub fn new(
        device: &OpenClDevice,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
    ) -> Result<OpenCl, DeviceError> {
        let setup = setup.into();
        let missing = match setup.submission {
            GRAPH => Some("OpenCL 1.2 has no graphs"),
            Submission::Persistent => Some("a kernel that takes whole batches does not keep running"),
            _ => None,
        };
        if let Some(what) = missing {
            let how = "submit to streams".to_owned();
            return Err(DeviceError::Missing { what: what.to_owned(), how });
        }
        let name = device.name.clone();
        let failed = |doing| failure(&name, doing);
        let handle = opencl3::device::Device::new(device.id as cl_device_id);
        let context = Context::from_device(&handle).map_err(failed("open it"))?;
        let properties = if setup.timed { CL_QUEUE_PROFILING_ENABLE } else { 0 };
        let queues = (0..setup.submission.queues(geometry.slots))
            .map(|_| CommandQueue::create_default(&context, properties))
            .collect::<Result<_, _>>()
            .map_err(failed("make a queue"))?;
        let program = Program::create_and_build_from_source(&context, text, "-cl-std=CL1.2")
            .map_err(|log| DeviceError::Build { device: name.clone(), log })?;
        let all = geometry.slots.saturating_mul(geometry.slot_bytes());
        if all as u64 > device.memory {
            return Err(DeviceError::Memory { device: name, what: "batches", bytes: all });
        }
        let mut made = OpenCl {
            name: name.into(),
            geometry,
            setup,
            group: GROUP,
            slots: Vec::new(),
            tables: Vec::new(),
            table_words: vec![1; geometry.tables],
            queues,
            context,
            program,
            patience: FIRST_RUN,
            is_lost: false,
        };
        for _ in 0..geometry.tables {
            let table = made.table(1)?;
            made.tables.push(table);
        }
        for number in 0..geometry.slots {
            let slot = made.slot(number)?;
            made.slots.push(slot);
        }
        if let Some(slot) = made.slots.first() {
            let most = slot.kernel.get_work_group_size(device.id as cl_device_id);
            made.group = made.group.min(most.map_err(failure(&made.name, "find the kernel"))?).max(1);
        }
        if geometry.verdict_bits == 1 {
            // Threads of a group put words of 32 verdicts together.
            made.group -= made.group % 32;
            if made.group == 0 {
                return Err(DeviceError::Missing {
                    what: format!("{} runs no 32 threads together, so no single bits come back", made.name),
                    how: "let whole words come back".to_owned(),
                });
            }
        }
        // Some drivers give memory, and finish a kernel, when they are first used; better now, over nothing,
        // than with the first packets.
        for slot in 0..geometry.slots {
            made.submit(slot, 0)?;
            made.poll(slot, true)?;
        }
        made.patience = PATIENCE;
        Ok(made)
    }

    fn slot(&self, number: usize) -> Result<Slot, DeviceError> {
        let Geometry { packets, stride, columns, record_words, returns_bytes, .. } = self.geometry;
        let queue = number % self.queues.len();
        let way = if returns_bytes { Way::Both } else { Way::Over };
        let slot = Slot {
            bytes: self.region(queue, packets * stride, way, "packets")?,
            columns: self.region(queue, packets * columns, Way::Over, "columns")?,
            verdicts: self.region(queue, self.geometry.verdict_words(packets), Way::Back, "verdicts")?,
            records: self.region(queue, packets * record_words, Way::Back, "records")?,
            kernel: Kernel::create(&self.program, "run_packets")
                .map_err(failure(&self.name, "find the kernel"))?,
            queue,
            under_way: None,
            over: None,
        };
        let regions = [
            slot.bytes.argument(),
            slot.columns.argument(),
            slot.verdicts.argument(),
            slot.records.argument(),
        ];
        let tables = self.tables.iter().map(ClMem::get);
        for (place, argument) in (0..4).zip(regions).chain((BEFORE_TABLES..).zip(tables)) {
            // SAFETY: the arguments are those of `run_packets`, in order and type; the buffers hold what
            // `packets` packets need, which the kernel does not go beyond, and live as long as the queue,
            // which is waited for before they go.
            unsafe { slot.kernel.set_arg(place, &argument) }
                .map_err(failure(&self.name, "set the kernel's arguments"))?;
        }
        Ok(slot)
    }

    fn region<T: Number>(
        &self,
        queue: usize,
        length: usize,
        way: Way,
        what: &'static str,
    ) -> Result<Region<T>, DeviceError> {
        let made = Region::new(&self.context, &self.queues[queue], length, way, self.setup.memory);
        made.map_err(|error| no_memory(&self.name, error, what, length * size_of::<T>()))
    }

    fn table(&self, words: usize) -> Result<Buffer<u32>, DeviceError> {
        // SAFETY: no host memory is handed over.
        let made = unsafe { Buffer::create(&self.context, CL_MEM_READ_WRITE, words, std::ptr::null_mut()) };
        made.map_err(|error| no_memory(&self.name, error, "a table", 4 * words))
    }

    /// Refuses a slot that the device is using, or could be.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        let cause = match &self.slots[slot].under_way {
            _ if self.is_lost => "it has not come to the end of another one",
            Some(_) => "it is under way",
            None => return Ok(()),
        };
        let device = self.name.to_string();
        Err(DeviceError::Failed { device, doing: "lend a batch", cause: cause.to_owned() })
    }

    /// Waits until this is over. A device that does not come to an end is lost.
    fn until(
        &mut self,
        mut is_over: impl FnMut(&mut Self) -> Result<bool, DeviceError>,
    ) -> Result<(), DeviceError> {
        let (name, patience) = (Arc::clone(&self.name), self.patience);
        let waited = wait_for(&name, patience, || is_over(self));
        self.is_lost |= matches!(waited, Err(DeviceError::Stalled { .. }));
        waited
    }

    /// Whether nothing of a slot is under way.
    fn is_over(&self, slot: usize) -> Result<bool, DeviceError> {
        let over = self.slots[slot].under_way.as_ref().map_or(Ok(true), Flight::is_over);
        over.map_err(failure(&self.name, "run a batch"))
    }

    /// Waits until nothing is under way.
    fn settle(&mut self) -> Result<(), DeviceError> {
        (0..self.slots.len()).try_for_each(|slot| self.poll(slot, true).map(|_| ()))
    }

    fn launch(&mut self, slot: usize, count: usize) -> opencl3::Result<()> {
        let Geometry { stride, columns: words, record_words, .. } = self.geometry;
        let Slot { bytes, columns, verdicts, records, kernel, queue, under_way, over } =
            &mut self.slots[slot];
        let queue = &self.queues[*queue];
        let given = [
            bytes.give(queue, count * stride)?,
            columns.give(queue, count * words)?,
            verdicts.give(queue, 0)?,
            records.give(queue, 0)?,
        ];
        let threads = count.next_multiple_of(self.group).max(self.group);
        // SAFETY: the number is the argument of `run_packets` before its tables, the others have been set;
        // there is one dimension.
        let kernel = unsafe {
            kernel.set_arg(BEFORE_TABLES - 1, &(count as u32))?;
            queue.enqueue_nd_range_kernel(kernel.get(), 1, std::ptr::null(), &threads, &self.group, &[])?
        };
        let back = [
            bytes.take(queue, count * stride)?,
            columns.take(queue, 0)?,
            records.take(queue, count * record_words)?,
            verdicts.take(queue, self.geometry.verdict_words(count))?,
        ];
        let events = |events: [Option<Event>; 4]| events.into_iter().flatten().collect();
        *under_way = Some(Flight { given: events(given), kernel, back: events(back) });
        *over = None;
        queue.flush()
    }
}

/// A kernel on a device as `setup` says, with the text for it: its entry point is `serve_packets` for
/// [`Submission::Persistent`], and `run_packets` for all others.
///
/// # Errors
/// As for [`OpenCl::new`] and [`Persistent::new`].
pub fn open(
    device: &OpenClDevice,
    text: &str,
    geometry: Geometry,
    setup: impl Into<Setup>,
) -> Result<Box<dyn Device>, DeviceError> {
    let setup = setup.into();
    Ok(match setup.submission {
        Submission::Persistent => {
            Box::new(Persistent::new(device, text, geometry, setup, Serving::on(device))?)
        }
        _ => Box::new(OpenCl::new(device, text, geometry, setup)?),
    })
}

impl Device for OpenCl {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        if self.table_words[table] != words.len().max(1) {
            self.tables[table] = self.table(words.len().max(1))?;
            self.table_words[table] = words.len().max(1);
            for slot in &self.slots {
                // SAFETY: as for the first table in this place.
                unsafe { slot.kernel.set_arg(BEFORE_TABLES + table as u32, &self.tables[table].get()) }
                    .map_err(failure(&self.name, "set the kernel's arguments"))?;
            }
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        if words.is_empty() {
            return Ok(());
        }
        let failed = failure(&self.name, "copy a table");
        // Nobody may know how long the driver reads them.
        let held = words.to_vec();
        let (buffer, queue) = (&mut self.tables[table], &self.queues[0]);
        // SAFETY: the words are kept until they have been copied; the driver refuses what lies outside the
        // buffer.
        let copied = unsafe { queue.enqueue_write_buffer(buffer, CL_NON_BLOCKING, 4 * first, &held, &[]) };
        let copied = copied.map_err(&failed)?;
        // If that fails, so does waiting.
        let _ = queue.flush();
        let waited = self.until(|_| is_over(&copied).map_err(&failed));
        if self.is_lost {
            std::mem::forget((held, copied));
        }
        waited
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.at_rest(slot)?;
        if let Err(error) = self.launch(slot, packets.min(self.geometry.packets)) {
            // What had been handed over before is not under way when this returns.
            let queue = &self.queues[self.slots[slot].queue];
            self.is_lost |= drain(&self.name, queue, self.patience).is_err();
            return Err(match no_memory(&self.name, error, "a batch", self.geometry.slot_bytes()) {
                DeviceError::Failed { device, cause, .. } => {
                    DeviceError::Failed { device, doing: "start a batch", cause }
                }
                memory => memory,
            });
        }
        if self.setup.submission == SERIAL {
            self.poll(slot, true)?;
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        if waits {
            self.until(|device| device.is_over(slot))?;
        } else if !self.is_over(slot)? {
            return Ok(false);
        }
        let slot = &mut self.slots[slot];
        if slot.under_way.is_some() {
            slot.over = slot.under_way.take();
        }
        Ok(true)
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        self.slots[slot].over.as_ref().filter(|_| self.setup.timed)?.parts()
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.slots[slot];
        Ok(SlotOutput {
            bytes: slot.bytes.as_mut(),
            verdicts: slot.verdicts.as_mut(),
            records: slot.records.as_mut(),
        })
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        // What is under way refers to the buffers. What does not come to an end keeps them, and nothing else
        // waits for it.
        let mut queues = self.queues.iter();
        if self.is_lost || queues.any(|queue| drain(&self.name, queue, self.patience).is_err()) {
            let slots = std::mem::take(&mut self.slots);
            std::mem::forget((slots, std::mem::take(&mut self.tables), std::mem::take(&mut self.queues)));
        }
    }
}

#[cfg(test)]
mod tests;
