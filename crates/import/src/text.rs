//! Lines and words of a text, each with the place that an error names.

use crate::ImportError;

/// A line without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line<'a> {
    /// From 1.
    pub(crate) number: u32,
    /// Its text, without what ends it.
    pub(crate) text: &'a str,
}

/// A word of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    /// The line, from 1.
    pub(crate) line: u32,
    /// The column in bytes, from 1.
    pub(crate) column: u32,
    /// Its text.
    pub(crate) text: &'a str,
}

/// The lines of a text, with `\n` or `\r\n` at their ends. A text is UTF-8; the first byte that is not ends
/// in an error that names its place.
pub(crate) fn lines(bytes: &[u8]) -> Result<impl Iterator<Item = Line<'_>>, ImportError> {
    let text = utf8(bytes)?;
    Ok((1..).zip(text.lines()).map(|(number, text)| Line { number, text }))
}

/// The bytes as text.
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, ImportError> {
    std::str::from_utf8(bytes).map_err(|error| {
        let (line, column) = place(bytes, error.valid_up_to());
        ImportError::new(
            line,
            column,
            format!("the byte {:#04x} is not text in UTF-8", bytes[error.valid_up_to()]),
            "check that the file is of the format that was meant, and whole",
        )
    })
}

/// The line and the column of a byte of a text, both from 1.
pub(crate) fn place(bytes: &[u8], offset: usize) -> (u32, u32) {
    let before = &bytes[..offset.min(bytes.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    (number(line), number(before.len() - start))
}

/// Where the lines of a text begin, so that a place is found without reading what is before it.
#[derive(Debug)]
pub(crate) struct Lines(Vec<usize>);

impl Lines {
    pub(crate) fn of(bytes: &[u8]) -> Lines {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        Lines(std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
    }

    /// As [`place`], of a byte of the text.
    pub(crate) fn place(&self, offset: usize) -> (u32, u32) {
        let line = self.0.partition_point(|begin| *begin <= offset) - 1;
        (number(line), number(offset - self.0[line]))
    }
}

/// A place counted from 0 as one counted from 1.
pub(crate) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX).saturating_add(1)
}

/// Refuses a text whose last line has no end, as it may be cut there.
pub(crate) fn refuse_cut(bytes: &[u8]) -> Result<(), ImportError> {
    if bytes.last().is_none_or(|last| *last == b'\n') {
        return Ok(());
    }
    let (line, column) = place(bytes, bytes.len());
    Err(ImportError::new(
        line,
        column,
        "the last line has no end: the file may be cut off here",
        "end the line if it is whole",
    ))
}

/// What `read` makes of each line that is not blank.
///
/// # Errors
/// Those of `read`, and a last line without an end, as the file may be cut there.
pub(crate) fn each_line<'a, T>(
    bytes: &'a [u8],
    read: impl FnMut(Line<'a>) -> Result<T, ImportError>,
) -> Result<Vec<T>, ImportError> {
    refuse_cut(bytes)?;
    lines(bytes)?.filter(|line| !line.is_blank()).map(read).collect()
}

impl<'a> Line<'a> {
    /// Whether it has no words, or only a comment that starts with `#`.
    pub(crate) fn is_blank(self) -> bool {
        let start = self.text.trim_ascii_start();
        start.is_empty() || start.starts_with('#')
    }

    /// The words between blanks.
    pub(crate) fn words(self) -> impl Iterator<Item = Word<'a>> {
        let start = self.text.as_ptr() as usize;
        self.text.split_ascii_whitespace().map(move |text| Word {
            line: self.number,
            column: number(text.as_ptr() as usize - start),
            text,
        })
    }

    /// An error behind the line's last character.
    pub(crate) fn error_at_end(self, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.number, number(self.text.trim_end().len()), what, advice)
    }
}

impl<'a> Word<'a> {
    /// An error at the word.
    pub(crate) fn error(self, what: impl Into<String>, advice: impl Into<String>) -> ImportError {
        ImportError::new(self.line, self.column, what, advice)
    }

    /// The error that the line was to end before this word.
    pub(crate) fn too_many(self, advice: &str) -> ImportError {
        self.error(format!("`{}` is one word too many", shown(self.text)), advice)
    }

    /// The part of the word that starts at a byte.
    pub(crate) fn from(self, start: usize) -> Word<'a> {
        Word { column: self.column + number(start) - 1, text: &self.text[start..], ..self }
    }

    /// The two parts beside the first `mark`.
    pub(crate) fn split(self, mark: char) -> Option<(Word<'a>, Word<'a>)> {
        let at = self.text.find(mark)?;
        Some((Word { text: &self.text[..at], ..self }, self.from(at + mark.len_utf8())))
    }

    /// The parts between the marks.
    pub(crate) fn parts(self, mark: char) -> impl Iterator<Item = Word<'a>> {
        let start = self.text.as_ptr() as usize;
        self.text.split(mark).map(move |text| Word {
            column: self.column + number(text.as_ptr() as usize - start) - 1,
            text,
            ..self
        })
    }

    /// A number up to `most`, decimal or `0x…`; `what` names it in errors.
    pub(crate) fn number(self, most: u64, what: &str) -> Result<u64, ImportError> {
        parse_number(self.text).filter(|value| *value <= most).ok_or_else(|| {
            self.error(
                format!("`{}` is no {what}", shown(self.text)),
                format!("write a number from 0 to {most}"),
            )
        })
    }
}

/// A number, decimal or `0x…`.
pub(crate) fn parse_number(text: &str) -> Option<u64> {
    let digits = |text: &str, radix| {
        // `from_str_radix` would take a sign.
        let plain = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if plain { u64::from_str_radix(text, radix).ok() } else { None }
    };
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => digits(hexadecimal, 16),
        None => digits(text, 10),
    }
}

/// A piece of input as an error shows it: short, and without characters that move the cursor.
pub(crate) fn shown(text: &str) -> String {
    const MOST: usize = 40;
    let mut shown: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}

/// The advice to name one of the first few of these.
pub(crate) fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> String {
    const MOST: usize = 20;
    let mut names: Vec<String> = names.take(MOST + 1).map(shown).collect();
    if names.is_empty() {
        return "the file holds none".to_owned();
    }
    if names.len() > MOST {
        names[MOST] = "…".to_owned();
    }
    format!("name one that the file holds: {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_know_their_columns() {
        let line = Line { number: 7, text: "  ab\tcd:ef:g " };
        let words: Vec<(u32, u32, &str)> =
            line.words().map(|word| (word.line, word.column, word.text)).collect();
        assert_eq!(words, [(7, 3, "ab"), (7, 6, "cd:ef:g")]);
        let last = line.words().nth(1).unwrap();
        let parts: Vec<(u32, &str)> = last.parts(':').map(|part| (part.column, part.text)).collect();
        assert_eq!(parts, [(6, "cd"), (9, "ef"), (12, "g")]);
        let (left, right) = last.split(':').unwrap();
        assert_eq!((left.text, right.text, right.column), ("cd", "ef:g", 9));
    }

    #[test]
    fn a_byte_that_is_no_text_is_named() {
        let error = lines(b"one\ntwo \xff").map(|_| ()).unwrap_err();
        assert_eq!((error.line, error.column), (2, 5));
        assert!(error.what.contains("0xff"), "{error}");
    }

    #[test]
    fn numbers_have_no_sign_and_no_letters() {
        assert_eq!(parse_number("0x1F"), Some(31));
        assert_eq!(parse_number("31"), Some(31));
        for wrong in ["", "+1", "-1", "0x", "1f", "18446744073709551616", "1_0"] {
            assert_eq!(parse_number(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn lines_give_the_places_that_reading_does() {
        for text in ["", "\n", "ab\n\ncd\ne", "no end"] {
            let lines = super::Lines::of(text.as_bytes());
            for at in 0..=text.len() {
                assert_eq!(lines.place(at), super::place(text.as_bytes(), at), "{at} of {text:?}");
            }
        }
    }
}
