//! Words of a filter: names with their dots, numbers, addresses and operators, each with its place in the
//! text.

use super::error::{FilterError, UNDERSTOOD};
use std::ops::Range;

/// A word and where it stands, in bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word {
    /// As it is written; of a text in quotes, what stands between them.
    pub(super) text: String,
    /// Its place.
    pub(super) span: Range<usize>,
    /// Whether it stood in quotes.
    pub(super) quoted: bool,
}

/// Operators of more than one character, the longest first.
const OPERATORS: [&str; 9] = ["&&", "||", "==", "!=", "<=", ">=", "<<", ">>", ".."];

/// The words of a text.
pub(super) fn words(text: &str) -> Result<Vec<Word>, FilterError> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let start = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(words) };
        let mut add = |length: usize| {
            let span = start..start + length;
            words.push(Word { text: text[span.clone()].to_owned(), span, quoted: false });
            length
        };
        let length = if let Some(operator) = OPERATORS.iter().find(|operator| rest.starts_with(**operator)) {
            add(operator.len())
        } else if in_word(first) {
            add(word(rest))
        } else if first == '"' {
            let Some(end) = rest[1..].find('"') else {
                return Err(FilterError::new(
                    text,
                    start..text.len(),
                    "the text in quotes has no end",
                    "close it by \"",
                ));
            };
            let span = start..start + end + 2;
            words.push(Word { text: rest[1..=end].to_owned(), span, quoted: true });
            end + 2
        } else if first.is_ascii() && !first.is_ascii_control() {
            add(1)
        } else {
            let message = format!("`{}` is not part of any filter", first.escape_debug());
            return Err(FilterError::new(text, start..start + first.len_utf8(), message, UNDERSTOOD));
        };
        rest = &rest[length..];
    }
}

fn in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | ':')
}

/// How long the word at the start is. A dot belongs to it unless it begins a range (`80..90`).
fn word(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut length = 0;
    while let Some(&byte) = bytes.get(length) {
        let dot = byte == b'.' && bytes.get(length + 1).is_some_and(|&next| in_word(next.into()));
        if !dot && !in_word(byte.into()) {
            break;
        }
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        words(text).expect(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn names_addresses_and_ranges_are_words() {
        assert_eq!(
            split("ipv4.src in 10.0.0.0/8 && tcp.dst in 80..90"),
            ["ipv4.src", "in", "10.0.0.0", "/", "8", "&&", "tcp.dst", "in", "80", "..", "90"]
        );
        assert_eq!(split("!(host fe80::1)"), ["!", "(", "host", "fe80::1", ")"]);
        assert_eq!(split("reason==\"short(ipv4)\""), ["reason", "==", "short(ipv4)"]);
        assert_eq!(split("portrange 80-90"), ["portrange", "80", "-", "90"]);
    }

    #[test]
    fn what_is_no_word_is_shown() {
        assert!(words("host ä").expect_err("no").to_string().contains("`ä`"));
        assert!(words("reason == \"x").expect_err("no").to_string().contains("no end"));
    }
}
