//! Pushed headers whose checksum covers what follows them: nothing behind may change any more, for they have no name and their place is not followed.

use super::env::Sealed;
use super::statements::each_statement;
use super::{Exit, Lowering};
use crate::check::hir::{Edit, HeaderId, Made, Place, Program, StageId, StmtKind};
use crate::diagnostic::Diagnostic;
use crate::flow;
use crate::source::Span;

/// The stages that push a header whose checksum covers what follows.
pub(super) fn sealing(program: &Program) -> Vec<StageId> {
    let seals = |index: &usize| {
        let mut seals = false;
        each_statement(&program.stages[*index].body, &mut |statement| {
            if let StmtKind::Edit(Edit::Push { made, .. }) = statement {
                seals |= covers_rest(made);
            }
        });
        seals
    };
    (0..program.stages.len()).filter(seals).map(StageId).collect()
}

fn covers_rest(made: &Made) -> bool {
    made.sums.iter().any(|sum| sum.end.is_none())
}

impl Lowering<'_> {
    /// Headers were pushed: what follows them may be covered from here on.
    pub(super) fn seal(&mut self, made: &Made, place: Place, span: Span) {
        if covers_rest(made) {
            let before = if let Place::After(header) = place { Some(header) } else { None };
            self.env.sealed.get_or_insert(Sealed { span, before });
        }
    }

    /// Something changes, in a header or between headers; refused where a pushed checksum may cover it.
    pub(super) fn break_seal(&mut self, header: Option<HeaderId>, span: Span) {
        let Some(sealed) = self.env.sealed else { return };
        if header.is_some() && header == sealed.before {
            return;
        }
        self.report(
            Diagnostic::error(
                "E0319",
                "the checksum of a pushed header may cover this",
                span,
                "changed behind the push",
            )
            .place(sealed.span, "pushed here, with a checksum over all that follows")
            .help("change it before the push; or give the pushed header no checksum, where 0 says so: `udp(check 0)`"),
        );
    }

    /// A way from here to a stage.
    pub(super) fn carry_seal(&mut self, stage: StageId) {
        if let Some(sealed) = self.env.sealed {
            self.entry_sealed.insert(stage, sealed);
        }
    }

    /// At the entry of a stage. On a cycle not every way in has been lowered yet.
    pub(super) fn sealed_at_entry(&mut self, stage: StageId) -> Option<Sealed> {
        let known = self.entry_sealed.remove(&stage);
        if known.is_some() || !self.flow.cyclic[stage.0] {
            return known;
        }
        let facts = &self.flow.facts;
        let from = self.sealing.iter().find(|from| flow::path(facts, **from, stage, |_| true).is_some())?;
        Some(Sealed { span: self.source.stages[from.0].name_span, before: None })
    }
}

/// What is sealed where ways meet.
pub(super) fn met(exits: &[Exit]) -> Option<Sealed> {
    let mut sealed = exits.iter().filter_map(|(_, env)| env.sealed);
    let first = sealed.next()?;
    let alike = sealed.all(|other| other.before == first.before);
    Some(Sealed { before: first.before.filter(|_| alike), ..first })
}
