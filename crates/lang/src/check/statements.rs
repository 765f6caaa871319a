//! Statements: blocks, verdicts, transfers, state. Knows for every block whether a path falls out of its end.

use super::hir::{self, Block, Expr, ExprKind, HeaderId, LocalId, Stmt, StmtKind, Write};
use super::meant::HeaderUse;
use super::types::Type;
use super::{Checker, Context, counted};
use crate::ast;
use crate::diagnostic::{Diagnostic, Findings};
use crate::limits::LARGEST_UNROLLED;
use ir::source::Span;

impl<'a> Checker<'a> {
    /// Checks statements in a scope of their own.
    pub(crate) fn block(&mut self, block: &'a ast::Block) -> Block {
        self.scope.enter();
        let mut statements = Vec::new();
        let mut ended: Option<Span> = None;
        let mut told = false;
        for statement in &block.statements {
            if let Some(end) = ended
                && !std::mem::replace(&mut told, true)
            {
                self.report(
                    Diagnostic::error(
                        "E0404",
                        "this is never reached",
                        statement.span,
                        "no packet comes here",
                    )
                    .place(end, "every packet leaves here"),
                );
            }
            let (kind, ends) = self.statement(statement);
            if let Some(kind) = kind {
                statements.push(Stmt { kind, span: statement.span });
            }
            if ends && ended.is_none() {
                ended = Some(statement.span);
            }
        }
        self.scope.leave();
        Block { statements, ends: ended.is_some(), span: block.span }
    }

    fn optional_block(&mut self, block: &'a Option<ast::Block>) -> Option<Block> {
        block.as_ref().map(|block| self.block(block))
    }

    pub(super) fn needs_packet(&mut self, what: &str, span: Span) {
        if self.scope.context != Context::Packet {
            self.report(
                Diagnostic::error(
                    "E0415",
                    "there is no packet in an event or periodic handler",
                    span,
                    format!("`{what}` needs a packet"),
                )
                .help("handlers run between packets; they change tables, raise events and emit packets"),
            );
        }
    }

    /// A span of time; a bare number is none.
    pub(super) fn time(&mut self, expr: &'a ast::Expr) -> Expr {
        self.diagnostics.check_unit(expr);
        self.typed(expr, &Type::Time)
    }

    /// The checked statement (`None` after an error) and whether no path goes on behind it.
    fn statement(&mut self, statement: &'a ast::Stmt) -> (Option<StmtKind>, bool) {
        let span = statement.span;
        use ast::StmtKind as Ast;
        let checked = match &statement.kind {
            Ast::Let(name, ty, value) => self.declare_local(name, ty.as_ref(), value, false),
            Ast::Var(name, ty, value) => self.declare_local(name, ty.as_ref(), value, true),
            Ast::Assign(name, value) => self.assign(name, value),
            Ast::Set(header, field, value) => self.set(header, field, value),
            Ast::SetRegister(name, index, value) => self.set_register(name, index.as_ref(), value),
            Ast::Give(name, parts) => self.give(name, parts, span),
            Ast::If(condition, yes, no) => {
                let condition = self.typed(condition, &Type::Bool);
                let yes = self.block(yes);
                let no = self.optional_block(no).unwrap_or_default();
                let ends = yes.ends && no.ends;
                return (Some(StmtKind::If(condition, yes, no)), ends);
            }
            Ast::Match(value, arms) => return self.match_statement(value, arms, span),
            Ast::For(name, from, to, body) => self.unrolled_loop(name, from, to, body, span),
            Ast::Walk { name, view, layout, body } => self.walk(name, view, layout, body),
            Ast::Break => {
                if self.scope.walk_depth == 0 {
                    self.error(
                        "E0417",
                        "there is nothing to leave here",
                        span,
                        "`break` leaves a walk over headers: `for … in … as … { }`",
                    );
                }
                return (Some(StmtKind::Break), self.scope.walk_depth > 0);
            }
            Ast::Extract(names) => self.extract(names, span),
            Ast::Learn(..)
            | Ast::Insert(..)
            | Ast::LearnTogether(..)
            | Ast::Remove(..)
            | Ast::SetDefault(..)
            | Ast::ClearDefault(..) => self.table_statement(&statement.kind, span),
            Ast::Count(name, index) => self.count(name, index.as_ref(), span),
            Ast::Raise(delay, name, args) => self.raise(delay.as_ref(), name, args, span),
            Ast::Emit(packet, port) => {
                let made = self.made_packet(packet);
                let port = self.port_value(port);
                made.map(|made| StmtKind::Emit(made, port))
            }
            Ast::Copy(port) => {
                self.needs_packet("copy", span);
                let port = self.port_value(port);
                Some(StmtKind::Copy(port))
            }
            Ast::Edit(edit) => self.edit(edit, span),
            verdict => return (self.verdict(verdict, span), true),
        };
        (checked, false)
    }

    fn match_statement(
        &mut self,
        value: &'a ast::Expr,
        arms: &'a [ast::Arm],
        span: Span,
    ) -> (Option<StmtKind>, bool) {
        let value = self.expression(value, None);
        if value.ty == Type::View {
            self.error(
                "E0216",
                "bytes cannot be matched",
                value.span,
                "match a field or the length of the bytes",
            );
        }
        let word = Span::new(span.file, span.start, span.start + 5);
        let checked = self.arms(&value.ty, arms, word, |checker, block| checker.block(block));
        let ends = !checked.is_empty() && checked.iter().all(|arm| arm.body.ends);
        (Some(StmtKind::Match(value, checked)), ends)
    }

    /// A statement that changes a table; `None` for every other.
    fn table_statement(&mut self, kind: &'a ast::StmtKind, span: Span) -> Option<StmtKind> {
        use ast::StmtKind as Ast;
        match kind {
            Ast::Insert(write, otherwise) if self.is_placed(&write.table.text) => {
                let placement =
                    self.placement(&write.table, &write.keys, write.priority.as_ref(), Some(write), span);
                if otherwise.is_none() {
                    self.diagnostics.refusal_unsaid(&write.table, write.span);
                }
                let otherwise = self.optional_block(otherwise);
                placement.map(|placement| StmtKind::Place(placement, otherwise))
            }
            Ast::Learn(write, otherwise) | Ast::Insert(write, otherwise) => {
                let checked = self.write(write);
                self.check_refusal(checked.as_ref(), write, otherwise.is_some(), write.span);
                let otherwise = self.optional_block(otherwise);
                checked.map(|write| StmtKind::Learn(vec![write], otherwise))
            }
            Ast::LearnTogether(writes, otherwise) => {
                self.diagnostics.check_apart(writes);
                let checked: Vec<Option<Write>> = writes.iter().map(|write| self.write(write)).collect();
                for (write, checked) in writes.iter().zip(&checked) {
                    self.check_refusal(checked.as_ref(), write, otherwise.is_some(), span);
                }
                let writes: Vec<Write> = checked.into_iter().flatten().collect();
                let otherwise = self.optional_block(otherwise);
                Some(StmtKind::Learn(writes, otherwise))
            }
            Ast::Remove(table, keys, priority) if self.is_placed(&table.text) => {
                self.placement(table, keys, priority.as_ref(), None, span).map(StmtKind::Displace)
            }
            Ast::Remove(table, keys, priority) => {
                let id = self.table_named(table)?;
                self.diagnostics.no_priority(&table.text, priority.as_ref());
                Some(StmtKind::Remove(id, self.keys(id, keys, span)))
            }
            Ast::SetDefault(table, value) => {
                let id = self.table_named(table)?;
                Some(StmtKind::SetDefault(id, self.value_columns(id, Some(value), value.span)))
            }
            Ast::ClearDefault(table) => self.table_named(table).map(StmtKind::ClearDefault),
            _ => None,
        }
    }

    /// A statement behind which no path goes on; `None` for every other.
    fn verdict(&mut self, kind: &'a ast::StmtKind, span: Span) -> Option<StmtKind> {
        use ast::StmtKind as Ast;
        let word = match kind {
            Ast::Goto(..) => "goto",
            Ast::Send(_) => "send",
            Ast::Flood => "flood",
            Ast::Multicast(_) | Ast::MulticastGroup(..) => "multicast",
            Ast::Drop(_) => "drop",
            Ast::Punt(_) => "punt",
            Ast::Recirculate(_) => "recirculate",
            Ast::Steer(_) => "steer",
            _ => return None,
        };
        self.needs_packet(word, span);
        if word != "goto" && (word == "steer") != self.steering {
            return self.wrong_end(word, span);
        }
        Some(match kind {
            Ast::Goto(name, args) => return self.goto(name, args, span),
            Ast::Send(port) => StmtKind::Send(self.port_value(port)),
            // The verdict of this program is the number that chooses the worker (`pipeline/steering.rs`).
            Ast::Steer(key) => StmtKind::Send(self.typed(key, &Type::Uint(16))),
            Ast::Multicast(ports) => StmtKind::Multicast(self.multicast_ports(ports, span)),
            Ast::MulticastGroup(name, index) => return self.multicast_group(name, index.as_ref(), span),
            Ast::Drop(reason) => StmtKind::Drop(self.reason_named(reason)),
            Ast::Punt(reason) => StmtKind::Punt(self.reason_named(reason)),
            Ast::Recirculate(hops) => {
                let times = "a packet may start again 1 to 64 times";
                StmtKind::Recirculate(self.number_within(hops, 1..=64, "E0419", times).unwrap_or(1))
            }
            _ => StmtKind::Flood,
        })
    }

    /// Reports `steer` where packets are processed, or a verdict where they are steered.
    fn wrong_end(&mut self, word: &str, span: Span) -> Option<StmtKind> {
        let (headline, help) = if self.steering {
            (
                format!("`{word}` cannot stand where packets are steered"),
                "each way ends with `steer` and a number; the program itself says what becomes of the packet",
            )
        } else {
            (
                "`steer` stands behind `steer decoder` or `steer stage` only".to_string(),
                "declare a `steer decoder` and go to this stage from there",
            )
        };
        self.report(Diagnostic::error("E0437", headline, span, "not here").help(help));
        None
    }

    /// The ports that a `multicast` lists, each once, in ascending order.
    fn multicast_ports(&mut self, ports: &'a [ast::Expr], span: Span) -> Vec<u16> {
        if ports.is_empty() {
            self.error("E0418", "this multicast names no port", span, "nothing would be sent");
        }
        let mut numbers: Vec<u16> = Vec::new();
        for port in ports {
            if let Some(number) = self.constant(port, &Type::Port) {
                self.diagnostics.check_port(number, port.span);
                numbers.push(number as u16);
            }
        }
        numbers.sort_unstable();
        if numbers.windows(2).any(|pair| pair[0] == pair[1]) {
            self.error("E0418", "a port is listed twice", span, "every port gets one copy");
        }
        numbers.dedup();
        numbers
    }

    /// A program that declares reasons declares all of them: another name is a slip.
    fn reason_named(&mut self, name: &ast::Name) -> String {
        self.names.reasons_used.insert(name.text.clone());
        if !self.names.reasons.is_empty() {
            self.named("reason", name, |names| &names.reasons);
        }
        name.text.clone()
    }

    fn port_value(&mut self, port: &'a ast::Expr) -> Expr {
        let checked = self.typed(port, &Type::Port);
        if let ExprKind::Const(number) = checked.kind {
            self.diagnostics.check_port(number, port.span);
        }
        checked
    }

    fn declare_local(
        &mut self,
        name: &ast::Name,
        ty: Option<&ast::Type>,
        value: &'a ast::Expr,
        mutable: bool,
    ) -> Option<StmtKind> {
        let declared = ty.map(|ty| self.resolve_type(ty));
        let value = self.expression(value, declared.as_ref());
        if let Some(declared) = &declared {
            self.diagnostics.expect_type(&value, declared);
        }
        let ty = declared.unwrap_or_else(|| value.ty.clone());
        if matches!(ty, Type::Option(_) | Type::Tuple(_) | Type::Variants(..) | Type::View) {
            self.report(
                Diagnostic::error(
                    "E0228",
                    format!("a local cannot hold {ty}"),
                    value.span,
                    "no single value",
                )
                .help("use `match` to take it apart first"),
            );
            self.bind_local(name, Type::Unknown, mutable);
            return None;
        }
        let local = self.bind_local(name, ty, mutable);
        Some(StmtKind::Assign(local, value))
    }

    fn assign(&mut self, name: &ast::Name, value: &'a ast::Expr) -> Option<StmtKind> {
        let Some(local) = self.scope.find_local(&name.text) else {
            let known: Vec<String> = self
                .scope
                .locals
                .iter()
                .flat_map(|scope| scope.keys().cloned())
                .take(self.candidates())
                .collect();
            self.unknown("variable", &name.text, name.span, known.iter().map(String::as_str));
            return None;
        };
        if !self.program.locals[local.0].mutable {
            self.report(
                Diagnostic::error(
                    "E0229",
                    format!("`{}` cannot be changed", name.text),
                    name.span,
                    "it has one value",
                )
                .help("declare it with `var` instead of `let`"),
            );
        }
        let ty = self.program.locals[local.0].ty.clone();
        let value = self.typed(value, &ty);
        Some(StmtKind::Assign(local, value))
    }

    fn set(&mut self, header: &ast::Name, field: &ast::Name, value: &'a ast::Expr) -> Option<StmtKind> {
        self.needs_packet("set", header.span);
        let (id, index) = self.header_field(header, field)?;
        let layout = self.program.layout(id);
        let target = layout.fields[index].clone();
        if target.ty == Type::View || target.conditional {
            self.error(
                "E0310",
                format!("`{}` cannot be written", target.name),
                field.span,
                "only fields that are always there and single values",
            );
            return None;
        }
        let decides =
            |next: &hir::Next| next.when.as_ref().is_some_and(|when| when.own_fields().contains(&index));
        if layout.next.as_ref().is_some_and(decides) {
            self.report(
                Diagnostic::error(
                    "E0311",
                    format!("writing `{}` would change what follows the header", target.name),
                    field.span,
                    "what was received decides what follows",
                )
                .help("make a new packet by `emit`"),
            );
            return None;
        }
        if target.shapes {
            self.error(
                "E0311",
                format!("writing `{}` would change the shape of the header", target.name),
                field.span,
                "sizes or conditions depend on it",
            );
            return None;
        }
        let layout = layout.clone();
        let value = self.typed(value, &target.ty);
        self.diagnostics.check_checksum_set(&layout, index, &value, field.span);
        Some(StmtKind::Set(id, index, value))
    }

    /// A header by its name.
    pub(crate) fn header_named(&mut self, header: &ast::Name) -> Option<HeaderId> {
        let found = self.find_header(&header.text);
        if found.is_none() && !self.names.broken_headers.contains(&header.text) {
            self.unknown_header(HeaderUse::Header, &header.text, None, header.span);
        }
        found
    }

    fn header_field(&mut self, header: &ast::Name, field: &ast::Name) -> Option<(HeaderId, usize)> {
        let id = self.header_named(header)?;
        Some((id, self.field_named(self.program.headers[id.0].layout, field)?))
    }

    fn unrolled_loop(
        &mut self,
        name: &ast::Name,
        from: &ast::Expr,
        to: &ast::Expr,
        body: &'a ast::Block,
        span: Span,
    ) -> Option<StmtKind> {
        let from = self.constant(from, &Type::Uint(32))?;
        let to = self.constant(to, &Type::Uint(32))?;
        if to < from {
            self.error("E0224", "this range is empty", span, "it ends before it begins");
            return None;
        }
        let rounds = to - from;
        let before = self.spent.unrolled;
        self.spent.unrolled = self.spent.unrolled.saturating_mul(rounds.max(1));
        if self.spent.unrolled > LARGEST_UNROLLED {
            self.error(
                "E0218",
                "this loop has too many rounds",
                span,
                format!("{rounds} here, {} with the loops around it; at most 1,024", self.spent.unrolled),
            );
            self.spent.unrolled = before;
            return None;
        }
        self.scope.enter();
        let local = self.bind_local(name, Type::Uint(32), false);
        let body = self.block(body);
        self.scope.leave();
        self.spent.unrolled = before;
        Some(StmtKind::For(local, from, to, body))
    }

    fn walk(
        &mut self,
        name: &ast::Name,
        view: &'a ast::Expr,
        layout: &ast::Name,
        body: &'a ast::Block,
    ) -> Option<StmtKind> {
        self.needs_packet("for … as", name.span);
        let view = self.expression(view, None);
        if !matches!(view.ty, Type::View | Type::Unknown) {
            self.error(
                "E0230",
                format!("{} holds no headers", view.ty),
                view.span,
                "a walk goes over `bytes[…]` fields or `payload`",
            );
        }
        let layout_id = self.layout_named(layout)?;
        if self.program.layouts[layout_id.0].smallest == 0 {
            self.error(
                "E0421",
                format!("a walk over `{}` might never end", layout.text),
                layout.span,
                "the smallest such header has no bytes",
            );
        }
        let header = self.program.new_header(name, layout_id);
        self.scope.walk_headers.push((name.text.clone(), header));
        self.scope.walk_depth += 1;
        let body = self.block(body);
        self.scope.walk_depth -= 1;
        self.scope.walk_headers.pop();
        Some(StmtKind::Walk(header, view, body))
    }

    fn extract(&mut self, names: &[ast::Name], span: Span) -> Option<StmtKind> {
        let Some(header) = self.scope.own_header else {
            if self.scope.own_header_broken {
                return None;
            }
            self.error(
                "E0422",
                "there is no header to extract from",
                span,
                "only decoders extract, each from its own header",
            );
            return None;
        };
        let layout = self.program.headers[header.0].layout;
        if names.is_empty() {
            let all = 0..self.program.layouts[layout.0].fields.len();
            return Some(StmtKind::Extract(header, all.collect()));
        }
        let fields = names.iter().filter_map(|name| self.field_named(layout, name)).collect();
        Some(StmtKind::Extract(header, fields))
    }

    fn count(&mut self, name: &ast::Name, index: Option<&'a ast::Expr>, span: Span) -> Option<StmtKind> {
        let counter = self.named("counter", name, |names| &names.counters)?;
        let indexed = self.program.counters[counter as usize].indexed;
        if indexed != index.is_some() {
            let label = if indexed { "say which cell: `count c[i]`" } else { "it has one cell: `count c`" };
            self.error("E0514", format!("`{}` is counted wrongly", name.text), span, label);
            return None;
        }
        let index = index.map(|index| {
            let index = self.expression(index, Some(&Type::Uint(32)));
            if !matches!(index.ty, Type::Uint(_) | Type::Port | Type::Enum(..) | Type::Unknown) {
                self.error(
                    "E0200",
                    format!("a cell is numbered, not {}", index.ty),
                    index.span,
                    "an unsigned integer is wanted",
                );
            }
            index
        });
        Some(StmtKind::Count(counter, index))
    }

    fn raise(
        &mut self,
        delay: Option<&'a ast::Expr>,
        name: &ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<StmtKind> {
        let delay = delay.map(|delay| self.time(delay));
        let event = self.named("event", name, |names| &names.events)?;
        let args = self.arguments(name, args, &self.program.events[event].params.clone(), span)?;
        Some(StmtKind::Raise(delay, event, args))
    }

    fn goto(&mut self, name: &ast::Name, args: &'a [ast::Expr], span: Span) -> Option<StmtKind> {
        let stage = self.named("stage or decoder", name, |names| &names.stages)?;
        let args = self.arguments(name, args, &self.program.stages[stage.0].params.clone(), span)?;
        Some(StmtKind::Goto(stage, args))
    }

    /// The values that an event or stage gets.
    fn arguments(
        &mut self,
        name: &ast::Name,
        args: &[ast::Expr],
        params: &[LocalId],
        span: Span,
    ) -> Option<Vec<Expr>> {
        let takes = format!("`{}`", name.text);
        let fits = self.diagnostics.takes(&takes, params.len(), args.len(), span);
        fits.then(|| self.all_typed(args, &self.program.types_of(params)))
    }
}

impl Findings {
    /// Reports a wrong number of values; true if it is right.
    pub(crate) fn takes(&mut self, what: &str, wanted: usize, given: usize, span: Span) -> bool {
        if given != wanted {
            let headline = format!("{what} takes {}, not {given}", counted(wanted, "value"));
            self.error("E0206", headline, span, "wrong number of values");
        }
        given == wanted
    }

    pub(crate) fn check_port(&mut self, number: u128, span: Span) {
        if number == 0 {
            self.error("E0423", "there is no port 0", span, "ports are numbered from 1");
        }
    }
}
