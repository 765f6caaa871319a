//! Pattern tables: search one packet for many byte strings at once, and report every occurrence.
//!
//! Three scanners give the same answers. [`Scanner`] is the fast one, built into a flat [`PatternsImage`];
//! `BloomScanner` keeps one Bloom filter a length, as the Hermes paper does on a GPU; `PatternsModel`
//! compares every pattern everywhere and judges both. An occurrence may overlap others, and occurrences are
//! told in ascending order of (end, pattern).
//!
//! A byte string of more than 2³² − 1 bytes is searched in its first 2³² − 1 bytes only.

mod arrange;
#[cfg(feature = "reference")]
pub(crate) mod bloom;
mod build;
mod confirm;
mod frequency;
mod image;
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
mod lanes;
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
mod lanes_avx2;
#[cfg(feature = "reference")]
mod model;
mod sift;
#[cfg(test)]
mod tests;

#[cfg(feature = "reference")]
pub use bloom::BloomScanner;
pub use build::{LIMIT, Scanner};
pub use image::{PatternsImage, PatternsImageError};
#[cfg(feature = "reference")]
pub use model::PatternsModel;

/// One byte string to search for, and where in the packet it may lie.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchPattern {
    /// The bytes; at least one.
    pub bytes: Vec<u8>,
    /// Whether the letters A to Z and a to z of [`SearchPattern::bytes`] match in both cases. Other bytes are
    /// never folded.
    pub nocase: bool,
    /// An occurrence starts at this byte of the searched bytes or behind it.
    pub offset: u32,
    /// An occurrence ends at byte `offset + depth` or before it; `None` is anywhere. A depth below the length
    /// never matches.
    pub depth: Option<u32>,
    /// What the pattern means to its owner; carried along and never read.
    pub value: u32,
}

impl SearchPattern {
    /// A case-sensitive pattern that may lie anywhere, with the value 0.
    pub fn anywhere(bytes: impl Into<Vec<u8>>) -> SearchPattern {
        SearchPattern { bytes: bytes.into(), nocase: false, offset: 0, depth: None, value: 0 }
    }

    /// The last byte at which an occurrence may end; `u32::MAX` if there is no depth.
    pub(crate) fn limit(&self) -> u32 {
        self.depth.map_or(u32::MAX, |depth| self.offset.saturating_add(depth))
    }
}

/// One occurrence of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternMatch {
    /// The pattern, by its place in the list that the scanner was built from.
    pub pattern: u32,
    /// The first byte of the occurrence.
    pub start: u32,
    /// The byte behind the last one of the occurrence.
    pub end: u32,
}

/// Why no scanner is built. Nothing is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternsBuildError {
    /// pattern {pattern} has no bytes; a pattern has at least one
    #[error("pattern {pattern} has no bytes; a pattern has at least one")]
    Empty {
        /// The place of the pattern in the list, from 0.
        pattern: usize,
    },
    /// the image of the patterns would take {bytes} bytes; {limit} are allowed
    #[error("the image of the patterns would take {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// What the image would take.
        bytes: u64,
        /// The most it may take.
        limit: u64,
    },
}

/// The part of `haystack` that is searched: a place in it fits 32 bits.
fn searched(haystack: &[u8]) -> &[u8] {
    &haystack[..haystack.len().min(u32::MAX as usize)]
}
