//! Tables of patterns as a program sees them: which entry occurs first, how often, or which do.

use crate::errors::{EntryError, LoadError};
use crate::pack::{MAX_WORDS, Packing};
use crate::reports::{CountedPart, EntryCount, EntryPlace};
use crate::state::rows::{RowHit, Rows};
use ir::{Answer, Entry, Match};
use tables::patterns::SearchPattern;
use tables::sizes;

/// A search for patterns, of one of the families of tables.
pub trait PatternSearch: Sized {
    /// Builds it.
    fn build(patterns: &[SearchPattern]) -> Result<Self, tables::patterns::PatternsBuildError>;
    /// The pattern whose occurrence ends first, of those the first in the list.
    fn first(&self, bytes: &[u8]) -> Option<u32>;
    /// Tells the pattern of every occurrence.
    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32));
}

impl PatternSearch for tables::patterns::Scanner {
    fn build(patterns: &[SearchPattern]) -> Result<Self, tables::patterns::PatternsBuildError> {
        tables::patterns::Scanner::build(patterns)
    }

    fn first(&self, bytes: &[u8]) -> Option<u32> {
        self.first(bytes).map(|found| found.pattern)
    }

    fn each(&self, bytes: &[u8], found: &mut dyn FnMut(u32)) {
        self.each(bytes, &mut |occurrence| found(occurrence.pattern));
    }
}

/// A table of patterns.
#[derive(Debug)]
pub struct ProgramPatterns<S> {
    search: S,
    rows: Rows,
    /// The row of each pattern.
    row_of: Vec<u32>,
    entries: Vec<Entry>,
    value: Packing,
    capacity: usize,
}

impl<S: PatternSearch> ProgramPatterns<S> {
    pub(in crate::state) fn new(table: &ir::Table) -> Result<ProgramPatterns<S>, LoadError> {
        let value = Packing::new(&table.values);
        let refused = |cause: String| LoadError::Refused { table: table.name.clone(), cause };
        let search = S::build(&[]).map_err(|cause| refused(cause.to_string()))?;
        let mut set = ProgramPatterns {
            search,
            rows: Rows::new(value.words, table),
            row_of: Vec::new(),
            entries: Vec::new(),
            value,
            capacity: table.capacity as usize,
        };
        set.replace(table.entries.clone()).map_err(|cause| refused(cause.to_string()))?;
        Ok(set)
    }

    /// Searches for these from now on.
    pub(in crate::state) fn replace(&mut self, entries: Vec<Entry>) -> Result<(), EntryError> {
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
        self.row_of.shrink_to_fit();
        self.rows.shrink();
        Ok(())
    }

    /// The row of the pattern that ends first.
    pub fn first(&mut self, bytes: &[u8], hit: RowHit) -> Option<u32> {
        let row = self.row_of[self.search.first(bytes)? as usize];
        self.rows.count(row, hit);
        Some(row)
    }

    /// How many occurrences there are.
    pub fn all(&mut self, bytes: &[u8], hit: RowHit) -> u32 {
        let ProgramPatterns { search, rows, row_of, .. } = self;
        let mut count = 0_u32;
        search.each(bytes, &mut |pattern| {
            count = count.saturating_add(1);
            rows.count(row_of[pattern as usize], hit);
        });
        count
    }

    /// The bits of the entries that occur.
    pub fn set(&mut self, bytes: &[u8], hit: RowHit) -> u128 {
        let ProgramPatterns { search, rows, row_of, .. } = self;
        let mut bits = 0_u128;
        search.each(bytes, &mut |pattern| {
            let row = row_of[pattern as usize];
            rows.count(row, hit);
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

    /// The patterns in order, each with its row as its value; where the answer is a set, with the number that
    /// its entry has there.
    pub fn for_device(&self, answer: Answer) -> Vec<SearchPattern> {
        let number = |row: &u32| match answer {
            Answer::Set => {
                self.rows.words(*row).first().map_or(0, |word| u32::try_from(*word).unwrap_or(u32::MAX))
            }
            _ => *row,
        };
        let patterns = patterns(&self.entries).unwrap_or_default().into_iter();
        patterns
            .zip(self.row_of.iter().map(number))
            .map(|(pattern, value)| SearchPattern { value, ..pattern })
            .collect()
    }

    pub(in crate::state) fn insert(&mut self, entry: &Entry) -> Result<(), EntryError> {
        let mut entries = self.entries.clone();
        match entries.iter_mut().find(|other| other.key == entry.key) {
            Some(known) => known.value.clone_from(&entry.value),
            None => entries.push(entry.clone()),
        }
        self.replace(entries)
    }

    pub(in crate::state) fn remove(&mut self, key: &[Match]) -> bool {
        let mut entries = self.entries.clone();
        entries.retain(|entry| entry.key != key);
        entries.len() < self.entries.len() && self.replace(entries).is_ok()
    }

    pub(in crate::state) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(in crate::state) fn entries(&self) -> Vec<(Entry, EntryCount)> {
        let counted = |(entry, row): (&Entry, &u32)| (entry.clone(), self.rows.counted(*row));
        self.entries.iter().zip(&self.row_of).map(counted).collect()
    }

    /// The entry with this key.
    pub(in crate::state) fn entry_of(&self, key: &[Match]) -> Option<Entry> {
        self.entries.iter().find(|entry| entry.key == key).cloned()
    }

    /// As [`Statistics::counted_part`](crate::Statistics::counted_part), in the order in which
    /// they are tried.
    pub(in crate::state) fn counted_part(&self, from: EntryPlace, most: usize) -> CountedPart {
        let from = from.0.bits as usize;
        let rest = self.entries.get(from..).unwrap_or_default();
        let part = &rest[..rest.len().min(most)];
        let next = (part.len() < rest.len()).then(|| EntryPlace::at((from + most) as u64));
        let rows = self.row_of.get(from..).unwrap_or_default();
        let counted = |(entry, row): (&Entry, &u32)| (entry.clone(), self.rows.counted(*row));
        (part.iter().zip(rows).map(counted).collect(), next)
    }
}

impl ProgramPatterns<tables::patterns::Scanner> {
    /// Bytes that it takes.
    pub(in crate::state) fn allocated(&self) -> u64 {
        self.search.image().len() as u64
            + self.rows.allocated()
            + sizes::vector(&self.row_of)
            + sizes::vector(&self.entries)
            + self.entries.iter().map(Entry::allocated).sum::<u64>()
    }
}

/// What is searched for, each with its place as its value; `None` where an entry is no bytes.
fn patterns(entries: &[Entry]) -> Option<Vec<SearchPattern>> {
    let pattern = |(entry, value): (&Entry, u32)| {
        let [Match::Bytes(pattern)] = entry.key.as_slice() else { return None };
        let (bytes, nocase) = (pattern.bytes.clone(), pattern.nocase);
        Some(SearchPattern { bytes, nocase, offset: pattern.offset, depth: pattern.depth, value })
    };
    entries.iter().zip(0..).map(pattern).collect()
}
