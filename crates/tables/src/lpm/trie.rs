//! Building and changing the tree of nodes below the root cells.
//!
//! The idea: a node is a pure function of the intervals of its region. Few intervals make a line, many make a
//! dense node whose cells are made the same way; the first 48 bits of wide tables get dense nodes only. A
//! change makes the smallest subtree that holds it anew, beside the old one, and publishes it with one store,
//! so that a reader walks through the old or the new and never through a mixture. Subtrees of many prefixes
//! hang at dense nodes, which a change can store to, so what it makes anew stays small.

use super::layout::GRANULE;
use super::lookup::{Cell, LINE_BITS, LINE_CELLS, LINE_COUNT, LINE_FIRST};
use super::nodes::{Exhausted, Nodes};
use super::routes::{Interval, Region, Routes};

/// Intervals of the next 16 bits up to which a dense node eats so many bits; with more than the last it
/// eats 16.
/// A table of at most 32 bits spends at most about a hundred bytes an interval.
const NARROW: [(usize, u32); 3] = [(80, 4), (1500, 8), (12_000, 12)];
/// The same for wider tables, which have more steps to save and spend up to about three hundred.
const WIDE: [(usize, u32); 3] = [(LINE_CELLS, 4), (60, 8), (1000, 12)];
/// Wider tables get nothing but dense nodes for the borders within so many bits, which nearly all prefixes of
/// IPv6 have at most: sixteen addresses step through those at once.
const NEAR: u32 = 48;
/// With more intervals of the next 16 bits than this, such a node eats them at once.
const MANY: usize = 300;
/// The same right behind the root where the image need not save bytes.
const QUITE_MANY: usize = 60;
/// With at most so many, such a node eats 4 bits instead of 8 where the image must save bytes.
const FEW: usize = 3;
/// Where borders of prefixes are more than this in a region of a wide table, it gets a dense node, even where
/// a line or a leaf would do.
const MANY_BELOW: usize = 512;
/// The bits of such a node.
const BELOW_BITS: u32 = 8;
/// A worn node is made anew only if its parent's region has at most so many prefixes.
pub(super) const MOST_ANEW: usize = 128;
/// The most bits of a node that is made while the table is in use. Larger ones stay as they are.
const MOST_IN_USE: u32 = 8;

/// What an image is made from.
pub(super) trait Source {
    /// Appends the intervals of a region; neighbours may have the same answer.
    fn intervals(&self, region: Region, into: &mut Vec<Interval>);
    /// Whether there are more than [`MOST_ANEW`] prefixes in a region.
    fn is_crowded(&self, region: Region) -> bool;
}

impl Source for Routes {
    fn intervals(&self, region: Region, into: &mut Vec<Interval>) {
        self.borders(region, into);
    }

    fn is_crowded(&self, region: Region) -> bool {
        self.are_more(region, MOST_ANEW)
    }
}

/// New cells, made but not yet seen by any reader.
#[derive(Default)]
pub(super) struct Change {
    cells: Vec<(usize, Cell)>,
}

impl Change {
    /// Lets readers see the new cells; what they replace is free after the change `number`.
    pub(super) fn publish(self, nodes: &mut Nodes, number: u64) {
        let old: Vec<Cell> = self
            .cells
            .into_iter()
            .map(|(word, cell)| {
                let old = Cell::unpack(nodes.load(word));
                nodes.store(word, cell.pack());
                old
            })
            .collect();
        for cell in old {
            nodes.cut(cell, number);
        }
    }

    fn discard(self, nodes: &mut Nodes) {
        for (_, cell) in self.cells {
            nodes.untake_all(cell);
        }
    }
}

/// Makes anew what `region` needs. On failure nothing has changed.
pub(super) fn change(nodes: &mut Nodes, region: Region, source: &dyn Source) -> Result<Change, Exhausted> {
    let Path { mut arrays, lines } = descend(nodes, region);
    // A node that many changes went through may by now deserve another shape, and is made anew by its parent.
    let mut worn = None;
    for index in 1..arrays.len() {
        let above = lines.iter().filter(|(_, holder)| *holder + 1 == index);
        let line = above.fold(false, |worn, (granule, _)| nodes.outgrown_line(*granule) | worn);
        let granule = arrays[index].granule();
        let large = arrays[index].bits > MOST_IN_USE;
        if !(line || !large && nodes.outgrown(granule)) {
            continue;
        }
        // Where a line stands there were few borders before the changes that it bears.
        let holder = &arrays[index - 1];
        if !line && source.is_crowded(region.shortened((holder.depth + holder.bits) as u8)) {
            nodes.keep_longer(granule, granule);
            continue;
        }
        worn = Some(arrays.swap_remove(index));
        arrays.truncate(index);
        break;
    }
    let Some(array) = arrays.pop() else { return Ok(Change::default()) };
    // Cells of the array that the region covers in part or in whole.
    let cells = array.depth + array.bits;
    let covered = region.shortened(cells as u8);
    let first = slot(covered.bits, array.depth, array.bits);
    let count = 1usize << (cells - u32::from(covered.length));
    let mut intervals = Vec::new();
    source.intervals(covered, &mut intervals);
    let mut change = Change::default();
    let mut rest = &intervals[..];
    for index in first..first + count {
        let base = covered.bits + ((index - first) as u128).checked_shl(128 - cells).unwrap_or(0);
        let end = Region { bits: base, length: cells as u8 }.last();
        let here = rest.partition_point(|interval| interval.start <= end);
        let word = array.word + index;
        let built = build(nodes, cells, base, &rest[..here]);
        rest = &rest[here - 1..];
        match built {
            Ok(cell) if cell.pack() == nodes.load(word) => {}
            Ok(cell) => {
                if let (Some(worn), Cell::Dense(granule, stride)) = (&worn, cell)
                    && worn.bits == stride
                {
                    nodes.keep_longer(granule, worn.granule());
                }
                change.cells.push((word, cell));
            }
            Err(exhausted) => {
                change.discard(nodes);
                return Err(exhausted);
            }
        }
    }
    Ok(change)
}

/// An array of cells that can be stored to: the root or a dense node.
struct Array {
    word: usize,
    /// Bits eaten before it.
    depth: u32,
    /// Bits that choose one of its cells.
    bits: u32,
}

impl Array {
    fn granule(&self) -> u32 {
        (self.word / GRANULE) as u32
    }
}

/// The way to a region.
struct Path {
    /// The arrays whose regions hold all of it, from the root to the deepest.
    arrays: Vec<Array>,
    /// The granules of lines on the way, each with the place of the last array before it.
    lines: Vec<(u32, usize)>,
}

/// The way from the root to the deepest array whose region holds all of `region`.
fn descend(nodes: &Nodes, region: Region) -> Path {
    let layout = &nodes.snapshot.layout;
    let root = Array { word: layout.root, depth: 0, bits: u32::from(layout.root_bits) };
    let length = u32::from(region.length);
    // Lines on the way are never stored to, but below them may be an array that is.
    let (mut depth, mut cell) = (root.bits, array_cell(nodes, &root, region));
    let (mut path, mut lines) = (vec![root], Vec::new());
    while depth < length {
        match cell {
            Cell::Leaf(_) => break,
            Cell::Dense(granule, bits) => {
                let array = Array { word: granule as usize * GRANULE, depth, bits };
                depth += bits;
                cell = array_cell(nodes, &array, region);
                path.push(array);
            }
            Cell::Line(_) if depth + LINE_BITS > length => break,
            Cell::Line(granule) => {
                lines.push((granule, path.len() - 1));
                cell = line_cell(nodes, granule, slot(region.bits, depth, LINE_BITS) as u16);
                depth += LINE_BITS;
            }
        }
    }
    Path { arrays: path, lines }
}

fn array_cell(nodes: &Nodes, array: &Array, region: Region) -> Cell {
    Cell::unpack(nodes.load(array.word + slot(region.bits, array.depth, array.bits)))
}

fn line_cell(nodes: &Nodes, granule: u32, bits: u16) -> Cell {
    let at = granule as usize * GRANULE;
    let rank = (0..LINE_CELLS).filter(|index| start(nodes.load(at + index / 2), *index) <= bits).count();
    Cell::unpack(nodes.load(at + LINE_FIRST + rank - 1))
}

fn start(pair: u32, index: usize) -> u16 {
    (pair >> (index % 2 * 16)) as u16
}

/// The `bits` bits of `address` behind the first `depth`.
fn slot(address: u128, depth: u32, bits: u32) -> usize {
    (address.checked_shl(depth).unwrap_or(0) >> (128 - bits)) as usize
}

/// Makes the nodes of the region of `depth` bits at `base`. The first interval begins at or before it, the
/// others in it.
fn build(nodes: &mut Nodes, depth: u32, base: u128, intervals: &[Interval]) -> Result<Cell, Exhausted> {
    // An interval that begins with the region leaves nothing of the one before.
    let over = intervals.get(1).is_some_and(|second| second.start == base);
    let intervals = &intervals[usize::from(over)..];
    let alike = |pair: &[Interval]| pair[0].code == pair[1].code;
    if nodes.snapshot.layout.width > 32 && intervals.len() > MANY_BELOW {
        let stride = stride(nodes, depth, intervals, parts(depth, intervals).len()).unwrap_or(BELOW_BITS);
        return build_dense(nodes, depth, stride, base, intervals);
    }
    if intervals.windows(2).any(alike) {
        let mut merged = intervals.to_vec();
        merged.dedup_by_key(|interval| interval.code);
        return build(nodes, depth, base, &merged);
    }
    if let [only] = intervals {
        return Ok(Cell::Leaf(only.code));
    }
    let parts = parts(depth, intervals);
    match stride(nodes, depth, intervals, parts.len()) {
        Some(stride) => build_dense(nodes, depth, stride, base, intervals),
        None => build_line(nodes, depth, base, intervals, &parts),
    }
}

/// The bits that the dense node of a region of `depth` bits eats, whose next 16 bits have `parts` intervals;
/// none for a line.
fn stride(nodes: &Nodes, depth: u32, intervals: &[Interval], parts: usize) -> Option<u32> {
    let layout = &nodes.snapshot.layout;
    let (wide, root_bits) = (layout.width > 32, u32::from(layout.root_bits));
    let near = |interval: &Interval| interval.start << NEAR == 0;
    if wide && depth < NEAR && intervals[1..].iter().any(near) {
        return Some(match parts {
            _ if !nodes.in_use && parts > MANY && depth.is_multiple_of(16) => 16,
            _ if !nodes.in_use && nodes.is_generous() && parts > QUITE_MANY && depth == root_bits => 16,
            _ if (nodes.is_generous() || parts > FEW) && depth.is_multiple_of(8) => 8,
            _ => 4,
        });
    }
    if parts <= LINE_CELLS {
        return None;
    }
    let strides = if wide { &WIDE } else { &NARROW };
    let stride = strides.iter().find(|(most, _)| parts <= *most).map_or(16, |(_, stride)| *stride);
    let most = if nodes.in_use { MOST_IN_USE } else { 16 };
    Some(stride.min(most).min((128 - depth) / 4 * 4))
}

/// From the slot `slot` of 16 bits on, the intervals `first..end` hold; more than one only for a single slot.
#[derive(Clone, Copy)]
struct Part {
    slot: u16,
    first: usize,
    end: usize,
}

fn parts(depth: u32, intervals: &[Interval]) -> Vec<Part> {
    let mut parts = vec![Part { slot: 0, first: 0, end: 1 }];
    let push = |parts: &mut Vec<Part>, part: Part| {
        if parts.last().is_some_and(|last| last.slot == part.slot) {
            parts.pop();
        }
        parts.push(part);
    };
    let mut index = 1;
    while index < intervals.len() {
        let at = slot(intervals[index].start, depth, LINE_BITS);
        if intervals[index].start.checked_shl(depth + LINE_BITS).unwrap_or(0) == 0 {
            push(&mut parts, Part { slot: at as u16, first: index, end: index + 1 });
            index += 1;
            continue;
        }
        // Borders within one slot: the slot gets a node of its own, and behind it the last of them goes on.
        let same = |interval: &Interval| slot(interval.start, depth, LINE_BITS) == at;
        let end = index + intervals[index..].iter().take_while(|interval| same(interval)).count();
        push(&mut parts, Part { slot: at as u16, first: index - 1, end });
        if at < usize::from(u16::MAX) {
            parts.push(Part { slot: at as u16 + 1, first: end - 1, end });
        }
        index = end;
    }
    parts
}

fn build_line(
    nodes: &mut Nodes,
    depth: u32,
    base: u128,
    intervals: &[Interval],
    parts: &[Part],
) -> Result<Cell, Exhausted> {
    let mut cells = [Cell::Leaf(0); LINE_CELLS];
    let mut made = 0;
    let mut failed = None;
    for (cell, part) in cells.iter_mut().zip(parts) {
        let base = base | u128::from(part.slot) << 112 >> depth;
        match build(nodes, depth + LINE_BITS, base, &intervals[part.first..part.end]) {
            Ok(child) => *cell = child,
            Err(exhausted) => failed = Some(exhausted),
        }
        if failed.is_some() {
            break;
        }
        made += 1;
    }
    let granule = failed.map_or_else(|| nodes.take(4), Err);
    let granule = match granule {
        Ok(granule) => granule,
        Err(exhausted) => {
            cells[..made].iter().for_each(|cell| nodes.untake_all(*cell));
            return Err(exhausted);
        }
    };
    let at = granule as usize * GRANULE;
    let start = |index: usize| u32::from(parts.get(index).map_or(u16::MAX, |part| part.slot));
    for pair in 0..LINE_COUNT {
        nodes.store(at + pair, start(pair * 2) | start(pair * 2 + 1) << 16);
    }
    nodes.store(at + LINE_COUNT, parts.len() as u32);
    for index in 0..LINE_CELLS {
        nodes.store(at + LINE_FIRST + index, cells[index.min(parts.len() - 1)].pack());
    }
    Ok(Cell::Line(granule))
}

fn build_dense(
    nodes: &mut Nodes,
    depth: u32,
    stride: u32,
    base: u128,
    intervals: &[Interval],
) -> Result<Cell, Exhausted> {
    let granule = nodes.take(stride)?;
    let at = granule as usize * GRANULE;
    let mut first = 0;
    for index in 0..1usize << stride {
        let within = |interval: &Interval| slot(interval.start, depth, stride) <= index;
        let mut end = first + 1;
        while intervals.get(end).is_some_and(within) {
            end += 1;
        }
        let base = base | (index as u128) << (128 - depth - stride);
        match build(nodes, depth + stride, base, &intervals[first..end]) {
            Ok(cell) => nodes.store(at + index, cell.pack()),
            Err(exhausted) => {
                for made in 0..index {
                    let cell = Cell::unpack(nodes.load(at + made));
                    nodes.untake_all(cell);
                }
                nodes.untake(Cell::Dense(granule, stride));
                return Err(exhausted);
            }
        }
        first = end - 1;
    }
    Ok(Cell::Dense(granule, stride))
}
