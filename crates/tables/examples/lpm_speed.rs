//! Measures longest-prefix tables: load time, image bytes and million lookups a second, single and bulk.
//!
//! `RAVELIN_DATA` names a folder with real tables under `routes`; without it, seeded prefixes of about the
//! same lengths.

use std::collections::HashMap;
use std::hint::black_box;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::time::Instant;

use tables::lpm::{LpmSpec, LpmTable, Method, Prefix, Variant};

const ROUNDS: usize = 7;
const TRAFFIC: usize = 1 << 21;
const BATCH: usize = 256;

fn main() {
    let data = std::env::var("RAVELIN_DATA").ok();
    let only = std::env::args().nth(1).unwrap_or_default();
    for (name, file, width, variant) in [
        ("IPv4", "rib4-2022.txt.gz", 32, Variant::Fast),
        ("IPv4 compact", "rib4-2022.txt.gz", 32, Variant::Compact),
        ("IPv6", "rib6-2022.txt.gz", 128, Variant::Fast),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let mut random = Random(88_172_645_463_325_252);
        let entries = match &data {
            Some(data) => real(&Path::new(data).join("routes").join(file)),
            None => seeded(width, &mut random),
        };
        measure(name, width, variant, entries, &mut random);
    }
}

fn measure(name: &str, width: u8, variant: Variant, entries: Vec<(Prefix, u32)>, random: &mut Random) {
    let spec = LpmSpec { width, capacity: 1 << 20 };
    let prefixes: Vec<Prefix> = entries.iter().map(|(prefix, _)| *prefix).collect();
    let begun = Instant::now();
    let table = LpmTable::build(spec, variant, entries).expect("the entries make a table");
    println!(
        "{name}: {} prefixes, loaded in {:.3} s, image of {:.2} MB",
        prefixes.len(),
        begun.elapsed().as_secs_f64(),
        table.image_bytes() as f64 / 1e6
    );
    println!(
        "  {:10}{:>12}{:>12}{:>12}   (M lookups/s, median of {ROUNDS})",
        "", "uniform", "prefixes", "zipf"
    );
    let traffic = [uniform(width, random), inside(width, &prefixes, random), zipf(width, &prefixes, random)];
    let mut ways: Vec<(String, Vec<Vec<f64>>)> = vec![("single".into(), vec![Vec::new(); 3])];
    ways.extend(Method::available().iter().map(|method| (format!("{method:?}"), vec![Vec::new(); 3])));
    for _ in 0..ROUNDS {
        for (way, (_, speeds)) in ways.iter_mut().enumerate() {
            for (addresses, speeds) in traffic.iter().zip(speeds) {
                let method = way.checked_sub(1).map(|index| Method::available()[index]);
                speeds.push(speed(&table, width, method, addresses));
            }
        }
    }
    for (way, speeds) in &mut ways {
        let median = |speeds: &mut Vec<f64>| {
            speeds.sort_by(f64::total_cmp);
            speeds[ROUNDS / 2]
        };
        let [uniform, inside, zipf] = [0, 1, 2].map(|index| median(&mut speeds[index]));
        println!("  {way:10}{uniform:12.0}{inside:12.0}{zipf:12.0}");
    }
}

/// Million lookups a second over all addresses, one at a time without a method.
fn speed(table: &LpmTable, width: u8, method: Option<Method>, addresses: &Addresses) -> f64 {
    let begun = Instant::now();
    let mut out = [0; BATCH];
    match (method, width) {
        (None, 32) => addresses.narrow.iter().for_each(|address| {
            black_box(table.find32(*address));
        }),
        (None, _) => addresses.wide.iter().for_each(|address| {
            black_box(table.find128(*address));
        }),
        (Some(method), 32) => addresses.narrow.chunks(BATCH).for_each(|chunk| {
            table.find_bulk32_by(method, chunk, &mut out);
            black_box(&mut out);
        }),
        (Some(method), _) => addresses.wide.chunks(BATCH).for_each(|chunk| {
            table.find_bulk128_by(method, chunk, &mut out);
            black_box(&mut out);
        }),
    }
    TRAFFIC as f64 / begun.elapsed().as_secs_f64() / 1e6
}

struct Addresses {
    narrow: Vec<u32>,
    wide: Vec<u128>,
}

fn addresses(width: u8, mut any: impl FnMut() -> u128) -> Addresses {
    let wide: Vec<u128> = (0..TRAFFIC).map(|_| any()).collect();
    match width {
        32 => Addresses { narrow: wide.iter().map(|address| *address as u32).collect(), wide: Vec::new() },
        _ => Addresses { narrow: Vec::new(), wide },
    }
}

/// Of IPv6, only addresses under 2000::/3: nothing else is routed.
fn uniform(width: u8, random: &mut Random) -> Addresses {
    addresses(width, || {
        let any = random.wide();
        if width == 128 { any >> 3 | 1 << 125 } else { any }
    })
}

fn one_inside(width: u8, prefixes: &[Prefix], random: &mut Random) -> u128 {
    let prefix = prefixes[random.below(prefixes.len())];
    let free = u32::from(width - prefix.length);
    prefix.bits | random.wide() & u128::MAX.checked_shr(128 - free).unwrap_or(0)
}

fn inside(width: u8, prefixes: &[Prefix], random: &mut Random) -> Addresses {
    addresses(width, || one_inside(width, prefixes, random))
}

/// A million destinations inside prefixes, the n-th taken with a chance of 1/n.
fn zipf(width: u8, prefixes: &[Prefix], random: &mut Random) -> Addresses {
    let destinations: Vec<u128> = (0..1 << 20).map(|_| one_inside(width, prefixes, random)).collect();
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=destinations.len())
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    addresses(width, || {
        let at = random.fraction() * sum;
        destinations[sums.partition_point(|sum| *sum < at).min(destinations.len() - 1)]
    })
}

/// Prefixes with the lengths of a full table of the Internet, more or less, and 64 values.
fn seeded(width: u8, random: &mut Random) -> Vec<(Prefix, u32)> {
    let count = if width == 32 { 900_000 } else { 160_000 };
    let mut entries: HashMap<Prefix, u32> = HashMap::new();
    while entries.len() < count {
        let longest = random.below(100) < 60;
        let (length, place) = match (width, longest) {
            (32, true) => (24, random.below(14 << 28) as u128),
            (32, false) => (16 + random.below(8) as u8, random.below(14 << 28) as u128),
            (_, true) => (48, (0x2000 + random.below(0x0c00) as u128) << 112 | random.wide() >> 22),
            (_, false) => (
                29 + random.below(19) as u8,
                (0x2000 + random.below(0x0c00) as u128) << 112 | random.wide() >> 22,
            ),
        };
        let shift = u32::from(width - length);
        entries.insert(Prefix { bits: place >> shift << shift, length }, random.below(64) as u32);
    }
    entries.into_iter().collect()
}

/// Prefixes of a text with one a line, then its next hop; next hops are numbered as they come.
fn real(path: &Path) -> Vec<(Prefix, u32)> {
    let file = std::fs::File::open(path).expect("the table of routes");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("text");
    let mut hops = HashMap::new();
    let lines = text.lines().map(|line| {
        let mut words = line.split(' ');
        let (address, length) = words.next().and_then(|prefix| prefix.split_once('/')).expect("a prefix");
        let bits = match address.parse().expect("an address") {
            IpAddr::V4(address) => u128::from(u32::from(address)),
            IpAddr::V6(address) => u128::from(address),
        };
        let next = hops.len() as u32;
        let value = *hops.entry(words.next().expect("a next hop").to_string()).or_insert(next);
        (Prefix { bits, length: length.parse().expect("a length") }, value)
    });
    lines.collect()
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 20) as usize % end
    }

    fn wide(&mut self) -> u128 {
        u128::from(self.next()) << 64 | u128::from(self.next())
    }

    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
