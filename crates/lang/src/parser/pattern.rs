//! Patterns: what a value must look like for an arm of a `match`.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

impl Parser<'_> {
    /// `pattern [ "if" expr ] "=>"`; `parts` is the number of parts of the value, where it is written as
    /// several.
    pub(super) fn arm_head(&mut self, parts: usize) -> Parsed<(Pattern, Option<Expr>)> {
        let pattern = self.arm_pattern(parts)?;
        let guard = if self.take_word("if") { Some(self.condition()?) } else { None };
        let place = "behind the pattern of an arm";
        let foreign = [Sign::Arrow, Sign::Colon, Sign::Assign, Sign::GreaterEqual];
        let begins = [Sign::BraceOpen, Sign::ParenOpen].into_iter().any(|sign| self.is_at(1, sign));
        let body_follows = begins || !matches!(self.kind_at(1), TokenKind::Sign(_));
        if body_follows && foreign.into_iter().any(|sign| self.is(sign)) {
            let sign = self.span();
            self.report(self.expected("`=>`", place).suggest("write `=>`", sign, "=>"));
            self.advance();
        } else {
            self.expect(Sign::Gives, place)?;
        }
        Ok((pattern, guard))
    }

    /// The pattern of an arm, also where alternatives are joined as in other languages, which is told.
    fn arm_pattern(&mut self, parts: usize) -> Parsed<Pattern> {
        let start = self.span();
        let first = self.pattern()?;
        let (patterns, signs) = self.foreign_choice(first, Self::pattern)?;
        let (Some(&sign), Some(&last)) = (signs.first(), signs.last()) else {
            return patterns.into_iter().next().map_or_else(|| self.no_pattern(), Ok);
        };
        let span = self.since(start);
        let commas = signs.iter().all(|&sign| self.text_of(sign) == ",");
        let nested = patterns.iter().any(|pattern| matches!(pattern.kind, PatternKind::Tuple(_)));
        let mut fault = self.not_joined(sign);
        if commas && !nested && parts == patterns.len() {
            fault = fault.help("Several values are taken apart in brackets: `(1, _) =>`.").suggest(
                "put them into brackets",
                span,
                format!("({})", self.text_of(span)),
            );
        } else if parts == 0 && patterns.iter().all(joins) {
            fault = fault.suggest("join them by `|`", sign.to(last), self.joined(&signs));
        } else {
            fault = fault.help("Write `1 | 2 =>` for one or the other, `(1, 2) =>` for two values, and a `=>` of its own for each arm.");
        }
        self.report(fault);
        Ok(Pattern { kind: PatternKind::Either(patterns), span })
    }

    /// What follows behind `,`, `||` and `or`, which join alternatives in other languages, and where these
    /// signs stand.
    pub(super) fn foreign_choice<T>(
        &mut self,
        first: T,
        read: impl Fn(&mut Self) -> Parsed<T>,
    ) -> Parsed<(Vec<T>, Vec<Span>)> {
        let (mut choices, mut signs) = (vec![first], Vec::new());
        while self.is(Sign::Comma) || self.is(Sign::OrOr) || self.word() == "or" {
            signs.push(self.span());
            self.advance();
            choices.push(read(self)?);
        }
        Ok((choices, signs))
    }

    /// Alternatives are joined by the wrong sign.
    pub(super) fn not_joined(&self, sign: Span) -> Diagnostic {
        let label = format!("`{}` stands here", self.text_of(sign));
        Diagnostic::error("E0050", "Alternatives are joined by `|`.", sign, label)
    }

    /// The text from the first of these signs to the last, with `|` for each.
    pub(super) fn joined(&self, signs: &[Span]) -> String {
        let mut text = String::new();
        for (index, sign) in signs.iter().enumerate() {
            let before = index.checked_sub(1).map_or(sign.start, |index| signs[index].end);
            text.push_str(self.text_of(Span::new(self.file, before, sign.start)));
            let all = self.text.as_bytes();
            let blank =
                |at: Option<u32>| at.and_then(|at| all.get(at as usize)).is_some_and(u8::is_ascii_whitespace);
            let (left, right) = (blank(sign.start.checked_sub(1)), blank(Some(sign.end)));
            text.push_str(if left { "|" } else { " |" });
            text.push_str(if right { "" } else { " " });
        }
        text
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        self.deeper(|parser| {
            let first = parser.single()?;
            if !parser.is(Sign::Or) {
                return Ok(first);
            }
            let start = first.span;
            let mut choices = vec![first];
            while parser.take(Sign::Or) {
                choices.push(parser.single()?);
            }
            Ok(Pattern { kind: PatternKind::Either(choices), span: parser.since(start) })
        })
    }

    fn single(&mut self) -> Parsed<Pattern> {
        let start = self.span();
        let kind = match (self.kind(), self.word()) {
            (_, "_" | "else") => {
                self.advance();
                PatternKind::Any
            }
            (_, "none") => {
                self.advance();
                PatternKind::None
            }
            (_, "some") => {
                self.advance();
                PatternKind::Some(Box::new(if self.pattern_ends() {
                    self.bare_some(start)
                } else {
                    self.deeper(|parser| parser.single())?
                }))
            }
            (TokenKind::Sign(Sign::ParenOpen), _) => {
                self.advance();
                let mut parts =
                    self.list(Sign::ParenClose, "behind the parts of a pattern", |parser| parser.pattern())?;
                match parts.len() {
                    0 => return self.no_pattern(),
                    1 => parts.remove(0).kind,
                    _ => PatternKind::Tuple(parts),
                }
            }
            (_, "true" | "false") => PatternKind::Value(self.operand()?),
            (TokenKind::Word, "if" | "match" | "in" | "as") => return self.no_pattern(),
            (TokenKind::Word, _) => self.word_pattern()?,
            (TokenKind::Text(_), _) => return self.no_pattern(),
            (kind, _) if kind.is_literal() => {
                let low = self.operand()?;
                if self.take(Sign::Range) {
                    let high = if self.kind().is_literal() { Some(self.operand()?) } else { None };
                    PatternKind::Range(low, high)
                } else {
                    PatternKind::Value(low)
                }
            }
            _ => return self.no_pattern(),
        };
        Ok(Pattern { kind, span: self.since(start) })
    }

    fn word_pattern(&mut self) -> Parsed<PatternKind> {
        let name = self.any_word("A pattern", "here")?;
        if self.take(Sign::Dot) {
            let member = self.any_word("The name of a member", "behind the dot")?;
            let span = name.span.to(member.span);
            let whole = Expr { kind: ExprKind::Word(name.text), span: name.span };
            return Ok(PatternKind::Value(Expr { kind: ExprKind::Field(Box::new(whole), member), span }));
        }
        if !self.first_on_line() && self.take(Sign::ParenOpen) {
            let parts =
                self.list(Sign::ParenClose, "behind the parts of a variant", |parser| parser.pattern())?;
            return Ok(PatternKind::Variant(name, parts));
        }
        Ok(PatternKind::Word(name))
    }

    /// No further pattern stands here.
    fn pattern_ends(&self) -> bool {
        let signs = [Sign::Gives, Sign::Comma, Sign::ParenClose, Sign::Or, Sign::OrOr];
        self.word() == "if" || signs.into_iter().any(|sign| self.is(sign))
    }

    /// `some` without what was found; whatever was found fits.
    fn bare_some(&mut self, some: Span) -> Pattern {
        let gap = Span::new(self.file, some.end, some.end);
        let headline = "Behind `some` stands a pattern for what was found.";
        self.report(
            Diagnostic::error("E0078", headline, some, "a name or `_` is missing behind it")
                .help("Write `some x` to use what was found as `x`, or `some _` where it does not matter.")
                .suggest("insert `_`", gap, " _"),
        );
        Pattern { kind: PatternKind::Any, span: some }
    }

    fn no_pattern<T>(&mut self) -> Parsed<T> {
        let fault = Diagnostic { code: "E0078", ..self.expected("A pattern", "at the start of an arm") };
        self.fail(fault.help("A pattern is a value (`6`), a range (`1..5`), a choice (`80 | 443`), `some x`, `none`, a name, or `else`."))
    }
}

/// Whether a pattern can be one of several without a name: `else` fits everything, and what `some x` names
/// would not be there in the others.
fn joins(pattern: &Pattern) -> bool {
    match &pattern.kind {
        PatternKind::Any => false,
        PatternKind::Some(inner) => !matches!(inner.kind, PatternKind::Word(_)),
        PatternKind::Either(choices) => choices.iter().all(joins),
        _ => true,
    }
}

/// How many values are written where one is taken apart: those in brackets, else none that could be told.
pub(super) fn parts_of(subject: &Expr) -> usize {
    if let ExprKind::Tuple(parts) = &subject.kind { parts.len() } else { 0 }
}
