//! The analysis beside the slow walk: every packet of a small header, over random policies.

use crate::decisions::decisions;
use crate::difference::difference;
use crate::evaluate::{PolicyVerdict, Step, evaluate};
use crate::field::PacketField;
use crate::model::{HookPoint, Policy, RuleAction};
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::toy::{packets, policies};
use crate::unreached::findings;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

static PACKETS: LazyLock<Vec<WitnessPacket>> = LazyLock::new(packets);

fn walked(policy: &Policy, packet: &WitnessPacket) -> PolicyVerdict {
    evaluate(policy, packet.path, &packet.packet, &|_| !packet.remembered.is_empty()).expect("ends")
}

/// The rules that decide about a packet at some hook, walked hook by hook.
fn deciding(policy: &Policy, packet: &WitnessPacket, found: &mut BTreeSet<(usize, usize)>) {
    let mut before = Policy { hooks: Vec::new(), ..policy.clone() };
    for point in
        [HookPoint::In, HookPoint::Forward, HookPoint::ToGateway, HookPoint::FromGateway, HookPoint::Out]
    {
        for hook in policy.hooks.iter().filter(|hook| hook.point == point) {
            if !packet.path.points().contains(&point) || !walked(&before, packet).action.passes() {
                continue;
            }
            let alone = Policy { hooks: vec![hook.clone()], ..policy.clone() };
            let steps = walked(&alone, packet).steps;
            let decides = |step: &&Step| match step {
                Step::Rule(group, rule) => policy.groups[*group].rules[*rule].action.decides(),
                Step::Default(_) | Step::Remembered => true,
            };
            if let Some(Step::Rule(group, rule)) = steps.iter().rev().find(decides) {
                found.insert((*group, *rule));
            }
            for step in &steps {
                if let Step::Rule(group, rule) = step
                    && !policy.groups[*group].rules[*rule].action.decides()
                {
                    found.insert((*group, *rule));
                }
            }
            before.hooks.push(hook.clone());
        }
    }
}

#[test]
fn the_small_header_has_about_16_bits() {
    assert!((1 << 15..1 << 17).contains(&PACKETS.len()), "{}", PACKETS.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn every_packet_is_decided_as_it_is_walked(policy in policies()) {
        let mut space = PacketSpace::new().expect("small");
        let decided = decisions(&mut space, &policy).expect("small");
        for packet in PACKETS.iter() {
            let bit = space.bits(packet);
            let decision = decided.decision(space.diagrams.value(decided.function, &bit)).expect("possible");
            let verdict = walked(&policy, packet);
            prop_assert_eq!(decision.action, verdict.action, "{:?}", packet);
            if let Some(step) = decision.by {
                prop_assert!(verdict.steps.contains(&step), "{:?} {:?}", packet, verdict.steps);
            }
        }
    }

    #[test]
    fn rules_that_never_decide_are_those_that_decide_about_no_packet(policy in policies()) {
        let mut expected = BTreeSet::new();
        for packet in PACKETS.iter() {
            deciding(&policy, packet, &mut expected);
        }
        let unreached = findings(&policy).expect("small").unreached;
        let unreached: BTreeSet<_> = unreached.iter().map(|found| (found.group, found.rule)).collect();
        for (group, rules) in policy.groups.iter().enumerate() {
            for rule in 0..rules.rules.len() {
                prop_assert_eq!(!expected.contains(&(group, rule)), unreached.contains(&(group, rule)), "{} {}", group, rule);
            }
        }
    }

    #[test]
    fn two_policies_differ_where_packets_are_treated_otherwise(old in policies(), new in policies()) {
        let both_keep = [&old, &new].iter().all(|policy| policy.remembers.asks(HookPoint::In).is_some());
        let effect = |action| if action == RuleAction::Keep && !both_keep { RuleAction::Pass } else { action };
        let mut expected = BTreeSet::new();
        for packet in PACKETS.iter() {
            let [earlier, later] = [&old, &new].map(|policy| effect(walked(policy, packet).action));
            if earlier != later {
                expected.insert((earlier, later));
            }
        }
        let found = difference(&old, &new, usize::MAX).expect("small");
        prop_assert_eq!(found.classes.len(), found.opened + found.closed + found.other);
        let mut classes = BTreeSet::new();
        for class in &found.classes {
            let (earlier, later) = (walked(&old, &class.witness), walked(&new, &class.witness));
            prop_assert_eq!((class.old.action, class.new.action), (earlier.action, later.action));
            for (by, steps) in [(class.old.by, earlier.steps), (class.new.by, later.steps)] {
                prop_assert!(by.is_none_or(|step| steps.contains(&step)));
            }
            classes.insert((effect(class.old.action), effect(class.new.action)));
        }
        prop_assert_eq!(classes, expected);
    }

    #[test]
    fn boxes_that_are_all_of_a_set_hold_its_packets_and_no_others(policy in policies()) {
        let mut space = PacketSpace::new().expect("small");
        let decided = decisions(&mut space, &policy).expect("small");
        let possible = space.possible().expect("small");
        for number in space.diagrams.numbers(possible, decided.function) {
            let set = space.diagrams.places_of(decided.function, number).expect("small");
            let (boxes, whole) = crate::diagram_description::boxes(&space, set, 200);
            for packet in PACKETS.iter().step_by(7) {
                let inside = space.diagrams.value(set, &space.bits(packet)) == 1;
                let told = boxes.iter().any(|packets| {
                    packets.path.is_none_or(|path| path == packet.path)
                        && packets.fields.iter().all(|(field, ranges)| {
                            let address = matches!(field, PacketField::Source | PacketField::Destination);
                            let version_4 = packet.packet.get(PacketField::Family) == Some(4);
                            let value = packet.packet.get(*field);
                            let value = value.map(|value| if address && version_4 { value & 0xffff_ffff } else { value });
                            value.is_some_and(|value| ranges.iter().any(|(low, high)| (*low..=*high).contains(&value)))
                        })
                });
                // A box tells what may be, so it says nothing about earlier packets.
                let depends = boxes.iter().any(|packets| packets.may);
                prop_assert!(!inside || told || !whole, "{:?} {:?}", packet, boxes);
                prop_assert!(inside || !told || depends, "{:?} {:?}", packet, boxes);
            }
        }
    }
}
