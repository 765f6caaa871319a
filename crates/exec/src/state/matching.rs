//! Tables with longest prefixes, rules and patterns as a program sees them: entries with values, default, age
//! and counters.
//!
//! The search itself is in the crate `tables`. This module turns keys into the crate's keys and its results
//! into rows, and removes entries of packets when their time is up.

mod expiry;
mod patterns;
mod searches;

pub use patterns::{PatternSearch, ProgramPatterns};

use super::rows::Rows;
use crate::errors::EntryError;
use crate::pack::{MAX_WORDS, Packing};
use crate::reports::{CountedPart, EntryCount, EntryPlace};
pub(super) use expiry::{Expiry, STEPS_OF_WITHDRAWAL};

use ir::{Entry, Match, TableKind};
use std::collections::BTreeMap;
use std::sync::Arc;
use tables::lpm::{self, Lpm, Prefix};
use tables::rules::{self, Rule, Rules};

/// Steps of one part of a sweep of a table of rules.
const SWEPT: usize = 32;

/// A table with longest prefixes.
#[derive(Debug)]
pub struct ProgramPrefixes<L> {
    search: L,
    rows: Rows,
    widths: Vec<u8>,
    value: Packing,
    capacity: usize,
    expiry: Expiry<Prefix>,
    /// Whether entries raise an event when their time is up: then each ends when its handler runs.
    raises: bool,
}

impl<L: Lpm> ProgramPrefixes<L> {
    pub(super) fn new(table: &ir::Table, search: L) -> ProgramPrefixes<L> {
        let value = Packing::new(&table.values);
        ProgramPrefixes {
            search,
            rows: Rows::new(value.words, table),
            widths: table.keys.iter().map(|column| column.width).collect(),
            value,
            capacity: table.capacity as usize,
            expiry: Expiry::new(table.age),
            raises: table.expires.is_some(),
        }
    }

    /// Inserts all entries of the program text at once; `build` makes the search from prefixes and rows. Of
    /// entries with the same prefix the last one counts.
    pub(super) fn fill(
        &mut self,
        entries: &[Entry],
        build: impl FnOnce(Vec<(Prefix, u32)>) -> Result<L, lpm::LpmBuildError>,
    ) -> Result<(), EntryError> {
        let mut listed = BTreeMap::new();
        for entry in entries {
            let prefix = self.prefix(&entry.key).ok_or(EntryError::Key)?;
            let mut words = [0; MAX_WORDS];
            self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
            let row = self.rows.hold(&words[..self.value.words]);
            let before = listed.insert(prefix, row);
            before.into_iter().for_each(|before| self.rows.release(before));
        }
        let listed = listed.into_iter().collect();
        self.search = build(listed).map_err(|cause| EntryError::Refused(cause.to_string()))?;
        self.rows.shrink();
        Ok(())
    }

    /// The row found for an address.
    #[inline]
    pub fn find(&mut self, address: u128) -> Option<u32> {
        if self.expiry.is_behind() { self.find_behind(address) } else { self.search.find(address) }
    }

    /// As [`ProgramPrefixes::find`], for a table that still contains expired entries: passes over them.
    #[cold]
    fn find_behind(&self, address: u128) -> Option<u32> {
        self.search.find_past(address, &|prefix| self.expiry.has_ended(&prefix)).map(|(_, row)| row)
    }

    /// The search alone.
    pub fn search(&self) -> &L {
        &self.search
    }

    /// The rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The rows, for counting in them.
    pub fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The address that these key columns form, one after the other.
    pub fn address(&self, columns: impl IntoIterator<Item = u128>) -> u128 {
        let mut address = 0;
        for (width, column) in self.widths.iter().zip(columns) {
            address = if *width >= 128 { column } else { address << width | column };
        }
        address
    }

    /// The number of words of a key with each column in words of its own.
    pub fn key_words(&self) -> usize {
        self.widths.iter().map(|width| 1 + usize::from(*width > 64)).sum()
    }

    /// The address that these words form; each column has words of its own.
    pub fn address_of(&self, words: &[u64]) -> u128 {
        let mut words = words.iter();
        let mut next = || words.next().copied().map_or(0, u128::from);
        self.address(self.widths.iter().map(|width| if *width > 64 { next() << 64 | next() } else { next() }))
    }

    fn prefix(&self, key: &[Match]) -> Option<Prefix> {
        let mut length = 0;
        let mut numbers = Vec::with_capacity(key.len());
        for (part, width) in key.iter().zip(&self.widths) {
            let (number, bits) = match part {
                Match::Exact(number) => (*number, *width),
                Match::Prefix { value, length } => (*value, *length),
                Match::Any => (0, 0),
                _ => return None,
            };
            numbers.push(number);
            length += bits;
        }
        Some(Prefix { bits: self.address(numbers), length })
    }

    /// The key of a prefix.
    fn key(&self, prefix: Prefix) -> Vec<Match> {
        let mut key = Vec::with_capacity(self.widths.len());
        let (mut left, mut below) =
            (prefix.length, self.widths.iter().map(|width| u32::from(*width)).sum::<u32>());
        for (index, &width) in self.widths.iter().enumerate() {
            below -= u32::from(width);
            let number = prefix.bits >> below & ir::prefix_mask(width, width);
            let last = index + 1 == self.widths.len();
            let length = left.min(width);
            left -= length;
            key.push(match length {
                length if length == width => Match::Exact(number),
                0 if last => Match::Any,
                length => Match::Prefix { value: number, length },
            });
        }
        key
    }

    pub(super) fn insert(&mut self, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        let prefix = self.prefix(&entry.key).ok_or(EntryError::Key)?;
        self.end(prefix);
        if self.search.len() >= self.capacity
            && let Some(ended) = self.expiry.ended()
        {
            self.end(ended);
        }
        let mut words = [0; MAX_WORDS];
        self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
        let row = self.rows.hold(&words[..self.value.words]);
        match self.search.insert(prefix, row) {
            Ok(old) => {
                old.into_iter().for_each(|old| self.rows.release(old));
                self.expiry.note(prefix, now, row);
                Ok(())
            }
            Err(cause) => {
                self.rows.release(row);
                Err(match cause {
                    lpm::LpmInsertError::Full { capacity } => EntryError::Full { capacity },
                    cause => EntryError::Refused(cause.to_string()),
                })
            }
        }
    }

    /// An entry that packets made ends at this time, if it would end later.
    pub(super) fn end_by(&mut self, key: &[Match], deadline: u64) {
        if let Some(prefix) = self.prefix(key) {
            self.expiry.end_by(prefix, deadline);
        }
    }

    /// When an entry that packets made ends; `None` if there is none with this key.
    pub(super) fn age_of(&self, key: &[Match]) -> Option<u64> {
        let prefix = self.prefix(key).filter(|prefix| !self.expiry.has_ended(prefix))?;
        self.expiry.of(&prefix).map(|(ends, _)| ends)
    }

    pub(super) fn remove(&mut self, key: &[Match]) -> bool {
        let Some(prefix) = self.prefix(key) else { return false };
        !self.end(prefix) && self.withdraw(prefix)
    }

    /// Removes an entry if it has expired. Returns whether it has.
    fn end(&mut self, prefix: Prefix) -> bool {
        let ended = self.expiry.has_ended(&prefix);
        if ended {
            self.withdraw(prefix);
            self.expiry.expired += 1;
        }
        ended
    }

    /// Ends an entry whose time is up and whose event is raised.
    pub(super) fn end_raising(&mut self, prefix: Prefix) {
        self.withdraw(prefix);
        self.expiry.expired += 1;
    }

    /// Adds the columns of a key and the length of its prefix; the words of the value if it is there.
    pub(super) fn ending_columns(&self, prefix: Prefix, columns: &mut Vec<u128>) -> Option<&[u64]> {
        let (_, row) = self.expiry.of(&prefix)?;
        let mut below = self.widths.iter().map(|width| u32::from(*width)).sum::<u32>();
        let mut length = prefix.length;
        for (index, &width) in self.widths.iter().enumerate() {
            below -= u32::from(width);
            columns.push(prefix.bits >> below & ir::prefix_mask(width, width));
            if index + 1 < self.widths.len() {
                length = length.saturating_sub(width);
            }
        }
        columns.push(length.into());
        Some(self.rows.words(row))
    }

    fn withdraw(&mut self, prefix: Prefix) -> bool {
        let removed = self.search.remove(prefix);
        removed.into_iter().for_each(|row| self.rows.release(row));
        self.expiry.forget(&prefix);
        removed.is_some()
    }

    /// Expires every entry whose deadline is `now` or earlier, and removes as many of them as these steps
    /// allow; none of those that raise an event.
    pub(super) fn expire(&mut self, now: u64, steps: &mut u32) {
        if self.raises {
            return;
        }
        self.expiry.horizon = self.expiry.horizon.max(now);
        while let Some(left) = steps.checked_sub(STEPS_OF_WITHDRAWAL)
            && let Some(prefix) = self.expiry.ended()
        {
            *steps = left;
            self.end(prefix);
        }
    }

    /// Removes all expired entries.
    pub fn finish(&mut self) {
        while let Some(prefix) = self.expiry.ended() {
            self.end(prefix);
        }
    }

    /// When entries end.
    pub(super) fn expiry(&self) -> &Expiry<Prefix> {
        &self.expiry
    }

    /// The number of prefixes in memory, also of expired ones.
    pub fn held(&self) -> usize {
        self.search.len()
    }

    /// Entries that packets made.
    pub(super) fn learned(&self) -> Vec<Entry> {
        let mut entries: Vec<Entry> =
            self.expiry.alive().map(|(prefix, row)| self.entry(prefix, row)).collect();
        entries.sort();
        entries
    }

    pub(super) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let counted = |(prefix, row): (Prefix, u32)| (self.entry(prefix, row), self.rows.counted(row));
        let held = self.search.entries_from(EntryPlace::default().0);
        let mut entries: Vec<_> =
            held.filter(|(prefix, _)| !self.expiry.has_ended(prefix)).map(counted).collect();
        entries.sort();
        entries
    }

    fn entry(&self, prefix: Prefix, row: u32) -> Entry {
        Entry { key: self.key(prefix), value: self.value.unpack(self.rows.words(row)), priority: 0 }
    }

    /// The entry with this key, unless it has expired.
    pub(super) fn entry_of(&self, key: &[Match]) -> Option<Entry> {
        let prefix = self.prefix(key).filter(|prefix| !self.expiry.has_ended(prefix))?;
        let (found, row) = self.search.entries_from(prefix).next()?;
        (found == prefix).then(|| self.entry(prefix, row))
    }

    /// As [`Statistics::counted_part`](crate::Statistics::counted_part), in the order of prefixes. Looks at
    /// `most` entries, of which some may have expired.
    pub(super) fn counted_part(&self, from: EntryPlace, most: usize) -> CountedPart {
        let mut held = self.search.entries_from(from.0);
        let part = held.by_ref().take(most).filter(|(prefix, _)| !self.expiry.has_ended(prefix));
        let part = part.map(|(prefix, row)| (self.entry(prefix, row), self.rows.counted(row))).collect();
        (part, held.next().map(|(prefix, _)| EntryPlace(prefix)))
    }
}

/// The key and the priority of a rule.
type Place = (Vec<Match>, u32);

/// A table of rules.
#[derive(Debug)]
pub struct ProgramRules<R> {
    search: R,
    key_words: usize,
    rows: Rows,
    value: Packing,
    by_priority: bool,
    /// The places of the rules with a key and priority, in order; a file may list a rule several times.
    places: BTreeMap<Arc<Place>, Vec<u64>>,
    /// The key and priority of the rule at each place.
    keys: BTreeMap<u64, Arc<Place>>,
    capacity: usize,
    expiry: Expiry<u64>,
    /// The deadline of the rule of each row, as in `expiry`; rows beyond the last one never expire.
    deadlines: Vec<u64>,
}

impl<R: Rules> ProgramRules<R> {
    pub(super) fn new(table: &ir::Table, search: R) -> ProgramRules<R> {
        let value = Packing::new(&table.values);
        ProgramRules {
            key_words: Packing::apart(&table.keys).words,
            search,
            rows: match table.age {
                Some(_) => Rows::apart(value.words, table),
                None => Rows::new(value.words, table),
            },
            value,
            by_priority: table.kind == TableKind::Rules { by_priority: true },
            places: BTreeMap::new(),
            keys: BTreeMap::new(),
            capacity: table.capacity as usize,
            expiry: Expiry::new(table.age),
            deadlines: Vec::new(),
        }
    }

    /// The row of the first rule that matches these words.
    #[inline]
    pub fn find(&mut self, key: &[u64]) -> Option<u32> {
        if self.expiry.is_behind() {
            self.find_behind(key)
        } else {
            self.search.find(key).map(|hit| hit.value)
        }
    }

    /// As [`ProgramRules::find`], for a table that still contains expired rules: passes over them.
    #[cold]
    fn find_behind(&self, key: &[u64]) -> Option<u32> {
        let has_ended =
            |row: u32| self.deadlines.get(row as usize).is_some_and(|at| *at <= self.expiry.horizon);
        self.search.find_past(key, &has_ended).map(|hit| hit.value)
    }

    /// The search alone.
    pub fn search(&self) -> &R {
        &self.search
    }

    /// The rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The rows, for counting in them.
    pub fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The number of words of a key.
    pub fn key_words(&self) -> usize {
        self.key_words
    }

    /// Inserts all rules of the program text at once; `build` makes the search from order, rule and row.
    pub(super) fn fill(
        &mut self,
        entries: &[Entry],
        build: impl FnOnce(Vec<(u64, Rule, u32)>) -> Result<R, tables::rules::RulesBuildError>,
    ) -> Result<(), tables::rules::RulesBuildError> {
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            let Some(order) = self.behind(entry.priority) else {
                let error = rules::RulesInsertError::Full { capacity: listed.len() };
                return Err(tables::rules::RulesBuildError::Rule { rule: listed.len(), error });
            };
            let (rule, row) = self.hold(entry);
            self.note(entry, order);
            listed.push((order, rule, row));
        }
        listed.sort_by_key(|(order, ..)| *order);
        self.search = build(listed)?;
        self.rows.shrink();
        // A map that is built at once is smaller than one that has grown.
        self.keys = std::mem::take(&mut self.keys).into_iter().collect();
        self.places = std::mem::take(&mut self.places).into_iter().collect();
        Ok(())
    }

    /// The first and the last place of rules with this priority.
    fn span(&self, priority: u32) -> (u64, u64) {
        if !self.by_priority {
            return (0, u64::MAX);
        }
        let first = u64::from(u32::MAX - priority) << 32;
        (first, first | u64::from(u32::MAX))
    }

    /// The place after all rules with this priority; `None` if the last place is in use.
    fn behind(&self, priority: u32) -> Option<u64> {
        let (first, last) = self.span(priority);
        match self.keys.range(first..=last).next_back() {
            None => Some(first),
            Some((&order, _)) => order.checked_add(1).filter(|order| *order <= last),
        }
    }

    /// Renumbers the rules with this priority, without gaps from the first place on. The time grows with the
    /// number of rules; this is needed once in four billion inserts.
    fn close_up(&mut self, priority: u32) -> Result<(), EntryError> {
        let (first, last) = self.span(priority);
        let orders: Vec<u64> = self.keys.range(first..=last).map(|(&order, _)| order).collect();
        for (to, from) in (first..).zip(orders).filter(|(to, from)| to != from) {
            let Some(row) = self.search.remove(from) else { continue };
            let Some(place) = self.keys.remove(&from) else { continue };
            let rule = rule(&place.0);
            let moved = self.search.insert(to, &rule, row);
            let order = if moved.is_ok() { to } else { from };
            self.keys.insert(order, place.clone());
            if let Some(orders) = self.places.get_mut(&*place) {
                orders.iter_mut().filter(|held| **held == from).for_each(|held| *held = order);
            }
            self.expiry.rename(from, order);
            if let Err(cause) = moved {
                if self.search.insert(from, &rule, row).is_err() {
                    self.rows.release(row);
                    self.forget(from);
                }
                return Err(EntryError::Refused(cause.to_string()));
            }
        }
        Ok(())
    }

    /// The rule of an entry, and the row that holds its value from now on.
    fn hold(&mut self, entry: &Entry) -> (Rule, u32) {
        let mut words = [0; MAX_WORDS];
        self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
        (rule(&entry.key), self.rows.hold(&words[..self.value.words]))
    }

    pub(super) fn insert(&mut self, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        let place = (entry.key.clone(), entry.priority);
        let first = |places: &BTreeMap<Arc<Place>, Vec<u64>>| {
            places.get(&place).and_then(|orders| orders.first().copied())
        };
        if let Some(order) = first(&self.places) {
            self.end(order);
        }
        if self.search.len() >= self.capacity
            && let Some(ended) = self.expiry.ended()
        {
            self.end(ended);
        }
        let known = first(&self.places);
        // A rule that is there keeps its place and gets another value.
        let order = match known.or_else(|| self.behind(entry.priority)) {
            Some(order) => order,
            None => {
                self.close_up(entry.priority)?;
                let capacity = self.held();
                self.behind(entry.priority).ok_or(EntryError::Full { capacity })?
            }
        };
        let (rule, row) = self.hold(entry);
        if known.is_some() {
            if let Some(before) = self.search.set_value(order, row) {
                self.rows.release(before);
            }
        } else if let Err(cause) = self.search.insert(order, &rule, row) {
            self.rows.release(row);
            return Err(match cause {
                rules::RulesInsertError::Full { capacity } => EntryError::Full { capacity },
                cause => EntryError::Refused(cause.to_string()),
            });
        }
        self.age(order, now, row);
        if known.is_none() {
            self.note(entry, order);
        }
        Ok(())
    }

    /// Notes when a rule that is made or renewed ends.
    fn age(&mut self, order: u64, now: Option<u64>, row: u32) {
        let deadline = self.expiry.note(order, now, row);
        self.note_deadline(row, deadline);
    }

    fn note_deadline(&mut self, row: u32, deadline: u64) {
        let place = row as usize;
        if self.deadlines.len() <= place && deadline < u64::MAX {
            self.deadlines.resize(place + 1, u64::MAX);
        }
        if let Some(held) = self.deadlines.get_mut(place) {
            *held = deadline;
        }
    }

    /// A rule that packets made ends at this time, if it would end later.
    pub(super) fn end_by(&mut self, key: &[Match], priority: u32, deadline: u64) {
        let orders = self.places.get(&(key.to_vec(), priority));
        let Some(&order) = orders.and_then(|orders| orders.first()) else { return };
        if let Some((deadline, row)) = self.expiry.end_by(order, deadline) {
            self.note_deadline(row, deadline);
        }
    }

    /// Notes where a new rule stands; rules are noted in their order.
    fn note(&mut self, entry: &Entry, order: u64) {
        let key = (entry.key.clone(), entry.priority);
        // Its numbers are kept once, however often the rule is listed.
        let key = self.places.get_key_value(&key).map_or_else(|| Arc::new(key), |(key, _)| key.clone());
        self.places.entry(key.clone()).or_insert_with(|| Vec::with_capacity(1)).push(order);
        self.keys.insert(order, key);
    }

    /// When a rule that packets made ends; `None` if there is none with this key and priority.
    pub(super) fn age_of(&self, key: &[Match], priority: u32) -> Option<u64> {
        let orders = self.places.get(&(key.to_vec(), priority))?;
        let order = orders.first().filter(|order| !self.expiry.has_ended(order))?;
        self.expiry.of(order).map(|(ends, _)| ends)
    }

    pub(super) fn remove(&mut self, key: &[Match], priority: u32) -> bool {
        let orders = self.places.get(&(key.to_vec(), priority));
        let Some(&order) = orders.and_then(|orders| orders.first()) else { return false };
        !self.end(order) && self.withdraw(order)
    }

    /// Takes out a rule if it has ended; says whether it has.
    fn end(&mut self, order: u64) -> bool {
        let ended = self.expiry.has_ended(&order);
        if ended {
            self.withdraw(order);
            self.expiry.expired += 1;
        }
        ended
    }

    fn withdraw(&mut self, order: u64) -> bool {
        let removed = self.search.remove(order);
        removed.into_iter().for_each(|row| self.rows.release(row));
        self.forget(order);
        removed.is_some()
    }

    /// Nothing stands there any more.
    fn forget(&mut self, order: u64) {
        self.expiry.forget(&order);
        if let Some(key) = self.keys.remove(&order)
            && let Some(orders) = self.places.get_mut(&*key)
        {
            orders.retain(|other| *other != order);
            if orders.is_empty() {
                self.places.remove(&*key);
            }
        }
    }

    /// Ends every rule whose time has come by `now`, and takes them out as far as these steps lead.
    pub(super) fn expire(&mut self, now: u64, steps: &mut u32) {
        self.expiry.horizon = self.expiry.horizon.max(now);
        while let Some(left) = steps.checked_sub(STEPS_OF_WITHDRAWAL)
            && let Some(order) = self.expiry.ended()
        {
            *steps = left;
            self.end(order);
        }
    }

    /// Takes out a part of what removed rules have left behind; returns whether more may be left.
    pub(super) fn sweep(&mut self) -> bool {
        self.search.sweep(SWEPT) == 0
    }

    /// Whether something is left of removed rules.
    pub(super) fn has_dead(&self) -> bool {
        self.search.has_dead()
    }

    /// Takes out all rules that have ended.
    pub fn finish(&mut self) {
        while let Some(order) = self.expiry.ended() {
            self.end(order);
        }
    }

    /// When rules end.
    pub(super) fn expiry(&self) -> &Expiry<u64> {
        &self.expiry
    }

    /// The number of rules in memory, also of expired ones.
    pub(super) fn held(&self) -> usize {
        self.search.len()
    }

    /// Rules that packets made, in the order of matching.
    pub(super) fn learned(&self) -> Vec<Entry> {
        let made = |(order, row): (u64, u32)| {
            let (key, priority) = Place::clone(self.keys.get(&order)?);
            Some(Entry { key, value: self.value.unpack(self.rows.words(row)), priority })
        };
        self.expiry.alive().filter_map(made).collect()
    }

    /// All rules in the order of matching, with what they counted.
    pub(super) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let counted = |place| {
            let (entry, row) = self.entry(place)?;
            Some((entry, self.rows.counted(row)))
        };
        self.keys.iter().filter_map(counted).collect()
    }

    /// The entry at a place, with its row, unless it has expired.
    fn entry(&self, (order, place): (&u64, &Arc<Place>)) -> Option<(Entry, u32)> {
        let row = self.search.value(*order).filter(|_| !self.expiry.has_ended(order))?;
        let value = self.value.unpack(self.rows.words(row));
        Some((Entry { key: place.0.clone(), value, priority: place.1 }, row))
    }

    /// The first entry with this key and priority that has not expired.
    pub(super) fn entry_of(&self, key: &[Match], priority: u32) -> Option<Entry> {
        let (place, orders) = self.places.get_key_value(&(key.to_vec(), priority))?;
        orders.iter().find_map(|order| self.entry((order, place))).map(|(entry, _)| entry)
    }

    /// As [`Statistics::counted_part`](crate::Statistics::counted_part), in the order of matching. Looks at
    /// `most` rules, of which some may have expired.
    pub(super) fn counted_part(&self, from: EntryPlace, most: usize) -> CountedPart {
        let mut held = self.keys.range(from.0.bits as u64..);
        let part = held.by_ref().take(most).filter_map(|place| self.entry(place));
        (
            part.map(|(entry, row)| (entry, self.rows.counted(row))).collect(),
            held.next().map(|(&order, _)| EntryPlace::at(order)),
        )
    }
}

/// The rule of a key's parts.
fn rule(key: &[Match]) -> Rule {
    Rule { fields: key.iter().map(Match::field).collect() }
}

#[cfg(test)]
mod tests;
