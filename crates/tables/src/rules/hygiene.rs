//! Finds rules of a set that no key can match first, and for every other rule a key that matches it first.
//!
//! The idea: a rule can be hit if a key fits it and none before it. A few keys at its corners, looked up in a
//! fast table of the whole set, settle most rules at once. For the others the earlier rules that overlap it
//! are cut out of its box, one after the other, each leaving at most a few smaller boxes; a box that meets no
//! earlier rule any more holds a key that hits the rule, and if no box is left, the rules that were cut out
//! cover it together.

use super::encode::first_from;
use super::fields::{RuleField, ones};
use super::{Rule, Rules, RulesBuildError, RulesSpec, RulesTable};

/// So many times a box is compared with a rule, for one rule, before that is left undecided.
pub const MOST_WORK: usize = 1_000_000;

/// So many keys of a rule's box are tried before rules are compared with it.
const SAMPLES: usize = 200;

/// What is known of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HygieneKind {
    /// Some key hits it: the witness.
    Reachable,
    /// An earlier rule asks for exactly the same; the witness fits both.
    Duplicate {
        /// The first such rule, by its place in the set.
        of: usize,
    },
    /// Earlier rules take every key that fits it; the witness is one of those keys.
    Shadowed {
        /// One rule if one suffices, and then the first; otherwise rules that do so together.
        by: Vec<usize>,
    },
    /// More than [`MOST_WORK`] comparisons would be needed to say. The witness fits it, but an earlier rule
    /// as well.
    Undecided,
}

/// What is known of one rule, with a key that shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HygieneFinding {
    /// The rule, by its place in the set.
    pub rule: usize,
    /// What is known of it.
    pub kind: HygieneKind,
    /// A key that fits the rule, and that hits it if it is reachable.
    pub witness: Vec<u64>,
}

/// Judges every rule of a set whose first fitting rule wins: one finding a rule, in order. Refuses rules that
/// do not suit the columns.
///
/// ```
/// use tables::rules::{HygieneKind, Rule, RuleField, RulesSpec, hygiene};
///
/// let range = |low, high| Rule { fields: vec![RuleField::Range { low, high }] };
/// let spec = RulesSpec { widths: vec![16], capacity: 3 };
/// let findings = hygiene(&spec, &[range(0, 99), range(100, 200), range(50, 150)])?;
/// assert_eq!(findings[1].kind, HygieneKind::Reachable);
/// assert_eq!(findings[2].kind, HygieneKind::Shadowed { by: vec![0, 1] });
/// # Ok::<(), tables::rules::RulesBuildError>(())
/// ```
pub fn hygiene(spec: &RulesSpec, rules: &[Rule]) -> Result<Vec<HygieneFinding>, RulesBuildError> {
    let spec = RulesSpec { widths: spec.widths.clone(), capacity: rules.len() };
    let numbered: Vec<(u64, Rule, u32)> =
        rules.iter().enumerate().map(|(at, rule)| (at as u64, rule.clone(), at as u32)).collect();
    // A set too large for a table is judged all the same, only more slowly.
    let table = match RulesTable::build(&spec, numbered) {
        Ok(table) => Some(table),
        Err(RulesBuildError::Memory { .. }) => None,
        Err(error) => return Err(error),
    };
    let boxes: Vec<Vec<Side>> = rules.iter().map(|rule| sides(&spec, rule)).collect();
    Ok((0..rules.len()).map(|rule| finding(&spec, &boxes, table.as_ref(), rule)).collect())
}

/// The numbers of one column that a box holds: from `low` to `high`, with `bits` under `mask`. Never none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Side {
    low: u128,
    high: u128,
    mask: u128,
    bits: u128,
}

impl Side {
    /// The smallest number of the side; `None` if it holds none.
    fn first(&self) -> Option<u128> {
        first_from(self.low, self.mask, self.bits).filter(|&first| first <= self.high)
    }

    fn some(self) -> Option<Side> {
        self.first().map(|_| self)
    }

    /// What both sides hold.
    fn meet(self, other: Side) -> Option<Side> {
        if (self.bits ^ other.bits) & self.mask & other.mask != 0 {
            return None;
        }
        let side = Side {
            low: self.low.max(other.low),
            high: self.high.min(other.high),
            mask: self.mask | other.mask,
            bits: self.bits | other.bits,
        };
        if side.low > side.high { None } else { side.some() }
    }

    /// What this side holds and `other` does not, as sides that do not overlap.
    fn without(self, other: Side, mut each: impl FnMut(Side)) {
        let mut rest = self;
        let mut give = |side: Side| side.some().into_iter().for_each(&mut each);
        if rest.low < other.low {
            give(Side { high: rest.high.min(other.low - 1), ..rest });
            rest.low = other.low;
        }
        if rest.high > other.high {
            give(Side { low: rest.low.max(other.high + 1), ..rest });
            rest.high = other.high;
        }
        let mut open = other.mask & !rest.mask;
        while open != 0 && rest.low <= rest.high {
            let bit = 1 << (127 - open.leading_zeros());
            open &= !bit;
            rest.mask |= bit;
            give(Side { bits: rest.bits | (bit & !other.bits), ..rest });
            rest.bits |= bit & other.bits;
        }
    }
}

fn sides(spec: &RulesSpec, rule: &Rule) -> Vec<Side> {
    let side = |(field, &width): (&RuleField, &u8)| match *field {
        RuleField::Ternary { value, mask } => Side { low: 0, high: ones(width), mask, bits: value & mask },
        _ => {
            let (low, high) = field.bounds(width);
            Side { low, high, mask: 0, bits: 0 }
        }
    };
    rule.fields.iter().zip(&spec.widths).map(side).collect()
}

fn finding(spec: &RulesSpec, boxes: &[Vec<Side>], table: Option<&RulesTable>, rule: usize) -> HygieneFinding {
    let whole = &boxes[rule];
    let lowest = key(spec, whole);
    if let Some(table) = table
        && let Some(witness) = corners(spec, whole)
            .into_iter()
            .chain([lowest.clone()])
            .chain(samples(spec, whole))
            .find(|key| table.find(key).is_some_and(|hit| hit.order == rule as u64))
    {
        return HygieneFinding { rule, kind: HygieneKind::Reachable, witness };
    }
    let overlapping: Vec<usize> = (0..rule).filter(|&other| meet(whole, &boxes[other])).collect();
    let around: Vec<usize> =
        overlapping.iter().copied().filter(|&other| within(whole, &boxes[other])).collect();
    if let Some(&of) = around.iter().find(|&&other| within(&boxes[other], whole)) {
        return HygieneFinding { rule, kind: HygieneKind::Duplicate { of }, witness: lowest };
    }
    if let Some(&one) = around.first() {
        return HygieneFinding { rule, kind: HygieneKind::Shadowed { by: vec![one] }, witness: lowest };
    }
    match free(whole, boxes, &overlapping) {
        Found::Free(free) => HygieneFinding { rule, kind: HygieneKind::Reachable, witness: key(spec, &free) },
        Found::Covered(by) => HygieneFinding { rule, kind: HygieneKind::Shadowed { by }, witness: lowest },
        Found::TooMuch => HygieneFinding { rule, kind: HygieneKind::Undecided, witness: lowest },
    }
}

/// The key at a box's smallest numbers.
fn key(spec: &RulesSpec, sides: &[Side]) -> Vec<u64> {
    let columns: Vec<u128> = sides.iter().map(|side| side.first().unwrap_or(side.low)).collect();
    spec.key(&columns)
}

/// Keys at the upper ends of a box's columns, of all and of each alone, and in the middle.
fn corners(spec: &RulesSpec, sides: &[Side]) -> Vec<Vec<u64>> {
    let from = |side: &Side, start: u128| {
        let found = first_from(start, side.mask, side.bits).filter(|&found| found <= side.high);
        found.or(side.first()).unwrap_or(side.low)
    };
    let lowest: Vec<u128> = sides.iter().map(|side| from(side, side.low)).collect();
    let middle: Vec<u128> =
        sides.iter().map(|side| from(side, side.low + (side.high - side.low) / 2)).collect();
    let upper = |side: &Side| if side.mask == 0 { side.high } else { side.bits | (side.high & !side.mask) };
    let highest: Vec<u128> = sides.iter().map(upper).collect();
    let mut keys = vec![spec.key(&highest), spec.key(&middle)];
    for column in 0..sides.len() {
        let (mut one, mut other) = (lowest.clone(), highest.clone());
        one[column] = highest[column];
        other[column] = lowest[column];
        keys.extend([spec.key(&one), spec.key(&other)]);
    }
    keys
}

/// Keys anywhere in a box, the same at every call.
fn samples<'a>(spec: &'a RulesSpec, sides: &'a [Side]) -> impl Iterator<Item = Vec<u64>> + 'a {
    let mut state = 0u64;
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ state >> 31).wrapping_mul(0xd6e8_feb8_6659_fd93);
        u128::from(mixed ^ mixed >> 32)
    };
    (0..SAMPLES).map(move |_| {
        let columns: Vec<u128> = sides
            .iter()
            .map(|side| {
                let number = next() << 64 | next();
                let start =
                    side.low + (side.high - side.low).checked_add(1).map_or(number, |count| number % count);
                let found = first_from(start, side.mask, side.bits).filter(|&found| found <= side.high);
                found.or(side.first()).unwrap_or(side.low)
            })
            .collect();
        spec.key(&columns)
    })
}

enum Found {
    Free(Vec<Side>),
    /// By these rules together.
    Covered(Vec<usize>),
    TooMuch,
}

/// A part of `whole` that none of the `overlapping` rules takes.
fn free(whole: &[Side], boxes: &[Vec<Side>], overlapping: &[usize]) -> Found {
    let mut used = vec![false; overlapping.len()];
    let mut work = 0;
    // Boxes with the first of the overlapping rules that they have not been compared with.
    let mut parts = vec![(whole.to_vec(), 0)];
    while let Some((sides, from)) = parts.pop() {
        let next = (from..overlapping.len()).find(|&at| {
            work += 1;
            meet(&sides, &boxes[overlapping[at]])
        });
        work += 1;
        if work > MOST_WORK {
            return Found::TooMuch;
        }
        let Some(next) = next else { return Found::Free(sides) };
        used[next] = true;
        let cut = &boxes[overlapping[next]];
        let mut rest = sides;
        for column in 0..rest.len() {
            let side = rest[column];
            side.without(cut[column], |piece| {
                let mut part = rest.clone();
                part[column] = piece;
                parts.push((part, next + 1));
            });
            let Some(inside) = side.meet(cut[column]) else { break };
            rest[column] = inside;
        }
    }
    Found::Covered(overlapping.iter().zip(used).filter(|(_, used)| *used).map(|(&rule, _)| rule).collect())
}

/// Whether some key is in both boxes.
fn meet(one: &[Side], other: &[Side]) -> bool {
    one.iter().zip(other).all(|(one, other)| one.meet(*other).is_some())
}

/// Whether every key of `inner` is in `outer`, where some are.
fn within(inner: &[Side], outer: &[Side]) -> bool {
    inner.iter().zip(outer).all(|(inner, outer)| {
        let mut left = false;
        inner.without(*outer, |_| left = true);
        !left
    })
}
