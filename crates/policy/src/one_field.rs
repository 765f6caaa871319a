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
            RuleCondition::All(parts) => {
                let mut all = Some(true);
                for part in parts {
                    match part.holds_where(field, value) {
                        Some(false) => return Some(false),
                        Some(true) => {}
                        None => all = None,
                    }
                }
                all
            }
            RuleCondition::Any(parts) => {
                let mut any = Some(false);
                for part in parts {
                    match part.holds_where(field, value) {
                        Some(true) => return Some(true),
                        Some(false) => {}
                        None => any = None,
                    }
                }
                any
            }
            RuleCondition::Holds(..) | RuleCondition::Absent(_) | RuleCondition::Remembered(_) => None,
        }
    }
}
