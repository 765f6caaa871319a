//! Builds a decision tree over rules: nodes choose bits of the key, and leaves have a few rules.
//!
//! The idea: a node picks, anywhere in the packed key, the bits that most reduce what a packet will have to
//! compare, one after the other, and its table has a child for every value of the picked bits. A rule that
//! does not fix a bit goes to both sides, so bits are chosen by what remains on both, weighed by how many
//! packets will come there; a part of the key space that is down to a few rules is not split further, and its
//! entries in the node's table all name the same leaf.

use super::encode::Encoded;
use super::image::{NODE, RulesImage};
use super::leaves::{Exhausted, Leaves};
use crate::work;
use std::collections::HashMap;

/// A part of so many rules, or of one block if that holds more, is not split further.
const LEAF: usize = 4;
/// A part of so many rules is not worth a node of its own.
const NODE_RULES: usize = 16;
/// The most bits of a node.
const NODE_BITS: u32 = 16;
/// How far a node may spread its rules.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spread {
    /// The most child entries for each rule.
    children: usize,
    /// The most leaf slots for each rule.
    slots: usize,
    /// How many rules may be looked at to choose bits, counted again for each bit.
    looks: usize,
}

impl Spread {
    /// For a table that is built.
    pub(super) const BUILD: Spread = Spread { children: 32, slots: 16, looks: usize::MAX };
    /// For a leaf that is cut between two batches of packets.
    pub(super) const CUT: Spread = Spread { children: 4, slots: 4, looks: 128 };
}

/// A bit is picked if what remains to be compared falls below this part of what there was.
const GAIN: f32 = 0.95;

/// A part of the key space: the bits that are known there.
#[derive(Clone, Debug)]
pub(super) struct Region {
    pub(super) mask: Vec<u64>,
    pub(super) bits: Vec<u64>,
}

impl Region {
    /// The whole key space of packed keys of `words` words.
    pub(super) fn whole(words: usize) -> Region {
        Region { mask: vec![0; words], bits: vec![0; words] }
    }

    pub(super) fn fix(&mut self, bit: usize, value: bool) {
        self.mask[bit / 64] |= 1 << (bit % 64);
        self.bits[bit / 64] |= u64::from(value) << (bit % 64);
    }

    pub(super) fn free(&mut self, bit: usize) {
        self.mask[bit / 64] &= !(1 << (bit % 64));
        self.bits[bit / 64] &= !(1 << (bit % 64));
    }

    /// The known bits of one element, and their values.
    pub(super) fn element(&self, element: usize) -> (u16, u16) {
        let shift = 16 * (element % 4);
        ((self.mask[element / 4] >> shift) as u16, (self.bits[element / 4] >> shift) as u16)
    }
}

/// Rules with the part of their packets that is expected in a region.
type Weighed = Vec<(u32, f32)>;

/// A region of a node that is being cut: the values of the bits picked so far, the first in bit 0, and the
/// rules there.
struct Part {
    path: u32,
    rules: Weighed,
}

/// What a tree is being grown into.
pub(super) struct Grower<'a> {
    encoded: &'a Encoded,
    image: &'a mut RulesImage,
    places: &'a mut Leaves,
    /// Nothing is split any more when the image has so many bytes.
    limit: usize,
    spread: Spread,
    /// Leaf slots that parts which are yet to be grown need at least.
    owed: usize,
    leaf_rules: usize,
    leaves: HashMap<Vec<u32>, u32>,
    /// Blocks and nodes that the packets of all rules, one each, are expected to read.
    pub(super) work: f64,
    tally: Tally,
}

impl<'a> Grower<'a> {
    pub(super) fn new(
        encoded: &'a Encoded,
        image: &'a mut RulesImage,
        places: &'a mut Leaves,
        limit: usize,
        spread: Spread,
    ) -> Grower<'a> {
        let tally = Tally::new(64 * image.layout.words());
        let leaf_rules = image.slots().max(LEAF);
        let leaves = HashMap::new();
        Grower { encoded, image, places, limit, spread, owed: 0, leaf_rules, leaves, work: 0.0, tally }
    }

    /// [`Grower::grow`]; where there is no room for it, the image is as before.
    pub(super) fn grow_or_undo(mut self, rules: Weighed, region: &Region) -> Result<u32, Exhausted> {
        let (nodes, children) = (self.image.nodes.len(), self.image.children.len());
        let grown = self.grow(rules, region);
        if grown.is_err() {
            self.image.nodes.truncate(nodes);
            self.image.children.truncate(children);
            for &leaf in self.leaves.values() {
                self.places.discard(self.image, leaf);
            }
        }
        grown
    }

    /// Grows a tree for `rules`, in order, over `region` and answers its entry.
    pub(super) fn grow(&mut self, rules: Weighed, region: &Region) -> Result<u32, Exhausted> {
        let count = rules.len();
        let free = self.limit.saturating_sub(self.image.bytes()) / self.image.slot_bytes();
        let room = free.saturating_sub(self.owed);
        if count <= self.leaf_rules.max(NODE_RULES) || room < count {
            return self.leaf(&rules);
        }
        // A quarter of what is free may become this node's table, of four bytes a child.
        let most = (count * self.spread.children)
            .min(room * self.image.slot_bytes() / 16)
            .max(2)
            .ilog2()
            .min(NODE_BITS) as usize;
        let room = (room * 3 / 4).min(count * self.spread.slots).max(count);
        let mut chosen: Vec<usize> = Vec::new();
        let mut known = region.mask.clone();
        let mut active = vec![Part { path: 0, rules }];
        let mut done: Vec<(u32, usize, u32)> = Vec::new();
        let mut settled = 0;
        while chosen.len() < most && !active.is_empty() {
            let looks: usize = active.iter().map(|part| part.rules.len()).sum();
            let Some(left) = self.spread.looks.checked_sub(looks) else { break };
            self.spread.looks = left;
            let Some(bit) = self.tally.best(self.encoded, &active, &known) else { break };
            let parts = self.split(&active, region, &chosen, bit);
            let slots: usize = parts.iter().map(|part| part.rules.len()).sum();
            if slots + settled > room {
                break;
            }
            known[bit / 64] |= 1 << (bit % 64);
            chosen.push(bit);
            active.clear();
            for part in parts {
                if part.rules.len() <= self.leaf_rules {
                    settled += part.rules.len();
                    done.push((part.path, chosen.len(), self.leaf(&part.rules)?));
                } else {
                    active.push(part);
                }
            }
        }
        if chosen.is_empty() {
            let rules = active.pop().map(|part| part.rules).unwrap_or_default();
            return self.leaf(&rules);
        }
        self.node(region, &chosen, active, done)
    }

    fn node(
        &mut self,
        region: &Region,
        chosen: &[usize],
        active: Vec<Part>,
        done: Vec<(u32, usize, u32)>,
    ) -> Result<u32, Exhausted> {
        let words = self.image.layout.words();
        let mut masks = vec![0u64; words];
        for &bit in chosen {
            masks[bit / 64] |= 1 << (bit % 64);
        }
        let number = self.image.nodes.len() / self.image.node_words();
        let first = self.image.children.len();
        work::note(1 << chosen.len());
        self.image.children.resize(first + (1 << chosen.len()), 0);
        let end = self.image.nodes.len() + self.image.node_words();
        self.image.nodes.extend_from_slice(&masks);
        self.image.nodes.push(first as u64);
        self.image.nodes.resize(end, 0);
        // The node's table is in order of the bits' places in the key, not in the order in which they were
        // chosen.
        let places: Vec<u32> =
            chosen.iter().map(|&bit| chosen.iter().filter(|&&other| other < bit).count() as u32).collect();
        let scattered = |path: u32| -> usize {
            places.iter().enumerate().map(|(at, &place)| ((path >> at & 1) as usize) << place).sum()
        };
        for (path, depth, entry) in done {
            let base = first + scattered(path);
            for rest in 0..1u32 << (chosen.len() - depth) {
                self.image.children[base + scattered(rest << depth)] = entry;
                self.places.name(entry);
            }
        }
        self.owed += active.iter().map(|part| part.rules.len()).sum::<usize>();
        for part in active {
            self.owed -= part.rules.len();
            let mut inner = region.clone();
            for (at, &bit) in chosen.iter().enumerate() {
                inner.fix(bit, part.path >> at & 1 == 1);
            }
            let place = first + scattered(part.path);
            self.work += f64::from(part.rules.iter().map(|rule| rule.1).sum::<f32>());
            let entry = self.grow(part.rules, &inner)?;
            self.image.children[place] = entry;
            self.places.name(entry);
        }
        Ok(NODE | number as u32)
    }

    /// Both halves of every part.
    fn split(&self, parts: &[Part], region: &Region, chosen: &[usize], bit: usize) -> Vec<Part> {
        let (element, place) = (bit / 16, bit % 16);
        let mut halves = Vec::with_capacity(2 * parts.len());
        work::note(parts.iter().map(|part| part.rules.len()).sum());
        for part in parts {
            let (mut mask, mut bits) = region.element(element);
            for (at, &other) in chosen.iter().enumerate().filter(|(_, other)| **other / 16 == element) {
                mask |= 1 << (other % 16);
                bits |= ((part.path >> at & 1) as u16) << (other % 16);
            }
            mask |= 1 << place;
            let one = bits | 1 << place;
            let (mut zeros, mut ones) = (Weighed::new(), Weighed::new());
            for &(id, weight) in &part.rules {
                let left = self.encoded.meets(id, element, mask, bits);
                let right = self.encoded.meets(id, element, mask, one);
                let weight = if left && right { weight / 2.0 } else { weight };
                if left {
                    zeros.push((id, weight));
                }
                if right {
                    ones.push((id, weight));
                }
            }
            halves.push(Part { path: part.path, rules: zeros });
            halves.push(Part { path: part.path | 1 << chosen.len(), rules: ones });
        }
        halves
    }

    fn leaf(&mut self, rules: &[(u32, f32)]) -> Result<u32, Exhausted> {
        let slots = self.image.slots();
        self.work +=
            rules.len().div_ceil(slots) as f64 * f64::from(rules.iter().map(|rule| rule.1).sum::<f32>());
        let list: Vec<u32> = rules.iter().map(|rule| rule.0).collect();
        if let Some(&entry) = self.leaves.get(&list) {
            return Ok(entry);
        }
        let entry = self.places.put(self.image, self.encoded, &list)?;
        self.leaves.insert(list, entry);
        Ok(entry)
    }
}

/// Counts, for every bit, how much less is compared after a cut there. A bit that all rules of a part fix to
/// the same, or leave open, saves nothing there, and is not counted.
struct Tally {
    /// The bits in which rules of a part differ.
    differ: Vec<u64>,
    /// How many rules of a part fix a bit to 0 and to 1, and the parts of the packets that are theirs.
    fixing: Vec<[(f32, f32); 2]>,
    saved: Vec<f32>,
}

impl Tally {
    fn new(bits: usize) -> Tally {
        Tally { differ: vec![0; bits / 64], fixing: vec![Default::default(); bits], saved: vec![0.0; bits] }
    }

    /// The bit, not yet `known`, that saves the most; `None` if none is worth it.
    fn best(&mut self, encoded: &Encoded, parts: &[Part], known: &[u64]) -> Option<usize> {
        self.saved.fill(0.0);
        let mut whole = 0.0;
        for part in parts {
            let count = part.rules.len() as f32;
            let weight: f32 = part.rules.iter().map(|rule| rule.1).sum();
            whole += count * weight;
            self.find_differing(encoded, &part.rules, known);
            self.count(encoded, &part.rules);
            for (word, &differ) in self.differ.iter().enumerate() {
                for bit in bits_of(differ).map(|bit| 64 * word + bit) {
                    let [zeros, ones] = std::mem::take(&mut self.fixing[bit]);
                    let both = (weight - zeros.1 - ones.1) / 2.0;
                    let left = (zeros.1 + both) * (count - ones.0) + (ones.1 + both) * (count - zeros.0);
                    self.saved[bit] += count * weight - left;
                }
            }
        }
        // Of bits that save the same, the first one.
        let best = (0..self.saved.len()).rev().max_by(|&a, &b| self.saved[a].total_cmp(&self.saved[b]))?;
        (whole - self.saved[best] < GAIN * whole).then_some(best)
    }

    /// Finds the bits, not yet `known`, that rules of a part treat differently.
    fn find_differing(&mut self, encoded: &Encoded, rules: &Weighed, known: &[u64]) {
        self.differ.fill(0);
        let Some(&(first, _)) = rules.first() else { return };
        let (care, fixed) = (encoded.care(first), encoded.fixed(first));
        for &(id, _) in rules {
            let others = encoded.care(id).iter().zip(encoded.fixed(id));
            for ((differ, first), other) in self.differ.iter_mut().zip(care.iter().zip(fixed)).zip(others) {
                *differ |= first.0 ^ other.0 | first.1 ^ other.1;
            }
        }
        self.differ.iter_mut().zip(known).for_each(|(differ, known)| *differ &= !known);
    }

    /// Counts which rules of a part fix these bits.
    fn count(&mut self, encoded: &Encoded, rules: &Weighed) {
        for &(id, weight) in rules {
            for (word, (&care, &fixed)) in encoded.care(id).iter().zip(encoded.fixed(id)).enumerate() {
                for bit in bits_of(care & self.differ[word]) {
                    let side = &mut self.fixing[64 * word + bit][(fixed >> bit & 1) as usize];
                    side.0 += 1.0;
                    side.1 += weight;
                }
            }
        }
    }
}

/// The places of the ones, from the lowest on.
fn bits_of(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        bit
    })
}
