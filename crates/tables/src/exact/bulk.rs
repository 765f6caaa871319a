//! Bulk lookups: many keys at once, so that their memory accesses overlap and no branch has to be predicted.
//!
//! The idea: in groups of [`GROUP`], first all keys are hashed and their windows of tags fetched; then the
//! tags tell for each key the slot it must lie in or that it is not there, and the slots are fetched; then
//! keys are compared. Only what the tags could not settle (about one key in two hundred, with half of the
//! slots taken) is looked for slot by slot.

use super::MARK_AGE;
use super::generation::Generation;
use super::table::HashTable;
use super::tags::{Sight, Tags};

/// Keys in flight. A step ends by waiting for its last access, so the more keys share that wait the better,
/// as long as their notes stay in the nearest cache.
const GROUP: usize = 256;

/// The slot of a key that is not there.
pub const ABSENT: u32 = u32::MAX;

/// Where the keys of a group most likely lie.
struct Sights {
    /// Slots, less than 2^30; or [`ABSENT`].
    slots: [u32; GROUP],
}

impl<const K: usize> Generation<K> {
    /// Where the keys, a group at most, lie; fetches their slots.
    #[inline(always)]
    fn sight(&self, keys: &[u64], sights: &mut Sights) {
        let words = self.slots.key_words();
        let mut hashes = [0u64; GROUP];
        for (key, noted) in keys.chunks_exact(words).zip(&mut hashes) {
            let (hash, home) = self.hash_and_home(key);
            *noted = hash;
            self.tags.prefetch(home);
        }
        let count = keys.len() / words;
        for (hash, noted) in hashes[..count].iter().zip(&mut sights.slots) {
            let home = *hash as usize & self.slots.mask();
            *noted = match self.tags.sight(home, Tags::of(*hash)) {
                Sight::Likely(behind) => {
                    let slot = (home + behind) & self.slots.mask();
                    self.slots.prefetch(slot);
                    slot as u32
                }
                Sight::Absent => ABSENT,
            };
        }
    }

    /// The slot of a key of which the tags say this.
    #[inline(always)]
    fn confirmed(&self, key: &[u64], sight: u32) -> Option<usize> {
        if sight == ABSENT {
            return None;
        }
        let slot = sight as usize;
        if self.holds(slot, key) {
            return Some(slot);
        }
        self.probe(key).ok()
    }

    /// The first word of the value in a slot; 0 in a set.
    #[inline(always)]
    fn first_or_zero(&self, slot: usize) -> u64 {
        self.slots.value(slot).first().copied().unwrap_or(0)
    }
}

impl<const K: usize> HashTable<K> {
    /// [`ExactTable::peek_bulk`](super::ExactTable::peek_bulk).
    pub fn peek_bulk(&self, keys: &[u64], missing: u64, values: &mut [u64]) {
        let words = self.current.slots.key_words();
        let mut sights = Sights { slots: [ABSENT; GROUP] };
        for (keys, values) in keys.chunks(words * GROUP).zip(values.chunks_mut(GROUP)) {
            self.current.sight(keys, &mut sights);
            for ((key, sight), value) in keys.chunks_exact(words).zip(&sights.slots).zip(values) {
                *value = match self.current.confirmed(key, *sight) {
                    Some(slot) if self.has_ended(slot) => missing,
                    Some(slot) => self.current.first_or_zero(slot),
                    None if self.older.is_empty() => missing,
                    None => self.peek_older(key, missing),
                };
            }
        }
    }

    /// [`ExactTable::seek`](super::ExactTable::seek).
    pub fn seek(&self, keys: &[u64], which: &[u32], likely: &mut [u32]) {
        let (words, generation) = (self.current.slots.key_words(), &self.current);
        let mut hashes = [0u64; GROUP];
        for which in which.chunks(GROUP) {
            for (number, noted) in which.iter().zip(&mut hashes) {
                let first = *number as usize * words;
                let (hash, home) = generation.hash_and_home(&keys[first..first + words]);
                *noted = hash;
                generation.tags.prefetch(home);
            }
            for (number, hash) in which.iter().zip(&hashes) {
                let home = *hash as usize & generation.slots.mask();
                let (slot, sight) = match generation.tags.sight(home, Tags::of(*hash)) {
                    Sight::Likely(behind) => ((home + behind) & generation.slots.mask(), true),
                    // It would come here.
                    Sight::Absent => (home, false),
                };
                generation.slots.prefetch_whole(slot);
                likely[*number as usize] = if sight { slot as u32 } else { ABSENT };
            }
        }
    }

    /// [`ExactTable::find_bulk`](super::ExactTable::find_bulk).
    pub fn find_bulk(&mut self, keys: &[u64], now: u64, missing: u64, values: &mut [u64]) {
        let words = self.current.slots.key_words();
        let mut sights = Sights { slots: [ABSENT; GROUP] };
        let marks = self.marks;
        for (keys, values) in keys.chunks(words * GROUP).zip(values.chunks_mut(GROUP)) {
            let now = self.advance(now);
            self.current.sight(keys, &mut sights);
            let is_settled = self.older.is_empty();
            for ((key, sight), value) in keys.chunks_exact(words).zip(&sights.slots).zip(values) {
                *value = match self.current.confirmed(key, *sight) {
                    Some(slot) if self.has_ended(slot) => missing,
                    Some(slot) => {
                        self.renew(slot, now, marks & !MARK_AGE);
                        self.current.first_or_zero(slot)
                    }
                    None if is_settled => missing,
                    // An earlier key of the group may have had this one moved, so it is looked for anew.
                    None => match self.find_inline(key, now, marks) {
                        Some(found) => found.first().copied().unwrap_or(0),
                        None => missing,
                    },
                };
            }
        }
    }

    #[cold]
    fn peek_older(&self, key: &[u64], missing: u64) -> u64 {
        let found = self.older.iter().find_map(|older| older.peek(key, self.horizon));
        found.map_or(missing, |value| value.first().copied().unwrap_or(0))
    }
}
