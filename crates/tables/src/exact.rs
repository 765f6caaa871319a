//! Exact-match tables: what one is asked for, what it answers, and what it counts.
//!
//! Two implementations give the same answers. [`Table`] is the fast one; [`Model`] is built from ordered maps, is easy to
//! believe, and judges the other. Time is an argument, in nanoseconds, and never goes back: an operation whose `now` lies
//! before the latest time the table has seen happens at that latest time.

mod any;
mod bulk;
mod generation;
pub(crate) mod hash;
mod memory;
mod model;
mod order;
mod resize;
mod slots;
mod table;
mod tags;

pub use any::Table;
pub use model::Model;
pub use resize::MOVED_AT_ONCE;
pub use table::{HashTable, Table1, Table2, TableN};

/// The most words a key may have; it has at least one.
pub const MAX_KEY_WORDS: usize = 8;
/// The most words a value may have; it may have none, and then the table is a set.
pub const MAX_VALUE_WORDS: usize = 8;
/// The largest capacity, in entries.
pub const MAX_CAPACITY: usize = 1 << 28;

/// What a full table does with a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evict {
    /// The entry whose last hit or learn is the oldest, by order of operations, makes room. Permanent entries never do.
    Lru,
    /// The new key is refused and nothing changes.
    Refuse,
}

/// The shape and the rules of an exact table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactSpec {
    /// Words of a key, 1 to [`MAX_KEY_WORDS`].
    pub key_words: usize,
    /// Words of a value, 0 to [`MAX_VALUE_WORDS`].
    pub value_words: usize,
    /// The most entries held at once, 0 to [`MAX_CAPACITY`].
    pub capacity: usize,
    /// How long an entry lives after its last hit or learn, in nanoseconds; `None` is for ever.
    pub idle: Option<u64>,
    /// How long an entry lives after its last learn, in nanoseconds; `None` is for ever.
    pub age: Option<u64>,
    /// What happens when the table is full.
    pub evict: Evict,
    /// Chooses the hash function. Whoever cannot guess it cannot pick keys that collide.
    pub seed: u64,
}

/// A hit or learn numbers the entry, for eviction by least recent use.
pub const MARK_RECENCY: u8 = 1;
/// A hit or learn notes its time.
pub const MARK_IDLE: u8 = 2;
/// A learn notes its time.
pub const MARK_AGE: u8 = 4;

impl ExactSpec {
    /// What hits and learns write besides the value: [`MARK_RECENCY`], [`MARK_IDLE`] and [`MARK_AGE`], added up.
    pub fn marks(&self) -> u8 {
        let mark = |kept: bool, mark: u8| if kept { mark } else { 0 };
        mark(self.evict == Evict::Lru, MARK_RECENCY)
            | mark(self.idle.is_some(), MARK_IDLE)
            | mark(self.age.is_some(), MARK_AGE)
    }

    /// When an entry last learned at `learned` and last hit or learned at `renewed` ends; `None` for never.
    #[inline]
    fn deadline(&self, learned: u64, renewed: u64) -> Option<u64> {
        let aged = self.age.map(|age| learned.saturating_add(age));
        let idled = self.idle.map(|idle| renewed.saturating_add(idle));
        match (aged, idled) {
            (Some(a), Some(i)) => Some(a.min(i)),
            (one, other) => one.or(other),
        }
    }

    fn check(&self) -> Result<(), SpecError> {
        if !(1..=MAX_KEY_WORDS).contains(&self.key_words) {
            return Err(SpecError::KeyWords { words: self.key_words });
        }
        if self.value_words > MAX_VALUE_WORDS {
            return Err(SpecError::ValueWords { words: self.value_words });
        }
        if self.capacity > MAX_CAPACITY {
            return Err(SpecError::Capacity { capacity: self.capacity });
        }
        Ok(())
    }
}

/// Why a table cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The key is empty or too wide.
    #[error("a key of {words} words; a key has 1 to {MAX_KEY_WORDS}: use fewer or narrower key parts")]
    KeyWords {
        /// The words asked for.
        words: usize,
    },
    /// The value is too wide.
    #[error("a value of {words} words; a value has at most {MAX_VALUE_WORDS}: store less in an entry")]
    ValueWords {
        /// The words asked for.
        words: usize,
    },
    /// The capacity is too large.
    #[error("a capacity of {capacity} entries; the largest is {MAX_CAPACITY}: declare a smaller one")]
    Capacity {
        /// The entries asked for.
        capacity: usize,
    },
    /// The machine has no room for it.
    #[error("no memory for a table of {capacity} entries ({bytes} bytes): declare a smaller capacity")]
    Memory {
        /// The entries asked for.
        capacity: usize,
        /// The bytes of the array that could not be had.
        bytes: usize,
    },
}

/// What a learn did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Learned {
    /// The key was not there and now is.
    New,
    /// The key was there with this value; its times were renewed.
    Confirmed,
    /// The key was there with another value; it now has this one, and its times were renewed.
    Moved,
    /// The table is full and nothing may make room; nothing changed.
    Refused,
}

/// What has happened to a table since it was made. Permanent entries count in `entries` and, when removed or given another
/// value by a learn, in `removed` and `moves`; inserting them counts nowhere, since they are part of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Entries held now.
    pub entries: u64,
    /// Learns of a key that was not there.
    pub inserts: u64,
    /// Learns that changed a value.
    pub moves: u64,
    /// Entries that made room for a new key.
    pub evictions: u64,
    /// Entries that reached their deadline.
    pub expired: u64,
    /// Entries removed by [`Exact::remove`].
    pub removed: u64,
    /// Learns refused because the table was full.
    pub refused: u64,
}

/// One entry, for reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The key's words.
    pub key: Vec<u64>,
    /// The value's words.
    pub value: Vec<u64>,
    /// An initial entry of the program: it neither expires nor makes room.
    pub permanent: bool,
    /// When it expires unless renewed before, in nanoseconds; `None` for never.
    pub deadline: Option<u64>,
}

/// An exact-match table. Keys and values have the number of words that the table's [`ExactSpec`] says; passing another
/// number is an error in the calling code and panics.
///
/// An entry's deadline is the earlier of its last hit or learn plus `idle` and its last learn plus `age`, saturating. No
/// operation but [`expire`](Exact::expire) looks at deadlines, so the caller runs it before a packet whose time has
/// reached [`next_deadline`](Exact::next_deadline).
pub trait Exact {
    /// The value of `key`. A hit renews the entry's idle time and recency.
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]>;
    /// The value of `key`, without any effect.
    fn peek(&self, key: &[u64]) -> Option<&[u64]>;
    /// Puts `key` in with `value`, or gives it that value; renews age, idle time and recency.
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned;
    /// Puts in an initial entry of the program, or makes an existing one permanent with this value. Such an entry never
    /// expires and is never evicted; a learn may change its value and [`remove`](Exact::remove) removes it. False, and no
    /// effect, if the table is full: nothing is evicted for it.
    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool;
    /// Takes `key` out; false if it was not there.
    fn remove(&mut self, key: &[u64]) -> bool;
    /// Takes out every entry whose deadline is at or before `now`; how many there were.
    fn expire(&mut self, now: u64) -> u64;
    /// As [`expire`](Exact::expire), and tells the value of every entry that goes.
    fn expire_telling(&mut self, now: u64, gone: &mut dyn FnMut(&[u64])) -> u64;
    /// A time before which nothing expires; `u64::MAX` if nothing ever will. After `expire(now)` it is later than `now`
    /// unless it is `u64::MAX`.
    fn next_deadline(&self) -> u64;
    /// Changes the capacity; the entries stay. A table that holds more than its new capacity keeps them until they go: it refuses new
    /// keys, or evicts two entries for each, until it fits. Fails, and changes nothing, where a table of that capacity could not be
    /// made.
    fn resize(&mut self, capacity: usize) -> Result<(), SpecError>;
    /// Entries that can be put in without any making room.
    fn free(&self) -> usize;
    /// What has happened so far.
    fn statistics(&self) -> Statistics;
    /// All entries, by ascending key (words compared first to last).
    fn entries(&self) -> Vec<Entry>;
}

#[cfg(test)]
mod tests;
