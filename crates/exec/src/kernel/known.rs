//! Constant propagation: finds values that are the same for every packet, such as the positions of headers at
//! fixed places.
//!
//! The idea: every SSA value is unseen, one number, or many numbers. The analysis goes over the blocks again
//! and again; values only move forward in this order, until none moves. A parameter is one number if all
//! arguments passed to it are this number.

use crate::arithmetic::{binary, compare, largest};
use ir::{Function, Instruction, Op, Target, Value};

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Unseen,
    One(u128),
    Many,
}

/// The numbers of values that are the same for every packet. Each block is given by its instructions that run
/// on the device and its edges to other blocks.
pub(super) fn known(function: &Function, blocks: &[(&[Instruction], Vec<&Target>)]) -> Vec<Option<u128>> {
    let mut known = vec![Known::Unseen; function.widths.len()];
    loop {
        let before = known.clone();
        for (instructions, targets) in blocks {
            for instruction in *instructions {
                let [first, others @ ..] = &instruction.results[..] else { continue };
                known[first.0 as usize] = result(function, &instruction.op, &known, *first);
                others.iter().for_each(|other| known[other.0 as usize] = Known::Many);
            }
            for target in targets {
                for (param, arg) in function.block(target.block).params.iter().zip(&target.args) {
                    let (held, handed) = (known[param.0 as usize], known[arg.0 as usize]);
                    known[param.0 as usize] = match (held, handed) {
                        (Known::Unseen, other) | (other, Known::Unseen) => other,
                        (one, other) if one == other => one,
                        _ => Known::Many,
                    };
                }
            }
        }
        if known == before {
            break;
        }
    }
    known.into_iter().map(|known| if let Known::One(number) = known { Some(number) } else { None }).collect()
}

fn result(function: &Function, op: &Op, known: &[Known], result: Value) -> Known {
    let at = |value: &Value| known[value.0 as usize];
    let both = |a: &Value, b: &Value, then: &dyn Fn(u128, u128) -> u128| match (at(a), at(b)) {
        (Known::One(a), Known::One(b)) => Known::One(then(a, b)),
        (Known::Many, _) | (_, Known::Many) => Known::Many,
        _ => Known::Unseen,
    };
    match op {
        Op::Const(number) => Known::One(*number),
        Op::Binary(op, a, b) => both(a, b, &|x, y| binary(*op, function.width(*a), x, y)),
        Op::Compare(op, a, b) => both(a, b, &|x, y| compare(*op, x, y).into()),
        Op::Resize(value) => match at(value) {
            Known::One(number) => Known::One(number & largest(function.width(result))),
            other => other,
        },
        _ => Known::Many,
    }
}
