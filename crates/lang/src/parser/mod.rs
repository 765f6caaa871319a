//! The parser: tokens to the syntax tree, by recursive descent; after a fault it goes on at the next
//! statement or declaration.

mod declaration;
mod edit;
mod expression;
mod layout;
mod memory;
mod packet;
mod pattern;
mod policy;
mod recovery;
mod spelling;
mod statement;
mod table;
mod test;

pub(crate) use expression::OPERATORS;

use crate::ast::{Entry, EntryKey, Expr, File, Member, Name};
use crate::diagnostic::{Diagnostic, DiagnosticKind, Findings};
use crate::lexer::{lex, lex_part};
use crate::limits::{DEEPEST_NESTING, TALLEST_EXPRESSION};
use crate::token::{Sign, Token, TokenKind};
use ir::source::{FileId, Span};
use std::ops::Range;

/// Words with a fixed meaning inside expressions; nothing that is declared can bear them.
pub const RESERVED: [&str; 8] = ["true", "false", "if", "else", "match", "in", "as", "_"];

/// What is said of the place where a text ends too early.
const FILE_ENDS: &str = "the file ends here";

/// Parses one file. Each fault is told once; what could be read around it is in the tree.
pub fn parse(file: FileId, text: &str) -> (File, Vec<Diagnostic>) {
    let mut parser = Parser::new(file, text);
    let tree = parser.file();
    let mut diagnostics = parser.diagnostics.into_list();
    diagnostics.sort_by_key(|fault| fault.primary.span.start);
    (tree, diagnostics)
}

/// Parses entries of a table, one after the other, as they stand behind `entries {`.
pub fn parse_entries(file: FileId, text: &str) -> (Vec<Entry>, Vec<Diagnostic>) {
    parse_list(file, text, Parser::entry)
}

/// Parses members of a group, one after the other, as they stand behind `members {`.
pub fn parse_members(file: FileId, text: &str) -> (Vec<Member>, Vec<Diagnostic>) {
    parse_list(file, text, Parser::member)
}

/// Parses a part of a text as one expression.
pub(crate) fn parse_value(file: FileId, text: &str, part: Range<usize>) -> (Option<Expr>, Vec<Diagnostic>) {
    parse_part(file, text, part, Parser::expression)
}

/// Parses a part of a text as the values of a pool.
pub(crate) fn parse_pool(
    file: FileId,
    text: &str,
    part: Range<usize>,
) -> (Option<Vec<EntryKey>>, Vec<Diagnostic>) {
    parse_part(file, text, part, |parser| {
        let mut values = vec![parser.entry_key()?];
        while parser.take(Sign::Comma) && !parser.at_end() {
            values.push(parser.entry_key()?);
        }
        Ok(values)
    })
}

/// Parses a part of a text that holds one thing and nothing else.
fn parse_part<'a, T>(
    file: FileId,
    text: &'a str,
    part: Range<usize>,
    read: impl Fn(&mut Parser<'a>) -> Parsed<T>,
) -> (Option<T>, Vec<Diagnostic>) {
    let mut parser = Parser::of(file, text, lex_part(file, text, part));
    let mut value = read(&mut parser).ok();
    if value.is_some() && !parser.at_end() {
        let fault = parser.expected("The end of the value", "here");
        parser.report(fault);
        value = None;
    }
    let mut found = parser.diagnostics.into_list();
    for fault in &mut found {
        if fault.primary.text == FILE_ENDS {
            fault.primary.text = "the value ends here".to_string();
        }
    }
    (value.filter(|_| found.is_empty()), found)
}

/// What follows a fault on its line is not read.
fn parse_list<'a, T>(
    file: FileId,
    text: &'a str,
    part: impl Fn(&mut Parser<'a>) -> Parsed<T>,
) -> (Vec<T>, Vec<Diagnostic>) {
    let mut parser = Parser::new(file, text);
    let mut parts = Vec::new();
    while !parser.at_end() {
        let before = parser.at;
        match part(&mut parser) {
            Ok(read) => parts.push(read),
            Err(Fault) => {
                parser.advance();
                while !parser.at_end() && !parser.first_on_line() {
                    parser.advance();
                }
            }
        }
        if parser.at == before {
            parser.advance();
        }
    }
    (parts, parser.diagnostics.into_list())
}

/// A construct could not be read; the diagnostic is already noted.
#[derive(Debug)]
pub(crate) struct Fault;

pub(crate) type Parsed<T> = Result<T, Fault>;

pub(crate) struct Parser<'t> {
    text: &'t str,
    file: FileId,
    tokens: Vec<Token>,
    at: usize,
    diagnostics: Findings,
    /// For each fault that the lexer found, in order: where it begins, and where its line ends.
    lexical: Vec<(usize, usize)>,
    depth: u32,
    /// A construct that nests too deeply was found.
    too_deep: bool,
    /// Height of the expression parsed last.
    height: u32,
    /// A closing brace is missing: every open block ends without a further word.
    lost: bool,
}

impl<'t> Parser<'t> {
    fn new(file: FileId, text: &'t str) -> Parser<'t> {
        Parser::of(file, text, lex(file, text))
    }

    fn of(file: FileId, text: &'t str, (mut tokens, found): (Vec<Token>, Vec<Diagnostic>)) -> Parser<'t> {
        tokens.retain(|token| token.kind != TokenKind::Comment);
        let mut lexical = Vec::new();
        // From the last fault to the first, so that what lies between two is read once.
        let (mut read, mut ends) = (text.len(), text.len());
        for fault in found.iter().rev() {
            let end = (fault.primary.span.end as usize).min(read);
            if let Some(at) = text.as_bytes()[end..read].iter().position(|&byte| byte == b'\n') {
                ends = end + at;
            }
            read = end;
            lexical.push((fault.primary.span.start as usize, ends));
        }
        lexical.reverse();
        let mut diagnostics = Findings::default();
        diagnostics.extend(found);
        Parser {
            text,
            file,
            tokens,
            at: 0,
            diagnostics,
            lexical,
            depth: 0,
            too_deep: false,
            height: 0,
            lost: false,
        }
    }
}

impl<'t> Parser<'t> {
    pub(crate) fn kind(&self) -> &TokenKind {
        self.kind_at(0)
    }

    pub(crate) fn kind_at(&self, ahead: usize) -> &TokenKind {
        &self.token_at(ahead).kind
    }

    pub(crate) fn token_at(&self, ahead: usize) -> &Token {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.at + ahead).min(last)]
    }

    pub(crate) fn span(&self) -> Span {
        self.token_at(0).span
    }

    pub(crate) fn first_on_line(&self) -> bool {
        self.token_at(0).first_on_line
    }

    /// The word that stands `ahead` tokens further on, or nothing.
    pub(crate) fn word_at(&self, ahead: usize) -> &'t str {
        let token = self.token_at(ahead);
        if token.kind == TokenKind::Word { self.text_of(token.span) } else { "" }
    }

    pub(crate) fn word(&self) -> &'t str {
        self.word_at(0)
    }

    pub(crate) fn text_of(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or("")
    }

    /// From `start` to the end of the token read last.
    pub(crate) fn since(&self, start: Span) -> Span {
        let end = if self.at == 0 { start } else { self.tokens[self.at - 1].span };
        if end.end < start.end { start } else { start.to(end) }
    }

    pub(crate) fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub(crate) fn at_end(&self) -> bool {
        *self.kind() == TokenKind::End
    }

    pub(crate) fn is(&self, sign: Sign) -> bool {
        self.is_at(0, sign)
    }

    pub(crate) fn is_at(&self, ahead: usize, sign: Sign) -> bool {
        *self.kind_at(ahead) == TokenKind::Sign(sign)
    }

    pub(crate) fn take(&mut self, sign: Sign) -> bool {
        let found = self.is(sign);
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn take_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.advance();
        }
        found
    }

    pub(crate) fn expect(&mut self, sign: Sign, place: &str) -> Parsed<Span> {
        let span = self.span();
        if self.take(sign) {
            return Ok(span);
        }
        let previous = if self.at == 0 { span } else { self.tokens[self.at - 1].span };
        let gap = Span::new(self.file, previous.end, previous.end);
        let fault = self.expected(&format!("`{}`", sign.text()), place);
        let closes = [Sign::Comma, Sign::ParenClose, Sign::BracketClose, Sign::BraceClose, Sign::Semicolon];
        let nothing_follows = self.at_end() || closes.into_iter().any(|sign| self.is(sign));
        let text = match sign {
            // What would stand behind it is missing too.
            Sign::Colon | Sign::Gives | Sign::Assign if nothing_follows => return self.fail(fault),
            Sign::Colon | Sign::Gives | Sign::Assign | Sign::ParenClose | Sign::BracketClose => sign.text(),
            _ => return self.fail(fault),
        };
        let replacement =
            if matches!(sign, Sign::Gives | Sign::Assign) { format!(" {text}") } else { text.to_string() };
        self.fail(fault.suggest(format!("insert `{text}`"), gap, replacement))
    }

    pub(crate) fn expect_word(&mut self, word: &str, place: &str) -> Parsed<()> {
        if self.take_word(word) {
            return Ok(());
        }
        let fault = self.expected(&format!("`{word}`"), place);
        self.fail(fault)
    }

    /// "Here … is needed", pointing at the token that stands there instead.
    pub(crate) fn expected(&self, what: &str, place: &str) -> Diagnostic {
        let found = match self.kind() {
            TokenKind::End => FILE_ENDS.to_string(),
            TokenKind::Word | TokenKind::Sign(_) => format!("`{}` stands here", self.text_of(self.span())),
            literal => format!("the {} stands here", literal.class()),
        };
        Diagnostic::error("E0050", format!("{what} is needed {place}."), self.span(), found)
    }

    pub(crate) fn fail<T>(&mut self, fault: Diagnostic) -> Parsed<T> {
        self.report(fault);
        Err(Fault)
    }

    /// Notes a diagnostic, unless a faulty literal before it on the same line is its likely cause.
    pub(crate) fn report(&mut self, fault: Diagnostic) {
        let start = fault.primary.span.start as usize;
        let before = self.lexical.partition_point(|(earlier, _)| *earlier <= start);
        let caused = before.checked_sub(1).is_some_and(|nearest| start <= self.lexical[nearest].1);
        if !caused {
            self.diagnostics.report(fault.of_kind(DiagnosticKind::Syntax));
        }
    }

    /// Any word, reserved or not: behind a dot or in front of a value.
    pub(crate) fn any_word(&mut self, what: &str, place: &str) -> Parsed<Name> {
        let span = self.span();
        let text = self.word();
        if text.is_empty() {
            let fault = self.expected(what, place);
            return self.fail(fault);
        }
        self.advance();
        Ok(Name { text: text.to_string(), span })
    }

    /// A name that is declared or used.
    pub(crate) fn name(&mut self, what: &str, place: &str) -> Parsed<Name> {
        let span = self.span();
        let text = self.word();
        if RESERVED.contains(&text) {
            return self.fail(
                Diagnostic::error(
                    "E0053",
                    format!("`{text}` cannot be a name."),
                    span,
                    "has a meaning of its own",
                )
                .help(format!(
                    "{what} is needed {place}; these words cannot be names: {}.",
                    RESERVED.join(", ")
                ))
                .suggest(format!("write `{text}_`"), span, format!("{text}_")),
            );
        }
        self.any_word(what, place)
    }

    /// Runs a parser one level deeper; too deep a nesting is told once a file.
    pub(crate) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= DEEPEST_NESTING {
            return self.too_deep();
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    pub(crate) fn too_deep<T>(&mut self) -> Parsed<T> {
        if !self.too_deep {
            let (span, before) = (self.span(), self.diagnostics.reported());
            self.report(
                Diagnostic::error("E0066", "This nests too deeply.", span, "one level too many").help(format!(
                    "At most {DEEPEST_NESTING} levels and {TALLEST_EXPRESSION} operators in a row; name a part with `let`, or move it to a stage."
                )),
            );
            self.too_deep = self.diagnostics.reported() > before;
        }
        Err(Fault)
    }

    /// `item { "," item } [","]` up to the closing sign, which is read.
    pub(crate) fn list<T>(
        &mut self,
        close: Sign,
        place: &str,
        mut item: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        loop {
            if self.take(close) {
                return Ok(items);
            }
            items.push(item(self)?);
            if !self.take(Sign::Comma) {
                self.expect(close, place)?;
                return Ok(items);
            }
        }
    }
}

#[cfg(test)]
mod tests;
