//! Policies beyond what one short text shows: limits, and what the writing out of jumps gives.

use ir::{Entry, Match};
use lang::limits::LARGEST_POLICY;
use lang::pipeline::{CompileOptions, Compiled, compile};
use lang::rules_file::{ReadRules, RulesFileOptions, RulesFileReader, RulesRead};
use policy::{
    Hook, HookPoint, MatchOrder, Memory, PacketField, Policy, PolicyRule, RuleAction, RuleCondition,
    RuleGroup, RulePlace, RuleRate, Values,
};
use std::sync::Arc;

fn compiled(text: &str) -> Compiled {
    compile("policy.rav", text, &|_| None, &CompileOptions::default())
}

/// A policy over ports with this capacity and these groups; the first one is called `first`.
fn policy(capacity: &str, groups: &str) -> String {
    format!(
        "policy edge(dport: u16 absent) {{
    {capacity}
    hook forward {{ group first default block }}
    pass => flood
    block => drop blocked
    {groups}
}}
start stage all() {{ goto edge.forward(80, true) }}
"
    )
}

/// Groups of which each jumps to the next one twice, `levels` times; the last one has this rule.
fn doubled(levels: usize, rule: &str) -> String {
    let mut text = "group first { jump g1 jump g1 }\n".to_string();
    for level in 1..levels {
        text += &format!("group g{level} {{ jump g{next} jump g{next} }}\n", next = level + 1);
    }
    text + &format!("group g{levels} {{ {rule} }}\n")
}

/// Groups of which each jumps to the next one.
fn deep(levels: usize) -> String {
    let mut text = "group first { jump g1 }\n".to_string();
    for level in 1..levels {
        text += &format!("group g{level} {{ jump g{} }}\n", level + 1);
    }
    text + &format!("group g{levels} {{ pass }}\n")
}

fn errors(text: &str) -> Vec<String> {
    compiled(text).diagnostics.iter().map(|found| format!("{} {}", found.code, found.headline)).collect()
}

#[test]
fn what_grows_through_jumps_has_a_limit() {
    let none: Vec<String> = Vec::new();
    assert_eq!(errors(&policy("", &doubled(15, "pass dport 1"))), none);
    let rows = errors(&policy("", &doubled(16, "pass dport 1")));
    assert_eq!(rows, ["E0558 `edge.forward` has room for 65535 rows of rules, and one for the default"]);
    let rounds = errors(&policy("capacity 128k", &doubled(16, "count dport 1")));
    assert_eq!(rounds, ["E0553 the hook `forward` has too many rules that go on"]);
    let work = errors(&policy("", &doubled(30, "pass dport 1, dport 2")));
    assert_eq!(work, ["E0556 the rules of this policy become too many when they are written out"]);
    assert_eq!(errors(&policy("", &deep(63))), none);
    assert_eq!(errors(&policy("", &deep(64))), ["E0557 jumps lead deeper than 64 groups"]);
}

#[test]
fn a_limit_that_counts_what_its_rule_matches_compares_nothing_again() {
    const PORTS: usize = 700;
    let ports: Vec<String> = (1..=PORTS).map(|at| (at * 2).to_string()).collect();
    let group = |rules: usize| {
        let rules = vec!["limit 1/s burst 1 pass dport 1"; rules].join("\n");
        policy("", &format!("group first {{ jump g dport {} }}\ngroup g {{\n{rules}\n}}", ports.join(" | ")))
    };
    // The ports are compared once at the jump, and once with each rule.
    let most = LARGEST_POLICY / PORTS - 1;
    assert_eq!(errors(&group(most)), Vec::<String>::new());
    let beyond = errors(&group(most + 1));
    assert_eq!(beyond, ["E0556 the rules of this policy become too many when they are written out"]);
}

#[test]
fn what_conditions_name_has_a_limit_for_the_whole_policy() {
    let ports = |step: u32| (1..=700).map(|at| (at * step).to_string()).collect::<Vec<_>>().join(" | ");
    let rules = |count: usize| vec![format!("pass dport {}, dport {}", ports(1), ports(2)); count].join("\n");
    let group =
        |count: usize| policy("", &format!("group first {{ pass }}\ngroup other {{\n{}\n}}", rules(count)));
    assert_eq!(errors(&group(2)), Vec::<String>::new());
    let third = errors(&group(3));
    assert_eq!(third, ["E0556 the rules of this policy become too many when they are written out"]);
    // What is named after `not` counts by its ends alone.
    let many: Vec<String> = (0..20_000).map(|at| (3 * at).to_string()).collect();
    let group = policy("", &format!("group first {{ pass dport not {} }}", many.join(" | ")));
    let program = compiled(&group).program.expect("it compiles");
    assert_eq!(program.tables[0].entries.len(), 20_001, "the runs between them, and the default");
}

#[test]
fn rates_of_limits_have_a_limit() {
    let rules = |rates: u32| {
        let rules: Vec<String> = (1..=rates)
            .flat_map(|rate| vec![format!("limit {rate}/s burst 1 pass dport {rate}"); 2])
            .collect();
        policy("", &format!("group first {{\n{}\n}}", rules.join("\n")))
    };
    let program = compiled(&rules(256)).program.expect("it compiles");
    let cells: Vec<u32> = program.meters.iter().map(|meter| meter.size).collect();
    assert_eq!(cells, [2; 256], "rules of one rate share a meter");
    // Both rules of the 257th rate have no meter.
    let beyond = errors(&rules(257));
    assert_eq!(beyond, ["E0565 the limits of a policy have 256 different rates at most"; 2]);
}

#[test]
fn a_rule_that_can_match_nothing_has_no_row() {
    let text = policy("capacity 1", "group first { pass dport 1, dport 2   block dport absent, dport 3 }");
    let program = compiled(&text).program.expect("it compiles");
    assert_eq!(program.tables[0].entries.len(), 1, "the default alone");
}

#[test]
fn the_last_rule_comes_first_and_final_ones_before() {
    let rules =
        "group first last { pass dport 1   block final dport 2   block dport 3   jump second dport 10..20 }
                 group second last { pass dport 10   block dport 15..30 }";
    let program = compiled(&policy("", rules)).program.expect("it compiles");
    let rows: Vec<(&Match, u128, u32)> = program.tables[0]
        .entries
        .iter()
        .map(|Entry { key, value, priority }| (&key[0], value[2], *priority))
        .collect();
    let expected = [
        (&Match::Exact(2), 2),
        (&Match::Range { low: 15, high: 20 }, 6),
        (&Match::Exact(10), 5),
        (&Match::Exact(3), 3),
        (&Match::Exact(1), 1),
        (&Match::Any, 0),
    ];
    let distances: Vec<u32> = rows.windows(2).map(|pair| pair[0].2 - pair[1].2).collect();
    assert_eq!(rows.iter().map(|row| (row.0, row.1)).collect::<Vec<_>>(), expected);
    assert!(distances.iter().all(|distance| *distance >= 100), "{distances:?}");
}

/// A policy of one group, with a limit for the first port of interfaces that is 7.
fn read_with_a_limit(
    _: &str,
    options: &RulesFileOptions,
    order: MatchOrder,
    condition: RuleCondition,
) -> RulesRead {
    let (place, text): (_, Arc<str>) = (RulePlace { line: 1, column: 1 }, "limit".into());
    let rate = match options.interfaces.first() {
        Some((_, 7)) => Err("it is none".into()),
        _ => Ok(RuleRate { tokens: 1, seconds: 1, burst: 5, over: false }),
    };
    let rule = |condition| PolicyRule {
        place,
        text: text.clone(),
        condition,
        action: RuleAction::Pass,
        decides_at_once: false,
        log: false,
        count: false,
    };
    let rules = vec![rule(condition.clone()), rule(condition)];
    let policy = Policy {
        hooks: vec![Hook { point: HookPoint::Forward, group: 0, default: RuleAction::Block, place }],
        groups: vec![RuleGroup { name: "all".into(), order, rules }],
        memories: [(); 2].map(|()| Memory { place, text: text.clone(), rate: rate.clone() }).into(),
        ..Policy::default()
    };
    RulesRead { policy, skipped_title: false }
}

/// What is told of a policy that is read so, with an interface of this port.
fn told_of(read: ReadRules, port: u16) -> Vec<String> {
    let text = format!(
        "reason blocked \"\"
policy edge(dport: u16 absent) {{
    from \"rules\" as pf interfaces {{ a = {port} }}
    hook forward
    pass => flood
    block => drop blocked
}}
start stage all() {{ goto edge.forward(80, true) }}
"
    );
    let options = CompileOptions { rules_reader: Some(RulesFileReader(read)), ..CompileOptions::default() };
    let compiled = compile("policy.rav", &text, &|_| Some("limit\n".to_owned()), &options);
    compiled.diagnostics.iter().map(|found| format!("{} {}", found.code, found.primary.text)).collect()
}

#[test]
fn a_limit_of_a_file_is_asked_once_by_itself_where_the_first_rule_decides() {
    use RuleCondition::{All, Any, Not, Remembered};
    const ONCE: &str = "E0575 a limit is asked by itself, once, and where the first rule decides";
    let first: ReadRules =
        |text, options| Ok(read_with_a_limit(text, options, MatchOrder::First, All(vec![Remembered(0)])));
    // The second rule asks the same bucket.
    assert_eq!(told_of(first, 1), [ONCE]);
    let last: ReadRules =
        |text, options| Ok(read_with_a_limit(text, options, MatchOrder::Last, All(vec![Remembered(0)])));
    assert_eq!(told_of(last, 1), [ONCE]);
    let one_of: ReadRules =
        |text, options| Ok(read_with_a_limit(text, options, MatchOrder::First, Any(vec![Remembered(1)])));
    assert_eq!(told_of(one_of, 1), [ONCE]);
    let not: ReadRules =
        |text, options| Ok(read_with_a_limit(text, options, MatchOrder::First, Not(Box::new(Remembered(1)))));
    assert_eq!(told_of(not, 1), [ONCE]);
    let none: ReadRules =
        |text, options| Ok(read_with_a_limit(text, options, MatchOrder::First, All(Vec::new())));
    assert_eq!(told_of(none, 1), Vec::<String>::new());
    assert_eq!(told_of(none, 7), ["E0575 their number must be the same for all ports"]);
}

/// A group of so many rules with a limit behind a port, to which packets for 700 other ports come.
fn read_with_limits(rules: usize) -> RulesRead {
    let place = RulePlace { line: 1, column: 1 };
    let to = |ports: Vec<Values>| RuleCondition::Holds(PacketField::DestinationPort, ports);
    let rule = |condition, action| PolicyRule {
        place,
        text: "limit".into(),
        condition,
        action,
        decides_at_once: false,
        log: false,
        count: false,
    };
    let limited = |memory| {
        let all = vec![to(vec![Values::exact(1)]), RuleCondition::Remembered(memory)];
        rule(RuleCondition::All(all), RuleAction::Pass)
    };
    let rate = RuleRate { tokens: 1, seconds: 1, burst: 5, over: false };
    let jump = rule(to((1..=700).map(|at| Values::exact(2 * at)).collect()), RuleAction::Jump(1));
    let groups = [vec![jump], (0..rules).map(limited).collect()];
    let policy = Policy {
        hooks: vec![Hook { point: HookPoint::Forward, group: 0, default: RuleAction::Block, place }],
        groups: groups.map(|rules| RuleGroup { name: "a".into(), order: MatchOrder::First, rules }).into(),
        memories: vec![Memory { place, text: "limit".into(), rate: Ok(rate) }; rules],
        ..Policy::default()
    };
    RulesRead { policy, skipped_title: false }
}

#[test]
fn a_limit_at_the_end_of_a_rule_of_a_file_compares_nothing_again() {
    assert_eq!(told_of(|_, _| Ok(read_with_limits(1_400)), 1), Vec::<String>::new());
    let beyond = told_of(|_, _| Ok(read_with_limits(1_430)), 1);
    assert!(beyond.len() == 1 && beyond[0].starts_with("E0556"), "{beyond:?}");
}

#[test]
fn no_interface_of_a_file_is_bound_to_the_port_of_the_loopback_interface() {
    let read: ReadRules = |_, _| Ok(read_with_limits(1));
    assert_eq!(told_of(read, 65_534), Vec::<String>::new());
    assert_eq!(told_of(read, 65_535), ["E0535 in policies it stands for `lo`"]);
    let never: ReadRules = |_, options| {
        assert_ne!(options.interfaces.first().map(|(_, port)| *port), Some(65_535));
        Ok(read_with_limits(1))
    };
    told_of(never, 65_535);
}
