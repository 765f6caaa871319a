//! Device batches by Hermes: each is the packets of one warp, and the scheduler says when the host closes,
//! submits and commits it.
//!
//! ```text
//!   closed:  │ begun with, in the order of the commit queue │ in the task FIFO │ whole warps for which the FIFO has no room │   open
//!             ◄─────────────── begun ──────────────────────► ◄──── tasks ────►
//! ```

use super::Supply;
use super::in_flight::{DeviceBatch, InFlight};
use crate::hermes::{Flush, HermesSettings, Scheduler, WARP, Warp};
use crate::policy::ExecutionPlace;
use exec::{AsyncBackend, QueueDepth, SubmitOutcome};
use packet::BATCH;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Warps that a worker may have at once: one that it runs, and what it has at hand while the packet loop is
/// busy or off its processor.
const OF_A_WORKER: usize = 24;
/// Tasks that wait for the device at most. More would make packets wait longer under overload, and carry no
/// more of them.
const TASKS: u16 = 64;

/// The scheduler with where its tasks are in the line.
pub(super) struct ByHermes {
    scheduler: Scheduler,
    cores: u16,
    /// What its times are counted from.
    origin: Instant,
    /// Closed device batches that are in the commit queue, and behind them those in the FIFO.
    begun: usize,
    tasks: usize,
    /// The most closed device batches.
    most: usize,
    /// Number of the first closed device batch, counted from the beginning.
    first: u64,
    /// What the device works on, oldest first, and how much that can be.
    running: VecDeque<Running>,
    slots: usize,
    /// A warp with which the device can begin only later.
    later: Option<Warp>,
    /// Packets that have been committed and are yet to be run.
    committed: u64,
    is_gone: bool,
}

/// A warp, and the number of its device batch.
struct Running {
    core: u16,
    slot: u8,
    number: u64,
}

impl Running {
    /// Which of those it is that were begun with and have not been run, where `first` is the number of the
    /// oldest.
    fn nth(&self, first: u64) -> usize {
        (self.number - first) as usize
    }

    fn finish(&self, scheduler: &mut Scheduler) {
        scheduler.finish(self.core, self.slot).expect("it runs: it was issued, and is told of once");
    }
}

impl ByHermes {
    /// What the scheduler is made for where a device has so much room, and works on so many warps side by
    /// side.
    fn settings(depth: QueueDepth, workers: usize, quarters: u32) -> HermesSettings {
        let usual = HermesSettings::default();
        let cores = workers.clamp(1, depth.device_batches.max(1)).min(1024) as u16;
        let places = depth.device_batches.clamp(1, 1 << 15);
        HermesSettings {
            cores,
            warps: (places / usize::from(cores)).clamp(1, OF_A_WORKER) as u8,
            warp: depth.packets.clamp(1, WARP.into()) as u8,
            tasks: TASKS,
            commits: 1 << places.ilog2(),
            flush: Flush { quarters, ..usual.flush },
        }
    }

    /// No packet has come. Packets wait for `quarters` quarters of the time in which a warp comes.
    pub(super) fn new(depth: QueueDepth, workers: usize, quarters: u32, now: Instant) -> ByHermes {
        let settings = ByHermes::settings(depth, workers, quarters);
        let scheduler = Scheduler::new(&settings).expect("every number is held between its limits");
        ByHermes {
            scheduler,
            cores: settings.cores,
            origin: now,
            begun: 0,
            tasks: 0,
            most: usize::from(settings.commits) + usize::from(settings.tasks),
            first: 0,
            running: VecDeque::with_capacity(usize::from(settings.commits)),
            slots: usize::from(settings.cores) * usize::from(settings.warps),
            later: None,
            committed: 0,
            is_gone: false,
        }
    }

    /// Whether a whole batch can be taken.
    pub(super) fn has_room(&self, in_flight: &InFlight) -> bool {
        in_flight.closed.is_empty()
            || in_flight.closed.len() + BATCH.div_ceil(in_flight.depth.packets) <= self.most
    }

    /// Closes the open device batch, if there is room for one more; says whether there was.
    pub(super) fn make_room(&self, in_flight: &mut InFlight, now: Instant) -> bool {
        let room = in_flight.is_complete() && in_flight.closed.len() < self.most;
        if room {
            in_flight.close(now);
        }
        room
    }

    /// So many packets have joined the line.
    pub(super) fn arrive(&mut self, packets: usize, now: Instant) {
        self.scheduler.arrive(self.time(now), packets as u32);
    }

    pub(super) fn due(&self, now: Instant) -> Option<Duration> {
        self.scheduler.due().map(|due| Duration::from_nanos(due.saturating_sub(self.time(now))))
    }

    /// A device batch that is to be run now, if there is one.
    pub(super) fn ready(
        &mut self,
        in_flight: &mut InFlight,
        device: Option<&mut dyn AsyncBackend>,
        supply: Supply,
        now: Instant,
    ) -> Option<DeviceBatch> {
        match device {
            None => {
                self.give_up();
                self.make_tasks(in_flight, supply, now);
            }
            Some(device) => {
                let any = self.finish(device);
                self.make_tasks(in_flight, supply, now);
                self.submit(in_flight, device, now);
                if !any && self.tasks > 0 && self.running.len() == self.slots {
                    self.finish_any(device);
                    self.submit(in_flight, device, now);
                }
            }
        }
        if self.committed == 0 && !self.commit() && supply.is_wanted(in_flight) {
            // Whoever runs it waits for it.
            self.finish_first();
            self.commit();
        }
        self.committed.checked_sub(1)?;
        if in_flight.closed.is_empty() {
            in_flight.close(now);
        }
        let device_batch = in_flight.closed.pop_front()?;
        self.committed = self.committed.saturating_sub(device_batch.packets as u64);
        self.first += 1;
        match self.begun {
            0 => self.tasks = self.tasks.saturating_sub(1),
            _ => self.begun -= 1,
        }
        debug_assert!(self.begun + self.tasks <= in_flight.closed.len());
        Some(device_batch)
    }

    fn time(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.origin).as_nanos() as u64
    }

    /// Takes note of the next packets whose turn it is; says whether there were any.
    fn commit(&mut self) -> bool {
        let committed = self.scheduler.commit();
        self.committed += committed.map_or(0, |committed| committed.packets);
        committed.is_some()
    }

    /// Takes note of a device that is gone: the host runs everything.
    fn give_up(&mut self) {
        if !self.is_gone {
            self.is_gone = true;
            self.later = None;
            self.running.clear();
            for core in 0..self.cores {
                self.scheduler.fail(core);
            }
        }
    }

    /// Tells the scheduler of the oldest warps, as far as they are done. Whether any are.
    fn finish(&mut self, device: &mut dyn AsyncBackend) -> bool {
        let ByHermes { running, scheduler, first, .. } = self;
        let before = running.len();
        while let Some(warp) = running.pop_front_if(|warp| device.is_complete(warp.nth(*first))) {
            warp.finish(scheduler);
        }
        running.len() < before
    }

    /// Tells the scheduler of all warps that are done: they make room for others, though they are committed
    /// only in their turn.
    fn finish_any(&mut self, device: &mut dyn AsyncBackend) {
        let ByHermes { running, scheduler, first, .. } = self;
        running.retain(|warp| {
            let done = device.is_complete(warp.nth(*first));
            if done {
                warp.finish(scheduler);
            }
            !done
        });
    }

    /// Tells the scheduler that the first device batch's warp is done.
    fn finish_first(&mut self) {
        if let Some(warp) = self.running.pop_front_if(|warp| warp.number == self.first) {
            warp.finish(&mut self.scheduler);
        }
    }

    /// Lets the scheduler make tasks of what has come, each of which is a closed device batch.
    fn make_tasks(&mut self, in_flight: &mut InFlight, supply: Supply, now: Instant) {
        let no_memory = in_flight.full && !in_flight.is_complete();
        let made = match supply {
            Supply::Plenty | Supply::Unknown if !no_memory => self.scheduler.advance(self.time(now)),
            _ => self.scheduler.flush(),
        };
        self.tasks += made as usize;
        if self.begun + self.tasks > in_flight.closed.len() {
            in_flight.close(now);
        }
    }

    /// Lets the device begin with the tasks that the scheduler issues.
    fn submit(&mut self, in_flight: &mut InFlight, device: &mut dyn AsyncBackend, now: Instant) {
        loop {
            // What the host is to run waits for those before; nothing is begun behind it until then.
            let last = self.begun.checked_sub(1).map(|last| in_flight.closed[last].place);
            if last == Some(ExecutionPlace::Host) {
                return;
            }
            let Some(warp) = self.later.take().or_else(|| self.scheduler.issue()) else { return };
            let device_batch = &mut in_flight.closed[self.begun];
            let (memory, batches) = device_batch.parts();
            match device.submit(memory, batches) {
                SubmitOutcome::Accepted => {
                    device_batch.place = ExecutionPlace::Device;
                    let number = self.first + self.begun as u64;
                    self.running.push_back(Running { core: warp.core, slot: warp.slot, number });
                }
                SubmitOutcome::Busy => {
                    self.later = Some(warp);
                    return;
                }
                SubmitOutcome::Refused => {
                    device_batch.place = ExecutionPlace::Host;
                    self.scheduler.refuse(warp.core, warp.slot).expect("it has just been issued");
                }
            }
            device_batch.placed = now;
            self.begun += 1;
            self.tasks -= 1;
        }
    }
}
