//! What edits take out of the packet, and what may still be read behind them.
//!
//! A stage's body is followed statement by statement: behind a `pop` its header is gone, behind a
//! `decapsulate to x` every header but x and those that were certainly decoded behind it. Where ways meet,
//! what is gone on one of them is gone. Which header was decoded behind which is part of what every transfer
//! to a stage brings, as is what was decoded at all.

use super::Flow;
use super::collect::Facts;
use crate::check::hir::{HeaderId, Program, StageId};
use crate::diagnostic::Diagnostic;
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// Something that was taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removal {
    /// A header.
    Popped(HeaderId),
    /// Everything before a header.
    Before(HeaderId),
}

/// What was done to the packet on some way to a point of a stage's body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gone {
    /// What may have been taken out, and where.
    pub removals: BTreeMap<Removal, Span>,
    /// What was taken out on every way.
    pub certain: BTreeSet<Removal>,
    /// Where it was said that the packet leaves in fragments.
    pub fragmented: Option<Span>,
}

impl Gone {
    /// True if nothing was done.
    pub fn is_nothing(&self) -> bool {
        *self == Gone::default()
    }

    /// Takes something out.
    pub fn remove(&mut self, removal: Removal, span: Span) {
        self.removals.insert(removal, span);
        self.certain.insert(removal);
    }

    /// What was done on this way or on another.
    pub fn or(&self, other: &Gone) -> Gone {
        let mut both = other.clone();
        both.removals.extend(&self.removals);
        both.certain.retain(|removal| self.certain.contains(removal));
        both.fragmented = self.fragmented.or(other.fragmented);
        both
    }
}

/// What is decoded wherever a stage is entered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Headers.
    pub headers: BTreeSet<HeaderId>,
    /// The second was decoded behind the first.
    pub behind: BTreeSet<(HeaderId, HeaderId)>,
}

impl Decoded {
    /// A header is decoded behind all others.
    pub fn decode(&mut self, header: HeaderId) {
        self.behind.retain(|&(a, b)| a != header && b != header);
        self.behind
            .extend(self.headers.iter().filter(|other| **other != header).map(|&other| (other, header)));
        self.headers.insert(header);
    }

    /// What is left of it behind edits.
    pub fn without(&self, gone: &Gone) -> Decoded {
        let left = |header: &HeaderId| self.removed(*header, gone).is_none();
        let headers: BTreeSet<HeaderId> = self.headers.iter().copied().filter(left).collect();
        let behind = self.behind.iter().copied();
        let behind = behind.filter(|(a, b)| headers.contains(a) && headers.contains(b)).collect();
        Decoded { headers, behind }
    }

    /// Leaves only what another way brings too; says whether that is less.
    pub fn meet(&mut self, other: &Decoded) -> bool {
        let before = (self.headers.len(), self.behind.len());
        self.headers.retain(|header| other.headers.contains(header));
        self.behind.retain(|pair| other.behind.contains(pair));
        before != (self.headers.len(), self.behind.len())
    }

    /// Where a header was taken out, if it was.
    pub fn removed(&self, header: HeaderId, gone: &Gone) -> Option<Span> {
        let hit = |(removal, span): (&Removal, &Span)| match *removal {
            Removal::Popped(popped) => (popped == header).then_some(*span),
            Removal::Before(first) => {
                (first != header && !self.behind.contains(&(first, header))).then_some(*span)
            }
        };
        gone.removals.iter().find_map(hit)
    }
}

/// Reports reads of what was taken out, and edits of what leaves in fragments.
pub(super) fn check(
    program: &Program,
    flow: &Flow,
    reached: &BTreeSet<StageId>,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let fragmented = fragmented(&flow.facts, reached);
    for &stage in reached {
        let mut decoded = flow.decoded[stage.0].clone();
        program.stages[stage.0].header.into_iter().for_each(|own| decoded.decode(own));
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
        let mut decoded = flow.decoded[stage.0].clone();
        program.stages[stage.0].header.into_iter().for_each(|own| decoded.decode(own));
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
