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

/// So often a device is handed device batches of a policy before the first of them are back.
pub const DEVICE_BATCHES: usize = 2;
/// Warps that a device can have before the first of them is committed.
const WARPS: usize = 256;

/// When packets are handed over, and how many together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As many as a policy says.
    Policy(BatchingPolicy),
    /// Warps of 32 packets, in a FIFO, to as many workers as the device has ([`crate::hermes`]).
    Hermes {
        /// Fewer packets than a warp wait for so many quarters of the time in which a warp comes.
        quarters: u32,
    },
}

impl Schedule {
    /// What a device has best room for.
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
    /// At once: there is no need to run fewer together than go.
    Plenty,
    /// Nobody knows when.
    Unknown,
    /// None.
    Ended,
}

impl Supply {
    /// Whether the first device batch is wanted even if it has to be waited for.
    fn is_wanted(self, in_flight: &InFlight) -> bool {
        match self {
            Supply::Plenty => in_flight.full,
            Supply::Unknown => false,
            Supply::Ended => true,
        }
    }
}

/// What a device queue stands between: the device that gets its packets, the clock, and whoever runs packets
/// in their turn.
pub trait Run {
    /// What may go wrong.
    type Error;

    /// The device; none once it is gone, and the host then runs everything.
    fn device(&mut self) -> Option<&mut dyn AsyncBackend>;

    /// What time it is. A simulation has a clock of its own.
    fn now(&self) -> Instant;

    /// So many packets have been copied into the queue. A simulation lets the time pass that this takes.
    fn copied(&mut self, packets: usize) {
        let _ = packets;
    }

    /// Runs a batch, to the end.
    ///
    /// # Errors
    /// What went wrong; no further batch is run then.
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Self::Error>;
}

/// Packets that are held, and the schedule by which they are.
pub struct DeviceQueue {
    in_flight: InFlight,
    order: Scheduler,
}

/// Who says when a device batch is closed, begun with and run.
enum Scheduler {
    ByPolicy(Box<ByPolicy>),
    ByHermes(Box<ByHermes>),
}

impl DeviceQueue {
    /// Nothing is held for a back end that begins with packets ahead of time; none where it does not.
    pub fn new(
        backend: &mut dyn Backend,
        schedule: impl Into<Schedule>,
        now: Instant,
    ) -> Option<DeviceQueue> {
        let device = backend.asynchronous()?;
        Some(DeviceQueue::over(device.depth(), device.workers(), schedule.into(), now))
    }

    /// As [`new`](DeviceQueue::new), for so much room and so many workers.
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

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.in_flight.open.packets == 0 && self.in_flight.closed.is_empty()
    }

    /// Whether device batches wait for the device, or to be run.
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

    /// Takes copies of the packets of a batch, and where there is no room left has packets run until there
    /// is.
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

    /// Begins with what the schedule says is to be begun with, and has the packets run that are ready; says
    /// whether there were any. With [`Supply::Plenty`] and no room left, and with [`Supply::Ended`], it waits
    /// for those that a device has yet to finish.
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

    /// When the schedule wants to be asked again though no packet comes; none while it waits for packets
    /// alone.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        match &self.order {
            Scheduler::ByPolicy(placed) => placed.due(&self.in_flight, now),
            Scheduler::ByHermes(warps) => warps.due(now),
        }
    }

    /// Copies the packets of a batch from `from` on. Says how far it came: where that is not the end of the
    /// batch, there is no room.
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

    /// A device batch that is to be run now, if there is one.
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
