//! Checksums kept right: what writes change in them is summed up, and written when somebody may see the
//! packet.
//!
//! A checksum is the complement of a sum modulo 65,535, so a field that changes from `m` to `m'` changes the
//! sum by `m' - m`, whatever else it covers (RFC 1624, equation 3). The changes of all writes on a path are
//! added up in one value a checksum, which is folded and added to the checksum before the packet leaves, is
//! copied, goes to another stage or is looked at. A checksum that was wrong stays wrong by the same
//! difference, and a checksum of zero that says "none" stays zero.

use super::Lowering;
use super::build::{Builder, Exit, Ways};
use super::env::{Range, Variable};
use crate::check::hir::HeaderId;
use crate::check::types::largest;
use crate::diagnostic::Diagnostic;
use crate::flow::facts::{CoveredPlace, Read};
use ir::source::Span;
use ir::{BinaryOp, CompareOp, Op, Terminator, Value};
use std::collections::BTreeSet;

/// What is to be added to a sum: a value of 64 bits, and the largest it can be.
pub(crate) type Change = (Value, u128);

/// Sums are folded before they can come near 64 bits.
const LARGEST_SUM: u128 = 1 << 60;

impl Lowering<'_> {
    /// The sums that a write to a field changes. Where the place of an outer checksum is no longer known, the
    /// program is refused.
    pub(crate) fn sums_of(&mut self, header: HeaderId, field: usize, span: Span) -> Vec<Variable> {
        let layout = self.source.layout(header);
        let counts = layout.fields[field].length_of.is_some_and(|of| of != crate::ast::LengthOf::Header);
        let pseudo = layout.pseudo.as_ref();
        let behind = pseudo.is_some_and(|pseudo| pseudo.fields.contains(&field) || pseudo.length && counts);
        let own = layout.checksum.is_some_and(|checksum| checksum.field != field);
        if let Some(lost) =
            self.outer(header).into_iter().find(|outer| self.flow.covering.lost.contains(outer))
        {
            let name = self.source.headers[lost.0].name.clone();
            let place = self
                .source
                .layout(lost)
                .checksum
                .map(|checksum| self.source.layout(lost).fields[checksum.field].span);
            let fault = Diagnostic::error(
                "E0317",
                format!("the checksum of an outer `{name}` cannot be kept right"),
                span,
                format!("it may cover this, and its place is not known where `{name}` is decoded again"),
            )
            .help("decode the inner header in a decoder of its own, under another name");
            self.report(match place {
                Some(place) => fault.place(place, "the checksum"),
                None => fault,
            });
        }
        let mut sums: Vec<Variable> = behind.then_some(Variable::Behind(header)).into_iter().collect();
        sums.extend(own.then_some(Variable::Sum(header)));
        sums.extend(self.covering(header).into_iter().map(Variable::Sum));
        sums
    }

    /// Where a header lies.
    fn place_of(&self, header: HeaderId) -> CoveredPlace {
        CoveredPlace::of(header, self.scope.walks.iter().map(|walk| (walk.header, walk.inside)))
    }

    fn outer(&self, header: HeaderId) -> Vec<HeaderId> {
        let Some(stage) = self.scope.stage else { return Vec::new() };
        self.flow.covering.outer(self.source, stage, &self.place_of(header))
    }

    /// Other headers whose checksums cover a header.
    fn covering(&self, header: HeaderId) -> Vec<HeaderId> {
        let place = self.place_of(header);
        let within = place.within.into_iter().filter(|within| self.source.layout(*within).checksum.is_some());
        let outer = self.outer(header).into_iter().filter(|outer| !self.flow.covering.lost.contains(outer));
        within.chain(outer).collect()
    }

    /// Headers whose checksums cover what follows a header.
    pub(super) fn covering_behind(&self, header: HeaderId) -> Vec<HeaderId> {
        let own = self.source.layout(header).checksum.filter(|checksum| checksum.payload).map(|_| header);
        own.into_iter().chain(self.covering(header)).collect()
    }

    /// Notes in these sums that a field changes.
    pub(crate) fn note_change(
        &mut self,
        sums: &[Variable],
        header: HeaderId,
        field: usize,
        old: Value,
        new: Value,
        span: Span,
    ) {
        let described = &self.source.layout(header).fields[field];
        let width = described.ty.width().unwrap_or(1);
        let behind = (16 - (described.bit + u32::from(width)) % 16) % 16;
        for &sum in sums {
            let change = match sum {
                Variable::Sum(covering) => {
                    let change = self.code.change(old, new, behind, span);
                    // The first run begins with the header, an even number of bytes before each of its pairs.
                    if covering == header && described.group == 0 {
                        change
                    } else {
                        let at = self.place(Read::Group(header, described.group));
                        self.at_byte(change, at, covering, span)
                    }
                }
                _ => self.code.change(old, new, 0, span),
            };
            self.code.add_change(sum, change, span);
        }
        // Headers of walks may share bytes with what a checksum stands in.
        if !self.scope.walks.is_empty() {
            self.write_checksums(span);
        }
    }

    /// A change of bytes at a position, as a sum from the start of a header on sees it: behind an odd number
    /// of bytes they are swapped.
    pub(super) fn at_byte(&mut self, change: Change, at: Value, covering: HeaderId, span: Span) -> Change {
        let start = self.start_of(covering, span);
        let distance = self.code.emit(32, Op::Binary(BinaryOp::Sub, at, start), span);
        let distance = self.code.resized(distance, 64, span);
        let odd = self.code.with_constant(BinaryOp::And, distance, 1, span);
        let bits = self.code.with_constant(BinaryOp::ShiftLeft, odd, 3, span);
        (self.code.emit(64, Op::Binary(BinaryOp::ShiftLeft, change.0, bits), span), change.1 << 8)
    }

    /// The position of a header with a checksum, if it is there.
    fn start_of(&mut self, header: HeaderId, span: Span) -> Value {
        if self.code.env.is_certain(header) {
            return self.place(Read::Group(header, 0));
        }
        let behind = self.code.handed_on(Read::Perhaps(header));
        let one = self.code.constant(1, 32, span);
        self.code.emit(32, Op::Binary(BinaryOp::Sub, behind, one), span)
    }

    /// Writes all checksums that changed, inner ones first, since outer ones may cover them.
    pub(crate) fn write_checksums(&mut self, span: Span) {
        while self.code.current.is_some() {
            let noted: Vec<Variable> = self.code.env.sums().collect();
            let inner = |one: &&Variable| {
                let Variable::Sum(header) = **one else { return true };
                noted.iter().all(|other| match other {
                    Variable::Sum(other) => *other == header || !self.covering(*other).contains(&header),
                    _ => false,
                })
            };
            match noted.iter().find(inner).or(noted.first()) {
                Some(&Variable::Behind(header)) => self.write_behind(header, span),
                Some(&Variable::Sum(header)) => self.write_own(header, span),
                _ => return,
            }
        }
    }

    /// Lowers what is done on two ways on, the first of them first, and goes on where they meet.
    pub(crate) fn meet_ways(
        &mut self,
        (first, second): Ways,
        span: Span,
        mut done: impl FnMut(&mut Self, bool),
    ) {
        let mut exits = Vec::new();
        for (exit, is_first) in [(first, true), (second, false)] {
            if let Some(exit) = exit {
                self.code.resume(exit);
                done(self, is_first);
                exits.extend(self.code.suspend());
            }
        }
        self.join(exits, span);
    }

    /// Goes on where all exits meet; behind no exit nothing is current.
    pub(crate) fn join(&mut self, exits: Vec<Exit>, span: Span) {
        let exits = if exits.len() > 1 { self.write_for_removed(exits, span) } else { exits };
        self.code.join(exits, span);
    }

    /// Writes what is noted for a header at the exits where it still is, if another exit has removed it:
    /// where they meet, its place is no longer known.
    fn write_for_removed(&mut self, exits: Vec<Exit>, span: Span) -> Vec<Exit> {
        let removed: BTreeSet<HeaderId> =
            exits.iter().flat_map(|(_, env)| env.removed.iter().copied()).collect();
        let lost = |sum: Variable| matches!(sum, Variable::Sum(header) | Variable::Behind(header) if removed.contains(&header));
        let write = |exit: Exit| {
            if !exit.1.sums().any(lost) {
                return Some(exit);
            }
            self.code.resume(exit);
            self.write_checksums(span);
            self.code.suspend()
        };
        exits.into_iter().filter_map(write).collect()
    }

    /// Writes the checksum of a header that is decoded, or perhaps is.
    fn write_own(&mut self, header: HeaderId, span: Span) {
        let change = self.code.take_change(Variable::Sum(header), span);
        let Some(checksum) = self.source.layout(header).checksum else { return };
        let start = self.start_of(header, span);
        let covering = self.covering(header);
        if self.code.env.is_certain(header) {
            self.prove(header, 0, span);
            let proven = self.first_run(header);
            self.write_checksum(header, start, proven, change, &covering, span);
        } else {
            let behind = self.code.handed_on(Read::Perhaps(header));
            let none = self.code.constant(0, 32, span);
            let there = self.code.emit(1, Op::Compare(CompareOp::Ne, behind, none), span);
            let (yes, no) = self.code.fork(there, span);
            let mut exits: Vec<Exit> = no.into_iter().collect();
            if let Some(exit) = yes {
                self.code.resume(exit);
                let bytes = checksum.offset + 2;
                exits.extend(self.code.need_or_pass(start, bytes, None, span));
                self.write_checksum(header, start, bytes, change, &covering, span);
                exits.extend(self.code.suspend());
            }
            self.join(exits, span);
        }
        self.code.env.forget_field(header, checksum.field);
        if !self.scope.walks.is_empty() {
            self.forget_walked(header);
        }
    }

    /// Changes the checksum of a header in the packet, and the sums of the checksums that cover it.
    pub(super) fn write_checksum(
        &mut self,
        header: HeaderId,
        base: Value,
        proven: u32,
        change: Change,
        covering: &[HeaderId],
        span: Span,
    ) {
        let Some(checksum) = self.source.layout(header).checksum else { return };
        let offset = checksum.offset;
        let old = self.code.emit(16, Op::Load { base, offset, bytes: 2, proven }, span);
        let inverted = self.code.with_constant(BinaryOp::Xor, old, 0xffff, span);
        let inverted = self.code.resized(inverted, 64, span);
        let mut sum = (self.code.sum_of(inverted, change.0, span), 0xffff + change.1);
        while sum.1 > 0xffff {
            sum = self.code.folded(sum, span);
        }
        let sum = self.code.resized(sum.0, 16, span);
        let mut new = self.code.with_constant(BinaryOp::Xor, sum, 0xffff, span);
        if checksum.unless_zero {
            let (none, ones) = (self.code.constant(0, 16, span), self.code.constant(0xffff, 16, span));
            let zero = self.code.emit(1, Op::Compare(CompareOp::Eq, new, none), span);
            new = self.code.emit(16, Op::Select(zero, ones, new), span);
            let absent = self.code.emit(1, Op::Compare(CompareOp::Eq, old, none), span);
            new = self.code.emit(16, Op::Select(absent, none, new), span);
        }
        self.code.effect(Op::Store { base, offset, bytes: 2, value: new, proven }, span);
        self.tell_zeros(header, checksum, base, proven, new, span);
        if covering.is_empty() {
            return;
        }
        // For the sums around, both forms of zero are the same change.
        let at = self.code.with_constant(BinaryOp::Add, base, offset.into(), span);
        for &header in covering {
            let change = self.code.change(old, new, 0, span);
            let change = self.at_byte(change, at, header, span);
            self.code.add_change(Variable::Sum(header), change, span);
        }
    }

    /// Bytes of the first run of a header.
    fn first_run(&self, header: HeaderId) -> u32 {
        match self.source.layout(header).groups.first() {
            Some(crate::check::hir::Group::Fixed { bytes, .. }) => *bytes,
            _ => 0,
        }
    }

    /// Is the checksum of a header right? One bit.
    pub(crate) fn valid(&mut self, header: HeaderId, span: Span) -> (Value, Range) {
        self.write_checksums(span);
        let whole = Range::new(0, 1);
        let Some(checksum) = self.source.layout(header).checksum else {
            return (self.code.constant(0, 1, span), whole);
        };
        let base = self.place(Read::Group(header, 0));
        self.prove(header, 0, span);
        let run = self.first_run(header);
        let (mut bytes, mut more) = (run, None);
        if self.source.layout(header).groups.len() > 1 {
            bytes -= run % 2;
            let end = self.end_of(header, span);
            let summed = self.code.with_constant(BinaryOp::Add, base, bytes.into(), span);
            more = Some(self.code.emit(32, Op::Binary(BinaryOp::Sub, end, summed), span));
        }
        let sum = self.code.emit(16, Op::Checksum { base, bytes, more }, span);
        let ones = self.code.constant(0xffff, 16, span);
        let mut right = self.code.emit(1, Op::Compare(CompareOp::Eq, sum, ones), span);
        if checksum.unless_zero {
            let (written, _) = self.load_field(header, checksum.field, span);
            let none = self.code.constant(0, 16, span);
            let absent = self.code.emit(1, Op::Compare(CompareOp::Eq, written, none), span);
            right = self.code.emit(1, Op::Binary(BinaryOp::Or, right, absent), span);
        }
        (right, whole)
    }

    /// The position behind a header.
    pub(super) fn end_of(&mut self, header: HeaderId, span: Span) -> Value {
        let last = self.source.layout(header).groups.len().saturating_sub(1);
        let fixed = match self.source.layout(header).groups.last() {
            Some(crate::check::hir::Group::Fixed { bytes, .. }) => Some(*bytes),
            _ => None,
        };
        let base = self.place(Read::Group(header, last));
        match fixed {
            Some(bytes) => self.code.with_constant(BinaryOp::Add, base, bytes.into(), span),
            None => {
                let length = self.place(Read::Length(header, last));
                self.code.emit(32, Op::Binary(BinaryOp::Add, base, length), span)
            }
        }
    }
}

impl Builder<'_> {
    /// The change of a sum if a number becomes another, `below` bits above the end of a pair of bytes.
    pub(super) fn change(&mut self, old: Value, new: Value, below: u32, span: Span) -> Change {
        let width = self.function.width(new);
        let mut total: Option<Change> = None;
        for (value, taken) in [(new, false), (old, true)] {
            for (piece, bits) in self.pieces(value, width, span) {
                let bits = bits + below as u8;
                let mut piece = piece;
                if below > 0 {
                    piece = self.with_constant(BinaryOp::ShiftLeft, piece, below.into(), span);
                }
                let most = largest(bits.div_ceil(16) * 16);
                if taken {
                    // Its complement in whole pairs of bytes is what is left to zero.
                    piece = self.with_constant(BinaryOp::Xor, piece, most, span);
                }
                total = Some(match total {
                    Some((sum, bound)) => (self.sum_of(sum, piece, span), bound + most),
                    None => (piece, most),
                });
            }
        }
        total.unwrap_or_else(|| (self.constant(0, 64, span), 0))
    }

    /// A value in pieces of at most 32 bits, the least significant first, each 64 bits wide, with their
    /// widths.
    fn pieces(&mut self, value: Value, width: u8, span: Span) -> Vec<(Value, u8)> {
        let mut pieces = Vec::new();
        for first in (0..width).step_by(64) {
            let half = self.shifted_down(value, first.into(), span);
            let half = self.resized(half, 64, span);
            let bits = (width - first).min(64);
            if bits <= 32 {
                pieces.push((half, bits));
                continue;
            }
            let low = self.with_constant(BinaryOp::And, half, largest(32), span);
            let high = self.with_constant(BinaryOp::ShiftRight, half, 32, span);
            pieces.extend([(low, 32), (high, bits - 32)]);
        }
        pieces
    }

    /// Adds to what is noted for a sum.
    pub(super) fn add_change(&mut self, sum: Variable, (value, most): Change, span: Span) {
        let before = self.env.values.get(&sum).copied();
        let (value, most) = match before {
            Some(before) => {
                let mut noted = (before, self.env.bounds.get(&sum).copied().unwrap_or(0));
                while noted.1 + most > LARGEST_SUM {
                    noted = self.folded(noted, span);
                }
                (self.sum_of(noted.0, value, span), noted.1 + most)
            }
            None => (value, most),
        };
        self.env.values.insert(sum, value);
        self.env.bounds.insert(sum, most);
    }

    /// The same sum modulo 65,535, smaller, and zero only if it was.
    fn folded(&mut self, (value, most): Change, span: Span) -> Change {
        let low = self.with_constant(BinaryOp::And, value, 0xffff, span);
        let carry = self.with_constant(BinaryOp::ShiftRight, value, 16, span);
        let folded = self.sum_of(low, carry, span);
        (folded, if most <= 0x1_fffe { 0xffff } else { 0xffff + (most >> 16) })
    }

    /// Takes what was noted for a sum.
    pub(super) fn take_change(&mut self, sum: Variable, span: Span) -> Change {
        let bound = self.env.bounds.remove(&sum).unwrap_or(0);
        match self.env.values.remove(&sum) {
            Some(value) => (value, bound),
            None => (self.constant(0, 64, span), 0),
        }
    }

    /// Goes on where bytes are captured; the way on where they are not.
    pub(super) fn need_or_pass(
        &mut self,
        base: Value,
        bytes: u32,
        more: Option<Value>,
        span: Span,
    ) -> Option<Exit> {
        self.current?;
        let (ok, short) = (self.new_block(span), self.new_block(span));
        let env = self.env.clone();
        let need = Terminator::Need {
            base,
            bytes,
            more,
            limit: None,
            ok: super::build::to(ok),
            short: super::build::to(short),
        };
        self.terminate(need, span);
        self.current = Some(ok);
        Some((short, env))
    }

    /// An operation with a constant of the value's width.
    pub(super) fn with_constant(&mut self, op: BinaryOp, value: Value, constant: u128, span: Span) -> Value {
        let width = self.function.width(value);
        let constant = self.constant(constant, width, span);
        self.emit(width, Op::Binary(op, value, constant), span)
    }

    pub(super) fn sum_of(&mut self, a: Value, b: Value, span: Span) -> Value {
        self.emit(64, Op::Binary(BinaryOp::Add, a, b), span)
    }
}
