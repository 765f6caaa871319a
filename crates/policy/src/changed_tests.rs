//! Comparisons that look only at the packets of changed rules, beside those that look at all packets.

use crate::analysis_tests::{PACKETS, forwarding, holds, rule, walked};
use crate::changed::{changed_packets, group_changes};
use crate::decisions::memories;
use crate::diagram::ALL;
use crate::difference::difference;
use crate::field::{PacketField, Values};
use crate::model::{Policy, PolicyRule, RuleAction};
use crate::packet_space::PacketSpace;
use crate::toy::policies;
use proptest::prelude::*;

/// The policy with a name of its own for each group.
pub(crate) fn named(mut policy: Policy) -> Policy {
    for (number, group) in policy.groups.iter_mut().enumerate() {
        group.name = format!("group {number}");
    }
    policy
}

/// A policy in which some rules are moved, doubled, turned or gone.
pub(crate) fn changed(policy: &Policy, changes: &[(usize, usize, u8)]) -> Policy {
    let mut policy = policy.clone();
    for (group, place, change) in changes {
        let count = policy.groups.len();
        let rules = &mut policy.groups[group % count].rules;
        if rules.is_empty() {
            continue;
        }
        let (own, other) = (place % rules.len(), (place / 7) % rules.len());
        match change % 4 {
            0 => drop(rules.remove(own)),
            1 => rules.swap(own, other),
            2 => rules.insert(other, rules[own].clone()),
            _ => {
                let action = &mut rules[own].action;
                *action = if action.passes() { RuleAction::Block } else { RuleAction::Pass };
            }
        }
    }
    policy
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn what_changed_rules_do_not_match_is_treated_alike(
        old in policies().prop_map(named),
        changes in proptest::collection::vec((0..3usize, 0..49usize, any::<u8>()), 1..4),
        default in 0..8usize,
    ) {
        let mut new = changed(&old, &changes);
        if let Some(hook) = new.hooks.get_mut(default) {
            hook.default = if hook.default.passes() { RuleAction::Block } else { RuleAction::Pass };
        }
        // Groups of other names have nothing in common, so all packets are looked at.
        let mut renamed = new.clone();
        for group in &mut renamed.groups {
            group.name.push('x');
        }
        let found = difference(&old, &new, 8).expect("small");
        prop_assert_eq!(&found, &difference(&old, &renamed, 8).expect("small"));
        let mut space = PacketSpace::new().expect("small");
        let numbers = memories(&mut space, &old).expect("few");
        let changes = group_changes(&mut space, (&old, &numbers), (&new, &numbers)).expect("small");
        let may = changed_packets(&mut space, changes.as_deref()).expect("small");
        for packet in PACKETS.iter().filter(|packet| space.diagrams.value(may, &space.bits(packet)) == 0) {
            prop_assert_eq!(walked(&old, packet).action, walked(&new, packet).action);
        }
    }
}

#[test]
fn rules_in_common_are_those_of_one_meaning_in_one_order() {
    let port = |port| rule(holds(PacketField::DestinationPort, Values::exact(port)), RuleAction::Pass);
    let policy = |rules: Vec<PolicyRule>| forwarding(vec![rules]);
    let may = |old: &Policy, new: &Policy| {
        let mut space = PacketSpace::new().expect("small");
        let changes = group_changes(&mut space, (old, &[]), (new, &[])).expect("small");
        let may = changed_packets(&mut space, changes.as_deref()).expect("small");
        let mut ports = Vec::new();
        for number in 1..=4 {
            let port = holds(PacketField::DestinationPort, Values::exact(number));
            let port = space.set(&port, &[]).expect("small");
            if space.diagrams.is_inside(port, may).expect("small") {
                ports.push(number);
            }
        }
        (may == ALL, ports)
    };
    let old = policy(vec![port(1), port(2), port(3)]);
    assert_eq!(may(&old, &old), (false, vec![]));
    assert_eq!(may(&old, &policy(vec![port(1), port(3)])), (false, vec![2]));
    assert_eq!(may(&old, &policy(vec![port(2), port(3), port(1)])), (false, vec![1]));
    assert_eq!(may(&old, &policy(vec![port(1), port(4), port(2), port(3)])), (false, vec![4]));
    // Doubled, the second one of the new list is the one that is new.
    assert_eq!(may(&old, &policy(vec![port(1), port(1), port(2), port(3)])), (false, vec![1]));
    let mut other = old.clone();
    other.hooks[0].default = RuleAction::Pass;
    assert_eq!(may(&old, &other), (true, vec![1, 2, 3, 4]));
}
