//! The model of an exact table, simple enough to be the reference: an ordered map of entries, and an ordered
//! set for each order of entries.
//!
//! The idea: every operation does at once, in full, what the trait's documentation says. Deadlines and order
//! of use are sets that hold each entry's current place, never a bound of it. It costs a logarithm an
//! operation and allocates, which a judge may.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evict, Exact, ExactEntry, ExactSpec, ExactSpecError, ExactStatistics, Learned};

/// An exact table made of ordered maps: the judge of [`ExactTable`](super::ExactTable), and what the
/// interpreter uses.
pub struct ExactModel {
    spec: ExactSpec,
    clock: u64,
    operations: u64,
    entries: BTreeMap<Vec<u64>, Held>,
    /// (deadline, key) of every entry that has a deadline.
    deadlines: BTreeSet<(u64, Vec<u64>)>,
    /// (number of the last hit or learn, key) of every entry that is not permanent.
    recency: BTreeSet<(u64, Vec<u64>)>,
    statistics: ExactStatistics,
}

#[derive(Clone)]
struct Held {
    value: Vec<u64>,
    permanent: bool,
    learned: u64,
    /// Its own lifetime, `u64::MAX` if it has none.
    lifetime: u64,
    renewed: u64,
    operation: u64,
}

impl ExactModel {
    /// An empty table; fails if the spec asks for more than there can be.
    pub fn new(spec: ExactSpec) -> Result<ExactModel, ExactSpecError> {
        spec.check()?;
        Ok(ExactModel {
            spec,
            clock: 0,
            operations: 0,
            entries: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            recency: BTreeSet::new(),
            statistics: ExactStatistics::default(),
        })
    }

    /// The shape and the rules it was made with.
    pub fn spec(&self) -> &ExactSpec {
        &self.spec
    }

    fn advance(&mut self, now: u64) -> u64 {
        self.clock = self.clock.max(now);
        self.clock
    }

    fn deadline(&self, held: &Held) -> Option<u64> {
        if held.permanent { None } else { self.spec.deadline(held.learned, held.lifetime, held.renewed) }
    }

    /// Takes the entry out of the map and of both sets.
    fn take(&mut self, key: &[u64]) -> Option<Held> {
        let (key, held) = self.entries.remove_entry(key)?;
        if let Some(deadline) = self.deadline(&held) {
            self.deadlines.remove(&(deadline, key.clone()));
        }
        self.recency.remove(&(held.operation, key));
        Some(held)
    }

    /// Puts an entry into the map and into the sets it belongs in.
    fn put(&mut self, key: &[u64], held: Held) {
        if let Some(deadline) = self.deadline(&held) {
            self.deadlines.insert((deadline, key.to_vec()));
        }
        if !held.permanent {
            self.recency.insert((held.operation, key.to_vec()));
        }
        self.entries.insert(key.to_vec(), held);
    }

    fn next_operation(&mut self) -> u64 {
        self.operations += 1;
        self.operations
    }

    fn is_full(&self) -> bool {
        self.entries.len() >= self.spec.capacity
    }

    /// Takes out the entry used longest ago, if the table evicts and there is one.
    fn evict(&mut self, evicted: &mut dyn FnMut(&[u64])) -> bool {
        let oldest = self.recency.first().filter(|_| self.spec.evict == Evict::Lru);
        let Some((_, key)) = oldest.cloned() else { return false };
        self.take(&key);
        evicted(&key);
        self.statistics.evictions += 1;
        true
    }

    fn check_key(&self, key: &[u64]) {
        assert_eq!(key.len(), self.spec.key_words, "a key has the words its table declares");
    }

    fn check_value(&self, value: &[u64]) {
        assert_eq!(value.len(), self.spec.value_words, "a value has the words its table declares");
    }
}

impl Exact for ExactModel {
    fn find(&mut self, key: &[u64], now: u64) -> Option<&[u64]> {
        self.check_key(key);
        let now = self.advance(now);
        let mut held = self.take(key)?;
        held.renewed = now;
        held.operation = self.next_operation();
        self.put(key, held);
        self.peek(key)
    }

    fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        self.check_key(key);
        self.entries.get(key).map(|held| held.value.as_slice())
    }

    fn learn(&mut self, key: &[u64], value: &[u64], now: u64) -> Learned {
        self.learn_telling(key, value, now, &mut |_| {})
    }

    fn learn_telling(
        &mut self,
        key: &[u64],
        value: &[u64],
        now: u64,
        evicted: &mut dyn FnMut(&[u64]),
    ) -> Learned {
        self.check_key(key);
        self.check_value(value);
        let now = self.advance(now);
        let before = self.take(key);
        if before.is_none() && self.is_full() {
            if !self.evict(evicted) {
                self.statistics.refused += 1;
                return Learned::Refused;
            }
            // Full still: the table was made smaller than what it holds.
            if self.is_full() {
                self.evict(evicted);
            }
        }
        let permanent = before.as_ref().is_some_and(|held| held.permanent);
        let operation = self.next_operation();
        let held = Held {
            value: value.to_vec(),
            permanent,
            learned: now,
            lifetime: u64::MAX,
            renewed: now,
            operation,
        };
        self.put(key, held);
        match before {
            None => {
                self.statistics.inserts += 1;
                Learned::New
            }
            Some(held) if held.value == value => Learned::Confirmed,
            Some(_) => {
                self.statistics.moves += 1;
                Learned::Moved
            }
        }
    }

    fn end_by(&mut self, key: &[u64], deadline: u64) {
        let Some(as_if) = self.spec.learned_to_end(deadline) else { return };
        if let Some(held) = self.take(key) {
            let Held { mut learned, mut lifetime, .. } = held;
            if self.spec.keeps_lifetimes() {
                lifetime = lifetime.min(deadline.saturating_sub(learned).max(1));
            } else {
                learned = learned.min(as_if);
            }
            let ended = if held.permanent { held } else { Held { learned, lifetime, ..held } };
            self.put(key, ended);
        }
    }

    fn insert_permanent(&mut self, key: &[u64], value: &[u64]) -> bool {
        self.check_key(key);
        self.check_value(value);
        let now = self.clock;
        if self.take(key).is_none() && self.is_full() {
            return false;
        }
        let held = Held {
            value: value.to_vec(),
            permanent: true,
            learned: now,
            lifetime: u64::MAX,
            renewed: now,
            operation: 0,
        };
        self.put(key, held);
        true
    }

    fn remove(&mut self, key: &[u64]) -> bool {
        self.check_key(key);
        let removed = self.take(key).is_some();
        self.statistics.removed += u64::from(removed);
        removed
    }

    fn expire_key(&mut self, key: &[u64]) -> bool {
        let ended = self.take(key).is_some();
        self.statistics.expired += u64::from(ended);
        ended
    }

    fn deadline_of(&mut self, key: &[u64]) -> Option<u64> {
        self.entries.get(key).map(|held| self.deadline(held).unwrap_or(u64::MAX))
    }

    fn age_of(&self, key: &[u64]) -> Option<u64> {
        let held = self.entries.get(key).filter(|held| !held.permanent)?;
        Some(self.spec.end_by_age(held.learned, held.lifetime))
    }

    fn expire(&mut self, now: u64) -> u64 {
        let before = self.statistics.expired;
        self.expire_some(now, &mut 0, &mut |_| {});
        self.statistics.expired - before
    }

    /// All at once, whatever that takes.
    fn expire_some(&mut self, now: u64, _steps: &mut u32, gone: &mut dyn FnMut(&[u64])) {
        let now = self.advance(now);
        while let Some((_, key)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= now).cloned() {
            if let Some(held) = self.take(&key) {
                gone(&held.value);
            }
            self.statistics.expired += 1;
        }
    }

    fn make_way(&mut self, _key: Option<&[u64]>, wanted: usize, _gone: &mut dyn FnMut(&[u64])) -> usize {
        self.spec.capacity.saturating_sub(self.entries.len()).min(wanted)
    }

    fn free_first(&mut self, _from: u32, _gone: &mut dyn FnMut(&[u64])) {}

    fn left_to_expire(&self) -> usize {
        0
    }

    fn version(&self) -> [u64; 5] {
        let ExactStatistics { entries, inserts, moves, evictions, expired, .. } = self.statistics();
        [entries, inserts, moves, evictions, expired]
    }

    fn next_deadline(&self) -> u64 {
        self.deadlines.first().map_or(u64::MAX, |(deadline, _)| *deadline)
    }

    fn resize(&mut self, capacity: usize) -> Result<(), ExactSpecError> {
        let spec = ExactSpec { capacity, ..self.spec };
        spec.check()?;
        self.spec = spec;
        Ok(())
    }

    fn prepare_for(&mut self, old: &Self) -> bool {
        let fits = self.entries.is_empty() && old.entries.len() <= self.spec.capacity;
        fits && self.spec.entry_shape() == old.spec.entry_shape()
    }

    fn inherit(&mut self, old: &mut Self) {
        (self.clock, self.operations) = (old.clock, old.operations);
        self.statistics = std::mem::take(&mut old.statistics);
        for (key, held) in std::mem::take(&mut old.entries) {
            self.put(&key, held);
        }
        old.deadlines.clear();
        old.recency.clear();
    }

    fn statistics(&self) -> ExactStatistics {
        ExactStatistics { entries: self.entries.len() as u64, ..self.statistics }
    }

    fn running_statistics(&self) -> ExactStatistics {
        self.statistics()
    }

    fn entries(&self) -> Vec<ExactEntry> {
        let entry = |(key, held): (&Vec<u64>, &Held)| ExactEntry {
            key: key.clone(),
            value: held.value.clone(),
            permanent: held.permanent,
            deadline: self.deadline(held),
        };
        self.entries.iter().map(entry).collect()
    }
}
