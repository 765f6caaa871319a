//! The prefixes of a table, in order: the image is made from them, and they say which prefix matched.
//!
//! The idea: sorted by first address and then by length, a prefix stands directly before everything it
//! contains. So one pass with a stack turns any part of the table into intervals of addresses with one answer
//! each, and the prefix that contains another is its predecessor or has what both have in common.

use std::collections::BTreeMap;

use super::spec::{Prefix, leading};
use crate::sizes;
use crate::work;

/// The number of a value in the image; [`NO_CODE`] where nothing matches.
pub(super) type Code = u32;
/// The code of addresses that no prefix contains.
pub(super) const NO_CODE: Code = (1 << 30) - 1;

/// A region of addresses aligned to the left of 128 bits: those whose first `length` bits are those of
/// `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) bits: u128,
    pub(super) length: u8,
}

impl Region {
    pub(super) fn last(&self) -> u128 {
        self.bits | !leading(self.length, 128)
    }

    /// Whether some address lies in both.
    #[cfg(feature = "fastest")]
    pub(super) fn overlaps(&self, other: Region) -> bool {
        let length = self.length.min(other.length);
        self.shortened(length) == other.shortened(length)
    }

    /// The region of `length` bits that contains this one.
    pub(super) fn shortened(&self, length: u8) -> Region {
        let length = self.length.min(length);
        Region { bits: self.bits & leading(length, 128), length }
    }
}

/// From `start` on, up to the next interval's start or the end of the region, addresses have the answer
/// `code`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) start: u128,
    pub(super) code: Code,
}

/// Adds an interval that begins at `start`.
fn append(intervals: &mut Vec<Interval>, start: u128, code: Code) {
    if intervals.last().is_some_and(|last| last.start == start) {
        intervals.pop();
    }
    intervals.push(Interval { start, code });
}

/// Adds an interval that begins at `start`, merging it with one before that has the same code.
#[cfg(feature = "fastest")]
pub(super) fn extend(intervals: &mut Vec<Interval>, start: u128, code: Code) {
    if intervals.last().is_some_and(|last| last.start == start) {
        intervals.pop();
    }
    if intervals.last().is_none_or(|last| last.code != code) {
        intervals.push(Interval { start, code });
    }
}

/// Every prefix of a table with the code of its value.
#[derive(Default)]
pub(super) struct Routes {
    width: u8,
    entries: BTreeMap<(u128, u8), Code>,
}

impl Routes {
    pub(super) fn new(width: u8) -> Routes {
        Routes { width, entries: BTreeMap::new() }
    }

    /// All at once; `entries` is sorted and names no region twice.
    pub(super) fn from_sorted(width: u8, entries: Vec<(Region, Code)>) -> Routes {
        let entries =
            entries.into_iter().map(|(region, code)| ((region.bits, region.length), code)).collect();
        Routes { width, entries }
    }

    /// The prefix moved to the left of 128 bits.
    pub(super) fn region(&self, prefix: Prefix) -> Region {
        Region {
            bits: prefix.bits.checked_shl(u32::from(128 - self.width)).unwrap_or(0),
            length: prefix.length,
        }
    }

    /// The region moved back to the table's width.
    pub(super) fn prefix(&self, region: Region) -> Prefix {
        Prefix { bits: region.bits >> (128 - self.width), length: region.length }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Bytes, where all were put in at once.
    pub(super) fn allocated(&self) -> u64 {
        sizes::ordered::<(u128, u8), Code>(self.len() as u64)
    }

    pub(super) fn code(&self, region: Region) -> Option<Code> {
        self.entries.get(&(region.bits, region.length)).copied()
    }

    pub(super) fn insert(&mut self, region: Region, code: Code) -> Option<Code> {
        self.entries.insert((region.bits, region.length), code)
    }

    pub(super) fn remove(&mut self, region: Region) -> Option<Code> {
        self.entries.remove(&(region.bits, region.length))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Region, Code)> {
        self.from(Region { bits: 0, length: 0 })
    }

    /// Those that stand at or behind `first`.
    pub(super) fn from(&self, first: Region) -> impl Iterator<Item = (Region, Code)> {
        let held = self.entries.range((first.bits, first.length)..);
        held.map(|(&(bits, length), code)| (Region { bits, length }, *code))
    }

    /// Gives every prefix another code.
    pub(super) fn recode(&mut self, mut recode: impl FnMut(Code) -> Code) {
        for code in self.entries.values_mut() {
            *code = recode(*code);
        }
    }

    /// The longest prefix that contains `region`, itself among them if it is there.
    pub(super) fn cover(&self, region: Region) -> Option<(Region, Code)> {
        let mut wanted = region;
        loop {
            let (&(bits, length), code) = self.entries.range(..=(wanted.bits, wanted.length)).next_back()?;
            let common = (bits ^ region.bits).leading_zeros() as u8;
            if common >= length {
                return Some((Region { bits, length }, *code));
            }
            // What contains both begins at or before the one found, and is no longer than what they have in
            // common.
            wanted = region.shortened(common);
        }
    }

    /// The longest prefix that contains `region` and is shorter than it.
    pub(super) fn parent(&self, region: Region) -> Option<(Region, Code)> {
        self.cover(region.shortened(region.length.checked_sub(1)?))
    }

    /// Whether any prefix longer than `region` lies in it.
    #[cfg(feature = "fastest")]
    pub(super) fn splits(&self, region: Region) -> bool {
        let behind = (region.bits, region.length + 1);
        region.length < 128 && self.entries.range(behind..=(region.last(), 128)).next().is_some()
    }

    /// Whether more than so many prefixes lie in `region`, itself among them if it is there.
    pub(super) fn are_more(&self, region: Region, most: usize) -> bool {
        let within = self.entries.range((region.bits, region.length)..=(region.last(), 128));
        let held = within.take(most + 1).count();
        work::note(held);
        held > most
    }

    /// Appends the answers of `region` as intervals; of prefixes longer than `longest` it takes no notice.
    #[cfg(feature = "fastest")]
    pub(super) fn intervals(&self, region: Region, longest: u8, intervals: &mut Vec<Interval>) {
        self.answers(region, longest, &mut |start, code| extend(intervals, start, code));
    }

    /// Appends the answers of `region` as intervals of which one begins wherever a prefix begins or ends.
    pub(super) fn borders(&self, region: Region, intervals: &mut Vec<Interval>) {
        self.answers(region, 128, &mut |start, code| append(intervals, start, code));
    }

    /// Tells from which addresses on which answers hold, in order.
    fn answers(&self, region: Region, longest: u8, add: &mut dyn FnMut(u128, Code)) {
        let inherited = self.parent(region).map_or(NO_CODE, |(_, code)| code);
        add(region.bits, inherited);
        let end = region.last();
        let mut open: Vec<(u128, Code)> = vec![(end, inherited)];
        for (&(bits, length), code) in self.entries.range((region.bits, region.length)..=(end, 128)) {
            work::note(1);
            if length > longest {
                continue;
            }
            close(&mut open, bits.checked_sub(1), end, add);
            open.push((Region { bits, length }.last(), *code));
            add(bits, *code);
        }
        close(&mut open, Some(end), end, add);
    }
}

/// Ends every open prefix whose last address is at or before `until`: what contains it goes on behind it.
fn close(open: &mut Vec<(u128, Code)>, until: Option<u128>, end: u128, add: &mut dyn FnMut(u128, Code)) {
    while let [.., (_, outer), (last, _)] = open[..]
        && until.is_some_and(|until| last <= until)
    {
        open.pop();
        if last < end {
            add(last + 1, outer);
        }
    }
}
