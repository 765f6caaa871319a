//! The fast exact table for keys of any width: one of three, chosen by the number of key words when it is
//! made.

use super::table::{HashTable, Table1, Table2, TableN};
use super::{Exact, ExactEntry, ExactSpec, ExactSpecError, ExactStatistics, Learned, Numbering};

/// A fast exact table for any number of key words. Everything is allocated when it is made.
///
/// ```
/// use tables::exact::{Evict, Exact, ExactSpec, ExactTable, Learned};
///
/// let spec = ExactSpec {
///     key_words: 1, value_words: 1, capacity: 1024, idle: None, age: Some(300), lifetimes: false,
///     evict: Evict::Lru, seed: 1,
/// };
/// let mut hosts = ExactTable::new(spec)?;
/// assert_eq!(hosts.learn(&[0xa], &[1], 10), Learned::New);
/// assert_eq!(hosts.find(&[0xa], 20), Some(&[1][..]));
/// assert_eq!(hosts.expire(310), 1);
/// assert_eq!(hosts.find(&[0xa], 310), None);
/// # Ok::<(), tables::exact::ExactSpecError>(())
/// ```
pub enum ExactTable {
    /// Keys of one word.
    One(Table1),
    /// Keys of two words.
    Two(Table2),
    /// Keys of three words or more.
    Any(TableN),
}

/// Calls one method on whichever table it is.
macro_rules! dispatch {
    ($table:expr, $inner:ident => $call:expr) => {
        match $table {
            ExactTable::One($inner) => $call,
            ExactTable::Two($inner) => $call,
            ExactTable::Any($inner) => $call,
        }
    };
}

impl ExactTable {
    /// An empty table; fails if the spec asks for more than there can be.
    pub fn new(spec: ExactSpec) -> Result<ExactTable, ExactSpecError> {
        match spec.key_words {
            1 => HashTable::new(spec).map(ExactTable::One),
            2 => HashTable::new(spec).map(ExactTable::Two),
            _ => HashTable::new(spec).map(ExactTable::Any),
        }
    }

    /// The shape and the rules it was made with, and the capacity it has now.
    pub fn spec(&self) -> &ExactSpec {
        dispatch!(self, table => table.spec())
    }

    /// Bytes held, without what allocators add; twice as many or more while entries are being moved after a
    /// resize.
    pub fn bytes(&self) -> usize {
        dispatch!(self, table => table.bytes())
    }

    /// Starts to fetch the slot that `key` belongs in, so that an operation on it some time later need not
    /// wait for memory.
    #[inline]
    pub fn prefetch(&self, key: &[u64]) {
        dispatch!(self, table => table.prefetch(key))
    }

    /// Starts to fetch the slots in which keys most likely lie, and tells them for
    /// [`expect`](ExactTable::expect); [`ABSENT`](super::ABSENT) for a key that is not there. Keys lie one
    /// after the other; `which` are the numbers of those to look for, and `likely` has a place for each key.
    #[inline]
    pub fn seek(&self, keys: &[u64], which: &[u32], likely: &mut [u32]) {
        dispatch!(self, table => table.seek(keys, which, likely))
    }

    /// The next operation on a key is probably on the one in this slot, as [`seek`](ExactTable::seek) has
    /// told. If it is not, the operation means the same, and takes longer.
    #[inline]
    pub fn expect(&mut self, slot: u32) {
        dispatch!(self, table => table.expect(slot))
    }

    /// The first value word of each key (0 in a set), or `missing` for a key that is not there, without any
    /// effect. Keys lie one after the other; what is looked up ends with the keys or with the room for
    /// values.
    pub fn peek_bulk(&self, keys: &[u64], missing: u64, values: &mut [u64]) {
        dispatch!(self, table => table.peek_bulk(keys, missing, values))
    }

    /// [`ExactTable::peek_bulk`] that renews what it finds, as [`Exact::find`] for one key after the other.
    pub fn find_bulk(&mut self, keys: &[u64], now: u64, missing: u64, values: &mut [u64]) {
        dispatch!(self, table => table.find_bulk(keys, now, missing, values))
    }

    /// Entries that memory is used for: also those that have ended and are still to be taken out.
    pub fn held(&self) -> usize {
        dispatch!(self, table => table.held())
    }

    /// Entries that still lie where they were before a resize. Each operation that does not find its key
    /// where it lies now moves up to [`MOVED_AT_ONCE`](super::MOVED_AT_ONCE) of them.
    pub fn left_to_move(&self) -> usize {
        dispatch!(self, table => table.left_to_move())
    }

    /// Moves up to [`MOVED_AT_ONCE`](super::MOVED_AT_ONCE) entries, for a caller with time to spare; how many
    /// are left.
    pub fn move_some(&mut self) -> usize {
        dispatch!(self, table => table.move_some())
    }
}

impl Exact for ExactTable {
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

    fn end_by(&mut self, key: &[u64], deadline: u64) {
        dispatch!(self, table => table.end_by(key, deadline));
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        dispatch!(self, table => table.insert_permanent(key, value))
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        dispatch!(self, table => table.remove(key))
    }

    fn expire_key(&mut self, key: &[u64]) -> bool {
        dispatch!(self, table => table.expire_key(key))
    }

    fn deadline_of(&mut self, key: &[u64]) -> Option<u64> {
        dispatch!(self, table => table.deadline_of(key))
    }

    fn age_of(&self, key: &[u64]) -> Option<u64> {
        dispatch!(self, table => table.age_of(key))
    }

    fn learn_telling(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        dispatch!(self, table => table.learn_telling(key, value, now, evicted))
    }

    fn expire(&mut self, now: u64) -> u64 {
        dispatch!(self, table => table.expire(now))
    }

    fn expire_some(&mut self, now: u64, steps: &mut u32, gone: &mut dyn FnMut(&[u64])) {
        dispatch!(self, table => table.expire_some(now, steps, gone));
    }

    fn make_way(&mut self, key: Option<&[u64]>, wanted: usize, gone: &mut dyn FnMut(&[u64])) -> usize {
        dispatch!(self, table => table.make_way(key, wanted, gone))
    }

    fn number_items(&mut self, items: u32, number: Numbering) {
        dispatch!(self, table => table.number_items(items, number));
    }

    fn free_first(&mut self, from: u32, gone: &mut dyn FnMut(&[u64])) {
        dispatch!(self, table => table.free_first(from, gone));
    }

    fn left_to_expire(&self) -> usize {
        dispatch!(self, table => table.left_to_expire())
    }

    fn version(&self) -> [u64; 5] {
        dispatch!(self, table => table.version())
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        dispatch!(self, table => table.next_deadline())
    }

    fn resize(&mut self, capacity: usize) -> Result<(), ExactSpecError> {
        dispatch!(self, table => table.resize(capacity))
    }

    fn touch(&mut self) {
        dispatch!(self, table => table.touch());
    }

    #[inline]
    fn catch_up(&mut self) -> bool {
        dispatch!(self, table => table.catch_up())
    }

    fn prepare_for(&mut self, old: &Self) -> bool {
        match (self, old) {
            (ExactTable::One(new), ExactTable::One(old)) => new.prepare_for(old),
            (ExactTable::Two(new), ExactTable::Two(old)) => new.prepare_for(old),
            (ExactTable::Any(new), ExactTable::Any(old)) => new.prepare_for(old),
            _ => false,
        }
    }

    fn inherit(&mut self, old: &mut Self) {
        match (self, old) {
            (ExactTable::One(new), ExactTable::One(old)) => new.inherit(old),
            (ExactTable::Two(new), ExactTable::Two(old)) => new.inherit(old),
            (ExactTable::Any(new), ExactTable::Any(old)) => new.inherit(old),
            _ => {}
        }
    }

    fn statistics(&self) -> ExactStatistics {
        dispatch!(self, table => table.statistics())
    }

    fn running_statistics(&self) -> ExactStatistics {
        dispatch!(self, table => table.running_statistics())
    }

    fn entries(&self) -> Vec<ExactEntry> {
        dispatch!(self, table => table.entries())
    }

    fn learned(&self) -> Vec<ExactEntry> {
        dispatch!(self, table => table.learned())
    }

    fn entries_part(&self, from: usize, most: usize) -> (Vec<ExactEntry>, Option<usize>) {
        dispatch!(self, table => table.entries_part(from, most))
    }
}
