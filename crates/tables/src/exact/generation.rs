//! A generation: the entries of a table in one array of slots, with their orders. A table that changes its
//! size replaces its generation.
//!
//! The idea: a lookup touches one slot, in one cache line for narrow keys, and a hit writes nothing but that
//! slot's number and time. What must be known across entries (who expires first, who was used longest ago) is
//! kept as lower bounds in two trees that are put right only where somebody asks, so hits and confirming
//! learns do not pay for order. They do in a table that is nearly full, where all bounds are kept right, so
//! that a new key finds at once what makes room for it. Slots number twice the capacity or more and deletion
//! shifts entries back, so probes stay short without tombstones. Every search ends at the first empty slot,
//! and no key is let in that makes the way there longer than [`LONGEST_RUN`].

use super::hash::Hash;
use super::memory::Lines;
use super::order::{Order, leaf_of, leaves, slots_of};
use super::slots::{NoMemory, PERMANENT, SlotLayout, Slots};
use super::tags::{Tags, WINDOW};
use super::{Evict, ExactEntry, ExactSpec, LONGEST_RUN, MARK_AGE, MARK_IDLE};

/// Entries with keys of `K` words; `K` = 0 leaves the number to the spec.
pub(super) struct Generation<const K: usize> {
    pub(super) slots: Slots<K>,
    pub(super) tags: Tags,
    hash: Hash,
    /// The rules of the table; its capacity may be another by now.
    spec: ExactSpec,
    entries: usize,
    deadlines: Option<Order>,
    recency: Option<Order>,
    /// The leaves before this one have been put right since the table was nearly full.
    in_order: usize,
}

/// What the slots of a table hold.
fn layout(spec: &ExactSpec) -> SlotLayout {
    SlotLayout {
        key_words: spec.key_words,
        value_words: spec.value_words,
        has_learned: spec.age.is_some(),
        has_lifetime: spec.keeps_lifetimes(),
        has_renewed: spec.idle.is_some(),
    }
}

impl<const K: usize> Generation<K> {
    /// Room for `room` entries.
    pub(super) fn new(spec: &ExactSpec, room: usize) -> Result<Self, NoMemory> {
        let (has_age, has_idle) = (spec.age.is_some(), spec.idle.is_some());
        let slots = Slots::new(room * 2, layout(spec))?;
        let count = slots.mask() + 1;
        let order = |kept: bool| kept.then(|| Order::new(count)).transpose();
        Ok(Generation {
            tags: Tags::new(count)?,
            slots,
            hash: Hash::new(spec.seed),
            spec: *spec,
            entries: 0,
            deadlines: order(has_age || has_idle)?,
            recency: order(spec.evict == Evict::Lru)?,
            in_order: 0,
        })
    }

    /// Bytes that [`Generation::new`] allocates.
    pub(super) fn allocated(spec: &ExactSpec, room: u64) -> u64 {
        let (has_age, has_idle) = (spec.age.is_some(), spec.idle.is_some());
        let slots = room.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
        let slots = slots.max(WINDOW as u64);
        let words = layout(spec).words() as u64;
        let orders = u64::from(has_age || has_idle) + u64::from(spec.evict == Evict::Lru);
        Lines::allocated(slots.saturating_mul(words).div_ceil(8))
            .saturating_add(Lines::allocated(slots.saturating_add(WINDOW as u64 - 1).div_ceil(64)))
            .saturating_add(Order::allocated(slots).saturating_mul(orders))
    }

    /// Entries end by the times of another table, sooner than they were to by so much at most.
    pub(super) fn hasten(&mut self, by: u64, spec: &ExactSpec) {
        self.spec = *spec;
        self.deadlines.iter_mut().for_each(|deadlines| deadlines.hasten(by));
        self.leave_order();
    }

    /// By how much in all.
    pub(super) fn hastened(&self) -> u64 {
        self.deadlines.as_ref().map_or(0, Order::hastened)
    }

    /// Entries held.
    pub(super) fn len(&self) -> usize {
        self.entries
    }

    /// Bytes held, without what allocators add.
    pub(super) fn bytes(&self) -> usize {
        let orders = [&self.deadlines, &self.recency];
        let orders: usize = orders.into_iter().flatten().map(Order::bytes).sum();
        self.slots.bytes() + self.tags.bytes() + orders
    }

    /// The hash of a key and the slot that it belongs in if nothing is in its way.
    #[inline(always)]
    pub(super) fn hash_and_home(&self, key: &[u64]) -> (u64, usize) {
        let hash = self.hash.of(&key[..self.slots.key_words()]);
        (hash, hash as usize & self.slots.mask())
    }

    /// The slot of `key`, or the empty slot where it belongs.
    #[inline(always)]
    pub(super) fn probe(&self, key: &[u64]) -> Result<usize, usize> {
        assert_eq!(key.len(), self.slots.key_words(), "a key has the words its table declares");
        self.probe_from(self.hash_and_home(key).1, key)
    }

    /// The hash of `key`, and its slot or the empty one where it belongs.
    #[inline(always)]
    pub(super) fn hash_and_slot(&self, key: &[u64]) -> (u64, usize) {
        let (hash, home) = self.hash_and_home(key);
        let (Ok(slot) | Err(slot)) = self.probe_from(home, key);
        (hash, slot)
    }

    #[inline(always)]
    fn probe_from(&self, home: usize, key: &[u64]) -> Result<usize, usize> {
        let mut slot = home;
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

    /// Whether `key` lies in this slot, which need not exist: its number is taken modulo their number.
    #[inline(always)]
    pub(super) fn holds(&self, slot: usize, key: &[u64]) -> bool {
        same(self.slots.key(slot), key) && self.slots.stamp(slot) != 0
    }

    /// Whether a key in this empty slot leaves all searches short.
    pub(super) fn stays_short(&self, slot: usize) -> bool {
        let (behind, before) = self.tags.taken_around(slot, LONGEST_RUN);
        before + 1 + behind <= LONGEST_RUN
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & self.slots.mask()
    }

    /// Fills an empty slot, given after the hash of the key, without telling the orders.
    #[inline]
    pub(super) fn put(
        &mut self,
        (hash, slot): (u64, usize),
        key: &[u64],
        value: &[u64],
        stamp: u64,
        now: u64,
        marks: u8,
    ) {
        self.slots.set_entry(slot, key, value);
        self.slots.set_stamp(slot, stamp);
        if marks & MARK_AGE != 0 {
            self.slots.set_learned(slot, now);
        }
        if marks & MARK_IDLE != 0 {
            self.slots.set_renewed(slot, now);
        }
        self.tags.set(slot, Tags::of(hash));
        self.entries += 1;
    }

    /// Tells the orders of the entry in a slot that was empty.
    #[inline]
    pub(super) fn enqueue(&mut self, slot: usize) {
        let (deadline, recent) = self.measures(slot);
        if let (Some(deadlines), Some(deadline)) = (&mut self.deadlines, deadline) {
            deadlines.lower(leaf_of(slot), deadline);
        }
        if let (Some(recency), Some(recent)) = (&mut self.recency, recent) {
            recency.lower(leaf_of(slot), recent);
        }
    }

    /// Takes over an entry of another generation; gives its slot here.
    pub(super) fn adopt(&mut self, other: &mut Self, from: usize) -> usize {
        let key = other.slots.key(from);
        let hash = self.hash_and_home(key).0;
        let (Ok(slot) | Err(slot)) = self.probe(key);
        self.slots.copy_from(&other.slots, from, slot);
        self.tags.set(slot, Tags::of(hash));
        self.entries += 1;
        self.enqueue(slot);
        other.vacate(from);
        slot
    }

    /// Whether it keeps any order.
    pub(super) fn has_orders(&self) -> bool {
        self.deadlines.is_some() || self.recency.is_some()
    }

    /// What orders the entry in a taken slot: by deadline, and by recency.
    #[inline]
    pub(super) fn measures(&self, slot: usize) -> (Option<u64>, Option<u64>) {
        (self.deadline(slot), self.recent(slot))
    }

    /// The entry in a slot had these measures and has others now: puts its leaf right, if it was right
    /// before.
    pub(super) fn raised(&mut self, slot: usize, before: (Option<u64>, Option<u64>)) {
        let (leaf, now) = (leaf_of(slot), self.measures(slot));
        let was_first = |order: &Option<Order>, before: Option<u64>, now: Option<u64>| {
            let bound = order.as_ref().map(|order| order.bound_of(leaf));
            before != now && bound.zip(before).is_some_and(|(bound, before)| bound >= before)
        };
        if was_first(&self.deadlines, before.0, now.0) {
            self.put_deadline_right(leaf);
        }
        if was_first(&self.recency, before.1, now.1) {
            self.put_recency_right(leaf);
        }
    }

    /// Makes the bounds of a leaf right.
    pub(super) fn put_right(&mut self, leaf: usize) {
        self.put_deadline_right(leaf);
        self.put_recency_right(leaf);
    }

    fn put_deadline_right(&mut self, leaf: usize) {
        if self.deadlines.is_some() {
            let least = self.least(leaf, |slot| self.deadline(slot));
            self.deadlines.iter_mut().for_each(|order| order.set(leaf, least.map(|(deadline, _)| deadline)));
        }
    }

    fn put_recency_right(&mut self, leaf: usize) {
        if self.recency.is_some() {
            let least = self.least(leaf, |slot| self.recent(slot));
            self.recency.iter_mut().for_each(|order| order.set(leaf, least.map(|(recent, _)| recent)));
        }
    }

    /// Makes the bounds of so many more leaves right, until all are.
    pub(super) fn go_on_in_order(&mut self, most: usize) {
        let end = leaves(self.slots.mask() + 1).min(self.in_order + most);
        (self.in_order..end).for_each(|leaf| self.put_right(leaf));
        self.in_order = end;
    }

    /// From now on nobody who changes entries puts bounds right.
    pub(super) fn leave_order(&mut self) {
        self.in_order = 0;
    }

    /// The smallest measure among the entries of a leaf, with the slot it was found in.
    fn least(&self, leaf: usize, measure: impl Fn(usize) -> Option<u64>) -> Option<(u64, usize)> {
        let mut least = (u64::MAX, 0);
        for slot in slots_of(leaf, self.slots.mask() + 1) {
            if self.tags.is_taken(slot)
                && let Some(measure) = measure(slot)
                && measure < least.0
            {
                least = (measure, slot);
            }
        }
        Some(least).filter(|(measure, _)| *measure < u64::MAX)
    }

    /// The entry used longest ago that is not permanent: its stamp and slot.
    pub(super) fn oldest(&mut self) -> Option<(u64, usize)> {
        let mut order = self.recency.take()?;
        let least = |leaf| self.least(leaf, |slot| self.recent(slot));
        let slot = order.first(u64::MAX, &mut { u32::MAX }, least);
        self.recency = Some(order);
        slot.map(|slot| (self.slots.stamp(slot), slot))
    }

    /// The slot of an entry whose deadline is at or before `now`, as far as so many steps lead.
    pub(super) fn due(&mut self, now: u64, steps: &mut u32) -> Option<usize> {
        let mut order = self.deadlines.take()?;
        let slot = order.first(now, steps, |leaf| self.least(leaf, |slot| self.deadline(slot)));
        self.deadlines = Some(order);
        slot
    }

    /// A time before which nothing expires.
    pub(super) fn bound(&self) -> u64 {
        self.deadlines.as_ref().map_or(u64::MAX, Order::bound)
    }

    /// Empties a slot and shifts back the entries that probed past it.
    #[inline]
    pub(super) fn vacate(&mut self, slot: usize) {
        let mask = self.slots.mask();
        let (mut hole, mut next) = (slot, self.after(slot));
        while self.slots.stamp(next) != 0 {
            let home = self.hash_and_home(self.slots.key(next)).1;
            let (from_home, from_hole) = (next.wrapping_sub(home) & mask, next.wrapping_sub(hole) & mask);
            if from_home >= from_hole {
                self.slots.copy(next, hole);
                self.tags.copy(next, hole);
                hole = next;
            }
            next = self.after(next);
        }
        self.slots.set_stamp(hole, 0);
        self.tags.set(hole, 0);
        self.entries -= 1;
        if self.has_orders() {
            let (mut leaf, last) = (leaf_of(slot), leaf_of(hole));
            self.put_right(leaf);
            while leaf != last {
                leaf = if leaf == leaf_of(mask) { 0 } else { leaf + 1 };
                self.put_right(leaf);
            }
        }
    }

    /// Whether the entry in a taken slot ended at or before `horizon`.
    #[inline]
    pub(super) fn has_ended(&self, slot: usize, horizon: u64) -> bool {
        self.deadline(slot).is_some_and(|deadline| deadline <= horizon)
    }

    /// When the entry in a taken slot expires; `None` for never.
    #[inline]
    pub(super) fn deadline(&self, slot: usize) -> Option<u64> {
        #[cfg(test)]
        LOOKED.with(|looked| looked.set(looked.get() + 1));
        if self.slots.stamp(slot) & PERMANENT != 0 {
            return None;
        }
        self.spec.deadline(self.slots.learned(slot), self.slots.lifetime(slot), self.slots.renewed(slot))
    }

    /// What orders the entry in a taken slot by recency; `None` if it is permanent.
    #[inline]
    fn recent(&self, slot: usize) -> Option<u64> {
        #[cfg(test)]
        LOOKED.with(|looked| looked.set(looked.get() + 1));
        Some(self.slots.stamp(slot)).filter(|stamp| stamp & PERMANENT == 0)
    }

    /// How many entries have.
    pub(super) fn ended(&self, horizon: u64) -> usize {
        let taken = self.tags.taken(0..self.slots.mask() + 1);
        taken.filter(|slot| self.has_ended(*slot, horizon)).count()
    }

    /// The slots of all entries that have not ended at `horizon`.
    pub(super) fn held(&self, horizon: u64) -> impl Iterator<Item = usize> {
        let taken = self.tags.taken(0..self.slots.mask() + 1);
        taken.filter(move |slot| !self.has_ended(*slot, horizon))
    }

    /// Whether the entry in a taken slot is permanent.
    pub(super) fn is_permanent(&self, slot: usize) -> bool {
        self.slots.stamp(slot) & PERMANENT != 0
    }

    /// What lies in a taken slot.
    pub(super) fn entry(&self, slot: usize) -> ExactEntry {
        ExactEntry {
            key: self.slots.key(slot).to_vec(),
            value: self.slots.value(slot).to_vec(),
            permanent: self.is_permanent(slot),
            deadline: self.deadline(slot),
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often a test's thread has looked when an entry expires, or when it was used.
    pub(super) static LOOKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Whether the words are the same; a loop, since a call to compare so few bytes would cost more than the
/// comparison.
#[inline(always)]
pub(super) fn same(one: &[u64], other: &[u64]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let ([a], [b]) = (one, other) {
        return a == b;
    }
    one.iter().zip(other).all(|(a, b)| a == b)
}
