//! The flat slot array of a fast exact table: the layout of an entry's words in memory.
//!
//! ```text
//! word  0       1 .. 1+k   1+k .. 1+k+v   next, if `age`   if `lifetimes`   next, if `idle`
//!      +-------+----------+--------------+----------------+----------------+----------------+---------+
//!      | stamp | key      | value        | last learn, ns | lifetime, ns   | last renew, ns | padding |
//!      +-------+----------+--------------+----------------+----------------+----------------+---------+
//! stamp: 0 = the slot is empty; bit 63 = the entry is permanent; bits 0..63 = number of the last hit or learn
//! lifetime: how long the entry lives after its last learn where `age` is not shorter; 2^64 - 1 = as `age` says
//! ```
//!
//! Slots are padded to a power of two of words and the array starts at a cache line, so a slot of up to 8
//! words never crosses one. Every access masks the slot number with the size of the array, which is what
//! makes unchecked access sound.

use super::memory::{Lines, prefetch};
use super::tags::WINDOW;

/// The bit of a stamp that marks a permanent entry.
pub(super) const PERMANENT: u64 = 1 << 63;

/// So many bytes could not be had.
#[derive(Debug)]
pub(super) struct NoMemory {
    pub(super) bytes: usize,
}

/// What a slot holds.
#[derive(Clone, Copy)]
pub(super) struct SlotLayout {
    pub(super) key_words: usize,
    pub(super) value_words: usize,
    pub(super) has_learned: bool,
    pub(super) has_lifetime: bool,
    pub(super) has_renewed: bool,
}

impl SlotLayout {
    /// Words of a slot.
    pub(super) fn words(&self) -> usize {
        let times = [self.has_learned, self.has_lifetime, self.has_renewed].map(usize::from);
        (1 + self.key_words + self.value_words + times.iter().sum::<usize>()).next_power_of_two()
    }
}

/// The array. `K` is the number of key words, or 0 if it is only known at run time.
pub(super) struct Slots<const K: usize> {
    lines: Lines,
    /// Number of slots less one; the number is a power of two.
    mask: usize,
    /// Binary logarithm of the words of a slot.
    shift: u32,
    key_words: usize,
    value_words: usize,
    learned_at: usize,
    lifetime_at: usize,
    renewed_at: usize,
}

impl<const K: usize> Slots<K> {
    /// At least `slots` empty slots.
    pub(super) fn new(slots: usize, layout: SlotLayout) -> Result<Self, NoMemory> {
        let SlotLayout { key_words, value_words, has_learned, has_lifetime, has_renewed } = layout;
        assert!(K == 0 || K == key_words, "the number of key words is part of the type");
        let slots = Self::number(slots);
        let learned_at = 1 + key_words + value_words;
        let lifetime_at = learned_at + usize::from(has_learned);
        let renewed_at = lifetime_at + usize::from(has_lifetime);
        let words = layout.words();
        let count = (slots * words).div_ceil(8);
        let lines = Lines::zeroed(count)?;
        let (mask, shift) = (slots - 1, words.trailing_zeros());
        // Absent times are never asked for; the offset 0 keeps even a mistaken access inside the slot.
        let learned_at = if has_learned { learned_at } else { 0 };
        let lifetime_at = if has_lifetime { lifetime_at } else { 0 };
        let renewed_at = if has_renewed { renewed_at } else { 0 };
        Ok(Slots { lines, mask, shift, key_words, value_words, learned_at, lifetime_at, renewed_at })
    }

    /// How many slots there are where so many are asked for.
    pub(super) fn number(slots: usize) -> usize {
        slots.next_power_of_two().max(WINDOW)
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        self.lines.bytes()
    }

    /// [`Lines::touch`].
    pub(super) fn touch(&mut self) {
        self.lines.touch();
    }

    /// Number of slots less one.
    #[inline(always)]
    pub(super) fn mask(&self) -> usize {
        self.mask
    }

    #[inline(always)]
    pub(super) fn key_words(&self) -> usize {
        if K == 0 { self.key_words } else { K }
    }

    #[inline(always)]
    pub(super) fn value_words(&self) -> usize {
        self.value_words
    }

    #[inline(always)]
    pub(super) fn stamp(&self, slot: usize) -> u64 {
        self.word(slot, 0)
    }

    #[inline(always)]
    pub(super) fn set_stamp(&mut self, slot: usize, stamp: u64) {
        self.set_word(slot, 0, stamp);
    }

    /// Time of the last learn; kept only if the table was made so.
    #[inline(always)]
    pub(super) fn learned(&self, slot: usize) -> u64 {
        self.word(slot, self.learned_at)
    }

    /// Notes the time of a learn; from then on the entry has no lifetime of its own.
    #[inline(always)]
    pub(super) fn set_learned(&mut self, slot: usize, time: u64) {
        debug_assert!(self.learned_at != 0);
        self.set_word(slot, self.learned_at, time);
        if self.lifetime_at != 0 {
            self.set_word(slot, self.lifetime_at, u64::MAX);
        }
    }

    /// The entry's own lifetime, `u64::MAX` if it has none.
    #[inline(always)]
    pub(super) fn lifetime(&self, slot: usize) -> u64 {
        if self.lifetime_at == 0 { u64::MAX } else { self.word(slot, self.lifetime_at) }
    }

    /// Gives the entry a lifetime of its own; kept only if the table was made so.
    pub(super) fn set_lifetime(&mut self, slot: usize, lifetime: u64) {
        debug_assert!(self.lifetime_at != 0);
        self.set_word(slot, self.lifetime_at, lifetime);
    }

    /// Time of the last hit or learn; kept only if the table was made so.
    #[inline(always)]
    pub(super) fn renewed(&self, slot: usize) -> u64 {
        self.word(slot, self.renewed_at)
    }

    #[inline(always)]
    pub(super) fn set_renewed(&mut self, slot: usize, time: u64) {
        debug_assert!(self.renewed_at != 0);
        self.set_word(slot, self.renewed_at, time);
    }

    #[inline(always)]
    pub(super) fn key(&self, slot: usize) -> &[u64] {
        // SAFETY: words 1 .. 1 + key_words lie inside the slot (`new`), the slot inside the array (`place`),
        // and every word of the array is initialised.
        unsafe { std::slice::from_raw_parts(self.place(slot).add(1), self.key_words()) }
    }

    #[inline(always)]
    pub(super) fn value(&self, slot: usize) -> &[u64] {
        // SAFETY: words 1 + key_words .. 1 + key_words + value_words lie inside the slot (`new`), the slot
        // inside the array (`place`), and every word of the array is initialised.
        unsafe { std::slice::from_raw_parts(self.place(slot).add(1 + self.key_words()), self.value_words) }
    }

    /// The first word of a value that has one.
    #[cfg(feature = "fastest")]
    #[inline(always)]
    pub(super) fn first_value(&self, slot: usize) -> u64 {
        self.word(slot, 1 + self.key_words())
    }

    #[cfg(feature = "fastest")]
    #[inline(always)]
    pub(super) fn set_first_value(&mut self, slot: usize, word: u64) {
        self.set_word(slot, 1 + self.key_words(), word);
    }

    #[inline(always)]
    pub(super) fn value_mut(&mut self, slot: usize) -> &mut [u64] {
        let (offset, words) = (1 + self.key_words(), self.value_words);
        // SAFETY: as in `value`; the array is borrowed mutably, so nothing else sees these words.
        unsafe { std::slice::from_raw_parts_mut(self.place_mut(slot).add(offset), words) }
    }

    /// Writes a value; word by word, since a call to copy so few bytes would cost more than copying them.
    #[inline(always)]
    pub(super) fn set_value(&mut self, slot: usize, value: &[u64]) {
        let first = 1 + self.key_words();
        for (i, word) in value[..self.value_words].iter().enumerate() {
            self.set_word(slot, first + i, *word);
        }
    }

    /// Writes key and value; the stamp and the times are the caller's.
    pub(super) fn set_entry(&mut self, slot: usize, key: &[u64], value: &[u64]) {
        for (i, word) in key[..self.key_words()].iter().enumerate() {
            self.set_word(slot, 1 + i, *word);
        }
        self.set_value(slot, value);
    }

    /// Copies a whole slot over another.
    pub(super) fn copy(&mut self, from: usize, to: usize) {
        for offset in 0..1 << self.shift {
            let word = self.word(from, offset);
            self.set_word(to, offset, word);
        }
    }

    /// Copies a whole slot of another array with slots of the same shape.
    pub(super) fn copy_from(&mut self, other: &Self, from: usize, to: usize) {
        assert!(self.shift == other.shift, "slots of one table have one shape");
        for offset in 0..1 << self.shift {
            let word = other.word(from, offset);
            self.set_word(to, offset, word);
        }
    }

    /// All slots before this one are empty for good: memory that lies wholly before it may be given back.
    pub(super) fn passed(&mut self, slot: usize) {
        let words = slot << self.shift;
        if words.is_multiple_of(8) {
            self.lines.clear_page_before(words / 8);
        }
    }

    /// Prefetches the first cache line of a slot that will be used soon.
    #[inline(always)]
    pub(super) fn prefetch(&self, slot: usize) {
        prefetch(self.place(slot));
    }

    /// Prefetches all cache lines of a slot.
    #[cfg(feature = "fastest")]
    #[inline(always)]
    pub(super) fn prefetch_whole(&self, slot: usize) {
        let first = self.place(slot);
        for word in (0..1 << self.shift).step_by(8) {
            prefetch(first.wrapping_add(word));
        }
    }

    #[inline(always)]
    fn word(&self, slot: usize, offset: usize) -> u64 {
        debug_assert!(offset < 1 << self.shift);
        // SAFETY: the slot lies inside the array (`place`), all of it is initialised, and every offset used
        // in this file is less than the words of a slot (`new`).
        unsafe { *self.place(slot).add(offset) }
    }

    #[inline(always)]
    fn set_word(&mut self, slot: usize, offset: usize, word: u64) {
        debug_assert!(offset < 1 << self.shift);
        // SAFETY: as in `word`; the array is borrowed mutably.
        unsafe { *self.place_mut(slot).add(offset) = word }
    }

    /// The first word of a slot; the slot number is masked.
    #[inline(always)]
    fn place(&self, slot: usize) -> *const u64 {
        // SAFETY: (mask + 1) << shift words were allocated, so a masked slot begins inside them.
        unsafe { self.lines.as_ptr().cast::<u64>().add((slot & self.mask) << self.shift) }
    }

    #[inline(always)]
    fn place_mut(&mut self, slot: usize) -> *mut u64 {
        let start = (slot & self.mask) << self.shift;
        // SAFETY: as in `place`.
        unsafe { self.lines.as_mut_ptr().cast::<u64>().add(start) }
    }
}
