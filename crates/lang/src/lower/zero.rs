//! The two zeros of a checksum: 0 and 0xffff stand for the same sum, and only the bytes that it covers say
//! which one is meant.
//!
//! A sum with its carries put back is zero only if all bytes are zero; every other sum that 65,535 divides is
//! 0xffff. So a checksum over nothing but zeros is 0xffff, and one over other bytes 0 (RFC 1071; RFC 1624,
//! section 3). A change that is added up modulo 65,535 cannot tell them apart: where it comes to 0, the bytes
//! are looked at, unless something that is covered is never zero.

use super::Lowering;
use super::env::Variable;
use crate::ast::LengthOf;
use crate::check::hir::{Checksum, Group, HeaderId};
use crate::flow::covering::{counted_by, never_zero};
use crate::flow::facts::Read;
use ir::source::Span;
use ir::{BinaryOp, CompareOp, Op, Value};

impl Lowering<'_> {
    /// A checksum was written that may be 0 where all that it covers is zero: then it is 0xffff. The first
    /// `proven` bytes of the header are captured.
    pub(super) fn tell_zeros(
        &mut self,
        header: HeaderId,
        checksum: Checksum,
        base: Value,
        proven: u32,
        written: Value,
        span: Span,
    ) {
        let walked = self.source.headers.get(header.0).is_some() && !self.source.is_decoded(header);
        if checksum.unless_zero || !walked && never_zero(self.source, self.source.layout(header)) {
            return;
        }
        let none = self.code.constant(0, 16, span);
        let zero = self.code.emit(1, Op::Compare(CompareOp::Eq, written, none), span);
        let (yes, no) = self.code.fork(zero, span);
        self.meet_ways((no, yes), span, |lowering, differs| {
            if !differs {
                lowering.tell_zero(header, checksum, base, proven, span);
            }
        });
    }

    /// The same where the checksum was written as 0.
    fn tell_zero(&mut self, header: HeaderId, checksum: Checksum, base: Value, proven: u32, span: Span) {
        let mut bytes = proven;
        let mut more = None;
        if let Some(end) = self.end_of_covered(header, checksum, span) {
            bytes -= bytes % 2;
            let known = self.code.with_constant(BinaryOp::Add, base, bytes.into(), span);
            more = Some(self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, end, known), span));
        }
        let sum = self.code.emit(16, Op::Checksum { base, bytes, more }, span);
        let (none, ones) = (self.code.constant(0, 16, span), self.code.constant(0xffff, 16, span));
        let nothing = self.code.emit(1, Op::Compare(CompareOp::Eq, sum, none), span);
        let value = self.code.emit(16, Op::Select(nothing, ones, none), span);
        self.code.effect(Op::Store { base, offset: checksum.offset, bytes: 2, value, proven }, span);
    }

    /// Where what a checksum covers ends, if that is behind the bytes that are known to be captured; it may
    /// lie behind the captured ones.
    fn end_of_covered(&mut self, header: HeaderId, checksum: Checksum, span: Span) -> Option<Value> {
        let there = |this: &Self, read: Read| this.code.env.values.contains_key(&Variable::Place(read));
        if checksum.payload {
            let Some((around, field)) = self.counting_around(header) else {
                return Some(self.code.emit(32, Op::WireLength, span));
            };
            return Some(self.counted_end(around, field, span));
        }
        let groups = self.source.layout(header).groups.clone();
        let last = groups.len().saturating_sub(1);
        match groups.last() {
            Some(Group::Fixed { .. }) if last == 0 => None,
            Some(group) => {
                let measured =
                    matches!(group, Group::Fixed { .. }) || there(self, Read::Length(header, last));
                (measured && there(self, Read::Group(header, last))).then(|| self.end_of(header, span))
            }
            None => None,
        }
    }

    /// Where what a length field of a header counts ends.
    pub(super) fn counted_end(&mut self, header: HeaderId, field: usize, span: Span) -> Value {
        let (length, _) = self.load_field(header, field, span);
        let length = self.code.resized(length, 32, span);
        let from = match self.source.layout(header).fields[field].length_of {
            Some(LengthOf::Payload) => self.end_of(header, span),
            _ => self.place(Read::Group(header, 0)),
        };
        self.code.emit(32, Op::Binary(BinaryOp::Add, from, length), span)
    }

    /// The header whose length says where the payload of this one ends, if its place is known here.
    pub(super) fn counting_around(&self, header: HeaderId) -> Option<(HeaderId, usize)> {
        let stage = self.scope.stage?;
        let mut decoded = self.flow.decoded_in(self.source, stage);
        decoded.behind.retain(|(first, _)| !self.code.env.removed.contains(first));
        let (around, field) = counted_by(self.source, &decoded, header)?;
        let layout = self.source.layout(around);
        let mut places = vec![Read::Group(around, 0), Read::Group(around, layout.fields[field].group)];
        if layout.fields[field].length_of == Some(LengthOf::Payload) {
            places.extend(crate::flow::covering::end_of(self.source, around));
        }
        places
            .iter()
            .all(|place| self.code.env.values.contains_key(&Variable::Place(*place)))
            .then_some((around, field))
    }
}
