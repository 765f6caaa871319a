//! The fast exact table: open addressing in one flat array, with lazy orders for expiry and eviction.
//!
//! The idea: a lookup touches one slot, in one cache line for narrow keys, and a hit writes nothing but that slot's number
//! and time. What must be known across entries (who expires first, who was used longest ago) is kept as lower bounds in
//! two heaps that are put right only when something reaches the top, so hits and confirming learns never pay for order.
//! Slots number twice the capacity or more and deletion shifts entries back, so probes stay short without tombstones.

use super::hash::Hash;
use super::order::Order;
use super::slots::{NoMemory, PERMANENT, Slots};
use super::{
    Entry, Evict, Exact, ExactSpec, Learned, MARK_AGE, MARK_IDLE, MARK_RECENCY, SpecError, Statistics,
};

/// A fast exact table for any number of key words. Everything is allocated when it is made.
///
/// ```
/// use tables::exact::{Evict, Exact, ExactSpec, Learned, Table};
///
/// let spec = ExactSpec {
///     key_words: 1, value_words: 1, capacity: 1024, idle: None, age: Some(300), evict: Evict::Lru, seed: 1,
/// };
/// let mut hosts = Table::new(spec)?;
/// assert_eq!(hosts.learn(&[0xa], &[1], 10), Learned::New);
/// assert_eq!(hosts.find(&[0xa], 20), Some(&[1][..]));
/// assert_eq!(hosts.expire(310), 1);
/// assert_eq!(hosts.find(&[0xa], 310), None);
/// # Ok::<(), tables::exact::SpecError>(())
/// ```
pub enum Table {
    /// Keys of one word.
    One(Table1),
    /// Keys of two words.
    Two(Table2),
    /// Keys of three words or more.
    Any(TableN),
}

/// A table whose keys have one word.
pub type Table1 = HashTable<1>;
/// A table whose keys have two words.
pub type Table2 = HashTable<2>;
/// A table whose number of key words is known at run time only.
pub type TableN = HashTable<0>;

impl Table {
    /// An empty table; fails if the spec asks for more than there can be.
    pub fn new(spec: ExactSpec) -> Result<Table, SpecError> {
        spec.check()?;
        let made = match spec.key_words {
            1 => HashTable::made(spec).map(Table::One),
            2 => HashTable::made(spec).map(Table::Two),
            _ => HashTable::made(spec).map(Table::Any),
        };
        made.map_err(|NoMemory { bytes }| SpecError::Memory { capacity: spec.capacity, bytes })
    }

    /// The shape and the rules it was made with.
    pub fn spec(&self) -> &ExactSpec {
        match self {
            Table::One(table) => &table.spec,
            Table::Two(table) => &table.spec,
            Table::Any(table) => &table.spec,
        }
    }

    /// Starts to fetch the slot that `key` belongs in, so that an operation on it some time later need not wait for memory.
    #[inline]
    pub fn prefetch(&self, key: &[u64]) {
        match self {
            Table::One(table) => table.prefetch(key),
            Table::Two(table) => table.prefetch(key),
            Table::Any(table) => table.prefetch(key),
        }
    }
}

/// A fast exact table for keys of `K` words; `K` = 0 leaves the number to the spec.
pub struct HashTable<const K: usize> {
    slots: Slots<K>,
    hash: Hash,
    /// The latest time seen, ns.
    clock: u64,
    /// Number of the latest hit or learn.
    sequence: u64,
    /// A lower bound of the earliest deadline, ns; a copy of the heap's, where the caller's check finds it at once.
    next_deadline: u64,
    marks: u8,
    spec: ExactSpec,
    entries: usize,
    statistics: Statistics,
    deadlines: Option<Order>,
    /// Oldest first; filled when the table is full for the first time.
    recency: Option<Order>,
    recency_filled: bool,
}

impl HashTable<1> {
    /// [`Exact::find`] for a key of one word.
    #[inline]
    pub fn find1(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        self.find_inline(&[key], now, self.marks)
    }

    /// [`HashTable::find1`] where the spec's [`ExactSpec::marks`] are known when the code is compiled; other `MARKS` renew wrongly.
    #[inline]
    pub fn find1_marking<const MARKS: u8>(&mut self, key: u64, now: u64) -> Option<&[u64]> {
        debug_assert_eq!(MARKS, self.marks);
        self.find_inline(&[key], now, MARKS)
    }

    /// [`HashTable::learn1`] for values of one word where the spec's [`ExactSpec::marks`] are known when the code is compiled.
    #[inline]
    pub fn learn11_marking<const MARKS: u8>(&mut self, key: u64, value: u64, now: u64) -> Learned {
        debug_assert_eq!((MARKS, 1), (self.marks, self.slots.value_words()));
        let now = self.advance(now);
        let Ok(slot) = self.probe(&[key]) else { return self.insert(&[key], &[value], now) };
        self.renew(slot, now, MARKS);
        if MARKS & MARK_AGE != 0 {
            self.slots.set_learned(slot, now);
        }
        if self.slots.first_value(slot) == value {
            return Learned::Confirmed;
        }
        self.slots.set_first_value(slot, value);
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
        self.find_inline(&key, now, self.marks)
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
    /// [`Table::prefetch`].
    #[inline]
    pub fn prefetch(&self, key: &[u64]) {
        self.slots.prefetch(self.home(key));
    }

    /// [`Exact::next_deadline`].
    #[inline]
    pub fn next_deadline(&self) -> u64 {
        self.next_deadline
    }

    fn made(spec: ExactSpec) -> Result<Self, NoMemory> {
        let (has_age, has_idle) = (spec.age.is_some(), spec.idle.is_some());
        let slots = Slots::new(spec.capacity * 2, spec.key_words, spec.value_words, has_age, has_idle)?;
        let homes = slots.mask() + 1;
        Ok(HashTable {
            slots,
            hash: Hash::new(spec.seed),
            clock: 0,
            sequence: 1,
            next_deadline: u64::MAX,
            marks: spec.marks(),
            spec,
            entries: 0,
            statistics: Statistics::default(),
            deadlines: (has_age || has_idle).then(|| Order::new(homes)).transpose()?,
            recency: (spec.evict == Evict::Lru).then(|| Order::new(homes)).transpose()?,
            recency_filled: false,
        })
    }

    #[inline(always)]
    fn find_inline(&mut self, key: &[u64], now: u64, marks: u8) -> Option<&[u64]> {
        let now = self.advance(now);
        let slot = self.probe(key).ok()?;
        self.renew(slot, now, marks);
        Some(self.slots.value(slot))
    }

    #[inline(always)]
    fn learn_inline(&mut self, key: &[u64], value: &[u64], now: u64, marks: u8) -> Learned {
        let now = self.advance(now);
        let Ok(slot) = self.probe(key) else { return self.insert(key, value, now) };
        self.renew(slot, now, marks);
        if marks & MARK_AGE != 0 {
            self.slots.set_learned(slot, now);
        }
        if same(self.slots.value(slot), value) {
            return Learned::Confirmed;
        }
        self.slots.value_mut(slot).copy_from_slice(value);
        self.statistics.moves += 1;
        Learned::Moved
    }

    #[inline(always)]
    fn advance(&mut self, now: u64) -> u64 {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// The slot that `key` belongs in if nothing is in its way.
    #[inline(always)]
    fn home(&self, key: &[u64]) -> usize {
        self.hash.of(&key[..self.slots.key_words()]) as usize & self.slots.mask()
    }

    /// The slot of `key`, or the empty slot where it belongs.
    #[inline(always)]
    fn probe(&self, key: &[u64]) -> Result<usize, usize> {
        assert_eq!(key.len(), self.slots.key_words(), "a key has the words its table declares");
        let mut slot = self.home(key);
        loop {
            // At most half of the slots are taken, so an empty one ends every probe.
            if self.slots.stamp(slot) == 0 {
                return Err(slot);
            }
            if same(self.slots.key(slot), key) {
                return Ok(slot);
            }
            slot = self.after(slot);
        }
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & self.slots.mask()
    }

    /// The entry was hit or learned.
    #[inline(always)]
    fn renew(&mut self, slot: usize, now: u64, marks: u8) {
        if marks & MARK_RECENCY != 0 {
            self.sequence += 1;
            let stamp = self.slots.stamp(slot) & PERMANENT | self.sequence;
            self.slots.set_stamp(slot, stamp);
        }
        if marks & MARK_IDLE != 0 {
            self.slots.set_renewed(slot, now);
        }
    }

    #[inline(never)]
    fn insert(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        assert_eq!(value.len(), self.slots.value_words(), "a value has the words its table declares");
        if self.entries >= self.spec.capacity && !self.evict() {
            self.statistics.refused += 1;
            return Learned::Refused;
        }
        // Evicting may have shifted entries, so the empty slot is looked for only now.
        let (Ok(slot) | Err(slot)) = self.probe(key);
        self.sequence += 1;
        self.put(slot, key, value, self.sequence, now);
        let home = self.home(key);
        if let Some(deadlines) = &mut self.deadlines {
            // Time never goes back, so no entry's deadline lies beyond that of one learned now.
            deadlines.add(home, self.spec.deadline(now, now).unwrap_or(u64::MAX));
            self.next_deadline = deadlines.bound();
        }
        if let Some(recency) = self.recency.as_mut().filter(|_| self.recency_filled) {
            recency.add(home, self.sequence);
        }
        self.statistics.inserts += 1;
        Learned::New
    }

    /// Fills an empty slot.
    fn put(&mut self, slot: usize, key: &[u64], value: &[u64], stamp: u64, now: u64) {
        self.slots.set_entry(slot, key, value);
        self.slots.set_stamp(slot, stamp);
        if self.marks & MARK_AGE != 0 {
            self.slots.set_learned(slot, now);
        }
        if self.marks & MARK_IDLE != 0 {
            self.slots.set_renewed(slot, now);
        }
        self.entries += 1;
    }

    /// Takes out the entry used longest ago; false if the table refuses instead or all entries are permanent.
    fn evict(&mut self) -> bool {
        let Some(recency) = &mut self.recency else { return false };
        let stamp = |stamp: u64| (stamp & PERMANENT == 0).then_some(stamp);
        let (slots, hash) = (&self.slots, &self.hash);
        let first = |home| least(slots, hash, home, |slot| stamp(slots.stamp(slot)));
        if !self.recency_filled {
            self.recency_filled = true;
            for slot in 0..=slots.mask() {
                let home = hash.of(slots.key(slot)) as usize & slots.mask();
                if slots.stamp(slot) != 0
                    && !recency.is_queued(home)
                    && let Some((stamp, _)) = first(home)
                {
                    recency.add(home, stamp);
                }
            }
        }
        let Some(slot) = recency.first(u64::MAX, first) else { return false };
        self.vacate(slot);
        self.statistics.evictions += 1;
        true
    }

    /// Empties a slot and shifts back the entries that probed past it.
    fn vacate(&mut self, slot: usize) {
        let mask = self.slots.mask();
        let (mut hole, mut next) = (slot, self.after(slot));
        while self.slots.stamp(next) != 0 {
            let home = self.home(self.slots.key(next));
            let (from_home, from_hole) = (next.wrapping_sub(home) & mask, next.wrapping_sub(hole) & mask);
            if from_home >= from_hole {
                self.slots.copy(next, hole);
                hole = next;
            }
            next = self.after(next);
        }
        self.slots.set_stamp(hole, 0);
        self.entries -= 1;
    }

    fn expire_due(&mut self, now: u64) -> u64 {
        let now = self.advance(now);
        let before = self.entries;
        while let Some(deadlines) = &mut self.deadlines {
            let (slots, hash, spec) = (&self.slots, &self.hash, &self.spec);
            let first = |home| least(slots, hash, home, |slot| deadline(slots, spec, slot));
            let due = deadlines.first(now, first);
            self.next_deadline = deadlines.bound();
            let Some(slot) = due else { break };
            self.vacate(slot);
        }
        let expired = (before - self.entries) as u64;
        self.statistics.expired += expired;
        expired
    }
}

impl<const K: usize> Exact for HashTable<K> {
    #[inline]
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        self.find_inline(key, now, self.marks)
    }

    #[inline]
    fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        self.probe(key).ok().map(|slot| self.slots.value(slot))
    }

    #[inline]
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        self.learn_inline(key, value, now, self.marks)
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        assert_eq!(value.len(), self.slots.value_words(), "a value has the words its table declares");
        match self.probe(key) {
            Ok(slot) => {
                self.slots.value_mut(slot).copy_from_slice(value);
                self.slots.set_stamp(slot, PERMANENT | self.slots.stamp(slot));
            }
            Err(_) if self.entries >= self.spec.capacity => return false,
            Err(slot) => self.put(slot, key, value, PERMANENT, self.clock),
        }
        true
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        let Ok(slot) = self.probe(key) else { return false };
        self.vacate(slot);
        self.statistics.removed += 1;
        true
    }

    fn expire(&mut self, now: u64) -> u64 {
        self.expire_due(now)
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        self.next_deadline
    }

    fn free(&self) -> usize {
        self.spec.capacity - self.entries
    }

    fn statistics(&self) -> Statistics {
        Statistics { entries: self.entries as u64, ..self.statistics }
    }

    fn entries(&self) -> Vec<Entry> {
        let taken = (0..=self.slots.mask()).filter(|slot| self.slots.stamp(*slot) != 0);
        let mut entries: Vec<Entry> = taken
            .map(|slot| Entry {
                key: self.slots.key(slot).to_vec(),
                value: self.slots.value(slot).to_vec(),
                permanent: self.slots.stamp(slot) & PERMANENT != 0,
                deadline: deadline(&self.slots, &self.spec, slot),
            })
            .collect();
        entries.sort_unstable();
        entries
    }
}

/// Calls one method on whichever table it is.
macro_rules! dispatch {
    ($table:expr, $inner:ident => $call:expr) => {
        match $table {
            Table::One($inner) => $call,
            Table::Two($inner) => $call,
            Table::Any($inner) => $call,
        }
    };
}

impl Exact for Table {
    #[inline]
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        dispatch!(self, table => table.find(key, now))
    }

    #[inline]
    fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        dispatch!(self, table => table.peek(key))
    }

    #[inline]
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        dispatch!(self, table => table.learn(key, value, now))
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        dispatch!(self, table => table.insert_permanent(key, value))
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        dispatch!(self, table => table.remove(key))
    }

    fn expire(&mut self, now: u64) -> u64 {
        dispatch!(self, table => table.expire_due(now))
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        dispatch!(self, table => table.next_deadline())
    }

    fn free(&self) -> usize {
        dispatch!(self, table => table.free())
    }

    fn statistics(&self) -> Statistics {
        dispatch!(self, table => table.statistics())
    }

    fn entries(&self) -> Vec<Entry> {
        dispatch!(self, table => table.entries())
    }
}

/// When the entry in a taken slot expires; `None` for never.
#[inline]
fn deadline<const K: usize>(slots: &Slots<K>, spec: &ExactSpec, slot: usize) -> Option<u64> {
    if slots.stamp(slot) & PERMANENT != 0 {
        return None;
    }
    spec.deadline(slots.learned(slot), slots.renewed(slot))
}

/// The smallest measure among the entries that belong at `home`, with the slot it was found in.
fn least<const K: usize>(
    slots: &Slots<K>,
    hash: &Hash,
    home: usize,
    measure: impl Fn(usize) -> Option<u64>,
) -> Option<(u64, usize)> {
    let mut found: Option<(u64, usize)> = None;
    let mut slot = home;
    while slots.stamp(slot) != 0 {
        if hash.of(slots.key(slot)) as usize & slots.mask() == home
            && let Some(measure) = measure(slot).filter(|m| found.is_none_or(|(least, _)| *m < least))
        {
            found = Some((measure, slot));
        }
        slot = (slot + 1) & slots.mask();
    }
    found
}

/// Whether the words are the same; a loop, since a call to compare so few bytes would cost more than the comparison.
#[inline(always)]
fn same(one: &[u64], other: &[u64]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let ([a], [b]) = (one, other) {
        return a == b;
    }
    one.iter().zip(other).all(|(a, b)| a == b)
}
