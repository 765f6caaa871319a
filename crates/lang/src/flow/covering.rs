//! Which checksums cover what a stage writes, and what the stage must be handed to keep them right.
//!
//! A checksum over a header covers that header and what a walk finds inside of it. A checksum over payload
//! covers every header decoded behind, whether one was decoded before depends on the path, so its place may
//! be handed on as "perhaps there".

use super::facts::{CoveredPlace, Facts, Read};
use super::gone::Decoded;
use super::graph::reach;
use crate::check::hir::{Expr, Group, HeaderId, Layout, Program, StageId};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of checksums over payload.
#[derive(Clone, Debug, Default)]
pub struct Covering {
    /// For every header with such a checksum, the stages that may come behind its decoders.
    behind: BTreeMap<HeaderId, BTreeSet<StageId>>,
    /// Those of them that may be decoded again behind themselves, so that the place of the first is no longer
    /// known.
    pub lost: BTreeSet<HeaderId>,
    /// Those whose place is handed on as perhaps there.
    pub perhaps: BTreeSet<HeaderId>,
}

impl Covering {
    /// Follows the stage graph from every decoder of a header whose checksum covers payload.
    pub fn of(program: &Program, facts: &[Facts]) -> Covering {
        let mut covering = Covering::default();
        let writes = facts.iter().any(|facts| !facts.writes.is_empty());
        for (index, stage) in program.stages.iter().enumerate().filter(|_| writes) {
            let Some(header) = stage.header.filter(|&header| covers_payload(program, header)) else {
                continue;
            };
            let behind = covering.behind.entry(header).or_default();
            reach(facts, behind, vec![StageId(index)]);
        }
        let again = |(header, behind): (&HeaderId, &BTreeSet<StageId>)| {
            behind.iter().any(|stage| program.stages[stage.0].header == Some(*header)).then_some(*header)
        };
        covering.lost = covering.behind.iter().filter_map(again).collect();
        covering
    }

    /// Headers with a checksum over payload.
    pub fn headers(&self) -> impl Iterator<Item = HeaderId> {
        self.behind.keys().copied()
    }

    /// Headers decoded by stages whose checksum may cover bytes there, in a stage.
    pub fn outer(&self, program: &Program, stage: StageId, place: &CoveredPlace) -> Vec<HeaderId> {
        let own = program.stages[stage.0].header;
        let covers = |(&header, behind): (&HeaderId, &BTreeSet<StageId>)| {
            let covers = match place.decoded {
                Some(decoded) => behind.iter().any(|stage| program.stages[stage.0].header == Some(decoded)),
                None => own == Some(header) || behind.contains(&stage),
            };
            covers.then_some(header)
        };
        self.behind.iter().filter_map(covers).collect()
    }
}

fn covers_payload(program: &Program, header: HeaderId) -> bool {
    program.layout(header).checksum.is_some_and(|checksum| checksum.payload)
}

/// Is something that the checksum of this layout covers never zero?
pub fn never_zero(program: &Program, layout: &Layout) -> bool {
    let Some(checksum) = layout.checksum else { return false };
    let held = layout.fields.iter().enumerate().any(|(index, field)| {
        let positive = field.constraint.is_some_and(|(least, _)| least > 0);
        positive && index != checksum.field && !field.conditional
    });
    // The length counts the checksum itself, and the kind is the number that leads to it.
    let mut clauses = program
        .layouts
        .iter()
        .filter_map(|layout| Some((layout.pseudo.as_ref()?, layout.next.as_ref()?)))
        .peekable();
    let described = clauses.peek().is_some()
        && clauses.all(|(pseudo, next)| {
            let mut kinds = next.targets.iter().flat_map(|(values, _)| values);
            pseudo.length || pseudo.kind && kinds.all(|kind| *kind > 0)
        });
    held || checksum.pseudo && described
}

/// The innermost header before this one that is certainly decoded and counts what follows it, with the field
/// that does.
pub fn counted_by(program: &Program, decoded: &Decoded, header: HeaderId) -> Option<(HeaderId, usize)> {
    let before = decoded.behind.iter().filter(|(_, second)| *second == header).map(|(first, _)| *first);
    let counts = |header: HeaderId| Some((header, program.layout(header).counting().next()?));
    let around: Vec<(HeaderId, usize)> = before.filter_map(counts).collect();
    let inner =
        |header: HeaderId| around.iter().all(|(other, _)| !decoded.behind.contains(&(header, *other)));
    around.iter().copied().find(|(header, _)| inner(*header))
}

/// What must be known of a header to find its end.
pub fn end_of(program: &Program, header: HeaderId) -> Vec<Read> {
    let groups = &program.layout(header).groups;
    let Some(last) = groups.len().checked_sub(1) else { return Vec::new() };
    let mut reads = vec![Read::Group(header, last)];
    if !matches!(groups[last], Group::Fixed { .. }) {
        reads.push(Read::Length(header, last));
    }
    reads
}

/// What must be known of a header to find its end and the header behind it.
pub(super) fn places_of(program: &Program, header: HeaderId) -> Vec<Read> {
    let layout = program.layout(header);
    let mut reads = Vec::new();
    if let Some(next) = &layout.next {
        let mut fields = vec![next.selector];
        fields.extend(next.when.iter().flat_map(Expr::own_fields));
        for field in fields {
            let group = layout.fields[field].group;
            reads.push(Read::Group(header, group));
            if matches!(layout.groups.get(group), Some(Group::Conditional { .. })) {
                reads.push(Read::Present(header, group));
            }
        }
    }
    reads.extend(end_of(program, header));
    reads
}
