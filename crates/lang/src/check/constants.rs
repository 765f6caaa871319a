//! Constants: expressions whose value is known while checking.

use super::hir::{Expr, ExprKind};
use super::types::{Type, largest};
use super::{Checker, Context};
use crate::ast::{self, BinaryOp, CastMode};
use crate::diagnostic::{Diagnostic, Findings};
use ir::source::Span;
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
            // What is wrong in it was reported.
            None if is_broken(&checked) => None,
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
        if let Some(known) = self.computed.constants.get(name) {
            return known.clone();
        }
        let item = *self.names.constants.get(name)?;
        if !self.open_constant(name) {
            return None;
        }
        let ty = self.resolve_type(&item.ty);
        let scopes = std::mem::take(&mut self.scope.locals);
        let before = self.diagnostics.reported();
        if matches!(ty, Type::Time) {
            let ends = item.range.iter().flat_map(|(low, high)| std::iter::once(low).chain(high));
            for number in std::iter::once(&item.value).chain(ends) {
                self.diagnostics.check_unit(number);
            }
        }
        let value = self.constant(&item.value, &ty);
        if let (Some(value), true) = (value, self.diagnostics.reported() == before) {
            self.check_range(item, &ty, value);
        }
        self.scope.locals = scopes;
        self.computed.open_constants.remove(name);
        let known = value.map(|value| (ty, value));
        self.computed.constants.insert(name.to_string(), known.clone());
        known
    }

    /// Begins to compute a constant; reports one that is being computed already, since it needs itself.
    pub(super) fn open_constant(&mut self, name: &str) -> bool {
        if self.computed.open_constants.insert(name.to_string()) {
            return true;
        }
        if let Some(item) = self.names.constants.get(name) {
            let headline = format!("the constant `{name}` needs itself");
            self.error("E0106", headline, item.name.span, "its value has no beginning");
        }
        false
    }

    /// Reports a constant that does not keep to the range that is declared for it.
    fn check_range(&mut self, item: &ast::Const, ty: &Type, value: u128) {
        let Some((low, high)) = &item.range else { return };
        let place = high.as_ref().map_or(low.span, |high| low.span.to(high.span));
        let low = self.constant(low, ty);
        let high = high.as_ref().map_or(Some(ty.largest()), |high| self.constant(high, ty));
        match low.zip(high) {
            Some((low, high)) if low > high => {
                self.error("E0224", "this range is empty", place, "it ends before it begins");
            }
            Some((low, high)) if !(low..=high).contains(&value) => {
                let headline = format!("`{}` lies outside of its range", item.name.text);
                let label = "not one of the values it may have";
                self.report(
                    Diagnostic::error("E0235", headline, item.value.span, label).place(place, "the range"),
                );
            }
            _ => {}
        }
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

/// Whether a part of an expression that would be computed was reported.
fn is_broken(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Error => true,
        ExprKind::Not(inner)
        | ExprKind::Complement(inner)
        | ExprKind::Bit(inner, _)
        | ExprKind::Cast(inner, _)
        | ExprKind::Masked(inner, ..) => is_broken(inner),
        ExprKind::Compare(_, a, b) | ExprKind::Logic(_, a, b) | ExprKind::Binary(_, a, b) => {
            is_broken(a) || is_broken(b)
        }
        ExprKind::If(condition, yes, no) => [condition, yes, no].into_iter().any(|part| is_broken(part)),
        _ => false,
    }
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
