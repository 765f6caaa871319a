//! A persistent kernel on an OpenCL device: it takes slots from a ring of tickets, in memory that both sides
//! can access at any time.
//!
//! ```text
//!            submit: something is published                         stop, for a table or the end; enough slots; nothing for a while
//!  at rest ───────────────────────────────────► running (an event) ───────────────────────────────────────────────────────────┐
//!     ▲                                            ▲                                                                          │
//!     │                                            └── poll: a slot is not done although the kernel has ended                 │
//!     └───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It is one group of threads, as a driver for processors runs no more groups side by side than it has
//! threads, and a group that waits for one that never begins waits for ever. OpenCL has no clock, so a launch
//! is bounded by numbers, of slots and of times that it asks in vain, and by the host, which tells it to end
//! when its quantum is over and takes it for stalled when it has not done so a while later.

#![allow(unsafe_code)]

use super::flight::is_over;
use super::parts::{LAUNCH, Parts, Room, TABLES};
use super::serving::{Serving, can, instead};
use super::{OpenClDevice, failure};
use crate::device::{Device, DeviceError, FIRST_RUN, Geometry, Input, PATIENCE, Setup, SlotOutput, wait_for};
use crate::ring::{FIRST, OWN_WORDS, Publisher, Ring, RingShape, RingWorkers};
use crate::watch::{Notice, Watch};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_SVM_ATOMICS, CL_DEVICE_SVM_FINE_GRAIN_BUFFER};
use opencl3::event::Event;
use opencl3::kernel::Kernel;
use opencl3::program::Program;
use opencl3::types::cl_device_id;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A kernel that keeps running on an OpenCL device.
pub struct Persistent {
    name: Arc<str>,
    geometry: Geometry,
    publisher: Publisher,
    shape: RingShape,
    serving: Serving,
    pub(super) launches: u32,
    /// The launch that was started last, unless it has been seen to end.
    running: Option<Event>,
    watch: Watch,
    /// The first ticket that was not taken when that launch was started, and the first that was not handed
    /// over.
    begin: (u32, u32),
    /// Not given back where a launch may go on for ever.
    pub(super) parts: ManuallyDrop<Parts>,
    /// How long anything is waited for.
    pub(super) patience: Duration,
    is_lost: bool,
}

impl Persistent {
    /// Builds a kernel from its text, which has the entry point `serve_packets`, on a device. `setup` says
    /// mapped memory, and that the kernel keeps running; times of parts are not told.
    ///
    /// # Errors
    /// The text does not build, there is no memory, or the device or OpenCL cannot what is asked for.
    pub fn new(
        device: &OpenClDevice,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
        serving: Serving,
    ) -> Result<Persistent, DeviceError> {
        let name = device.name.clone();
        let shape = can(&name, &geometry, &setup.into(), &serving)?;
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
        let options = format!(
            "-cl-std=CL{}.0 -DGROUP={}{}",
            if is_2 { 2 } else { 3 },
            serving.threads,
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
            serving,
            launches: 0,
            running: None,
            watch: Watch::new(serving.quantum, serving.grace, Instant::now()),
            begin: (FIRST, FIRST),
            parts: ManuallyDrop::new(parts),
            patience: FIRST_RUN,
            is_lost: false,
        };
        let ring = made.ring();
        ring.clear(FIRST);
        RingWorkers::new(ring, made.parts.own.words()).clear(FIRST);
        // Some drivers finish a kernel when it is first run; better now, with nothing to do, than with the
        // first packets.
        made.start()?;
        made.end()?;
        made.patience = PATIENCE;
        Ok(made)
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(self.shape, self.parts.ring.words())
    }

    /// Whether the kernel has ended. If it runs, it is told to end when its time is over.
    ///
    /// # Errors
    /// It failed, does not come to its end, or has lost a slot.
    fn has_ended(&mut self) -> Result<bool, DeviceError> {
        let Some(event) = &self.running else { return Ok(true) };
        let failed = match is_over(event) {
            Ok(true) => {
                self.running = None;
                return self.nothing_lost().map(|()| true);
            }
            Ok(false) => {
                let has_begun = self.ring().has_begun(self.launches);
                match self.watch.look(has_begun, Instant::now()) {
                    Notice::Goes => return Ok(false),
                    Notice::Stop => {
                        self.ring().stop(true);
                        return Ok(false);
                    }
                    Notice::Stalled => DeviceError::Stalled {
                        device: self.name.to_string(),
                        milliseconds: self.watch.asked().as_millis() as u64,
                    },
                }
            }
            Err(error) => failure(&self.name, "run a batch")(error),
        };
        self.is_lost = true;
        Err(failed)
    }

    /// What is at rest when a launch has ended: what it took, and what was handed over before it was started
    /// unless it came to its number of slots.
    fn nothing_lost(&self) -> Result<(), DeviceError> {
        let (before, known) = self.begin;
        let taken = self.taken();
        let known = if taken.wrapping_sub(before) < self.serving.slots { known } else { taken };
        match self.publisher.lost(&self.ring(), known) {
            None => Ok(()),
            Some(slot) => Err(DeviceError::Failed {
                device: self.name.to_string(),
                doing: "run a batch",
                cause: format!("it lost slot {slot}: the kernel has ended without it"),
            }),
        }
    }

    /// The first ticket that the kernel has not taken.
    fn taken(&self) -> u32 {
        RingWorkers::new(self.ring(), self.parts.own.words()).taken()
    }

    /// Starts the kernel, which has ended.
    fn start(&mut self) -> Result<(), DeviceError> {
        // The next launch after the last number is 1.
        self.launches = self.launches.checked_add(1).unwrap_or(1);
        self.ring().stop(false);
        self.begin = (self.taken(), self.publisher.next());
        self.watch = Watch::new(self.serving.quantum, self.serving.grace, Instant::now());
        let Parts { kernel, queue, .. } = &*self.parts;
        // SAFETY: the number is that argument, the others have been set; there is one dimension. All memory
        // that the kernel knows is given back only after it has ended.
        let event = unsafe {
            kernel.set_arg(LAUNCH, &self.launches).and_then(|()| {
                queue.enqueue_nd_range_kernel(
                    kernel.get(),
                    1,
                    std::ptr::null(),
                    &self.serving.threads,
                    &self.serving.threads,
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
        self.watch.told();
        self.until(Persistent::has_ended)
    }

    /// Whether a slot is at rest, by its word alone.
    fn is_done(&mut self, slot: usize) -> bool {
        let ring = Ring::new(self.shape, self.parts.ring.words());
        let was = self.publisher.is_under_way(slot);
        let is_done = self.publisher.is_done(&ring, slot);
        if was && is_done {
            self.watch.goes_on();
        }
        is_done
    }

    /// Whether a slot is done. If it is not, the kernel runs.
    fn look(&mut self, slot: usize) -> Result<bool, DeviceError> {
        if self.is_done(slot) {
            return Ok(true);
        }
        self.not_lost("run a batch")?;
        if self.has_ended()? {
            // It may have been done between the two questions.
            if self.is_done(slot) {
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

    /// Refuses what nobody does any more, or may be in the way of what is under way for ever.
    fn not_lost(&self, doing: &'static str) -> Result<(), DeviceError> {
        match self.is_lost {
            false => Ok(()),
            true => Err(DeviceError::Failed {
                device: self.name.to_string(),
                doing,
                cause: "it has not come to the end of another one".to_owned(),
            }),
        }
    }

    /// Refuses a slot that the device is using, or could be.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        self.not_lost("lend a batch")?;
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
            // SAFETY: as for the first table in this place; the kernel has ended, and begins with the new
            // one.
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
        // What fails here leaves the slot with whoever wanted to hand it over.
        if self.has_ended()? {
            self.start()?;
        }
        let packets = packets.min(self.geometry.packets) as u16;
        let ring = Ring::new(self.shape, self.parts.ring.words());
        self.publisher.publish(&ring, slot, packets);
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        if waits {
            self.until(|device| device.look(slot))?;
            return Ok(true);
        }
        self.look(slot)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.at_rest(slot)?;
        let Geometry { packets, stride, record_words, .. } = self.geometry;
        let words = self.geometry.verdict_words(packets);
        let Parts { bytes, verdicts, records, .. } = &mut *self.parts;
        // SAFETY: as for the input.
        unsafe {
            Ok(SlotOutput {
                bytes: bytes.part(slot * packets * stride, packets * stride),
                verdicts: verdicts.part(slot * words, words),
                records: records.part(slot * packets * record_words, packets * record_words),
            })
        }
    }
}

impl Drop for Persistent {
    fn drop(&mut self) {
        // What is under way refers to the memory. A kernel that does not end keeps it, and nothing else waits
        // for it.
        if !self.is_lost && self.end().is_ok() {
            // SAFETY: they are dropped once.
            unsafe { ManuallyDrop::drop(&mut self.parts) };
        } else {
            std::mem::forget(self.running.take());
        }
    }
}
