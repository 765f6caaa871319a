//! Codes: the numbers that cells contain in place of values.
//!
//! The idea: as long as every value is small enough it is its own code and a lookup ends with the cell.
//! Otherwise each distinct value gets a place in a palette, kept as long as a prefix or a reader may need it.

use std::collections::{HashMap, VecDeque};

use super::routes::{Code, NO_CODE};
use crate::sizes;

/// How values become codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Form {
    /// Bits of a direct cell, or 0 if the image has none.
    pub(super) cell_bits: u8,
    /// Codes are places in the palette; otherwise they are the values.
    pub(super) indexed: bool,
    /// Places in the palette.
    pub(super) palette: usize,
}

impl Form {
    /// The form of a table without values; with direct cells or without. What does not fit its cells stands
    /// in the tree, which is slower.
    pub(super) fn empty(direct: bool, capacity: usize) -> Form {
        let cell_bits = match capacity {
            _ if !direct => 0,
            0..NARROW_CAPACITY => 8,
            _ => 16,
        };
        Form { cell_bits, indexed: false, palette: 0 }
    }

    /// The smallest form for these values; with direct cells or without.
    pub(super) fn choose(direct: bool, values: impl Iterator<Item = u32>, capacity: usize) -> Form {
        let mut most = 0;
        let mut distinct = std::collections::HashSet::new();
        let mut last = None;
        for value in values {
            most = most.max(value);
            if last != Some(value) {
                distinct.insert(value);
            }
            last = Some(value);
        }
        let widths: &[u8] = if direct { &[8, 16, 32] } else { &[0] };
        let fitting = widths.iter().find_map(|&cell_bits| {
            let limit = limit(cell_bits);
            if most < limit {
                return Some(Form { cell_bits, indexed: false, palette: 0 });
            }
            let palette = (limit as usize + 2).min((capacity * 2 + GROWTH).next_power_of_two());
            (distinct.len() < palette - 2).then_some(Form { cell_bits, indexed: true, palette })
        });
        // A palette of 30-bit places outgrows every capacity, so the widest form always fits.
        fitting.unwrap_or(Form {
            cell_bits: widths[widths.len() - 1],
            indexed: true,
            palette: capacity * 4 + GROWTH,
        })
    }
}

/// A table of fewer prefixes begins with direct cells of 8 bits.
const NARROW_CAPACITY: usize = 4096;
/// Room in a palette for values that come while others are still seen by readers.
const GROWTH: usize = 1024;

/// Codes at or above this one mean something else in a cell.
fn limit(cell_bits: u8) -> Code {
    match cell_bits {
        8 => 0xfe,
        16 => 0xfffe,
        _ => NO_CODE - 1,
    }
}

/// Bits of the narrowest direct cell that holds all values up to this one as they are.
pub(super) fn cell_bits(most: u32) -> u8 {
    [8, 16].into_iter().find(|bits| most < limit(*bits)).unwrap_or(32)
}

/// The codes in use.
pub(super) struct Codes {
    form: Form,
    /// The code of each value that has one in the palette, and how many prefixes have it.
    known: HashMap<u32, (Code, usize)>,
    /// The values of the palette.
    values: Vec<u32>,
    free: Vec<Code>,
    /// Codes given up, with the number of the change that did it.
    cut: VecDeque<(u64, Code)>,
}

impl Codes {
    pub(super) fn new(form: Form) -> Codes {
        Codes { form, known: HashMap::new(), values: Vec::new(), free: Vec::new(), cut: VecDeque::new() }
    }

    /// A code for one more prefix of `value`, and whether its place in the palette must be written; none if
    /// the form has no room for it.
    pub(super) fn take(&mut self, value: u32, oldest: impl FnOnce() -> u64) -> Option<(Code, bool)> {
        if !self.form.indexed {
            // What is too large for a direct cell stands in the tree.
            return (value < limit(0)).then_some((value, false));
        }
        if let Some((code, held)) = self.known.get_mut(&value) {
            *held += 1;
            return Some((*code, false));
        }
        if self.free.is_empty() && !self.cut.is_empty() {
            let oldest = oldest();
            while let Some((_, code)) = self.cut.pop_front_if(|(number, _)| *number < oldest) {
                self.free.push(code);
            }
        }
        let code = match self.free.pop() {
            Some(code) => code,
            None if self.values.len() < self.form.palette.min(limit(self.form.cell_bits) as usize) => {
                self.values.push(value);
                (self.values.len() - 1) as Code
            }
            None => return None,
        };
        self.values[code as usize] = value;
        self.known.insert(value, (code, 1));
        Some((code, true))
    }

    /// One prefix less has `code`; `number` is that of the change that took it out of the image.
    pub(super) fn give(&mut self, code: Code, number: u64) {
        if !self.form.indexed {
            return;
        }
        let value = self.values[code as usize];
        if let Some((_, held)) = self.known.get_mut(&value) {
            *held -= 1;
            if *held == 0 {
                self.known.remove(&value);
                self.cut.push_back((number, code));
            }
        }
    }

    /// The value that `code` stands for.
    pub(super) fn value(&self, code: Code) -> u32 {
        if self.form.indexed { self.values[code as usize] } else { code }
    }

    pub(super) fn form(&self) -> Form {
        self.form
    }

    /// Bytes of what the writer knows of them.
    pub(super) fn allocated(&self) -> u64 {
        sizes::hash_map::<u32, (Code, usize)>(self.known.len() as u64)
            + sizes::vector(&self.values)
            + sizes::vector(&self.free)
    }

    /// All values of the palette, by place.
    pub(super) fn palette(&self) -> &[u32] {
        &self.values
    }
}
