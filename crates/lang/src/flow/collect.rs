//! What the body of a stage does that matters between stages: transfers, reads of headers, and under which
//! conditions.

use super::covering;
use super::facts::{
    Argument, Condition, CoveredPlace, CoveredWrite, EditPlace, Facts, Known, Read, Subject, Transfer, Turn,
    TurnKind,
};
use super::gone::{Gone, Inserted, Removal, forget_place};
use crate::ast::BinaryOp;
use crate::check::hir::{
    self, Arm, Block, Edit, Expr, ExprKind, Group, HeaderId, Lead, LocalId, Made, Pattern, Program, Stage,
    StmtKind, TailFrom,
};
use ir::source::Span;
use std::collections::BTreeSet;

/// The facts of a stage.
pub fn stage(program: &Program, stage: &Stage) -> Facts {
    let mut collector = Collector {
        program,
        facts: Facts::default(),
        known: None,
        assigned: Vec::new(),
        walked: Vec::new(),
        gone: Gone::default(),
    };
    collector.block(&stage.body);
    let own = stage.header;
    collector.facts.reads.retain(|(read, _)| read.header().is_none_or(|header| Some(header) != own));
    if own.is_some() {
        collector.facts.reads.retain(|(read, _)| *read != Read::Cursor);
    }
    collector.facts
}

/// Events that a handler raises without delay.
pub fn raises_at_once(block: &Block) -> Vec<(usize, Span)> {
    let mut found = Vec::new();
    block.each_statement(&mut |statement| {
        if let StmtKind::Raise(delay, event, _) = &statement.kind {
            // A delay that is computed may be zero.
            let delayed = delay.as_ref().is_some_and(|delay| matches!(delay.kind, ExprKind::Const(1..)));
            if !delayed {
                found.push((*event, statement.span));
            }
        }
    });
    found
}

/// Notes what an edit does.
fn note(edit: &Edit, span: Span, gone: &mut Gone) {
    match edit {
        Edit::Pop(header) => {
            forget_place(&mut gone.inserted, *header);
            gone.remove(Removal::Popped(*header), span);
        }
        Edit::Decapsulate(header) => {
            gone.inserted.retain(|inserted| !inserted.certainly_before(*header));
            gone.remove(Removal::Before(*header), span);
        }
        Edit::Push { made, place, announces } => {
            let (place, lead, announced) = (Some(*place), made.lead, announces.is_some());
            gone.inserted.insert(Inserted { span, place, lead, announced });
        }
        Edit::Fragment(..) => gone.fragmented = Some(span),
        Edit::Truncate(_) => {}
    }
}

/// Everything that the edits of a block may have done where a packet leaves it at its end.
fn taken_out(block: &Block) -> Gone {
    let mut gone = Gone::default();
    if block.ends {
        return gone;
    }
    for statement in &block.statements {
        match &statement.kind {
            StmtKind::Edit(edit) => note(edit, statement.span, &mut gone),
            inner => inner.blocks().for_each(|block| gone = gone.or(&taken_out(block))),
        }
    }
    gone
}

struct Collector<'p> {
    program: &'p Program,
    facts: Facts,
    /// What is known before the statement: the last of [`Facts::conditions`].
    known: Option<usize>,
    /// Locals that were assigned so far.
    assigned: Vec<LocalId>,
    /// Headers of the walks that enclose the statement, each with the header whose bytes are walked.
    walked: Vec<(HeaderId, Option<HeaderId>)>,
    /// What may have been taken out of the packet before the statement.
    gone: Gone,
}

impl Collector<'_> {
    fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            self.statement(&statement.kind, statement.span);
        }
    }

    fn learn(&mut self, what: Result<Condition, LocalId>) {
        self.facts.conditions.push(Known { what, before: self.known });
        self.known = Some(self.facts.conditions.len() - 1);
    }

    fn under(&mut self, condition: Condition, block: &Block) {
        let (known, assigned) = (self.known, self.assigned.len());
        self.learn(Ok(condition));
        self.block(block);
        self.known = known;
        // Behind the block, too, what was known of a local is no longer about it.
        let assigned: BTreeSet<LocalId> = self.assigned[assigned..].iter().copied().collect();
        assigned.into_iter().for_each(|local| self.learn(Err(local)));
    }

    /// Blocks of which one is done, each under its condition; behind them, what is gone on one of the ways on
    /// is gone.
    fn ways(&mut self, ways: Vec<(Condition, &Block)>, also_none: bool) {
        let before = self.gone.clone();
        let mut after: Option<Gone> = also_none.then(|| before.clone());
        for (condition, block) in ways {
            self.gone = before.clone();
            self.under(condition, block);
            if !block.ends {
                after = Some(after.map_or_else(|| self.gone.clone(), |after| after.or(&self.gone)));
            }
        }
        self.gone = after.unwrap_or_default();
    }

    fn statement(&mut self, statement: &StmtKind, span: Span) {
        if let StmtKind::Emit(made, port) = statement {
            return self.emit(made, port, span);
        }
        statement.expressions().into_iter().for_each(|value| self.expr(value));
        match statement {
            StmtKind::Assign(local, _) => {
                self.assigned.push(*local);
                self.learn(Err(*local));
            }
            StmtKind::Set(header, field, _) => {
                self.field(*header, *field, span);
                self.write(*header, *field, span);
            }
            StmtKind::If(condition, yes, no) => {
                self.ways(vec![(holds(condition, true), yes), (holds(condition, false), no)], false);
                // Behind an `if` one of whose sides ends, the other side's condition holds.
                if yes.ends && !no.ends {
                    self.learn(Ok(holds(condition, false)));
                } else if no.ends && !yes.ends {
                    self.learn(Ok(holds(condition, true)));
                }
            }
            StmtKind::Match(value, arms) => {
                let conditions = arm_conditions(value, arms);
                self.ways(conditions.into_iter().zip(arms.iter().map(|arm| &arm.body)).collect(), false);
                if arms.iter().any(|arm| arm.body.ends) {
                    self.learn(Ok(Condition::Other));
                }
            }
            StmtKind::For(_, _, _, body) => {
                // A round comes behind what the rounds before took out.
                let certain = self.gone.certain.clone();
                self.gone = Gone { certain: certain.clone(), ..self.gone.or(&taken_out(body)) };
                self.under(Condition::Other, body);
                self.gone.certain = certain;
            }
            StmtKind::Walk(header, view, body) => {
                self.walked.push((*header, view.header()));
                self.under(Condition::Other, body);
                self.walked.pop();
            }
            StmtKind::Extract(header, fields) => {
                fields.iter().for_each(|&field| self.field(*header, field, span));
            }
            StmtKind::Learn(_, Some(otherwise)) | StmtKind::Place(_, Some(otherwise)) => {
                self.ways(vec![(Condition::Other, otherwise)], true);
            }
            StmtKind::Goto(to, args) => self.facts.transfers.push(Transfer {
                to: *to,
                span,
                conditions: self.known,
                args: args.iter().map(argument).collect(),
                gone: self.gone.clone(),
            }),
            StmtKind::Edit(edit) => self.edit(edit, span),
            StmtKind::MulticastGroup(..) | StmtKind::Recirculate(_) => {
                self.facts.resizes.push((span, self.gone.fragmented));
            }
            _ => {}
        }
        // Behind blocks that some packets leave for good and others do not, more holds than can be said here.
        if statement.blocks().any(|block| !block.ends && block.leaves()) {
            self.learn(Ok(Condition::Other));
        }
    }

    /// Notes that a field is written.
    fn write(&mut self, header: HeaderId, field: usize, span: Span) {
        self.facts.written.push((header, field));
        let place = CoveredPlace::of(header, self.walked.iter().copied());
        self.facts.writes.push(CoveredWrite { header, place, span });
    }

    /// A packet is made: its fields, the end of the received packet, the port.
    fn emit(&mut self, made: &Made, port: &Expr, span: Span) {
        made.holes.iter().for_each(|field| self.expr(&field.value));
        if let Some(tail) = &made.tail {
            match tail.from {
                TailFrom::Payload => self.read(Read::Cursor, span),
                TailFrom::Header(header) => self.read(Read::Group(header, 0), span),
                TailFrom::Packet => {}
            }
            tail.take.iter().for_each(|take| self.expr(take));
        }
        self.expr(port);
    }

    fn edit(&mut self, edit: &Edit, span: Span) {
        match edit {
            Edit::Push { place, announces, .. } => {
                match place {
                    hir::Place::Start => {}
                    hir::Place::Before(header) => self.read(Read::Group(*header, 0), span),
                    hir::Place::After(header) => self.whole(*header, span),
                }
                if let Some((header, field, _)) = announces {
                    self.field(*header, *field, span);
                    self.write(*header, *field, span);
                }
            }
            Edit::Pop(header) => self.whole(*header, span),
            Edit::Decapsulate(header) | Edit::Fragment(header, _) => {
                self.read(Read::Group(*header, 0), span);
            }
            Edit::Truncate(_) => {}
        }
        let place = match edit {
            Edit::Push { place: hir::Place::Before(header), .. } | Edit::Pop(header) => {
                Some((*header, false, false))
            }
            Edit::Push { place: hir::Place::After(header), .. } => Some((*header, true, false)),
            Edit::Fragment(header, _) => Some((*header, false, true)),
            Edit::Push { place: hir::Place::Start, .. } | Edit::Decapsulate(_) | Edit::Truncate(_) => None,
        };
        let gone = self.gone.clone();
        let turn = match edit {
            Edit::Pop(header) => Some(TurnKind::Popped(*header)),
            Edit::Decapsulate(header) => Some(TurnKind::Before(*header)),
            Edit::Push { made, place, announces } if matches!(made.lead, Lead::Carrier(_)) => {
                let beside = match place {
                    hir::Place::Start => None,
                    hir::Place::Before(header) | hir::Place::After(header) => Some(*header),
                };
                Some(TurnKind::Pushed { beside, announced: announces.is_some() })
            }
            _ => None,
        };
        self.facts.turns.extend(turn.map(|kind| Turn { kind, span, gone: gone.clone() }));
        let place = place.map(|(header, behind, cut)| EditPlace { header, behind, cut, span, gone });
        self.facts.places.extend(place);
        self.facts.edits = true;
        self.facts.resizes.push((span, self.gone.fragmented));
        note(edit, span, &mut self.gone);
    }

    /// Reads where a header begins and ends.
    fn whole(&mut self, header: HeaderId, span: Span) {
        let layout = self.program.layout(header);
        self.read(Read::Group(header, 0), span);
        let Some(last) = layout.groups.len().checked_sub(1) else { return };
        self.read(Read::Group(header, last), span);
        if !matches!(layout.groups[last], Group::Fixed { .. }) {
            self.read(Read::Length(header, last), span);
        }
    }

    fn read(&mut self, read: Read, span: Span) {
        if read.header().is_some_and(|header| self.walked.iter().any(|(walked, _)| *walked == header)) {
            return;
        }
        if let Some(header) = read.header()
            && !self.gone.is_nothing()
        {
            self.facts.late_reads.push((header, span, self.gone.clone()));
        }
        self.facts.add_read(read, span);
    }

    fn field(&mut self, header: HeaderId, field: usize, span: Span) {
        let layout = self.program.layout(header);
        let group = layout.fields[field].group;
        self.read(Read::Group(header, group), span);
        match layout.groups.get(group) {
            Some(Group::Variable { .. }) => self.read(Read::Length(header, group), span),
            Some(Group::Conditional { .. }) => {
                self.read(Read::Present(header, group), span);
                self.read(Read::Length(header, group), span);
            }
            _ => {}
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Field(header, field) => self.field(*header, *field, expr.span),
            ExprKind::Payload => self.read(Read::Cursor, expr.span),
            ExprKind::FromHost => self.facts.asks_host = true,
            ExprKind::Valid(header) => {
                self.read(Read::Group(*header, 0), expr.span);
                for read in covering::places_of(self.program, *header) {
                    self.read(read, expr.span);
                }
            }
            _ => expr.children(&mut |child| self.expr(child)),
        }
    }
}

fn subject(expr: &Expr) -> Option<Subject> {
    match &expr.kind {
        ExprKind::Field(header, field) if expr.ty.width().is_some() => Some(Subject::Field(*header, *field)),
        ExprKind::Local(local) => Some(Subject::Local(*local)),
        ExprKind::Own(field) => Some(Subject::Own(*field)),
        _ => None,
    }
}

fn argument(expr: &Expr) -> Option<Argument> {
    match &expr.kind {
        ExprKind::Const(value) => Some(Argument::Constant(*value)),
        _ => subject(expr).map(Argument::Subject),
    }
}

/// The condition that a boolean expression is true (or false).
pub fn holds(expr: &Expr, truth: bool) -> Condition {
    match &expr.kind {
        ExprKind::Not(inner) => holds(inner, !truth),
        ExprKind::Compare(op, a, b) => {
            let (Some(subject), ExprKind::Const(value)) = (subject(a), &b.kind) else {
                return Condition::Other;
            };
            let (value, top) = (*value, a.ty.largest());
            let below = |end: Option<u128>| end.map(|end| (0, end)).into_iter().collect::<Vec<_>>();
            let above = |start: Option<u128>| {
                start.filter(|start| *start <= top).map(|start| (start, top)).into_iter().collect::<Vec<_>>()
            };
            let others = || [below(value.checked_sub(1)), above(value.checked_add(1))].concat();
            let ranges = match (op, truth) {
                (BinaryOp::Eq, true) | (BinaryOp::Ne, false) => vec![(value, value)],
                (BinaryOp::Eq, false) | (BinaryOp::Ne, true) => others(),
                (BinaryOp::Lt, true) | (BinaryOp::Ge, false) => below(value.checked_sub(1)),
                (BinaryOp::Le, true) | (BinaryOp::Gt, false) => below(Some(value)),
                (BinaryOp::Gt, true) | (BinaryOp::Le, false) => above(value.checked_add(1)),
                (BinaryOp::Ge, true) | (BinaryOp::Lt, false) => above(Some(value)),
                _ => return Condition::Other,
            };
            Condition::Within(subject, ranges)
        }
        _ => Condition::Other,
    }
}

/// For every arm the condition that it is taken: its pattern fits and no earlier one does. Behind a guard
/// more decides than ranges.
fn arm_conditions(value: &Expr, arms: &[Arm<Block>]) -> Vec<Condition> {
    let top = value.ty.largest();
    let mut open = subject(value).map(|subject| (subject, vec![(0, top)]));
    let mut conditions = Vec::new();
    for arm in arms {
        let fits = ranges(&arm.pattern, top).filter(|_| arm.guard.is_none());
        let (Some((subject, left)), Some(fits)) = (&mut open, fits) else {
            open = None;
            conditions.push(Condition::Other);
            continue;
        };
        let mut taken = Vec::new();
        for (from, to) in fits {
            let mut rest = Vec::new();
            for &(low, high) in left.iter() {
                if high < from || low > to {
                    rest.push((low, high));
                    continue;
                }
                taken.push((low.max(from), high.min(to)));
                rest.extend(from.checked_sub(1).filter(|end| *end >= low).map(|end| (low, end)));
                rest.extend(to.checked_add(1).filter(|start| *start <= high).map(|start| (start, high)));
            }
            *left = rest;
        }
        conditions.push(Condition::Within(*subject, taken));
    }
    conditions
}

fn ranges(pattern: &Pattern, top: u128) -> Option<Vec<(u128, u128)>> {
    match pattern {
        Pattern::Any | Pattern::Bind(_) => Some(vec![(0, top)]),
        Pattern::Range(from, to) => Some(vec![(*from, *to)]),
        Pattern::Either(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(ranges(part, top)?);
            }
            Some(all)
        }
        _ => None,
    }
}
