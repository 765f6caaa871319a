//! Patterns as Bloom filters, one for each length of prefix, followed by the patterns: for tables whose
//! automaton is too large.
//!
//! ```text
//! word  0      1        2         3        4  5  6         7
//!      ┌──────┬────────┬─────────┬────────┬─────┬─────────┬───┐
//!      │"RVPB"│version │patterns │classes │ 0   │patterns │ 0 │   the last one is a place
//!      └──────┴────────┴─────────┴────────┴─────┴─────────┴───┘
//!   8  classes, 8 words each, seven at most: prefix, bytes | place of the filter | bits of the filter − 1 | place of the slots |
//!      how far right a hash is shifted to be a slot | place of the entries | 0 | 0
//!  64  patterns and their bytes
//!  then for each class its filter | slots: the first entry of each, and the end | entries: hash, 64 bits, pattern; ascending
//! ```
//!
//! The filters, the hash and the classes are those of [`BloomScanner`]; `docs/tables/patterns.md` says how
//! they work.

use super::patterns::append;
use crate::patterns::{BloomScanner, LIMIT, PatternsBuildError, SearchPattern};

const MAGIC: u32 = u32::from_le_bytes(*b"RVPB");
const VERSION: u32 = 1;
const HEADER: usize = 64;
const CLASS_WORDS: usize = 8;

/// The image of the patterns' filters.
///
/// # Errors
/// [`PatternsBuildError::Empty`] for a pattern of no bytes, [`PatternsBuildError::TooLarge`] for an image
/// above [`LIMIT`].
pub fn image(patterns: &[SearchPattern]) -> Result<Vec<u32>, PatternsBuildError> {
    // A pattern's fields, and less than that for filter, slot and entry.
    let bytes: u64 = patterns.iter().map(|pattern| pattern.bytes.len() as u64 + 64).sum();
    if bytes > LIMIT {
        return Err(PatternsBuildError::TooLarge { bytes, limit: LIMIT });
    }
    let scanner = BloomScanner::build(patterns)?;
    let mut image = vec![MAGIC, VERSION, patterns.len() as u32, scanner.classes.len() as u32];
    image.resize(HEADER, 0);
    image[6] = append(&mut image, patterns) as u32;
    for (number, class) in scanner.classes.iter().enumerate() {
        let filter = image.len();
        image.extend(class.filter.iter().flat_map(|word| [*word as u32, (*word >> 32) as u32]));
        let slots = image.len();
        image.extend(&class.slots);
        let entries = image.len();
        image.extend(
            class.by_hash.iter().flat_map(|&(hash, pattern)| [hash as u32, (hash >> 32) as u32, pattern]),
        );
        let fields = [
            class.prefix as u32,
            filter as u32,
            class.filter.len() as u32 * 64 - 1,
            slots as u32,
            64 - (class.slots.len() - 1).trailing_zeros(),
            entries as u32,
        ];
        image[8 + number * CLASS_WORDS..][..fields.len()].copy_from_slice(&fields);
    }
    Ok(image)
}
