//! Measures bulk lookups in exact tables: millions of lookups a second, keys of 8 and 16 bytes, 65,536 and a
//! million of them.
//!
//! All keys are asked for in random order and all are found. *single* finds one key after the other; *peek*
//! and *find* take 64 at a time, without and with renewal of an age-and-recency table; the rounds of all
//! columns alternate.

use std::hint::black_box;
use std::time::Instant;

use tables::exact::{Evict, Exact, ExactSpec, ExactTable};
use tables::generate::Random;

const ROUNDS: usize = 9;
const LOOKUPS: usize = 1 << 20;
const BATCH: usize = 64;

fn main() {
    println!("millions of lookups a second: median (best) of {ROUNDS} alternating rounds\n");
    println!("{:28}{:>18}{:>18}{:>18}", "", "single", "peek", "find");
    for keys in [1 << 16, 1_000_000] {
        for key_words in [1, 2] {
            for marking in [false, true] {
                row(keys, key_words, marking);
            }
        }
    }
}

fn row(keys: usize, key_words: usize, marking: bool) {
    let spec = ExactSpec {
        key_words,
        value_words: 1,
        capacity: keys,
        idle: marking.then_some(1 << 60),
        age: None,
        lifetimes: false,
        evict: if marking { Evict::Lru } else { Evict::Refuse },
        seed: 1,
    };
    let mut table = ExactTable::new(spec).expect("a valid spec");
    let mut random = Random::new(7);
    let all: Vec<u64> = (0..keys * key_words).map(|_| random.word()).collect();
    for (number, key) in all.chunks(key_words).enumerate() {
        table.learn(key, &[number as u64], 0);
    }
    let mut asked = Vec::with_capacity(LOOKUPS * key_words);
    for _ in 0..LOOKUPS {
        let number = random.below(keys as u64) as usize;
        asked.extend_from_slice(&all[number * key_words..(number + 1) * key_words]);
    }
    let mut rates = [const { Vec::new() }; 3];
    let mut values = [0; BATCH];
    for round in 0..ROUNDS as u64 {
        let mut measured = |column: usize, work: &mut dyn FnMut(&[u64]) -> u64| {
            let start = Instant::now();
            let mut sum = 0u64;
            for batch in asked.chunks(BATCH * key_words) {
                sum = sum.wrapping_add(work(batch));
            }
            black_box(sum);
            rates[column].push(LOOKUPS as f64 / start.elapsed().as_secs_f64() / 1e6);
        };
        measured(0, &mut |batch| {
            batch.chunks_exact(key_words).map(|key| table.peek(key).map_or(0, |value| value[0])).sum()
        });
        measured(1, &mut |batch| {
            table.peek_bulk(batch, u64::MAX, &mut values);
            black_box(&values)[BATCH - 1]
        });
        measured(2, &mut |batch| {
            table.find_bulk(batch, round, u64::MAX, &mut values);
            black_box(&values)[BATCH - 1]
        });
    }
    let what = format!("{keys} keys of {} bytes{}", key_words * 8, if marking { ", marked" } else { "" });
    print!("{what:36}");
    for rates in &mut rates {
        rates.sort_by(f64::total_cmp);
        print!("{:>18}", format!("{:.0} ({:.0})", rates[ROUNDS / 2], rates[ROUNDS - 1]));
    }
    println!();
}
