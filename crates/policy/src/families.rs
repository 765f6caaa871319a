//! Whether a policy is about the packets of one version of IP alone.

use crate::field::PacketField;
use crate::model::{AskedFamilies, Hook, MatchOrder, Policy, RuleAction, RuleCondition};

impl Policy {
    /// The version of IP, 4 or 6, that rules are about, where packets of the other one pass every hook
    /// whatever else they are: a dump of one family, access lists of IOS, a table `ip` of nftables. `None`
    /// for others, and where nobody asks about the other version.
    pub fn about_family_alone(&self) -> Option<u8> {
        if self.families == AskedFamilies::Version4Alone {
            return None;
        }
        let passes = |version| self.hooks.iter().all(|hook| self.lets_all_pass(hook, version));
        match (passes(4), passes(6)) {
            (false, true) => Some(4),
            (true, false) => Some(6),
            _ => None,
        }
    }

    /// Whether the version is all that a hook asks of packets before it lets them pass.
    fn lets_all_pass(&self, hook: &Hook, version: u128) -> bool {
        let group = &self.groups[hook.group];
        for rule in &group.rules {
            match holds(&rule.condition, version) {
                Some(false) => {}
                Some(true) if group.order == MatchOrder::First && rule.action == RuleAction::Pass => {
                    return true;
                }
                _ => return false,
            }
        }
        hook.default == RuleAction::Pass
    }
}

/// Whether a condition holds for packets of a version, whatever else they are; `None` if that depends.
fn holds(condition: &RuleCondition, version: u128) -> Option<bool> {
    match condition {
        RuleCondition::Holds(PacketField::Family, values) => {
            Some(values.iter().any(|values| values.hold(version)))
        }
        RuleCondition::Absent(PacketField::Family) => Some(false),
        RuleCondition::Not(inner) => holds(inner, version).map(|holds| !holds),
        RuleCondition::All(parts) => {
            let mut all = Some(true);
            for part in parts {
                match holds(part, version) {
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
                match holds(part, version) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Values;
    use crate::model::{HookPoint, PolicyRule, RuleGroup, RulePlace};

    fn family(version: u128) -> RuleCondition {
        RuleCondition::Holds(PacketField::Family, vec![Values::exact(version)])
    }

    fn tcp() -> RuleCondition {
        RuleCondition::Holds(PacketField::Protocol, vec![Values::exact(6)])
    }

    fn policy(rules: &[(RuleCondition, RuleAction)], default: RuleAction) -> Policy {
        let rule = |(condition, action): &(RuleCondition, RuleAction)| PolicyRule {
            place: RulePlace::default(),
            text: "".into(),
            condition: condition.clone(),
            action: *action,
            decides_at_once: false,
            log: false,
            count: false,
        };
        let rules = rules.iter().map(rule).collect();
        let place = RulePlace::default();
        Policy {
            groups: vec![RuleGroup { name: "g".to_owned(), order: MatchOrder::First, rules }],
            hooks: vec![Hook { point: HookPoint::Forward, group: 0, default, place }],
            ..Policy::default()
        }
    }

    #[test]
    fn a_policy_is_about_the_family_whose_packets_its_rules_tell_apart() {
        use RuleAction::{Block, Pass};
        let not = |condition| RuleCondition::Not(Box::new(condition));
        let both = |one, other| RuleCondition::All(vec![one, other]);
        let either = |one, other| RuleCondition::Any(vec![one, other]);
        for (rules, default, about) in [
            (vec![(not(family(4)), Pass), (tcp(), Pass)], Block, Some(4)),
            (vec![(not(family(6)), Pass), (tcp(), Pass)], Block, Some(6)),
            (vec![(both(family(4), tcp()), Block)], Pass, Some(4)),
            (vec![(not(either(family(6), tcp())), Block)], Pass, Some(4)),
            (vec![(family(4), Block)], Pass, Some(4)),
            (vec![(both(family(4), tcp()), Block)], Block, None),
            (vec![(either(family(4), tcp()), Block)], Pass, None),
            (vec![(not(family(4)), Block)], Pass, Some(6)),
            (vec![(tcp(), Block), (not(family(4)), Pass)], Block, None),
            (vec![], Pass, None),
            (vec![], Block, None),
        ] {
            assert_eq!(policy(&rules, default).about_family_alone(), about, "{rules:?}");
        }
        let four = vec![(not(family(4)), Pass), (tcp(), Pass)];
        let alone = Policy { families: AskedFamilies::Version4Alone, ..policy(&four, Block) };
        assert_eq!(alone.about_family_alone(), None);
    }
}
