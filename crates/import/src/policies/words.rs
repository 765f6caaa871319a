//! The words of files of NPF and pf, each with its place, and one statement read word by word.

use crate::ImportError;
use crate::text::{number, place, shown};

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name, a number, an address, a keyword.
    Plain,
    /// A text between quotation marks, without them.
    Quoted,
    /// The name of a table, without `<` and `>`.
    Table,
    /// Something else: `{`, `}`, `(`, `)`, `,`, `=`, `!`, `;` and operators.
    Mark,
    /// The end of a line.
    End,
}

/// A word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FilterWord<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// The line, from 1.
    pub(super) line: u32,
    /// The column in bytes, from 1.
    pub(super) column: u32,
    /// Where it begins and ends in the file.
    pub(super) span: (usize, usize),
}

/// Operators of two characters, before those of one.
const OPERATORS: [&str; 5] = ["!=", "<=", ">=", "<>", "><"];

impl<'a> FilterWord<'a> {
    pub(super) fn error(&self, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.line, self.column, what, advice)
    }

    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.kind == Kind::Plain && self.text == keyword
    }

    /// Whether it is this mark.
    pub(super) fn is_mark(&self, mark: &str) -> bool {
        self.kind == Kind::Mark && self.text == mark
    }

    /// The name behind `$`.
    pub(super) fn variable(&self) -> Option<&'a str> {
        (self.kind == Kind::Plain).then(|| self.text.strip_prefix('$')).flatten()
    }

    /// The word as errors show it.
    pub(super) fn shown(&self) -> String {
        if self.kind == Kind::End {
            "the end of the line".to_owned()
        } else {
            format!("`{}`", shown(self.text))
        }
    }

    /// The same word at the place of another one, which stands for it.
    pub(super) fn at(self, place: &FilterWord<'_>) -> Self {
        Self { line: place.line, column: place.column, ..self }
    }
}

/// The words of a text from a byte on that begins a line, the last one an end of a line. `\` at the end of a
/// line joins it with the next one.
///
/// # Errors
/// A text in quotation marks that does not end in its line, a comment that ends with `\`.
pub(super) fn words(text: &str, from: usize) -> Result<Vec<FilterWord<'_>>, ImportError> {
    let bytes = text.as_bytes();
    let (mut words, mut at, mut begin) = (Vec::new(), from, from);
    let mut line = place(bytes, from).0;
    while at < bytes.len() {
        let column = number(at - begin);
        let rest = &text[at..];
        let (kind, length, inner) = match bytes[at] {
            b'\n' => (Kind::End, 1, 0..1),
            b'\\' if rest[1..].starts_with('\n') || rest[1..].starts_with("\r\n") => {
                at += rest.find('\n').unwrap_or(0) + 1;
                (line, begin) = (line + 1, at);
                continue;
            }
            blank if blank.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            b'#' => {
                let end = rest.find('\n').unwrap_or(rest.len());
                if rest[..end].trim_end_matches('\r').ends_with('\\') {
                    let what = "the comment ends with `\\`: some read the next line as a part of it";
                    return Err(ImportError::new(line, column, what, "remove the `\\`"));
                }
                at += end;
                continue;
            }
            b'"' => {
                let end = rest[1..].find(['"', '\n']).filter(|end| rest.as_bytes()[end + 1] == b'"');
                let end = end.ok_or_else(|| {
                    ImportError::new(line, column, "the text does not end in its line", "close it with `\"`")
                })?;
                (Kind::Quoted, end + 2, 1..end + 1)
            }
            b'<' if let Some(length) = table(rest.bytes().skip(1)) => {
                (Kind::Table, length + 2, 1..length + 1)
            }
            b'{' | b'}' | b'(' | b')' | b',' | b'=' | b'!' | b'<' | b'>' | b';' | b'\\' => {
                let length = if OPERATORS.iter().any(|operator| rest.starts_with(operator)) { 2 } else { 1 };
                (Kind::Mark, length, 0..length)
            }
            _ => {
                let ends = |mark: char| mark.is_ascii_whitespace() || "{}(),=!<>;\"#\\".contains(mark);
                let length = rest.find(ends).unwrap_or(rest.len());
                (Kind::Plain, length, 0..length)
            }
        };
        let span = (at, at + length);
        words.push(FilterWord { kind, text: &rest[inner], line, column, span });
        at += length;
        if kind == Kind::End {
            (line, begin) = (line + 1, at);
        }
    }
    let span = (at, at);
    words.push(FilterWord { kind: Kind::End, text: "", line, column: number(at - begin), span });
    Ok(words)
}

/// How long the name of a table is that begins behind a `<`, if a `>` ends it. No byte behind the name is
/// taken.
fn table(mut bytes: impl Iterator<Item = u8>) -> Option<usize> {
    let mut length = 0;
    loop {
        match bytes.next()? {
            b'>' => return (length > 0).then_some(length),
            byte if byte.is_ascii_alphabetic() || byte == b'_' => length += 1,
            byte if length > 0 && (byte.is_ascii_digit() || b"-.".contains(&byte)) => length += 1,
            _ => return None,
        }
    }
}

/// The words of one statement, read from left to right.
#[derive(Debug)]
pub(super) struct Statement<'t, 'a> {
    words: &'t [FilterWord<'a>],
    /// What stands behind the last word.
    end: FilterWord<'a>,
}

impl<'t, 'a> Statement<'t, 'a> {
    /// The words before `end`.
    pub(super) fn new(words: &'t [FilterWord<'a>], end: FilterWord<'a>) -> Self {
        Self { words, end: FilterWord { kind: Kind::End, ..end } }
    }

    /// The next word, which stays there.
    pub(super) fn peek(&self) -> FilterWord<'a> {
        *self.words.first().unwrap_or(&self.end)
    }

    /// The word behind the next one.
    pub(super) fn second(&self) -> FilterWord<'a> {
        *self.words.get(1).unwrap_or(&self.end)
    }

    /// The next word.
    pub(super) fn next(&mut self) -> FilterWord<'a> {
        let word = self.peek();
        self.words = self.words.get(1..).unwrap_or_default();
        word
    }

    pub(super) fn is_done(&self) -> bool {
        self.words.is_empty()
    }

    /// Takes the next word if it is this keyword.
    pub(super) fn takes(&mut self, keyword: &str) -> bool {
        let is = self.peek().is(keyword);
        if is {
            self.next();
        }
        is
    }

    /// Takes the next word if it is this mark.
    pub(super) fn takes_mark(&mut self, mark: &str) -> bool {
        let is = self.peek().is_mark(mark);
        if is {
            self.next();
        }
        is
    }

    /// The next word, which must be this mark.
    pub(super) fn mark(&mut self, mark: &str) -> Result<(), ImportError> {
        if self.takes_mark(mark) {
            return Ok(());
        }
        let next = self.peek();
        Err(next.error(format!("{} stands where `{mark}` is due", next.shown()), format!("write `{mark}`")))
    }

    /// The next word, which must be a name or a text.
    pub(super) fn name(&mut self, what: &str) -> Result<FilterWord<'a>, ImportError> {
        let next = self.next();
        if matches!(next.kind, Kind::Plain | Kind::Quoted) {
            return Ok(next);
        }
        Err(next.error(format!("{} is no {what}", next.shown()), format!("write the {what} there")))
    }

    /// An error if there are words left.
    pub(super) fn finish(&self, advice: &str) -> Result<(), ImportError> {
        if self.is_done() {
            return Ok(());
        }
        let next = self.peek();
        Err(next.error(format!("{} is not understood here", next.shown()), advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str) -> Vec<(Kind, &str, u32, u32)> {
        let words = words(text, 0).expect("words");
        words.iter().map(|word| (word.kind, word.text, word.line, word.column)).collect()
    }

    #[test]
    fn words_have_their_kinds_and_places() {
        let expected = [
            (Kind::Plain, "port", 1, 1),
            (Kind::Mark, ">=", 1, 6),
            (Kind::Plain, "1:3", 1, 8),
            (Kind::Mark, "!", 1, 12),
            (Kind::Table, "a-b", 1, 14),
            (Kind::End, "\n", 1, 26),
            (Kind::Quoted, "x y", 2, 2),
            (Kind::Plain, "z", 3, 2),
            (Kind::End, "", 3, 3),
        ];
        assert_eq!(seen("port >=1:3 ! <a-b> # none\n \"x y\"\\\n z"), expected);
        assert_eq!(
            seen("< 5 >a"),
            [
                (Kind::Mark, "<", 1, 1),
                (Kind::Plain, "5", 1, 3),
                (Kind::Mark, ">", 1, 5),
                (Kind::Plain, "a", 1, 6),
                (Kind::End, "", 1, 7)
            ]
        );
    }

    #[test]
    fn names_of_tables_are_looked_for_along_their_characters_alone() {
        for (text, length, looked_at) in [
            ("a-b.1>c>", Some(3 + 2), 6),
            ("_>", Some(1), 2),
            ("5 and far behind it >", None, 1),
            ("<<<<>", None, 1),
            ("ab cd>", None, 3),
            (">", None, 1),
            ("ab", None, 2),
        ] {
            let mut taken = 0;
            assert_eq!(table(text.bytes().inspect(|_| taken += 1)), length, "{text}");
            assert_eq!(taken, looked_at, "{text}");
        }
    }

    #[test]
    fn texts_and_comments_end_where_everybody_sees_it() {
        for (text, column) in [("a \"b\nc\"", 3), ("a # b \\\nc", 3), ("\"", 1)] {
            assert_eq!(
                words(text, 0).map_err(|error| (error.line, error.column)),
                Err((1, column)),
                "{text}"
            );
        }
    }
}
