//! The fast table against its model, in every form, width and way of looking up.

mod bounded;
mod concurrent;
mod edges;
mod real_tables;

use proptest::prelude::*;

use super::spec::leading;
use super::{Lpm, LpmImage, LpmModel, LpmSpec, LpmTable, Method, NONE, Prefix, Variant};

/// A prefix of a table `width` bits wide; few distinct high bits, so that prefixes nest, and every length.
fn prefix(width: u8) -> impl Strategy<Value = Prefix> {
    (0..=width, any::<u128>(), 0u32..4, 0u32..40).prop_map(move |(length, random, few, depth)| {
        // Most of the bits above `depth` are taken from a handful of patterns.
        let shared = (u128::MAX / 3) >> few;
        let keep = leading((depth * 3).min(127) as u8, 128);
        let bits = (shared & keep | random & !keep) >> (128 - u32::from(width));
        Prefix { bits: bits & leading(length, width), length }
    })
}

#[derive(Clone, Debug)]
enum Change {
    Insert(Prefix, u32),
    Remove(usize),
}

fn change(width: u8) -> impl Strategy<Value = Change> {
    let value = prop_oneof![6 => 0u32..20, 2 => 0u32..300, 1 => any::<u32>()];
    prop_oneof![
        3 => (prefix(width), value).prop_map(|(prefix, value)| Change::Insert(prefix, value)),
        1 => any::<usize>().prop_map(Change::Remove),
    ]
}

/// Addresses at, before, behind and inside prefixes.
fn addresses(width: u8, prefixes: &[Prefix], random: u128) -> Vec<u128> {
    let all = leading(width, width);
    let around = |prefix: &Prefix| {
        let last = prefix.bits | all & !leading(prefix.length, width);
        [
            prefix.bits,
            last,
            prefix.bits.wrapping_sub(1) & all,
            last.wrapping_add(1) & all,
            (prefix.bits | random & all & last),
        ]
    };
    prefixes.iter().flat_map(around).chain([0, all, random & all]).collect()
}

fn agree(width: u8, table: &LpmTable, model: &LpmModel, addresses: &[u128]) {
    let want: Vec<u32> = addresses.iter().map(|address| model.find(*address).unwrap_or(NONE)).collect();
    let narrow: Vec<u32> = addresses.iter().map(|address| *address as u32).collect();
    for (address, want) in addresses.iter().zip(&want) {
        assert_eq!(table.find128(*address), *want, "one lookup of {address:#x}");
        assert_eq!(table.find_entry(*address), model.find_entry(*address), "the entry of {address:#x}");
        // Some of those that lie around each other are passed over.
        let over = |prefix: Prefix| (u32::from(prefix.length) ^ *address as u32) % 4 < 3;
        assert_eq!(table.find_past(*address, &over), model.find_past(*address, &over), "{address:#x}");
        if width <= 32 {
            assert_eq!(table.find32(*address as u32), *want, "one narrow lookup of {address:#x}");
        }
    }
    for method in Method::available() {
        let mut out = vec![0; addresses.len()];
        table.find_bulk128_by(method, addresses, &mut out);
        assert_eq!(out, want, "{method:?} of {addresses:x?}");
        if width <= 32 {
            out.fill(0);
            table.find_bulk32_by(method, &narrow, &mut out);
            assert_eq!(out, want, "{method:?}, narrow, of {addresses:x?}");
        }
    }
}

fn play(width: u8, variant: Variant, changes: &[Change], random: u128) {
    let spec = LpmSpec { width, capacity: 200 };
    let mut table = LpmTable::with(spec, variant).unwrap();
    let mut model = LpmModel::new(spec).unwrap();
    let mut reader = table.reader();
    let mut named = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let touched = match change {
            Change::Insert(prefix, value) => {
                assert_eq!(table.insert(*prefix, *value), model.insert(*prefix, *value));
                named.push(*prefix);
                *prefix
            }
            Change::Remove(index) if !named.is_empty() => {
                let prefix = named.swap_remove(index % named.len());
                assert_eq!(table.remove(prefix), model.remove(prefix));
                prefix
            }
            Change::Remove(_) => continue,
        };
        let near = addresses(width, &[touched], random);
        near.iter()
            .for_each(|address| assert_eq!(reader.find(*address), model.find(*address).unwrap_or(NONE)));
        if number % 16 == 0 {
            agree(width, &table, &model, &addresses(width, &named, random));
        }
    }
    let all = addresses(width, &named, random);
    agree(width, &table, &model, &all);
    assert_eq!(table.entries(), model.entries());
    assert_eq!(table.len(), model.len());
    let mut built = LpmTable::build(spec, variant, model.entries()).unwrap();
    agree(width, &built, &model, &all);
    let image = LpmImage::open(&table.image()).unwrap();
    all.iter().for_each(|address| assert_eq!(image.find(*address), model.find(*address).unwrap_or(NONE)));
    for (prefix, value) in model.entries() {
        assert_eq!(built.remove(prefix), Some(value));
        assert_eq!(table.remove(prefix), Some(value));
    }
    all.iter()
        .for_each(|address| assert_eq!((built.find128(*address), table.find128(*address)), (NONE, NONE)));
}

macro_rules! against_the_model {
    ($($name:ident: $width:literal, $variant:ident, $cases:literal;)*) => {
        $(proptest! {
            #![proptest_config(ProptestConfig::with_cases($cases))]
            #[test]
            fn $name(changes in prop::collection::vec(change($width), 1..250), random: u128) {
                play($width, Variant::$variant, &changes, random);
            }
        })*
    };
}

against_the_model! {
    one_bit: 1, Fast, 12;
    eight_bits: 8, Fast, 12;
    twenty_bits_compact: 20, Compact, 12;
    thirty_two_bits: 32, Fast, 4;
    thirty_two_bits_compact: 32, Compact, 12;
    forty_eight_bits: 48, Fast, 12;
    sixty_five_bits: 65, Fast, 12;
    hundred_and_twenty_eight_bits: 128, Fast, 12;
}
