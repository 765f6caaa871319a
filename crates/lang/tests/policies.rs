//! Policies beyond what one short text shows: limits, and what the writing out of jumps gives.

use lang::ir::{Entry, Match};
use lang::pipeline::{CompileOptions, Compiled, compile};

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
