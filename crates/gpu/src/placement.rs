//! When packets that wait are taken, and whether the processor or the device runs them.
//!
//! The idea: how long a batch took, on the processor and on the device, is remembered by size, in powers of two. A batch goes where one of its
//! size took less time. The other place is tried again only while all that trying has cost is a small share of the time spent, so that a place
//! that is slow at a size is asked seldom and one that became fast is found.
//!
//! Nothing here asks a clock: times and measurements are arguments.

use std::time::Duration;

/// Sizes are told apart in powers of two; from 2^31 packets on they are not.
const CLASSES: usize = 32;
/// Of every so many nanoseconds one may go into trying the place that is not expected to be better.
const TRYING: u64 = 50;

/// Where a batch is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On the processor.
    Processor,
    /// On the device.
    Device,
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Packets.
    pub packets: usize,
    /// How long the first of them has waited.
    pub oldest: Duration,
}

/// What to do with what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Wait for more packets, at most so long; forever if no packet waits.
    Wait(Option<Duration>),
    /// Run so many of the packets that wait, the first ones.
    Run(Place, usize),
}

/// How decisions are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The device gets batches of exactly so many packets.
    FixedBatch {
        /// How many; at least 1.
        packets: usize,
    },
    /// The device gets so many packets, or fewer once the first has waited for a time.
    BatchOrTimeout {
        /// How many at most; at least 1.
        packets: usize,
        /// How long the first may wait.
        timeout: Duration,
    },
    /// Packets are collected as long as the device is expected to be done with them in time; where it would be too late already, the place
    /// that is expected to be faster gets them.
    Deadline {
        /// How many at most; at least 1.
        packets: usize,
        /// From when a packet begins to wait until it is done.
        deadline: Duration,
    },
    /// What waits is run at once where it is expected to take less time.
    CostModel {
        /// How many at most; at least 1.
        packets: usize,
    },
}

/// What batches took so far.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Nanoseconds of a packet by size of the batch, on the processor and on the device.
    packet: [[Option<f64>; CLASSES]; 2],
    /// Nanoseconds that may still go into trying.
    credit: f64,
}

/// A policy with what it has learned.
#[derive(Clone, Debug)]
pub struct Placement {
    policy: Policy,
    costs: Costs,
}

impl Placement {
    /// A policy that knows nothing yet.
    pub fn new(policy: Policy) -> Placement {
        Placement { policy, costs: Costs { packet: [[None; CLASSES]; 2], credit: 0.0 } }
    }

    /// What to do with what waits.
    pub fn decide(&self, waiting: Waiting) -> Decision {
        let Waiting { packets, oldest } = waiting;
        if packets == 0 {
            return Decision::Wait(None);
        }
        match self.policy {
            Policy::FixedBatch { packets: full } => match packets >= full.max(1) {
                true => Decision::Run(Place::Device, full.max(1)),
                false => Decision::Wait(None),
            },
            Policy::BatchOrTimeout { packets: full, timeout } => {
                if packets >= full || oldest >= timeout {
                    Decision::Run(Place::Device, packets.min(full.max(1)))
                } else {
                    Decision::Wait(Some(timeout - oldest))
                }
            }
            Policy::Deadline { packets: full, deadline } => {
                let most = packets.min(full.max(1));
                let left = deadline.saturating_sub(oldest);
                match self.costs.expected(Place::Device, most) {
                    Some(takes) if packets < full && takes < left => Decision::Wait(Some(left - takes)),
                    Some(takes) if takes <= left => Decision::Run(Place::Device, most),
                    _ => Decision::Run(self.costs.better(most), most),
                }
            }
            Policy::CostModel { packets: full } => {
                let most = packets.min(full.max(1));
                Decision::Run(self.costs.choice(most), most)
            }
        }
    }

    /// Learns what a batch took at a place.
    pub fn learn(&mut self, place: Place, packets: usize, took: Duration) {
        self.costs.learn(place, packets, took);
    }

    /// What is known of costs.
    pub fn costs(&self) -> &Costs {
        &self.costs
    }
}

impl Costs {
    /// How long so many packets are expected to take; none where no batch of about that size has been there.
    pub fn expected(&self, place: Place, packets: usize) -> Option<Duration> {
        let packet = self.packet[place as usize][class(packets)]?;
        Some(Duration::from_nanos((packet * packets as f64) as u64))
    }

    /// Where so many packets are expected to take less time. Where nothing is known, the processor.
    pub fn better(&self, packets: usize) -> Place {
        let of = |place: Place| self.packet[place as usize][class(packets)];
        match (of(Place::Processor), of(Place::Device)) {
            (Some(processor), Some(device)) if device < processor => Place::Device,
            _ => Place::Processor,
        }
    }

    /// The better place, or the other one where it is time to try that.
    fn choice(&self, packets: usize) -> Place {
        let better = self.better(packets);
        let other = if better == Place::Processor { Place::Device } else { Place::Processor };
        let known = |place| self.expected(place, packets).map(|time| time.as_nanos() as f64);
        match (known(better), known(other)) {
            (None, _) => better,
            // What was never tried is tried as soon as earlier trials are paid for.
            (Some(_), None) if self.credit >= 0.0 => other,
            (Some(least), Some(most)) if self.credit >= most - least && self.credit > 0.0 => other,
            _ => better,
        }
    }

    fn learn(&mut self, place: Place, packets: usize, took: Duration) {
        let took = took.as_nanos() as f64;
        let other = if place == Place::Processor { Place::Device } else { Place::Processor };
        // What a trial cost more than the other place would have.
        let lost =
            self.expected(other, packets).map_or(0.0, |least| (took - least.as_nanos() as f64).max(0.0));
        // What is saved up is no more than a hundred trials of this size, or a long quiet time would be followed by many.
        self.credit = (self.credit + took / TRYING as f64 - lost).min(100.0 * took);
        let known = &mut self.packet[place as usize][class(packets)];
        let now = took / packets.max(1) as f64;
        *known = Some(match *known {
            // One batch that was interrupted does not decide: a slower one counts for less than a faster one.
            Some(before) if now > before => before + (now - before) / 8.0,
            Some(before) => before + (now - before) / 2.0,
            None => now,
        });
    }
}

fn class(packets: usize) -> usize {
    (packets.max(1).ilog2() as usize).min(CLASSES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn waiting(packets: usize, oldest: u64) -> Waiting {
        Waiting { packets, oldest: micros(oldest) }
    }

    #[test]
    fn a_fixed_batch_is_waited_for_and_one_with_a_timeout_is_not() {
        let fixed = Placement::new(Policy::FixedBatch { packets: 64 });
        assert_eq!(fixed.decide(waiting(63, 1_000_000)), Decision::Wait(None));
        assert_eq!(fixed.decide(waiting(65, 0)), Decision::Run(Place::Device, 64));
        let timed = Placement::new(Policy::BatchOrTimeout { packets: 64, timeout: micros(100) });
        assert_eq!(timed.decide(waiting(0, 0)), Decision::Wait(None));
        assert_eq!(timed.decide(waiting(3, 40)), Decision::Wait(Some(micros(60))));
        assert_eq!(timed.decide(waiting(3, 100)), Decision::Run(Place::Device, 3));
        assert_eq!(timed.decide(waiting(100, 0)), Decision::Run(Place::Device, 64));
    }

    #[test]
    fn a_deadline_is_used_up_and_what_would_be_late_goes_where_it_is_faster() {
        let mut placement = Placement::new(Policy::Deadline { packets: 1024, deadline: micros(200) });
        assert_eq!(placement.decide(waiting(8, 0)), Decision::Run(Place::Processor, 8), "nothing is known");
        placement.learn(Place::Device, 8, micros(80));
        placement.learn(Place::Processor, 8, micros(4));
        assert_eq!(placement.decide(waiting(8, 20)), Decision::Wait(Some(micros(100))));
        assert_eq!(placement.decide(waiting(8, 120)), Decision::Run(Place::Device, 8));
        assert_eq!(placement.decide(waiting(8, 130)), Decision::Run(Place::Processor, 8));
        placement.learn(Place::Device, 1024, micros(90));
        assert_eq!(placement.decide(waiting(5000, 0)), Decision::Run(Place::Device, 1024));
    }

    /// What a batch takes: the processor 100 ns a packet, the device 30 µs and 10 ns a packet.
    fn takes(place: Place, packets: usize, device: u64) -> Duration {
        Duration::from_nanos(match place {
            Place::Processor => 100 * packets as u64,
            Place::Device => device + 10 * packets as u64,
        })
    }

    /// Runs so many batches; what they took, and what the better place alone would have.
    fn spend(placement: &mut Placement, packets: usize, batches: usize, device: u64) -> (Duration, Duration) {
        let mut spent = Duration::ZERO;
        for _ in 0..batches {
            let Decision::Run(place, run) = placement.decide(waiting(packets, 0)) else { panic!("it waits") };
            assert_eq!(run, packets);
            let took = takes(place, packets, device);
            placement.learn(place, packets, took);
            spent += took;
        }
        let least = takes(Place::Processor, packets, device).min(takes(Place::Device, packets, device));
        (spent, least * batches as u32)
    }

    #[test]
    fn the_cost_model_is_within_a_tenth_of_the_better_place_at_every_size() {
        for size in 0..17 {
            let packets = 1 << size;
            let mut placement = Placement::new(Policy::CostModel { packets: 1 << 16 });
            // The first trial of a place that is hundreds of times slower is paid for by many batches.
            spend(&mut placement, packets, 10_000, 30_000);
            let (spent, least) = spend(&mut placement, packets, 10_000, 30_000);
            assert!(spent <= least.mul_f64(1.1), "{packets}: {spent:?} and not {least:?}");
        }
    }

    #[test]
    fn a_device_that_becomes_fast_or_slow_is_found_out() {
        let mut placement = Placement::new(Policy::CostModel { packets: 1 << 16 });
        spend(&mut placement, 256, 1000, 30_000);
        assert_eq!(placement.costs().better(256), Place::Processor);
        spend(&mut placement, 256, 4000, 1000);
        assert_eq!(placement.costs().better(256), Place::Device);
        spend(&mut placement, 256, 4000, 300_000);
        assert_eq!(placement.costs().better(256), Place::Processor);
    }
}
