//! Redundant lines and pairs whose order decides, beside the slow walk of every packet of a small header.

use crate::analysis_tests::{PACKETS, forwarding, holds, hooks, rule, walked};
use crate::decisions::AnalysisFault;
use crate::evaluate::{PolicyFault, Step, evaluate};
use crate::field::{PacketField, Values};
use crate::model::{Memory, Policy, PolicyRule, Remembers, RuleAction, RuleCondition, RulePlace};
use crate::order::{OrderFindings, RedundantLine};
use crate::packet_space::WitnessPacket;
use crate::toy::policies;
use crate::why::DecidedPolicy;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashSet};

type Lines = Vec<Vec<(usize, usize)>>;

fn found(policy: &Policy) -> OrderFindings {
    DecidedPolicy::new(policy).expect("small").order_findings(usize::MAX).expect("small")
}

/// The policy without some rules, which match no packet then. The places of the others stay.
fn without(policy: &Policy, gone: impl IntoIterator<Item = (usize, usize)>) -> Policy {
    let mut policy = policy.clone();
    for (group, index) in gone {
        policy.groups[group].rules[index].condition = RuleCondition::Any(Vec::new());
    }
    policy
}

/// What decides at the only hook of a policy, if it is asked, and what it does.
fn decider(policy: &Policy, packet: &WitnessPacket) -> Option<(Step, RuleAction)> {
    let verdict = walked(policy, packet);
    let decides = |step: &Step| match step {
        Step::Rule(group, rule) => policy.groups[*group].rules[*rule].action.decides(),
        Step::Default(_) => true,
        Step::Remembered => false,
    };
    let by = verdict.steps.into_iter().rev().find(decides)?;
    Some((by, verdict.action))
}

/// Whether packets that a group gets may come to a rule of it by its jumps.
fn matches(
    policy: &Policy,
    group: usize,
    packet: &WitnessPacket,
    rule: (usize, usize),
    jumps: usize,
) -> bool {
    let holds = |group: usize, index: usize| {
        // A policy of this rule alone, which says whether it matches.
        let rules =
            vec![PolicyRule { action: RuleAction::Block, ..policy.groups[group].rules[index].clone() }];
        let alone = Policy { remembers: Remembers::Nothing, ..forwarding(vec![rules]) };
        let path = crate::model::Path::Forwarded;
        let remembered = |_| !packet.remembered.is_empty();
        let steps = evaluate(&alone, path, &packet.packet, &remembered).expect("ends").steps;
        steps.contains(&Step::Rule(0, 0))
    };
    (group == rule.0 && holds(group, rule.1))
        || policy.groups[group].rules.iter().enumerate().any(|(index, jump)| match jump.action {
            RuleAction::Jump(next) | RuleAction::Goto(next) if jumps > 0 => {
                holds(group, index) && matches(policy, next, packet, rule, jumps - 1)
            }
            _ => false,
        })
}

/// Whether this is a rule whose condition depends on earlier packets.
fn remembers_by(policy: &Policy, by: Step) -> bool {
    let Step::Rule(group, rule) = by else { return false };
    format!("{:?}", policy.groups[group].rules[rule].condition).contains("Remembered")
}

/// The redundant lines, and the pairs that are correlated and those that are exceptions.
type Walked = (BTreeSet<usize>, [BTreeSet<(usize, usize)>; 2]);

/// What the walk of every packet says.
fn walked_all(policy: &Policy) -> Walked {
    let lines: Lines = policy.lines();
    let dead = DecidedPolicy::new(policy).expect("small").unreached().expect("small");
    let dead: HashSet<(usize, usize)> = dead.into_iter().collect();
    let line_of = |step: Step| match step {
        Step::Rule(group, index) => lines.iter().position(|line| line.contains(&(group, index))),
        _ => None,
    };
    let keeps = policy.remembers.keeps();
    let effect = |action| if action == RuleAction::Keep && !keeps { RuleAction::Pass } else { action };
    let mut redundant: BTreeMap<usize, bool> = BTreeMap::new();
    let mut opposed = BTreeSet::new();
    for (point, before, alone) in hooks(policy) {
        let decide = |(group, index): &&(usize, usize)| alone.groups[*group].rules[*index].action.decides();
        let others: Vec<Policy> =
            lines.iter().map(|line| without(&alone, line.iter().filter(decide).copied())).collect();
        for packet in PACKETS.iter() {
            let earlier = walked(&before, packet).action;
            let is_asked = match earlier {
                RuleAction::Keep => before.remembers != Remembers::Kept,
                action => action.passes(),
            };
            if !packet.path.points().contains(&point) || !is_asked {
                continue;
            }
            let Some((by, action)) = decider(&alone, packet) else { continue };
            let Some(line) = line_of(by) else { continue };
            let (other_by, other) = decider(&others[line], packet).expect("the hook is asked");
            let is_dead = matches!(other_by, Step::Rule(group, rule) if dead.contains(&(group, rule)));
            let alike = effect(action) == effect(other) && !is_dead && !remembers_by(policy, other_by);
            *redundant.entry(line).or_insert(true) &= alike;
            if let Some(second) = line_of(other_by)
                && !is_dead
                && action.passes() != other.passes()
            {
                opposed.insert((line, second));
            }
        }
    }
    let only_decides = |line: usize| {
        lines[line].iter().all(|(group, index)| {
            policy.groups[*group].rules[*index].action.decides()
                && !remembers_by(policy, Step::Rule(*group, *index))
        })
    };
    let redundant = redundant.into_iter().filter(|(line, alike)| *alike && only_decides(*line));
    let matched = |line: usize| -> Vec<bool> {
        let here = |packet: &WitnessPacket| {
            policy.hooks.iter().any(|hook| {
                packet.path.points().contains(&hook.point)
                    && lines[line].iter().any(|rule| matches(policy, hook.group, packet, *rule, 4))
            })
        };
        PACKETS.iter().map(here).collect()
    };
    let (mut correlated, mut exceptions) = (BTreeSet::new(), BTreeSet::new());
    for (first, second) in opposed {
        let (of_first, of_second) = (matched(first), matched(second));
        let covers = |one: &[bool], other: &[bool]| one.iter().zip(other).all(|(one, other)| *one || !other);
        if covers(&of_second, &of_first) {
            exceptions.insert((first, second));
        } else if !covers(&of_first, &of_second) {
            correlated.insert((first, second));
        }
    }
    (redundant.map(|(line, _)| line).collect(), [correlated, exceptions])
}

/// A policy of one list of lines.
fn listed(rules: Vec<PolicyRule>) -> Policy {
    let numbered = rules
        .into_iter()
        .zip(1..)
        .map(|(rule, line)| PolicyRule { place: RulePlace { line, column: 1 }, ..rule });
    forwarding(vec![numbered.collect()])
}

fn port(low: u128, high: u128) -> RuleCondition {
    holds(PacketField::DestinationPort, Values::Range { low, high })
}

#[test]
fn a_line_is_redundant_if_others_treat_its_packets_alike() {
    let first = |rules| found(&listed(rules)).redundant;
    let web = || rule(port(80, 80), RuleAction::Pass);
    let some = || rule(port(0, 1023), RuleAction::Pass);
    let by = |line, by| vec![RedundantLine { line, by: vec![by], more: 0 }];
    assert_eq!(first(vec![web(), some()]), by(0, Step::Rule(0, 1)));
    assert_eq!(first(vec![rule(port(22, 22), RuleAction::Block), web()]), by(0, Step::Default(0)));
    // A rule of the opposite stands between, or the second one never decides.
    assert_eq!(first(vec![web(), rule(port(0, 99), RuleAction::Block), some()]), []);
    assert_eq!(first(vec![web(), web()]), []);
    // Without the first line, the second one would decide, which never did.
    let ssh = |action| rule(port(22, 22), action);
    let ports = || rule(port(0, 1023), RuleAction::Block);
    assert_eq!(first(vec![ssh(RuleAction::Block), ssh(RuleAction::Pass), ports()]), by(2, Step::Default(0)));
    // What is kept is treated otherwise than what passes, where the policy remembers what it keeps.
    let kept = listed(vec![rule(port(80, 80), RuleAction::Keep), some()]);
    for (remembers, told) in [
        (Remembers::Passed, by(0, Step::Rule(0, 1))),
        (Remembers::KeptAndAsked, Vec::new()),
        (Remembers::Kept, Vec::new()),
    ] {
        assert_eq!(found(&Policy { remembers, ..kept.clone() }).redundant, told);
    }
    // What logs, or asks about earlier packets, does more than decide.
    assert_eq!(first(vec![PolicyRule { log: true, ..web() }, some()]), []);
    let rate = || RuleCondition::All(vec![port(80, 80), RuleCondition::Remembered(0)]);
    let memory = Memory { place: RulePlace::default(), text: "rate".into(), rate: Err("a toy".into()) };
    let limited = listed(vec![rule(rate(), RuleAction::Pass), some()]);
    let limited = Policy { memories: vec![memory], ..limited };
    assert_eq!(found(&limited).redundant, []);
    // Packets of a line that goes would be among those that a rate counts.
    let mut counted = limited.clone();
    counted.groups[0].rules.insert(0, web());
    assert_eq!(found(&counted).redundant, []);
    counted.groups[0].rules[1].log = true;
    counted.groups[0].rules[1].condition = port(80, 80);
    assert_eq!(found(&counted).redundant, []);
    // The parts of a line go together.
    let mut parts = listed(vec![web(), rule(port(80, 81), RuleAction::Pass)]);
    parts.groups[0].rules[1].place = parts.groups[0].rules[0].place;
    assert_eq!(found(&parts).redundant, []);
}

#[test]
fn the_order_of_lines_decides_where_they_overlap_and_do_the_opposite() {
    let udp = || holds(PacketField::Protocol, Values::exact(17));
    let low = || rule(port(0, 1023), RuleAction::Block);
    let overlap = listed(vec![rule(udp(), RuleAction::Pass), low()]);
    let pairs = |policy: &Policy| found(policy).pairs.expect("few");
    let told = pairs(&overlap);
    assert_eq!((told.correlated_count, told.exceptions_count), (1, 0));
    let [pair] = &told.correlated[..] else { panic!("{told:?}") };
    assert_eq!((pair.first, pair.second), (0, 1));
    assert_eq!(decider(&overlap, &pair.witness), Some((Step::Rule(0, 0), RuleAction::Pass)));
    let swapped = listed(vec![low(), rule(udp(), RuleAction::Pass)]);
    assert_eq!(decider(&swapped, &pair.witness), Some((Step::Rule(0, 0), RuleAction::Block)));
    // An exception before a general rule is what order is for.
    let told = pairs(&listed(vec![rule(port(80, 80), RuleAction::Pass), low()]));
    assert_eq!((told.correlated_count, told.exceptions_count), (0, 1));
    // A rule that does the same stands between, and its order decides.
    let between = rule(port(0, 2000), RuleAction::Pass);
    let told = pairs(&listed(vec![rule(udp(), RuleAction::Pass), between, low()]));
    assert_eq!(told.correlated, []);
    let none_told = DecidedPolicy::new(&overlap).expect("small").order_findings(0).expect("small").pairs;
    let none_told = none_told.expect("few");
    assert_eq!((none_told.correlated.len(), none_told.correlated_count), (0, 1));
}

#[test]
fn beyond_a_limit_pairs_are_not_looked_for_and_then_no_redundant_lines() {
    let blocked = |number| rule(holds(PacketField::Protocol, Values::exact(number)), RuleAction::Block);
    let mut rules: Vec<PolicyRule> = (1..=10).map(blocked).collect();
    rules.push(rule(holds(PacketField::Length, Values::Range { low: 0, high: 99 }), RuleAction::Pass));
    rules.push(rule(holds(PacketField::Dscp, Values::exact(1)), RuleAction::Block));
    let policy = listed(rules);
    let within = |ranks, pairs| {
        DecidedPolicy::new(&policy).expect("small").order_findings_within(usize::MAX, ranks, pairs)
    };
    let all = within(usize::MAX, 11).expect("few lists");
    let redundant = [RedundantLine { line: 11, by: vec![Step::Default(0)], more: 0 }];
    assert_eq!((&all.redundant[..], all.pairs.map(|pairs| pairs.correlated_count)), (&redundant[..], Ok(11)));
    let fewer = within(usize::MAX, 10).expect("few lists");
    assert_eq!((&fewer.redundant[..], fewer.pairs), (&redundant[..], Err(AnalysisFault::TooManyPairs)));
    // A list for each rule, the ten pairs before the rule that lets pass, and others with the last rule.
    assert_eq!(within(12, 11), Err(AnalysisFault::TooManyRanks));
    assert!(within(64, 11).is_ok());
}

#[test]
fn groups_that_jump_in_a_circle_are_refused_also_if_no_packet_goes_around() {
    let jump = |low, high, group| rule(port(low, high), RuleAction::Jump(group));
    let circle = forwarding(vec![vec![jump(0, 9, 1)], vec![jump(10, 19, 0)]]);
    let refused = DecidedPolicy::new(&circle).expect("small").order_findings(0);
    assert_eq!(refused, Err(AnalysisFault::Walk(PolicyFault::TooDeep)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn lines_are_redundant_and_opposed_as_the_walk_of_every_packet_says(policy in policies()) {
        let found = found(&policy);
        let (redundant, [correlated, exceptions]) = walked_all(&policy);
        let opposed = found.pairs.expect("few");
        let pairs = |pairs: &[crate::OpposedLines]| -> BTreeSet<(usize, usize)> {
            pairs.iter().map(|pair| (pair.first, pair.second)).collect()
        };
        prop_assert_eq!(found.redundant.iter().map(|line| line.line).collect::<BTreeSet<usize>>(), redundant);
        prop_assert_eq!(pairs(&opposed.correlated), correlated);
        prop_assert_eq!(pairs(&opposed.exceptions), exceptions);
        prop_assert_eq!(opposed.correlated.len(), opposed.correlated_count);
        prop_assert_eq!(opposed.exceptions.len(), opposed.exceptions_count);
    }
}
