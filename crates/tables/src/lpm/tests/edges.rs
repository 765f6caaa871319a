//! What random play rarely reaches: every form of cells, growth, refusals, and broken images.

use super::super::{
    Lpm, LpmBuildError, LpmImage, LpmImageError, LpmInsertError, LpmModel, LpmSpec, LpmSpecError, LpmTable,
    Method, NONE, Prefix, Variant,
};
use super::{addresses, agree, leading};

/// The n-th of many prefixes of 32 bits, some longer than 24.
fn scattered(number: u32) -> Prefix {
    let length = 18 + (number % 15) as u8;
    let bits = number.wrapping_mul(2_654_435_761) >> (32 - length) << (32 - length);
    Prefix { bits: u128::from(bits), length }
}

/// Values that first fit two bytes, then are too large for a cell and stand in the tree, then need a palette,
/// and then one of four bytes.
#[test]
fn cells_widen_as_values_grow() {
    let spec = LpmSpec { width: 32, capacity: 100_000 };
    let mut table = LpmTable::new(spec).unwrap();
    let mut model = LpmModel::new(spec).unwrap();
    let mut reader = table.reader();
    let mut sizes = vec![table.image_bytes()];
    let value = |number: u32| match number {
        0..200 => number % 254,
        200..300 => 1_000_000 + number % 50,
        300..2000 => number,
        2000..3000 => u32::MAX - number,
        _ => number << 9 | 1 << 31,
    };
    for number in 0..72_000 {
        let prefix = scattered(number);
        let expected = model.insert(prefix, value(number));
        assert_eq!(table.insert(prefix, value(number)), expected);
        assert_eq!(reader.find(prefix.bits), model.find(prefix.bits).unwrap_or(NONE));
        if [199, 299, 1999, 2999, 71_999].contains(&number) {
            let near: Vec<u128> = (0..=number).rev().take(500).map(|number| scattered(number).bits).collect();
            agree(32, &table, &model, &near);
            let image = LpmImage::open(&table.image()).unwrap();
            near.iter().for_each(|at| assert_eq!(Some(image.find(*at)), model.find(*at)));
            sizes.push(table.image_bytes());
        }
    }
    let mebibytes: Vec<usize> = sizes.iter().map(|size| size >> 20).collect();
    assert_eq!(mebibytes[..5], [32; 5]);
    assert!(mebibytes[5] >= 64);
}

/// A reader that goes on with a batch keeps the table from using nodes again, until none are left.
#[test]
fn an_image_without_room_is_made_anew_beside_the_one_that_is_read() {
    let spec = LpmSpec { width: 128, capacity: 100 };
    let most = (1 << 16) + 16 * 3000;
    let mut table = LpmTable::build_within(spec, Variant::Fast, Vec::new(), most).unwrap();
    let mut model = LpmModel::new(spec).unwrap();
    let prefix = |number: u128| Prefix { bits: (0x2001 << 112) | number << 70 | 1, length: 128 };
    table.insert(prefix(99), 7).unwrap();
    model.insert(prefix(99), 7).unwrap();
    let mut reader = table.reader();
    let pinned = reader.pin();
    let mut made = 0;
    for value in 0..3000 {
        let before = table.image_bytes();
        let changed = prefix(u128::from(value) % 99);
        assert_eq!(table.insert(changed, value), model.insert(changed, value));
        made += u32::from(table.image_bytes() < before);
        if value % 3 == 0 {
            assert_eq!(table.remove(changed), model.remove(changed));
        }
    }
    assert!(made > 0, "it was never made anew");
    assert_eq!(pinned.find(prefix(99).bits), 7, "a batch goes on in the image that it began in");
    drop(pinned);
    assert_eq!(reader.find(prefix(50).bits), model.find(prefix(50).bits).unwrap_or(NONE));
    let all: Vec<u128> = model.entries().iter().map(|(prefix, _)| prefix.bits).collect();
    agree(128, &table, &model, &all);
}

/// Memory that changes leave behind is used again: the image does not grow with their number.
#[test]
fn churn_does_not_grow_the_image() {
    let spec = LpmSpec { width: 64, capacity: 100 };
    let mut table = LpmTable::new(spec).unwrap();
    let round = |table: &mut LpmTable, round: u32| {
        for number in 0..100u32 {
            let bits = u128::from(number.wrapping_mul(2_654_435_761)) << 20;
            table.insert(Prefix { bits, length: 44 }, round + number).unwrap();
        }
    };
    (0..10).for_each(|number| round(&mut table, number));
    let settled = table.image_bytes();
    (10..100).for_each(|number| round(&mut table, number));
    // Nodes made anew in another shape may need a little room of another size; nine thousand changes
    // otherwise need none.
    assert!(table.image_bytes() <= settled + 16_384, "{} and then {}", settled, table.image_bytes());
}

#[test]
fn what_is_no_prefix_is_refused_and_changes_nothing() {
    let spec = LpmSpec { width: 32, capacity: 1 };
    let mut table = LpmTable::new(spec).unwrap();
    let whole = Prefix { bits: 0, length: 0 };
    let long = Prefix { bits: 0, length: 33 };
    assert_eq!(table.insert(long, 1), Err(LpmInsertError::Length { length: 33, width: 32 }));
    assert_eq!(table.remove(long), None);
    let bent = Prefix { bits: 1, length: 31 };
    assert_eq!(table.insert(bent, 1), Err(LpmInsertError::Bits { bits: 1, length: 31 }));
    let high = Prefix { bits: 1 << 40, length: 8 };
    assert_eq!(table.insert(high, 1), Err(LpmInsertError::Bits { bits: 1 << 40, length: 8 }));
    assert_eq!(table.insert(whole, NONE), Err(LpmInsertError::Value));
    assert_eq!(table.insert(whole, 7), Ok(None));
    let other = Prefix { bits: 0, length: 8 };
    assert_eq!(table.insert(other, 1), Err(LpmInsertError::Full { capacity: 1 }));
    assert_eq!(table.insert(whole, 8), Ok(Some(7)));
    assert_eq!(table.entries(), [(whole, 8)]);
    assert_eq!(table.find32(12), 8);
}

#[test]
fn impossible_shapes_and_sets_are_refused() {
    let spec = |width, capacity| LpmSpec { width, capacity };
    assert_eq!(LpmTable::new(spec(0, 1)).err(), Some(LpmSpecError::Width { width: 0 }));
    assert_eq!(LpmTable::new(spec(129, 1)).err(), Some(LpmSpecError::Width { width: 129 }));
    assert_eq!(LpmModel::new(spec(8, 1 << 27)).err(), Some(LpmSpecError::Capacity { capacity: 1 << 27 }));
    let entry = (Prefix { bits: 16, length: 4 }, 3);
    let twice = LpmTable::build(spec(8, 9), Variant::Fast, vec![entry, entry]).err();
    assert_eq!(twice, Some(LpmBuildError::Insert(LpmInsertError::Duplicate { bits: 16, length: 4 })));
    let many = LpmTable::build(spec(8, 1), Variant::Fast, vec![entry, entry]).err();
    assert_eq!(many, Some(LpmBuildError::Insert(LpmInsertError::Full { capacity: 1 })));
}

/// An image with any word changed is refused, or still answers something for every address.
#[test]
fn broken_images_are_refused_or_harmless() {
    let spec = LpmSpec { width: 32, capacity: 400 };
    let entries = (0..400).map(|number| (scattered(number), number << 12)).collect();
    let table = LpmTable::build(spec, Variant::Compact, entries).unwrap();
    let sound = table.image();
    assert_eq!(LpmImage::open(&sound[..60]).err(), Some(LpmImageError::Short { words: 15 }));
    assert_eq!(LpmImage::open(&sound[..sound.len() - 64]).err(), Some(LpmImageError::Header));
    assert!(matches!(LpmImage::open(&[0; 64]), Err(LpmImageError::Kind { .. })));
    let addresses: Vec<u32> = (0..400).map(|number| scattered(number).bits as u32).collect();
    let mut out = vec![0; addresses.len()];
    let mut refused = 0;
    let heap = sound.len() - 64 * 900;
    for place in (0..12).map(|word| word * 4).chain((heap..sound.len()).step_by(388).map(|byte| byte / 4 * 4))
    {
        for wrong in [0u32, 1, 0x4000_0000, 0x8c00_0001, 0xffff_ffff] {
            let mut bytes = sound.clone();
            bytes[place..place + 4].copy_from_slice(&wrong.to_le_bytes());
            match LpmImage::open(&bytes) {
                Ok(image) => image.find_bulk32(&addresses, &mut out),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 50, "{refused}");
}

#[test]
fn the_portable_method_is_always_there_and_the_best_is_available() {
    assert_eq!(Method::available()[0], Method::Portable);
    assert_eq!(Method::available().last(), Some(&Method::best()));
}

#[test]
fn an_image_beyond_what_cells_tell_apart_is_refused_and_the_table_goes_on() {
    for width in [32, 128] {
        let spec = LpmSpec { width, capacity: 4000 };
        // Root, direct cells and a few nodes: what 4 GiB are to millions of prefixes.
        let cells = if width == 32 { 1 << 22 } else { 0 };
        let most = (1 << 16) + cells + 16 * 100;
        let mut table = LpmTable::build_within(spec, Variant::Fast, Vec::new(), most).unwrap();
        let mut model = LpmModel::new(spec).unwrap();
        let (mut held, mut refused) = (Vec::new(), 0);
        let mut random = crate::generate::Random::new(7);
        for value in 0..2000 {
            let bits = (u128::from(random.word()) << 64 | u128::from(random.word())) & leading(width, width);
            let prefix = Prefix { bits, length: width };
            match table.insert(prefix, value % 200) {
                Ok(None) => {
                    model.insert(prefix, value % 200).unwrap();
                    held.push(prefix);
                }
                Err(error) => {
                    assert_eq!(error, LpmInsertError::Cells { bytes: 4 * most });
                    refused += 1;
                }
                Ok(Some(_)) => {}
            }
            if refused == 20 {
                break;
            }
        }
        assert!(held.len() > 10 && refused == 20, "{} went in", held.len());
        agree(width, &table, &model, &addresses(width, &held, 5));
        // All at once are refused, too, and where some go there is room again.
        let mut all = table.entries();
        assert!(LpmTable::build_within(spec, Variant::Fast, all.clone(), most).is_ok());
        all.extend((0..1000).map(|at| (Prefix { bits: at << 7 | 1, length: width }, 1)));
        let Err(error) = LpmTable::build_within(spec, Variant::Fast, all, most) else {
            panic!("has no room")
        };
        assert_eq!(error, LpmBuildError::Insert(LpmInsertError::Cells { bytes: 4 * most }));
        for prefix in held.drain(..held.len() / 2) {
            assert_eq!(table.remove(prefix), model.remove(prefix));
        }
        let prefix = Prefix { bits: 1, length: width };
        assert_eq!(table.insert(prefix, 3), Ok(None));
        model.insert(prefix, 3).unwrap();
        agree(width, &table, &model, &addresses(width, &held, 5));
    }
}
