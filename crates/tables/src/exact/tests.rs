//! The fast table against the model: random operations over few keys, small capacities and every kind of
//! spec.

use proptest::prelude::*;

use super::generation::LOOKED;
use super::hash::{Hash, next_seed};
use super::resize::{MOST_OLDER, Older};
use super::*;

#[derive(Clone, Debug)]
enum Operation {
    Find(u64),
    Peek(u64),
    Learn(u64, u64),
    LearnFor(u64, u64),
    LearnTelling(u64),
    InsertPermanent(u64, u64),
    Remove(u64),
    End(u64),
    Wait(i64),
    Expire,
    ExpireSome(u32),
    MakeWay(usize),
    Resize(usize),
    Inherit(usize, u64, u64),
    MoveSome,
    Bulk(Vec<u64>, bool),
    Expect(u64),
    Seek(Vec<u64>),
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let key = 0..24u64;
    let value = 0..3u64;
    let wait = prop_oneof![
        8 => 0..20i64,
        2 => 20..200i64,
        1 => -30..0i64,
        1 => Just(i64::MAX),
    ];
    let operation = prop_oneof![
        6 => (key.clone(), value.clone()).prop_map(|(k, v)| Operation::Learn(k, v)),
        2 => (key.clone(), 0..120u64).prop_map(|(k, lifetime)| Operation::LearnFor(k, lifetime)),
        2 => key.clone().prop_map(Operation::LearnTelling),
        4 => key.clone().prop_map(Operation::Find),
        1 => key.clone().prop_map(Operation::Peek),
        1 => (key.clone(), value).prop_map(|(k, v)| Operation::InsertPermanent(k, v)),
        2 => key.clone().prop_map(Operation::Remove),
        1 => key.prop_map(Operation::End),
        3 => wait.prop_map(Operation::Wait),
        1 => Just(Operation::Expire),
        3 => (0..4u32).prop_map(Operation::ExpireSome),
        2 => (0..30usize).prop_map(Operation::MakeWay),
        1 => prop_oneof![8 => 0..24usize, 2 => 24..300usize, 1 => Just(MAX_CAPACITY + 1)].prop_map(Operation::Resize),
        1 => (0..40usize, 0..200u64, 0..200u64).prop_map(|(capacity, idle, age)| Operation::Inherit(capacity, idle, age)),
        1 => Just(Operation::MoveSome),
        1 => (prop::collection::vec(0..24u64, 0..300), any::<bool>()).prop_map(|(keys, marks)| Operation::Bulk(keys, marks)),
        2 => prop_oneof![0..60u64, Just(u64::MAX)].prop_map(Operation::Expect),
        1 => prop::collection::vec(0..24u64, 1..300).prop_map(Operation::Seek),
    ];
    prop::collection::vec(operation, 1..300)
}

fn specs() -> impl Strategy<Value = ExactSpec> {
    let lifetime = prop_oneof![Just(None), (0..100u64).prop_map(Some), Just(Some(u64::MAX))];
    let evict = prop_oneof![3 => Just(Evict::Lru), 1 => Just(Evict::Refuse)];
    let words = (prop::sample::select(vec![1usize, 2, 3, 8]), prop::sample::select(vec![0usize, 1, 2, 8]));
    let times = (lifetime.clone(), lifetime, any::<bool>());
    (words, 0..20usize, times, evict, any::<u64>()).prop_map(
        |((key_words, value_words), capacity, (idle, age, lifetimes), evict, seed)| ExactSpec {
            key_words,
            value_words,
            capacity,
            idle,
            age,
            lifetimes,
            evict,
            seed,
        },
    )
}

/// A key whose words differ in one place at a time, so that comparing too few of them would be seen. Key 0 is
/// all zeros, as an empty slot is.
fn key(spec: &ExactSpec, number: u64) -> Vec<u64> {
    let mut words = vec![0; spec.key_words];
    words[number as usize % spec.key_words] = number;
    words
}

fn value(spec: &ExactSpec, number: u64) -> Vec<u64> {
    let mut words = vec![7; spec.value_words];
    if let Some(last) = words.last_mut() {
        *last = number;
    }
    words
}

fn check_agreement(spec: ExactSpec, operations: &[Operation]) -> Result<(), TestCaseError> {
    let mut table = ExactTable::new(spec).expect("a valid spec");
    let mut model = ExactModel::new(spec).expect("a valid spec");
    let (mut now, mut latest) = (0u64, 0u64);
    for operation in operations {
        latest = latest.max(now);
        let left = table.left_to_move();
        let before = table.statistics().entries as usize + table.left_to_expire();
        match *operation {
            Operation::Find(k) => {
                prop_assert_eq!(table.find(&key(&spec, k), now), model.find(&key(&spec, k), now))
            }
            Operation::Peek(k) => prop_assert_eq!(table.peek(&key(&spec, k)), model.peek(&key(&spec, k))),
            Operation::Learn(k, v) => {
                let (k, v) = (key(&spec, k), value(&spec, v));
                prop_assert_eq!(table.learn(&k, &v, now), model.learn(&k, &v, now));
                prop_assert_eq!(table.peek(&k), model.peek(&k));
            }
            Operation::LearnFor(k, lifetime) => {
                let (k, v) = (key(&spec, k), value(&spec, 1));
                prop_assert_eq!(table.learn(&k, &v, now), model.learn(&k, &v, now));
                let deadline = latest.saturating_add(1 + lifetime);
                table.end_by(&k, deadline);
                model.end_by(&k, deadline);
                prop_assert_eq!(table.deadline_of(&k), model.deadline_of(&k));
            }
            Operation::LearnTelling(k) => {
                let (k, v) = (key(&spec, k), value(&spec, 1));
                let (mut gone, mut judged) = (Vec::new(), Vec::new());
                let learned = table.learn_telling(&k, &v, now, &mut |key| gone.push(key.to_vec()));
                prop_assert_eq!(
                    learned,
                    model.learn_telling(&k, &v, now, &mut |key| judged.push(key.to_vec()))
                );
                prop_assert_eq!(gone, judged);
            }
            Operation::InsertPermanent(k, v) => {
                let (k, v) = (key(&spec, k), value(&spec, v));
                prop_assert_eq!(table.insert_permanent(&k, &v), model.insert_permanent(&k, &v));
            }
            Operation::End(k) => {
                let key = key(&spec, k);
                prop_assert_eq!(table.deadline_of(&key), model.deadline_of(&key));
                prop_assert_eq!(table.expire_key(&key), model.expire_key(&key));
            }
            Operation::Remove(k) => {
                prop_assert_eq!(table.remove(&key(&spec, k)), model.remove(&key(&spec, k)))
            }
            Operation::Wait(time) => now = now.saturating_add_signed(time),
            Operation::Expire => {
                prop_assert_eq!(table.expire(now), model.expire(now));
                prop_assert!(table.next_deadline() > now || table.next_deadline() == u64::MAX);
            }
            Operation::ExpireSome(steps) => {
                let (mut left, mut told) = (steps, 0);
                table.expire_some(now, &mut left, &mut |_| told += 1);
                model.expire(now);
                prop_assert!(told <= steps - left, "{} entries went in {} steps", told, steps - left);
                prop_assert_eq!(table.left_to_expire() > 0 && left > 0, false, "it stopped before its time");
            }
            Operation::MakeWay(wanted) => {
                let room = table.make_way(None, wanted, &mut |_| {});
                prop_assert_eq!(room, model.make_way(None, wanted, &mut |_| {}));
                prop_assert!(room == wanted || table.left_to_expire() == 0, "what has ended makes room");
            }
            Operation::Resize(capacity) => {
                prop_assert_eq!(table.resize(capacity), model.resize(capacity));
                prop_assert_eq!(table.spec(), model.spec());
            }
            Operation::Inherit(capacity, idle, age) => {
                let spec = ExactSpec {
                    capacity,
                    idle: spec.idle.map(|_| idle),
                    age: spec.age.map(|_| age),
                    seed: spec.seed.wrapping_add(now),
                    ..spec
                };
                let mut heir = ExactTable::new(spec).expect("a valid spec");
                let mut judge = ExactModel::new(spec).expect("a valid spec");
                if heir.prepare_for(&table) {
                    prop_assert!(judge.prepare_for(&model));
                    heir.inherit(&mut table);
                    judge.inherit(&mut model);
                    (table, model) = (heir, judge);
                    // What the new times end has ended at once in one, and at the next look at the time in
                    // the other.
                    table.expire(now);
                    model.expire(now);
                }
            }
            Operation::MoveSome => prop_assert_eq!(table.move_some(), table.left_to_move()),
            Operation::Bulk(ref numbers, marks) => {
                let keys: Vec<u64> = numbers.iter().flat_map(|number| key(&spec, *number)).collect();
                let first = |value: &[u64]| value.first().copied().unwrap_or(0);
                let expected: Vec<u64> = (numbers.iter())
                    .map(|number| match (key(&spec, *number), marks) {
                        (key, true) => model.find(&key, now).map_or(99, first),
                        (key, false) => model.peek(&key).map_or(99, first),
                    })
                    .collect();
                let mut values = vec![0; numbers.len()];
                match marks {
                    true => table.find_bulk(&keys, now, 99, &mut values),
                    false => table.peek_bulk(&keys, 99, &mut values),
                }
                prop_assert_eq!(values, expected);
            }
            // Whatever is expected, all operations behind mean the same.
            Operation::Expect(slot) => table.expect(slot as u32),
            Operation::Seek(ref numbers) => {
                let keys: Vec<u64> = numbers.iter().flat_map(|number| key(&spec, *number)).collect();
                let which: Vec<u32> = (0..numbers.len() as u32).step_by(2).collect();
                let mut likely = vec![7; numbers.len()];
                table.seek(&keys, &which, &mut likely);
                for (place, number) in numbers.iter().enumerate() {
                    if place % 2 == 1 {
                        prop_assert_eq!(likely[place], 7, "nobody asked for it");
                    } else if left == 0 && likely[place] == ABSENT {
                        prop_assert_eq!(model.peek(&key(&spec, *number)), None);
                    }
                }
                table.expect(likely[0]);
            }
        }
        let (moves, lookups) = match operation {
            Operation::Bulk(numbers, _) => (MOVED_AT_ONCE + 1, numbers.len()),
            Operation::End(_) => (MOVED_AT_ONCE + 1, 2),
            Operation::LearnFor(..) => (usize::MAX, 1),
            Operation::Expire
            | Operation::ExpireSome(_)
            | Operation::MakeWay(_)
            | Operation::Inherit(..)
            | Operation::Resize(_) => (usize::MAX, 1),
            // What has ended makes room, be it one entry or, in a table that became smaller, several.
            Operation::Learn(..) | Operation::LearnTelling(_) | Operation::InsertPermanent(..)
                if model.spec().capacity < before =>
            {
                (usize::MAX, 1)
            }
            _ => (MOVED_AT_ONCE + 1, 1),
        };
        // An eviction may take an entry that has not moved, or two.
        prop_assert!(
            left.saturating_sub(table.left_to_move()) <= moves.saturating_mul(lookups).saturating_add(2)
        );
        prop_assert!(table.next_deadline() <= model.next_deadline());
        prop_assert_eq!(table.statistics(), model.statistics());
        let (running, counts, left) =
            (table.running_statistics(), table.statistics(), table.left_to_expire() as u64);
        let taken_out =
            ExactStatistics { entries: counts.entries + left, expired: counts.expired - left, ..counts };
        prop_assert_eq!(running, taken_out);
        prop_assert_eq!(table.entries(), model.entries());
        prop_assert_eq!(table.learned(), model.learned());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn table_and_model_agree(spec in specs(), operations in operations()) {
        check_agreement(spec, &operations)?;
    }
}

fn spec(capacity: usize, idle: Option<u64>, age: Option<u64>, evict: Evict) -> ExactSpec {
    ExactSpec { key_words: 1, value_words: 1, capacity, idle, age, lifetimes: false, evict, seed: 3 }
}

/// Runs a check on both implementations.
fn on_both(spec: ExactSpec, check: impl Fn(&mut dyn Exact)) {
    check(&mut ExactTable::new(spec).expect("a valid spec"));
    check(&mut ExactModel::new(spec).expect("a valid spec"));
}

#[test]
fn age_counts_from_the_last_learn_and_hits_do_not_renew_it() {
    on_both(spec(4, None, Some(10), Evict::Lru), |table| {
        table.learn(&[1], &[5], 0);
        assert_eq!(table.learn(&[1], &[5], 4), Learned::Confirmed);
        assert_eq!(table.find(&[1], 13), Some(&[5][..]));
        assert_eq!(table.expire(13), 0);
        assert_eq!(table.expire(14), 1);
        assert_eq!(table.peek(&[1]), None);
    });
}

#[test]
fn an_entry_with_a_lifetime_of_its_own_ends_then_and_a_learn_makes_it_live_as_any_other() {
    on_both(spec(4, Some(60), Some(100), Evict::Refuse), |table| {
        for key in 0..3 {
            table.learn(&[key], &[0], 1000);
            table.end_by(&[key], 1030);
        }
        table.insert_permanent(&[3], &[0]);
        table.end_by(&[3], 1030);
        assert_eq!((table.deadline_of(&[0]), table.deadline_of(&[3])), (Some(1030), Some(u64::MAX)));
        // A time behind its own changes nothing, and neither does a hit.
        table.end_by(&[1], 1090);
        table.find(&[1], 1029);
        table.learn(&[2], &[0], 1029);
        assert_eq!(table.expire(1029), 0);
        assert_eq!(table.expire(1030), 2);
        assert_eq!((table.deadline_of(&[1]), table.deadline_of(&[2])), (None, Some(1089)));
    });
    on_both(spec(4, Some(60), None, Evict::Refuse), |table| {
        table.learn(&[1], &[0], 1000);
        table.end_by(&[1], 1030);
        assert_eq!(table.deadline_of(&[1]), Some(1060), "there is no age to end it by");
    });
}

#[test]
fn idle_counts_from_the_last_hit() {
    on_both(spec(4, Some(10), None, Evict::Lru), |table| {
        table.learn(&[1], &[5], 0);
        table.find(&[1], 9);
        assert_eq!(table.expire(18), 0);
        assert_eq!(table.expire(19), 1);
    });
}

#[test]
fn the_earlier_of_age_and_idle_ends_an_entry() {
    on_both(spec(4, Some(10), Some(15), Evict::Lru), |table| {
        table.learn(&[1], &[5], 0);
        table.learn(&[2], &[5], 0);
        table.find(&[1], 9);
        assert_eq!(table.expire(10), 1);
        assert_eq!(table.entries()[0].key, [1]);
        assert_eq!(table.entries()[0].deadline, Some(15));
        assert_eq!(table.expire(15), 1);
    });
}

#[test]
fn a_million_entries_that_end_together_go_a_few_at_a_time_and_none_is_found() {
    let spec = spec(1_000_000, Some(10), None, Evict::Refuse);
    let mut table = ExactTable::new(spec).expect("a valid spec");
    for number in 0..1_000_000u64 {
        assert_eq!(table.learn(&[number], &[number], 0), Learned::New);
    }
    // A tenth of them is used once more.
    (0..100_000u64).for_each(|number| assert!(table.find(&[number], 5).is_some()));
    let (mut calls, mut told) = (0u64, 0u64);
    while table.next_deadline() <= 10 {
        let (mut steps, before) = (8, told);
        table.expire_some(10, &mut steps, &mut |_| told += 1);
        assert!(told - before <= 8, "one call took out {} entries", told - before);
        calls += 1;
        if calls % 10_000 == 1 {
            assert_eq!(table.find(&[100_000 + calls], 10), None, "it has ended");
            assert_eq!(table.find(&[calls % 100_000], 5), Some(&[calls % 100_000][..]));
            let counts = table.statistics();
            assert_eq!((counts.entries, counts.expired), (100_000, 900_000));
            assert_eq!(table.make_way(None, 1, &mut |_| told += 1), 1);
        }
    }
    assert_eq!((told, table.left_to_expire()), (900_000, 0));
    assert!(calls >= 900_000 / 8, "{calls} calls");
}

#[test]
fn a_full_table_takes_a_new_key_as_soon_as_an_entry_has_ended() {
    on_both(spec(100, Some(10), None, Evict::Refuse), |table| {
        (0..100u64).for_each(|number| assert_eq!(table.learn(&[number], &[number], 0), Learned::New));
        table.find(&[0], 5);
        table.expire_some(10, &mut 0, &mut |_| {});
        assert_eq!(table.learn(&[7], &[8], 10), Learned::New, "the entry that was there has ended");
        assert_eq!(table.learn(&[200], &[8], 10), Learned::New);
        assert!(table.insert_permanent(&[8], &[1]));
        assert!(!table.remove(&[9]));
        assert_eq!(table.peek(&[0]), Some(&[0][..]));
        let counts = table.statistics();
        assert_eq!((counts.entries, counts.expired, counts.removed, counts.inserts), (4, 99, 0, 102));
        assert_eq!((table.make_way(None, 200, &mut |_| {}), table.entries().len()), (96, 4));
    });
}

#[test]
fn whether_there_is_room_and_running_figures_are_told_without_a_look_at_what_has_ended() {
    let spec = spec(65_536, Some(10), None, Evict::Refuse);
    let mut table = ExactTable::new(spec).expect("a valid spec");
    (0..65_536u64).for_each(|number| assert_eq!(table.learn(&[number], &[number], 0), Learned::New));
    table.expire_some(10, &mut 0, &mut |_| {});
    assert_eq!(table.left_to_expire(), 65_536, "it is behind");
    let (mut gone, before) = (0, LOOKED.get());
    // New connections ask for two places each; every other one is made.
    for number in 0..1000u64 {
        assert_eq!(table.make_way(None, 2, &mut |_| gone += 1), 2);
        if number % 2 == 0 {
            assert_eq!(table.learn(&[100_000 + number], &[0], 10), Learned::New);
        }
        let counts = table.running_statistics();
        assert_eq!(counts.entries + counts.expired, 65_536 + number / 2 + 1);
        assert_eq!(counts.expired, gone);
    }
    let looked = LOOKED.get() - before;
    // For each entry that goes, those of its leaf are looked at to find it, and once more when it is gone.
    assert!(looked <= 64 * gone, "{looked} looks for {gone} entries");
    assert!(gone < 1100, "{gone}");
}

/// The most looks at entries that one of these calls takes.
fn most_looks(calls: impl Iterator<Item = impl FnOnce(&mut ExactTable)>, table: &mut ExactTable) -> u64 {
    let looks = calls.map(|call| {
        let before = LOOKED.get();
        call(table);
        LOOKED.get() - before
    });
    looks.max().unwrap_or(0)
}

#[test]
fn no_operation_of_a_full_table_makes_up_for_what_all_others_left() {
    for (capacity, evict) in [(65_536u64, Evict::Refuse), (65_536, Evict::Lru), (90, Evict::Lru)] {
        let spec = spec(capacity as usize, Some(10), Some(1000), evict);
        let mut table = ExactTable::new(spec).expect("a valid spec");
        let learn = |number: u64, now| {
            move |table: &mut ExactTable| {
                table.learn(&[number], &[number], now);
            }
        };
        let hit =
            |number: u64, now| move |table: &mut ExactTable| assert!(table.find(&[number], now).is_some());
        // Most are used before the table is nearly full, and all once more when it is.
        let most = capacity / 8 * 7;
        let mut looks = most_looks((0..most).map(|number| learn(number, 0)), &mut table);
        looks = looks.max(most_looks((0..most).map(|number| hit(number, 1)), &mut table));
        looks = looks.max(most_looks((most..capacity).map(|number| learn(number, 2)), &mut table));
        looks = looks.max(most_looks((0..capacity).map(|number| hit(number, 5)), &mut table));
        // By the bounds of before, all have ended; in truth none has.
        table.expire_some(12, &mut 0, &mut |_| {});
        looks = looks.max(most_looks([learn(capacity, 12)].into_iter(), &mut table));
        let counts = table.statistics();
        assert_eq!((counts.entries, counts.expired), (capacity, 0));
        let refused = u64::from(evict == Evict::Refuse);
        assert_eq!((counts.refused, counts.evictions), (refused, 1 - refused));
        assert_eq!(table.peek(&[0]).is_some(), evict == Evict::Refuse, "it was used longest ago");
        assert!(looks <= 400, "{looks} looks of {capacity}");
    }
}

#[test]
fn an_item_is_found_in_one_way_among_entries_that_have_ended() {
    const MANY: u64 = 65_536;
    let mut table =
        ExactTable::new(spec(MANY as usize, Some(10), None, Evict::Refuse)).expect("a valid spec");
    table.number_items(MANY as u32, Box::new(|value| u32::try_from(value[0]).ok()));
    (0..MANY).for_each(|key| assert_eq!(table.learn(&[key], &[(key * 7) % MANY], 0), Learned::New));
    // Those of the items from 1,000 up to 60,000 are used once more.
    let used = |key: &u64| (1000..60_000).contains(&(key * 7 % MANY));
    let looks = most_looks(
        (0..MANY).filter(used).map(|key| {
            move |table: &mut ExactTable| {
                assert!(table.find(&[key], 5).is_some());
            }
        }),
        &mut table,
    );
    assert!(looks <= 100, "{looks} looks for a hit");
    table.expire_some(10, &mut 0, &mut |_| {});
    for (from, item) in [(0, 0), (0, 1), (2000, 60_000), (59_999, 60_001), (65_535, 65_535), (65_535, 2)] {
        let (before, mut gone) = (LOOKED.get(), Vec::new());
        table.free_first(from, &mut |value| gone.push(value[0]));
        let looks = LOOKED.get() - before;
        assert_eq!(gone, [item], "from {from}");
        assert!(looks <= 100, "{looks} looks");
    }
    assert_eq!(table.left_to_expire() as u64, MANY - 59_000 - 6);
    // Whoever gives an item to two entries waits until all that has ended is taken out.
    assert_eq!(table.learn(&[MANY], &[30_000], 10), Learned::New);
    table.free_first(0, &mut |_| {});
    assert_eq!(table.left_to_expire(), 0);
}

#[test]
fn a_hit_saves_an_entry_from_eviction() {
    on_both(spec(2, None, None, Evict::Lru), |table| {
        table.learn(&[1], &[0], 0);
        table.learn(&[2], &[0], 0);
        table.find(&[1], 0);
        assert_eq!(table.learn(&[3], &[0], 0), Learned::New);
        assert_eq!(table.peek(&[2]), None);
        assert_eq!(table.peek(&[1]), Some(&[0][..]));
        assert_eq!(table.statistics().evictions, 1);
    });
}

#[test]
fn permanent_entries_outlast_time_and_pressure_but_not_removal() {
    on_both(spec(1, Some(1), Some(1), Evict::Lru), |table| {
        assert!(table.insert_permanent(&[1], &[5]));
        assert!(!table.insert_permanent(&[2], &[5]));
        assert_eq!(table.next_deadline(), u64::MAX);
        assert_eq!(table.expire(u64::MAX), 0);
        assert_eq!(table.learn(&[2], &[6], 9), Learned::Refused);
        assert_eq!(table.learn(&[1], &[6], 9), Learned::Moved);
        assert_eq!(table.expire(u64::MAX), 0);
        assert!(table.remove(&[1]));
        assert_eq!(table.learn(&[2], &[6], 9), Learned::New);
    });
}

#[test]
fn a_full_table_that_refuses_changes_nothing() {
    on_both(spec(1, None, None, Evict::Refuse), |table| {
        table.learn(&[1], &[5], 0);
        let before = table.entries();
        assert_eq!(table.learn(&[2], &[5], 1), Learned::Refused);
        assert_eq!(table.entries(), before);
        assert_eq!(table.statistics().refused, 1);
        assert_eq!(table.make_way(None, 1, &mut |_| {}), 0);
    });
}

#[test]
fn removal_shifts_entries_back_over_the_end_of_the_array() {
    // Two entries in four slots: over all seeds and key pairs every home and every wrap occurs.
    for seed in 0..64 {
        for (a, b) in (0..12u64).flat_map(|a| (0..12u64).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let mut table = ExactTable::new(ExactSpec { seed, ..spec(2, None, None, Evict::Refuse) })
                .expect("a valid spec");
            table.learn(&[a], &[a], 0);
            table.learn(&[b], &[b], 0);
            assert!(table.remove(&[a]));
            assert_eq!(table.find(&[b], 0), Some(&[b][..]), "seed {seed}, keys {a} and {b}");
            assert_eq!(table.find(&[a], 0), None);
            assert!(table.remove(&[b]));
            assert_eq!(table.entries(), []);
        }
    }
}

#[test]
fn a_spec_out_of_range_says_so() {
    let good = spec(1, None, None, Evict::Lru);
    let error = |spec: ExactSpec| ExactTable::new(spec).err().expect("refused").to_string();
    assert!(error(ExactSpec { key_words: 0, ..good }).contains("a key of 0 words"));
    assert!(error(ExactSpec { key_words: 9, ..good }).contains("a key of 9 words"));
    assert!(error(ExactSpec { value_words: 9, ..good }).contains("a value of 9 words"));
    assert!(error(ExactSpec { capacity: usize::MAX, ..good }).contains("the largest is 268435456"));
    assert!(ExactModel::new(ExactSpec { key_words: 0, ..good }).is_err());
}

#[test]
fn larger_tables_agree_too() {
    // Clusters, shifts and eviction at a size that proptest's short sequences do not reach.
    let spec = ExactSpec { key_words: 2, ..spec(1000, Some(4000), Some(9000), Evict::Lru) };
    let mut table = ExactTable::new(spec).expect("a valid spec");
    let mut model = ExactModel::new(spec).expect("a valid spec");
    let mut state = 1u64;
    for now in 0..60_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (choice, number) = (state >> 61, state >> 33);
        let span = if now % 20_000 < 10_000 { 3000 } else { 300 };
        let key = [number % span, 0];
        if now >= table.next_deadline() {
            table.expire(now);
        }
        if now >= model.next_deadline() {
            model.expire(now);
        }
        match choice {
            0..3 => assert_eq!(table.learn(&key, &[number % 2], now), model.learn(&key, &[number % 2], now)),
            3 => assert_eq!(table.remove(&key), model.remove(&key)),
            _ => assert_eq!(table.find(&key, now), model.find(&key, now)),
        }
        assert_eq!(table.statistics(), model.statistics());
    }
    assert_eq!(table.entries(), model.entries());
    let counts = table.statistics();
    assert!(counts.evictions > 1000 && counts.expired > 1000 && counts.removed > 1000, "{counts:?}");
}

#[test]
fn a_bulk_find_of_nothing_lets_no_time_pass() {
    let mut table = ExactTable::new(spec(1, None, Some(10), Evict::Lru)).expect("a valid spec");
    table.find_bulk(&[], 50, 0, &mut [0]);
    table.find_bulk(&[1], 50, 0, &mut []);
    assert_eq!(table.learn(&[1], &[1], 0), Learned::New);
    assert_eq!(table.next_deadline(), 10);
    table.find_bulk(&[1], 50, 0, &mut [0]);
    assert_eq!(table.learn(&[1], &[1], 0), Learned::Confirmed);
    assert_eq!(table.entries()[0].deadline, Some(60));
}

#[test]
fn a_table_in_use_grows_and_shrinks_a_few_entries_at_a_time() {
    let spec = ExactSpec { value_words: 1, ..spec(20_000, Some(1 << 40), Some(1 << 41), Evict::Lru) };
    let mut table = ExactTable::new(spec).expect("a valid spec");
    let mut model = ExactModel::new(spec).expect("a valid spec");
    let mut random = crate::generate::Random::new(1);
    let (mut longest, mut most_bytes) = (0, 0);
    for now in 0..200_000u64 {
        // Up to 150,000 and down to 1,000, several times before what was begun has ended.
        let capacity = [150_000, 40_000, 1_000, 90_000][(now / 11_000 % 4) as usize];
        if now % 11_000 == 0 {
            let before = table.left_to_move();
            assert_eq!(table.resize(capacity), Ok(()));
            assert_eq!(model.resize(capacity), Ok(()));
            assert!(table.left_to_move() >= before, "a resize moves nothing by itself");
        }
        let key = [random.below(60_000) | 1 << 40];
        let left = table.left_to_move();
        match random.below(8) {
            0..5 => assert_eq!(table.learn(&key, &[now], now), model.learn(&key, &[now], now)),
            5 => assert_eq!(table.remove(&key), model.remove(&key)),
            6 => assert_eq!(table.peek(&key), model.peek(&key)),
            _ => assert_eq!(table.find(&key, now), model.find(&key, now)),
        }
        assert_eq!(table.statistics(), model.statistics());
        longest = longest.max(left.saturating_sub(table.left_to_move()));
        most_bytes = most_bytes.max(table.bytes());
    }
    assert_eq!(table.entries(), model.entries());
    // Those it moves on the way, the one it asks for, and two that are evicted.
    assert!((2..=MOVED_AT_ONCE + 3).contains(&longest), "one operation moved {longest} entries");
    // Two large generations: 2^19 slots of 64 bytes with their tags and orders, twice.
    assert!(most_bytes < 2 * (1 << 19) * (64 + 1 + 2 * 16 + 8), "{most_bytes} bytes");
    while table.move_some() > 0 {}
    table.resize(1_000).expect("a valid capacity");
    while table.move_some() > 0 {}
    assert!(table.statistics().entries > 1_000 || table.bytes() < 4096 * (64 + 1 + 48), "{}", table.bytes());
}

#[test]
fn a_million_entries_change_their_table_without_a_long_operation() {
    let spec = spec(1_000_000, None, None, Evict::Refuse);
    let mut table = ExactTable::new(spec).expect("a valid spec");
    for number in 0..1_000_000u64 {
        assert_eq!(table.learn(&[number], &[number ^ 5], 0), Learned::New);
    }
    let small = table.bytes();
    table.resize(2_000_000).expect("a valid capacity");
    assert_eq!(table.left_to_move(), 1_000_000);
    assert!(table.bytes() <= 3 * small + 4096);
    let (mut longest, mut operations, mut next) = (0, 0u64, 1_000_000u64);
    while table.left_to_move() > 0 {
        let left = table.left_to_move();
        assert_eq!(
            table.find(&[operations * 7919 % 1_000_000], 0),
            Some(&[(operations * 7919 % 1_000_000) ^ 5][..])
        );
        longest = longest.max(left - table.left_to_move());
        let left = table.left_to_move();
        assert_eq!(table.learn(&[next], &[next ^ 5], 0), Learned::New);
        longest = longest.max(left - table.left_to_move());
        next += 1;
        operations += 1;
    }
    assert!(longest <= MOVED_AT_ONCE + 1, "one operation moved {longest} entries");
    assert!(operations < 200_000, "{operations} lookups and as many new keys until all had moved");
    let mut values = vec![0; 64];
    for first in (0..next - 64).step_by(64) {
        let keys: Vec<u64> = (first..first + 64).collect();
        table.peek_bulk(&keys, u64::MAX, &mut values);
        assert!(keys.iter().zip(&values).all(|(key, value)| key ^ 5 == *value));
    }
}

/// The slots that a search for a key looks at, in all generations.
fn probes(table: &mut Table1, key: u64) -> usize {
    let older = table.older.iter_mut().map(Older::generation);
    std::iter::once(&mut table.current)
        .chain(older)
        .map(|one| {
            let (Ok(slot) | Err(slot)) = one.probe(&[key]);
            1 + (slot.wrapping_sub(one.hash_and_home(&[key]).1) & one.slots.mask())
        })
        .sum()
}

fn of_one_word(capacity: usize, seed: u64) -> Table1 {
    let Ok(ExactTable::One(table)) =
        ExactTable::new(ExactSpec { seed, ..spec(capacity, None, None, Evict::Refuse) })
    else {
        unreachable!("a valid spec for keys of one word")
    };
    table
}

/// Keys whose homes are the first `homes` of all slots, by every one of these seeds.
fn colliding(count: usize, slots: usize, homes: u64, seeds: &[u64]) -> Vec<u64> {
    let hashes: Vec<Hash> = seeds.iter().map(|seed| Hash::new(*seed)).collect();
    let low = slots as u64 - 1;
    let all = (0..).filter(|key| hashes.iter().all(|hash| hash.of(&[*key]) & low < homes));
    all.take(count).collect()
}

/// The seeds that a table goes through, the first of them `seed`.
fn seeds(seed: u64, count: usize) -> Vec<u64> {
    std::iter::successors(Some(seed), |seed| Some(next_seed(*seed))).take(count).collect()
}

const MOST_PROBES: usize = (LONGEST_RUN + 1) * (MOST_OLDER + 1);

/// 65,536 keys that all belong in the first 1,024 of 131,072 slots.
fn attack(seed: u64) -> Vec<u64> {
    colliding(1 << 16, 1 << 17, 1024, &[seed])
}

#[test]
fn whoever_knows_the_seed_makes_no_search_long() {
    let keys = attack(0);
    let mut table = of_one_word(1 << 16, 0);
    let (mut all, mut most) = (0, 0);
    for key in &keys {
        assert_eq!(table.learn1(*key, &[*key], 0), Learned::New);
        let probes = probes(&mut table, *key);
        (all, most) = (all + probes, most.max(probes));
    }
    assert!(most <= MOST_PROBES, "{most} probes");
    assert!(all < 4 * keys.len(), "{all} probes for {} keys", keys.len());
    for key in &keys {
        assert_eq!(table.find1(*key, 0), Some(&[*key][..]));
        assert!(table.remove(&[*key]));
    }
    assert_eq!(table.statistics().refused, 0);
}

#[test]
fn keys_for_the_next_seed_find_the_one_after_it() {
    let mut table = of_one_word(1 << 10, 5);
    for key in colliding(1 << 10, 1 << 11, 64, &seeds(5, 2)) {
        assert_eq!(table.learn1(key, &[key], 0), Learned::New);
        let probes = probes(&mut table, key);
        assert!(probes <= MOST_PROBES, "{probes} probes");
    }
    assert_eq!(table.statistics().entries, 1 << 10);
}

#[test]
fn a_key_that_moves_while_the_seed_changes_again_keeps_its_value() {
    let mut table = of_one_word(1 << 10, 5);
    let [first, second] = seeds(5, 2)[..] else { unreachable!("two seeds") };
    // They gather by the second seed only, so that moving them changes the seed once more.
    let moving = colliding(600, 1 << 11, 64, &[second]);
    for &key in &moving {
        assert_eq!(table.learn1(key, &[key ^ 7], 0), Learned::New);
    }
    let mut attack = colliding(400, 1 << 11, 64, &[first]).into_iter().filter(|key| !moving.contains(key));
    while table.older.is_empty() {
        let key = attack.next().expect("fewer gather than change the seed");
        assert_eq!(table.learn1(key, &[key ^ 7], 0), Learned::New);
    }
    for &key in moving.iter().rev() {
        assert_eq!(table.find1(key, 0), Some(&[key ^ 7][..]), "key {key}");
    }
    assert!(![first, second].contains(&table.spec.seed), "the seed changed twice");
}

#[test]
fn keys_for_more_seeds_than_there_are_generations_are_refused_and_none_is_lost() {
    let mut table = of_one_word(1 << 14, 9);
    // So many that the first generation still moves when the last seed is needed.
    let mut keys: Vec<u64> = (0..10_000).map(|key| key << 40 | 1 << 63).collect();
    for seed in seeds(9, MOST_OLDER + 1) {
        keys.extend(colliding(400, 1 << 15, 64, &[seed]));
    }
    let learned: Vec<Learned> = keys.iter().map(|key| table.learn1(*key, &[*key], 0)).collect();
    let refused = learned.iter().filter(|learned| **learned == Learned::Refused).count();
    assert!(refused > 0);
    assert_eq!(table.statistics().refused, refused as u64, "counted");
    for (key, learned) in keys.iter().zip(&learned) {
        assert!(table.peek(&[*key]).is_some() || *learned == Learned::Refused);
    }
    assert_eq!(learned.iter().filter(|learned| **learned == Learned::New).count(), table.entries().len());
}

#[test]
fn keys_for_another_seed_are_as_good_as_any() {
    let keys = attack(0);
    for seed in [1, 2, u64::MAX] {
        let mut table = of_one_word(1 << 16, seed);
        keys.iter().for_each(|key| assert_eq!(table.learn1(*key, &[*key], 0), Learned::New));
        let all: usize = keys.iter().map(|key| probes(&mut table, *key)).sum();
        // With half of the slots taken a hit takes 1.5 probes on average (Knuth, The Art of Computer
        // Programming 3, 6.4).
        assert!((140..160).contains(&(100 * all / keys.len())), "seed {seed}: {all} probes");
        assert_eq!(table.left_to_move(), 0, "the seed has not changed");
    }
}

#[test]
fn entries_are_told_in_parts_that_are_small_however_large_the_table_is() {
    let mut table = of_one_word(1 << 16, 4);
    (0..3000).for_each(|key| assert_eq!(table.learn1(key << 20, &[key], 0), Learned::New));
    // Some of them still lie in an older generation.
    table.resize(1 << 14).expect("room");
    (0..100).for_each(|key| assert_eq!(table.learn1(1 << 50 | key, &[key], 0), Learned::New));
    assert!(table.left_to_move() > 0);
    let (mut told, mut next, mut parts) = (Vec::new(), Some(0), 0);
    while let Some(from) = next {
        let (part, further) = table.entries_part(from, 16);
        assert!(part.len() <= 16);
        assert!(further.is_none_or(|further| further > from && further - from <= 16 * PASSED));
        told.extend(part);
        (next, parts) = (further, parts + 1);
    }
    assert!(parts >= (1 << 17) / (16 * PASSED), "{parts} parts");
    told.sort_unstable();
    assert_eq!(told, table.entries());
}

#[test]
fn an_entry_with_a_lifetime_of_its_own_ends_by_it_until_it_is_learned_again() {
    let spec = ExactSpec { lifetimes: true, ..spec(4, None, Some(300), Evict::Lru) };
    let mut table = ExactTable::new(spec).expect("a valid spec");
    table.learn(&[1], &[7], 5);
    table.end_by(&[1], 15);
    table.learn(&[2], &[8], 5);
    assert_eq!((table.age_of(&[1]), table.age_of(&[2])), (Some(15), Some(305)));
    assert_eq!(table.expire(14), 0);
    table.learn(&[1], &[7], 14);
    assert_eq!(table.deadline_of(&[1]), Some(314), "learned without a time");
    table.end_by(&[1], 20);
    table.end_by(&[1], 400);
    assert_eq!(table.deadline_of(&[1]), Some(20), "a later time does not count");
    assert_eq!((table.expire(20), table.peek(&[1])), (1, None));
    assert_eq!(table.find(&[2], 20), Some(&[8][..]));
}

#[test]
fn a_lifetime_of_its_own_stays_with_an_entry_that_moves_or_goes_to_a_table_with_another_age() {
    let old = ExactSpec { lifetimes: true, ..spec(40, Some(1000), Some(300), Evict::Lru) };
    let mut table = ExactTable::new(old).expect("a valid spec");
    for key in 0..40 {
        table.learn(&[key], &[key], 5);
        table.end_by(&[key], 6 + key);
    }
    table.resize(400).expect("room");
    assert!(table.left_to_move() > 0);
    assert_eq!(table.deadline_of(&[9]), Some(15));
    for age in [800, 20] {
        let mut heir = ExactTable::new(ExactSpec { age: Some(age), ..old }).expect("a valid spec");
        assert!(heir.prepare_for(&table));
        heir.inherit(&mut table);
        table = heir;
        assert_eq!(table.deadline_of(&[3]), Some(9), "age {age}");
        assert_eq!(table.deadline_of(&[39]), Some(5 + age.min(40)), "age {age}: the table says the longest");
    }
    let mut heir = ExactTable::new(ExactSpec { lifetimes: false, ..old }).expect("a valid spec");
    assert!(!heir.prepare_for(&table), "it has no place for lifetimes");
    assert_eq!((table.expire(24), table.expire(25)), (19, 21));
}
