//! Devices of OpenCL 1.2: a kernel is built from its text, and batches go there and back.
//!
//! Every queue is in order. Tables change only while no slot is under way, so a batch sees them as they were when it was submitted.

#![allow(unsafe_code)]

mod found;
mod memory;
mod persistent;
mod serving;
mod svm;

use self::memory::{Region, Way};
use crate::device::{Device, DeviceError, Geometry, Input, Output, Parts, Setup, Submission, wait};
use crate::pages::Number;
pub use found::{Found, devices};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::error_codes::{
    CL_INVALID_BUFFER_SIZE, CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_OUT_OF_HOST_MEMORY, CL_OUT_OF_RESOURCES,
    ClError,
};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE, ClMem};
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, cl_device_id};
pub use persistent::Persistent;
pub use serving::Serving;
use std::time::Duration;

/// Threads of a work group: a multiple of what today's devices run in step. On processors it hardly matters.
const GROUP: usize = 64;
/// The arguments of `run_packets` before its tables: bytes, columns, verdicts, records, and how many packets.
const BEFORE_TABLES: u32 = 5;

/// A kernel on an OpenCL device.
pub struct OpenCl {
    name: String,
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

/// What happens to a batch, in this order.
struct Flight {
    /// It is handed over.
    given: Vec<Event>,
    /// The kernel runs.
    kernel: Event,
    /// What comes back has come.
    back: Vec<Event>,
}

impl OpenCl {
    /// Builds a kernel from its text, which has the entry point `run_packets`, on a device.
    ///
    /// # Errors
    /// The text does not build, there is no memory, or it is to submit graphs, which OpenCL has not.
    pub fn new(
        device: &Found,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
    ) -> Result<OpenCl, DeviceError> {
        let setup = setup.into();
        let missing = match setup.submission {
            Submission::Graph => Some("OpenCL 1.2 has no graphs"),
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
            name,
            geometry,
            setup,
            group: GROUP,
            slots: Vec::new(),
            tables: Vec::new(),
            table_words: vec![1; geometry.tables],
            queues,
            context,
            program,
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
        // Some drivers give memory, and finish a kernel, when they are first used; better now, over nothing, than with the first packets.
        for slot in 0..geometry.slots {
            if let Err(error) = made.submit(slot, 0).and_then(|()| made.poll(slot, true)) {
                // Closing a device that has failed could wait for ever.
                std::mem::forget(made);
                return Err(error);
            }
        }
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
            // SAFETY: the arguments are those of `run_packets`, in order and type; the buffers hold what `packets` packets need, which
            // the kernel does not go beyond, and live as long as the queue, which is waited for before they go.
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

    /// Refuses a slot that the device is using.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        match self.slots[slot].under_way {
            None => Ok(()),
            Some(_) => Err(DeviceError::Failed {
                device: self.name.clone(),
                doing: "lend a batch",
                cause: "it is under way".to_owned(),
            }),
        }
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
        // SAFETY: the number is the argument of `run_packets` before its tables, the others have been set; there is one dimension.
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

/// A kernel on a device as `setup` says, with the text for it: its entry point is `serve_packets` for [`Submission::Persistent`], and
/// `run_packets` for all others.
///
/// # Errors
/// As for [`OpenCl::new`] and [`Persistent::new`].
pub fn open(
    device: &Found,
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

/// What it means that the driver gives no memory.
fn no_memory(device: &str, error: ClError, what: &'static str, bytes: usize) -> DeviceError {
    let device = device.to_owned();
    match error.0 {
        CL_MEM_OBJECT_ALLOCATION_FAILURE
        | CL_OUT_OF_RESOURCES
        | CL_OUT_OF_HOST_MEMORY
        | CL_INVALID_BUFFER_SIZE => DeviceError::Memory { device, what, bytes },
        _ => DeviceError::Failed { device, doing: "give memory", cause: error.to_string() },
    }
}

/// Turns what the driver says into an error of a device.
fn failure(device: &str, doing: &'static str) -> impl Fn(ClError) -> DeviceError + use<> {
    let device = device.to_owned();
    move |error| DeviceError::Failed { device: device.clone(), doing, cause: error.to_string() }
}

/// Whether it has come to its end, and nothing of it to a bad one: a driver may go on behind a command that failed.
fn is_over(Flight { given, kernel, back }: &Flight) -> opencl3::Result<bool> {
    let mut over = true;
    for event in given.iter().chain([kernel]).chain(back) {
        let status = event.command_execution_status()?.0;
        if status < 0 {
            return Err(ClError(status));
        }
        over &= status == opencl3::event::CL_COMPLETE;
    }
    Ok(over)
}

impl Device for OpenCl {
    fn name(&self) -> String {
        self.name.clone()
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
        let (buffer, queue) = (&mut self.tables[table], &self.queues[0]);
        // SAFETY: the call returns when the words have been copied; the driver refuses what lies outside the buffer.
        unsafe { queue.enqueue_write_buffer(buffer, CL_BLOCKING, 4 * first, words, &[]) }.map_err(failed)?;
        Ok(())
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.at_rest(slot)?;
        self.launch(slot, packets.min(self.geometry.packets)).map_err(|error| {
            // What had been handed over before is not under way when this returns.
            let _ = self.queues[self.slots[slot].queue].finish();
            match no_memory(&self.name, error, "a batch", self.geometry.slot_bytes()) {
                DeviceError::Failed { device, cause, .. } => {
                    DeviceError::Failed { device, doing: "start a batch", cause }
                }
                memory => memory,
            }
        })?;
        if self.setup.submission == Submission::Serial {
            self.poll(slot, true)?;
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        let slot = &mut self.slots[slot];
        let Some(flight) = &slot.under_way else { return Ok(true) };
        let failed = failure(&self.name, "run a batch");
        if waits {
            wait(&self.name, || is_over(flight).map_err(&failed))?;
        } else if !is_over(flight).map_err(&failed)? {
            return Ok(false);
        }
        slot.over = slot.under_way.take();
        Ok(true)
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        let flight = self.slots[slot].over.as_ref().filter(|_| self.setup.timed)?;
        let Flight { given, kernel, back } = flight;
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let start = |event: &Event| event.profiling_command_start().ok();
        let end = |event: &Event| event.profiling_command_end().ok();
        let copy_in = match (given.first(), given.last()) {
            (Some(first), Some(last)) => between(start(first)?, end(last)?),
            _ => Duration::ZERO,
        };
        let copy_out = match back.last() {
            Some(last) => between(end(kernel)?, end(last)?),
            None => Duration::ZERO,
        };
        Some(Parts { copy_in, kernel: between(start(kernel)?, end(kernel)?), copy_out })
    }

    fn output(&mut self, slot: usize) -> Result<Output<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.slots[slot];
        Ok(Output {
            bytes: slot.bytes.as_mut(),
            verdicts: slot.verdicts.as_mut(),
            records: slot.records.as_mut(),
        })
    }
}

impl Drop for OpenCl {
    fn drop(&mut self) {
        // What is under way refers to the buffers.
        for queue in &self.queues {
            let _ = queue.finish();
        }
    }
}
