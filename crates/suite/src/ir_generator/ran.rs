//! Which instructions of a made program were run: a counter with a cell for every block says which blocks
//! were.

use super::declarations::OF_BLOCKS;
use ir::source::Span;
use ir::{Instruction, Op, Program, Value};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// The instructions of the IR, and how blocks end.
pub const INSTRUCTIONS: [&str; 53] = [
    "Const",
    "Binary",
    "Compare",
    "Select",
    "Resize",
    "Load",
    "Store",
    "Checksum",
    "InPort",
    "WireLength",
    "Captured",
    "Now",
    "Lookup",
    "Scan",
    "Insert",
    "Withdraw",
    "Mark",
    "ReadRegister",
    "WriteRegister",
    "Take",
    "Give",
    "Choose",
    "Member",
    "Join",
    "Leave",
    "Learn",
    "HasRoom",
    "Remove",
    "EndAfter",
    "SetDefault",
    "ClearDefault",
    "Count",
    "Raise",
    "Copy",
    "Emit",
    "PushBytes",
    "PopBytes",
    "Truncate",
    "Fragment",
    "Keep",
    "EnterStage",
    "Header",
    "Jump",
    "Branch",
    "Switch",
    "Need",
    "Fuel",
    "Send",
    "Flood",
    "Multicast",
    "Drop",
    "Punt",
    "Done",
];

/// Gives every block a count of its own before everything else.
pub(super) fn probe(program: &mut Program) {
    let mut cell = 0;
    for function in &mut program.functions {
        for block in &mut function.blocks {
            function.widths.push(32);
            let index = Value(function.widths.len() as u32 - 1);
            let span = Span::default();
            let number = Instruction { results: vec![index], op: Op::Const(cell), span };
            let op = Op::Count { counter: OF_BLOCKS, index: Some(index) };
            block.instructions.splice(0..0, [number, Instruction { results: Vec::new(), op, span }]);
            cell += 1;
        }
    }
    let counter = &mut program.counters[OF_BLOCKS as usize];
    (counter.size, counter.indexed) = (cell as u32, true);
}

/// The instructions that a made program has.
pub fn instructions(program: &Program) -> BTreeSet<&'static str> {
    of_blocks(program, |_| true)
}

/// The instructions that were run, by the numbers of the counter of blocks; none of a program that does not
/// count them.
pub fn probed(program: &Program, counters: &[Vec<(u64, u64)>]) -> BTreeSet<&'static str> {
    if !program.counters[OF_BLOCKS as usize].indexed {
        return BTreeSet::new();
    }
    let cells = &counters[OF_BLOCKS as usize];
    of_blocks(program, |block| cells.get(block).is_some_and(|(packets, _)| *packets > 0))
}

fn of_blocks(program: &Program, wanted: impl Fn(usize) -> bool) -> BTreeSet<&'static str> {
    let blocks = program.functions.iter().flat_map(|function| &function.blocks).enumerate();
    let mut found = BTreeSet::new();
    for (_, block) in blocks.filter(|(number, _)| wanted(*number)) {
        // The two that count the block are no part of what was made.
        let probe = if program.counters[OF_BLOCKS as usize].indexed { 2 } else { 0 };
        found.extend(block.instructions.iter().skip(probe).map(|instruction| name(&instruction.op)));
        found.insert(name(&block.terminator));
    }
    found
}

/// The name of an instruction: what its description for debugging begins with.
fn name(instruction: &impl Debug) -> &'static str {
    let text = format!("{instruction:?}");
    let end = text.find(|letter: char| !letter.is_ascii_alphanumeric()).unwrap_or(text.len());
    INSTRUCTIONS.iter().find(|name| **name == &text[..end]).copied().unwrap_or("")
}
