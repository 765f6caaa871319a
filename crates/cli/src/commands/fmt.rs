//! `ravelin fmt`: the one usual layout.

use crate::arguments::{DiagnosticFormat, FmtArguments};
use crate::failure::Failure;
use crate::{program, render};
use ir::source::Sources;
use lang::limits::LONGEST_TEXT;
use ports::files;
use serde_json::json;
use std::fs;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(arguments: &FmtArguments, json: bool) -> Result<(), Failure> {
    let (mut changed, mut faulty, mut diagnostics) = (Vec::new(), 0, Vec::new());
    for path in &arguments.programs {
        let name = path.display().to_string();
        let standard_input = path == Path::new("-");
        let text = if standard_input {
            let bytes = files::read_standard_input(LONGEST_TEXT as u64);
            let bytes =
                bytes.map_err(|error| Failure::Usage(format!("cannot read standard input: {error}")))?;
            String::from_utf8(bytes)
                .map_err(|_| Failure::Finding("standard input is not text: it is not UTF-8".into()))?
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
