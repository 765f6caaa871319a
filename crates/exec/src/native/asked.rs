//! The keys of an early lookup for a group of packets, until they are looked up together, or until the
//! packets that look them up have their turn.

use super::early_lookups::Searched;
use crate::pack::WIDEST_KEY;
use crate::state::table_set::{Fast, TableSet};
use ::tables::exact::{ABSENT, Exact};

/// The packets that came to an early lookup.
pub(super) struct Asked {
    pub(super) searched: Searched,
    pub(super) key_words: usize,
    pub(super) keys: Vec<u64>,
    /// Their numbers in the group.
    pub(super) packets: Vec<u32>,
    /// How many of them have had their turn.
    next: usize,
    /// For every exact table that may be asked for these keys, the slots in which they most likely lie.
    likely: Vec<Vec<u32>>,
}

impl Asked {
    /// For groups of so many packets.
    pub(super) fn new(searched: Searched, key_words: usize, group: usize) -> Asked {
        let exact = match &searched {
            Searched::Rules(_) => 0,
            Searched::Exact(tables) => tables.len(),
        };
        Asked {
            searched,
            key_words,
            keys: vec![0; group * key_words + WIDEST_KEY],
            packets: Vec::with_capacity(group),
            next: 0,
            likely: vec![vec![0; group]; exact],
        }
    }

    /// Forgets the packets of the group before.
    pub(super) fn clear(&mut self) {
        self.packets.clear();
        self.next = 0;
    }

    /// Room for the next key.
    #[inline(always)]
    pub(super) fn room(&mut self) -> Option<&mut [u64; WIDEST_KEY]> {
        self.keys.get_mut(self.packets.len() * self.key_words..)?.first_chunk_mut()
    }

    /// Starts to fetch the slots of all keys: in the first table; where a key is not there, in the others.
    pub(super) fn fetch(&mut self, tables: &TableSet<Fast>, which: &mut Vec<u32>) {
        let Searched::Exact(places) = &self.searched else { return };
        which.clear();
        which.extend(0..self.packets.len() as u32);
        for (place, likely) in places.iter().zip(&mut self.likely) {
            tables.exact[*place].seek(&self.keys, which, likely);
            which.retain(|number| likely[*number as usize] == ABSENT);
        }
    }

    /// The address of the entry of the next packet's key in an exact table, or zero.
    #[inline(always)]
    pub(super) fn find(&mut self, tables: &mut TableSet<Fast>, now: u64) -> u64 {
        let Searched::Exact(places) = &self.searched else { return 0 };
        let number = self.next;
        self.next += 1;
        for (place, likely) in places.iter().zip(&self.likely) {
            tables.exact[*place].expect(likely[number]);
        }
        let first = number * self.key_words;
        let key = &self.keys[first..first + self.key_words];
        tables.exact[places[0]].find(key, now).map_or(0, |value| value.as_ptr() as u64)
    }
}
