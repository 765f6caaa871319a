//! Parses the header of a rule: action, protocol, addresses, ports and direction.

use super::cursor::Cursor;
use crate::ImportError;
use crate::text::shown;

/// Reads all before the options, and the `(` that they begin with. What stands there must be a header, and
/// says nothing about strings.
pub(super) fn header(cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
    word(cursor, "an action such as `alert`")?;
    word(cursor, "a protocol such as `tcp`")?;
    // A rule for a service or a file names no addresses (Snort 3).
    cursor.skip_blanks();
    if cursor.take('(') {
        return Ok(());
    }
    word(cursor, "an address")?;
    ports(cursor)?;
    cursor.skip_blanks();
    let at = cursor.at();
    let direction = word(cursor, "`->` or `<>`")?;
    if !matches!(direction, "->" | "<>") {
        let what = format!("`{}` is no direction", shown(direction));
        return Err(cursor.error(at, what, "write `->` or `<>`"));
    }
    word(cursor, "an address")?;
    ports(cursor)?;
    cursor.skip_blanks();
    if !cursor.take('(') {
        let what = format!("`{}` stands where the options begin", shown(cursor.rest()));
        return Err(cursor.error(cursor.at(), what, "write `(` behind the ports"));
    }
    Ok(())
}

/// A word of the header; within brackets it may hold blanks.
fn word<'a>(cursor: &mut Cursor<'a>, expected: &str) -> Result<&'a str, ImportError> {
    cursor.skip_blanks();
    let at = cursor.at();
    let rest = cursor.rest();
    let mut depth = 0usize;
    let end = rest.find(|character: char| {
        match character {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            '(' => return true,
            _ => {}
        }
        depth == 0 && (character.is_whitespace() || character == '\\')
    });
    let taken = &rest[..end.unwrap_or(rest.len())];
    if taken.is_empty() {
        return Err(cursor.error(
            at,
            format!("the rule lacks {expected}"),
            "write action, protocol, addresses, ports and options",
        ));
    }
    if depth > 0 {
        return Err(cursor.error(at, format!("`{}` is not closed", shown(taken)), "end the list with `]`"));
    }
    cursor.skip(taken.len());
    Ok(taken)
}

fn ports(cursor: &mut Cursor<'_>) -> Result<(), ImportError> {
    cursor.skip_blanks();
    let at = cursor.at();
    let text = word(cursor, "ports")?;
    terms(text, false).map_err(|part| {
        let what = format!("`{}` are no ports", shown(part));
        let place = at + (part.as_ptr() as usize - text.as_ptr() as usize);
        cursor.error(
            place,
            what,
            "write `any`, a number up to 65535, `from:to`, a `$VARIABLE`, or a list of them in `[` `]`",
        )
    })
}

/// Checks the terms of a list; the part that is none is the error.
fn terms(text: &str, negated: bool) -> Result<(), &str> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('!') {
        return if negated { Err(text) } else { terms(rest, true) };
    }
    if let Some(list) = text.strip_prefix('[') {
        let list = list.strip_suffix(']').ok_or(text)?;
        let mut depth = 0i32;
        let mut parts = list.split(|character: char| {
            depth += i32::from(character == '[') - i32::from(character == ']');
            character == ',' && depth == 0
        });
        return parts.try_for_each(|part| terms(part, negated));
    }
    let number = |digits: &str, empty: u16| match digits.trim() {
        "" => Some(empty),
        digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse::<u16>().ok(),
        _ => None,
    };
    let is_term = match text.split_once(':') {
        _ if text == "any" => !negated,
        _ if text.len() > 1 && text.starts_with('$') => true,
        Some((low, high)) => {
            let (low, high) = (number(low, 0), number(high, u16::MAX));
            text != ":" && low.is_some() && high.is_some() && low <= high
        }
        None => !text.is_empty() && number(text, 0).is_some(),
    };
    if is_term { Ok(()) } else { Err(text) }
}
