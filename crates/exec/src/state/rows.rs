//! The values of entries in tables with prefixes, rules and patterns: rows of words, of which a search
//! returns the number.

use crate::reports::{EntryCount, HitTimes};
use crate::state::cells::Cell;
use std::collections::BTreeMap;
use tables::sizes;

/// A packet that has found a row.
#[derive(Clone, Copy, Debug)]
pub struct RowHit {
    /// Its bytes on the wire.
    pub bytes: u64,
    /// The program's time (ns).
    pub time: u64,
}

/// What rows count.
#[derive(Clone, Debug, Default)]
enum Counts {
    /// Nothing.
    #[default]
    None,
    /// Packets and bytes.
    Packets(Vec<Cell>),
    /// Packets and bytes, and when they came. One line of a cache holds two of these.
    Times(Vec<TimedCell>),
}

/// What a row counts that keeps times.
#[derive(Clone, Copy, Debug)]
struct TimedCell {
    cell: Cell,
    first: u64,
    last: u64,
}

/// No hit is later than the first one and none is earlier than the last one, as long as there is none.
const UNHIT: TimedCell = TimedCell { cell: Cell { packets: 0, bytes: 0 }, first: u64::MAX, last: 0 };

impl Cell {
    fn add(&mut self, bytes: u64) {
        self.packets = self.packets.wrapping_add(1);
        self.bytes = self.bytes.wrapping_add(bytes);
    }
}

impl Counts {
    fn of(table: &ir::Table) -> Counts {
        match (table.counted, table.times) {
            (false, _) => Counts::None,
            (true, false) => Counts::Packets(Vec::new()),
            (true, true) => Counts::Times(Vec::new()),
        }
    }

    /// Begins to count for a row among so many.
    fn begin(&mut self, row: u32, rows: usize) {
        match self {
            Counts::None => {}
            Counts::Packets(cells) => {
                cells.resize(rows, Cell::default());
                cells[row as usize] = Cell::default();
            }
            Counts::Times(cells) => {
                cells.resize(rows, UNHIT);
                cells[row as usize] = UNHIT;
            }
        }
    }
}

/// Rows with the same number of words. Equal rows are stored once, unless each entry counts or expires for
/// itself.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    stride: usize,
    /// Whether each entry has a row of its own.
    apart: bool,
    words: Vec<u64>,
    counts: Counts,
    /// How many entries use each row; zero for a free row.
    holders: Vec<u32>,
    free: Vec<u32>,
    /// Ordered, since a hash map from time to time takes all of them into another memory at once.
    known: BTreeMap<Vec<u64>, u32>,
}

impl Rows {
    /// An empty set of rows of `stride` words each, for the entries of a table.
    pub fn new(stride: usize, table: &ir::Table) -> Rows {
        Rows { stride, apart: table.counted, counts: Counts::of(table), ..Rows::default() }
    }

    /// An empty set of rows, of which each will belong to one entry.
    pub fn apart(stride: usize, table: &ir::Table) -> Rows {
        Rows { apart: true, ..Rows::new(stride, table) }
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
        self.counts.begin(row, self.holders.len());
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
            + match &self.counts {
                Counts::None => 0,
                Counts::Packets(cells) => sizes::vector(cells),
                Counts::Times(cells) => sizes::vector(cells),
            }
            + sizes::vector(&self.holders)
            + sizes::vector(&self.free)
            + sizes::ordered::<Vec<u64>, u32>(self.known.len() as u64)
            + words
    }

    /// Frees unused memory.
    pub fn shrink(&mut self) {
        self.words.shrink_to_fit();
        self.holders.shrink_to_fit();
        match &mut self.counts {
            Counts::None => {}
            Counts::Packets(cells) => cells.shrink_to_fit(),
            Counts::Times(cells) => cells.shrink_to_fit(),
        }
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

    /// Counts a packet for a row, if rows are counted.
    #[inline]
    pub fn count(&mut self, row: u32, hit: RowHit) {
        match &mut self.counts {
            Counts::None => {}
            Counts::Packets(cells) => cells[row as usize].add(hit.bytes),
            Counts::Times(cells) => {
                let counted = &mut cells[row as usize];
                counted.cell.add(hit.bytes);
                counted.first = counted.first.min(hit.time);
                counted.last = counted.last.max(hit.time);
            }
        }
    }

    /// Whether rows keep when they were found.
    pub fn keep_times(&self) -> bool {
        matches!(self.counts, Counts::Times(_))
    }

    /// What a row was found for.
    pub fn counted(&self, row: u32) -> EntryCount {
        let of = |Cell { packets, bytes }: Cell, times| EntryCount { packets, bytes, times };
        match &self.counts {
            Counts::None => EntryCount::default(),
            Counts::Packets(cells) => of(cells[row as usize], None),
            Counts::Times(cells) => {
                let TimedCell { cell, first, last } = cells[row as usize];
                of(cell, (first <= last).then_some(HitTimes { first, last }))
            }
        }
    }
}
