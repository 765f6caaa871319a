//! A persistent kernel on a CUDA device: it takes slots from a ring in the host's memory, so nothing is
//! launched for a slot, and one warp runs each slot.
//!
//! ```text
//!            launch                                 it ends by itself, or is asked to
//!  rests ──────────────► runs: the dispatcher reads ──────────────────────► rests     and is launched again by the next slot, or by whoever
//!                        the ring, workers run slots                                  waits for one that was published too late
//! ```
//!
//! Everything that a driver might do only when no kernel runs — code, memory, streams — is done before the
//! kernel runs, and undone after: there is no call of the driver between but asking whether it has ended.
//! Tables change while it rests. As many blocks run as the device has room for at once, so no warp ever waits
//! for one that has not begun. A kernel that does not end when it is asked to is left to itself, with all
//! that it may still write to.

use super::compile;
use super::errors::{failure, no_memory, not_loaded};
use super::found::CudaFound;
use super::handles::{Context, Event, Function, Stream};
use super::memory::Table;
use super::served::Served;
use super::spans::{Spans, WARP, can};
use super::waiting::{is_lost, is_under_way, write};
use crate::device::{Device, DeviceError, Geometry, Input, Setup, SlotOutput, wait};
use crate::ring::{FIRST, Publisher, Ring, RingShape, RingWorkers};
use crate::watch::{GRACE, Notice, Watch};
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

/// Who asks for a slot looks so often whether the kernel still runs; in between it only looks at the slot's
/// word.
const LOOK: Duration = Duration::from_micros(20);

/// A kernel on a CUDA device that keeps running.
pub struct CudaPersistent {
    name: String,
    geometry: Geometry,
    shape: RingShape,
    publisher: Publisher,
    spans: Spans,
    /// Blocks of a warp each; the first dispatches.
    blocks: u32,
    together: bool,
    /// The last one's number, from 1 on.
    launch: u32,
    /// Whether it has not been seen to end.
    runs: bool,
    /// It may run for ever, and whatever it uses is not given back.
    is_lost: bool,
    looked: Instant,
    /// What is known of the last launch, and the first ticket that it may not know of.
    watch: Watch,
    known: u32,
    held: ManuallyDrop<Served>,
}

// SAFETY: handles of the driver may be used by any thread whose current context is theirs, and every method
// enters it.
unsafe impl Send for CudaPersistent {}

impl CudaPersistent {
    /// Builds a kernel from its text, which has the entry point `serve_packets`, on a device.
    ///
    /// # Errors
    /// There is no compiler, the text does not build, there is no memory, or the device or its driver cannot
    /// what it is set up for.
    pub fn new(
        device: &CudaFound,
        text: &str,
        geometry: Geometry,
        setup: impl Into<Setup>,
        spans: Spans,
    ) -> Result<CudaPersistent, DeviceError> {
        let memory = setup.into().memory;
        let shape = can(device, memory, &geometry, spans)?;
        let code = compile(text, device.capability)?;
        let name = device.full_name();
        let failed = |doing| failure(&name, doing);
        let context = Arc::new(Context::new(device)?);
        let kernel = Function::load(&context, code.image(), "serve_packets");
        let kernel = kernel.map_err(|error| not_loaded(device, error))?;
        let at_once = kernel.blocks_at_once(WARP as u32).map_err(failed("ask how many warps run at once"))?;
        // One warp dispatches, and more workers than slots would find nothing to do.
        let blocks =
            (u64::from(at_once) * u64::from(device.processors)).min(geometry.slots as u64 + 1) as u32;
        if blocks < 2 {
            let what = format!(
                "{name} does not run two warps of this program at once, which a kernel that keeps running takes"
            );
            return Err(DeviceError::missing(&what, "submit to streams"));
        }
        let stream = Stream::new(&context).map_err(failed("make a stream"))?;
        let ended = Event::new(&context, false).map_err(failed("make an event"))?;
        let held = Served::new(&name, memory, shape, &geometry, stream, ended, kernel)?;
        let ring = Ring::new(shape, held.ring.shared());
        ring.clear(FIRST);
        let own: Vec<AtomicU32> = (0..shape.republishing_words()).map(|_| AtomicU32::new(0)).collect();
        RingWorkers::republishing(ring, &own).clear(FIRST);
        let own: Vec<u32> = own.into_iter().map(AtomicU32::into_inner).collect();
        let written = write(&name, &held.own, 0, &own, &held.stream, &held.ended);
        let mut made = CudaPersistent {
            name: name.clone(),
            geometry,
            shape,
            publisher: Publisher::new(shape, FIRST),
            spans,
            blocks,
            together: device.together,
            launch: 0,
            runs: false,
            is_lost: false,
            looked: Instant::now(),
            watch: Watch::new(spans.quantum, GRACE, Instant::now()),
            known: FIRST,
            held: ManuallyDrop::new(held),
        };
        made.unless_lost(written)?;
        // The driver loads a kernel when it is first run; better now, over nothing, than with the first
        // packets.
        made.begin()?;
        made.end()?;
        Ok(made)
    }

    /// How often the kernel was started, the first time over nothing.
    pub fn launches(&self) -> u32 {
        self.launch
    }

    fn ring(&self) -> Ring<'_> {
        Ring::new(self.shape, self.held.ring.shared())
    }

    /// Whatever does not go as it should here leaves nobody knowing what still runs.
    fn unless_lost<T>(&mut self, done: Result<T, DeviceError>) -> Result<T, DeviceError> {
        self.is_lost |= done.is_err();
        done
    }

    /// Starts the kernel, which rests.
    fn begin(&mut self) -> Result<(), DeviceError> {
        if self.is_lost {
            return Err(is_lost(&self.name));
        }
        self.launch = self.launch.wrapping_add(1).max(1);
        self.ring().stop(false);
        let held = &*self.held;
        let nanoseconds = |span: Duration| u32::try_from(span.as_nanos()).unwrap_or(u32::MAX);
        let numbers = [
            self.shape.entries() as u32,
            self.geometry.packets as u32,
            self.launch,
            nanoseconds(self.spans.quantum),
            nanoseconds(self.spans.idle),
        ];
        // SAFETY: its text was asked for with that entry point, for a geometry of so many tables; what it
        // works on goes, or makes place for another table, only after it has been seen to end.
        let begun = unsafe { held.launch(self.blocks, WARP as u32, self.together, numbers) };
        let failed = failure(&self.name, "start a kernel");
        if let Err(error) = begun {
            // Nothing has begun; whether the device is lost is what this says.
            self.is_lost |= held.ended.is_over().is_err();
            return Err(failed(error));
        }
        self.runs = true;
        if let Err(error) = held.ended.record(&held.stream) {
            // It runs, and nothing will say when it has ended.
            held.context.lose();
            self.is_lost = true;
            return Err(failed(error));
        }
        self.looked = Instant::now();
        self.watch = Watch::new(self.spans.quantum, GRACE, self.looked);
        self.known = self.publisher.next();
        Ok(())
    }

    /// Whether everything that was started has ended.
    fn is_over(&mut self) -> Result<bool, DeviceError> {
        if self.is_lost {
            return Err(is_lost(&self.name));
        }
        let over = self.ask();
        self.unless_lost(over)
    }

    /// Asks the driver whether the kernel has ended, and the watch what is to be done if it has not.
    fn ask(&mut self) -> Result<bool, DeviceError> {
        // Whoever asks often makes no sentence that nobody reads.
        if self.held.ended.is_over().map_err(|error| failure(&self.name, "run a batch")(error))? {
            let Some(slot) = self.publisher.lost(&self.ring(), self.known) else { return Ok(true) };
            let cause = format!("its kernel has ended, and has not run slot {slot}");
            return Err(DeviceError::Failed { device: self.name.clone(), doing: "run a batch", cause });
        }
        let has_begun = self.ring().has_begun(self.launch);
        match self.watch.look(has_begun, Instant::now()) {
            Notice::Goes => {}
            Notice::Stop => self.ring().stop(true),
            Notice::Stalled => {
                self.held.context.lose();
                let milliseconds = self.watch.asked().as_millis() as u64;
                return Err(DeviceError::Stalled { device: self.name.clone(), milliseconds });
            }
        }
        Ok(false)
    }

    /// Whether a slot is done; if it is not, the kernel runs afterwards.
    fn is_done(&mut self, slot: usize) -> Result<bool, DeviceError> {
        let ring = Ring::new(self.shape, self.held.ring.shared());
        let was_under_way = self.publisher.is_under_way(slot);
        if self.publisher.is_done(&ring, slot) {
            if was_under_way {
                self.watch.goes_on();
            }
            return Ok(true);
        }
        if self.looked.elapsed() >= LOOK {
            self.look()?;
        }
        Ok(false)
    }

    /// Looks whether the kernel has ended, and starts it again if something is under way all the same.
    fn look(&mut self) -> Result<(), DeviceError> {
        self.looked = Instant::now();
        if self.runs {
            self.runs = !self.is_over()?;
        }
        if !self.runs && self.publisher.under_way() > 0 {
            self.begin()?;
        }
        Ok(())
    }

    /// Lets the kernel end, and waits until it has.
    fn end(&mut self) -> Result<(), DeviceError> {
        if self.runs {
            self.ring().stop(true);
            self.watch.told();
            let name = self.name.clone();
            let ended = wait(&name, || self.is_over());
            if let Err(DeviceError::Stalled { .. }) = ended {
                self.held.context.lose();
            }
            self.unless_lost(ended)?;
            self.runs = false;
        }
        Ok(())
    }

    /// Waits until nothing is under way and the kernel rests.
    fn settle(&mut self) -> Result<(), DeviceError> {
        for slot in 0..self.geometry.slots {
            self.poll(slot, true)?;
        }
        self.end()
    }

    /// Refuses a slot that the device is using, or could be.
    fn at_rest(&self, slot: usize) -> Result<(), DeviceError> {
        match self.publisher.is_under_way(slot) {
            _ if self.is_lost => Err(is_lost(&self.name)),
            true => Err(is_under_way(&self.name)),
            false => Ok(()),
        }
    }

    /// A slot that is at rest.
    fn slot(&mut self, slot: usize) -> (Input<'_>, &mut [u32], &mut [u32]) {
        let Geometry { packets, stride, columns, record_words, .. } = self.geometry;
        let words = self.geometry.verdict_words(packets);
        let held = &mut *self.held;
        // SAFETY: the kernel uses parts of a slot only from when it is published until it is done, which
        // nobody does as long as this is borrowed.
        unsafe {
            let bytes = held.bytes.part(slot * packets * stride, packets * stride);
            let columns = held.columns.part(slot * packets * columns, packets * columns);
            let records = held.records.part(slot * packets * record_words, packets * record_words);
            (Input { bytes, columns }, held.verdicts.part(slot * words, words), records)
        }
    }
}

impl Device for CudaPersistent {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    fn workers(&self) -> usize {
        self.blocks as usize - 1
    }

    fn upload(&mut self, table: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        if self.held.tables[table].words() != words.len().max(1) {
            let made = Table::new(&self.held.context, words.len());
            let made = made.map_err(|error| no_memory(&self.name, error, "a table", size_of_val(words)))?;
            self.held.tables[table] = made;
        }
        self.patch(table, 0, words)
    }

    fn patch(&mut self, table: usize, first: usize, words: &[u32]) -> Result<(), DeviceError> {
        self.settle()?;
        let Served { tables, stream, ended, .. } = &*self.held;
        let written = write(&self.name, &tables[table], first, words, stream, ended);
        self.unless_lost(written)
    }

    fn input(&mut self, slot: usize) -> Result<Input<'_>, DeviceError> {
        self.at_rest(slot)?;
        Ok(self.slot(slot).0)
    }

    fn submit(&mut self, slot: usize, packets: usize) -> Result<(), DeviceError> {
        self.at_rest(slot)?;
        // Whoever comes first after a rest would find out late that the kernel has ended meanwhile.
        if self.runs && self.publisher.under_way() == 0 {
            self.look()?;
        }
        if !self.runs {
            self.begin()?;
        }
        let packets = packets.min(self.geometry.packets) as u16;
        let ring = Ring::new(self.shape, self.held.ring.shared());
        self.publisher.publish(&ring, slot, packets);
        Ok(())
    }

    fn poll(&mut self, slot: usize, waits: bool) -> Result<bool, DeviceError> {
        let is_done = self.is_done(slot)?;
        if is_done || !waits {
            return Ok(is_done);
        }
        let name = self.name.clone();
        let waited = wait(&name, || self.is_done(slot));
        if let Err(DeviceError::Stalled { .. }) = waited {
            self.held.context.lose();
        }
        self.unless_lost(waited).map(|()| true)
    }

    fn output(&mut self, slot: usize) -> Result<SlotOutput<'_>, DeviceError> {
        self.at_rest(slot)?;
        let (input, verdicts, records) = self.slot(slot);
        Ok(SlotOutput { bytes: input.bytes, verdicts, records })
    }

    fn give_up(self: Box<Self>, cause: &DeviceError) {
        if let DeviceError::Stalled { .. } = cause {
            self.held.context.lose();
        }
        // The kernel may still write to all that it was given.
        std::mem::forget(self);
    }
}

impl Drop for CudaPersistent {
    fn drop(&mut self) {
        if !self.is_lost && self.end().is_ok() {
            // SAFETY: it is dropped once, here, and the kernel that works on it has ended.
            unsafe { ManuallyDrop::drop(&mut self.held) };
        }
    }
}
