//! Packed bytes: which ranges of a packet a program reads or writes, and their places when only these ranges
//! are copied to a device, one after the other.
//!
//! Ranges whose length is a multiple of four come first, then even ones, so that most numbers are aligned and
//! a device reads them in one access.

use super::form::NoForm;
use ir::{Instruction, Op, Value};
use std::ops::Range;

/// The ranges that these instructions read and write, in the order of their packed places; adjacent ranges
/// are joined.
pub(super) fn ranges<'f>(
    instructions: impl Iterator<Item = &'f Instruction>,
    known: &[Option<u128>],
) -> Result<Vec<Range<u32>>, NoForm> {
    let mut ranges = Vec::new();
    for instruction in instructions {
        let (base, offset, bytes) = match &instruction.op {
            Op::Load { base, offset, bytes, .. } | Op::Store { base, offset, bytes, .. } => {
                (base, offset, bytes)
            }
            Op::Checksum { .. } | Op::Scan { .. } => return Err(NoForm::ManyBytes),
            _ => continue,
        };
        let from = position(*base, *offset, known).ok_or(NoForm::Computed)?;
        ranges.push(from..from + u32::from(*bytes));
    }
    ranges.sort_unstable_by_key(|range| (range.start, range.end));
    let mut merged: Vec<Range<u32>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged.sort_by_key(|range| std::cmp::Reverse((range.end - range.start).trailing_zeros().min(2)));
    Ok(merged)
}

/// The sum of a base and an offset, if it is the same position in every packet.
pub(super) fn position(base: Value, offset: u32, known: &[Option<u128>]) -> Option<u32> {
    u32::try_from(known[base.0 as usize]?).ok()?.checked_add(offset).filter(|position| *position < 1 << 16)
}

/// The packed place of the bytes from a position on.
pub(super) fn place(ranges: &[Range<u32>], position: u32) -> Option<u32> {
    let mut before = 0;
    for range in ranges {
        if range.contains(&position) {
            return Some(before + position - range.start);
        }
        before += range.end - range.start;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_found_where_its_range_lies() {
        let ranges = [30..34, 12..14, 23..24];
        let places: Vec<Option<u32>> = [30, 33, 12, 13, 23, 24, 11].map(|at| place(&ranges, at)).to_vec();
        assert_eq!(places, [Some(0), Some(3), Some(4), Some(5), Some(6), None, None]);
    }
}
