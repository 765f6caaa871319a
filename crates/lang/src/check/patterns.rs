//! Patterns: what they match, whether the arms cover every value, whether an arm can ever match.
//!
//! Coverage is one question, asked twice: is there a value that a given pattern fits and no earlier arm fits? For "anything" as the pattern the
//! answer tells whether arms are missing; for an arm's own pattern whether it can ever match. It is found by splitting on the first part:
//! variants one by one, numbers at the bounds of the ranges that occur.

use super::Checker;
use super::hir::{Arm, Pattern, TableValue};
use super::types::{TableId, Type};
use crate::ast::{self, PatternKind};
use crate::diagnostic::Diagnostic;
use crate::ir::prefix_mask;
use crate::source::Span;

/// So many steps are spent on one `match` before it counts as too entangled.
const LARGEST_SEARCH: usize = 200_000;

impl Checker<'_> {
    /// Checks a pattern against the type of the value.
    pub(crate) fn pattern(&mut self, pattern: &ast::Pattern, ty: &Type) -> Pattern {
        let span = pattern.span;
        match (&pattern.kind, ty) {
            (PatternKind::Any, _) => Pattern::Any,
            (PatternKind::Either(parts), _) => {
                let before = self.scopes.last().cloned().unwrap_or_default();
                let mut named = before.clone();
                let mut alternatives = Vec::new();
                for part in parts {
                    alternatives.push(self.pattern(part, ty));
                    if let Some(scope) = self.scopes.last_mut() {
                        named.extend(std::mem::replace(scope, before.clone()));
                    }
                }
                let names = named.len() > before.len();
                if let Some(scope) = self.scopes.last_mut() {
                    *scope = named;
                }
                if names {
                    self.error("E0220", "alternatives cannot give names", span, "write one arm for each");
                }
                Pattern::Either(alternatives)
            }
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
                if self.variant_named(*table, &name.text).is_some() =>
            {
                self.variant_pattern(*table, name, &[], span)
            }
            (PatternKind::Variant(name, parts), _) => {
                if *ty != Type::Unknown {
                    self.error(
                        "E0222",
                        format!("{ty} has no variants"),
                        span,
                        format!("`{}` cannot fit it", name.text),
                    );
                }
                for part in parts {
                    self.pattern(part, &Type::Unknown);
                }
                Pattern::Any
            }
            (PatternKind::Tuple(parts), Type::Tuple(types)) if parts.len() == types.len() => {
                Pattern::Tuple(parts.iter().zip(types).map(|(part, ty)| self.pattern(part, ty)).collect())
            }
            (PatternKind::Tuple(parts), _) => {
                if *ty != Type::Unknown {
                    self.error(
                        "E0223",
                        format!("{} parts cannot fit {ty}", parts.len()),
                        span,
                        "wrong number of parts",
                    );
                }
                for part in parts {
                    self.pattern(part, &Type::Unknown);
                }
                Pattern::Any
            }
            (PatternKind::Word(name), _) => {
                if self.constant_items.contains_key(name.text.as_str()) {
                    let value = ast::Expr { kind: ast::ExprKind::Word(name.text.clone()), span };
                    return self.value_pattern(&value, ty, span);
                }
                if let Type::Enum(id, ..) = ty
                    && let Some((_, value)) =
                        self.enums[id.0].members.iter().find(|(member, _)| *member == name.text)
                {
                    return Pattern::Range(*value, *value);
                }
                if self.scopes.last().is_some_and(|scope| scope.contains_key(&name.text)) {
                    self.error(
                        "E0101",
                        format!("the name `{}` is given twice", name.text),
                        name.span,
                        "given again here",
                    );
                }
                Pattern::Bind(self.bind_local(name, ty.clone(), false))
            }
            (PatternKind::Value(value), _) => self.value_pattern(value, ty, span),
            (PatternKind::Range(from, to), _) => {
                if *ty == Type::Unknown || !self.is_scalar(ty, span) {
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
        }
    }

    fn is_variant(&self, ty: &Type, name: &str) -> bool {
        matches!(ty, Type::Variants(table, _) if self.variant_named(*table, name).is_some())
    }

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

    fn value_pattern(&mut self, value: &ast::Expr, ty: &Type, span: Span) -> Pattern {
        if *ty == Type::Unknown || !self.is_scalar(ty, span) {
            return Pattern::Any;
        }
        let prefix = match (&value.kind, ty) {
            (ast::ExprKind::Prefix4(address, length), Type::Ip4) => Some((u128::from(*address), 32, *length)),
            (ast::ExprKind::Prefix6(address, length), Type::Ip6) => Some((*address, 128, *length)),
            _ => None,
        };
        if let Some((address, width, length)) = prefix {
            let mask = prefix_mask(width, length);
            return Pattern::Range(address & mask, address & mask | (ty.largest() & !mask));
        }
        match self.constant(value, ty) {
            Some(value) => Pattern::Range(value, value),
            None => Pattern::Any,
        }
    }

    fn variant_pattern(
        &mut self,
        table: TableId,
        name: &ast::Name,
        parts: &[ast::Pattern],
        span: Span,
    ) -> Pattern {
        let Some(variant) = self.variant_named(table, &name.text) else {
            let known: Vec<String> = match &self.program.tables[table.0].value {
                TableValue::Variants(variants) => variants.iter().map(|(name, _)| name.clone()).collect(),
                TableValue::Data(_) => Vec::new(),
            };
            self.unknown("variant", &name.text, name.span, known.iter().map(String::as_str));
            return Pattern::Any;
        };
        let params = self.variant_params(table, variant);
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

    /// Reports values that no arm fits and arms that no value reaches.
    pub(crate) fn check_arms<B>(&mut self, ty: &Type, arms: &[Arm<B>], span: Span) {
        if *ty == Type::Unknown {
            return;
        }
        let whole = std::slice::from_ref(ty);
        let mut rows: Vec<Vec<Pattern>> = Vec::new();
        let mut budget = LARGEST_SEARCH;
        for arm in arms {
            let row = vec![arm.pattern.clone()];
            if !self.useful(whole, &rows, &row, &mut budget) && budget > 0 {
                self.report(Diagnostic::warning(
                    "W0405",
                    "this arm never matches",
                    arm.span,
                    "the arms above fit everything it fits",
                ));
            } else if let Pattern::Either(parts) = &arm.pattern {
                let mut above = rows.clone();
                for part in parts {
                    let part = vec![part.clone()];
                    if !self.useful(whole, &above, &part, &mut budget) && budget > 0 {
                        self.report(Diagnostic::warning(
                            "W0405",
                            "a part of this arm never matches",
                            arm.span,
                            format!("{} fits nothing that is not taken before it", part_in_words(&part[0])),
                        ));
                    }
                    above.push(part);
                }
            }
            if arm.guard.is_none() {
                rows.push(row);
            }
        }
        if self.useful(whole, &rows, &[Pattern::Any], &mut budget) && budget > 0 {
            let missing = if matches!(ty, Type::Option(_)) && !rows.iter().any(|row| row[0] == Pattern::None)
            {
                "what if there is `none`?"
            } else {
                "some values fit no arm"
            };
            self.report(
                Diagnostic::error(
                    "E0226",
                    "this `match` does not say what happens to every value",
                    span,
                    missing,
                )
                .help("add an arm `else => …`"),
            );
        }
        if budget == 0 {
            self.error("E0227", "this `match` is too entangled", span, "split it into several");
        }
    }

    /// The largest value there is of a type: colours are three.
    fn largest_of(&self, ty: &Type) -> u128 {
        match ty {
            Type::Enum(id, ..) if self.colours == Some(*id) => 2,
            _ => ty.largest(),
        }
    }

    /// Is there a value that `query` fits and no row fits?
    fn useful(&self, types: &[Type], rows: &[Vec<Pattern>], query: &[Pattern], budget: &mut usize) -> bool {
        if *budget == 0 {
            return false;
        }
        *budget -= 1;
        let Some((ty, rest)) = types.split_first() else { return rows.is_empty() };
        if let Pattern::Either(parts) = &query[0] {
            return parts.iter().any(|part| {
                let mut query = query.to_vec();
                query[0] = part.clone();
                self.useful(types, rows, &query, budget)
            });
        }
        let rows: Vec<Vec<Pattern>> = rows.iter().flat_map(|row| spread(row)).collect();
        match ty {
            Type::Tuple(parts) => {
                let types = [parts, rest].concat();
                let open = |row: &[Pattern]| match &row[0] {
                    Pattern::Tuple(inner) => Some([inner.as_slice(), &row[1..]].concat()),
                    _ => Some([vec![Pattern::Any; parts.len()].as_slice(), &row[1..]].concat()),
                };
                self.narrowed(&types, &rows, query, open, budget)
            }
            Type::Option(inner) => {
                let types = [std::slice::from_ref(inner.as_ref()), rest].concat();
                let some = |row: &[Pattern]| match &row[0] {
                    Pattern::Some(inner) => Some([&[(**inner).clone()], &row[1..]].concat()),
                    Pattern::None => None,
                    _ => Some([&[Pattern::Any], &row[1..]].concat()),
                };
                let none = |row: &[Pattern]| match &row[0] {
                    Pattern::Some(_) => None,
                    _ => Some(row[1..].to_vec()),
                };
                self.narrowed(&types, &rows, query, some, budget)
                    || self.narrowed(rest, &rows, query, none, budget)
            }
            Type::Variants(table, _) => {
                let TableValue::Variants(variants) = &self.program.tables[table.0].value else {
                    return false;
                };
                (0..variants.len()).any(|variant| {
                    let params: Vec<Type> = variants[variant].1.iter().map(|(_, ty)| ty.clone()).collect();
                    let types = [params.as_slice(), rest].concat();
                    let this = |row: &[Pattern]| match &row[0] {
                        Pattern::Variant(number, parts) if *number == variant => {
                            Some([parts.as_slice(), &row[1..]].concat())
                        }
                        Pattern::Variant(..) => None,
                        _ => Some([vec![Pattern::Any; params.len()].as_slice(), &row[1..]].concat()),
                    };
                    self.narrowed(&types, &rows, query, this, budget)
                })
            }
            _ => {
                let whole = (0, self.largest_of(ty));
                let range = |pattern: &Pattern| {
                    if let Pattern::Range(from, to) = pattern { (*from, *to) } else { whole }
                };
                let (from, to) = range(&query[0]);
                let mut starts = vec![from];
                for row in &rows {
                    let (low, high) = range(&row[0]);
                    starts.extend(
                        [Some(low), high.checked_add(1)]
                            .into_iter()
                            .flatten()
                            .filter(|at| (from..=to).contains(at)),
                    );
                }
                starts.sort_unstable();
                starts.dedup();
                starts.into_iter().any(|at| {
                    let here = |row: &[Pattern]| {
                        let (low, high) = range(&row[0]);
                        (low..=high).contains(&at).then(|| row[1..].to_vec())
                    };
                    self.narrowed(rest, &rows, query, here, budget)
                })
            }
        }
    }

    fn narrowed(
        &self,
        types: &[Type],
        rows: &[Vec<Pattern>],
        query: &[Pattern],
        open: impl Fn(&[Pattern]) -> Option<Vec<Pattern>>,
        budget: &mut usize,
    ) -> bool {
        let Some(query) = open(query) else { return false };
        let rows: Vec<Vec<Pattern>> = rows.iter().filter_map(|row| open(row)).collect();
        self.useful(types, &rows, &query, budget)
    }
}

fn part_in_words(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Range(from, to) if from == to => from.to_string(),
        Pattern::Range(from, to) => format!("{from}..{to}"),
        _ => "one of its alternatives".to_string(),
    }
}

/// A row whose first pattern lists alternatives becomes a row for each.
fn spread(row: &[Pattern]) -> Vec<Vec<Pattern>> {
    match &row[0] {
        Pattern::Either(parts) => parts
            .iter()
            .flat_map(|part| {
                let mut row = row.to_vec();
                row[0] = part.clone();
                spread(&row)
            })
            .collect(),
        _ => vec![row.to_vec()],
    }
}
