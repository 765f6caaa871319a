//! Finds the slot whose entry is the first by a growing measure (deadline or recency): a tree of lower bounds
//! over the slots.
//!
//! The idea: a leaf stands for [`FAN`] slots in a row and a node for as many leaves or nodes; each keeps a
//! bound at or below the measures of all entries under it, and a node's is the least of those under it.
//! Renewing an entry only raises its measure, so the bounds stay true when nobody tells the tree. Whoever
//! looks for the first entry goes down along the least bound and puts the leaf right if its entries have
//! moved on. As long as all leaves are right, which is the caller's matter, that is one way down, however
//! many entries there are.
//!
//! ```text
//! level 0: bound of slots 8 i .. 8 i + 8, `u64::MAX` where none of them is in the order      (slots / 8 words)
//! level n: the least of words 8 i .. 8 i + 8 of level n-1                                     … until a level has one word
//! all levels lie one after the other in one array of 64-bit words, level 0 first
//! ```

use super::slots::NoMemory;
use std::ops::Range;

/// Slots of a leaf, and what a node stands for.
const FAN: usize = 8;
/// The bound of what is empty.
const NEVER: u64 = u64::MAX;

/// The first of the slots by measure.
pub(super) struct Order {
    bounds: Vec<u64>,
    /// Where each level begins in `bounds`.
    levels: Vec<usize>,
    /// By so much bounds are less than is noted.
    sooner: u64,
}

/// The leaf of a slot.
#[inline(always)]
pub(super) fn leaf_of(slot: usize) -> usize {
    slot / FAN
}

/// The slots of a leaf, in an array of so many.
#[inline(always)]
pub(super) fn slots_of(leaf: usize, slots: usize) -> Range<usize> {
    leaf * FAN..slots.min(leaf * FAN + FAN)
}

/// How many leaves so many slots have.
pub(super) fn leaves(slots: usize) -> usize {
    slots.div_ceil(FAN)
}

/// Words of each level, the leaves first.
fn sizes(leaves: usize) -> impl Iterator<Item = usize> {
    let above = |words: &usize| (*words > 1).then(|| words.div_ceil(FAN));
    std::iter::successors(Some(leaves.max(1)), above)
}

impl Order {
    /// For so many slots, all of them empty; allocates all it will ever need.
    pub(super) fn new(slots: usize) -> Result<Order, NoMemory> {
        Order::of_leaves(leaves(slots))
    }

    /// For so many leaves, whatever they stand for.
    pub(super) fn of_leaves(leaves: usize) -> Result<Order, NoMemory> {
        let words = sizes(leaves).sum();
        let mut bounds = Vec::new();
        bounds.try_reserve_exact(words).map_err(|_| NoMemory { bytes: words * size_of::<u64>() })?;
        bounds.resize(words, NEVER);
        let begin = |at: &mut usize, words| Some(std::mem::replace(at, *at + words));
        Ok(Order { bounds, levels: sizes(leaves).scan(0, begin).collect(), sooner: 0 })
    }

    /// All measures may become smaller by so much. Sums of measures and all of this are to stay numbers.
    pub(super) fn hasten(&mut self, by: u64) {
        self.sooner += by;
    }

    /// By how much in all.
    pub(super) fn hastened(&self) -> u64 {
        self.sooner
    }

    /// What is noted of a measure.
    #[inline]
    fn noted(&self, measure: u64) -> u64 {
        measure.saturating_add(self.sooner).min(NEVER - 1)
    }

    /// The bound that is noted so.
    #[inline]
    fn meant(&self, noted: u64) -> u64 {
        if noted == NEVER { NEVER } else { noted.saturating_sub(self.sooner) }
    }

    /// Bytes that are allocated for so many slots.
    pub(super) fn allocated(slots: u64) -> u64 {
        Order::allocated_leaves(slots.div_ceil(FAN as u64))
    }

    /// Bytes that are allocated for so many leaves.
    pub(super) fn allocated_leaves(leaves: u64) -> u64 {
        usize::try_from(leaves).map_or(u64::MAX, |leaves| sizes(leaves).sum::<usize>() as u64 * 8)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.bounds.len() * size_of::<u64>()
    }

    /// A lower bound of the smallest measure; `u64::MAX` if there is none.
    #[inline]
    pub(super) fn bound(&self) -> u64 {
        self.meant(self.bounds.last().copied().unwrap_or(NEVER))
    }

    /// A lower bound of the smallest measure in a leaf.
    #[inline]
    pub(super) fn bound_of(&self, leaf: usize) -> u64 {
        self.meant(self.bounds[leaf])
    }

    /// An entry with this measure has come into a leaf.
    #[inline]
    pub(super) fn lower(&mut self, leaf: usize, measure: u64) {
        let (mut place, measure) = (leaf, self.noted(measure));
        for level in &self.levels {
            let bound = &mut self.bounds[level + place];
            if *bound <= measure {
                break;
            }
            *bound = measure;
            place /= FAN;
        }
    }

    /// The smallest measure in a leaf is this one, or there is none.
    pub(super) fn set(&mut self, leaf: usize, least: Option<u64>) {
        let mut place = leaf;
        let mut bound = least.map_or(NEVER, |measure| self.noted(measure));
        for (height, level) in self.levels.iter().enumerate() {
            let before = std::mem::replace(&mut self.bounds[level + place], bound);
            let Some(above) = self.levels.get(height + 1).filter(|_| before != bound) else { break };
            let node = self.bounds[above + place / FAN];
            if before > node && bound >= node {
                break;
            }
            let first = place / FAN * FAN;
            let end = (first + FAN).min(above - level);
            let beside = &self.bounds[level + first..level + end];
            bound = beside.iter().copied().min().unwrap_or(NEVER);
            place /= FAN;
        }
    }

    /// The leaf with the smallest bound.
    fn first_leaf(&self) -> usize {
        let mut place = 0;
        for (below, level) in self.levels.iter().zip(self.levels.iter().skip(1)).rev() {
            let bound = self.bounds[level + place];
            let first = place * FAN;
            let end = (first + FAN).min(level - below);
            let beside = &self.bounds[below + first..below + end];
            place = first + beside.iter().position(|held| *held == bound).unwrap_or(0);
        }
        place
    }

    /// The first leaf from this one on whose bound is at or below `limit`: a way up to where there is one on
    /// the right, and down again.
    pub(super) fn next(&self, leaf: usize, limit: u64) -> Option<usize> {
        let (mut from, limit) = (leaf, self.noted(limit));
        for (height, level) in self.levels.iter().enumerate() {
            let size = self.levels.get(height + 1).unwrap_or(&self.bounds.len()) - level;
            let end = size.min((from / FAN + 1) * FAN);
            if let Some(found) = (from..end).find(|place| self.bounds[level + place] <= limit) {
                let down = |place: usize, below: &usize| {
                    let first = place * FAN;
                    let beside = self.bounds[below + first..].iter().take(FAN);
                    first + beside.into_iter().position(|bound| *bound <= limit).unwrap_or(0)
                };
                return Some(self.levels[..height].iter().rev().fold(found, down));
            }
            from = from / FAN + 1;
        }
        None
    }

    /// The slot of the entry with the smallest measure, if that is at or below `limit`. `first` says which
    /// entry of a leaf has the smallest measure now: (measure, slot). Each leaf that is looked at takes a
    /// step, of which there are so many.
    pub(super) fn first(
        &mut self,
        limit: u64,
        steps: &mut u32,
        first: impl Fn(usize) -> Option<(u64, usize)>,
    ) -> Option<usize> {
        loop {
            *steps = steps.checked_sub(1)?;
            let bound = self.bound();
            if bound > limit || bound == NEVER {
                return None;
            }
            let leaf = self.first_leaf();
            match first(leaf) {
                Some((measure, slot)) if measure <= bound => return Some(slot),
                least => self.set(leaf, least.map(|(measure, _)| measure)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;

    #[test]
    fn the_first_is_found_in_one_way_down_where_all_leaves_are_right() {
        for slots in [8usize, 16, 64, 256, 4096, 8192, 65_536] {
            let mut order = Order::new(slots).expect("room");
            assert_eq!(order.bytes() as u64, Order::allocated(slots as u64));
            let mut held: Vec<Option<u64>> = vec![None; slots];
            let mut random = Random::new(slots as u64);
            for round in 0..3000u64 {
                let slot = random.below(slots as u64) as usize;
                let leaf = leaf_of(slot);
                let least = |held: &[Option<u64>], leaf| {
                    let there = slots_of(leaf, slots).filter_map(|slot| Some((held[slot]?, slot)));
                    there.min()
                };
                if random.below(3) == 0 {
                    held[slot] = None;
                    order.set(leaf, least(&held, leaf).map(|(measure, _)| measure));
                } else if held[slot].is_none() {
                    let measure = random.below(round + 1);
                    held[slot] = Some(measure);
                    order.lower(leaf, measure);
                } else {
                    held[slot] = held[slot].map(|measure| measure + random.below(100));
                    order.set(leaf, least(&held, leaf).map(|(measure, _)| measure));
                }
                let smallest = held.iter().flatten().min().copied();
                assert_eq!(order.bound(), smallest.unwrap_or(u64::MAX));
                let found = order.first(u64::MAX, &mut 1, |leaf| least(&held, leaf));
                assert_eq!(found.and_then(|slot| held[slot]), smallest);
                let (from, limit) = (random.below(slots as u64) as usize, random.below(round + 1));
                let right = (leaf_of(from)..leaves(slots)).find(|leaf| order.bound_of(*leaf) <= limit);
                assert_eq!(order.next(leaf_of(from), limit), right);
            }
        }
    }
}
