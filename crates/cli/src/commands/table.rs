//! `ravelin table`: fills a table from a file and answers a file of queries, a line each.

mod figures;
pub(super) mod files;
mod lpm;
mod patterns;
mod payload;
mod rules;
pub(super) mod source;

use crate::arguments::table::TableKind;
use crate::failure::Failure;

/// Runs the command.
pub(crate) fn run(kind: &TableKind, json: bool) -> Result<(), Failure> {
    if json {
        return Err(Failure::Usage(
            "the answers are lines with tabs between their columns; leave out --json".into(),
        ));
    }
    match kind {
        TableKind::Lpm(arguments) => lpm::run(arguments),
        TableKind::Rules(arguments) => rules::run(arguments),
        TableKind::Patterns(arguments) => patterns::run(arguments),
    }
}
