//! Real tables, if the environment's `RAVELIN_DATA` names the folder that holds them under `routes`.

use std::collections::HashMap;
use std::io::Read;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::super::{Lpm, LpmImage, LpmModel, LpmSpec, LpmTable, Method, NONE, Prefix, Variant};

/// The text of a file of routes, or none where there is no data.
fn text(file: &str) -> Option<String> {
    let Some(data) = std::env::var_os("RAVELIN_DATA") else {
        println!("skipped: RAVELIN_DATA names no folder of real tables");
        return None;
    };
    let path = PathBuf::from(data).join("routes").join(file);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
    Some(text)
}

fn address(text: &str) -> u128 {
    match text.parse().unwrap() {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn prefix(text: &str) -> Prefix {
    let (bits, length) = text.split_once('/').unwrap();
    Prefix { bits: address(bits), length: length.parse().unwrap() }
}

/// Numbers for next hops, as they come.
#[derive(Default)]
struct Hops(HashMap<String, u32>);

impl Hops {
    fn number(&mut self, name: &str) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry(name.to_string()).or_insert(next)
    }
}

fn routes(text: &str, hops: &mut Hops) -> Vec<(Prefix, u32)> {
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ');
        (prefix(words.next().unwrap()), hops.number(words.next().unwrap()))
    });
    lines.collect()
}

/// Loads a real table in every variant and answers the queries that came with it; `limit` is of the image, in
/// bytes.
fn answers(width: u8, routes_file: &str, queries_file: &str, limits: &[(Variant, usize)]) {
    let (Some(lines), Some(queries)) = (text(routes_file), text(queries_file)) else { return };
    let mut hops = Hops::default();
    let entries = routes(&lines, &mut hops);
    let queries: Vec<(u128, u32, Option<Prefix>)> = queries
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                [at, "-"] => (address(at), NONE, None),
                [at, hop, matched] => (address(at), hops.number(hop), Some(prefix(matched))),
                _ => panic!("a query of two or three words: {line}"),
            }
        })
        .collect();
    assert_eq!(queries.len(), 60_000);
    let wide: Vec<u128> = queries.iter().map(|query| query.0).collect();
    let narrow: Vec<u32> = wide.iter().map(|address| *address as u32).collect();
    let want: Vec<u32> = queries.iter().map(|query| query.1).collect();
    for (variant, limit) in limits {
        let begun = Instant::now();
        let spec = LpmSpec { width, capacity: entries.len() };
        let table = LpmTable::build(spec, *variant, entries.clone()).unwrap();
        println!("{routes_file} {variant:?}: {:?}, {} bytes", begun.elapsed(), table.image_bytes());
        assert!(table.image_bytes() <= *limit, "{} bytes", table.image_bytes());
        let image = LpmImage::open(&table.image()).unwrap();
        for (at, want, matched) in &queries {
            assert_eq!(table.find128(*at), *want, "{at:#x}");
            assert_eq!(image.find(*at), *want, "{at:#x} in the image");
            assert_eq!(table.find_entry(*at).map(|entry| entry.0), *matched, "{at:#x}");
        }
        let mut out = vec![0; wide.len()];
        for method in Method::available() {
            table.find_bulk128_by(method, &wide, &mut out);
            assert!(out == want, "{method:?}");
            if width == 32 {
                out.fill(0);
                table.find_bulk32_by(method, &narrow, &mut out);
                assert!(out == want, "{method:?}, narrow");
            }
        }
        image.find_bulk128(&wide, &mut out);
        assert!(out == want, "bulk in the image");
    }
}

#[test]
fn the_real_table_of_ipv4_answers_its_queries() {
    let limits = [(Variant::Fast, 40_000_000), (Variant::Compact, 8_000_000)];
    answers(32, "rib4-2022.txt.gz", "rib4-queries.txt.gz", &limits);
}

#[test]
fn the_real_table_of_ipv6_answers_its_queries() {
    answers(128, "rib6-2022.txt.gz", "rib6-queries.txt.gz", &[(Variant::Fast, 64_000_000)]);
}

/// An hour of real updates, and random ones, on the full table while a reader goes on.
#[test]
fn the_real_table_takes_real_and_random_updates() {
    let (Some(lines), Some(updates)) = (text("rib4-2022.txt.gz"), text("linx-updates-20141217.txt.gz"))
    else {
        return;
    };
    let mut hops = Hops::default();
    let entries = routes(&lines, &mut hops);
    let spec = LpmSpec { width: 32, capacity: 1_500_000 };
    let updates: Vec<(Prefix, Option<u32>)> = updates
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            (prefix(words[2]), (words[1] == "a").then(|| hops.number(words[3])))
        })
        .collect();
    for variant in [Variant::Fast, Variant::Compact] {
        let mut table = LpmTable::build(spec, variant, entries.clone()).unwrap();
        let mut model = LpmModel::new(spec).unwrap();
        for (prefix, value) in &entries {
            model.insert(*prefix, *value).unwrap();
        }
        let took = apply(&mut table, &mut model, &updates);
        println!("{variant:?}: {} real updates in {took:?}", updates.len());
        let mut state = 88_172_645_463_325_252u64;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as usize >> 8
        };
        let churn: Vec<(Prefix, Option<u32>)> = (0..100_000)
            .map(|_| {
                let (prefix, value) = entries[random() % entries.len()];
                (prefix, (random() % 2 == 0).then_some((value + random() as u32 % 3) % 200))
            })
            .collect();
        let took = apply(&mut table, &mut model, &churn);
        println!("{variant:?}: {} random updates in {took:?}", churn.len());
        for _ in 0..200_000 {
            let any = random() as u32;
            assert_eq!(table.find(u128::from(any)), model.find(u128::from(any)), "{any:#x}");
        }
        assert_eq!(table.entries(), model.entries());
    }
}

/// Applies updates to both while a thread looks up; how long the table took.
fn apply(table: &mut LpmTable, model: &mut LpmModel, updates: &[(Prefix, Option<u32>)]) -> Duration {
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut reader = table.reader();
    let watched = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let addresses: Vec<u32> = updates.iter().map(|(prefix, _)| prefix.bits as u32).collect();
            let mut out = vec![0; addresses.len()];
            let mut looked = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) || looked == 0 {
                reader.find_bulk32(&addresses, &mut out);
                looked += out.len();
            }
            looked
        });
        let begun = Instant::now();
        for (prefix, value) in updates {
            match value {
                Some(value) => table.insert(*prefix, *value).unwrap(),
                None => table.remove(*prefix),
            };
        }
        let took = begun.elapsed();
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(watching.join().unwrap() > 0);
        took
    });
    for (prefix, value) in updates {
        match value {
            Some(value) => model.insert(*prefix, *value).unwrap(),
            None => model.remove(*prefix),
        };
    }
    watched
}
