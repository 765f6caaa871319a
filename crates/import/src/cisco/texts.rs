//! The lines of a configuration that are commands: texts that stand between delimiters, such as banners, are
//! passed over.
//!
//! ```text
//! banner motd ^C                        the first character behind the kind of the banner ends it, too;
//!  Access for staff only.               `^C` is how a configuration is printed, where it is one character
//! ^C
//! macro name uplink                     a macro ends with a line `@`
//! @
//! certificate ca 01                     a certificate is lines of hexadecimal digits up to `quit`, unless its
//!                                       line names a file
//!   30820241 308201AA A0030201
//!   quit
//! ```

use crate::ImportError;
use crate::text::{Line, Word, lines, shown};

/// Commands behind which a text stands between delimiters; `*` is any word.
const BEFORE_TEXTS: [&str; 13] = [
    "banner exec",
    "banner incoming",
    "banner login",
    "banner motd",
    "banner prompt-timeout",
    "banner slip-ppp",
    "aaa authentication banner",
    "aaa authentication fail-message",
    "busy-message *",
    "menu * prompt",
    "menu * title",
    "refuse-message",
    "vacant-message",
];

/// Commands behind which a text or the name of a file may stand: with more than this they are refused.
const BEFORE_TEXTS_OR_FILES: [&str; 2] =
    ["ip admission auth-proxy-banner *", "ip auth-proxy auth-proxy-banner *"];

/// Commands behind which lines without delimiters follow.
const BEFORE_LINES: [&str; 1] = ["macro name"];

/// ETX (Ctrl-C), as IOS prints it.
const PRINTED_ETX: &str = "^C";
/// The same, as a file may hold it.
const ETX: char = '\u{3}';

/// What ends a text.
enum End<'a> {
    Delimiter(&'a str),
    /// A line `@`.
    Macro,
    /// A line `quit`, behind lines of hexadecimal digits alone.
    Certificate,
}

/// The lines of a configuration without those of texts. The line in which a text begins is kept.
///
/// # Errors
/// A byte that is no text; a text that does not end, or whose end is not certain.
pub(super) fn commands(text: &[u8]) -> Result<Vec<Line<'_>>, ImportError> {
    let mut commands = Vec::new();
    let mut open: Option<(End<'_>, ImportError)> = None;
    for line in lines(text)? {
        if let Some((end, unfinished)) = &open {
            let ends = match (end, line.text.trim()) {
                (End::Delimiter(delimiter), _) => is_end(delimiter, line.text, line)?,
                (End::Macro, text) => text == "@",
                (End::Certificate, "quit") => true,
                (End::Certificate, _) if is_hexadecimal(line) => false,
                // A command, which is not to be passed over.
                (End::Certificate, _) => return Err(unfinished.clone()),
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
    let unfinished = |advice: &str| first.error("the text that begins here does not end", advice);
    let begins = |commands: &[&str]| commands.iter().find_map(|command| begins(&words, command));
    if begins(&BEFORE_LINES) == Some(Begins::Whole(2)) {
        return Ok(Some((End::Macro, unfinished("end it with a line `@`"))));
    }
    if first.text.eq_ignore_ascii_case("certificate") && !line.text.contains(':') {
        let advice = "end it with a line `quit` behind lines of hexadecimal digits, or remove it";
        return Ok(Some((End::Certificate, unfinished(advice))));
    }
    let behind = match begins(&BEFORE_TEXTS) {
        Some(Begins::Whole(length)) => {
            let missing = || line.error_at_end("the delimiter of the text is missing", "remove the line");
            let delimiter = words.get(length).ok_or_else(missing)?;
            &line.text[delimiter.column as usize - 1..]
        }
        begun => {
            let is_banner = "banner".starts_with(&first.text.to_ascii_lowercase());
            let short = [begun, begins(&BEFORE_LINES)].contains(&Some(Begins::Shortened));
            let other = begins(&BEFORE_TEXTS_OR_FILES).is_some() && words.len() > 4;
            let printed = line.text.contains(ETX) || line.text.contains(PRINTED_ETX);
            let printed = printed && !is_free(&words);
            if is_banner || short || other || printed {
                let what = format!("`{}` may begin a text", shown(line.text.trim()));
                return Err(
                    first.error(what, "write all words of the command out, or remove it with its text")
                );
            }
            return Ok(None);
        }
    };
    let first_length = behind.chars().next().map_or(0, char::len_utf8);
    let length = if behind.starts_with(PRINTED_ETX) { PRINTED_ETX.len() } else { first_length };
    let (delimiter, rest) = behind.split_at(length);
    let ends = is_end(delimiter, rest, line)?;
    let advice = "end it with the delimiter that begins it";
    Ok((!ends).then(|| (End::Delimiter(delimiter), unfinished(advice))))
}

/// How a line begins with a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begins {
    /// With so many words, each spelled in full.
    Whole(usize),
    /// With words some of which are only the start of a word of the command.
    Shortened,
}

fn begins(words: &[Word<'_>], command: &str) -> Option<Begins> {
    let (mut length, mut whole) = (0, true);
    for own in command.split(' ') {
        let word = words.get(length)?.text.to_ascii_lowercase();
        if own != "*" && !own.starts_with(&word) {
            return None;
        }
        whole &= own == "*" || own == word;
        length += 1;
    }
    Some(if whole { Begins::Whole(length) } else { Begins::Shortened })
}

/// Whether a line is a remark or a description, of which all is text up to its end.
fn is_free(words: &[Word<'_>]) -> bool {
    let is_number = |word: &Word<'_>| word.text.bytes().all(|byte| byte.is_ascii_digit());
    let words = match words {
        [list, name, rest @ ..] if list.text.eq_ignore_ascii_case("access-list") && is_number(name) => rest,
        [number, rest @ ..] if is_number(number) => rest,
        all => all,
    };
    words
        .first()
        .is_some_and(|word| ["remark", "description"].iter().any(|own| word.text.eq_ignore_ascii_case(own)))
}

/// Whether a line has no word but hexadecimal numbers.
fn is_hexadecimal(line: Line<'_>) -> bool {
    line.words().all(|word| word.text.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether a text ends in a line.
fn is_end(delimiter: &str, text: &str, line: Line<'_>) -> Result<bool, ImportError> {
    let end = text.find(delimiter);
    if delimiter == PRINTED_ETX && text[..end.unwrap_or(text.len())].contains('^') {
        let what = "a `^` stands in a text that begins with `^C`, so that its end is not certain";
        return Err(ImportError::new(line.number, 1, what, "take the `^` out of the text"));
    }
    Ok(end.is_some())
}
