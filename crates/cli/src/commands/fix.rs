//! `ravelin fix`: applies the edits that the compiler suggests.

use crate::arguments::{DecodeChoice, DiagnosticFormat, FixArguments};
use crate::commands::check::is_right;
use crate::failure::Failure;
use crate::{program, render};
use lang::diagnostic::Suggestion;
use lang::pipeline::Compiled;
use lang::source::FileId;
use serde_json::json;
use std::fs;

/// How often the program is compiled again: an edit can bring another fault to light.
const ROUNDS: usize = 10;

/// Runs the command.
pub(crate) fn run(arguments: &FixArguments, json: bool) -> Result<(), Failure> {
    let path = &arguments.program;
    let name = path.display().to_string();
    let before = program::read(path)?;
    let compile = |text: &str| program::compile_text(&name, text, path.parent(), DecodeChoice::Lazy);
    let mut text = before.clone();
    let mut compiled = compile(&text);
    let mut edits = Vec::new();
    for _ in 0..ROUNDS {
        let chosen = choose(&compiled);
        if chosen.is_empty() {
            break;
        }
        for suggestion in &chosen {
            let place = compiled.sources.place(suggestion.span);
            edits.push(format!("{place}: {}", suggestion.text));
        }
        text = apply(&text, &chosen);
        compiled = compile(&text);
    }
    if text != before && !arguments.dry_run {
        fs::write(path, &text).map_err(|error| Failure::Finding(format!("cannot write {name}: {error}")))?;
    }
    if json {
        let left = render::diagnostic::as_json(&compiled.sources, &compiled.diagnostics);
        render::json(
            &json!({ "program": name, "edits": edits, "dry_run": arguments.dry_run, "diagnostics": left }),
        )?;
    } else {
        for edit in &edits {
            render::text(&format!("{edit}\n"))?;
        }
        if edits.is_empty() {
            render::text(&format!("{name}: there is nothing to apply\n"))?;
        }
        render::diagnostic::to_stderr(&compiled.sources, &compiled.diagnostics, DiagnosticFormat::Human);
    }
    if is_right(&compiled) { Ok(()) } else { Err(Failure::Told) }
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
