//! The heap of an image: allocates nodes of four sizes, and reuses them when no reader can access them any
//! more.
//!
//! Nothing here grows by a copy of itself, so that no change waits for one: free nodes of a size form a chain
//! through their first words, nodes that were cut off are taken back a few at a time, and what is known of
//! worn nodes has a fixed size.

use std::collections::VecDeque;
use std::sync::Arc;

use super::epoch::Epochs;
use super::layout::GRANULE;
use super::lookup::Snapshot;
use super::lookup::{Cell, LINE_COUNT, LINE_COUNT_BITS, LINE_FIRST};
use crate::work;

/// The heap has no room left; the image must be made again with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The writer's side of an image.
pub(super) struct Nodes {
    pub(super) snapshot: Arc<Snapshot>,
    /// Words up to which nodes may take bytes to save steps; zero where they may not.
    generous: usize,
    /// Whether the table is in use: then a node is made in one go between packets, and has 8 bits at most.
    pub(super) in_use: bool,
    epochs: Arc<Epochs>,
    /// The first granule never given out.
    fresh: u32,
    /// The first free granule of nodes of 4, 8, 12 and 16 bits, or [`LAST`]; a line is as large as the
    /// first. The first word of each names the next.
    free: [u32; 4],
    /// Nodes cut off, with the number of the change that did it.
    cut: VecDeque<(u64, u32)>,
    /// What is known of worn dense nodes, each at a place that its granule tells; empty before the first
    /// change. Of two nodes that share a place, the one that more changes go through keeps it; the other
    /// bears more before it is made anew.
    worn: Vec<Worn>,
}

/// A dense node that changes went through.
#[derive(Clone, Copy, Default)]
struct Worn {
    granule: u32,
    changes: u32,
    /// How many it bears before it is made anew.
    bears: u32,
}

/// Changes that a new dense node bears.
const BEARS: u32 = 64;
/// Changes below a line after which it is made anew.
const LINE_BEARS: u32 = 128;
/// Places for worn nodes.
const NOTED: usize = 1 << 13;
/// Nodes cut off that are taken back when one is asked for.
const AT_ONCE: usize = 8;
/// The end of a chain of free nodes.
const LAST: u32 = u32::MAX;
/// So many nodes cut off are noted at little cost.
const FEW: usize = 1024;

impl Nodes {
    pub(super) fn new(snapshot: Arc<Snapshot>, generous: usize, epochs: Arc<Epochs>) -> Nodes {
        let fresh = (snapshot.layout.heap / GRANULE) as u32;
        let (cut, worn) = Default::default();
        Nodes { snapshot, generous, in_use: false, epochs, fresh, free: [LAST; 4], cut, worn }
    }

    /// Whether nodes may take bytes to save steps.
    pub(super) fn is_generous(&self) -> bool {
        self.end() < self.generous
    }

    pub(super) fn load(&self, word: usize) -> u32 {
        self.snapshot.words.load(word)
    }

    pub(super) fn store(&self, word: usize, value: u32) {
        work::note(1);
        self.snapshot.words.store(word, value);
    }

    /// Words in use, with everything up to the last node.
    pub(super) fn end(&self) -> usize {
        self.fresh as usize * GRANULE
    }

    /// The granule of a node, not yet written, that eats `stride` bits; a line is asked for with 4.
    pub(super) fn take(&mut self, stride: u32) -> Result<u32, Exhausted> {
        let class = stride as usize / 4 - 1;
        self.reclaim(AT_ONCE);
        if let Some(granule) = self.pop(class) {
            return Ok(granule);
        }
        let granules = granules(stride);
        let end = (self.fresh + granules) as usize * GRANULE;
        if end > self.snapshot.words.all().len() {
            self.reclaim(usize::MAX);
            return self.pop(class).or_else(|| self.split(class)).ok_or(Exhausted);
        }
        let granule = self.fresh;
        self.fresh += granules;
        Ok(granule)
    }

    /// A free node of a size.
    fn pop(&mut self, class: usize) -> Option<u32> {
        let granule = self.free[class];
        if granule == LAST {
            return None;
        }
        self.free[class] = self.load(granule as usize * GRANULE);
        Some(granule)
    }

    fn push(&mut self, class: usize, granule: u32) {
        self.store(granule as usize * GRANULE, self.free[class]);
        self.free[class] = granule;
    }

    /// A part of a free node of a larger size, whose other parts are free from then on.
    fn split(&mut self, class: usize) -> Option<u32> {
        let larger = class + 1;
        if larger == self.free.len() {
            return None;
        }
        let whole = self.pop(larger).or_else(|| self.split(larger))?;
        let part = granules(4 * larger as u32);
        for other in 1..16 {
            self.push(class, whole + other * part);
        }
        Some(whole)
    }

    /// Counts a change that goes through the dense node at a granule; whether it has borne too many.
    pub(super) fn outgrown(&mut self, granule: u32) -> bool {
        let noted = self.worn_at(granule);
        if noted.granule == granule {
            noted.changes += 1;
            return noted.changes > noted.bears;
        }
        noted.changes = noted.changes.saturating_sub(1);
        if noted.changes == 0 {
            *noted = Worn { granule, changes: 1, bears: BEARS };
        }
        false
    }

    fn worn_at(&mut self, granule: u32) -> &mut Worn {
        if self.worn.is_empty() {
            self.worn = vec![Worn::default(); NOTED];
        }
        &mut self.worn[granule.wrapping_mul(0x9e37_79b1) as usize >> 16 & (NOTED - 1)]
    }

    /// Counts a change below the line at a granule; whether it has borne too many. The count is above the
    /// number of its intervals, where no lookup reads.
    pub(super) fn outgrown_line(&mut self, granule: u32) -> bool {
        let word = granule as usize * GRANULE + LINE_COUNT;
        let counted = self.load(word);
        let changes = (counted >> LINE_COUNT_BITS) + 1;
        if changes <= LINE_BEARS {
            self.store(word, counted & ((1 << LINE_COUNT_BITS) - 1) | changes << LINE_COUNT_BITS);
        }
        changes > LINE_BEARS
    }

    /// The node at `granule` is, or looks like, the worn one at `worn`, so it bears twice as much.
    pub(super) fn keep_longer(&mut self, granule: u32, worn: u32) {
        let noted = *self.worn_at(worn);
        let bears = if noted.granule == worn { noted.bears } else { BEARS };
        *self.worn_at(granule) = Worn { granule, changes: 1, bears: bears.saturating_mul(2) };
    }

    /// Takes back a node that no reader has ever seen, or none any more.
    pub(super) fn untake(&mut self, cell: Cell) {
        match cell {
            Cell::Leaf(_) => {}
            Cell::Line(granule) => self.push(0, granule),
            Cell::Dense(granule, stride) => {
                if !self.worn.is_empty() && self.worn_at(granule).granule == granule {
                    *self.worn_at(granule) = Worn::default();
                }
                self.push(stride as usize / 4 - 1, granule);
            }
        }
    }

    /// Everything below `cell`, which no new reader finds any more, is free once the change `number` has
    /// passed.
    pub(super) fn cut(&mut self, cell: Cell, number: u64) {
        for child in self.children(cell) {
            self.cut(child, number);
        }
        if !matches!(cell, Cell::Leaf(_)) {
            self.cut.push_back((number, cell.pack()));
        }
    }

    /// Takes back everything below `cell`, none of which any reader has ever seen.
    pub(super) fn untake_all(&mut self, cell: Cell) {
        for child in self.children(cell) {
            self.untake_all(child);
        }
        self.untake(cell);
    }

    fn children(&self, cell: Cell) -> Vec<Cell> {
        let (first, count) = match cell {
            Cell::Leaf(_) => return Vec::new(),
            Cell::Line(granule) => {
                let at = granule as usize * GRANULE;
                let count = self.load(at + LINE_COUNT) & ((1 << LINE_COUNT_BITS) - 1);
                (at + LINE_FIRST, count as usize)
            }
            Cell::Dense(granule, stride) => (granule as usize * GRANULE, 1 << stride),
        };
        let cells = (first..first + count).map(|word| Cell::unpack(self.load(word)));
        cells.filter(|cell| !matches!(cell, Cell::Leaf(_))).collect()
    }

    /// Takes back at most so many nodes that no reader can see any more.
    fn reclaim(&mut self, most: usize) {
        if self.cut.is_empty() {
            return;
        }
        let oldest = self.epochs.oldest();
        for _ in 0..most {
            let Some((_, cell)) = self.cut.pop_front_if(|(number, _)| *number < oldest) else { break };
            self.untake(Cell::unpack(cell));
        }
        if self.cut.is_empty() && self.cut.capacity() > FEW {
            self.cut = VecDeque::new();
        }
    }

    /// Bytes of what the writer knows of them.
    pub(super) fn allocated(&self) -> u64 {
        (self.cut.capacity() * size_of::<(u64, u32)>() + self.worn.capacity() * size_of::<Worn>()) as u64
    }
}

fn granules(stride: u32) -> u32 {
    (1 << stride) / GRANULE as u32
}
