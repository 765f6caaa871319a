//! A kernel that keeps running on an OpenCL device and takes slots from a ring of tickets, in memory that both sides reach at any time.
//!
//! ```text
//!            submit: something is published                         stop, for a table or the end; enough slots; nothing for a while
//!  at rest ───────────────────────────────────► running (an event) ───────────────────────────────────────────────────────────┐
//!     ▲                                            ▲                                                                          │
//!     │                                            └── poll: a slot is not done although the kernel has ended                 │
//!     └───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It is one group of threads, as a driver for processors runs no more groups side by side than it has threads, and a group that waits for one
//! that never begins waits for ever. OpenCL has no clock, so a launch is bounded by numbers: of slots, and of times that it asks in vain.

#![allow(unsafe_code)]

use super::flight::is_over;
use super::serving::{MOST, Serving, can, instead};
use super::svm::Svm;
use super::{Found, failure, no_memory};
use crate::device::{Device, DeviceError, Geometry, Input, Output, PATIENCE, Setup, wait_for};
use crate::hermes::ring::{FIRST, OWN_WORDS, Publisher, Ring, Shape, Workers};
use crate::pages::Number;
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_SVM_ATOMICS, CL_DEVICE_SVM_FINE_GRAIN_BUFFER};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::program::Program;
use opencl3::types::cl_device_id;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

/// The arguments of `serve_packets` that change, and where its tables begin.
const LAUNCH: u32 = 8;
const TABLES: u32 = 11;

/// A kernel that keeps running on an OpenCL device.
pub struct Persistent {
    name: Arc<str>,
    geometry: Geometry,
    publisher: Publisher,
    shape: Shape,
    /// Of the group.
    threads: usize,
    launches: u32,
    /// The launch that was started last, unless it has been seen to end.
    running: Option<Event>,
    /// Not given back where a launch may go on for ever.
    parts: ManuallyDrop<Parts>,
    /// How long anything is waited for.
    pub(super) patience: Duration,
    is_lost: bool,
}

/// What the kernel uses.
struct Parts {
    bytes: Svm<u8>,
    columns: Svm<u32>,
    verdicts: Svm<u32>,
    records: Svm<u32>,
    ring: Svm<u32>,
    own: Svm<u32>,
    tables: Vec<Svm<u32>>,
    kernel: Kernel,
    _program: Program,
    queue: CommandQueue,
    context: Arc<Context>,
}

impl Persistent {
    /// Builds a kernel from its text, which has the entry point `serve_packets`, on a device. `setup` says mapped memory, and that the kernel
    /// keeps running; times of parts are not told.
    ///
    /// # Errors
    /// The text does not build, there is no memory, or the device or OpenCL cannot what is asked for.
    pub fn new(
        device: &Found,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
        serving: Serving,
    ) -> Result<Persistent, DeviceError> {
        let name = device.name.clone();
        let shape = can(&name, &geometry, &setup.into())?;
        let handle = opencl3::device::Device::new(device.id as cl_device_id);
        let wanted = CL_DEVICE_SVM_FINE_GRAIN_BUFFER | CL_DEVICE_SVM_ATOMICS;
        if handle.svm_mem_capability() & wanted != wanted {
            return Err(instead(format!(
                "{name} has no memory that it and the processor use at the same time"
            )));
        }
        let all = geometry.slots.saturating_mul(geometry.slot_bytes());
        if all as u64 > device.memory {
            return Err(DeviceError::Memory { device: name, what: "batches", bytes: all });
        }
        let failed = |doing| failure(&name, doing);
        let context = Arc::new(Context::from_device(&handle).map_err(failed("open it"))?);
        let queue = CommandQueue::create_default(&context, 0).map_err(failed("make a queue"))?;
        // Atomics of OpenCL C have memory orders from 2.0 on.
        let is_2 = handle.version().is_ok_and(|version| version.starts_with("OpenCL 2."));
        let threads = serving.threads.clamp(1, MOST);
        let options = format!(
            "-cl-std=CL{}.0 -DGROUP={threads}{}",
            if is_2 { 2 } else { 3 },
            if device.accelerator { "" } else { " -DON_PROCESSOR" }
        );
        let program = Program::create_and_build_from_source(&context, text, &options)
            .map_err(|log| DeviceError::Build { device: name.clone(), log })?;
        let kernel = Kernel::create(&program, "serve_packets").map_err(failed("find the kernel"))?;
        let Geometry { packets, stride, columns, record_words, slots, tables, .. } = geometry;
        let memory = Room { context: &context, name: &name };
        let parts = Parts {
            bytes: memory.take(slots * packets * stride, "packets")?,
            columns: memory.take(slots * packets * columns, "columns")?,
            verdicts: memory.take(slots * geometry.verdict_words(packets), "verdicts")?,
            records: memory.take(slots * packets * record_words, "records")?,
            ring: memory.take(shape.words(), "a ring")?,
            own: memory.take(OWN_WORDS, "a ring")?,
            tables: (0..tables).map(|_| memory.take(1, "a table")).collect::<Result<_, _>>()?,
            kernel,
            _program: program,
            queue,
            context: Arc::clone(&context),
        };
        parts.arguments(shape, packets, serving).map_err(failed("set the kernel's arguments"))?;
        let mut made = Persistent {
            name: name.into(),
            geometry,
            publisher: Publisher::new(shape, FIRST),
            shape,
            threads,
            launches: 0,
            running: None,
            parts: ManuallyDrop::new(parts),
            patience: PATIENCE,
            is_lost: false,
        };
        let ring = made.ring();
        ring.clear(FIRST);
        Workers::new(ring, made.parts.own.words()).clear(FIRST);
        // Some drivers finish a kernel when it is first run; better now, with nothing to do, than with the first packets.
        made.ring().stop(true);
        made.start()?;
        made.end()?;
        Ok(made)
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(self.shape, self.parts.ring.words())
    }

    /// Whether the kernel has ended.
    fn has_ended(&mut self) -> Result<bool, DeviceError> {
        let Some(event) = &self.running else { return Ok(true) };
        match is_over(event) {
            Ok(true) => self.running = None,
            Ok(false) => {}
            Err(error) => {
                self.is_lost = true;
                return Err(failure(&self.name, "run a batch")(error));
            }
        }
        Ok(self.running.is_none())
    }

    /// Starts the kernel, which has ended.
    fn start(&mut self) -> Result<(), DeviceError> {
        // The next launch after the last number is 1.
        self.launches = self.launches.checked_add(1).unwrap_or(1);
        let Parts { kernel, queue, .. } = &*self.parts;
        // SAFETY: the number is that argument, the others have been set; there is one dimension. All memory that the kernel knows is given
        // back only after it has ended.
        let event = unsafe {
            kernel.set_arg(LAUNCH, &self.launches).and_then(|()| {
                queue.enqueue_nd_range_kernel(
                    kernel.get(),
                    1,
                    std::ptr::null(),
                    &self.threads,
                    &self.threads,
                    &[],
                )
            })
        };
        let flushed = event.and_then(|event| {
            self.running = Some(event);
            queue.flush()
        });
        flushed.map_err(|error| {
            self.is_lost = self.running.is_some();
            failure(&self.name, "start a kernel")(error)
        })
    }

    /// Waits until something is so.
    fn until(
        &mut self,
        mut is_so: impl FnMut(&mut Self) -> Result<bool, DeviceError>,
    ) -> Result<(), DeviceError> {
        let name = Arc::clone(&self.name);
        let waited = wait_for(&name, self.patience, || is_so(self));
        self.is_lost |= waited.is_err();
        waited
    }

    /// Lets the kernel run what is published, and end.
    fn end(&mut self) -> Result<(), DeviceError> {
        self.ring().stop(true);
        self.until(Persistent::has_ended)?;
        self.ring().stop(false);
        Ok(())
    }

    /// Whether a slot is done. If it is not, the kernel runs.
    fn look(&mut self, slot: usize) -> Result<bool, DeviceError> {
        let ring = Ring::new(self.shape, self.parts.ring.words());
        if self.publisher.is_done(&ring, slot) {
            return Ok(true);
        }
        if self.has_ended()? {
            let ring = Ring::new(self.shape, self.parts.ring.words());
            // It may have been done between the two questions.
            if self.publisher.is_done(&ring, slot) {
                return Ok(true);
            }
            self.start()?;
        }
        Ok(false)
    }

    /// Waits until nothing is under way and the kernel has ended.
    fn settle(&mut self) -> Result<(), DeviceError> {
        for slot in 0..self.geometry.slots {
            self.poll(slot, true)?;
        }
        self.end()
    }

    /// Refuses a slot that the device is using.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        match self.publisher.is_under_way(slot) {
            false => Ok(()),
            true => Err(DeviceError::Failed {
                device: self.name.to_string(),
                doing: "lend a batch",
                cause: "it is under way".to_owned(),
            }),
        }
    }
}

/// Where memory comes from.
struct Room<'a> {
    context: &'a Arc<Context>,
    name: &'a str,
}

impl Room<'_> {
    fn take<T: Number>(&self, length: usize, what: &'static str) -> Result<Svm<T>, DeviceError> {
        Svm::new(self.context, length).map_err(|error| {
            // Drivers do not say why they give no shared memory.
            match no_memory(self.name, error, what, length * size_of::<T>()) {
                DeviceError::Failed { device, .. } => {
                    DeviceError::Memory { device, what, bytes: length * size_of::<T>() }
                }
                error => error,
            }
        })
    }
}

impl Parts {
    /// Sets all arguments but the number of the launch.
    fn arguments(&self, shape: Shape, packets: usize, serving: Serving) -> opencl3::Result<()> {
        let Parts { bytes, columns, verdicts, records, ring, own, .. } = self;
        let places =
            [bytes.place(), columns.place(), verdicts.place(), records.place(), ring.place(), own.place()];
        let tables = self.tables.iter().map(Svm::place);
        for (place, memory) in (0..).zip(places).chain((TABLES..).zip(tables)) {
            // SAFETY: the arguments are those of `serve_packets`, in order and type, and live until the kernel has ended.
            unsafe { self.kernel.set_arg_svm_pointer(place, memory) }?;
        }
        let numbers = [shape.entries() as u32, packets as u32, 0, serving.slots, serving.asks];
        for (place, number) in (6..).zip(numbers) {
            // SAFETY: they are of this type there.
            unsafe { self.kernel.set_arg(place, &number) }?;
        }
        Ok(())
    }
}

impl Device for Persistent {
    fn name(&self) -> String {
        self.name.to_string()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        let Parts { tables, kernel, context, .. } = &mut *self.parts;
        if tables[table].length() != words.len().max(1) {
            let made = Room { context, name: &self.name }.take(words.len(), "a table")?;
            // SAFETY: as for the first table in this place; the kernel has ended, and begins with the new one.
            unsafe { kernel.set_arg_svm_pointer(TABLES + table as u32, made.place()) }
                .map_err(failure(&self.name, "set the kernel's arguments"))?;
            tables[table] = made;
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        let memory = &mut self.parts.tables[table];
        if first.saturating_add(words.len()) > memory.length() {
            let cause = format!("it has no word {}", first.saturating_add(words.len()) - 1);
            return Err(DeviceError::Failed {
                device: self.name.to_string(),
                doing: "change a table",
                cause,
            });
        }
        // SAFETY: the kernel has ended.
        unsafe { memory.part(first, words.len()) }.copy_from_slice(words);
        Ok(())
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        let Geometry { packets, stride, columns: count, .. } = self.geometry;
        let Parts { bytes, columns, .. } = &mut *self.parts;
        // SAFETY: the kernel uses parts of a slot only from when it is published until it is done.
        let (bytes, columns) = unsafe {
            let bytes = bytes.part(slot * packets * stride, packets * stride);
            (bytes, columns.part(slot * packets * count, packets * count))
        };
        Ok(Input { bytes, columns })
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.at_rest(slot)?;
        let packets = packets.min(self.geometry.packets) as u16;
        let ring = Ring::new(self.shape, self.parts.ring.words());
        self.publisher.publish(&ring, slot, packets);
        if self.has_ended()? { self.start() } else { Ok(()) }
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        if waits {
            self.until(|device| device.look(slot))?;
            return Ok(true);
        }
        self.look(slot)
    }

    fn output(&mut self, slot: usize) -> Result<Output<'_>, DeviceError> {
        self.at_rest(slot)?;
        let Geometry { packets, stride, record_words, .. } = self.geometry;
        let words = self.geometry.verdict_words(packets);
        let Parts { bytes, verdicts, records, .. } = &mut *self.parts;
        // SAFETY: as for the input.
        unsafe {
            Ok(Output {
                bytes: bytes.part(slot * packets * stride, packets * stride),
                verdicts: verdicts.part(slot * words, words),
                records: records.part(slot * packets * record_words, packets * record_words),
            })
        }
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        // What is under way refers to the memory. A kernel that does not end keeps it, and nothing else waits for it.
        if !self.is_lost && self.end().is_ok() {
            // SAFETY: they are dropped once.
            unsafe { ManuallyDrop::drop(&mut self.parts) };
        } else {
            std::mem::forget(self.running.take());
        }
    }
}
