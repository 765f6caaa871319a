//! Packets written out: headers with their fields, texts, bytes.

use super::{Parsed, Parser};
use crate::ast::*;
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

impl Parser<'_> {
    /// `ethernet(dst …) / ipv4 / payload`
    pub(super) fn packet(&mut self) -> Parsed<PacketExpr> {
        let start = self.span();
        let mut parts = vec![self.part()?];
        while self.take(Sign::Slash) {
            parts.push(self.part()?);
        }
        Ok(PacketExpr { parts, span: self.since(start) })
    }

    /// `{ packet }`
    pub(super) fn braced_packet(&mut self) -> Parsed<PacketExpr> {
        self.expect(Sign::BraceOpen, "before a packet, as in `{ ethernet / ipv4(ttl 3) }`")?;
        let packet = self.packet()?;
        self.expect(Sign::BraceClose, "behind a packet, or `/` before its next part")?;
        Ok(packet)
    }

    /// A text or `hex "…"` as bytes, if one stands here.
    pub(super) fn bytes(&mut self) -> Parsed<Option<Vec<u8>>> {
        let is_text = matches!(self.kind(), TokenKind::Text(_));
        let is_hex = self.word() == "hex" && matches!(self.kind_at(1), TokenKind::Text(_));
        if !is_text && !is_hex {
            return Ok(None);
        }
        Ok(match self.part()? {
            PacketPart::Text(text, _) => Some(text.into_bytes()),
            PacketPart::Hex(bytes, _) => Some(bytes),
            _ => None,
        })
    }

    fn part(&mut self) -> Parsed<PacketPart> {
        let span = self.span();
        if let TokenKind::Text(text) = self.kind() {
            let text = text.clone();
            self.advance();
            return Ok(PacketPart::Text(text, span));
        }
        if self.word() == "hex" && matches!(self.kind_at(1), TokenKind::Text(_)) {
            self.advance();
            return self.hexadecimal();
        }
        if self.word() == "zero" && self.is_at(1, Sign::BracketOpen) {
            self.advance();
            self.advance();
            let count = self.expression()?;
            self.expect(Sign::BracketClose, "behind the number of zero bytes")?;
            return Ok(PacketPart::Zero(count, self.since(span)));
        }
        if matches!(self.word(), "payload" | "packet") && !self.is_at(1, Sign::ParenOpen) {
            let from = if self.word() == "payload" { RestFrom::Payload } else { RestFrom::Packet };
            self.advance();
            return self.rest(from, span);
        }
        if self.word() == "from" && !self.word_at(1).is_empty() {
            self.advance();
            let header = self.name("The name of a header", "behind `from`")?;
            return self.rest(RestFrom::Header(header), span);
        }
        let layout = self.name("A header, a text, `hex \"…\"` or `zero[n]`", "in a packet")?;
        let mut fields = Vec::new();
        if self.take(Sign::ParenOpen) {
            fields = self.list(Sign::ParenClose, "behind the fields of a header", |parser| {
                let field = parser.any_word("The name of a field", "before its value, as in `ttl 3`")?;
                let sign = parser.span();
                if parser.is(Sign::Assign) || parser.is(Sign::Colon) {
                    parser.report(
                        Diagnostic::error(
                            "E0079",
                            "A field and its value stand side by side here.",
                            sign,
                            "no sign between",
                        )
                        .suggest("remove it", sign, ""),
                    );
                    parser.advance();
                }
                let value = parser.field_value()?;
                Ok((field, value))
            })?;
        }
        Ok(PacketPart::Header(layout, fields))
    }

    /// The value behind the name of a field. Where there is none, that is told and zero stands for it, so
    /// that the rest is read.
    fn field_value(&mut self) -> Parsed<Expr> {
        let span = self.span();
        let flag = self.is(Sign::Dot);
        let ends = |parser: &Self| parser.is(Sign::Comma) || parser.is(Sign::ParenClose);
        if !flag && !ends(self) {
            return self.expression();
        }
        let fault = Diagnostic { code: "E0073", ..self.expected("A value", "behind the name of a field") };
        self.report(fault.help(
            "Each field stands with its value, as in `ttl 3`; all flags are one number, as in `flags 0x02`.",
        ));
        if flag {
            self.advance();
            self.any_word("The name of a flag", "behind the dot")?;
            if !ends(self) {
                return self.expression();
            }
        }
        Ok(Expr { kind: ExprKind::Int(0), span })
    }

    /// `payload take 64`: behind where it begins.
    fn rest(&mut self, from: RestFrom, start: Span) -> Parsed<PacketPart> {
        let take = if self.take_word("take") { Some(self.expression()?) } else { None };
        Ok(PacketPart::Rest { from, take, span: self.since(start) })
    }

    fn hexadecimal(&mut self) -> Parsed<PacketPart> {
        let span = self.span();
        let text = self.string("behind `hex`")?;
        let digits: Option<Vec<u32>> = text
            .chars()
            .filter(|character| !character.is_whitespace())
            .map(|digit| digit.to_digit(16))
            .collect();
        match digits {
            Some(digits) if digits.len().is_multiple_of(2) => {
                let bytes = digits.chunks_exact(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect();
                Ok(PacketPart::Hex(bytes, span))
            }
            _ => {
                self.report(
                    Diagnostic::error(
                        "E0067",
                        "These are not hexadecimal bytes.",
                        span,
                        "pairs of digits are needed",
                    )
                    .help("Write two digits a byte, with blanks as you like: `hex \"00 1c 7f\"`."),
                );
                Ok(PacketPart::Hex(Vec::new(), span))
            }
        }
    }
}
