//! What every code of a diagnostic means: cause, a program that triggers it, and how to mend it.

mod edits;
mod entry;
mod flow;
mod handlers;
mod layouts;
mod memory;
mod names;
mod state;
mod types;

use crate::parser::codes::CODES;
use entry::Entry;

/// The explanation of a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code, such as `E0412`.
    pub code: &'static str,
    /// One line in the user's words.
    pub headline: &'static str,
    /// Why it is refused, or warned of.
    pub cause: &'static str,
    /// Program text that triggers it; a whole program, or a piece of one where the fault lies in how it is
    /// written.
    pub example: &'static str,
    /// What to do, in words.
    pub fix: &'static str,
    /// The example after it was mended, where that is one edit.
    pub fixed: Option<String>,
}

/// What a code means; `None` if there is no such code.
pub fn explain(code: &str) -> Option<Explanation> {
    if let Some(entry) = entries().find(|entry| entry.code == code) {
        return Some(Explanation {
            code: entry.code,
            headline: entry.headline,
            cause: entry.cause,
            example: entry.example,
            fix: entry.fix,
            fixed: (!entry.mend.0.is_empty()).then(|| entry.example.replacen(entry.mend.0, entry.mend.1, 1)),
        });
    }
    let &(code, headline, text) = CODES.iter().find(|(known, ..)| *known == code)?;
    let (cause, rest) = text.split_once("\nExample: ").unwrap_or((text, ""));
    let (example, fix) = rest.split_once("\nFix: ").unwrap_or((rest, ""));
    Some(Explanation { code, headline, cause, example, fix, fixed: None })
}

/// All codes that have an explanation, those of reading first.
pub fn codes() -> impl Iterator<Item = &'static str> {
    CODES.iter().map(|(code, ..)| *code).chain(entries().map(|entry| entry.code))
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let parts: [&'static [Entry]; 8] = [
        memory::ENTRIES,
        names::ENTRIES,
        types::ENTRIES,
        layouts::ENTRIES,
        flow::ENTRIES,
        edits::ENTRIES,
        state::ENTRIES,
        handlers::ENTRIES,
    ];
    parts.into_iter().flatten()
}
