//! Conditions: ways on for true and false, with what each way knows.

use super::Lowering;
use super::build::{Exit, Ways};
use super::env::Range;
use super::expressions::Shape;
use crate::ast::BinaryOp;
use crate::check::hir::{Expr, ExprKind, HeaderId};
use crate::flow::facts::Subject;

/// What a comparison is about: a range it has, and the field or local it is.
type Side = (Range, Option<Subject>);

impl Lowering<'_> {
    /// Lowers a condition; returns the ways on from it.
    pub(crate) fn condition(&mut self, expr: &Expr) -> Ways {
        match &expr.kind {
            ExprKind::Not(inner) => {
                let (yes, no) = self.condition(inner);
                (no, yes)
            }
            ExprKind::Logic(both, a, b) => {
                let (yes, no) = self.condition(a);
                let (goes_on, decided) = if *both { (yes, no) } else { (no, yes) };
                let (mut second_yes, mut second_no) = (None, None);
                if let Some(exit) = goes_on {
                    self.code.resume(exit);
                    (second_yes, second_no) = self.condition(b);
                }
                if *both {
                    (second_yes, self.joined(decided, second_no, expr))
                } else {
                    (self.joined(decided, second_yes, expr), second_no)
                }
            }
            ExprKind::Compare(op, a, b) => {
                let (left, right) = (self.shape(a), self.shape(b));
                let (
                    Shape::Scalar { value: x, range: p, subject: s },
                    Shape::Scalar { value: y, range: q, subject: t },
                ) = (left, right)
                else {
                    return (self.code.suspend(), None);
                };
                if let Some(outcome) = always(*op, p, q) {
                    let exit = self.code.suspend();
                    return if outcome { (exit, None) } else { (None, exit) };
                }
                let condition = self.code.comparison(*op, x, y, expr.span);
                let (yes, no) = self.code.fork(condition, expr.span);
                (
                    yes.map(|exit| refined(exit, *op, (p, s), (q, t))),
                    no.map(|exit| refined(exit, opposite(*op), (p, s), (q, t))),
                )
            }
            ExprKind::Masked(inner, mask, wanted) => {
                let Shape::Scalar { subject, range, .. } = self.shape(inner) else {
                    return (self.code.suspend(), None);
                };
                let (value, _) = self.value(expr);
                let (mut yes, no) = self.code.fork(value, expr.span);
                // The mask of a prefix: the addresses under it are one range.
                let last = wanted | (inner.ty.largest() & !mask);
                if let (Some((_, env)), Some(subject)) = (&mut yes, subject)
                    && let Some(known) = range.meet(Range::new(*wanted, last))
                {
                    env.ranges.insert(subject, known);
                }
                (yes, no)
            }
            _ => {
                let (value, range) = self.value(expr);
                if range.low == range.high {
                    let exit = self.code.suspend();
                    return if range.low == 1 { (exit, None) } else { (None, exit) };
                }
                self.code.fork(value, expr.span)
            }
        }
    }

    fn joined(&mut self, a: Option<Exit>, b: Option<Exit>, expr: &Expr) -> Option<Exit> {
        self.join(a.into_iter().chain(b).collect(), expr.span);
        self.code.suspend()
    }

    /// Is the condition known to hold here? Nothing is lowered.
    pub(crate) fn certainly(&self, expr: &Expr, header: HeaderId) -> bool {
        self.outcome(expr, header) == Some(true)
    }

    /// The outcome of a condition on fields of a header, if it is known here.
    fn outcome(&self, expr: &Expr, header: HeaderId) -> Option<bool> {
        let side = |expr: &Expr| -> Option<Range> {
            match &expr.kind {
                ExprKind::Const(value) => Some(Range::one(*value)),
                ExprKind::Own(field) => {
                    let described = &self.source.layout(header).fields[*field];
                    let whole = described
                        .constraint
                        .map_or(Range::new(0, described.ty.largest()), |(low, high)| Range::new(low, high));
                    Some(self.code.env.range_of(Subject::Field(header, *field), whole))
                }
                _ => None,
            }
        };
        match &expr.kind {
            ExprKind::Not(inner) => self.outcome(inner, header).map(|outcome| !outcome),
            ExprKind::Logic(both, a, b) => {
                let (a, b) = (self.outcome(a, header), self.outcome(b, header));
                // One side that is false decides `&&`, one that is true decides `||`.
                if a == Some(!*both) || b == Some(!*both) { Some(!*both) } else { a.and(b) }
            }
            ExprKind::Compare(op, a, b) => always(*op, side(a)?, side(b)?),
            _ => None,
        }
    }
}

/// The outcome of a comparison of values in these ranges, if it is always the same.
pub(crate) fn always(op: BinaryOp, p: Range, q: Range) -> Option<bool> {
    let below = |p: Range, q: Range| {
        if p.high < q.low {
            Some(true)
        } else if p.low >= q.high {
            Some(false)
        } else {
            None
        }
    };
    let not_above = |p: Range, q: Range| {
        if p.high <= q.low {
            Some(true)
        } else if p.low > q.high {
            Some(false)
        } else {
            None
        }
    };
    let equal = || {
        if p.low == p.high && p == q {
            Some(true)
        } else if p.meet(q).is_none() {
            Some(false)
        } else {
            None
        }
    };
    match op {
        BinaryOp::Eq => equal(),
        BinaryOp::Ne => equal().map(|outcome| !outcome),
        BinaryOp::Lt => below(p, q),
        BinaryOp::Le => not_above(p, q),
        BinaryOp::Gt => below(q, p),
        _ => not_above(q, p),
    }
}

fn opposite(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Le => BinaryOp::Gt,
        BinaryOp::Gt => BinaryOp::Le,
        _ => BinaryOp::Lt,
    }
}

/// The way on where `a op b` holds, with narrower ranges.
fn refined(exit: Exit, op: BinaryOp, a: Side, b: Side) -> Exit {
    let (block, mut env) = exit;
    for ((range, subject), (other, _), op) in [(a, b, op), (b, a, mirrored(op))] {
        let Some(subject) = subject else { continue };
        if let Some(known) = narrowed(range, op, other) {
            env.ranges.insert(subject, known);
        }
    }
    if let (Some(x), Some(y)) = (a.1, b.1) {
        match op {
            BinaryOp::Eq => {
                env.ordered.insert((x, y), ());
                env.ordered.insert((y, x), ());
            }
            BinaryOp::Lt | BinaryOp::Le => {
                env.ordered.insert((x, y), ());
            }
            BinaryOp::Gt | BinaryOp::Ge => {
                env.ordered.insert((y, x), ());
            }
            _ => {}
        }
    }
    (block, env)
}

fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Lt => BinaryOp::Gt,
        BinaryOp::Le => BinaryOp::Ge,
        BinaryOp::Gt => BinaryOp::Lt,
        BinaryOp::Ge => BinaryOp::Le,
        same => same,
    }
}

/// The part of a range for which `value op other` can hold.
fn narrowed(range: Range, op: BinaryOp, other: Range) -> Option<Range> {
    match op {
        BinaryOp::Eq => range.meet(other),
        BinaryOp::Ne if other.low == other.high && range.low == other.low => {
            range.meet(Range::new(range.low.checked_add(1)?, u128::MAX))
        }
        BinaryOp::Ne if other.low == other.high && range.high == other.low => {
            range.meet(Range::new(0, range.high.checked_sub(1)?))
        }
        BinaryOp::Ne => None,
        BinaryOp::Lt => range.meet(Range::new(0, other.high.checked_sub(1)?)),
        BinaryOp::Le => range.meet(Range::new(0, other.high)),
        BinaryOp::Gt => range.meet(Range::new(other.low.checked_add(1)?, u128::MAX)),
        _ => range.meet(Range::new(other.low, u128::MAX)),
    }
}
