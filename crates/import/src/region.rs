//! Sets of packets as boxes: what each column may hold. Boxes are cut with each other and out of each other.
//!
//! A column holds a range, or a value under a mask that is no prefix. Two boxes meet in one box, and one box
//! without another is at most a box for each end of a range and each bit of a mask. Only a range beside a
//! mask in the same column has no such form, unless the range is a prefix.

use crate::address::{AddressFamily, host_mask};
use crate::ruleset::Part;
use policy::Values;
use tables::rules::RuleField;

/// The values that one column may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Set {
    /// From `low` to `high`, both of them included.
    Range { low: u128, high: u128 },
    /// The bits of `mask` are those of `value`; the mask is no prefix of the column.
    Masked { value: u128, mask: u128 },
}

/// A range meets a mask in the same column: what they share is no single field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RangeUnderMask;

/// A box: what each column may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    family: AddressFamily,
    /// `None` is any value.
    sets: [Option<Set>; Part::COUNT],
}

impl From<Set> for Values {
    fn from(set: Set) -> Values {
        match set {
            Set::Range { low, high } => Values::Range { low, high },
            Set::Masked { value, mask } => Values::Masked { value, mask },
        }
    }
}

impl Set {
    /// One value.
    pub(crate) fn exact(value: u128) -> Self {
        Set::Range { low: value, high: value }
    }

    /// A prefix of a column of `width` bits.
    pub(crate) fn prefix(width: u8, bits: u128, length: u8) -> Self {
        let host = host_mask(width, length);
        Set::Range { low: bits & !host, high: bits | host }
    }

    /// The values that have the bits of `mask` as `value` has them.
    pub(crate) fn masked(width: u8, value: u128, mask: u128) -> Self {
        let host = !mask & host_mask(width, 0);
        if host & (host.wrapping_add(1)) == 0 {
            Set::Range { low: value & mask, high: (value & mask) | host }
        } else {
            Set::Masked { value: value & mask, mask }
        }
    }

    /// The values that a field of a table of rules fits.
    pub(crate) fn of(field: RuleField, width: u8) -> Self {
        match field {
            RuleField::Any => Set::all(width),
            RuleField::Exact(value) => Set::exact(value),
            RuleField::Prefix { value, length } => Set::prefix(width, value, length),
            RuleField::Ternary { value, mask } => Set::masked(width, value, mask),
            RuleField::Range { low, high } => Set::Range { low, high },
        }
    }

    fn all(width: u8) -> Self {
        Set::Range { low: 0, high: host_mask(width, 0) }
    }

    /// The value and the mask, if it is one value under one mask.
    pub(crate) fn as_mask(self, width: u8) -> Option<(u128, u128)> {
        match self {
            Set::Masked { value, mask } => Some((value, mask)),
            Set::Range { low, high } => {
                let host = low ^ high;
                let aligned = host & host.wrapping_add(1) == 0 && low & host == 0;
                aligned.then_some((low, !host & host_mask(width, 0)))
            }
        }
    }

    /// Whether it holds a value.
    pub(crate) fn holds(self, value: u128) -> bool {
        match self {
            Set::Range { low, high } => (low..=high).contains(&value),
            Set::Masked { value: wanted, mask } => value & mask == wanted,
        }
    }

    /// What both hold; `None` if that is nothing.
    fn meet(self, other: Self, width: u8) -> Result<Option<Self>, RangeUnderMask> {
        if let (Set::Range { low, high }, Set::Range { low: other_low, high: other_high }) = (self, other) {
            let (low, high) = (low.max(other_low), high.min(other_high));
            return Ok((low <= high).then_some(Set::Range { low, high }));
        }
        let (Some((value, mask)), Some((other_value, other_mask))) =
            (self.as_mask(width), other.as_mask(width))
        else {
            return Err(RangeUnderMask);
        };
        let together = || Set::masked(width, value | other_value, mask | other_mask);
        Ok(((value ^ other_value) & mask & other_mask == 0).then(together))
    }

    /// The values that are not in it, in parts that share none.
    pub(crate) fn complement(self, width: u8) -> Vec<Self> {
        match self {
            Set::Range { low, high } => {
                let below = low.checked_sub(1).map(|end| Set::Range { low: 0, high: end });
                let last = host_mask(width, 0);
                let above = (high < last).then(|| Set::Range { low: high + 1, high: last });
                below.into_iter().chain(above).collect()
            }
            Set::Masked { value, mask } => {
                let bits = (0..width).rev().map(|bit| 1u128 << bit).filter(|bit| mask & bit != 0);
                let part = |bit: u128| {
                    let upper = mask & !(bit | (bit - 1));
                    Set::masked(width, (value & upper) | (!value & bit), upper | bit)
                };
                bits.map(part).collect()
            }
        }
    }
}

impl Region {
    /// Every packet.
    pub(crate) fn any(family: AddressFamily) -> Self {
        Self { family, sets: [None; Part::COUNT] }
    }

    pub(crate) fn width(&self, part: Part) -> u8 {
        part.width(self.family)
    }

    /// What a column may hold; `None` is any value.
    pub(crate) fn set(&self, part: Part) -> Option<Set> {
        self.sets[part as usize]
    }

    fn whole(&self, part: Part) -> Set {
        self.set(part).unwrap_or(Set::all(self.width(part)))
    }

    /// The box with another set in one column.
    pub(crate) fn with(&self, part: Part, set: Set) -> Self {
        let mut region = self.clone();
        region.sets[part as usize] = (set != Set::all(self.width(part))).then_some(set);
        region
    }

    /// The packets of it that hold one of `set` in a column; `None` if there is none.
    pub(crate) fn narrowed(&self, part: Part, set: Set) -> Result<Option<Self>, RangeUnderMask> {
        let met = self.whole(part).meet(set, self.width(part))?;
        Ok(met.map(|set| self.with(part, set)))
    }

    /// The packets in both; `None` if there is none.
    pub(crate) fn meet(&self, other: &Self) -> Result<Option<Self>, RangeUnderMask> {
        let mut region = self.clone();
        for part in Part::ALL {
            let met = match (self.set(part), other.set(part)) {
                (_, None) => continue,
                (None, set) => set,
                (Some(own), Some(set)) => match own.meet(set, self.width(part))? {
                    None => return Ok(None),
                    met => met,
                },
            };
            region.sets[part as usize] = met;
        }
        Ok(Some(region))
    }

    /// The packets of it that are not in `other`, in boxes that share none.
    pub(crate) fn without(&self, other: &Self) -> Result<Vec<Self>, RangeUnderMask> {
        if self.meet(other)?.is_none() {
            return Ok(vec![self.clone()]);
        }
        let (mut rest, mut parts) = (self.clone(), Vec::new());
        for part in Part::ALL {
            let Some(set) = other.set(part) else { continue };
            for outside in set.complement(self.width(part)) {
                parts.extend(rest.narrowed(part, outside)?);
            }
            if let Some(inside) = rest.narrowed(part, set)? {
                rest = inside;
            }
        }
        Ok(parts)
    }

    /// What a table of rules looks for in a column.
    pub(crate) fn field(&self, part: Part) -> RuleField {
        let Some(set) = self.set(part) else { return RuleField::Any };
        let is_address = matches!(part, Part::Source | Part::Destination);
        match (set, set.as_mask(self.width(part))) {
            (Set::Masked { value, mask }, _) => RuleField::Ternary { value, mask },
            (Set::Range { low, high }, _) if low == high => RuleField::Exact(low),
            (_, Some((value, mask))) if is_address => {
                RuleField::Prefix { value, length: mask.count_ones() as u8 }
            }
            (Set::Range { low, high }, _) => RuleField::Range { low, high },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u8 = 8;

    fn sets() -> impl Strategy<Value = Set> {
        prop_oneof![
            (0u128..256, 0u128..256)
                .prop_map(|(one, other)| Set::Range { low: one.min(other), high: one.max(other) }),
            (0u128..256, 0u128..256).prop_map(|(value, mask)| Set::masked(WIDTH, value, mask)),
        ]
    }

    fn holds_all(region: &Region, protocol: u128, flags: u128) -> bool {
        [(Part::Protocol, protocol), (Part::TcpFlags, flags)]
            .into_iter()
            .all(|(part, value)| region.set(part).is_none_or(|set| set.holds(value)))
    }

    fn regions() -> impl Strategy<Value = Region> {
        (prop::option::of(sets()), prop::option::of(sets())).prop_map(|(one, other)| {
            let mut region = Region::any(AddressFamily::V4);
            for (part, set) in [(Part::Protocol, one), (Part::TcpFlags, other)] {
                region = set.map_or(region.clone(), |set| region.with(part, set));
            }
            region
        })
    }

    proptest! {
        #[test]
        fn two_sets_meet_where_both_hold(one in sets(), other in sets()) {
            if let Ok(met) = one.meet(other, WIDTH) {
                for value in 0..256 {
                    prop_assert_eq!(met.is_some_and(|set| set.holds(value)), one.holds(value) && other.holds(value));
                }
            } else {
                let mixed = |one: Set, other: Set| matches!(one, Set::Masked { .. }) && other.as_mask(WIDTH).is_none();
                prop_assert!(mixed(one, other) || mixed(other, one));
            }
        }

        #[test]
        fn each_value_is_in_a_set_or_in_one_part_of_its_complement(set in sets()) {
            for value in 0..256 {
                let parts = set.complement(WIDTH).into_iter().filter(|part| part.holds(value)).count();
                prop_assert_eq!(parts + usize::from(set.holds(value)), 1);
            }
        }

        #[test]
        fn cutting_out_leaves_what_is_in_one_alone(one in regions(), other in regions()) {
            let (Ok(parts), Ok(met)) = (one.without(&other), one.meet(&other)) else { return Ok(()) };
            for protocol in (0..256).step_by(3) {
                for flags in (0..256).step_by(5) {
                    let (in_one, in_other) = (holds_all(&one, protocol, flags), holds_all(&other, protocol, flags));
                    let count = parts.iter().filter(|part| holds_all(part, protocol, flags)).count();
                    prop_assert_eq!(count, usize::from(in_one && !in_other));
                    prop_assert_eq!(met.as_ref().is_some_and(|met| holds_all(met, protocol, flags)), in_one && in_other);
                }
            }
        }
    }

    #[test]
    fn a_field_is_the_plainest_that_says_it() {
        let field = |part, set| Region::any(AddressFamily::V4).with(part, set).field(part);
        assert_eq!(
            field(Part::Source, Set::prefix(32, 0x0a00_0000, 8)),
            RuleField::Prefix { value: 0x0a00_0000, length: 8 }
        );
        assert_eq!(field(Part::Source, Set::prefix(32, 5, 32)), RuleField::Exact(5));
        assert_eq!(field(Part::Source, Set::prefix(32, 0, 0)), RuleField::Any);
        assert_eq!(field(Part::Source, Set::Range { low: 1, high: 2 }), RuleField::Range { low: 1, high: 2 });
        assert_eq!(
            field(Part::SourcePort, Set::Range { low: 1024, high: 2047 }),
            RuleField::Range { low: 1024, high: 2047 }
        );
        assert_eq!(
            field(Part::TcpFlags, Set::masked(8, 2, 0x12)),
            RuleField::Ternary { value: 2, mask: 0x12 }
        );
    }
}
