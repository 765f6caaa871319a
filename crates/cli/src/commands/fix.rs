//! `ravelin fix`: applies the edits that the compiler suggests.

use crate::arguments::{DiagnosticFormat, FixArguments};
use crate::commands::check::is_right;
use crate::failure::Failure;
use crate::{program, render};
use lang::mend::{Mended, mend};
use lang::pipeline::CompileOptions;
use serde_json::json;
use std::fs;

/// Runs the command.
pub(crate) fn run(arguments: &FixArguments, json: bool) -> Result<(), Failure> {
    let path = &arguments.program;
    let name = path.display().to_string();
    let before = program::read(path)?;
    let compile = |text: &str| program::compile_text(&name, text, path.parent(), &CompileOptions::default());
    let Mended { text, compiled, edits } = mend(&before, &compile);
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
