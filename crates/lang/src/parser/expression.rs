//! Expressions, by precedence climbing: each operator has a level, and an operand of a level takes only
//! tighter operators.

use super::pattern::parts_of;
use super::spelling::STATEMENTS;
use super::{Parsed, Parser, TALLEST_EXPRESSION};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

/// Levels of the operators, from loose to tight.
const OR: u8 = 1;
const AND: u8 = 2;
const COMPARISON: u8 = 3;
const BIT_OR: u8 = 4;
const BIT_XOR: u8 = 5;
const BIT_AND: u8 = 6;
const SHIFT: u8 = 7;
const SUM: u8 = 8;
const PRODUCT: u8 = 9;

/// The operators with two operands: their signs, levels and what they mean.
pub(crate) const OPERATORS: [(Sign, u8, BinaryOp); 24] = [
    (Sign::OrOr, OR, BinaryOp::Or),
    (Sign::AndAnd, AND, BinaryOp::And),
    (Sign::Equal, COMPARISON, BinaryOp::Eq),
    (Sign::NotEqual, COMPARISON, BinaryOp::Ne),
    (Sign::Less, COMPARISON, BinaryOp::Lt),
    (Sign::LessEqual, COMPARISON, BinaryOp::Le),
    (Sign::Greater, COMPARISON, BinaryOp::Gt),
    (Sign::GreaterEqual, COMPARISON, BinaryOp::Ge),
    (Sign::Or, BIT_OR, BinaryOp::BitOr),
    (Sign::Xor, BIT_XOR, BinaryOp::BitXor),
    (Sign::And, BIT_AND, BinaryOp::BitAnd),
    (Sign::ShiftLeft, SHIFT, BinaryOp::ShiftLeft),
    (Sign::ShiftRight, SHIFT, BinaryOp::ShiftRight),
    (Sign::Plus, SUM, BinaryOp::Add),
    (Sign::PlusWrap, SUM, BinaryOp::AddWrap),
    (Sign::PlusSaturate, SUM, BinaryOp::AddSaturate),
    (Sign::Minus, SUM, BinaryOp::Sub),
    (Sign::MinusWrap, SUM, BinaryOp::SubWrap),
    (Sign::MinusSaturate, SUM, BinaryOp::SubSaturate),
    (Sign::Star, PRODUCT, BinaryOp::Mul),
    (Sign::StarWrap, PRODUCT, BinaryOp::MulWrap),
    (Sign::StarSaturate, PRODUCT, BinaryOp::MulSaturate),
    (Sign::Slash, PRODUCT, BinaryOp::Div),
    (Sign::Percent, PRODUCT, BinaryOp::Rem),
];

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| parser.binary(OR))
    }

    /// An expression without comparisons and what binds looser: the end of a range, what is walked.
    pub(super) fn arithmetic(&mut self) -> Parsed<Expr> {
        self.deeper(|parser| parser.binary(BIT_OR))
    }

    /// `{ value }`
    pub(super) fn braced_expression(&mut self, place: &str) -> Parsed<Expr> {
        let open = self.expect(Sign::BraceOpen, place)?;
        let value = self.expression()?;
        if self.at_end() || self.at_item() {
            return self.unclosed(open);
        }
        self.expect(Sign::BraceClose, place)?;
        Ok(value)
    }

    /// A condition; a single `=` in it is told and read as `==`.
    pub(super) fn condition(&mut self) -> Parsed<Expr> {
        let left = self.expression()?;
        let span = self.span();
        if !self.take(Sign::Assign) {
            return Ok(left);
        }
        self.report(
            Diagnostic::error(
                "E0065",
                "Two values are compared by `==`.",
                span,
                "`=` gives a value to a name",
            )
            .suggest("write `==`", span, "=="),
        );
        let right = self.expression()?;
        let span = left.span.to(right.span);
        Ok(Expr { kind: ExprKind::Binary(BinaryOp::Eq, Box::new(left), Box::new(right)), span })
    }

    /// `expr { "," expr } [","]` up to the closing sign.
    pub(super) fn arguments(&mut self, close: Sign) -> Parsed<Vec<Expr>> {
        let mut height = 0;
        let arguments = self.list(close, "behind the values", |parser| {
            let value = parser.expression()?;
            height = height.max(parser.height);
            Ok(value)
        })?;
        self.height = height;
        Ok(arguments)
    }

    fn binary(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.cast()?;
        let mut compared = false;
        loop {
            let span = self.span();
            if least <= COMPARISON && self.word() == "in" && !self.is_at(1, Sign::Colon) {
                self.check_chain(&mut compared, span);
                left = self.membership(left)?;
                continue;
            }
            let Some((level, operator, length)) = self.binary_operator() else { return Ok(left) };
            if level < least {
                return Ok(left);
            }
            if level == COMPARISON {
                self.check_chain(&mut compared, span);
            }
            (0..length).for_each(|_| self.advance());
            let height = self.height;
            let right = self.binary(level + 1)?;
            self.grow(height)?;
            let span = left.span.to(right.span);
            left = Expr { kind: ExprKind::Binary(operator, Box::new(left), Box::new(right)), span };
        }
    }

    /// The expression got one level higher than the higher of the last one and `other`.
    fn grow(&mut self, other: u32) -> Parsed<()> {
        self.height = self.height.max(other) + 1;
        if self.height > TALLEST_EXPRESSION { self.too_deep() } else { Ok(()) }
    }

    fn check_chain(&mut self, compared: &mut bool, span: Span) {
        if *compared {
            self.report(
                Diagnostic::error("E0062", "Comparisons do not chain.", span, "the second comparison")
                    .help("Write `a < b && b < c`, or `x in 1..5`."),
            );
        }
        *compared = true;
    }

    /// The operator that stands here with its level and how many tokens it takes.
    fn binary_operator(&mut self) -> Option<(u8, BinaryOp, usize)> {
        let sign = match self.kind() {
            TokenKind::Sign(sign) => *sign,
            TokenKind::Word => return self.foreign_operator(),
            _ => return None,
        };
        let &(_, level, operator) = OPERATORS.iter().find(|(known, ..)| *known == sign)?;
        Some((level, operator, 1))
    }

    /// `and`, `or` between two values: told, and read as what is meant.
    fn foreign_operator(&mut self) -> Option<(u8, BinaryOp, usize)> {
        let (level, operator, ours) = match self.word() {
            "and" => (AND, BinaryOp::And, "&&"),
            "or" => (OR, BinaryOp::Or, "||"),
            _ => return None,
        };
        let span = self.span();
        let value_follows =
            *self.kind_at(1) == TokenKind::Word || self.kind_at(1).is_literal() || self.is_at(1, Sign::Not);
        if self.first_on_line() || !value_follows {
            return None;
        }
        if !self.diagnostics.list().iter().any(|told| told.primary.span == span) {
            let headline = format!("`{}` is written `{ours}`.", self.word());
            self.report(Diagnostic::error("E0072", headline, span, "a sign is needed").suggest(
                format!("write `{ours}`"),
                span,
                ours,
            ));
        }
        Some((level, operator, 1))
    }

    /// Behind `left in`: a prefix or a range.
    fn membership(&mut self, left: Expr) -> Parsed<Expr> {
        self.advance();
        let height = self.height;
        let low = self.binary(BIT_OR)?;
        self.grow(height)?;
        let start = left.span;
        if !self.take(Sign::Range) {
            let kind = ExprKind::InPrefix(Box::new(left), Box::new(low));
            return Ok(Expr { kind, span: self.since(start) });
        }
        let mut high = None;
        if self.upper_end_follows() {
            let height = self.height;
            high = Some(Box::new(self.binary(BIT_OR)?));
            self.grow(height)?;
        }
        let kind = ExprKind::InRange(Box::new(left), Box::new(low), high);
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Behind `..`: a value on the same line that is not the next field of a layout.
    fn upper_end_follows(&self) -> bool {
        if self.first_on_line() {
            return false;
        }
        self.kind().is_literal()
            || self.is(Sign::ParenOpen)
            || (*self.kind() == TokenKind::Word
                && !self.is_at(1, Sign::Colon)
                && !matches!(self.word(), "if" | "else" | "when" | "as" | "in" | "raise"))
    }

    /// An operand with any number of `as type` behind it.
    fn cast(&mut self) -> Parsed<Expr> {
        let mut value = self.operand()?;
        loop {
            let mode = match self.kind() {
                TokenKind::Sign(Sign::AsWrap) => CastMode::Wrap,
                TokenKind::Sign(Sign::AsSaturate) => CastMode::Saturate,
                TokenKind::Word if self.word() == "as" && !self.is_at(1, Sign::Colon) => CastMode::Exact,
                _ => return Ok(value),
            };
            self.advance();
            let ty = self.ty()?;
            self.grow(0)?;
            let span = value.span.to(ty.span);
            value = Expr { kind: ExprKind::Cast(Box::new(value), mode, ty), span };
        }
    }

    /// A value without operators between: literal, name, field, call, lookup, brackets, `!a`, `~a`.
    pub(super) fn operand(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let operator = match self.kind() {
            TokenKind::Sign(Sign::Not) => Some(UnaryOp::Not),
            TokenKind::Sign(Sign::Complement) => Some(UnaryOp::Complement),
            TokenKind::Sign(Sign::Minus) => {
                self.report(
                    Diagnostic::error("E0064", "There are no numbers below zero.", start, "a value is needed")
                        .help("All numbers are unsigned. Write the difference as `a - b`, or as `a -% b` to wrap around."),
                );
                self.advance();
                return self.deeper(|parser| parser.operand());
            }
            _ => None,
        };
        if let Some(operator) = operator {
            self.advance();
            let value = self.deeper(|parser| parser.operand())?;
            self.grow(0)?;
            let span = start.to(value.span);
            return Ok(Expr { kind: ExprKind::Unary(operator, Box::new(value)), span });
        }
        let mut value = self.primary()?;
        while self.take(Sign::Dot) {
            let field = self.any_word("The name of a field", "behind the dot")?;
            self.grow(0)?;
            let span = value.span.to(field.span);
            value = Expr { kind: ExprKind::Field(Box::new(value), field), span };
        }
        Ok(value)
    }

    fn primary(&mut self) -> Parsed<Expr> {
        let span = self.span();
        self.height = 1;
        let kind = match self.kind() {
            TokenKind::Int(value) => ExprKind::Int(*value),
            TokenKind::Duration(time) => ExprKind::Duration(*time),
            TokenKind::Ip4(address) => ExprKind::Ip4(*address),
            TokenKind::Ip6(address) => ExprKind::Ip6(*address),
            TokenKind::Mac(address) => ExprKind::Mac(*address),
            TokenKind::Prefix4(address, length) => ExprKind::Prefix4(*address, *length),
            TokenKind::Prefix6(address, length) => ExprKind::Prefix6(*address, *length),
            TokenKind::Sign(Sign::ParenOpen) => return self.brackets(),
            TokenKind::Word => return self.word_value(),
            _ => return self.no_value(),
        };
        self.advance();
        Ok(Expr { kind, span })
    }

    fn brackets(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.advance();
        let mut values = self.arguments(Sign::ParenClose)?;
        self.grow(0)?;
        let span = self.since(start);
        match values.len() {
            0 => self.fail(
                Diagnostic::error(
                    "E0073",
                    "A value is needed between the brackets.",
                    span,
                    "nothing stands in here",
                )
                .help("Write a value, or several with commas for a key of several parts."),
            ),
            1 => Ok(Expr { kind: values.remove(0).kind, span }),
            _ => Ok(Expr { kind: ExprKind::Tuple(values), span }),
        }
    }

    fn word_value(&mut self) -> Parsed<Expr> {
        let start = self.span();
        let word = self.word();
        match word {
            "true" | "false" => {
                self.advance();
                return Ok(Expr { kind: ExprKind::Bool(word == "true"), span: start });
            }
            "if" => return self.deeper(|parser| parser.if_value()),
            "match" => return self.deeper(|parser| parser.match_value()),
            "else" | "in" | "as" | "_" => return self.no_value(),
            _ => {}
        }
        let next_statement = STATEMENTS.contains(&word) && self.first_on_line() && {
            *self.kind_at(1) == TokenKind::Word || self.kind_at(1).is_literal() || word == "flood"
        };
        if next_statement {
            return self.no_value();
        }
        if matches!(word, "learn" | "insert" | "remove")
            && *self.kind_at(1) == TokenKind::Word
            && self.is_at(2, Sign::BracketOpen)
        {
            return self.fail(
                Diagnostic::error("E0073", "A value is needed here.", start, format!("`{word}` gives none"))
                    .help(format!("`{word}` is a statement of its own: look the entry up afterwards.")),
            );
        }
        let name = self.any_word("A value", "here")?;
        let adjoining = !self.first_on_line();
        if adjoining && self.take(Sign::ParenOpen) {
            let arguments = self.arguments(Sign::ParenClose)?;
            self.grow(0)?;
            return Ok(Expr { kind: ExprKind::Call(name, arguments), span: self.since(start) });
        }
        if adjoining && self.take(Sign::BracketOpen) {
            let keys = self.arguments(Sign::BracketClose)?;
            self.grow(0)?;
            return Ok(Expr { kind: ExprKind::Lookup(name, keys), span: self.since(start) });
        }
        Ok(Expr { kind: ExprKind::Word(name.text), span: start })
    }

    pub(super) fn no_value<T>(&mut self) -> Parsed<T> {
        let fault = Diagnostic { code: "E0073", ..self.expected("A value", "here") };
        self.fail(match self.kind() {
            TokenKind::Text(_) => fault.help("Texts stand in packets, reasons and names of tests only."),
            _ => {
                fault.help("A value is a number, an address, a name, a field as `ip.src`, or a computation.")
            }
        })
    }

    fn if_value(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.advance();
        let condition = self.condition()?;
        let mut height = self.height;
        let then = self.braced_expression("around the value of an `if`")?;
        height = height.max(self.height);
        if self.word() != "else" {
            let span = self.since(start);
            return self.fail(
                Diagnostic::error(
                    "E0071",
                    "This `if` has no value when its condition fails.",
                    span,
                    "`else` is missing",
                )
                .help("Write `if condition { value } else { value }`."),
            );
        }
        self.advance();
        let otherwise = if self.word() == "if" {
            self.deeper(|parser| parser.if_value())?
        } else {
            self.braced_expression("around the value behind `else`")?
        };
        self.grow(height)?;
        let kind = ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise));
        Ok(Expr { kind, span: self.since(start) })
    }

    fn match_value(&mut self) -> Parsed<Expr> {
        let start = self.span();
        self.advance();
        let subject = self.expression()?;
        let mut height = self.height;
        let open = self.expect(Sign::BraceOpen, "before the arms of a `match`")?;
        let arm = |parser: &mut Self| {
            let (pattern, guard) = parser.arm_head(parts_of(&subject))?;
            let body = parser.expression()?;
            height = height.max(parser.height);
            parser.take(Sign::Comma);
            Ok(Arm { pattern, guard, body })
        };
        let arms = self.braced(open, arm, Self::skip_member)?;
        self.grow(height)?;
        Ok(Expr { kind: ExprKind::Match(Box::new(subject), arms), span: self.since(start) })
    }
}
