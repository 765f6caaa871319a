//! Layouts: fields with their constraints, and what comes next.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};

impl Parser<'_> {
    pub(super) fn layout(&mut self) -> Parsed<Item> {
        self.advance();
        let name = self.name("A name", "behind `layout`")?;
        let open = self.expect(Sign::BraceOpen, "before the fields of a layout")?;
        let fields = self.braced(open, Self::field, |parser, begin| {
            parser.skip_to(begin, |parser| *parser.kind() == TokenKind::Word && parser.is_at(1, Sign::Colon));
        })?;
        let next = if self.word() == "next" { Some(self.next()?) } else { None };
        let pseudo = if self.word() == "pseudo" { Some(self.pseudo()?) } else { None };
        Ok(Item::Layout(Layout { name, fields, next, pseudo }))
    }

    fn field(&mut self) -> Parsed<Field> {
        let start = self.span();
        let name = self.name("The name of a field", "in a layout")?;
        self.expect(Sign::Colon, "behind the name of a field, as in `ttl: u8`")?;
        let ty = self.field_type()?;
        let mut field = Field { name, ty, constraint: None, when: None, length_of: None, span: start };
        loop {
            let span = self.span();
            let again = if self.is(Sign::Assign) || (self.word() == "in" && !self.is_at(1, Sign::Colon)) {
                let constraint = self.constraint()?;
                field.constraint.replace(constraint).is_some()
            } else if self.word() == "length" && self.word_at(1) == "of" {
                let length = self.length_of()?;
                field.length_of.replace(length).is_some()
            } else if self.word() == "when" && !self.is_at(1, Sign::Colon) {
                self.advance();
                let condition = self.expression()?;
                field.when.replace(condition).is_some()
            } else if self.word() == "over" && !self.is_at(1, Sign::Colon) {
                return self.fail(
                    Diagnostic::error(
                        "E0080",
                        "Only checksums cover something.",
                        span,
                        "not behind this type",
                    )
                    .help("A checksum has the type `inet16`, as in `check: inet16 over header`."),
                );
            } else {
                break;
            };
            if again {
                let fault =
                    Diagnostic::error("E0076", "This is said twice of one field.", span, "the second time");
                self.report(
                    fault.help("A field has at most one constraint, one `length of` and one `when`."),
                );
            }
        }
        field.span = self.since(start);
        self.take(Sign::Comma);
        Ok(field)
    }

    fn field_type(&mut self) -> Parsed<FieldType> {
        if self.word() == "bytes" {
            self.advance();
            self.expect(Sign::BracketOpen, "behind `bytes`, as in `bytes[4]`")?;
            let length = self.expression()?;
            self.expect(Sign::BracketClose, "behind the number of bytes")?;
            return Ok(FieldType::Bytes(length));
        }
        if self.word() == "inet16" {
            return Ok(FieldType::Checksum(self.covers()?));
        }
        let ty = self.ty()?;
        if !self.take(Sign::BraceOpen) {
            return Ok(FieldType::Scalar(ty));
        }
        let flag = |parser: &mut Self| parser.any_word("The name of a flag", "in braces, one for each bit");
        let flags = self.list(Sign::BraceClose, "behind the names of flags", flag)?;
        Ok(FieldType::Flags(ty, flags))
    }

    fn constraint(&mut self) -> Parsed<Constraint> {
        if self.take(Sign::Assign) {
            // The next field stands where a value should.
            if self.is_at(1, Sign::Colon) {
                return self.no_value();
            }
            return Ok(Constraint::Equal(self.operand()?));
        }
        self.advance();
        let low = self.operand()?;
        self.expect(Sign::Range, "behind `in`, as in `in 5..15` or `in 5..`")?;
        let high = if self.kind().is_literal() { Some(self.operand()?) } else { None };
        Ok(Constraint::Range(low, high))
    }

    /// `length of (header)`, `length of (header + payload)` or `length of (payload)`.
    fn length_of(&mut self) -> Parsed<LengthOf> {
        let place = "behind `length of`, which takes `(header)`, `(header + payload)` or `(payload)`";
        self.advance();
        self.advance();
        self.expect(Sign::ParenOpen, place)?;
        let length = if self.take_word("payload") {
            LengthOf::Payload
        } else {
            self.expect_word("header", place)?;
            if self.take(Sign::Plus) {
                self.expect_word("payload", place)?;
                LengthOf::Both
            } else {
                LengthOf::Header
            }
        };
        self.expect(Sign::ParenClose, place)?;
        Ok(length)
    }

    /// `inet16 over header`, `inet16 over (pseudo + header + payload) unless 0`
    fn covers(&mut self) -> Parsed<Covers> {
        let place =
            "in what a checksum covers: `header`, `(header + payload)` or `(pseudo + header + payload)`";
        let start = self.span();
        self.advance();
        self.expect_word("over", "behind `inet16`, as in `check: inet16 over header`")?;
        let mut covers = Covers { pseudo: false, payload: false, unless_zero: false, span: start };
        if self.take(Sign::ParenOpen) {
            if self.take_word("pseudo") {
                covers.pseudo = true;
                self.expect(Sign::Plus, place)?;
            }
            self.expect_word("header", place)?;
            if self.take(Sign::Plus) {
                covers.payload = true;
                self.expect_word("payload", place)?;
            }
            self.expect(Sign::ParenClose, place)?;
        } else {
            self.expect_word("header", place)?;
        }
        if self.word() == "unless" && !self.is_at(1, Sign::Colon) {
            self.advance();
            covers.unless_zero = true;
            if *self.kind() == TokenKind::Int(0) {
                self.advance();
            } else {
                let fault = self.expected("`0`", "behind `unless`: it says that there is no checksum");
                return self.fail(fault);
            }
        }
        covers.span = self.since(start);
        Ok(covers)
    }

    /// `pseudo (src + dst + kind of payload + length of payload)`
    fn pseudo(&mut self) -> Parsed<Pseudo> {
        let start = self.span();
        let place = "behind `pseudo`, as in `pseudo (src + dst + kind of payload + length of payload)`";
        self.advance();
        self.expect(Sign::ParenOpen, place)?;
        let mut pseudo = Pseudo { fields: Vec::new(), kind: false, length: false, span: start };
        loop {
            let of = self.word_at(1) == "of";
            match self.word() {
                "kind" if of => pseudo.kind = true,
                "length" if of => pseudo.length = true,
                _ => {
                    let field = self.any_word("The name of a field", "in what a pseudo header is made of")?;
                    pseudo.fields.push(field);
                }
            }
            if of {
                self.advance();
                self.advance();
                self.expect_word("payload", place)?;
            }
            if !self.take(Sign::Plus) {
                break;
            }
        }
        self.expect(Sign::ParenClose, place)?;
        pseudo.span = self.since(start);
        Ok(pseudo)
    }

    fn next(&mut self) -> Parsed<Next> {
        let start = self.span();
        self.advance();
        let selector = self.name("The name of a field", "behind `next`")?;
        let when = if self.take_word("when") { Some(self.expression()?) } else { None };
        let open =
            self.expect(Sign::BraceOpen, "before the values of `next`, as in `next proto { 6 => tcp }`")?;
        let target = |parser: &mut Self| {
            let mut values = vec![parser.operand()?];
            while parser.take(Sign::Or) {
                values.push(parser.operand()?);
            }
            let (values, signs) = parser.foreign_choice(values, |parser| Ok(vec![parser.operand()?]))?;
            if let (Some(&sign), Some(&last)) = (signs.first(), signs.last()) {
                let joined = parser.joined(&signs);
                parser.report(parser.not_joined(sign).suggest("join them by `|`", sign.to(last), joined));
            }
            let values = values.concat();
            parser.expect(Sign::Gives, "between a value and its layout, as in `6 => tcp`")?;
            let layout = parser.name("The name of a layout", "behind `=>`")?;
            parser.take(Sign::Comma);
            Ok((values, layout))
        };
        let targets = self.braced(open, target, Self::skip_member)?;
        Ok(Next { selector, when, targets, span: self.since(start) })
    }
}
