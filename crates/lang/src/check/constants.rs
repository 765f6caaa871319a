//! Constants: expressions whose value is known while checking.

use super::hir::{Expr, ExprKind};
use super::types::{Type, largest};
use super::{Checker, Context};
use crate::ast::{self, BinaryOp, CastMode};
use crate::diagnostic::{Diagnostic, Findings};
use crate::source::Span;
use std::ops::RangeInclusive;

impl Checker<'_> {
    /// The value of a constant expression of a type; reports what is no constant.
    pub(crate) fn constant(&mut self, expr: &ast::Expr, ty: &Type) -> Option<u128> {
        let context = std::mem::replace(&mut self.scope.context, Context::Constant);
        let checked = self.expression(expr, Some(ty));
        self.scope.context = context;
        if matches!(checked.ty, Type::Unknown) {
            return None;
        }
        if !self.diagnostics.expect_type(&checked, ty) {
            return None;
        }
        match fold(&checked) {
            Some(value) => Some(value),
            None => {
                self.error(
                    "E0208",
                    "this must be a constant",
                    expr.span,
                    "its value is known only when a packet is there, or it does not exist",
                );
                None
            }
        }
    }

    /// A constant number within a range; reports one outside of it.
    pub(crate) fn number_within(
        &mut self,
        expr: &ast::Expr,
        range: RangeInclusive<u128>,
        code: &'static str,
        headline: impl Into<String>,
    ) -> Option<u32> {
        let number = self.constant(expr, &Type::Uint(32))?;
        let fits = range.contains(&number);
        if !fits {
            self.error(code, headline, expr.span, format!("this is {number}"));
        }
        fits.then_some(number as u32)
    }

    /// Type and value of a declared constant, computed when first asked for.
    pub(crate) fn constant_named(&mut self, name: &str) -> Option<(Type, u128)> {
        if self.computed.open_constants.contains(name) {
            let span = self.names.constants.get(name)?.name.span;
            self.error(
                "E0106",
                format!("the constant `{name}` needs itself"),
                span,
                "its value has no beginning",
            );
            return None;
        }
        if let Some(known) = self.computed.constants.get(name) {
            return known.clone();
        }
        let item = *self.names.constants.get(name)?;
        self.computed.open_constants.insert(name.to_string());
        let ty = self.resolve_type(&item.ty);
        let scopes = std::mem::take(&mut self.scope.locals);
        let value = self.constant(&item.value, &ty);
        self.scope.locals = scopes;
        self.computed.open_constants.remove(name);
        let known = value.map(|value| (ty, value));
        self.computed.constants.insert(name.to_string(), known.clone());
        known
    }
}

impl Findings {
    /// Reports a bare number where a time is wanted.
    pub(crate) fn check_unit(&mut self, expr: &ast::Expr) {
        if let ast::ExprKind::Int(value) = expr.kind {
            let at = Span::new(expr.span.file, expr.span.end, expr.span.end);
            self.report(
                Diagnostic::error("E0232", "a time has a unit", expr.span, format!("{value} of what?"))
                    .help("units are `ns`, `us`, `ms`, `s`, `min` and `h`")
                    .suggest("write seconds", at, "s"),
            );
        }
    }
}

/// The value of an expression made of constants; `None` if it is none, or overflows.
pub(crate) fn fold(expr: &Expr) -> Option<u128> {
    fold_with(expr, &|_| None)
}

/// The same where fields of the layout that is being described have known values.
pub(crate) fn fold_with(expr: &Expr, own: &dyn Fn(usize) -> Option<u128>) -> Option<u128> {
    let width = expr.ty.width()?;
    let fold = |inner: &Expr| fold_with(inner, own);
    let value = match &expr.kind {
        ExprKind::Const(value) => *value,
        ExprKind::Own(field) => own(*field)?,
        ExprKind::Not(inner) => 1 - fold(inner)?,
        ExprKind::Complement(inner) => !fold(inner)? & largest(width),
        ExprKind::Bit(inner, bit) => fold(inner)? >> bit & 1,
        ExprKind::Cast(inner, mode) => {
            let value = fold(inner)?;
            match mode {
                CastMode::Exact if value > largest(width) => return None,
                CastMode::Saturate => value.min(largest(width)),
                _ => value & largest(width),
            }
        }
        ExprKind::Compare(op, a, b) => {
            let (a, b) = (fold(a)?, fold(b)?);
            u128::from(compare(*op, a, b))
        }
        ExprKind::Logic(true, a, b) => fold(a)? & fold(b)?,
        ExprKind::Logic(false, a, b) => fold(a)? | fold(b)?,
        ExprKind::Masked(inner, mask, value) => u128::from(fold(inner)? & mask == *value),
        ExprKind::If(condition, yes, no) => {
            if fold(condition)? == 1 {
                fold(yes)?
            } else {
                fold(no)?
            }
        }
        ExprKind::Binary(op, a, b) => binary(*op, fold(a)?, fold(b)?, width)?,
        _ => return None,
    };
    Some(value)
}

/// Compares two numbers.
pub(crate) fn compare(op: BinaryOp, a: u128, b: u128) -> bool {
    match op {
        BinaryOp::Eq => a == b,
        BinaryOp::Ne => a != b,
        BinaryOp::Lt => a < b,
        BinaryOp::Le => a <= b,
        BinaryOp::Gt => a > b,
        _ => a >= b,
    }
}

fn binary(op: BinaryOp, a: u128, b: u128, width: u8) -> Option<u128> {
    let top = largest(width);
    Some(match op {
        BinaryOp::Add => a.checked_add(b).filter(|&value| value <= top)?,
        BinaryOp::AddWrap => a.wrapping_add(b) & top,
        BinaryOp::AddSaturate => a.saturating_add(b).min(top),
        BinaryOp::Sub => a.checked_sub(b)?,
        BinaryOp::SubWrap => a.wrapping_sub(b) & top,
        BinaryOp::SubSaturate => a.saturating_sub(b),
        BinaryOp::Mul => a.checked_mul(b).filter(|&value| value <= top)?,
        BinaryOp::MulWrap => a.wrapping_mul(b) & top,
        BinaryOp::MulSaturate => a.saturating_mul(b).min(top),
        BinaryOp::Div => a.checked_div(b)?,
        BinaryOp::Rem => a.checked_rem(b)?,
        BinaryOp::BitAnd => a & b,
        BinaryOp::BitOr => a | b,
        BinaryOp::BitXor => a ^ b,
        BinaryOp::ShiftLeft => {
            if b >= u128::from(width) {
                return None;
            }
            a << b & top
        }
        BinaryOp::ShiftRight => {
            if b >= u128::from(width) {
                return None;
            }
            a >> b
        }
        _ => return None,
    })
}
