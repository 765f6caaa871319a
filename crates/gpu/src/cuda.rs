//! NVIDIA's devices by CUDA's driver interface: the library is looked for when a device is asked for, and a kernel is built from its text.
//!
//! Every slot has a stream of its own, on which its copies and its kernel follow each other. Tables change only while no slot is under way.

#![allow(unsafe_code)]

mod compile;
mod memory;

use self::memory::{Region, Table};
use crate::device::{Device, DeviceError, Geometry, Input, Memory, Output};
pub use compile::{Code, compile, compiler_version};
use cudarc::driver::result::{self, DriverError};
use cudarc::driver::sys;
use std::ffi::c_void;
use std::sync::Arc;

/// Threads of a block: a multiple of the 32 that run in step, and few enough that small batches spread over the device.
const BLOCK: u32 = 128;

/// A device that was found.
#[derive(Clone, Debug)]
pub struct CudaFound {
    /// Its name.
    pub name: String,
    /// The newest version of CUDA that its driver knows: 1000 × major + 10 × minor.
    pub driver: u32,
    /// Its memory, in bytes.
    pub memory: usize,
    /// Its compute capability: 10 × major + minor.
    pub capability: u32,
    ordinal: i32,
}

impl CudaFound {
    /// The name, with that of its driver.
    pub fn full_name(&self) -> String {
        format!("{} (CUDA {}.{})", self.name, self.driver / 1000, self.driver % 1000 / 10)
    }
}

fn missing(what: &str, how: &str) -> DeviceError {
    DeviceError::Missing { what: what.to_owned(), how: how.to_owned() }
}

/// Every CUDA device of this machine.
///
/// # Errors
/// The driver's library is not there, does not begin, or knows no device.
pub fn devices() -> Result<Vec<CudaFound>, DeviceError> {
    // SAFETY: loads a library of the driver, whose initialisation asks nothing of us.
    if !unsafe { sys::is_culib_present() } {
        return Err(missing(
            "there is no CUDA driver (libcuda.so.1)",
            "install NVIDIA's driver for the graphics card, on Debian `nvidia-driver` and `libcuda1`",
        ));
    }
    let silent = |error: DriverError| {
        missing(&format!("the CUDA driver does not answer ({})", cause(error)), "see `nvidia-smi`")
    };
    result::init().map_err(silent)?;
    let mut version = 0;
    // SAFETY: the version is written to a number that is ours.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().map_err(silent)?;
    let count = result::device::get_count().map_err(silent)?;
    if count == 0 {
        return Err(missing("CUDA has no device", "see `nvidia-smi`"));
    }
    (0..count).map(|ordinal| found(ordinal, version as u32)).collect::<Result<_, _>>().map_err(silent)
}

fn found(ordinal: i32, driver: u32) -> Result<CudaFound, DriverError> {
    use sys::CUdevice_attribute::{
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
        CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
    };
    let device = result::device::get(ordinal)?;
    // SAFETY: the device is one that the driver has just named.
    let (memory, major, minor) = unsafe {
        let attribute = |which| result::device::get_attribute(device, which);
        (result::device::total_mem(device)?, attribute(MAJOR)?, attribute(MINOR)?)
    };
    let capability = (10 * major + minor) as u32;
    Ok(CudaFound { name: result::device::get_name(device)?, driver, memory, capability, ordinal })
}

/// What the driver says about an error.
fn cause(error: DriverError) -> String {
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{}: {}", name.to_string_lossy(), text.to_string_lossy()),
        _ => format!("error {}", error.0 as u32),
    }
}

/// The device as the driver keeps it for this process.
struct Context {
    device: sys::CUdevice,
    handle: sys::CUcontext,
}

// SAFETY: the driver lets every thread use a context, after making it its current one.
unsafe impl Send for Context {}
// SAFETY: as above; nothing of it changes.
unsafe impl Sync for Context {}

impl Context {
    fn new(ordinal: i32) -> Result<Context, DriverError> {
        let device = result::device::get(ordinal)?;
        // SAFETY: the device is one that the driver has just named.
        let handle = unsafe { result::primary_ctx::retain(device) }?;
        Ok(Context { device, handle })
    }

    /// Makes it this thread's current one, which every call below needs.
    fn enter(&self) -> Result<(), DriverError> {
        // SAFETY: the context is retained until this is dropped.
        unsafe { result::ctx::set_current(self.handle) }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it was retained once, and is released once.
        let _ = unsafe { result::primary_ctx::release(self.device) };
    }
}

/// A kernel on a CUDA device.
pub struct Cuda {
    name: String,
    geometry: Geometry,
    slots: Vec<Slot>,
    tables: Vec<Table>,
    module: sys::CUmodule,
    kernel: sys::CUfunction,
    context: Arc<Context>,
}

// SAFETY: handles of the driver may be used by any thread whose current context is theirs, and every method enters it.
unsafe impl Send for Cuda {}

/// The buffers of a batch, and the stream on which they go over and come back.
struct Slot {
    bytes: Region<u8>,
    columns: Region<u32>,
    verdicts: Region<u32>,
    records: Region<u32>,
    stream: sys::CUstream,
    done: sys::CUevent,
    under_way: bool,
}

impl Cuda {
    /// Builds a kernel from its text, which has the entry point `run_packets`, on a device.
    ///
    /// # Errors
    /// There is no compiler, the text does not build, or there is no memory.
    pub fn new(
        device: &CudaFound,
        text: &str,
        geometry: Geometry,
        memory: Memory,
    ) -> Result<Cuda, DeviceError> {
        let code = compile(text, device.capability)?;
        let name = device.full_name();
        let failed = |doing| failure(&name, doing);
        let context = Arc::new(Context::new(device.ordinal).map_err(failed("open it"))?);
        context.enter().map_err(failed("open it"))?;
        // SAFETY: the image is what the compiler made, which says itself how long it is, or a text with a zero behind it.
        let module = unsafe { result::module::load_data(code.image().as_ptr().cast()) };
        let module = module.map_err(failed("load the kernel"))?;
        let mut made = Cuda {
            name: name.clone(),
            geometry,
            slots: Vec::new(),
            tables: Vec::new(),
            module,
            kernel: std::ptr::null_mut(),
            context,
        };
        // SAFETY: the module has just been loaded, and is unloaded when `made` is dropped.
        let kernel = unsafe { result::module::get_function(module, c"run_packets".to_owned()) };
        made.kernel = kernel.map_err(failed("find the kernel"))?;
        for _ in 0..geometry.slots {
            let slot = made.slot(memory)?;
            made.slots.push(slot);
        }
        for _ in 0..geometry.tables {
            let table = Table::new(&made.context, 1).map_err(|error| made.no_memory(error, "a table", 4))?;
            made.tables.push(table);
        }
        Ok(made)
    }

    fn slot(&self, memory: Memory) -> Result<Slot, DeviceError> {
        let Geometry { packets, stride, columns, record_words, .. } = self.geometry;
        let bytes = self.region(packets * stride, memory, "packets")?;
        let columns = self.region(packets * columns, memory, "columns")?;
        let verdicts = self.region(packets, memory, "verdicts")?;
        let records = self.region(packets * record_words, memory, "records")?;
        let done = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING)
            .map_err(failure(&self.name, "make a slot"))?;
        let stream = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(|error| {
            // SAFETY: the event has just been made, and nothing else knows it.
            let _ = unsafe { result::event::destroy(done) };
            failure(&self.name, "make a slot")(error)
        })?;
        Ok(Slot { bytes, columns, verdicts, records, stream, done, under_way: false })
    }

    fn region<T: Copy + Default>(
        &self,
        length: usize,
        memory: Memory,
        what: &'static str,
    ) -> Result<Region<T>, DeviceError> {
        let bytes = length * size_of::<T>();
        Region::new(&self.context, length, memory).map_err(|error| self.no_memory(error, what, bytes))
    }

    fn no_memory(&self, error: DriverError, what: &'static str, bytes: usize) -> DeviceError {
        let device = self.name.clone();
        match error.0 {
            sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::Memory { device, what, bytes },
            _ => DeviceError::Failed { device, doing: "give memory", cause: cause(error) },
        }
    }

    fn launch(&mut self, slot: usize, packets: usize) -> Result<(), DriverError> {
        self.context.enter()?;
        let Geometry { stride, columns: words, record_words, returns_bytes, .. } = self.geometry;
        let slot = &mut self.slots[slot];
        let stream = slot.stream;
        slot.under_way = true;
        slot.bytes.give(stream, packets * stride)?;
        slot.columns.give(stream, packets * words)?;
        let mut places =
            vec![slot.bytes.place(), slot.columns.place(), slot.verdicts.place(), slot.records.place()];
        places.extend(self.tables.iter().map(Table::place));
        let mut number = packets as u32;
        let mut arguments: Vec<*mut c_void> =
            places.iter_mut().map(|place| (&raw mut *place).cast()).collect();
        arguments.insert(4, (&raw mut number).cast());
        let blocks = number.div_ceil(BLOCK).max(1);
        // SAFETY: the arguments are those of `run_packets`, in order and type, and are copied by the call; the buffers hold what
        // `packets` packets need, which the kernel does not go beyond, and none of them goes before its stream is done.
        unsafe {
            result::launch_kernel(self.kernel, (blocks, 1, 1), (BLOCK, 1, 1), 0, stream, &mut arguments)
        }?;
        slot.verdicts.take(stream, self.geometry.verdict_words(packets))?;
        slot.records.take(stream, packets * record_words)?;
        if returns_bytes {
            slot.bytes.take(stream, packets * stride)?;
        }
        // SAFETY: event and stream are the slot's own and live as long as it.
        unsafe { result::event::record(slot.done, stream) }
    }

    /// Waits until nothing is under way.
    fn settle(&self) -> Result<(), DriverError> {
        self.context.enter()?;
        for slot in &self.slots {
            // SAFETY: the stream is the slot's own and lives as long as it.
            unsafe { result::stream::synchronize(slot.stream) }?;
        }
        Ok(())
    }
}

/// Turns what the driver says into an error of a device.
fn failure(device: &str, doing: &'static str) -> impl Fn(DriverError) -> DeviceError + use<> {
    let device = device.to_owned();
    move |error| DeviceError::Failed { device: device.clone(), doing, cause: cause(error) }
}

impl Device for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle().map_err(failure(&self.name, "copy a table"))?;
        if self.tables[table].words() != words.len().max(1) {
            let made = Table::new(&self.context, words.len());
            self.tables[table] =
                made.map_err(|error| self.no_memory(error, "a table", size_of_val(words)))?;
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        let failed = failure(&self.name, "copy a table");
        self.settle().map_err(&failed)?;
        self.tables[table].write(first, words).map_err(failed)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        // What the device still writes is nobody's to see.
        self.poll(slot, true)?;
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        let packets = packets.min(self.geometry.packets);
        self.launch(slot, packets).map_err(|error| {
            // Part of it may be under way all the same.
            let _ = self.settle();
            self.slots[slot].under_way = false;
            failure(&self.name, "start a batch")(error)
        })
    }

    fn poll(&mut self, slot: usize, wait: bool) -> Result<bool, DeviceError> {
        let failed = failure(&self.name, "run a batch");
        let slot = &mut self.slots[slot];
        if !slot.under_way {
            return Ok(true);
        }
        self.context.enter().map_err(&failed)?;
        // SAFETY: the event is the slot's own and lives as long as it.
        let state = unsafe {
            match wait {
                true => result::event::synchronize(slot.done),
                false => result::event::query(slot.done),
            }
        };
        match state {
            Ok(()) => slot.under_way = false,
            Err(DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
        Ok(true)
    }

    fn output(&mut self, slot: usize) -> Result<Output<'_>, DeviceError> {
        self.poll(slot, true)?;
        let slot = &mut self.slots[slot];
        Ok(Output {
            bytes: slot.bytes.as_mut(),
            verdicts: slot.verdicts.as_mut(),
            records: slot.records.as_mut(),
        })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // What is under way refers to the buffers; a device that is gone has nothing under way.
        let _ = self.settle();
        // SAFETY: each handle was made once for this device, and nothing uses it any more.
        unsafe {
            for slot in &self.slots {
                let _ = result::event::destroy(slot.done);
                let _ = result::stream::destroy(slot.stream);
            }
            let _ = result::module::unload(self.module);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_listed_or_a_sentence_says_what_is_missing() {
        match devices() {
            Ok(devices) => assert!(devices.iter().all(|device| device.capability >= 50 && device.memory > 0)),
            Err(error) => {
                assert!(matches!(error, DeviceError::Missing { .. }), "{error:?}");
                let sentence = error.to_string();
                assert!(sentence.contains("CUDA") && sentence.contains(": "), "{sentence}");
            }
        }
    }
}
