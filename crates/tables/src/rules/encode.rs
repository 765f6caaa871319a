//! Encodes keys and rules as elements of 16 bits: trees choose bits of them, and leaves compare them.
//!
//! Every column takes as many elements as it has pieces of 16 bits, the lowest piece first, and a packed key
//! is the elements of its columns one after the other, padded with zeros. A rule is, for each element, the
//! lowest value that fits and how many values above it fit as well. That says exactly what a prefix, a value
//! or a short range means; where it says too much (masks with holes, wide ranges across a piece's border),
//! the rule is marked, and what it really asks is checked after a hit.
//!
//! Columns of one bit, the *flags*, share the last element where there are two or more. It has a bit for each
//! flag that is set and, eight bits above, one for each that is not. A rule has there the bits that must be
//! set in the key, so what is missing (`rule & !key`) must be zero, which says exactly what it asks of flags.

use super::fields::{Rule, RuleField, RulesSpec, ones, prefix_mask};
use crate::reserved::Reserved;

/// Elements in one vector of 512 bits.
pub(super) const LINE_ELEMENTS: usize = 32;
/// The most flags, since each has two bits of an element; further columns of one bit have their own.
pub(crate) const MOST_FLAGS: usize = 8;

/// Where the columns lie in a key and in a packed key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Width of each column, bits.
    pub(crate) widths: Vec<u8>,
    /// The first element of each column.
    pub(crate) first: Vec<usize>,
    /// Which flag a column is, if it is one.
    pub(crate) flag: Vec<Option<usize>>,
    /// The word of the key that each flag is.
    pub(crate) flags: Vec<usize>,
    /// For each element of a packed key but that of the flags: the word of the key it comes from, how far
    /// that is shifted, which bits stay.
    pub(crate) sources: Vec<(usize, u32, u16)>,
    /// Words of a key.
    pub(super) key_words: usize,
    /// Elements of a packed key, padding included: 4, 8, 16 or a multiple of 32.
    pub(crate) stride: usize,
}

impl Layout {
    pub(crate) fn new(spec: &RulesSpec) -> Layout {
        let mut layout = Layout {
            widths: spec.widths.clone(),
            first: Vec::with_capacity(spec.widths.len()),
            flag: Vec::with_capacity(spec.widths.len()),
            flags: Vec::new(),
            sources: Vec::new(),
            key_words: 0,
            stride: 0,
        };
        let share = spec.widths.iter().filter(|width| **width == 1).count() > 1;
        for &width in &spec.widths {
            let words = if width > 64 { 2 } else { 1 };
            layout.first.push(layout.sources.len());
            if share && width == 1 && layout.flags.len() < MOST_FLAGS {
                layout.flag.push(Some(layout.flags.len()));
                layout.flags.push(layout.key_words);
                layout.key_words += words;
                continue;
            }
            layout.flag.push(None);
            for piece in 0..usize::from(width).div_ceil(16) {
                let word = layout.key_words + words - 1 - piece / 4;
                let keep = (ones(width) >> (16 * piece)) as u16;
                layout.sources.push((word, 16 * (piece as u32 % 4), keep));
            }
            layout.key_words += words;
        }
        for (first, flag) in layout.first.iter_mut().zip(&layout.flag) {
            if flag.is_some() {
                *first = layout.sources.len();
            }
        }
        let used = layout.elements();
        layout.stride = if used <= LINE_ELEMENTS {
            used.next_power_of_two().max(4)
        } else {
            used.next_multiple_of(LINE_ELEMENTS)
        };
        layout
    }

    /// The element of the flags.
    pub(crate) fn flags_at(&self) -> Option<usize> {
        (!self.flags.is_empty()).then_some(self.sources.len())
    }

    /// Elements of a packed key, without padding.
    pub(crate) fn elements(&self) -> usize {
        self.sources.len() + usize::from(!self.flags.is_empty())
    }

    /// 64-bit words of a packed key.
    pub(crate) fn words(&self) -> usize {
        self.stride / 4
    }

    /// Writes the packed form of `key` into `packed`, which has [`Layout::words`] words.
    #[inline]
    pub(super) fn pack(&self, key: &[u64], packed: &mut [u64]) {
        packed.fill(0);
        for (element, &(word, shift, keep)) in self.sources.iter().enumerate() {
            packed[element / 4] |= u64::from((key[word] >> shift) as u16 & keep) << (16 * (element % 4));
        }
        if let Some(at) = self.flags_at() {
            let set =
                self.flags.iter().enumerate().fold(0, |set, (flag, &word)| set | (key[word] & 1) << flag);
            let flags = set | (set ^ ((1 << self.flags.len()) - 1)) << MOST_FLAGS;
            packed[at / 4] |= flags << (16 * (at % 4));
        }
    }

    /// The bits that a packed key, or a mask of one, has in `column`.
    pub(super) fn column(&self, packed: &[u64], column: usize) -> u128 {
        let first = self.first[column];
        match self.flag[column] {
            Some(flag) => u128::from(element(packed, first) >> flag & 1),
            None => number(packed, first, usize::from(self.widths[column]).div_ceil(16)),
        }
    }
}

/// The number that `pieces` elements of a packed key are from `first` on, the lowest piece first.
fn number(packed: &[u64], first: usize, pieces: usize) -> u128 {
    (0..pieces).rev().fold(0, |number, piece| number << 16 | u128::from(element(packed, first + piece)))
}

/// One element of a packed key.
#[inline]
pub(crate) fn element(packed: &[u64], element: usize) -> u16 {
    (packed[element / 4] >> (16 * (element % 4))) as u16
}

/// Rules in the form that trees are grown from, each under the number it was added as.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    words: usize,
    stride: usize,
    flags_at: Option<usize>,
    /// The lowest and the highest value of each element that fit; both the bits that must be set for the
    /// flags.
    low: Reserved<u16>,
    high: Reserved<u16>,
    /// The bits of a packed key that a rule fixes, and to what.
    care: Reserved<u64>,
    fixed: Reserved<u64>,
    /// Whether the elements say exactly what the rule means.
    exact: Reserved<bool>,
}

impl Encoded {
    /// Without rules, for at most so many bytes of each part.
    pub(super) fn new(layout: &Layout, limit: usize) -> Encoded {
        let (words, stride) = (layout.words(), layout.stride);
        Encoded {
            words,
            stride,
            flags_at: layout.flags_at(),
            low: Reserved::new(limit),
            high: Reserved::new(limit),
            care: Reserved::new(limit),
            fixed: Reserved::new(limit),
            exact: Reserved::new(limit),
        }
    }

    /// Puts `rule`, which suits the columns, at `id`: the next free number or one in use.
    pub(super) fn set(&mut self, layout: &Layout, id: u32, rule: &Rule) {
        let id = id as usize;
        if id == self.exact.len() {
            self.exact.push(true);
            self.low.resize(self.low.len() + self.stride, 0);
            self.high.resize(self.high.len() + self.stride, 0);
            self.care.resize(self.care.len() + self.words, 0);
            self.fixed.resize(self.fixed.len() + self.words, 0);
        }
        let mut exact = true;
        let (start, start_word) = (id * self.stride, id * self.words);
        self.care[start_word..start_word + self.words].fill(0);
        self.fixed[start_word..start_word + self.words].fill(0);
        let mut needed = 0;
        for (column, field) in rule.fields.iter().enumerate() {
            let width = layout.widths[column];
            exact &= is_exact(field, width);
            let (low, high) = field.bounds(width);
            if let Some(flag) = layout.flag[column] {
                if low == high {
                    let (word, shift) =
                        (start_word + layout.first[column] / 4, 16 * (layout.first[column] % 4));
                    self.care[word] |= 1 << (shift + flag);
                    self.fixed[word] |= (low as u64) << (shift + flag);
                    needed |= 1 << if low == 1 { flag } else { flag + MOST_FLAGS };
                }
                continue;
            }
            // From the highest piece down: a piece is bounded on its own only while those above it are fixed.
            let mut open = false;
            for piece in (0..usize::from(width).div_ceil(16)).rev() {
                let element = layout.first[column] + piece;
                let keep = (ones(width) >> (16 * piece)) as u16;
                let (mut low, mut high) = ((low >> (16 * piece)) as u16, (high >> (16 * piece)) as u16);
                let masked = matches!(field, RuleField::Ternary { .. });
                if open && !masked {
                    (low, high) = (0, keep);
                }
                open |= low != high;
                let care = match *field {
                    RuleField::Ternary { mask, .. } => (mask >> (16 * piece)) as u16,
                    _ => keep & !below_difference(low, high),
                };
                self.low[start + element] = low;
                self.high[start + element] = high;
                let (word, shift) = (start_word + element / 4, 16 * (element % 4));
                self.care[word] |= u64::from(care) << shift;
                self.fixed[word] |= u64::from(low & care) << shift;
            }
        }
        if let Some(at) = self.flags_at {
            self.low[start + at] = needed;
            self.high[start + at] = needed;
        }
        self.exact[id] = exact;
    }

    pub(super) fn len(&self) -> usize {
        self.exact.len()
    }

    /// Bytes of all, their spare room included.
    pub(super) fn allocated(&self) -> u64 {
        self.low.taken() + self.high.taken() + self.care.taken() + self.fixed.taken() + self.exact.taken()
    }

    /// Bytes of one rule.
    pub(super) fn rule_bytes(layout: &Layout) -> u64 {
        (2 * size_of::<u16>() * layout.stride + 2 * size_of::<u64>() * layout.words() + 1) as u64
    }

    /// Gives back the room that they have spare.
    pub(super) fn shrink(&mut self) {
        self.low.shrink_to_fit();
        self.high.shrink_to_fit();
        self.care.shrink_to_fit();
        self.fixed.shrink_to_fit();
        self.exact.shrink_to_fit();
    }

    #[inline]
    pub(super) fn exact(&self, id: u32) -> bool {
        self.exact[id as usize]
    }

    #[inline]
    pub(super) fn low(&self, id: u32) -> &[u16] {
        &self.low[id as usize * self.stride..][..self.stride]
    }

    #[inline]
    pub(super) fn high(&self, id: u32) -> &[u16] {
        &self.high[id as usize * self.stride..][..self.stride]
    }

    #[inline]
    pub(super) fn care(&self, id: u32) -> &[u64] {
        &self.care[id as usize * self.words..][..self.words]
    }

    #[inline]
    pub(super) fn fixed(&self, id: u32) -> &[u64] {
        &self.fixed[id as usize * self.words..][..self.words]
    }

    /// Whether some value of `element` whose bits under `mask` are `bits` fits the rule.
    #[inline]
    pub(super) fn meets(&self, id: u32, element: usize, mask: u16, bits: u16) -> bool {
        let (word, shift) = (id as usize * self.words + element / 4, 16 * (element % 4));
        let care = (self.care[word] >> shift) as u16;
        ((self.fixed[word] >> shift) as u16 ^ bits) & mask & care == 0 && self.passes(id, element, mask, bits)
    }

    /// Whether some value of `element` whose bits under `mask` are `bits` passes the comparison in a leaf,
    /// which knows no masks.
    #[inline]
    pub(super) fn passes(&self, id: u32, element: usize, mask: u16, bits: u16) -> bool {
        let place = id as usize * self.stride + element;
        let (low, high) = (self.low[place], self.high[place]);
        if self.flags_at == Some(element) {
            // Only whether flags are set is known of a region.
            return low & mask & !bits == 0 && low >> MOST_FLAGS & mask & bits == 0;
        }
        first_piece_from(low, mask, bits).is_some_and(|first| first <= high)
    }
}

/// The smallest number from `low` on whose bits under `mask` are `bits`, which has no others.
#[inline]
#[cfg(any(feature = "hygiene", test))]
pub(super) fn first_from(low: u128, mask: u128, bits: u128) -> Option<u128> {
    let differing = (low ^ bits) & mask;
    if differing == 0 {
        return Some(low);
    }
    let top = 127 - differing.leading_zeros();
    let raised = if bits >> top & 1 == 1 {
        top
    } else {
        // The number must grow above the bit that differs: at the lowest free zero there.
        let free = !low & !mask & !(u128::MAX >> (127 - top));
        if free == 0 {
            return None;
        }
        free.trailing_zeros()
    };
    let under = (1 << raised) - 1;
    Some((low & !under) | 1 << raised | (bits & under))
}

/// [`first_from`] for one element.
#[inline]
fn first_piece_from(low: u16, mask: u16, bits: u16) -> Option<u16> {
    let differing = (low ^ bits) & mask;
    if differing == 0 {
        return Some(low);
    }
    let top = 15 - differing.leading_zeros();
    let raised = if bits >> top & 1 == 1 {
        top
    } else {
        let free = !low & !mask & !(u16::MAX >> (15 - top));
        if free == 0 {
            return None;
        }
        free.trailing_zeros()
    };
    let under = (1 << raised) - 1;
    Some((low & !under) | 1 << raised | (bits & under))
}

/// Whether the elements' bounds, one by one, mean the field.
fn is_exact(field: &RuleField, width: u8) -> bool {
    match *field {
        RuleField::Any | RuleField::Exact(_) | RuleField::Prefix { .. } => true,
        RuleField::Ternary { mask, .. } => {
            // Each piece for itself must be a prefix.
            (0..usize::from(width).div_ceil(16)).all(|piece| {
                let keep = (ones(width) >> (16 * piece)) as u16;
                let holes = keep & !((mask >> (16 * piece)) as u16);
                holes & holes.wrapping_add(1) == 0
            })
        }
        RuleField::Range { low, high } => {
            let differing = low ^ high;
            let piece = if differing == 0 { 0 } else { (127 - differing.leading_zeros()) / 16 };
            let under = ones((16 * piece) as u8);
            low & under == 0 && high & under == under
        }
    }
}

/// The bits from the highest one downwards in which two numbers differ.
fn below_difference(low: u16, high: u16) -> u16 {
    let differing = low ^ high;
    if differing == 0 { 0 } else { (u32::from(u16::MAX) >> differing.leading_zeros()) as u16 }
}

/// What a column of a marked rule is checked for, in words: its first element, how many it has
/// ([`CHECK_PIECES`] bits above), and the marks; then two numbers of 128 bits, the lowest 32 bits first. The
/// numbers are value and mask, or the bounds of the range.
pub(crate) const CHECK_WORDS: usize = 9;
/// In the first word of a check: from which bit on the number of elements stands.
const CHECK_PIECES: u32 = 16;
/// In the first word of a check: the rule has no further one.
pub(super) const CHECK_LAST: u32 = 1 << 30;
/// In the first word of a check: the numbers are the bounds of a range.
pub(super) const CHECK_RANGE: u32 = 1 << 31;

/// The checks of a rule whose elements say too much.
pub(super) fn checks(layout: &Layout, rule: &Rule) -> Vec<[u32; CHECK_WORDS]> {
    checks_but(layout, rule, is_exact)
}

/// The checks of all columns of a rule but those where `is_exact` says that none is needed.
pub(crate) fn checks_but(
    layout: &Layout,
    rule: &Rule,
    is_exact: impl Fn(&RuleField, u8) -> bool,
) -> Vec<[u32; CHECK_WORDS]> {
    let mut checks = Vec::new();
    for (column, field) in rule.fields.iter().enumerate() {
        let width = layout.widths[column];
        if is_exact(field, width) {
            continue;
        }
        let (kind, one, two) = match *field {
            RuleField::Range { low, high } => (CHECK_RANGE, low, high),
            RuleField::Ternary { value, mask } => (0, value & mask, mask),
            RuleField::Exact(value) => (0, value, ones(width)),
            RuleField::Prefix { value, length } => {
                (0, value & prefix_mask(width, length), prefix_mask(width, length))
            }
            RuleField::Any => (0, 0, 0),
        };
        let pieces = u32::from(width).div_ceil(16) << CHECK_PIECES;
        let mut words = [layout.first[column] as u32 | pieces | kind; CHECK_WORDS];
        for part in 0..4 {
            words[1 + part] = (one >> (32 * part)) as u32;
            words[5 + part] = (two >> (32 * part)) as u32;
        }
        checks.push(words);
    }
    if let Some(last) = checks.last_mut() {
        last[0] |= CHECK_LAST;
    }
    checks
}

/// The first element that a check is about, and how many.
pub(super) fn checked(check: &[u32]) -> (usize, usize) {
    let about = (check[0] & !(CHECK_RANGE | CHECK_LAST)) as usize;
    (about % (1 << CHECK_PIECES), about >> CHECK_PIECES)
}

/// Whether a packed key passes one check.
pub(super) fn passes(packed: &[u64], check: &[u32]) -> bool {
    let wide =
        |words: &[u32]| words.iter().rev().fold(0u128, |number, &word| number << 32 | u128::from(word));
    let (one, two) = (wide(&check[1..5]), wide(&check[5..9]));
    let (first, pieces) = checked(check);
    let value = number(packed, first, pieces);
    if check[0] & CHECK_RANGE != 0 { one <= value && value <= two } else { (value ^ one) & two == 0 }
}
