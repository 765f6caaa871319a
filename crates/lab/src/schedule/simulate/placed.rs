//! Device batches by an offload policy, as `offload::device_queue` has them: the policy says when the open
//! device batch is closed, and where it is run.

use super::{DeviceBatch, Order, Run};
use offload::device_queue::Supply;
use offload::policy::{BatchingPolicy, Decision, ExecutionPlace, OffloadPolicy, Waiting};
use std::time::Duration;

/// A policy with what it has learned, and the open device batch.
pub(super) struct Placed {
    offload_policy: OffloadPolicy,
    last_done: u64,
    open: usize,
    /// When the first packet of the open device batch was taken.
    oldest: u64,
}

impl Placed {
    pub(super) fn new(policy: BatchingPolicy) -> Placed {
        Placed { offload_policy: OffloadPolicy::new(policy), last_done: 0, open: 0, oldest: 0 }
    }

    /// Packets of the open device batch.
    pub(super) fn open(&self) -> usize {
        self.open
    }

    /// So many packets have joined it; how many it has.
    pub(super) fn arrive(&mut self, now: u64, packets: usize) -> usize {
        if self.open == 0 {
            self.oldest = now;
        }
        self.open += packets;
        self.open
    }

    pub(super) fn due(&self, now: u64) -> Option<u64> {
        match self.decide(now) {
            Decision::Wait(Some(time)) => Some(now + time.as_nanos() as u64),
            Decision::Wait(None) | Decision::Run(..) => None,
        }
    }

    pub(super) fn learn(&mut self, device_batch: DeviceBatch, now: u64) {
        let begun = self.last_done.max(device_batch.placed);
        self.offload_policy.learn(
            device_batch.place,
            device_batch.packets,
            Duration::from_nanos(now - begun),
        );
        self.last_done = now;
    }

    fn decide(&self, now: u64) -> Decision {
        let oldest = Duration::from_nanos(now.saturating_sub(self.oldest));
        self.offload_policy.decide(Waiting { packets: self.open, oldest })
    }
}

impl Run<'_> {
    /// A device batch that is to be run now, if there is one.
    pub(super) fn placed(&mut self, supply: Supply) -> Option<DeviceBatch> {
        self.place(supply);
        let front = self.own.closed.front()?;
        let ready =
            front.place == ExecutionPlace::Host || self.is_wanted(supply) || front.finish <= self.own.now;
        if ready { self.own.closed.pop_front() } else { None }
    }

    /// Closes the open device batch if the policy says so, and gives it to the device if it is to run it.
    fn place(&mut self, supply: Supply) {
        let own = &mut *self.own;
        let Order::Placed(placed) = &mut own.order else { return };
        let stopped = own.closed.back().is_some_and(|last| last.place == ExecutionPlace::Host);
        if placed.open == 0 || stopped || own.closed.len() >= own.depth.device_batches {
            return;
        }
        let place = match (placed.decide(own.now), supply) {
            (_, Supply::Plenty) if !own.full => return,
            (Decision::Run(place, _), _) => place,
            (Decision::Wait(_), Supply::Ended) => ExecutionPlace::Device,
            (Decision::Wait(_), _) if own.full => ExecutionPlace::Device,
            (Decision::Wait(_), _) => return,
        };
        let packets = std::mem::take(&mut placed.open);
        let placed = own.now;
        own.full = false;
        let mut finish = placed;
        if place == ExecutionPlace::Device {
            let takes = own.model.begin.of(packets);
            self.spend(takes);
            finish = self.own.give(packets);
        }
        self.own.closed.push_back(DeviceBatch { packets, place, placed, finish });
    }
}
