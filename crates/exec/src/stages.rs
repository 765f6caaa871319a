//! What each stage of a program costs: a stopwatch that runs from one mark of the program to the next.
//!
//! The idea: of a program there is a second variant in which each decoder or stage calls this stopwatch when
//! it begins, and packets and handlers do when they end. Whatever time passes from one call to the next
//! belongs to where the program was in between, so the parts are the whole. What a call takes itself is
//! measured beforehand and told apart.

use crate::interpret::Observer;
use lang::ir::{BlockId, Program};
use lang::source::Span;

/// Buckets of a histogram: eight for each power of two.
const BUCKETS: usize = 496;
/// So many calls are timed to learn what one takes, and so many times.
const CALLS: u64 = 64;
const ROUNDS: usize = 16;

/// Where a program can be: between packets, in one of its decoders and stages, or in one of its handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its name; none for what is between packets.
    pub name: Option<String>,
    /// Its declaration.
    pub span: Option<Span>,
    /// Whether it handles events or the clock.
    pub handler: bool,
}

/// Everything that a program consists of, in the order in which [`StageClock::costs`] tells of it.
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

/// What one of them cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// Cycles, without those of the stopwatch.
    pub cycles: u64,
    /// How often it began.
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

    /// So many cycles this part of the stays took at most, within an eighth; 0 if there was none.
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

    /// Adds what the same stage cost elsewhere.
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
    /// Where the program is, and since when.
    at: usize,
    since: u64,
    /// What a call takes.
    own: u64,
    spent: u64,
    packets: u64,
    /// A packet is run that may be run again: what it enters does not count yet.
    tries: bool,
    tried: Vec<usize>,
}

impl Default for StageClock {
    /// One that nothing is measured with.
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
    /// One for this program that reads a counter of cycles, or of whatever is to be measured.
    pub fn new(program: &Program, now: fn() -> u64) -> StageClock {
        let stages = program.stages.len();
        let costs = vec![StageCost::new(); sites(program).len()];
        let mut clock =
            StageClock { now, costs, stages, tried: Vec::with_capacity(64), ..StageClock::default() };
        clock.own = clock.clone().own_cost();
        clock
    }

    /// What each place of the program cost, in the order of [`sites`].
    pub fn costs(&self) -> &[StageCost] {
        &self.costs
    }

    /// How many packets were run meanwhile.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The cycles of the stopwatch itself. With those of all places they are all that passed.
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// Adds what was measured of the same program elsewhere.
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

    /// The time since the last call belonged to where the program was, which is now somewhere else.
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

    /// Nothing of the program is run any more; gives where it was.
    pub(crate) fn leave(&mut self) -> usize {
        let at = self.at;
        self.go_to(BETWEEN);
        at
    }

    /// A packet is run that may be run again.
    pub(crate) fn try_packet(&mut self) {
        self.tries = true;
        self.tried.clear();
    }

    /// It is not run again, or it is; gives where it was.
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

    /// What a call takes: the least of some rounds, since others may have been interrupted.
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

/// Numbers below eight have a bucket of their own; the others go by their power of two and the three bits
/// behind its first.
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
