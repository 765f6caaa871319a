//! The same schedules in virtual time, over a small model of the device and of the loop that feeds it.
//!
//! The idea: the loop of a worker (`engine::live`) is one server. It takes packets that are due, asks the
//! schedule, hands device batches over and commits what has come back, and each of these takes the time that
//! it took on the machine. A device is some workers that share a queue; a device batch is cut into pieces,
//! each of which one worker runs. `offload::policy` and `offload::hermes` decide, as in the engine; what
//! stands around them there, the line of device batches and the loop, is written after it here.
//!
//! Nanoseconds are integers and nothing depends on a clock or an address, so the same run gives the same
//! delays again.

mod placed;
#[cfg(test)]
mod tests;
mod warps;

use self::placed::Placed;
use self::warps::Warps;
use super::due::Due;
use super::load_result::LoadResult;
use exec::QueueDepth;
use offload::device_queue::{Schedule, Supply};
use offload::policy::ExecutionPlace;
use packet::BATCH;
use std::collections::VecDeque;

/// What some packets take: a fixed part, and one that grows with them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Nanoseconds.
    pub(crate) fixed: u64,
    /// Picoseconds a packet.
    pub(crate) slope: u64,
}

impl Line {
    /// Nanoseconds of so many packets.
    pub(crate) fn of(self, packets: usize) -> u64 {
        self.fixed + self.slope * packets as u64 / 1000
    }
}

/// What a device and the loop that feeds it cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    /// Workers; at least 1.
    pub(crate) workers: usize,
    /// The most packets that one worker runs in one go; at least 1.
    pub(crate) piece: usize,
    /// How long a worker is busy with a piece.
    pub(crate) service: Line,
    /// How long it is with one that it begins with while another worker is busy, in thousandths of that; at
    /// least 1000.
    pub(crate) crowded: u64,
    /// Nanoseconds that a device batch is on its way there and back besides, while no worker is busy with it.
    pub(crate) way: u64,
    /// How long the loop takes packets that are due.
    pub(crate) take: Line,
    /// How long it hands a device batch over.
    pub(crate) begin: Line,
    /// How long it commits one.
    pub(crate) commit: Line,
    /// How long it runs one itself.
    pub(crate) here: Line,
}

/// What came of a run, with what shows that it is right.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Delays of packets from when they were due, in order of arrival; none where all were due always.
    pub(crate) delays: Vec<u64>,
    /// Packets that were done.
    pub(crate) packets: u64,
    /// Those of them that the device ran.
    pub(crate) on_device: u64,
    /// Nanoseconds that it took.
    pub(crate) time: u64,
    /// Packets that were due and not done, summed up over time.
    pub(crate) area: u128,
}

impl Outcome {
    /// As what is measured is told.
    ///
    /// # Errors
    /// A histogram cannot be made.
    pub(crate) fn carried(&self) -> Result<LoadResult, String> {
        let mut carried = LoadResult::new()?;
        self.delays.iter().for_each(|delay| carried.delay(*delay));
        carried.end(self.packets, self.on_device, self.time);
        Ok(carried)
    }
}

/// Packets that are run together.
#[derive(Clone, Copy, Debug)]
struct DeviceBatch {
    packets: usize,
    place: ExecutionPlace,
    placed: u64,
    /// When a device is done with it.
    finish: u64,
}

/// A schedule over a model. What the schedule learns stays from one run to the next.
pub(crate) struct Simulated {
    model: Model,
    depth: QueueDepth,
    order: Order,
    now: u64,
    /// When each worker is free.
    free: Vec<u64>,
    /// Whether a packet found no room.
    full: bool,
    /// Device batches that were begun with or are the host's, in order of arrival.
    closed: VecDeque<DeviceBatch>,
}

/// Who says when a device batch is closed, begun with and run.
enum Order {
    Placed(Box<Placed>),
    Warps(Box<Warps>),
}

impl Simulated {
    /// Nothing is held, and nothing has been learned.
    pub(crate) fn new(model: Model, depth: QueueDepth, schedule: Schedule) -> Simulated {
        let (most, order) = match schedule {
            Schedule::Policy(policy) => (policy.packets(), Order::Placed(Box::new(Placed::new(policy)))),
            Schedule::Hermes { quarters } => {
                (gpu::WARP, Order::Warps(Box::new(Warps::new(depth, model.workers, quarters))))
            }
        };
        Simulated {
            model,
            depth: QueueDepth { packets: depth.packets.min(most), ..depth },
            order,
            now: 0,
            free: vec![0; model.workers.max(1)],
            full: false,
            closed: VecDeque::new(),
        }
    }

    /// Lets packets fall due, and ends when all are done.
    pub(crate) fn run(&mut self, due: Due<'_>) -> Outcome {
        let begin = self.now;
        let mut run = Run { own: self, due, begin, taken: 0, arrived: 0, outcome: Outcome::default() };
        run.pass(begin);
        run.rounds();
        debug_assert_eq!(
            run.outcome.packets, run.taken as u64,
            "packets are held, and nothing is about to happen"
        );
        let mut outcome = run.outcome;
        outcome.time = self.now - begin;
        outcome
    }

    /// Gives packets to the workers that are free first; when they are back.
    fn give(&mut self, packets: usize) -> u64 {
        let Simulated { model, free, now, .. } = self;
        let (mut left, mut finish) = (packets, *now);
        while left > 0 {
            let piece = left.min(model.piece.max(1));
            left -= piece;
            let Some(first) = (0..free.len()).min_by_key(|worker| free[*worker]) else { break };
            let start = free[first].max(*now);
            let busy = free.iter().any(|until| *until > start);
            let takes = model.service.of(piece) * if busy { model.crowded } else { 1000 } / 1000;
            free[first] = start + takes;
            finish = finish.max(free[first]);
        }
        finish + model.way
    }
}

/// A run under way.
struct Run<'a> {
    own: &'a mut Simulated,
    due: Due<'a>,
    begin: u64,
    taken: usize,
    /// Packets that have fallen due.
    arrived: usize,
    outcome: Outcome,
}

impl Run<'_> {
    /// The rounds of the loop.
    fn rounds(&mut self) {
        loop {
            let (before, done) = (self.own.now, self.outcome.packets);
            let mut packets = 0;
            if self.own.has_room() {
                packets = self.due.waiting(self.taken, before - self.begin, BATCH);
                self.take(packets);
            }
            self.run(Supply::Unknown);
            if self.due.is_over(self.taken, self.own.now - self.begin) {
                self.run(Supply::Ended);
                return;
            }
            // While it did something, something else may have come.
            if packets == 0 && self.outcome.packets == done && self.own.now == before {
                let Some(next) = self.next() else { return };
                self.pass(next);
            }
        }
    }

    /// When something happens next while the loop has nothing to do.
    fn next(&self) -> Option<u64> {
        let own = &self.own;
        let coming = self.due.time(self.taken).map(|time| time + self.begin);
        let asked = match &own.order {
            Order::Placed(placed) => placed.due(own.now),
            Order::Warps(warps) => warps.due(),
        };
        let back = own.closed.iter().map(|device_batch| device_batch.finish);
        back.chain(coming).chain(asked).filter(|time| *time > own.now).min()
    }

    /// Lets time go on. Packets fall due meanwhile.
    fn pass(&mut self, to: u64) {
        while let Some(time) = self.due.time(self.arrived).map(|time| time + self.begin)
            && time <= to
        {
            self.wait(time);
            self.arrived += 1;
        }
        self.wait(to);
    }

    fn wait(&mut self, to: u64) {
        let inside = self.arrived as u64 - self.outcome.packets;
        let passed = to.saturating_sub(self.own.now);
        self.outcome.area += u128::from(inside) * u128::from(passed);
        self.own.now += passed;
    }

    fn spend(&mut self, nanoseconds: u64) {
        self.pass(self.own.now + nanoseconds);
    }

    /// The loop takes packets, and where there is no room left has packets run until there is.
    fn take(&mut self, packets: usize) {
        if let Due::Always(_) = self.due {
            self.arrived += packets;
        }
        self.taken += packets;
        let mut left = packets;
        while left > 0 {
            left -= self.copy(left);
            if left > 0 {
                self.run(Supply::Plenty);
            }
        }
    }

    /// Copies as many of some packets as there is room for; says how many.
    fn copy(&mut self, packets: usize) -> usize {
        let own = &mut *self.own;
        let copied = packets.min(own.left());
        match &mut own.order {
            Order::Placed(placed) => own.full = placed.arrive(own.now, copied) >= own.depth.packets,
            Order::Warps(warps) => {
                own.full = copied < packets;
                warps.arrive(own.now, copied);
            }
        }
        let took = own.model.take.of(copied);
        self.spend(took);
        copied
    }

    /// Begins with what the schedule says is to be begun with, and runs what is ready.
    fn run(&mut self, supply: Supply) {
        while let Some(device_batch) = self.ready(supply) {
            let model = self.own.model;
            match device_batch.place {
                ExecutionPlace::Host => self.spend(model.here.of(device_batch.packets)),
                ExecutionPlace::Device => {
                    self.pass(device_batch.finish);
                    self.spend(model.commit.of(device_batch.packets));
                }
            }
            self.done(device_batch);
        }
    }

    fn ready(&mut self, supply: Supply) -> Option<DeviceBatch> {
        match self.own.order {
            Order::Placed(_) => self.placed(supply),
            Order::Warps(_) => self.warp(supply),
        }
    }

    /// Whether the first device batch is wanted even if it has to be waited for.
    fn is_wanted(&self, supply: Supply) -> bool {
        match supply {
            Supply::Plenty => self.own.full,
            Supply::Unknown => false,
            Supply::Ended => true,
        }
    }

    /// A device batch has been run.
    fn done(&mut self, device_batch: DeviceBatch) {
        let now = self.own.now;
        if let Order::Placed(placed) = &mut self.own.order {
            placed.learn(device_batch, now);
        }
        let first = self.outcome.packets as usize;
        let times = (first..first + device_batch.packets).map_while(|number| self.due.time(number));
        self.outcome.delays.extend(times.map(|time| now - self.begin - time));
        self.outcome.packets += device_batch.packets as u64;
        if device_batch.place == ExecutionPlace::Device {
            self.outcome.on_device += device_batch.packets as u64;
        }
    }
}

impl Simulated {
    /// Whether a batch can be taken.
    fn has_room(&self) -> bool {
        let batch = BATCH.div_ceil(self.depth.packets.max(1));
        !self.full
            && match &self.order {
                Order::Placed(placed) => {
                    self.closed.len() < self.depth.device_batches
                        || placed.open() + BATCH <= self.depth.packets
                }
                Order::Warps(warps) => self.closed.len() + warps.closed() + batch <= warps.most(),
            }
    }

    /// For how many packets there is room before a device batch has been run.
    fn left(&self) -> usize {
        match &self.order {
            Order::Placed(placed) => self.depth.packets - placed.open(),
            Order::Warps(warps) => {
                let device_batches = warps.most().saturating_sub(self.closed.len() + warps.closed());
                device_batches * self.depth.packets + self.depth.packets - warps.open()
            }
        }
    }
}
