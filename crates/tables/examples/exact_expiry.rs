//! How long a batch of packets waits where a million entries of an exact table end together, or were all
//! renewed before the table is full.

use std::time::{Duration, Instant};
use tables::exact::{Evict, Exact, ExactSpec, ExactTable};

const ENTRIES: u64 = 1_000_000;
/// Packets of a batch, and steps before each of them, as the gateway takes them.
const BATCH: usize = 256;
const STEPS: u32 = 8;

fn filled(evict: Evict) -> ExactTable {
    let spec = ExactSpec {
        key_words: 1,
        value_words: 1,
        capacity: ENTRIES as usize,
        idle: Some(1000),
        age: None,
        lifetimes: false,
        evict,
        seed: 7,
    };
    let mut table = ExactTable::new(spec).expect("room");
    (0..ENTRIES).for_each(|key| _ = table.learn(&[key], &[key], 0));
    table
}

fn timed(mut work: impl FnMut()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

fn main() {
    let mut table = filled(Evict::Refuse);
    let at_once = timed(|| assert_eq!(table.expire(1000), ENTRIES));
    println!("all that end together taken out at once: {:.3} ms", at_once.as_secs_f64() * 1e3);

    let mut table = filled(Evict::Refuse);
    let (mut longest, mut batches) = (Duration::ZERO, 0);
    while table.next_deadline() <= 1000 {
        let batch = timed(|| (0..BATCH).for_each(|_| table.expire_some(1000, &mut { STEPS }, &mut |_| {})));
        (longest, batches) = (longest.max(batch), batches + 1);
    }
    println!("a few before each packet: longest of {batches} batches {:.3} ms", longest.as_secs_f64() * 1e3);

    for evict in [Evict::Refuse, Evict::Lru] {
        let mut table = filled(evict);
        let hits = timed(|| (0..ENTRIES).for_each(|key| assert!(table.find(&[key], 500).is_some())));
        table.expire_some(1000, &mut 0, &mut |_| {});
        let learn = timed(|| _ = table.learn(&[ENTRIES], &[0], 1000));
        println!(
            "{evict:?}, full, all hit once ({:.0} ns each): a new key {:.3} ms",
            hits.as_nanos() as f64 / ENTRIES as f64,
            learn.as_secs_f64() * 1e3
        );
    }
}
