//! Rows of a policy's tables that mean what no model can say are refused, each by its name; others are rules.

use ir::{Entry, Match, Table};
use lang::pipeline::{CompileOptions, compile};
use lang::policy_model::PolicyModel;
use lang::policy_rows::{HookRows, RowRole, changes, of_rows, rule_of};
use policy::{Policy, RuleAction, RuleCondition};

const PROGRAM: &str = "reason no \"no\"
policy edge(src: ip4, proto: u8, dport: u16 absent) {
    capacity 20
    hook in { group lines default pass }
    pass => flood
    reject => drop no
    group lines {
        count proto 6
        limit 10/s burst 5 pass dport 22
        pass dport 80
        reject port proto 17
    }
}
start stage all() { goto edge.in(10.0.0.1, 6, 22, true) }
";

/// The table and the model of the only policy.
fn compiled(text: &str) -> (Table, PolicyModel) {
    let compiled = compile("p.rav", text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:#?}", compiled.diagnostics));
    let table = program.tables.into_iter().find(|table| table.name == "edge.in").expect("a table");
    (table, compiled.policies.into_iter().next().expect("a policy"))
}

fn read(table: &Table, model: &PolicyModel, rows: Vec<Entry>) -> Result<Policy, String> {
    let text = |entry: &Entry| format!("row at {}", entry.priority);
    of_rows(model, &[HookRows { table, rows, text: &text }])
}

/// The rows of the program, with one more.
fn with(row: Entry) -> Result<Policy, String> {
    let (table, model) = compiled(PROGRAM);
    let mut rows = table.entries.clone();
    rows.push(row);
    read(&table, &model, rows)
}

/// A row from outside that matches everything, with what it does.
fn row(priority: u32, value: [u128; 6]) -> Entry {
    let below = Match::Range { low: u128::from(priority) + 1, high: u32::MAX.into() };
    let key = vec![Match::Any, Match::Any, Match::Any, Match::Any, below];
    Entry { key, value: value.into(), priority }
}

const PASS: [u128; 6] = [0, 0, 0, 0, 0, 0];

#[test]
fn a_row_is_one_of_its_rule_by_the_number_that_it_holds() {
    let (table, _) = compiled(PROGRAM);
    let rules: Vec<(u32, RowRole)> = table.entries.iter().map(rule_of).collect();
    let acts = RowRole::Acts;
    assert_eq!(rules, [(1, acts), (2, RowRole::Limits), (2, acts), (3, acts), (4, acts), (0, acts)]);
}

#[test]
fn a_row_from_outside_is_a_rule_without_a_line_at_its_place() {
    let policy = with(row(250, PASS)).expect("it can be said");
    let lines: Vec<(u32, &str)> =
        policy.groups[0].rules.iter().map(|rule| (rule.place.line, &*rule.text)).collect();
    let wanted = [
        (2, "the policy is asked about IPv4 alone"),
        (8, "count proto 6"),
        (9, "limit 10/s burst 5 pass dport 22"),
        (0, "row from outside: row at 250"),
        (10, "pass dport 80"),
        (11, "reject port proto 17"),
    ];
    assert_eq!(lines, wanted);
    assert_eq!(policy.hooks[0].default, RuleAction::Pass);
}

#[test]
fn rows_that_went_and_rows_that_came_are_counted_and_the_default_may_change() {
    let (table, model) = compiled(PROGRAM);
    let text = |_: &Entry| String::new();
    let mut rows = table.entries.clone();
    let default = rows.pop().expect("the default");
    rows.remove(0);
    let differ = changes(&[HookRows { table: &table, rows: rows.clone(), text: &text }]);
    assert_eq!((differ.from_outside, differ.gone), (0, 2));
    // Without its row, the default is what the text says.
    assert_eq!(
        read(&table, &model, rows.clone()).expect("it can be said").hooks[0].default,
        RuleAction::Pass
    );
    rows.push(Entry { value: vec![3, 4, 0, 0, 0, 0], ..default });
    let differ = changes(&[HookRows { table: &table, rows: rows.clone(), text: &text }]);
    assert_eq!((differ.from_outside, differ.gone), (1, 2));
    let changed = read(&table, &model, rows).expect("it can be said");
    let last = changed.groups[0].rules.last().expect("a rule");
    assert!(matches!(last.action, RuleAction::Reject(_)), "{last:?}");
    assert_eq!(last.condition, RuleCondition::All(vec![RuleCondition::All(Vec::new())]));
}

#[test]
fn what_the_program_has_nothing_for_is_its_default() {
    // This policy does not say what happens on `block`, and 200 is no action.
    for action in [2, 200] {
        let policy = with(row(250, [action, 0, 0, 0, 0, 0])).expect("it can be said");
        let outside = policy.groups[0].rules.iter().find(|rule| rule.place.line == 0).expect("the row");
        assert_eq!(outside.action, RuleAction::Pass, "{action}");
    }
}

#[test]
fn a_row_that_cannot_be_said_is_refused_by_its_name() {
    let any_below = Entry { key: vec![Match::Any; 5], ..row(250, PASS) };
    let mut no_port = row(250, PASS);
    no_port.key[2] = Match::Exact(80);
    let mut absent = no_port.clone();
    absent.key[3] = Match::Exact(0);
    for (row, why) in [
        (any_below, "its part `below` is not `251..`: row at 250"),
        (row(250, [5, 0, 0, 300, 0, 0]), "does not go on below this row: row at 250"),
        (row(250, [5, 0, 0, 0, 0, 0]), "does not go on below this row: row at 250"),
        (row(250, [5, 0, 0, 250, 0, 0]), "more often than the 3 times that the program lets them"),
        (row(250, [7, 0, 2, 250, 200, 0]), "shares a limit with a rule: row at 250"),
        (row(250, [7, 0, 2, 250, 200, 9]), "no rule has this limit: row at 250"),
        (row(250, [3, 99, 0, 0, 0, 0]), "99 is no `reject_kind`: row at 250"),
        (no_port, "depends on what the program hands over for them: row at 250"),
        (absent, "depends on what the program hands over for them: row at 250"),
    ] {
        let refused = with(row.clone()).expect_err("no model can say it");
        assert!(refused.contains(why), "{row:?}: {refused}");
    }
}

#[test]
fn rows_that_pass_over_too_many_others_are_refused() {
    // Each of them passes over all that follow, so what they are made of doubles with each.
    let (table, model) = compiled(PROGRAM);
    let passing = |at: u32| row(1_000 - at, [5, 0, 0, 1 + u128::from(at % 2), 0, 0]);
    let read_with = |rows: u32| {
        let mut table = table.clone();
        table.entries.splice(0..0, (0..rows).map(passing));
        let rows = table.entries.clone();
        read(&table, &model, rows)
    };
    read_with(8).expect("it can be said");
    let refused = read_with(30).expect_err("there is more than anybody reads");
    assert!(refused.contains("`edge.in` pass over more than 1000000 others"), "{refused}");
}

#[test]
fn a_column_that_is_no_field_may_be_compared_by_no_row() {
    let text = PROGRAM.replace("proto: u8", "zone: u8").replace("proto ", "zone ");
    let (table, model) = compiled(&text);
    let refused = read(&table, &model, table.entries.clone()).expect_err("it has no model");
    assert!(refused.contains("`zone`"), "{refused}");
}
