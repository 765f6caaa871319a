//! The lexer: text to tokens. Comments are kept; a faulty literal becomes a token of the class that was
//! meant, so that one fault is told once.

mod literal;
#[cfg(test)]
mod tests;

pub use self::literal::duration;
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::limits::{LONGEST_NAME, LONGEST_TEXT};
use crate::token::{Sign, Token, TokenKind};
use ir::source::{FileId, Span};

/// Splits a text into tokens, comments among them; the last token is [`TokenKind::End`].
pub fn lex(file: FileId, text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    if text.len() > LONGEST_TEXT {
        let span = Span::new(file, 0, 0);
        let fault = Diagnostic::error("E0012", "This file is too long.", span, "longer than 16 MiB")
            .help("Split the program into modules and import them.")
            .of_kind(DiagnosticKind::Syntax);
        return (vec![Token { kind: TokenKind::End, span, first_on_line: true }], vec![fault]);
    }
    let mut lexer =
        Lexer { file, text, at: 0, line_begins: true, tokens: Vec::new(), diagnostics: Findings::default() };
    lexer.run();
    (lexer.tokens, lexer.diagnostics.into_list())
}

/// Splits a part of a text into tokens, whose places are those in the whole text. A part that the text does
/// not have is empty.
pub(crate) fn lex_part(
    file: FileId,
    text: &str,
    part: std::ops::Range<usize>,
) -> (Vec<Token>, Vec<Diagnostic>) {
    let part = if text.get(part.clone()).is_some() { part } else { 0..0 };
    let text = &text[..part.end];
    if text.len() > LONGEST_TEXT {
        return lex(file, text);
    }
    let (tokens, diagnostics) = (Vec::new(), Findings::default());
    let mut lexer = Lexer { file, text, at: part.start, line_begins: true, tokens, diagnostics };
    lexer.run();
    (lexer.tokens, lexer.diagnostics.into_list())
}

struct Lexer<'t> {
    file: FileId,
    text: &'t str,
    at: usize,
    line_begins: bool,
    tokens: Vec<Token>,
    diagnostics: Findings,
}

impl<'t> Lexer<'t> {
    fn run(&mut self) {
        if self.text.starts_with('\u{feff}') {
            self.at = '\u{feff}'.len_utf8();
        }
        while let Some(byte) = self.byte(0) {
            match byte {
                b'\n' => {
                    self.line_begins = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' => self.at += 1,
                b'/' if self.byte(1) == Some(b'/') => self.comment(),
                b'/' if self.byte(1) == Some(b'*') => self.foreign_block_comment(),
                b'#' => self.foreign_line_comment(),
                b'"' => self.string(),
                _ => self.literal_word_or_sign(byte),
            }
        }
        self.push(TokenKind::End, 0);
    }

    fn literal_word_or_sign(&mut self, byte: u8) {
        if (byte.is_ascii_hexdigit() || byte == b':') && self.address_with_colons() {
            return;
        }
        if byte.is_ascii_digit() {
            self.number();
        } else if is_word_byte(byte) {
            self.word();
        } else if !self.sign() {
            self.unknown_characters();
        }
    }

    fn word(&mut self) {
        let length = self.run_length(0, is_word_byte);
        if &self.text[self.at..self.at + length] == "as" {
            let after = (self.byte(2), self.byte(3));
            if after.0 == Some(b'%') {
                return self.push(TokenKind::Sign(Sign::AsWrap), 3);
            }
            if after.0 == Some(b'|') && after.1 != Some(b'|') {
                return self.push(TokenKind::Sign(Sign::AsSaturate), 3);
            }
        }
        self.push(TokenKind::Word, length.min(LONGEST_NAME));
        if length > LONGEST_NAME {
            let span = self.span(self.at - LONGEST_NAME, self.at);
            let label = format!("it goes on, with {length} in all");
            let headline = format!("A name has at most {LONGEST_NAME} bytes.");
            self.report(Diagnostic::error("E0016", headline, span, label).help("Give it a shorter name."));
            self.at += length - LONGEST_NAME;
        }
    }

    fn sign(&mut self) -> bool {
        let rest = &self.text[self.at..];
        for wrong in ["..=", "..."] {
            if rest.starts_with(wrong) {
                let span = self.span(self.at, self.at + 3);
                self.report(
                    Diagnostic::error(
                        "E0014",
                        "A range is written with two dots.",
                        span,
                        "not a sign of the language",
                    )
                    .help("Both ends belong to a range: `1..5` holds 1 and 5.")
                    .suggest("write `..`", span, ".."),
                );
                self.push(TokenKind::Sign(Sign::Range), 3);
                return true;
            }
        }
        if rest.starts_with("::") {
            let span = self.span(self.at, self.at + 2);
            self.report(
                Diagnostic::error("E0015", "Names are joined by a dot.", span, "not a sign of the language")
                    .suggest("write `.`", span, "."),
            );
            self.push(TokenKind::Sign(Sign::Dot), 2);
            return true;
        }
        let longest = Sign::ALL
            .iter()
            .filter(|sign| rest.starts_with(sign.text()))
            .max_by_key(|sign| sign.text().len());
        match longest {
            Some(&sign) => {
                self.push(TokenKind::Sign(sign), sign.text().len());
                true
            }
            None => false,
        }
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let line = rest.split('\n').next().unwrap_or(rest);
        let length = line.trim_end_matches('\r').len();
        self.push(TokenKind::Comment, length);
    }

    fn foreign_line_comment(&mut self) {
        let line = self.text[self.at..].split('\n').next().unwrap_or("").len();
        let span = self.span(self.at, self.at + 1);
        self.report(
            Diagnostic::error("E0013", "Comments begin with `//`.", span, "not a comment in this language")
                .suggest("write `//`", span, "//"),
        );
        self.at += line;
    }

    fn foreign_block_comment(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.find("*/").map_or(rest.len(), |end| end + 2);
        let span = self.span(self.at, self.at + 2);
        self.report(
            Diagnostic::error("E0013", "Comments begin with `//`.", span, "not a comment in this language")
                .help("Put `//` before each line of the comment; it ends with the line."),
        );
        self.at += length;
    }

    fn string(&mut self) {
        let start = self.at;
        let mut value = String::new();
        let mut at = start + 1;
        while let Some(character) = self.text[at..].chars().next() {
            match character {
                '\n' => break,
                '"' => {
                    self.push(TokenKind::Text(value), at + 1 - start);
                    return;
                }
                '\\' => at = self.escape(at, &mut value),
                other => {
                    value.push(other);
                    at += other.len_utf8();
                }
            }
        }
        let end = start + self.text[start..at].trim_end().len().max(1);
        let close = self.span(end, end);
        self.report(
            Diagnostic::error(
                "E0002",
                "This text has no end.",
                self.span(start, end),
                "no closing `\"` on this line",
            )
            .suggest("close the text", close, "\""),
        );
        self.push(TokenKind::Text(value), end - start);
    }

    /// Reads the escape at `at` and says where the text goes on.
    fn escape(&mut self, at: usize, value: &mut String) -> usize {
        let rest = &self.text[at + 1..];
        let Some(character) = rest.chars().next().filter(|&character| character != '\n') else {
            return at + 1;
        };
        match character {
            'n' => value.push('\n'),
            't' => value.push('\t'),
            '\\' => value.push('\\'),
            '"' => value.push('"'),
            'x' => {
                let digits =
                    rest.get(1..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
                let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                match code {
                    Some(code) if code < 0x80 => value.push(char::from(code)),
                    Some(_) => {
                        let span = self.span(at, at + 4);
                        self.report(
                            Diagnostic::error(
                                "E0003",
                                "A text holds characters, not bytes.",
                                span,
                                "above `\\x7f`",
                            )
                            .help("Write bytes as `hex \"…\"`, joined by `/`, as in `\"abc\" / hex \"ff\"`."),
                        );
                    }
                    None => {
                        let span = self.span(at, at + 2);
                        self.report(
                            Diagnostic::error(
                                "E0003",
                                "`\\x` takes two hexadecimal digits.",
                                span,
                                "digits missing",
                            )
                            .help("Write for example `\\x0a`."),
                        );
                        return at + 2;
                    }
                }
                return at + 4;
            }
            other => {
                let end = at + 1 + other.len_utf8();
                self.report(
                    Diagnostic::error(
                        "E0003",
                        format!("`\\{other}` means nothing in a text."),
                        self.span(at, end),
                        "unknown",
                    )
                    .help("There are `\\n`, `\\t`, `\\\\`, `\\\"` and `\\xHH`."),
                );
            }
        }
        at + 1 + character.len_utf8()
    }

    fn unknown_characters(&mut self) {
        let rest = &self.text[self.at..];
        let known = |character: char| {
            character.is_ascii()
                && (character.is_ascii_whitespace()
                    || is_word_byte(character as u8)
                    || "\"#".contains(character))
                || Sign::ALL.iter().any(|sign| sign.text().starts_with(character))
        };
        let length =
            rest.char_indices().find(|&(_, character)| known(character)).map_or(rest.len(), |(at, _)| at);
        let length = length.max(rest.chars().next().map_or(1, char::len_utf8));
        let shown: String = rest[..length].chars().take(12).flat_map(char::escape_debug).collect();
        let headline = format!("`{shown}` does not belong to the language.");
        let span = self.span(self.at, self.at + length);
        self.report(
            Diagnostic::error("E0001", headline, span, "unknown here")
                .help("Names are made of letters a–z, digits and `_`. Other characters may stand in texts and comments."),
        );
        self.at += length;
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// How many bytes, from `ahead` on, hold the condition.
    fn run_length(&self, ahead: usize, condition: impl Fn(u8) -> bool) -> usize {
        self.text.as_bytes()[self.at + ahead..].iter().take_while(|&&byte| condition(byte)).count()
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span::new(self.file, start as u32, end as u32)
    }

    fn report(&mut self, fault: Diagnostic) {
        self.diagnostics.report(fault.of_kind(DiagnosticKind::Syntax));
    }

    fn push(&mut self, kind: TokenKind, length: usize) {
        let span = self.span(self.at, self.at + length);
        self.tokens.push(Token { kind, span, first_on_line: self.line_begins });
        self.line_begins = false;
        self.at += length;
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
