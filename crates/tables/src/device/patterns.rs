//! Tables of patterns on a device: the kernel text of both searches, and the layout of the patterns in both
//! images.
//!
//! ```text
//! word of a pattern   0        1        2         3       4                    5          6, 7
//!                    ┌────────┬────────┬─────────┬───────┬────────────────────┬──────────┬─────┐
//!                    │length  │offset  │last end │value  │place of its bytes  │case      │0    │
//!                    └────────┴────────┴─────────┴───────┴────────────────────┴──────────┴─────┘
//! ```
//!
//! Case is 1 where letters match in their own case only; where it is 0, the bytes are in lower case. Bytes
//! begin at a whole word, the first in its lowest bits. Places are counted in words from the beginning of the
//! image.

use crate::patterns::SearchPattern;

/// The searches, over an image of [`automaton`](super::automaton):
///
/// - `u32 patterns_first(GLOBAL const u32 *image, GLOBAL const u8 *bytes, u32 length)`: the pattern, by its
///   place in the list, whose occurrence ends first, and of several that end there the one that stands first;
///   or [`NONE`](super::NONE).
/// - `u32 patterns_all(…)`: how many occurrences there are, at most 2³² − 1.
/// - `void patterns_set(…, u64 *set)`: sets bit *v* of the 128 bits of `set` for each pattern of value *v*
///   that occurs.
///
/// `patterns_first_bloom`, `patterns_all_bloom` and `patterns_set_bloom` do the same over an image of
/// [`bloom`](super::bloom). `u32 patterns_value(image, pattern)` is the value of a pattern in either.
pub const TEXT: &str = include_str!("patterns.h");

/// What `patterns_first`, `patterns_all`, `patterns_set` and `patterns_value` answer, told in Rust over
/// either image: every pattern is tried at every place, so automaton and filters have no part in it.
pub struct Occurrences<'a> {
    image: &'a [u32],
    bytes: &'a [u8],
}

impl<'a> Occurrences<'a> {
    /// Those of an image's patterns in some bytes.
    pub fn new(image: &'a [u32], bytes: &'a [u8]) -> Occurrences<'a> {
        Occurrences { image, bytes }
    }

    /// The number of the pattern whose occurrence ends first, of several the smallest, or
    /// [`NONE`](super::NONE).
    pub fn first(&self) -> u32 {
        self.ends().min().map_or(super::NONE, |(_, number)| number)
    }

    /// How many there are; no more than 32 bits hold.
    pub fn count(&self) -> u32 {
        u32::try_from(self.ends().count()).unwrap_or(u32::MAX)
    }

    /// The values of the patterns that occur, those below 128, as bits.
    pub fn set(&self) -> u128 {
        let values = self.ends().map(|(_, number)| self.value(number));
        values.filter(|value| *value < 128).fold(0, |set, value| set | 1 << value)
    }

    /// The value of a pattern.
    pub fn value(&self, number: u32) -> u32 {
        self.fields(number)[3]
    }

    fn fields(&self, number: u32) -> &'a [u32] {
        &self.image[self.image[6] as usize + number as usize * PATTERN_WORDS..][..PATTERN_WORDS]
    }

    /// Where each ends, with the number of its pattern.
    fn ends(&self) -> impl Iterator<Item = (usize, u32)> {
        (0..self.image[2]).flat_map(move |number| {
            let fields = self.fields(number);
            let own = self.image[fields[4] as usize..].iter().flat_map(|word| word.to_le_bytes());
            let own: Vec<u8> = own.take(fields[0] as usize).collect();
            let cased = fields[5] != 0;
            let places = self.bytes.windows(own.len()).enumerate();
            places.filter_map(move |(start, window)| {
                let same = if cased { window == own } else { window.eq_ignore_ascii_case(&own) };
                let end = start + own.len();
                (same && start >= fields[1] as usize && end <= fields[2] as usize).then_some((end, number))
            })
        })
    }
}

/// Words of a pattern.
const PATTERN_WORDS: usize = 8;

/// Puts the patterns behind the end of an image, and then their bytes; where the patterns begin.
pub(super) fn append(image: &mut Vec<u32>, patterns: &[SearchPattern]) -> usize {
    let begin = image.len();
    let mut bytes_at = begin + patterns.len() * PATTERN_WORDS;
    image.resize(bytes_at, 0);
    for (number, pattern) in patterns.iter().enumerate() {
        let cased = !pattern.nocase && pattern.bytes.iter().any(u8::is_ascii_alphabetic);
        let mut bytes = if cased { pattern.bytes.clone() } else { pattern.bytes.to_ascii_lowercase() };
        let length = bytes.len();
        bytes.resize(length.next_multiple_of(4), 0);
        let fields = [
            length as u32,
            pattern.offset,
            pattern.limit(),
            pattern.value,
            bytes_at as u32,
            u32::from(cased),
            0,
            0,
        ];
        image[begin + number * PATTERN_WORDS..][..PATTERN_WORDS].copy_from_slice(&fields);
        image.extend(super::words(&bytes));
        bytes_at = image.len();
    }
    begin
}

#[cfg(test)]
mod tests;
