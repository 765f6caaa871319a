//! The image against a map, what it says has changed against what has, and the text against both.

use super::super::NONE;
use super::super::plain::{Program, bytes};
use super::*;
use crate::generate::Random;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn value_at(image: &[u32], place: usize, words: usize) -> Vec<u64> {
    let halves = image[place..place + 2 * words].as_chunks().0;
    halves.iter().map(|[low, high]| u64::from(*low) | u64::from(*high) << 32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_image_is_a_map_and_tells_what_has_changed(
        seed: u64, capacity in 0usize..70, few in 1u64..200,
        steps in prop::collection::vec((any::<u64>(), any::<u64>(), 0u32..22), 0..400),
    ) {
        let mut table = DeviceExact::new(2, 1, capacity, seed).unwrap();
        let mut map = BTreeMap::new();
        let mut uploaded = Vec::new();
        for (key, value, what) in steps {
            let key = [key % few, 7 << 40];
            match what {
                0..12 => {
                    table.insert(&key, &[value]).unwrap();
                    map.insert(key, value);
                }
                12..19 => prop_assert_eq!(table.remove(&key), map.remove(&key).is_some()),
                19 => {
                    map.retain(|key, _| key[0] % 3 > 0);
                    map.values_mut().step_by(4).for_each(|held| *held = value);
                    map.insert(key, value);
                    table.hold(map.iter().map(|(key, value)| (&key[..], std::slice::from_ref(value)))).unwrap();
                }
                _ => {
                    uploaded.resize(table.image().len(), 0);
                    for range in table.take_changes() {
                        uploaded[range.clone()].copy_from_slice(&table.image()[range]);
                    }
                    prop_assert!(uploaded == table.image());
                    prop_assert!(table.take_changes().is_empty());
                }
            }
            prop_assert_eq!(table.len(), map.len());
            prop_assert!(2 * table.len() <= table.slots);
        }
        for key in (0..few).map(|key| [key, 7 << 40]) {
            let found = table.find(&key).map(|place| value_at(table.image(), place, 1)[0]);
            prop_assert_eq!(found, map.get(&key).copied());
        }
    }
}

#[test]
fn a_single_change_is_a_slot_or_a_few() {
    let mut table = DeviceExact::new(1, 1, 10_000, 3).unwrap();
    (0..10_000).for_each(|key| table.insert(&[key], &[key]).unwrap());
    let words = table.image().len();
    let whole = || vec![Range { start: 0, end: words }];
    assert_eq!(table.take_changes(), whole());
    let mut changed = 0;
    for key in 0..1000 {
        table.insert(&[key], &[1]).unwrap();
        assert_eq!(table.take_changes().iter().map(Range::len).collect::<Vec<_>>(), [table.size]);
        table.remove(&[key]);
        changed += table.take_changes().iter().map(Range::len).sum::<usize>();
    }
    assert!(changed < 4 * 1000 * table.size, "{changed} words");
    for key in 0..5000 {
        table.insert(&[key], &[2]).unwrap();
    }
    assert_eq!(table.take_changes(), whole());
}

#[test]
fn what_is_held_already_is_not_touched() {
    let mut table = DeviceExact::new(1, 1, 1000, 5).unwrap();
    let mut all: Vec<([u64; 1], [u64; 1])> = (0..1000).map(|key| ([key], [key + 1])).collect();
    let mut hold = |all: &[([u64; 1], [u64; 1])]| {
        table.hold(all.iter().map(|(key, value)| (&key[..], &value[..]))).unwrap();
        table.take_changes().iter().map(Range::len).sum::<usize>() / table.size
    };
    assert!(hold(&all) >= 2000);
    assert_eq!(hold(&all), 0);
    all[77].1 = [0];
    assert_eq!(hold(&all), 1);
    all[78].0 = [1000];
    let slots = hold(&all);
    assert!((2..8).contains(&slots), "{slots}");
}

#[test]
fn what_has_no_room_is_refused() {
    let most = DeviceExact::new(8, 8, 1 << 28, 0).unwrap_err();
    assert_eq!(most, SizeError { capacity: 1 << 28, bytes: (1 << 28) * 16 * 40 });
    assert!(DeviceExact::new(1, 1, usize::MAX, 0).is_err());
}

#[test]
fn the_text_finds_what_the_table_finds() {
    let mut random = Random::new(4);
    for key_words in 1..=crate::exact::MAX_KEY_WORDS {
        let program = Program::build(
            &[TEXT],
            &format!(
                "
static void answer(const u32 *image, const u8 *asked, u64 bytes)
{{
    const u64 *keys = (const u64 *)asked;
    for (u64 at = 0; at < bytes / 8; at += {key_words}) tell(exact_find(image, keys + at, {key_words}));
}}
"
            ),
        );
        for value_words in [0, 1, 3] {
            let count = [0, 1, 3000][random.below(3) as usize] + 500 * value_words;
            let mut table = DeviceExact::new(key_words, value_words, count / 2, random.word()).unwrap();
            let key = |random: &mut Random| -> Vec<u64> {
                // Keys that differ in few bits, anywhere.
                let mut key = vec![random.below(4) << 62; key_words];
                key[random.below(key_words as u64) as usize] ^= random.below(2000) << random.below(53);
                key
            };
            let mut all = BTreeMap::new();
            for _ in 0..count {
                let value: Vec<u64> = (0..value_words).map(|_| random.word()).collect();
                let key = key(&mut random);
                table.insert(&key, &value).unwrap();
                all.insert(key, value);
            }
            let gone: Vec<Vec<u64>> = all.keys().step_by(5).cloned().collect();
            for key in &gone {
                assert!(table.remove(key));
                all.remove(key);
            }
            let mut asked: Vec<Vec<u64>> = all.keys().chain(&gone).cloned().collect();
            asked.resize_with(5000, || key(&mut random));
            let found = program.run(table.image(), &bytes(&asked.concat()));
            assert_eq!(found.len(), asked.len());
            for (key, found) in asked.iter().zip(found) {
                assert_eq!(found, super::find(table.image(), key), "in Rust, {key:x?}");
                let value = (found != NONE).then(|| value_at(table.image(), found as usize, value_words));
                assert_eq!(value.as_ref(), all.get(key), "{key:x?}");
            }
        }
    }
}

#[test]
fn keys_that_meet_by_its_seed_get_another() {
    let hash = Hash::new(3);
    let keys: Vec<u64> = (0..).filter(|key| hash.of(&[*key]) & 0x1fff < 64).take(4096).collect();
    let mut table = DeviceExact::new(1, 1, keys.len(), 3).unwrap();
    for key in &keys {
        table.insert(&[*key], &[*key]).unwrap();
        assert!(table.find(&[*key]).is_some());
    }
    let taken = |slot: usize| table.words[table.at(slot % table.slots)] != 0;
    let mut run = 0;
    for slot in 0..2 * table.slots {
        run = if taken(slot) { run + 1 } else { 0 };
        assert!(run <= LONGEST_RUN);
    }
    for key in &keys {
        let place = find(table.image(), &[*key]);
        assert_eq!(table.find(&[*key]), Some(place as usize));
        assert_eq!(value_at(table.image(), place as usize, 1), [*key]);
    }
    assert_eq!(table.len(), keys.len());
}

#[test]
fn the_text_searches_as_far_as_a_key_may_lie() {
    assert!(TEXT.contains(&format!("probe <= mask && probe <= {LONGEST_RUN};")));
}
