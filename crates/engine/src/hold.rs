//! Packets that are held until many of them can be run together: copies of their frames, in order of arrival, from when they came until they are run.
//!
//! ```text
//!               take                        run                            run, again
//!   packets ──────────► open convoy ──────────────► closed convoys ──────────────► batch by batch, to whoever runs them
//!                        (fills up)   a schedule    with the device, or
//!                                     says when     for the processor
//! ```
//!
//! A convoy is as many batches as go over together, or a warp. Convoys are run in the order in which their packets came, so what packets mean does
//! not depend on where they are run.

mod line;
mod placed;
#[cfg(test)]
mod tests;
mod warps;

use self::line::{Convoy, Line};
use self::placed::Placed;
use self::warps::Warps;
use exec::{Processor, Room};
use gpu::hermes::{Settings, WARP};
use gpu::placement::Policy;
use packet::{BATCH, Batch};
use std::time::{Duration, Instant};

/// So often a device is handed convoys of a policy before the first of them are back.
pub const CONVOYS: usize = 2;
/// Warps that a device can have before the first of them is committed.
const WARPS: usize = 256;

/// When packets are handed over, and how many together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// As many as a policy says.
    Placed(Policy),
    /// Warps of 32 packets, in a FIFO, to as many workers as the device has ([`gpu::hermes`]).
    Hermes {
        /// Fewer packets than a warp wait for so many quarters of the time in which a warp comes.
        quarters: u32,
    },
}

impl Schedule {
    /// What a device has best room for.
    pub fn room(self) -> Room {
        match self {
            Schedule::Placed(policy) => Room { packets: policy.packets(), convoys: CONVOYS },
            Schedule::Hermes { .. } => Room { packets: WARP.into(), convoys: WARPS },
        }
    }
}

/// What the scheduler of Hermes is made for where a device has so much room, and works on so many warps side by side; fewer packets than a warp wait for
/// `quarters` quarters of the time in which a warp comes.
pub fn settings(room: Room, workers: usize, quarters: u32) -> Settings {
    Warps::settings(room, workers, quarters)
}

impl From<Policy> for Schedule {
    fn from(policy: Policy) -> Schedule {
        Schedule::Placed(policy)
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
    /// Whether the first convoy is wanted even if it has to be waited for.
    fn is_wanted(self, line: &Line) -> bool {
        match self {
            Supply::Plenty => line.full,
            Supply::Unknown => false,
            Supply::Ended => true,
        }
    }
}

/// Whoever runs packets that are held.
pub trait Run {
    /// What may go wrong.
    type Error;

    /// What runs them.
    fn processor(&mut self) -> &mut dyn Processor;

    /// What time it is; simulations have one of their own.
    fn now(&self) -> Instant {
        Instant::now()
    }

    /// Runs a batch, to the end.
    ///
    /// # Errors
    /// What went wrong; no further batch is run then.
    fn batch(&mut self, memory: &mut [u8], batch: &mut Batch) -> Result<(), Self::Error>;
}

/// Packets that are held, and the schedule by which they are.
pub struct Hold {
    line: Line,
    order: Order,
}

/// Who says when a convoy is closed, begun with and run.
enum Order {
    Placed(Box<Placed>),
    Warps(Box<Warps>),
}

impl Hold {
    /// Nothing is held for a processor that begins with packets ahead of time; none where it does not.
    pub fn new(processor: &mut dyn Processor, schedule: impl Into<Schedule>, now: Instant) -> Option<Hold> {
        let ahead = processor.ahead()?;
        Some(Hold::over(ahead.room(), ahead.workers(), schedule.into(), now))
    }

    /// As [`new`](Hold::new), for so much room and so many workers.
    pub(crate) fn over(room: Room, workers: usize, schedule: Schedule, now: Instant) -> Hold {
        let (most, order) = match schedule {
            Schedule::Placed(policy) => (policy.packets(), Order::Placed(Box::new(Placed::new(policy)))),
            Schedule::Hermes { quarters } => {
                (WARP.into(), Order::Warps(Box::new(Warps::new(room, workers, quarters, now))))
            }
        };
        let room = Room { packets: room.packets.min(most), ..room };
        Hold { line: Line::new(room, now), order }
    }

    /// Whether no packet is held.
    pub fn is_empty(&self) -> bool {
        self.line.open.packets == 0 && self.line.closed.is_empty()
    }

    /// Whether convoys wait for the device, or to be run.
    pub fn is_under_way(&self) -> bool {
        !self.line.closed.is_empty()
    }

    /// Whether packets can be taken before a convoy has been run: a whole batch, if convoys are no smaller than that or there is room for several.
    pub fn has_room(&self) -> bool {
        let Line { room, open, closed, full, .. } = &self.line;
        !full
            && match &self.order {
                Order::Placed(_) => closed.len() < room.convoys || open.packets + BATCH <= room.packets,
                Order::Warps(warps) => warps.has_room(&self.line),
            }
    }

    /// Takes copies of the packets of a batch, and where there is no room left has packets run until there is.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn take<R: Run>(&mut self, run: &mut R, memory: &[u8], batch: &Batch) -> Result<(), R::Error> {
        let mut taken = 0;
        loop {
            taken = self.copy(memory, batch, taken, run.now());
            if taken == batch.len {
                return Ok(());
            }
            self.run(run, Supply::Plenty)?;
        }
    }

    /// Begins with what the schedule says is to be begun with, and has the packets run that are ready; says whether there were any. With [`Supply::Plenty`]
    /// and no room left, and with [`Supply::Ended`], it waits for those that a device has yet to finish.
    ///
    /// # Errors
    /// What went wrong when they were run.
    pub fn run<R: Run>(&mut self, run: &mut R, supply: Supply) -> Result<bool, R::Error> {
        let mut any = false;
        loop {
            let now = run.now();
            let Some(mut convoy) = self.ready(run.processor(), supply, now) else { return Ok(any) };
            any = true;
            let (memory, batches) = convoy.parts();
            batches.iter_mut().try_for_each(|batch| run.batch(memory, batch))?;
            if let Order::Placed(placed) = &mut self.order {
                placed.learn(&convoy, run.now());
            }
            self.line.give_back(convoy);
        }
    }

    /// When the schedule wants to be asked again though no packet comes; none while it waits for packets alone.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        match &self.order {
            Order::Placed(placed) => placed.due(&self.line, now),
            Order::Warps(warps) => warps.due(now),
        }
    }

    /// Copies the packets of a batch from `from` on. Says how far it came: where that is not the end of the batch, there is no room.
    fn copy(&mut self, memory: &[u8], batch: &Batch, from: usize, now: Instant) -> usize {
        let Hold { line, order } = self;
        let mut next = from;
        while next < batch.len {
            if line.push(memory, batch, next, now) {
                next += 1;
                continue;
            }
            let Order::Warps(warps) = &*order else { break };
            if !warps.make_room(line, now) {
                break;
            }
        }
        match order {
            Order::Placed(_) => line.full = next < batch.len || line.is_complete(),
            Order::Warps(warps) => {
                line.full = next < batch.len;
                warps.arrive(next - from, now);
            }
        }
        next
    }

    /// A convoy that is to be run now, if there is one.
    fn ready(&mut self, processor: &mut dyn Processor, supply: Supply, now: Instant) -> Option<Convoy> {
        let Hold { line, order } = self;
        match order {
            Order::Placed(placed) => placed.ready(line, processor, supply, now),
            Order::Warps(warps) => warps.ready(line, processor, supply, now),
        }
    }
}
