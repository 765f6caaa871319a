//! Which checksums cover what a stage writes, and what the stage must be handed to keep them right.
//!
//! A checksum over a header covers that header and what a walk finds inside of it. A checksum over payload covers every header decoded behind,
//! whether one was decoded before depends on the path, so its place may be handed on as "perhaps there".

use super::Flow;
use super::collect::{Facts, Read, own_fields};
use crate::check::hir::{Group, HeaderId, Layout, Program, StageId};
use crate::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// A write to a field.
#[derive(Clone, Debug)]
pub struct Write {
    /// The header.
    pub header: HeaderId,
    /// Where it lies in the packet.
    pub place: Place,
    /// The statement.
    pub span: Span,
}

/// Where the bytes of a header lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Headers that contain it, the innermost first: a walk goes over a part of them.
    pub within: Vec<HeaderId>,
    /// The header that a decoder decoded and that is or contains it; none for a walk over `payload`.
    pub decoded: Option<HeaderId>,
}

/// What is known of checksums over payload.
#[derive(Clone, Debug, Default)]
pub struct Covering {
    /// For every header with such a checksum, the stages that may come behind its decoders.
    behind: BTreeMap<HeaderId, BTreeSet<StageId>>,
    /// Those of them that may be decoded again behind themselves, so that the place of the first is no longer known.
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
            let mut queue = vec![StageId(index)];
            while let Some(stage) = queue.pop() {
                for transfer in &facts[stage.0].transfers {
                    if behind.insert(transfer.to) {
                        queue.push(transfer.to);
                    }
                }
            }
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
    pub fn outer(&self, program: &Program, stage: StageId, place: &Place) -> Vec<HeaderId> {
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

fn layout(program: &Program, header: HeaderId) -> &Layout {
    &program.layouts[program.headers[header.0].layout.0]
}

fn covers_payload(program: &Program, header: HeaderId) -> bool {
    layout(program, header).checksum.is_some_and(|checksum| checksum.payload)
}

/// Adds to what stages read the places that keep checksums right.
pub(super) fn add_reads(program: &Program, flow: &mut Flow, reached: &BTreeSet<StageId>) {
    for &stage in reached {
        let own = program.stages[stage.0].header;
        let mut wanted: Vec<(Read, Span)> = Vec::new();
        for write in &flow.facts[stage.0].writes {
            let mut want = |read: Read| wanted.push((read, write.span));
            let decoded = write.place.decoded;
            for header in write.place.within.iter().chain([&write.header]) {
                if layout(program, *header).checksum.is_some() && Some(*header) == decoded {
                    want(Read::Group(*header, 0));
                }
            }
            if Some(write.header) == decoded && layout(program, write.header).pseudo.is_some() {
                places_of(program, write.header).into_iter().for_each(&mut want);
            }
            for outer in flow.covering.outer(program, stage, &write.place) {
                if own == Some(outer) || flow.available[stage.0].contains(&outer) {
                    want(Read::Group(outer, 0));
                } else {
                    want(Read::Perhaps(outer));
                }
            }
        }
        wanted.retain(|(read, _)| read.header().is_none_or(|header| Some(header) != own));
        for (read, span) in wanted {
            if let Read::Perhaps(header) = read {
                flow.covering.perhaps.insert(header);
            }
            if !flow.facts[stage.0].reads.iter().any(|(other, _)| *other == read) {
                flow.facts[stage.0].reads.push((read, span));
            }
        }
    }
}

/// What must be known of a header to find its end and the header behind it.
pub(super) fn places_of(program: &Program, header: HeaderId) -> Vec<Read> {
    let layout = layout(program, header);
    let mut reads = Vec::new();
    if let Some(next) = &layout.next {
        let mut fields = vec![next.selector];
        fields.extend(next.when.iter().flat_map(own_fields));
        for field in fields {
            let group = layout.fields[field].group;
            reads.push(Read::Group(header, group));
            if matches!(layout.groups.get(group), Some(Group::Conditional { .. })) {
                reads.push(Read::Present(header, group));
            }
        }
    }
    if let Some(last) = layout.groups.len().checked_sub(1) {
        reads.push(Read::Group(header, last));
        if !matches!(layout.groups[last], Group::Fixed { .. }) {
            reads.push(Read::Length(header, last));
        }
    }
    reads
}
