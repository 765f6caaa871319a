//! Reports what was read from files for the tables of a program: entries, and what happens to packets that
//! match none of them.

use import::ChainPolicy;
use import::entries::Fallback;
use ir::source::{FileId, Sources, Span};
use ir::{ColumnKind, Program, Table};
use lang::check::hygiene::warnings;
use lang::diagnostic::Diagnostic;
use lang::parser::parse_entries;
use lang::unreachable::never_found;
use serde_json::{Value, json};

/// What a file gave to a table.
pub(crate) struct Imported {
    /// The table's place in the program.
    pub(crate) table: usize,
    /// The file's name.
    pub(crate) file: String,
    /// What it holds, where its lines are shown.
    pub(crate) text: Option<Vec<u8>>,
    /// The line of each entry of the file; empty where that is not known.
    pub(crate) lines: Vec<u32>,
    /// How many entries of the table stand before those of the file.
    pub(crate) own: usize,
    /// Where this file, or one that filled the table before it, says what becomes of packets that no entry
    /// fits.
    pub(crate) default: Option<Origin>,
}

/// Where a file says what becomes of packets that no entry fits.
#[derive(Clone)]
pub(crate) struct Origin {
    /// The file's name.
    pub(crate) file: String,
    /// Its line, and what it says there.
    pub(crate) policy: ChainPolicy,
}

/// Makes what a file says of packets that no line fits the table's default.
///
/// # Errors
/// The program has another default; in words.
pub(crate) fn agreed_default(
    table: &mut Table,
    default: Option<Fallback>,
) -> Result<Option<ChainPolicy>, String> {
    let Some(Fallback { value, policy }) = default else { return Ok(None) };
    if let Some(own) = table.default.as_ref().filter(|own| **own != value) {
        return Err(format!(
            "line {}: {}, and the program gives table `{}` the default `{}`: take `default => …` out of the program, or give the chain \
             that policy",
            policy.line,
            policy.words,
            table.name,
            shown(table, own)
        ));
    }
    table.default = Some(value);
    Ok(Some(policy))
}

/// A value of a table by its name, or as its numbers.
fn shown(table: &Table, value: &[u128]) -> String {
    let parts: Vec<String> = (table.values.iter().zip(value))
        .map(|(column, number)| match &column.kind {
            ColumnKind::Bool => (*number != 0).to_string(),
            ColumnKind::Names(names) => {
                let name = names.iter().find(|(own, _)| own == number).map(|(_, name)| name.clone());
                name.unwrap_or_else(|| number.to_string())
            }
            _ => number.to_string(),
        })
        .collect();
    parts.join(", ")
}

/// The lines of entries that are written as in a program.
fn lines_of_entries(text: &str) -> Vec<u32> {
    let (entries, _) = parse_entries(FileId::default(), text);
    let (mut at, mut line) = (0, 1);
    let mut lines = Vec::with_capacity(entries.len());
    for entry in entries {
        let start = entry.span.start as usize;
        line += text.get(at..start).map_or(0, |skipped| skipped.matches('\n').count() as u32);
        at = start;
        lines.push(line);
    }
    lines
}

/// So many characters of a line of a file are shown: one of JSON may be all of it.
const LINE_SHOWN: usize = 200;

/// A line as far as it is shown, with its end.
fn shortened(line: &str) -> String {
    line.chars().take(LINE_SHOWN).chain(['\n']).collect()
}

impl Imported {
    fn table<'a>(&self, program: &'a Program) -> &'a Table {
        &program.tables[self.table]
    }

    /// Where the table's default comes from.
    fn from(&self) -> String {
        match &self.default {
            Some(Origin { file, policy: ChainPolicy { line, words } }) => format!("{words} ({file}:{line})"),
            None => "as the program says".to_owned(),
        }
    }

    /// Warnings of the file's entries that are never found, at their lines in it; the file becomes one of the
    /// sources.
    pub(crate) fn never_found(&self, program: &Program, sources: &mut Sources) -> Vec<Diagnostic> {
        let table = self.table(program);
        let mut found = never_found(table.kind, &table.keys, &table.entries);
        found.retain(|finding| finding.entry >= self.own);
        if found.is_empty() {
            return Vec::new();
        }
        let text = String::from_utf8_lossy(self.text.as_deref().unwrap_or_default());
        let lines = if self.lines.is_empty() { lines_of_entries(&text) } else { self.lines.clone() };
        let text: String = text.lines().map(shortened).collect();
        let starts: Vec<usize> =
            std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let length = text.len();
        let file = sources.add(self.file.clone(), text);
        warnings(&table.name, &found, &|entry| {
            let Some(own) = entry.checked_sub(self.own) else { return table.span };
            let line = lines.get(own).map_or(0, |line| line.saturating_sub(1) as usize);
            let start = starts.get(line).copied().unwrap_or(length);
            let end = starts.get(line + 1).map_or(length, |next| next - 1);
            Span::new(file, start as u32, end as u32)
        })
    }

    /// How many entries the file gave, and what becomes of packets that none fits, in a line for people.
    pub(crate) fn told(&self, program: &Program) -> String {
        let table = self.table(program);
        let entries = crate::render::quantity::of((table.entries.len() - self.own) as u64, "line");
        let otherwise = match &table.default {
            Some(value) => format!("what no entry fits finds `{}`: {}", shown(table, value), self.from()),
            None => "what no entry fits finds nothing".to_owned(),
        };
        format!("  table `{}` has {entries} of {}; {otherwise}\n", table.name, self.file)
    }

    /// The same for programs.
    pub(crate) fn document(&self, program: &Program) -> Value {
        let table = self.table(program);
        json!({
            "table": table.name,
            "file": self.file,
            "entries": table.entries.len() - self.own,
            "default": table.default.as_ref().map(|value| shown(table, value)),
            "default_from": table.default.as_ref().map(|_| self.from()),
        })
    }
}
