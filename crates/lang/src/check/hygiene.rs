//! Warnings of entries of the program text that can never be found (G8).

use super::Checker;
use super::types::Type;
use crate::diagnostic::Diagnostic;
use crate::limits::UNREACHABLE_TOLD;
use crate::unreachable::{UnreachableFinding, never_found};
use ir::source::Span;
use ir::{Column, ColumnKind};

impl Checker<'_> {
    /// Warns of entries that are never found.
    pub(super) fn unreachable_entries(&mut self) {
        for index in 0..self.program.tables.len() {
            let table = &self.program.tables[index];
            // A rule of a policy is several rows, which depend on where it is jumped to.
            if table.is_of_policy() {
                continue;
            }
            let column = |(name, ty): &(String, Type)| Column {
                name: name.clone(),
                kind: match ty {
                    Type::Ip4 => ColumnKind::Ip4,
                    Type::Ip6 => ColumnKind::Ip6,
                    Type::Mac => ColumnKind::Mac,
                    Type::Bool => ColumnKind::Bool,
                    _ => ColumnKind::Uint,
                },
                width: ty.width().unwrap_or(1),
            };
            let keys: Vec<Column> = table.keys.iter().map(column).collect();
            let found = never_found(table.kind, &keys, &table.entries);
            let spans = table.entry_spans.clone();
            let warnings = warnings(&table.name.clone(), &found, &|entry| spans[entry]);
            warnings.into_iter().for_each(|warning| self.report(warning));
        }
    }
}

/// The warnings of the entries of a table that are never found: [`UNREACHABLE_TOLD`] of them, and how many
/// more there are.
pub fn warnings(table: &str, found: &[UnreachableFinding], place: &dyn Fn(usize) -> Span) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    for UnreachableFinding { entry, by, label, witness } in found.iter().take(UNREACHABLE_TOLD) {
        let headline = format!("this entry of `{table}` is never found");
        let mut warning = Diagnostic::warning("W0409", headline, place(*entry), *label);
        for other in by {
            warning = warning.place(place(*other), "this one is found instead");
        }
        if let Some(witness) = witness {
            warning = warning.help(format!("for example for {witness}"));
        }
        warnings.push(warning);
    }
    if let Some(next) = found.get(UNREACHABLE_TOLD) {
        let (all, told) = (found.len(), UNREACHABLE_TOLD);
        let headline = format!("{all} entries of `{table}` are never found, of which {told} are told");
        let label = format!("the first of the other {}", all - told);
        warnings.push(Diagnostic::warning("W0409", headline, place(next.entry), label));
    }
    warnings
}
