//! The walk through small policies, by hand.

use super::*;
use crate::field::{PacketField, Values};
use crate::model::{PolicyRule, RuleGroup, RulePlace};

fn rule(condition: RuleCondition, action: RuleAction, decides_at_once: bool) -> PolicyRule {
    let (place, text) = (RulePlace::default(), "".into());
    PolicyRule { place, text, condition, action, decides_at_once, log: false, count: false }
}

fn port(port: u128) -> RuleCondition {
    RuleCondition::Holds(PacketField::DestinationPort, vec![Values::exact(port)])
}

fn policy(order: MatchOrder, groups: Vec<Vec<PolicyRule>>) -> Policy {
    let group = |rules| RuleGroup { name: String::new(), order, rules };
    let default = RuleAction::Block;
    let hook = Hook { point: HookPoint::Forward, group: 0, default, place: RulePlace::default() };
    Policy { hooks: vec![hook], groups: groups.into_iter().map(group).collect(), ..Policy::default() }
}

fn to(dport: Option<u128>) -> Packet {
    Packet::default().with(PacketField::DestinationPort, dport)
}

fn decides(policy: &Policy, packet: &Packet) -> RuleAction {
    evaluate(policy, Path::Forwarded, packet, &|_| false).expect("ends").action
}

#[test]
fn the_first_rule_decides_or_the_last_one_does() {
    let all = || RuleCondition::All(Vec::new());
    let rules = || vec![rule(port(1), RuleAction::Pass, true), rule(port(2), RuleAction::Pass, false)];
    let first =
        policy(MatchOrder::First, vec![[vec![rule(all(), RuleAction::Block, false)], rules()].concat()]);
    assert_eq!(decides(&first, &to(Some(1))), RuleAction::Block);
    let last =
        policy(MatchOrder::Last, vec![[rules(), vec![rule(all(), RuleAction::Block, false)]].concat()]);
    assert_eq!(decides(&last, &to(Some(1))), RuleAction::Pass);
    assert_eq!(decides(&last, &to(Some(2))), RuleAction::Block);
}

#[test]
fn what_a_packet_has_not_matches_no_values_and_no_others() {
    let not_22 = RuleCondition::Holds(
        PacketField::DestinationPort,
        vec![Values::Range { low: 0, high: 21 }, Values::Range { low: 23, high: 0xffff }],
    );
    let open = policy(MatchOrder::First, vec![vec![rule(not_22, RuleAction::Pass, false)]]);
    let decided = [Some(21), Some(22), None].map(|port| decides(&open, &to(port)));
    assert_eq!(decided, [RuleAction::Pass, RuleAction::Block, RuleAction::Block]);
    let without = RuleCondition::Absent(PacketField::DestinationPort);
    let open = policy(MatchOrder::First, vec![vec![rule(without, RuleAction::Pass, false)]]);
    assert_eq!(decides(&open, &to(None)), RuleAction::Pass);
}

#[test]
fn jumps_come_back_and_gotos_do_not() {
    let all = || RuleCondition::All(Vec::new());
    for (first, action) in [(RuleAction::Jump(1), RuleAction::Pass), (RuleAction::Goto(1), RuleAction::Block)]
    {
        let there = vec![rule(port(7), RuleAction::Return, false), rule(port(8), RuleAction::Keep, false)];
        let here = vec![rule(all(), first, false), rule(all(), RuleAction::Pass, false)];
        let policy = policy(MatchOrder::First, vec![here, there]);
        assert_eq!(decides(&policy, &to(Some(7))), action);
        assert_eq!(decides(&policy, &to(Some(8))), RuleAction::Keep);
    }
    let circle = policy(MatchOrder::First, vec![vec![rule(all(), RuleAction::Jump(0), false)]]);
    let walked = evaluate(&circle, Path::Forwarded, &to(None), &|_| false);
    assert_eq!(walked, Err(PolicyFault::TooDeep));
}

#[test]
fn a_packet_must_pass_all_points_on_its_way() {
    let all = || RuleCondition::All(Vec::new());
    let mut both = policy(
        MatchOrder::First,
        vec![vec![rule(all(), RuleAction::Keep, false)], vec![rule(port(22), RuleAction::Block, false)]],
    );
    let default = RuleAction::Pass;
    both.hooks.push(Hook { point: HookPoint::Out, group: 1, default, place: RulePlace::default() });
    let said = |path, port| evaluate(&both, path, &to(Some(port)), &|_| false).expect("ends");
    assert_eq!(said(Path::Forwarded, 22).action, RuleAction::Block);
    let passed = said(Path::Forwarded, 23);
    assert_eq!((passed.action, passed.steps), (RuleAction::Keep, vec![Step::Rule(0, 0), Step::Default(1)]));
    assert_eq!(said(Path::FromGateway, 22).action, RuleAction::Block);
    assert_eq!(said(Path::ToGateway, 22).action, RuleAction::Pass, "no hook there");
    both.remembers = Remembers::Kept;
    let known = to(Some(22)).with(PacketField::State, Some(State::Established as u128));
    let passed = evaluate(&both, Path::Forwarded, &known, &|_| false).expect("ends");
    assert_eq!(passed.steps, [Step::Remembered]);
}

#[test]
fn a_group_of_first_rules_is_done_where_a_group_that_it_jumped_to_has_decided() {
    let all = || RuleCondition::All(Vec::new());
    let mut policy = policy(
        MatchOrder::First,
        vec![
            vec![rule(all(), RuleAction::Jump(1), false), rule(all(), RuleAction::Jump(2), false)],
            vec![rule(port(1), RuleAction::Pass, false), rule(port(2), RuleAction::Pass, true)],
            vec![rule(all(), RuleAction::Block, false)],
        ],
    );
    (policy.groups[1].order, policy.groups[2].order) = (MatchOrder::Last, MatchOrder::Last);
    for (port, action) in [(1, RuleAction::Pass), (2, RuleAction::Pass), (3, RuleAction::Block)] {
        assert_eq!(decides(&policy, &to(Some(port))), action, "{port}");
    }
}

#[test]
fn a_connection_is_remembered_everywhere_or_in_one_direction() {
    let all = || RuleCondition::All(Vec::new());
    let mut kept = policy(
        MatchOrder::First,
        vec![vec![rule(port(22), RuleAction::Keep, false)], vec![rule(all(), RuleAction::Block, false)]],
    );
    kept.hooks[0].point = HookPoint::In;
    let default = RuleAction::Block;
    kept.hooks.push(Hook { point: HookPoint::Out, group: 1, default, place: RulePlace::default() });
    let known = Some(State::Established as u128);
    let came_in = to(Some(23)).with(PacketField::State, known);
    let goes_out = came_in.clone().with(PacketField::OutState, known);
    let remembered = [
        (Remembers::Nothing, [RuleAction::Block; 3]),
        (Remembers::Kept, [RuleAction::Keep, RuleAction::Pass, RuleAction::Pass]),
        (Remembers::KeptByDirection, [RuleAction::Block, RuleAction::Block, RuleAction::Pass]),
        (Remembers::KeptAtPort, [RuleAction::Block, RuleAction::Block, RuleAction::Pass]),
    ];
    for (remembers, actions) in remembered {
        kept.remembers = remembers;
        let decided = [&to(Some(22)), &came_in, &goes_out].map(|packet| decides(&kept, packet));
        assert_eq!(decided, actions, "{remembers:?}");
    }
    let out = evaluate(&kept, Path::FromGateway, &goes_out, &|_| false).expect("ends");
    assert_eq!((out.action, out.steps), (RuleAction::Pass, vec![Step::Remembered]));
}

#[test]
fn too_many_rules_are_a_fault() {
    let all = || RuleCondition::All(Vec::new());
    // Each group goes through the next one twice: 2 to the 30 rules.
    let mut groups: Vec<Vec<PolicyRule>> =
        (1..31).map(|next| vec![rule(all(), RuleAction::Jump(next), false); 2]).collect();
    groups.push(vec![rule(port(1), RuleAction::Pass, false)]);
    let walked = evaluate(&policy(MatchOrder::First, groups), Path::Forwarded, &to(Some(2)), &|_| false);
    assert_eq!(walked, Err(PolicyFault::TooLong));
}
