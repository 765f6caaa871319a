//! Exact tables on a device: keys and values without the data that hits write, so that a change concerns only
//! a slot or two.
//!
//! ```text
//! word   0       1        2          3            4      5              8               10
//!      ┌───────┬────────┬──────────┬────────────┬──────┬─────────┬─────┬───────────────┬────────────────────┐
//!      │"RVEX" │version │key words │value words │slots │slot size│  0  │start, 64 bits │multiplier, 64 bits │
//!      └───────┴────────┴──────────┴────────────┴──────┴─────────┴─────┴───────────────┴────────────────────┘
//!  16  slots, each of so many words: tag | key, 64-bit words | value, 64-bit words | zeros; all zero where it is free
//! ```
//!
//! Of 64-bit words the lower half comes first. The idea: the low bits of a key's hash choose a slot, and the
//! key is in it or behind it, before the next free one, which is never further than [`LONGEST_RUN`]. The
//! number of slots is a power of two and at least twice that of the entries, so most keys lie in their own
//! slot. A slot of up to 8 words does not cross a sector of 32 bytes.
//!
//! The hash of words w₁ … wₙ is 64 bits wide: h₀ = start, hᵢ = the exclusive or of both halves of (hᵢ₋₁ xor
//! wᵢ) × multiplier, and in the end that of (hₙ xor multiplier) × (start with the lowest bit set). The tag is
//! its upper half with the lowest bit set.

use crate::exact::LONGEST_RUN;
use crate::exact::hash::{Hash, folded, next_seed};
use std::ops::Range;

/// `u32 exact_find(GLOBAL const u32 *image, const u64 *key, u32 key_words)`: the place of the value's first
/// word in the image, counted in words of 32 bits, or [`NONE`](super::NONE).
pub const TEXT: &str = include_str!("exact.h");

/// Words of 32 bits from one slot to the next, of an image whose keys and values have so many words of 64.
pub fn slot_words(key_words: usize, value_words: usize) -> usize {
    let used = 1 + 2 * (key_words + value_words);
    if used <= 8 { used.next_power_of_two() } else { used.next_multiple_of(8) }
}

/// The slot of an entry whose value begins at this place, as [`find`] tells it. Slots are counted from 0.
pub fn slot_of(place: u32, key_words: usize, value_words: usize) -> u32 {
    (place - first_value(key_words)) / slot_words(key_words, value_words) as u32
}

/// Where the value of slot 0 begins.
pub fn first_value(key_words: usize) -> u32 {
    (HEADER + 1 + 2 * key_words) as u32
}

/// What `exact_find` answers, told in Rust: the place of the value's first word in the image, or
/// [`NONE`](super::NONE).
pub fn find(image: &[u32], key: &[u64]) -> u32 {
    let long = |at: usize| u64::from(image[at]) | u64::from(image[at + 1]) << 32;
    let (mask, size) = (image[4] - 1, image[5] as usize);
    let sum = key.iter().fold(long(8), |sum, word| folded(sum ^ word, long(10)));
    let hash = folded(sum ^ long(10), long(8) | 1);
    let tag = (hash >> 32) as u32 | 1;
    for probe in 0..mask.min(LONGEST_RUN as u32) + 1 {
        let at = HEADER + ((hash as u32).wrapping_add(probe) & mask) as usize * size;
        if image[at] == 0 {
            break;
        }
        if image[at] == tag && key.iter().enumerate().all(|(word, part)| long(at + 1 + 2 * word) == *part) {
            return (at + 1 + 2 * key.len()) as u32;
        }
    }
    super::NONE
}

const MAGIC: u32 = u32::from_le_bytes(*b"RVEX");
const VERSION: u32 = 2;
const HEADER: usize = 16;
/// So many seeds are tried for keys that meet too often before the image gets twice the slots.
const SEEDS: usize = 4;
/// More changed slots than this part of all are not told one by one.
const MANY: usize = 8;

/// The table would be too large for a device or for this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a table of {capacity} entries for a device takes {bytes} bytes, which cannot be had: declare a smaller capacity"
)]
pub struct SizeError {
    /// The entries asked for.
    pub capacity: usize,
    /// What the image would take.
    pub bytes: u64,
}

/// The image of an exact table, changed entry by entry, which knows what of it has changed since it was last
/// uploaded.
#[derive(Clone, Debug)]
pub struct DeviceExact {
    key_words: usize,
    value_words: usize,
    seed: u64,
    hash: Hash,
    slots: usize,
    size: usize,
    words: Vec<u32>,
    entries: usize,
    changed: Vec<usize>,
    all_changed: bool,
}

impl DeviceExact {
    /// A table without entries, with room for `capacity` before it must grow. The seed chooses the hash
    /// function.
    ///
    /// # Errors
    /// [`SizeError`] if the image had 2³² words or more, or more than this machine gives.
    pub fn new(
        key_words: usize,
        value_words: usize,
        capacity: usize,
        seed: u64,
    ) -> Result<DeviceExact, SizeError> {
        let size = slot_words(key_words, value_words);
        let bytes = (capacity as u64).saturating_mul(16 * size as u64);
        let refused = SizeError { capacity, bytes };
        let slots = capacity.checked_mul(2).and_then(usize::checked_next_power_of_two).ok_or(refused)?.max(2);
        let count = slots.checked_mul(size).ok_or(refused)?.saturating_add(HEADER);
        if u32::try_from(count).is_err() {
            return Err(refused);
        }
        let hash = Hash::new(seed);
        let mut words = Vec::new();
        words.try_reserve_exact(count).map_err(|_| refused)?;
        words.extend([MAGIC, VERSION, key_words as u32, value_words as u32, slots as u32, size as u32, 0, 0]);
        let (start, multiplier) = hash.constants();
        words.extend([start as u32, (start >> 32) as u32, multiplier as u32, (multiplier >> 32) as u32]);
        words.resize(count, 0);
        Ok(DeviceExact {
            key_words,
            value_words,
            seed,
            hash,
            slots,
            size,
            words,
            entries: 0,
            changed: Vec::new(),
            all_changed: true,
        })
    }

    /// Puts `key` in with `value`, or gives it that value.
    ///
    /// # Errors
    /// [`SizeError`] if the image must grow and cannot; nothing has changed.
    ///
    /// # Panics
    /// If key or value have another number of words than the table was made for.
    pub fn insert(&mut self, key: &[u64], value: &[u64]) -> Result<(), SizeError> {
        assert_eq!((key.len(), value.len()), (self.key_words, self.value_words), "words of key and value");
        let mut found = self.search(key);
        if found.is_err() && self.entries * 2 >= self.slots {
            self.rebuild(2 * self.slots)?;
            found = self.search(key);
        }
        let slot = match found {
            Ok(slot) => slot,
            Err(free) => {
                let free = if self.stays_short(free) { free } else { self.spread(key)? };
                self.entries += 1;
                free
            }
        };
        self.write(slot, key, value);
        Ok(())
    }

    /// Makes it hold exactly these entries, each key once, and touches nothing of what it holds already.
    ///
    /// # Errors
    /// [`SizeError`] if the image must grow and cannot; then some of the entries are not there.
    ///
    /// # Panics
    /// As [`insert`](DeviceExact::insert).
    pub fn hold<'a>(
        &mut self,
        entries: impl IntoIterator<Item = (&'a [u64], &'a [u64])>,
    ) -> Result<(), SizeError> {
        let (mut stays, mut missing) = (vec![false; self.slots], Vec::new());
        for (key, value) in entries {
            match self.search(key) {
                Ok(slot) => {
                    stays[slot] = true;
                    let held = &self.words[self.at(slot) + 1 + 2 * self.key_words..][..2 * self.value_words];
                    if !value.iter().flat_map(halves).eq(held.iter().copied()) {
                        self.write(slot, key, value);
                    }
                }
                Err(_) => missing.push((key, value)),
            }
        }
        let gone = (0..self.slots).filter(|slot| self.words[self.at(*slot)] != 0 && !stays[*slot]);
        let gone: Vec<Vec<u64>> = gone.map(|slot| self.key(slot)).collect();
        for key in gone {
            self.remove(&key);
        }
        missing.iter().try_for_each(|(key, value)| self.insert(key, value))
    }

    /// Takes `key` out; false if it was not there.
    pub fn remove(&mut self, key: &[u64]) -> bool {
        let Ok(mut hole) = self.search(key) else { return false };
        let mask = self.slots - 1;
        // What would not be found behind a free slot moves into it.
        let mut next = (hole + 1) & mask;
        while self.words[self.at(next)] != 0 {
            let home = self.hash.of(&self.key(next)) as usize & mask;
            if next.wrapping_sub(home) & mask >= next.wrapping_sub(hole) & mask {
                let (from, to) = (self.at(next), self.at(hole));
                self.words.copy_within(from..from + self.size, to);
                self.note(hole);
                hole = next;
            }
            next = (next + 1) & mask;
        }
        let at = self.at(hole);
        self.words[at..at + self.size].fill(0);
        self.note(hole);
        self.entries -= 1;
        true
    }

    /// Where the value of `key` begins in the image, in words, as the text finds it.
    pub fn find(&self, key: &[u64]) -> Option<usize> {
        self.search(key).ok().map(|slot| self.at(slot) + 1 + 2 * self.key_words)
    }

    /// The words of the key and the value that lie in a slot; none where it is free or not there.
    pub fn entry(&self, slot: u32) -> Option<impl Iterator<Item = u64> + '_> {
        let at = self.at(slot as usize);
        let words = self.words.get(at..at + 1 + 2 * (self.key_words + self.value_words))?;
        let longs = words[1..].as_chunks().0.iter();
        (words[0] != 0).then(|| longs.map(|[low, high]| u64::from(*low) | u64::from(*high) << 32))
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// All words of the image. Their number changes only when the table grows, and then all of them have
    /// changed.
    pub fn image(&self) -> &[u32] {
        &self.words
    }

    /// The words that have changed since this was last asked, ascending and apart. The first time it is the
    /// whole image, and so it is after much has changed.
    pub fn take_changes(&mut self) -> Vec<Range<usize>> {
        let mut slots = std::mem::take(&mut self.changed);
        if std::mem::take(&mut self.all_changed) {
            return std::iter::once(0..self.words.len()).collect();
        }
        slots.sort_unstable();
        slots.dedup();
        let runs = slots.chunk_by(|one, next| one + 1 == *next);
        runs.map(|run| self.at(run[0])..self.at(run[0] + run.len())).collect()
    }

    fn write(&mut self, slot: usize, key: &[u64], value: &[u64]) {
        let at = self.at(slot);
        self.words[at] = tag(self.hash.of(key));
        let words = key.iter().chain(value).flat_map(halves);
        self.words[at + 1..].iter_mut().zip(words).for_each(|(place, word)| *place = word);
        self.note(slot);
    }

    fn at(&self, slot: usize) -> usize {
        HEADER + slot * self.size
    }

    fn key(&self, slot: usize) -> Vec<u64> {
        let halves = &self.words[self.at(slot) + 1..][..2 * self.key_words];
        halves.as_chunks().0.iter().map(|[low, high]| u64::from(*low) | u64::from(*high) << 32).collect()
    }

    /// The slot that holds `key`, or else the free one that it belongs in.
    fn search(&self, key: &[u64]) -> Result<usize, usize> {
        let hash = self.hash.of(key);
        let mut slot = hash as usize & (self.slots - 1);
        loop {
            let at = self.at(slot);
            let held = || self.words[at + 1..][..2 * self.key_words].iter().copied();
            match self.words[at] {
                0 => return Err(slot),
                found if found == tag(hash) && key.iter().flat_map(halves).eq(held()) => return Ok(slot),
                _ => slot = (slot + 1) & (self.slots - 1),
            }
        }
    }

    fn note(&mut self, slot: usize) {
        if self.all_changed {
            return;
        }
        self.changed.push(slot);
        if self.changed.len() > self.slots / MANY + 16 {
            self.changed.clear();
            self.all_changed = true;
        }
    }

    /// Whether a key in this free slot leaves all searches short.
    fn stays_short(&self, slot: usize) -> bool {
        let is_taken = |at: usize| self.words[self.at(at & (self.slots - 1))] != 0;
        let behind = (1..=LONGEST_RUN).take_while(|far| is_taken(slot + far)).count();
        let before = (1..=LONGEST_RUN).take_while(|far| is_taken(slot.wrapping_sub(*far))).count();
        before + 1 + behind <= LONGEST_RUN
    }

    /// Goes on with another seed, and if that is not enough with more slots; the free slot of a key then.
    fn spread(&mut self, key: &[u64]) -> Result<usize, SizeError> {
        loop {
            for _ in 0..SEEDS {
                self.seed = next_seed(self.seed);
                if self.rebuild(self.slots)?
                    && let Err(free) = self.search(key)
                    && self.stays_short(free)
                {
                    return Ok(free);
                }
            }
            self.rebuild(2 * self.slots)?;
        }
    }

    /// Puts all entries into so many slots, by its seed; says whether all searches are short.
    fn rebuild(&mut self, slots: usize) -> Result<bool, SizeError> {
        let mut made = DeviceExact::new(self.key_words, self.value_words, slots / 2, self.seed)?;
        let mut are_short = true;
        for slot in (0..self.slots).filter(|slot| self.words[self.at(*slot)] != 0) {
            let key = self.key(slot);
            let Err(free) = made.search(&key) else { continue };
            are_short &= made.stays_short(free);
            let (from, to) = (self.at(slot), made.at(free));
            made.words[to..to + self.size].copy_from_slice(&self.words[from..from + self.size]);
            made.words[to] = tag(made.hash.of(&key));
        }
        made.entries = self.entries;
        *self = made;
        Ok(are_short)
    }
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

fn halves(word: &u64) -> [u32; 2] {
    [*word as u32, (*word >> 32) as u32]
}

#[cfg(test)]
mod tests;
