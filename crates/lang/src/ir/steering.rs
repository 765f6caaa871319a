//! Steering: which of several workers runs a packet.
//!
//! A program that steers its packets holds a second one ([`Program::steering`](super::Program::steering)),
//! whose verdict `send n` says that the packet belongs to the worker `n` modulo the number of workers. Every
//! other verdict stands for 0: a packet that is too short for the headers that decide belongs to the first
//! worker. What the second program reads is the packet alone, so every worker gives the same answer.

use super::{Op, Program, Terminator};
use crate::source::Span;

/// The name of the reason for packets that found no room on their way to their worker.
pub const WORKER_BUSY: &str = "worker_busy";
/// What the reason means.
pub const WORKER_BUSY_HELP: &str = "the worker that its connection belongs to had no room for it";

/// The first place where a program does more than read the packet and choose a number.
pub fn impure(program: &Program) -> Option<Span> {
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    blocks.into_iter().find_map(|block| {
        let impure = block.instructions.iter().find(|instruction| !reads_packet(&instruction.op));
        let ends = matches!(
            block.terminator,
            Terminator::Flood | Terminator::Multicast(_) | Terminator::Punt(_) | Terminator::Done
        );
        impure.map(|instruction| instruction.span).or(ends.then_some(block.span))
    })
}

/// Whether an operation depends on the packet alone, and changes nothing.
fn reads_packet(op: &Op) -> bool {
    matches!(
        op,
        Op::Const(_)
            | Op::Binary(..)
            | Op::Compare(..)
            | Op::Select(..)
            | Op::Resize(_)
            | Op::Load { .. }
            | Op::Checksum { .. }
            | Op::InPort
            | Op::WireLength
            | Op::Captured
            | Op::Keep(_)
            | Op::EnterStage(_)
            | Op::Header { .. }
    )
}
