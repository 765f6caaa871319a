//! Patterns: what they match, checked against the type of the value.

use super::Checker;
use super::hir::{Pattern, TableValue};
use super::types::{TableId, Type};
use crate::ast::{self, PatternKind};
use crate::diagnostic::{Diagnostic, Findings};
use ir::prefix_mask;
use ir::source::Span;

impl Checker<'_> {
    /// Checks a pattern against the type of the value.
    pub(crate) fn pattern(&mut self, pattern: &ast::Pattern, ty: &Type) -> Pattern {
        let span = pattern.span;
        match (&pattern.kind, ty) {
            (PatternKind::Any, _) => Pattern::Any,
            (PatternKind::Either(parts), _) => self.either_pattern(parts, ty, span),
            (PatternKind::Some(inner), Type::Option(ty)) => Pattern::Some(Box::new(self.pattern(inner, ty))),
            (PatternKind::None, Type::Option(_)) => Pattern::None,
            (PatternKind::Some(inner), Type::Unknown) => {
                self.pattern(inner, &Type::Unknown);
                Pattern::Any
            }
            (PatternKind::None, Type::Unknown) => Pattern::Any,
            (PatternKind::Some(_) | PatternKind::None, _) => {
                if let PatternKind::Some(inner) = &pattern.kind {
                    self.pattern(inner, &Type::Unknown);
                }
                self.report(
                    Diagnostic::error(
                        "E0221",
                        format!("{ty} is always there"),
                        span,
                        "`some` and `none` fit only what may be missing",
                    )
                    .help("a table lookup may find nothing, and a field with `when` may not be there"),
                );
                Pattern::Any
            }
            (PatternKind::Word(name), Type::Option(inner)) if self.is_variant(inner, &name.text) => {
                Pattern::Some(Box::new(self.pattern(pattern, inner)))
            }
            (PatternKind::Variant(..), Type::Option(inner)) => {
                Pattern::Some(Box::new(self.pattern(pattern, inner)))
            }
            (PatternKind::Variant(name, parts), Type::Variants(table, _)) => {
                self.variant_pattern(*table, name, parts, span)
            }
            (PatternKind::Word(name), Type::Variants(table, _))
                if self.program.variant_named(*table, &name.text).is_some() =>
            {
                self.variant_pattern(*table, name, &[], span)
            }
            (PatternKind::Variant(name, parts), _) => {
                if *ty != Type::Unknown {
                    let label = format!("`{}` cannot fit it", name.text);
                    self.error("E0222", format!("{ty} has no variants"), span, label);
                }
                self.unfit_parts(parts)
            }
            (PatternKind::Tuple(parts), Type::Tuple(types)) if parts.len() == types.len() => {
                Pattern::Tuple(parts.iter().zip(types).map(|(part, ty)| self.pattern(part, ty)).collect())
            }
            (PatternKind::Tuple(parts), _) => {
                if *ty != Type::Unknown {
                    let headline = format!("{} parts cannot fit {ty}", parts.len());
                    self.error("E0223", headline, span, "wrong number of parts");
                }
                self.unfit_parts(parts)
            }
            (PatternKind::Word(name), _) => self.word_pattern(name, ty, span),
            (PatternKind::Value(value), _) => self.value_pattern(value, ty, span),
            (PatternKind::Range(from, to), _) => self.range_pattern(from, to.as_ref(), ty, span),
        }
    }

    fn either_pattern(&mut self, parts: &[ast::Pattern], ty: &Type, span: Span) -> Pattern {
        let before = self.scope.locals.last().cloned().unwrap_or_default();
        let mut named = before.clone();
        let mut alternatives = Vec::new();
        for part in parts {
            alternatives.push(self.pattern(part, ty));
            if let Some(scope) = self.scope.locals.last_mut() {
                named.extend(std::mem::replace(scope, before.clone()));
            }
        }
        let names = named.len() > before.len();
        if let Some(scope) = self.scope.locals.last_mut() {
            *scope = named;
        }
        if names {
            self.error("E0220", "alternatives cannot give names", span, "write one arm for each");
        }
        Pattern::Either(alternatives)
    }

    /// Checks the parts of a pattern that does not fit the value: their own faults are reported.
    fn unfit_parts(&mut self, parts: &[ast::Pattern]) -> Pattern {
        for part in parts {
            self.pattern(part, &Type::Unknown);
        }
        Pattern::Any
    }

    /// A word is a constant, a member of the value's enum, or a new name for the value.
    fn word_pattern(&mut self, name: &ast::Name, ty: &Type, span: Span) -> Pattern {
        if self.names.constants.contains_key(name.text.as_str()) {
            let value = ast::Expr { kind: ast::ExprKind::Word(name.text.clone()), span };
            return self.value_pattern(&value, ty, span);
        }
        if let Type::Enum(id, ..) = ty
            && let Some((_, value)) = self.enums[id.0].members.iter().find(|(member, _)| *member == name.text)
        {
            return Pattern::Range(*value, *value);
        }
        if self.scope.locals.last().is_some_and(|scope| scope.contains_key(&name.text)) {
            self.diagnostics.given_twice(format!("the name `{}` is given twice", name.text), name.span);
        }
        if *ty == Type::View {
            self.report(
                Diagnostic::error("E0228", format!("a local cannot hold {ty}"), span, "no single value")
                    .help("write `_` here; bytes that are always there can be walked"),
            );
            return Pattern::Bind(self.bind_local(name, Type::Unknown, false));
        }
        Pattern::Bind(self.bind_local(name, ty.clone(), false))
    }

    fn range_pattern(&mut self, from: &ast::Expr, to: Option<&ast::Expr>, ty: &Type, span: Span) -> Pattern {
        if *ty == Type::Unknown || !self.diagnostics.is_scalar(ty, span) {
            return Pattern::Any;
        }
        let from = self.constant(from, ty);
        let to = match to {
            Some(to) => self.constant(to, ty),
            None => Some(ty.largest()),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to => Pattern::Range(from, to),
            (Some(_), Some(_)) => {
                self.error("E0224", "this range is empty", span, "it ends before it begins");
                Pattern::Any
            }
            _ => Pattern::Any,
        }
    }

    fn is_variant(&self, ty: &Type, name: &str) -> bool {
        matches!(ty, Type::Variants(table, _) if self.program.variant_named(*table, name).is_some())
    }

    fn value_pattern(&mut self, value: &ast::Expr, ty: &Type, span: Span) -> Pattern {
        if *ty == Type::Unknown || !self.diagnostics.is_scalar(ty, span) {
            return Pattern::Any;
        }
        if let Some((_, address, length)) = self.prefix(value).filter(|(of, ..)| of == ty) {
            let mask = prefix_mask(ty.width().unwrap_or(128), length);
            return Pattern::Range(address & mask, address & mask | (ty.largest() & !mask));
        }
        match self.constant(value, ty) {
            Some(value) => Pattern::Range(value, value),
            None => {
                self.scope.broken_pattern = true;
                Pattern::Any
            }
        }
    }

    fn variant_pattern(
        &mut self,
        table: TableId,
        name: &ast::Name,
        parts: &[ast::Pattern],
        span: Span,
    ) -> Pattern {
        let Some(variant) = self.program.variant_named(table, &name.text) else {
            let known: Vec<String> = match &self.program.tables[table.0].value {
                TableValue::Variants(variants) => variants.iter().map(|(name, _)| name.clone()).collect(),
                TableValue::Data(_) => Vec::new(),
            };
            self.unknown("variant", &name.text, name.span, known.iter().map(String::as_str));
            return Pattern::Any;
        };
        let params = self.program.variant_params(table, variant);
        if params.len() != parts.len() {
            self.error(
                "E0206",
                format!("`{}` has {} parameters, not {}", name.text, params.len(), parts.len()),
                span,
                "wrong number of parameters",
            );
            return Pattern::Any;
        }
        Pattern::Variant(
            variant,
            parts.iter().zip(&params).map(|(part, ty)| self.pattern(part, ty)).collect(),
        )
    }
}

impl Findings {
    fn is_scalar(&mut self, ty: &Type, span: Span) -> bool {
        if ty.width().is_none() {
            let help = if matches!(ty, Type::Option(_)) {
                "; it may be missing: write `some …` or `none`"
            } else {
                ""
            };
            self.error(
                "E0225",
                format!("a number cannot fit {ty}"),
                span,
                format!("this fits single values{help}"),
            );
            return false;
        }
        true
    }
}
