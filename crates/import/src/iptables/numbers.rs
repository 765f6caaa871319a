//! Numbers of a rule, decimal or `0x…`. To iptables digits behind a leading 0 are octal: such a number is
//! refused.

use crate::ImportError;
use crate::text::{self, Word, shown};

fn is_octal(text: &str) -> bool {
    text.strip_prefix('0').is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_digit()))
}

/// A number, if it is one and not octal.
pub(super) fn parse_number(text: &str) -> Option<u64> {
    if is_octal(text) { None } else { text::parse_number(text) }
}

/// A number up to `most`; `what` names it in errors.
pub(super) fn number(word: Word<'_>, most: u64, what: &str) -> Result<u64, ImportError> {
    if is_octal(word.text) {
        let octal = format!("the {what} `{}` begins with 0, so it is octal to iptables", shown(word.text));
        return Err(word.error(octal, "write it without the 0 in front"));
    }
    word.number(most, what)
}
