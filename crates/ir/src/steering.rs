//! Steering: which of several workers runs a packet.
//!
//! A program that steers its packets holds a second one ([`Program::steering`](super::Program::steering)),
//! whose verdict `send n` says that the packet belongs to the worker `n` modulo the number of workers. Every
//! other verdict stands for 0: a packet that is too short for the headers that decide belongs to the first
//! worker. What the second program reads is the packet alone, so every worker gives the same answer.

use super::{Program, Reason, Terminator};
use crate::limits::MOST_REASONS;
use crate::source::Span;

/// The name of the reason for packets that found no room on their way to their worker.
pub const WORKER_BUSY: &str = "worker_busy";
/// What the reason means.
pub const WORKER_BUSY_HELP: &str = "the worker that its connection belongs to had no room for it";

/// Gives a program the reason [`WORKER_BUSY`] unless it has it. With several workers a program needs it that
/// does not steer, too: packets may be on their way that a program before it has steered.
///
/// # Errors
/// The program has as many reasons as a verdict can number; in words.
pub fn declare_worker_busy(program: &mut Program) -> Result<(), String> {
    if program.reasons.iter().any(|reason| reason.name == WORKER_BUSY) {
        return Ok(());
    }
    if program.reasons.len() >= MOST_REASONS {
        return Err(format!(
            "several workers need the reason `{WORKER_BUSY}`, and the program has {MOST_REASONS} reasons already, as many as a verdict can number: let several causes share a reason"
        ));
    }
    program.reasons.push(Reason { name: WORKER_BUSY.into(), help: WORKER_BUSY_HELP.into() });
    Ok(())
}

/// The first place where a program does more than read the packet and choose a number.
pub fn impure(program: &Program) -> Option<Span> {
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    blocks.into_iter().find_map(|block| {
        let impure = block.instructions.iter().find(|instruction| !instruction.op.is_of_packet_alone());
        let ends = matches!(
            block.terminator,
            Terminator::Flood | Terminator::Multicast(_) | Terminator::Punt(_) | Terminator::Done
        );
        impure.map(|instruction| instruction.span).or(ends.then_some(block.span))
    })
}
