//! The fast exact table: its operations on the entries of its generations.
//!
//! All entries lie in one generation, except after a resize: then those that have not moved yet lie in older
//! ones, where they are looked for when the current one does not hold them. A hit in the current one
//! therefore costs nothing more.

#[cfg(feature = "fastest")]
mod narrow;

use super::generation::{Generation, same};
use super::items::Items;
use super::order::leaf_of;
use super::resize::Older;
use super::slots::{NoMemory, PERMANENT};
use super::{
    Exact, ExactEntry, ExactSpec, ExactSpecError, ExactStatistics, Learned, MARK_AGE, MARK_IDLE,
    MARK_RECENCY, MAX_KEY_WORDS, MOST_NUMBERED, Numbering, PASSED,
};

/// A table whose keys have one word.
pub type Table1 = HashTable<1>;
/// A table whose keys have two words.
pub type Table2 = HashTable<2>;
/// A table whose number of key words is known at run time only.
pub type TableN = HashTable<0>;

/// Leaves of each order that a new key puts right where the table is nearly full.
const LEAVES_AT_ONCE: usize = 4;

/// A fast exact table for keys of `K` words; `K` = 0 leaves the number to the spec.
pub struct HashTable<const K: usize> {
    pub(super) current: Generation<K>,
    /// The latest time seen, ns.
    clock: u64,
    /// Number of the latest hit or learn.
    sequence: u64,
    /// A lower bound of the earliest deadline, ns; a copy of the trees', where the caller's check finds it at
    /// once.
    pub(super) next_deadline: u64,
    /// Entries have ended whose deadline is at or before this time, ns, be they taken out or not.
    pub(super) horizon: u64,
    pub(super) marks: u8,
    /// The table is nearly full: whatever changes an entry puts the orders right, so that the first of all is
    /// found in one way down.
    in_order: bool,
    /// Somebody has to know of every hit: the orders, or the items.
    watched: bool,
    /// Who holds which item, where values are items.
    items: Option<Items>,
    /// The slot of the latest operation, or the one that the caller expects the next operation to need. An
    /// operation on the key that lies there needs no hash.
    near: usize,
    /// What has not moved yet after a resize, oldest first.
    pub(super) older: Vec<Older<K>>,
    pub(super) spec: ExactSpec,
    statistics: ExactStatistics,
}

impl<const K: usize> HashTable<K> {
    /// [`ExactTable::prefetch`](super::ExactTable::prefetch).
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

    /// [`ExactTable::bytes`](super::ExactTable::bytes).
    pub fn bytes(&self) -> usize {
        self.current.bytes()
            + self.older.iter().map(Older::bytes).sum::<usize>()
            + self.items.as_ref().map_or(0, Items::bytes)
    }

    /// An empty table; fails if the spec asks for more than there can be.
    pub fn new(spec: ExactSpec) -> Result<Self, ExactSpecError> {
        spec.check()?;
        HashTable::made(spec)
            .map_err(|NoMemory { bytes }| ExactSpecError::Memory { capacity: spec.capacity, bytes })
    }

    fn made(spec: ExactSpec) -> Result<Self, NoMemory> {
        Ok(HashTable {
            current: Generation::new(&spec, spec.capacity)?,
            clock: 0,
            sequence: 1,
            next_deadline: u64::MAX,
            horizon: 0,
            marks: spec.marks(),
            in_order: false,
            watched: false,
            items: None,
            near: 0,
            older: Vec::new(),
            spec,
            statistics: ExactStatistics::default(),
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
        match self.locate(key) {
            Ok(slot) if self.has_ended(slot) => None,
            Ok(slot) => {
                self.near = slot;
                self.renew(slot, now, marks & !MARK_AGE);
                Some(self.current.slots.value(slot))
            }
            Err(_) if self.older.is_empty() => None,
            Err(_) => older(self, now),
        }
    }

    /// The slot of `key`, or the empty slot where it belongs; the slot that is expected comes first. For keys
    /// of one or two words the hash takes no longer than that comparison.
    #[inline(always)]
    fn locate(&self, key: &[u64]) -> Result<usize, usize> {
        // A resize may have left fewer slots.
        let near = self.near & self.current.slots.mask();
        if K == 0 && self.current.holds(near, key) { Ok(near) } else { self.current.probe(key) }
    }

    /// [`ExactTable::expect`](super::ExactTable::expect).
    #[inline]
    pub fn expect(&mut self, slot: u32) {
        self.near = slot as usize;
    }

    /// Time, order of use and figures go on as those of another table.
    pub(super) fn take_history(&mut self, old: &mut Self) {
        (self.clock, self.sequence, self.horizon) = (old.clock, old.sequence, old.horizon);
        self.statistics = std::mem::take(&mut old.statistics);
        self.items = old.items.take();
        self.watched = self.items.is_some();
    }

    /// When an entry that is learned now ends.
    pub(super) fn deadline_now(&self) -> Option<u64> {
        self.spec.deadline(self.clock, u64::MAX, self.clock)
    }

    /// Whether something may have ended that is still to be taken out.
    #[inline(always)]
    pub(super) fn is_behind(&self) -> bool {
        self.next_deadline <= self.horizon
    }

    /// Whether the entry in a slot has ended and is still to be taken out.
    #[inline(always)]
    pub(super) fn has_ended(&self, slot: usize) -> bool {
        self.is_behind() && self.current.has_ended(slot, self.horizon)
    }

    #[inline(never)]
    fn find_older(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        let slot = self.fetch_older(key).filter(|slot| !self.has_ended(*slot))?;
        self.renew(slot, now, self.marks & !MARK_AGE);
        Some(self.current.slots.value(slot))
    }

    #[inline(always)]
    fn learn_inline(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        marks: u8,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        let now = self.advance(now);
        let Ok(slot) = self.locate(key) else { return self.insert(key, value, now, evicted) };
        if self.has_ended(slot) {
            return self.learn_ended(slot, key, value, now, evicted);
        }
        self.renew(slot, now, marks);
        if same(self.current.slots.value(slot), value) {
            return Learned::Confirmed;
        }
        self.leave_item(slot);
        self.current.slots.set_value(slot, value);
        self.hold_item(slot);
        self.statistics.moves += 1;
        Learned::Moved
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, now: u64) -> u64 {
        self.clock = self.clock.max(now);
        self.clock
    }

    /// The entry was hit, or learned: that notes its age, too.
    #[inline(always)]
    pub(super) fn renew(&mut self, slot: usize, now: u64, marks: u8) {
        if self.watched { self.renew_watched(slot, now, marks) } else { self.mark(slot, now, marks) }
    }

    /// [`HashTable::renew`] in a table that is nearly full, or whose values are items.
    #[inline(never)]
    fn renew_watched(&mut self, slot: usize, now: u64, marks: u8) {
        let before = self.current.measures(slot);
        self.mark(slot, now, marks);
        if self.in_order {
            self.current.raised(slot, before);
        }
        if self.items.is_some() && self.current.deadline(slot) != before.0 {
            self.hold_item(slot);
        }
    }

    /// The entry in a slot holds its item, up to its deadline; one that never ends need not be known.
    #[inline]
    fn hold_item(&mut self, slot: usize) {
        if let Some(items) = &mut self.items
            && let Some(deadline) = self.current.deadline(slot)
        {
            items.hold(self.current.slots.value(slot), self.current.slots.key(slot), deadline);
        }
    }

    /// The entry in a slot is about to go, or to get another value.
    #[inline]
    fn leave_item(&mut self, slot: usize) {
        if let Some(items) = &mut self.items
            && self.current.deadline(slot).is_some()
        {
            items.leave(self.current.slots.value(slot));
        }
    }

    #[inline(always)]
    fn mark(&mut self, slot: usize, now: u64, marks: u8) {
        if marks & MARK_RECENCY != 0 {
            self.sequence += 1;
            let stamp = self.current.slots.stamp(slot) & PERMANENT | self.sequence;
            self.current.slots.set_stamp(slot, stamp);
        }
        if marks & MARK_IDLE != 0 {
            self.current.slots.set_renewed(slot, now);
        }
        if marks & MARK_AGE != 0 {
            self.current.slots.set_learned(slot, now);
        }
    }

    /// [`ExactTable::held`](super::ExactTable::held).
    pub fn held(&self) -> usize {
        self.len()
    }

    /// Entries in all generations.
    pub(super) fn len(&self) -> usize {
        self.current.len() + self.left_to_move()
    }

    /// A learn of a key whose entry has ended and is still there.
    #[cold]
    #[inline(never)]
    fn learn_ended(
        &mut self,
        slot: usize,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        self.take_out(slot, &mut |_| {});
        self.insert_absent(key, value, now, evicted)
    }

    /// Takes out an entry that has ended.
    fn take_out(&mut self, slot: usize, gone: &mut dyn FnMut(&[u64])) {
        gone(self.current.slots.value(slot));
        self.leave_item(slot);
        self.current.vacate(slot);
        self.statistics.expired += 1;
    }

    /// A learn of a key that the current generation does not hold.
    #[inline(never)]
    fn insert(&mut self, key: &[u64], value: &[u64], now: u64, evicted: &mut dyn FnMut(&[u64])) -> Learned {
        assert_eq!(value.len(), self.current.slots.value_words(), "a value has the words its table declares");
        if !self.older.is_empty() && self.fetch_older(key).is_some() {
            return self.learn_inline(key, value, now, self.marks, evicted);
        }
        self.insert_absent(key, value, now, evicted)
    }

    /// A learn of a key that no generation holds.
    #[inline]
    fn insert_absent(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        self.keep_order();
        self.free_up(1, &mut |_| {});
        let mut place = self.current.hash_and_slot(key);
        let (fits, full) = (self.current.stays_short(place.1), self.len() >= self.spec.capacity);
        if !fits && !self.rehash() || full && !self.make_room(evicted) {
            self.statistics.refused += 1;
            return Learned::Refused;
        }
        if !fits || full {
            // Another seed has other places, and evicting may have shifted entries.
            place = self.current.hash_and_slot(key);
        }
        let slot = place.1;
        self.near = slot;
        self.sequence += 1;
        self.current.put(place, key, value, self.sequence, now, self.marks);
        self.current.enqueue(slot);
        self.hold_item(slot);
        self.next_deadline = self.bound();
        self.statistics.inserts += 1;
        Learned::New
    }

    /// Takes out the entry used longest ago, and the next one if the table still holds its capacity or more,
    /// as after it was made smaller; false if there was none.
    fn make_room(&mut self, evicted: &mut dyn FnMut(&[u64])) -> bool {
        let made = self.evict(evicted);
        if made && self.len() >= self.spec.capacity {
            self.evict(evicted);
        }
        made
    }

    /// Takes out the entry used longest ago; false if the table refuses instead or all entries are permanent.
    fn evict(&mut self, evicted: &mut dyn FnMut(&[u64])) -> bool {
        let oldest =
            self.generations().filter_map(|one| one.oldest().map(|(stamp, slot)| (stamp, slot, one)));
        let Some((_, slot, generation)) = oldest.min_by_key(|(stamp, ..)| *stamp) else { return false };
        evicted(generation.slots.key(slot));
        generation.vacate(slot);
        self.statistics.evictions += 1;
        true
    }

    /// Takes out the entry that holds an item if it has ended. If not, as may be where the table took the
    /// place of one with other times, its deadline is noted. Says whether it has.
    fn take_out_holder(&mut self, item: usize, gone: &mut dyn FnMut(&[u64])) -> bool {
        let mut key = [0; MAX_KEY_WORDS];
        let key = &mut key[..self.spec.key_words];
        let Some(items) = &mut self.items else { return true };
        key.copy_from_slice(items.key(item));
        items.forget(item);
        self.fetch_older(key);
        let Ok(slot) = self.current.probe(key) else { return false };
        let ended = self.has_ended(slot);
        if ended {
            self.take_out(slot, gone);
        } else {
            self.hold_item(slot);
        }
        ended
    }

    /// Deadlines of entries by their items may come sooner, by so much.
    pub(super) fn hasten_items(&mut self, by: u64) {
        self.items.iter_mut().for_each(|items| items.hasten(by));
    }

    /// Takes out entries that have ended, `most` of them in so many steps; how many there were.
    fn take_out_ended(&mut self, most: usize, steps: &mut u32, gone: &mut dyn FnMut(&[u64])) -> u64 {
        let horizon = self.horizon;
        let mut expired = 0;
        let older = self.older.iter_mut().map(Older::generation);
        for generation in std::iter::once(&mut self.current).chain(older) {
            while expired < most
                && let Some(slot) = generation.due(horizon, steps)
            {
                gone(generation.slots.value(slot));
                self.items.iter_mut().for_each(|items| items.leave(generation.slots.value(slot)));
                generation.vacate(slot);
                expired += 1;
            }
        }
        self.next_deadline = self.bound();
        self.statistics.expired += expired as u64;
        expired as u64
    }

    /// Takes out entries that have ended until so many find room, if that is possible.
    #[inline]
    fn free_up(&mut self, wanted: usize, gone: &mut dyn FnMut(&[u64])) {
        let most = (self.len() + wanted).saturating_sub(self.spec.capacity);
        if most > 0 && self.is_behind() {
            self.take_out_ended(most, &mut { u32::MAX }, gone);
        }
    }

    /// Those of all entries, by ascending key; nothing is copied of the others.
    fn list(&self, those: impl Fn(&Generation<K>, usize) -> bool) -> Vec<ExactEntry> {
        let all = std::iter::once(&self.current).chain(self.older.iter().map(Older::held));
        let mut entries: Vec<ExactEntry> = all
            .flat_map(|generation| {
                let held = generation.held(self.horizon);
                held.filter(|slot| those(generation, *slot)).map(|slot| generation.entry(slot))
            })
            .collect();
        entries.sort_unstable();
        entries
    }

    /// A new key is to come: where the table is nearly full by then, its orders are put right, a few leaves
    /// for each new key, and kept so. That is done when there is no room left, since the keys that fill the
    /// last eighth are enough for all leaves: there are at most four slots an entry of the capacity. Only a
    /// table that was made smaller may still have some left.
    fn keep_order(&mut self) {
        let (held, capacity) = (self.len(), self.spec.capacity);
        if held >= capacity - capacity / 8 {
            self.in_order = self.current.has_orders();
            self.watched |= self.in_order;
            self.generations().for_each(|one| one.go_on_in_order(LEAVES_AT_ONCE));
        } else if self.in_order && held < capacity - capacity / 4 {
            self.in_order = false;
            self.watched = self.items.is_some();
            self.generations().for_each(Generation::leave_order);
        }
    }

    /// A time before which no entry of any generation expires.
    pub(super) fn bound(&self) -> u64 {
        self.older.iter().map(Older::bound).fold(self.current.bound(), u64::min)
    }

    pub(super) fn generations(&mut self) -> impl Iterator<Item = &mut Generation<K>> {
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
            Ok(slot) if self.has_ended(slot) => None,
            Ok(slot) => Some(self.current.slots.value(slot)),
            Err(_) => self.older.iter().find_map(|older| older.peek(key, self.horizon)),
        }
    }

    #[inline]
    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        self.learn_inline(key, value, now, self.marks, &mut |_| {})
    }

    fn learn_telling(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        self.learn_inline(key, value, now, self.marks, evicted)
    }

    fn end_by(&mut self, key: &[u64], deadline: u64) {
        self.fetch_older(key);
        let (Some(learned), Ok(slot)) = (self.spec.learned_to_end(deadline), self.current.probe(key)) else {
            return;
        };
        if self.has_ended(slot) || self.current.is_permanent(slot) {
            return;
        }
        let slots = &mut self.current.slots;
        if self.spec.keeps_lifetimes() {
            let left = deadline.saturating_sub(slots.learned(slot)).max(1);
            slots.set_lifetime(slot, slots.lifetime(slot).min(left));
        } else {
            slots.set_learned(slot, slots.learned(slot).min(learned));
        }
        self.current.put_right(leaf_of(slot));
        self.hold_item(slot);
        self.next_deadline = self.bound();
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        assert_eq!(value.len(), self.current.slots.value_words(), "a value has the words its table declares");
        self.keep_order();
        self.make_way(Some(key), 1, &mut |_| {});
        match self.current.probe(key) {
            Ok(slot) => {
                self.leave_item(slot);
                self.current.slots.value_mut(slot).copy_from_slice(value);
                self.current.slots.set_stamp(slot, PERMANENT | self.current.slots.stamp(slot));
                self.current.put_right(leaf_of(slot));
            }
            Err(_) if self.len() >= self.spec.capacity || !self.gives_way(key) => return false,
            Err(_) => {
                let place = self.current.hash_and_slot(key);
                self.current.put(place, key, value, PERMANENT, self.clock, self.marks);
            }
        }
        true
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        self.fetch_older(key);
        let Ok(slot) = self.locate(key) else { return false };
        if self.has_ended(slot) {
            return false;
        }
        self.leave_item(slot);
        self.current.vacate(slot);
        self.statistics.removed += 1;
        true
    }

    fn expire_key(&mut self, key: &[u64]) -> bool {
        let ended = self.remove(key);
        self.statistics.removed -= u64::from(ended);
        self.statistics.expired += u64::from(ended);
        ended
    }

    fn deadline_of(&mut self, key: &[u64]) -> Option<u64> {
        self.fetch_older(key);
        let slot = self.current.probe(key).ok().filter(|slot| !self.has_ended(*slot))?;
        Some(self.current.deadline(slot).unwrap_or(u64::MAX))
    }

    fn age_of(&self, key: &[u64]) -> Option<u64> {
        let mut all = std::iter::once(&self.current).chain(self.older.iter().map(Older::held));
        let (held, slot) = all.find_map(|one| Some((one, one.probe(key).ok()?)))?;
        let stays = held.is_permanent(slot) || held.has_ended(slot, self.horizon);
        (!stays).then(|| self.spec.end_by_age(held.slots.learned(slot), held.slots.lifetime(slot)))
    }

    fn expire(&mut self, now: u64) -> u64 {
        let left = self.left_to_expire() as u64;
        self.horizon = self.horizon.max(self.advance(now));
        let expired = self.take_out_ended(usize::MAX, &mut { u32::MAX }, &mut |_| {});
        self.move_some();
        expired - left
    }

    fn expire_some(&mut self, now: u64, steps: &mut u32, gone: &mut dyn FnMut(&[u64])) {
        self.horizon = self.horizon.max(self.advance(now));
        self.take_out_ended(usize::MAX, steps, gone);
        self.move_some();
    }

    fn make_way(&mut self, key: Option<&[u64]>, wanted: usize, gone: &mut dyn FnMut(&[u64])) -> usize {
        if let Some(key) = key {
            self.fetch_older(key);
            if let Ok(slot) = self.current.probe(key)
                && self.has_ended(slot)
            {
                self.take_out(slot, gone);
            }
        }
        self.free_up(wanted, gone);
        // Either there is room for all now, or nothing that has ended is left: it need not be looked for.
        self.spec.capacity.saturating_sub(self.len()).min(wanted)
    }

    fn number_items(&mut self, items: u32, number: Numbering) {
        let numbered = items <= MOST_NUMBERED;
        let made = numbered.then(|| Items::new(items, self.spec.key_words, number).ok());
        self.items = made.flatten();
        self.watched = self.in_order || self.items.is_some();
    }

    fn free_first(&mut self, from: u32, gone: &mut dyn FnMut(&[u64])) {
        if !self.is_behind() {
            return;
        }
        match self.items.as_ref().filter(|items| items.are_known()) {
            None => drop(self.take_out_ended(usize::MAX, &mut { u32::MAX }, gone)),
            Some(_) => {
                while let Some(item) =
                    self.items.as_ref().and_then(|items| items.first_ended(from, self.horizon))
                    && !self.take_out_holder(item, gone)
                {}
            }
        }
    }

    fn left_to_expire(&self) -> usize {
        if !self.is_behind() {
            return 0;
        }
        let older = self.older.iter().map(|older| older.ended(self.horizon)).sum::<usize>();
        self.current.ended(self.horizon) + older
    }

    fn version(&self) -> [u64; 5] {
        let ExactStatistics { inserts, moves, evictions, expired, .. } = self.statistics;
        let held = if self.is_behind() { self.horizon | 1 << 63 } else { self.len() as u64 };
        [held, inserts, moves, evictions, expired]
    }

    #[inline]
    fn next_deadline(&self) -> u64 {
        self.next_deadline
    }

    fn resize(&mut self, capacity: usize) -> Result<(), ExactSpecError> {
        self.resize_to(capacity)
    }

    fn touch(&mut self) {
        self.current.slots.touch();
        self.current.tags.touch();
    }

    #[inline]
    fn catch_up(&mut self) -> bool {
        self.move_some() > 0
    }

    fn prepare_for(&mut self, old: &Self) -> bool {
        self.prepare(old)
    }

    fn inherit(&mut self, old: &mut Self) {
        self.take_entries(old);
    }

    fn statistics(&self) -> ExactStatistics {
        let ended = self.left_to_expire();
        let expired = self.statistics.expired + ended as u64;
        ExactStatistics { entries: (self.len() - ended) as u64, expired, ..self.statistics }
    }

    fn running_statistics(&self) -> ExactStatistics {
        ExactStatistics { entries: self.len() as u64, ..self.statistics }
    }

    fn entries(&self) -> Vec<ExactEntry> {
        self.list(|_, _| true)
    }

    fn learned(&self) -> Vec<ExactEntry> {
        self.list(|generation, slot| !generation.is_permanent(slot))
    }

    fn entries_part(&self, from: usize, most: usize) -> (Vec<ExactEntry>, Option<usize>) {
        let (mut entries, mut left) = (Vec::new(), most.saturating_mul(PASSED));
        // Places are the slots of all generations, one after the other.
        let (mut begin, mut at) = (0, from);
        for generation in std::iter::once(&self.current).chain(self.older.iter().map(Older::held)) {
            let size = generation.slots.mask() + 1;
            if at < begin + size {
                let first = at - begin;
                let end = size.min(first.saturating_add(left));
                let held = generation.tags.taken(first..end);
                for slot in held.filter(|slot| !generation.has_ended(*slot, self.horizon)) {
                    if entries.len() == most {
                        return (entries, Some(begin + slot));
                    }
                    entries.push(generation.entry(slot));
                }
                (left, at) = (left - (end - first), begin + end);
                if end < size {
                    return (entries, Some(at));
                }
            }
            begin += size;
        }
        (entries, None)
    }
}
