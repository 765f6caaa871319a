//! Places of rules where they come to their end.

use super::*;
use lang::pipeline::{Options, compile};
use tables::rules::{Linear, RulesSpec};

/// A set of rules over a byte, with the rules that the text names, the first of them with this order.
fn rules(choose: &str, entries: &str) -> (RuleSet<Linear>, Vec<Entry>) {
    let text = format!(
        "table t: rules(u8) -> u8 {{ capacity 8  {choose}  age 10s  entries {{ {entries} }} }}\n\
         start stage s() {{ match t[1] {{ some v => drop seen, none => drop unseen }} }}"
    );
    let compiled = compile("p.rav", &text, &|_| None, &Options::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let table = &program.tables[0];
    let spec = RulesSpec { widths: vec![8], capacity: 8 };
    let set = RuleSet::new(table, Linear::new(spec).expect("a valid spec"));
    (set, table.entries.clone())
}

/// Puts an entry where it would stand after so many inserts.
fn plant(set: &mut RuleSet<Linear>, entry: &Entry, order: u64) {
    let (rule, row) = set.hold(entry);
    set.search.insert(order, &rule, row).expect("is free");
    set.expiry.note(order, Some(0), row);
    set.note(entry, order);
}

fn values(set: &RuleSet<Linear>) -> Vec<u128> {
    set.entries().iter().map(|(entry, _)| entry.value[0]).collect()
}

#[test]
fn a_table_of_rules_takes_inserts_after_four_billion_of_them() {
    for choose in ["choose first", "choose priority"] {
        let priority = if choose == "choose priority" { "priority 5" } else { "" };
        let entries: Vec<String> = (1..=4).map(|value| format!("{value} {priority} => {value}")).collect();
        let (mut set, entries) = rules(choose, &entries.join(", "));
        let last = set.span(entries[0].priority).0 + u64::from(u32::MAX);
        plant(&mut set, &entries[0], last - 1);
        for entry in &entries[1..] {
            set.insert(entry, Some(5)).expect("there is room");
        }
        assert_eq!(values(&set), [1, 2, 3, 4], "{choose}: as they came");
        // What stood there before still goes when it would have, and is found by its key.
        assert!(set.remove(&entries[1].key, entries[1].priority));
        set.expire(10_000_000_000, &mut { u32::MAX });
        assert_eq!(set.expired(), 1);
        assert_eq!(values(&set), [3, 4]);
        set.expire(10_000_000_005, &mut { u32::MAX });
        assert_eq!(set.expired(), 3);
        assert_eq!((set.held(), set.keys.len(), set.places.len()), (0, 0, 0));
    }
}

#[test]
fn other_priorities_stay_where_they_are_when_one_is_closed_up() {
    let (mut set, entries) = rules(
        "choose priority",
        "1 priority 5 => 1, 2 priority 5 => 2, 3 priority 6 => 3, 4 priority 4 => 4",
    );
    let (_, last) = set.span(5);
    plant(&mut set, &entries[0], last);
    for entry in [&entries[3], &entries[1], &entries[2]] {
        set.insert(entry, None).expect("there is room");
    }
    assert_eq!(values(&set), [3, 1, 2, 4]);
}
