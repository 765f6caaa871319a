//! The fast exact table: what its operations do with the entries of its generations.
//!
//! All entries lie in one generation, except after a resize: then those that have not moved yet lie in older ones, where they are
//! looked for when the current one does not hold them. A hit in the current one therefore costs nothing more.

use super::generation::{Generation, same};
use super::resize::Older;
use super::slots::{NoMemory, PERMANENT};
use super::{Entry, Exact, ExactSpec, Learned, MARK_AGE, MARK_IDLE, MARK_RECENCY, SpecError, Statistics};

/// A table whose keys have one word.
pub type Table1 = HashTable<1>;
/// A table whose keys have two words.
pub type Table2 = HashTable<2>;
/// A table whose number of key words is known at run time only.
pub type TableN = HashTable<0>;

/// A fast exact table for keys of `K` words; `K` = 0 leaves the number to the spec.
pub struct HashTable<const K: usize> {
    pub(super) current: Generation<K>,
    /// The latest time seen, ns.
    clock: u64,
    /// Number of the latest hit or learn.
    sequence: u64,
    /// A lower bound of the earliest deadline, ns; a copy of the heaps', where the caller's check finds it at once.
    next_deadline: u64,
    pub(super) marks: u8,
    /// The table has been full, and the order of recency is kept from then on.
    pub(super) has_been_full: bool,
    /// What has not moved yet after a resize, oldest first.
    pub(super) older: Vec<Older<K>>,
    pub(super) spec: ExactSpec,
    statistics: Statistics,
}

impl HashTable<1> {
    /// [`Exact::find`] for a key of one word.
    #[inline]
    pub fn find1(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        self.find_or(&[key], now, self.marks, |table, now| table.find_older1(key, now))
    }

    /// [`HashTable::find1`] where the spec's [`ExactSpec::marks`] are known when the code is compiled; other `MARKS` renew wrongly.
    #[inline]
    pub fn find1_marking<const MARKS: u8>(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        debug_assert_eq!(MARKS, self.marks);
        self.find_or(&[key], now, MARKS, |table, now| table.find_older1(key, now))
    }

    /// A find of a key that the current generation does not hold. Passing the key by value keeps it out of memory where it is found.
    #[cold]
    #[inline(never)]
    fn find_older1(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        self.find_older(&[key], now)
    }

    /// [`HashTable::learn1`] for values of one word where the spec's [`ExactSpec::marks`] are known when the code is compiled.
    #[inline]
    pub fn learn11_marking<const MARKS: u8>(&mut self, key: u64, value: u64, now: u64) -> Learned {
        debug_assert_eq!((MARKS, 1), (self.marks, self.current.slots.value_words()));
        let now = self.advance(now);
        let Ok(slot) = self.current.probe(&[key]) else { return self.insert(&[key], &[value], now) };
        self.renew(slot, now, MARKS);
        if MARKS & MARK_AGE != 0 {
            self.current.slots.set_learned(slot, now);
        }
        if self.current.slots.first_value(slot) == value {
            return Learned::Confirmed;
        }
        self.current.slots.set_first_value(slot, value);
        self.statistics.moves += 1;
        Learned::Moved
    }

    /// [`Exact::learn`] for a key of one word.
    #[inline]
    pub fn learn1(&mut self, key: u64, value: &[u64], now: u64) -> Learned {
        self.learn_inline(&[key], value, now, self.marks)
    }

    /// [`HashTable::prefetch`] for a key of one word.
    #[inline]
    pub fn prefetch1(&self, key: u64) {
        self.prefetch(&[key]);
    }
}

impl HashTable<2> {
    /// [`Exact::find`] for a key of two words.
    #[inline]
    pub fn find2(&mut self, key: [u64; 2], now: u64) -> Option<&[u64]> {
        self.find_or(&key, now, self.marks, |table, now| table.find_older2(key[0], key[1], now))
    }

    /// [`HashTable::find_older1`] for a key of two words.
    #[cold]
    #[inline(never)]
    fn find_older2(&mut self, first: u64, second: u64, now: u64) -> Option<&[u64]> {
        self.find_older(&[first, second], now)
    }

    /// [`Exact::learn`] for a key of two words.
    #[inline]
    pub fn learn2(&mut self, key: [u64; 2], value: &[u64], now: u64) -> Learned {
        self.learn_inline(&key, value, now, self.marks)
    }

    /// [`HashTable::prefetch`] for a key of two words.
    #[inline]
    pub fn prefetch2(&self, key: [u64; 2]) {
        self.prefetch(&key);
    }
}

impl<const K: usize> HashTable<K> {
    /// [`Table::prefetch`](super::Table::prefetch).
    #[inline]
    pub fn prefetch(&self, key: &[u64]) {
        self.current.slots.prefetch(self.current.hash_and_home(key).1);
    }

    /// [`Exact::next_deadline`].
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        self.next_deadline
    }

    /// The shape and the rules it was made with, and the capacity it has now.
    pub fn spec(&self) -> &ExactSpec {
        &self.spec
    }

    /// [`Table::bytes`](super::Table::bytes).
    pub fn bytes(&self) -> usize {
        self.current.bytes() + self.older.iter().map(Older::bytes).sum::<usize>()
    }

    pub(super) fn made(spec: ExactSpec) -> Result<Self, NoMemory> {
        Ok(HashTable {
            current: Generation::new(&spec, spec.capacity, 0)?,
            clock: 0,
            sequence: 1,
            next_deadline: u64::MAX,
            marks: spec.marks(),
            has_been_full: false,
            older: Vec::new(),
            spec,
            statistics: Statistics::default(),
        })
    }

    #[inline(always)]
    pub(super) fn find_inline(&mut self, key: &[u64], now: u64, marks: u8) -> Option<&[u64]> {
        self.find_or(key, now, marks, |table, now| table.find_older(key, now))
    }

    /// Finds a key in the current generation, or else by `older` if there are older ones.
    #[inline(always)]
    fn find_or<'a>(
        &'a mut self,
        key: &[u64],
        now: u64,
        marks: u8,
        older: impl FnOnce(&'a mut Self, u64) -> Option<&'a [u64]>,
    ) -> Option<&'a [u64]> {
        let now = self.advance(now);
        match self.current.probe(key) {
            Ok(slot) => {
                self.renew(slot, now, marks);
                Some(self.current.slots.value(slot))
            }
            Err(_) if self.older.is_empty() => None,
            Err(_) => older(self, now),
        }
    }

    #[inline(never)]
    fn find_older(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        let slot = self.fetch_older(key)?;
        self.renew(slot, now, self.marks);
        Some(self.current.slots.value(slot))
    }

    #[inline(always)]
    fn learn_inline(&mut self, key: &[u64], value: &[u64], now: u64, marks: u8) -> Learned {
        let now = self.advance(now);
        let Ok(slot) = self.current.probe(key) else { return self.insert(key, value, now) };
        self.renew(slot, now, marks);
        if marks & MARK_AGE != 0 {
            self.current.slots.set_learned(slot, now);
        }
        if same(self.current.slots.value(slot), value) {
            return Learned::Confirmed;
        }
        self.current.slots.value_mut(slot).copy_from_slice(value);
        self.statistics.moves += 1;
        Learned::Moved
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, now: u64) -> u64 {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// The entry was hit or learned.
    #[inline(always)]
    pub(super) fn renew(&mut self, slot: usize, now: u64, marks: u8) {
        if marks & MARK_RECENCY != 0 {
            self.sequence += 1;
            let stamp = self.current.slots.stamp(slot) & PERMANENT | self.sequence;
            self.current.slots.set_stamp(slot, stamp);
        }
        if marks & MARK_IDLE != 0 {
            self.current.slots.set_renewed(slot, now);
        }
    }

    /// Entries in all generations.
    pub(super) fn len(&self) -> usize {
        self.current.len() + self.left_to_move()
    }

    /// A learn of a key that the current generation does not hold.
    #[inline(never)]
    fn insert(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        assert_eq!(value.len(), self.current.slots.value_words(), "a value has the words its table declares");
        if !self.older.is_empty() && self.fetch_older(key).is_some() {
            return self.learn_inline(key, value, now, self.marks);
        }
        if self.len() >= self.spec.capacity && !self.make_room() {
            self.statistics.refused += 1;
            return Learned::Refused;
        }
        // Evicting may have shifted entries, so the empty slot is looked for only now.
        let (Ok(slot) | Err(slot)) = self.current.probe(key);
        self.sequence += 1;
        let home = self.current.put(slot, key, value, self.sequence, now, self.marks);
        let recent = self.has_been_full.then_some(self.sequence);
        self.current.enqueue(home, self.spec.deadline(now, now), recent);
        self.next_deadline = self.bound();
        self.statistics.inserts += 1;
        Learned::New
    }

    /// Takes out the entry used longest ago, and the next one if the table still holds its capacity or more, as after it was made
    /// smaller; false if there was none.
    fn make_room(&mut self) -> bool {
        let made = self.evict();
        if made && self.len() >= self.spec.capacity {
            self.evict();
        }
        made
    }

    /// Takes out the entry used longest ago; false if the table refuses instead or all entries are permanent.
    fn evict(&mut self) -> bool {
        if !self.has_been_full {
            self.has_been_full = true;
            self.generations().for_each(Generation::order_by_recency);
        }
        let oldest =
            self.generations().filter_map(|one| one.oldest().map(|(stamp, slot)| (stamp, slot, one)));
        let Some((_, slot, generation)) = oldest.min_by_key(|(stamp, ..)| *stamp) else { return false };
        generation.vacate(slot);
        self.statistics.evictions += 1;
        true
    }

    fn expire_due(&mut self, now: u64, mut gone: impl FnMut(&[u64])) -> u64 {
        let now = self.advance(now);
        let spec = self.spec;
        let mut expired = 0;
        for generation in self.generations() {
            while let Some(slot) = generation.due(&spec, now) {
                gone(generation.slots.value(slot));
                generation.vacate(slot);
                expired += 1;
            }
        }
        self.next_deadline = self.bound();
        self.statistics.expired += expired;
        expired
    }

    /// A time before which no entry of any generation expires.
    fn bound(&self) -> u64 {
        self.older.iter().map(Older::bound).fold(self.current.bound(), u64::min)
    }

    fn generations(&mut self) -> impl Iterator<Item = &mut Generation<K>> {
        std::iter::once(&mut self.current).chain(self.older.iter_mut().map(Older::generation))
    }
}

impl<const K: usize> Exact for HashTable<K> {
    #[inline]
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        self.find_inline(key, now, self.marks)
    }

    #[inline]
    fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        match self.current.probe(key) {
            Ok(slot) => Some(self.current.slots.value(slot)),
            Err(_) => self.older.iter().find_map(|older| older.peek(key)),
        }
    }

    #[inline]
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        self.learn_inline(key, value, now, self.marks)
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        assert_eq!(value.len(), self.current.slots.value_words(), "a value has the words its table declares");
        self.fetch_older(key);
        match self.current.probe(key) {
            Ok(slot) => {
                self.current.slots.value_mut(slot).copy_from_slice(value);
                self.current.slots.set_stamp(slot, PERMANENT | self.current.slots.stamp(slot));
            }
            Err(_) if self.len() >= self.spec.capacity => return false,
            Err(slot) => {
                self.current.put(slot, key, value, PERMANENT, self.clock, self.marks);
            }
        }
        true
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        self.fetch_older(key);
        let Ok(slot) = self.current.probe(key) else { return false };
        self.current.vacate(slot);
        self.statistics.removed += 1;
        true
    }

    fn expire(&mut self, now: u64) -> u64 {
        let expired = self.expire_due(now, |_| {});
        self.move_some();
        expired
    }

    fn expire_telling(&mut self, now: u64, gone: &mut dyn FnMut(&[u64])) -> u64 {
        let expired = self.expire_due(now, gone);
        self.move_some();
        expired
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        self.next_deadline
    }

    fn resize(&mut self, capacity: usize) -> Result<(), SpecError> {
        self.resize_to(capacity)
    }

    fn free(&self) -> usize {
        self.spec.capacity.saturating_sub(self.len())
    }

    fn statistics(&self) -> Statistics {
        Statistics { entries: self.len() as u64, ..self.statistics }
    }

    fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(self.len());
        self.current.list(&self.spec, &mut entries);
        self.older.iter().for_each(|older| older.list(&self.spec, &mut entries));
        entries.sort_unstable();
        entries
    }
}
