//! Exact tables of 65,536 and of a million keys of 8 and of 16 bytes.

use super::bench::{Bench, Built, SEED, cost, held};
use super::contest::{BATCH_MAX, Entry, InProcess, NONE, Way};
use super::peer::{Library, Peer};
use crate::experiment::{Better, Figure, Row};
use cpu_time::ThreadTime;
use std::cell::RefCell;
use std::rc::Rc;
use tables::exact::{Evict, Exact, ExactSpec, ExactTable};
use tables::generate::{Random, Weighted};

/// How often a key that is asked for is none of the table's, in percent.
const STRANGERS: u64 = 10;
/// The value of a key that is not there.
const MISSING: u64 = NONE as u64;

/// The rows of all sizes of keys and tables.
pub(super) fn rows(bench: &mut Bench, progress: &mut dyn FnMut(&str)) -> Result<Vec<Row>, String> {
    let sizes: &[usize] = if bench.quick { &[4096] } else { &[65_536, 1 << 20] };
    let mut rows = Vec::new();
    for words in [1, 2] {
        for &entries in sizes {
            rows.extend(sized(bench, words, entries, progress)?);
        }
    }
    Ok(rows)
}

fn sized(
    bench: &mut Bench,
    words: usize,
    entries: usize,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut random = Random::new(SEED);
    let mut draw = |count: usize| -> Vec<u64> { (0..count).map(|_| random.word()).collect() };
    let keys = draw(entries * words);
    let strangers = draw(entries * words);
    let case = format!("exact table of {entries} keys of {} bytes", words * 8);
    progress(&format!("{case}: build"));
    let Built { what: mut table, seconds } = bench.build(|| built(&keys, words))?;
    let data = bench.workshop.write("keys", &bytes_of(&keys))?;
    let peer = bench.peer(Library::Hash, &data, &[&(words * 8).to_string()])?;

    let mut rows = Vec::new();
    for (traffic, law) in [("uniform", None), ("Zipf", Some(Weighted::zipf(entries as u32)))] {
        let case = format!("{case}, {traffic}");
        progress(&case);
        let count = if bench.quick { 1 << 14 } else { 1 << 20 };
        let (queries, right) = asked(count, law.as_ref(), &keys, &strangers, words);
        // As rte_hash's program has it, values are a word and become answers here.
        let mut values = [0; BATCH_MAX];
        let mut contenders = vec![
            Entry::ours(
                Way::Bulk,
                InProcess::new("bulk", &queries, words, |keys, answers| {
                    let values = &mut values[..answers.len()];
                    table.peek_bulk(keys, MISSING, values);
                    for (value, answer) in values.iter().zip(answers) {
                        *answer = *value as u32;
                    }
                }),
            ),
            Entry::ours(
                Way::Single,
                InProcess::new("single", &queries, words, |keys, answers| {
                    for (key, answer) in keys.chunks_exact(words).zip(answers) {
                        *answer = table.peek(key).map_or(NONE, |value| value[0] as u32);
                    }
                }),
            ),
        ];
        if let Some(peer) = &peer {
            let path = bench.workshop.write("queries", &bytes_of(&queries))?;
            bench.enter(peer, &path, &mut contenders)?;
        }
        let goals = [("", 1.5)];
        let contest = bench.contest(&case, count as f64 / 1e6, "M/s", &right, &goals);
        rows.extend(contest.rows(&mut contenders));
    }
    let peers: Vec<_> = peer.iter().map(|peer| (Library::Hash, peer)).collect();
    let bytes = table.bytes() as u64;
    rows.extend(cost(&case, seconds, bytes, &peers));

    progress(&format!("{case}: changes"));
    rows.extend(changes(bench, &case, &keys, words, &mut table, peer.as_ref())?);
    Ok(rows)
}

/// Keys that are asked for, evenly or by a law, and the place of each in the table. Some are strangers.
fn asked(
    count: usize,
    law: Option<&Weighted>,
    keys: &[u64],
    strangers: &[u64],
    words: usize,
) -> (Vec<u64>, Vec<u32>) {
    let (mut queries, mut right) = (Vec::with_capacity(count * words), Vec::with_capacity(count));
    let mut random = Random::new(SEED + 1);
    for _ in 0..count {
        let place = match law {
            Some(law) => law.draw(&mut random),
            None => random.below((keys.len() / words) as u64) as usize,
        };
        let known = !random.chance(STRANGERS);
        let from = if known { keys } else { strangers };
        queries.extend_from_slice(&from[place * words..][..words]);
        right.push(if known { place as u32 } else { NONE });
    }
    (queries, right)
}

/// The rows of keys that are taken out and put in again.
fn changes(
    bench: &Bench,
    case: &str,
    keys: &[u64],
    words: usize,
    table: &mut ExactTable,
    peer: Option<&Rc<RefCell<Peer>>>,
) -> Result<Vec<Row>, String> {
    let entries = keys.len() / words;
    let mut random = Random::new(SEED + 2);
    let changed: Vec<usize> =
        (0..entries.min(100_000)).map(|_| random.below(entries as u64) as usize).collect();
    let mut rates = Vec::new();
    for _ in 0..bench.runs {
        let start = ThreadTime::now();
        for &place in &changed {
            let key = &keys[place * words..][..words];
            table.remove(key);
            table.learn(key, &[place as u64], 0);
        }
        rates.push(changed.len() as f64 * 2.0 / start.elapsed().as_secs_f64() / 1e6);
    }
    let mut others = Vec::new();
    if let Some(peer) = peer {
        let mut changes = Vec::new();
        for &place in &changed {
            for value in [NONE, place as u32] {
                changes.extend(bytes_of(&keys[place * words..][..words]));
                changes.extend(value.to_le_bytes());
            }
        }
        let path = bench.workshop.write("changes", &changes)?;
        let (count, seconds) = peer.borrow_mut().update(&path)?;
        others.push((Library::Hash.name().to_owned(), count as f64 / seconds / 1e6));
    }
    let figure = Figure::of(rates).ok_or("nothing was changed")?;
    Ok(held(&format!("{case}, changes"), "take out, put in", "M/s", figure, &others, Better::More))
}

/// A table of the keys, each with its place as value.
fn built(keys: &[u64], words: usize) -> Result<ExactTable, String> {
    let capacity = keys.len() / words;
    let spec = ExactSpec {
        key_words: words,
        value_words: 1,
        capacity,
        idle: None,
        age: None,
        lifetimes: false,
        evict: Evict::Refuse,
        seed: SEED,
    };
    let mut table = ExactTable::new(spec).map_err(|error| error.to_string())?;
    for (place, key) in keys.chunks_exact(words).enumerate() {
        table.learn(key, &[place as u64], 0);
    }
    Ok(table)
}

fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}
