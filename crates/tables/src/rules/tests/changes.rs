//! What changes leave in an image: each block belongs to one leaf or is free, what a table has no room for
//! changes nothing, and one change does no more in a large table than in a small one.

use super::super::image::NODE;
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
