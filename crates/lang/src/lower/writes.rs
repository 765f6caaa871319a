//! Writes that leave the packet behind: table entries and packets the program makes.

use super::Lowering;
use super::expressions::Shape;
use crate::check::hir::{Block, Expr, Made, Tail, TailFrom, Write};
use crate::check::types::largest;
use crate::diagnostic::Diagnostic;
use crate::flow::facts::Read;
use ir::source::Span;
use ir::{Op, Value};

/// A write whose columns are computed.
#[derive(Clone)]
struct Learning {
    table: u32,
    key: Vec<Value>,
    value: Vec<Value>,
    lifetime: Option<Value>,
}

impl Lowering<'_> {
    /// One write, or several of which all or none are done.
    pub(crate) fn learn(&mut self, writes: &[Write], otherwise: Option<&Block>, span: Span) {
        let lowered: Vec<Learning> = writes.iter().map(|write| self.learning(write)).collect();
        let together = lowered.len() > 1;
        let accepted = match &lowered[..] {
            [] => return,
            [one] => self.learn_one(one, span),
            all => {
                let keys = all.iter().map(|one| (one.table, one.key.clone())).collect();
                self.code.emit(1, Op::HasRoom(keys), span)
            }
        };
        if !together && otherwise.is_none() {
            return;
        }
        let ways = self.code.fork(accepted, span);
        self.meet_ways(ways, span, |lowering, accepted| {
            if !accepted {
                otherwise.into_iter().for_each(|otherwise| lowering.block(otherwise));
            } else if together {
                lowered.iter().for_each(|one| _ = lowering.learn_one(one, span));
            }
        });
    }

    /// What a write puts where. A lifetime of its own is no longer than the table allows.
    fn learning(&mut self, write: &Write) -> Learning {
        let table = write.table.0 as u32;
        let (key, value) = (self.values(&write.key), self.values(&write.value));
        let lifetime = write.lifetime.as_ref().map(|time| {
            let (after, range) = self.value(time);
            let declared = &mut self.program.tables[table as usize];
            declared.lifetimes = true;
            let longest = declared.age.unwrap_or(u64::MAX);
            if range.high > longest.into() {
                let (name, place) = (declared.name.clone(), declared.span);
                let may = if range.low == range.high { "this is" } else { "this may be" };
                self.report(
                    Diagnostic::error(
                        "E0577",
                        format!("an entry of `{name}` would live longer than its table allows"),
                        time.span,
                        format!("{may} {} ns, and the age of the table is {longest} ns", range.high),
                    )
                    .place(place, "`age` is the longest time")
                    .help("shorten the time, compare it before, as in `if t <= 300s`, or make `age` longer"),
                );
            }
            after
        });
        Learning { table, key, value, lifetime }
    }

    /// Learns one entry; gives the bit that says whether it was accepted.
    fn learn_one(&mut self, one: &Learning, span: Span) -> Value {
        let Learning { table, key, value, lifetime } = one.clone();
        let accepted = self.code.emit(1, Op::Learn { table, key: key.clone(), value }, span);
        if let Some(after) = lifetime {
            // Where the entry was refused, there is none with this key.
            self.code.effect(Op::EndAfter { table, key, after }, span);
        }
        accepted
    }

    /// A packet from a template.
    pub(crate) fn make_packet(&mut self, made: &Made, port: &Expr, span: Span) {
        let (mut holes, mut values) = self.holes(made, span);
        let (mut tail, mut limit) = (None, None);
        if let Some(Tail { from, take }) = &made.tail {
            self.reads_payload = true;
            limit = take.as_ref().map(|take| self.value(take).0);
            self.write_checksums(span);
            let start = match from {
                TailFrom::Payload => self.place(Read::Cursor),
                TailFrom::Packet => self.code.constant(0, 32, span),
                TailFrom::Header(header) => self.place(Read::Group(*header, 0)),
            };
            let end = self.code.emit(32, Op::WireLength, span);
            let mut rest = self.code.emit(32, Op::Binary(ir::BinaryOp::SubSaturate, end, start), span);
            if let Some(limit) = limit {
                rest = self.code.smaller(rest, limit, span);
            }
            for &(bit, width, constant) in &made.lengths {
                // A payload too long for the length field gives the largest length.
                let constant = self.code.constant(u128::from(constant), 32, span);
                let total = self.code.emit(32, Op::Binary(ir::BinaryOp::AddSaturate, rest, constant), span);
                let limit = self.code.constant(largest(width.min(32)), 32, span);
                let clamped = self.code.smaller(total, limit, span);
                holes.push(ir::Hole { bit, width });
                values.push(self.code.resized(clamped, width, span));
            }
            tail = Some(start);
        }
        let Shape::Scalar { value: port, .. } = self.shape(port) else { return };
        let template = self.new_template(made, holes);
        self.code.effect(Op::Emit { template, values, tail, limit, port }, span);
    }

    /// The number of a new template: the constant bytes of a packet, with its holes.
    pub(super) fn new_template(&mut self, made: &Made, holes: Vec<ir::Hole>) -> u32 {
        let (bytes, sums) = (made.bytes.clone(), made.sums.clone());
        self.program.templates.push(ir::Template { bytes, holes, sums });
        self.program.templates.len() as u32 - 1
    }

    /// The holes of a packet and the values that fill them.
    pub(super) fn holes(&mut self, made: &Made, span: Span) -> (Vec<ir::Hole>, Vec<Value>) {
        let mut holes = Vec::new();
        let mut values = Vec::new();
        for field in &made.holes {
            let (value, range) = self.value(&field.value);
            if let Some((name, (low, high))) = &field.constraint
                && (range.low < *low || range.high > *high)
            {
                let wanted = crate::check::packets::range_in_words(*low, *high);
                self.report(Diagnostic::error(
                    "E0312",
                    format!("`{name}` must be {wanted}"),
                    field.value.span,
                    format!("this may be from {} to {}", range.low, range.high),
                ));
            }
            holes.push(ir::Hole { bit: field.bit, width: field.width });
            values.push(self.code.resized(value, field.width, span));
        }
        (holes, values)
    }
}
