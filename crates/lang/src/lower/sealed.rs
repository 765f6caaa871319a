//! Refuses changes behind pushed headers that cover or count what follows them.
//!
//! The same holds where a header goes in unannounced behind one with a pseudo header: the checksum that
//! covers that pseudo header is no longer found.

use super::Lowering;
use super::seals::{Breaks, Sealed, sealed_by};
use crate::check::hir::{HeaderId, Made, Place, StageId};
use crate::diagnostic::Diagnostic;
use crate::flow;
use ir::source::Span;

impl Lowering<'_> {
    /// Headers were pushed: what follows them may be covered or counted from here on.
    pub(super) fn seal(&mut self, made: &Made, place: Place, announced: bool, span: Span) {
        let against = sealed_by(self.source, made, place, announced);
        if against.is_empty() {
            return;
        }
        let sealed = Sealed { span, place, against };
        self.code.env.sealed = Some(match self.code.env.sealed.take() {
            Some(before) => before.and(&sealed),
            None => sealed,
        });
    }

    /// Something changes in a header, between headers, or beside one; refused where a pushed header may not
    /// allow it.
    pub(super) fn break_seal(&mut self, header: Option<HeaderId>, what: Breaks, span: Span) {
        let Some(sealed) = self.code.env.sealed.clone() else { return };
        let before = header.is_some_and(|header| match sealed.place {
            Place::Start => false,
            Place::Before(place) => self.decoded_behind(header).contains(&place),
            Place::After(place) => header == place || self.decoded_behind(header).contains(&place),
        });
        if !sealed.against.contains(&what) || before && what != Breaks::Addresses {
            return;
        }
        let covers = sealed.against.contains(&Breaks::Bytes);
        let fault = match what {
            Breaks::Addresses => Diagnostic::error(
                "E0319",
                "the checksum that covers this may not be found",
                span,
                "a checksum behind the header covers this",
            )
            .place(sealed.span, "pushed here, unannounced, between the two")
            .help("change it before the push"),
            _ if covers => Diagnostic::error(
                "E0319",
                "the checksum of a pushed header may cover this",
                span,
                "changed behind the push",
            )
            .place(sealed.span, "pushed here, with a checksum over all that follows")
            .help("change it before the push; or give the pushed header no checksum, where 0 says so: `udp(check 0)`"),
            _ => Diagnostic::error(
                "E0436",
                "the length of a pushed header could not be kept right",
                span,
                "the size changes behind the push",
            )
            .place(sealed.span, "pushed here, with a length that counts all that follows")
            .help("change the size first, and push then"),
        };
        self.report(fault);
    }

    /// A way from here to a stage.
    pub(super) fn carry_seal(&mut self, stage: StageId) {
        let Some(sealed) = self.code.env.sealed.clone() else { return };
        let joined = match self.entries.sealed.remove(&stage) {
            Some(other) => other.and(&sealed),
            None => sealed,
        };
        self.entries.sealed.insert(stage, joined);
    }

    /// At the entry of a stage. On a cycle not every way in has been lowered yet.
    pub(super) fn sealed_at_entry(&mut self, stage: StageId) -> Option<Sealed> {
        let mut known = self.entries.sealed.remove(&stage);
        if self.flow.cyclic[stage.0] {
            for (from, against) in &self.entries.sealing {
                if flow::path(&self.flow.facts, *from, stage, |_| true).is_some() {
                    let span = self.source.stages[from.0].name_span;
                    let here = Sealed { span, place: Place::Start, against: against.clone() };
                    known = Some(known.map_or(here.clone(), |known| known.and(&here)));
                }
            }
        }
        // A header that is decoded again is another one.
        let again = self.source.stages[stage.0].header;
        known.map(|known| match known.place {
            Place::Before(header) | Place::After(header) if Some(header) == again => {
                Sealed { place: Place::Start, ..known }
            }
            _ => known,
        })
    }
}
