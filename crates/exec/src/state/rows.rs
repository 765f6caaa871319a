//! The values of entries in tables with prefixes, rules and patterns: rows of words, of which a search
//! returns the number.

use crate::state::cells::Cell;
use std::collections::BTreeMap;
use tables::sizes;

/// Rows with the same number of words. Equal rows are stored once, unless each entry counts or expires for
/// itself.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    stride: usize,
    /// Whether each entry has a row of its own.
    apart: bool,
    words: Vec<u64>,
    /// The packets and bytes for which each row was found, if they are counted.
    counts: Option<Vec<Cell>>,
    /// How many entries use each row; zero for a free row.
    holders: Vec<u32>,
    free: Vec<u32>,
    /// Ordered, since a hash map from time to time takes all of them into another memory at once.
    known: BTreeMap<Vec<u64>, u32>,
}

impl Rows {
    /// An empty set of rows of `stride` words each.
    pub fn new(stride: usize, counted: bool) -> Rows {
        Rows { stride, apart: counted, counts: counted.then(Vec::new), ..Rows::default() }
    }

    /// An empty set of rows, of which each will belong to one entry.
    pub fn apart(stride: usize, counted: bool) -> Rows {
        Rows { apart: true, ..Rows::new(stride, counted) }
    }

    /// The number of a row with these words, for one more entry.
    pub fn hold(&mut self, words: &[u64]) -> u32 {
        if !self.apart
            && let Some(&row) = self.known.get(words)
        {
            self.holders[row as usize] += 1;
            return row;
        }
        let row = self.free.pop().unwrap_or_else(|| {
            self.holders.push(0);
            self.words.resize(self.holders.len() * self.stride, 0);
            (self.holders.len() - 1) as u32
        });
        let start = row as usize * self.stride;
        self.words[start..start + self.stride].copy_from_slice(words);
        self.holders[row as usize] = 1;
        if let Some(counts) = &mut self.counts {
            counts.resize(self.holders.len(), Cell::default());
            counts[row as usize] = Cell::default();
        }
        if !self.apart {
            self.known.insert(words.to_vec(), row);
        }
        row
    }

    /// An entry no longer uses a row.
    pub fn release(&mut self, row: u32) {
        let holders = &mut self.holders[row as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(row);
            let start = row as usize * self.stride;
            self.known.remove(&self.words[start..start + self.stride]);
        }
    }

    /// Bytes that they take.
    pub fn allocated(&self) -> u64 {
        let words = (self.known.len() * self.stride * size_of::<u64>()) as u64;
        sizes::vector(&self.words)
            + self.counts.as_ref().map_or(0, sizes::vector)
            + sizes::vector(&self.holders)
            + sizes::vector(&self.free)
            + sizes::ordered::<Vec<u64>, u32>(self.known.len() as u64)
            + words
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.words.shrink_to_fit();
        self.holders.shrink_to_fit();
        self.counts.iter_mut().for_each(Vec::shrink_to_fit);
        // A map that is built at once is smaller than one that has grown.
        self.known = std::mem::take(&mut self.known).into_iter().collect();
    }

    /// The words of a row.
    #[inline]
    pub fn words(&self, row: u32) -> &[u64] {
        let start = row as usize * self.stride;
        &self.words[start..start + self.stride]
    }

    /// The words of all rows, one after the other.
    pub fn all(&self) -> &[u64] {
        &self.words
    }

    /// Counts a packet of so many bytes for a row, if rows are counted.
    #[inline]
    pub fn count(&mut self, row: u32, bytes: u64) {
        if let Some(counts) = &mut self.counts {
            let cell = &mut counts[row as usize];
            cell.packets = cell.packets.wrapping_add(1);
            cell.bytes = cell.bytes.wrapping_add(bytes);
        }
    }

    /// The packets and bytes for which a row was found; zero if rows are not counted.
    pub fn counted(&self, row: u32) -> Cell {
        self.counts.as_ref().map_or(Cell::default(), |counts| counts[row as usize])
    }
}
