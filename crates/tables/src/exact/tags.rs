//! One byte a slot that says, without looking at the slot, whether a key may lie there: the index of bulk lookups.
//!
//! The idea: an entry lies at its home slot or soon after it, and the tags of sixteen slots in a row are compared at once. So a
//! bulk lookup knows the slot before it has read any, fetches just that one, and hardly ever has to guess at a branch: that, more
//! than the fetching, is what makes it faster than single ones, which look at slots one after the other and leave the tags alone.
//!
//! ```text
//! byte i: 0 = slot i is empty; otherwise the highest 8 bits of the hash of its key, 1 for 0
//! byte slots + i, for i < 15: the same as byte i, so that sixteen in a row can be read at any slot
//! ```

use super::memory::{Lines, prefetch};
use super::slots::NoMemory;

/// Slots that are compared at once; no table has fewer.
pub(super) const WINDOW: usize = 16;

/// The tags of so many slots.
pub(super) struct Tags {
    lines: Lines,
    slots: usize,
}

/// What the tags of a window say of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// If it is there, then most likely so far behind its home; otherwise it has to be looked for.
    Likely(usize),
    /// It is not there.
    Absent,
}

impl Tags {
    /// All empty; `slots` is a power of two, [`WINDOW`] or more.
    pub(super) fn new(slots: usize) -> Result<Tags, NoMemory> {
        Ok(Tags { lines: Lines::zeroed((slots + WINDOW - 1).div_ceil(64))?, slots })
    }

    /// The tag of a hash.
    #[inline(always)]
    pub(super) fn of(hash: u64) -> u8 {
        ((hash >> 56) as u8).max(1)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, slot: usize, tag: u8) {
        let bytes = self.lines.as_mut_bytes();
        bytes[slot] = tag;
        if slot < WINDOW - 1 {
            bytes[self.slots + slot] = tag;
        }
    }

    pub(super) fn copy(&mut self, from: usize, to: usize) {
        self.set(to, self.lines.as_bytes()[from]);
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.lines.bytes()
    }

    /// Starts to fetch the window at a slot.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: usize) {
        let first = self.lines.as_ptr().cast::<u8>().wrapping_add(slot);
        prefetch(first);
        prefetch(first.wrapping_add(WINDOW - 1));
    }

    /// What the window at `home` says of a key with this tag.
    #[inline(always)]
    pub(super) fn sight(&self, home: usize, tag: u8) -> Sight {
        let Some(window) = self.lines.as_bytes().get(home..).and_then(|from| from.first_chunk::<WINDOW>())
        else {
            return Sight::Likely(0);
        };
        let equal = equal(window, tag);
        if equal != 0 {
            return Sight::Likely(equal.trailing_zeros() as usize);
        }
        // Every entry lies before the first empty slot behind its home, so an empty one in sight ends the search.
        if window.contains(&0) { Sight::Absent } else { Sight::Likely(0) }
    }
}

/// A bit for each byte of the window that is `tag`.
#[inline(always)]
fn equal(window: &[u8; WINDOW], tag: u8) -> u16 {
    let mut bits = 0;
    for (i, byte) in window.iter().enumerate() {
        bits |= u16::from(*byte == tag) << i;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_end_at_an_empty_slot() {
        let mut tags = Tags::new(16).expect("room for 31 bytes");
        assert_eq!(tags.sight(15, 7), Sight::Absent);
        tags.set(2, 7);
        assert_eq!(tags.sight(15, 7), Sight::Likely(3), "across the end");
        assert_eq!(tags.sight(2, 7), Sight::Likely(0));
        assert_eq!(tags.sight(3, 7), Sight::Likely(15), "the slot before, all round");
        assert_eq!(tags.sight(2, 8), Sight::Absent);
        tags.copy(2, 9);
        tags.set(2, 0);
        assert_eq!(tags.sight(0, 7), Sight::Likely(9));
        for slot in 0..16 {
            tags.set(slot, 9);
        }
        assert_eq!(tags.sight(5, 7), Sight::Likely(0), "no empty slot in sight: it has to be looked for");
    }

    #[test]
    fn no_tag_of_a_hash_means_empty() {
        assert_eq!(Tags::of(0), 1);
        assert_eq!(Tags::of(u64::MAX), 255);
    }
}
