//! Tables with longest prefixes, rules and patterns as a program sees them: entries with values, default, age and counters.
//!
//! The search itself is the `tables` crate's. Here keys become what it searches for, its answers become rows, and entries that packets
//! made go when their time is up.

use super::rows::Rows;
use crate::load::LoadError;
use crate::pack::{MAX_WORDS, Packing};
use crate::processor::{EntryCount, EntryError};
use lang::ir::{self, Answer, Entry, Match, TableKind};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tables::lpm::{self, Lpm, Prefix};
use tables::patterns::Pattern;
use tables::rules::{self, Rule, Rules};

/// A search for patterns that the interpreter or compiled code runs.
pub trait Search: Sized {
    /// Builds it.
    fn build(patterns: &[Pattern]) -> Result<Self, tables::patterns::BuildError>;
    /// The pattern whose occurrence ends first, of those the first in the list.
    fn first(&self, bytes: &[u8]) -> Option<u32>;
    /// Tells the pattern of every occurrence.
    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32));
}

impl Search for tables::patterns::Model {
    fn build(patterns: &[Pattern]) -> Result<Self, tables::patterns::BuildError> {
        tables::patterns::Model::build(patterns)
    }

    fn first(&self, bytes: &[u8]) -> Option<u32> {
        self.first(bytes).map(|found| found.pattern)
    }

    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32)) {
        self.each(bytes, &mut |occurrence| found(occurrence.pattern));
    }
}

impl Search for tables::patterns::Scanner {
    fn build(patterns: &[Pattern]) -> Result<Self, tables::patterns::BuildError> {
        tables::patterns::Scanner::build(patterns)
    }

    fn first(&self, bytes: &[u8]) -> Option<u32> {
        self.first(bytes).map(|found| found.pattern)
    }

    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32)) {
        self.each(bytes, &mut |occurrence| found(occurrence.pattern));
    }
}

/// A table with longest prefixes.
#[derive(Debug)]
pub struct Prefixes<L> {
    search: L,
    rows: Rows,
    widths: Vec<u8>,
    value: Packing,
    expiry: Expiry<Prefix>,
}

impl<L: Lpm> Prefixes<L> {
    pub(super) fn new(table: &ir::Table, search: L) -> Prefixes<L> {
        let value = Packing::new(&table.values);
        Prefixes {
            search,
            rows: Rows::new(value.words, table.counted),
            widths: table.keys.iter().map(|column| column.width).collect(),
            value,
            expiry: Expiry::new(table.age),
        }
    }

    /// The row found for an address.
    #[inline]
    pub fn find(&self, address: u128) -> Option<u32> {
        self.search.find(address)
    }

    /// The search alone.
    pub fn search(&self) -> &L {
        &self.search
    }

    /// The rows.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The address that these key columns are: one after the other.
    pub fn address(&self, columns: impl IntoIterator<Item = u128>) -> u128 {
        let mut address = 0;
        for (width, column) in self.widths.iter().zip(columns) {
            address = if *width >= 128 { column } else { address << width | column };
        }
        address
    }

    /// Words of a key whose columns lie apart.
    pub fn key_words(&self) -> usize {
        self.widths.iter().map(|width| 1 + usize::from(*width > 64)).sum()
    }

    /// The address that these words are, columns apart.
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
        let mut words = [0; MAX_WORDS];
        self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
        let row = self.rows.hold(&words[..self.value.words]);
        match self.search.insert(prefix, row) {
            Ok(old) => {
                old.into_iter().for_each(|old| self.rows.release(old));
                self.expiry.note(prefix, now);
                Ok(())
            }
            Err(cause) => {
                self.rows.release(row);
                Err(match cause {
                    lpm::InsertError::Full { capacity } => EntryError::Full { capacity },
                    cause => EntryError::Refused(cause.to_string()),
                })
            }
        }
    }

    pub(super) fn remove(&mut self, key: &[Match]) -> bool {
        let Some(prefix) = self.prefix(key) else { return false };
        self.withdraw(prefix)
    }

    fn withdraw(&mut self, prefix: Prefix) -> bool {
        let removed = self.search.remove(prefix);
        removed.into_iter().for_each(|row| self.rows.release(row));
        self.expiry.forget(&prefix);
        removed.is_some()
    }

    pub(super) fn expire(&mut self, now: u64) -> u64 {
        let mut gone = 0;
        while let Some(prefix) = self.expiry.due(now) {
            gone += u64::from(self.withdraw(prefix));
        }
        gone
    }

    pub(super) fn next_deadline(&self) -> u64 {
        self.expiry.next()
    }

    /// How many prefixes there are.
    pub fn entries_held(&self) -> usize {
        self.search.len()
    }

    /// Entries that packets made.
    pub(super) fn learned(&self) -> Vec<Entry> {
        let made = |(prefix, row): (Prefix, u32)| {
            let value = self.value.unpack(self.rows.words(row));
            self.expiry.of.contains_key(&prefix).then(|| Entry { key: self.key(prefix), value, priority: 0 })
        };
        let mut entries: Vec<Entry> = self.search.entries().into_iter().filter_map(made).collect();
        entries.sort();
        entries
    }

    pub(super) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let mut entries: Vec<(Entry, EntryCount)> = (self.search.entries().into_iter())
            .map(|(prefix, row)| {
                let value = self.value.unpack(self.rows.words(row));
                let cell = self.rows.counted(row);
                (Entry { key: self.key(prefix), value, priority: 0 }, (cell.packets, cell.bytes))
            })
            .collect();
        entries.sort();
        entries
    }
}

/// A table of rules.
#[derive(Debug)]
pub struct RuleSet<R> {
    search: R,
    key_words: usize,
    rows: Rows,
    value: Packing,
    by_priority: bool,
    /// Where the rules with a key and priority stand, in order; a file may list one several times.
    places: HashMap<(Vec<Match>, u32), Vec<u64>>,
    /// The other way round.
    keys: BTreeMap<u64, (Vec<Match>, u32)>,
    next: u64,
    expiry: Expiry<u64>,
}

impl<R: Rules> RuleSet<R> {
    pub(super) fn new(table: &ir::Table, search: R) -> RuleSet<R> {
        let value = Packing::new(&table.values);
        RuleSet {
            key_words: Packing::apart(&table.keys).words,
            search,
            rows: Rows::new(value.words, table.counted),
            value,
            by_priority: table.kind == TableKind::Rules { by_priority: true },
            places: HashMap::new(),
            keys: BTreeMap::new(),
            next: 0,
            expiry: Expiry::new(table.age),
        }
    }

    /// The row of the first rule that these words fit.
    #[inline]
    pub fn find(&self, key: &[u64]) -> Option<u32> {
        self.search.find(key).map(|hit| hit.value)
    }

    /// The search alone.
    pub fn search(&self) -> &R {
        &self.search
    }

    /// The rows.
    pub fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// Words of a key.
    pub fn key_words(&self) -> usize {
        self.key_words
    }

    /// All rules of the program text at once; `build` makes the search from order, rule and row.
    pub(super) fn fill(
        &mut self,
        entries: &[Entry],
        build: impl FnOnce(Vec<(u64, Rule, u32)>) -> Result<R, tables::rules::BuildError>,
    ) -> Result<(), tables::rules::BuildError> {
        let mut listed = Vec::with_capacity(entries.len());
        for entry in entries {
            let (order, rule, row) = self.place(entry);
            self.note(entry, order);
            listed.push((order, rule, row));
        }
        listed.sort_by_key(|(order, ..)| *order);
        self.search = build(listed)?;
        Ok(())
    }

    fn place(&mut self, entry: &Entry) -> (u64, Rule, u32) {
        let precedence = if self.by_priority { u64::from(u32::MAX - entry.priority) << 32 } else { 0 };
        let order = precedence | self.next;
        self.next += 1;
        let mut words = [0; MAX_WORDS];
        self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
        let row = self.rows.hold(&words[..self.value.words]);
        (order, Rule { fields: entry.key.iter().map(Match::field).collect() }, row)
    }

    pub(super) fn insert(&mut self, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        if self.next > u64::from(u32::MAX) {
            return Err(EntryError::Refused("four billion rules have been inserted".into()));
        }
        let known =
            self.places.get(&(entry.key.clone(), entry.priority)).and_then(|orders| orders.first().copied());
        let (fresh, rule, row) = self.place(entry);
        // A rule that is there keeps its place and gets another value.
        let order = known.unwrap_or(fresh);
        let before = known.and_then(|known| self.search.remove(known));
        if let Err(cause) = self.search.insert(order, &rule, row) {
            self.rows.release(row);
            if let Some(before) = before
                && self.search.insert(order, &rule, before).is_err()
            {
                self.rows.release(before);
                self.forget(order);
            }
            return Err(match cause {
                rules::InsertError::Full { capacity } => EntryError::Full { capacity },
                cause => EntryError::Refused(cause.to_string()),
            });
        }
        before.into_iter().for_each(|before| self.rows.release(before));
        self.expiry.note(order, now);
        if known.is_none() {
            self.note(entry, order);
        }
        Ok(())
    }

    /// Notes where a new rule stands; rules are noted in their order.
    fn note(&mut self, entry: &Entry, order: u64) {
        let key = (entry.key.clone(), entry.priority);
        self.places.entry(key.clone()).or_default().push(order);
        self.keys.insert(order, key);
    }

    pub(super) fn remove(&mut self, key: &[Match], priority: u32) -> bool {
        let orders = self.places.get(&(key.to_vec(), priority));
        let Some(&order) = orders.and_then(|orders| orders.first()) else { return false };
        self.withdraw(order)
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
            && let Some(orders) = self.places.get_mut(&key)
        {
            orders.retain(|other| *other != order);
            if orders.is_empty() {
                self.places.remove(&key);
            }
        }
    }

    pub(super) fn expire(&mut self, now: u64) -> u64 {
        let mut gone = 0;
        while let Some(order) = self.expiry.due(now) {
            gone += u64::from(self.withdraw(order));
        }
        gone
    }

    pub(super) fn next_deadline(&self) -> u64 {
        self.expiry.next()
    }

    pub(super) fn len(&self) -> usize {
        self.search.len()
    }

    /// Rules that packets made, in the order in which they are tried.
    pub(super) fn learned(&self) -> Vec<Entry> {
        let made = |(order, _, row): (u64, Rule, u32)| {
            let (key, priority) =
                self.keys.get(&order).filter(|_| self.expiry.of.contains_key(&order))?.clone();
            Some(Entry { key, value: self.value.unpack(self.rows.words(row)), priority })
        };
        self.search.entries().into_iter().filter_map(made).collect()
    }

    /// In the order in which they are tried.
    pub(super) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let entry = |(order, _, row): (u64, Rule, u32)| {
            let (key, priority) = self.keys.get(&order).cloned().unwrap_or_default();
            let cell = self.rows.counted(row);
            let value = self.value.unpack(self.rows.words(row));
            (Entry { key, value, priority }, (cell.packets, cell.bytes))
        };
        self.search.entries().into_iter().map(entry).collect()
    }
}

/// A table of patterns.
#[derive(Debug)]
pub struct PatternSet<S> {
    search: S,
    rows: Rows,
    /// The row of each pattern.
    row_of: Vec<u32>,
    entries: Vec<Entry>,
    value: Packing,
    capacity: usize,
}

impl<S: Search> PatternSet<S> {
    pub(super) fn new(table: &ir::Table) -> Result<PatternSet<S>, LoadError> {
        let value = Packing::new(&table.values);
        let refused = |cause: String| LoadError::Refused { table: table.name.clone(), cause };
        let search = S::build(&[]).map_err(|cause| refused(cause.to_string()))?;
        let mut set = PatternSet {
            search,
            rows: Rows::new(value.words, table.counted),
            row_of: Vec::new(),
            entries: Vec::new(),
            value,
            capacity: table.capacity as usize,
        };
        set.replace(table.entries.clone()).map_err(|cause| refused(cause.to_string()))?;
        Ok(set)
    }

    /// Searches for these from now on.
    pub(super) fn replace(&mut self, entries: Vec<Entry>) -> Result<(), EntryError> {
        if entries.len() > self.capacity {
            return Err(EntryError::Full { capacity: self.capacity });
        }
        let patterns = patterns(&entries).ok_or(EntryError::Key)?;
        self.search = S::build(&patterns).map_err(|cause| EntryError::Refused(cause.to_string()))?;
        std::mem::take(&mut self.row_of).into_iter().for_each(|row| self.rows.release(row));
        let mut words = [0; MAX_WORDS];
        for entry in &entries {
            self.value.pack(entry.value.iter().copied(), &mut words[..self.value.words]);
            let row = self.rows.hold(&words[..self.value.words]);
            self.row_of.push(row);
        }
        self.entries = entries;
        Ok(())
    }

    /// The row of the pattern that ends first.
    pub fn first(&mut self, bytes: &[u8], wire: u64) -> Option<u32> {
        let row = self.row_of[self.search.first(bytes)? as usize];
        self.rows.count(row, wire);
        Some(row)
    }

    /// How many occurrences there are.
    pub fn all(&mut self, bytes: &[u8], wire: u64) -> u32 {
        let PatternSet { search, rows, row_of, .. } = self;
        let mut count = 0_u32;
        search.each(bytes, &mut |pattern| {
            count = count.saturating_add(1);
            rows.count(row_of[pattern as usize], wire);
        });
        count
    }

    /// The bits of the entries that occur.
    pub fn set(&mut self, bytes: &[u8], wire: u64) -> u128 {
        let PatternSet { search, rows, row_of, .. } = self;
        let mut bits = 0_u128;
        search.each(bytes, &mut |pattern| {
            let row = row_of[pattern as usize];
            rows.count(row, wire);
            bits |= 1_u128.checked_shl(rows.words(row).first().map_or(0, |word| *word as u32)).unwrap_or(0);
        });
        bits
    }

    /// The rows.
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The rows, to count in them.
    pub fn rows_mut(&mut self) -> &mut Rows {
        &mut self.rows
    }

    /// The patterns in order, each with its row as its value; where the answer is a set, with the number that its entry has there.
    pub fn for_device(&self, answer: Answer) -> Vec<Pattern> {
        let number = |row: &u32| match answer {
            Answer::Set => {
                self.rows.words(*row).first().map_or(0, |word| u32::try_from(*word).unwrap_or(u32::MAX))
            }
            _ => *row,
        };
        let patterns = patterns(&self.entries).unwrap_or_default().into_iter();
        patterns
            .zip(self.row_of.iter().map(number))
            .map(|(pattern, value)| Pattern { value, ..pattern })
            .collect()
    }

    pub(super) fn insert(&mut self, entry: &Entry) -> Result<(), EntryError> {
        let mut entries = self.entries.clone();
        match entries.iter_mut().find(|other| other.key == entry.key) {
            Some(known) => known.value.clone_from(&entry.value),
            None => entries.push(entry.clone()),
        }
        self.replace(entries)
    }

    pub(super) fn remove(&mut self, key: &[Match]) -> bool {
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.key != key);
        entries.len() < self.entries.len() && self.replace(entries).is_ok()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let counted = |(entry, row): (&Entry, &u32)| {
            let cell = self.rows.counted(*row);
            (entry.clone(), (cell.packets, cell.bytes))
        };
        self.entries.iter().zip(&self.row_of).map(counted).collect()
    }
}

/// What is searched for, each with its place as its value; `None` where an entry is no bytes.
fn patterns(entries: &[Entry]) -> Option<Vec<Pattern>> {
    let pattern = |(entry, value): (&Entry, u32)| {
        let [Match::Bytes(pattern)] = entry.key.as_slice() else { return None };
        let (bytes, nocase) = (pattern.bytes.clone(), pattern.nocase);
        Some(Pattern { bytes, nocase, offset: pattern.offset, depth: pattern.depth, value })
    };
    entries.iter().zip(0..).map(pattern).collect()
}

/// When entries that packets made go.
#[derive(Clone, Debug)]
struct Expiry<K> {
    age: Option<u64>,
    due: BTreeSet<(u64, K)>,
    of: BTreeMap<K, u64>,
}

impl<K: Ord + Copy> Expiry<K> {
    fn new(age: Option<u64>) -> Expiry<K> {
        Expiry { age, due: BTreeSet::new(), of: BTreeMap::new() }
    }

    /// An entry is made or renewed; one of the program text or of the control plane, without a time, never goes.
    fn note(&mut self, key: K, now: Option<u64>) {
        self.forget(&key);
        if let (Some(now), Some(age)) = (now, self.age) {
            let deadline = now.saturating_add(age);
            self.due.insert((deadline, key));
            self.of.insert(key, deadline);
        }
    }

    fn forget(&mut self, key: &K) {
        if let Some(deadline) = self.of.remove(key) {
            self.due.remove(&(deadline, *key));
        }
    }

    /// An entry whose time has come.
    fn due(&mut self, now: u64) -> Option<K> {
        let &(deadline, key) = self.due.first()?;
        if deadline > now || deadline == u64::MAX {
            return None;
        }
        self.forget(&key);
        Some(key)
    }

    fn next(&self) -> u64 {
        self.due.first().map_or(u64::MAX, |(deadline, _)| *deadline)
    }
}
