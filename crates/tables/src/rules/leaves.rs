//! Where the leaves of an image stand: gives them blocks, counts the entries that name each, and takes the
//! blocks back when none does.
//!
//! The idea: a change writes a leaf that has become longer into free blocks, so old blocks must become free
//! without a search for those that no entry names. Each leaf therefore has a count of its entries, and no
//! change ever arranges the image anew.

use super::encode::Encoded;
use super::free::FreeRuns;
use super::image::{NODE, RulesImage};
use crate::reserved::Reserved;
use crate::sizes::roomy;
use crate::work;

/// The image may not have as many bytes as a change needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted {
    /// The bytes that it would have.
    pub(super) bytes: usize,
}

/// The blocks of one image.
#[derive(Clone, Debug)]
pub(super) struct Leaves {
    /// The entries that name the leaf that begins at each block.
    names: Reserved<u32>,
    free: FreeRuns,
    /// The most bytes of the image.
    limit: usize,
}

impl Leaves {
    /// For an image without leaves but the empty one.
    pub(super) fn new(limit: usize) -> Leaves {
        let mut names = Reserved::new(limit);
        names.push(0);
        Leaves { names, free: FreeRuns::default(), limit }
    }

    /// Writes a leaf of these rules into free blocks, and answers its entry, which nothing names yet.
    pub(super) fn put(
        &mut self,
        image: &mut RulesImage,
        encoded: &Encoded,
        list: &[u32],
    ) -> Result<u32, Exhausted> {
        if list.is_empty() {
            return Ok(0);
        }
        let blocks = list.len().div_ceil(image.slots());
        let first = match self.free.take(blocks as u32) {
            Some(first) => first,
            None => {
                let bytes = image.bytes() + blocks * image.block_bytes();
                if bytes > self.limit {
                    return Err(Exhausted { bytes });
                }
                self.names.resize(self.names.len() + blocks, 0);
                image.push_blocks(blocks)
            }
        };
        image.write_leaf(encoded, first, list);
        Ok(first)
    }

    /// Writes `list` into the leaf of `entry`, which has room for it.
    pub(super) fn rewrite(&mut self, image: &mut RulesImage, encoded: &Encoded, entry: u32, list: &[u32]) {
        let held = image.leaf_blocks(entry);
        image.write_leaf(encoded, entry, list);
        self.shorten(image, entry, held);
    }

    /// Takes rule `id` out of the leaf of `entry`, and answers the entry of what is left: 0 if that is
    /// nothing.
    pub(super) fn remove(&mut self, image: &mut RulesImage, entry: u32, id: u32) -> u32 {
        if entry == 0 {
            return 0;
        }
        let held = image.retain_in_leaf(entry, |other| other != id);
        self.shorten(image, entry, held);
        if image.is_empty_leaf(entry) { 0 } else { entry }
    }

    /// Takes rules that are not alive out of the leaf that begins at `block`, if one does, and answers how
    /// many blocks it had; 1 if none does.
    pub(super) fn sweep(&mut self, image: &mut RulesImage, block: u32, live: impl Fn(u32) -> bool) -> usize {
        if self.names[block as usize] == 0 {
            return 1;
        }
        let held = image.retain_in_leaf(block, live);
        self.shorten(image, block, held);
        held
    }

    /// One more entry names what `entry` stands for.
    pub(super) fn name(&mut self, entry: u32) {
        if entry & NODE == 0 && entry != 0 {
            self.names[entry as usize] += 1;
        }
    }

    /// One entry less does; the last one gives the leaf's blocks back.
    pub(super) fn unname(&mut self, image: &mut RulesImage, entry: u32) {
        if entry & NODE != 0 || entry == 0 {
            return;
        }
        let names = &mut self.names[entry as usize];
        *names -= 1;
        if *names == 0 {
            self.give_back(image, entry, image.leaf_blocks(entry));
        }
    }

    /// Gives the blocks of a leaf back whatever names it.
    pub(super) fn discard(&mut self, image: &mut RulesImage, entry: u32) {
        if entry != 0 {
            self.names[entry as usize] = 0;
            self.give_back(image, entry, image.leaf_blocks(entry));
        }
    }

    /// The leaf of `entry` had `held` blocks.
    fn shorten(&mut self, image: &mut RulesImage, entry: u32, held: usize) {
        let blocks = image.leaf_blocks(entry);
        if blocks < held {
            self.give_back(image, entry + blocks as u32, held - blocks);
        }
    }

    fn give_back(&mut self, image: &mut RulesImage, first: u32, blocks: usize) {
        work::note(blocks);
        image.clear_blocks(first, blocks);
        let (start, length) = self.free.give(first, blocks as u32);
        if (start + length) as usize == self.names.len() {
            self.free.forget(start, length);
            self.names.truncate(start as usize);
            image.truncate_blocks(start as usize);
        }
    }

    /// The most bytes for the blocks of an image of so many.
    pub(super) fn at_most(blocks: u64) -> u64 {
        roomy(blocks.saturating_mul(size_of::<u32>() as u64)).saturating_add(FreeRuns::at_most(blocks))
    }

    /// Bytes of what it keeps, spare room included.
    pub(super) fn allocated(&self) -> u64 {
        self.names.taken() + self.free.allocated()
    }

    /// How many entries name the leaf at each block.
    #[cfg(test)]
    pub(super) fn names(&self) -> &[u32] {
        &self.names
    }

    /// Start and length of the free runs of blocks.
    #[cfg(test)]
    pub(super) fn free_runs(&self) -> Vec<(u32, u32)> {
        self.free.all()
    }

    /// Gives back the room that it has spare.
    pub(super) fn shrink(&mut self) {
        self.names.shrink_to_fit();
    }
}
