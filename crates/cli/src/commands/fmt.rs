//! `ravelin fmt`: the one usual layout.

use crate::arguments::{DiagnosticFormat, FmtArguments};
use crate::failure::Failure;
use crate::{program, render};
use lang::source::Sources;
use serde_json::json;
use std::fs;
use std::io::{self, Read};
use std::path::Path;

/// Runs the command.
pub(crate) fn run(arguments: &FmtArguments, json: bool) -> Result<(), Failure> {
    let (mut changed, mut faulty, mut diagnostics) = (Vec::new(), 0, Vec::new());
    for path in &arguments.programs {
        let name = path.display().to_string();
        let standard_input = path == Path::new("-");
        let text = if standard_input {
            io::read_to_string(io::stdin().lock().by_ref())?
        } else {
            program::read(path)?
        };
        let formatted = match lang::format::format(&text) {
            Ok(formatted) => formatted,
            Err(faults) => {
                let mut sources = Sources::default();
                sources.add(&name, &text);
                diagnostics.extend(render::diagnostic::as_json(&sources, &faults));
                render::diagnostic::to_stderr(&sources, &faults, DiagnosticFormat::Human);
                faulty += 1;
                continue;
            }
        };
        if standard_input && !arguments.check && !json {
            render::text(&formatted)?;
        }
        if formatted == text {
            continue;
        }
        if !arguments.check && !standard_input {
            fs::write(path, formatted)
                .map_err(|error| Failure::Finding(format!("cannot write {name}: {error}")))?;
        }
        changed.push(name);
    }
    if json {
        render::json(&json!({ "changed": changed, "check": arguments.check, "diagnostics": diagnostics }))?;
    } else if arguments.check {
        for name in &changed {
            render::text(&format!("{name} is not laid out as usual; `ravelin fmt {name}` does it\n"))?;
        }
    }
    if faulty > 0 || (arguments.check && !changed.is_empty()) { Err(Failure::Told) } else { Ok(()) }
}
