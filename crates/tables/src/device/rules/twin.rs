//! The twins of `rules_find` and `rules_find_linear`: the same searches in Rust over the same images.

use super::super::NONE;
use super::super::linear::CHUNK;

/// No rule, in an image of trees.
const NO_RULE: u32 = 0x3fff_ffff;
/// Words of a check.
const CHECK: usize = 9;

/// The value of the first rule that fits the key, or [`NONE`], over an image of trees.
pub fn find(image: &[u32], key: &[u64]) -> u32 {
    let section = |section: usize| (image[4 + 4 * section] >> 2 | image[5 + 4 * section] << 30) as usize;
    let words = image[3] as usize / 4;
    let packed = Packed::new(&image[32..], image[2] as usize, key, words);
    let rules = section(5);
    let mut best: Option<(u64, u32)> = None;
    for tree in 0..image[6] as usize {
        let mut entry = image[section(0) + tree];
        while entry >> 31 != 0 {
            let node = section(1) + (entry & 0x7fff_ffff) as usize * ((words + 2) & !1) * 2;
            entry = image
                [section(2) + image[node + 2 * words] as usize + packed.child(&image[node..][..2 * words])];
        }
        let leaf = Leaf { image, lows: section(3), ids: section(4), rules, checks: section(6) };
        if let Some(rule) = leaf.first(entry as usize, &packed) {
            let fields = &image[rules + rule as usize * 4..];
            let order = u64::from(fields[0]) | u64::from(fields[1]) << 32;
            if best.is_none_or(|(least, _)| order < least) {
                best = Some((order, fields[2]));
            }
        }
    }
    best.map_or(NONE, |(_, value)| value)
}

/// The value of the first rule that fits the key, or [`NONE`], over an image of rules in order of trial.
pub fn find_linear(image: &[u32], key: &[u64]) -> u32 {
    let at = |word: usize| image[word] as usize;
    let packed = Packed::new(&image[16..], at(2), key, at(3) / 4);
    let (pairs, ranges) = (at(7), at(8));
    let fields = &image[at(9)..][..pairs + ranges];
    let size = (2 * pairs + ranges + 2) * CHUNK;
    for chunk in image[at(5)..].chunks_exact(size).take(at(4)) {
        let (compared, values) = chunk.split_at(size - 2 * CHUNK);
        let (by_pairs, by_ranges) = compared.split_at(2 * pairs * CHUNK);
        for rule in 0..CHUNK {
            let pair_fits = |(field, words): (&u32, &[u32])| {
                (packed.pair(*field as usize) ^ words[rule]) & words[CHUNK + rule] == 0
            };
            let range_fits = |(field, words): (&u32, &[u32])| {
                let element = packed.element(*field as usize);
                element.wrapping_sub(words[rule] & 0xffff) <= words[rule] >> 16
            };
            let fits = fields[..pairs].iter().zip(by_pairs.chunks_exact(2 * CHUNK)).all(pair_fits)
                && fields[pairs..].iter().zip(by_ranges.chunks_exact(CHUNK)).all(range_fits);
            let check = values[CHUNK + rule] as usize;
            if fits && (check == 0 || packed.passes(&image[at(6) + (check - 1) * CHECK..])) {
                return values[rule];
            }
        }
    }
    NONE
}

/// A key as elements of 16 bits, each column's lowest first, then that of the flags.
struct Packed {
    elements: Vec<u32>,
    /// Elements that are compared.
    count: usize,
    flags_at: Option<usize>,
}

impl Packed {
    fn new(widths: &[u32], columns: usize, key: &[u64], words: usize) -> Packed {
        let mut packed = Packed { elements: Vec::new(), count: 0, flags_at: None };
        let mut words_left = key.iter();
        let mut word = || u128::from(words_left.next().copied().unwrap_or_default());
        let width = |column: usize| widths[column / 4] >> (8 * (column % 4)) & 0xff;
        let share = (0..columns).filter(|&column| width(column) == 1).count() > 1;
        let mut flags = Vec::new();
        for width in (0..columns).map(width) {
            if share && width == 1 && flags.len() < 8 {
                flags.push(word() & 1 == 1);
                continue;
            }
            let number = if width > 64 { word() << 64 | word() } else { word() };
            let number = number & u128::MAX >> (128 - width);
            let pieces = width.div_ceil(16) as usize;
            packed.elements.extend((0..pieces).map(|piece| u32::from((number >> (16 * piece)) as u16)));
        }
        if share {
            packed.flags_at = Some(packed.elements.len());
            let bits = flags.iter().enumerate().map(|(flag, &set)| 1 << if set { flag } else { flag + 8 });
            packed.elements.push(bits.sum());
        }
        packed.count = packed.elements.len();
        packed.elements.resize(4 * words, 0);
        packed
    }

    fn element(&self, element: usize) -> u32 {
        self.elements[element]
    }

    fn pair(&self, pair: usize) -> u32 {
        self.element(2 * pair) | self.element(2 * pair + 1) << 16
    }

    /// Which child of a node these bits lead to: the bits under the node's masks, one beside the other.
    fn child(&self, masks: &[u32]) -> usize {
        let bits = (0..masks.len()).flat_map(|half| (0..32).map(move |bit| (half, bit)));
        let chosen = bits.filter(|(half, bit)| masks[*half] >> bit & 1 == 1);
        chosen.enumerate().map(|(place, (half, bit))| ((self.pair(half) >> bit & 1) as usize) << place).sum()
    }

    /// Whether the key passes this check and those behind it, up to the rule's last.
    fn passes(&self, checks: &[u32]) -> bool {
        for check in checks.chunks_exact(CHECK) {
            let (first, pieces) = (check[0] as usize & 0xffff, (check[0] & NO_RULE) as usize >> 16);
            let number = |piece: &dyn Fn(usize) -> u32| {
                (0..pieces).fold(0u128, |sum, place| sum | u128::from(piece(place) & 0xffff) << (16 * place))
            };
            let value = number(&|piece| self.element(first + piece));
            let one = number(&|piece| check[1 + piece / 2] >> (16 * (piece % 2)));
            let two = number(&|piece| check[5 + piece / 2] >> (16 * (piece % 2)));
            let passed =
                if check[0] >> 31 == 1 { one <= value && value <= two } else { (value ^ one) & two == 0 };
            if !passed {
                return false;
            }
            if check[0] >> 30 & 1 == 1 {
                return true;
            }
        }
        false
    }
}

/// Where the blocks of leaves are in an image of trees.
struct Leaf<'a> {
    image: &'a [u32],
    lows: usize,
    ids: usize,
    rules: usize,
    checks: usize,
}

impl Leaf<'_> {
    /// The first rule of the leaf at a block that fits.
    fn first(&self, mut block: usize, packed: &Packed) -> Option<u32> {
        let stride = packed.elements.len();
        let slots = if stride < 32 { 32 / stride } else { 1 };
        let side = if stride < 32 { 16 } else { stride / 2 };
        loop {
            let ids = &self.image[self.ids + block * slots..][..slots];
            for (slot, id) in ids.iter().enumerate() {
                let rule = id & NO_RULE;
                if rule == NO_RULE {
                    break;
                }
                let low = self.lows + block * 2 * side + slot * (stride / 2);
                let half = |from: usize, element: usize| {
                    self.image[from + element / 2] >> (16 * (element % 2)) & 0xffff
                };
                let fits = (0..packed.count.next_multiple_of(2)).all(|element| {
                    let (key, least) = (packed.element(element), half(low, element));
                    let flags = packed.flags_at == Some(element);
                    let beyond = if flags { least & !key } else { key.wrapping_sub(least) };
                    beyond & 0xffff <= half(low + side, element)
                });
                let check = self.image[self.rules + rule as usize * 4 + 3] as usize;
                if fits && (id >> 30 & 1 == 0 || packed.passes(&self.image[self.checks + check * CHECK..])) {
                    return Some(rule);
                }
            }
            if ids[0] >> 31 == 0 {
                return None;
            }
            block += 1;
        }
    }
}
