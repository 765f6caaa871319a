//! The flat image of a table of rules, in which lookups search: numbers name places in the image, so there
//! are no pointers.
//!
//! ```text
//! entry, 32 bits: bit 31 = the rest is the number of a node; else the number of the first block of a leaf
//! node, 64-bit words:  w masks of the packed key's w words | number of its first child entry | padding to an even count
//! block, lines of 64 bytes: v lines with the low elements of its slots | v lines with their spans (high - low)
//!     of the flags: the bits that must be set | 0
//! ids, one a slot: bit 31 of the first = the leaf goes on in the next block; bit 30 = checks follow a hit; the rest the rule
//! rule, 32-bit words: order, lower half | order, upper half | value | number of its first check, bit 31 = dead
//! check, 32-bit words: first element, from bit 16 on how many, bit 31 = range, bit 30 = the rule's last | 4 words of value or low | 4 words of mask or high
//! ```
//!
//! Block 0 is empty, so that entry 0 is the leaf without rules. Slots of a leaf are in order of the rules;
//! free ones are last.

use super::encode::{CHECK_LAST, CHECK_WORDS, Encoded, LINE_ELEMENTS, Layout, element, passes};
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
use super::wide::Packing;
use super::{Hit, NONE};
use crate::reserved::Reserved;
use crate::sizes;
use crate::work;
#[cfg(feature = "device")]
use std::collections::HashSet;

/// Bit of an entry: it names a node.
pub(super) const NODE: u32 = 1 << 31;
/// Bit of a block's first id: the leaf goes on in the next block.
pub(super) const MORE: u32 = 1 << 31;
/// Bit of an id: the rule's checks decide.
pub(super) const CHECKED: u32 = 1 << 30;
/// Bit of a rule's first check: the rule is dead.
const DEAD: u32 = 1 << 31;
/// The rule number of a slot that holds none.
pub(super) const NO_RULE: u32 = CHECKED - 1;

/// What a caller is to pass.
const KEY_WORDS: &str = "a key has one word a column, two for a column of more than 64 bits";
/// Packed keys of up to so many 64-bit words, 512 bits, lie on the stack.
const FEW_WORDS: usize = 8;
/// Wider ones too, up to so many words, which no key of a program exceeds; it takes longer to clear them.
/// Devices have room for as many (`RULES_WORDS`).
pub const MOST_PACKED_WORDS: usize = 32;

/// Half a block of one vector: 32 elements in a cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Line(pub(super) [u16; LINE_ELEMENTS]);

/// A table of rules as flat bytes, ready for lookups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulesImage {
    pub(super) layout: Layout,
    /// One entry a tree.
    pub(super) roots: Vec<u32>,
    pub(super) nodes: Reserved<u64>,
    pub(super) children: Reserved<u32>,
    pub(super) blocks: Reserved<Line>,
    pub(super) ids: Reserved<u32>,
    pub(super) rules: Reserved<[u32; 4]>,
    pub(super) checks: Reserved<[u32; CHECK_WORDS]>,
    /// Whether rules with larger numbers have larger orders.
    pub(super) ranked: bool,
    /// How many rules are dead: removed, but still named by leaves. Their first check is marked [`DEAD`].
    pub(super) dead: usize,
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    wide: Option<Packing>,
}

impl RulesImage {
    /// Bytes of one rule and of one check.
    pub(super) const RULE_BYTES: usize = 16;
    pub(super) const CHECK_BYTES: usize = 4 * CHECK_WORDS;

    /// An image without trees, which will have so many bytes at most.
    pub(super) fn new(layout: Layout, limit: usize) -> RulesImage {
        let mut image = RulesImage::bare(layout, limit);
        image.blocks.resize(image.block_lines(), Line([0; LINE_ELEMENTS]));
        image.ids.resize(image.slots(), NO_RULE);
        image
    }

    /// An image without anything, not even the empty leaf.
    pub(super) fn bare(layout: Layout, limit: usize) -> RulesImage {
        RulesImage {
            #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
            wide: Packing::of(&layout),
            layout,
            roots: Vec::new(),
            nodes: Reserved::new(limit),
            children: Reserved::new(limit),
            blocks: Reserved::new(limit),
            ids: Reserved::new(limit),
            rules: Reserved::new(limit),
            checks: Reserved::new(limit),
            ranked: true,
            dead: 0,
        }
    }

    /// The same image for the portable lookups only.
    #[cfg(test)]
    pub(super) fn portable(&self) -> RulesImage {
        let mut image = self.clone();
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        {
            image.wide = None;
        }
        image
    }

    /// Rules in one block.
    pub(super) fn slots(&self) -> usize {
        (LINE_ELEMENTS / self.layout.stride).max(1)
    }

    /// Lines of one block.
    pub(super) fn block_lines(&self) -> usize {
        2 * self.layout.stride.div_ceil(LINE_ELEMENTS)
    }

    /// 64-bit words of one node.
    pub(super) fn node_words(&self) -> usize {
        (self.layout.words() + 1).next_multiple_of(2)
    }

    /// Bytes of one block with its ids.
    pub(super) fn block_bytes(&self) -> usize {
        64 * self.block_lines() + 4 * self.slots()
    }

    /// About what one more rule in a leaf costs, its part of a block and of a node's table.
    pub(super) fn slot_bytes(&self) -> usize {
        64 * self.block_lines() / self.slots() + 8
    }

    /// The bytes that lookups read.
    pub fn bytes(&self) -> usize {
        4 * self.roots.len()
            + 8 * self.nodes.len()
            + 4 * self.children.len()
            + 64 * self.blocks.len()
            + 4 * self.ids.len()
            + RulesImage::RULE_BYTES * self.rules.len()
            + RulesImage::CHECK_BYTES * self.checks.len()
    }

    /// Bytes of all its parts, their spare room included.
    pub(super) fn allocated(&self) -> u64 {
        sizes::vector(&self.roots)
            + self.nodes.taken()
            + self.children.taken()
            + self.blocks.taken()
            + self.ids.taken()
            + self.rules.taken()
            + self.checks.taken()
    }

    /// Gives back the room that its parts have spare.
    pub(super) fn shrink(&mut self) {
        self.roots.shrink_to_fit();
        self.nodes.shrink_to_fit();
        self.children.shrink_to_fit();
        self.blocks.shrink_to_fit();
        self.ids.shrink_to_fit();
        self.rules.shrink_to_fit();
        self.checks.shrink_to_fit();
    }

    /// The words of a key.
    pub fn key_words(&self) -> usize {
        self.layout.key_words
    }

    /// The rules of the leaf that begins at block `block`, in order.
    pub(super) fn leaf(&self, block: u32, list: &mut Vec<u32>) {
        list.clear();
        let slots = self.slots();
        let mut block = block as usize;
        loop {
            let ids = &self.ids[block * slots..][..slots];
            list.extend(ids.iter().map(|id| id & NO_RULE).filter(|&id| id != NO_RULE));
            if ids[0] & MORE == 0 {
                return;
            }
            block += 1;
        }
    }

    /// Puts so many empty blocks behind the last, and answers the number of the first.
    pub(super) fn push_blocks(&mut self, blocks: usize) -> u32 {
        let (slots, lines) = (self.slots(), self.block_lines());
        let first = self.block_count();
        self.blocks.resize(self.blocks.len() + blocks * lines, Line([0; LINE_ELEMENTS]));
        self.ids.resize(self.ids.len() + blocks * slots, NO_RULE);
        first as u32
    }

    /// How many blocks there are, the empty one included.
    pub(super) fn block_count(&self) -> usize {
        self.ids.len() / self.slots()
    }

    /// Makes the slots of blocks free that belong to no leaf any more.
    pub(super) fn clear_blocks(&mut self, first: u32, blocks: usize) {
        let slots = self.slots();
        self.ids[first as usize * slots..][..blocks * slots].fill(NO_RULE);
    }

    /// Cuts off all blocks from `blocks` on.
    pub(super) fn truncate_blocks(&mut self, blocks: usize) {
        self.ids.truncate(blocks * self.slots());
        self.blocks.truncate(blocks * self.block_lines());
    }

    /// Whether the leaf at `block` holds no rule.
    pub(super) fn is_empty_leaf(&self, block: u32) -> bool {
        self.ids[block as usize * self.slots()] & NO_RULE == NO_RULE
    }

    /// Writes `list` into the leaf at `block`, which has room for it, and frees the slots behind.
    pub(super) fn write_leaf(&mut self, encoded: &Encoded, block: u32, list: &[u32]) {
        let (slots, lines) = (self.slots(), self.block_lines());
        let (stride, half) = (self.layout.stride, self.block_lines() / 2);
        let block = block as usize;
        let held = self.leaf_blocks(block as u32);
        let blocks = list.len().div_ceil(slots).max(1);
        for place in 0..held.max(blocks) * slots {
            let (in_block, slot) = (block + place / slots, place % slots);
            let id = list.get(place).copied();
            let mut word = id.map_or(NO_RULE, |id| if encoded.exact(id) { id } else { id | CHECKED });
            if slot == 0 && place / slots + 1 < blocks {
                word |= MORE;
            }
            self.ids[in_block * slots + slot] = word;
            let Some(id) = id else { continue };
            for (at, (&low, &high)) in encoded.low(id).iter().zip(encoded.high(id)).enumerate() {
                let at = slot * stride + at;
                let line = in_block * lines + at / LINE_ELEMENTS;
                self.blocks[line].0[at % LINE_ELEMENTS] = low;
                self.blocks[line + half].0[at % LINE_ELEMENTS] = high - low;
            }
        }
    }

    /// Keeps those rules of the leaf at `block` that are to stay, by moving them up. What their slots hold
    /// stays as it was written. Answers how many blocks the leaf had.
    pub(super) fn retain_in_leaf(&mut self, block: u32, stays: impl Fn(u32) -> bool) -> usize {
        let (slots, blocks) = (self.slots(), self.leaf_blocks(block));
        let (start, end) = (block as usize * slots, (block as usize + blocks) * slots);
        work::note(end - start);
        let mut to = start;
        for from in start..end {
            let id = self.ids[from] & !MORE;
            if id & NO_RULE == NO_RULE || !stays(id & NO_RULE) {
                continue;
            }
            if from != to {
                self.ids[to] = self.ids[to] & MORE | id;
                self.copy_slot(from, to);
            }
            to += 1;
        }
        for slot in to..end {
            self.ids[slot] = self.ids[slot] & MORE | NO_RULE;
        }
        let held = (to - start).div_ceil(slots).max(1);
        for first in (start..end).step_by(slots).skip(held - 1) {
            self.ids[first] &= !MORE;
        }
        blocks
    }

    /// Copies the elements of one slot, counted through all blocks, to another.
    fn copy_slot(&mut self, from: usize, to: usize) {
        let (slots, lines, stride) = (self.slots(), self.block_lines(), self.layout.stride);
        let half = lines / 2;
        let at = |slot: usize| (slot / slots * lines, slot % slots * stride);
        let ((from_line, from_at), (to_line, to_at)) = (at(from), at(to));
        let width = stride.min(LINE_ELEMENTS);
        for line in (0..half).flat_map(|line| [line, line + half]) {
            let source = self.blocks[from_line + line];
            self.blocks[to_line + line].0[to_at..to_at + width]
                .copy_from_slice(&source.0[from_at..from_at + width]);
        }
    }

    /// Whether a leaf goes on in the block behind this one.
    pub(super) fn goes_on(&self, block: u32) -> bool {
        self.ids[block as usize * self.slots()] & MORE != 0
    }

    /// The blocks of the leaf that begins at `block`.
    pub(super) fn leaf_blocks(&self, block: u32) -> usize {
        let slots = self.slots();
        let mut blocks = 1;
        while self.ids[(block as usize + blocks - 1) * slots] & MORE != 0 {
            blocks += 1;
        }
        blocks
    }

    /// The bits of the packed key that the node of `entry` picks, lowest first, and where its children begin.
    pub(super) fn node_bits(&self, entry: u32) -> (Vec<usize>, usize) {
        let words = self.layout.words();
        let node = &self.nodes[(entry & !NODE) as usize * self.node_words()..][..words + 1];
        let bits = (0..64 * words).filter(|bit| node[bit / 64] >> (bit % 64) & 1 == 1).collect();
        (bits, node[words] as usize)
    }

    /// Writes the checks of one rule where as many free ones begin, or else behind the last, and answers
    /// where they begin; 0 if the rule has none.
    pub(super) fn put_checks(&mut self, used: Option<u32>, checks: &[[u32; CHECK_WORDS]]) -> u32 {
        if checks.is_empty() {
            return 0;
        }
        let Some(first) = used else {
            let first = self.checks.len() as u32;
            self.checks.extend_from_slice(checks);
            return first;
        };
        self.checks[first as usize..][..checks.len()].copy_from_slice(checks);
        first
    }

    /// Gives rule `id`, the next free number or one in use, its order, value and first check.
    pub(super) fn set_rule(&mut self, id: u32, order: u64, value: u32, check: u32) {
        let words = [order as u32, (order >> 32) as u32, value, check];
        let at = id as usize;
        if at == self.rules.len() {
            self.rules.push(words);
        } else {
            self.rules[at] = words;
        }
        let follows = at == 0 || self.order(id - 1) < order;
        self.ranked &= follows && (at + 1 == self.rules.len() || order < self.order(id + 1));
    }

    /// Marks a rule as removed while leaves name it.
    pub(super) fn bury(&mut self, id: u32) {
        self.rules[id as usize][3] |= DEAD;
        self.dead += 1;
    }

    /// Takes the mark from a rule that no leaf names any more.
    pub(super) fn unbury(&mut self, id: u32) {
        self.rules[id as usize][3] &= !DEAD;
        self.dead -= 1;
    }

    /// Whether a rule is removed, which leaves may still name.
    #[inline]
    pub(super) fn is_dead(&self, id: u32) -> bool {
        self.rules.get(id as usize).is_some_and(|rule| rule[3] & DEAD != 0)
    }

    /// Where the checks of a rule begin.
    pub(super) fn first_check(&self, id: u32) -> u32 {
        self.rules[id as usize][3] & !DEAD
    }

    /// The same image, in which no leaf names a dead rule.
    #[cfg(feature = "device")]
    pub(super) fn without_dead(&self) -> RulesImage {
        let (mut image, mut seen) = (self.clone(), HashSet::new());
        for &leaf in self.roots.iter().chain(self.children.iter()).filter(|entry| **entry & NODE == 0) {
            if seen.insert(leaf) {
                image.retain_in_leaf(leaf, |id| !self.is_dead(id));
            }
        }
        image.rules.iter_mut().for_each(|rule| rule[3] &= !DEAD);
        image.dead = 0;
        image
    }

    /// The order of rule `id`.
    #[inline]
    pub(super) fn order(&self, id: u32) -> u64 {
        let rule = &self.rules[id as usize];
        u64::from(rule[1]) << 32 | u64::from(rule[0])
    }

    /// The first rule that fits `key`.
    ///
    /// # Panics
    /// If `key` has not [`RulesImage::key_words`] words.
    pub fn find(&self, key: &[u64]) -> Option<Hit> {
        self.hit(self.find_id(key))
    }

    /// [`RulesImage::find`] among the rules whose values are not passed over.
    ///
    /// # Panics
    /// If `key` has not [`RulesImage::key_words`] words.
    pub fn find_past(&self, key: &[u64], over: impl Fn(u32) -> bool) -> Option<Hit> {
        assert_eq!(key.len(), self.key_words(), "{KEY_WORDS}");
        let counts = |id: u32| !self.is_dead(id) && !over(self.rules[id as usize][2]);
        self.hit(self.first_in(key, counts))
    }

    fn hit(&self, id: u32) -> Option<Hit> {
        (id != NO_RULE).then(|| Hit { order: self.order(id), value: self.rules[id as usize][2] })
    }

    /// The value of the first rule that fits `key`, or [`NONE`].
    ///
    /// # Panics
    /// If `key` has not [`RulesImage::key_words`] words.
    #[inline]
    pub fn find_value(&self, key: &[u64]) -> u32 {
        self.rules.get(self.find_id(key) as usize).map_or(NONE, |rule| rule[2])
    }

    /// [`RulesImage::find_value`] for every key of `keys`, which lie one after the other.
    ///
    /// # Panics
    /// If `keys` has not the words of as many keys as `values` has places.
    pub fn find_bulk(&self, keys: &[u64], values: &mut [u32]) {
        assert_eq!(keys.len(), values.len() * self.key_words(), "as many keys as places for values");
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        if let Some(packing) = &self.wide {
            return packing.find_bulk(self, keys, values);
        }
        for (key, value) in keys.chunks_exact(self.key_words()).zip(values) {
            *value = self.find_value(key);
        }
    }

    #[inline]
    fn find_id(&self, key: &[u64]) -> u32 {
        assert_eq!(key.len(), self.key_words(), "{KEY_WORDS}");
        #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
        if let Some(packing) = &self.wide {
            let id = packing.find(self, key);
            if self.dead == 0 || !self.is_dead(id) {
                return id;
            }
        }
        self.first_in(key, |id| !self.is_dead(id))
    }

    /// The first rule that fits among those that count.
    #[inline]
    fn first_in(&self, key: &[u64], counts: impl Fn(u32) -> bool) -> u32 {
        let words = self.layout.words();
        if words <= FEW_WORDS {
            self.first(key, &mut [0; FEW_WORDS][..words], counts)
        } else if words <= MOST_PACKED_WORDS {
            self.first(key, &mut [0; MOST_PACKED_WORDS][..words], counts)
        } else {
            self.first(key, &mut vec![0; words], counts)
        }
    }

    fn first(&self, key: &[u64], packed: &mut [u64], counts: impl Fn(u32) -> bool) -> u32 {
        self.layout.pack(key, packed);
        let mut best = NO_RULE;
        for &root in &self.roots {
            let id = self.scan_among(self.walk(root, packed), packed, &counts);
            if best == NO_RULE || id != NO_RULE && self.order(id) < self.order(best) {
                best = id;
            }
        }
        best
    }

    /// Follows entries from `entry` to a leaf.
    pub(super) fn walk(&self, mut entry: u32, packed: &[u64]) -> u32 {
        let words = self.layout.words();
        while entry & NODE != 0 {
            let node = &self.nodes[(entry & !NODE) as usize * self.node_words()..][..words + 1];
            let mut place = node[words] as usize;
            let mut shift = 0;
            for (&mask, &word) in node[..words].iter().zip(packed) {
                place += (picked(word, mask) << shift) as usize;
                shift += mask.count_ones();
            }
            entry = self.children[place];
        }
        entry
    }

    /// The first rule of the leaf at `block` that fits.
    #[cfg(all(feature = "fastest", target_arch = "x86_64"))]
    pub(super) fn scan(&self, block: u32, packed: &[u64]) -> u32 {
        self.scan_among(block, packed, |_| true)
    }

    #[inline]
    fn scan_among(&self, block: u32, packed: &[u64], counts: impl Fn(u32) -> bool) -> u32 {
        let (slots, stride) = (self.slots(), self.layout.stride);
        let (lines, half) = (self.block_lines(), self.block_lines() / 2);
        let flags_at = self.layout.flags_at();
        let mut block = block as usize;
        loop {
            let ids = &self.ids[block * slots..][..slots];
            for (slot, &id) in ids.iter().enumerate() {
                if id & NO_RULE == NO_RULE {
                    break;
                }
                let fits = (0..self.layout.elements()).all(|at| {
                    let place = slot * stride + at;
                    let line = block * lines + place / LINE_ELEMENTS;
                    let (low, span) = (
                        self.blocks[line].0[place % LINE_ELEMENTS],
                        self.blocks[line + half].0[place % LINE_ELEMENTS],
                    );
                    let key = element(packed, at);
                    let beyond = if flags_at == Some(at) { low & !key } else { key.wrapping_sub(low) };
                    beyond <= span
                });
                let passes = || id & CHECKED == 0 || self.confirm(id & NO_RULE, packed);
                if fits && passes() && counts(id & NO_RULE) {
                    return id & NO_RULE;
                }
            }
            if ids[0] & MORE == 0 {
                return NO_RULE;
            }
            block += 1;
        }
    }

    /// Whether a rule whose elements fit passes its checks.
    #[cold]
    pub(super) fn confirm(&self, id: u32, packed: &[u64]) -> bool {
        let first = self.first_check(id) as usize;
        for check in &self.checks[first..] {
            if !passes(packed, check) {
                return false;
            }
            if check[0] & CHECK_LAST != 0 {
                break;
            }
        }
        true
    }
}

/// The bits of `word` under `mask`, moved together at the low end.
#[inline]
pub(super) fn picked(word: u64, mut mask: u64) -> u64 {
    let (mut bits, mut place) = (0, 0);
    while mask != 0 {
        bits |= (word >> mask.trailing_zeros() & 1) << place;
        place += 1;
        mask &= mask - 1;
    }
    bits
}
