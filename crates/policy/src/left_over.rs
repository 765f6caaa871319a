//! Whether a change leaves other packets for conditions on earlier packets, such as rates.

use crate::model::{Policy, PolicyRule, RuleGroup};

/// Whether conditions on earlier packets may hold for other packets than before: both policies have some, and
/// their rules are not the same, so that what comes to these conditions may be something else.
///
/// Rules are the same if they are written the same, in groups of the same numbers. A comparison of what they
/// mean would miss that a limit now stands before another part of its rule, where it counts more packets.
pub(crate) fn leaves_others_over(old: &Policy, new: &Policy) -> bool {
    let same = |one: &PolicyRule, other: &PolicyRule| {
        one.condition == other.condition
            && one.action == other.action
            && one.decides_at_once == other.decides_at_once
    };
    let same_group = |(one, other): (&RuleGroup, &RuleGroup)| {
        one.order == other.order
            && one.rules.len() == other.rules.len()
            && one.rules.iter().zip(&other.rules).all(|(one, other)| same(one, other))
    };
    let hooks = |policy: &Policy| -> Vec<_> {
        policy.hooks.iter().map(|hook| (hook.point, hook.group, hook.default)).collect()
    };
    let texts =
        |policy: &Policy| -> Vec<_> { policy.memories.iter().map(|memory| memory.text.clone()).collect() };
    let are_same = old.groups.len() == new.groups.len()
        && old.groups.iter().zip(&new.groups).all(same_group)
        && hooks(old) == hooks(new)
        && texts(old) == texts(new)
        && old.remembers == new.remembers
        && old.follows_icmp == new.follows_icmp;
    !old.memories.is_empty() && !new.memories.is_empty() && !are_same
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis_tests::{forwarding, holds, rule};
    use crate::difference::difference;
    use crate::field::{PacketField, Values};
    use crate::model::{Memory, RuleAction, RuleCondition, RulePlace};

    fn limited(rules: Vec<Vec<PolicyRule>>) -> Policy {
        let rate = Err("a rate".into());
        let memory = Memory { place: RulePlace::default(), text: "limit rate 5/second".into(), rate };
        Policy { memories: vec![memory], ..forwarding(rules) }
    }

    fn limit() -> RuleCondition {
        RuleCondition::Remembered(0)
    }

    fn domain() -> RuleCondition {
        holds(PacketField::DestinationPort, Values::exact(53))
    }

    fn within(parts: Vec<RuleCondition>) -> PolicyRule {
        rule(RuleCondition::All(parts), RuleAction::Pass)
    }

    /// Whether it is said that others are left over, and how many classes differ.
    fn told(old: &Policy, new: &Policy) -> (bool, usize) {
        let found = difference(old, new, 8).expect("small");
        (found.left_over, found.opened + found.closed + found.other)
    }

    #[test]
    fn a_limit_that_is_asked_about_other_packets_is_told_where_no_packet_is_treated_otherwise() {
        let first = limited(vec![vec![within(vec![limit(), domain()])]]);
        let last = limited(vec![vec![within(vec![domain(), limit()])]]);
        assert_eq!(told(&first, &first), (false, 0));
        assert_eq!(told(&first, &last), (true, 0));
        let mut moved = first.clone();
        moved.groups[0].rules[0].place = RulePlace { line: 7, column: 1 };
        assert_eq!(told(&first, &moved), (false, 0));
        // Errors of ICMP about a connection either skip the rules or come to them.
        assert!(told(&first, &Policy { follows_icmp: !first.follows_icmp, ..first.clone() }).0);
    }

    #[test]
    fn a_rule_before_a_limit_is_told_and_one_behind_it_too() {
        let all = || within(vec![limit()]);
        let web = || rule(holds(PacketField::DestinationPort, Values::exact(80)), RuleAction::Pass);
        let (before, behind) = (limited(vec![vec![web(), all()]]), limited(vec![vec![all(), web()]]));
        assert!(told(&before, &behind).0);
        // Without a limit in both there is nothing to be left over for.
        let none = Policy { memories: Vec::new(), ..forwarding(vec![vec![web()]]) };
        assert!(!told(&before, &none).0 && !told(&none, &before).0);
    }

    #[test]
    fn groups_of_other_numbers_are_other_ones() {
        let jump = |to| rule(RuleCondition::All(Vec::new()), RuleAction::Jump(to));
        let named = |mut policy: Policy, names: [&str; 3]| {
            for (group, name) in policy.groups.iter_mut().zip(names) {
                group.name = name.to_owned();
            }
            policy
        };
        let inner = || vec![within(vec![limit(), domain()])];
        let old = named(limited(vec![vec![jump(1)], inner(), Vec::new()]), ["base", "inner", "empty"]);
        let new = named(limited(vec![vec![jump(2)], Vec::new(), inner()]), ["base", "empty", "inner"]);
        assert_eq!(told(&old, &new), (true, 0));
    }
}
