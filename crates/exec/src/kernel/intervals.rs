//! Interval analysis: computes how far into a packet a program reads at most, from the smallest and the
//! largest value of every position.
//!
//! The idea: the bounds of every SSA value are computed forwards, block by block, until nothing grows. If a
//! block can only be reached by one edge of a branch, the condition of the branch bounds values, too: where
//! `ihl < 5` is false, `ihl * 4 - 20` is not negative. A value that keeps growing (a position that a loop
//! increases) gets all numbers of its width, and the program then has no bound.

use super::plan::{Bytes, FRAME_BYTES};
use super::shape::Shape;
use crate::arithmetic::largest;
use crate::bounds::{Bounds, arithmetic};
use ir::{BlockId, CompareOp, Function, Op, Terminator, Value};
use std::collections::BTreeMap;

/// The number of rounds after which values that still grow get all numbers of their width.
const ROUNDS: usize = 16;
/// The largest bound (bytes) for which all bytes that a program may read are copied to the device.
const MOST_HEADER_BYTES: u128 = 192;
/// The bytes that are copied if the bound is larger or there is none; if a program reads further, the host
/// runs the packet.
const PART: u32 = 128;

/// Narrower bounds of values in a block, from conditions.
type Facts = BTreeMap<u32, Bounds>;

/// How many bytes of every packet are copied to the device for this function.
pub(super) fn header_bytes(function: &Function, shape: &Shape) -> Bytes {
    let bounds = bounds(function, shape);
    let facts = |block: BlockId| &bounds.facts[block.0 as usize];
    let mut end = 0;
    for &block in &shape.order {
        let most = |value: Value| bounds.at(value, facts(block)).map_or(0, |(_, most)| most);
        for instruction in shape.instructions(function, block) {
            end = end.max(match &instruction.op {
                Op::Load { base, offset, bytes, .. } | Op::Store { base, offset, bytes, .. } => {
                    most(*base) + u128::from(*offset) + u128::from(*bytes)
                }
                Op::Checksum { base, bytes, more } => most(*base) + u128::from(*bytes) + more.map_or(0, most),
                Op::Scan { .. } => return Bytes::Frame,
                _ => 0,
            });
        }
    }
    if end > MOST_HEADER_BYTES {
        Bytes::Part(PART)
    } else {
        Bytes::All((end as u32).next_multiple_of(16).max(16))
    }
}

/// What the analysis knows of all values.
struct Known {
    /// The bounds of each value; `None` before the analysis has seen it.
    values: Vec<Option<Bounds>>,
    /// The facts of each block.
    facts: Vec<Facts>,
    /// For each condition that compares two values: the comparison.
    asked: BTreeMap<u32, (CompareOp, Value, Value)>,
}

impl Known {
    /// The bounds of a value, given these facts.
    fn at(&self, value: Value, facts: &Facts) -> Option<Bounds> {
        let (least, most) = self.values[value.0 as usize]?;
        let Some((low, high)) = facts.get(&value.0) else { return Some((least, most)) };
        let (low, high) = (least.max(*low), most.min(*high));
        // Facts contradict each other only in a block that cannot be reached.
        Some(if low <= high { (low, high) } else { (least, most) })
    }

    /// Adds to the facts what a condition says of values if it `holds` or does not.
    fn say(&self, condition: Value, holds: bool, facts: &mut Facts) {
        let Some(&(op, a, b)) = self.asked.get(&condition.0) else { return };
        let (Some((low, high)), Some((low_b, high_b))) = (self.at(a, facts), self.at(b, facts)) else {
            return;
        };
        let below = |most: u128| (0, most);
        let above = |least: u128| (least, u128::MAX);
        let (of_a, of_b) = match (op, holds) {
            (CompareOp::Eq, true) | (CompareOp::Ne, false) => ((low_b, high_b), (low, high)),
            (CompareOp::Eq, false) | (CompareOp::Ne, true) => return,
            (CompareOp::Lt, true) => (below(high_b.saturating_sub(1)), above(low.saturating_add(1))),
            (CompareOp::Lt, false) => (above(low_b), below(high)),
            (CompareOp::Le, true) => (below(high_b), above(low)),
            (CompareOp::Le, false) => (above(low_b.saturating_add(1)), below(high.saturating_sub(1))),
        };
        for (value, (least, most)) in [(a, of_a), (b, of_b)] {
            let held = facts.entry(value.0).or_insert((0, u128::MAX));
            *held = (held.0.max(least), held.1.min(most));
        }
    }
}

/// The bounds of every value, and the facts of each block.
fn bounds(function: &Function, shape: &Shape) -> Known {
    let mut known = Known {
        values: vec![None; function.widths.len()],
        facts: vec![Facts::new(); function.blocks.len()],
        asked: BTreeMap::new(),
    };
    let mut ways = vec![0; function.blocks.len()];
    for &block in &shape.order {
        shape.ways(function, block).iter().for_each(|target| ways[target.block.0 as usize] += 1);
        for instruction in shape.instructions(function, block) {
            if let (Op::Compare(op, a, b), [result]) = (&instruction.op, &instruction.results[..]) {
                known.asked.insert(result.0, (*op, *a, *b));
            }
        }
    }
    let mut round = 0;
    loop {
        let before = known.values.clone();
        for &block in &shape.order {
            follow(function, shape, block, &ways, &mut known);
        }
        if known.values == before {
            return known;
        }
        round += 1;
        if round > ROUNDS {
            for (index, (value, old)) in known.values.iter_mut().zip(&before).enumerate() {
                if value != old {
                    *value = Some((0, largest(function.widths[index])));
                }
            }
        }
    }
}

/// Analyses a block and its edges to the next blocks.
fn follow(function: &Function, shape: &Shape, block: BlockId, ways: &[u32], known: &mut Known) {
    let facts = known.facts[block.0 as usize].clone();
    for instruction in shape.instructions(function, block) {
        let Some(&result) = instruction.results.first() else { continue };
        for &other in &instruction.results[1..] {
            known.values[other.0 as usize] = Some((0, largest(function.width(other))));
        }
        let full = largest(function.width(result));
        let found = match of(function, &instruction.op, |value| known.at(value, &facts)) {
            Found::Unseen => continue,
            Found::Within((least, most)) if most <= full => (least, most),
            // A number that does not fit is truncated, and may then be any number.
            Found::Any | Found::Within(_) => (0, full),
        };
        widen(&mut known.values[result.0 as usize], found);
    }
    for target in shape.ways(function, block) {
        for (param, arg) in function.block(target.block).params.iter().zip(&target.args) {
            if let Some(handed) = known.at(*arg, &facts) {
                widen(&mut known.values[param.0 as usize], handed);
            }
        }
        // The facts of this block hold in the next one, if there is no other way to it.
        if ways[target.block.0 as usize] == 1 && target.block != BlockId(0) {
            let mut there = facts.clone();
            match &function.block(block).terminator {
                Terminator::Branch(condition, yes, _) => {
                    known.say(*condition, target.block == yes.block, &mut there)
                }
                Terminator::Switch(value, cases, _) => {
                    let case = cases.iter().find(|(_, way)| target.block == way.block);
                    there.extend(case.map(|(case, _)| (value.0, (*case, *case))));
                }
                _ => {}
            }
            known.facts[target.block.0 as usize] = there;
        }
    }
}

fn widen(held: &mut Option<Bounds>, found: Bounds) {
    *held = Some(held.map_or(found, |(least, most)| (least.min(found.0), most.max(found.1))));
}

/// What an instruction's first result can be.
enum Found {
    /// The analysis has not seen the operands yet.
    Unseen,
    /// All numbers of its width.
    Any,
    /// Numbers between these.
    Within(Bounds),
}

fn of(function: &Function, op: &Op, at: impl Fn(Value) -> Option<Bounds>) -> Found {
    let found = match op {
        Op::Const(number) => Some((*number, *number)),
        Op::Compare(..) => Some((0, 1)),
        Op::Load { bytes, .. } => Some((0, largest(8 * bytes))),
        Op::Resize(value) | Op::Select(_, value, _) | Op::Binary(_, value, _) if at(*value).is_none() => {
            return Found::Unseen;
        }
        Op::Resize(value) => at(*value),
        Op::Select(_, yes, no) => match (at(*yes), at(*no)) {
            (Some(yes), Some(no)) => Some((yes.0.min(no.0), yes.1.max(no.1))),
            _ => return Found::Unseen,
        },
        Op::Binary(op, a, b) => match (at(*a), at(*b)) {
            (Some(of_a), Some(of_b)) => arithmetic(*op, function.width(*a), of_a, of_b),
            _ => return Found::Unseen,
        },
        _ => None,
    };
    found.map_or(Found::Any, Found::Within)
}

const _: () = assert!(FRAME_BYTES.is_multiple_of(16));

#[cfg(test)]
mod tests;
