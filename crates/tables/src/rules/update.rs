//! Inserts one rule into a tree, or removes it, without building the tree again.
//!
//! The idea: the change visits the leaves whose part of the key space the rule meets, rewrites them where
//! they are if they have room and otherwise behind the last block, and cuts a leaf that has become long into
//! a tree of its own. Leaves are shared by entries; a rule that is written into a shared leaf in place may
//! thereby reach entries it does not meet, which is harmless, since what a leaf holds is compared in full.

use super::encode::Encoded;
use super::image::{NODE, RulesImage};
use super::tree::{Grower, Region};
use crate::sizes::room;
use std::collections::{HashMap, HashSet};

/// A leaf is cut when it has grown to this many rules, and again at every doubling.
const CUT_RULES: usize = 32;

/// The most leaves that one change cuts, since cutting takes longest.
const MOST_CUTS: usize = 32;
/// A rule that meets so few leaves suits the tree.
const FEW_LEAVES: usize = 32;
/// A rule that meets this many leaves suits it not at all.
const MOST_LEAVES: usize = 2048;

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
    /// Whether a rule number is in use.
    live: &'a dyn Fn(u32) -> bool,
    id: u32,
    limit: usize,
    act: Act,
    /// What became of leaves that the rule was put into already.
    moved: HashMap<u32, u32>,
    /// The blocks of leaves that it was taken from already.
    visited: Vec<bool>,
    counted: usize,
    cuts: usize,
    /// Blocks that no entry names any more, at least as far as this change knows.
    pub(super) garbage: usize,
}

impl<'a> Update<'a> {
    pub(super) fn new(
        encoded: &'a Encoded,
        image: &'a mut RulesImage,
        live: &'a dyn Fn(u32) -> bool,
        id: u32,
        limit: usize,
    ) -> Update<'a> {
        let act = Act::Count { most: 0 };
        Update {
            encoded,
            image,
            live,
            id,
            limit,
            act,
            moved: HashMap::new(),
            visited: Vec::new(),
            counted: 0,
            cuts: 0,
            garbage: 0,
        }
    }

    /// Puts the rule into the first tree where it meets few leaves; if there is none, into that where it
    /// meets the fewest; and into a new one if those are [`MOST_LEAVES`] or more.
    pub(super) fn put(&mut self) {
        let mut best = (MOST_LEAVES, self.image.roots.len());
        for tree in 0..self.image.roots.len() {
            if best.0 <= FEW_LEAVES {
                break;
            }
            self.counted = 0;
            self.run(tree, Act::Count { most: best.0 });
            if self.counted < best.0 {
                best = (self.counted, tree);
            }
        }
        if best.1 == self.image.roots.len() {
            self.image.roots.push(0);
        }
        self.run(best.1, Act::Put);
    }

    /// Takes the rule out of all trees.
    pub(super) fn take(&mut self) {
        self.visited = vec![false; self.image.ids.len() / self.image.slots()];
        for tree in 0..self.image.roots.len() {
            self.run(tree, Act::Take);
        }
    }

    fn run(&mut self, tree: usize, act: Act) {
        self.act = act;
        let mut region = Region::whole(self.image.layout.words());
        self.visit(Place::Root(tree), &mut region);
    }

    fn visit(&mut self, place: Place, region: &mut Region) {
        let entry = match place {
            Place::Root(tree) => self.image.roots[tree],
            Place::Child(child) => self.image.children[child],
        };
        if entry & NODE == 0 {
            let entry = match self.act {
                Act::Count { .. } => {
                    self.counted += 1;
                    return;
                }
                Act::Put => self.put_into(entry, region),
                Act::Take => return self.take_from(entry),
            };
            match place {
                Place::Root(tree) => self.image.roots[tree] = entry,
                Place::Child(child) => self.image.children[child] = entry,
            }
            return;
        }
        let (bits, first) = self.image.node_bits(entry);
        self.choose(&bits, first, region);
    }

    /// Visits the children under `child` that differ in `bits`, where the rule meets them.
    fn choose(&mut self, bits: &[usize], child: usize, region: &mut Region) {
        if matches!(self.act, Act::Count { most } if self.counted >= most) {
            return;
        }
        let Some((&bit, rest)) = bits.split_last() else { return self.visit(Place::Child(child), region) };
        for value in [false, true] {
            region.fix(bit, value);
            let (mask, known) = region.element(bit / 16);
            if self.encoded.meets(self.id, bit / 16, mask, known) {
                self.choose(rest, child + (usize::from(value) << rest.len()), region);
            }
            region.free(bit);
        }
    }

    /// The entry that stands for leaf `entry` once the rule is in it.
    fn put_into(&mut self, entry: u32, region: &Region) -> u32 {
        if let Some(&moved) = self.moved.get(&entry) {
            return moved;
        }
        let mut list = self.current(entry);
        let place = list.partition_point(|&other| self.image.order(other) < self.image.order(self.id));
        list.insert(place, self.id);
        if list.len() >= CUT_RULES && list.len().is_power_of_two() && self.cuts < MOST_CUTS {
            self.cuts += 1;
            // Grown for this region only, so other entries of the leaf are not led to it.
            let rules = list.into_iter().map(|id| (id, 1.0)).collect();
            return Grower::new(self.encoded, self.image, self.limit).grow(rules, region);
        }
        let held = self.image.leaf_blocks(entry);
        let moved = if entry != 0 && list.len() <= held * self.image.slots() {
            self.image.write_leaf(self.encoded, entry, &list);
            entry
        } else {
            self.garbage += held;
            self.image.push_leaf(self.encoded, &list)
        };
        self.moved.insert(entry, moved);
        moved
    }

    fn take_from(&mut self, entry: u32) {
        if !std::mem::replace(&mut self.visited[entry as usize], true) {
            self.image.remove_from_leaf(entry, self.id);
        }
    }

    /// The rules of a leaf as they are now. A leaf may name rules that it had no part in any more when they
    /// were taken out, and whose numbers others have by now.
    fn current(&self, entry: u32) -> Vec<u32> {
        let mut list = Vec::new();
        self.image.leaf(entry, &mut list);
        let mut seen = HashSet::new();
        list.retain(|&other| other != self.id && (self.live)(other) && seen.insert(other));
        list.sort_by_key(|&other| self.image.order(other));
        list
    }
}

/// The image without the nodes and blocks that no entry names.
pub(super) fn compacted(image: &RulesImage) -> RulesImage {
    let mut compact = RulesImage::new(image.layout.clone());
    compact.rules.clone_from(&image.rules);
    compact.checks.clone_from(&image.checks);
    compact.ranked = image.ranked;
    // For each block where a leaf begins, where its copy does; 0 for those not copied yet, and for the empty
    // leaf.
    let mut leaves = vec![0; image.ids.len() / image.slots()];
    for &root in &image.roots {
        let root = copied(image, root, &mut compact, &mut leaves);
        compact.roots.push(root);
    }
    compact
}

fn copied(image: &RulesImage, entry: u32, to: &mut RulesImage, leaves: &mut [u32]) -> u32 {
    if entry & NODE == 0 {
        let copy = &mut leaves[entry as usize];
        if *copy == 0 && entry != 0 {
            *copy = to.push_copy(image, entry);
        }
        return *copy;
    }
    let (bits, from) = image.node_bits(entry);
    let (words, size) = (image.layout.words(), image.node_words());
    let number = to.nodes.len() / size;
    let first = to.children.len();
    let start = (entry & !NODE) as usize * size;
    room(&mut to.nodes, size);
    to.nodes.extend_from_slice(&image.nodes[start..start + size]);
    to.nodes[number * size + words] = first as u64;
    room(&mut to.children, 1 << bits.len());
    to.children.resize(first + (1 << bits.len()), 0);
    for child in 0..1 << bits.len() {
        let copy = copied(image, image.children[from + child], to, leaves);
        to.children[first + child] = copy;
    }
    NODE | number as u32
}
