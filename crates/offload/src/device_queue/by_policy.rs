//! Device batches by an offload policy: it says when the open device batch is closed, and whether the device
//! runs it.

use super::Supply;
use super::in_flight::{DeviceBatch, InFlight};
use crate::policy::{BatchingPolicy, Decision, ExecutionPlace, OffloadPolicy, Waiting};
use exec::{AsyncBackend, SubmitOutcome};
use std::time::{Duration, Instant};

/// A policy with what it has learned.
pub(super) struct ByPolicy {
    offload_policy: OffloadPolicy,
    /// When packets were last done.
    last_done: Option<Instant>,
}

impl ByPolicy {
    pub(super) fn new(policy: BatchingPolicy) -> ByPolicy {
        ByPolicy { offload_policy: OffloadPolicy::new(policy), last_done: None }
    }

    /// A device batch that is to be run now, if there is one.
    pub(super) fn ready(
        &mut self,
        in_flight: &mut InFlight,
        mut device: Option<&mut (dyn AsyncBackend + '_)>,
        supply: Supply,
        now: Instant,
    ) -> Option<DeviceBatch> {
        self.place(in_flight, device.as_deref_mut(), supply, now);
        let front = in_flight.closed.front()?;
        let ready = front.place == ExecutionPlace::Host
            || supply.is_wanted(in_flight)
            || device.is_none_or(|device| device.is_complete(0));
        if ready { in_flight.closed.pop_front() } else { None }
    }

    /// A device batch has been run.
    pub(super) fn learn(&mut self, device_batch: &DeviceBatch, now: Instant) {
        // While one was under way the next has waited for it.
        let begun = self.last_done.map_or(device_batch.placed, |done| done.max(device_batch.placed));
        self.offload_policy.learn(
            device_batch.place,
            device_batch.packets,
            now.saturating_duration_since(begun),
        );
        self.last_done = Some(now);
    }

    pub(super) fn due(&self, in_flight: &InFlight, now: Instant) -> Option<Duration> {
        match self.decide(in_flight, now) {
            Decision::Wait(time) => time,
            Decision::Run(..) => Some(Duration::ZERO),
        }
    }

    fn decide(&self, in_flight: &InFlight, now: Instant) -> Decision {
        let oldest = now.saturating_duration_since(in_flight.open.oldest);
        self.offload_policy.decide(Waiting { packets: in_flight.open.packets, oldest })
    }

    /// Closes the open device batch if the policy says so, and lets the device begin with it if it is to.
    fn place(
        &mut self,
        in_flight: &mut InFlight,
        device: Option<&mut (dyn AsyncBackend + '_)>,
        supply: Supply,
        now: Instant,
    ) {
        // What the host is to run waits for those before; nothing is begun behind it until then.
        let stopped = in_flight.closed.back().is_some_and(|last| last.place == ExecutionPlace::Host);
        if in_flight.open.packets == 0 || stopped || in_flight.closed.len() >= in_flight.depth.device_batches
        {
            return;
        }
        // Nobody waits for a device that is gone.
        let is_gone = device.is_none();
        let place = match (self.decide(in_flight, now), supply) {
            (_, Supply::Plenty) if !in_flight.full => return,
            (Decision::Run(place, _), _) => place,
            (Decision::Wait(_), Supply::Ended) => ExecutionPlace::Device,
            (Decision::Wait(_), _) if in_flight.full || is_gone => ExecutionPlace::Device,
            (Decision::Wait(_), _) => return,
        };
        let (memory, batches) = in_flight.open.parts();
        in_flight.open.place = match device.filter(|_| place == ExecutionPlace::Device) {
            None => ExecutionPlace::Host,
            Some(device) => match device.submit(memory, batches) {
                SubmitOutcome::Accepted => ExecutionPlace::Device,
                SubmitOutcome::Busy => return,
                SubmitOutcome::Refused => ExecutionPlace::Host,
            },
        };
        in_flight.open.placed = now;
        in_flight.close(now);
    }
}
