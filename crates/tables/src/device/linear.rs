//! Rules in order of matching, in groups of 32, for devices that compare many at once.
//!
//! ```text
//! word  0      1        2        3         4       5           6           7      8       9
//!      ┌──────┬────────┬────────┬─────────┬───────┬───────────┬───────────┬──────┬───────┬───────┐
//!      │"RVLR"│version │columns │elements │chunks │first chunk│first check│pairs │ranges │fields │
//!      └──────┴────────┴────────┴─────────┴───────┴───────────┴───────────┴──────┴───────┴───────┘
//!  16   widths of the columns, a byte each
//!  then fields: the number of each pair, then the element of each range
//!  then chunks, each from a multiple of 32 words: for each pair 32 values, 32 masks | for each range 32 bounds
//!                                                 | 32 values of the rules | 32 numbers of their first checks, or 0
//!  then checks, 9 words each, as in an image of trees, counted from 1
//! ```
//!
//! Elements and packed keys are those of `docs/tables/rules.md`; elements 2i and 2i + 1 are pair i. A column
//! of more than 16 bits is compared under masks, as part of the pairs it lies in, and so are flags; a
//! narrower one as a range, its low bound in the lower half of a word and high − low in the upper. So the
//! columns alone decide what a rule is compared by. What that cannot say (masks with holes in narrow
//! columns, ranges in wide ones) is checked after a hit. Behind the last rule come some that every key fits
//! and whose value is [`NONE`](super::NONE).

use crate::rules::encode::{Layout, checks_but, element};
use crate::rules::fields::{Rule, RuleField, RulesSpec, ones};

const MAGIC: u32 = u32::from_le_bytes(*b"RVLR");
const VERSION: u32 = 1;
const HEADER: usize = 16;
/// Rules of a chunk.
pub(super) const CHUNK: usize = 32;

/// By what the rules of a table are compared.
pub(super) struct Shape {
    pub(super) layout: Layout,
    /// The pairs of elements that hold a piece of a wide column or flags.
    pub(super) pairs: Vec<usize>,
    /// The elements of narrow columns.
    pub(super) ranges: Vec<usize>,
}

impl Shape {
    pub(super) fn of(spec: &RulesSpec) -> Shape {
        let layout = Layout::new(spec);
        let (mut pairs, mut ranges) = (Vec::new(), Vec::new());
        for (column, &first) in layout.first.iter().enumerate().filter(|(at, _)| layout.flag[*at].is_none()) {
            let last = first + usize::from(layout.widths[column]).div_ceil(16) - 1;
            if layout.widths[column] <= 16 {
                ranges.push(first);
            } else {
                pairs.extend(first / 2..=last / 2);
            }
        }
        pairs.extend(layout.flags_at().map(|at| at / 2));
        pairs.dedup();
        Shape { layout, pairs, ranges }
    }

    /// Words of 32 bits that 32 rules are compared by.
    pub(super) fn compared(&self) -> usize {
        (2 * self.pairs.len() + self.ranges.len()) * CHUNK
    }
}

/// The image of rules, given as order, rule and value, as [`Rules::entries`](crate::rules::Rules::entries)
/// tells them.
///
/// # Panics
/// If a rule does not suit the columns.
pub fn image(spec: &RulesSpec, entries: &[(u64, Rule, u32)]) -> Vec<u32> {
    let shape = Shape::of(spec);
    let mut order: Vec<&(u64, Rule, u32)> = entries.iter().collect();
    order.sort_by_key(|entry| entry.0);
    let widths = super::words(&padded(&spec.widths));
    let fields = HEADER + widths.len();
    let first = (fields + shape.pairs.len() + shape.ranges.len()).next_multiple_of(CHUNK);
    let (chunks, size) = (order.len().div_ceil(CHUNK), shape.compared() + 2 * CHUNK);
    let header = [
        MAGIC,
        VERSION,
        spec.widths.len() as u32,
        shape.layout.stride as u32,
        chunks as u32,
        first as u32,
        (first + chunks * size) as u32,
        shape.pairs.len() as u32,
        shape.ranges.len() as u32,
        fields as u32,
    ];
    let mut image = header.to_vec();
    image.resize(HEADER, 0);
    image.extend(widths);
    image.extend(shape.pairs.iter().chain(&shape.ranges).map(|&field| field as u32));
    image.resize(first + chunks * size, 0);
    let mut all_checks = Vec::new();
    for (number, chunk) in image[first..].chunks_exact_mut(size).enumerate() {
        chunk[2 * shape.pairs.len() * CHUNK..shape.compared()].fill(0xffff << 16);
        chunk[shape.compared()..][..CHUNK].fill(super::NONE);
        for at in 0..CHUNK {
            let Some((_, rule, value)) = order.get(number * CHUNK + at) else { break };
            write_rule(&shape, rule, &mut chunk[at..]);
            chunk[shape.compared() + at] = *value;
            let checks = checks_but(&shape.layout, rule, is_exact);
            if !checks.is_empty() {
                chunk[shape.compared() + CHUNK + at] = all_checks.len() as u32 + 1;
                all_checks.extend(checks);
            }
        }
    }
    image.extend(all_checks.into_iter().flatten());
    image
}

/// Writes what a rule is compared by, 32 words between one number and the next.
fn write_rule(shape: &Shape, rule: &Rule, chunk: &mut [u32]) {
    let words = shape.layout.words();
    let (mut values, mut masks) = (vec![0u64; words], vec![0u64; words]);
    let mut ranges = chunk[2 * shape.pairs.len() * CHUNK..].iter_mut().step_by(CHUNK);
    for (column, field) in rule.fields.iter().enumerate() {
        let (width, first) = (shape.layout.widths[column], shape.layout.first[column]);
        let (low, high) = field.bounds(width);
        if let Some(flag) = shape.layout.flag[column] {
            let (word, place) = (first / 4, 16 * (first % 4) + flag);
            values[word] |= (low as u64) << place;
            masks[word] |= u64::from(low == high) << place;
            continue;
        }
        if width <= 16 {
            if let Some(bounds) = ranges.next() {
                *bounds = low as u32 | ((high - low) as u32) << 16;
            }
            continue;
        }
        let mask = match *field {
            RuleField::Ternary { mask, .. } => mask,
            // What all numbers between the bounds have in common.
            _ => ones(width) & !u128::MAX.checked_shr((low ^ high).leading_zeros()).unwrap_or(0),
        };
        for piece in 0..usize::from(width).div_ceil(16) {
            let (word, shift) = ((first + piece) / 4, 16 * ((first + piece) % 4));
            values[word] |= u64::from((low >> (16 * piece)) as u16) << shift;
            masks[word] |= u64::from((mask >> (16 * piece)) as u16) << shift;
        }
    }
    let half = |words: &[u64], pair: usize| {
        u32::from(element(words, 2 * pair)) | u32::from(element(words, 2 * pair + 1)) << 16
    };
    for (place, &pair) in shape.pairs.iter().enumerate() {
        chunk[2 * place * CHUNK] = half(&values, pair) & half(&masks, pair);
        chunk[(2 * place + 1) * CHUNK] = half(&masks, pair);
    }
}

/// Whether what a rule is compared by means the field.
fn is_exact(field: &RuleField, width: u8) -> bool {
    match *field {
        RuleField::Any | RuleField::Exact(_) | RuleField::Prefix { .. } => true,
        RuleField::Ternary { mask, .. } => {
            let holes = ones(width) & !mask;
            width > 16 || holes & holes.wrapping_add(1) == 0
        }
        RuleField::Range { low, high } => {
            let differing = low ^ high;
            width <= 16 || differing & differing.wrapping_add(1) == 0 && low & differing == 0
        }
    }
}

/// The widths and zeros up to whole words.
fn padded(widths: &[u8]) -> Vec<u8> {
    let mut bytes = widths.to_vec();
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}
