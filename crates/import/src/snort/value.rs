//! Parses the values of options: texts and contents in quotes.

use super::cursor::Cursor;
use crate::ImportError;
use crate::text::shown;

/// Skips the value of an option: up to a `;` that is neither quoted nor escaped.
pub(super) fn skip_value(cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
    let at = cursor.at();
    let (mut quoted, mut escaped) = (false, false);
    let end = cursor.rest().find(|character: char| {
        let plain = !escaped;
        escaped = plain && character == '\\';
        quoted ^= plain && character == '"';
        plain && !quoted && character == ';'
    });
    match end {
        Some(end) => {
            cursor.skip(end);
            Ok(())
        }
        None if quoted => Err(cursor.error(
            at,
            "the option's value has a quote that is not closed",
            "close it with `\"`, and end the option with `;`",
        )),
        None => Err(cursor.error(at, "the option does not end", "end each option with `;`")),
    }
}

/// Skips a text in quotes.
pub(super) fn skip_quoted(cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
    let at = cursor.at();
    if !cursor.take('"') {
        return Err(cursor.error(
            at,
            format!("`{}` is no text in quotes", shown(cursor.rest())),
            "write `\"…\"`",
        ));
    }
    let mut escaped = false;
    let end = cursor.rest().find(|character: char| {
        let ends = character == '"' && !escaped;
        escaped = character == '\\' && !escaped;
        ends
    });
    let Some(end) = end else {
        return Err(cursor.error(at, "the text's quote is not closed", "close it with `\"`"));
    };
    cursor.skip(end + 1);
    Ok(())
}

/// The bytes of a content in quotes: text, escapes, and `|` around bytes in hexadecimal.
pub(super) fn bytes(cursor: &mut Cursor<'_>) -> Result<Vec<u8>, ImportError> {
    let begin = cursor.at();
    if !cursor.take('"') {
        return Err(cursor.error(begin, "the content is not in quotes", "write `content:\"…\"`"));
    }
    let mut bytes = Vec::new();
    // Where bytes in hexadecimal began, and a digit that waits for its second.
    let (mut bar, mut digit) = (None::<usize>, None::<u8>);
    while let Some(character) = cursor.rest().chars().next() {
        let at = cursor.at();
        cursor.skip(character.len_utf8());
        match (bar, character) {
            (None, '"') => return Ok(bytes),
            (Some(bar), '"') => {
                return Err(cursor.error(bar, "the bytes in hexadecimal do not end", "close them with `|`"));
            }
            (None, '|') => bar = Some(at),
            (Some(_), '|' | ' ' | '\t') if digit.is_some() => {
                return Err(cursor.error(
                    at,
                    "a byte in hexadecimal has one digit",
                    "write two digits a byte",
                ));
            }
            (Some(_), '|') => bar = None,
            (Some(_), ' ' | '\t') => {}
            (Some(_), _) => {
                let Some(value) = character.to_digit(16).map(|value| value as u8) else {
                    return Err(cursor.error(
                        at,
                        format!("`{}` is no digit in hexadecimal", character.escape_debug()),
                        "write 0 to 9 or a to f, two a byte, between `|`",
                    ));
                };
                digit = match digit.take() {
                    None => Some(value),
                    Some(high) => {
                        bytes.push(high << 4 | value);
                        None
                    }
                };
            }
            (None, '\\') => {
                match cursor.rest().chars().next().filter(|escaped| r#"\";:|,'()"#.contains(*escaped)) {
                    Some(escaped) => {
                        bytes.push(escaped as u8);
                        cursor.skip(1);
                    }
                    None => {
                        return Err(cursor.error(
                            at,
                            "`\\` stands before what needs no escape",
                            "write `\\\\` for the byte itself",
                        ));
                    }
                }
            }
            (None, '\n') => {
                return Err(cursor.error(at, "the content goes on behind its line", "close it with `\"`"));
            }
            (None, _) => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Err(cursor.error(begin, "the content's quote is not closed", "close it with `\"`"))
}
