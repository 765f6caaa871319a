//! Pattern sets from rules of Snort 2, Snort 3 and Suricata: the byte strings that the rules look for.
//!
//! ```text
//!  alert tcp $HOME_NET any -> $EXTERNAL_NET 25 ( msg:"…"; content:"|0d 0a|RCPT",nocase,depth 9; sid:7; )
//!  action protocol address ports direction address ports ( name:value; name; … )
//! ```
//!
//! A rule is one line, or several where each but the last ends in `\`. Every `content` that is not negated
//! becomes one pattern. What else a rule asks of a packet — a stream's state, a decoded buffer, a distance
//! from another content — a search for strings cannot mean: [`read`] keeps the string and lists the condition
//! in [`SnortPatterns::unmeant`], and [`read_strictly`] refuses it. Neither lets pass what is not a rule.

mod cursor;
mod header;
mod rule;
mod value;

use crate::ImportError;
use crate::text::{number, refuse_cut, utf8};
use cursor::Cursor;
use std::collections::HashMap;
use tables::patterns::SearchPattern;

/// The patterns of a file of rules, and what of the rules they do not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SnortPatterns {
    /// The rules, in the file's order.
    pub rules: Vec<SnortRule>,
    /// The contents, in the file's order; the value of each is its rule's place in [`SnortPatterns::rules`].
    pub patterns: Vec<SearchPattern>,
    /// The conditions that were left out, in the file's order: without them a pattern matches more than its
    /// rule.
    pub unmeant: Vec<Unmeant>,
}

/// A rule, as far as its patterns need it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnortRule {
    /// The line it begins on, from 1.
    pub line: u32,
    /// Its number (`sid`), unique in the file.
    pub sid: u32,
}

/// A condition of a rule that its patterns do not mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmeant {
    /// The line, from 1.
    pub line: u32,
    /// The column in bytes, from 1.
    pub column: u32,
    /// The condition and why it is left out.
    pub what: String,
}

/// Reads rules and keeps all strings that they look for.
///
/// # Errors
/// The first line that is no rule, with the place and the cause; nothing is kept then.
pub fn read(text: &[u8]) -> Result<SnortPatterns, ImportError> {
    let bytes = text;
    let text = utf8(bytes)?;
    let mut set = SnortPatterns::default();
    let mut sids = HashMap::new();
    let mut at = 0;
    let mut line = 1;
    while at < text.len() {
        let end = end_of_rule(text, at);
        let whole = &text[at..end];
        let start = whole.trim_start();
        if !start.is_empty() && !start.starts_with('#') {
            let mut cursor = Cursor::new(whole.trim_end(), line);
            rule::parse(&mut cursor, &mut set)?;
            if let Some(rule) = set.rules.last()
                && let Some(before) = sids.insert(rule.sid, rule.line)
            {
                return Err(ImportError::new(
                    rule.line,
                    number(whole.len() - start.len()),
                    format!("the rule has the sid {} of the rule on line {before}", rule.sid),
                    "give each rule of a file a sid of its own, or leave one of the two out",
                ));
            }
        }
        line += whole.bytes().filter(|byte| *byte == b'\n').count() as u32;
        at = end;
    }
    refuse_cut(bytes)?;
    Ok(set)
}

/// As [`read`], but a condition that the patterns cannot mean is an error too.
///
/// # Errors
/// As [`read`]; else the first condition that would be left out.
pub fn read_strictly(text: &[u8]) -> Result<SnortPatterns, ImportError> {
    let set = read(text)?;
    match set.unmeant.first() {
        None => Ok(set),
        Some(Unmeant { line, column, what }) => Err(ImportError::new(
            *line,
            *column,
            what.clone(),
            "leave the rule out, or read the file without strictness",
        )),
    }
}

/// The end of the line that begins at `at`, or of the last of the lines that it goes on in.
fn end_of_rule(text: &str, at: usize) -> usize {
    let mut from = at;
    loop {
        let Some(length) = text[from..].find('\n') else { return text.len() };
        let line = &text[from..from + length];
        from += length + 1;
        let comment = text[at..].trim_start().starts_with('#');
        if comment || !line.strip_suffix('\r').unwrap_or(line).ends_with('\\') {
            return from;
        }
    }
}

#[cfg(test)]
mod tests;
