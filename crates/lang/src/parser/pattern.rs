//! Patterns: what a value must look like for an arm of a `match`.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};

impl Parser<'_> {
    /// `pattern [ "if" expr ] "=>"`
    pub(super) fn arm_head(&mut self) -> Parsed<(Pattern, Option<Expr>)> {
        let pattern = self.pattern()?;
        let guard = if self.take_word("if") { Some(self.condition()?) } else { None };
        self.expect(Sign::Gives, "behind the pattern of an arm")?;
        Ok((pattern, guard))
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
                PatternKind::Some(Box::new(self.deeper(|parser| parser.single())?))
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

    fn no_pattern<T>(&mut self) -> Parsed<T> {
        let fault = Diagnostic { code: "E0078", ..self.expected("A pattern", "at the start of an arm") };
        self.fail(fault.help("A pattern is a value (`6`), a range (`1..5`), a choice (`80 | 443`), `some x`, `none`, a name, or `else`."))
    }
}
