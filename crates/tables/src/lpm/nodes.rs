//! The heap of an image: allocates nodes of four sizes, and reuses them when no reader can access them any
//! more.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::epoch::Epochs;
use super::layout::GRANULE;
use super::lookup::{Cell, LINE_COUNT, LINE_FIRST};
use super::reader::Snapshot;
use crate::sizes;

/// The heap has no room left; the image must be made again with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

/// The writer's side of an image.
pub(super) struct Nodes {
    pub(super) snapshot: Arc<Snapshot>,
    /// Nodes may take bytes to save steps.
    pub(super) generous: bool,
    epochs: Arc<Epochs>,
    /// The first granule never given out.
    fresh: u32,
    /// Free granules of nodes of 4, 8, 12 and 16 bits; a line is as large as the first.
    free: [Vec<u32>; 4],
    /// Nodes cut off, with the number of the change that did it.
    cut: VecDeque<(u64, u32)>,
    /// Of the dense node at a granule: changes that went through it, and how many it bears before it is made
    /// anew.
    worn: HashMap<u32, (u32, u32)>,
}

/// Changes that a new dense node bears.
const BEARS: u32 = 64;
/// So many nodes are noted at little cost.
const FEW: usize = 1024;

impl Nodes {
    pub(super) fn new(snapshot: Arc<Snapshot>, generous: bool, epochs: Arc<Epochs>) -> Nodes {
        let fresh = (snapshot.layout.heap / GRANULE) as u32;
        let (free, cut, worn) = Default::default();
        Nodes { snapshot, generous, epochs, fresh, free, cut, worn }
    }

    pub(super) fn load(&self, word: usize) -> u32 {
        self.snapshot.words.load(word)
    }

    pub(super) fn store(&self, word: usize, value: u32) {
        self.snapshot.words.store(word, value);
    }

    /// Words in use, with everything up to the last node.
    pub(super) fn end(&self) -> usize {
        self.fresh as usize * GRANULE
    }

    /// The granule of a node, not yet written, that eats `stride` bits; a line is asked for with 4.
    pub(super) fn take(&mut self, stride: u32) -> Result<u32, Exhausted> {
        let class = stride as usize / 4 - 1;
        if self.free[class].is_empty() {
            self.reclaim();
        }
        if let Some(granule) = self.free[class].pop() {
            return Ok(granule);
        }
        let granules = granules(stride);
        let end = (self.fresh + granules) as usize * GRANULE;
        if end > self.snapshot.words.all().len() {
            return Err(Exhausted);
        }
        let granule = self.fresh;
        self.fresh += granules;
        Ok(granule)
    }

    /// Counts a change that goes through the dense node at a granule; whether it has borne too many.
    pub(super) fn outgrown(&mut self, granule: u32) -> bool {
        // So that what is known of nodes takes no more than they do; one that is forgotten bears a few
        // changes more.
        if self.worn.len() > (self.end() / GRANULE / 16).max(FEW) {
            self.worn = HashMap::new();
        }
        let (changes, bears) = self.worn.entry(granule).or_insert((0, BEARS));
        *changes += 1;
        *changes > *bears
    }

    /// The new node at `granule` looks like the worn one that it replaces, so it bears twice as much.
    pub(super) fn keep_longer(&mut self, granule: u32, worn: u32) {
        let bears = self.worn.get(&worn).map_or(BEARS, |(_, bears)| *bears);
        self.worn.insert(granule, (0, bears.saturating_mul(2)));
    }

    /// Takes back a node that no reader has ever seen, or none any more.
    pub(super) fn untake(&mut self, cell: Cell) {
        if let Cell::Dense(granule, _) = cell {
            self.worn.remove(&granule);
        }
        match cell {
            Cell::Leaf(_) => {}
            Cell::Line(granule) => self.free[0].push(granule),
            Cell::Dense(granule, stride) => self.free[stride as usize / 4 - 1].push(granule),
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
                (at + LINE_FIRST, self.load(at + LINE_COUNT) as usize)
            }
            Cell::Dense(granule, stride) => (granule as usize * GRANULE, 1 << stride),
        };
        let cells = (first..first + count).map(|word| Cell::unpack(self.load(word)));
        cells.filter(|cell| !matches!(cell, Cell::Leaf(_))).collect()
    }

    fn reclaim(&mut self) {
        if self.cut.is_empty() {
            return;
        }
        let oldest = self.epochs.oldest();
        while let Some((_, cell)) = self.cut.pop_front_if(|(number, _)| *number < oldest) {
            self.untake(Cell::unpack(cell));
        }
        self.cut.shrink_to(self.cut.len().max(FEW));
    }

    /// Bytes of what the writer knows of them.
    pub(super) fn allocated(&self) -> u64 {
        let free: u64 = self.free.iter().map(sizes::vector).sum();
        free + (self.cut.capacity() * size_of::<(u64, u32)>()) as u64
            + sizes::hash_map::<u32, (u32, u32)>(self.worn.len() as u64)
    }
}

fn granules(stride: u32) -> u32 {
    (1 << stride) / GRANULE as u32
}
