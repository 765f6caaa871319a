//! Walks through the text of one rule and knows the place of every byte.

use crate::ImportError;
use crate::text::number;

/// A place in a rule.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
    first_line: u32,
}

impl<'a> Cursor<'a> {
    /// The beginning of a rule whose text begins on a line.
    pub(super) fn new(text: &'a str, first_line: u32) -> Cursor<'a> {
        Cursor { text, at: 0, first_line }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Skips blanks, and line ends that a `\` stands before.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start();
            let trimmed =
                ["\\\n", "\\\r\n"].iter().find_map(|end| trimmed.strip_prefix(end)).unwrap_or(trimmed);
            if trimmed.len() == rest.len() {
                return;
            }
            self.at = self.text.len() - trimmed.len();
        }
    }

    /// Takes a mark if it comes next.
    pub(super) fn take(&mut self, mark: char) -> bool {
        let takes = self.rest().starts_with(mark);
        self.at += if takes { mark.len_utf8() } else { 0 };
        takes
    }

    /// Takes all up to the first character that `ends`.
    pub(super) fn take_until(&mut self, ends: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// The line and the column of a byte of the rule.
    pub(super) fn place(&self, at: usize) -> (u32, u32) {
        let before = &self.text[..at];
        let line = self.first_line + before.bytes().filter(|byte| *byte == b'\n').count() as u32;
        (line, number(at - before.rfind('\n').map_or(0, |end| end + 1)))
    }

    /// An error at a byte of the rule.
    pub(super) fn error(&self, at: usize, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        let (line, column) = self.place(at);
        ImportError::new(line, column, what, advice)
    }
}
