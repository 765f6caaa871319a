//! Which header's addresses a checksum behind it covers, where edits change that.
//!
//! A checksum over a pseudo header covers fields of the header whose `next` leads to it, whatever stands
//! there when the packet leaves. So where a header with a pseudo header is taken out, its part is taken out
//! of the checksum behind it, and where one is put before, its part is added. What was in between on some
//! ways only, or would stand between two such headers, is refused: then nobody could say what to write. So is
//! the removal of a pushed header together with others: it has no name by which its part could be found.

use super::enclosing::{Perhaps, want};
use super::facts::{Turn, TurnKind};
use super::gone::{Decoded, Inserted};
use super::graph::Flow;
use crate::check::hir::{Carrier, GoverningStep, HeaderId, Layout, Lead, Place, Program, StageId};
use crate::diagnostic::Diagnostic;
use ir::source::Span;
use std::collections::BTreeSet;

/// The layouts that may stand between a header of this layout and the end of a checksum that covers its
/// pseudo header, by number.
pub fn governed(program: &Program, layout: &Layout) -> BTreeSet<usize> {
    governed_by(program, layout, None)
}

/// The same where the number that says what follows the header may be known.
fn governed_by(program: &Program, layout: &Layout, announced: Option<u128>) -> BTreeSet<usize> {
    let mut seen = BTreeSet::new();
    if layout.pseudo.is_none() {
        return seen;
    }
    let mut open = vec![(layout, announced)];
    while let Some((layout, announced)) = open.pop() {
        for (numbers, name) in layout.next.iter().flat_map(|next| &next.targets) {
            if announced.is_some_and(|announced| !numbers.contains(&announced)) {
                continue;
            }
            let Some(index) = program.layout_named(name) else { continue };
            let step = program.layouts[index].governing_step();
            if step != GoverningStep::End && seen.insert(index) && step == GoverningStep::Passed {
                open.push((&program.layouts[index], None));
            }
        }
    }
    if seen.iter().any(|index| program.layouts[*index].governing_step() == GoverningStep::Found) {
        seen
    } else {
        BTreeSet::new()
    }
}

/// Finds the headers whose part is taken out by every edit, lets stages read them, and refuses what cannot be
/// kept right.
pub(super) fn settle(
    program: &Program,
    flow: &mut Flow,
    reached: &BTreeSet<StageId>,
    perhaps: &[Perhaps],
    diagnostics: &mut Vec<Diagnostic>,
) {
    for &stage in reached {
        let own = program.stages[stage.0].header;
        let (mut entry, certain) = (perhaps[stage.0].clone(), flow.decoded_in(program, stage));
        own.into_iter().for_each(|own| entry.decode(own));
        for turn in flow.facts[stage.0].turns.clone() {
            let (there, known) = (entry.without(&turn.gone), certain.without(&turn.gone));
            match taken_out(program, flow, &turn, &there, &known) {
                Ok(headers) => {
                    for &header in &headers {
                        let covered = program.layout(header).pseudo.as_ref();
                        let covered = covered.map_or(&[][..], |pseudo| &pseudo.fields);
                        want(program, &mut flow.facts[stage.0], own, header, covered, turn.span);
                    }
                    flow.governing.insert(turn.span, headers);
                }
                Err(obstacle) => diagnostics.push(refused(program, obstacle, turn.span)),
            }
        }
    }
}

impl Inserted {
    /// They are certainly left where all before a header goes out, or the header alone.
    fn stays_with(&self, header: HeaderId, known: &Decoded) -> bool {
        match self.place {
            Some(Place::Before(beside)) => known.behind.contains(&(header, beside)),
            Some(Place::After(beside)) => beside == header || known.behind.contains(&(header, beside)),
            Some(Place::Start) | None => false,
        }
    }

    /// May they be behind a header?
    fn perhaps_behind(&self, header: HeaderId, there: &Perhaps) -> bool {
        match self.place {
            Some(Place::Start) => false,
            Some(Place::Before(beside)) => there.behind.contains(&(header, beside)),
            Some(Place::After(beside)) => beside == header || there.behind.contains(&(header, beside)),
            None => true,
        }
    }
}

/// What prevents an edit.
enum Obstacle {
    /// A decoded header.
    Decoded(HeaderId),
    /// Pushed ones.
    Inserted(Inserted),
}

/// The headers whose part goes out of the checksum behind them; the first obstacle, if there is one.
fn taken_out(
    program: &Program,
    flow: &Flow,
    turn: &Turn,
    there: &Perhaps,
    known: &Decoded,
) -> Result<Vec<HeaderId>, Obstacle> {
    let leads = |from: HeaderId, to: HeaderId| {
        governed(program, program.layout(from)).contains(&program.headers[to.0].layout.0)
    };
    let governs = |header: HeaderId| !governed(program, program.layout(header)).is_empty();
    let around = |header: HeaderId| {
        let before =
            there.behind.iter().filter(move |(_, behind)| *behind == header).map(|(first, _)| *first);
        before.chain(there.twice.contains(&header).then_some(header))
    };
    let covers =
        |carrier: &Carrier| governed_by(program, &program.layouts[carrier.layout.0], carrier.announces);
    match turn.kind {
        TurnKind::Popped(header) if program.layout(header).pseudo.is_some() => {
            // What follows would be behind an outer header then, which may come to lead to it.
            let last = |outer: HeaderId| {
                let decoders =
                    (0..program.stages.len()).filter(|index| program.stages[*index].header == Some(header));
                let mut last = decoders.flat_map(|index| &flow.last[index]);
                last.any(|last| *last == outer || leads(outer, *last))
            };
            let around_it = |inserted: &&Inserted| {
                let covered =
                    |carrier| matches!(carrier, Lead::Carrier(carrier) if !covers(&carrier).is_empty());
                covered(inserted.lead) && !inserted.stays_with(header, known)
            };
            if let Some(inserted) = there.inserted.iter().find(around_it) {
                return Err(Obstacle::Inserted(*inserted));
            }
            match around(header).find(|outer| governs(*outer) && last(*outer)) {
                Some(outer) => Err(Obstacle::Decoded(outer)),
                None => Ok(if governs(header) { vec![header] } else { Vec::new() }),
            }
        }
        TurnKind::Popped(_) => Ok(Vec::new()),
        TurnKind::Before(header) => {
            let outer: Vec<HeaderId> = around(header).filter(|outer| leads(*outer, header)).collect();
            let lost = |inserted: &&Inserted| {
                let between = || outer.iter().any(|outer| inserted.perhaps_behind(*outer, there));
                !inserted.stays_with(header, known)
                    && match inserted.lead {
                        Lead::Carrier(carrier) => {
                            covers(&carrier).contains(&program.headers[header.0].layout.0)
                        }
                        Lead::Passed if inserted.announced => false,
                        Lead::Passed | Lead::End => between(),
                    }
            };
            if let Some(inserted) = there.inserted.iter().find(lost) {
                return Err(Obstacle::Inserted(*inserted));
            }
            let sure =
                |outer: &HeaderId| known.behind.contains(&(*outer, header)) && !there.twice.contains(outer);
            match outer.iter().find(|outer| !sure(outer)) {
                Some(outer) => Err(Obstacle::Decoded(*outer)),
                None => Ok(outer),
            }
        }
        TurnKind::Pushed { beside: None, .. } => Ok(Vec::new()),
        TurnKind::Pushed { beside: Some(beside), announced } => {
            if let Some(outer) = around(beside).find(|outer| leads(*outer, beside)) {
                return Err(Obstacle::Decoded(outer));
            }
            match (governs(beside), announced) {
                (true, true) => Ok(vec![beside]),
                (true, false) => Err(Obstacle::Decoded(beside)),
                (false, _) => Ok(Vec::new()),
            }
        }
    }
}

fn refused(program: &Program, obstacle: Obstacle, span: Span) -> Diagnostic {
    let header = match obstacle {
        Obstacle::Decoded(header) => header,
        Obstacle::Inserted(inserted) => {
            let why = match inserted.lead {
                Lead::Carrier(_) => {
                    "a checksum behind covers its addresses, and it has no name by which these could be found"
                }
                Lead::Passed | Lead::End => {
                    "it is between a checksum and the header whose addresses that covers"
                }
            };
            return Diagnostic::error(
                "E0436",
                "the checksum behind a pushed header could not be kept right",
                span,
                "what goes out here may be the pushed header, or a header behind it",
            )
            .place(inserted.span, why)
            .help("remove headers first and push then, or let no way lead from the push to here");
        }
    };
    let name = &program.headers[header.0].name;
    Diagnostic::error(
        "E0436",
        format!("the checksum of what follows `{name}` could not be kept right"),
        span,
        format!("this comes between `{name}` and a checksum that covers its addresses, or perhaps does"),
    )
    .place(program.layout(header).span, "its `pseudo` says what such a checksum covers")
    .help("take that header out first (`pop`), on every way, and put the new one in then; or put the packet into new headers (`encapsulate { … }`)")
}
