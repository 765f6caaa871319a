//! Parses the header of a rule: action, protocol, addresses, ports and direction.

use super::cursor::Cursor;
use super::{PortTerm, Ports, SnortRule};
use crate::ImportError;
use crate::text::shown;

/// Reads all before the options, and the `(` that they begin with; the number and the message are not known
/// yet.
pub(super) fn header(cursor: &mut Cursor<'_>) -> Result<SnortRule, ImportError> {
    let (line, _) = cursor.place(cursor.at());
    let action = word(cursor, "an action such as `alert`")?;
    let protocol = word(cursor, "a protocol such as `tcp`")?;
    let mut rule = SnortRule {
        line,
        sid: 0,
        message: String::new(),
        action: action.into(),
        protocol: protocol.into(),
        source: "any".into(),
        source_ports: Ports::default(),
        both_directions: false,
        destination: "any".into(),
        destination_ports: Ports::default(),
    };
    // A rule for a service or a file names no addresses (Snort 3).
    cursor.skip_blanks();
    if cursor.take('(') {
        return Ok(rule);
    }
    rule.source = word(cursor, "an address")?.into();
    rule.source_ports = ports(cursor)?;
    cursor.skip_blanks();
    let at = cursor.at();
    rule.both_directions = match word(cursor, "`->` or `<>`")? {
        "->" => false,
        "<>" => true,
        other => {
            let what = format!("`{}` is no direction", shown(other));
            return Err(cursor.error(at, what, "write `->` or `<>`"));
        }
    };
    rule.destination = word(cursor, "an address")?.into();
    rule.destination_ports = ports(cursor)?;
    cursor.skip_blanks();
    if !cursor.take('(') {
        let what = format!("`{}` stands where the options begin", shown(cursor.rest()));
        return Err(cursor.error(cursor.at(), what, "write `(` behind the ports"));
    }
    Ok(rule)
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

fn ports(cursor: &mut Cursor<'_>) -> Result<Ports, ImportError> {
    cursor.skip_blanks();
    let at = cursor.at();
    let text = word(cursor, "ports")?;
    let mut ports = Ports::default();
    terms(text, false, &mut ports).map_err(|part| {
        let what = format!("`{}` are no ports", shown(part));
        let place = at + (part.as_ptr() as usize - text.as_ptr() as usize);
        cursor.error(
            place,
            what,
            "write `any`, a number up to 65535, `from:to`, a `$VARIABLE`, or a list of them in `[` `]`",
        )
    })?;
    if ports.included.contains(&PortTerm::Range(0, u16::MAX)) {
        // All ports need no list; only what is taken out still counts.
        ports.included.clear();
    }
    Ok(ports)
}

/// Adds the terms of a list; the part that is none is the error.
fn terms<'a>(text: &'a str, negated: bool, ports: &mut Ports) -> Result<(), &'a str> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix('!') {
        return if negated { Err(text) } else { terms(rest, true, ports) };
    }
    if let Some(list) = text.strip_prefix('[') {
        let list = list.strip_suffix(']').ok_or(text)?;
        let mut depth = 0i32;
        let parts = list.split(|character: char| {
            depth += i32::from(character == '[') - i32::from(character == ']');
            character == ',' && depth == 0
        });
        return parts.into_iter().try_for_each(|part| terms(part, negated, ports));
    }
    let number = |digits: &str| {
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u16>().ok()).flatten()
    };
    let term = if text == "any" {
        if negated {
            return Err(text);
        }
        PortTerm::Range(0, u16::MAX)
    } else if text.len() > 1 && text.starts_with('$') {
        PortTerm::Variable(text.into())
    } else if let Some((low, high)) = text.split_once(':') {
        let low = if low.trim().is_empty() { Some(0) } else { number(low.trim()) };
        let high_text = high.trim();
        let high = if high_text.is_empty() { Some(u16::MAX) } else { number(high_text) };
        let (Some(low), Some(high)) = (low, high) else { return Err(text) };
        if low > high || text == ":" {
            return Err(text);
        }
        PortTerm::Range(low, high)
    } else {
        let port = number(text).ok_or(text)?;
        PortTerm::Range(port, port)
    };
    if negated { &mut ports.excluded } else { &mut ports.included }.push(term);
    Ok(())
}
