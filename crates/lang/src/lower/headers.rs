//! Decoding: one check of the length for every run of fields, then the constraints, then what has a computed
//! size.

use super::Decode;
use super::env::{Range, Variable};
use super::expressions::{Shape, scalar};
use super::{Exit, Lowering, to};
use crate::check::hir::{ConditionalSize, Expr, Group, HeaderId};
use crate::check::types::{Type, largest};
use crate::flow::facts::{Read, Subject};
use crate::ir::{self, CompareOp, Op, Terminator, Value};
use crate::source::Span;

impl Lowering<'_> {
    /// The value of a place in a header or of the cursor. Where the header is not decoded on every path,
    /// which was reported, the packet's way ends: a trace of the refused program shows it.
    pub(crate) fn place(&mut self, read: Read) -> Value {
        if let Some(header) = read.header()
            && self.is_undecoded(header)
            && self.current.is_some()
        {
            let name = self.source.headers[header.0].name.clone();
            let reason = self
                .reason(&format!("undecoded({name})"), "the program reads a header that is not decoded here");
            let span = self.scope.undecoded_read;
            self.terminate(Terminator::Drop(reason), span);
        }
        self.handed_on(read)
    }

    fn is_undecoded(&self, header: HeaderId) -> bool {
        let Some(stage) = self.scope.stage else { return false };
        if self.env.removed.contains(&header) {
            return true;
        }
        let own = self.source.stages[stage.0].header;
        own != Some(header)
            && self.decoded_by_stage(header)
            && !self.flow.available[stage.0].contains(&header)
    }

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

    fn short(&mut self, header: HeaderId, span: Span) -> ir::BlockId {
        let name = self.layout(header).name.clone();
        let reason = self.reason(
            &format!("short({name})"),
            &format!("the packet, or what was captured of it, ends within its {name} header"),
        );
        self.drop_block(reason, span)
    }

    /// Decodes a header at a position; → the position behind it.
    pub(crate) fn decode_header(
        &mut self,
        header: HeaderId,
        base: Value,
        limit: Option<Value>,
        span: Span,
    ) -> Value {
        self.env.forget_header(header);
        self.env.overwritten.remove(&header);
        self.env.unproven.retain(|(other, _)| *other != header);
        self.env.removed.remove(&header);
        let layout = self.layout(header).clone();
        let number = self.source.headers[header.0].layout.0 as u32;
        let mut position = base;
        let outer = self.scope.own.replace(header);
        for (index, group) in layout.groups.iter().enumerate() {
            self.env.values.insert(Variable::Place(Read::Group(header, index)), position);
            match group {
                Group::Fixed { bytes, fields } => {
                    self.need(header, position, *bytes, None, limit, span);
                    if index == 0 {
                        let name = self.source.headers[header.0].name.clone();
                        self.effect(Op::Header { layout: number, base, name }, span);
                    }
                    for &field in fields {
                        self.check_constraint(header, field, span);
                    }
                    let size = self.constant(u128::from(*bytes), 32, span);
                    position = self.emit(32, Op::Binary(ir::BinaryOp::Add, position, size), span);
                }
                Group::Variable { length, .. } => {
                    let length = self.decode_length(header, length, position, limit, span);
                    self.env.values.insert(Variable::Place(Read::Length(header, index)), length);
                    position = self.emit(32, Op::Binary(ir::BinaryOp::Add, position, length), span);
                }
                Group::Conditional { field, when, size } => {
                    let (yes, no) = self.condition(when);
                    let mut exits: Vec<Exit> = Vec::new();
                    if let Some(exit) = yes {
                        self.resume(exit);
                        let length = match size {
                            ConditionalSize::Fixed(bytes) => {
                                self.need(header, position, *bytes, None, limit, span);
                                self.constant(u128::from(*bytes), 32, span)
                            }
                            ConditionalSize::Variable(length) => {
                                self.decode_length(header, length, position, limit, span)
                            }
                        };
                        let present = self.constant(1, 1, span);
                        if matches!(size, ConditionalSize::Fixed(_)) {
                            self.check_conditional_constraint(header, *field, span);
                        }
                        exits.extend(self.conditional_exit(header, index, present, length));
                    }
                    if let Some(exit) = no {
                        self.resume(exit);
                        let (absent, nothing) = (self.constant(0, 1, span), self.constant(0, 32, span));
                        exits.extend(self.conditional_exit(header, index, absent, nothing));
                    }
                    self.join(exits, span);
                    let length = self.place(Read::Length(header, index));
                    position = self.emit(32, Op::Binary(ir::BinaryOp::Add, position, length), span);
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

    fn conditional_exit(
        &mut self,
        header: HeaderId,
        group: usize,
        present: Value,
        length: Value,
    ) -> Option<Exit> {
        self.env.values.insert(Variable::Place(Read::Present(header, group)), present);
        self.env.values.insert(Variable::Place(Read::Length(header, group)), length);
        self.suspend()
    }

    /// Computes fields for later readers; what is no single value or not always there is passed over.
    pub(crate) fn keep_fields(&mut self, header: HeaderId, fields: &[usize], span: Span) {
        for &field in fields {
            let described = &self.layout(header).fields[field];
            if described.conditional || described.ty == Type::View {
                continue;
            }
            let (value, _) = self.load_field(header, field, span);
            self.effect(Op::Keep(value), span);
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
        if self.current.is_none() {
            return;
        }
        let short = self.short(header, span);
        let ok = self.new_block(span);
        self.terminate(Terminator::Need { base, bytes, more, limit, ok: to(ok), short: to(short) }, span);
        self.current = Some(ok);
    }

    /// Checks the constraint of a conditional field where the field is there.
    fn check_conditional_constraint(&mut self, header: HeaderId, field: usize, span: Span) {
        if self.layout(header).fields[field].constraint.is_some() {
            let (value, _) = self.load_conditional(header, field, span);
            let whole = Range::new(0, largest(self.function.width(value)));
            self.constrain(header, field, value, whole, span);
        }
    }

    fn check_constraint(&mut self, header: HeaderId, field: usize, span: Span) {
        if self.layout(header).fields[field].constraint.is_none() {
            return;
        }
        let described = self.layout(header).fields[field].clone();
        let whole = Range::new(0, largest(described.ty.width().unwrap_or(1)));
        let value = self.raw_field(header, field, span);
        self.constrain(header, field, value, whole, span);
        self.env.loaded.insert((header, field), value);
    }

    /// Drops packets whose field lies outside its constraint.
    fn constrain(&mut self, header: HeaderId, field: usize, value: Value, whole: Range, span: Span) {
        let layout = self.layout(header);
        let described = layout.fields[field].clone();
        let Some((low, high)) = described.constraint else { return };
        let name = format!("invalid({}.{})", layout.name, described.name);
        let wanted = crate::check::packets::range_in_words(low, high);
        let reason = self.reason(
            &name,
            &format!(
                "the field {} of the {} header must be {wanted}",
                described.name,
                self.layout(header).name.clone()
            ),
        );
        let width = self.function.width(value);
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
            if self.current.is_none() {
                return;
            }
            let bound = self.constant(bound, width, span);
            let outcome = self.emit(1, Op::Compare(op, value, bound), span);
            let out = self.drop_block(reason, span);
            let ok = self.new_block(span);
            let (yes, no) = if wanted { (ok, out) } else { (out, ok) };
            self.terminate(Terminator::Branch(outcome, to(yes), to(no)), span);
            self.current = Some(ok);
        }
    }

    /// What a field can hold by its type, and by its constraint as long as that was not written over.
    fn whole_range(&self, header: HeaderId, field: usize) -> Range {
        let described = &self.layout(header).fields[field];
        match described.constraint {
            Some((low, high)) if !self.env.overwritten.contains(&header) => Range::new(low, high),
            _ => Range::new(0, largest(described.ty.width().unwrap_or(1))),
        }
    }

    /// A field of a run, loaded once on every path.
    pub(crate) fn load_field(&mut self, header: HeaderId, field: usize, span: Span) -> (Value, Range) {
        let whole = self.whole_range(header, field);
        let range = self.range_of(Subject::Field(header, field), whole);
        if let Some(&value) = self.env.loaded.get(&(header, field)) {
            return (value, range);
        }
        let value = self.raw_field(header, field, span);
        self.env.loaded.insert((header, field), value);
        (value, range)
    }

    fn raw_field(&mut self, header: HeaderId, field: usize, span: Span) -> Value {
        let layout = self.layout(header);
        let described = layout.fields[field].clone();
        let Some(Group::Fixed { bytes, .. }) = layout.groups.get(described.group) else {
            return self.constant(0, described.ty.width().unwrap_or(1), span);
        };
        let proven = *bytes;
        self.scope.undecoded_read = span;
        let base = self.place(Read::Group(header, described.group));
        self.prove(header, described.group, span);
        let value = self.load_bits(base, described.bit, described.ty.width().unwrap_or(1), proven, span);
        let name = format!("{}.{}", self.header_name(header), described.name);
        self.name_value(value, &name, &described.ty);
        value
    }

    fn load_bits(&mut self, base: Value, bit: u32, width: u8, proven: u32, span: Span) -> Value {
        let (first, bytes) = covering(bit, width);
        let loaded = self.emit(bytes * 8, Op::Load { base, offset: first, bytes, proven }, span);
        let below = u32::from(bytes) * 8 - bit % 8 - u32::from(width);
        let shifted = self.shifted_down(loaded, below, span);
        self.resized(shifted, width, span)
    }

    /// A conditional field where it is known to be there.
    pub(crate) fn load_conditional(&mut self, header: HeaderId, field: usize, span: Span) -> (Value, Range) {
        let described = self.layout(header).fields[field].clone();
        let width = described.ty.width().unwrap_or(1);
        let whole = self.whole_range(header, field);
        self.scope.undecoded_read = span;
        let base = self.place(Read::Group(header, described.group));
        let bytes = u32::from(width) / 8;
        // The length was checked when the header was decoded; the check is repeated here because the proof
        // does not reach this point.
        self.need(header, base, bytes, None, None, span);
        let value = self.load_bits(base, 0, width, bytes, span);
        let name = format!("{}.{}", self.source.headers[header.0].name, described.name);
        self.name_value(value, &name, &described.ty);
        (value, whole)
    }

    /// What a conditional field holds where it is known to be there.
    pub(crate) fn conditional_inner(&mut self, header: HeaderId, field: usize, span: Span) -> Shape {
        let described = self.layout(header).fields[field].clone();
        if described.ty == Type::View {
            self.reads_payload = true;
            let start = self.place(Read::Group(header, described.group));
            let length = self.place(Read::Length(header, described.group));
            let end = self.emit(32, Op::Binary(ir::BinaryOp::Add, start, length), span);
            return Shape::View { start, end };
        }
        let (value, range) = self.load_conditional(header, field, span);
        scalar(value, range)
    }

    /// Writes a field of a run.
    pub(crate) fn store_field(&mut self, header: HeaderId, field: usize, value: Value, span: Span) {
        let layout = self.layout(header);
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
        let mut stored = self.resized(value, whole, span);
        if below > 0 {
            let distance = self.constant(u128::from(below), whole, span);
            stored = self.emit(whole, Op::Binary(ir::BinaryOp::ShiftLeft, stored, distance), span);
        }
        if whole > width {
            let others = largest(whole) & !(largest(width) << below);
            let before = self.emit(whole, Op::Load { base, offset: first, bytes, proven }, span);
            let others = self.constant(others, whole, span);
            let kept = self.emit(whole, Op::Binary(ir::BinaryOp::And, before, others), span);
            stored = self.emit(whole, Op::Binary(ir::BinaryOp::Or, kept, stored), span);
        }
        self.effect(Op::Store { base, offset: first, bytes, value: stored, proven }, span);
        self.env.loaded.insert((header, field), value);
    }
}

/// The bytes a field touches: the first one and how many.
fn covering(bit: u32, width: u8) -> (u32, u8) {
    let first = bit / 8;
    let last = (bit + u32::from(width) - 1) / 8;
    (first, (last - first + 1).min(16) as u8)
}
