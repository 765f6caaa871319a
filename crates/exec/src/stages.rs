//! Measures what each stage of a program costs, with a stopwatch that runs from one mark in the program to
//! the next.
//!
//! The idea: in a second variant of the program, each decoder or stage calls this stopwatch when it begins,
//! and so does the end of each packet and handler. The time between two calls belongs to the part of the
//! program that ran in between, so the parts add up to the whole. The cost of a call itself is measured
//! beforehand and subtracted.

use crate::interpret::Observer;
use ir::source::Span;
use ir::{BlockId, Program};

/// Buckets of a histogram: eight for each power of two.
const BUCKETS: usize = 496;
/// The number of calls in a round that measures the cost of a call, and the number of rounds.
const CALLS: u64 = 64;
const ROUNDS: usize = 16;

/// A part of a program that can be measured: the work between packets, a decoder or stage, or a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The name; `None` for the work between packets.
    pub name: Option<String>,
    /// The place of its declaration in the text.
    pub span: Option<Span>,
    /// Whether it handles events or the clock.
    pub handler: bool,
}

/// All parts of a program, in the order of [`StageClock::costs`].
pub fn sites(program: &Program) -> Vec<Site> {
    let between = Site { name: None, span: None, handler: false };
    let stages = program.stages.iter().map(|stage| Site {
        name: Some(stage.name.clone()),
        span: Some(stage.span),
        handler: false,
    });
    let handlers = program.functions.iter().skip(1).map(|function| Site {
        name: Some(function.name.clone()),
        span: function.blocks.first().map(|block| block.span),
        handler: true,
    });
    std::iter::once(between).chain(stages).chain(handlers).collect()
}

/// What one part of a program cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// Cycles spent in it, without those of the stopwatch.
    pub cycles: u64,
    /// How often packets or handlers entered it.
    pub entered: u64,
    buckets: Vec<u32>,
}

impl StageCost {
    fn new() -> StageCost {
        StageCost { cycles: 0, entered: 0, buckets: vec![0; BUCKETS] }
    }

    fn stay(&mut self, cycles: u64) {
        self.cycles += cycles;
        let bucket = &mut self.buckets[bucket_of(cycles)];
        *bucket = bucket.saturating_add(1);
    }

    /// The quantile `part` (0 to 1) of the cycles of a single visit, with an error of at most an eighth; 0
    /// without visits.
    pub fn quantile(&self, part: f64) -> u64 {
        let all: u64 = self.buckets.iter().map(|&stays| u64::from(stays)).sum();
        let wanted = ((all as f64 * part).ceil() as u64).clamp(1, all.max(1));
        let mut stays = 0;
        let found = self.buckets.iter().position(|&more| {
            stays += u64::from(more);
            stays >= wanted
        });
        found.map_or(0, largest_of)
    }

    /// Adds the cost of the same part at another worker.
    pub fn add(&mut self, other: &StageCost) {
        self.cycles += other.cycles;
        self.entered += other.entered;
        let buckets = self.buckets.iter_mut().zip(&other.buckets);
        buckets.for_each(|(stays, more)| *stays = stays.saturating_add(*more));
    }
}

/// The stopwatch.
#[derive(Clone, Debug)]
pub struct StageClock {
    now: fn() -> u64,
    costs: Vec<StageCost>,
    stages: usize,
    /// The part in which the program is, and since when.
    at: usize,
    since: u64,
    /// The cycles that a call of the stopwatch takes.
    own: u64,
    spent: u64,
    packets: u64,
    /// The packet that runs may have to be run again: the parts that it enters do not count yet.
    tries: bool,
    tried: Vec<usize>,
}

impl Default for StageClock {
    /// A stopwatch that measures nothing.
    fn default() -> StageClock {
        StageClock {
            now: || 0,
            costs: Vec::new(),
            stages: 0,
            at: BETWEEN,
            since: 0,
            own: 0,
            spent: 0,
            packets: 0,
            tries: false,
            tried: Vec::new(),
        }
    }
}

/// Between packets.
const BETWEEN: usize = 0;

impl StageClock {
    /// A stopwatch for this program; `now` reads the counter of cycles, or of anything else that is to be
    /// measured.
    pub fn new(program: &Program, now: fn() -> u64) -> StageClock {
        let stages = program.stages.len();
        let costs = vec![StageCost::new(); sites(program).len()];
        let mut clock =
            StageClock { now, costs, stages, tried: Vec::with_capacity(64), ..StageClock::default() };
        clock.own = clock.clone().own_cost();
        clock
    }

    /// The cost of each part of the program, in the order of [`sites`].
    pub fn costs(&self) -> &[StageCost] {
        &self.costs
    }

    /// How many packets were run meanwhile.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The cycles of the stopwatch itself. Together with those of all parts, they are all cycles that passed.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Adds the measurement of the same program at another worker.
    pub fn add(&mut self, other: &StageClock) {
        self.costs.iter_mut().zip(&other.costs).for_each(|(cost, more)| cost.add(more));
        self.spent += other.spent;
        self.packets += other.packets;
    }

    /// A batch of so many packets begins.
    pub(crate) fn begin(&mut self, packets: usize) {
        self.packets += packets as u64;
        (self.at, self.since) = (BETWEEN, (self.now)());
    }

    /// Counts the time since the last call for the current part, and makes `site` the current part.
    #[inline]
    pub(crate) fn go_to(&mut self, site: usize) {
        let now = (self.now)();
        let passed = now.wrapping_sub(self.since);
        let own = self.own.min(passed);
        self.spent += own;
        if let Some(cost) = self.costs.get_mut(self.at) {
            cost.stay(passed - own);
        }
        (self.at, self.since) = (site, now);
    }

    /// A decoder, stage or handler begins.
    #[inline]
    pub(crate) fn enter(&mut self, site: usize) {
        self.go_to(site);
        if self.tries {
            self.tried.push(site);
        } else if let Some(cost) = self.costs.get_mut(site) {
            cost.entered += 1;
        }
    }

    /// The program pauses: the current part is now the work between packets. Returns the part before.
    pub(crate) fn leave(&mut self) -> usize {
        let at = self.at;
        self.go_to(BETWEEN);
        at
    }

    /// A packet begins that may have to be run again.
    #[cfg(feature = "native")]
    pub(crate) fn try_packet(&mut self) {
        self.tries = true;
        self.tried.clear();
    }

    /// Ends such a packet: `counts` says whether its run counts. Returns the part in which it was.
    #[cfg(feature = "native")]
    pub(crate) fn tried(&mut self, counts: bool) -> usize {
        self.tries = false;
        if counts {
            for &site in &self.tried {
                if let Some(cost) = self.costs.get_mut(site) {
                    cost.entered += 1;
                }
            }
        }
        self.leave()
    }

    /// The site of a handler, by its function.
    pub(crate) fn handler(stages: usize, function: u32) -> usize {
        stages + function as usize
    }

    /// The site of a stage.
    pub(crate) fn stage(stage: u32) -> usize {
        1 + stage as usize
    }

    /// The cost of a call: the smallest of some rounds, since other rounds may have been interrupted.
    fn own_cost(mut self) -> u64 {
        let rounds = (0..ROUNDS).map(|_| {
            self.begin(0);
            let begun = self.since;
            (0..CALLS).for_each(|_| std::hint::black_box(&mut self).enter(BETWEEN));
            self.since.wrapping_sub(begun) / CALLS
        });
        rounds.min().unwrap_or(0)
    }
}

impl Observer for StageClock {
    fn stage(&mut self, stage: u32) {
        self.enter(StageClock::stage(stage));
    }

    fn handler(&mut self, function: u32, _args: &[u128], _now: u64) {
        self.enter(StageClock::handler(self.stages, function));
    }

    fn terminator(&mut self, _function: u32, _block: BlockId, next: Option<BlockId>) {
        if next.is_none() {
            self.leave();
        }
    }
}

/// The bucket of a number. Numbers below eight have a bucket each; for others, the power of two and the three
/// bits after the first one choose the bucket.
fn bucket_of(cycles: u64) -> usize {
    match cycles.checked_ilog2() {
        None | Some(0..=2) => cycles as usize,
        Some(power) => (power as usize - 2) * 8 + (cycles >> (power - 3) & 7) as usize,
    }
}

/// The largest number of a bucket.
fn largest_of(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    let (power, eighth) = (bucket as u32 / 8 + 2, bucket as u64 % 8);
    // The last bucket ends with the largest number there is.
    ((8 + eighth) << (power - 3)) + ((1 << (power - 3)) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_in_its_bucket_and_buckets_are_narrow() {
        let numbers =
            (0..64).flat_map(|power| [1u64 << power, (1 << power) - 1, 3 << power >> 1, 13 << power >> 3]);
        for number in numbers.chain(0..3000).chain([u64::MAX]) {
            let bucket = bucket_of(number);
            assert!(bucket < BUCKETS, "{number}");
            let largest = largest_of(bucket);
            assert!(
                largest >= number && largest - number <= number / 8,
                "{number} in {bucket} up to {largest}"
            );
            assert!(bucket == 0 || largest_of(bucket - 1) < number, "{number}");
        }
    }

    #[test]
    fn quantiles_are_those_of_the_stays() {
        let mut cost = StageCost::new();
        assert_eq!(cost.quantile(0.5), 0);
        (0..99).for_each(|_| cost.stay(5));
        cost.stay(1 << 20);
        assert_eq!((cost.quantile(0.5), cost.quantile(0.99)), (5, 5));
        assert!(cost.quantile(1.0) >= 1 << 20);
        assert_eq!(cost.cycles, 99 * 5 + (1 << 20));
    }
}
