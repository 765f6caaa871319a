//! Device batches by Hermes, as `offload::device_queue` has them: the scheduler says when a warp is closed,
//! begun with and committed.

use super::{DeviceBatch, Order, Run};
use exec::QueueDepth;
use offload::device_queue::Supply;
use offload::hermes::{HermesSettings, Scheduler, Warp};
use offload::policy::ExecutionPlace;
use std::collections::VecDeque;

/// The scheduler with what it has begun with.
pub(super) struct Warps {
    scheduler: Scheduler,
    settings: HermesSettings,
    /// Packets that are in no task yet.
    memory: usize,
    /// Tasks in the FIFO.
    tasks: usize,
    /// What the workers have, oldest first, and when they are done with it.
    running: VecDeque<(Warp, u64)>,
    /// Packets that have been committed and are yet to be run.
    committed: usize,
}

impl Warps {
    pub(super) fn new(depth: QueueDepth, workers: usize, quarters: u32) -> Warps {
        let settings = offload::device_queue::settings(depth, workers, quarters);
        let scheduler = Scheduler::new(&settings).expect("every number is held between its limits");
        Warps { scheduler, settings, memory: 0, tasks: 0, running: VecDeque::new(), committed: 0 }
    }

    /// The most closed device batches.
    pub(super) fn most(&self) -> usize {
        usize::from(self.settings.commits) + usize::from(self.settings.tasks)
    }

    /// Device batches that are closed and were not begun with.
    pub(super) fn closed(&self) -> usize {
        self.tasks + self.memory / usize::from(self.settings.warp)
    }

    /// Packets of the open one.
    pub(super) fn open(&self) -> usize {
        self.memory % usize::from(self.settings.warp)
    }

    pub(super) fn arrive(&mut self, now: u64, packets: usize) {
        self.scheduler.arrive(now, packets as u32);
        self.memory += packets;
    }

    pub(super) fn due(&self) -> Option<u64> {
        self.scheduler.due()
    }

    fn slots(&self) -> usize {
        usize::from(self.settings.cores) * usize::from(self.settings.warps)
    }

    /// Tells the scheduler of the oldest warps, as far as they are done.
    fn finish(&mut self, now: u64) {
        while let Some((warp, _)) = self.running.pop_front_if(|(_, finish)| *finish <= now) {
            end(&mut self.scheduler, warp);
        }
    }

    /// Tells the scheduler of all warps that are done.
    fn finish_any(&mut self, now: u64) {
        let Warps { running, scheduler, .. } = self;
        running.retain(|(warp, finish)| {
            if *finish <= now {
                end(scheduler, *warp);
            }
            *finish > now
        });
    }

    /// Lets the scheduler make tasks of what has come.
    fn make_tasks(&mut self, now: u64, supply: Supply) {
        let before = self.scheduler.statistics().tasks;
        let made = match supply {
            Supply::Plenty | Supply::Unknown => self.scheduler.advance(now),
            Supply::Ended => self.scheduler.flush(),
        };
        debug_assert_eq!(self.scheduler.statistics().tasks - before, u64::from(made));
        self.tasks += made as usize;
        // All but the last are whole warps.
        self.memory -= self.memory.min(made as usize * usize::from(self.settings.warp));
    }

    fn commit(&mut self) -> bool {
        let committed = self.scheduler.commit();
        self.committed += committed.map_or(0, |committed| committed.packets as usize);
        committed.is_some()
    }
}

fn end(scheduler: &mut Scheduler, warp: Warp) {
    scheduler.finish(warp.core, warp.slot).expect("it runs: it was issued, and is told of once");
}

impl Run<'_> {
    fn warps(&mut self) -> Option<(&mut Warps, u64)> {
        let now = self.own.now;
        match &mut self.own.order {
            Order::Warps(warps) => Some((warps, now)),
            Order::Placed(_) => None,
        }
    }

    /// A device batch that is to be run now, if there is one.
    pub(super) fn warp(&mut self, supply: Supply) -> Option<DeviceBatch> {
        let wanted = self.is_wanted(supply);
        let (warps, now) = self.warps()?;
        warps.finish(now);
        warps.make_tasks(now, supply);
        self.begin_warps();
        let (warps, now) = self.warps()?;
        if warps.tasks > 0 && warps.running.len() == warps.slots() {
            warps.finish_any(now);
            self.begin_warps();
        }
        let (warps, _) = self.warps()?;
        if warps.committed == 0 && !warps.commit() && wanted {
            // Whoever runs it waits for it.
            if let Some((warp, _)) = warps.running.pop_front() {
                end(&mut warps.scheduler, warp);
            }
            warps.commit();
        }
        warps.committed.checked_sub(1)?;
        let device_batch = self.own.closed.pop_front()?;
        self.own.full = false;
        let (warps, _) = self.warps()?;
        warps.committed -= device_batch.packets;
        Some(device_batch)
    }

    /// Gives the workers the tasks that the scheduler issues.
    fn begin_warps(&mut self) {
        while let Some((warps, placed)) = self.warps()
            && let Some(warp) = warps.scheduler.issue()
        {
            let packets = usize::from(warp.packets);
            warps.tasks -= 1;
            let takes = self.own.model.begin.of(packets);
            self.spend(takes);
            let finish = self.own.give(packets);
            if let Some((warps, _)) = self.warps() {
                warps.running.push_back((warp, finish));
            }
            self.own.closed.push_back(DeviceBatch { packets, place: ExecutionPlace::Device, placed, finish });
        }
    }
}
