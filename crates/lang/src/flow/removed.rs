//! What edits take out of the packet, and what may still be read behind them.
//!
//! A stage's body is followed statement by statement: behind a `pop` its header is gone, behind a
//! `decapsulate to x` every header but x and those that were certainly decoded behind it. Where ways meet,
//! what is gone on one of them is gone. Which header was decoded behind which is part of what every transfer
//! to a stage brings, as is what was decoded at all.

use super::facts::Facts;
use super::graph::Flow;
use crate::check::hir::{HeaderId, Program, StageId};
use crate::diagnostic::Diagnostic;
use ir::source::Span;
use std::collections::BTreeSet;

/// Reports reads of what was taken out, and edits of what leaves in fragments.
pub(super) fn check(
    program: &Program,
    flow: &Flow,
    reached: &BTreeSet<StageId>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let fragmented = fragmented(&flow.facts, reached);
    for &stage in reached {
        let decoded = flow.decoded_in(program, stage);
        let mut told = BTreeSet::new();
        for (header, span, gone) in &flow.facts[stage.0].late_reads {
            if let Some(removed) = decoded.removed(*header, gone)
                && told.insert(*header)
            {
                diagnostics.push(removed_header(program, *header, *span, removed));
            }
        }
        for &(span, before) in &flow.facts[stage.0].resizes {
            if let Some(before) = before.or(fragmented[stage.0]) {
                diagnostics.push(
                    Diagnostic::error(
                        "E0433",
                        "a packet that leaves in fragments can no longer change its size, start again or go to a group",
                        span,
                        "too late for this",
                    )
                    .place(before, "it leaves in fragments")
                    .help("let `fragment` be the last change: its place is shortly before the verdict"),
                );
                break;
            }
        }
    }
}

/// The fault of reading a header that was taken out.
pub(super) fn removed_header(program: &Program, header: HeaderId, span: Span, removed: Span) -> Diagnostic {
    let name = &program.headers[header.0].name;
    Diagnostic::error("E0431", format!("`{name}` is no longer part of the packet"), span, "read here")
        .place(removed, "taken out here")
        .help("give what is needed of it a name before, as in `let kind = …`")
}

/// Where a header may have been taken out before a stage is entered.
pub(super) fn removed_before(
    flow: &Flow,
    program: &Program,
    reached: &BTreeSet<StageId>,
    header: HeaderId,
) -> Option<Span> {
    reached.iter().find_map(|stage| {
        let decoded = flow.decoded_in(program, *stage);
        let gone = flow.facts[stage.0].transfers.iter().map(|transfer| &transfer.gone);
        let mut removed = gone.filter_map(|gone| decoded.removed(header, gone));
        removed.next().filter(|_| decoded.headers.contains(&header))
    })
}

/// For every stage, where the packets that come to it may have been fragmented.
fn fragmented(facts: &[Facts], reached: &BTreeSet<StageId>) -> Vec<Option<Span>> {
    let mut fragmented: Vec<Option<Span>> = vec![None; facts.len()];
    let mut queue: Vec<StageId> = reached.iter().copied().collect();
    while let Some(stage) = queue.pop() {
        for transfer in &facts[stage.0].transfers {
            let brought = transfer.gone.fragmented.or(fragmented[stage.0]);
            if brought.is_some() && fragmented[transfer.to.0].is_none() {
                fragmented[transfer.to.0] = brought;
                queue.push(transfer.to);
            }
        }
    }
    fragmented
}
