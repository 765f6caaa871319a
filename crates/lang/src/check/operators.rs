//! Operators: both sides get one type; conversions, comparisons, prefixes.

use super::Checker;
use super::expressions::{converted, error};
use super::hir::{Expr, ExprKind};
use super::types::Type;
use crate::ast::{self, BinaryOp, CastMode};
use crate::diagnostic::{Diagnostic, Findings};
use ir::prefix_mask;
use ir::source::Span;

impl Checker<'_> {
    pub(crate) fn binary(
        &mut self,
        op: BinaryOp,
        a: &ast::Expr,
        b: &ast::Expr,
        expected: Option<&Type>,
        span: Span,
    ) -> Expr {
        match op {
            BinaryOp::And | BinaryOp::Or => {
                let a = self.expression(a, Some(&Type::Bool));
                let b = self.expression(b, Some(&Type::Bool));
                self.diagnostics.expect_type(&a, &Type::Bool);
                self.diagnostics.expect_type(&b, &Type::Bool);
                Expr {
                    kind: ExprKind::Logic(op == BinaryOp::And, Box::new(a), Box::new(b)),
                    ty: Type::Bool,
                    span,
                }
            }
            BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => {
                let (a, b) = self.alike(a, b, None);
                if a.ty != Type::Unknown && b.ty != Type::Unknown && a.ty.width().is_none() {
                    let help = if matches!(a.ty, Type::Option(_)) {
                        "take it apart with `match`"
                    } else {
                        "compare its parts"
                    };
                    self.report(
                        Diagnostic::error(
                            "E0216",
                            format!("{} cannot be compared", a.ty),
                            span,
                            "no single values",
                        )
                        .help(help),
                    );
                    return error(span);
                }
                self.diagnostics.check_telling(op, &a, &b, span);
                Expr { kind: ExprKind::Compare(op, Box::new(a), Box::new(b)), ty: Type::Bool, span }
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                let a = self.expression(a, expected);
                self.diagnostics.expect_number(&a);
                let b = self.expression(b, Some(&a.ty));
                self.diagnostics.expect_number(&b);
                Expr { ty: a.ty.clone(), kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), span }
            }
            _ => {
                if !matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor)
                    && let Some(address) = [a, b].into_iter().find(|part| self.is_address(part))
                {
                    let address = self.expression(address, None);
                    self.diagnostics.expect_number(&address);
                    return error(span);
                }
                let (a, b) = self.alike(a, b, expected);
                let bitwise = matches!(op, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor);
                let conditions = bitwise && a.ty == Type::Bool;
                if !(conditions || self.diagnostics.expect_number(&a) && self.diagnostics.expect_number(&b)) {
                    return error(span);
                }
                Expr { ty: a.ty.clone(), kind: ExprKind::Binary(op, Box::new(a), Box::new(b)), span }
            }
        }
    }

    /// A field or local that holds an address.
    fn is_address(&self, expr: &ast::Expr) -> bool {
        let ty = match &expr.kind {
            ast::ExprKind::Ip4(_) | ast::ExprKind::Ip6(_) | ast::ExprKind::Mac(_) => return true,
            ast::ExprKind::Word(name) => {
                self.scope.find_local(name).map(|local| self.program.locals[local.0].ty.clone())
            }
            ast::ExprKind::Field(base, name) => match &base.kind {
                ast::ExprKind::Word(word) if self.scope.find_local(word).is_none() => {
                    self.find_header(word).and_then(|header| {
                        let layout = self.program.layout(header);
                        layout
                            .fields
                            .iter()
                            .find(|field| field.name == name.text)
                            .map(|field| field.ty.clone())
                    })
                }
                _ => None,
            },
            _ => None,
        };
        matches!(ty, Some(Type::Ip4 | Type::Ip6 | Type::Mac))
    }

    /// Checks two expressions that must have one type; a literal takes the type of the other.
    pub(crate) fn alike(&mut self, a: &ast::Expr, b: &ast::Expr, expected: Option<&Type>) -> (Expr, Expr) {
        let (a, b) = if is_literal(a) && !is_literal(b) {
            let b = self.expression(b, expected);
            (self.expression(a, Some(&b.ty).filter(|ty| **ty != Type::Unknown).or(expected)), b)
        } else {
            let a = self.expression(a, expected);
            let b = self.expression(b, Some(&a.ty).filter(|ty| **ty != Type::Unknown).or(expected));
            (a, b)
        };
        if !a.ty.fits(&b.ty) {
            let mut diagnostic = Diagnostic::error(
                "E0200",
                format!("{} and {} do not go together", a.ty, b.ty),
                b.span,
                format!("this is {}", b.ty),
            )
            .place(a.span, format!("this is {}", a.ty));
            if let (Type::Option(_), _) | (_, Type::Option(_)) = (&a.ty, &b.ty) {
                diagnostic = diagnostic
                    .help("what may be missing is taken apart with `match … { some x => …, none => … }`");
            } else if let (Type::Bool, Type::Uint(_)) | (Type::Uint(_), Type::Bool) = (&a.ty, &b.ty) {
                diagnostic = diagnostic.help(
                    "a condition is true or false by itself: write it without the comparison, or with `!`",
                );
            } else if let (Some(left), Some(right)) = (a.ty.width(), b.ty.width()) {
                let number = matches!(b.ty, Type::Uint(_));
                let (narrow, wide) =
                    if left < right || (left == right && number) { (&a, &b.ty) } else { (&b, &a.ty) };
                if !narrow.ty.converts_to(wide) {
                    self.report(diagnostic);
                    return (error(a.span), error(b.span));
                }
                let (at, edit) = converted(narrow, wide);
                diagnostic = diagnostic.suggest(format!("convert one of them: `as {wide}`"), at, edit);
            }
            self.report(diagnostic);
            return (error(a.span), error(b.span));
        }
        (a, b)
    }

    pub(crate) fn cast(&mut self, inner: &ast::Expr, mode: CastMode, ty: &ast::Type, span: Span) -> Expr {
        let ty = self.resolve_type(ty);
        let inner = self.expression(inner, None);
        let made_colour = matches!(&ty, Type::Enum(id, ..) if self.colours == Some(*id)) && inner.ty != ty;
        if made_colour || inner.ty != Type::Unknown && (inner.ty.width().is_none() || ty.width().is_none()) {
            self.error(
                "E0217",
                format!("{} cannot be converted to {ty}", inner.ty),
                span,
                "no single number",
            );
            return error(span);
        }
        Expr { kind: ExprKind::Cast(Box::new(inner), mode), ty, span }
    }

    pub(crate) fn in_prefix(&mut self, value: &ast::Expr, prefix: &ast::Expr, span: Span) -> Expr {
        if !self.is_prefix(prefix) {
            let headline = "`in` takes a prefix or a range";
            self.error("E0209", headline, prefix.span, "write 10.0.0.0/8 or 1..5");
            return error(span);
        }
        let Some((ty, bits, length)) = self.prefix(prefix) else { return error(span) };
        let value = self.expression(value, Some(&ty));
        if !self.diagnostics.expect_type(&value, &ty) {
            return error(span);
        }
        let mask = prefix_mask(ty.width().unwrap_or(32), length);
        Expr { kind: ExprKind::Masked(Box::new(value), mask, bits & mask), ty: Type::Bool, span }
    }
}

impl Findings {
    /// Warns of a comparison with a number that its type alone decides.
    fn check_telling(&mut self, op: BinaryOp, a: &Expr, b: &Expr, span: Span) {
        let (value, op) = match (&a.kind, &b.kind) {
            (ExprKind::Const(_), _) => return,
            (_, ExprKind::Const(value)) => (*value, op),
            _ => return,
        };
        // Of what was reported no width is known.
        if a.ty == Type::Unknown {
            return;
        }
        let top = a.ty.largest();
        let outcome = match op {
            BinaryOp::Gt if value >= top => "false",
            BinaryOp::Le if value >= top => "true",
            BinaryOp::Lt if value == 0 => "false",
            BinaryOp::Ge if value == 0 => "true",
            _ => return,
        };
        self.report(Diagnostic::warning(
            "W0407",
            format!("this comparison is always {outcome}"),
            span,
            format!("{} lies between 0 and {top}", a.ty),
        ));
    }
}

/// Are two conditions written alike?
pub(crate) fn same(a: &ast::Expr, b: &ast::Expr) -> bool {
    match (&a.kind, &b.kind) {
        (ast::ExprKind::Unary(op, a), ast::ExprKind::Unary(other, b)) => op == other && same(a, b),
        (ast::ExprKind::Binary(op, a, b), ast::ExprKind::Binary(other, c, d)) => {
            op == other && same(a, c) && same(b, d)
        }
        (ast::ExprKind::Field(a, name), ast::ExprKind::Field(b, other)) => {
            name.text == other.text && same(a, b)
        }
        (a, b) => a == b,
    }
}

fn is_literal(expr: &ast::Expr) -> bool {
    match &expr.kind {
        ast::ExprKind::Int(_) => true,
        ast::ExprKind::Unary(_, inner) => is_literal(inner),
        ast::ExprKind::Binary(op, a, b) => {
            !matches!(
                op,
                BinaryOp::Eq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge
            ) && is_literal(a)
                && is_literal(b)
        }
        _ => false,
    }
}
