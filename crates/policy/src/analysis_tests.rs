//! The analysis beside the slow walk: every packet of a small header, over random policies.

use crate::decisions::{AnalysisFault, decisions};
use crate::diagram::TooManyNodes;
use crate::difference::difference;
use crate::evaluate::{PolicyFault, PolicyVerdict, Step, evaluate};
use crate::field::{PacketField, Values};
use crate::limits::{MOST_COVERS, MOST_MEMORIES};
use crate::model::{
    AskedFamilies, Hook, HookPoint, MatchOrder, Memory, Policy, PolicyRule, Remembers, RuleAction,
    RuleCondition, RuleGroup, RulePlace, RuleRate,
};
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::packet_text::{packet_text, read_packets};
use crate::toy::{packets, policies};
use crate::unreached::{CoverEffect, UnreachedCause};
use crate::why::DecidedPolicy;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::LazyLock;

pub(crate) static PACKETS: LazyLock<Vec<WitnessPacket>> = LazyLock::new(packets);

pub(crate) fn walked(policy: &Policy, packet: &WitnessPacket) -> PolicyVerdict {
    evaluate(policy, packet.path, &packet.packet, &|_| !packet.remembered.is_empty()).expect("ends")
}

/// Each hook alone, with the hooks before it, in the order of points.
pub(crate) fn hooks(policy: &Policy) -> Vec<(HookPoint, Policy, Policy)> {
    use HookPoint as Point;
    let mut before = Policy { hooks: Vec::new(), ..policy.clone() };
    let mut all = Vec::new();
    for point in [Point::In, Point::Forward, Point::ToGateway, Point::FromGateway, Point::Out] {
        for hook in policy.hooks.iter().filter(|hook| hook.point == point) {
            all.push((point, before.clone(), Policy { hooks: vec![hook.clone()], ..policy.clone() }));
            before.hooks.push(hook.clone());
        }
    }
    all
}

/// The rules that decide about a packet at some hook, and those that send it on there.
fn deciding(
    hooks: &[(HookPoint, Policy, Policy)],
    packet: &WitnessPacket,
    found: &mut BTreeSet<(usize, usize)>,
) {
    for (point, before, alone) in hooks {
        let earlier = walked(before, packet).action;
        // What is kept for the whole way is asked nothing more on it.
        let is_asked = match earlier {
            RuleAction::Keep => before.remembers != Remembers::Kept,
            action => action.passes(),
        };
        if !packet.path.points().contains(point) || !is_asked {
            continue;
        }
        let mut decided = false;
        for step in walked(alone, packet).steps.into_iter().rev() {
            let decides = match step {
                Step::Rule(group, rule) => alone.groups[group].rules[rule].action.decides(),
                Step::Default(_) => true,
                // Here no rule was asked then; a later point has no say about this one.
                Step::Remembered => false,
            };
            // Of the rules that decide, the last one's decision stands.
            if let Step::Rule(group, rule) = step
                && !(decides && decided)
            {
                found.insert((group, rule));
            }
            decided |= decides;
        }
    }
}

#[test]
fn the_small_header_has_about_16_bits() {
    assert!((1 << 15..1 << 17).contains(&PACKETS.len()), "{}", PACKETS.len());
}

fn unreached(policy: &Policy) -> Vec<(usize, usize)> {
    DecidedPolicy::new(policy).expect("small").unreached().expect("small")
}

/// A policy of one hook whose first group has these rules, and of the other groups.
pub(crate) fn forwarding(groups: Vec<Vec<PolicyRule>>) -> Policy {
    let (place, default) = (RulePlace::default(), RuleAction::Block);
    let hook = Hook { point: HookPoint::Forward, group: 0, default, place };
    let group = |rules| RuleGroup { name: String::new(), order: MatchOrder::First, rules };
    Policy { hooks: vec![hook], groups: groups.into_iter().map(group).collect(), ..Policy::default() }
}

pub(crate) fn rule(condition: RuleCondition, action: RuleAction) -> PolicyRule {
    let (place, text) = (RulePlace::default(), "".into());
    PolicyRule { place, text, condition, action, decides_at_once: false, log: false, count: false }
}

pub(crate) fn holds(field: PacketField, values: Values) -> RuleCondition {
    RuleCondition::Holds(field, vec![values])
}

#[test]
fn jumps_without_an_end_and_through_too_many_rules_are_refused() {
    let all = || RuleCondition::All(Vec::new());
    let circle = forwarding(vec![vec![rule(all(), RuleAction::Jump(0))]]);
    assert_eq!(DecidedPolicy::new(&circle).map(drop), Err(AnalysisFault::Walk(PolicyFault::TooDeep)));
    let mut groups: Vec<Vec<PolicyRule>> =
        (1..31).map(|next| vec![rule(all(), RuleAction::Jump(next)); 2]).collect();
    groups.push(vec![rule(holds(PacketField::DestinationPort, Values::exact(1)), RuleAction::Pass); 256]);
    let long = forwarding(groups);
    assert_eq!(DecidedPolicy::new(&long).map(drop), Err(AnalysisFault::Walk(PolicyFault::TooLong)));
}

#[test]
fn rates_with_one_text_remember_by_themselves() {
    let limited = |count: usize| {
        let rules = (0..count).map(|index| rule(RuleCondition::Remembered(index), RuleAction::Pass));
        let rate = Ok(RuleRate { tokens: 1, seconds: 1, burst: 5, over: false });
        let memory = Memory { place: RulePlace::default(), text: "limit 1/second".into(), rate };
        Policy { memories: vec![memory; count], ..forwarding(vec![rules.collect()]) }
    };
    assert_eq!(unreached(&limited(2)), []);
    let differs = difference(&limited(1), &limited(2), 9).expect("small");
    assert_eq!((differs.opened, differs.closed), (1, 0));
    let alike = difference(&limited(2), &limited(2), 9).expect("small");
    assert_eq!((alike.opened, alike.closed), (0, 0));
}

#[test]
fn rules_that_cover_another_one_are_named_up_to_a_number_and_counted() {
    let port = |port| holds(PacketField::DestinationPort, Values::exact(port));
    let mut rules: Vec<PolicyRule> = (0..100).map(|number| rule(port(number), RuleAction::Pass)).collect();
    let all = holds(PacketField::DestinationPort, Values::Range { low: 0, high: 99 });
    rules.push(rule(all, RuleAction::Block));
    let policy = forwarding(vec![rules]);
    assert_eq!(unreached(&policy), [(0, 100)]);
    let cause = DecidedPolicy::new(&policy).expect("small").why_unreached(&[(0, 100)]).expect("small");
    let by = (0..MOST_COVERS).map(|index| Step::Rule(0, index)).collect();
    assert_eq!(cause, UnreachedCause::Covered { by, more: 100 - MOST_COVERS, effect: CoverEffect::Opposite });
}

#[test]
fn why_several_rules_never_decide_is_said_of_all_of_them_together() {
    let port = |port| holds(PacketField::DestinationPort, Values::exact(port));
    let none = RuleCondition::Any(Vec::new());
    let rules = vec![
        rule(port(1), RuleAction::Pass),
        rule(port(2), RuleAction::Block),
        rule(port(1), RuleAction::Pass),
        rule(port(2), RuleAction::Pass),
        rule(none, RuleAction::Pass),
    ];
    let policy = forwarding(vec![rules, vec![rule(port(1), RuleAction::Pass)]]);
    let mut decided = DecidedPolicy::new(&policy).expect("small");
    let mut why = |rules: &[(usize, usize)]| decided.why_unreached(rules).expect("small");
    let covered = |rules: &[usize], effect| UnreachedCause::Covered {
        by: rules.iter().map(|rule| Step::Rule(0, *rule)).collect(),
        more: 0,
        effect,
    };
    assert_eq!(why(&[(0, 4)]), UnreachedCause::Impossible);
    assert_eq!(why(&[(0, 2), (0, 4)]), covered(&[0], CoverEffect::Same));
    assert_eq!(why(&[(0, 2), (0, 3)]), covered(&[0, 1], CoverEffect::Mixed));
    assert_eq!(why(&[(0, 4), (1, 0)]), UnreachedCause::GroupUnreached(vec![1]));
}

#[test]
fn diagrams_with_too_many_nodes_are_refused() {
    let policy = forwarding(vec![vec![rule(
        holds(PacketField::Source, Values::Range { low: 1, high: u128::MAX - 1 }),
        RuleAction::Pass,
    )]]);
    let with = |most| {
        let mut space = PacketSpace::with_limit(most)?;
        decisions(&mut space, &policy).map(drop)
    };
    assert_eq!(with(500), Err(AnalysisFault::TooLarge));
    assert_eq!(with(5_000), Ok(()));
}

#[test]
fn a_search_for_numbers_remembers_as_many_pairs_as_there_may_be_nodes() {
    let mut space = PacketSpace::with_limit(1_000).expect("small");
    let odd = |field| holds(field, Values::Masked { value: 1, mask: 1 });
    let [one, other] = [PacketField::Source, PacketField::Destination]
        .map(|field| space.set(&odd(field), &[]).expect("small"));
    space.diagrams.most = 2;
    assert_eq!(space.diagrams.numbers(one, other).map(drop), Err(TooManyNodes));
    space.diagrams.most = 1_000;
    assert_eq!(space.diagrams.numbers(one, other).map(drop), Ok(()));
}

#[test]
fn more_conditions_on_earlier_packets_than_the_limit_are_refused() {
    let limited = |count: usize| {
        let rules = (0..count).map(|index| rule(RuleCondition::Remembered(index), RuleAction::Pass));
        let rate = Ok(RuleRate { tokens: 1, seconds: 1, burst: 5, over: false });
        let memory = Memory { place: RulePlace::default(), text: "limit 1/second".into(), rate };
        Policy { memories: vec![memory; count], ..forwarding(vec![rules.collect()]) }
    };
    assert!(DecidedPolicy::new(&limited(MOST_MEMORIES)).is_ok());
    let refused = DecidedPolicy::new(&limited(MOST_MEMORIES + 1)).map(drop);
    assert_eq!(refused, Err(AnalysisFault::TooManyMemories));
}

#[test]
fn boxes_end_where_a_part_of_the_set_is_too_ragged() {
    let mut space = PacketSpace::new().expect("small");
    let ragged = |field| holds(field, Values::Masked { value: 0, mask: 1 });
    let parts = [PacketField::DestinationPort, PacketField::SourcePort].map(ragged);
    let whole = RuleCondition::Any(vec![
        RuleCondition::All(parts.to_vec()),
        holds(PacketField::Protocol, Values::exact(255)),
    ]);
    let set = space.set(&whole, &[]).expect("small");
    // Protocols with ports come first, so nothing of the plain rest is told any more.
    assert_eq!(crate::diagram_description::boxes(&space, set, 1_000), (Vec::new(), false));
}

#[test]
fn a_set_that_is_too_ragged_is_not_told_in_ranges() {
    let mut space = PacketSpace::new().expect("small");
    let mut boxes = |values| {
        let set = space.set(&holds(PacketField::DestinationPort, values), &[]).expect("small");
        crate::diagram_description::boxes(&space, set, 1000)
    };
    // Odd ports are 32,768 ranges, and those whose lowest bits are open 16.
    assert!(!boxes(Values::Masked { value: 1, mask: 1 }).1);
    let (told, whole) = boxes(Values::Masked { value: 0, mask: 0x0f00 });
    assert!(
        whole
            && told.iter().all(|packets| {
                packets.holds(PacketField::DestinationPort).is_some_and(|ranges| ranges.len() == 16)
            })
    );
    let mut few = |most| {
        let set = space.set(&holds(PacketField::DestinationPort, Values::exact(1)), &[]).expect("small");
        crate::diagram_description::boxes(&space, set, most)
    };
    assert_eq!((few(0).0.len(), few(0).1, few(1).0.len(), few(1).1), (0, false, 1, true));
}

#[test]
fn a_packet_is_written_as_it_is_read() {
    let names = [("wan".to_owned(), 2)];
    let policy = forwarding(vec![Vec::new()]);
    let mut decided = DecidedPolicy::new(&policy).expect("small");
    for line in [
        "tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan out 1",
        "tcp [2001:db8::7]:1024 > [2001:db8::1]:22 in wan out 1 flags SA",
        "icmp 192.0.2.7 > 10.0.0.1 type 8 code 0 in wan to gateway",
        "udp 192.0.2.7 > 10.0.0.1 fragment out 7 dscp 46 ttl 1 length 1500 from gateway",
        "gre 192.0.2.7 > 10.0.0.1 in 1 out wan state established",
        "gre 192.0.2.7 > 10.0.0.1 in 1 out wan out_state related",
        "gre 192.0.2.7 > 10.0.0.1 in 1 out wan state established out_state new",
        "gre 192.0.2.7 > 10.0.0.1 in 1 mac 02:00:5e:00:53:07 to gateway",
        "tcp 192.0.2.7:1024 > 10.0.0.1:22 in wan out 1 ip_id 3 sequence 4294967295 window 512 checksum 9",
        "udp [2001:db8::7]:1024 > [2001:db8::1]:22 in wan out 1 flow_label 9 next_header 43 extension_headers 4 routing_type 2",
        "esp 192.0.2.7 > 10.0.0.1 in 1 out wan spi 9",
        "135 2001:db8::7 > 2001:db8::1 in 1 out wan mobility_type 5",
        "icmpv6 2001:db8::7 > 2001:db8::1 type 128 code 0 icmp_rest 65536 in wan to gateway",
    ] {
        let packets = read_packets(line, &names).expect(line);
        let witness = decided.why(&packets).expect("small").remove(0).witness;
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<BTreeSet<String>>();
        assert_eq!(words(&packet_text(&witness, &names)), words(line));
    }
    // No packet has a field of a header that it has not.
    for line in [
        "udp window 5",
        "tcp fragment sequence 5",
        "tcp 192.0.2.7 > 10.0.0.1 flow_label 1",
        "esp 2001:db8::7 > 2001:db8::1 ip_id 1",
        "135 192.0.2.7 > 10.0.0.1 mobility_type 5",
        "tcp extension_headers 3 routing_type 1",
    ] {
        let packets = read_packets(line, &names).expect(line);
        assert_eq!(decided.why(&packets).expect("small").len(), 0, "{line}");
    }
    for (line, what) in [
        ("", "no packet"),
        ("tpc 10.0.0.1 > 10.0.0.2", "no protocol"),
        ("tcp 10.0.0.1", "`>`"),
        ("tcp 10.0.0.1 > 10.0.0.2:x", "no port number"),
        ("tcp 10.0.0.1 > 10.0.0.0/33", "no address"),
        ("tcp in lan", "no port"),
        ("tcp state old", "no state"),
        ("tcp out_state old", "no state"),
        ("tcp mac 02:00:5e:00:53", "no address of Ethernet"),
        ("tcp mac 02:00:5e:00:53:007", "no address of Ethernet"),
        ("tcp mac 02:00:5e:00:53:07:", "no address of Ethernet"),
        ("udp flags S", "only packets of tcp"),
        ("tcp flags X", "no flag"),
        ("udp ttl 256", "no number up to 255"),
        ("udp ttl", "no value"),
        ("tcp sequence 4294967296", "no number up to 4294967295"),
        ("tcp data_offset 16", "no number up to 15"),
        ("udp any > any upto 3", "not understood"),
    ] {
        let error = read_packets(line, &names).expect_err(line);
        assert!(error.contains(what), "{line}: {error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

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
        let hooks = hooks(&policy);
        for packet in PACKETS.iter() {
            deciding(&hooks, packet, &mut expected);
        }
        let unreached = unreached(&policy);
        for (group, rules) in policy.groups.iter().enumerate() {
            for rule in 0..rules.rules.len() {
                prop_assert_eq!(!expected.contains(&(group, rule)), unreached.contains(&(group, rule)), "{} {}", group, rule);
            }
        }
    }

    #[test]
    fn two_policies_differ_where_packets_are_treated_otherwise(old in policies(), new in policies()) {
        let both_keep = [&old, &new].iter().all(|policy| policy.remembers.keeps());
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
        for number in space.diagrams.numbers(possible, decided.function).expect("small") {
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

#[test]
fn of_a_policy_about_version_4_alone_no_more_is_said() {
    let of_6 = rule(holds(PacketField::Family, Values::exact(6)), RuleAction::Pass);
    let short = rule(holds(PacketField::Length, Values::Range { low: 0, high: 99 }), RuleAction::Block);
    let mut both = forwarding(vec![vec![of_6, short]]);
    (both.groups[0].rules[1].place.line, both.groups[0].rules[1].place.column) = (1, 1);
    let alone = Policy { families: AskedFamilies::Version4Alone, ..both.clone() };
    let why = |policy: &Policy, packets: &str| {
        let packets = read_packets(packets, &[]).expect("packets");
        let answers = DecidedPolicy::new(policy).expect("small").why(&packets);
        answers.map(|answers| answers.iter().map(|answer| answer.decision.by).collect::<Vec<_>>())
    };
    let six = "tcp [2001:db8::1]:1024 > [2001:db8::2]:80";
    assert_eq!(why(&both, six), Ok(vec![Some(Step::Rule(0, 0))]));
    assert_eq!(why(&alone, six), Err(AnalysisFault::NotAsked));
    let block = [Some(Step::Rule(0, 1)), Some(Step::Default(0))];
    assert_eq!(why(&alone, "tcp any > any"), Ok(block.to_vec()));
    // The rule in front is nobody's line, so it is in no pair and never redundant.
    assert_eq!((both.lines().len(), alone.lines()), (2, vec![vec![(0, 1)]]));
    let pairs = |policy: &Policy| {
        let order = DecidedPolicy::new(policy).expect("small").order_findings(0).expect("small");
        order.pairs.expect("few").correlated_count
    };
    assert_eq!((pairs(&both), pairs(&alone)), (1, 0));
}
