//! The group against its twin, and the promises about moved flows counted bucket by bucket.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Change {
    Add(u32, u32),
    Remove(u32),
    /// Everybody's weight, from these in turn.
    Reweigh(Vec<u32>),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let member = || prop_oneof![20 => 0..12u32, 1 => Just(NONE)];
    let weight = prop_oneof![1 => Just(0u32), 8 => 1..5u32, 2 => 1..1000u32, 1 => Just(u32::MAX)];
    let change = prop_oneof![
        3 => (member(), weight).prop_map(|(member, weight)| Change::Add(member, weight)),
        2 => member().prop_map(Change::Remove),
        1 => prop::collection::vec(prop_oneof![4 => 0..9u32, 1 => Just(u32::MAX)], 1..4).prop_map(Change::Reweigh),
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
                Change::Reweigh(weights) => {
                    let weight = |member: u32| weights.get(member as usize % (weights.len() + 1)).copied();
                    let held: Vec<(u32, u32)> =
                        group.members().map(|(member, _)| (member, group.held(member))).collect();
                    let count = group.reweigh(weight);
                    prop_assert_eq!(count, model.reweigh(weight));
                    let moved = moved(&group);
                    prop_assert_eq!(moved.len() as u32, count);
                    let lost: u32 = held.iter().map(|(one, held)| held.saturating_sub(group.held(*one))).sum();
                    prop_assert_eq!(count, lost, "nothing moves twice, or to and fro");
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

#[test]
fn shares_beside_a_heavy_member_are_those_of_one_at_a_time() {
    /// Each that has nothing takes one from the largest, the last of them first.
    fn one_at_a_time(weights: &[u32], buckets: u32) -> Vec<u32> {
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let exact = |place: usize| u128::from(weights[place]) * u128::from(buckets);
        let mut shares: Vec<u32> = (0..weights.len()).map(|place| (exact(place) / total) as u32).collect();
        while shares.iter().sum::<u32>() < buckets {
            let over = |place: &usize| {
                exact(*place).cast_signed() - (u128::from(shares[*place]) * total).cast_signed()
            };
            let most = (0..shares.len()).max_by_key(|place| (over(place), std::cmp::Reverse(*place)));
            shares[most.expect("somebody")] += 1;
        }
        while let Some(empty) = shares.iter().rposition(|share| *share == 0) {
            let most = (0..shares.len()).max_by_key(|place| (shares[*place], std::cmp::Reverse(*place)));
            let Some(most) = most.filter(|most| shares[*most] > 1) else { break };
            shares[most] -= 1;
            shares[empty] = 1;
        }
        shares
    }
    for (members, heavy, buckets) in [(5, 100, 7), (9, 40, 30), (64, 1 << 20, 64), (30, 50_000, 64)] {
        let weights: Vec<u32> =
            (0..members).map(|place| if place % 13 == 3 { heavy } else { 1 + place % 3 }).collect();
        assert_eq!(shares(&weights, buckets), one_at_a_time(&weights, buckets), "{members} {heavy}");
    }
    // Each of very many takes one: to look at all of them for each would not end.
    let mut weights = vec![1; MAX_BUCKETS as usize];
    weights[0] = u32::MAX;
    assert_eq!(shares(&weights, MAX_BUCKETS), vec![1; MAX_BUCKETS as usize]);
}
