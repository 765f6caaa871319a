//! Places of rules where they come to their end, and tables that are told in parts.

use super::*;
use lang::pipeline::{CompileOptions, compile};
use std::cell::Cell;
use tables::lpm::{LpmInsertError, LpmModel, LpmSpec};
use tables::rules::{Linear, RulesSpec};

/// A set of rules over a byte, with the rules that the text names, the first of them with this order.
fn rules(choose: &str, entries: &str) -> (ProgramRules<Linear>, Vec<Entry>) {
    let text = format!(
        "table t: rules(u8) -> u8 {{ capacity 8  {choose}  age 10s  entries {{ {entries} }} }}\n\
         start stage s() {{ match t[1] {{ some v => drop seen, none => drop unseen }} }}"
    );
    let compiled = compile("p.rav", &text, &|_| None, &CompileOptions::default());
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let table = &program.tables[0];
    let spec = RulesSpec { widths: vec![8], capacity: 8 };
    let set = ProgramRules::new(table, Linear::new(spec).expect("a valid spec"));
    (set, table.entries.clone())
}

/// Puts an entry where it would stand after so many inserts.
fn plant(set: &mut ProgramRules<Linear>, entry: &Entry, order: u64) {
    let (rule, row) = set.hold(entry);
    set.search.insert(order, &rule, row).expect("is free");
    set.age(order, Some(0), row);
    set.note(entry, order);
}

fn values(set: &ProgramRules<Linear>) -> Vec<u128> {
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
        assert_eq!(set.expiry().expired, 1);
        assert_eq!(values(&set), [3, 4]);
        set.expire(10_000_000_005, &mut { u32::MAX });
        assert_eq!(set.expiry().expired, 3);
        assert_eq!((set.held(), set.keys.len(), set.places.len()), (0, 0, 0));
    }
}

#[test]
fn a_rule_is_found_by_its_key_when_an_equal_one_before_it_has_expired() {
    let (mut set, entries) = rules("choose first", "1 => 1, 1 => 2");
    let first = set.span(0).0;
    plant(&mut set, &entries[0], first);
    plant(&mut set, &entries[1], first + 1);
    set.age(first + 1, Some(5), 1);
    // There is no time to take out what has ended.
    set.expire(10_000_000_000, &mut 0);
    assert_eq!((values(&set), set.held()), (vec![2], 2));
    assert_eq!(set.entry_of(&entries[0].key, 0).map(|entry| entry.value), Some(vec![2]));
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

/// A table that counts the prefixes that a listing passes.
struct Passing {
    table: LpmModel,
    passed: Cell<usize>,
}

impl Lpm for Passing {
    fn insert(&mut self, prefix: Prefix, value: u32) -> Result<Option<u32>, LpmInsertError> {
        self.table.insert(prefix, value)
    }

    fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.table.remove(prefix)
    }

    fn find(&self, address: u128) -> Option<u32> {
        self.table.find(address)
    }

    fn find_past(&self, address: u128, over: &dyn Fn(Prefix) -> bool) -> Option<(Prefix, u32)> {
        self.table.find_past(address, over)
    }

    fn entries_from(&self, first: Prefix) -> impl Iterator<Item = (Prefix, u32)> {
        self.table.entries_from(first).inspect(|_| self.passed.set(self.passed.get() + 1))
    }

    fn len(&self) -> usize {
        self.table.len()
    }
}

/// All entries, told in parts of this size, of which `part` makes one; `between` happens behind each.
fn in_parts<T>(
    table: &mut T,
    part: impl Fn(&T, EntryPlace) -> CountedPart,
    mut between: impl FnMut(&mut T, &[Entry]),
) -> Vec<Entry> {
    let (mut told, mut next) = (Vec::new(), Some(EntryPlace::default()));
    while let Some(from) = next {
        let (entries, further) = part(table, from);
        let entries: Vec<Entry> = entries.into_iter().map(|(entry, _)| entry).collect();
        between(table, &entries);
        told.extend(entries);
        next = further;
    }
    told
}

#[test]
fn a_part_of_a_table_of_prefixes_passes_what_it_tells_and_no_more() {
    let compiled = compile(
        "p.rav",
        "table t: lpm(u32) -> u32 { capacity 8k  age 10s }\n\
         start stage s() { match t[1] { some v => drop seen, none => drop unseen } }",
        &|_| None,
        &CompileOptions::default(),
    );
    let program = compiled.program.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics));
    let table = LpmModel::new(LpmSpec { width: 32, capacity: 8192 }).expect("a valid spec");
    let mut set = ProgramPrefixes::new(&program.tables[0], Passing { table, passed: Cell::new(0) });
    for number in 0..5000 {
        let key = vec![Match::Prefix { value: number << 12, length: 20 }];
        let entry = Entry { key, value: vec![number], priority: 0 };
        let at = (number % 3 == 0).then_some(0);
        set.insert(&entry, at).expect("room");
    }
    let listed = |set: &mut ProgramPrefixes<Passing>| -> Vec<Entry> {
        in_parts(set, |set, from| set.counted_part(from, 100), |_, _| {})
    };
    let all = |set: &ProgramPrefixes<Passing>| -> Vec<Entry> {
        set.entries().into_iter().map(|(entry, _)| entry).collect()
    };
    assert_eq!(listed(&mut set), all(&set));
    set.search.passed.set(0);
    assert_eq!(listed(&mut set).len(), 5000);
    assert!(set.search.passed.get() <= 5000 + 50, "{} were passed", set.search.passed.get());
    // What has ended and is still there is passed once, and is not told.
    set.expire(10_000_000_000, &mut 0);
    set.search.passed.set(0);
    assert_eq!(listed(&mut set).len(), 5000 - 1667);
    assert!(set.search.passed.get() <= 5000 + 50, "{} were passed", set.search.passed.get());
    assert_eq!(listed(&mut set), all(&set));
    // What goes between two parts hides nothing that stays.
    let gone = |set: &mut ProgramPrefixes<Passing>, part: &[Entry]| {
        part.iter().for_each(|entry| assert!(set.remove(&entry.key)));
    };
    let before = all(&set);
    assert_eq!(in_parts(&mut set, |set, from| set.counted_part(from, 100), gone), before);
    assert_eq!(set.held(), 1667, "those that have ended are left");
}

#[test]
fn what_goes_between_two_parts_of_a_table_of_rules_hides_nothing_that_stays() {
    let entries: Vec<String> = (1..=8).map(|value| format!("{value} => {value}")).collect();
    let (mut set, entries) = rules("choose first", &entries.join(", "));
    entries.iter().for_each(|entry| set.insert(entry, Some(0)).expect("room"));
    let gone = |set: &mut ProgramRules<Linear>, part: &[Entry]| {
        part.iter().for_each(|entry| assert!(set.remove(&entry.key, entry.priority)));
    };
    assert_eq!(in_parts(&mut set, |set, from| set.counted_part(from, 3), |_, _| {}), entries);
    assert_eq!(in_parts(&mut set, |set, from| set.counted_part(from, 3), gone), entries);
}
