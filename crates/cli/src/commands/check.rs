//! `ravelin check`: whether programs are right, and what they cost; and whether a gateway's file is right.

use super::serve;
use crate::arguments::{CheckArguments, DecodeChoice};
use crate::executing::Executing;
use crate::failure::Failure;
use crate::render::quantity::{bytes, of};
use crate::{program, render};
use lang::diagnostic::Severity;
use lang::ir::Program;
use lang::ir::cost::cost;
use lang::ir::replace::{Fate, Replacement, replacement};
use lang::pipeline::Compiled;
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(arguments: &CheckArguments, json: bool) -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut wrong = 0;
    for path in &arguments.programs {
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "toml") {
            serve::check(path, Executing::default(), json)?;
            continue;
        }
        let compiled = program::compile(path, DecodeChoice::Lazy)?;
        let right = is_right(&compiled);
        wrong += usize::from(!right);
        if json {
            found.push(document(&name, &compiled, right));
        } else {
            render::diagnostic::to_stderr(&compiled.sources, &compiled.diagnostics, arguments.format);
            render::text(&summary(&name, &compiled, right))?;
        }
        if let (Some(old), Some(program)) = (&arguments.replaces, compiled.program.as_ref().filter(|_| right))
        {
            wrong += usize::from(!replaces(old, program, arguments, json)?);
        }
    }
    if json {
        render::json(&json!({ "programs": found, "wrong": wrong }))?;
    }
    if wrong > 0 { Err(Failure::Told) } else { Ok(()) }
}

/// Tells what goes over from the old program's tables and groups; false if something does not fit.
fn replaces(old: &Path, new: &Program, arguments: &CheckArguments, json: bool) -> Result<bool, Failure> {
    let name = old.display();
    let compiled = program::compile(old, DecodeChoice::Lazy)?;
    let Some(running) = compiled.program else {
        return Err(Failure::Finding(format!("{name} has faults; `ravelin check {name}` tells them")));
    };
    let groups = running.groups.iter().map(|group| group.name.as_str());
    let known: Vec<&str> = running.tables.iter().map(|table| table.name.as_str()).chain(groups).collect();
    if let Some(unknown) = arguments.discard.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::Usage(format!(
            "{name} has no table or group `{unknown}` whose contents could be given up"
        )));
    }
    let mut fits = true;
    let mut text = format!("in place of {name}:\n");
    let Replacement { tables, groups } = replacement(&running, new, &arguments.discard);
    for (name, fate) in tables.into_iter().chain(groups) {
        let words = match fate {
            Fate::Kept { .. } => "what packets made goes over".to_string(),
            Fate::New => "is new and begins with its own contents".to_string(),
            Fate::Discarded => "its contents are given up".to_string(),
            Fate::Misfit { old, new } => {
                fits = false;
                format!(
                    "does not fit: it held {old}, it would hold {new}; keep its columns, or say --discard {name}"
                )
            }
        };
        let _ = writeln!(text, "  {name}: {words}");
    }
    if json {
        anstream::eprint!("{text}");
    } else {
        render::text(&text)?;
    }
    Ok(fits)
}

/// Whether it can be run.
pub(crate) fn is_right(compiled: &Compiled) -> bool {
    compiled.program.is_some()
        && compiled.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

fn document(name: &str, compiled: &Compiled, right: bool) -> Value {
    let bounds = compiled.program.as_ref().map(|program| {
        let cost = cost(program);
        let bound = cost.functions.first().map(|function| function.bound).unwrap_or_default();
        json!({
            "instructions": bound.instructions,
            "lookups": bound.lookups,
            "table_writes": bound.table_writes,
            "packets_made": bound.packets_made,
            "events": bound.events,
            "bytes_touched": bound.bytes_touched,
            "table_bytes": cost.memory,
        })
    });
    json!({
        "program": name,
        "right": right,
        "diagnostics": render::diagnostic::as_json(&compiled.sources, &compiled.diagnostics),
        "tests": compiled.tests.len(),
        "at_most": bounds,
    })
}

fn summary(name: &str, compiled: &Compiled, right: bool) -> String {
    let count =
        |severity| compiled.diagnostics.iter().filter(|found| found.severity == severity).count() as u64;
    match &compiled.program {
        Some(program) if right => right_summary(name, program, count(Severity::Warning)),
        _ => format!("{name}: {}\n", of(count(Severity::Error), "error")),
    }
}

fn right_summary(name: &str, program: &Program, warnings: u64) -> String {
    let cost = cost(program);
    let bound = cost.functions.first().map(|function| function.bound).unwrap_or_default();
    let mut text = match warnings {
        0 => format!("{name}: all is well\n"),
        warnings => format!("{name}: it runs, with {}\n", of(warnings, "warning")),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "  a packet costs at most {}, {}, {} and {} of it touched",
        of(bound.instructions, "step"),
        of(bound.lookups, "lookup"),
        of(bound.table_writes, "table write"),
        bytes(bound.bytes_touched),
    );
    if !program.tables.is_empty() {
        let tables = of(program.tables.len() as u64, "table");
        let _ = writeln!(text, "  {tables} of at most {} together", bytes(cost.memory));
    }
    text
}
