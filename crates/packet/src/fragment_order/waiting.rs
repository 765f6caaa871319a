//! Frames that wait: their bytes in cells of a fixed size, in order of arrival.
//!
//! A frame takes as many cells as it needs, and is named by its first one. The oldest frames lie at the front
//! of one list, which is in order of their times, since all wait equally long.

use super::places::hash;
use crate::verdict::PortNumber;
use crate::{MAXIMUM_CAPTURED, VirtioHeader};

/// Bytes of a cell.
pub(super) const CELL: usize = 256;
/// In how many groups sources are bounded; a hash says which one a source is in.
const SOURCES: usize = 256;
/// No cell.
pub(super) const NONE: u32 = u32::MAX;

/// What is known of a frame beside its bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrived {
    pub(super) captured: u32,
    pub(super) wire: u32,
    pub(super) port: PortNumber,
    pub(super) virtio: VirtioHeader,
    /// How long it waits at most: until this time, in nanoseconds.
    pub(super) until: u64,
    /// Where its packet is remembered.
    pub(super) place: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    /// The next cell of the frame, or the next free one.
    next: u32,
    // The rest has a meaning in the first cell of a frame.
    /// The frames that came before and after it.
    older: u32,
    newer: u32,
    /// The next later fragment of the same packet.
    follower: u32,
    source: u32,
    arrived: Arrived,
}

/// The frames that wait.
pub(super) struct Waiting {
    bytes: Vec<u8>,
    cells: Vec<Cell>,
    /// The first free cell, and how many there are.
    free: u32,
    left: usize,
    oldest: u32,
    newest: u32,
    /// How many cells each group of sources has.
    taken: Vec<u32>,
    share: usize,
    seed: u64,
}

impl Waiting {
    /// Room for so many cells, of which a group of sources may have `share`.
    pub(super) fn new(cells: usize, share: usize, seed: u64) -> Waiting {
        let chain = (1..=cells as u32).map(|next| if next as usize == cells { NONE } else { next });
        Waiting {
            bytes: vec![0; cells * CELL],
            cells: chain.map(|next| Cell { next, ..Cell::default() }).collect(),
            free: if cells == 0 { NONE } else { 0 },
            left: cells,
            oldest: NONE,
            newest: NONE,
            taken: vec![0; SOURCES],
            share,
            seed,
        }
    }

    /// Bytes of so many cells.
    pub(super) const fn allocated(cells: usize) -> usize {
        cells * (CELL + size_of::<Cell>()) + SOURCES * size_of::<u32>()
    }

    /// Which sources are bounded together with this one.
    pub(super) fn group(&self, source: u64) -> usize {
        hash(self.seed, &[source]) as usize % SOURCES
    }

    /// Whether a frame of this length and source finds room.
    pub(super) fn has_room(&self, length: usize, source: u64) -> bool {
        let needed = length.div_ceil(CELL);
        // A longer frame would not fit into the arena of those that go on.
        let fits = length > 0 && length <= MAXIMUM_CAPTURED as usize;
        fits && needed <= self.left && self.taken[self.group(source)] as usize + needed <= self.share
    }

    /// Appends a frame, which has room; returns its name.
    pub(super) fn push(&mut self, bytes: &[u8], source: u64, arrived: Arrived) -> u32 {
        let group = self.group(source);
        let name = self.free;
        let mut last = NONE;
        for part in bytes.chunks(CELL) {
            last = self.free;
            let start = last as usize * CELL;
            self.bytes[start..start + part.len()].copy_from_slice(part);
            self.free = self.cells[last as usize].next;
            self.left -= 1;
            self.taken[group] += 1;
        }
        self.cells[last as usize].next = NONE;
        let older = std::mem::replace(&mut self.newest, name);
        match self.cells.get_mut(older as usize) {
            Some(older) => older.newer = name,
            None => self.oldest = name,
        }
        let cell = &mut self.cells[name as usize];
        *cell = Cell { older, newer: NONE, follower: NONE, source: group as u32, arrived, ..*cell };
        name
    }

    /// Says that this frame comes behind that one of the same packet.
    pub(super) fn follow(&mut self, frame: u32, follower: u32) {
        self.cells[frame as usize].follower = follower;
    }

    /// The next later fragment of the same packet; `NONE` behind the last one.
    pub(super) fn follower(&self, frame: u32) -> u32 {
        self.cells[frame as usize].follower
    }

    pub(super) fn arrived(&self, frame: u32) -> Arrived {
        self.cells[frame as usize].arrived
    }

    /// The frame that waits the longest.
    pub(super) fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// How many cells are free.
    #[cfg(test)]
    pub(super) fn left(&self) -> usize {
        self.left
    }

    /// Copies a frame to where it has its length, and forgets it.
    pub(super) fn take(&mut self, frame: u32, to: &mut [u8]) {
        let Cell { older, newer, source, .. } = self.cells[frame as usize];
        match self.cells.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.cells.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        let mut cell = frame;
        for part in to.chunks_mut(CELL) {
            let start = cell as usize * CELL;
            part.copy_from_slice(&self.bytes[start..start + part.len()]);
            let next = std::mem::replace(&mut self.cells[cell as usize].next, self.free);
            self.free = cell;
            self.left += 1;
            self.taken[source as usize] -= 1;
            cell = next;
        }
    }
}
