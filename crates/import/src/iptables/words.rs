//! The words of a rule: separated by blanks, or in quotes.

use crate::ImportError;
use crate::text::{Line, Word, number, shown};
use std::borrow::Cow;

/// A word of a rule, without its quotes.
#[derive(Clone, Debug)]
pub(crate) struct Argument<'a> {
    pub(crate) text: Cow<'a, str>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

impl Argument<'_> {
    pub(crate) fn error(&self, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.line, self.column, what, advice)
    }

    pub(super) fn word(&self) -> Word<'_> {
        Word { line: self.line, column: self.column, text: &self.text }
    }
}

/// The words of a line; one in quotes may hold blanks, and `\` takes the next character as it is. To
/// iptables-restore quotes begin anywhere and end a word; those within a word are refused.
pub(super) fn words(line: Line<'_>) -> Result<Vec<Argument<'_>>, ImportError> {
    let mut words = Vec::new();
    let mut rest = line.text.char_indices().peekable();
    while let Some(&(start, first)) = rest.peek() {
        if first.is_ascii_whitespace() {
            rest.next();
            continue;
        }
        let argument = |text| Argument { text, line: line.number, column: number(start) };
        if first != '"' {
            let end = line.text[start..].find(|c: char| c.is_ascii_whitespace());
            let end = end.map_or(line.text.len(), |length| start + length);
            let text = &line.text[start..end];
            if let Some(quote) = text.find('"') {
                let (what, advice) =
                    ("a quotation mark begins within a word", "put the whole word in quotes");
                return Err(ImportError::new(line.number, number(start + quote), what, advice));
            }
            words.push(argument(Cow::Borrowed(text)));
            while rest.next_if(|(index, _)| *index < end).is_some() {}
            continue;
        }
        rest.next();
        let mut text = String::new();
        loop {
            match rest.next() {
                Some((_, '"')) => break,
                Some((_, '\\')) => text.extend(rest.next().map(|(_, escaped)| escaped)),
                Some((_, plain)) => text.push(plain),
                None => return Err(line.error_at_end("the quotes do not end", "close them with `\"`")),
            }
        }
        if let Some((next, _)) = rest.peek().filter(|(_, next)| !next.is_ascii_whitespace()) {
            let what = "a word begins right behind the quotes";
            return Err(ImportError::new(line.number, number(*next), what, "put a blank between them"));
        }
        words.push(argument(Cow::Owned(text)));
    }
    Ok(words)
}

/// The words of a rule that are not read yet.
pub(super) struct Arguments<'a> {
    line: Line<'a>,
    words: std::vec::IntoIter<Argument<'a>>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(line: Line<'a>, words: Vec<Argument<'a>>) -> Self {
        Self { line, words: words.into_iter() }
    }

    pub(super) fn next(&mut self) -> Option<Argument<'a>> {
        self.words.next()
    }

    /// The next words, which stay.
    pub(super) fn ahead(&self) -> &[Argument<'a>] {
        self.words.as_slice()
    }

    /// The value of an option.
    pub(super) fn value(&mut self, option: &Argument<'_>) -> Result<Argument<'a>, ImportError> {
        let missing = || {
            let what = format!("`{}` has no value", shown(&option.text));
            self.line.error_at_end(what, "a rule is written `-A CHAIN match… -j TARGET`")
        };
        self.words.next().ok_or_else(missing)
    }

    /// The text from a word to what is not read yet.
    pub(super) fn text_from(&self, first: &Argument<'_>) -> &'a str {
        let end = self.ahead().first().map_or(self.line.text.len(), |next| next.column as usize - 1);
        self.line.text[first.column as usize - 1..end].trim_end()
    }
}
