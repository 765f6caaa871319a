//! What bounds the writer of rulesets, what it refuses, and what it writes.

use super::{write_nft, write_nft_json};
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, Reject, Remembers, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Values,
};

const PLACE: RulePlace = RulePlace { line: 7, column: 3 };

fn holds(field: PacketField, values: &[(u128, u128)]) -> RuleCondition {
    RuleCondition::Holds(
        field,
        values.iter().map(|(low, high)| Values::Range { low: *low, high: *high }).collect(),
    )
}

fn rule(condition: RuleCondition, action: RuleAction) -> PolicyRule {
    PolicyRule {
        place: PLACE,
        text: "".into(),
        condition,
        action,
        decides_at_once: false,
        log: false,
        count: false,
    }
}

/// A policy of one hook that asks the first of these groups.
fn policy(point: HookPoint, groups: Vec<Vec<PolicyRule>>) -> Policy {
    let group = |rules| RuleGroup { name: "a b".to_owned(), order: MatchOrder::First, rules };
    Policy {
        hooks: vec![Hook { point, group: 0, default: RuleAction::Block, place: RulePlace::default() }],
        groups: groups.into_iter().map(group).collect(),
        interfaces: vec![("eth0".to_owned(), 1)],
        ..Policy::default()
    }
}

fn forward(rules: Vec<PolicyRule>) -> Policy {
    policy(HookPoint::Forward, vec![rules])
}

/// So many alternatives that none of them is another.
fn alternatives(count: u128) -> RuleCondition {
    let one = |port: u128| {
        RuleCondition::All(vec![
            holds(PacketField::SourcePort, &[(port, port)]),
            holds(PacketField::DestinationPort, &[(port, port)]),
        ])
    };
    RuleCondition::Any((0..count).map(one).collect())
}

#[test]
fn rules_values_and_chains_do_not_multiply_without_limit() {
    let many = |count: usize, size: u128| {
        let ports: Vec<(u128, u128)> = (0..size).map(|port| (2 * port, 2 * port)).collect();
        forward(vec![rule(holds(PacketField::DestinationPort, &ports), RuleAction::Pass); count])
    };
    let deep = |depth: usize| {
        let jump = |next| vec![rule(holds(PacketField::Protocol, &[(6, 6)]), RuleAction::Jump(next))];
        let mut groups: Vec<Vec<PolicyRule>> = (1..=depth).map(jump).collect();
        groups.push(vec![rule(RuleCondition::All(Vec::new()), RuleAction::Pass)]);
        policy(HookPoint::Forward, groups)
    };
    for policy in [forward(vec![rule(alternatives(4_096), RuleAction::Pass)]), many(30, 30_000), deep(15)] {
        write_nft(&policy).expect("this is within all limits");
    }
    let counts = PolicyRule { count: true, ..rule(RuleCondition::All(Vec::new()), RuleAction::Continue) };
    let circle =
        policy(HookPoint::Forward, vec![vec![rule(RuleCondition::All(Vec::new()), RuleAction::Jump(0))]]);
    for (policy, what) in [
        (forward(vec![rule(alternatives(4_097), RuleAction::Pass)]), "in at most 4096 rules"),
        (forward(vec![counts; 250_001]), "more than 250000 rules"),
        (many(34, 30_000), "more than 1000000 values"),
        (deep(16), "through more than 16 chains"),
        (circle, "in a circle"),
    ] {
        let error = write_nft(&policy).expect_err(what);
        assert!(error.what.contains(what), "{error}");
        assert!(what.contains("chains") || (error.line, error.column) == (7, 3), "{error}");
    }
}

#[test]
fn what_nftables_cannot_say_is_refused_at_its_rule() {
    let all = || RuleCondition::All(Vec::new());
    let with = |policy: Policy, remembers| Policy { remembers, ..policy };
    let kept = |remembers| with(forward(vec![rule(all(), RuleAction::Keep)]), remembers);
    let state = || holds(PacketField::State, &[(0, 0)]);
    let later = || RuleCondition::All(vec![state(), holds(PacketField::LaterFragment, &[(1, 1)])]);
    let reset = RuleAction::Reject(Reject::TcpReset);
    for (policy, what) in [
        (
            Policy {
                interfaces: (1..=9).map(|port| (format!("eth{port}"), port)).collect(),
                ..with(
                    policy(HookPoint::In, vec![vec![rule(all(), RuleAction::Keep)]]),
                    Remembers::KeptAtPort,
                )
            },
            "connections that single rules keep at more than 8 ports",
        ),
        (kept(Remembers::KeptAtPort), "connections that single rules keep"),
        (kept(Remembers::KeptAndAsked), "connections that single rules keep"),
        (forward(vec![rule(state(), RuleAction::Pass)]), "states of connections where none is remembered"),
        (
            with(forward(vec![rule(later(), RuleAction::Pass)]), Remembers::Passed),
            "later fragments by themselves",
        ),
        (forward(vec![rule(all(), reset)]), "a reset for packets that are not of TCP"),
        (
            policy(HookPoint::Out, vec![vec![rule(all(), RuleAction::Reject(Reject::ByProtocol))]]),
            "on their way out",
        ),
        (
            forward(vec![rule(all(), RuleAction::Reject(Reject::Icmp(3)))]),
            "an answer of ICMP to packets of IPv6",
        ),
        (
            forward(vec![rule(holds(PacketField::InPort, &[(2, 2)]), RuleAction::Pass)]),
            "an interface without a name",
        ),
        (
            policy(HookPoint::In, vec![vec![rule(holds(PacketField::OutPort, &[(1, 1)]), RuleAction::Pass)]]),
            "is not known yet",
        ),
        (
            forward(vec![rule(holds(PacketField::Window, &[(1, 9)]), RuleAction::Pass)]),
            "a field of a header that few rules ask for",
        ),
        (
            forward(vec![rule(RuleCondition::Absent(PacketField::FlowLabel), RuleAction::Pass)]),
            "a field of a header that few rules ask for",
        ),
        (
            forward(vec![rule(RuleCondition::Remembered(0), RuleAction::Pass)]),
            "what depends on earlier packets",
        ),
        (
            policy(
                HookPoint::Out,
                vec![vec![rule(holds(PacketField::TimeToLive, &[(1, 9)]), RuleAction::Pass)]],
            ),
            "the time to live",
        ),
    ] {
        for write in [write_nft, write_nft_json] {
            let error = write(&policy).expect_err(what);
            assert!((error.line, error.column) == (7, 3) && error.what.contains(what), "{error}");
        }
    }
}

#[test]
fn ports_at_which_nothing_is_kept_are_found_by_a_limited_look_at_rules() {
    let asked = |action| rule(holds(PacketField::InPort, &[(1, 1)]), action);
    let mut rules = vec![asked(RuleAction::Block); 79];
    rules.push(asked(RuleAction::Keep));
    // 80 rules are looked at for each port, and `lo` is one more.
    let kept = |ports: u16| Policy {
        interfaces: (1..=ports).map(|port| (format!("eth{port}"), port)).collect(),
        remembers: Remembers::KeptAtPort,
        ..policy(HookPoint::In, vec![rules.clone()])
    };
    assert!(write_nft(&kept(49_999)).is_ok());
    let error = write_nft(&kept(50_100)).expect_err("more than 4,000,000 rules");
    assert!(error.what.contains("connections that single rules keep at more than 8 ports"), "{error}");
}

#[test]
fn what_comes_to_no_rule_is_not_refused() {
    let all = || RuleCondition::All(Vec::new());
    let never = RuleCondition::All(vec![
        holds(PacketField::Protocol, &[(6, 6)]),
        holds(PacketField::IcmpType, &[(8, 8)]),
    ]);
    let unsayable = vec![rule(RuleCondition::Remembered(0), RuleAction::Pass)];
    let text = write_nft(&policy(
        HookPoint::In,
        vec![vec![rule(never, RuleAction::Jump(1)), rule(all(), RuleAction::Pass)], unsayable],
    ));
    let text = text.expect("no packet comes to the second group");
    assert_eq!(text.matches("accept").count(), 1, "{text}");
}

#[test]
fn later_fragments_are_compared_with_no_port() {
    let text =
        write_nft(&forward(vec![rule(holds(PacketField::DestinationPort, &[(22, 22)]), RuleAction::Pass)]));
    assert_eq!(
        text.expect("nftables can say this"),
        "table inet ravelin
delete table inet ravelin
table inet ravelin {
\tchain forward_later {
\t}
\tchain forward {
\t\ttype filter hook forward priority 0; policy drop;
\t\tip frag-off & 8191 != 0 goto forward_later
\t\tmeta nfproto ipv6 frag frag-off != 0 goto forward_later
\t\tmeta l4proto { 6, 17, 33, 132, 136 } th dport 22 accept comment \"line 7\"
\t}
}
"
    );
}

#[test]
fn chains_stand_before_addresses_are_translated() {
    let hooks = |point: HookPoint, count: usize, asked: RuleCondition| {
        let mut policy = policy(point, vec![vec![rule(asked, RuleAction::Pass)]]);
        policy.hooks = vec![Hook { place: PLACE, ..policy.hooks[0].clone() }; count];
        Policy { remembers: Remembers::Passed, ..policy }
    };
    let tcp = || holds(PacketField::Protocol, &[(6, 6)]);
    let new = || holds(PacketField::State, &[(0, 0)]);
    for (point, asked, first, most) in [
        (HookPoint::In, tcp(), -300, 200),
        (HookPoint::In, new(), -150, 50),
        (HookPoint::FromGateway, tcp(), -300, 200),
        (HookPoint::FromGateway, new(), -150, 50),
        (HookPoint::Forward, new(), 0, 300),
        (HookPoint::ToGateway, new(), 0, 100),
        (HookPoint::Out, tcp(), 0, 100),
    ] {
        let text = write_nft(&hooks(point, most, asked.clone())).expect("all of them have a place");
        for number in 0..most {
            let priority = format!(" priority {};", first + i64::try_from(number).expect("a small number"));
            assert_eq!(text.matches(&priority).count(), 1, "{priority} {point:?}");
        }
        if point != HookPoint::Forward {
            let error = write_nft(&hooks(point, most + 1, asked)).expect_err("the last one has no place");
            assert!(error.line == 7 && error.what.contains("so many hooks"), "{error}");
        }
    }
}
