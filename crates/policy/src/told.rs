//! Policies as processes tell them to each other: numbers that JSON does not hold, and whether what was told
//! is a policy.

use crate::field::Values;
use crate::model::{Policy, RuleAction, RuleCondition};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Why what was told is no policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToldFault {
    /// A hook or a rule names a group that is not there.
    #[error("a hook or a rule leads to a group that is not there")]
    Group,
    /// A default does not decide.
    #[error("the default of a hook does not decide")]
    Default,
    /// A rule asks for a condition on earlier packets that is not there.
    #[error("a rule asks for a condition on earlier packets that is not there")]
    Memory,
    /// A rule compares a field with values that it cannot hold.
    #[error("a rule compares a field with values that it cannot hold")]
    Values,
}

impl Policy {
    /// Refuses a policy of another process whose parts do not fit together.
    ///
    /// # Errors
    /// A group, a default, a condition or a value is none.
    pub fn fits_together(&self) -> Result<(), ToldFault> {
        let groups = self.groups.len();
        for hook in &self.hooks {
            if hook.group >= groups {
                return Err(ToldFault::Group);
            }
            if !matches!(
                hook.default,
                RuleAction::Pass | RuleAction::Keep | RuleAction::Block | RuleAction::Reject(_)
            ) {
                return Err(ToldFault::Default);
            }
        }
        for rule in self.groups.iter().flat_map(|group| &group.rules) {
            if let RuleAction::Jump(to) | RuleAction::Goto(to) = rule.action
                && to >= groups
            {
                return Err(ToldFault::Group);
            }
            self.holds_together(&rule.condition)?;
        }
        Ok(())
    }

    fn holds_together(&self, condition: &RuleCondition) -> Result<(), ToldFault> {
        match condition {
            RuleCondition::Holds(field, values) => {
                let most = field.most();
                let fits = |values: &Values| match *values {
                    Values::Range { low, high } => low <= high && high <= most,
                    Values::Masked { value, mask } => value & !mask == 0 && value <= most,
                };
                values.iter().all(fits).then_some(()).ok_or(ToldFault::Values)
            }
            RuleCondition::Absent(_) => Ok(()),
            RuleCondition::All(parts) | RuleCondition::Any(parts) => {
                parts.iter().try_for_each(|part| self.holds_together(part))
            }
            RuleCondition::Not(inner) => self.holds_together(inner),
            RuleCondition::Remembered(memory) if *memory < self.memories.len() => Ok(()),
            RuleCondition::Remembered(_) => Err(ToldFault::Memory),
        }
    }
}

/// A run of values in digits of base 16, since a number of JSON has 64 bits.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Digits {
    Range(String, String),
    Masked(String, String),
}

impl Serialize for Values {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let digits = |number: u128| format!("{number:x}");
        match *self {
            Values::Range { low, high } => Digits::Range(digits(low), digits(high)),
            Values::Masked { value, mask } => Digits::Masked(digits(value), digits(mask)),
        }
        .serialize(to)
    }
}

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Values, D::Error> {
        let number = |digits: &str| {
            u128::from_str_radix(digits, 16)
                .map_err(|_| de::Error::invalid_value(de::Unexpected::Str(digits), &"digits of base 16"))
        };
        Ok(match Digits::deserialize(from)? {
            Digits::Range(low, high) => Values::Range { low: number(&low)?, high: number(&high)? },
            Digits::Masked(value, mask) => Values::Masked { value: number(&value)?, mask: number(&mask)? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ToldFault;
    use crate::model::*;
    use crate::{PacketField, Values};

    fn policy() -> Policy {
        let all = Values::Range { low: 0, high: u128::MAX };
        let mac = Values::Masked { value: 0x0100_0000_0000, mask: 0x0100_0000_0000 };
        let condition = RuleCondition::All(vec![
            RuleCondition::Holds(PacketField::Source, vec![all]),
            RuleCondition::Not(Box::new(RuleCondition::Holds(PacketField::SourceMac, vec![mac]))),
            RuleCondition::Any(vec![
                RuleCondition::Absent(PacketField::SourcePort),
                RuleCondition::Remembered(0),
            ]),
        ]);
        let rule = |action| PolicyRule {
            place: RulePlace { line: 3, column: 5 },
            text: "a rule".into(),
            condition: condition.clone(),
            action,
            decides_at_once: true,
            log: true,
            count: false,
        };
        let rules = vec![rule(RuleAction::Jump(0)), rule(RuleAction::Reject(Reject::Icmpv6(4)))];
        Policy {
            hooks: vec![Hook {
                point: HookPoint::Out,
                group: 0,
                default: RuleAction::Reject(Reject::Unreachable(Unreachable::Host)),
                place: RulePlace::default(),
            }],
            groups: vec![RuleGroup { name: "g".into(), order: MatchOrder::Last, rules }],
            memories: vec![Memory {
                place: RulePlace::default(),
                text: "1/s".into(),
                rate: Ok(RuleRate { tokens: 3, seconds: 60, burst: 5, over: true }),
            }],
            remembers: Remembers::KeptAtPort,
            follows_icmp: true,
            interfaces: vec![("lan".into(), 2)],
            families: AskedFamilies::Version4Alone,
        }
    }

    #[test]
    fn a_policy_comes_back_as_it_was_through_a_value_of_json() {
        let told = serde_json::to_value(policy()).expect("it can be told");
        let back: Policy = serde_json::from_value(told).expect("it is understood");
        assert_eq!(back, policy());
        assert_eq!(back.fits_together(), Ok(()));
        let digits = serde_json::json!({ "range": ["0", "g"] });
        assert!(serde_json::from_value::<Values>(digits).is_err());
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        let changed = |change: fn(&mut Policy)| {
            let mut policy = policy();
            change(&mut policy);
            policy.fits_together()
        };
        let holds = |values| RuleCondition::Holds(PacketField::Protocol, vec![values]);
        assert_eq!(changed(|policy| policy.hooks[0].group = 1), Err(ToldFault::Group));
        assert_eq!(changed(|policy| policy.hooks[0].default = RuleAction::Return), Err(ToldFault::Default));
        assert_eq!(
            changed(|policy| policy.groups[0].rules[0].action = RuleAction::Goto(1)),
            Err(ToldFault::Group)
        );
        assert_eq!(changed(|policy| policy.memories.clear()), Err(ToldFault::Memory));
        for values in [
            Values::Range { low: 0, high: 256 },
            Values::Range { low: 2, high: 1 },
            Values::Masked { value: 3, mask: 1 },
            Values::Masked { value: 0x100, mask: 0x100 },
        ] {
            let mut policy = policy();
            policy.groups[0].rules[0].condition = RuleCondition::Not(Box::new(holds(values)));
            assert_eq!(policy.fits_together(), Err(ToldFault::Values), "{values:?}");
        }
    }
}
