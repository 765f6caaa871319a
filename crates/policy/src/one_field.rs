//! What is known of a condition where one field of a packet is known.

use crate::field::PacketField;
use crate::model::RuleCondition;

impl RuleCondition {
    /// Whether it holds for packets that have this value in the field, whatever else they are; `None` if that
    /// depends on something else, or is not seen part by part.
    pub fn holds_where(&self, field: PacketField, value: u128) -> Option<bool> {
        match self {
            RuleCondition::Holds(own, values) if *own == field => {
                Some(values.iter().any(|values| values.hold(value)))
            }
            RuleCondition::Absent(own) if *own == field => Some(false),
            RuleCondition::Not(inner) => inner.holds_where(field, value).map(|holds| !holds),
            RuleCondition::All(parts) => together(parts, field, value, false),
            RuleCondition::Any(parts) => together(parts, field, value, true),
            RuleCondition::Holds(..) | RuleCondition::Absent(_) | RuleCondition::Remembered(_) => None,
        }
    }
}

/// What is known of parts together, one of which decides alone if it is `decisive`.
fn together(parts: &[RuleCondition], field: PacketField, value: u128, decisive: bool) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.holds_where(field, value) {
            Some(holds) if holds == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis_tests::{PACKETS, forwarding, holds, rule, walked};
    use crate::field::Values;
    use crate::model::{Path, RuleAction};
    use crate::toy::conditions;
    use proptest::prelude::*;

    const FIELDS: [PacketField; 6] = [
        PacketField::Family,
        PacketField::Protocol,
        PacketField::LaterFragment,
        PacketField::State,
        PacketField::InPort,
        PacketField::TcpFlags,
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn what_is_known_of_a_condition_is_so_for_every_packet_with_the_value(condition in conditions()) {
            let policy = forwarding(vec![vec![rule(condition.clone(), RuleAction::Pass)]]);
            let forwarded = PACKETS.iter().filter(|packet| packet.path == Path::Forwarded);
            for packet in forwarded {
                let matches = walked(&policy, packet).action == RuleAction::Pass;
                for field in FIELDS {
                    let Some(value) = packet.packet.get(field) else { continue };
                    let known = condition.holds_where(field, value);
                    prop_assert!(known.is_none_or(|known| known == matches), "{field:?} {value}");
                }
            }
        }
    }

    #[test]
    fn a_part_that_decides_makes_the_others_needless() {
        let family = |version| holds(PacketField::Family, Values::exact(version));
        let tcp = || holds(PacketField::Protocol, Values::exact(6));
        let (all, any, not) =
            (RuleCondition::All, RuleCondition::Any, |inner| RuleCondition::Not(Box::new(inner)));
        for (condition, known) in [
            (all(vec![]), Some(true)),
            (any(vec![]), Some(false)),
            (all(vec![tcp(), family(6)]), Some(false)),
            (all(vec![tcp(), family(4)]), None),
            (all(vec![family(4), family(4)]), Some(true)),
            (any(vec![tcp(), family(4)]), Some(true)),
            (any(vec![tcp(), family(6)]), None),
            (any(vec![family(6), family(6)]), Some(false)),
            (not(all(vec![tcp(), family(6)])), Some(true)),
            (not(tcp()), None),
            (RuleCondition::Absent(PacketField::Family), Some(false)),
            (RuleCondition::Absent(PacketField::Protocol), None),
            (RuleCondition::Remembered(0), None),
        ] {
            assert_eq!(condition.holds_where(PacketField::Family, 4), known, "{condition:?}");
        }
    }
}
