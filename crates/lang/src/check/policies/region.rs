//! Sets of packets that one row of a table of rules matches: for each column a run of values, or any.

use crate::ir::Match;
use crate::limits::LARGEST_POLICY;
use policy::Values;

/// The values of one column; `None` for any.
pub(super) type Part = Option<Values>;

/// The packets for which all columns hold one of their values.
pub(super) type Region = Vec<Part>;

/// A range meets a mask in one column: no row of a table can say both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RangeUnderMask;

/// The packets of both; `None` if there are none.
pub(super) fn meet(one: &Region, other: &Region) -> Result<Option<Region>, RangeUnderMask> {
    let mut both = Region::with_capacity(one.len());
    for pair in one.iter().zip(other) {
        both.push(match pair {
            (None, part) | (part, None) => *part,
            (Some(one), Some(other)) => match meet_values(*one, *other)? {
                Some(values) => Some(values),
                None => return Ok(None),
            },
        });
    }
    Ok(Some(both))
}

/// The values of both; `None` if there are none.
pub(super) fn meet_values(one: Values, other: Values) -> Result<Option<Values>, RangeUnderMask> {
    match (one, other) {
        (Values::Range { low, high }, Values::Range { low: from, high: to }) => {
            let (low, high) = (low.max(from), high.min(to));
            Ok((low <= high).then_some(Values::Range { low, high }))
        }
        (Values::Masked { value, mask }, Values::Masked { value: bits, mask: under }) => {
            let apart = (value ^ bits) & mask & under != 0;
            Ok((!apart).then_some(Values::Masked { value: value | bits, mask: mask | under }))
        }
        (Values::Range { low, high }, masked) | (masked, Values::Range { low, high }) => {
            if low == high {
                Ok(masked.hold(low).then_some(Values::exact(low)))
            } else {
                Err(RangeUnderMask)
            }
        }
    }
}

/// The values that none of these holds, up to `largest`; `None` if there are more runs of them than
/// [`LARGEST_POLICY`].
///
/// # Errors
/// A range and a mask would have to be said together.
pub(super) fn none_of(values: &[Values], largest: u128) -> Result<Option<Vec<Values>>, RangeUnderMask> {
    let mut left = vec![Values::Range { low: 0, high: largest }];
    for values in values {
        let mut rest = Vec::new();
        for without in outside(*values, largest) {
            for part in &left {
                // All values are left: whatever is left of them is what the other says.
                let whole = *part == Values::Range { low: 0, high: largest };
                let met = if whole { Some(without) } else { meet_values(*part, without)? };
                rest.extend(met);
            }
            if rest.len() > LARGEST_POLICY {
                return Ok(None);
            }
        }
        left = rest;
    }
    Ok(Some(left))
}

/// The values outside of a run, in runs.
fn outside(values: Values, largest: u128) -> Vec<Values> {
    match values {
        Values::Range { low, high } => {
            let below = low.checked_sub(1).map(|high| Values::Range { low: 0, high });
            let above = (high < largest).then(|| Values::Range { low: high + 1, high: largest });
            below.into_iter().chain(above).collect()
        }
        Values::Masked { value, mask } => (0..128)
            .map(|bit| 1 << bit)
            .filter(|bit| mask & bit != 0)
            .map(|bit: u128| Values::Masked { value: !value & bit, mask: bit })
            .collect(),
    }
}

/// A column of a row as a table has it, for a column of so many bits.
pub(super) fn part_of_row(part: Part, width: u8) -> Match {
    match part {
        None => Match::Any,
        Some(Values::Masked { value, mask }) => Match::Masked { value, mask },
        Some(Values::Range { low, high }) if low == high => Match::Exact(low),
        Some(Values::Range { low, high }) => {
            let differs = low ^ high;
            let free = (128 - differs.leading_zeros()) as u8;
            // A prefix where all values under it are in the range.
            let prefix = differs.wrapping_add(1) & differs == 0 && low & differs == 0;
            match width.saturating_sub(free) {
                length if prefix && length > 0 => Match::Prefix { value: low, length },
                _ if prefix => Match::Any,
                _ => Match::Range { low, high },
            }
        }
    }
}
