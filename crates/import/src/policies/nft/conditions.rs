//! Conditions that others are put together of.

use crate::conditions::WITH_PORTS;
use policy::{PacketField, RuleCondition, Values};

/// No packet.
pub(super) fn never() -> RuleCondition {
    RuleCondition::Any(Vec::new())
}

/// Every packet.
pub(super) fn always() -> RuleCondition {
    RuleCondition::All(Vec::new())
}

/// All of them; of one, itself.
pub(super) fn all(mut conditions: Vec<RuleCondition>) -> RuleCondition {
    if conditions.len() == 1 { conditions.remove(0) } else { RuleCondition::All(conditions) }
}

/// One of them; where they ask for values of one field, all these values.
pub(super) fn any(conditions: Vec<RuleCondition>) -> RuleCondition {
    let field = |condition: &RuleCondition| match condition {
        RuleCondition::Holds(field, _) => Some(*field),
        _ => None,
    };
    let Some(first) = conditions.first().and_then(field) else { return RuleCondition::Any(conditions) };
    if conditions.iter().any(|condition| field(condition) != Some(first)) {
        return RuleCondition::Any(conditions);
    }
    let values =
        |condition| if let RuleCondition::Holds(_, values) = condition { values } else { Vec::new() };
    RuleCondition::Holds(first, conditions.into_iter().flat_map(values).collect())
}

/// The packet is one of this version of IP.
pub(super) fn family(version: u128) -> RuleCondition {
    RuleCondition::Holds(PacketField::Family, vec![Values::exact(version)])
}

/// The packet is one of this protocol.
pub(super) fn protocol(number: u8) -> RuleCondition {
    RuleCondition::Holds(PacketField::Protocol, vec![Values::exact(number.into())])
}

/// The packet has the field.
pub(super) fn present(field: PacketField) -> RuleCondition {
    RuleCondition::Holds(field, vec![Values::Range { low: 0, high: field.most() }])
}

/// Whether the condition leaves packets with ports only.
pub(super) fn has_ports(condition: &RuleCondition) -> bool {
    match condition {
        RuleCondition::All(all) => all.iter().any(has_ports),
        RuleCondition::Any(any) => any.iter().all(has_ports),
        RuleCondition::Holds(PacketField::Protocol, values) => {
            values.iter().all(|values| WITH_PORTS.iter().any(|own| *values == Values::exact((*own).into())))
        }
        _ => false,
    }
}

/// Whether the condition looks at a field.
pub(super) fn names(condition: &RuleCondition, field: PacketField) -> bool {
    match condition {
        RuleCondition::Holds(own, _) | RuleCondition::Absent(own) => *own == field,
        RuleCondition::All(each) | RuleCondition::Any(each) => each.iter().any(|each| names(each, field)),
        RuleCondition::Not(inner) => names(inner, field),
        RuleCondition::Remembered(_) => false,
    }
}

/// Whether the condition asks, among others, that a field holds this one value.
pub(super) fn needs(condition: &RuleCondition, field: PacketField, value: u128) -> bool {
    match condition {
        RuleCondition::Holds(own, values) => *own == field && *values == [Values::exact(value)],
        RuleCondition::All(each) => each.iter().any(|each| needs(each, field, value)),
        _ => false,
    }
}

/// How many values a condition holds; one without any counts as one.
pub(super) fn values(condition: &RuleCondition) -> usize {
    let count = match condition {
        RuleCondition::Holds(_, values) => values.len(),
        RuleCondition::All(each) | RuleCondition::Any(each) => each.iter().map(values).sum(),
        RuleCondition::Not(inner) => values(inner),
        RuleCondition::Absent(_) | RuleCondition::Remembered(_) => 1,
    };
    count.max(1)
}
