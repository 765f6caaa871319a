//! The model of the scanners, which is the reference: compares every pattern at every place.

use super::{PatternMatch, PatternsBuildError, SearchPattern, searched};

/// A scanner that is easy to believe: it knows no filter, no hash and no order but the one it is asked for.
#[derive(Clone, Debug, Default)]
pub struct PatternsModel {
    patterns: Vec<SearchPattern>,
}

impl PatternsModel {
    /// Keeps the patterns as they are.
    ///
    /// # Errors
    /// [`PatternsBuildError::Empty`], as [`super::Scanner::build`].
    pub fn build(patterns: &[SearchPattern]) -> Result<PatternsModel, PatternsBuildError> {
        match patterns.iter().position(|pattern| pattern.bytes.is_empty()) {
            Some(pattern) => Err(PatternsBuildError::Empty { pattern }),
            None => Ok(PatternsModel { patterns: patterns.to_vec() }),
        }
    }

    /// Tells every occurrence, in ascending order of (end, pattern).
    pub fn each(&self, haystack: &[u8], found: &mut impl FnMut(PatternMatch)) {
        for end in 0..=searched(haystack).len() {
            for (index, pattern) in self.patterns.iter().enumerate() {
                let Some(start) = end.checked_sub(pattern.bytes.len()) else { continue };
                let place =
                    start as u64 >= u64::from(pattern.offset) && end as u64 <= u64::from(pattern.limit());
                if place && same(&haystack[start..end], pattern) {
                    found(PatternMatch { pattern: index as u32, start: start as u32, end: end as u32 });
                }
            }
        }
    }

    /// The occurrence with the smallest end, and of those the one of the smallest pattern.
    pub fn first(&self, haystack: &[u8]) -> Option<PatternMatch> {
        let mut first = None;
        self.each(haystack, &mut |found| {
            first.get_or_insert(found);
        });
        first
    }

    /// How many occurrences there are.
    pub fn count(&self, haystack: &[u8]) -> u64 {
        let mut count = 0;
        self.each(haystack, &mut |_| count += 1);
        count
    }

    /// Appends to `patterns` those that occur, each once, ascending.
    pub fn set(&self, haystack: &[u8], patterns: &mut Vec<u32>) {
        let mut occurs = vec![false; self.patterns.len()];
        self.each(haystack, &mut |found| occurs[found.pattern as usize] = true);
        patterns.extend((0..occurs.len() as u32).filter(|&pattern| occurs[pattern as usize]));
    }
}

fn same(bytes: &[u8], pattern: &SearchPattern) -> bool {
    if pattern.nocase { bytes.eq_ignore_ascii_case(&pattern.bytes) } else { bytes == pattern.bytes }
}
