//! Captured bytes before accesses, where the packet changes its size.
//!
//! Every push, pop and truncation ends all facts of the kind "so many bytes from this value on are captured",
//! wherever they began: a fact then no longer holds in every block that its `need` dominates. So facts are
//! followed along the edges: what holds where a block begins is what all edges into it bring (the smallest
//! number holds), a value made anew brings nothing, a parameter what was handed over. Blocks are visited
//! until nothing becomes less.

use std::collections::BTreeMap;

use super::flow::unproven_access;
use super::paths::Paths;
use super::*;

/// By value: so many bytes from it on are captured. A value that is missing has none.
type Shown = BTreeMap<Value, u32>;

/// Does a function change the size of packets?
pub(super) fn resizes(function: &Function) -> bool {
    function
        .blocks
        .iter()
        .flat_map(|block| &block.instructions)
        .any(|instruction| ends_facts(&instruction.op))
}

/// Accesses that are not justified: block, instruction, fault.
pub(super) fn unproven(function: &Function, paths: &Paths) -> Vec<(usize, usize, Fault)> {
    // `None`: no edge into the block was followed yet.
    let mut begins: Vec<Option<Shown>> = vec![None; function.blocks.len()];
    let Some(&entry) = paths.order.first() else { return Vec::new() };
    begins[entry] = Some(Shown::new());
    let mut changed = true;
    while changed {
        changed = false;
        for &block in &paths.order {
            let Some(shown) = begins[block].clone() else { continue };
            let shown = through(function, block, shown, &mut |_, _| {});
            let terminator = &function.blocks[block].terminator;
            for (index, target) in terminator.targets().into_iter().enumerate() {
                let mut shown = shown.clone();
                if let (Terminator::Need { base, bytes, .. }, 0) = (terminator, index) {
                    let known = shown.entry(*base).or_insert(0);
                    *known = (*known).max(*bytes);
                }
                let shown = handed_over(function, target, shown);
                changed |= meet(&mut begins[target.block.0 as usize], shown);
            }
        }
    }
    let mut faults = Vec::new();
    for &block in &paths.order {
        let shown = begins[block].take().unwrap_or_default();
        through(function, block, shown, &mut |index, fault| faults.push((block, index, fault)));
    }
    faults
}

fn ends_facts(op: &Op) -> bool {
    matches!(op, Op::PushBytes { .. } | Op::PopBytes { .. } | Op::Truncate(_))
}

/// What is shown at the end of a block, and what its instructions lack.
fn through(function: &Function, block: usize, shown: Shown, report: &mut impl FnMut(usize, Fault)) -> Shown {
    let mut shown = shown;
    for (index, instruction) in function.blocks[block].instructions.iter().enumerate() {
        let known = |value| shown.get(&value).copied().unwrap_or(0);
        if let Some(fault) = unproven_access(&instruction.op, known) {
            report(index, fault);
        }
        if ends_facts(&instruction.op) {
            shown.clear();
        }
        // In a loop the value was another one before.
        for result in &instruction.results {
            shown.remove(result);
        }
    }
    shown
}

/// What an edge brings: parameters get what their arguments had.
fn handed_over(function: &Function, target: &Target, shown: Shown) -> Shown {
    let params = &function.block(target.block).params;
    let brought: Vec<Option<u32>> = target.args.iter().map(|arg| shown.get(arg).copied()).collect();
    let mut shown = shown;
    for (param, bytes) in params.iter().zip(brought) {
        match bytes {
            Some(bytes) => shown.insert(*param, bytes),
            None => shown.remove(param),
        };
    }
    shown
}

/// Lowers what holds at a block to what one more edge brings; says whether it became less.
fn meet(begins: &mut Option<Shown>, brought: Shown) -> bool {
    let Some(known) = begins else {
        *begins = Some(brought);
        return true;
    };
    let mut lowered = false;
    known.retain(|value, bytes| {
        let both = brought.get(value).copied().unwrap_or(0).min(*bytes);
        lowered |= both < *bytes;
        *bytes = both;
        both > 0
    });
    lowered
}
