//! Writes that leave the packet behind: table entries and packets the program makes.

use super::Lowering;
use super::expressions::Shape;
use crate::check::hir::{Block, Expr, Made, Tail, TailFrom, Write};
use crate::check::types::largest;
use crate::diagnostic::Diagnostic;
use crate::flow::facts::Read;
use crate::ir::{self, Op, Value};
use crate::source::Span;

impl Lowering<'_> {
    /// One write, or several of which all or none are done.
    pub(crate) fn learn(&mut self, writes: &[Write], otherwise: Option<&Block>, span: Span) {
        let lowered: Vec<(u32, Vec<Value>, Vec<Value>)> = writes
            .iter()
            .map(|write| (write.table.0 as u32, self.values(&write.key), self.values(&write.value)))
            .collect();
        let keys = || lowered.iter().map(|(table, key, _)| (*table, key.clone())).collect();
        let accepted = match &lowered[..] {
            [] => return,
            [(table, key, value)] => Op::Learn { table: *table, key: key.clone(), value: value.clone() },
            _ => Op::HasRoom(keys()),
        };
        let together = lowered.len() > 1;
        let accepted = self.code.emit(1, accepted, span);
        if !together && otherwise.is_none() {
            return;
        }
        let ways = self.code.fork(accepted, span);
        self.meet_ways(ways, span, |lowering, accepted| {
            if !accepted {
                otherwise.into_iter().for_each(|otherwise| lowering.block(otherwise));
            } else if together {
                for (table, key, value) in lowered.clone() {
                    lowering.code.emit(1, Op::Learn { table, key, value }, span);
                }
            }
        });
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
