//! Convoys by a policy of placement, as `engine::hold` has them: it says when the open convoy is closed, and where it is run.

use super::{Convoy, Order, Run};
use engine::hold::Supply;
use gpu::placement::{Decision, Place, Placement, Policy, Waiting};
use std::time::Duration;

/// A policy with what it has learned, and the open convoy.
pub(super) struct Placed {
    placement: Placement,
    last_done: u64,
    open: usize,
    /// When the first packet of the open convoy was taken.
    oldest: u64,
}

impl Placed {
    pub(super) fn new(policy: Policy) -> Placed {
        Placed { placement: Placement::new(policy), last_done: 0, open: 0, oldest: 0 }
    }

    /// Packets of the open convoy.
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

    pub(super) fn learn(&mut self, convoy: Convoy, now: u64) {
        let begun = self.last_done.max(convoy.placed);
        self.placement.learn(convoy.place, convoy.packets, Duration::from_nanos(now - begun));
        self.last_done = now;
    }

    fn decide(&self, now: u64) -> Decision {
        let oldest = Duration::from_nanos(now.saturating_sub(self.oldest));
        self.placement.decide(Waiting { packets: self.open, oldest })
    }
}

impl Run<'_> {
    /// A convoy that is to be run now, if there is one.
    pub(super) fn placed(&mut self, supply: Supply) -> Option<Convoy> {
        self.place(supply);
        let front = self.own.closed.front()?;
        let ready = front.place == Place::Processor || self.is_wanted(supply) || front.finish <= self.own.now;
        if ready { self.own.closed.pop_front() } else { None }
    }

    /// Closes the open convoy if the policy says so, and gives it to the device if it is to run it.
    fn place(&mut self, supply: Supply) {
        let own = &mut *self.own;
        let Order::Placed(placed) = &mut own.order else { return };
        let stopped = own.closed.back().is_some_and(|last| last.place == Place::Processor);
        if placed.open == 0 || stopped || own.closed.len() >= own.room.convoys {
            return;
        }
        let place = match (placed.decide(own.now), supply) {
            (_, Supply::Plenty) if !own.full => return,
            (Decision::Run(place, _), _) => place,
            (Decision::Wait(_), Supply::Ended) => Place::Device,
            (Decision::Wait(_), _) if own.full => Place::Device,
            (Decision::Wait(_), _) => return,
        };
        let packets = std::mem::take(&mut placed.open);
        let placed = own.now;
        own.full = false;
        let mut finish = placed;
        if place == Place::Device {
            let takes = own.model.begin.of(packets);
            self.spend(takes);
            finish = self.own.give(packets);
        }
        self.own.closed.push_back(Convoy { packets, place, placed, finish });
    }
}
