//! `ravelin check`: whether programs are right, and what they cost; and whether a gateway's file is right.

use super::serve;
use crate::allowance::Allowance;
use crate::arguments::CheckArguments;
use crate::executing::Executing;
use crate::failure::Failure;
use crate::imported::Imported;
use crate::remembered::Remembered;
use crate::render::quantity::{bytes, of};
use crate::{program, render};
use ir::Program;
use ir::replace::{Fate, replacement};
use lang::cost::cost;
use lang::diagnostic::Severity;
use lang::pipeline::{CompileOptions, Compiled, Decode};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Runs the command.
pub(crate) fn run(arguments: &CheckArguments, json: bool) -> Result<(), Failure> {
    let mut found = Vec::new();
    let mut wrong = 0;
    let options = arguments.set.options(Decode::Lazy)?;
    for path in &arguments.programs {
        let name = path.display().to_string();
        if path.extension().is_some_and(|extension| extension == "toml") {
            if let Some(set) = arguments.set.set.first() {
                let file = path.display();
                return Err(Failure::Usage(format!("write `{set}` into {file}, below the line `[set]`")));
            }
            serve::check(path, Executing::default(), json)?;
            continue;
        }
        let mut compiled = program::unfilled(path, &options)?;
        let imported = program::fill(compiled.program.as_mut(), path, &mut Allowance::to_check())?;
        if let Some(program) = &compiled.program {
            let found =
                imported.iter().flat_map(|imported| imported.never_found(program, &mut compiled.sources));
            compiled.diagnostics.extend(found);
        }
        let right = is_right(&compiled);
        wrong += usize::from(!right);
        let remembered = match compiled.program.as_ref().filter(|_| right) {
            Some(program) => Some(Remembered::of(program, 1).map_err(Failure::Finding)?),
            None => None,
        };
        let remembered = remembered.as_ref();
        if json {
            found.push(document(&name, &compiled, &imported, right, remembered));
        } else {
            render::diagnostic::to_stderr(&compiled.sources, &compiled.diagnostics, arguments.format);
            render::text(&summary(&name, &compiled, &imported, right, remembered))?;
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

/// Tells what goes over of what the old program remembers; false if something does not fit.
fn replaces(old: &Path, new: &Program, arguments: &CheckArguments, json: bool) -> Result<bool, Failure> {
    let name = old.display();
    let compiled = program::compile(old, &CompileOptions::default())?;
    let Some(running) = compiled.program else {
        return Err(Failure::Finding(format!("{name} has faults; `ravelin check {name}` tells them")));
    };
    let plan = replacement(&running, new, &arguments.discard);
    let all = replacement(&running, &running, &[]);
    let known: Vec<&str> =
        all.kinds().into_iter().flat_map(|(_, fates)| fates).map(|(name, _)| name.as_str()).collect();
    if let Some(unknown) = arguments.discard.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Failure::Usage(format!(
            "{name} remembers nothing under the name `{unknown}` that could be given up"
        )));
    }
    let mut fits = true;
    let mut text = format!("in place of {name}:\n");
    for (kind, fates) in plan.kinds() {
        for (name, fate) in fates {
            let words = match fate {
                Fate::Kept { .. } => stays(kind).to_string(),
                Fate::New => "is new and begins with its own contents".to_string(),
                Fate::Discarded => "its contents are given up".to_string(),
                Fate::Anew { old, new } => format!("begins anew: it was {old}, it is {new}"),
                Fate::Misfit { old, new } => {
                    fits = false;
                    format!(
                        "does not fit: it held {old}, it would hold {new}; keep its columns, or say --discard {name}"
                    )
                }
            };
            let kind = if matches!(kind, "table" | "group") { String::new() } else { format!("{kind} ") };
            let _ = writeln!(text, "  {kind}{name}: {words}");
        }
    }
    if json {
        anstream::eprint!("{text}");
    } else {
        render::text(&text)?;
    }
    Ok(fits)
}

/// What goes over of something that both programs have alike.
fn stays(kind: &str) -> &'static str {
    match kind {
        "meter" => "keeps its levels",
        "register" => "keeps its numbers",
        "pool" => "what is taken stays taken; an entry whose item it no longer has ends",
        "counter" => "counts on",
        "event" => "what is delayed still comes",
        _ => "what packets made goes over",
    }
}

/// Whether it can be run.
pub(crate) fn is_right(compiled: &Compiled) -> bool {
    compiled.program.is_some()
        && compiled.diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error)
}

fn document(
    name: &str,
    compiled: &Compiled,
    imported: &[Imported],
    right: bool,
    remembered: Option<&Remembered>,
) -> Value {
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
            "memory_bytes": cost.memory,
            "memory": remembered.map(Remembered::document),
        })
    });
    json!({
        "program": name,
        "right": right,
        "diagnostics": render::diagnostic::as_json(&compiled.sources, &compiled.diagnostics),
        "tests": compiled.tests.len(),
        "settable": render::settable::document(&compiled.sources, &compiled.settables),
        "at_most": bounds,
        "filled": compiled.program.as_ref().map(|program| {
            imported.iter().map(|imported| imported.document(program)).collect::<Vec<Value>>()
        }),
    })
}

fn summary(
    name: &str,
    compiled: &Compiled,
    imported: &[Imported],
    right: bool,
    remembered: Option<&Remembered>,
) -> String {
    let count =
        |severity| compiled.diagnostics.iter().filter(|found| found.severity == severity).count() as u64;
    match (&compiled.program, remembered) {
        (Some(program), Some(remembered)) if right => {
            let filled = imported.iter().map(|imported| imported.told(program));
            right_summary(name, program, remembered, count(Severity::Warning))
                + &filled.collect::<String>()
                + &render::settable::told(&compiled.sources, &compiled.settables)
        }
        _ => format!("{name}: {}\n", of(count(Severity::Error), "error")),
    }
}

fn right_summary(name: &str, program: &Program, remembered: &Remembered, warnings: u64) -> String {
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
    if program.steering.is_some() {
        text.push_str("  several workers: each packet goes to the one that `steer` names\n");
    }
    text + &remembered.told()
}
