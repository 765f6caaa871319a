//! What changes leave in an image: each block belongs to one leaf or is free, what a table has no room for
//! changes nothing, and one change does no more in a large table than in a small one.

use super::super::image::{NO_RULE, NODE};
use super::super::table::NOWHERE;
use super::*;
use crate::work;

/// The most that one change does: looks at entries, writes and cuts.
const MOST: u64 = 8192;

/// Each block is part of one leaf that entries name, as often as the count says, or of one free run.
fn places_are_whole(table: &RulesTable) {
    let image = table.image();
    let blocks = image.ids.len() / image.slots();
    let mut names = vec![0; blocks];
    for &entry in image.roots.iter().chain(image.children.iter()).filter(|entry| **entry & NODE == 0) {
        names[entry as usize] += u32::from(entry != 0);
    }
    let mut owners = vec![0; blocks];
    owners[0] = 1;
    for (first, _) in names.iter().enumerate().filter(|(_, names)| **names > 0) {
        let held = image.leaf_blocks(first as u32);
        owners[first..first + held].iter_mut().for_each(|owners| *owners += 1);
    }
    for (start, length) in table.leaves.free_runs() {
        owners[start as usize..][..length as usize].iter_mut().for_each(|owners| *owners += 1);
        assert!(((start + length) as usize) < blocks, "free blocks at the end are cut off");
    }
    assert!(owners.iter().all(|owners| *owners == 1), "owners of blocks: {owners:?}");
    assert_eq!(table.leaves.names(), names);
    for (tree, &root) in image.roots.iter().enumerate() {
        rules_are_at_home(table, tree, root);
    }
}

/// No leaf under `entry` holds what a living rule of another tree asks for, since it would not be taken out
/// from there.
fn rules_are_at_home(table: &RulesTable, tree: usize, entry: u32) {
    let image = table.image();
    if entry & NODE != 0 {
        let (bits, first) = image.node_bits(entry);
        let children = &image.children[first..first + (1 << bits.len())];
        return children.iter().for_each(|&child| rules_are_at_home(table, tree, child));
    }
    let (stride, lines) = (image.layout.stride, image.block_lines());
    for (place, &word) in image.ids[entry as usize * image.slots()..]
        [..image.leaf_blocks(entry) * image.slots()]
        .iter()
        .enumerate()
    {
        let id = word & NO_RULE;
        if id == NO_RULE
            || matches!(table.homes[id as usize], home if home == NOWHERE || home as usize == tree)
        {
            continue;
        }
        let low = table.encoded.low(id);
        let held = (0..stride).map(|at| {
            let at = place % image.slots() * stride + at;
            image.blocks[(entry as usize + place / image.slots()) * lines + at / 32].0[at % 32]
        });
        assert!(
            !held.eq(low.iter().copied()),
            "rule {id} of tree {} is in tree {tree}",
            table.homes[id as usize]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_belong_to_one_leaf_or_are_free(widths in widths(), seed: u64, changes in 1usize..300) {
        let mut numbers = Numbers(seed);
        let spec = RulesSpec { widths, capacity: 90 };
        let mut table = RulesTable::new(spec.clone()).expect("columns can be like that");
        places_are_whole(&table);
        for change in 0..changes {
            let order = numbers.below(120);
            if numbers.below(5) < 2 {
                table.remove(order);
            } else {
                // Refused where the order is taken, which must leave all as it is, too.
                let _ = table.insert(order, &numbers.rule(&spec.widths), change as u32);
            }
            places_are_whole(&table);
            let opened = RulesImage::open(&table.image().to_bytes());
            prop_assert!(opened.is_ok(), "{:?}", opened.err());
        }
        for order in 0..120 {
            table.remove(order);
        }
        places_are_whole(&table);
    }
}

#[test]
fn a_full_image_refuses_and_takes_rules_again_when_others_have_gone() {
    const LIMIT: usize = 60_000;
    let mut numbers = Numbers(21);
    let rules = five_columns(&mut numbers, 3000);
    let spec = RulesSpec { widths: FIVE.to_vec(), capacity: 3000 };
    let mut table = RulesTable::build_within(&spec, Vec::new(), LIMIT).expect("it is empty");
    let mut linear = Linear::new(spec.clone()).expect("columns can be like that");
    let (mut refused, mut taken_after) = (0, 0);
    for (order, rule, value) in &rules {
        match table.insert(*order, rule, *value) {
            Ok(()) => {
                linear.insert(*order, rule, *value).expect("the model has no limit of bytes");
                taken_after += usize::from(refused > 0);
            }
            Err(RulesInsertError::Memory { bytes, limit: LIMIT }) => {
                assert!(bytes > LIMIT);
                refused += 1;
                let held = linear.entries();
                let gone = held[numbers.below(held.len() as u64) as usize].0;
                assert_eq!(table.remove(gone), linear.remove(gone));
            }
            Err(other) => panic!("{other}"),
        }
        assert!(table.statistics().bytes <= LIMIT, "no change takes more than the limit");
        if order % 256 == 0 {
            places_are_whole(&table);
        }
    }
    assert!(refused > 100 && taken_after > 100, "{refused} refused, then {taken_after} taken");
    places_are_whole(&table);
    assert_eq!(table.entries(), linear.entries());
    compare(&table, &linear, &keys(&mut numbers, &spec, &linear.entries(), 500));
}

#[test]
fn one_change_does_as_little_in_a_large_table() {
    let most = [500, 5000].map(|held| {
        let mut numbers = Numbers(held as u64);
        let spec = RulesSpec { widths: FIVE.to_vec(), capacity: 2 * held };
        let mut table = RulesTable::new(spec).expect("columns can be like that");
        let mut most = [0, 0];
        for (order, rule, value) in five_columns(&mut numbers, held) {
            let begun = work::done();
            table.insert(order, &rule, value).expect("there is room");
            most[0] = most[0].max(work::done() - begun);
        }
        for order in 0..held as u64 {
            let begun = work::done();
            table.remove(4 * order);
            most[1] = most[1].max(work::done() - begun);
        }
        most
    });
    assert!(most.iter().flatten().all(|steps| *steps < MOST), "insert and remove: {most:?}");
}

/// Rules that fix one column each multiply in a tree, which would grow to whatever size it may have.
fn one_column_each(count: usize) -> Vec<(u64, Rule, u32)> {
    let mut numbers = Numbers(19);
    (0..count)
        .map(|at| {
            let mut fields = vec![RuleField::Any; FIVE.len()];
            let column = at % 4;
            let length = FIVE[column] - numbers.below(9) as u8;
            let value = u128::from(numbers.next()) & ones(FIVE[column]);
            fields[column] = RuleField::Prefix { value, length };
            (at as u64, Rule { fields }, at as u32)
        })
        .collect()
}

#[test]
fn a_build_costs_what_its_rules_cost_whatever_the_capacity() {
    let rules = one_column_each(600);
    let [small, large] = [800, 128 << 10].map(|capacity| {
        let spec = RulesSpec { widths: FIVE.to_vec(), capacity };
        let begun = work::done();
        let mut table = RulesTable::build(&spec, rules.clone()).expect("there is room");
        let built = work::done() - begun;
        table.rebuild().expect("there is room");
        let rebuilt = work::done() - begun - built;
        (built, rebuilt, table.statistics().bytes)
    });
    assert!(small.0 > 0 && small.0 == small.1, "{small:?}");
    assert_eq!(small, large);
}

#[test]
fn changes_cost_what_they_change_whatever_the_capacity() {
    let rules = one_column_each(600);
    let [small, large] = [800, 128 << 10].map(|capacity| {
        let spec = RulesSpec { widths: FIVE.to_vec(), capacity };
        let mut table = RulesTable::new(spec).expect("columns can be like that");
        let begun = work::done();
        for (order, rule, value) in &rules {
            table.insert(*order, rule, *value).expect("there is room");
        }
        for (order, ..) in &rules {
            table.remove(*order).expect("it is there");
        }
        work::done() - begun
    });
    assert!(small > 600 && large <= small + small / 4, "{small} in a table of 800, {large} in one of 128k");
}

/// A table of rules that fix one column each, built, beside its model.
fn crossed(count: usize) -> (RulesTable, Linear, RulesSpec, Vec<(u64, Rule, u32)>) {
    let spec = RulesSpec { widths: vec![16, 16], capacity: 3 * count };
    let rule = |at: usize| {
        let one = RuleField::Exact(at as u128 * 13 % 65_536);
        let fields = if at.is_multiple_of(8) { vec![RuleField::Any, one] } else { vec![one, RuleField::Any] };
        (2 * at as u64 + 2, Rule { fields }, at as u32)
    };
    let rules: Vec<_> = (0..count).map(rule).collect();
    let linear = Linear::build(&spec, &rules).expect("the rules suit the columns");
    let table = RulesTable::build(&spec, rules.clone()).expect("they have room");
    (table, linear, spec, rules)
}

#[test]
fn dead_rules_are_hit_by_nobody_and_are_swept_out() {
    let spec = RulesSpec { widths: vec![16, 16], capacity: 4000 };
    let fixed = |at: u128| Rule {
        fields: vec![RuleField::Exact(at * 13 % 65_536), RuleField::Exact(at * 7 % 65_536)],
    };
    let rules: Vec<_> = (1..3000).map(|at| (2 * at, fixed(at.into()), at as u32)).collect();
    let everybody = Rule { fields: vec![RuleField::Any, RuleField::Any] };
    let mut numbers = Numbers(8);
    for order in [1, u64::MAX] {
        let rules = [rules.clone(), vec![(order, everybody.clone(), 7)]].concat();
        let mut table = RulesTable::build(&spec, rules.clone()).expect("they have room");
        let mut linear = Linear::build(&spec, &rules).expect("the rules suit the columns");
        assert_eq!(table.remove(order), linear.remove(order));
        assert_eq!(table.image().dead, 1, "a rule in all leaves takes too many steps");
        let keys = keys(&mut numbers, &spec, &rules, 500);
        compare(&table, &linear, &keys);
        let opened = RulesImage::open(&table.image().to_bytes()).expect("these are the bytes of an image");
        keys.iter().for_each(|key| assert_eq!(opened.find(key), linear.find(key)));
        // Another rule with the same place, while the dead one is still in the leaves.
        assert_eq!(table.insert(order, &rules[5].1, 77), linear.insert(order, &rules[5].1, 77));
        compare(&table, &linear, &keys);
        while table.sweep(100) == 0 {}
        assert_eq!(table.image().dead, 0);
        places_are_whole(&table);
        compare(&table, &linear, &keys);
    }
}

#[test]
fn the_number_of_a_rule_is_not_left_behind_in_another_tree() {
    let (mut table, mut linear, spec, rules) = crossed(2000);
    let mut numbers = Numbers(4);
    let source = |value: u64| Rule { fields: vec![RuleField::Exact(value.into()), RuleField::Any] };
    let target = |value: u64| Rule { fields: vec![RuleField::Any, RuleField::Exact(value.into())] };
    for step in 0..3000 {
        let order = 1 + 2 * numbers.below(600);
        if numbers.below(2) == 0 {
            assert_eq!(table.remove(order), linear.remove(order));
        } else {
            let value = numbers.below(400);
            let rule = if numbers.below(3) == 0 { target(value) } else { source(value) };
            assert_eq!(table.insert(order, &rule, step), linear.insert(order, &rule, step));
        }
        if step % 250 == 0 {
            places_are_whole(&table);
            compare(&table, &linear, &keys(&mut numbers, &spec, &rules, 100));
        }
    }
    compare(&table, &linear, &keys(&mut numbers, &spec, &linear.entries(), 500));
}

#[test]
fn a_rule_that_overlaps_too_many_others_is_refused_and_changes_nothing() {
    let (mut table, mut linear, spec, rules) = crossed(3000);
    let wide = |at: u64| Rule {
        fields: vec![
            RuleField::Range { low: u128::from(at % 100), high: 60_000 },
            RuleField::Range { low: 0, high: 60_000 - u128::from(at) },
        ],
    };
    let refused = (0..3000).find_map(|at| {
        let inserted = table.insert(2 * at + 1, &wide(at), 9);
        if inserted.is_ok() {
            linear.insert(2 * at + 1, &wide(at), 9).expect("the model has no such bound");
        }
        inserted.err()
    });
    assert!(matches!(refused, Some(RulesInsertError::Spread { .. })), "{refused:?}");
    places_are_whole(&table);
    assert_eq!(table.entries(), linear.entries());
    let mut numbers = Numbers(6);
    compare(&table, &linear, &keys(&mut numbers, &spec, &rules, 300));
    // A new value for a rule that is there needs no room.
    assert_eq!(table.set_value(2, 99), linear.set_value(2, 99));
    table.rebuild().expect("it had room before");
    assert_eq!(table.insert(u64::MAX, &wide(1), 9), Ok(()), "there is room again behind a build");
}

#[test]
fn removed_rules_that_wait_have_no_more_numbers_than_there_are() {
    let spec = RulesSpec { widths: vec![16], capacity: 4 };
    let rule = Rule { fields: vec![RuleField::Exact(1)] };
    let mut table = RulesTable::new(spec).expect("columns can be like that");
    // As if so many rules were dead.
    table.homes.resize(8, NOWHERE);
    assert_eq!(table.insert(1, &rule, 1), Err(RulesInsertError::Removing));
    assert!(table.is_empty());
}
