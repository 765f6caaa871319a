//! Expressions: every one gets a type; literals take the type that is expected of them.

use super::hir::{Arm, Expr, ExprKind, LocalId, TableValue};
use super::meant::HeaderUse;
use super::memory::one_or_tuple;
use super::operators::same;
use super::types::{TableId, Type, largest};
use super::{Checker, Context, Function};
use crate::ast::{self, BinaryOp, CastMode, UnaryOp};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::limits::{DEEPEST_VALUE, LARGEST_INLINED, TALLEST_FUNCTION};
use ir::TableKind;
use ir::source::Span;

impl Checker<'_> {
    /// Checks an expression; `expected` guides literals and is not enforced (see [`Findings::expect_type`]).
    pub(crate) fn expression(&mut self, expr: &ast::Expr, expected: Option<&Type>) -> Expr {
        if self.spent.depth >= DEEPEST_VALUE {
            self.too_deep(expr.span);
            return error(expr.span);
        }
        self.spent.depth += 1;
        let checked = self.expression_inside(expr, expected);
        self.spent.depth -= 1;
        checked
    }

    /// Checks an expression that must have a type.
    pub(crate) fn typed(&mut self, expr: &ast::Expr, ty: &Type) -> Expr {
        let checked = self.expression(expr, Some(ty));
        self.diagnostics.expect_type(&checked, ty);
        checked
    }

    /// The same for several expressions.
    pub(crate) fn all_typed(&mut self, exprs: &[ast::Expr], types: &[Type]) -> Vec<Expr> {
        exprs.iter().zip(types).map(|(expr, ty)| self.typed(expr, ty)).collect()
    }

    /// Reports once that constants or functions build on each other too deeply.
    pub(super) fn too_deep(&mut self, span: Span) {
        if !std::mem::replace(&mut self.spent.too_deep, true) {
            self.report(
                Diagnostic::error("E0066", "this nests too deeply", span, "one level too many")
                    .help("constants and functions that build on each other count together")
                    .of_kind(DiagnosticKind::Syntax),
            );
        }
    }

    fn expression_inside(&mut self, expr: &ast::Expr, expected: Option<&Type>) -> Expr {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Int(value) => self.diagnostics.integer(*value, expected, span),
            ast::ExprKind::Bool(value) => constant(u128::from(*value), Type::Bool, span),
            ast::ExprKind::Ip4(value) => constant(u128::from(*value), Type::Ip4, span),
            ast::ExprKind::Ip6(value) => constant(*value, Type::Ip6, span),
            ast::ExprKind::Mac(value) => constant(u128::from(*value), Type::Mac, span),
            ast::ExprKind::Duration(value) => constant(u128::from(*value), Type::Time, span),
            ast::ExprKind::Prefix4(..) | ast::ExprKind::Prefix6(..) => {
                self.no_prefix(span);
                error(span)
            }
            ast::ExprKind::Word(name) => self.word(name, expected, span),
            ast::ExprKind::Field(base, name) => self.field_of(base, name, span),
            ast::ExprKind::Lookup(table, keys) => self.lookup(table, keys, span),
            ast::ExprKind::Call(name, args) => self.call(name, args, expected, span),
            ast::ExprKind::Unary(UnaryOp::Not, inner) => {
                let inner = self.typed(inner, &Type::Bool);
                Expr { kind: ExprKind::Not(Box::new(inner)), ty: Type::Bool, span }
            }
            ast::ExprKind::Unary(UnaryOp::Complement, inner) => {
                let inner = self.expression(inner, expected);
                self.diagnostics.expect_number(&inner);
                Expr { ty: inner.ty.clone(), kind: ExprKind::Complement(Box::new(inner)), span }
            }
            ast::ExprKind::Binary(op, a, b) => self.binary(*op, a, b, expected, span),
            ast::ExprKind::Cast(inner, mode, ty) => self.cast(inner, *mode, ty, span),
            ast::ExprKind::InRange(value, from, to) => self.in_range(value, from, to.as_deref(), span),
            ast::ExprKind::InPrefix(value, prefix) => self.in_prefix(value, prefix, span),
            ast::ExprKind::Tuple(parts) => {
                let wanted: Vec<Option<Type>> = match expected {
                    Some(Type::Tuple(types)) if types.len() == parts.len() => {
                        types.iter().cloned().map(Some).collect()
                    }
                    _ => vec![None; parts.len()],
                };
                let parts: Vec<Expr> = parts
                    .iter()
                    .zip(&wanted)
                    .map(|(part, wanted)| self.expression(part, wanted.as_ref()))
                    .collect();
                let ty = Type::Tuple(parts.iter().map(|part| part.ty.clone()).collect());
                Expr { kind: ExprKind::Tuple(parts), ty, span }
            }
            ast::ExprKind::If(condition, yes, no) => {
                let condition = self.typed(condition, &Type::Bool);
                let (yes, no) = self.alike(yes, no, expected);
                if !self.diagnostics.expect_values(&yes) {
                    return error(span);
                }
                Expr {
                    ty: yes.ty.clone(),
                    kind: ExprKind::If(Box::new(condition), Box::new(yes), Box::new(no)),
                    span,
                }
            }
            ast::ExprKind::Match(value, arms) => self.match_expression(value, arms, expected, span),
        }
    }

    /// Reports a prefix where a value is wanted.
    fn no_prefix(&mut self, span: Span) {
        self.error("E0209", "a prefix is no value", span, "use it in a pattern or behind `in`");
    }

    /// A value between two constants, written as two comparisons.
    fn in_range(&mut self, value: &ast::Expr, from: &ast::Expr, to: Option<&ast::Expr>, span: Span) -> Expr {
        let value = self.expression(value, None);
        let low = self.constant(from, &value.ty);
        let high = match to {
            Some(to) => self.constant(to, &value.ty),
            None => Some(value.ty.largest()),
        };
        let (Some(low), Some(high)) = (low, high) else { return error(span) };
        let ty = value.ty.clone();
        let bound = |number| Box::new(constant(number, ty.clone(), span));
        let above = Expr {
            kind: ExprKind::Compare(BinaryOp::Ge, Box::new(value.clone()), bound(low)),
            ty: Type::Bool,
            span,
        };
        let below = Expr {
            kind: ExprKind::Compare(BinaryOp::Le, Box::new(value), bound(high)),
            ty: Type::Bool,
            span,
        };
        Expr { kind: ExprKind::Logic(true, Box::new(above), Box::new(below)), ty: Type::Bool, span }
    }

    fn word(&mut self, name: &str, expected: Option<&Type>, span: Span) -> Expr {
        if let Some(local) = self.scope.find_local(name) {
            return Expr { kind: ExprKind::Local(local), ty: self.program.locals[local.0].ty.clone(), span };
        }
        if let Context::Layout(layout) = self.scope.context
            && let Some(index) = self.program.layouts[layout.0].field_named(name)
        {
            return self.own_field(layout.0, index, expected, span);
        }
        if let Some(Type::Variants(table, _)) = expected
            && let Some(variant) = self.program.variant_named(*table, name)
        {
            return self.variant(*table, variant, &[], span);
        }
        if let Some(remembered) = self.remembered(name, &[], span) {
            return remembered;
        }
        if self.is_prefix_constant(name) {
            // A constant that is none was reported.
            if self.prefix_constant(name).is_some() {
                self.no_prefix(span);
            }
            return error(span);
        }
        if self.names.constants.contains_key(name) {
            return match self.constant_named(name) {
                Some((ty, value)) => constant(value, ty, span),
                None => error(span),
            };
        }
        if let Some(value) = self.built_in_word(name, span) {
            return value;
        }
        if matches!(self.scope.context, Context::Layout(_)) && self.described.fields.contains(name) {
            self.report(
                Diagnostic::error(
                    "E0309",
                    format!("`{name}` is not known yet here"),
                    span,
                    "this field stands behind",
                )
                .help("sizes and conditions use the fields before them"),
            );
            return error(span);
        }
        if self.find_header(name).is_some() {
            self.error(
                "E0211",
                format!("`{name}` is a header, not a value"),
                span,
                format!("name one of its fields: `{name}.…`"),
            );
            return error(span);
        }
        if self.names.tables.contains_key(name) {
            self.error(
                "E0211",
                format!("`{name}` is a table, not a value"),
                span,
                format!("look something up in it: `{name}[…]`"),
            );
            return error(span);
        }
        if let Some(Type::Variants(table, _)) = expected
            && let TableValue::Variants(variants) = &self.program.tables[table.0].value
        {
            let known: Vec<String> =
                variants.iter().map(|(variant, _)| variant.clone()).take(self.candidates()).collect();
            self.unknown("variant", name, span, known.iter().map(String::as_str));
            return error(span);
        }
        self.unknown_value(name, expected, span);
        error(span)
    }

    /// A word of the language that stands for a value of the packet or for the time.
    fn built_in_word(&mut self, name: &str, span: Span) -> Option<Expr> {
        let (kind, ty) = match name {
            "in_port" => (ExprKind::InPort, Type::Port),
            "from_host" => {
                self.program.names_host = true;
                (ExprKind::FromHost, Type::Bool)
            }
            "length" => (ExprKind::Length, Type::Uint(32)),
            "payload" => (ExprKind::Payload, Type::View),
            "now" if matches!(self.scope.context, Context::Packet | Context::Handler) => {
                return Some(Expr { kind: ExprKind::Now, ty: Type::Time, span });
            }
            "now" => {
                self.error(
                    "E0208",
                    "this must be a constant",
                    span,
                    "the time is known only while the program runs",
                );
                return Some(error(span));
            }
            _ => return None,
        };
        if self.scope.context != Context::Packet {
            self.no_packet(span, format!("`{name}` belongs to a packet"));
            return Some(error(span));
        }
        Some(Expr { kind, ty, span })
    }

    fn own_field(&mut self, layout: usize, index: usize, expected: Option<&Type>, span: Span) -> Expr {
        let field = &self.program.layouts[layout].fields[index];
        let (ty, conditional) = (field.ty.clone(), field.conditional);
        let there = !conditional
            || match (&self.described.shared_when, self.described.conditions.get(&(layout, index))) {
                (Some(here), Some(condition)) => same(here, condition),
                _ => false,
            };
        if !there || ty == Type::View {
            let what = if !there { "is not always there" } else { "is no number" };
            let name = field.name.clone();
            self.error(
                "E0309",
                format!("`{name}` {what}"),
                span,
                "sizes and conditions are made of numbers that are always there",
            );
            return error(span);
        }
        let own = Expr { kind: ExprKind::Own(index), ty: ty.clone(), span };
        match (expected, &ty) {
            (Some(Type::Uint(32)), Type::Uint(width) | Type::Enum(_, _, width)) if *width < 32 => {
                Expr { kind: ExprKind::Cast(Box::new(own), CastMode::Exact), ty: Type::Uint(32), span }
            }
            _ => own,
        }
    }

    fn field_of(&mut self, base: &ast::Expr, name: &ast::Name, span: Span) -> Expr {
        if let ast::ExprKind::Word(word) = &base.kind
            && self.scope.find_local(word).is_none()
        {
            if let Some(&id) = self.names.enums.get(word) {
                let members = self.enums[id.0].members.clone();
                let (enum_name, width) = (self.enums[id.0].name.clone(), self.enums[id.0].width);
                return match members.iter().find(|(member, _)| *member == name.text) {
                    Some((_, value)) => constant(*value, Type::Enum(id, enum_name, width), span),
                    None => {
                        self.unknown(
                            "member",
                            &name.text,
                            name.span,
                            members.iter().map(|(member, _)| member.as_str()),
                        );
                        error(span)
                    }
                };
            }
            if let Some(header) = self.find_header(word) {
                if self.scope.context != Context::Packet {
                    self.no_packet(span, format!("`{word}` is a header of a packet"));
                    return error(span);
                }
                let layout = self.program.headers[header.0].layout;
                let Some(index) = self.field_named(layout, name) else { return error(span) };
                let field = &self.program.layouts[layout.0].fields[index];
                let ty = if field.conditional {
                    Type::Option(Box::new(field.ty.clone()))
                } else {
                    field.ty.clone()
                };
                return Expr { kind: ExprKind::Field(header, index), ty, span };
            }
            if self.names.broken_headers.contains(word) {
                return error(span);
            }
            let value = matches!(word.as_str(), "in_port" | "from_host" | "length" | "payload" | "now")
                || self.names.constants.contains_key(word.as_str());
            if !matches!(self.scope.context, Context::Layout(_)) && !value {
                self.unknown_header(HeaderUse::Base, word, Some(name), base.span);
                return error(span);
            }
        }
        let checked = self.expression(base, None);
        if checked.ty == Type::Unknown {
            return error(span);
        }
        if let Some(flags) = self.flags_of(&checked) {
            let Some(position) = flags.iter().position(|flag| *flag == name.text) else {
                self.unknown("flag", &name.text, name.span, flags.iter().map(String::as_str));
                return error(span);
            };
            let bit = (flags.len() - 1 - position) as u8;
            return Expr { kind: ExprKind::Bit(Box::new(checked), bit), ty: Type::Bool, span };
        }
        if checked.ty == Type::View && name.text == "length" {
            return Expr { kind: ExprKind::ViewLength(Box::new(checked)), ty: Type::Uint(32), span };
        }
        self.error(
            "E0212",
            format!("{} has no field `{}`", checked.ty, name.text),
            name.span,
            "no such field",
        );
        error(span)
    }

    fn flags_of(&self, expr: &Expr) -> Option<Vec<String>> {
        let field = match (&expr.kind, self.scope.context) {
            (ExprKind::Field(header, index), _) => &self.program.layout(*header).fields[*index],
            (ExprKind::Own(index), Context::Layout(layout)) => &self.program.layouts[layout.0].fields[*index],
            _ => return None,
        };
        (!field.flags.is_empty() && !field.conditional).then(|| field.flags.clone())
    }

    fn lookup(&mut self, table: &ast::Name, keys: &[ast::Expr], span: Span) -> Expr {
        if let Some(remembered) = self.remembered(&table.text, keys, span) {
            return remembered;
        }
        let Some(id) = self.table_named(table) else { return error(span) };
        if !matches!(self.scope.context, Context::Packet | Context::Handler) {
            self.error(
                "E0213",
                "a table cannot be read here",
                span,
                "only stages, decoders and handlers look things up",
            );
            return error(span);
        }
        let answer = self.program.tables[id.0].answer_type(id);
        if let TableKind::Patterns(_) = self.program.tables[id.0].kind {
            return self.search(id, &table.text, keys, answer, span);
        }
        let keys = self.keys(id, keys, span);
        Expr { kind: ExprKind::Lookup(id, keys), ty: answer, span }
    }

    /// A search for patterns in bytes.
    fn search(&mut self, id: TableId, name: &str, keys: &[ast::Expr], answer: Type, span: Span) -> Expr {
        let [bytes] = keys else {
            self.error("E0503", format!("`{name}[…]` has one part"), span, "the bytes to search in");
            return error(span);
        };
        let bytes = self.expression(bytes, None);
        if !matches!(bytes.ty, Type::View) {
            if bytes.ty != Type::Unknown {
                self.report(
                    Diagnostic::error(
                        "E0526",
                        "patterns are searched for in bytes",
                        bytes.span,
                        format!("this is {}", bytes.ty),
                    )
                    .help("`payload`, a field of the type `bytes[…]`, or `clip` of one of them"),
                );
            }
            return error(span);
        }
        Expr { kind: ExprKind::Lookup(id, vec![bytes]), ty: answer, span }
    }

    fn call(&mut self, name: &ast::Name, args: &[ast::Expr], expected: Option<&Type>, span: Span) -> Expr {
        if let Some(Type::Variants(table, _)) = expected
            && let Some(variant) = self.program.variant_named(*table, &name.text)
        {
            return self.variant(*table, variant, args, span);
        }
        if !self.names.functions.contains_key(name.text.as_str())
            && let Some(built_in) = self.builtin(name, args, span)
        {
            return built_in;
        }
        if self.computed.open_functions.contains(&name.text) {
            self.error(
                "E0214",
                format!("the function `{}` needs itself", name.text),
                name.span,
                "a function cannot call itself, directly or through others",
            );
            return error(span);
        }
        if name.text == "valid" && !self.names.functions.contains_key("valid") {
            return self.valid(args, span);
        }
        let Some(function) = self.function_named(&name.text) else {
            if self.names.tables.contains_key(&name.text) {
                self.error(
                    "E0211",
                    format!("`{}` is a table, not a function", name.text),
                    name.span,
                    format!("look something up in it: `{}[…]`", name.text),
                );
            } else if !self.names.functions.contains_key(name.text.as_str()) {
                let known: Vec<String> = self
                    .names
                    .functions
                    .keys()
                    .map(|name| name.to_string())
                    .take(self.candidates())
                    .collect();
                self.unknown("function", &name.text, name.span, known.iter().map(String::as_str));
            }
            return error(span);
        };
        let takes = format!("`{}`", name.text);
        if !self.diagnostics.takes(&takes, function.params.len(), args.len(), span) {
            return error(span);
        }
        self.spent.inlined += function.size;
        if self.spent.inlined > LARGEST_INLINED {
            self.error(
                "E0215",
                "the calls of functions add up to too much code",
                span,
                "calls are put in place; make the functions smaller",
            );
            return error(span);
        }
        let args = self.all_typed(args, &self.program.types_of(&function.params));
        let bindings = function.params.into_iter().zip(args).collect();
        Expr { kind: ExprKind::Inline(bindings, Box::new(function.value)), ty: function.result, span }
    }

    /// A function, checked when first asked for; `None` if there is none, or it needs itself, or is wrong.
    pub(crate) fn function_named(&mut self, name: &str) -> Option<Function> {
        if let Some(known) = self.computed.functions.get(name) {
            return known.clone();
        }
        let item = *self.names.functions.get(name)?;
        self.computed.functions.insert(name.to_string(), None);
        self.computed.open_functions.insert(name.to_string());
        let result = one_or_tuple(item.result.iter().map(|ty| self.resolve_type(ty)).collect());
        let scopes = std::mem::take(&mut self.scope.locals);
        let context = std::mem::replace(&mut self.scope.context, Context::Function);
        let inlined = std::mem::replace(&mut self.spent.inlined, 0);
        self.scope.enter();
        let mut params: Vec<LocalId> = Vec::new();
        for param in &item.params {
            let ty = self.resolve_type(&param.ty);
            params.push(self.bind_local(&param.name, ty, false));
        }
        let value = self.expression(&item.value, Some(&result));
        let mut fits = self.diagnostics.expect_type(&value, &result);
        if value.height() > TALLEST_FUNCTION {
            self.too_deep(item.name.span);
            fits = false;
        }
        self.scope.locals = scopes;
        self.scope.context = context;
        let size = 1 + self.spent.inlined;
        self.spent.inlined = inlined;
        let function =
            (fits && value.ty != Type::Unknown).then_some(Function { params, result, value, size });
        self.computed.functions.insert(name.to_string(), function.clone());
        self.computed.open_functions.remove(name);
        function
    }

    fn match_expression(
        &mut self,
        value: &ast::Expr,
        arms: &[ast::Arm<ast::Expr>],
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        let value = self.expression(value, None);
        let mut first: Option<Type> = None;
        let checked = self.arms(&value.ty, arms, span, |checker, body| {
            let body = checker.expression(body, first.as_ref().or(expected));
            checker.diagnostics.expect_values(&body);
            if let Some(first) = &first {
                checker.diagnostics.expect_type(&body, first);
            } else if body.ty != Type::Unknown {
                first = Some(body.ty.clone());
            }
            body
        });
        let ty = first.unwrap_or(Type::Unknown);
        Expr { kind: ExprKind::Match(Box::new(value), checked), ty, span }
    }

    /// Checks the arms of a `match` on a value of a type; `body` checks what an arm does or gives.
    pub(super) fn arms<'b, A, B>(
        &mut self,
        ty: &Type,
        arms: &'b [ast::Arm<A>],
        span: Span,
        mut body: impl FnMut(&mut Self, &'b A) -> B,
    ) -> Vec<Arm<B>> {
        let mut checked = Vec::new();
        let mut broken = false;
        for arm in arms {
            self.scope.enter();
            let before = self.diagnostics.reported();
            let pattern = self.pattern(&arm.pattern, ty);
            // The mark is taken off in any case: the next `match` has nothing to do with it.
            let marked = std::mem::take(&mut self.scope.broken_pattern);
            broken |= marked || self.diagnostics.reported() > before;
            let guard = arm.guard.as_ref().map(|guard| self.typed(guard, &Type::Bool));
            let body = body(self, &arm.body);
            self.scope.leave();
            checked.push(Arm { pattern, guard, body, span: arm.pattern.span });
        }
        if !broken {
            self.check_arms(ty, &checked, span);
        }
        checked
    }
}

impl Findings {
    /// Reports an expression of another type; true if it fits.
    pub(crate) fn expect_type(&mut self, expr: &Expr, wanted: &Type) -> bool {
        if expr.ty.fits(wanted) {
            return true;
        }
        let mut diagnostic = Diagnostic::error(
            "E0200",
            format!("{wanted} is wanted here, not {}", expr.ty),
            expr.span,
            format!("this is {}", expr.ty),
        );
        if let Type::Option(_) = expr.ty {
            diagnostic =
                diagnostic.help("it may be missing: take it apart with `match … { some x => …, none => … }`");
        } else if matches!(wanted, Type::Bool) && expr.ty.width().is_some() {
            diagnostic = diagnostic.help("compare it: a condition is true or false");
        } else if let (Some(from), Some(to)) = (expr.ty.width(), wanted.width())
            && expr.ty.converts_to(wanted)
        {
            diagnostic = if from <= to {
                let (at, edit) = converted(expr, wanted);
                diagnostic.suggest(format!("convert it: `as {wanted}`"), at, edit)
            } else {
                diagnostic.help(format!("`as {wanted}` where it is known to fit, `as% {wanted}` keeps the low bits, `as| {wanted}` takes at most the largest value"))
            };
        }
        self.report(diagnostic);
        false
    }

    /// `if` and `match` give one value, or several.
    fn expect_values(&mut self, expr: &Expr) -> bool {
        let values = match &expr.ty {
            Type::Tuple(parts) => parts.iter().all(|part| part.width().is_some()),
            one => one.width().is_some(),
        };
        if !values {
            self.error(
                "E0231",
                format!("{} is neither a single value nor several", expr.ty),
                expr.span,
                "`if` and `match` as expressions give values",
            );
        }
        values
    }

    pub(crate) fn expect_number(&mut self, expr: &Expr) -> bool {
        if expr.ty.is_number() {
            return true;
        }
        self.report(
            Diagnostic::error(
                "E0210",
                format!("{} is no number to calculate with", expr.ty),
                expr.span,
                format!("this is {}", expr.ty),
            )
            .help("convert it first, for example `as u32`"),
        );
        false
    }

    fn integer(&mut self, value: u128, expected: Option<&Type>, span: Span) -> Expr {
        let ty = match expected {
            Some(ty) if ty.takes_integers() && *ty != Type::Unknown => ty.clone(),
            _ => Type::Uint(
                [8, 16, 32, 64, 128].into_iter().find(|&width| value <= largest(width)).unwrap_or(128),
            ),
        };
        if value > ty.largest() {
            self.error(
                "E0201",
                format!("{value} does not fit {ty}"),
                span,
                format!("the largest value is {}", ty.largest()),
            );
            return Expr { kind: ExprKind::Const(ty.largest()), ty, span };
        }
        constant(value, ty, span)
    }
}

/// A constant.
pub(crate) fn constant(value: u128, ty: Type, span: Span) -> Expr {
    Expr { kind: ExprKind::Const(value), ty, span }
}

/// The edit that converts an expression: `as` binds closer than operators, and what is shifted out of a
/// number is lost before it is converted.
pub(super) fn converted(expr: &Expr, wanted: &Type) -> (Span, String) {
    let behind = |span: Span| (Span::new(span.file, span.end, span.end), format!(" as {wanted}"));
    let whole = |expr: &Expr| {
        matches!(
            expr.kind,
            ExprKind::Binary(..)
                | ExprKind::Compare(..)
                | ExprKind::Logic(..)
                | ExprKind::If(..)
                | ExprKind::Match(..)
        )
    };
    match &expr.kind {
        ExprKind::Binary(ast::BinaryOp::ShiftLeft, shifted, _) if !whole(shifted) => behind(shifted.span),
        _ if whole(expr) => (expr.span, format!("({}) as {wanted}", crate::diagnostic::REPLACED)),
        _ => behind(expr.span),
    }
}

/// What stands for an expression that was reported.
pub(crate) fn error(span: Span) -> Expr {
    Expr { kind: ExprKind::Error, ty: Type::Unknown, span }
}
