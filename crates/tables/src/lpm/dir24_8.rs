//! The first table of DIR-24-8: one cell for each value of the first 24 bits of an IPv4 address (Gupta, Lin
//! and McKeown, "Routing lookups in hardware at memory access speeds", INFOCOM 1998).
//!
//! The idea: a cell holds the code of the longest prefix of at most 24 bits. Where longer prefixes begin, or
//! the code is too large for a cell, the cell holds a mark that sends the lookup on: to the tree, which
//! stands in the place of the second table of the paper and knows the addresses of such cells in full. Which
//! cells are marked follows from the prefixes alone. A cell that need not be marked any more gets a code at
//! once; the tree forgets the cell when no reader can have seen the mark. Cells are written by whole words,
//! also those that are marked, so that a prefix of few bits costs the same with whatever code.

use std::collections::VecDeque;
use std::ops::Range;

use super::layout::DIRECT_BITS;
use super::most::KNOWN_BYTES;
use super::nodes::{Exhausted, Nodes};
use super::routes::{Code, Interval, NO_CODE, Region, Routes, extend};
use super::trie::{self, MOST_ANEW, Source};
use crate::work;

/// Which cells send their lookups on to the tree.
#[derive(Default)]
pub(super) struct Dir24 {
    /// Cells whose addresses the tree knows.
    known: Known,
    /// Regions with cells that lost the mark, with the number of the change that did it, in its order.
    unmarked: VecDeque<(u64, Region)>,
}

impl Dir24 {
    /// Fills the cells of a new image that no reader has yet.
    pub(super) fn fill(&mut self, nodes: &mut Nodes, routes: &Routes) -> Result<(), Exhausted> {
        let whole = Region { bits: 0, length: 0 };
        let runs = runs(nodes, routes, whole);
        self.know(&runs);
        trie::change(nodes, whole, &Tree { known: &self.known, routes })?.publish(nodes, 0);
        for (run, code) in runs {
            paint(nodes, run, code);
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
        let runs = runs(nodes, routes, region);
        self.know(&runs);
        if self.known.runs(cells(region)).next().is_some() {
            trie::change(nodes, region, &Tree { known: &self.known, routes })?.publish(nodes, number);
        }
        let mut lost = false;
        for (run, code) in runs {
            lost |= code.is_some() && self.known.runs(run.clone()).next().is_some();
            paint(nodes, run, code);
        }
        if lost {
            self.unmarked.push_back((number, region));
        }
        Ok(())
    }

    /// The tree is to know the cells that are marked.
    fn know(&mut self, runs: &[(Range<usize>, Option<Code>)]) {
        for (run, _) in runs.iter().filter(|(_, code)| code.is_none()) {
            self.known.add(run.clone());
        }
    }

    /// The same for a prefix that is longer than a cell tells apart; `region` is the cell's.
    fn change_long(
        &mut self,
        nodes: &mut Nodes,
        routes: &Routes,
        region: Region,
        number: u64,
    ) -> Result<(), Exhausted> {
        let cell = cells(region);
        let new = !self.known.has(cell.start);
        self.known.add(cell.clone());
        let made = trie::change(nodes, region, &Tree { known: &self.known, routes });
        match made {
            Ok(change) => change.publish(nodes, number),
            Err(exhausted) => {
                if new {
                    self.known.remove(cell);
                }
                return Err(exhausted);
            }
        }
        let code = routes.cover(region).map_or(NO_CODE, |(_, code)| code);
        if routes.splits(region) || is_large(nodes, code) {
            paint(nodes, cell, None);
        } else {
            paint(nodes, cell, Some(code));
            self.unmarked.push_back((number, region));
        }
        Ok(())
    }

    /// Bytes of what is known of the cells.
    pub(super) fn allocated(&self) -> u64 {
        (self.known.words.capacity() * size_of::<u64>()) as u64
    }

    /// Takes out of the tree what no reader can ask it for any more; what lacks room now stays for a later
    /// change.
    fn forget(&mut self, nodes: &mut Nodes, routes: &Routes, number: u64, oldest: u64) {
        while let Some((cut, region)) = self.unmarked.pop_front_if(|(number, _)| *number < oldest) {
            let later = self.unmarked.iter().rev().take_while(|(number, _)| *number >= oldest);
            if let Some(last) = later.clone().next().map(|(last, _)| *last)
                && later.into_iter().any(|(_, other)| other.overlaps(region))
            {
                // Some of its cells lost the mark once more, which a reader may have seen.
                self.unmarked.push_back((last, region));
                continue;
            }
            let mut forgotten = Vec::new();
            for (run, _) in runs(nodes, routes, region).into_iter().filter(|(_, code)| code.is_some()) {
                forgotten.extend(self.known.runs(run));
            }
            if forgotten.is_empty() {
                continue;
            }
            for run in &forgotten {
                self.known.remove(run.clone());
            }
            match trie::change(nodes, region, &Tree { known: &self.known, routes }) {
                Ok(change) => change.publish(nodes, number),
                Err(Exhausted) => {
                    for run in forgotten {
                        self.known.add(run);
                    }
                    self.unmarked.push_front((cut, region));
                    return;
                }
            }
        }
    }
}

/// A bit for each cell.
#[derive(Default)]
struct Known {
    /// None before the first is added.
    words: Vec<u64>,
}

impl Known {
    fn has(&self, at: usize) -> bool {
        self.words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    fn remove(&mut self, cells: Range<usize>) {
        for (word, bits) in words(cells) {
            if let Some(word) = self.words.get_mut(word) {
                *word &= !bits;
            }
        }
    }

    fn add(&mut self, cells: Range<usize>) {
        if self.words.is_empty() && !cells.is_empty() {
            self.words = vec![0; KNOWN_BYTES as usize / size_of::<u64>()];
        }
        for (word, bits) in words(cells) {
            self.words[word] |= bits;
        }
    }

    /// The first cell from `at` on that is there, or is not; `end` if there is none before.
    fn next(&self, mut at: usize, end: usize, there: bool) -> usize {
        while at < end {
            let word = self.words.get(at / 64).copied().unwrap_or(0);
            let word = if there { word } else { !word } >> (at % 64);
            if word != 0 {
                return (at + word.trailing_zeros() as usize).min(end);
            }
            at = (at / 64 + 1) * 64;
        }
        end
    }

    /// Those among `cells`, as ranges that do not touch each other.
    fn runs(&self, cells: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let end = if self.words.is_empty() { cells.start } else { cells.end };
        let mut at = cells.start;
        std::iter::from_fn(move || {
            let start = self.next(at, end, true);
            at = self.next(start, end, false);
            (start < end).then_some(start..at)
        })
    }
}

/// The words of the bits of these cells, each with those bits.
fn words(cells: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let mut at = cells.start;
    std::iter::from_fn(move || {
        let (word, bit) = (at / 64, at % 64);
        let count = (64 - bit).min(cells.end.checked_sub(at).filter(|left| *left > 0)?);
        work::note(1);
        at += count;
        Some((word, u64::MAX >> (64 - count) << bit))
    })
}

/// What the tree holds: the answers of the cells that it knows, and nothing elsewhere.
struct Tree<'a> {
    known: &'a Known,
    routes: &'a Routes,
}

impl Source for Tree<'_> {
    fn intervals(&self, region: Region, intervals: &mut Vec<Interval>) {
        nothing(region, intervals);
        for run in self.known.runs(cells(region)) {
            for within in regions(run) {
                self.routes.intervals(within, 128, intervals);
                if within.last() < region.last() {
                    extend(intervals, within.last() + 1, NO_CODE);
                }
            }
        }
    }

    fn is_crowded(&self, region: Region) -> bool {
        self.routes.are_more(region, MOST_ANEW)
    }
}

/// The fewest regions that are made of these cells.
fn regions(mut cells: Range<usize>) -> impl Iterator<Item = Region> {
    std::iter::from_fn(move || {
        let at = cells.start;
        let most = (cells.end.checked_sub(at)?).checked_ilog2()?;
        let bits = at.trailing_zeros().min(most);
        cells.start += 1 << bits;
        let length = DIRECT_BITS - bits as u8;
        Some(Region { bits: (at as u128) << (128 - DIRECT_BITS), length })
    })
}

/// The cells of a region in runs, in order: with the code that they hold, or without one where they are
/// marked.
fn runs(nodes: &Nodes, routes: &Routes, region: Region) -> Vec<(Range<usize>, Option<Code>)> {
    let all = cells(region);
    let mut intervals = Vec::new();
    routes.intervals(region, DIRECT_BITS, &mut intervals);
    let within = routes.from(region).map(|(other, _)| other).take_while(|other| other.bits <= region.last());
    let longer = within.filter(|other| other.length > DIRECT_BITS).map(|other| cell(other.bits));
    let mut longer = longer.peekable();
    let mut runs = Vec::with_capacity(intervals.len());
    for (index, one) in intervals.iter().enumerate() {
        let end = intervals.get(index + 1).map_or(all.end, |next| cell(next.start));
        let mut at = cell(one.start);
        if is_large(nodes, one.code) {
            runs.push((at..end, None));
            at = end;
        }
        while let Some(marked) = longer.next_if(|marked| *marked < end) {
            if marked < at {
                continue;
            }
            if at < marked {
                runs.push((at..marked, Some(one.code)));
            }
            runs.push((marked..marked + 1, None));
            at = marked + 1;
        }
        if at < end {
            runs.push((at..end, Some(one.code)));
        }
    }
    runs
}

/// The cells that a region covers in part or in whole.
fn cells(region: Region) -> Range<usize> {
    cell(region.bits)..cell(region.last()) + 1
}

/// Whether a cell has no room for a code.
fn is_large(nodes: &Nodes, code: Code) -> bool {
    code != NO_CODE && code >= nodes.snapshot.layout.escape()
}

/// The cell of an address.
fn cell(address: u128) -> usize {
    (address >> (128 - DIRECT_BITS)) as usize
}

fn store(nodes: &Nodes, at: usize, code: u32) {
    let layout = &nodes.snapshot.layout;
    let bit = at * usize::from(layout.cell_bits);
    let word = layout.direct + bit / 32;
    let others = nodes.load(word) & !(layout.cell_mask() << (bit % 32));
    nodes.store(word, others | code << (bit % 32));
}

/// Gives cells a code, or the mark that sends lookups on.
fn paint(nodes: &Nodes, cells: Range<usize>, code: Option<Code>) {
    let layout = &nodes.snapshot.layout;
    let code = code.unwrap_or(layout.escape()) & layout.cell_mask();
    let in_word = 32 / usize::from(layout.cell_bits);
    let whole = (0..in_word).fold(0, |word, index| word | code << (index * usize::from(layout.cell_bits)));
    let mut at = cells.start;
    while at < cells.end {
        if at.is_multiple_of(in_word) && at + in_word <= cells.end {
            nodes.store(layout.direct + at / in_word, whole);
            at += in_word;
        } else {
            store(nodes, at, code);
            at += 1;
        }
    }
}

/// The intervals of `region` if nothing matches anywhere in it.
fn nothing(region: Region, intervals: &mut Vec<Interval>) {
    extend(intervals, region.bits, NO_CODE);
}
