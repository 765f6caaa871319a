//! Expressions: values with ranges, and shapes for what is no single value.

use super::Lowering;
use super::build::Builder;
use super::env::{Range, Variable};
use crate::ast::{BinaryOp, CastMode};
use crate::check::hir::{Arm, Expr, ExprKind, Group, HeaderId, LocalId, TableValue};
use crate::check::types::{TableId, Type, largest};
use crate::diagnostic::Diagnostic;
use crate::flow::facts::{Read, Subject};
use ir::source::Span;
use ir::{CompareOp, Op, Value};

/// A lowered expression.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A single value.
    Scalar { value: Value, range: Range, subject: Option<Subject> },
    /// Several values.
    Tuple(Vec<Shape>),
    /// There is something if the one-bit value says so.
    Option { present: Value, inner: Box<Shape> },
    /// A field that is there only under a condition; it is loaded where it is known to be there.
    Conditional { header: HeaderId, field: usize },
    /// An entry of a table with variants: all value columns.
    Variants { table: TableId, columns: Vec<Value> },
    /// Bytes from start to end.
    View { start: Value, end: Value },
}

impl Lowering<'_> {
    /// A single value and its range; for what was reported before, any value.
    pub(crate) fn value(&mut self, expr: &Expr) -> (Value, Range) {
        match self.shape(expr) {
            Shape::Scalar { value, range, .. } => (value, range),
            _ => (self.code.constant(0, expr.ty.width().unwrap_or(1), expr.span), Range::one(0)),
        }
    }

    pub(crate) fn values(&mut self, exprs: &[Expr]) -> Vec<Value> {
        exprs.iter().map(|expr| self.value(expr).0).collect()
    }

    /// What an expression becomes.
    pub(crate) fn shape(&mut self, expr: &Expr) -> Shape {
        let span = expr.span;
        let width = expr.ty.width().unwrap_or(1);
        let whole = Range::new(0, largest(width));
        match &expr.kind {
            ExprKind::Const(number) => scalar(self.code.constant(*number, width, span), Range::one(*number)),
            ExprKind::Error => scalar(self.code.constant(0, width, span), whole),
            ExprKind::Local(local) => self.local_shape(*local, width, span),
            ExprKind::Field(header, field) => self.field_shape(*header, *field, span),
            ExprKind::Own(field) => match self.scope.own {
                // A size may use a conditional field under the same condition: there it is known to be there.
                Some(header) if self.source.layout(header).fields[*field].conditional => {
                    self.conditional_inner(header, *field, span)
                }
                Some(header) => self.field_shape(header, *field, span),
                None => scalar(self.code.constant(0, width, span), whole),
            },
            ExprKind::Payload => {
                self.reads_payload = true;
                let start = self.place(Read::Cursor);
                let end = self.code.emit(32, Op::Captured, span);
                Shape::View { start, end }
            }
            ExprKind::Valid(header) => {
                let (value, range) = self.valid(*header, span);
                scalar(value, range)
            }
            ExprKind::ViewLength(view) => {
                let Shape::View { start, end } = self.shape(view) else {
                    return scalar(self.code.constant(0, 32, span), whole);
                };
                scalar(self.code.emit(32, Op::Binary(ir::BinaryOp::SubSaturate, end, start), span), whole)
            }
            ExprKind::InPort => {
                let port = self.code.emit(16, Op::InPort, span);
                if !self.source.names_host {
                    return scalar(port, Range::new(1, 0xffff));
                }
                let mask = self.code.constant(u128::from(!ir::FROM_HOST), 16, span);
                let port = self.code.emit(16, Op::Binary(ir::BinaryOp::And, port, mask), span);
                scalar(port, Range::new(1, u128::from(!ir::FROM_HOST)))
            }
            ExprKind::FromHost => {
                self.judges_host = true;
                let port = self.code.emit(16, Op::InPort, span);
                let least = self.code.constant(u128::from(ir::FROM_HOST), 16, span);
                scalar(self.code.emit(1, Op::Compare(ir::CompareOp::Le, least, port), span), whole)
            }
            ExprKind::Now => scalar(self.code.emit(64, Op::Now, span), whole),
            ExprKind::Length => scalar(self.code.emit(32, Op::WireLength, span), whole),
            ExprKind::Lookup(table, keys) => match (self.source.tables[table.0].kind, keys.as_slice()) {
                (ir::TableKind::Patterns(_), [bytes]) => self.search(*table, bytes, span),
                _ => self.lookup(*table, keys, span),
            },
            ExprKind::Mark(meter, index, before) => {
                self.mark(*meter, index.as_deref(), before.as_deref(), span)
            }
            ExprKind::Register(register, index) => {
                self.read_register(*register, index.as_deref(), &expr.ty, span)
            }
            ExprKind::Take(pool, hint) => self.take(*pool, hint.as_deref(), span),
            ExprKind::Choose(group, index, hash) => self.choose(*group, index.as_deref(), hash, span),
            ExprKind::Hash(values) => self.hash(values, span),
            ExprKind::Clip(view, length) => self.clip(view, length, span),
            ExprKind::Variant(..) => scalar(self.code.constant(0, 1, span), whole),
            ExprKind::Tuple(parts) => Shape::Tuple(parts.iter().map(|part| self.shape(part)).collect()),
            ExprKind::Bit(inner, bit) => {
                let (value, _) = self.value(inner);
                let shifted = self.code.shifted_down(value, u32::from(*bit), span);
                scalar(self.code.resized(shifted, 1, span), whole)
            }
            ExprKind::Complement(inner) | ExprKind::Not(inner) => self.complement(inner, width, span),
            ExprKind::Cast(inner, mode) => self.cast(inner, *mode, &expr.ty, span),
            ExprKind::Binary(op, a, b) => self.arithmetic(*op, a, b, &expr.ty, span),
            ExprKind::Masked(inner, mask, wanted) => self.masked(inner, *mask, *wanted, span),
            ExprKind::Compare(op, a, b) => {
                let ((a, _), (b, _)) = (self.value(a), self.value(b));
                scalar(self.code.comparison(*op, a, b, span), whole)
            }
            ExprKind::Logic(..) => self.logic(expr),
            ExprKind::If(condition, a, b) => self.choice(condition, [a, b], &expr.ty, span),
            ExprKind::Match(value, arms) => self.match_value(value, arms, &expr.ty, span),
            ExprKind::Inline(bindings, body) => self.inlined(bindings, body, &expr.ty),
        }
    }

    fn local_shape(&mut self, local: LocalId, width: u8, span: Span) -> Shape {
        let subject = Subject::Local(local);
        let range = self.code.env.range_of(subject, Range::new(0, largest(width)));
        let value = match self.code.env.values.get(&Variable::Local(local)) {
            Some(&value) => value,
            None => self.code.constant(0, width, span),
        };
        Shape::Scalar { value, range, subject: Some(subject) }
    }

    /// A call: the parameters get their values, then the function's body is lowered in place.
    fn inlined(&mut self, bindings: &[(LocalId, Expr)], body: &Expr, ty: &Type) -> Shape {
        let values: Vec<(Value, Range)> = bindings.iter().map(|(_, value)| self.value(value)).collect();
        for ((local, _), (value, range)) in bindings.iter().zip(values) {
            self.code.env.bind_local(*local, value, range);
        }
        let parts = self.parts(body).into_iter().map(|(value, range)| scalar(value, range)).collect();
        gathered(parts, ty)
    }

    /// The values of an expression, each with its range; for what was reported before, any.
    fn parts(&mut self, expr: &Expr) -> Vec<(Value, Range)> {
        let Type::Tuple(types) = &expr.ty else { return vec![self.value(expr)] };
        let shapes = if let Shape::Tuple(shapes) = self.shape(expr) { shapes } else { Vec::new() };
        let mut parts: Vec<(Value, Range)> = Vec::new();
        for (number, ty) in types.iter().enumerate() {
            parts.push(match shapes.get(number) {
                Some(Shape::Scalar { value, range, .. }) => (*value, *range),
                _ => (self.code.constant(0, ty.width().unwrap_or(1), expr.span), Range::one(0)),
            });
        }
        parts
    }

    /// `match` as a value: that of the first arm that fits.
    fn match_value(&mut self, value: &Expr, arms: &[Arm<Expr>], ty: &Type, span: Span) -> Shape {
        let shape = self.shape(value);
        let mut ways = self.code.split();
        self.match_arms(&shape, arms, span, |lowering, body: &Expr| {
            let parts = lowering.parts(body);
            lowering.code.keep(parts, &mut ways);
        });
        self.meet(ways, ty, span)
    }

    /// Goes on where the ways meet: the values there, which have these ranges way by way.
    fn meet(&mut self, ways: Vec<Vec<Range>>, ty: &Type, span: Span) -> Shape {
        let depth = self.code.ways.len() as u32;
        let exits = self.code.ways.pop().unwrap_or_default();
        self.join(exits, span);
        let types = if let Type::Tuple(types) = ty { types } else { std::slice::from_ref(ty) };
        let mut parts = Vec::new();
        for (number, ty) in types.iter().enumerate() {
            let value = self.code.env.values.remove(&Variable::Temporary(depth, number as u32));
            let range = ways.iter().filter_map(|ranges| ranges.get(number)).copied().reduce(Range::hull);
            parts.push(match (value, range) {
                (Some(value), Some(range)) => scalar(value, range),
                _ => {
                    let width = ty.width().unwrap_or(1);
                    scalar(self.code.constant(0, width, span), Range::new(0, largest(width)))
                }
            });
        }
        gathered(parts, ty)
    }

    /// All bits of a value flipped; of a condition, its contrary.
    fn complement(&mut self, inner: &Expr, width: u8, span: Span) -> Shape {
        let (value, range) = self.value(inner);
        let top = largest(width);
        let ones = self.code.constant(top, width, span);
        let flipped = self.code.emit(width, Op::Binary(ir::BinaryOp::Xor, value, ones), span);
        scalar(flipped, Range::new(top - range.high.min(top), top - range.low.min(top)))
    }

    /// Whether the bits of a value under a mask are the wanted ones.
    fn masked(&mut self, inner: &Expr, mask: u128, wanted: u128, span: Span) -> Shape {
        let (value, _) = self.value(inner);
        let width = self.code.function.width(value);
        let mask = self.code.constant(mask, width, span);
        let bits = self.code.emit(width, Op::Binary(ir::BinaryOp::And, value, mask), span);
        let wanted = self.code.constant(wanted, width, span);
        scalar(self.code.emit(1, Op::Compare(CompareOp::Eq, bits, wanted), span), Range::new(0, 1))
    }

    /// `&&` or `||` as a value.
    fn logic(&mut self, expr: &Expr) -> Shape {
        let (yes, no) = self.condition(expr);
        let mut ways = self.code.split();
        for (exit, outcome) in [(yes, 1), (no, 0)] {
            if let Some(exit) = exit {
                self.code.resume(exit);
                let value = self.code.constant(outcome, 1, expr.span);
                self.code.keep(vec![(value, Range::one(outcome))], &mut ways);
            }
        }
        self.meet(ways, &expr.ty, expr.span)
    }

    /// `if` as a value: one of two branches.
    fn choice(&mut self, condition: &Expr, branches: [&Expr; 2], ty: &Type, span: Span) -> Shape {
        let (yes, no) = self.condition(condition);
        let mut ways = self.code.split();
        for (exit, branch) in [yes, no].into_iter().zip(branches) {
            if let Some(exit) = exit {
                self.code.resume(exit);
                let parts = self.parts(branch);
                self.code.keep(parts, &mut ways);
            }
        }
        self.meet(ways, ty, span)
    }

    fn cast(&mut self, inner: &Expr, mode: CastMode, ty: &Type, span: Span) -> Shape {
        let shape = self.shape(inner);
        let Shape::Scalar { value, range, subject } = shape else {
            return scalar(self.code.constant(0, ty.width().unwrap_or(1), span), Range::one(0));
        };
        let (from, to) = (self.code.function.width(value), ty.width().unwrap_or(1));
        let top = largest(to);
        if to >= from {
            let subject = if to == from || range.high <= top { subject } else { None };
            return Shape::Scalar { value: self.code.resized(value, to, span), range, subject };
        }
        match mode {
            CastMode::Exact if range.high > top => {
                self.report(
                    Diagnostic::error("E0203", format!("this may not fit {ty}"), span, format!("it can be as large as {}", range.high))
                        .help(format!("check it first, or say what happens: `as% {ty}` keeps the low bits, `as| {ty}` takes at most {top}")),
                );
                scalar(self.code.resized(value, to, span), Range::new(0, top))
            }
            CastMode::Exact => scalar(self.code.resized(value, to, span), range),
            CastMode::Wrap => {
                let range = if range.high <= top { range } else { Range::new(0, top) };
                scalar(self.code.resized(value, to, span), range)
            }
            CastMode::Saturate => {
                let limit = self.code.constant(top, from, span);
                let clamped = self.code.smaller(value, limit, span);
                scalar(
                    self.code.resized(clamped, to, span),
                    Range::new(range.low.min(top), range.high.min(top)),
                )
            }
        }
    }

    fn lookup(&mut self, table: TableId, keys: &[Expr], span: Span) -> Shape {
        let key = self.values(keys);
        self.entry_of(table, Op::Lookup { table: table.0 as u32, key }, span)
    }

    /// The entry that an operation finds in a table.
    pub(super) fn entry_of(&mut self, table: TableId, op: Op, span: Span) -> Shape {
        let declared = &self.source.tables[table.0];
        let columns = declared.value_columns();
        let present = self.code.new_value(1);
        let mut results = vec![present];
        let mut inner = Vec::new();
        for (_, ty) in &columns {
            let value = self.code.new_value(ty.width().unwrap_or(1));
            results.push(value);
            inner.push(scalar(value, Range::new(0, ty.largest())));
        }
        self.code.push(results.clone(), op, span);
        let name = declared.name.clone();
        self.code.name_value(present, &format!("{name}[…] found"), &Type::Bool);
        for (&value, (column, ty)) in results[1..].iter().zip(&columns) {
            let name =
                if column.is_empty() { format!("{name}[…]") } else { format!("{name}[…].{column}") };
            self.code.name_value(value, &name, ty);
        }
        let inner = match &declared.value {
            TableValue::Variants(_) => Shape::Variants { table, columns: results[1..].to_vec() },
            TableValue::Data(_) if inner.len() == 1 => inner.remove(0),
            TableValue::Data(_) => Shape::Tuple(inner),
        };
        Shape::Option { present, inner: Box::new(inner) }
    }

    fn field_shape(&mut self, header: HeaderId, field: usize, span: Span) -> Shape {
        let described = &self.source.layout(header).fields[field];
        if described.conditional {
            return Shape::Conditional { header, field };
        }
        let group = described.group;
        if let Some(Group::Variable { .. }) = self.source.layout(header).groups.get(group) {
            self.reads_payload = true;
            self.scope.undecoded_read = span;
            let start = self.place(Read::Group(header, group));
            let length = self.place(Read::Length(header, group));
            let end = self.code.emit(32, Op::Binary(ir::BinaryOp::Add, start, length), span);
            return Shape::View { start, end };
        }
        if self.shows_noted(header, field) {
            self.write_checksums(span);
        }
        let (value, range) = self.load_field(header, field, span);
        Shape::Scalar { value, range, subject: Some(Subject::Field(header, field)) }
    }
}

impl Builder<'_> {
    /// Opens a place where several ways will meet with as many values each; their ranges go into the result,
    /// way by way.
    fn split(&mut self) -> Vec<Vec<Range>> {
        self.ways.push(Vec::new());
        Vec::new()
    }

    /// Suspends a way until all meet, with its values.
    fn keep(&mut self, parts: Vec<(Value, Range)>, ways: &mut Vec<Vec<Range>>) {
        let depth = self.ways.len() as u32;
        for (number, (value, _)) in parts.iter().enumerate() {
            self.env.values.insert(Variable::Temporary(depth, number as u32), *value);
        }
        ways.push(parts.into_iter().map(|(_, range)| range).collect());
        if let Some(exit) = self.suspend()
            && let Some(ways) = self.ways.last_mut()
        {
            ways.push(exit);
        }
    }

    pub(crate) fn resized(&mut self, value: Value, width: u8, span: Span) -> Value {
        if self.function.width(value) == width {
            return value;
        }
        self.emit(width, Op::Resize(value), span)
    }

    pub(crate) fn shifted_down(&mut self, value: Value, bits: u32, span: Span) -> Value {
        if bits == 0 {
            return value;
        }
        let width = self.function.width(value);
        let distance = self.constant(u128::from(bits), width, span);
        self.emit(width, Op::Binary(ir::BinaryOp::ShiftRight, value, distance), span)
    }

    pub(crate) fn comparison(&mut self, op: BinaryOp, a: Value, b: Value, span: Span) -> Value {
        let (op, a, b) = match op {
            BinaryOp::Eq => (CompareOp::Eq, a, b),
            BinaryOp::Ne => (CompareOp::Ne, a, b),
            BinaryOp::Lt => (CompareOp::Lt, a, b),
            BinaryOp::Le => (CompareOp::Le, a, b),
            BinaryOp::Gt => (CompareOp::Lt, b, a),
            _ => (CompareOp::Le, b, a),
        };
        self.emit(1, Op::Compare(op, a, b), span)
    }
}

/// A single value, or all of a tuple's.
fn gathered(mut parts: Vec<Shape>, ty: &Type) -> Shape {
    if matches!(ty, Type::Tuple(_)) || parts.len() != 1 { Shape::Tuple(parts) } else { parts.remove(0) }
}

/// A single value that is no field or local.
pub(crate) fn scalar(value: Value, range: Range) -> Shape {
    Shape::Scalar { value, range, subject: None }
}
