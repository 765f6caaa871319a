//! Exact tables and those of prefixes beside their models, over few steps: the parts of `tables` that Miri
//! can follow, in a test that is short enough for it: it interprets a step a thousand times as slowly.

use tables::exact::{Evict, Exact, ExactModel, ExactSpec, ExactTable};
use tables::generate::Random;
use tables::lpm::{Lpm, LpmModel, LpmSpec, LpmTable, Prefix, Variant};

/// Keys and values of one word, and of as many as there may be, with room that has to be made.
#[test]
fn an_exact_table_and_its_model_say_the_same() {
    for (key_words, value_words, evict) in [
        (1, 0, Evict::Lru),
        (1, 1, Evict::Refuse),
        (2, 1, Evict::Lru),
        (3, 2, Evict::Lru),
        (8, 8, Evict::Refuse),
    ] {
        let spec = ExactSpec {
            key_words,
            value_words,
            capacity: 6,
            idle: Some(9),
            age: Some(30),
            lifetimes: true,
            evict,
            seed: 5,
        };
        let mut table = ExactTable::new(spec).expect("a valid spec");
        let mut model = ExactModel::new(spec).expect("a valid spec");
        let mut random = Random::new(key_words as u64);
        let mut found = 0;
        for now in 0..60 {
            let mut key = vec![0; key_words];
            key[random.below(key_words as u64) as usize] = random.below(9);
            let value = vec![random.below(9); value_words];
            match random.below(8) {
                0 => assert_eq!(table.remove(&key), model.remove(&key)),
                1 => assert_eq!(table.expire(now), model.expire(now)),
                2 => assert_eq!(table.insert_permanent(&key, &value), model.insert_permanent(&key, &value)),
                3 if now > 30 => {
                    let capacity = random.between(5, 40) as usize;
                    assert_eq!(table.resize(capacity), model.resize(capacity));
                }
                _ => assert_eq!(table.learn(&key, &value, now), model.learn(&key, &value, now)),
            }
            assert_eq!(table.find(&key, now), model.find(&key, now), "{key_words} words, step {now}");
            assert_eq!(table.peek(&key), model.peek(&key));
            found += usize::from(model.peek(&key).is_some());
        }
        assert!(found > 20, "{key_words} words: {found} found");
    }
}

#[test]
fn a_table_of_prefixes_and_its_model_say_the_same() {
    for width in [7, 48] {
        let spec = LpmSpec { width, capacity: 30 };
        let mut table = LpmTable::build(spec, Variant::Fast, Vec::new()).expect("it has room");
        let mut model = LpmModel::new(spec).expect("it has room");
        let mut random = Random::new(width.into());
        let mut found = 0;
        for change in 0..24 {
            let length = random.below(u64::from(width) + 1) as u8;
            let cleared = u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
            let all = u128::MAX >> (128 - u32::from(width));
            let prefix = Prefix { bits: (all / 3) & cleared, length };
            if random.below(3) == 0 {
                assert_eq!(table.remove(prefix), model.remove(prefix), "{width} bits, change {change}");
            } else {
                assert_eq!(table.insert(prefix, change), model.insert(prefix, change), "{width} bits");
            }
            for address in [prefix.bits, prefix.bits.wrapping_sub(1) & all, all / 3] {
                assert_eq!(table.find(address), model.find(address), "{width} bits, {address:#x}");
                found += usize::from(model.find(address).is_some());
            }
        }
        assert_eq!(table.entries(), model.entries());
        assert!(found > 10, "{width} bits: {found} found");
    }
}
