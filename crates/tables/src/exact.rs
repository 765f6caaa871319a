//! Exact-match tables: their interface, specification, results and statistics.
//!
//! Two implementations give the same answers. [`ExactTable`] is the fast one; `ExactModel` is built from
//! ordered maps, is easy to believe, and judges the other. Time is an argument, in nanoseconds, and never
//! goes back: an operation whose `now` lies before the latest time the table has seen happens at that latest
//! time.

#[cfg(feature = "fastest")]
mod any;
#[cfg(feature = "fastest")]
mod bulk;
mod generation;
pub(crate) mod hash;
mod items;
mod memory;
#[cfg(feature = "reference")]
mod model;
mod order;
mod resize;
mod slots;
mod table;
mod tags;

#[cfg(feature = "fastest")]
pub use any::ExactTable;
#[cfg(feature = "fastest")]
pub use bulk::ABSENT;
pub use items::{MOST_NUMBERED, Numbering};
#[cfg(feature = "reference")]
pub use model::ExactModel;
pub use resize::MOVED_AT_ONCE;
#[cfg(not(feature = "fastest"))]
pub use table::TableN as ExactTable;
pub use table::{HashTable, Table1, Table2, TableN};

/// The most words a key may have; it has at least one.
pub const MAX_KEY_WORDS: usize = 8;
/// The most words a value may have; it may have none, and then the table is a set.
pub const MAX_VALUE_WORDS: usize = 8;
/// The largest capacity, in entries.
pub const MAX_CAPACITY: usize = 1 << 28;
/// The longest run of taken slots that a new key may leave: so many slots at most an operation looks at in
/// one array, on the processor as on a device. Half of the slots are free at least, so for keys that the seed
/// scatters a run as long is less likely than one in 10¹⁵ inserts; where it would come about, the table goes
/// on with another seed.
pub const LONGEST_RUN: usize = 256;

/// What a full table does with a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evict {
    /// The entry whose last hit or learn is the oldest, by order of operations, makes room. Permanent entries
    /// never do.
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
    /// Entries may have a lifetime of their own, at most `age`, see [`Exact::end_by`]. It is kept in a word
    /// of the entry; without this, and without `age`, there is none.
    pub lifetimes: bool,
    /// What happens when the table is full.
    pub evict: Evict,
    /// Chooses the hash function, and has no other effect. Whoever cannot guess it cannot pick keys that
    /// collide.
    pub seed: u64,
}

/// Slots that are passed for each entry asked for in [`Exact::entries_part`], most of which are empty.
const PASSED: usize = 64;

/// A hit or learn numbers the entry, for eviction by least recent use.
pub const MARK_RECENCY: u8 = 1;
/// A hit or learn notes its time.
pub const MARK_IDLE: u8 = 2;
/// A learn notes its time.
pub const MARK_AGE: u8 = 4;

impl ExactSpec {
    /// Bytes that a fast table of this shape allocates when it is made; it needs no more while it keeps its
    /// size.
    pub fn allocated(&self) -> u64 {
        generation::Generation::<0>::allocated(self, self.capacity as u64)
    }

    /// Bytes more of a table whose values are so many items, see [`Exact::number_items`].
    pub fn allocated_for_items(&self, items: u64) -> u64 {
        if items > MOST_NUMBERED.into() { 0 } else { items::Items::allocated(items, self.key_words) }
    }

    /// What hits and learns write besides the value: [`MARK_RECENCY`], [`MARK_IDLE`] and [`MARK_AGE`], added
    /// up.
    pub fn marks(&self) -> u8 {
        let mark = |kept: bool, mark: u8| if kept { mark } else { 0 };
        mark(self.evict == Evict::Lru, MARK_RECENCY)
            | mark(self.idle.is_some(), MARK_IDLE)
            | mark(self.age.is_some(), MARK_AGE)
    }

    /// What two tables have in common of which one may take the entries of the other as they are.
    fn entry_shape(&self) -> (u8, bool, usize, usize) {
        (self.marks(), self.keeps_lifetimes(), self.key_words, self.value_words)
    }

    /// Whether there is a word for an entry's own lifetime.
    fn keeps_lifetimes(&self) -> bool {
        self.lifetimes && self.age.is_some()
    }

    /// When an entry last learned at `learned`, with a lifetime of its own or `u64::MAX`, and last hit or
    /// learned at `renewed` ends; `None` for never. It lives for a nanosecond at least.
    #[inline]
    fn deadline(&self, learned: u64, lifetime: u64, renewed: u64) -> Option<u64> {
        let by_idle = self.idle.map_or(u64::MAX, |idle| renewed.saturating_add(idle.max(1)));
        Some(self.end_by_age(learned, lifetime).min(by_idle)).filter(|deadline| *deadline < u64::MAX)
    }

    /// When an entry that ends at `deadline` by its age was learned; `None` if the table has none.
    fn learned_to_end(&self, deadline: u64) -> Option<u64> {
        self.age.map(|age| deadline.saturating_sub(age.max(1)))
    }

    /// When an entry ends by its age that was learned then, with a lifetime of its own or `u64::MAX`;
    /// `u64::MAX` for never.
    #[inline]
    fn end_by_age(&self, learned: u64, lifetime: u64) -> u64 {
        self.age.map_or(u64::MAX, |age| learned.saturating_add(age.max(1).min(lifetime)))
    }

    fn check(&self) -> Result<(), ExactSpecError> {
        if !(1..=MAX_KEY_WORDS).contains(&self.key_words) {
            return Err(ExactSpecError::KeyWords { words: self.key_words });
        }
        if self.value_words > MAX_VALUE_WORDS {
            return Err(ExactSpecError::ValueWords { words: self.value_words });
        }
        if self.capacity > MAX_CAPACITY {
            return Err(ExactSpecError::Capacity { capacity: self.capacity });
        }
        Ok(())
    }
}

/// Why a table cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExactSpecError {
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
    /// The table is full and nothing may make room; nothing changed. So it is where the key would make a run
    /// longer than [`LONGEST_RUN`] and the table, which has changed its seed a few times already and still
    /// moves its entries, cannot change it again.
    Refused,
}

/// What has happened to a table since it was made. Permanent entries count in `entries` and, when removed or
/// given another value by a learn, in `removed` and `moves`; inserting them counts nowhere, since they are
/// part of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactStatistics {
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
    /// Learns refused because the table was full, or had no place for the key within [`LONGEST_RUN`].
    pub refused: u64,
}

/// One entry, for reports.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExactEntry {
    /// The key's words.
    pub key: Vec<u64>,
    /// The value's words.
    pub value: Vec<u64>,
    /// An initial entry of the program: it neither expires nor makes room.
    pub permanent: bool,
    /// When it expires unless renewed before, in nanoseconds; `None` for never.
    pub deadline: Option<u64>,
}

/// An exact-match table. Keys and values have the number of words that the table's [`ExactSpec`] says;
/// passing another number is an error in the calling code and panics.
///
/// An entry's deadline is the earlier of its last hit or learn plus `idle` and its last learn plus `age`. No
/// operation but [`expire`](Exact::expire) and [`expire_some`](Exact::expire_some) ends entries by it, so the
/// caller runs one of them before a packet whose time has reached [`next_deadline`](Exact::next_deadline).
/// Whichever it is, every entry whose deadline has come has ended then: it is not found, listed or counted,
/// and takes no room. What a table of the fast kind has not yet taken out of its memory is nobody else's
/// matter, but that `gone` is told of a value when that happens.
pub trait Exact {
    /// The value of `key`. A hit renews the entry's idle time and recency.
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]>;
    /// The value of `key`, without any effect.
    fn peek(&self, key: &[u64]) -> Option<&[u64]>;
    /// Puts `key` in with `value`, or gives it that value; renews age, idle time and recency.
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned;
    /// The entry of `key` ends at `deadline`, which is behind all times that the table has seen, if it has an
    /// `age` and would end later by it: as if it had been learned earlier, or by a lifetime of its own where
    /// the table has [`lifetimes`](ExactSpec::lifetimes). The next learn makes it live as long as any other.
    /// An entry that is permanent, or of a table without `age`, stays as it is.
    fn end_by(&mut self, key: &[u64], deadline: u64);
    /// As [`learn`](Exact::learn), and tells the keys of the entries that made room.
    fn learn_telling(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned;
    /// Puts in an initial entry of the program, or makes an existing one permanent with this value. Such an
    /// entry never expires and is never evicted; a learn may change its value and [`remove`](Exact::remove)
    /// removes it. False, and no effect, if the table is full: nothing is evicted for it.
    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool;
    /// Takes `key` out; false if it was not there.
    fn remove(&mut self, key: &[u64]) -> bool;
    /// Takes `key` out because its time is up, which counts it as expired; false if it was not there. For who
    /// ends entries one by one, and never by [`expire`](Exact::expire).
    fn expire_key(&mut self, key: &[u64]) -> bool;
    /// When `key` ends unless it is renewed before, `u64::MAX` for never; `None` if it is not there.
    fn deadline_of(&mut self, key: &[u64]) -> Option<u64>;
    /// When `key` ends by the `age` of the table unless it is learned before, `u64::MAX` without `age`;
    /// `None` if it is permanent or not there.
    fn age_of(&self, key: &[u64]) -> Option<u64>;
    /// Takes out every entry whose deadline is at or before `now`; how many there were.
    fn expire(&mut self, now: u64) -> u64;
    /// Ends every entry whose deadline is at or before `now`, as [`expire`](Exact::expire), but takes them
    /// out in `steps` steps at most, which it counts down; what is left is taken out by later calls, first
    /// those whose deadline came first, as well as the table knows. Tells the value of every entry that is
    /// taken out.
    fn expire_some(&mut self, now: u64, steps: &mut u32, gone: &mut dyn FnMut(&[u64]));
    /// Before `key` is learned or made permanent, or so many entries are: takes out what has ended and is in
    /// the way, and tells its values. Without it, these operations do the same and tell nobody. How many of
    /// so many new keys find room then without any making room; it looks at no entry that it does not take
    /// out or put in order.
    fn make_way(&mut self, key: Option<&[u64]>, wanted: usize, gone: &mut dyn FnMut(&[u64])) -> usize;
    /// Values are items that somebody hands out, so many, with these numbers. The table holds no entries but
    /// permanent ones. From then on what holds an item is found by its number.
    fn number_items(&mut self, _items: u32, _number: Numbering) {}
    /// Before somebody looks for the first item from this number on that is free, and behind the last for the
    /// first of all: takes out what has ended and holds the first such item, and tells its value. What has
    /// ended and holds another may stay.
    fn free_first(&mut self, from: u32, gone: &mut dyn FnMut(&[u64]));
    /// A time before which nothing expires; `u64::MAX` if nothing ever will. After `expire(now)` it is later
    /// than `now` unless it is `u64::MAX`; after `expire_some(now)` it is not as long as something is left.
    fn next_deadline(&self) -> u64;
    /// How many entries have ended and are still to be taken out. It looks at all entries where there are
    /// any, so nothing on the way of a packet asks.
    fn left_to_expire(&self) -> usize;
    /// Numbers of which one at least is another whenever other entries are found, in the time of one
    /// operation.
    fn version(&self) -> [u64; 5];
    /// Changes the capacity; the entries stay. A table that holds more than its new capacity keeps them until
    /// they go: it refuses new keys, or evicts two entries for each, until it fits. Fails, and changes
    /// nothing, where a table of that capacity could not be made.
    fn resize(&mut self, capacity: usize) -> Result<(), ExactSpecError>;
    /// Whether this table, which is empty, can [`inherit`](Exact::inherit) what another holds, and makes
    /// ready for it: where keys, values and what ends entries are kept alike, and all of them have room. For
    /// moments it may say no to what it would take at other times.
    fn prepare_for(&mut self, old: &Self) -> bool
    where
        Self: Sized;
    /// Takes all entries of the table that it was last [prepared for](Exact::prepare_for), and what that has
    /// counted, and goes on in its place: entries keep the times of their last hit and learn, and end by the
    /// times of this table and by their own. It takes no longer for many entries, which then move a few at a
    /// time as after a [resize](Exact::resize). The other one is of no more use.
    fn inherit(&mut self, old: &mut Self)
    where
        Self: Sized;
    /// Has all memory that it may use given to it now, so that no operation waits for that: for whoever makes
    /// a table that another thread is to use.
    fn touch(&mut self) {}
    /// Moves a few entries to where they belong since the table was resized or took another's place; whether
    /// some are left. Whoever has time asks, so that all have moved before long also where nobody looks for
    /// them.
    fn catch_up(&mut self) -> bool {
        false
    }
    /// What has happened so far. It may look at all entries, see [`left_to_expire`](Exact::left_to_expire).
    fn statistics(&self) -> ExactStatistics;
    /// As [`statistics`](Exact::statistics), but in the time of one operation: what has ended and is still to
    /// be taken out counts as held, and not as expired.
    fn running_statistics(&self) -> ExactStatistics;
    /// All entries, by ascending key (words compared first to last).
    fn entries(&self) -> Vec<ExactEntry>;
    /// All entries that are not permanent, by ascending key.
    fn learned(&self) -> Vec<ExactEntry> {
        let mut entries = self.entries();
        entries.retain(|entry| !entry.permanent);
        entries
    }
    /// Entries from a place on, `most` at most, in no order; and the place from which the next ones are asked
    /// for, until there is none. It begins with place 0. What is changed in between may be told twice or not
    /// at all. It takes no longer than `most` says, however large the table is.
    fn entries_part(&self, from: usize, most: usize) -> (Vec<ExactEntry>, Option<usize>) {
        let all = self.entries();
        let next = from.saturating_add(most);
        (all.get(from..next.min(all.len())).unwrap_or_default().to_vec(), (next < all.len()).then_some(next))
    }
}

#[cfg(test)]
mod tests;
