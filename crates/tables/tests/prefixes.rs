//! The table of longest prefixes against its model, by what every build of this crate has: without the
//! feature `fastest` it is the form that a confined core has.

use tables::generate::Random;
use tables::lpm::{Lpm, LpmModel, LpmSpec, LpmTable, Prefix, Variant};

/// A prefix of a table of this width; few distinct bits at the front, so that prefixes lie in each other.
fn prefix(random: &mut Random, width: u8) -> Prefix {
    let length = random.below(u64::from(width) + 1) as u8;
    let few = [0, u128::MAX, u128::MAX / 3][random.below(3) as usize];
    let behind = u128::MAX.checked_shr(random.below(128) as u32).unwrap_or(0);
    let bits = (few & !behind | random.wide() & behind) >> (128 - u32::from(width));
    let cleared = u128::MAX.checked_shl(u32::from(width - length)).unwrap_or(0);
    Prefix { bits: bits & cleared, length }
}

#[test]
fn a_table_and_its_model_say_the_same_while_prefixes_come_and_go() {
    for width in [1, 7, 16, 24, 31, 32, 33, 48, 64, 127, 128] {
        let spec = LpmSpec { width, capacity: 300 };
        let mut table = LpmTable::build(spec, Variant::Fast, Vec::new()).expect("it has room");
        let mut model = LpmModel::new(spec).expect("it has room");
        let mut random = Random::new(u64::from(width));
        let mut found = 0;
        for change in 0..1500 {
            let prefix = prefix(&mut random, width);
            if random.below(3) == 0 {
                assert_eq!(table.remove(prefix), model.remove(prefix), "{width} bits, change {change}");
            } else {
                let value = random.below(400) as u32;
                let inserted = (table.insert(prefix, value), model.insert(prefix, value));
                assert_eq!(inserted.0, inserted.1, "{width} bits, change {change}");
            }
            let all = u128::MAX >> (128 - u32::from(width));
            for address in [prefix.bits, prefix.bits.wrapping_sub(1) & all, random.wide() & all, 0, all] {
                assert_eq!(table.find(address), model.find(address), "{width} bits, {address:#x}");
                assert_eq!(
                    table.find_entry(address),
                    model.find_entry(address),
                    "{width} bits, {address:#x}"
                );
                found += usize::from(model.find(address).is_some());
            }
        }
        assert_eq!(table.entries(), model.entries());
        assert!(found > 1000, "{width} bits: {found} found");
    }
}
