//! Edits that the compiler suggests, applied: each only if it leaves fewer faults behind, so that it ends,
//! and a second time changes nothing.

use crate::diagnostic::{Diagnostic, DiagnosticKind, Severity, Suggestion};
use crate::pipeline::Compiled;
use ir::source::FileId;

/// A mended program.
pub struct Mended {
    /// Its text.
    pub text: String,
    /// It compiled again.
    pub compiled: Compiled,
    /// What was done, with the place in the text as it then was.
    pub edits: Vec<String>,
}

/// Applies suggestions until none is left that helps. All of a round are tried together, then those of a
/// round that did not help one by one.
pub fn mend(text: &str, compile: &dyn Fn(&str) -> Compiled) -> Mended {
    let mut mended = Mended { text: text.to_string(), compiled: compile(text), edits: Vec::new() };
    while round(&mut mended, compile) {}
    mended
}

/// Applies what helps of what is suggested now; says whether anything did.
fn round(mended: &mut Mended, compile: &dyn Fn(&str) -> Compiled) -> bool {
    let chosen = choose(&mended.compiled);
    if chosen.is_empty() {
        return false;
    }
    tried(mended, &chosen, compile)
        || chosen.len() > 1 && chosen.iter().any(|one| tried(mended, std::slice::from_ref(one), compile))
}

/// Applies suggestions if that leaves fewer faults.
fn tried(mended: &mut Mended, chosen: &[Suggestion], compile: &dyn Fn(&str) -> Compiled) -> bool {
    let text = apply(&mended.text, chosen);
    let compiled = compile(&text);
    if weight(&compiled) >= weight(&mended.compiled) {
        return false;
    }
    for suggestion in chosen {
        let place = mended.compiled.sources.place(suggestion.span);
        mended.edits.push(format!("{place}: {}", suggestion.text));
    }
    (mended.text, mended.compiled) = (text, compiled);
    true
}

/// How wrong a program is: whether it can be read at all, its errors, its warnings. An edit may bring to
/// light what could not be seen before, but only where the program could not be read.
fn weight(compiled: &Compiled) -> (usize, usize, usize) {
    let count = |wanted: &dyn Fn(&Diagnostic) -> bool| {
        compiled.diagnostics.iter().filter(|found| wanted(found)).count()
    };
    (
        count(&|found| found.kind == DiagnosticKind::Syntax),
        count(&|found| found.severity == Severity::Error),
        count(&|found| found.severity == Severity::Warning),
    )
}

/// The suggestions for the main file that do not overlap, the last one first.
fn choose(compiled: &Compiled) -> Vec<Suggestion> {
    let mut all: Vec<Suggestion> = compiled
        .diagnostics
        .iter()
        .filter_map(|diagnostic| diagnostic.suggestion.clone())
        .filter(|suggestion| suggestion.span.file == FileId::default())
        .collect();
    all.sort_by_key(|suggestion| (suggestion.span.start, suggestion.span.end));
    all.dedup_by(|later, earlier| later.span.start < earlier.span.end || later.span == earlier.span);
    all.reverse();
    all
}

/// The text with the suggestions applied, which stand in it from last to first.
fn apply(text: &str, suggestions: &[Suggestion]) -> String {
    let mut text = text.to_owned();
    for suggestion in suggestions {
        let range = suggestion.span.start as usize..suggestion.span.end as usize;
        if text.get(range.clone()).is_some() {
            text.replace_range(range, &suggestion.replacement);
        }
    }
    text
}
