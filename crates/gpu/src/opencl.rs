//! Devices of OpenCL 1.2: the library is looked for when a device is asked for, and a kernel is built from its text.
//!
//! A slot's buffers are either the driver's own, mapped while the processor fills and reads them, or plain memory that is copied there and back.
//! One queue in order carries everything, so a batch sees the tables as they were when it was submitted.

#![allow(unsafe_code)]

use crate::device::{Device, DeviceError, Geometry, Input, Memory, Output, Parts};
use opencl3::command_queue::{CL_QUEUE_PROFILING_ENABLE, CommandQueue};
use opencl3::context::Context;
use opencl3::event::Event;
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{
    Buffer, CL_MAP_READ, CL_MAP_WRITE, CL_MAP_WRITE_INVALIDATE_REGION, CL_MEM_ALLOC_HOST_PTR,
    CL_MEM_READ_WRITE, ClMem,
};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::{CL_BLOCKING, CL_NON_BLOCKING, cl_device_id};
use std::ffi::c_void;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A batch that takes longer has stalled.
const PATIENCE: Duration = Duration::from_secs(10);
/// Threads of a work group: a multiple of what today's devices run in step.
const GROUP: usize = 64;

/// A device that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its name, with that of its driver.
    pub name: String,
    /// Whether it is a graphics card or other accelerator, not the processor itself.
    pub accelerator: bool,
    /// Its memory, in bytes.
    pub memory: u64,
    id: usize,
}

/// Every OpenCL device of this machine, accelerators first.
///
/// # Errors
/// The library is not there, or knows no platform.
pub fn devices() -> Result<Vec<Found>, DeviceError> {
    let missing = |what: &str, how: &str| DeviceError::Missing { what: what.to_owned(), how: how.to_owned() };
    // Drivers set themselves up when they are first asked for, some of them not safely from several threads.
    static ASKING: Mutex<()> = Mutex::new(());
    let _asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    let platforms = get_platforms().map_err(|error| match error.0 {
        -2000 => missing(
            "there is no OpenCL library (libOpenCL.so.1)",
            "install the loader, on Debian `ocl-icd-libopencl1`, and a driver, for processors `pocl-opencl-icd`",
        ),
        -1001 => missing(
            "the OpenCL library knows no driver",
            "install the graphics card's, or for processors `pocl-opencl-icd`",
        ),
        _ => missing(&format!("the OpenCL library does not answer ({error})"), "see `clinfo`"),
    })?;
    let mut found = Vec::new();
    for platform in platforms {
        let Ok(ids) = platform.get_devices(opencl3::device::CL_DEVICE_TYPE_ALL) else { continue };
        for id in ids {
            let device = opencl3::device::Device::new(id);
            let name = device.name().unwrap_or_default();
            let version = device.driver_version().unwrap_or_default();
            let kind = device.dev_type().unwrap_or_default();
            let platform = platform.name().unwrap_or_default();
            found.push(Found {
                name: format!("{} ({platform} {version})", name.trim()),
                accelerator: kind & opencl3::device::CL_DEVICE_TYPE_CPU == 0,
                memory: device.global_mem_size().unwrap_or_default(),
                id: id as usize,
            });
        }
    }
    found.sort_by_key(|device| !device.accelerator);
    if found.is_empty() {
        return Err(missing("OpenCL has no device", "see `clinfo`"));
    }
    Ok(found)
}

/// A kernel on an OpenCL device.
pub struct OpenCl {
    name: String,
    geometry: Geometry,
    memory: Memory,
    timed: bool,
    slots: Vec<Slot>,
    tables: Vec<Buffer<u32>>,
    table_words: Vec<usize>,
    kernel: Kernel,
    queue: CommandQueue,
    context: Context,
    _program: Program,
}

/// The buffers of a batch.
struct Slot {
    bytes: Region<u8>,
    columns: Region<u32>,
    verdicts: Region<u32>,
    records: Region<u32>,
    packets: usize,
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
    /// The last of what comes back has come.
    last: Option<Event>,
}

/// Memory that the processor and the device both reach, one after the other.
struct Region<T> {
    buffer: Buffer<T>,
    /// Where it is while it is mapped; null while the device has it or where it is copied.
    mapped: *mut c_void,
    copy: Vec<T>,
    length: usize,
}

// SAFETY: the mapped memory belongs to the buffer, which may be used from any thread, and only one at a time has the region.
unsafe impl<T: Send> Send for Region<T> {}

impl<T: Copy + Default> Region<T> {
    fn new(
        context: &Context,
        queue: &CommandQueue,
        length: usize,
        memory: Memory,
    ) -> Result<Self, opencl3::Result<()>> {
        let length = length.max(1);
        let flags = match memory {
            Memory::Copied => CL_MEM_READ_WRITE,
            Memory::Mapped => CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR,
        };
        // SAFETY: no host memory is handed over.
        let buffer = unsafe { Buffer::create(context, flags, length, std::ptr::null_mut()) }.map_err(Err)?;
        let copy = if memory == Memory::Copied { vec![T::default(); length] } else { Vec::new() };
        let mut region = Region { buffer, mapped: std::ptr::null_mut(), copy, length };
        if memory == Memory::Mapped {
            region.map(queue, CL_MAP_READ | CL_MAP_WRITE, true).map_err(Err)?;
            region.as_mut().fill(T::default());
        }
        Ok(region)
    }

    /// Makes the memory the processor's; without `wait`, once the queue has come so far.
    fn map(&mut self, queue: &CommandQueue, flags: u64, wait: bool) -> opencl3::Result<Event> {
        let bytes = self.length * size_of::<T>();
        let blocking = if wait { CL_BLOCKING } else { CL_NON_BLOCKING };
        // SAFETY: the buffer has that many bytes, and is not mapped.
        unsafe { queue.enqueue_map_buffer(&self.buffer, blocking, flags, 0, bytes, &mut self.mapped, &[]) }
    }

    fn unmap(&mut self, queue: &CommandQueue) -> opencl3::Result<Option<Event>> {
        if self.mapped.is_null() {
            return Ok(None);
        }
        let mapped = std::mem::replace(&mut self.mapped, std::ptr::null_mut());
        // SAFETY: it is what mapping gave, and nobody refers to it, since `as_mut` borrows the region.
        unsafe { queue.enqueue_unmap_mem_object(self.buffer.get(), mapped, &[]) }.map(Some)
    }

    /// The values, while they are the processor's; none otherwise.
    fn as_mut(&mut self) -> &mut [T] {
        if self.copy.is_empty() {
            if self.mapped.is_null() {
                return &mut [];
            }
            // SAFETY: the driver has mapped `length` values there, any bits are values, and the region is borrowed.
            return unsafe { std::slice::from_raw_parts_mut(self.mapped.cast(), self.length) };
        }
        &mut self.copy
    }

    /// Hands the first `length` values to the device; gives what ends when it has them, if that is not at once.
    fn give(&mut self, queue: &CommandQueue, length: usize) -> opencl3::Result<Option<Event>> {
        if self.copy.is_empty() {
            return self.unmap(queue);
        }
        if length == 0 {
            return Ok(None);
        }
        // SAFETY: the copy stays where it is until the slot is done, as nobody gets at it before.
        unsafe { queue.enqueue_write_buffer(&mut self.buffer, CL_NON_BLOCKING, 0, &self.copy[..length], &[]) }
            .map(Some)
    }

    /// Asks for the memory back, with the first `length` values as the device left them; the others mean nothing. The last thing to be
    /// waited for, if there is any.
    fn take(&mut self, queue: &CommandQueue, length: usize) -> opencl3::Result<Option<Event>> {
        if self.copy.is_empty() {
            let flags = if length == 0 { CL_MAP_WRITE_INVALIDATE_REGION } else { CL_MAP_READ | CL_MAP_WRITE };
            return self.map(queue, flags, false).map(Some);
        }
        if length == 0 {
            return Ok(None);
        }
        // SAFETY: as in `give`.
        unsafe { queue.enqueue_read_buffer(&self.buffer, CL_NON_BLOCKING, 0, &mut self.copy[..length], &[]) }
            .map(Some)
    }
}

impl OpenCl {
    /// Builds a kernel from its text, which has the entry point `run_packets`, on a device.
    ///
    /// # Errors
    /// The text does not build, or there is no memory.
    pub fn new(
        device: &Found,
        text: &str,
        geometry: Geometry,
        memory: Memory,
    ) -> Result<OpenCl, DeviceError> {
        OpenCl::build(device, text, geometry, memory, 0)
    }

    /// As [`new`](OpenCl::new), and it says of every batch how long its [`Parts`] took, which may cost time itself.
    ///
    /// # Errors
    /// As for `new`.
    pub fn timed(
        device: &Found,
        text: &str,
        geometry: Geometry,
        memory: Memory,
    ) -> Result<OpenCl, DeviceError> {
        OpenCl::build(device, text, geometry, memory, CL_QUEUE_PROFILING_ENABLE)
    }

    fn build(
        device: &Found,
        text: &str,
        geometry: Geometry,
        memory: Memory,
        properties: u64,
    ) -> Result<OpenCl, DeviceError> {
        let name = device.name.clone();
        let failed = |doing: &'static str| {
            let device = name.clone();
            move |error: opencl3::error_codes::ClError| DeviceError::Failed {
                device: device.clone(),
                doing,
                cause: error.to_string(),
            }
        };
        let handle = opencl3::device::Device::new(device.id as cl_device_id);
        let context = Context::from_device(&handle).map_err(failed("open it"))?;
        let queue = CommandQueue::create_default(&context, properties).map_err(failed("make a queue"))?;
        let program = Program::create_and_build_from_source(&context, text, "-cl-std=CL1.2")
            .map_err(|log| DeviceError::Build { device: name.clone(), log })?;
        let kernel = Kernel::create(&program, "run_packets").map_err(failed("find the kernel"))?;
        let mut made = OpenCl {
            name,
            geometry,
            memory,
            timed: properties & CL_QUEUE_PROFILING_ENABLE != 0,
            slots: Vec::new(),
            tables: Vec::new(),
            table_words: vec![1; geometry.tables],
            kernel,
            queue,
            context,
            _program: program,
        };
        for _ in 0..geometry.slots {
            let slot = Slot {
                bytes: made.region(geometry.packets * geometry.stride, "packets")?,
                columns: made.region(geometry.packets * geometry.columns, "columns")?,
                verdicts: made.region(geometry.packets, "verdicts")?,
                records: made.region(geometry.packets * geometry.record_words, "records")?,
                packets: 0,
                under_way: None,
                over: None,
            };
            made.slots.push(slot);
        }
        for _ in 0..geometry.tables {
            let table = made.table(1)?;
            made.tables.push(table);
        }
        // Some drivers finish a kernel when it is first run; better now, over nothing, than with the first packets.
        made.submit(0, 0)?;
        made.poll(0, true)?;
        Ok(made)
    }

    fn region<T: Copy + Default>(&self, length: usize, what: &'static str) -> Result<Region<T>, DeviceError> {
        Region::new(&self.context, &self.queue, length, self.memory).map_err(|_| DeviceError::Memory {
            device: self.name.clone(),
            what,
            bytes: length * size_of::<T>(),
        })
    }

    fn table(&self, words: usize) -> Result<Buffer<u32>, DeviceError> {
        // SAFETY: no host memory is handed over.
        let made = unsafe { Buffer::create(&self.context, CL_MEM_READ_WRITE, words, std::ptr::null_mut()) };
        made.map_err(|_| DeviceError::Memory { device: self.name.clone(), what: "a table", bytes: 4 * words })
    }

    fn failed(&self, doing: &'static str) -> impl Fn(opencl3::error_codes::ClError) -> DeviceError + use<> {
        let device = self.name.clone();
        move |error| DeviceError::Failed { device: device.clone(), doing, cause: error.to_string() }
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

    fn launch(&mut self, slot: usize) -> opencl3::Result<()> {
        let Slot { bytes, columns, verdicts, records, packets, under_way, over } = &mut self.slots[slot];
        let count = *packets;
        let given = [
            bytes.give(&self.queue, count * self.geometry.stride)?,
            columns.give(&self.queue, count * self.geometry.columns)?,
            verdicts.unmap(&self.queue)?,
            records.unmap(&self.queue)?,
        ];
        let number = count as u32;
        let mut run = ExecuteKernel::new(&self.kernel);
        // SAFETY: the arguments are those of `run_packets`, in order and type; the buffers hold what `count` packets need, which
        // the kernel does not go beyond, and live as long as the queue, which is waited for before they go.
        let kernel = unsafe {
            run.set_arg(&bytes.buffer.get())
                .set_arg(&columns.buffer.get())
                .set_arg(&verdicts.buffer.get())
                .set_arg(&records.buffer.get())
                .set_arg(&number);
            for table in &self.tables {
                run.set_arg(&table.get());
            }
            run.set_global_work_size(count.next_multiple_of(GROUP).max(GROUP))
                .set_local_work_size(GROUP)
                .enqueue_nd_range(&self.queue)?
        };
        bytes
            .take(&self.queue, if self.geometry.returns_bytes { count * self.geometry.stride } else { 0 })?;
        columns.take(&self.queue, 0)?;
        records.take(&self.queue, count * self.geometry.record_words)?;
        let last = verdicts.take(&self.queue, self.geometry.verdict_words(count))?;
        *under_way = Some(Flight { given: given.into_iter().flatten().collect(), kernel, last });
        *over = None;
        self.queue.flush()
    }
}

impl Device for OpenCl {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        if self.table_words[table] != words.len() {
            self.tables[table] = self.table(words.len().max(1))?;
            self.table_words[table] = words.len();
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        if words.is_empty() {
            return Ok(());
        }
        let failed = self.failed("copy a table");
        let buffer = &mut self.tables[table];
        // SAFETY: the call returns when the words have been copied; the driver refuses what lies outside the buffer.
        unsafe { self.queue.enqueue_write_buffer(buffer, CL_BLOCKING, 4 * first, words, &[]) }
            .map_err(failed)?;
        Ok(())
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let failed = self.failed("start a batch");
        self.at_rest(slot)?;
        self.slots[slot].packets = packets.min(self.geometry.packets);
        self.launch(slot).map_err(|error| {
            // What had been handed over before is not under way when this returns.
            let _ = self.queue.finish();
            failed(error)
        })
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        let failed = self.failed("run a batch");
        let Some(Flight { kernel, last, .. }) = &self.slots[slot].under_way else { return Ok(true) };
        let begin = Instant::now();
        loop {
            let mut complete = true;
            for event in [Some(kernel), last.as_ref()].into_iter().flatten() {
                let status = event.command_execution_status().map_err(&failed)?.0;
                if status < 0 {
                    return Err(failed(opencl3::error_codes::ClError(status)));
                }
                complete &= status == opencl3::event::CL_COMPLETE;
            }
            if complete {
                let slot = &mut self.slots[slot];
                slot.over = slot.under_way.take();
                return Ok(true);
            }
            let waited = begin.elapsed();
            if !wait {
                return Ok(false);
            }
            if waited > PATIENCE {
                return Err(DeviceError::Stalled {
                    device: self.name.clone(),
                    milliseconds: waited.as_millis() as u64,
                });
            }
            // Most batches are done before a sleep would end.
            if waited > Duration::from_micros(200) {
                std::thread::sleep(Duration::from_micros(20));
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        let Some(Flight { given, kernel, last: Some(over) }) =
            self.slots[slot].over.as_ref().filter(|_| self.timed)
        else {
            return None;
        };
        let (first, last) = (given.first()?, given.last()?);
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        let start = |event: &Event| event.profiling_command_start().ok();
        let end = |event: &Event| event.profiling_command_end().ok();
        Some(Parts {
            copy_in: between(start(first)?, end(last)?),
            kernel: between(start(kernel)?, end(kernel)?),
            copy_out: between(end(kernel)?, end(over)?),
        })
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
        let _ = self.queue.finish();
    }
}
