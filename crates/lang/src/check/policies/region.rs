//! Sets of packets that one row of a table of rules matches: for each column a run of values, or any.

use ir::Match;
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
        (Values::Range { low, high }, Values::Masked { value, mask })
        | (Values::Masked { value, mask }, Values::Range { low, high }) => {
            // A prefix is a mask, too.
            let free = low ^ high;
            if free & free.wrapping_add(1) != 0 || low & free != 0 {
                return Err(RangeUnderMask);
            }
            let apart = (low ^ value) & mask & !free != 0;
            Ok((!apart).then_some(Values::Masked { value: low | value, mask: mask | !free }))
        }
    }
}

/// The values that none of these holds, up to `largest`; `None` if that takes more comparisons than `work`,
/// from which they are taken.
///
/// # Errors
/// A range and a mask would have to be said together.
pub(super) fn none_of(
    values: &[Values],
    largest: u128,
    work: &mut usize,
) -> Result<Option<Vec<Values>>, RangeUnderMask> {
    let mut left = gaps(values, largest);
    for values in values {
        let &Values::Masked { value, mask } = values else { continue };
        let mut rest = Vec::new();
        for without in outside(value, mask) {
            let Some(after) = work.checked_sub(left.len()) else { return Ok(None) };
            *work = after;
            for part in &left {
                rest.extend(meet_values(*part, without)?);
            }
        }
        left = rest;
    }
    Ok(Some(left))
}

/// The runs of values between these ranges; masks are left aside.
fn gaps(values: &[Values], largest: u128) -> Vec<Values> {
    let range = |values: &Values| match *values {
        Values::Range { low, high } => Some((low, high)),
        Values::Masked { .. } => None,
    };
    let mut ranges: Vec<(u128, u128)> = values.iter().filter_map(range).collect();
    ranges.sort_unstable();
    let (mut left, mut next) = (Vec::new(), Some(0));
    for (low, high) in ranges {
        let Some(begin) = next else { break };
        if begin < low {
            left.push(Values::Range { low: begin, high: low - 1 });
        }
        next = high.checked_add(1).map(|behind| behind.max(begin));
    }
    left.extend(next.filter(|begin| *begin <= largest).map(|low| Values::Range { low, high: largest }));
    left
}

/// The values outside of those under a mask, in runs.
fn outside(value: u128, mask: u128) -> impl Iterator<Item = Values> {
    let bits = (0..128).map(|bit| 1u128 << bit).filter(move |bit| mask & bit != 0);
    bits.map(move |bit| Values::Masked { value: !value & bit, mask: bit })
}

/// A column of a row as a table has it, for a column of so many bits.
pub(super) fn part_of_row(part: Part, width: u8) -> Match {
    match part {
        None => Match::Any,
        Some(Values::Masked { value, mask }) => {
            let all = u128::MAX >> (128 - u32::from(width.clamp(1, 128)));
            match mask & all {
                0 => Match::Any,
                mask if mask == all => Match::Exact(value),
                mask => Match::Masked { value, mask },
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_what_none_holds() {
        let ranges = || (0..8).flat_map(|low| (low..8).map(move |high| Values::Range { low, high }));
        let held = |values: &[Values], number| values.iter().any(|values| values.hold(number));
        for one in ranges() {
            for other in ranges() {
                let left = none_of(&[one, other], 7, &mut 100).expect("no mask").expect("few");
                assert!((0..8).all(|number| held(&left, number) != held(&[one, other], number)));
            }
        }
        for (value, mask) in (0..8).flat_map(|value| (1..8).map(move |mask| (value & mask, mask))) {
            let masked = Values::Masked { value, mask };
            let left = none_of(&[masked], 7, &mut 100).expect("alone").expect("few");
            assert!((0..8).all(|number| held(&left, number) != masked.hold(number)));
        }
        assert_eq!(none_of(&[], 7, &mut 0), Ok(Some(vec![Values::Range { low: 0, high: 7 }])));
        let all = Values::Range { low: 0, high: u128::MAX };
        assert_eq!(none_of(&[all, all], u128::MAX, &mut 0), Ok(Some(Vec::new())));
    }

    #[test]
    fn work_that_is_used_up_ends_it() {
        let masks: Vec<Values> = (0..8).map(|bit| Values::Masked { value: 0, mask: 3 << bit }).collect();
        assert_eq!(none_of(&masks, u128::MAX, &mut 100), Ok(None));
        assert!(none_of(&masks, u128::MAX, &mut 1_000).is_ok_and(|left| left.is_some()));
    }
}
