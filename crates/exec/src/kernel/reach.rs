//! How far into a packet a program reads: an upper bound, from the largest value that every position can have.
//!
//! The idea: the largest possible value of every SSA value is computed forwards, block by block, until nothing grows. A value that keeps
//! growing (a position that a loop moves on) gets the largest number of its width, and the program then has no bound.

use super::plan::{Bytes, FRAME_BYTES};
use crate::interpret::{binary, largest};
use lang::ir::{BinaryOp, Function, Op, Value};

/// Rounds after which values that still grow get the largest number of their width.
const ROUNDS: usize = 16;
/// A program with a larger bound, or none, sends so many bytes; packets that it reads further are run by the processor.
const MOST_HEADER_BYTES: u128 = 192;
/// What goes over where there is no bound.
const PART: u32 = 128;

/// How much of every packet goes over for this function; `kept` tells the blocks that run on the device, and `cut` from which instruction on not.
pub(super) fn reach(function: &Function, kept: &[bool], cut: &[Option<usize>]) -> Bytes {
    let most = most_of(function, kept);
    let at = |value: Value| most[value.0 as usize];
    let mut end = 0;
    for ((block, _), cut) in function.blocks.iter().zip(kept).zip(cut).filter(|((_, kept), _)| **kept) {
        for instruction in block.instructions.iter().take(cut.unwrap_or(usize::MAX)) {
            end = end.max(match &instruction.op {
                Op::Load { base, offset, bytes, .. } | Op::Store { base, offset, bytes, .. } => {
                    at(*base) + u128::from(*offset) + u128::from(*bytes)
                }
                Op::Checksum { base, bytes, more } => at(*base) + u128::from(*bytes) + more.map_or(0, at),
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

fn blocks<'f>(function: &'f Function, kept: &'f [bool]) -> impl Iterator<Item = &'f lang::ir::Block> {
    function.blocks.iter().zip(kept).filter(|(_, kept)| **kept).map(|(block, _)| block)
}

/// The largest value that every SSA value can have.
fn most_of(function: &Function, kept: &[bool]) -> Vec<u128> {
    let full = |value: Value| largest(function.width(value));
    let constants = constants(function);
    let mut most = vec![0; function.widths.len()];
    let mut round = 0;
    loop {
        let before = most.clone();
        for block in blocks(function, kept) {
            for instruction in &block.instructions {
                let Some(&result) = instruction.results.first() else { continue };
                let value =
                    instruction_most(function, &instruction.op, &most, &constants).unwrap_or(full(result));
                most[result.0 as usize] = value.min(full(result)).max(most[result.0 as usize]);
                for &other in &instruction.results[1..] {
                    most[other.0 as usize] = full(other);
                }
            }
            for target in block.terminator.targets() {
                let params = &function.block(target.block).params;
                for (param, arg) in params.iter().zip(&target.args) {
                    most[param.0 as usize] = most[param.0 as usize].max(most[arg.0 as usize]);
                }
            }
        }
        if most == before {
            return most;
        }
        round += 1;
        if round > ROUNDS {
            for (index, (value, old)) in most.iter_mut().zip(&before).enumerate() {
                if value != old {
                    *value = full(Value(index as u32));
                }
            }
        }
    }
}

/// The largest result of an instruction; `None` where only its width bounds it.
fn instruction_most(function: &Function, op: &Op, most: &[u128], constants: &[Option<u128>]) -> Option<u128> {
    let at = |value: &Value| most[value.0 as usize];
    Some(match op {
        Op::Const(value) => *value,
        Op::Compare(..) => 1,
        Op::Select(_, yes, no) => at(yes).max(at(no)),
        Op::Resize(value) => at(value),
        Op::Load { bytes, .. } => u128::MAX >> (128 - 8 * u32::from(*bytes)),
        Op::Binary(op, a, b) => {
            let full = largest(function.width(*a));
            match op {
                BinaryOp::Add => at(a).checked_add(at(b)).filter(|sum| *sum <= full)?,
                BinaryOp::Mul => at(a).checked_mul(at(b)).filter(|product| *product <= full)?,
                BinaryOp::AddSaturate => at(a).saturating_add(at(b)),
                BinaryOp::MulSaturate => at(a).saturating_mul(at(b)),
                BinaryOp::SubSaturate | BinaryOp::Div => at(a),
                BinaryOp::Rem => at(a).min(at(b)),
                BinaryOp::And => at(a).min(at(b)),
                BinaryOp::Or | BinaryOp::Xor => u128::MAX >> (at(a) | at(b)).leading_zeros().min(127),
                BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                    let distance = constants[b.0 as usize]?;
                    return shifted(*op, function.width(*a), at(a), distance);
                }
                BinaryOp::Sub => return None,
            }
        }
        _ => return None,
    })
}

fn shifted(op: BinaryOp, width: u8, value: u128, distance: u128) -> Option<u128> {
    let moved = binary(op, width, value, distance);
    let lost = op == BinaryOp::ShiftLeft && binary(BinaryOp::ShiftRight, width, moved, distance) != value;
    (!lost).then_some(moved)
}

/// The numbers of values that are constants.
fn constants(function: &Function) -> Vec<Option<u128>> {
    let mut constants = vec![None; function.widths.len()];
    for instruction in function.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Const(number), [result]) = (&instruction.op, &instruction.results[..]) {
            constants[result.0 as usize] = Some(*number);
        }
    }
    constants
}

const _: () = assert!(FRAME_BYTES.is_multiple_of(16));
