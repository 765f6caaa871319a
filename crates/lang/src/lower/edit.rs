//! Changes of the packet's size: what goes in or out, where every header lies then, and what must be shown to
//! be captured again.
//!
//! A position is a number of bytes from the packet's start, so bytes that go in before a header add to its
//! position. Whether they do go in before it is known only when the packet is there; so it is computed,
//! header by header, and folds away where positions are constants. Behind a change nothing is known of
//! captured bytes: a header is checked again before it is read, once on every path.

use super::Lowering;
use super::build::{Builder, to};
use super::env::{Range, Variable};
use super::seals::Breaks;
use crate::check::hir::{Edit, Group, HeaderId, Lead, Made, Place};
use crate::check::types::largest;
use crate::diagnostic::Diagnostic;
use crate::flow::facts::{Read, Subject};
use ir::source::Span;
use ir::{BinaryOp, CompareOp, Op, Terminator, Value};
use std::collections::BTreeMap;

/// The longest IPv4 header and eight bytes: every link lets that through (RFC 791).
const SMALLEST_MTU: u128 = 68;

/// The change of positions behind an edit.
#[derive(Clone, Copy)]
struct Shift {
    /// Bytes that go in, or else out.
    grows: bool,
    /// Positions from here on change.
    from: Value,
    /// By so many bytes, 32 bits.
    by: Value,
}

impl Lowering<'_> {
    pub(super) fn edit(&mut self, edit: &Edit, span: Span) {
        // What is noted for checksums belongs to positions that change.
        self.write_checksums(span);
        if self.code.current.is_none() {
            return;
        }
        match edit {
            Edit::Push { made, place, announces } => {
                if let Place::Before(header) | Place::After(header) = *place {
                    self.break_seal(Some(header), Breaks::Size, span);
                }
                self.leave_governed(span);
                self.push_bytes(made, *place, *announces, span);
                self.seal(made, *place, announces.is_some(), span);
            }
            Edit::Pop(header) => {
                self.break_seal(Some(*header), Breaks::Size, span);
                self.leave_governed(span);
                let (from, end) = (self.begin_of(*header, span), self.end_of(*header, span));
                let by = self.code.emit(32, Op::Binary(BinaryOp::Sub, end, from), span);
                let counts = self.source.layout(*header).counting().next();
                let last = counts.map(|field| self.counted_end(*header, field, span));
                let last = last.map(|last| self.code.larger(last, end, span));
                self.shorten(by, last, span);
                if let Some(last) = last {
                    self.truncate(last, span);
                }
                self.code.effect(Op::PopBytes { at: from, bytes: by }, span);
                self.code.env.take_out(|other| other == *header);
                self.code.shift(Shift { grows: false, from: end, by }, |_| None, span);
            }
            Edit::Decapsulate(header) => {
                self.leave_governed(span);
                let start = self.code.constant(0, 32, span);
                let by = self.begin_of(*header, span);
                if let Some((around, field)) = self.counting_around(*header) {
                    let last = self.counted_end(around, field, span);
                    let last = self.code.larger(last, by, span);
                    self.truncate(last, span);
                }
                self.code.effect(Op::PopBytes { at: start, bytes: by }, span);
                let behind = self.decoded_behind(*header);
                self.code.env.take_out(|other| other != *header && !behind.contains(&other));
                self.code.shift(Shift { grows: false, from: by, by }, |_| Some(true), span);
            }
            Edit::Truncate(length) => {
                let (length, _) = self.value(length);
                let length = self.code.resized(length, 32, span);
                self.truncate(length, span);
            }
            Edit::Fragment(header, mtu) => {
                let (mtu, range) = self.value(mtu);
                if range.low < SMALLEST_MTU {
                    self.report(
                        Diagnostic::error(
                            "E0435",
                            "a fragment needs room for the longest header and eight bytes",
                            span,
                            format!("this can be {}, and must be at least {SMALLEST_MTU}", range.low),
                        )
                        .help(
                            "every link lets IPv4 packets of 68 bytes through; test a computed value before",
                        ),
                    );
                }
                self.break_seal(Some(*header), Breaks::Size, span);
                let mtu = self.code.resized(mtu, 32, span);
                self.fragment(*header, mtu, span);
            }
        }
    }

    fn truncate(&mut self, length: Value, span: Span) {
        self.code.effect(Op::Truncate(length), span);
        self.code.env.nothing_is_proven();
        // A field that was read before the cut may lie behind it: whether it can be read again must not
        // depend on that.
        self.code.env.loaded.clear();
    }

    /// Puts headers into the packet, or drops it where it has no room.
    fn push_bytes(
        &mut self,
        made: &Made,
        place: Place,
        announces: Option<(HeaderId, usize, u128)>,
        span: Span,
    ) {
        let at = match place {
            Place::Start => self.code.constant(0, 32, span),
            Place::Before(header) => self.begin_of(header, span),
            Place::After(header) => self.end_of(header, span),
        };
        let (mut holes, mut values) = self.holes(made, span);
        let wire = self.code.emit(32, Op::WireLength, span);
        let mut rest = self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, wire, at), span);
        // What a short frame was filled up with lies behind all that a header around counts, and in none of
        // its parts.
        let around = self.counting_outside(span);
        for &(header, field) in &around {
            let end = self.counted_end(header, field, span);
            let room = self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, end, at), span);
            rest = self.code.smaller(rest, room, span);
        }
        if !around.is_empty() && made.sums.iter().any(|sum| sum.end.is_none()) {
            let end = self.code.emit(32, Op::Binary(BinaryOp::Add, at, rest), span);
            self.truncate(end, span);
        }
        for &(bit, width, constant) in &made.lengths {
            let constant = self.code.constant(u128::from(constant), 32, span);
            let total = self.code.emit(32, Op::Binary(BinaryOp::AddSaturate, rest, constant), span);
            self.demand_fit(total, width.min(32), span);
            holes.push(ir::Hole { bit, width });
            values.push(self.code.resized(total, width, span));
        }
        if let Some((header, field, value)) = announces {
            let width = self.source.layout(header).fields[field].ty.width().unwrap_or(1);
            let number = self.code.constant(value, width, span);
            self.change_field(header, field, number, Range::one(value), span);
            self.write_checksums(span);
        }
        let by = self.code.constant(made.bytes.len() as u128, 32, span);
        self.lengthen(by, span);
        let template = self.new_template(made, holes);
        let done = self.code.emit(1, Op::PushBytes { at, template, values }, span);
        self.demand(done, "no_headroom", "the packet has no room for the headers that should go in", span);
        let certain = |header: HeaderId| match place {
            Place::Start => Some(true),
            Place::Before(other) => (header == other).then_some(true),
            Place::After(other) => (header == other).then_some(false),
        };
        self.code.shift(Shift { grows: true, from: at, by }, certain, span);
        if let Lead::Carrier(carrier) = made.lead {
            let position = self.code.with_constant(BinaryOp::Add, at, carrier.start.into(), span);
            let is_covered = made.sums.iter().any(|sum| sum.end.is_none());
            self.join_behind(carrier, place, position, is_covered, span);
        }
    }

    /// Takes headers out of checksums behind them that cover their addresses, before they go or something
    /// goes in between.
    fn leave_governed(&mut self, span: Span) {
        for header in self.flow.governing.get(&span).cloned().unwrap_or_default() {
            self.leave_behind(header, span);
        }
    }

    /// Lengthens the headers around a place by what goes in there.
    fn lengthen(&mut self, by: Value, span: Span) {
        for (header, field) in self.counting_outside(span) {
            self.change_length(header, field, BinaryOp::AddSaturate, by, span);
        }
        self.write_checksums(span);
    }

    /// Shortens the headers around a place by what goes out there, and by what they count behind `last`,
    /// where the packet ends from now on.
    fn shorten(&mut self, by: Value, last: Option<Value>, span: Span) {
        for (header, field) in self.counting_outside(span) {
            let mut by = by;
            if let Some(last) = last {
                let end = self.counted_end(header, field, span);
                let behind = self.code.emit(32, Op::Binary(BinaryOp::SubSaturate, end, last), span);
                by = self.code.emit(32, Op::Binary(BinaryOp::Add, by, behind), span);
            }
            self.change_length(header, field, BinaryOp::SubSaturate, by, span);
        }
        self.write_checksums(span);
    }

    /// The length fields of the headers around a place.
    fn counting_outside(&self, span: Span) -> Vec<(HeaderId, usize)> {
        let around = self.flow.enclosing.get(&span).into_iter().flatten();
        around
            .flat_map(|&header| self.source.layout(header).counting().map(move |field| (header, field)))
            .collect()
    }

    fn change_length(&mut self, header: HeaderId, field: usize, op: BinaryOp, by: Value, span: Span) {
        let (before, _) = self.load_field(header, field, span);
        let width = self.code.function.width(before);
        let length = self.code.resized(before, 32, span);
        let length = self.code.emit(32, Op::Binary(op, length, by), span);
        if op == BinaryOp::AddSaturate && width < 32 {
            self.demand_fit(length, width, span);
        }
        let length = self.code.resized(length, width, span);
        self.store_field(header, field, length, span);
        self.code.env.forget(Subject::Field(header, field));
        // What is behind the header keeps its own length: a pseudo header does not change.
        let mut sums = self.sums_of(header, field, span);
        sums.retain(|sum| matches!(sum, Variable::Sum(_)));
        self.note_change(&sums, header, field, before, length, span);
    }

    /// Lets the packet leave in fragments if it is too long; one that must not be cut is dropped.
    fn fragment(&mut self, header: HeaderId, mtu: Value, span: Span) {
        let field =
            |name: &str| self.source.layout(header).fields.iter().position(|field| field.name == name);
        let (Some(total), Some(flags)) = (field("total"), field("flags")) else { return };
        let (length, _) = self.load_field(header, total, span);
        let length = self.code.resized(length, 32, span);
        let fits = self.code.emit(1, Op::Compare(CompareOp::Le, length, mtu), span);
        let ways = self.code.fork(fits, span);
        self.meet_ways(ways, span, |lowering, fits| {
            if !fits {
                lowering.cut(header, flags, mtu, span);
            }
        });
    }

    /// Lets the packet leave in fragments, or drops it if its flags forbid that.
    fn cut(&mut self, header: HeaderId, flags: usize, mtu: Value, span: Span) {
        let (flags, _) = self.load_field(header, flags, span);
        let one = self.code.shifted_down(flags, 1, span);
        let cuttable = self.code.resized(one, 1, span);
        let (zero, one) = (self.code.constant(0, 1, span), self.code.constant(1, 1, span));
        let cuttable = self.code.emit(1, Op::Select(cuttable, zero, one), span);
        let help = "the packet is too long, and its header forbids to cut it";
        self.demand(cuttable, "dont_fragment", help, span);
        let at = self.begin_of(header, span);
        self.code.effect(Op::Fragment { at, mtu }, span);
    }

    /// Drops the packet where its length does not fit a field of so many bits.
    fn demand_fit(&mut self, length: Value, width: u8, span: Span) {
        let limit = self.code.constant(largest(width), 32, span);
        let fits = self.code.emit(1, Op::Compare(CompareOp::Le, length, limit), span);
        self.demand(fits, "too_long", "the packet is too long for a header that counts its bytes", span);
    }

    /// Goes on where a bit is set, and drops the packet elsewhere.
    fn demand(&mut self, condition: Value, reason: &str, help: &str, span: Span) {
        if self.code.current.is_none() {
            return;
        }
        let reason = self.reason(reason, help);
        let (ok, out) = (self.code.new_block(span), self.code.drop_block(reason, span));
        self.code.terminate(Terminator::Branch(condition, to(ok), to(out)), span);
        self.code.current = Some(ok);
    }

    /// Headers that were certainly decoded behind another one.
    pub(super) fn decoded_behind(&self, header: HeaderId) -> Vec<HeaderId> {
        let Some(stage) = self.scope.stage else { return Vec::new() };
        let decoded = self.flow.decoded_in(self.source, stage);
        decoded.behind.iter().filter(|(first, _)| *first == header).map(|(_, second)| *second).collect()
    }

    /// Makes sure that a run of fields is captured where an edit lies between its check and this point.
    pub(super) fn prove(&mut self, header: HeaderId, group: usize, span: Span) {
        if !self.code.env.unproven.remove(&(header, group)) || self.code.current.is_none() {
            return;
        }
        let Some(Group::Fixed { bytes, .. }) = self.source.layout(header).groups.get(group) else { return };
        let bytes = *bytes;
        let base = self.code.handed_on(Read::Group(header, group));
        self.need(header, base, bytes, None, None, span);
    }

    fn begin_of(&mut self, header: HeaderId, span: Span) -> Value {
        self.scope.undecoded_read = span;
        self.place(Read::Group(header, 0))
    }
}

impl Builder<'_> {
    /// Changes the positions of everything that lies behind the place of an edit; `certain` says for which
    /// headers that is known.
    fn shift(&mut self, shift: Shift, certain: impl Fn(HeaderId) -> Option<bool>, span: Span) {
        let places = self.env.values.iter().filter_map(|(variable, value)| match variable {
            Variable::Place(Read::Perhaps(header)) => Some((Read::Perhaps(*header), *value)),
            Variable::Place(read @ (Read::Cursor | Read::Group(..))) => Some((*read, *value)),
            _ => None,
        });
        let places: Vec<(Read, Value)> = places.collect();
        let mut outcome: BTreeMap<Option<HeaderId>, Value> = BTreeMap::new();
        for (read, position) in places {
            if let Read::Perhaps(_) = read {
                self.shift_perhaps(shift, read, position, span);
                continue;
            }
            let header = read.header();
            let known = match header {
                Some(header) => certain(header),
                // What is decoded next lies behind everything that is decoded.
                None => Some(true),
            };
            if known == Some(false) {
                continue;
            }
            let op = if shift.grows { BinaryOp::Add } else { BinaryOp::SubSaturate };
            let moved = self.emit(32, Op::Binary(op, position, shift.by), span);
            let position = if known == Some(true) {
                moved
            } else {
                let start = header.and_then(|header| {
                    self.env.values.get(&Variable::Place(Read::Group(header, 0))).copied()
                });
                let behind = match outcome.get(&header) {
                    Some(&behind) => behind,
                    None => {
                        let start = start.unwrap_or(position);
                        let behind = self.emit(1, Op::Compare(CompareOp::Le, shift.from, start), span);
                        outcome.insert(header, behind);
                        behind
                    }
                };
                self.emit(32, Op::Select(behind, moved, position), span)
            };
            self.env.values.insert(Variable::Place(read), position);
        }
        self.env.nothing_is_proven();
    }

    /// One more than the position of a header that is perhaps there: zero where it is not, also where it was
    /// taken out.
    fn shift_perhaps(&mut self, shift: Shift, read: Read, position: Value, span: Span) {
        let behind = self.emit(1, Op::Compare(CompareOp::Lt, shift.from, position), span);
        let op = if shift.grows { BinaryOp::Add } else { BinaryOp::Sub };
        let moved = self.emit(32, Op::Binary(op, position, shift.by), span);
        let mut stays = position;
        if !shift.grows {
            // From the first byte that goes on.
            let first = self.emit(32, Op::Binary(BinaryOp::Sub, shift.from, shift.by), span);
            let gone = self.emit(1, Op::Compare(CompareOp::Lt, first, position), span);
            let zero = self.constant(0, 32, span);
            stays = self.emit(32, Op::Select(gone, zero, position), span);
        }
        let position = self.emit(32, Op::Select(behind, moved, stays), span);
        self.env.values.insert(Variable::Place(read), position);
    }
}
