//! The entries of a table in one array of slots, with their orders: what is replaced when a table changes its size.
//!
//! The idea: a lookup touches one slot, in one cache line for narrow keys, and a hit writes nothing but that slot's number
//! and time. What must be known across entries (who expires first, who was used longest ago) is kept as lower bounds in
//! two heaps that are put right only when something reaches the top, so hits and confirming learns never pay for order.
//! Slots number twice the capacity or more and deletion shifts entries back, so probes stay short without tombstones. Every
//! search ends at the first empty slot, and no key is let in that makes the way there longer than [`LONGEST_RUN`].

use super::hash::Hash;
use super::memory::Lines;
use super::order::Order;
use super::slots::{NoMemory, PERMANENT, Slots};
use super::tags::{Tags, WINDOW};
use super::{Entry, Evict, ExactSpec, LONGEST_RUN, MARK_AGE, MARK_IDLE};

/// Entries with keys of `K` words; `K` = 0 leaves the number to the spec.
pub(super) struct Generation<const K: usize> {
    pub(super) slots: Slots<K>,
    pub(super) tags: Tags,
    hash: Hash,
    entries: usize,
    deadlines: Option<Order>,
    /// Oldest first; empty until the table is full for the first time.
    recency: Option<Order>,
}

impl<const K: usize> Generation<K> {
    /// Room for `room` entries, `arriving` of which may come from another generation.
    pub(super) fn new(spec: &ExactSpec, room: usize, arriving: usize) -> Result<Self, NoMemory> {
        let (has_age, has_idle) = (spec.age.is_some(), spec.idle.is_some());
        let slots = Slots::new(room * 2, spec.key_words, spec.value_words, has_age, has_idle)?;
        let homes = slots.mask() + 1;
        let order = |kept: bool| kept.then(|| Order::new(homes, arriving)).transpose();
        Ok(Generation {
            tags: Tags::new(homes)?,
            slots,
            hash: Hash::new(spec.seed),
            entries: 0,
            deadlines: order(has_age || has_idle)?,
            recency: order(spec.evict == Evict::Lru)?,
        })
    }

    /// Bytes that [`Generation::new`] allocates where nothing arrives.
    pub(super) fn allocated(spec: &ExactSpec, room: u64) -> u64 {
        let (has_age, has_idle) = (spec.age.is_some(), spec.idle.is_some());
        let slots = room.saturating_mul(2).checked_next_power_of_two().unwrap_or(u64::MAX);
        let slots = slots.max(WINDOW as u64);
        let words = 1 + spec.key_words + spec.value_words + usize::from(has_age) + usize::from(has_idle);
        let words = words.next_power_of_two() as u64;
        let orders = u64::from(has_age || has_idle) + u64::from(spec.evict == Evict::Lru);
        Lines::allocated(slots.saturating_mul(words).div_ceil(8))
            .saturating_add(Lines::allocated(slots.saturating_add(WINDOW as u64 - 1).div_ceil(64)))
            .saturating_add(Order::allocated(slots).saturating_mul(orders))
    }

    /// Makes room in the orders of a generation without entries for so many that will come from another one.
    pub(super) fn expect(&mut self, arriving: usize) -> Result<(), NoMemory> {
        [&mut self.deadlines, &mut self.recency]
            .into_iter()
            .flatten()
            .try_for_each(|order| order.expect(arriving))
    }

    /// Entries may end sooner than they were to, by so much at most.
    pub(super) fn hasten(&mut self, by: u64) {
        self.deadlines.iter_mut().for_each(|deadlines| deadlines.hasten(by));
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
        let mut slot = self.hash_and_home(key).1;
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

    /// Whether a key in this empty slot leaves all searches short.
    pub(super) fn stays_short(&self, slot: usize) -> bool {
        let (behind, before) = self.tags.taken_around(slot, LONGEST_RUN);
        before + 1 + behind <= LONGEST_RUN
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        (slot + 1) & self.slots.mask()
    }

    /// Fills an empty slot, without telling the orders; gives the key's home slot.
    #[inline]
    pub(super) fn put(
        &mut self,
        slot: usize,
        key: &[u64],
        value: &[u64],
        stamp: u64,
        now: u64,
        marks: u8,
    ) -> usize {
        self.slots.set_entry(slot, key, value);
        self.slots.set_stamp(slot, stamp);
        if marks & MARK_AGE != 0 {
            self.slots.set_learned(slot, now);
        }
        if marks & MARK_IDLE != 0 {
            self.slots.set_renewed(slot, now);
        }
        let (hash, home) = self.hash_and_home(key);
        self.tags.set(slot, Tags::of(hash));
        self.entries += 1;
        home
    }

    /// Tells the orders of a new entry at `home`, learned now. The recency order is kept only if the table has been full before.
    #[inline]
    pub(super) fn enqueue(&mut self, home: usize, deadline: Option<u64>, recent: Option<u64>) {
        if let (Some(deadlines), Some(deadline)) = (&mut self.deadlines, deadline) {
            // Time never goes back, so no entry's deadline lies beyond that of one learned now.
            deadlines.add(home, deadline);
        }
        if let (Some(recency), Some(recent)) = (&mut self.recency, recent) {
            recency.add(home, recent);
        }
    }

    /// Takes over an entry of another generation; gives its slot here.
    pub(super) fn adopt(&mut self, other: &mut Self, from: usize, spec: &ExactSpec, is_full: bool) -> usize {
        let key = other.slots.key(from);
        let (hash, home) = self.hash_and_home(key);
        let (Ok(slot) | Err(slot)) = self.probe(key);
        self.slots.copy_from(&other.slots, from, slot);
        self.tags.set(slot, Tags::of(hash));
        self.entries += 1;
        if let (Some(deadlines), Some(deadline)) = (&mut self.deadlines, deadline(&self.slots, spec, slot)) {
            deadlines.admit(home, deadline);
        }
        let stamp = self.slots.stamp(slot);
        if let Some(recency) = self.recency.as_mut().filter(|_| is_full && stamp & PERMANENT == 0) {
            recency.admit(home, stamp);
        }
        other.vacate(from);
        slot
    }

    /// Puts all entries in the order of recency; for the moment when the table is full for the first time.
    pub(super) fn order_by_recency(&mut self) {
        let Some(recency) = &mut self.recency else { return };
        let (slots, hash) = (&self.slots, &self.hash);
        for slot in 0..=slots.mask() {
            if slots.stamp(slot) == 0 {
                continue;
            }
            let home = hash.of(slots.key(slot)) as usize & slots.mask();
            if !recency.is_queued(home)
                && let Some((stamp, _)) = least(slots, hash, home, |slot| recent(slots, slot))
            {
                recency.add(home, stamp);
            }
        }
    }

    /// The entry used longest ago that is not permanent: its stamp and slot.
    pub(super) fn oldest(&mut self) -> Option<(u64, usize)> {
        let (slots, hash) = (&self.slots, &self.hash);
        let first = |home| least(slots, hash, home, |slot| recent(slots, slot));
        let slot = self.recency.as_mut()?.first(u64::MAX, &mut { u32::MAX }, first)?;
        Some((self.slots.stamp(slot), slot))
    }

    /// The slot of an entry whose deadline is at or before `now`, as far as so many steps lead.
    pub(super) fn due(&mut self, spec: &ExactSpec, now: u64, steps: &mut u32) -> Option<usize> {
        let (slots, hash) = (&self.slots, &self.hash);
        let first = |home| least(slots, hash, home, |slot| deadline(slots, spec, slot));
        self.deadlines.as_mut()?.first(now, steps, first)
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
    }

    /// Whether the entry in a taken slot ended at or before `horizon`.
    #[inline]
    pub(super) fn has_ended(&self, slot: usize, spec: &ExactSpec, horizon: u64) -> bool {
        deadline(&self.slots, spec, slot).is_some_and(|deadline| deadline <= horizon)
    }

    /// How many entries have.
    pub(super) fn ended(&self, spec: &ExactSpec, horizon: u64) -> usize {
        let taken = self.tags.taken(0..self.slots.mask() + 1);
        taken.filter(|slot| self.has_ended(*slot, spec, horizon)).count()
    }

    /// The slots of all entries that have not ended at `horizon`.
    pub(super) fn held(&self, spec: &ExactSpec, horizon: u64) -> impl Iterator<Item = usize> {
        let taken = self.tags.taken(0..self.slots.mask() + 1);
        taken.filter(move |slot| !self.has_ended(*slot, spec, horizon))
    }

    /// Whether the entry in a taken slot is permanent.
    pub(super) fn is_permanent(&self, slot: usize) -> bool {
        self.slots.stamp(slot) & PERMANENT != 0
    }

    /// What lies in a taken slot.
    pub(super) fn entry(&self, spec: &ExactSpec, slot: usize) -> Entry {
        Entry {
            key: self.slots.key(slot).to_vec(),
            value: self.slots.value(slot).to_vec(),
            permanent: self.is_permanent(slot),
            deadline: deadline(&self.slots, spec, slot),
        }
    }
}

/// What orders an entry by recency; `None` if it is permanent.
#[inline]
fn recent<const K: usize>(slots: &Slots<K>, slot: usize) -> Option<u64> {
    Some(slots.stamp(slot)).filter(|stamp| stamp & PERMANENT == 0)
}

#[cfg(test)]
thread_local! {
    /// How often a test's thread has looked when an entry expires.
    pub(super) static LOOKED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// When the entry in a taken slot expires; `None` for never.
#[inline]
fn deadline<const K: usize>(slots: &Slots<K>, spec: &ExactSpec, slot: usize) -> Option<u64> {
    #[cfg(test)]
    LOOKED.with(|looked| looked.set(looked.get() + 1));
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
pub(super) fn same(one: &[u64], other: &[u64]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    if let ([a], [b]) = (one, other) {
        return a == b;
    }
    one.iter().zip(other).all(|(a, b)| a == b)
}
