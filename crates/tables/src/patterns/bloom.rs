//! A scanner with Bloom filters, one for each length, as the Hermes paper runs on a GPU; it confirms every
//! hit.
//!
//! A pattern of length L belongs to the class of the longest prefix length that does not exceed L. For each
//! class a Bloom filter holds the prefixes. At each place of a packet and for each class, the bytes there are
//! hashed; only if all of the filter's bits are set is the prefix looked up, and what has it is compared.

use super::{PatternMatch, PatternsBuildError, SearchPattern, searched};
use std::collections::BTreeMap;

/// The prefix lengths of the classes.
const CLASSES: [usize; 7] = [1, 2, 3, 4, 8, 16, 32];
/// Bits of a filter for each prefix it holds, at least; with four bits set a prefix, about one place in 400
/// passes wrongly.
const BITS: usize = 16;
/// Bits set for each prefix.
const HASHES: u32 = 4;

/// The Bloom-filter scanner. Case does not count in the filters, only in the comparison.
#[derive(Clone, Debug, Default)]
pub struct BloomScanner {
    patterns: Vec<SearchPattern>,
    pub(crate) classes: Vec<Class>,
}

#[derive(Clone, Debug)]
pub(crate) struct Class {
    pub(crate) prefix: usize,
    pub(crate) filter: Vec<u64>,
    /// The patterns of the class by the hash of their prefix; ascending within one hash.
    pub(crate) by_hash: Vec<(u64, u32)>,
    /// Where in `by_hash` each slot of the highest hash bits begins.
    pub(crate) slots: Vec<u32>,
}

impl BloomScanner {
    /// Builds the filters.
    ///
    /// # Errors
    /// [`PatternsBuildError::Empty`], as [`super::Scanner::build`].
    pub fn build(patterns: &[SearchPattern]) -> Result<BloomScanner, PatternsBuildError> {
        if let Some(pattern) = patterns.iter().position(|pattern| pattern.bytes.is_empty()) {
            return Err(PatternsBuildError::Empty { pattern });
        }
        let mut classes = BTreeMap::<usize, Vec<(u64, u32)>>::new();
        for (index, pattern) in (0..).zip(patterns) {
            let prefix = CLASSES.into_iter().rfind(|&prefix| prefix <= pattern.bytes.len()).unwrap_or(1);
            classes.entry(prefix).or_default().push((hash(&pattern.bytes[..prefix]), index));
        }
        let classes = classes.into_iter().map(|(prefix, by_hash)| Class::of(prefix, by_hash)).collect();
        Ok(BloomScanner { patterns: patterns.to_vec(), classes })
    }

    /// What the filters and the lists behind them take, in bytes.
    pub fn bytes(&self) -> usize {
        self.classes
            .iter()
            .map(|class| class.filter.len() * 8 + class.by_hash.len() * 16 + class.slots.len() * 4)
            .sum()
    }

    /// Tells every occurrence, in ascending order of (end, pattern).
    pub fn each(&self, haystack: &[u8], found: &mut impl FnMut(PatternMatch)) {
        let mut all = Vec::new();
        self.unordered(haystack, |occurrence| all.push(occurrence));
        all.sort_unstable_by_key(|occurrence: &PatternMatch| (occurrence.end, occurrence.pattern));
        all.into_iter().for_each(found);
    }

    /// The occurrence with the smallest end, and of those the one of the smallest pattern.
    pub fn first(&self, haystack: &[u8]) -> Option<PatternMatch> {
        let mut first = None::<PatternMatch>;
        self.unordered(haystack, |found| {
            if first.is_none_or(|first| (found.end, found.pattern) < (first.end, first.pattern)) {
                first = Some(found);
            }
        });
        first
    }

    /// How many occurrences there are.
    pub fn count(&self, haystack: &[u8]) -> u64 {
        let mut count = 0;
        self.unordered(haystack, |_| count += 1);
        count
    }

    /// Appends to `patterns` those that occur, each once, ascending.
    pub fn set(&self, haystack: &[u8], patterns: &mut Vec<u32>) {
        let mut occurs = vec![false; self.patterns.len()];
        self.unordered(haystack, |found| occurs[found.pattern as usize] = true);
        patterns.extend((0..occurs.len() as u32).filter(|&pattern| occurs[pattern as usize]));
    }

    fn unordered(&self, haystack: &[u8], mut found: impl FnMut(PatternMatch)) {
        let haystack = searched(haystack);
        for class in &self.classes {
            for (start, prefix) in haystack.windows(class.prefix).enumerate() {
                let hash = hash(prefix);
                if !bits(hash, class.filter.len()).all(|bit| class.filter[bit / 64] >> (bit % 64) & 1 == 1) {
                    continue;
                }
                for &(_, index) in class.of_hash(hash) {
                    let pattern = &self.patterns[index as usize];
                    let end = start + pattern.bytes.len();
                    let Some(bytes) = haystack.get(start..end) else { continue };
                    let placed =
                        start as u64 >= u64::from(pattern.offset) && end as u64 <= u64::from(pattern.limit());
                    let same = match pattern.nocase {
                        true => bytes.eq_ignore_ascii_case(&pattern.bytes),
                        false => *bytes == pattern.bytes,
                    };
                    if placed && same {
                        found(PatternMatch { pattern: index, start: start as u32, end: end as u32 });
                    }
                }
            }
        }
    }
}

impl Class {
    fn of(prefix: usize, mut by_hash: Vec<(u64, u32)>) -> Class {
        by_hash.sort_unstable();
        let mut filter = vec![0u64; (by_hash.len() * BITS).next_power_of_two().max(64) / 64];
        for &(hash, _) in &by_hash {
            bits(hash, filter.len()).for_each(|bit| filter[bit / 64] |= 1 << (bit % 64));
        }
        let log2 = by_hash.len().next_power_of_two().trailing_zeros().max(1);
        let slots = (0..=1u64 << log2)
            .map(|slot| by_hash.partition_point(|&(hash, _)| hash >> (64 - log2) < slot) as u32)
            .collect();
        Class { prefix, filter, by_hash, slots }
    }

    fn of_hash(&self, hash: u64) -> &[(u64, u32)] {
        let slot = (hash >> (64 - (self.slots.len() - 1).trailing_zeros())) as usize;
        let list = &self.by_hash[self.slots[slot] as usize..self.slots[slot + 1] as usize];
        let list = &list[list.partition_point(|&(other, _)| other < hash)..];
        &list[..list.partition_point(|&(other, _)| other == hash)]
    }
}

/// The bits of a hash in a filter of so many words: two halves, the second added again and again (Kirsch,
/// Mitzenmacher: Less Hashing, Same Performance, 2006).
#[inline]
fn bits(hash: u64, words: usize) -> impl Iterator<Item = usize> {
    let (one, two) = (hash as u32, (hash >> 32) as u32 | 1);
    (0..HASHES).map(move |time| one.wrapping_add(two.wrapping_mul(time)) as usize & (words * 64 - 1))
}

/// Eight bytes at a time, letters as if in lower case; the marks whose bit 5 is clear fall together with
/// others.
#[inline]
fn hash(prefix: &[u8]) -> u64 {
    let mut hash = prefix.len() as u64;
    let (words, rest) = prefix.as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    for word in words.iter().chain(std::iter::once(&last)) {
        let word = u64::from_le_bytes(*word) | 0x2020_2020_2020_2020;
        hash = (hash.rotate_left(26) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 29;
    }
    hash.wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
