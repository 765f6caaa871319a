//! The offload policy decides when waiting packets run, and whether the host or the device runs them.
//!
//! The idea of the cost model: batches are sorted into classes by size, in powers of two. Of the last few
//! batches of a class, the median says how long such a batch takes on the host and on the device; between
//! classes the model interpolates linearly. A batch runs where it is expected to take less time. The policy
//! tries the other place again only while the cost of all trials is a small share of the time spent. So a
//! place that is slow at a size is tried seldom, and a place that became fast is found.
//!
//! The policy reads no clock: times and measurements are arguments.

use std::time::Duration;

/// The number of batches in a row that make a trial of the device: a device that gets the next batch before
/// it has finished one is faster than a device that gets it afterwards.
const IN_A_ROW: u32 = REMEMBERED as u32;
/// The number of batches at the beginning of a row that overlap with fewer others than later batches do.
const OVERLAPPING: u32 = 2;
/// A trial ends after its first batch if that took this many times as long as at the other place: overlap
/// cannot make up for such a difference.
const HOPELESS: f64 = 3.0;
/// The number of classes of sizes, by powers of two; the last class has all sizes from 2^31 packets on.
const CLASSES: usize = 32;
/// The number of batches of which the median counts: two interrupted batches do not change it, three slow
/// ones do.
const REMEMBERED: usize = 5;
/// One of this many nanoseconds may be spent on trials of the place that is not expected to be faster.
const TRYING: u64 = 50;

/// How much later than requested a sleeping thread is woken.
const WAKING: Duration = Duration::from_micros(20);

/// The place where a batch runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExecutionPlace {
    /// On the host.
    Host,
    /// On the device.
    Device,
}

/// The packets that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The number of packets.
    pub packets: usize,
    /// How long the first of them has waited.
    pub oldest: Duration,
}

/// What to do with what waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Wait for more packets, at most for this time; `None` means for ever, if no packet waits.
    Wait(Option<Duration>),
    /// Run the first of the waiting packets, this many, at this place.
    Run(ExecutionPlace, usize),
}

/// The kinds of offload policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchingPolicy {
    /// The device gets batches of a fixed size.
    FixedBatch {
        /// How many; at least 1.
        packets: usize,
    },
    /// The device gets batches of a fixed size, or smaller ones when the first packet has waited for the
    /// timeout.
    BatchOrTimeout {
        /// How many at most; at least 1.
        packets: usize,
        /// How long the first packet may wait.
        timeout: Duration,
    },
    /// Packets are collected as long as the device is expected to finish them before the deadline. If it is
    /// too late already, the place that is expected to be faster gets them.
    Deadline {
        /// How many at most; at least 1.
        packets: usize,
        /// The longest time from the arrival of a packet until it is finished.
        deadline: Duration,
    },
    /// Waiting packets run at once, at the place where they are expected to take less time.
    CostModel {
        /// How many at most; at least 1.
        packets: usize,
    },
}

impl BatchingPolicy {
    /// The largest number of packets that run together.
    pub fn packets(&self) -> usize {
        match *self {
            BatchingPolicy::FixedBatch { packets }
            | BatchingPolicy::BatchOrTimeout { packets, .. }
            | BatchingPolicy::Deadline { packets, .. }
            | BatchingPolicy::CostModel { packets } => packets.max(1),
        }
    }
}

/// The measured times of batches.
#[derive(Clone, Debug)]
struct Costs {
    /// The times by class of size, on the host and on the device.
    classes: [[Class; CLASSES]; 2],
    /// Nanoseconds that may still be spent on trials, for each class: with one sum for all, sizes with cheap
    /// trials would leave nothing to the others.
    credit: [f64; CLASSES],
    /// For each class, the place that is being tried, and how many more batches in a row.
    trials: [(ExecutionPlace, u32); CLASSES],
    /// How many of the next batches are still slower because a trial has just ended.
    returning: u32,
    /// Which classes have samples on the host and on the device, one bit for each class.
    sizes: [u32; 2],
}

/// The last batches of one class of size at one place, as samples.
#[derive(Clone, Copy, Debug, Default)]
struct Class {
    samples: [Sample; REMEMBERED],
    /// How many batches there have been.
    count: usize,
    /// The median by speed.
    middle: Sample,
}

/// The number of packets of a batch, and the nanoseconds that it took.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    packets: f64,
    took: f64,
}

/// An offload policy with the times that it has learned.
#[derive(Clone, Debug)]
pub struct OffloadPolicy {
    policy: BatchingPolicy,
    costs: Costs,
}

impl OffloadPolicy {
    /// A policy without samples.
    pub fn new(policy: BatchingPolicy) -> OffloadPolicy {
        OffloadPolicy {
            policy,
            costs: Costs {
                classes: [[Class::default(); CLASSES]; 2],
                credit: [0.0; CLASSES],
                trials: [(ExecutionPlace::Host, 0); CLASSES],
                returning: 0,
                sizes: [0; 2],
            },
        }
    }

    /// What to do with what waits.
    pub fn decide(&self, waiting: Waiting) -> Decision {
        let Waiting { packets, oldest } = waiting;
        if packets == 0 {
            return Decision::Wait(None);
        }
        let full = self.policy.packets();
        let most = packets.min(full);
        match self.policy {
            BatchingPolicy::FixedBatch { .. } if packets < full => Decision::Wait(None),
            BatchingPolicy::FixedBatch { .. } => Decision::Run(ExecutionPlace::Device, full),
            BatchingPolicy::BatchOrTimeout { timeout, .. } if packets < full && oldest < timeout => {
                Decision::Wait(Some(timeout - oldest))
            }
            BatchingPolicy::BatchOrTimeout { .. } => Decision::Run(ExecutionPlace::Device, most),
            BatchingPolicy::Deadline { deadline, .. } => {
                let left = deadline.saturating_sub(oldest);
                match self.costs.expected(ExecutionPlace::Device, most) {
                    Some(takes) if packets < full && takes + margin(takes) < left => {
                        Decision::Wait(Some(left - takes - margin(takes)))
                    }
                    Some(takes) if takes <= left => Decision::Run(ExecutionPlace::Device, most),
                    _ => Decision::Run(self.costs.better(most), most),
                }
            }
            BatchingPolicy::CostModel { .. } => Decision::Run(self.costs.choice(most), most),
        }
    }

    /// Learns how long a batch took at a place.
    pub fn learn(&mut self, place: ExecutionPlace, packets: usize, took: Duration) {
        self.costs.learn(place, packets, took);
    }
}

impl Costs {
    /// How long so many packets are expected to take at a place; `None` if no batch of about that size has
    /// run there.
    fn expected(&self, place: ExecutionPlace, packets: usize) -> Option<Duration> {
        self.known(place, packets).map(|nanoseconds| Duration::from_nanos(nanoseconds as u64))
    }

    /// The place where so many packets are expected to take less time; the host, if nothing is known.
    fn better(&self, packets: usize) -> ExecutionPlace {
        let of =
            |place: ExecutionPlace| self.known(place, packets).unwrap_or_else(|| self.least(place, packets));
        if of(ExecutionPlace::Device) < of(ExecutionPlace::Host) {
            ExecutionPlace::Device
        } else {
            ExecutionPlace::Host
        }
    }

    /// The better place, or the other one if it is time for a trial.
    fn choice(&self, packets: usize) -> ExecutionPlace {
        if let (place, 1..) = self.trials[class(packets)] {
            return place;
        }
        let better = self.better(packets);
        let other = other(better);
        let credit = self.credit[class(packets)];
        let of = |place| (self.known(place, packets), self.least(place, packets));
        match (of(better), of(other)) {
            // A place that was never tried and may be better is tried as soon as earlier trials are paid for,
            // or at once if it cannot be worse.
            ((None, _), (Some(known), _)) if credit < 0.0 && self.most(better, packets) > known => other,
            ((None, _), _) => better,
            ((Some(least), _), (known, possible)) => {
                let lost = known.unwrap_or(possible) - least;
                if credit > 0.0 && credit >= lost { other } else { better }
            }
        }
    }

    fn learn(&mut self, place: ExecutionPlace, packets: usize, took: Duration) {
        let took = took.as_nanos() as f64;
        let (own, beside) = (self.known(place, packets), self.known(other(place), packets));
        // The extra cost of a trial in comparison with the other place. A slow batch at the place that is
        // expected to be better does not count as such.
        let is_trial = beside.is_some_and(|least| own.is_none_or(|own| own > least));
        // Batches right after a trial are slower because of it, too, since they overlap with fewer others
        // than later batches.
        let usual = own.filter(|_| self.returning > 0);
        self.returning = if is_trial { OVERLAPPING } else { self.returning.saturating_sub(1) };
        let least = if is_trial { beside } else { usual };
        let lost = least.map_or(0.0, |least| (took - least).max(0.0));
        let trial = &mut self.trials[class(packets)];
        if *trial == (place, trial.1) && trial.1 > 0 {
            // A batch that is not faster after two others is not faster after more.
            let is_in_vain = trial.1 + OVERLAPPING <= IN_A_ROW && beside.is_some_and(|least| took > least);
            trial.1 = if is_in_vain { 0 } else { trial.1 - 1 };
        } else if is_trial
            && place == ExecutionPlace::Device
            && (own.is_none() || self.credit[class(packets)] > 0.0)
            && beside.is_some_and(|least| took < HOPELESS * least)
        {
            // A batch without credit was in flight when a trial ended: it belongs to that trial and begins no
            // new one.
            *trial = (place, IN_A_ROW - 1);
        }
        // The credit is limited to what one trial and a hundred batches of this size need; otherwise many
        // trials would follow a long time without trials.
        let most = 100.0 * took + beside.unwrap_or(0.0);
        let credit = &mut self.credit[class(packets)];
        *credit = credit.max((*credit + took / TRYING as f64).min(most)) - lost;
        self.sizes[place as usize] |= 1 << class(packets);
        self.classes[place as usize][class(packets)].learn(Sample { packets: packets.max(1) as f64, took });
    }

    /// The nanoseconds of so many packets, on the line through the samples of that class and of the nearest
    /// class on the same side.
    fn known(&self, place: ExecutionPlace, packets: usize) -> Option<f64> {
        let (classes, number) = (&self.classes[place as usize], class(packets));
        let near = classes[number].known()?;
        let all = packets;
        let packets = packets.max(1) as f64;
        let (below, above) = (self.below(place, number), self.above(place, number));
        let second = if packets > near.packets { above.or(below) } else { below };
        let proportional = near.took * packets / near.packets;
        let line = second.map_or(proportional, |second| {
            let slope = (second.took - near.took) / (second.packets - near.packets);
            let line = near.took + slope * (packets - near.packets);
            // The two points of the line were measured at different times, so the result is limited to
            // plausible costs.
            line.clamp(near.took.min(proportional), near.took.max(proportional))
        });
        // One or two batches may have been interrupted.
        let few = classes[number].count < REMEMBERED / 2 + 1;
        Some(if few { line.min(self.most(place, all)) } else { line })
    }

    /// The sample of the nearest smaller class.
    fn below(&self, place: ExecutionPlace, class: usize) -> Option<Sample> {
        let below = self.sizes[place as usize] & ((1 << class) - 1);
        Some(self.classes[place as usize][below.checked_ilog2()? as usize].middle)
    }

    /// The sample of the nearest larger class.
    fn above(&self, place: ExecutionPlace, class: usize) -> Option<Sample> {
        let above = self.sizes[place as usize].checked_shr(class as u32 + 1).filter(|above| *above > 0)?;
        Some(self.classes[place as usize][class + 1 + above.trailing_zeros() as usize].middle)
    }

    /// The least time of so many packets in nanoseconds, from batches of other sizes: more packets do not
    /// take less time, and fewer packets do not take less time for each packet.
    fn least(&self, place: ExecutionPlace, packets: usize) -> f64 {
        let (below, above) = (self.below(place, class(packets)), self.above(place, class(packets)));
        let each = |above: Sample| above.took * packets.max(1) as f64 / above.packets;
        below.map_or(0.0, |below| below.took).max(above.map_or(0.0, each))
    }

    /// The longest time of so many packets in nanoseconds, likewise.
    fn most(&self, place: ExecutionPlace, packets: usize) -> f64 {
        let (below, above) = (self.below(place, class(packets)), self.above(place, class(packets)));
        let each = |below: Sample| below.took * packets.max(1) as f64 / below.packets;
        below.map_or(f64::INFINITY, each).min(above.map_or(f64::INFINITY, |above| above.took))
    }
}

impl Class {
    fn known(&self) -> Option<Sample> {
        (self.count > 0).then_some(self.middle)
    }

    fn learn(&mut self, sample: Sample) {
        self.samples[self.count % REMEMBERED] = sample;
        self.count += 1;
        let mut sorted = self.samples;
        let sorted = &mut sorted[..self.count.min(REMEMBERED)];
        sorted.sort_by(|one, other| (one.took * other.packets).total_cmp(&(other.took * one.packets)));
        // Of an even number of samples the faster one of the two in the middle counts, since the first
        // batches at a place are often slow.
        self.middle = sorted[(sorted.len() - 1) / 2];
    }
}

fn other(place: ExecutionPlace) -> ExecutionPlace {
    if place == ExecutionPlace::Host { ExecutionPlace::Device } else { ExecutionPlace::Host }
}

/// How long before the last possible moment a batch goes to the device, since it may take longer than
/// expected, and a sleeping thread is woken late.
fn margin(takes: Duration) -> Duration {
    takes / 8 + WAKING
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
        let fixed = OffloadPolicy::new(BatchingPolicy::FixedBatch { packets: 64 });
        assert_eq!(fixed.decide(waiting(63, 1_000_000)), Decision::Wait(None));
        assert_eq!(fixed.decide(waiting(65, 0)), Decision::Run(ExecutionPlace::Device, 64));
        let timed = OffloadPolicy::new(BatchingPolicy::BatchOrTimeout { packets: 64, timeout: micros(100) });
        assert_eq!(timed.decide(waiting(0, 0)), Decision::Wait(None));
        assert_eq!(timed.decide(waiting(3, 40)), Decision::Wait(Some(micros(60))));
        assert_eq!(timed.decide(waiting(3, 100)), Decision::Run(ExecutionPlace::Device, 3));
        assert_eq!(timed.decide(waiting(100, 0)), Decision::Run(ExecutionPlace::Device, 64));
    }

    #[test]
    fn batches_that_were_under_way_when_a_trial_ended_begin_no_other() {
        for under_way in [1, 2, 3] {
            let mut offload_policy = OffloadPolicy::new(BatchingPolicy::CostModel { packets: 256 });
            let (mut before, mut on_device) = (std::collections::VecDeque::new(), 0);
            for _ in 0..2000 {
                let Decision::Run(place, 256) = offload_policy.decide(waiting(256, 0)) else {
                    panic!("all wait")
                };
                before.push_back(place);
                if before.len() == under_way {
                    let done = before.pop_front().expect("there is one");
                    on_device += usize::from(done == ExecutionPlace::Device);
                    // Slower, but not so much that a trial would be hopeless.
                    offload_policy.learn(
                        done,
                        256,
                        micros(if done == ExecutionPlace::Device { 100 } else { 40 }),
                    );
                }
            }
            assert!(on_device < 100, "{on_device} of 2000 with {under_way} under way");
        }
    }

    #[test]
    fn a_deadline_is_used_up_and_what_would_be_late_goes_where_it_is_faster() {
        let mut offload_policy =
            OffloadPolicy::new(BatchingPolicy::Deadline { packets: 1024, deadline: micros(200) });
        assert_eq!(
            offload_policy.decide(waiting(8, 0)),
            Decision::Run(ExecutionPlace::Host, 8),
            "nothing is known"
        );
        offload_policy.learn(ExecutionPlace::Device, 8, micros(80));
        offload_policy.learn(ExecutionPlace::Host, 8, micros(4));
        assert_eq!(offload_policy.decide(waiting(8, 20)), Decision::Wait(Some(micros(70))));
        // Whoever waits so long is woken a little later.
        assert_eq!(offload_policy.decide(waiting(8, 91)), Decision::Run(ExecutionPlace::Device, 8));
        assert_eq!(offload_policy.decide(waiting(8, 120)), Decision::Run(ExecutionPlace::Device, 8));
        assert_eq!(offload_policy.decide(waiting(8, 130)), Decision::Run(ExecutionPlace::Host, 8));
        offload_policy.learn(ExecutionPlace::Device, 1024, micros(90));
        assert_eq!(offload_policy.decide(waiting(5000, 0)), Decision::Run(ExecutionPlace::Device, 1024));
    }

    /// Nanoseconds of so many packets at a place.
    #[derive(Clone, Copy, Debug)]
    struct Curve {
        fixed: f64,
        slope: f64,
        /// Whether the fixed part and the other one overlap.
        overlaps: bool,
    }

    impl Curve {
        fn sum(fixed: f64, slope: f64) -> Curve {
            Curve { fixed, slope, overlaps: false }
        }

        fn takes(&self, packets: usize) -> f64 {
            let sloping = self.slope * packets as f64;
            if self.overlaps { self.fixed.max(sloping) } else { self.fixed + sloping }
        }
    }

    /// 100 ns a packet.
    const PROCESSOR: Curve = Curve { fixed: 0.0, slope: 100.0, overlaps: false };

    /// Numbers from 0 to 1 that look as if drawn at random.
    struct Draw(u64);

    impl Draw {
        fn next(&mut self) -> f64 {
            // The multiplier and increment of Knuth's MMIX generator.
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 11) as f64 / (1_u64 << 53) as f64
        }

        /// From `low` to `high`, as many in every octave.
        fn between(&mut self, low: f64, high: f64) -> f64 {
            low * (high / low).powf(self.next())
        }
    }

    /// Runs batches of sizes that `size` says, each taking what its place's curve says times what `noise`
    /// says; what they took, and what the better place would have, in nanoseconds.
    fn spend(
        offload_policy: &mut OffloadPolicy,
        places: [Curve; 2],
        batches: usize,
        mut size: impl FnMut() -> usize,
        mut noise: impl FnMut() -> f64,
    ) -> (f64, f64) {
        let (mut spent, mut least) = (0.0, 0.0);
        for _ in 0..batches {
            let packets = size();
            let Decision::Run(place, run) = offload_policy.decide(waiting(packets, 0)) else {
                panic!("it waits")
            };
            assert_eq!(run, packets);
            let takes = places.map(|place| place.takes(packets));
            let noise = noise();
            let took = takes[place as usize] * noise;
            offload_policy.learn(place, packets, Duration::from_nanos(took as u64));
            spent += took;
            least += takes[0].min(takes[1]) * noise;
        }
        (spent, least)
    }

    fn model() -> OffloadPolicy {
        OffloadPolicy::new(BatchingPolicy::CostModel { packets: 1 << 16 })
    }

    fn within(spent: f64, least: f64, what: &str) {
        within_share(1.1, spent, least, what);
    }

    fn within_share(share: f64, spent: f64, least: f64, what: &str) {
        assert!(spent <= least * share, "{what}: {:.3} of what the better place takes", spent / least);
    }

    #[test]
    fn the_cost_model_is_within_a_tenth_of_the_better_place_at_every_size() {
        for overlaps in [false, true] {
            let places = [PROCESSOR, Curve { fixed: 30_000.0, slope: 10.0, overlaps }];
            for size in 0..17 {
                let packets = 1 << size;
                let mut offload_policy = model();
                // The first trial of a place that is hundreds of times slower is paid for by many batches.
                spend(&mut offload_policy, places, 10_000, || packets, || 1.0);
                let (spent, least) = spend(&mut offload_policy, places, 10_000, || packets, || 1.0);
                within(spent, least, &format!("{packets} at once, overlapping: {overlaps}"));
            }
        }
    }

    #[test]
    fn whatever_places_cost_and_sizes_are_mixed_the_model_is_within_a_tenth_of_the_better() {
        for seed in 0..60 {
            let mut draw = Draw(seed);
            let places = [
                Curve::sum(draw.between(10.0, 1000.0), draw.between(10.0, 1000.0)),
                Curve {
                    fixed: draw.between(3000.0, 300_000.0),
                    slope: draw.between(1.0, 1000.0),
                    overlaps: seed % 2 == 1,
                },
            ];
            let largest = draw.between(16.0, 65_536.0);
            // A batch in a hundred is interrupted, and takes up to twenty times as long.
            let noisy = seed % 3 != 0;
            let mut luck = Draw(seed + 1000);
            let mut noise = || match (noisy, luck.next()) {
                (false, _) => 1.0,
                (true, drawn) if drawn < 0.01 => 1.0 + 2000.0 * drawn,
                (true, drawn) => 1.0 + drawn / 2.0,
            };
            let mut offload_policy = model();
            let mut size = || draw.between(1.0, largest) as usize;
            spend(&mut offload_policy, places, 20_000, &mut size, &mut noise);
            let (spent, least) = spend(&mut offload_policy, places, 20_000, &mut size, &mut noise);
            within(spent, least, &format!("seed {seed}, {places:?}, up to {largest} at once"));
        }
    }

    #[test]
    fn between_sizes_a_straight_line_says_what_a_batch_takes() {
        let mut offload_policy = model();
        for packets in [300, 1000] {
            offload_policy.learn(ExecutionPlace::Device, packets, micros(60));
            offload_policy.learn(ExecutionPlace::Host, packets, Duration::from_nanos(100 * packets as u64));
        }
        let costs = &offload_policy.costs;
        assert_eq!(costs.expected(ExecutionPlace::Device, 530), Some(micros(60)));
        assert_eq!((costs.better(530), costs.better(670)), (ExecutionPlace::Host, ExecutionPlace::Device));
    }

    #[test]
    fn a_device_that_is_faster_only_with_the_next_batch_at_hand_is_found() {
        let mut offload_policy = model();
        let (mut spent, mut least, mut in_a_row) = (0.0, 0.0, 0);
        for _ in 0..20_000 {
            let Decision::Run(place, packets) = offload_policy.decide(waiting(2048, 0)) else {
                panic!("it waits")
            };
            // Two batches are under way once a few have followed each other.
            in_a_row = if place == ExecutionPlace::Device { in_a_row + 1 } else { 0 };
            let took = match in_a_row {
                0 => 200_000,
                1 | 2 => 260_000,
                _ => 130_000,
            };
            offload_policy.learn(place, packets, Duration::from_nanos(took));
            (spent, least) = (spent + took as f64, least + 130_000.0);
        }
        within_share(1.05, spent, least, "with batches one behind the other");
    }

    #[test]
    fn a_row_ends_where_it_is_hopeless_or_in_vain_and_the_processor_is_tried_with_single_batches() {
        let after = |tried: ExecutionPlace, took: &[u64]| {
            let mut offload_policy = model();
            (0..5).for_each(|_| offload_policy.learn(other(tried), 2048, micros(200)));
            took.iter().for_each(|took| offload_policy.learn(tried, 2048, micros(*took)));
            let Decision::Run(place, _) = offload_policy.decide(waiting(2048, 0)) else { panic!("it waits") };
            place
        };
        assert_eq!(
            after(ExecutionPlace::Device, &[260, 260]),
            ExecutionPlace::Device,
            "two have too few before them"
        );
        assert_eq!(after(ExecutionPlace::Device, &[260, 260, 190]), ExecutionPlace::Device);
        assert_eq!(after(ExecutionPlace::Device, &[260, 260, 260]), ExecutionPlace::Host, "in vain");
        assert_eq!(after(ExecutionPlace::Device, &[700]), ExecutionPlace::Host, "hopeless");
        assert_eq!(after(ExecutionPlace::Host, &[260]), ExecutionPlace::Device, "no row");
    }

    #[test]
    fn a_device_that_becomes_fast_for_small_batches_is_found_while_it_has_the_large_ones() {
        let (mut offload_policy, mut luck, mut turn) = (model(), Draw(7), 0);
        let mut run = |fixed, batches| {
            let size = || {
                turn += 1;
                if turn % 2 == 1 { 64 } else { 8192 }
            };
            let noise = || 1.0 + luck.next() / 2.0;
            spend(&mut offload_policy, [PROCESSOR, Curve::sum(fixed, 10.0)], batches, size, noise);
            offload_policy.costs.better(64)
        };
        assert_eq!(run(30_000.0, 5_000), ExecutionPlace::Host);
        assert_eq!(run(1_000.0, 40_000), ExecutionPlace::Device);
    }

    #[test]
    fn a_device_that_becomes_fast_or_slow_is_found_out() {
        let device = |fixed| [PROCESSOR, Curve::sum(fixed, 10.0)];
        let mut offload_policy = model();
        spend(&mut offload_policy, device(30_000.0), 1000, || 256, || 1.0);
        assert_eq!(offload_policy.costs.better(256), ExecutionPlace::Host);
        for (fixed, place) in [
            (1000.0, ExecutionPlace::Device),
            (300_000.0, ExecutionPlace::Host),
            (1000.0, ExecutionPlace::Device),
        ] {
            // What it takes to find out is in it.
            let (spent, least) = spend(&mut offload_policy, device(fixed), 40_000, || 256, || 1.0);
            assert_eq!(offload_policy.costs.better(256), place);
            within(spent, least, &format!("after the device has come to take {fixed} ns a batch"));
        }
    }

    #[test]
    fn places_that_change_all_the_time_cost_no_more_than_a_tenth() {
        for seed in 0..8 {
            let mut draw = Draw(seed);
            let mut offload_policy = model();
            let (mut spent, mut least) = (0.0, 0.0);
            for _ in 0..8 {
                let places =
                    [PROCESSOR, Curve::sum(draw.between(2000.0, 500_000.0), draw.between(2.0, 200.0))];
                let middle = draw.between(16.0, 16_384.0);
                let size = || draw.between(middle, 2.0 * middle) as usize;
                let (here, better) = spend(&mut offload_policy, places, 40_000, size, || 1.0);
                (spent, least) = (spent + here, least + better);
            }
            within(spent, least, &format!("seed {seed}"));
        }
    }

    #[test]
    fn a_place_that_is_far_slower_is_asked_for_a_fiftieth_of_the_time_and_no_more() {
        let places = [PROCESSOR, Curve::sum(1e6, 10.0)];
        let mut offload_policy = model();
        let (spent, least) = spend(&mut offload_policy, places, 200_000, || 16, || 1.0);
        // Beyond what was saved up, one trial at most.
        assert!(spent <= least * (1.0 + 1.0 / TRYING as f64) + 1e6, "{spent} and not {least}");
        let of = |place| offload_policy.costs.expected(place, 16);
        assert!(
            of(ExecutionPlace::Host) < of(ExecutionPlace::Device),
            "{:?}",
            offload_policy.costs.better(16)
        );
    }
}
