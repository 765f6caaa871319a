//! Inserts one rule into a tree, or removes it, without building the tree again.
//!
//! The idea: the change visits the leaves whose part of the key space the rule meets, rewrites them where
//! they are if they have room and otherwise in free blocks, and cuts a leaf that has become long into a tree
//! of its own. Leaves are shared by entries; a rule that is written into a shared leaf in place may
//! thereby reach entries it does not meet, which is harmless, since what a leaf holds is compared in full. It
//! stays so when the rule's number has become another rule's, whose checks are made after a hit: a removal
//! visits all leaves where some key could pass the comparison of the rule, and not only those that it meets.

use super::encode::Encoded;
use super::image::{NODE, RulesImage};
use super::leaves::{Exhausted, Leaves};
use super::tree::{Grower, Region, Spread};
use crate::work;
use std::collections::HashMap;

/// A leaf is cut when it has grown to so many rules, and once more at the doubling; one that is longer then
/// is not worth the time.
const CUTS_AT: [usize; 2] = [32, 64];
/// The most leaves that one change cuts, since cutting takes longest.
const MOST_CUTS: usize = 1;
/// A rule that takes so few steps suits the tree.
const FEW_STEPS: usize = 128;
/// The most steps of an insert in a tree: entries looked at, and rules of leaves written.
const MOST_STEPS: usize = 512;
/// The most steps of an insert into the last leaf, which are shorter, since they are beside each other.
pub(super) const MOST_LAST_STEPS: usize = 1024;
/// The most steps of a removal in a tree.
const MOST_STEPS_OF_REMOVAL: usize = 2048;
/// The most trees whose leaves are cut. Behind them comes one leaf for rules that take too many steps in all.
const MOST_TREES: usize = 4;

/// Where an entry stands.
#[derive(Clone, Copy)]
enum Place {
    Root(usize),
    Child(usize),
}

/// What is done at the leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Act {
    Count { most: usize },
    Put,
    Take,
}

/// One change of one rule.
pub(super) struct Update<'a> {
    encoded: &'a Encoded,
    image: &'a mut RulesImage,
    leaves: &'a mut Leaves,
    /// The tree of each rule.
    homes: &'a [u32],
    id: u32,
    limit: usize,
    act: Act,
    /// The rule is being removed.
    removes: bool,
    /// What became of leaves that the rule was put into or taken from already.
    moved: HashMap<u32, u32>,
    steps: usize,
    cuts: usize,
    /// The tree that is changed.
    tree: usize,
    /// That there was no room to put the rule into a leaf.
    exhausted: Option<Exhausted>,
}

impl<'a> Update<'a> {
    pub(super) fn new(
        encoded: &'a Encoded,
        image: &'a mut RulesImage,
        leaves: &'a mut Leaves,
        homes: &'a [u32],
        id: u32,
        limit: usize,
    ) -> Update<'a> {
        let act = Act::Count { most: 0 };
        let (moved, exhausted) = Default::default();
        let (steps, cuts, tree, removes) = (0, 0, 0, false);
        Update { encoded, image, leaves, homes, id, limit, act, removes, moved, steps, cuts, tree, exhausted }
    }

    /// The tree for the rule: the first where it takes few steps; if there is none, that where it takes the
    /// fewest; and a new one if those are [`MOST_STEPS`] or more. `None` if the last one is full.
    pub(super) fn tree(&mut self) -> Option<u32> {
        let trees = self.image.roots.len();
        let mut best = (MOST_STEPS, trees.min(MOST_TREES));
        for tree in 0..trees.min(MOST_TREES) {
            if best.0 <= FEW_STEPS {
                break;
            }
            let steps = self.count(tree, best.0);
            if steps < best.0 {
                best = (steps, tree);
            }
        }
        if best.1 == trees {
            self.image.roots.push(0);
        } else if best.0 == MOST_STEPS && self.count(best.1, MOST_LAST_STEPS) >= MOST_LAST_STEPS {
            return None;
        }
        Some(best.1 as u32)
    }

    /// Steps of a change in a tree, counted up to `most`.
    fn count(&mut self, tree: usize, most: usize) -> usize {
        self.steps = 0;
        self.run(tree, Act::Count { most });
        self.moved.clear();
        self.steps
    }

    /// Puts the rule into `tree`. Where there is no room in the image, the rule may be in some leaves, from
    /// which [`Update::take`] takes it.
    pub(super) fn put(&mut self, tree: u32) -> Result<(), Exhausted> {
        self.run(tree as usize, Act::Put);
        self.exhausted.map_or(Ok(()), Err)
    }

    /// Takes the rule out of `tree`, and the last trees away, if they are empty then; answers whether that is
    /// done, which it is not if it takes [`MOST_STEPS_OF_REMOVAL`].
    pub(super) fn take(&mut self, tree: u32) -> bool {
        self.removes = true;
        if self.count(tree as usize, MOST_STEPS_OF_REMOVAL) >= MOST_STEPS_OF_REMOVAL {
            return false;
        }
        self.run(tree as usize, Act::Take);
        while self.image.roots.pop_if(|root| *root == 0).is_some() {}
        true
    }

    fn run(&mut self, tree: usize, act: Act) {
        (self.act, self.tree) = (act, tree);
        let mut region = Region::whole(self.image.layout.words());
        self.visit(Place::Root(tree), &mut region);
    }

    fn visit(&mut self, place: Place, region: &mut Region) {
        let entry = match place {
            Place::Root(tree) => self.image.roots[tree],
            Place::Child(child) => self.image.children[child],
        };
        if entry & NODE == 0 {
            work::note(1);
            let now = match self.act {
                Act::Count { .. } => return self.count_leaf(entry),
                Act::Put => match self.put_into(entry, region) {
                    Ok(now) => now,
                    Err(exhausted) => return self.exhausted = Some(exhausted),
                },
                Act::Take => self.take_from(entry),
            };
            if now != entry {
                match place {
                    Place::Root(tree) => self.image.roots[tree] = now,
                    Place::Child(child) => self.image.children[child] = now,
                }
                self.leaves.name(now);
                self.leaves.unname(self.image, entry);
            }
            return;
        }
        let (bits, first) = self.image.node_bits(entry);
        self.choose(&bits, first, region);
    }

    /// Visits the children under `child` that differ in `bits`, where the rule meets them.
    fn choose(&mut self, bits: &[usize], child: usize, region: &mut Region) {
        if self.exhausted.is_some() || matches!(self.act, Act::Count { most } if self.steps >= most) {
            return;
        }
        let Some((&bit, rest)) = bits.split_last() else { return self.visit(Place::Child(child), region) };
        for value in [false, true] {
            region.fix(bit, value);
            let (mask, known) = region.element(bit / 16);
            let reaches = if self.removes { Encoded::passes } else { Encoded::meets };
            if reaches(self.encoded, self.id, bit / 16, mask, known) {
                self.choose(rest, child + (usize::from(value) << rest.len()), region);
            }
            region.free(bit);
        }
    }

    fn count_leaf(&mut self, entry: u32) {
        self.steps += 1;
        if self.moved.insert(entry, entry).is_some() {
            return;
        }
        let Act::Count { most } = self.act else { return };
        let mut block = entry;
        self.steps += self.image.slots();
        while self.steps < most && self.image.goes_on(block) {
            block += 1;
            self.steps += self.image.slots();
        }
    }

    /// The entry that stands for leaf `entry` once the rule is in it.
    fn put_into(&mut self, entry: u32, region: &Region) -> Result<u32, Exhausted> {
        if let Some(&moved) = self.moved.get(&entry) {
            return Ok(moved);
        }
        let mut list = self.current(entry);
        let place = list.partition_point(|&other| self.image.order(other) < self.image.order(self.id));
        list.insert(place, self.id);
        work::note(list.len());
        if self.tree < MOST_TREES && CUTS_AT.contains(&list.len()) && self.cuts < MOST_CUTS {
            self.cuts += 1;
            // Grown for this region only, so other entries of the leaf are not led to it.
            let rules = list.iter().map(|&id| (id, 1.0)).collect();
            let grower = Grower::new(self.encoded, self.image, self.leaves, self.limit, Spread::CUT);
            if let Ok(grown) = grower.grow_or_undo(rules, region) {
                return Ok(grown);
            }
        }
        let moved = if entry != 0 && list.len() <= self.image.leaf_blocks(entry) * self.image.slots() {
            self.leaves.rewrite(self.image, self.encoded, entry, &list);
            entry
        } else {
            self.leaves.put(self.image, self.encoded, &list)?
        };
        self.moved.insert(entry, moved);
        Ok(moved)
    }

    /// The entry that stands for leaf `entry` once the rule is not in it.
    fn take_from(&mut self, entry: u32) -> u32 {
        if let Some(&left) = self.moved.get(&entry) {
            return left;
        }
        let left = self.leaves.remove(self.image, entry, self.id);
        self.moved.insert(entry, left);
        left
    }

    /// The rules of a leaf as they are now. A leaf may name rules that it had no part in any more when they
    /// were taken out, and whose numbers others have by now; those of other trees do not belong here, since
    /// they would not be taken out from here.
    fn current(&self, entry: u32) -> Vec<u32> {
        let mut list = Vec::new();
        self.image.leaf(entry, &mut list);
        list.retain(|&other| other != self.id && self.homes[other as usize] as usize == self.tree);
        list.sort_by_key(|&other| self.image.order(other));
        list.dedup();
        list
    }
}
