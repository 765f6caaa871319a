//! Columns of one bit: every key against the reference, for as many as share an element, one more and one
//! alone; and keys of the most words that are compared by vectors, and of one more.

use super::super::encode::{Layout, MOST_FLAGS};
use super::*;

/// A table and the reference with these columns and as many rules, each with its number as its value.
fn both(numbers: &mut Numbers, widths: Vec<u8>, count: usize) -> (RulesTable, Linear) {
    let spec = RulesSpec { widths, capacity: count + 1 };
    let rules: Vec<_> = (0..count).map(|at| (at as u64, numbers.rule(&spec.widths), at as u32)).collect();
    let table = RulesTable::build(&spec, rules.clone()).expect("columns can be like that");
    (table, Linear::build(&spec, &rules).expect("the rules suit them"))
}

#[test]
fn every_key_of_flags_is_answered_as_the_reference_does() {
    let mut numbers = Numbers(70);
    for (flags, elements) in [(1, 1), (2, 1), (MOST_FLAGS, 1), (MOST_FLAGS + 1, 2), (MOST_FLAGS + 3, 4)] {
        let (mut table, mut linear) = both(&mut numbers, vec![1; flags], 40);
        assert_eq!(Layout::new(table.spec()).elements(), elements, "{flags} flags");
        let every: Vec<Vec<u64>> =
            (0..1u64 << flags).map(|key| (0..flags).map(|flag| key >> flag & 1).collect()).collect();
        compare(&table, &linear, &every);
        let rule = numbers.rule(&table.spec().widths);
        for order in [3, 7] {
            assert_eq!(table.remove(order), linear.remove(order));
        }
        table.insert(3, &rule, 99).expect("there is room");
        linear.insert(3, &rule, 99).expect("there is room");
        compare(&table, &linear, &every);
    }
}

#[test]
fn keys_of_many_words_are_answered_as_the_reference_does() {
    let mut numbers = Numbers(71);
    for columns in [8, 9, 16, 17, 32, 33] {
        let mut widths = vec![9; columns];
        widths[columns - 2..].fill(1);
        let (table, linear) = both(&mut numbers, widths, 60);
        let rules = linear.entries();
        let mut keys = keys(&mut numbers, table.spec(), &rules, 1000);
        // Most of those miss in some column.
        for (_, rule, _) in &rules {
            let fields = rule.fields.iter().zip(&table.spec().widths);
            let lowest: Vec<u128> = fields.map(|(field, &width)| field.bounds(width).0).collect();
            keys.push(table.spec().key(&lowest));
        }
        compare(&table, &linear, &keys);
        let hits = keys.iter().filter(|key| linear.find(key).is_some()).count();
        assert!(hits >= rules.len(), "{columns} columns: {hits} hits");
    }
}
