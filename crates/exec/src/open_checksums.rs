//! Shows of a program that it cannot tell a packet whose checksum is open from the finished one.
//!
//! The field of an [`OpenClass`] holds the sum of the pseudo header instead of the checksum. A program cannot
//! tell which, and the sum can be finished at any later time with the same result, if for every packet of the
//! class
//!
//! - each read, each sum and each search of bytes lies beside the field,
//! - each write lies beside everything that the checksum covers, and beside the bytes that make the class,
//! - the packet stays as long as it is.
//!
//! What is sent while the program runs (`copy`, `emit … from`) is finished by the back end, see
//! [`Outputs::open`](crate::Outputs::open). What leaves in fragments or as a punt is finished afterwards.
//!
//! Places are known from the [analysis](Analysis) of everything that the program computes. A program of which
//! this cannot be shown gets finished packets.

use crate::class_analysis::{Analysis, beside, wide};
use ir::{Function, Op, Program};
use packet::{OpenClass, OpenClasses};

/// What was shown of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenProof {
    /// The classes of packets that it may get with an open checksum.
    pub classes: OpenClasses,
    /// It may send bytes of such a packet while it runs, as a copy or in a packet that it makes.
    pub quotes: bool,
}

impl OpenProof {
    /// What can be shown of a program, and of the one that steers its packets.
    pub fn of(program: &Program) -> OpenProof {
        let shown = |program: &Program, class| program.functions.first().and_then(|f| shown(f, class));
        let mut quotes = false;
        let classes = OpenClass::ALL.into_iter().filter(|&class| {
            let Some(quoted) = shown(program, class) else { return false };
            let steered = program.steering.as_deref().is_none_or(|steering| shown(steering, class).is_some());
            quotes |= quoted && steered;
            steered
        });
        let classes = classes.collect();
        OpenProof { classes, quotes }
    }
}

/// Whether the function quotes packets of the class; `None` if it might tell an open one from a finished one.
fn shown(function: &Function, class: OpenClass) -> Option<bool> {
    let analysis = Analysis::of(function, class)?;
    let mut quotes = false;
    for (block, reached) in function.blocks.iter().zip(&analysis.reached) {
        for instruction in block.instructions.iter().filter(|_| *reached) {
            if !is_blind(&analysis, &instruction.op) {
                return None;
            }
            quotes |= matches!(instruction.op, Op::Copy(_) | Op::Emit { tail: Some(_), .. });
        }
    }
    Some(quotes)
}

/// Whether an operation does the same with an open packet and a finished one.
fn is_blind(analysis: &Analysis<'_>, op: &Op) -> bool {
    let field = wide(analysis.class.field());
    match op {
        Op::Load { base, offset, bytes, .. } => beside(&analysis.place(*base, *offset, *bytes), &field),
        Op::Checksum { base, bytes, more } => beside(&analysis.summed(*base, *bytes, *more), &field),
        Op::Scan { start, end, .. } => beside(&(analysis.at(*start).least..analysis.at(*end).most), &field),
        Op::Store { base, offset, bytes, .. } => analysis.may_change(&analysis.place(*base, *offset, *bytes)),
        Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_) => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests;
