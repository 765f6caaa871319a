//! Behind a header whose `next` has a condition, something is decoded only where the condition is known to
//! hold.
//!
//! Every transfer says of which headers the condition is not known there. A stage that decodes no header
//! itself takes over what the transfers to it say; on a cycle not all of them have been lowered when it is.
//! So a fault in it waits until all stages are lowered, and is reported if a header whose condition is not
//! known comes that far.

use super::Lowering;
use crate::check::hir::{Expr, ExprKind, HeaderId, StageId};
use crate::diagnostic::{Diagnostic, DiagnosticKind, PacketWitness};
use crate::flow::collect::holds;
use crate::flow::facts::{Condition, Subject};
use crate::flow::{self, witness::packet_where};
use ir::source::Span;
use std::collections::BTreeSet;

/// A stage and a header that may have been decoded last when it is entered, while the condition of the
/// header's `next` is not known to hold.
type Unsettled = (StageId, HeaderId);

/// What may follow what, as far as it is known.
#[derive(Default)]
pub(crate) struct Follows {
    unsettled: BTreeSet<Unsettled>,
    /// If the first is, so is the second.
    passed_on: BTreeSet<(Unsettled, Unsettled)>,
    /// Faults if it is.
    suspected: Vec<(Unsettled, Diagnostic)>,
}

impl Lowering<'_> {
    /// At a transfer to a stage that decodes no header itself.
    pub(super) fn pass_on_unsettled(&mut self, to: StageId) {
        let Some(from) = self.scope.stage else { return };
        let own = self.source.stages[from.0].header.is_some();
        for header in self.unsettled_here() {
            if own {
                self.follows.unsettled.insert((to, header));
            } else {
                self.follows.passed_on.insert(((from, header), (to, header)));
            }
        }
    }

    /// Where something is decoded behind what came last.
    pub(super) fn check_follows(&mut self, what: String, span: Span) {
        let Some(stage) = self.scope.stage else { return };
        let own = self.source.stages[stage.0].header.is_some();
        for header in self.unsettled_here() {
            let layout = self.source.layout(header);
            let Some(next) = &layout.next else { continue };
            let Some(when) = &next.when else { continue };
            let condition = self.sources.text(when.span).to_string();
            let name = self.source.headers[header.0].name.clone();
            let diagnostic = Diagnostic::error(
                "E0413",
                format!("`{what}` may be reached although nothing follows the {} header", layout.name),
                span,
                format!("{condition} of `{name}` is not certain here"),
            )
            .place(next.span, "what follows depends on this")
            .help(if followed(when) {
                format!("go on only where it holds: `if {} {{ … }}`", qualified(&condition, when, &name))
            } else {
                "only comparisons of whole fields with numbers can be shown to hold: let the layout say it so"
                    .to_string()
            });
            let witness = self.unsettled_packet(header, when, span);
            let diagnostic = Diagnostic { witness, kind: DiagnosticKind::Path, ..diagnostic };
            if own {
                self.report(diagnostic);
            } else {
                self.follows.suspected.push(((stage, header), diagnostic));
            }
        }
    }

    /// Reports what was suspected rightly; all stages have been lowered.
    pub(super) fn report_unsettled(&mut self) {
        let Follows { mut unsettled, passed_on, suspected } = std::mem::take(&mut self.follows);
        let mut new: Vec<Unsettled> = unsettled.iter().copied().collect();
        while let Some(from) = new.pop() {
            let further =
                passed_on.range((from, (StageId(0), HeaderId(0)))..).take_while(|(start, _)| *start == from);
            new.extend(further.map(|(_, to)| *to).filter(|to| unsettled.insert(*to)));
        }
        for (stage, diagnostic) in suspected {
            if unsettled.contains(&stage) {
                self.report(diagnostic);
            }
        }
    }

    /// Headers that may have been decoded last and whose `next` has a condition that is not known to hold
    /// here.
    fn unsettled_here(&self) -> Vec<HeaderId> {
        let Some(stage) = self.scope.stage else { return Vec::new() };
        let last = match self.source.stages[stage.0].header {
            Some(header) => vec![header],
            None => self.flow.last[stage.0].iter().copied().collect(),
        };
        let open = |header: &HeaderId| {
            let when = self.source.layout(*header).next.as_ref().and_then(|next| next.when.as_ref());
            when.is_some_and(|when| !self.certainly(when, *header))
        };
        last.into_iter().filter(open).collect()
    }

    /// A packet that comes to a transfer of this stage by way of a header although the condition of its
    /// `next` does not hold.
    fn unsettled_packet(&self, header: HeaderId, when: &Expr, span: Span) -> Option<PacketWitness> {
        let (stage, start) = (self.scope.stage?, self.source.start?);
        let Condition::Within(Subject::Own(field), ranges) = holds(when, false) else { return None };
        let decoder = StageId(self.source.stages.iter().position(|stage| stage.header == Some(header))?);
        let way = |from: StageId, to: StageId| {
            if from == to { Some(Vec::new()) } else { flow::path(&self.flow.facts, from, to, |_| true) }
        };
        let mut steps = way(start, decoder)?;
        steps.extend(way(decoder, stage)?);
        steps.extend(self.flow.facts[stage.0].transfers.iter().find(|step| step.span == span).cloned());
        packet_where(self.source, self.flow, start, &steps, &[((header, field), ranges)])
    }
}

/// The condition with the header's name before its fields, for advice.
fn qualified(condition: &str, when: &Expr, header: &str) -> String {
    fn fields(expr: &Expr, found: &mut BTreeSet<u32>) {
        if let ExprKind::Own(_) = expr.kind {
            found.insert(expr.span.start);
        }
        expr.children(&mut |child| fields(child, found));
    }
    let mut places = BTreeSet::new();
    fields(when, &mut places);
    let mut text = condition.to_string();
    // From the last to the first, so that places before stay where they are.
    for place in places.into_iter().rev() {
        let at = place.saturating_sub(when.span.start) as usize;
        if text.is_char_boundary(at) {
            text.insert_str(at, &format!("{header}."));
        }
    }
    text
}

/// Can ranges of fields show that the condition holds?
fn followed(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Not(inner) => followed(inner),
        ExprKind::Logic(_, a, b) => followed(a) && followed(b),
        ExprKind::Compare(_, a, b) => {
            [a, b].iter().all(|side| matches!(side.kind, ExprKind::Const(_) | ExprKind::Own(_)))
        }
        _ => false,
    }
}
