//! Decoding: one check of the length for every run of fields, then the constraints, then what has a computed
//! size.

use super::Decode;
use super::Lowering;
use super::build::{Builder, to};
use super::env::{Range, Variable};
use super::expressions::{Shape, scalar};
use crate::check::hir::{ConditionalSize, Expr, Group, HeaderId};
use crate::check::types::{Type, largest};
use crate::flow::facts::{Read, Subject};
use ir::source::Span;
use ir::{CompareOp, Op, Terminator, Value};

impl Lowering<'_> {
    /// The value of a place in a header or of the cursor. Where the header is not decoded on every path,
    /// which was reported, the packet's way ends: a trace of the refused program shows it.
    pub(crate) fn place(&mut self, read: Read) -> Value {
        if let Some(header) = read.header()
            && self.is_undecoded(header)
            && self.code.current.is_some()
        {
            let name = self.source.headers[header.0].name.clone();
            let reason = self
                .reason(&format!("undecoded({name})"), "the program reads a header that is not decoded here");
            let span = self.scope.undecoded_read;
            self.code.terminate(Terminator::Drop(reason), span);
        }
        self.code.handed_on(read)
    }

    fn is_undecoded(&self, header: HeaderId) -> bool {
        let Some(stage) = self.scope.stage else { return false };
        if self.code.env.removed.contains(&header) {
            return true;
        }
        let own = self.source.stages[stage.0].header;
        own != Some(header)
            && self.source.is_decoded(header)
            && !self.flow.available[stage.0].contains(&header)
    }

    fn short(&mut self, header: HeaderId, span: Span) -> ir::BlockId {
        let name = self.source.layout(header).name.clone();
        let reason = self.reason(
            &format!("short({name})"),
            &format!("the packet, or what was captured of it, ends within its {name} header"),
        );
        self.code.drop_block(reason, span)
    }

    /// Decodes a header at a position; → the position behind it.
    pub(crate) fn decode_header(
        &mut self,
        header: HeaderId,
        base: Value,
        limit: Option<Value>,
        span: Span,
    ) -> Value {
        self.code.env.forget_header(header);
        self.code.env.overwritten.remove(&header);
        self.code.env.unproven.retain(|(other, _)| *other != header);
        self.code.env.removed.remove(&header);
        let layout = self.source.layout(header);
        let number = self.source.headers[header.0].layout.0 as u32;
        let mut position = base;
        let outer = self.scope.own.replace(header);
        for (index, group) in layout.groups.iter().enumerate() {
            self.code.env.values.insert(Variable::Place(Read::Group(header, index)), position);
            match group {
                Group::Fixed { bytes, fields } => {
                    self.need(header, position, *bytes, None, limit, span);
                    if index == 0 {
                        let name = self.source.headers[header.0].name.clone();
                        self.code.effect(Op::Header { layout: number, base, name }, span);
                    }
                    for &field in fields {
                        self.check_constraint(header, field, span);
                    }
                    let size = self.code.constant(u128::from(*bytes), 32, span);
                    position = self.code.emit(32, Op::Binary(ir::BinaryOp::Add, position, size), span);
                }
                Group::Variable { length, .. } => {
                    let length = self.decode_length(header, length, position, limit, span);
                    self.code.env.values.insert(Variable::Place(Read::Length(header, index)), length);
                    position = self.code.emit(32, Op::Binary(ir::BinaryOp::Add, position, length), span);
                }
                Group::Conditional { field, when, size } => {
                    let ways = self.condition(when);
                    self.meet_ways(ways, span, |this, there| {
                        let length = match size {
                            ConditionalSize::Fixed(bytes) if there => {
                                this.need(header, position, *bytes, None, limit, span);
                                Some(this.code.constant(u128::from(*bytes), 32, span))
                            }
                            ConditionalSize::Variable(length) if there => {
                                Some(this.decode_length(header, length, position, limit, span))
                            }
                            _ => None,
                        };
                        let present = this.code.constant(u128::from(there), 1, span);
                        let length = length.unwrap_or_else(|| this.code.constant(0, 32, span));
                        if there && matches!(size, ConditionalSize::Fixed(_)) {
                            this.check_conditional_constraint(header, *field, span);
                        }
                        let places =
                            [(Read::Present(header, index), present), (Read::Length(header, index), length)];
                        for (read, value) in places {
                            this.code.env.values.insert(Variable::Place(read), value);
                        }
                    });
                    let length = self.place(Read::Length(header, index));
                    position = self.code.emit(32, Op::Binary(ir::BinaryOp::Add, position, length), span);
                }
            }
        }
        self.scope.own = outer;
        if self.decode == Decode::Full {
            let fields: Vec<usize> = (0..layout.fields.len()).collect();
            self.keep_fields(header, &fields, span);
        }
        position
    }

    /// The length of a `bytes` field whose bytes are shown to be there.
    fn decode_length(
        &mut self,
        header: HeaderId,
        length: &Expr,
        position: Value,
        limit: Option<Value>,
        span: Span,
    ) -> Value {
        let (length, _) = self.value(length);
        self.need(header, position, 0, Some(length), limit, span);
        length
    }

    /// Computes fields for later readers; what is no single value or not always there is passed over.
    pub(crate) fn keep_fields(&mut self, header: HeaderId, fields: &[usize], span: Span) {
        for &field in fields {
            let described = &self.source.layout(header).fields[field];
            if described.conditional || described.ty == Type::View {
                continue;
            }
            let (value, _) = self.load_field(header, field, span);
            self.code.effect(Op::Keep(value), span);
        }
    }

    pub(super) fn need(
        &mut self,
        header: HeaderId,
        base: Value,
        bytes: u32,
        more: Option<Value>,
        limit: Option<Value>,
        span: Span,
    ) {
        if self.code.current.is_none() {
            return;
        }
        let short = self.short(header, span);
        let ok = self.code.new_block(span);
        self.code
            .terminate(Terminator::Need { base, bytes, more, limit, ok: to(ok), short: to(short) }, span);
        self.code.current = Some(ok);
    }

    /// Checks the constraint of a conditional field where the field is there.
    fn check_conditional_constraint(&mut self, header: HeaderId, field: usize, span: Span) {
        if self.source.layout(header).fields[field].constraint.is_some() {
            let (value, _) = self.load_conditional(header, field, span);
            let whole = Range::new(0, largest(self.code.function.width(value)));
            self.constrain(header, field, value, whole, span);
        }
    }

    fn check_constraint(&mut self, header: HeaderId, field: usize, span: Span) {
        if self.source.layout(header).fields[field].constraint.is_none() {
            return;
        }
        let described = &self.source.layout(header).fields[field];
        let whole = Range::new(0, largest(described.ty.width().unwrap_or(1)));
        let value = self.raw_field(header, field, span);
        self.constrain(header, field, value, whole, span);
        self.code.env.loaded.insert((header, field), value);
    }

    /// Drops packets whose field lies outside its constraint.
    fn constrain(&mut self, header: HeaderId, field: usize, value: Value, whole: Range, span: Span) {
        let layout = self.source.layout(header);
        let described = layout.fields[field].clone();
        let Some((low, high)) = described.constraint else { return };
        let name = format!("invalid({}.{})", layout.name, described.name);
        let wanted = crate::check::packets::range_in_words(low, high);
        let reason = self.reason(
            &name,
            &format!(
                "the field {} of the {} header must be {wanted}",
                described.name,
                self.source.layout(header).name.clone()
            ),
        );
        let width = self.code.function.width(value);
        let mut checks: Vec<(CompareOp, u128, bool)> = Vec::new();
        if low == high {
            checks.push((CompareOp::Eq, low, true));
        } else {
            if low > whole.low {
                checks.push((CompareOp::Lt, low, false));
            }
            if high < whole.high {
                checks.push((CompareOp::Le, high, true));
            }
        }
        for (op, bound, wanted) in checks {
            if self.code.current.is_none() {
                return;
            }
            let bound = self.code.constant(bound, width, span);
            let outcome = self.code.emit(1, Op::Compare(op, value, bound), span);
            let out = self.code.drop_block(reason, span);
            let ok = self.code.new_block(span);
            let (yes, no) = if wanted { (ok, out) } else { (out, ok) };
            self.code.terminate(Terminator::Branch(outcome, to(yes), to(no)), span);
            self.code.current = Some(ok);
        }
    }

    /// What a field can hold by its type, and by its constraint as long as that was not written over.
    fn whole_range(&self, header: HeaderId, field: usize) -> Range {
        let described = &self.source.layout(header).fields[field];
        match described.constraint {
            Some((low, high)) if !self.code.env.overwritten.contains(&header) => Range::new(low, high),
            _ => Range::new(0, largest(described.ty.width().unwrap_or(1))),
        }
    }

    /// A field of a run, loaded once on every path.
    pub(crate) fn load_field(&mut self, header: HeaderId, field: usize, span: Span) -> (Value, Range) {
        let whole = self.whole_range(header, field);
        let range = self.code.env.range_of(Subject::Field(header, field), whole);
        if let Some(&value) = self.code.env.loaded.get(&(header, field)) {
            return (value, range);
        }
        let value = self.raw_field(header, field, span);
        self.code.env.loaded.insert((header, field), value);
        (value, range)
    }

    fn raw_field(&mut self, header: HeaderId, field: usize, span: Span) -> Value {
        let layout = self.source.layout(header);
        let described = layout.fields[field].clone();
        let Some(Group::Fixed { bytes, .. }) = layout.groups.get(described.group) else {
            return self.code.constant(0, described.ty.width().unwrap_or(1), span);
        };
        let proven = *bytes;
        self.scope.undecoded_read = span;
        let base = self.place(Read::Group(header, described.group));
        self.prove(header, described.group, span);
        let value = self.code.load_bits(base, described.bit, described.ty.width().unwrap_or(1), proven, span);
        let name = format!("{}.{}", self.source.header_name(header), described.name);
        self.code.name_value(value, &name, &described.ty);
        value
    }

    /// A conditional field where it is known to be there.
    pub(crate) fn load_conditional(&mut self, header: HeaderId, field: usize, span: Span) -> (Value, Range) {
        let described = &self.source.layout(header).fields[field];
        let width = described.ty.width().unwrap_or(1);
        let whole = self.whole_range(header, field);
        self.scope.undecoded_read = span;
        let base = self.place(Read::Group(header, described.group));
        let bytes = u32::from(width) / 8;
        // The length was checked when the header was decoded; the check is repeated here because the proof
        // does not reach this point.
        self.need(header, base, bytes, None, None, span);
        let value = self.code.load_bits(base, 0, width, bytes, span);
        let name = format!("{}.{}", self.source.headers[header.0].name, described.name);
        self.code.name_value(value, &name, &described.ty);
        (value, whole)
    }

    /// What a conditional field holds where it is known to be there.
    pub(crate) fn conditional_inner(&mut self, header: HeaderId, field: usize, span: Span) -> Shape {
        let described = &self.source.layout(header).fields[field];
        if described.ty == Type::View {
            self.reads_payload = true;
            let start = self.place(Read::Group(header, described.group));
            let length = self.place(Read::Length(header, described.group));
            let end = self.code.emit(32, Op::Binary(ir::BinaryOp::Add, start, length), span);
            return Shape::View { start, end };
        }
        let (value, range) = self.load_conditional(header, field, span);
        scalar(value, range)
    }

    /// Writes a field of a run.
    pub(crate) fn store_field(&mut self, header: HeaderId, field: usize, value: Value, span: Span) {
        let layout = self.source.layout(header);
        let described = layout.fields[field].clone();
        let Some(Group::Fixed { bytes: proven, .. }) = layout.groups.get(described.group) else { return };
        let proven = *proven;
        let width = described.ty.width().unwrap_or(1);
        self.scope.undecoded_read = span;
        let base = self.place(Read::Group(header, described.group));
        self.prove(header, described.group, span);
        let (first, bytes) = covering(described.bit, width);
        let whole = bytes * 8;
        let below = u32::from(whole) - described.bit % 8 - u32::from(width);
        let mut stored = self.code.resized(value, whole, span);
        if below > 0 {
            let distance = self.code.constant(u128::from(below), whole, span);
            stored = self.code.emit(whole, Op::Binary(ir::BinaryOp::ShiftLeft, stored, distance), span);
        }
        if whole > width {
            let others = largest(whole) & !(largest(width) << below);
            let before = self.code.emit(whole, Op::Load { base, offset: first, bytes, proven }, span);
            let others = self.code.constant(others, whole, span);
            let kept = self.code.emit(whole, Op::Binary(ir::BinaryOp::And, before, others), span);
            stored = self.code.emit(whole, Op::Binary(ir::BinaryOp::Or, kept, stored), span);
        }
        self.code.effect(Op::Store { base, offset: first, bytes, value: stored, proven }, span);
        self.code.env.loaded.insert((header, field), value);
    }
}

impl Builder<'_> {
    /// The value of a place, to be handed to a stage; none is needed where the stage does not get to read it.
    pub(crate) fn handed_on(&mut self, read: Read) -> Value {
        match self.env.values.get(&Variable::Place(read)) {
            Some(&value) => value,
            // Only behind an error that was reported.
            None => {
                let width = if matches!(read, Read::Present(..)) { 1 } else { 32 };
                self.constant(0, width, Span::default())
            }
        }
    }

    fn load_bits(&mut self, base: Value, bit: u32, width: u8, proven: u32, span: Span) -> Value {
        let (first, bytes) = covering(bit, width);
        let loaded = self.emit(bytes * 8, Op::Load { base, offset: first, bytes, proven }, span);
        let below = u32::from(bytes) * 8 - bit % 8 - u32::from(width);
        let shifted = self.shifted_down(loaded, below, span);
        self.resized(shifted, width, span)
    }
}

/// The bytes a field touches: the first one and how many.
fn covering(bit: u32, width: u8) -> (u32, u8) {
    let first = bit / 8;
    let last = (bit + u32::from(width) - 1) / 8;
    (first, (last - first + 1).min(16) as u8)
}
