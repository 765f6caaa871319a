//! The fast table against the model: random operations over few keys, small capacities and every kind of spec.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Operation {
    Find(u64),
    Peek(u64),
    Learn(u64, u64),
    InsertPermanent(u64, u64),
    Remove(u64),
    Wait(i64),
    Expire,
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
        4 => key.clone().prop_map(Operation::Find),
        1 => key.clone().prop_map(Operation::Peek),
        1 => (key.clone(), value).prop_map(|(k, v)| Operation::InsertPermanent(k, v)),
        2 => key.prop_map(Operation::Remove),
        3 => wait.prop_map(Operation::Wait),
        2 => Just(Operation::Expire),
    ];
    prop::collection::vec(operation, 1..300)
}

fn specs() -> impl Strategy<Value = ExactSpec> {
    let lifetime = prop_oneof![Just(None), (0..100u64).prop_map(Some), Just(Some(u64::MAX))];
    let evict = prop_oneof![3 => Just(Evict::Lru), 1 => Just(Evict::Refuse)];
    let words = (prop::sample::select(vec![1usize, 2, 3, 8]), prop::sample::select(vec![0usize, 1, 2, 8]));
    (words, 0..20usize, lifetime.clone(), lifetime, evict, any::<u64>()).prop_map(
        |((key_words, value_words), capacity, idle, age, evict, seed)| ExactSpec {
            key_words,
            value_words,
            capacity,
            idle,
            age,
            evict,
            seed,
        },
    )
}

/// A key whose words differ in one place at a time, so that comparing too few of them would be seen. Key 0 is all zeros,
/// as an empty slot is.
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
    let mut table = Table::new(spec).expect("a valid spec");
    let mut model = Model::new(spec).expect("a valid spec");
    let mut now = 0u64;
    for operation in operations {
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
            Operation::InsertPermanent(k, v) => {
                let (k, v) = (key(&spec, k), value(&spec, v));
                prop_assert_eq!(table.insert_permanent(&k, &v), model.insert_permanent(&k, &v));
            }
            Operation::Remove(k) => {
                prop_assert_eq!(table.remove(&key(&spec, k)), model.remove(&key(&spec, k)))
            }
            Operation::Wait(time) => now = now.saturating_add_signed(time),
            Operation::Expire => {
                prop_assert_eq!(table.expire(now), model.expire(now));
                prop_assert!(table.next_deadline() > now || table.next_deadline() == u64::MAX);
            }
        }
        prop_assert!(table.next_deadline() <= model.next_deadline());
        prop_assert_eq!(table.statistics(), model.statistics());
        prop_assert_eq!(table.free(), model.free());
        prop_assert_eq!(table.entries(), model.entries());
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
    ExactSpec { key_words: 1, value_words: 1, capacity, idle, age, evict, seed: 3 }
}

/// Runs a check on both implementations.
fn on_both(spec: ExactSpec, check: impl Fn(&mut dyn Exact)) {
    check(&mut Table::new(spec).expect("a valid spec"));
    check(&mut Model::new(spec).expect("a valid spec"));
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
        assert_eq!(table.free(), 0);
    });
}

#[test]
fn removal_shifts_entries_back_over_the_end_of_the_array() {
    // Two entries in four slots: over all seeds and key pairs every home and every wrap occurs.
    for seed in 0..64 {
        for (a, b) in (0..12u64).flat_map(|a| (0..12u64).map(move |b| (a, b))).filter(|(a, b)| a != b) {
            let mut table =
                Table::new(ExactSpec { seed, ..spec(2, None, None, Evict::Refuse) }).expect("a valid spec");
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
    let error = |spec: ExactSpec| Table::new(spec).err().expect("refused").to_string();
    assert!(error(ExactSpec { key_words: 0, ..good }).contains("a key of 0 words"));
    assert!(error(ExactSpec { key_words: 9, ..good }).contains("a key of 9 words"));
    assert!(error(ExactSpec { value_words: 9, ..good }).contains("a value of 9 words"));
    assert!(error(ExactSpec { capacity: usize::MAX, ..good }).contains("the largest is 268435456"));
    assert!(Model::new(ExactSpec { key_words: 0, ..good }).is_err());
}

#[test]
fn larger_tables_agree_too() {
    // Clusters, shifts and eviction at a size that proptest's short sequences do not reach.
    let spec = ExactSpec { key_words: 2, ..spec(1000, Some(4000), Some(9000), Evict::Lru) };
    let mut table = Table::new(spec).expect("a valid spec");
    let mut model = Model::new(spec).expect("a valid spec");
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
