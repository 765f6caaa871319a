//! Longest-prefix tables on a device: the same image and the same lookup as on the host.
//!
//! ```text
//! word   0      1        2      3          4        5       6            7       8     9          10     11
//!      ┌──────┬────────┬──────┬──────────┬────────┬───────┬────────────┬───────┬─────┬──────────┬──────┬───────┐
//!      │magic │version │width │cell bits │indexed │palette│palette size│direct │root │root bits │heap  │words  │
//!      └──────┴────────┴──────┴──────────┴────────┴───────┴────────────┴───────┴─────┴──────────┴──────┴───────┘
//!      then, each from a multiple of 16 words: palette, direct cells, root cells, heap of nodes
//! ```
//!
//! `docs/tables/lpm.md` says what cells and nodes are.

use crate::lpm::LpmTable;

/// `u32 lpm_find(GLOBAL const u32 *image, u64 high, u64 low)`: the value of the longest prefix that contains
/// the address, or [`NONE`](super::NONE). The address is the number that [`Lpm::find`](crate::lpm::Lpm::find)
/// takes, in two halves.
pub const TEXT: &str = include_str!("lpm.h");

/// The image of a table: the words of [`LpmTable::image`].
pub fn image(table: &LpmTable) -> Vec<u32> {
    super::words(&table.image())
}

/// What `lpm_find` answers for an address, told in Rust.
pub fn find(image: &[u32], address: u128) -> u32 {
    match walk(image, address).0 {
        NO_CODE.. => super::NONE,
        code if image[4] != 0 => image[(image[5] + code) as usize],
        code => code,
    }
}

/// How many nodes `lpm_find` reads for an address; none where a direct cell or the root has the answer.
pub fn nodes(image: &[u32], address: u128) -> u32 {
    walk(image, address).1
}

/// The code that an address leads to, and how many nodes lie on the way.
fn walk(image: &[u32], address: u128) -> (u32, u32) {
    let (width, cell_bits) = (image[2], image[3]);
    let mut nodes = 0;
    let code = match cell_bits {
        0 => None,
        bits => direct(image, bits, address as u32 >> 8),
    };
    let code = code.unwrap_or_else(|| {
        let mut left = address << (128 - width);
        let mut eaten = image[9];
        let mut word = image[image[8] as usize + (left >> (128 - eaten)) as usize];
        while word > NO_CODE {
            left <<= eaten;
            nodes += 1;
            let place = (word & 0x03ff_ffff) as usize * 16;
            if word >> 30 == 1 {
                eaten = 16;
                word = line(&image[place..place + 16], (left >> 112) as u16);
            } else {
                eaten = ((word >> 26 & 3) + 1) * 4;
                word = image[place + (left >> (128 - eaten)) as usize];
            }
        }
        word
    });
    (code, nodes)
}

/// A code that stands for nothing; larger words lead to nodes.
const NO_CODE: u32 = 0x3fff_ffff;

/// The code in a direct cell of so many bits; `None` where the nodes have to be asked.
fn direct(image: &[u32], bits: u32, cell: u32) -> Option<u32> {
    let mask = u32::MAX >> (32 - bits);
    let none = mask & NO_CODE;
    let bit = cell * bits;
    let code = image[(image[7] + (bit >> 5)) as usize] >> (bit & 31) & mask;
    match none.wrapping_sub(code) {
        0 => Some(NO_CODE),
        1 => None,
        _ => Some(code),
    }
}

/// The cell of a line whose interval has these bits: ten starts of intervals, two a word, and eleven cells.
fn line(line: &[u32], bits: u16) -> u32 {
    let starts = line[..5].iter().flat_map(|pair| [*pair as u16, (*pair >> 16) as u16]);
    line[5 + starts.filter(|start| *start <= bits).count()]
}

#[cfg(test)]
mod tests {
    use super::super::plain::{Program, bytes};
    use super::*;
    use crate::generate::Random;
    use crate::lpm::{LpmSpec, NONE, Prefix, Variant};
    use std::collections::BTreeMap;

    const ANSWER: &str = "
static void answer(const u32 *image, const u8 *asked, u64 bytes)
{
    const u64 *keys = (const u64 *)asked;
    for (u64 at = 0; at < bytes / 8; at += 2) tell(lpm_find(image, keys[at], keys[at + 1]));
}
";

    /// Prefixes of every length that nest, and addresses at and around their borders; the bits of a direct
    /// cell.
    fn agrees(
        program: &Program,
        width: u8,
        variant: Variant,
        count: usize,
        value: impl Fn(&mut Random) -> u32,
    ) -> u32 {
        let mut random = Random::new(u64::from(width) + count as u64);
        let all = u128::MAX >> (128 - u32::from(width));
        let mut entries = BTreeMap::new();
        for number in 0..count {
            // Those beyond some thousands are there for their number.
            let many = number >= 4000;
            let length = if many { width / 4 * 3 } else { random.between(0, u64::from(width)) as u8 };
            let mask = all & !all.checked_shr(u32::from(length)).unwrap_or(0);
            let few = [0, u128::MAX / 3, u128::MAX / 7, u128::MAX][random.below(4) as usize];
            let fixed = if many { 0 } else { random.below(130) };
            let free = u128::MAX.checked_shr(fixed as u32).unwrap_or(0);
            let bits = (few & !free | random.wide() & free) >> (128 - u32::from(width)) & mask;
            entries.insert(Prefix { bits, length }, value(&mut random));
        }
        let spec = LpmSpec { width, capacity: count };
        let table = LpmTable::build(spec, variant, entries.clone().into_iter().collect()).unwrap();
        let mut addresses = Vec::new();
        for Prefix { bits, length } in entries.into_keys().take(4000) {
            let last = bits | all.checked_shr(u32::from(length)).unwrap_or(0);
            addresses.extend([bits, last, bits.wrapping_sub(1), last.wrapping_add(1), random.wide()]);
            addresses.push(bits | random.wide() & last);
        }
        addresses.extend((0..2000).map(|_| random.wide()));
        let halves: Vec<u64> = addresses.iter().flat_map(|one| [(one >> 64) as u64, *one as u64]).collect();
        let image = image(&table);
        let found = program.run(&image, &bytes(&halves));
        assert_eq!(found.len(), addresses.len());
        for (address, found) in addresses.iter().zip(&found) {
            assert_eq!(*found, table.find128(*address), "{width} bits, {address:#x}");
            assert_eq!(*found, find(&image, *address), "in Rust, {width} bits, {address:#x}");
        }
        assert!(found.iter().filter(|found| **found != NONE).count() > found.len() / 8);
        image[3]
    }

    #[test]
    fn the_text_finds_what_the_table_finds_in_every_form_and_width() {
        let program = Program::build(&[TEXT], ANSWER);
        for width in [1, 8, 20, 31, 33, 48, 63, 64, 65, 100, 127, 128] {
            agrees(&program, width, Variant::Fast, 2500, |random| random.below(300) as u32);
        }
        let narrow =
            |variant, count, value: fn(&mut Random) -> u32| agrees(&program, 32, variant, count, value);
        assert_eq!(narrow(Variant::Compact, 2500, |random| random.below(300) as u32), 0);
        // Cells that hold the value, the place in a palette, and more distinct values than a palette has.
        assert_eq!(narrow(Variant::Fast, 2500, |random| random.below(200) as u32), 8);
        assert_eq!(narrow(Variant::Fast, 2500, |random| random.word() as u32 & !1), 16);
        assert_eq!(narrow(Variant::Fast, 80_000, |random| random.word() as u32 & !1), 32);
    }

    #[test]
    fn a_table_without_prefixes_finds_nothing() {
        let program = Program::build(&[TEXT], ANSWER);
        for width in [1, 31, 128] {
            let table = LpmTable::new(LpmSpec { width, capacity: 0 }).unwrap();
            assert_eq!(program.run(&image(&table), &bytes(&[0, 0, 7, u64::MAX])), [NONE, NONE]);
        }
    }
}
