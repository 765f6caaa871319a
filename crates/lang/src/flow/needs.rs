//! What a stage must be handed by its callers.
//!
//! These are the places in headers that the stage and the stages behind it read and do not decode themselves:
//! a least fixpoint with union. Where a stage writes something, it also reads the checksums that cover it.

use super::covering::{counted_by, end_of, never_zero, places_of};
use super::facts::{Facts, Read, TurnKind};
use super::gone::Decoded;
use super::graph::Flow;
use crate::check::hir::{HeaderId, Program, StageId};
use ir::source::Span;
use std::collections::{BTreeSet, VecDeque};

/// Adds to what stages read the places that keep checksums right.
pub(super) fn add_reads(program: &Program, flow: &mut Flow, reached: &BTreeSet<StageId>) {
    for &stage in reached {
        let own = program.stages[stage.0].header;
        let here = flow.decoded_in(program, stage);
        let mut wanted: Vec<(Read, Span)> = Vec::new();
        for write in &flow.facts[stage.0].writes {
            let mut want = |read: Read| wanted.push((read, write.span));
            let decoded = write.place.decoded;
            for header in write.place.within.iter().chain([&write.header]) {
                if program.layout(*header).checksum.is_some() && Some(*header) == decoded {
                    want(Read::Group(*header, 0));
                    covered_by(program, &here, *header).into_iter().for_each(&mut want);
                }
            }
            if Some(write.header) == decoded && program.layout(write.header).pseudo.is_some() {
                places_of(program, write.header).into_iter().for_each(&mut want);
            }
            for outer in flow.covering.outer(program, stage, &write.place) {
                if own == Some(outer) || flow.available[stage.0].contains(&outer) {
                    want(Read::Group(outer, 0));
                    covered_by(program, &here, outer).into_iter().for_each(&mut want);
                } else {
                    want(Read::Perhaps(outer));
                }
            }
        }
        for turn in &flow.facts[stage.0].turns {
            let reads = end_removed(program, &here.without(&turn.gone), turn.kind);
            wanted.extend(reads.into_iter().map(|read| (read, turn.span)));
        }
        wanted.retain(|(read, _)| read.header().is_none_or(|header| Some(header) != own));
        for (read, span) in wanted {
            if let Read::Perhaps(header) = read {
                flow.covering.perhaps.insert(header);
            }
            flow.facts[stage.0].add_read(read, span);
        }
    }
}

/// What must be known to see whether all is zero that the checksum of a header covers.
fn covered_by(program: &Program, decoded: &Decoded, header: HeaderId) -> Vec<Read> {
    let described = program.layout(header);
    let Some(checksum) = described.checksum.filter(|checksum| !checksum.unless_zero) else {
        return Vec::new();
    };
    if never_zero(program, described) {
        return Vec::new();
    }
    if !checksum.payload {
        return end_of(program, header);
    }
    counted_by(program, decoded, header)
        .map(|(around, field)| counted_end(program, around, field))
        .unwrap_or_default()
}

/// What must be known of a header to find the end of what this field of it counts.
fn counted_end(program: &Program, header: HeaderId, field: usize) -> Vec<Read> {
    let group = program.layout(header).fields[field].group;
    let mut reads = vec![Read::Group(header, 0), Read::Group(header, group)];
    reads.extend(end_of(program, header));
    reads
}

/// What must be known to cut the packet where a removed header says that its payload ends.
fn end_removed(program: &Program, decoded: &Decoded, kind: TurnKind) -> Vec<Read> {
    let counts = match kind {
        TurnKind::Popped(header) => program.layout(header).counting().next().map(|field| (header, field)),
        TurnKind::Before(header) => counted_by(program, decoded, header),
        TurnKind::Pushed { .. } => None,
    };
    counts.map(|(header, field)| counted_end(program, header, field)).unwrap_or_default()
}

/// Places that every stage must be handed.
pub(super) fn needs(program: &Program, facts: &[Facts], reached: &BTreeSet<StageId>) -> Vec<BTreeSet<Read>> {
    let mut needs: Vec<BTreeSet<Read>> = vec![BTreeSet::new(); program.stages.len()];
    let mut callers: Vec<Vec<StageId>> = vec![Vec::new(); program.stages.len()];
    for &stage in reached {
        for transfer in &facts[stage.0].transfers {
            callers[transfer.to.0].push(stage);
        }
    }
    let edits = facts.iter().any(|facts| facts.edits);
    let mut queue: VecDeque<StageId> = reached.iter().rev().copied().collect();
    while let Some(stage) = queue.pop_front() {
        let own = program.stages[stage.0].header;
        let mut wanted: BTreeSet<Read> = facts[stage.0].reads.iter().map(|&(read, _)| read).collect();
        for transfer in &facts[stage.0].transfers {
            wanted.extend(&needs[transfer.to.0]);
        }
        // Where a header lies as a whole decides what an edit before it does to its parts.
        if edits {
            let parts = wanted.iter().filter_map(|read| read.header());
            let starts: Vec<Read> = parts.map(|header| Read::Group(header, 0)).collect();
            wanted.extend(starts);
        }
        if own.is_some() {
            let decoded = own.map(Read::Perhaps);
            wanted.retain(|read| {
                !matches!(read, Read::Cursor) && read.header() != own && Some(*read) != decoded
            });
            wanted.insert(Read::Cursor);
        }
        if wanted.len() > needs[stage.0].len() {
            needs[stage.0] = wanted;
            queue.extend(&callers[stage.0]);
        }
    }
    needs
}
