//! Keys that packets of a group ask for, until they are looked up together.

use crate::pack::MAX_WORDS;

/// The packets that asked an early lookup.
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
