//! What one change does, in words written and prefixes passed over, does not grow with the table.

use super::super::{Lpm, LpmModel, LpmSpec, LpmTable, Prefix, Variant};
use super::{addresses, agree, leading};
use crate::generate::Random;
use crate::work;

/// The most that one change does besides a step for each prefix that its own contains.
const MOST: u64 = 1 << 16;

/// Prefixes that lie closer the more there are of them.
struct Kind {
    name: &'static str,
    width: u8,
    prefix: fn(&mut Random) -> (u128, u8),
    values: u32,
}

fn wide(random: &mut Random) -> u128 {
    u128::from(random.word()) << 64 | u128::from(random.word())
}

const KINDS: [Kind; 7] = [
    Kind {
        name: "IPv4 as on the Internet",
        width: 32,
        prefix: |random| (wide(random), 17 + random.below(8) as u8),
        values: 90,
    },
    Kind {
        name: "IPv4 hosts, each with a value of its own",
        width: 32,
        prefix: |random| (10 << 24 | wide(random) & 0xff_ffff, 32),
        values: 1 << 20,
    },
    Kind {
        name: "IPv4 networks with more values than a cell tells apart",
        width: 32,
        prefix: |random| (wide(random), 20 + random.below(5) as u8),
        values: 1 << 20,
    },
    Kind {
        name: "IPv6 networks under few prefixes of 16 bits",
        width: 128,
        prefix: |random| (0x2001 << 112 | wide(random) >> 16, 29 + random.below(20) as u8),
        values: 90,
    },
    Kind {
        name: "IPv6 networks that all have one value",
        width: 128,
        prefix: |random| (0x2001 << 112 | wide(random) >> 16, 32 + random.below(17) as u8),
        values: 1,
    },
    Kind {
        name: "IPv6 links, most of them in one site",
        width: 128,
        prefix: |random| {
            let site = if random.chance(95) { 7 } else { u128::from(random.word()) >> 40 };
            (0x2001 << 112 | site << 80 | u128::from(random.below(1 << 16)) << 64, 64)
        },
        values: 1000,
    },
    Kind {
        name: "IPv6 hosts, most of them on one link",
        width: 128,
        prefix: |random| {
            let link = if random.chance(95) { 7 } else { u128::from(random.below(1 << 30)) };
            (0x2001 << 112 | link << 64 | u128::from(random.word() >> 20), 128)
        },
        values: 1 << 20,
    },
];

/// The most that one of many changes does, the prefixes that its own contains left out.
fn most_work(kind: &Kind, held: usize, changes: usize, at_once: bool) -> u64 {
    let spec = LpmSpec { width: kind.width, capacity: held + changes };
    let mut random = Random::new(held as u64);
    let prefix = |random: &mut Random| {
        let (bits, length) = (kind.prefix)(random);
        let keep = leading(kind.width, kind.width) & leading(length, kind.width);
        Prefix { bits: bits & keep, length }
    };
    let mut model = LpmModel::new(spec).unwrap();
    for _ in 0..held {
        model.insert(prefix(&mut random), random.below(kind.values.into()) as u32).unwrap();
    }
    let mut there: Vec<Prefix> = model.entries().into_iter().map(|(prefix, _)| prefix).collect();
    let mut table = LpmTable::build(spec, Variant::Fast, Vec::new()).unwrap();
    let mut most = 0;
    let mut measured = |table: &mut LpmTable, prefix: Prefix, value: Option<u32>| {
        let before = work::done();
        let old = match value {
            Some(value) => table.insert(prefix, value).unwrap(),
            None => table.remove(prefix),
        };
        let done = work::done() - before;
        let within =
            table.entries_from(prefix).take_while(|(other, _)| prefix.contains(other.bits, kind.width));
        most = most.max(done.saturating_sub(40 * within.skip(1).count() as u64));
        old
    };
    if at_once {
        table = LpmTable::build(spec, Variant::Fast, model.entries()).unwrap();
    } else {
        for (prefix, value) in model.entries() {
            measured(&mut table, prefix, Some(value));
        }
    }
    for _ in 0..changes {
        let prefix = if random.chance(50) || there.is_empty() {
            let new = prefix(&mut random);
            there.push(new);
            let value = random.below(kind.values.into()) as u32;
            assert_eq!(measured(&mut table, new, Some(value)), model.insert(new, value).unwrap());
            new
        } else {
            let old = there.swap_remove(random.below(there.len() as u64) as usize);
            assert_eq!(measured(&mut table, old, None), model.remove(old));
            old
        };
        for address in addresses(kind.width, &[prefix], 5) {
            assert_eq!(table.find(address), model.find(address), "{}: {address:#x}", kind.name);
        }
    }
    there.truncate(1000);
    agree(kind.width, &table, &model, &addresses(kind.width, &there, 7));
    most
}

#[test]
fn a_change_does_no_more_however_many_prefixes_there_are() {
    let mut wrong = Vec::new();
    for kind in &KINDS {
        for at_once in [true, false] {
            let most = [1000, 10_000, 100_000].map(|held| most_work(kind, held, 3000, at_once));
            println!("{}, built at once {at_once}: {most:?} of 1,000, 10,000, 100,000", kind.name);
            if most.iter().any(|most| *most > MOST) {
                wrong.push((kind.name, at_once, most));
            }
        }
    }
    assert!(wrong.is_empty(), "more than {MOST}: {wrong:?}");
}

/// A default route whose value no cell holds costs no more than another, and leaves nothing behind.
#[test]
fn marks_of_a_default_route_cost_what_its_codes_do_and_go_with_it() {
    const CELLS: u64 = 1 << 24;
    let spec = LpmSpec { width: 32, capacity: 4000 };
    let mut table = LpmTable::build(spec, Variant::Fast, Vec::new()).unwrap();
    let mut model = LpmModel::new(spec).unwrap();
    let mut random = Random::new(7);
    let mut prefixes = vec![Prefix { bits: 0, length: 0 }];
    for _ in 0..1000 {
        let length = 12 + random.below(21) as u8;
        prefixes.push(Prefix { bits: wide(&mut random) & leading(length, 32), length });
        let value = random.below(200) as u32;
        table.insert(prefixes[prefixes.len() - 1], value).unwrap();
        model.insert(prefixes[prefixes.len() - 1], value).unwrap();
    }
    // Of an image with cells of 8 bits: how many send their lookups on.
    let marked = |table: &LpmTable| {
        let image = table.image();
        let word = |place: usize| u32::from_le_bytes(image[place * 4..][..4].try_into().unwrap()) as usize;
        assert_eq!(word(3), 8, "cells of 8 bits");
        image[word(7) * 4..][..CELLS as usize].iter().filter(|cell| **cell == 0xfe).count()
    };
    let before = marked(&table);
    let mut bytes = 0;
    for (round, value) in [Some(7), Some(300), None, Some(301), Some(8), Some(300), None, Some(9)]
        .into_iter()
        .cycle()
        .take(32)
        .enumerate()
    {
        let begun = work::done();
        match value {
            Some(value) => assert_eq!(table.insert(prefixes[0], value), model.insert(prefixes[0], value)),
            None => assert_eq!(table.remove(prefixes[0]), model.remove(prefixes[0])),
        }
        // Four cells a word, and a bit for each of them.
        let (done, most) = (work::done() - begun, CELLS / 4 + 4 * CELLS / 64 + 2 * MOST);
        assert!(done <= most, "round {round}: {done} steps for {value:?}, of {most}");
        let large = value.is_some_and(|value| value >= 254);
        assert_eq!(marked(&table) > before, large, "round {round}: {value:?}");
        assert!(large || marked(&table) == before, "round {round}: {value:?}");
        agree(32, &table, &model, &addresses(32, &prefixes, round as u128));
        // What a default took in the tree is there for the next.
        bytes = if round < 16 { table.image_bytes().max(bytes) } else { bytes };
        assert!(table.image_bytes() <= bytes, "round {round}");
    }
}
