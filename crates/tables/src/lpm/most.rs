//! Computes the most memory that a table may need at its capacity.
//!
//! The idea: a node is a pure function of its region's borders, so an image made anew takes, for each prefix,
//! a bounded number of words. An image that is changed again and again loses some to holes; it may have as
//! many as are enough for one made anew, and is made anew when they are used up.

use super::codes::cell_bits;
use super::layout::{DIRECT_BITS, GRANULE, Layout};
use super::routes::Code;
use super::spec::LpmSpec;
use super::words::taken;
use crate::sizes;

/// Bits that choose a root cell.
pub(super) const ROOT_BITS: u8 = 16;
/// Words of heap that an image may have beside those for its prefixes.
pub(super) const LEAST_HEAP: usize = 1 << 16;
/// Words of heap for each prefix of a table of at most 32 bits. Both of its borders lie in a line of their
/// own or in a dense node of as many more words as `NARROW` allows: 20 words each.
const NARROW_PREFIX: usize = 48;
/// The same of a wider table that saves bytes; one that saves steps and takes more is made so. Both borders
/// of a prefix share a path but for one node. Where 150 prefixes share a region of 16 bits, a dense node
/// costs each 437 words; nodes of 4 bits as far as the first 48, or of 8 bits for two prefixes, cost up to 64
/// or 256 where there is no such node; and five lines lie behind.
const WIDE_PREFIX: usize = 600;
/// Words of heap up to which wide tables take bytes to save steps: the image stays within 64 MiB.
pub(super) const GENEROUS: usize = (1 << 24) - (1 << 17);
/// Words that an image has at most: a cell tells 2^26 places, of a granule each, apart. That is 4 GiB.
pub(super) const MOST_WORDS: usize = GRANULE << 26;
/// Bytes that the writer notes of each granule that is cut off.
const NOTED: u64 = 16;
/// Bytes of the bits for all cells.
pub(super) const KNOWN_BYTES: u64 = 1 << (DIRECT_BITS - 3);
/// Bytes of notes that there may be however small the image is: of how worn nodes are, and of the first
/// granules that are cut off.
const LEAST_NOTED: u64 = 128 << 10;

impl LpmSpec {
    /// Bytes that a fast table of this shape, whose values are at most its capacity, comes to at most,
    /// whatever prefixes come and go and however they lie: of its image, which grows no larger, and of what
    /// its writer keeps. A shape that is refused has no bound (`u64::MAX`). While an image takes the place of
    /// another there are both.
    pub fn at_most(&self) -> u64 {
        if self.check().is_err() { u64::MAX } else { bytes(*self) }
    }
}

/// Words of heap that the image of a table has at most.
pub(super) fn heap(spec: LpmSpec) -> usize {
    spec.capacity * if spec.width <= 32 { NARROW_PREFIX } else { WIDE_PREFIX } + LEAST_HEAP
}

/// See [`LpmSpec::at_most`].
pub(super) fn bytes(spec: LpmSpec) -> u64 {
    let prefixes = spec.capacity as u64;
    // A palette is for values that do not fit into cells of the same width, and is smaller than the next
    // wider cells.
    let cell_bits = if spec.width == 32 { cell_bits(spec.capacity as u32) } else { 0 };
    let layout = Layout::new(spec.width, cell_bits, false, 0, ROOT_BITS);
    let words = (layout.heap + heap(spec)).min(MOST_WORDS) as u64;
    let noted = words.min(heap(spec) as u64) / GRANULE as u64 * NOTED + LEAST_NOTED;
    let known = if spec.width == 32 { KNOWN_BYTES } else { 0 };
    taken(words, words)
        .saturating_add(sizes::ordered_at_most::<(u128, u8), Code>(prefixes))
        .saturating_add(known)
        .saturating_add(noted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::Random;
    use crate::lpm::spec::leading;
    use crate::lpm::table::heap_words;
    use crate::lpm::{MAX_WIDTH, Prefix};
    use std::collections::BTreeMap;

    /// Prefixes that share a path and part on it: at each step of so many bits in one of so many ways, as
    /// long as there are few enough of them. Some are cut behind 48 bits, so that dense nodes stand on the
    /// path of all.
    fn parting(random: &mut Random, width: u8, step: u8) -> BTreeMap<Prefix, u32> {
        const WAYS: [usize; 14] = [1, 1, 1, 1, 2, 3, 5, 10, 16, 31, 81, 151, 301, 501];
        let (mut bits, mut length) = (vec![0_u128], 0);
        let shorter = if random.chance(50) { 4 } else { u64::from(width - 24) };
        let last = width - random.below(shorter) as u8;
        while length < last {
            let part = step.min(last - length);
            let ways = random.pick(&WAYS).copied().unwrap_or(1);
            let ways = if bits.len() * ways > 800 { 1 } else { ways };
            let next = bits.iter().flat_map(|bits| (0..ways).map(move |_| bits << part)).collect::<Vec<_>>();
            bits = next.into_iter().map(|bits| bits | u128::from(random.below(1 << part))).collect();
            length += part;
        }
        let mut made = BTreeMap::new();
        let cut = [0, 0, 1, 10, 50][random.below(5) as usize];
        for (bits, value) in bits.into_iter().zip(0..) {
            let length = if random.chance(cut) { last.min(48) } else { last };
            let bits = bits.checked_shl(u32::from(width - last)).unwrap_or(0) & leading(length, width);
            made.insert(Prefix { bits, length }, value);
        }
        made
    }

    #[test]
    fn prefixes_that_part_wherever_it_hurts_take_no_more_than_their_words() {
        let mut random = Random::new(7);
        for (width, most) in [
            (32, NARROW_PREFIX),
            (27, NARROW_PREFIX),
            (48, WIDE_PREFIX),
            (64, WIDE_PREFIX),
            (MAX_WIDTH, WIDE_PREFIX),
        ] {
            let mut worst = 0;
            for _ in 0..40 {
                let step = [4, 8, 12, 16][random.below(4) as usize];
                let entries = parting(&mut random, width, step);
                let spec = LpmSpec { width, capacity: entries.len() };
                let count = entries.len();
                let words = heap_words(spec, entries.into_iter().collect());
                worst = worst.max(words / count);
                assert!(words <= most * count, "{count} prefixes of {width} bits: {words} words");
            }
            println!("{width} bits: {worst} words for a prefix, {most} at most");
        }
    }
}
