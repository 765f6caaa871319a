//! What `launch` says on its error output: what others told it cannot look like its own lines, and an output
//! that is full or closed ends nothing.

use messages::limits::LONGEST_TEXT;
use std::io::{self, Write};

/// Says a line. Where nobody can read it, packets matter more.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// What another process told, as it may be said: no more than so much, without control characters, and with
/// further lines indented.
pub(crate) fn told(text: &str) -> String {
    let mut said = String::new();
    for character in text[..text.floor_char_boundary(LONGEST_TEXT)].trim_end().chars() {
        match character {
            '\n' => said.push_str("\n  "),
            control if control.is_control() => said.extend(control.escape_default()),
            other => said.push(other),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_tell_begins_no_line_and_moves_no_cursor() {
        assert_eq!(told("a\ncore: b\x1b[2J\r\n"), "a\n  core: b\\u{1b}[2J");
        assert_eq!(told(&"ä".repeat(LONGEST_TEXT)).len(), LONGEST_TEXT);
    }
}
