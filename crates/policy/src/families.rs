//! Which version of IP passes whole, where packets of the other one do not.

use crate::field::PacketField;
use crate::model::{AskedFamilies, Hook, MatchOrder, Path, Policy, RuleAction};

impl Policy {
    /// The version of IP, 4 or 6, of which every packet passes every hook whatever else it is, while this is
    /// not so of the other version: 6 of a dump of iptables, of access lists of IOS and of a table `ip` of
    /// nftables. `None` for others, and where nobody asks about version 6.
    pub fn passing_family(&self) -> Option<u8> {
        self.passing_alone(|_| true)
    }

    /// The ways on which this is so of a version of IP, 4 or 6, and this version: a table `ip` of nftables at
    /// `forward` beside one of `ip6` at `input`. None where nobody asks about version 6.
    pub fn passing_families(&self) -> Vec<(Path, u8)> {
        let passing = |path: Path| {
            let version = self.passing_alone(|hook| path.points().contains(&hook.point))?;
            Some((path, version))
        };
        [Path::Forwarded, Path::ToGateway, Path::FromGateway].into_iter().filter_map(passing).collect()
    }

    /// The version whose packets pass all of these hooks, where those of the other one do not.
    fn passing_alone(&self, of: impl Fn(&Hook) -> bool) -> Option<u8> {
        if self.families == AskedFamilies::Version4Alone {
            return None;
        }
        let hooks = || self.hooks.iter().filter(|hook| of(hook));
        let passes = |version| hooks().all(|hook| self.lets_all_pass(hook, version));
        match (passes(4), passes(6)) {
            (false, true) => Some(6),
            (true, false) => Some(4),
            _ => None,
        }
    }

    /// Whether the version is all that a hook asks of packets before it lets them pass.
    fn lets_all_pass(&self, hook: &Hook, version: u128) -> bool {
        let group = &self.groups[hook.group];
        for rule in &group.rules {
            match rule.condition.holds_where(PacketField::Family, version) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::field::Values;
    use crate::model::{HookPoint, PolicyRule, RuleCondition, RuleGroup, RulePlace};

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
    fn the_version_that_passes_is_the_one_about_which_rules_ask_nothing_else() {
        use RuleAction::{Block, Pass};
        let not = |condition| RuleCondition::Not(Box::new(condition));
        let both = |one, other| RuleCondition::All(vec![one, other]);
        let either = |one, other| RuleCondition::Any(vec![one, other]);
        for (rules, default, passing) in [
            (vec![(not(family(4)), Pass), (tcp(), Pass)], Block, Some(6)),
            (vec![(not(family(6)), Pass), (tcp(), Pass)], Block, Some(4)),
            (vec![(both(family(4), tcp()), Block)], Pass, Some(6)),
            (vec![(not(either(family(6), tcp())), Block)], Pass, Some(6)),
            (vec![(family(4), Block)], Pass, Some(6)),
            (vec![(family(6), Pass), (tcp(), Pass)], Block, Some(6)),
            (vec![(both(family(4), tcp()), Block)], Block, None),
            (vec![(either(family(4), tcp()), Block)], Pass, None),
            (vec![(not(family(4)), Block)], Pass, Some(4)),
            (vec![(tcp(), Block), (not(family(4)), Pass)], Block, None),
            (vec![], Pass, None),
            (vec![], Block, None),
        ] {
            assert_eq!(policy(&rules, default).passing_family(), passing, "{rules:?}");
        }
        let four = vec![(not(family(4)), Pass), (tcp(), Pass)];
        let alone = Policy { families: AskedFamilies::Version4Alone, ..policy(&four, Block) };
        assert_eq!((alone.passing_family(), alone.passing_families()), (None, vec![]));
    }

    #[test]
    fn each_way_is_asked_by_itself_which_version_passes() {
        use RuleAction::{Block, Pass};
        let at = |points: &[(HookPoint, u128)]| {
            let mut whole = policy(&[], Pass);
            whole.hooks.clear();
            for (point, version) in points {
                let mut one = policy(&[(family(*version), Block)], Pass);
                let hook = Hook { point: *point, group: whole.groups.len(), ..one.hooks.remove(0) };
                whole.groups.append(&mut one.groups);
                whole.hooks.push(hook);
            }
            (whole.passing_family(), whole.passing_families())
        };
        let (forward, input, out) = (HookPoint::Forward, HookPoint::ToGateway, HookPoint::Out);
        assert_eq!(at(&[(forward, 4), (input, 6)]), (None, vec![(Path::Forwarded, 6), (Path::ToGateway, 4)]));
        assert_eq!(at(&[(forward, 4), (forward, 6), (input, 4)]), (None, vec![(Path::ToGateway, 6)]));
        assert_eq!(at(&[(out, 4)]), (Some(6), vec![(Path::Forwarded, 6), (Path::FromGateway, 6)]));
        assert_eq!(at(&[(HookPoint::In, 4), (forward, 6), (input, 6)]), (None, vec![]));
    }
}
