//! How long the control plane keeps a worker between two batches: slices of 64 changes of at most 40 µs, of
//! 64 listed entries, and the exchange of a table, over tables of many entries:
//! `cargo run --release -p exec --example control_slices -- 1000000`. With `bare` behind it, the memory of
//! exact tables is not provided before, as the gateway does.

use exec::provision::provide;
use exec::{Backend, BackendKind, load};
use ir::{Entry, Match};
use lang::pipeline::{CompileOptions, compile};
use std::time::Instant;

/// As the gateway has it.
const SLICE: usize = 64;
const TIME: u128 = 40_000;
/// The most rules.
const RULES: u32 = 100_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let count: u32 = std::env::args().nth(1).ok_or("control_slices ENTRIES")?.parse()?;
    let capacity = 2 * count;
    let text = format!(
        "table hosts: exact(u32) -> port {{ capacity {capacity}  evict refuse }}\n\
         table routes: lpm(ip4) -> u16 {{ capacity {capacity} }}\n\
         table routes6: lpm(ip6) -> u16 {{ capacity {capacity} }}\n\
         table acl: rules(ip4) -> u8 {{ capacity 200000  choose priority }}\n\
         start stage all() {{ flood }}\n"
    );
    let program = compile("t.rav", &text, &|_| None, &CompileOptions::default()).program.ok_or("compiles")?;
    let mut backend = load(&program, BackendKind::Native, 2, 1)?;
    if std::env::args().nth(2).as_deref() != Some("bare") {
        provide(&program, u64::MAX, backend.as_mut(), |_| true);
    }
    let scattered = |number: u32| u128::from(number.wrapping_mul(0x9e37_79b1));
    let host = |number: u32| Entry::exact(&[scattered(number)], &[1]);
    let route = |number: u32| {
        let length = 17 + (number % 8) as u8;
        let value = scattered(number) >> (32 - length) << (32 - length);
        Entry {
            key: vec![Match::Prefix { value, length }],
            value: vec![u128::from(number % 90)],
            priority: 0,
        }
    };
    let route6 = |number: u32| {
        let length = 32 + (number % 17) as u8;
        let value = (0x2000 << 112 | scattered(number) << 80) >> (128 - length) << (128 - length);
        Entry {
            key: vec![Match::Prefix { value, length }],
            value: vec![u128::from(number % 90)],
            priority: 0,
        }
    };
    let rule = |number: u32| Entry { priority: number % 50, ..route(number) };
    let tables: [(&str, Vec<Entry>); 4] = [
        ("hosts", (0..count).map(host).collect()),
        ("routes", (0..count).map(route).collect()),
        ("routes6", (0..count).map(route6).collect()),
        ("acl", (0..count.min(RULES)).map(rule).collect()),
    ];
    for (table, (name, entries)) in (0..).zip(tables) {
        changes(backend.as_mut(), table, &format!("{name}: insert"), entries, false);
        if name.starts_with("routes") {
            let width: u8 = if name == "routes" { 32 } else { 128 };
            // The shorter a prefix, the more addresses change their entry.
            for length in 0..17 {
                let value =
                    if length == 0 { 0 } else { 1 << (width - 1) >> (width - length) << (width - length) };
                let prefix = Match::Prefix { value, length };
                let key = if length == 0 { Match::Any } else { prefix };
                let entry = Entry { key: vec![key], ..Entry::exact(&[], &[7]) };
                for (what, remove) in [("insert", false), ("remove", true)] {
                    changes(
                        backend.as_mut(),
                        table,
                        &format!("{name}: {what} /{length}"),
                        vec![entry.clone()],
                        remove,
                    );
                }
            }
        }
        lists(backend.as_mut(), table, &format!("{name}: list"));
        let entries: Vec<Entry> = backend.entries(table).into_iter().map(|(entry, _)| entry).collect();
        let mut built = backend.table_draft(table).ok_or("can be changed")?.build(entries.clone())?;
        let begun = Instant::now();
        backend.take_built(table, &mut built);
        println!("{name}: exchange {} entries: {} ns", entries.len(), begun.elapsed().as_nanos());
        drop(built);
        changes(backend.as_mut(), table, &format!("{name}: remove"), entries, true);
    }
    Ok(())
}

fn changes(backend: &mut dyn Backend, table: u32, name: &str, entries: Vec<Entry>, remove: bool) {
    let (mut rest, mut times, all) = (&entries[..], Vec::new(), Instant::now());
    let (mut waited, mut waited_long) = (0, 0);
    while !rest.is_empty() {
        let faults = page_faults();
        let begun = Instant::now();
        let mut done = 0;
        for entry in rest.iter().take(SLICE) {
            if remove {
                backend.remove(table, &entry.key, entry.priority);
            } else if let Err(error) = backend.insert(table, entry) {
                println!("{name}: {error}");
            }
            done += 1;
            if begun.elapsed().as_nanos() >= TIME {
                break;
            }
        }
        let time = begun.elapsed().as_nanos();
        let has_waited = page_faults() > faults;
        waited += usize::from(has_waited);
        waited_long += usize::from(has_waited && time > 100_000);
        times.push(time);
        rest = &rest[done..];
    }
    report(name, entries.len(), times, all);
    println!("    {waited} slices waited for the system to give memory, of them {waited_long} above 100 µs");
}

/// How often this thread has waited for the system to give it memory; 0 where nobody tells that.
fn page_faults() -> u64 {
    let told = std::fs::read_to_string("/proc/thread-self/stat").unwrap_or_default();
    let behind_name = told.rsplit(')').next().unwrap_or_default();
    behind_name.split_whitespace().nth(7).and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn lists(backend: &mut dyn Backend, table: u32, name: &str) {
    let (mut next, mut times, mut count, all) =
        (Some(exec::EntryPlace::default()), Vec::new(), 0, Instant::now());
    while let Some(place) = next {
        let begun = Instant::now();
        let (entries, further) = backend.entries_part(table, place, SLICE);
        times.push(begun.elapsed().as_nanos());
        (next, count) = (further, count + entries.len());
    }
    report(name, count, times, all);
}

fn report(name: &str, count: usize, mut times: Vec<u128>, all: Instant) {
    times.sort_unstable();
    let part = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    let above = times.iter().filter(|time| **time > 100_000).count();
    println!(
        "{name}: {count} entries in {} slices, {:.2} M a second; µs a slice: half {:.1}, 99 % {:.1}, 99.9 % {:.1}, longest {:.1}; {above} above 100 µs",
        times.len(),
        count as f64 / all.elapsed().as_secs_f64() / 1e6,
        part(0.5),
        part(0.99),
        part(0.999),
        part(1.0),
    );
}
