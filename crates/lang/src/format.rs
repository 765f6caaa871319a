//! The formatter: the same tokens and comments with canonical blanks; the user's line breaks stay.
//!
//! Each line is written anew from its tokens. Its indentation is one level more than that of the line that
//! opened the innermost bracket, and another level where it continues an expression. Inside a layout, blanks
//! that align columns (two or more) are kept.

use crate::diagnostic::{Diagnostic, Severity};
use crate::lexer::lex;
use crate::parser::parse;
use crate::token::{Sign, Token, TokenKind};
use ir::source::FileId;

/// Blanks a level.
const INDENT: usize = 4;

/// The canonical form of a program; its diagnostics if it does not parse.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let file = FileId::default();
    let (_, faults) = parse(file, text);
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        return Err(faults);
    }
    let (tokens, _) = lex(file, text);
    let mut formatter =
        Formatter { text, tokens: &tokens, open: Vec::new(), line_indent: 0, out: String::new() };
    formatter.run();
    Ok(formatter.out)
}

/// An open bracket.
struct Open {
    /// Indentation of the line it stands on.
    indent: usize,
    /// Its content is a layout, or stands in one.
    layout: bool,
    /// No blanks inside: brackets, and the braces of imports and `multicast`.
    tight: bool,
}

struct Formatter<'t> {
    text: &'t str,
    tokens: &'t [Token],
    open: Vec<Open>,
    line_indent: usize,
    out: String,
}

impl<'t> Formatter<'t> {
    fn run(&mut self) {
        let mut previous: Option<usize> = None;
        for at in 0..self.tokens.len() {
            let token = &self.tokens[at];
            if token.kind == TokenKind::End {
                break;
            }
            let gap_start = previous.map_or(0, |previous| self.tokens[previous].span.end as usize);
            let gap = self.text.get(gap_start..token.span.start as usize).unwrap_or("");
            match previous {
                Some(_) if token.first_on_line => {
                    self.out.push_str(if gap.matches('\n').count() > 1 { "\n\n" } else { "\n" });
                    self.begin_line(at);
                }
                Some(previous) => {
                    let blanks = self.blanks(previous, at, gap);
                    self.out.extend(std::iter::repeat_n(' ', blanks));
                }
                None => self.begin_line(at),
            }
            self.track(at);
            self.out.push_str(self.shown(at).trim_end());
            previous = Some(at);
        }
        if previous.is_some() {
            self.out.push('\n');
        }
    }

    fn shown(&self, at: usize) -> &'t str {
        let span = self.tokens[at].span;
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// The word `back` tokens before `at`, or nothing.
    fn word_before(&self, at: usize, back: usize) -> &'t str {
        match at.checked_sub(back) {
            Some(index) if self.tokens[index].kind == TokenKind::Word => self.shown(index),
            _ => "",
        }
    }

    fn sign(&self, at: usize) -> Option<Sign> {
        match self.tokens.get(at)?.kind {
            TokenKind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    fn begin_line(&mut self, at: usize) {
        let same_line = |index: &usize| *index == at || !self.tokens[*index].first_on_line;
        let closing = |index: usize| self.sign(index).is_some_and(is_close);
        let closes =
            (at..self.tokens.len()).take_while(same_line).take_while(|&index| closing(index)).count();
        let indent = if closes > 0 {
            let opener = self.open.len().saturating_sub(closes);
            self.open.get(opener).map_or(0, |open| open.indent)
        } else {
            let inner = self.open.last().map_or(0, |open| open.indent + INDENT);
            if self.continues(at) { inner + INDENT } else { inner }
        };
        self.line_indent = indent;
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// This line goes on with what the line before began, as an operator at either end of the break says.
    fn continues(&self, at: usize) -> bool {
        let before = (0..at).rev().find(|&index| self.tokens[index].kind != TokenKind::Comment);
        let hangs =
            |sign: Sign| is_operator(sign) || matches!(sign, Sign::Assign | Sign::Gives | Sign::Arrow);
        self.tokens[at].kind != TokenKind::Comment
            && (self.sign(at).is_some_and(hangs)
                || before.and_then(|index| self.sign(index)).is_some_and(hangs))
    }

    fn track(&mut self, at: usize) {
        let Some(sign) = self.sign(at) else { return };
        if is_open(sign) {
            let parent = self.open.last().is_some_and(|open| open.layout);
            let layout = sign == Sign::BraceOpen
                && (parent
                    || (at >= 2
                        && self.word_before(at, 2) == "layout"
                        && !self.word_before(at, 1).is_empty()));
            let before = at.checked_sub(1).and_then(|index| self.sign(index));
            let tight = sign != Sign::BraceOpen
                || before == Some(Sign::Dot)
                || self.word_before(at, 1) == "multicast";
            self.open.push(Open { indent: self.line_indent, layout, tight });
        } else if is_close(sign) {
            self.open.pop();
        }
    }

    /// How many blanks stand between two tokens of one line.
    fn blanks(&self, before: usize, at: usize, gap: &str) -> usize {
        let in_layout = self.open.last().is_some_and(|open| open.layout);
        let aligned =
            if in_layout && gap.len() >= 2 && gap.bytes().all(|byte| byte == b' ') { gap.len() } else { 0 };
        if self.tokens[at].kind == TokenKind::Comment {
            return aligned.max(2);
        }
        let closes_brace = self.sign(at) == Some(Sign::BraceClose);
        if self.joined(before, at, gap) {
            0
        } else if closes_brace {
            1
        } else {
            aligned.max(1)
        }
    }

    /// Nothing stands between these two tokens.
    fn joined(&self, before: usize, at: usize, gap: &str) -> bool {
        let tight = self.open.last().is_some_and(|open| open.tight);
        let word_before = self.tokens[before].kind == TokenKind::Word;
        match (self.sign(before), self.sign(at)) {
            (Some(open), Some(close)) if is_open(open) && is_close(close) => true,
            (Some(Sign::ParenOpen | Sign::BracketOpen | Sign::Dot | Sign::Not | Sign::Complement), _) => true,
            (Some(Sign::BraceOpen), _) => tight,
            (
                _,
                Some(
                    Sign::ParenClose
                    | Sign::BracketClose
                    | Sign::Comma
                    | Sign::Semicolon
                    | Sign::Colon
                    | Sign::Dot,
                ),
            ) => true,
            (_, Some(Sign::BraceClose)) => tight,
            (_, Some(Sign::Range)) => true,
            (Some(Sign::Range), _) => gap.is_empty() || self.tokens[at].kind.is_literal(),
            (None, Some(Sign::BracketOpen)) => word_before,
            (None, Some(Sign::ParenOpen)) => word_before && self.names_call(before),
            _ => false,
        }
    }

    /// The word before a bracket names what is called or declared, and is no word of the grammar.
    fn names_call(&self, at: usize) -> bool {
        const APART: [&str; 23] = [
            "if",
            "match",
            "in",
            "of",
            "after",
            "every",
            "send",
            "raise",
            "cap",
            "when",
            "as",
            "else",
            "to",
            "capacity",
            "age",
            "idle",
            "entries",
            "ports",
            "some",
            "recirculate",
            "at",
            "over",
            "pseudo",
        ];
        let declared =
            matches!(self.word_before(at, 1), "goto" | "raise" | "stage" | "decoder" | "event" | "fn");
        let hook = at.checked_sub(1).and_then(|index| self.sign(index)) == Some(Sign::Dot);
        declared || hook || !APART.contains(&self.shown(at))
    }
}

fn is_open(sign: Sign) -> bool {
    matches!(sign, Sign::BraceOpen | Sign::ParenOpen | Sign::BracketOpen)
}

fn is_close(sign: Sign) -> bool {
    matches!(sign, Sign::BraceClose | Sign::ParenClose | Sign::BracketClose)
}

fn is_operator(sign: Sign) -> bool {
    !is_open(sign)
        && !is_close(sign)
        && !matches!(
            sign,
            Sign::Comma
                | Sign::Semicolon
                | Sign::Colon
                | Sign::Dot
                | Sign::Range
                | Sign::Arrow
                | Sign::Gives
                | Sign::Assign
                | Sign::Not
                | Sign::Complement
        )
}

#[cfg(test)]
mod tests;
