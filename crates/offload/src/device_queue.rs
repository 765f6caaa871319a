//! The device queue: copies of packets wait in order of arrival until a device runs many of them together.
//!
//! ```text
//!               take                        run                            run, again
//!   packets ──────────► open device batch ──────────────► closed device batches ──────────────► batch by batch, to whoever runs them
//!                        (fills up)   a schedule    with the device, or
//!                                     says when     for the host
//! ```
//!
//! A device batch is what goes to the device together: many batches, or a warp of up to 32 packets. Device
//! batches are run in the order in which their packets came, so what packets mean does not depend on where
//! they are run.

mod by_hermes;
mod by_policy;
mod in_flight;
#[cfg(test)]
mod tests;

use self::by_hermes::ByHermes;
use self::by_policy::ByPolicy;
use self::in_flight::{DeviceBatch, InFlight};
use crate::hermes::WARP;
use crate::policy::BatchingPolicy;
use exec::{AsyncBackend, Backend, QueueDepth};
use packet::{BATCH, Batch};
use std::time::{Duration, Instant};

/// The largest number of device batches of a policy that are on the device at the same time.
pub const DEVICE_BATCHES: usize = 2;
/// The largest number of warps on the device before the first of them is committed.
const WARPS: usize = 256;

/// The schedule: when packets are submitted to the device, and how many together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// A policy says when and how many.
    Policy(BatchingPolicy),
    /// Warps of 32 packets, in a FIFO, to as many workers as the device has ([`crate::hermes`]).
    Hermes {
        /// An incomplete warp waits for this many quarters of the time in which a full warp arrives.
        quarters: u32,
    },
}

impl Schedule {
    /// The depth that a device should have for this schedule.
    pub fn depth(self) -> QueueDepth {
        match self {
            Schedule::Policy(policy) => {
                QueueDepth { packets: policy.packets(), device_batches: DEVICE_BATCHES }
            }
            Schedule::Hermes { .. } => QueueDepth { packets: WARP.into(), device_batches: WARPS },
        }
    }
}

impl From<BatchingPolicy> for Schedule {
    fn from(policy: BatchingPolicy) -> Schedule {
        Schedule::Policy(policy)
    }
}

/// Whether further packets will come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supply {
    /// Further packets come at once, so there is no need to run incomplete device batches.
    Plenty,
    /// It is not known when further packets come.
    Unknown,
    /// No further packets come.
    Ended,
}

impl Supply {
    /// Whether the queue should wait for the first device batch in flight.
    fn is_wanted(self, in_flight: &InFlight) -> bool {
        match self {
            Supply::Plenty => in_flight.full,
            Supply::Unknown => false,
            Supply::Ended => true,
        }
    }
}

/// The surroundings of a device queue: the device that gets its packets, the clock, and the loop that runs
/// packets in their turn.
pub trait Run {
    /// The error of running a batch.
    type Error;

    /// The device; `None` after it was given up, when the host runs everything.
    fn device(&mut self) -> Option<&mut dyn AsyncBackend>;

    /// The present time. A simulation has a clock of its own.
    fn now(&self) -> Instant;

    /// Is told that so many packets have been copied into the queue, so that a simulation can let the time
    /// for this pass.
    fn copied(&mut self, packets: usize) {
        let _ = packets;
    }

    /// Runs a batch, to the end.
    ///
    /// # Errors
    /// What went wrong; no further batch is run then.
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Self::Error>;
}

/// The packets in the queue, and their schedule.
pub struct DeviceQueue {
    in_flight: InFlight,
    order: Scheduler,
}

/// The scheduler: decides when a device batch is closed, submitted and run.
enum Scheduler {
    ByPolicy(Box<ByPolicy>),
    ByHermes(Box<ByHermes>),
}

impl DeviceQueue {
    /// An empty queue for an asynchronous back end; `None` for any other back end.
    pub fn new(
        backend: &mut dyn Backend,
        schedule: impl Into<Schedule>,
        now: Instant,
    ) -> Option<DeviceQueue> {
        let device = backend.asynchronous()?;
        Some(DeviceQueue::over(device.depth(), device.workers(), schedule.into(), now))
    }

    /// As [`new`](DeviceQueue::new), for a device of this depth with so many workers.
    pub fn over(depth: QueueDepth, workers: usize, schedule: Schedule, now: Instant) -> DeviceQueue {
        let (most, order) = match schedule {
            Schedule::Policy(policy) => {
                (policy.packets(), Scheduler::ByPolicy(Box::new(ByPolicy::new(policy))))
            }
            Schedule::Hermes { quarters } => {
                (WARP.into(), Scheduler::ByHermes(Box::new(ByHermes::new(depth, workers, quarters, now))))
            }
        };
        let depth = QueueDepth { packets: depth.packets.min(most), ..depth };
        DeviceQueue { in_flight: InFlight::new(depth, now), order }
    }

    /// Whether no packet is in the queue.
    pub fn is_empty(&self) -> bool {
        self.in_flight.open.packets == 0 && self.in_flight.closed.is_empty()
    }

    /// Whether device batches wait for the device, or wait to be run.
    pub fn is_under_way(&self) -> bool {
        !self.in_flight.closed.is_empty()
    }

    /// Whether packets can be taken before a device batch has been run: a whole batch, if device batches are
    /// no smaller than that or there is room for several.
    pub fn has_room(&self) -> bool {
        let InFlight { depth, open, closed, full, .. } = &self.in_flight;
        !full
            && match &self.order {
                Scheduler::ByPolicy(_) => {
                    closed.len() < depth.device_batches || open.packets + BATCH <= depth.packets
                }
                Scheduler::ByHermes(warps) => warps.has_room(&self.in_flight),
            }
    }

    /// Copies the packets of a batch into the queue. If there is no room left, runs packets until there is.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn take<R: Run>(&mut self, run: &mut R, memory: &[u8], batch: &Batch) -> Result<(), R::Error> {
        let mut taken = 0;
        loop {
            let before = taken;
            taken = self.copy(memory, batch, before, run.now());
            run.copied(taken - before);
            if taken == batch.len {
                return Ok(());
            }
            self.run(run, Supply::Plenty)?;
        }
    }

    /// Submits the device batches that the schedule says, and runs the packets that are ready. Returns
    /// whether there were any. With [`Supply::Plenty`] and no room left, and with [`Supply::Ended`], this
    /// waits for packets on the device.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn run<R: Run>(&mut self, run: &mut R, supply: Supply) -> Result<bool, R::Error> {
        let mut any = false;
        loop {
            let now = run.now();
            let Some(mut device_batch) = self.ready(run.device(), supply, now) else { return Ok(any) };
            any = true;
            let (memory, batches) = device_batch.parts();
            batches.iter_mut().try_for_each(|batch| run.batch(memory, batch))?;
            if let Scheduler::ByPolicy(placed) = &mut self.order {
                placed.learn(&device_batch, run.now());
            }
            self.in_flight.give_back(device_batch);
        }
    }

    /// The time after which [`run`](DeviceQueue::run) must be called again even if no packet comes; `None` if
    /// the schedule only waits for packets.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        match &self.order {
            Scheduler::ByPolicy(placed) => placed.due(&self.in_flight, now),
            Scheduler::ByHermes(warps) => warps.due(now),
        }
    }

    /// Copies the packets of a batch from `from` on. Returns how far it came: if that is not the end of the
    /// batch, there is no more room.
    fn copy(&mut self, memory: &[u8], batch: &Batch, from: usize, now: Instant) -> usize {
        let DeviceQueue { in_flight, order } = self;
        let mut next = from;
        while next < batch.len {
            if in_flight.push(memory, batch, next, now) {
                next += 1;
                continue;
            }
            let Scheduler::ByHermes(warps) = &*order else { break };
            if !warps.make_room(in_flight, now) {
                break;
            }
        }
        match order {
            Scheduler::ByPolicy(_) => in_flight.full = next < batch.len || in_flight.is_complete(),
            Scheduler::ByHermes(warps) => {
                in_flight.full = next < batch.len;
                warps.arrive(next - from, now);
            }
        }
        next
    }

    /// The device batch that must run now, if there is one.
    fn ready(
        &mut self,
        device: Option<&mut dyn AsyncBackend>,
        supply: Supply,
        now: Instant,
    ) -> Option<DeviceBatch> {
        let DeviceQueue { in_flight, order } = self;
        match order {
            Scheduler::ByPolicy(placed) => placed.ready(in_flight, device, supply, now),
            Scheduler::ByHermes(warps) => warps.ready(in_flight, device, supply, now),
        }
    }
}
