//! What entries of tables with prefixes, rules and patterns hold: rows of words that a search answers by
//! number.

use crate::state::cells::Cell;
use std::collections::HashMap;
use tables::sizes;

/// Rows of the same number of words. Rows that hold the same are kept once, unless each counts, or ends, for
/// itself.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    stride: usize,
    /// No two entries have a row in common.
    apart: bool,
    words: Vec<u64>,
    /// What each row was found for, where that is counted.
    counts: Option<Vec<Cell>>,
    /// How many entries hold a row; zero for a free one.
    holders: Vec<u32>,
    free: Vec<u32>,
    known: HashMap<Vec<u64>, u32>,
}

impl Rows {
    /// No rows, of so many words each.
    pub fn new(stride: usize, counted: bool) -> Rows {
        Rows { stride, apart: counted, counts: counted.then(Vec::new), ..Rows::default() }
    }

    /// No rows, each of which will have one entry.
    pub fn apart(stride: usize, counted: bool) -> Rows {
        Rows { apart: true, ..Rows::new(stride, counted) }
    }

    /// The number of a row with these words, held once more.
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

    /// An entry no longer holds a row.
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
            + sizes::hash_map::<Vec<u64>, u32>(self.known.len() as u64)
            + words
    }

    /// Gives back the room that they have spare.
    pub fn shrink(&mut self) {
        self.words.shrink_to_fit();
        self.holders.shrink_to_fit();
        self.counts.iter_mut().for_each(Vec::shrink_to_fit);
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

    /// Counts a packet of so many bytes for a row, where rows are counted.
    #[inline]
    pub fn count(&mut self, row: u32, bytes: u64) {
        if let Some(counts) = &mut self.counts {
            let cell = &mut counts[row as usize];
            cell.packets = cell.packets.wrapping_add(1);
            cell.bytes = cell.bytes.wrapping_add(bytes);
        }
    }

    /// What a row was found for; zero where nothing is counted.
    pub fn counted(&self, row: u32) -> Cell {
        self.counts.as_ref().map_or(Cell::default(), |counts| counts[row as usize])
    }
}
