//! Incremental resizing: changes the capacity or hash function of a table in use, a few entries at a time.
//!
//! The idea: a resize makes an empty generation of the new size and sets the old one aside; nothing else
//! happens then. From there on an operation that does not find its key in the current generation looks for it
//! in the older ones, takes it over, and moves a few more entries, slot after slot; memory behind them is
//! given back as it empties. So the longest operation is as long as any other but for [`MOVED_AT_ONCE`]
//! moves, whatever the size. There are never more than [`MOST_OLDER`] older generations: a resize that would
//! need another one first empties the oldest. A new hash function is a resize to the same size, but one that
//! nobody asked for: it never empties anything at once. A table that takes the place of another with another
//! capacity or other times has that one's entries as an older generation, too.

use super::generation::Generation;
use super::hash::next_seed;
use super::slots::{NoMemory, Slots};
use super::table::HashTable;
use super::{ExactSpec, ExactSpecError, MAX_KEY_WORDS};

/// The most entries that one operation moves after a resize, besides the one it asks for.
pub const MOVED_AT_ONCE: usize = 8;
/// The most slots that one operation passes; at most half of the slots are taken.
const PASSED_AT_ONCE: usize = 4 * MOVED_AT_ONCE;
/// Times beyond it, 146 years, are not brought forward.
const LATEST: u64 = 1 << 62;
/// The most generations whose entries have not all moved.
pub(super) const MOST_OLDER: usize = 3;

/// A generation that is being emptied.
pub(super) struct Older<const K: usize> {
    generation: Generation<K>,
    /// All slots before this one are empty.
    next: usize,
}

impl<const K: usize> Older<K> {
    pub(super) fn generation(&mut self) -> &mut Generation<K> {
        &mut self.generation
    }

    pub(super) fn held(&self) -> &Generation<K> {
        &self.generation
    }

    pub(super) fn bound(&self) -> u64 {
        self.generation.bound()
    }

    pub(super) fn bytes(&self) -> usize {
        self.generation.bytes()
    }

    pub(super) fn peek(&self, key: &[u64], horizon: u64) -> Option<&[u64]> {
        let slot = self.generation.probe(key).ok()?;
        (!self.generation.has_ended(slot, horizon)).then(|| self.generation.slots.value(slot))
    }

    pub(super) fn ended(&self, horizon: u64) -> usize {
        self.generation.ended(horizon)
    }

    /// Whether nothing is left in it.
    fn is_done(&self) -> bool {
        self.generation.len() == 0
    }
}

impl<const K: usize> HashTable<K> {
    /// [`ExactTable::left_to_move`](super::ExactTable::left_to_move).
    pub fn left_to_move(&self) -> usize {
        self.older.iter().map(|older| older.generation.len()).sum()
    }

    /// [`ExactTable::move_some`](super::ExactTable::move_some).
    pub fn move_some(&mut self) -> usize {
        if self.older.is_empty() { 0 } else { self.pass(PASSED_AT_ONCE, MOVED_AT_ONCE) }
    }

    /// [`Exact::resize`](super::Exact::resize).
    pub(super) fn resize_to(&mut self, capacity: usize) -> Result<(), ExactSpecError> {
        let spec = ExactSpec { capacity, ..self.spec };
        spec.check()?;
        let held = self.len();
        let room = capacity.max(held);
        if Slots::<K>::number(room * 2) != self.current.slots.mask() + 1 {
            let made = Generation::new(&spec, room);
            let made = made.map_err(|NoMemory { bytes }| ExactSpecError::Memory { capacity, bytes })?;
            while self.older.len() >= MOST_OLDER {
                self.pass(usize::MAX, usize::MAX);
            }
            let generation = std::mem::replace(&mut self.current, made);
            if generation.len() > 0 {
                self.older.push(Older { generation, next: 0 });
            }
        }
        self.spec = spec;
        Ok(())
    }

    /// [`Exact::prepare_for`](super::Exact::prepare_for).
    pub(super) fn prepare(&mut self, old: &Self) -> bool {
        let (ours, theirs) = (&self.spec, &old.spec);
        // What has ended and has not been taken out would be there again.
        let revives = (ours.idle > theirs.idle || ours.age > theirs.age) && old.is_behind();
        let unordered = self.sooner(old) > 0 && !old.may_hasten(self.sooner(old));
        let fits = self.len() == 0 && self.older.is_empty() && old.len() <= ours.capacity;
        if ours.entry_shape() != theirs.entry_shape()
            || revives
            || unordered
            || !fits
            || old.older.len() >= MOST_OLDER
        {
            return false;
        }
        let small = ExactSpec { capacity: 0, ..self.spec };
        let Ok(generation) = Generation::new(&small, 0) else { return false };
        self.older.reserve(MOST_OLDER);
        self.older.push(Older { generation, next: 0 });
        true
    }

    /// By how much entries of another table end sooner here, at most.
    fn sooner(&self, old: &Self) -> u64 {
        let less = |ours: Option<u64>, theirs: Option<u64>| {
            theirs.zip(ours).map_or(0, |(theirs, ours)| theirs.max(1).saturating_sub(ours.max(1)))
        };
        less(self.spec.idle, old.spec.idle).max(less(self.spec.age, old.spec.age))
    }

    /// Whether all entries, but permanent ones, may end so much sooner and their deadlines stay in order:
    /// sums of times stay small, and none is without.
    fn may_hasten(&self, by: u64) -> bool {
        let last = self.deadline_now();
        let so_far = std::iter::once(&self.current).chain(self.older.iter().map(Older::held));
        let so_far = so_far.map(Generation::hastened).max().unwrap_or(0);
        last.is_some_and(|last| last < LATEST) && so_far.saturating_add(by) < LATEST
    }

    /// [`Exact::inherit`](super::Exact::inherit).
    pub(super) fn take_entries(&mut self, old: &mut Self) {
        let sooner = self.sooner(old);
        old.generations().for_each(|generation| generation.hasten(sooner, &self.spec));
        self.take_history(old);
        self.hasten_items(sooner);
        if let Some(mut last) = self.older.pop()
            && old.current.len() > 0
        {
            std::mem::swap(&mut last.generation, &mut old.current);
            self.older.append(&mut old.older);
            self.older.push(last);
        } else {
            self.older.append(&mut old.older);
        }
        old.spec.capacity = 0;
        self.next_deadline = self.bound();
    }

    /// Whether a key that is not there may come in and leave all searches short; goes on with the next seed
    /// where the present one gathers too many.
    pub(super) fn gives_way(&mut self, key: &[u64]) -> bool {
        let (Ok(slot) | Err(slot)) = self.current.probe(key);
        self.current.stays_short(slot) || self.rehash()
    }

    /// Goes on with the next seed; false where too many generations still move, or there is no memory.
    #[cold]
    pub(super) fn rehash(&mut self) -> bool {
        let held = self.len();
        let spec = ExactSpec { seed: next_seed(self.spec.seed), ..self.spec };
        if self.older.len() >= MOST_OLDER {
            return false;
        }
        let Ok(made) = Generation::new(&spec, spec.capacity.max(held)) else { return false };
        let generation = std::mem::replace(&mut self.current, made);
        self.older.push(Older { generation, next: 0 });
        self.spec = spec;
        true
    }

    /// Takes `key` over from an older generation, if one holds it, and moves some more; gives its slot.
    #[cold]
    #[inline(never)]
    pub(super) fn fetch_older(&mut self, key: &[u64]) -> Option<usize> {
        if self.older.is_empty() {
            return None;
        }
        // First, since moving may begin another generation, and then a slot that was found before would be
        // one of the wrong generation.
        self.pass(PASSED_AT_ONCE, MOVED_AT_ONCE);
        if let Ok(slot) = self.current.probe(key) {
            return Some(slot);
        }
        let found = |(index, older): (usize, &Older<K>)| Some((index, older.generation.probe(key).ok()?));
        let (older, from) = self.older.iter().enumerate().find_map(found)?;
        Some(self.take_over(older, from))
    }

    /// Moves an entry of an older generation into the current one. It goes in even where it makes a run too
    /// long and no other seed can be had: that takes keys that were made for several seeds at once.
    fn take_over(&mut self, older: usize, from: usize) -> usize {
        let mut key = [0; MAX_KEY_WORDS];
        let held = self.older[older].generation.slots.key(from);
        let key = &mut key[..held.len()];
        key.copy_from_slice(held);
        self.gives_way(key);
        let older = &mut self.older[older].generation;
        self.current.adopt(older, from)
    }

    /// Moves entries of the oldest generation until so many slots have been passed or entries moved; how many
    /// are left in all.
    fn pass(&mut self, mut slots: usize, mut moves: usize) -> usize {
        while slots > 0
            && moves > 0
            && let Some(older) = self.older.first_mut()
            && !older.is_done()
        {
            if older.generation.slots.stamp(older.next) != 0 {
                // The slot may be filled again by an entry that shifts back, so it is looked at once more.
                let from = older.next;
                self.take_over(0, from);
                moves -= 1;
            } else {
                slots -= 1;
                older.next += 1;
                older.generation.slots.passed(older.next);
            }
        }
        self.older.retain(|older| !older.is_done());
        self.left_to_move()
    }
}
