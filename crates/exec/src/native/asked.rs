//! The keys of an early lookup for a group of packets, until they are looked up together.

use crate::pack::MAX_WORDS;

/// The packets that came to an early lookup.
pub(super) struct Asked {
    pub(super) place: usize,
    pub(super) key_words: usize,
    pub(super) keys: Vec<u64>,
    /// Their numbers in the group.
    pub(super) packets: Vec<usize>,
}

impl Asked {
    /// Room for the next key.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Option<&mut [u64; MAX_WORDS]> {
        self.keys.get_mut(self.packets.len() * self.key_words..)?.first_chunk_mut()
    }
}
