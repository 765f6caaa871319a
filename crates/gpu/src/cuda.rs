//! NVIDIA's devices by CUDA's driver interface: the library is looked for when a device is asked for, and a kernel is built from its text.
//!
//! A slot's copies and its kernel follow each other on a stream. Tables change only while no slot is under way.

#![allow(unsafe_code)]

mod compile;
mod found;
mod handles;
mod memory;
mod persistent;
mod pings;

use self::found::missing;
use self::handles::{Context, Event, Function, Graph, Stream};
use self::memory::{Region, Table};
use crate::device::{Device, DeviceError, Geometry, Input, Memory, Output, Parts, Setup, Submission, wait};
use crate::pages::Number;
pub use compile::{Code, compile, compiler_version, needs};
use cudarc::driver::result::DriverError;
use cudarc::driver::sys;
pub use found::{CudaFound, devices};
pub use persistent::{CudaPersistent, Spans};
pub use pings::pings;
use std::ffi::c_void;
use std::sync::Arc;

/// Threads of a block: a multiple of the 32 that run in step, and few enough that small batches spread over the device.
const BLOCK: u32 = 128;
/// The first version of CUDA whose drivers make graphs as we ask for them.
const GRAPHS: u32 = 11_040;
/// The first version of CUDA whose drivers tell times as we ask for them.
const TIMES: u32 = 12_080;

/// What the driver says about an error.
fn cause(error: DriverError) -> String {
    match (error.error_name(), error.error_string()) {
        (Ok(name), Ok(text)) => format!("{}: {}", name.to_string_lossy(), text.to_string_lossy()),
        _ => format!("error {}", error.0 as u32),
    }
}

/// A kernel on a CUDA device.
pub struct Cuda {
    name: String,
    geometry: Geometry,
    setup: Setup,
    slots: Vec<Slot>,
    tables: Vec<Table>,
    streams: Vec<Stream>,
    kernel: Function,
    context: Arc<Context>,
}

// SAFETY: handles of the driver may be used by any thread whose current context is theirs, and every method enters it.
unsafe impl Send for Cuda {}

/// The buffers of a batch.
struct Slot {
    bytes: Region<u8>,
    columns: Region<u32>,
    verdicts: Region<u32>,
    records: Region<u32>,
    stream: usize,
    /// Before everything, behind what goes over, and behind the kernel, where times are told.
    times: Option<[Event; 3]>,
    /// Behind everything.
    done: Event,
    /// A full batch.
    graph: Option<Graph>,
    under_way: bool,
    /// Whether the times are those of the last batch.
    has_times: bool,
}

impl Cuda {
    /// Builds a kernel from its text, which has the entry point `run_packets`, on a device.
    ///
    /// # Errors
    /// There is no compiler, the text does not build, there is no memory, or the device or its driver cannot what it is set up for.
    pub fn new(
        device: &CudaFound,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
    ) -> Result<Cuda, DeviceError> {
        let setup = setup.into();
        can(device, &setup)?;
        let code = compile(text, device.capability)?;
        let name = device.full_name();
        let failed = |doing| failure(&name, doing);
        let all = geometry.slots.saturating_mul(geometry.slot_bytes());
        if all > device.memory {
            return Err(DeviceError::Memory { device: name, what: "batches", bytes: all });
        }
        let context = Arc::new(Context::new(device.ordinal).map_err(failed("open it"))?);
        let kernel = Function::load(&context, code.image(), "run_packets");
        let kernel = kernel.map_err(|error| not_loaded(device, error))?;
        let mut made = Cuda {
            name: name.clone(),
            geometry,
            setup,
            slots: Vec::new(),
            tables: Vec::new(),
            streams: Vec::new(),
            kernel,
            context,
        };
        for _ in 0..setup.submission.queues(geometry.slots) {
            made.streams.push(Stream::new(&made.context).map_err(failed("make a stream"))?);
        }
        for number in 0..geometry.slots {
            let slot = made.slot(number % made.streams.len())?;
            made.slots.push(slot);
        }
        for _ in 0..geometry.tables {
            let table =
                Table::new(&made.context, 1).map_err(|error| no_memory(&name, error, "a table", 4))?;
            made.tables.push(table);
        }
        // The driver loads a kernel when it is first run; better now, over nothing, than with the first packets.
        if geometry.slots > 0
            && let Err(error) = made.submit(0, 0).and_then(|()| made.poll(0, true))
        {
            // Closing a device that has failed could wait for ever.
            std::mem::forget(made);
            return Err(error);
        }
        Ok(made)
    }

    fn slot(&self, stream: usize) -> Result<Slot, DeviceError> {
        let Geometry { packets, stride, columns, record_words, .. } = self.geometry;
        let event =
            || Event::new(&self.context, self.setup.timed).map_err(failure(&self.name, "make an event"));
        Ok(Slot {
            bytes: self.region(stream, packets * stride, "packets")?,
            columns: self.region(stream, packets * columns, "columns")?,
            verdicts: self.region(stream, self.geometry.verdict_words(packets), "verdicts")?,
            records: self.region(stream, packets * record_words, "records")?,
            stream,
            times: if self.setup.timed { Some([event()?, event()?, event()?]) } else { None },
            done: event()?,
            graph: None,
            under_way: false,
            has_times: false,
        })
    }

    fn region<T: Number>(
        &self,
        stream: usize,
        length: usize,
        what: &'static str,
    ) -> Result<Region<T>, DeviceError> {
        let bytes = length * size_of::<T>();
        Region::new(&self.context, &self.streams[stream], length, self.setup.memory)
            .map_err(|error| no_memory(&self.name, error, what, bytes))
    }

    fn launch(&mut self, slot: usize, packets: usize) -> Result<(), DriverError> {
        self.context.enter()?;
        let is_graph = self.setup.submission == Submission::Graph && packets == self.geometry.packets;
        self.slots[slot].under_way = true;
        self.slots[slot].has_times = !is_graph;
        if is_graph {
            let graph = match self.slots[slot].graph.take() {
                Some(graph) => graph,
                None => {
                    let (context, stream) = (&self.context, &self.streams[self.slots[slot].stream]);
                    Graph::record(context, stream, || self.put(slot, packets, false))?
                }
            };
            let own = &mut self.slots[slot];
            own.graph.insert(graph).launch(&self.streams[own.stream])?;
        } else {
            self.put(slot, packets, self.setup.timed)?;
        }
        let own = &self.slots[slot];
        own.done.record(&self.streams[own.stream])
    }

    /// Puts the commands of a batch on the slot's stream.
    fn put(&self, slot: usize, packets: usize, timed: bool) -> Result<(), DriverError> {
        let Geometry { stride, columns: words, record_words, returns_bytes, .. } = self.geometry;
        let slot = &self.slots[slot];
        let stream = &self.streams[slot.stream];
        let time = |which: usize| match &slot.times {
            Some(times) if timed => times[which].record(stream),
            _ => Ok(()),
        };
        time(0)?;
        slot.bytes.give(stream, packets * stride)?;
        slot.columns.give(stream, packets * words)?;
        time(1)?;
        let mut places =
            vec![slot.bytes.place(), slot.columns.place(), slot.verdicts.place(), slot.records.place()];
        places.extend(self.tables.iter().map(Table::place));
        let mut number = packets as u32;
        let mut arguments: Vec<*mut c_void> =
            places.iter_mut().map(|place| (&raw mut *place).cast()).collect();
        arguments.insert(4, (&raw mut number).cast());
        let size = (number.div_ceil(BLOCK).max(1), BLOCK);
        // SAFETY: the arguments are those of `run_packets`, in order and type, and are copied by the call; the buffers hold what
        // `packets` packets need, which the kernel does not go beyond, and none of them goes before its stream is done.
        unsafe { self.kernel.launch(size, false, stream, &mut arguments) }?;
        time(2)?;
        slot.verdicts.take(stream, self.geometry.verdict_words(packets))?;
        slot.records.take(stream, packets * record_words)?;
        if returns_bytes {
            slot.bytes.take(stream, packets * stride)?;
        }
        Ok(())
    }

    /// Waits until nothing is under way.
    fn settle(&mut self) -> Result<(), DeviceError> {
        (0..self.slots.len()).try_for_each(|slot| self.poll(slot, true).map(|_| ()))
    }
}

/// A kernel on a device as `setup` says, with the text for it: its entry point is `serve_packets` for [`Submission::Persistent`], and
/// `run_packets` for all others.
///
/// # Errors
/// As for [`Cuda::new`] and [`CudaPersistent::new`].
pub fn open(
    device: &CudaFound,
    text: &str,
    geometry: Geometry,
    setup: impl Into<Setup>,
) -> Result<Box<dyn Device>, DeviceError> {
    let setup = setup.into();
    Ok(match setup.submission {
        Submission::Persistent => {
            Box::new(CudaPersistent::new(device, text, geometry, setup, Spans::default())?)
        }
        _ => Box::new(Cuda::new(device, text, geometry, setup)?),
    })
}

/// Whether a device and its driver can do what is wanted.
fn can(device: &CudaFound, setup: &Setup) -> Result<(), DeviceError> {
    let name = device.full_name();
    let reaches = match setup.memory {
        Memory::Pageable | Memory::Pinned => true,
        Memory::Mapped => device.maps,
        Memory::Registered => device.maps && device.registers,
    };
    if !reaches {
        let what = format!("{name} does not reach {} memory of the processor", setup.memory);
        return Err(missing(&what, "copy from pinned memory"));
    }
    let newer = "install NVIDIA's newest driver for it";
    match setup.submission {
        Submission::Graph if device.driver < GRAPHS => {
            Err(missing(&format!("the driver of {name} is too old for graphs"), newer))
        }
        Submission::Graph if setup.memory == Memory::Pageable => {
            Err(missing("a graph does not copy from pageable memory", "use pinned memory"))
        }
        Submission::Persistent => {
            Err(missing("a kernel that takes whole batches does not keep running", "submit to streams"))
        }
        _ if setup.timed && device.driver < TIMES => {
            Err(missing(&format!("the driver of {name} is too old to tell times"), newer))
        }
        _ => Ok(()),
    }
}

/// Why a driver does not take what the compiler made.
fn not_loaded(device: &CudaFound, error: DriverError) -> DeviceError {
    use sys::CUresult::{CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_UNSUPPORTED_PTX_VERSION};
    match error.0 {
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION | CUDA_ERROR_NO_BINARY_FOR_GPU => missing(
            &format!("the driver of {} is too old for the CUDA compiler library", device.full_name()),
            "install NVIDIA's newest driver for it, or a compiler library that is not newer than it",
        ),
        _ => failure(&device.full_name(), "load the kernel")(error),
    }
}

/// Why there is no memory.
fn no_memory(device: &str, error: DriverError, what: &'static str, bytes: usize) -> DeviceError {
    match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
            DeviceError::Memory { device: device.to_owned(), what, bytes }
        }
        _ => failure(device, "give memory")(error),
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
        self.settle()?;
        if self.tables[table].words() != words.len().max(1) {
            let made = Table::new(&self.context, words.len());
            self.tables[table] =
                made.map_err(|error| no_memory(&self.name, error, "a table", size_of_val(words)))?;
            // They know where the old one was.
            self.slots.iter_mut().for_each(|slot| slot.graph = None);
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        let failed = failure(&self.name, "copy a table");
        self.context.enter().map_err(&failed)?;
        self.tables[table].write(first, words, &self.streams[0]).map_err(failed)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        // What the device still writes is nobody's to see.
        self.poll(slot, true)?;
        let slot = &mut self.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.poll(slot, true)?;
        self.launch(slot, packets.min(self.geometry.packets)).map_err(|error| {
            // Part of it may be under way all the same.
            let _ = self.streams[self.slots[slot].stream].finish();
            self.slots[slot].under_way = false;
            failure(&self.name, "start a batch")(error)
        })?;
        if self.setup.submission == Submission::Serial {
            self.poll(slot, true)?;
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        let slot = &mut self.slots[slot];
        if !slot.under_way {
            return Ok(true);
        }
        let is_over = || slot.done.is_over().map_err(failure(&self.name, "run a batch"));
        if waits {
            wait(&self.name, is_over)?;
        } else if !is_over()? {
            return Ok(false);
        }
        slot.under_way = false;
        Ok(true)
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        let slot = &self.slots[slot];
        if slot.under_way || !slot.has_times {
            return None;
        }
        let [begin, given, ran] = slot.times.as_ref()?;
        Some(Parts {
            copy_in: given.since(begin)?,
            kernel: ran.since(given)?,
            copy_out: slot.done.since(ran)?,
        })
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
        for stream in &self.streams {
            let _ = stream.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_cannot_do_is_said_before_anything_is_made() {
        let able = CudaFound::imagined(13_000, true);
        let said = |device: &CudaFound, memory, submission, timed| {
            can(device, &Setup { memory, submission, timed }).err().map(|error| error.to_string())
        };
        let queued = Submission::Queued;
        for memory in Memory::ALL {
            assert_eq!(said(&able, memory, queued, true), None, "{memory}");
        }
        assert_eq!(said(&able, Memory::Pinned, Submission::Graph, false), None);
        let graph = said(&able, Memory::Pageable, Submission::Graph, false).expect("it is refused");
        assert_eq!(graph, "a graph does not copy from pageable memory: use pinned memory");

        let old = CudaFound::imagined(11_030, false);
        assert_eq!(said(&old, Memory::Mapped, queued, false), None);
        let registered = said(&old, Memory::Registered, queued, false).expect("it is refused");
        assert!(registered.contains("does not reach registered memory"), "{registered}");
        let graph = said(&old, Memory::Pinned, Submission::Graph, false).expect("it is refused");
        assert!(graph.contains("too old for graphs"), "{graph}");
        let times = said(&old, Memory::Pinned, queued, true).expect("it is refused");
        assert!(times.contains("too old to tell times"), "{times}");
        let code =
            not_loaded(&old, DriverError(sys::CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION)).to_string();
        assert!(code.starts_with("the driver of imagined (CUDA 11.3) is too old for the CUDA"), "{code}");
    }
}
