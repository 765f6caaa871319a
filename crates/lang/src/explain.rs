//! What every code of a diagnostic means: cause, a program that triggers it, and how to mend it.
//!
//! The texts are Markdown, a file for each subject. Below the heading of a code stand its cause, the example,
//! what to do and, where one edit mends the example, the mended example. An example that is only a piece of a
//! line is a paragraph:
//!
//! ````text
//! ## E0501: A counter has no cells.
//!
//! The cause, a paragraph.
//!
//! ```rav
//! counter seen[0]
//! ```
//!
//! What to do, a paragraph.
//!
//! ```rav
//! counter seen[1]
//! ```
//! ````

/// The texts, those of reading first.
const TEXTS: [&str; 10] = [
    include_str!("explain/reading.md"),
    include_str!("explain/memory.md"),
    include_str!("explain/names.md"),
    include_str!("explain/types.md"),
    include_str!("explain/layouts.md"),
    include_str!("explain/flow.md"),
    include_str!("explain/edits.md"),
    include_str!("explain/state.md"),
    include_str!("explain/handlers.md"),
    include_str!("explain/policies.md"),
];

/// The explanation of a code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The code, such as `E0412`.
    pub code: &'static str,
    /// One line in the user's words.
    pub headline: &'static str,
    /// Why it is refused, or warned of.
    pub cause: String,
    /// Program text that triggers it; a whole program, or a piece of one where the fault lies in how it is
    /// written.
    pub example: String,
    /// What to do, in words.
    pub fix: String,
    /// The example after it was mended, where that is one edit.
    pub fixed: Option<String>,
}

/// What a code means; `None` if there is no such code.
pub fn explain(code: &str) -> Option<Explanation> {
    let (code, headline, text) = sections().find(|(known, ..)| *known == code)?;
    let mut parts = parts(text).into_iter();
    let mut part = || parts.next().unwrap_or_default();
    let (cause, example, fix) = (part(), part(), part());
    Some(Explanation { code, headline, cause, example, fix, fixed: parts.next() })
}

/// All codes that have an explanation, those of reading first.
pub fn codes() -> impl Iterator<Item = &'static str> {
    sections().map(|(code, ..)| code)
}

/// Code, headline and text of every section.
fn sections() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let sections = TEXTS.into_iter().flat_map(|text| text.split("\n## ").skip(1));
    sections.filter_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        let (code, headline) = heading.split_once(": ")?;
        Some((code, headline, text))
    })
}

/// The paragraphs of a section, each as one line, and its code blocks as they are.
fn parts(text: &str) -> Vec<String> {
    let mut parts = Vec::new();
    for (number, piece) in text.split("```").enumerate() {
        if number % 2 == 1 {
            parts.push(piece.split_once('\n').map_or("", |(_, code)| code).to_owned());
        } else {
            let paragraphs = piece.split("\n\n").map(|paragraph| paragraph.trim().replace('\n', " "));
            parts.extend(paragraphs.filter(|paragraph| !paragraph.is_empty()));
        }
    }
    parts
}
