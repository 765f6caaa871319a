//! The back end that runs a program on a device: it submits packets to the device, and commits their results
//! in order of arrival. The host runs what the device cannot.
//!
//! Without a device queue, the back end submits each batch and waits for its results. A device queue
//! (`crate::device_queue`) submits many batches ahead of time and runs each batch when its turn comes.
//!
//! A device that fails is given up. Nothing of the packets in flight has been committed, so the host runs
//! them, and all packets behind them.

#[cfg(test)]
mod tests;

use crate::program::{ImageChanges, ImageUpdate, Offload, Whole};
use exec::kernel::{Dialect, Kernel, Twin};
use exec::{
    AsyncBackend, Backend, BackendKind, Draft, Inspect, Measured, Observer, OnDevice, Outputs,
    ProgramControl, QueueDepth, StageClock, SubmitOutcome,
};
use gpu::{
    CudaFound, Device, DeviceError, Geometry, Host, HostLane, HostWarp, OpenClDevice, Setup, Submission,
};
use ir::Program;
use packet::batch::Batch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// A program whose packets a device runs.
pub struct Offloaded {
    offload: Offload,
    name: String,
    device: Option<Box<dyn Device>>,
    failure: Option<DeviceError>,
    /// The clock by which a device counts as stalled.
    now: Box<dyn Fn() -> Instant + Send>,
    /// How long a device may need for packets until it counts as stalled.
    patience: Duration,
    depth: QueueDepth,
    /// Whether packets are submitted before they are run. Otherwise this back end submits each batch itself
    /// when it is run.
    is_asynchronous: bool,
    /// Submitted packets that have not been committed yet; the oldest are the first.
    begun: VecDeque<Begun>,
    /// The free slots of the device.
    free: Vec<usize>,
    /// How many more times packets stay on the host before a changed table is copied to the device again.
    pause: u32,
    /// The next value of `pause`, after another change of a table: twice the last one.
    next_pause: u32,
}

/// Packets in a slot of the device.
#[derive(Clone, Copy, Debug)]
struct Begun {
    slot: usize,
    packets: usize,
    /// How many of these packets have been run.
    run: usize,
    /// How long the device has been polled for these packets without success while they were the oldest ones,
    /// and when it was polled last.
    waited: Duration,
    asked: Instant,
}

/// The largest `pause`, if tables keep changing.
const LONGEST_PAUSE: u32 = 64;
/// If a device needs longer than this for packets, it counts as stalled, whatever its driver says; a driver
/// might wait much longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// The most that counts as waiting between two polls: if the thread was suspended meanwhile, that time does
/// not count.
const QUESTION: Duration = Duration::from_millis(10);
/// How long the host polls without a pause while it waits; after that it sleeps between polls.
const AWAKE: Duration = Duration::from_micros(200);
const NAP: Duration = Duration::from_micros(20);

/// The room that a device must have to run a kernel with so many packets in a slot.
pub fn geometry(kernel: &Kernel, packets: usize, slots: usize) -> Geometry {
    let plan = &kernel.plan;
    Geometry {
        packets,
        stride: plan.stride as usize,
        columns: plan.columns.len(),
        verdict_bits: plan.results.back.bits() as usize,
        record_words: plan.record_words as usize,
        returns_bytes: plan.writes,
        slots,
        tables: plan.tables.len(),
    }
}

/// The text of a kernel, for this kind of submission to the device.
pub fn text(kernel: &Kernel, dialect: Dialect, submission: Submission) -> String {
    match submission {
        Submission::Persistent => kernel.persistent_text(dialect),
        _ => kernel.text(dialect),
    }
}

/// Copies changed tables to the device. No packets may be in flight.
///
/// # Errors
/// A table is too large, or the device fails.
pub fn renew<D: Device + ?Sized>(offload: &mut Offload, device: &mut D) -> Result<(), DeviceError> {
    let stale: Vec<usize> = offload.stale().collect();
    stale.into_iter().try_for_each(|table| {
        match offload.table_update(table).map_err(|error| DeviceError::Table(error.to_string()))? {
            ImageUpdate::Whole(words) => device.upload(table, &words),
            ImageUpdate::Parts(parts) => {
                parts.iter().try_for_each(|(first, words)| device.patch(table, *first, words))
            }
        }
    })
}

/// The host device: a kernel's twin on threads of this machine.
///
/// # Errors
/// The machine gives no thread.
pub fn host(kernel: &Kernel, program: &Program, ports: u16, geometry: Geometry) -> Result<Host, DeviceError> {
    Host::new(Box::new(Lanes(Twin::new(kernel, program, ports))), geometry, None)
}

/// The twin in the form that the host device runs.
struct Lanes(Twin);

impl HostWarp for Lanes {
    fn run(&self, lane: HostLane<'_>, tables: &[Arc<Vec<u32>>]) -> u32 {
        let tables: Vec<&[u32]> = tables.iter().map(|words| words.as_slice()).collect();
        self.0.run(lane.bytes, lane.all, lane.columns, lane.record, &tables)
    }
}

impl Offloaded {
    /// Puts a program on a device that `open` makes for its kernel. With `room`, packets can be submitted
    /// before they are run.
    ///
    /// # Errors
    /// `open` fails.
    pub fn new(
        offload: Offload,
        depth: QueueDepth,
        open: impl FnOnce(&Kernel, Geometry) -> Result<Box<dyn Device>, DeviceError>,
    ) -> Result<Offloaded, DeviceError> {
        let depth = QueueDepth { packets: depth.packets.max(1), device_batches: depth.device_batches.max(1) };
        let device = open(offload.kernel(), geometry(offload.kernel(), depth.packets, depth.device_batches))?;
        Ok(Offloaded {
            offload,
            name: device.name(),
            device: Some(device),
            failure: None,
            now: Box::new(Instant::now),
            patience: PATIENCE,
            depth,
            is_asynchronous: false,
            begun: VecDeque::with_capacity(depth.device_batches),
            free: (0..depth.device_batches).collect(),
            pause: 0,
            next_pause: 1,
        })
    }

    /// The same back end with another time after which a device counts as stalled, as for one that threads of
    /// a busy machine imitate.
    pub fn with_patience(self, patience: Duration) -> Offloaded {
        Offloaded { patience, ..self }
    }

    /// The same back end with another clock, by which a device counts as stalled. Without this, the clock is
    /// that of the system.
    pub fn by_clock(self, now: impl Fn() -> Instant + Send + 'static) -> Offloaded {
        Offloaded { now: Box::new(now), ..self }
    }

    /// Puts a program on an OpenCL device.
    ///
    /// # Errors
    /// The kernel does not build, or there is no memory.
    pub fn on_opencl(
        offload: Offload,
        device: &OpenClDevice,
        setup: impl Into<Setup>,
        depth: QueueDepth,
    ) -> Result<Offloaded, DeviceError> {
        let setup = setup.into();
        Offloaded::new(offload, depth, |kernel, geometry| {
            gpu::open_opencl(device, &text(kernel, Dialect::OpenCl, setup.submission), geometry, setup)
        })
    }

    /// Puts a program on a CUDA device.
    ///
    /// # Errors
    /// There is no compiler, the kernel does not build, or there is no memory.
    pub fn on_cuda(
        offload: Offload,
        device: &CudaFound,
        setup: impl Into<Setup>,
        depth: QueueDepth,
    ) -> Result<Offloaded, DeviceError> {
        let setup = setup.into();
        Offloaded::new(offload, depth, |kernel, geometry| {
            gpu::open_cuda(device, &text(kernel, Dialect::Cuda, setup.submission), geometry, setup)
        })
    }

    /// Puts a program on the host device, with one thread less than the machine has cores; `ports` is the
    /// number of ports with which the program was loaded.
    ///
    /// # Errors
    /// The machine gives no thread.
    pub fn on_host(
        offload: Offload,
        program: &Program,
        ports: u16,
        depth: QueueDepth,
    ) -> Result<Offloaded, DeviceError> {
        Offloaded::new(offload, depth, |kernel, geometry| {
            Ok(Box::new(host(kernel, program, ports, geometry)?))
        })
    }

    /// Submits packets to the device, if it can take them now.
    fn hand_over(&mut self, memory: &[u8], batches: &[Batch]) -> Result<SubmitOutcome, DeviceError> {
        let Some(device) = &mut self.device else { return Ok(SubmitOutcome::Refused) };
        let packets = batches.iter().map(|batch| batch.len).sum();
        let Some(&slot) = self.free.last().filter(|_| packets > 0 && packets <= self.depth.packets) else {
            return Ok(SubmitOutcome::Refused);
        };
        let update = match self.offload.changes() {
            ImageChanges::None => false,
            ImageChanges::Entries => self.offload.is_due(),
            ImageChanges::Others if self.pause > 0 => {
                self.pause -= 1;
                return Ok(SubmitOutcome::Refused);
            }
            ImageChanges::Others => true,
        };
        // Commit compares tables with the copy on the device, so the copy may not be renewed while packets
        // that have seen the old copy are in flight.
        if update && !self.begun.is_empty() {
            return Ok(SubmitOutcome::Busy);
        }
        if update {
            renew(&mut self.offload, device.as_mut())?;
        }
        let mut input = device.input(slot)?;
        let mut before = 0;
        for batch in batches {
            self.offload.gather(memory, batch, Whole { before, packets }, &mut input);
            before += batch.len;
        }
        device.submit(slot, packets)?;
        self.offload.handed();
        self.free.pop();
        let asked = (self.now)();
        self.begun.push_back(Begun { slot, packets, run: 0, waited: Duration::ZERO, asked });
        Ok(SubmitOutcome::Accepted)
    }

    /// Commits a batch that the device has run. Returns `false` if the device has not run it; then nothing
    /// has happened.
    fn commit(
        &mut self,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) -> Result<bool, DeviceError> {
        self.wait();
        let front = self.begun.front().copied().filter(|front| batch.len <= front.packets - front.run);
        let (Some(device), Some(front)) = (&mut self.device, front) else { return Ok(false) };
        let output = device.output(front.slot)?;
        let whole = Whole { before: front.run, packets: front.packets };
        self.offload.commit(memory, batch, whole, &output, outputs);
        self.count_off(batch.len);
        Ok(true)
    }

    /// Removes the oldest submitted packets, this many, which have been run and which the device has
    /// finished.
    fn count_off(&mut self, packets: usize) {
        let Some(front) = self.begun.front_mut() else { return };
        front.run += packets;
        if front.run < front.packets {
            return;
        }
        self.free.push(front.slot);
        self.begun.pop_front();
        match self.offload.changes() {
            // For all packets in flight this is the same change, since they were submitted before it.
            ImageChanges::Others if !self.begun.is_empty() => {}
            ImageChanges::Others => {
                self.pause = self.next_pause;
                self.next_pause = (2 * self.next_pause).min(LONGEST_PAUSE);
            }
            ImageChanges::None | ImageChanges::Entries => self.next_pause = 1,
        }
    }

    /// Waits for the oldest submitted packets.
    fn wait(&mut self) {
        let begin = (self.now)();
        while !self.is_complete(0) {
            // Most packets are finished before a sleep would end.
            match (self.now)() - begin > AWAKE {
                true => thread::sleep(NAP),
                false => thread::yield_now(),
            }
        }
    }

    /// Gives the device up, with all packets on it.
    fn give_up(&mut self, error: DeviceError) {
        if let Some(device) = self.device.take() {
            device.give_up(&error);
        }
        self.failure = Some(error);
        self.offload.took_back(self.begun.iter().map(|begun| begun.packets - begun.run).sum());
        self.begun.clear();
    }
}

impl AsyncBackend for Offloaded {
    fn depth(&self) -> QueueDepth {
        self.depth
    }

    fn submit(&mut self, memory: &[u8], batches: &[Batch]) -> SubmitOutcome {
        self.hand_over(memory, batches).unwrap_or_else(|error| {
            self.give_up(error);
            SubmitOutcome::Refused
        })
    }

    fn is_complete(&mut self, nth: usize) -> bool {
        let (Some(device), Some(begun)) = (&mut self.device, self.begun.get_mut(nth)) else { return true };
        let mut done = device.poll(begun.slot, false);
        // Later packets may have to wait for the first ones.
        if nth == 0 && done == Ok(false) {
            let now = (self.now)();
            begun.waited += (now - begun.asked).min(QUESTION);
            begun.asked = now;
            if begun.waited > self.patience {
                let milliseconds = begun.waited.as_millis() as u64;
                done = Err(DeviceError::Stalled { device: self.name.clone(), milliseconds });
            }
        }
        done.unwrap_or_else(|error| {
            self.give_up(error);
            true
        })
    }

    fn workers(&self) -> usize {
        self.device.as_ref().map_or(1, |device| device.workers())
    }
}

impl Backend for Offloaded {
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        if batch.len == 0 {
            return;
        }
        if !self.is_asynchronous {
            self.submit(memory, std::slice::from_ref(batch));
        }
        let committed = self.commit(memory, batch, outputs).unwrap_or_else(|error| {
            self.give_up(error);
            false
        });
        if !committed {
            self.offload.run_here(memory, batch, outputs);
        }
    }

    fn asynchronous(&mut self) -> Option<&mut dyn AsyncBackend> {
        self.is_asynchronous = true;
        self.device.is_some().then_some(self as &mut dyn AsyncBackend)
    }

    fn inspect(&mut self) -> Option<&mut dyn Inspect> {
        Some(self)
    }

    fn advance(&mut self, now: u64, outputs: &mut Outputs) {
        self.offload.backend().advance(now, outputs);
    }

    fn due(&self) -> Option<u64> {
        self.offload.as_backend().due()
    }

    fn control(&self) -> &(dyn ProgramControl + 'static) {
        self.offload.as_backend()
    }

    fn control_mut(&mut self) -> &mut (dyn ProgramControl + 'static) {
        self.offload.backend()
    }

    fn back_end(&self) -> BackendKind {
        BackendKind::Native
    }

    fn on_device(&self) -> Option<OnDevice> {
        Some(OnDevice {
            name: self.name.clone(),
            tally: self.offload.tally(),
            failure: self.failure.as_ref().map(DeviceError::to_string),
        })
    }
}

impl Inspect for Offloaded {
    fn run_observed(
        &mut self,
        program: &Program,
        ports: u16,
        observer: &mut (dyn Observer + Send),
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    ) {
        self.offload.backend().run_observed(program, ports, observer, memory, batch, outputs);
        self.offload.ran_here(batch.len);
        if !self.begun.is_empty() {
            // The device's results are not needed, but it must have finished before its slot is filled again.
            self.wait();
            self.count_off(batch.len);
        }
    }

    /// A device does not measure stages, and the host runs too few of the packets.
    fn run_measured(&mut self, _: &mut StageClock, _: &mut [u8], _: &mut Batch, _: &mut Outputs) -> bool {
        false
    }

    fn draft(&self) -> Option<Draft> {
        None
    }

    fn adopt(&mut self, _: Measured) {}
}
