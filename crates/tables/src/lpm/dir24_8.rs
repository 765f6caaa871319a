//! The first table of DIR-24-8: one cell for each value of the first 24 bits of an IPv4 address (Gupta, Lin
//! and McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998).
//!
//! The idea: a cell holds the code of the longest prefix of at most 24 bits. Where longer prefixes begin, the
//! cell holds a mark that sends the lookup on: to the tree, which stands in the place of the second table of
//! the paper and knows the addresses of such cells in full. A cell that does not need its mark any more gets
//! a code at once; the tree forgets the cell when no reader can have seen the mark.

use std::collections::{BTreeSet, VecDeque};

use super::layout::DIRECT_BITS;
use super::nodes::{Exhausted, Nodes};
use super::routes::{Code, Interval, NO_CODE, Region, Routes, extend};
use super::trie;
use crate::sizes;

/// Which cells send their lookups on to the tree.
#[derive(Default)]
pub(super) struct Dir24 {
    /// Cells whose addresses the tree knows.
    known: BTreeSet<u32>,
    /// Cells that lost the mark, with the number of the change that did it.
    unmarked: VecDeque<(u64, u32)>,
}

impl Dir24 {
    /// Fills the cells of a new image that no reader has yet.
    pub(super) fn fill(&mut self, nodes: &mut Nodes, routes: &Routes) -> Result<(), Exhausted> {
        let mut intervals = Vec::new();
        routes.intervals(Region { bits: 0, length: 0 }, DIRECT_BITS, &mut intervals);
        for (index, interval) in intervals.iter().enumerate() {
            let end = intervals.get(index + 1).map_or(1 << DIRECT_BITS, |next| cell(next.start));
            paint(nodes, cell(interval.start)..end, interval.code, false);
        }
        let long = routes.iter().filter(|(region, _)| region.length > DIRECT_BITS);
        self.known = long.map(|(region, _)| cell(region.bits) as u32).collect();
        let whole = Region { bits: 0, length: 0 };
        trie::change(nodes, whole, &|region, into| self.tree(routes, region, into))?.publish(nodes, 0);
        for cell in &self.known {
            mark(nodes, *cell as usize);
        }
        Ok(())
    }

    /// Brings cells and tree to what `routes` say of `region`, whose prefix has changed. On failure nothing
    /// has changed.
    pub(super) fn change(
        &mut self,
        nodes: &mut Nodes,
        routes: &Routes,
        region: Region,
        number: u64,
        oldest: u64,
    ) -> Result<(), Exhausted> {
        if region.length > DIRECT_BITS {
            self.change_long(nodes, routes, region.shortened(DIRECT_BITS), number)?;
        } else {
            self.change_short(nodes, routes, region, number)?;
        }
        self.forget(nodes, routes, number, oldest);
        Ok(())
    }

    /// The same for a prefix that covers whole cells.
    fn change_short(
        &mut self,
        nodes: &mut Nodes,
        routes: &Routes,
        region: Region,
        number: u64,
    ) -> Result<(), Exhausted> {
        let cells = cell(region.bits)..cell(region.last()) + 1;
        let marked = self.known.range(cells.start as u32..cells.end as u32).next().is_some();
        if marked {
            trie::change(nodes, region, &|region, into| self.tree(routes, region, into))?
                .publish(nodes, number);
        }
        let mut intervals = Vec::new();
        routes.intervals(region, DIRECT_BITS, &mut intervals);
        for (index, interval) in intervals.iter().enumerate() {
            let end = intervals.get(index + 1).map_or(cells.end, |next| cell(next.start));
            paint(nodes, cell(interval.start)..end, interval.code, marked);
        }
        Ok(())
    }

    /// The same for a prefix that is longer than a cell tells apart; `region` is the cell's.
    fn change_long(
        &mut self,
        nodes: &mut Nodes,
        routes: &Routes,
        region: Region,
        number: u64,
    ) -> Result<(), Exhausted> {
        let at = cell(region.bits);
        let new = self.known.insert(at as u32);
        let made = trie::change(nodes, region, &|region, into| self.tree(routes, region, into));
        match made {
            Ok(change) => change.publish(nodes, number),
            Err(exhausted) => {
                if new {
                    self.known.remove(&(at as u32));
                }
                return Err(exhausted);
            }
        }
        if routes.splits(region) {
            mark(nodes, at);
        } else {
            paint(nodes, at..at + 1, routes.cover(region).map_or(NO_CODE, |(_, code)| code), false);
            self.unmarked.push_back((number, at as u32));
        }
        Ok(())
    }

    /// Bytes of what is known of the cells, where all prefixes were put in at once.
    pub(super) fn allocated(&self) -> u64 {
        sizes::ordered::<u32, ()>(self.known.len() as u64)
    }

    /// Takes out of the tree what no reader can ask it for any more; what lacks room now stays for a later
    /// change.
    fn forget(&mut self, nodes: &mut Nodes, routes: &Routes, number: u64, oldest: u64) {
        while let Some((cut, at)) = self.unmarked.pop_front_if(|(number, _)| *number < oldest) {
            let again = load(nodes, at as usize) == nodes.snapshot.layout.escape();
            let later = self.unmarked.iter().any(|(_, other)| *other == at);
            if again || later || !self.known.remove(&at) {
                continue;
            }
            let region = Region { bits: u128::from(at) << (128 - DIRECT_BITS), length: DIRECT_BITS };
            match trie::change(nodes, region, &|region, into| self.tree(routes, region, into)) {
                Ok(change) => change.publish(nodes, number),
                Err(Exhausted) => {
                    self.known.insert(at);
                    self.unmarked.push_front((cut, at));
                    return;
                }
            }
        }
    }

    /// What the tree holds of `region`: the answers of the cells it knows, and nothing elsewhere.
    fn tree(&self, routes: &Routes, region: Region, intervals: &mut Vec<Interval>) {
        trie::nothing(region, intervals);
        let cells = cell(region.bits) as u32..=cell(region.last()) as u32;
        for at in self.known.range(cells) {
            let within = Region { bits: u128::from(*at) << (128 - DIRECT_BITS), length: DIRECT_BITS };
            routes.intervals(within, 128, intervals);
            if within.last() < region.last() {
                extend(intervals, within.last() + 1, NO_CODE);
            }
        }
    }
}

/// The cell of an address.
fn cell(address: u128) -> usize {
    (address >> (128 - DIRECT_BITS)) as usize
}

fn load(nodes: &Nodes, at: usize) -> u32 {
    let layout = &nodes.snapshot.layout;
    let bit = at * usize::from(layout.cell_bits);
    nodes.load(layout.direct + bit / 32) >> (bit % 32) & layout.cell_mask()
}

fn store(nodes: &Nodes, at: usize, code: u32) {
    let layout = &nodes.snapshot.layout;
    let bit = at * usize::from(layout.cell_bits);
    let word = layout.direct + bit / 32;
    let others = nodes.load(word) & !(layout.cell_mask() << (bit % 32));
    nodes.store(word, others | code << (bit % 32));
}

fn mark(nodes: &Nodes, at: usize) {
    store(nodes, at, nodes.snapshot.layout.escape());
}

/// Gives cells a code; with `marked`, those that send their lookups on keep their mark.
fn paint(nodes: &Nodes, cells: std::ops::Range<usize>, code: Code, marked: bool) {
    let layout = &nodes.snapshot.layout;
    let code = code & layout.cell_mask();
    let in_word = 32 / usize::from(layout.cell_bits);
    let whole = (0..in_word).fold(0, |word, index| word | code << (index * usize::from(layout.cell_bits)));
    let mut at = cells.start;
    while at < cells.end {
        if !marked && at.is_multiple_of(in_word) && at + in_word <= cells.end {
            nodes.store(layout.direct + at / in_word, whole);
            at += in_word;
            continue;
        }
        if !marked || load(nodes, at) != layout.escape() {
            store(nodes, at, code);
        }
        at += 1;
    }
}
