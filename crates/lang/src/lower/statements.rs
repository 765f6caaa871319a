//! Statements: control flow, verdicts, transfers and walks.

use super::build::{Exit, to};
use super::env::{Range, Variable};
use super::expressions::Shape;
use super::seals::Breaks;
use super::{Lowering, Walk};
use crate::check::hir::{Block, Expr, HeaderId, StageId, Stmt, StmtKind};
use crate::diagnostic::Diagnostic;
use crate::flow::facts::{Read, Subject};
use crate::limits::{LONGEST_PACKET, MOST_VALUES};
use ir::source::Span;
use ir::{BlockId, CompareOp, Op, Target, Terminator};

impl Lowering<'_> {
    pub(crate) fn block(&mut self, block: &Block) {
        for statement in &block.statements {
            if self.code.current.is_none() {
                return;
            }
            self.statement(statement);
        }
    }

    // Longer than 80 lines: one flat match over all statements.
    fn statement(&mut self, statement: &Stmt) {
        let span = statement.span;
        self.scope.at = span;
        if self.code.function.widths.len() > MOST_VALUES {
            self.report(
                Diagnostic::error("E0233", "the program is too large", span, "no room is left for this")
                    .help("loops and calls of functions are put in place: make them fewer or smaller"),
            );
            self.code.current = None;
            return;
        }
        match &statement.kind {
            StmtKind::Assign(local, value) => {
                let (value, range) = self.value(value);
                self.code.env.bind_local(*local, value, range);
            }
            StmtKind::Set(header, field, value) => self.set(*header, *field, value, span),
            StmtKind::If(condition, yes, no) => {
                let ways = self.condition(condition);
                self.meet_ways(ways, span, |lowering, holds| lowering.block(if holds { yes } else { no }));
            }
            StmtKind::Match(value, arms) => {
                let shape = self.shape(value);
                let mut exits = Vec::new();
                self.match_arms(&shape, arms, span, |lowering, body| {
                    lowering.block(body);
                    exits.extend(lowering.code.suspend());
                });
                self.join(exits, span);
            }
            StmtKind::For(local, from, to, body) => {
                for round in *from..*to {
                    if self.code.current.is_none() {
                        return;
                    }
                    let value = self.code.constant(round, 32, span);
                    self.code.env.bind_local(*local, value, Range::one(round));
                    self.block(body);
                }
            }
            StmtKind::Walk(header, view, body) => self.walk(*header, view, body, span),
            StmtKind::Break => {
                self.write_checksums(span);
                let exit = self.code.suspend();
                if let Some(walk) = self.scope.walks.last_mut() {
                    walk.breaks.extend(exit);
                }
            }
            StmtKind::Extract(header, fields) => {
                if self.decode == super::Decode::Declared {
                    self.keep_fields(*header, fields, span);
                }
            }
            StmtKind::Learn(writes, otherwise) => self.learn(writes, otherwise.as_ref(), span),
            StmtKind::Place(placement, otherwise) => self.place_in(placement, otherwise.as_ref(), span),
            StmtKind::Displace(placement) => self.displace(placement, span),
            StmtKind::SetRegister(register, index, value) => {
                self.write_register(*register, index.as_ref(), value, span);
            }
            StmtKind::Give(pool, item) => {
                let item = self.values(item);
                self.code.effect(Op::Give { pool: *pool, item }, span);
            }
            StmtKind::Remove(table, keys) => {
                let key = self.values(keys);
                self.code.effect(Op::Remove { table: table.0 as u32, key }, span);
            }
            StmtKind::SetDefault(table, columns) => {
                let value = self.values(columns);
                self.code.effect(Op::SetDefault { table: table.0 as u32, value }, span);
            }
            StmtKind::ClearDefault(table) => self.code.effect(Op::ClearDefault(table.0 as u32), span),
            StmtKind::Count(counter, index) => self.count(*counter, index.as_ref(), span),
            StmtKind::Raise(delay, event, args) => {
                let args = self.values(args);
                let delay = delay.as_ref().map(|delay| self.value(delay).0);
                self.code.effect(Op::Raise { event: *event as u32, args, delay }, span);
            }
            StmtKind::Emit(made, port) => self.make_packet(made, port, span),
            StmtKind::Copy(port) => {
                let (port, _) = self.value(port);
                self.write_checksums(span);
                self.code.effect(Op::Copy(port), span);
            }
            StmtKind::Edit(edit) => self.edit(edit, span),
            StmtKind::Goto(stage, args) => self.goto(*stage, args, span),
            StmtKind::Send(port) => {
                let (port, _) = self.value(port);
                self.write_checksums(span);
                self.code.terminate(Terminator::Send(port), span);
            }
            StmtKind::Flood => {
                self.write_checksums(span);
                self.code.terminate(Terminator::Flood, span);
            }
            StmtKind::Multicast(ports) => {
                self.write_checksums(span);
                let number = self.port_set(ports);
                self.code.terminate(Terminator::Multicast(number), span);
            }
            StmtKind::MulticastGroup(group, index) => self.send_to_members(*group, index.as_ref(), span),
            StmtKind::Drop(name) => {
                let reason = self.named_reason(name, span);
                self.code.terminate(Terminator::Drop(reason), span);
            }
            StmtKind::Punt(name) => {
                self.write_checksums(span);
                let reason = self.named_reason(name, span);
                self.code.terminate(Terminator::Punt(reason), span);
            }
            StmtKind::Recirculate(budget) => self.recirculate(*budget, span),
        }
    }

    fn set(&mut self, header: HeaderId, field: usize, value: &Expr, span: Span) {
        let (value, range) = self.value(value);
        let described = &self.source.layout(header).fields[field];
        if let Some((low, high)) = described.constraint
            && (range.low < low || range.high > high)
        {
            let wanted = crate::check::packets::range_in_words(low, high);
            self.report(
                Diagnostic::error(
                    "E0312",
                    format!("`{}` must stay {wanted}", described.name),
                    span,
                    format!("this may be from {} to {}", range.low, range.high),
                )
                .place(described.span, "its constraint"),
            );
        }
        self.change_field(header, field, value, range, span);
    }

    /// Writes a field and notes what that changes in checksums.
    pub(super) fn change_field(
        &mut self,
        header: HeaderId,
        field: usize,
        value: ir::Value,
        range: Range,
        span: Span,
    ) {
        self.break_seal(Some(header), Breaks::Bytes, span);
        let sums = self.sums_of(header, field, span);
        if sums.iter().any(|sum| matches!(sum, Variable::Behind(_))) {
            self.break_seal(Some(header), Breaks::Addresses, span);
        }
        // A noted checksum is found by the selectors as they are before this write. Other fields that lead to
        // it are never written (E0311).
        let layout = self.source.layout(header);
        let selects = layout.next.as_ref().is_some_and(|next| next.selector == field);
        if selects || layout.checksum.is_some_and(|checksum| checksum.field == field) {
            self.write_checksums(span);
        }
        let before = (!sums.is_empty()).then(|| self.load_field(header, field, span).0);
        if self.scope.walks.len() > 1 {
            self.write_through(header);
        }
        self.store_field(header, field, value, span);
        self.code.env.forget(Subject::Field(header, field));
        self.code.env.ranges.insert(Subject::Field(header, field), range);
        if let Some(before) = before {
            self.note_change(&sums, header, field, before, value, span);
        }
    }

    /// Checksums were written that headers of walks may share bytes with.
    pub(crate) fn forget_walked(&mut self, header: HeaderId) {
        for other in (0..self.source.headers.len()).map(HeaderId) {
            if other != header && !self.source.is_decoded(other) {
                self.code.env.forget_header(other);
                self.code.env.overwritten.insert(other);
            }
        }
    }

    /// Headers of walks may share bytes with each other, so nothing known of the others outlives a write to
    /// one of them.
    fn write_through(&mut self, header: HeaderId) {
        if !self.source.is_decoded(header) {
            self.forget_walked(header);
        }
    }

    fn count(&mut self, counter: u32, index: Option<&Expr>, span: Span) {
        let declared = &self.source.counters[counter as usize];
        let index = index.map(|index| self.proven_cell("counter", &declared.name, declared.size, index));
        self.code.effect(Op::Count { counter, index }, span);
    }

    fn goto(&mut self, stage: StageId, args: &[Expr], span: Span) {
        let mut ranges = Vec::new();
        let mut values = Vec::new();
        for arg in args {
            let (value, range) = self.value(arg);
            values.push(value);
            ranges.push(range);
        }
        self.write_checksums(span);
        self.carry_seal(stage);
        if self.source.stages[stage.0].header.is_some() {
            self.check_follows(self.source.stages[stage.0].name.clone(), span);
        } else {
            self.pass_on_unsettled(stage);
        }
        let mut known: std::collections::BTreeMap<Subject, Range> = self
            .code
            .env
            .ranges
            .iter()
            // Fields come before locals.
            .take_while(|(subject, _)| matches!(subject, Subject::Field(..)))
            .map(|(subject, range)| (*subject, *range))
            .collect();
        for (local, range) in self.source.stages[stage.0].params.iter().zip(ranges) {
            known.insert(Subject::Local(*local), range);
        }
        match self.entries.ranges.get_mut(&stage) {
            None => {
                self.entries.ranges.insert(stage, known);
            }
            Some(before) => {
                before.retain(|subject, _| known.contains_key(subject));
                for (subject, range) in before.iter_mut() {
                    *range = range.hull(known[subject]);
                }
            }
        }
        self.transfer(stage, &values, span);
    }

    fn recirculate(&mut self, budget: u32, span: Span) {
        let Some(start) = self.source.start else { return };
        let slot = self.hop_slot.unwrap_or_else(|| self.new_slot());
        self.hop_slot = Some(slot);
        let reason = self.reason("too_many_rounds", "the packet used up the times it may start again");
        self.write_checksums(span);
        let zero = self.code.constant(0, 32, span);
        self.code.env.values.insert(Variable::Place(Read::Cursor), zero);
        self.code.env.values.retain(|variable| !matches!(variable, Variable::Place(Read::Perhaps(_))));
        let again: Target = self.stage_target(start, &[]);
        let out: BlockId = self.code.drop_block(reason, span);
        self.code.terminate(Terminator::Fuel { slot, cap: budget, ok: again, out: to(out) }, span);
    }

    /// Walks headers in a view: a loop whose head is passed once a header.
    fn walk(&mut self, header: HeaderId, view: &Expr, body: &Block, span: Span) {
        if matches!(view.kind, crate::check::hir::ExprKind::Payload) {
            self.check_follows(format!("{} in payload", self.source.headers[header.0].name), view.span);
        }
        self.write_checksums(span);
        let Shape::View { start, end } = self.shape(view) else { return };
        let layout = self.source.layout(header);
        let smallest = layout.smallest.max(1);
        let name = layout.name.clone();
        self.forget_changed(body);
        // Everything that changes from round to round becomes a parameter of the loop's head.
        let position = Variable::Place(Read::Group(header, usize::MAX));
        self.code.env.values.insert(position, start);
        let changing: Vec<Variable> = std::iter::once(position)
            .chain(
                assigned(body, self.source)
                    .into_iter()
                    .map(Variable::Local)
                    .filter(|local| self.code.env.values.contains_key(local)),
            )
            .collect();
        let head = self.code.new_block(span);
        let args = changing.iter().map(|variable| self.code.env.values[variable]).collect();
        let mut env = self.code.env.clone();
        self.code.terminate(Terminator::Jump(Target { block: head, args }), span);
        for variable in &changing {
            let width = self.code.function.width(env.values[variable]);
            let param = self.code.block_param(head, width);
            env.values.insert(*variable, param);
        }
        self.code.resume((head, env));
        let reason =
            self.reason(&format!("too_deep({name})"), "the walk over headers has more rounds than bytes");
        self.use_fuel(LONGEST_PACKET / smallest + 1, reason, span);
        let at = self.code.env.values[&position];
        let more = self.code.emit(1, Op::Compare(CompareOp::Lt, at, end), span);
        let (inside, behind) = self.code.fork(more, span);
        self.scope.walks.push(Walk { header, inside: view.header(), breaks: Vec::new() });
        if let Some(exit) = inside {
            self.code.resume(exit);
            let next = self.decode_header(header, at, Some(end), span);
            self.block(body);
            self.write_checksums(span);
            if self.code.current.is_some() {
                self.code.env.values.insert(position, next);
                let args = changing.iter().map(|variable| self.code.env.values[variable]).collect();
                self.code.terminate(Terminator::Jump(Target { block: head, args }), span);
            }
        }
        let walk = self.scope.walks.pop();
        let exits: Vec<Exit> =
            behind.into_iter().chain(walk.into_iter().flat_map(|walk| walk.breaks)).collect();
        self.join(exits, span);
        self.code.env.forget_header(header);
        self.code.env.values.remove(&position);
    }

    /// Before a loop: what its body changes is no longer known.
    fn forget_changed(&mut self, body: &Block) {
        for local in assigned(body, self.source) {
            self.code.env.forget(Subject::Local(local));
        }
        for (header, field) in written(body) {
            self.code.env.forget_field(header, field);
            self.forget_checksums(header);
            if !self.scope.walks.is_empty() {
                self.write_through(header);
            }
        }
    }
}

/// Mutable locals that a block assigns.
fn assigned(block: &Block, program: &crate::check::hir::Program) -> Vec<crate::check::hir::LocalId> {
    let mut found = Vec::new();
    block.each_statement(&mut |statement| {
        if let StmtKind::Assign(local, _) = &statement.kind
            && program.locals[local.0].mutable
            && !found.contains(local)
        {
            found.push(*local);
        }
    });
    found
}

/// Fields that a block writes.
fn written(block: &Block) -> Vec<(HeaderId, usize)> {
    let mut found = Vec::new();
    block.each_statement(&mut |statement| {
        if let StmtKind::Set(header, field, _) = &statement.kind {
            found.push((*header, *field));
        }
    });
    found
}
