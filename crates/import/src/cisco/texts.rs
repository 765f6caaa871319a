//! The lines of a configuration that are commands: texts that stand between delimiters, such as banners, are
//! passed over.
//!
//! ```text
//! banner motd ^C                        the first character behind the kind of the banner ends it, too;
//!  Access for staff only.               `^C` is how a configuration is printed, where it is one character
//! ^C
//! macro name uplink                     a macro ends with a line `@`
//! @
//! certificate ca 01                     a certificate ends with `quit`, unless its line names a file
//!   30820241 308201AA A0030201
//!   quit
//! ```

use crate::ImportError;
use crate::text::{Line, Word, lines};

/// Commands behind which a text stands between delimiters.
const BEFORE_TEXTS: [&str; 10] = [
    "banner exec",
    "banner incoming",
    "banner login",
    "banner motd",
    "banner prompt-timeout",
    "banner slip-ppp",
    "aaa authentication banner",
    "aaa authentication fail-message",
    "refuse-message",
    "vacant-message",
];

/// A character that is printed as two.
const PRINTED: &str = "^C";

/// What ends a text.
enum End<'a> {
    Delimiter(&'a str),
    /// A line that holds nothing else.
    Line(&'a str),
}

/// The lines of a configuration without those of texts. The line in which a text begins is kept.
///
/// # Errors
/// A byte that is no text; a text that does not end, or whose end is not certain.
pub(super) fn commands(text: &[u8]) -> Result<Vec<Line<'_>>, ImportError> {
    let mut commands = Vec::new();
    let mut open: Option<(End<'_>, ImportError)> = None;
    for line in lines(text)? {
        if let Some((end, _)) = &open {
            let ends = match end {
                End::Delimiter(delimiter) => is_end(delimiter, line.text, line)?,
                End::Line(whole) => line.text.trim() == *whole,
            };
            if ends {
                open = None;
            }
            continue;
        }
        commands.push(line);
        open = begun(line)?;
    }
    match open {
        Some((_, unfinished)) => Err(unfinished),
        None => Ok(commands),
    }
}

/// What ends the text that begins in a line and does not end there, and the error if nothing does.
fn begun(line: Line<'_>) -> Result<Option<(End<'_>, ImportError)>, ImportError> {
    let words: Vec<Word<'_>> = line.words().collect();
    let Some(first) = words.first().filter(|first| !first.text.starts_with('!')) else { return Ok(None) };
    let unfinished =
        || first.error("the text that begins here does not end", "end it with the delimiter that begins it");
    let is = |at: usize, own: &str| words.get(at).is_some_and(|word| word.text.eq_ignore_ascii_case(own));
    if is(0, "macro") && is(1, "name") {
        return Ok(Some((End::Line("@"), unfinished())));
    }
    if is(0, "certificate") && !line.text.contains(':') {
        return Ok(Some((End::Line("quit"), unfinished())));
    }
    let length = |command: &&str| {
        let own: Vec<&str> = command.split(' ').collect();
        own.iter().enumerate().all(|(at, own)| is(at, own)).then_some(own.len())
    };
    let behind = match BEFORE_TEXTS.iter().find_map(length) {
        Some(length) => words.get(length).map(|word| &line.text[word.column as usize - 1..]),
        // Other commands have a text where its delimiter is printed.
        None => line
            .text
            .find([PRINTED_ALONE, '^'])
            .map(|at| &line.text[at..])
            .filter(|text| text.starts_with(PRINTED_ALONE) || text.starts_with(PRINTED)),
    };
    let Some(behind) = behind else { return Ok(None) };
    let first_length = behind.chars().next().map_or(0, char::len_utf8);
    let length = if behind.starts_with(PRINTED) { PRINTED.len() } else { first_length };
    let (delimiter, rest) = behind.split_at(length);
    let ends = is_end(delimiter, rest, line)?;
    Ok((!ends).then(|| (End::Delimiter(delimiter), unfinished())))
}

/// The character that is printed as two, as a file may hold it.
const PRINTED_ALONE: char = '\u{3}';

/// Whether a text ends in a line.
fn is_end(delimiter: &str, text: &str, line: Line<'_>) -> Result<bool, ImportError> {
    let end = text.find(delimiter);
    if delimiter == PRINTED && text[..end.unwrap_or(text.len())].contains('^') {
        let what = "a `^` stands in a text that begins with `^C`, so that its end is not certain";
        return Err(ImportError::new(line.number, 1, what, "take the `^` out of the text"));
    }
    Ok(end.is_some())
}
