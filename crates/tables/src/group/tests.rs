//! The group against its twin, and the promises about moved flows counted bucket by bucket.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Change {
    Add(u32, u32),
    Remove(u32),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let member = || prop_oneof![20 => 0..12u32, 1 => Just(NONE)];
    let weight = prop_oneof![1 => Just(0u32), 8 => 1..5u32, 2 => 1..1000u32, 1 => Just(u32::MAX)];
    let change = prop_oneof![
        3 => (member(), weight).prop_map(|(member, weight)| Change::Add(member, weight)),
        2 => member().prop_map(Change::Remove),
    ];
    prop::collection::vec(change, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn group_and_model_agree_and_only_due_flows_move(buckets in 1..200u32, changes in changes()) {
        let mut group = GroupTable::new(buckets).expect("a valid number");
        let mut model = GroupModel::new(buckets).expect("a valid number");
        for change in changes {
            let before = group.buckets().to_vec();
            let moved = |group: &GroupTable| {
                let pairs = before.iter().zip(group.buckets());
                pairs.filter(|(old, new)| old != new).map(|(old, new)| (*old, *new)).collect::<Vec<_>>()
            };
            match change {
                Change::Add(member, weight) => {
                    let added = group.add(member, weight);
                    prop_assert_eq!(&added, &model.add(member, weight));
                    let moved = moved(&group);
                    prop_assert_eq!(moved.len() as u32, *added.as_ref().unwrap_or(&0));
                    prop_assert!(moved.iter().all(|(_, new)| *new == member), "only the newcomer gains");
                }
                Change::Remove(member) => {
                    let removed = group.remove(member);
                    prop_assert_eq!(removed, model.remove(member));
                    let moved = moved(&group);
                    prop_assert_eq!(moved.len() as u32, removed.unwrap_or(0));
                    prop_assert!(moved.iter().all(|(old, _)| *old == member), "only the leaver's flows move");
                }
            }
            prop_assert_eq!(group.buckets(), model.buckets());
            for (member, _) in group.members() {
                let held = group.buckets().iter().filter(|bucket| **bucket == member).count();
                prop_assert_eq!(group.held(member) as usize, held);
                prop_assert!(held > 0, "every member gets something");
            }
            for hash in [0, 1, 77, u32::MAX] {
                prop_assert_eq!(group.find(hash), model.find(hash));
            }
        }
    }
}

#[test]
fn loads_follow_the_weights_after_any_change() {
    let mut group = GroupTable::new(4096).expect("a valid number");
    for (member, weight) in [(1, 1), (2, 2), (3, 1), (4, 4)] {
        group.add(member, weight).expect("a new member");
    }
    assert_eq!([1, 2, 3, 4].map(|member| group.held(member)), [512, 1024, 512, 2048]);
    assert_eq!(group.remove(2), Some(1024));
    let held = [1, 3, 4].map(|member| group.held(member));
    assert_eq!(held.iter().sum::<u32>(), 4096);
    for (held, share) in held.iter().zip([4096 / 6, 4096 / 6, 4096 * 4 / 6]) {
        assert!(held.abs_diff(share) <= 1, "{held} for {share}");
    }
}

#[test]
fn hashes_of_any_kind_reach_all_buckets_evenly() {
    for step in [1u32, 16, 1 << 8, 1 << 16] {
        let mut reached = vec![0u32; 64];
        for flow in 0..64_000u32 {
            reached[bucket(flow.wrapping_mul(step), 64)] += 1;
        }
        let (least, most) = (reached.iter().min(), reached.iter().max());
        assert!(least >= Some(&700) && most <= Some(&1300), "step {step}: {least:?} to {most:?}");
    }
}

#[test]
fn a_group_with_other_numbers_sends_each_flow_where_it_went() {
    let mut group = GroupTable::new(64).expect("a number of buckets");
    for member in [5, 9, 2] {
        group.add(member, 1).expect("there is room");
    }
    let number = |member: u32| (member != 9).then_some(100 - member);
    let other = group.renumbered(number);
    assert_eq!(other.members().collect::<Vec<_>>(), [(95, 1), (98, 1)]);
    for (before, after) in group.buckets().iter().zip(other.buckets()) {
        assert!(*before == 9 || number(*before) == Some(*after), "{before} {after}");
    }
    assert_eq!(other.held(95) + other.held(98), 64);
    assert_eq!(GroupTable::new(4).expect("a number of buckets").renumbered(number).buckets().len(), 4);
}
