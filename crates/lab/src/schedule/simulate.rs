//! The same schedules in virtual time: the product's device queue, over a small model of the device and of
//! the loop that feeds it.
//!
//! The idea: the loop of a worker (`engine::live`) is one server. It takes packets that are due, asks the
//! schedule, submits device batches and commits what has come back, and each of these takes the time that it
//! took on the machine. A device is some workers that share a queue; a device batch is cut into pieces, each
//! of which one worker runs. [`DeviceQueue`] does here what it does in the engine. Its packets have no bytes,
//! and its clock is the simulation's.
//!
//! Nanoseconds are integers and nothing depends on a clock or an address, so the same run gives the same
//! delays again.

#[cfg(test)]
mod tests;

use super::due::Due;
use crate::load_result::LoadResult;
use exec::{AsyncBackend, QueueDepth, SubmitOutcome};
use offload::device_queue::{DeviceQueue, Run, Schedule, Supply};
use packet::{BATCH, Batch, NO_PORT};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::{Duration, Instant};

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

/// A device batch that the device has.
#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// Packets of it that have not been committed.
    packets: usize,
    /// When the device is done with it.
    finish: u64,
}

/// A schedule over a model. What the schedule learns stays from one run to the next.
pub(crate) struct Simulated {
    device_queue: DeviceQueue,
    /// Packets without bytes.
    batch: Box<Batch>,
    device: ModelDevice,
}

/// A device of a model, and the clock.
struct ModelDevice {
    model: Model,
    depth: QueueDepth,
    /// What the device queue takes for the beginning of time.
    origin: Instant,
    /// Nanoseconds since then.
    now: u64,
    /// When each worker is free.
    free: Vec<u64>,
    /// What the device has that is not committed, the oldest first.
    in_flight: VecDeque<InFlight>,
}

impl Simulated {
    /// Nothing is held, and nothing has been learned.
    pub(crate) fn new(model: Model, depth: QueueDepth, schedule: Schedule) -> Simulated {
        let origin = Instant::now();
        let mut batch = Box::<Batch>::default();
        while batch.push(0, 0, 0, NO_PORT, 0) {}
        let free = vec![0; model.workers.max(1)];
        Simulated {
            device_queue: DeviceQueue::over(depth, model.workers, schedule, origin),
            batch,
            device: ModelDevice { model, depth, origin, now: 0, free, in_flight: VecDeque::new() },
        }
    }

    /// Lets packets fall due, and ends when all are done.
    pub(crate) fn run(&mut self, due: Due<'_>) -> Outcome {
        let Simulated { device_queue, batch, device } = self;
        let begin = device.now;
        let mut load = Load { device, due, begin, arrived: 0, outcome: Outcome::default() };
        load.pass(begin);
        let taken = load.rounds(device_queue, batch);
        let Load { mut outcome, device, .. } = load;
        debug_assert_eq!(outcome.packets, taken as u64, "packets are held, and nothing is about to happen");
        outcome.time = device.now - begin;
        outcome
    }
}

impl ModelDevice {
    /// Gives packets to the workers that are free first; when they are back.
    fn give(&mut self, packets: usize) -> u64 {
        let ModelDevice { model, free, now, .. } = self;
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

/// Packets that fall due, over a device.
struct Load<'a> {
    device: &'a mut ModelDevice,
    due: Due<'a>,
    begin: u64,
    /// Packets that have fallen due.
    arrived: usize,
    outcome: Outcome,
}

impl Load<'_> {
    /// The rounds of the loop; how many packets it took.
    fn rounds(&mut self, device_queue: &mut DeviceQueue, batch: &mut Batch) -> usize {
        let mut taken = 0;
        loop {
            let (before, done) = (self.device.now, self.outcome.packets);
            let room = device_queue.has_room();
            batch.len = if room { self.due.waiting(taken, before - self.begin, BATCH) } else { 0 };
            if batch.len > 0 {
                taken += batch.len;
                if let Due::Always(_) = self.due {
                    self.arrived += batch.len;
                }
                let Ok(()) = device_queue.take(self, &[], batch);
            }
            let Ok(_) = device_queue.run(self, Supply::Unknown);
            if self.due.is_over(taken, self.device.now - self.begin) {
                let Ok(_) = device_queue.run(self, Supply::Ended);
                return taken;
            }
            // While it did something, something else may have come.
            if batch.len == 0 && self.outcome.packets == done && self.device.now == before {
                let Some(next) = self.next(taken, device_queue) else { return taken };
                self.pass(next);
            }
        }
    }

    /// When something happens next while the loop has nothing to do.
    fn next(&self, taken: usize, device_queue: &DeviceQueue) -> Option<u64> {
        let device = &*self.device;
        let coming = self.due.time(taken).map(|time| time + self.begin);
        let asked = device_queue.due(self.now()).map(|wait| device.now + wait.as_nanos() as u64);
        let back = device.in_flight.iter().map(|device_batch| device_batch.finish);
        back.chain(coming).chain(asked).filter(|time| *time > device.now).min()
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
        let passed = to.saturating_sub(self.device.now);
        self.outcome.area += u128::from(inside) * u128::from(passed);
        self.device.now += passed;
    }

    fn spend(&mut self, nanoseconds: u64) {
        self.pass(self.device.now + nanoseconds);
    }
}

impl AsyncBackend for Load<'_> {
    fn depth(&self) -> QueueDepth {
        self.device.depth
    }

    fn submit(&mut self, _: &[u8], batches: &[Batch]) -> SubmitOutcome {
        let packets = batches.iter().map(|batch| batch.len).sum();
        self.spend(self.device.model.begin.of(packets));
        let finish = self.device.give(packets);
        self.device.in_flight.push_back(InFlight { packets, finish });
        SubmitOutcome::Accepted
    }

    fn is_complete(&mut self, nth: usize) -> bool {
        self.device.in_flight.get(nth).is_none_or(|device_batch| device_batch.finish <= self.device.now)
    }

    fn workers(&self) -> usize {
        self.device.model.workers
    }
}

impl Run for Load<'_> {
    type Error = Infallible;

    fn device(&mut self) -> Option<&mut dyn AsyncBackend> {
        Some(self)
    }

    fn now(&self) -> Instant {
        self.device.origin + Duration::from_nanos(self.device.now)
    }

    fn copied(&mut self, packets: usize) {
        self.spend(self.device.model.take.of(packets));
    }

    /// What the host is to run is at the front only when the device has nothing.
    fn batch(&mut self, _: &mut [u8], batch: &mut Batch) -> Result<(), Infallible> {
        let model = self.device.model;
        match self.device.in_flight.front().copied() {
            None => self.spend(model.here.of(batch.len)),
            Some(front) => {
                self.pass(front.finish);
                self.spend(model.commit.of(batch.len));
                self.outcome.on_device += batch.len as u64;
                match front.packets - batch.len {
                    0 => drop(self.device.in_flight.pop_front()),
                    packets => self.device.in_flight[0].packets = packets,
                }
            }
        }
        let (first, now) = (self.outcome.packets as usize, self.device.now);
        let times = (first..first + batch.len).map_while(|number| self.due.time(number));
        self.outcome.delays.extend(times.map(|time| now - self.begin - time));
        self.outcome.packets += batch.len as u64;
        Ok(())
    }
}
