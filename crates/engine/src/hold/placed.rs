//! Convoys by a policy of placement: it says when the open convoy is closed, and whether the device begins with it.

use super::Supply;
use super::line::{Convoy, Line};
use exec::{Beginning, Processor};
use gpu::placement::{Decision, Place, Placement, Policy, Waiting};
use std::time::{Duration, Instant};

/// A policy with what it has learned.
pub(super) struct Placed {
    placement: Placement,
    /// When packets were last done.
    last_done: Option<Instant>,
}

impl Placed {
    pub(super) fn new(policy: Policy) -> Placed {
        Placed { placement: Placement::new(policy), last_done: None }
    }

    /// A convoy that is to be run now, if there is one.
    pub(super) fn ready(
        &mut self,
        line: &mut Line,
        processor: &mut dyn Processor,
        supply: Supply,
        now: Instant,
    ) -> Option<Convoy> {
        self.place(line, processor, supply, now);
        let front = line.closed.front()?;
        let ready = front.place == Place::Processor
            || supply.is_wanted(line)
            || processor.ahead().is_none_or(|ahead| ahead.is_done(0));
        if ready { line.closed.pop_front() } else { None }
    }

    /// A convoy has been run.
    pub(super) fn learn(&mut self, convoy: &Convoy, now: Instant) {
        // While one was under way the next has waited for it.
        let begun = self.last_done.map_or(convoy.placed, |done| done.max(convoy.placed));
        self.placement.learn(convoy.place, convoy.packets, now.saturating_duration_since(begun));
        self.last_done = Some(now);
    }

    pub(super) fn due(&self, line: &Line, now: Instant) -> Option<Duration> {
        match self.decide(line, now) {
            Decision::Wait(time) => time,
            Decision::Run(..) => Some(Duration::ZERO),
        }
    }

    fn decide(&self, line: &Line, now: Instant) -> Decision {
        let oldest = now.saturating_duration_since(line.open.oldest);
        self.placement.decide(Waiting { packets: line.open.packets, oldest })
    }

    /// Closes the open convoy if the policy says so, and lets the device begin with it if it is to.
    fn place(&mut self, line: &mut Line, processor: &mut dyn Processor, supply: Supply, now: Instant) {
        // What the processor is to run waits for those before; nothing is begun behind it until then.
        let stopped = line.closed.back().is_some_and(|last| last.place == Place::Processor);
        if line.open.packets == 0 || stopped || line.closed.len() >= line.room.convoys {
            return;
        }
        // Nobody waits for a device that is gone.
        let is_gone = processor.ahead().is_none();
        let place = match (self.decide(line, now), supply) {
            (_, Supply::Plenty) if !line.full => return,
            (Decision::Run(place, _), _) => place,
            (Decision::Wait(_), Supply::Ended) => Place::Device,
            (Decision::Wait(_), _) if line.full || is_gone => Place::Device,
            (Decision::Wait(_), _) => return,
        };
        let (memory, batches) = line.open.parts();
        line.open.place = match processor.ahead().filter(|_| place == Place::Device) {
            None => Place::Processor,
            Some(ahead) => match ahead.begin(memory, batches) {
                Beginning::Begun => Place::Device,
                Beginning::Later => return,
                Beginning::Never => Place::Processor,
            },
        };
        line.open.placed = now;
        line.close(now);
    }
}
