//! Arithmetic with proofs: results that fit, divisors that are not zero, distances below the width.

use super::Lowering;
use super::env::Range;
use super::expressions::{Shape, scalar};
use crate::ast::BinaryOp;
use crate::check::hir::Expr;
use crate::check::types::{Type, largest};
use crate::diagnostic::Diagnostic;
use ir::Op;
use ir::source::Span;

impl Lowering<'_> {
    pub(crate) fn arithmetic(&mut self, op: BinaryOp, a: &Expr, b: &Expr, ty: &Type, span: Span) -> Shape {
        let (left, right) = (self.shape(a), self.shape(b));
        let (
            Shape::Scalar { value: x, range: p, subject: s },
            Shape::Scalar { value: y, range: q, subject: t },
        ) = (left, right)
        else {
            return scalar(self.code.constant(0, ty.width().unwrap_or(1), span), Range::one(0));
        };
        let width = ty.width().unwrap_or(1);
        let top = largest(width);
        let whole = Range::new(0, top);
        // The range of a result that fits the type for all operands.
        let fitted =
            |low: Option<u128>, high: Option<u128>| Some(Range::new(low?, high.filter(|high| *high <= top)?));
        let (operation, range) = match op {
            BinaryOp::Add | BinaryOp::AddWrap => {
                let sum = fitted(p.low.checked_add(q.low), p.high.checked_add(q.high));
                if sum.is_none() && op == BinaryOp::Add {
                    self.overflow("+", "the sum", p, q, ty, span);
                }
                (ir::BinaryOp::Add, sum.unwrap_or(whole))
            }
            BinaryOp::Sub => {
                if p.low < q.high && !self.code.env.ordered(t, s) {
                    self.overflow("-", "the difference", p, q, ty, span);
                }
                (ir::BinaryOp::Sub, Range::new(p.low.saturating_sub(q.high), p.high.saturating_sub(q.low)))
            }
            BinaryOp::SubWrap => {
                let fits = p.low >= q.high;
                (ir::BinaryOp::Sub, if fits { Range::new(p.low - q.high, p.high - q.low) } else { whole })
            }
            BinaryOp::Mul | BinaryOp::MulWrap => {
                let product = fitted(p.low.checked_mul(q.low), p.high.checked_mul(q.high));
                if product.is_none() && op == BinaryOp::Mul {
                    self.overflow("*", "the product", p, q, ty, span);
                }
                (ir::BinaryOp::Mul, product.unwrap_or(whole))
            }
            BinaryOp::AddSaturate => (
                ir::BinaryOp::AddSaturate,
                Range::new(p.low.saturating_add(q.low).min(top), p.high.saturating_add(q.high).min(top)),
            ),
            BinaryOp::SubSaturate => (
                ir::BinaryOp::SubSaturate,
                Range::new(p.low.saturating_sub(q.high), p.high.saturating_sub(q.low)),
            ),
            BinaryOp::MulSaturate => (
                ir::BinaryOp::MulSaturate,
                Range::new(p.low.saturating_mul(q.low).min(top), p.high.saturating_mul(q.high).min(top)),
            ),
            BinaryOp::Div => {
                self.divisor(q, b.span);
                (ir::BinaryOp::Div, Range::new(p.low / q.high.max(1), p.high / q.low.max(1)))
            }
            BinaryOp::Rem => {
                self.divisor(q, b.span);
                (ir::BinaryOp::Rem, Range::new(0, p.high.min(q.high.saturating_sub(1))))
            }
            BinaryOp::BitAnd => (ir::BinaryOp::And, Range::new(0, p.high.min(q.high))),
            BinaryOp::BitOr => (ir::BinaryOp::Or, Range::new(p.low.max(q.low), filled(p.high | q.high))),
            BinaryOp::BitXor => (ir::BinaryOp::Xor, Range::new(0, filled(p.high | q.high))),
            BinaryOp::ShiftLeft => {
                self.distance(q, width, b.span);
                (ir::BinaryOp::ShiftLeft, shifted_left(p, q, width).unwrap_or(whole))
            }
            _ => {
                self.distance(q, width, b.span);
                let high = if q.low < 128 { p.high >> q.low } else { 0 };
                let low = if q.high < 128 { p.low >> q.high } else { 0 };
                (ir::BinaryOp::ShiftRight, Range::new(low, high))
            }
        };
        // A distance may be of another type than what it shifts; being less than the width, it fits it.
        let y = self.code.resized(y, width, span);
        scalar(self.code.emit(width, Op::Binary(operation, x, y), span), range)
    }

    fn overflow(&mut self, operator: &str, what: &str, p: Range, q: Range, ty: &Type, span: Span) {
        let bound = if operator == "-" {
            "go below zero".to_string()
        } else {
            format!("exceed {}, the largest {ty}", ty.largest())
        };
        self.report(
            Diagnostic::error(
                "E0202",
                format!("{what} may {bound}"),
                span,
                format!("from {} … {} and {} … {}", p.low, p.high, q.low, q.high),
            )
            .help(format!("check the values first, or say what happens: `{operator}%` wraps around, `{operator}|` stops at the limit")),
        );
    }

    fn divisor(&mut self, range: Range, span: Span) {
        if range.low == 0 {
            self.report(
                Diagnostic::error("E0204", "the divisor may be zero", span, "nothing says it is not")
                    .help("check it first"),
            );
        }
    }

    fn distance(&mut self, range: Range, width: u8, span: Span) {
        if range.high >= u128::from(width) {
            self.report(
                Diagnostic::error(
                    "E0205",
                    format!("this may shift by {} bits or more", width),
                    span,
                    format!("it can be as large as {}", range.high),
                )
                .help("check it first"),
            );
        }
    }
}

/// The range of values shifted to the left, if no shift loses a bit.
fn shifted_left(value: Range, distance: Range, width: u8) -> Option<Range> {
    let fits = distance.high < u128::from(width)
        && u128::from(value.high.leading_zeros()) >= 128 - u128::from(width) + distance.high;
    fits.then(|| Range::new(value.low << distance.low, value.high << distance.high))
}

/// The largest number with as many bits.
fn filled(value: u128) -> u128 {
    if value == 0 { 0 } else { largest((128 - value.leading_zeros()) as u8) }
}
