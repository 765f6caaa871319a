//! Which rules of a list may match a packet together, by the ranges of their fields.

use crate::field::{PacketField, Values};
use crate::model::RuleCondition;

/// Pairs of rules that may overlap; of all others it is known that they do not.
pub(crate) struct Overlaps {
    /// How many words of `bits` a rule has.
    words: usize,
    bits: Vec<u64>,
}

impl Overlaps {
    /// Compares each rule with each.
    pub(crate) fn of(conditions: &[&RuleCondition]) -> Overlaps {
        let count = conditions.len();
        let words = count.div_ceil(64);
        let mut bits = vec![u64::MAX; count * words];
        for field in PacketField::ALL {
            let ranges: Vec<(u128, u128)> =
                conditions.iter().map(|condition| range(condition, field)).collect();
            if ranges.iter().all(|range| *range == EVERYTHING) {
                continue;
            }
            // Places in the order of all bounds compare as the bounds do, and faster.
            let mut bounds: Vec<u128> = ranges.iter().flat_map(|(low, high)| [*low, *high]).collect();
            bounds.sort_unstable();
            bounds.dedup();
            let place = |bound: u128| bounds.partition_point(|known| *known < bound) as u32;
            let lows: Vec<u32> = ranges.iter().map(|(low, _)| place(*low)).collect();
            let highs: Vec<u32> = ranges.iter().map(|(_, high)| place(*high)).collect();
            for (rule, own) in bits.chunks_exact_mut(words.max(1)).enumerate() {
                let (low, high) = (lows[rule], highs[rule]);
                for ((word, lows), highs) in own.iter_mut().zip(lows.chunks(64)).zip(highs.chunks(64)) {
                    let mut meet = 0;
                    for (bit, (other_low, other_high)) in lows.iter().zip(highs).enumerate() {
                        meet |= u64::from((*other_low <= high) & (low <= *other_high)) << bit;
                    }
                    *word &= meet;
                }
            }
        }
        Overlaps { words, bits }
    }

    /// The rules before `end` that may overlap with all of these, in their order.
    pub(crate) fn before<'a>(&'a self, end: usize, with: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        (0..end.div_ceil(64)).flat_map(move |word| {
            let mut bits = if end - word * 64 < 64 { (1 << (end % 64)) - 1 } else { u64::MAX };
            for rule in with {
                bits &= self.bits[rule * self.words + word];
            }
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                bits &= bits.checked_sub(1)?;
                Some(word * 64 + bit)
            })
        })
    }
}

const EVERYTHING: (u128, u128) = (0, u128::MAX);
const NOTHING: (u128, u128) = (u128::MAX, 0);

/// A range in which all values of a field are that the condition lets through.
fn range(condition: &RuleCondition, field: PacketField) -> (u128, u128) {
    let around = |ranges: &mut dyn Iterator<Item = (u128, u128)>| {
        ranges.fold(NOTHING, |(low, high), range| (low.min(range.0), high.max(range.1)))
    };
    match condition {
        RuleCondition::Holds(own, values) if *own == field => {
            around(&mut values.iter().map(|values| match *values {
                Values::Range { low, high } => (low, high),
                Values::Masked { value, mask } => (value, value | !mask),
            }))
        }
        RuleCondition::All(parts) => parts.iter().fold(EVERYTHING, |(low, high), part| {
            let part = range(part, field);
            (low.max(part.0), high.min(part.1))
        }),
        RuleCondition::Any(parts) => around(&mut parts.iter().map(|part| range(part, field))),
        RuleCondition::Holds(..)
        | RuleCondition::Absent(_)
        | RuleCondition::Not(_)
        | RuleCondition::Remembered(_) => EVERYTHING,
    }
}
