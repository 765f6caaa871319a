//! `ravelin check`: whether programs are right, and what they cost.

use crate::arguments::{CheckArguments, DecodeChoice};
use crate::failure::Failure;
use crate::render::quantity::{bytes, of};
use crate::{program, render};
use lang::diagnostic::Severity;
use lang::ir::Program;
use lang::ir::cost::cost;
use lang::pipeline::Compiled;
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(crate) fn run(arguments: &CheckArguments, json: bool) -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut wrong = 0;
    for path in &arguments.programs {
        let name = path.display().to_string();
        let compiled = program::compile(path, DecodeChoice::Lazy)?;
        let right = is_right(&compiled);
        wrong += usize::from(!right);
        if json {
            found.push(document(&name, &compiled, right));
        } else {
            render::diagnostic::to_stderr(&compiled.sources, &compiled.diagnostics, arguments.format);
            render::text(&summary(&name, &compiled, right))?;
        }
    }
    if json {
        render::json(&json!({ "programs": found, "wrong": wrong }))?;
    }
    if wrong > 0 { Err(Failure::Told) } else { Ok(()) }
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
