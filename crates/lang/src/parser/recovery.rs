//! Going on after a fault: where the next statement, member or declaration begins.
//!
//! A fault skips to the next place that surely begins something new, jumping over whole braces. A line that
//! begins a declaration ends every open block at once, and the missing brace is told at the innermost one.

use super::spelling::{ITEMS, STATEMENTS};
use super::{FILE_ENDS, Fault, Parsed, Parser};
use crate::diagnostic::Diagnostic;
use crate::token::{Sign, TokenKind};
use ir::source::Span;

impl Parser<'_> {
    /// A declaration surely begins here, at the start of a line.
    pub(super) fn at_item(&self) -> bool {
        if !self.first_on_line() {
            return false;
        }
        let name_follows = *self.kind_at(1) == TokenKind::Word;
        let behind = self.kind_at(2);
        let sign = |sign| *behind == TokenKind::Sign(sign);
        match self.word() {
            "const" | "enum" | "table" | "pool" => name_follows && sign(Sign::Colon),
            "meter" | "register" | "group" => name_follows && (sign(Sign::Colon) || sign(Sign::BracketOpen)),
            "layout" => name_follows && sign(Sign::BraceOpen),
            "counter" => name_follows && !self.token_at(1).first_on_line,
            "fn" | "decoder" | "stage" | "event" | "policy" => name_follows && sign(Sign::ParenOpen),
            "settable" => matches!(self.word_at(1), "const" | "pool"),
            "start" | "steer" => matches!(self.word_at(1), "decoder" | "stage"),
            "extern" => self.word_at(1) == "stage",
            "order" => self.word_at(1) == "fragments",
            "reason" => name_follows && matches!(behind, TokenKind::Text(_)),
            "test" => matches!(self.kind_at(1), TokenKind::Text(_)) && self.is_at(2, Sign::BraceOpen),
            "every" => matches!(self.kind_at(1), TokenKind::Duration(_)) && self.is_at(2, Sign::BraceOpen),
            "import" => name_follows && sign(Sign::Dot),
            _ => false,
        }
    }

    /// Tells that the brace at `open` is not closed, once, and gives up every open block.
    pub(super) fn unclosed<T>(&mut self, open: Span) -> Parsed<T> {
        if !self.lost {
            self.lost = true;
            let here = self.span();
            let before = self.tokens[self.at.saturating_sub(1)].span;
            let gap = Span::new(self.file, before.end, before.end);
            let what = if self.at_end() { FILE_ENDS } else { "the next declaration begins here" };
            self.report(
                Diagnostic::error("E0054", "This `{` has no `}`.", open, "opened here")
                    .place(here, what)
                    .suggest("close it", gap, "\n}"),
            );
        }
        Err(Fault)
    }

    /// `{ element … }` with recovery inside: `element` reads one, `skip` finds the next after a fault.
    pub(super) fn braced<T>(
        &mut self,
        open: Span,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
        skip: impl Fn(&mut Self, usize),
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        loop {
            if self.take(Sign::BraceClose) {
                return Ok(elements);
            }
            if self.at_end() || self.at_item() {
                return self.unclosed(open);
            }
            let before = self.at;
            match element(self) {
                Ok(read) => elements.push(read),
                Err(Fault) if self.lost => return Err(Fault),
                Err(Fault) => {
                    skip(self, before);
                    if self.at == before && !self.is(Sign::BraceClose) && !self.at_item() {
                        self.advance();
                    }
                }
            }
        }
    }

    /// Skips what is left of the construct that began at token `begin`: until `stop` holds outside of inner
    /// braces, or the block, the file or the declaration ends.
    fn skip_until(&mut self, begin: usize, stop: impl Fn(&Self) -> bool) {
        let mut depth = 0u32;
        while !(self.at_end() || self.at > begin && self.at_item()) {
            if self.is(Sign::BraceOpen) {
                depth += 1;
            } else if self.is(Sign::BraceClose) {
                if depth == 0 {
                    return;
                }
                depth -= 1;
                if depth == 0 {
                    self.advance();
                    if self.first_on_line() {
                        return;
                    }
                    continue;
                }
            } else if depth == 0 && stop(self) {
                return;
            }
            self.advance();
        }
    }

    /// To the next statement.
    pub(super) fn skip_statement(&mut self, begin: usize) {
        self.skip_until(begin, |parser| {
            parser.is(Sign::Semicolon)
                || (parser.at > begin && parser.first_on_line() && parser.surely_begins_statement())
        });
        self.take(Sign::Semicolon);
    }

    fn surely_begins_statement(&self) -> bool {
        let behind_operator = match &self.tokens[self.at - 1].kind {
            TokenKind::Sign(sign) => !matches!(
                sign,
                Sign::ParenClose
                    | Sign::BracketClose
                    | Sign::BraceClose
                    | Sign::BraceOpen
                    | Sign::Semicolon
                    | Sign::Range
            ),
            _ => false,
        };
        let plain = !behind_operator && !self.is_at(1, Sign::Gives);
        *self.kind() == TokenKind::Word && (plain || STATEMENTS.contains(&self.word()))
    }

    /// To the next arm, entry or member: behind a comma, or on the next line with `=>` in it.
    pub(super) fn skip_member(&mut self, begin: usize) {
        self.skip_until(begin, |parser| {
            parser.is(Sign::Comma) || (parser.at > begin && parser.first_on_line() && parser.line_gives())
        });
        self.take(Sign::Comma);
    }

    /// This line has a `=>` outside of braces, or an `=` as in an enum.
    fn line_gives(&self) -> bool {
        (0..64)
            .take_while(|&ahead| ahead == 0 || !self.token_at(ahead).first_on_line)
            .any(|ahead| self.is_at(ahead, Sign::Gives) || self.is_at(ahead, Sign::Assign))
    }

    /// To the next field or property: a word that fits there.
    pub(super) fn skip_to(&mut self, begin: usize, begins: impl Fn(&Self) -> bool) {
        self.skip_until(begin, |parser| parser.is(Sign::Comma) || (parser.at > begin && begins(parser)));
        self.take(Sign::Comma);
    }

    /// To the next declaration, at the level of the file.
    pub(super) fn skip_item(&mut self, begin: usize) {
        self.skip_until(begin, |parser| {
            parser.at > begin && parser.first_on_line() && parser.begins_like_item()
        });
    }

    /// The first word of this line belongs to a declaration, even if what follows does not fit.
    pub(super) fn begins_like_item(&self) -> bool {
        self.first_on_line() && ITEMS.contains(&self.word())
    }
}
