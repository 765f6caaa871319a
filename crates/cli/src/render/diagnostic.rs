//! Diagnostics in three forms: with source text for people, one line each, and JSON.

use crate::arguments::DiagnosticFormat;
use annotate_snippets::{AnnotationKind, Group, Level, Patch, Renderer, Snippet};
use ir::source::{FileId, Sources, Span};
use lang::diagnostic::{Diagnostic, Label, Severity};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

/// Tells diagnostics on standard error.
pub(crate) fn to_stderr(sources: &Sources, diagnostics: &[Diagnostic], format: DiagnosticFormat) {
    for diagnostic in diagnostics {
        anstream::eprintln!("{}", one(sources, diagnostic, format));
    }
}

/// A diagnostic as text, with colours.
pub(crate) fn one(sources: &Sources, diagnostic: &Diagnostic, format: DiagnosticFormat) -> String {
    match format {
        DiagnosticFormat::Human => human(sources, diagnostic),
        DiagnosticFormat::Short => short(sources, diagnostic),
    }
}

/// Diagnostics as JSON: a list of objects.
pub(crate) fn as_json(sources: &Sources, diagnostics: &[Diagnostic]) -> Vec<Value> {
    diagnostics.iter().map(|diagnostic| object(sources, diagnostic)).collect()
}

/// Bytes in hexadecimal without blanks.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn short(sources: &Sources, diagnostic: &Diagnostic) -> String {
    format!("{}: {}: {}", sources.place(diagnostic.primary.span), diagnostic.code, diagnostic.headline)
}

fn human(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let places: Vec<String> =
        (1..).zip(&diagnostic.path).map(|(number, label)| format!("{number}: {}", label.text)).collect();
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(&diagnostic.headline).id(diagnostic.code));
    for (file, labels) in by_file(sources, diagnostic, &places) {
        let source = sources.file(file);
        let first = labels.iter().map(|(range, ..)| range.start).min().unwrap_or(0);
        let last = labels.iter().map(|(range, ..)| range.end).max().unwrap_or(0);
        let (bytes, line) = source.excerpt(first..last, AROUND);
        let annotations = labels.into_iter().map(|(range, kind, text)| {
            kind.span(range.start - bytes.start..range.end - bytes.start).label(text)
        });
        let excerpt = Snippet::source(&source.text[bytes.clone()]).line_start(line);
        group = group.element(excerpt.path(&source.name).annotations(annotations));
    }
    let witness = diagnostic.witness.as_ref().map(|witness| {
        let program = sources.iter().next().map_or("PROGRAM", |(_, file)| &file.name);
        format!(
            "this packet shows it: {}\nfollow it with: ravelin trace {program} --packet {}",
            witness.decoded,
            hex(&witness.bytes)
        )
    });
    if let Some(witness) = &witness {
        group = group.element(Level::NOTE.message(witness));
    }
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    let explained = format!("`ravelin explain {}` says more", diagnostic.code);
    group = group.element(Level::NOTE.message(&explained));
    let mut report = vec![group];
    if let Some(suggestion) = &diagnostic.suggestion {
        let source = sources.file(suggestion.span.file);
        let range = range(sources, suggestion.span);
        let (bytes, line) = source.excerpt(range.clone(), AROUND);
        let range = range.start - bytes.start..range.end - bytes.start;
        let patch = Patch::new(range, suggestion.replacement.as_str());
        let excerpt = Snippet::source(&source.text[bytes]).line_start(line);
        report.push(
            Level::HELP.secondary_title(&suggestion.text).element(excerpt.path(&source.name).patch(patch)),
        );
    }
    format!("{}\n", Renderer::styled().render(&report))
}

/// So many lines more are shown around what a diagnostic is about; no others are looked at.
const AROUND: usize = 1;

/// A range of a file's bytes, and what is said of it.
type Shown<'a> = (Range<usize>, AnnotationKind, &'a str);

/// The places of a diagnostic, the primary one's file first.
fn by_file<'a>(
    sources: &Sources,
    diagnostic: &'a Diagnostic,
    places: &'a [String],
) -> Vec<(FileId, Vec<Shown<'a>>)> {
    let primary = &diagnostic.primary;
    let mut files: BTreeMap<(bool, FileId), Vec<Shown<'a>>> = BTreeMap::new();
    let mut add = |label: &Label, kind: AnnotationKind, text: &'a str| {
        let file = label.span.file;
        let shown = (range(sources, label.span), kind, text);
        files.entry((file != primary.span.file, file)).or_default().push(shown);
    };
    add(primary, AnnotationKind::Primary, &primary.text);
    for (label, text) in diagnostic.path.iter().zip(places) {
        add(label, AnnotationKind::Context, text);
    }
    files.into_iter().map(|((_, file), annotations)| (file, annotations)).collect()
}

/// The bytes of a span, within its file and between characters.
fn range(sources: &Sources, span: Span) -> Range<usize> {
    let text = &sources.file(span.file).text;
    let boundary = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = boundary(span.start);
    start..boundary(span.end).max(start)
}

fn object(sources: &Sources, diagnostic: &Diagnostic) -> Value {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    json!({
        "code": diagnostic.code,
        "severity": severity,
        "headline": diagnostic.headline,
        "place": place(sources, &diagnostic.primary),
        "path": diagnostic.path.iter().map(|label| place(sources, label)).collect::<Vec<_>>(),
        "witness": diagnostic.witness.as_ref().map(|witness| json!({
            "packet": hex(&witness.bytes),
            "decoded": witness.decoded,
        })),
        "help": diagnostic.help,
        "suggestion": diagnostic.suggestion.as_ref().map(|suggestion| json!({
            "text": suggestion.text,
            "file": sources.file(suggestion.span.file).name,
            "start": suggestion.span.start,
            "end": suggestion.span.end,
            "replacement": suggestion.replacement,
        })),
    })
}

fn place(sources: &Sources, label: &Label) -> Value {
    let (line, column) = sources.line_column(label.span);
    json!({
        "file": sources.file(label.span.file).name,
        "line": line,
        "column": column,
        "start": label.span.start,
        "end": label.span.end,
        "text": label.text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lang::diagnostic::PacketWitness;

    fn example() -> (Sources, Diagnostic) {
        let mut sources = Sources::default();
        let file = sources.add("a.rav", "start stage s() {\n    send missing\n}\n");
        let other = sources.add("b.rav", "const x: u8 = 1\n");
        let mut diagnostic =
            Diagnostic::error("E0201", "`missing` is not known", Span::new(file, 27, 34), "not known here")
                .place(Span::new(file, 0, 5), "the packet starts here")
                .place(Span::new(other, 6, 7), "this is something else")
                .help("declare it")
                .suggest("say where", Span::new(file, 27, 34), "1");
        diagnostic.witness = Some(PacketWitness { bytes: vec![0xab, 1], decoded: "two bytes".into() });
        (sources, diagnostic)
    }

    #[test]
    fn people_see_text_numbered_places_witness_help_and_edit() {
        let (sources, diagnostic) = example();
        let text = one(&sources, &diagnostic, DiagnosticFormat::Human);
        let plain = anstream::adapter::strip_str(&text).to_string();
        for part in [
            "error[E0201]: `missing` is not known",
            "a.rav:2:10",
            "send missing",
            "not known here",
            "1: the packet starts here",
            "2: this is something else",
            "b.rav:1:7",
            "two bytes",
            "ravelin trace a.rav --packet ab01",
            "declare it",
            "say where",
            "ravelin explain E0201",
        ] {
            assert!(plain.contains(part), "{part} is missing in:\n{plain}");
        }
    }

    #[test]
    fn the_short_form_is_one_line() {
        let (sources, diagnostic) = example();
        let text = one(&sources, &diagnostic, DiagnosticFormat::Short);
        assert_eq!(text, "a.rav:2:10: E0201: `missing` is not known");
    }

    #[test]
    fn json_has_every_part() {
        let (sources, diagnostic) = example();
        let found = &as_json(&sources, &[diagnostic])[0];
        assert_eq!(found["code"], "E0201");
        assert_eq!(found["place"]["line"], 2);
        assert_eq!(found["path"][1]["file"], "b.rav");
        assert_eq!(found["witness"]["packet"], "ab01");
        assert_eq!(found["suggestion"]["replacement"], "1");
    }

    #[test]
    fn spans_outside_the_text_are_cut() {
        let mut sources = Sources::default();
        let file = sources.add("a.rav", "é");
        let diagnostic = Diagnostic::error("E0001", "odd", Span::new(file, 1, 99), "");
        assert!(one(&sources, &diagnostic, DiagnosticFormat::Human).contains("odd"));
    }
}
