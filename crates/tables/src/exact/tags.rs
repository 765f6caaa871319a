//! Tags: one byte for each slot, which says whether a key may be there without a look at the slot. Bulk
//! lookups use them as their index.
//!
//! The idea: an entry lies at its home slot or soon after it, and the tags of eight slots in a row are
//! compared at once. So a bulk lookup knows the slot before it has read any, fetches just that one, and
//! hardly ever has to guess at a branch: that, more than the fetching, is what makes it faster than single
//! ones, which look at slots one after the other and leave the tags alone.
//!
//! ```text
//! byte i: 0 = slot i is empty; otherwise the highest 8 bits of the hash of its key, 1 for 0
//! byte slots + i, for i < 7: the same as byte i, so that eight in a row can be read at any slot
//! ```

use super::memory::Lines;
#[cfg(feature = "fastest")]
use super::memory::prefetch;
use super::slots::NoMemory;
use std::ops::Range;

/// Slots that are compared at once; no table has fewer.
pub(super) const WINDOW: usize = 8;

/// The tags of so many slots.
pub(super) struct Tags {
    lines: Lines,
    slots: usize,
}

/// What the tags of a window say of a key.
#[cfg(feature = "fastest")]
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

    /// [`Lines::touch`].
    pub(super) fn touch(&mut self) {
        self.lines.touch();
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

    /// How many slots in a row are taken behind this one, and before it; counted to `most` or a little more.
    pub(super) fn taken_around(&self, slot: usize, most: usize) -> (usize, usize) {
        let window = |at: usize| {
            let from = self.lines.as_bytes().get(at & (self.slots - 1)..);
            from.and_then(|from| from.first_chunk::<WINDOW>()).copied().unwrap_or_default()
        };
        let (mut behind, mut before) = (0, 0);
        while behind < most {
            let taken = first_equal(&window(slot + 1 + behind), 0);
            behind += taken.unwrap_or(WINDOW);
            if taken.is_some() {
                break;
            }
        }
        while before < most {
            let mut backwards = window(slot.wrapping_sub(WINDOW + before));
            backwards.reverse();
            let taken = first_equal(&backwards, 0);
            before += taken.unwrap_or(WINDOW);
            if taken.is_some() {
                break;
            }
        }
        (behind, before)
    }

    /// Whether a slot is taken.
    #[inline(always)]
    pub(super) fn is_taken(&self, slot: usize) -> bool {
        self.lines.as_bytes()[slot] != 0
    }

    /// The taken ones of these slots.
    pub(super) fn taken(&self, slots: Range<usize>) -> impl Iterator<Item = usize> {
        // Runs of empty slots are passed without a look at each.
        const STEP: usize = 64;
        let start = slots.start;
        let steps = self.lines.as_bytes()[slots].chunks(STEP).enumerate();
        let some = steps.filter(|(_, tags)| tags.iter().any(|tag| *tag != 0));
        some.flat_map(move |(step, tags)| {
            let taken = tags.iter().enumerate().filter(|(_, tag)| **tag != 0);
            taken.map(move |(at, _)| start + step * STEP + at)
        })
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.lines.bytes()
    }

    /// Starts to fetch the window at a slot.
    #[cfg(feature = "fastest")]
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: usize) {
        let first = self.lines.as_ptr().cast::<u8>().wrapping_add(slot);
        prefetch(first);
        prefetch(first.wrapping_add(WINDOW - 1));
    }

    /// What the window at `home` says of a key with this tag.
    #[cfg(feature = "fastest")]
    #[inline(always)]
    pub(super) fn sight(&self, home: usize, tag: u8) -> Sight {
        let Some(window) = self.lines.as_bytes().get(home..).and_then(|from| from.first_chunk::<WINDOW>())
        else {
            return Sight::Likely(0);
        };
        match first_equal(window, tag) {
            Some(behind) => Sight::Likely(behind),
            // Every entry lies before the first empty slot behind its home, so an empty one in sight ends the
            // search.
            None if first_equal(window, 0).is_some() => Sight::Absent,
            None => Sight::Likely(0),
        }
    }
}

/// The place of the first byte of the window that is `tag`.
///
/// The idea: a byte of the difference is zero where both are equal, and subtracting one from every byte
/// borrows into its highest bit only there or behind such a byte ("Hacker's Delight", section 6-1); so the
/// lowest such bit tells the first equal byte exactly.
#[inline(always)]
fn first_equal(window: &[u8; WINDOW], tag: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let difference = u64::from_le_bytes(*window) ^ (ONES * u64::from(tag));
    let borrowed = difference.wrapping_sub(ONES) & !difference & (ONES << 7);
    (borrowed != 0).then_some(borrowed.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_wrap_and_end_at_an_empty_slot() {
        let mut tags = Tags::new(16).expect("room for 23 bytes");
        assert_eq!(tags.sight(15, 7), Sight::Absent);
        tags.set(2, 7);
        assert_eq!(tags.sight(15, 7), Sight::Likely(3), "across the end");
        assert_eq!(tags.sight(2, 7), Sight::Likely(0));
        assert_eq!(tags.sight(3, 7), Sight::Absent, "behind it");
        assert_eq!(tags.sight(2, 8), Sight::Absent);
        tags.copy(2, 9);
        tags.set(2, 0);
        assert_eq!(tags.sight(2, 7), Sight::Likely(7));
        assert_eq!(tags.sight(1, 7), Sight::Absent, "out of sight, but past an empty slot");
        for slot in 0..16 {
            tags.set(slot, 9);
        }
        assert_eq!(tags.sight(12, 7), Sight::Likely(0), "no empty slot in sight: it has to be looked for");
    }

    #[test]
    fn runs_are_counted_across_the_end() {
        let mut tags = Tags::new(32).expect("room for 39 bytes");
        assert_eq!(tags.taken_around(0, 100), (0, 0));
        for slot in (21..32).chain(0..3).chain(4..14) {
            tags.set(slot, 9);
        }
        assert_eq!(tags.taken_around(3, 100), (10, 14));
        assert_eq!(tags.taken_around(14, 100), (0, 10));
        assert_eq!(tags.taken_around(20, 100), (14, 0));
        let (behind, before) = tags.taken_around(3, 5);
        assert!((5..13).contains(&behind) && (5..13).contains(&before), "no further than asked for");
        // One empty slot in the smallest table.
        let mut tags = Tags::new(WINDOW).expect("room for 15 bytes");
        (0..WINDOW).filter(|slot| *slot != 5).for_each(|slot| tags.set(slot, 1));
        assert_eq!(tags.taken_around(5, 100), (7, 7));
    }

    #[test]
    fn the_first_equal_byte_is_found_among_bytes_like_it() {
        let mut random = crate::generate::Random::new(1);
        for _ in 0..2000 {
            // Few different bytes, so that many are equal or off by one.
            let window: [u8; WINDOW] =
                std::array::from_fn(|_| [0, 1, 2, 127, 128, 255][random.below(6) as usize]);
            for tag in [0, 1, 2, 3, 127, 128, 129, 255] {
                let expected = window.iter().position(|byte| *byte == tag);
                assert_eq!(first_equal(&window, tag), expected, "{window:?} {tag}");
            }
        }
    }

    #[test]
    fn no_tag_of_a_hash_means_empty() {
        assert_eq!(Tags::of(0), 1);
        assert_eq!(Tags::of(u64::MAX), 255);
    }
}
