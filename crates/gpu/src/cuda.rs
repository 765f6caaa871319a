//! Devices of NVIDIA through CUDA's driver interface: the library is loaded when a device is needed, and a
//! kernel is built from its text.
//!
//! A slot's copies and its kernel follow each other on a stream. Tables change only while no slot is under
//! way.

#![allow(unsafe_code)]

mod compile;
mod errors;
mod found;
mod handles;
mod lost;
mod memory;
mod persistent;
mod served;
mod spans;
pub(crate) mod study;
mod waiting;

use self::errors::{failure, no_memory, not_loaded};
use self::found::can;
use self::handles::{Context, Event, Function, Stream};
use self::memory::{Region, Table};
use self::study::Graph;
use self::waiting::{drain, is_lost, is_under_way, until, write};
use crate::device::{Device, DeviceError, Geometry, Input, Parts, Setup, SlotOutput, Submission};
use crate::number::Number;
use crate::study::{GRAPH, SERIAL};
pub use compile::{Code, compile, compiler_version, needs};
use cudarc::driver::result::DriverError;
pub use found::{CudaFound, devices};
pub use persistent::CudaPersistent;
pub use spans::Spans;
use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::sync::Arc;

/// Threads of a block: a multiple of the 32 that run in step, and few enough that small batches spread over
/// the device.
const BLOCK: u32 = 128;

/// A kernel on a CUDA device.
pub struct Cuda {
    name: String,
    geometry: Geometry,
    setup: Setup,
    /// Something may be under way for ever, and whatever it uses is not given back.
    is_lost: bool,
    held: ManuallyDrop<Held>,
}

/// What batches work on and go by, given back in this order.
struct Held {
    slots: Vec<Slot>,
    tables: Vec<Table>,
    /// Behind what no slot waits for.
    last: Event,
    streams: Vec<Stream>,
    kernel: Function,
    context: Arc<Context>,
}

// SAFETY: handles of the driver may be used by any thread whose current context is theirs, and every method
// enters it.
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
    /// There is no compiler, the text does not build, there is no memory, or the device or its driver cannot
    /// what it is set up for.
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
        let context = Arc::new(Context::new(device)?);
        let kernel = Function::load(&context, code.image(), "run_packets");
        let kernel = kernel.map_err(|error| not_loaded(device, error))?;
        let last = Event::new(&context, false).map_err(failed("make an event"))?;
        let (slots, tables, streams) = (Vec::new(), Vec::new(), Vec::new());
        let mut made = Cuda {
            name: name.clone(),
            geometry,
            setup,
            is_lost: false,
            held: ManuallyDrop::new(Held { slots, tables, last, streams, kernel, context }),
        };
        for _ in 0..setup.submission.queues(geometry.slots) {
            let stream = Stream::new(&made.held.context).map_err(failed("make a stream"))?;
            made.held.streams.push(stream);
        }
        for number in 0..geometry.slots {
            let slot = made.slot(number % made.held.streams.len())?;
            made.held.slots.push(slot);
        }
        for _ in 0..geometry.tables {
            let table =
                Table::new(&made.held.context, 1).map_err(|error| no_memory(&name, error, "a table", 4))?;
            made.held.tables.push(table);
        }
        // The driver loads a kernel when it is first run; better now, over nothing, than with the first
        // packets.
        if geometry.slots > 0 {
            made.submit(0, 0)?;
            made.poll(0, true)?;
        }
        Ok(made)
    }

    fn slot(&self, stream: usize) -> Result<Slot, DeviceError> {
        let Geometry { packets, stride, columns, record_words, .. } = self.geometry;
        let event =
            || Event::new(&self.held.context, self.setup.timed).map_err(failure(&self.name, "make an event"));
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
        Region::new(&self.held.context, &self.held.streams[stream], length, self.setup.memory)
            .map_err(|error| no_memory(&self.name, error, what, bytes))
    }

    fn launch(&mut self, slot: usize, packets: usize) -> Result<(), DriverError> {
        self.held.context.enter()?;
        let is_graph = self.setup.submission == GRAPH && packets == self.geometry.packets;
        self.held.slots[slot].under_way = true;
        self.held.slots[slot].has_times = !is_graph;
        if is_graph {
            let graph = match self.held.slots[slot].graph.take() {
                Some(graph) => graph,
                None => {
                    let stream = &self.held.streams[self.held.slots[slot].stream];
                    Graph::record(&self.held.context, stream, || self.put(slot, packets, false))?
                }
            };
            let Held { slots, streams, .. } = &mut *self.held;
            let own = &mut slots[slot];
            own.graph.insert(graph).launch(&streams[own.stream])?;
        } else {
            self.put(slot, packets, self.setup.timed)?;
        }
        let own = &self.held.slots[slot];
        own.done.record(&self.held.streams[own.stream])
    }

    /// Puts the commands of a batch on the slot's stream.
    fn put(&self, slot: usize, packets: usize, timed: bool) -> Result<(), DriverError> {
        let Geometry { stride, columns: words, record_words, returns_bytes, .. } = self.geometry;
        let slot = &self.held.slots[slot];
        let stream = &self.held.streams[slot.stream];
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
        places.extend(self.held.tables.iter().map(Table::place));
        let mut number = packets as u32;
        let mut arguments: Vec<*mut c_void> =
            places.iter_mut().map(|place| (&raw mut *place).cast()).collect();
        arguments.insert(4, (&raw mut number).cast());
        let blocks = number.div_ceil(BLOCK).max(1);
        // SAFETY: the arguments are those of `run_packets`, in order and type, and are copied by the call;
        // the buffers hold what `packets` packets need, which the kernel does not go beyond, and none of them
        // goes before its stream is done.
        unsafe { self.held.kernel.launch(blocks, BLOCK, false, stream, &mut arguments) }?;
        time(2)?;
        slot.verdicts.take(stream, self.geometry.verdict_words(packets))?;
        slot.records.take(stream, packets * record_words)?;
        if returns_bytes {
            slot.bytes.take(stream, packets * stride)?;
        }
        Ok(())
    }

    /// Refuses a slot that the device is using, or could be.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        match self.held.slots[slot].under_way {
            _ if self.is_lost => Err(is_lost(&self.name)),
            true => Err(is_under_way(&self.name)),
            false => Ok(()),
        }
    }

    /// Waits until nothing is under way.
    fn settle(&mut self) -> Result<(), DeviceError> {
        (0..self.held.slots.len()).try_for_each(|slot| self.poll(slot, true).map(|_| ()))
    }
}

/// A kernel on a device as `setup` says, with the text for it: its entry point is `serve_packets` for
/// [`Submission::Persistent`], and `run_packets` for all others.
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

impl Device for Cuda {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        if self.held.tables[table].words() != words.len().max(1) {
            let made = Table::new(&self.held.context, words.len());
            self.held.tables[table] =
                made.map_err(|error| no_memory(&self.name, error, "a table", size_of_val(words)))?;
            // They know where the old one was.
            self.held.slots.iter_mut().for_each(|slot| slot.graph = None);
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        let Held { tables, last, streams, .. } = &mut *self.held;
        let written = write(&self.name, &tables[table], first, words, &streams[0], last);
        self.is_lost |= written.is_err();
        written
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.held.slots[slot];
        Ok(Input { bytes: slot.bytes.as_mut(), columns: slot.columns.as_mut() })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.at_rest(slot)?;
        self.launch(slot, packets.min(self.geometry.packets)).map_err(|error| {
            // Part of it may be under way all the same.
            let Held { slots, streams, last, .. } = &mut *self.held;
            self.is_lost |= drain(&self.name, &streams[slots[slot].stream], last).is_err();
            slots[slot].under_way = false;
            failure(&self.name, "start a batch")(error)
        })?;
        if self.setup.submission == SERIAL {
            self.poll(slot, true)?;
        }
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        if self.is_lost {
            return Err(is_lost(&self.name));
        }
        let slot = &mut self.held.slots[slot];
        if !slot.under_way {
            return Ok(true);
        }
        let over = match waits {
            true => until(&self.name, &slot.done, "run a batch").map(|()| true),
            false => slot.done.is_over().map_err(|error| failure(&self.name, "run a batch")(error)),
        };
        self.is_lost |= over.is_err();
        slot.under_way = !over.clone()?;
        over
    }

    fn give_up(self: Box<Self>, cause: &DeviceError) {
        if let DeviceError::Stalled { .. } = cause {
            self.held.context.lose();
        }
        // What is under way may still write to all that it was given.
        std::mem::forget(self);
    }

    fn parts(&self, slot: usize) -> Option<Parts> {
        let slot = &self.held.slots[slot];
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

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.at_rest(slot)?;
        let slot = &mut self.held.slots[slot];
        Ok(SlotOutput {
            bytes: slot.bytes.as_mut(),
            verdicts: slot.verdicts.as_mut(),
            records: slot.records.as_mut(),
        })
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        let Held { streams, last, .. } = &mut *self.held;
        // What is under way refers to the buffers, and keeps them where it does not come to an end.
        let rests = |stream| drain(&self.name, stream, last).is_ok();
        if !self.is_lost && streams.iter().all(rests) {
            // SAFETY: it is dropped once, here, and nothing that works on it is under way.
            unsafe { ManuallyDrop::drop(&mut self.held) };
        }
    }
}
