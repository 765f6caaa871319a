//! Conditions as the regions of packets that they hold for: those of one column, and those of rules that come
//! from a file.

use super::KeyColumn;
use super::region::{Part, RangeUnderMask, Region, meet_values, none_of};
use policy::{PacketField, RuleCondition, Values};

/// The columns of a policy by the fields that they are called like.
pub(super) struct FieldColumns([Option<ColumnPlace>; PacketField::ALL.len()]);

/// Where regions say what they hold of a column.
#[derive(Clone, Copy)]
pub(super) struct ColumnPlace {
    /// The place of its part in a region.
    pub(super) place: usize,
    /// Where a region says whether the packet has it.
    pub(super) presence: Option<usize>,
    /// The largest value.
    pub(super) largest: u128,
}

/// Why a condition becomes no regions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConditionFault {
    /// The policy has no column for the field.
    NoColumn(PacketField),
    /// It depends on earlier packets: an index of [`policy::Policy::memories`].
    Remembered(usize),
    /// A range meets a mask.
    Mask,
    /// More regions are compared than may be.
    Work,
}

impl From<RangeUnderMask> for ConditionFault {
    fn from(_: RangeUnderMask) -> Self {
        ConditionFault::Mask
    }
}

impl FieldColumns {
    /// The columns that have the name of a field. The second part is one that is narrower than its field.
    pub(super) fn of<'c, 'p>(columns: &'c [KeyColumn<'p>]) -> Result<FieldColumns, (&'c KeyColumn<'p>, u8)> {
        let mut found = [None; PacketField::ALL.len()];
        for column in columns {
            let field = PacketField::ALL.into_iter().find(|field| field.name() == column.name);
            let Some(field) = field else { continue };
            if column.ty.width().is_none_or(|width| width < field.width()) {
                return Err((column, field.width()));
            }
            found[field as usize] = Some(column.place());
        }
        Ok(FieldColumns(found))
    }

    fn of_field(&self, field: PacketField) -> Result<ColumnPlace, ConditionFault> {
        self.0[field as usize].ok_or(ConditionFault::NoColumn(field))
    }

    /// The packets of these regions for which a condition holds, or for which it does not. `work` is how many
    /// regions may still be compared.
    pub(super) fn narrowed(
        &self,
        within: Vec<Region>,
        condition: &RuleCondition,
        holds: bool,
        work: &mut usize,
    ) -> Result<Vec<Region>, ConditionFault> {
        *work = work.checked_sub(within.len()).ok_or(ConditionFault::Work)?;
        let mut narrowed = match condition {
            RuleCondition::Holds(field, values) if holds => {
                return self.of_field(*field)?.with_values(&within, values, work);
            }
            RuleCondition::Holds(field, values) => {
                let column = self.of_field(*field)?;
                let mut narrowed = column.without_values(&within, values, work)?;
                // What the packet does not have holds nothing.
                narrowed.extend(column.with_presence(&within, false));
                narrowed
            }
            RuleCondition::Absent(field) => self.of_field(*field)?.with_presence(&within, !holds),
            RuleCondition::Not(inner) => return self.narrowed(within, inner, !holds, work),
            RuleCondition::All(parts) if holds => return self.by_each(within, parts, true, work),
            RuleCondition::Any(parts) if !holds => return self.by_each(within, parts, false, work),
            RuleCondition::All(parts) | RuleCondition::Any(parts) => {
                let mut one_of = Vec::new();
                for part in parts {
                    one_of.extend(self.narrowed(within.clone(), part, holds, work)?);
                }
                one_of
            }
            RuleCondition::Remembered(memory) => return Err(ConditionFault::Remembered(*memory)),
        };
        narrowed.sort_unstable();
        narrowed.dedup();
        Ok(narrowed)
    }

    fn by_each(
        &self,
        within: Vec<Region>,
        parts: &[RuleCondition],
        holds: bool,
        work: &mut usize,
    ) -> Result<Vec<Region>, ConditionFault> {
        parts.iter().try_fold(within, |regions, part| self.narrowed(regions, part, holds, work))
    }
}

impl ColumnPlace {
    /// The packets of these regions that have the field, or those that have not.
    pub(super) fn with_presence(self, within: &[Region], there: bool) -> Vec<Region> {
        let Some(place) = self.presence else { return if there { within.to_vec() } else { Vec::new() } };
        let wanted: Part = Some(Values::exact(there.into()));
        let narrowed = within.iter().filter(|region| region[place].is_none() || region[place] == wanted);
        narrowed.map(|region| super::with(region, place, wanted)).collect()
    }

    /// The packets of these regions that hold one of the values.
    pub(super) fn with_values(
        self,
        within: &[Region],
        values: &[Values],
        work: &mut usize,
    ) -> Result<Vec<Region>, ConditionFault> {
        let there = self.with_presence(within, true);
        let pairs = there.len().saturating_mul(values.len());
        *work = work.checked_sub(pairs).ok_or(ConditionFault::Work)?;
        let mut narrowed = Vec::new();
        for region in &there {
            for values in values {
                let met = region[self.place].map_or(Ok(Some(*values)), |part| meet_values(part, *values))?;
                narrowed.extend(met.map(|values| super::with(region, self.place, Some(values))));
            }
        }
        // Two values, or two ways out of a mask, may say the same.
        narrowed.sort_unstable();
        narrowed.dedup();
        Ok(narrowed)
    }

    /// The packets of these regions that have a value, and none of these.
    pub(super) fn without_values(
        self,
        within: &[Region],
        values: &[Values],
        work: &mut usize,
    ) -> Result<Vec<Region>, ConditionFault> {
        let others = none_of(values, self.largest, work)?.ok_or(ConditionFault::Work)?;
        self.with_values(within, &others, work)
    }
}
