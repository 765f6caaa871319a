//! `ravelin test`: the tests in programs, and packet tests in STF files.

use crate::arguments::{DiagnosticFormat, TestArguments};
use crate::commands::check::is_right;
use crate::failure::Failure;
use crate::render::mismatch;
use crate::{program, render};
use engine::{case, stf};
use exec::BackendKind;
use lang::pipeline::{Compiled, Decode};
use serde::Serialize;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// How one test went on one back end.
#[derive(Debug, Serialize)]
struct Outcome {
    file: String,
    name: String,
    back_end: &'static str,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Outcome {
    /// Of a test that passed, or failed with a message.
    fn of(file: &str, name: &str, back_end: &'static str, message: Option<String>) -> Outcome {
        let passed = message.is_none();
        Outcome { file: file.to_owned(), name: name.to_owned(), back_end, passed, message }
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &TestArguments, json: bool) -> Result<(), Failure> {
    let mut files = Vec::new();
    for path in &arguments.files {
        gather(path, true, &mut files)?;
    }
    let back_ends = arguments.back_end;
    let mut results = Vec::new();
    for file in &files {
        let found = if is(file, "stf") {
            packet_test(file, arguments, back_ends)?
        } else {
            source_tests(file, arguments, back_ends)?
        };
        if !json {
            render::text(&lines(file, &found, back_ends.len()))?;
        }
        results.extend(found);
    }
    let failed = results.iter().filter(|result| !result.passed).count();
    let passed = results.len() - failed;
    if json {
        render::json(&json!({ "passed": passed, "failed": failed, "tests": results }))?;
    } else {
        let names: Vec<&str> = back_ends.iter().map(|back_end| back_end.name()).collect();
        let names = match &names[..] {
            [before @ .., last] if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            names => names.concat(),
        };
        render::text(&format!("\n{passed} passed, {failed} failed on {names}\n"))?;
    }
    if results.is_empty() {
        return Err(Failure::Documented(match &arguments.filter {
            Some(filter) => format!("no test has `{filter}` in its name"),
            None => "there are no tests in these files".into(),
        }));
    }
    if failed > 0 { Err(Failure::Told) } else { Ok(()) }
}

/// Adds a file, or the programs and STF files of a directory and those in it.
fn gather(path: &Path, named: bool, files: &mut Vec<PathBuf>) -> Result<(), Failure> {
    if path.is_dir() {
        let cannot = |error| Failure::Usage(format!("cannot read {}: {error}", path.display()));
        let mut inside: Vec<PathBuf> =
            fs::read_dir(path).map_err(cannot)?.flatten().map(|entry| entry.path()).collect();
        inside.sort();
        return inside.iter().try_for_each(|path| gather(path, false, files));
    }
    if is(path, "rav") || is(path, "stf") {
        files.push(path.to_path_buf());
    } else if named {
        program::read(path)?;
        return Err(Failure::Usage(format!(
            "{} is neither a program (.rav) nor an STF file (.stf)",
            path.display()
        )));
    }
    Ok(())
}

fn is(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found == ending)
}

fn wanted(name: &str, arguments: &TestArguments) -> bool {
    arguments.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
}

/// The message of a program that is not right.
fn faults(compiled: &Compiled) -> String {
    compiled
        .diagnostics
        .iter()
        .map(|diagnostic| {
            render::diagnostic::one(&compiled.sources, diagnostic, DiagnosticFormat::Short) + "\n"
        })
        .collect()
}

fn source_tests(
    path: &Path,
    arguments: &TestArguments,
    back_ends: &[BackendKind],
) -> Result<Vec<Outcome>, Failure> {
    let file = path.display().to_string();
    let compiled = program::compile(path, &arguments.set.options(Decode::Lazy)?)?;
    // A module: right but for a start, which the programs that import it have.
    if compiled.diagnostics.iter().all(|diagnostic| diagnostic.code == "E0401")
        && !compiled.diagnostics.is_empty()
    {
        return Ok(Vec::new());
    }
    let Some(program) = compiled.program.as_ref().filter(|_| is_right(&compiled)) else {
        return Ok(vec![Outcome::of(&file, "it compiles", "compiler", Some(faults(&compiled)))]);
    };
    let mut results = Vec::new();
    for test in compiled.tests.iter().filter(|test| wanted(&test.name, arguments)) {
        for &back_end in back_ends {
            let message = match case::run(program, test, back_end) {
                Ok(None) => None,
                Ok(Some(found)) => Some(mismatch::of_case(program, &compiled.sources, &found)),
                Err(error) => Some(format!("it cannot be loaded: {error}\n")),
            };
            results.push(Outcome::of(&file, &test.name, back_end.name(), message));
        }
    }
    Ok(results)
}

fn packet_test(
    path: &Path,
    arguments: &TestArguments,
    back_ends: &[BackendKind],
) -> Result<Vec<Outcome>, Failure> {
    let file = path.display().to_string();
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    if !wanted(&name, arguments) {
        return Ok(Vec::new());
    }
    let test =
        stf::read(&program::read(path)?).map_err(|error| Failure::Finding(format!("{file}, {error}")))?;
    let tested = arguments.program.clone().unwrap_or_else(|| path.with_extension("rav"));
    if !tested.is_file() {
        return Err(Failure::Usage(format!(
            "{file} tests {}, which is not there; name the program with --program",
            tested.display()
        )));
    }
    let compiled = program::compile(&tested, &arguments.set.options(Decode::Lazy)?)?;
    let Some(program) = compiled.program.as_ref().filter(|_| is_right(&compiled)) else {
        return Err(Failure::Finding(format!("{}\n{}", tested.display(), faults(&compiled))));
    };
    let result = |back_end| {
        let message = match stf::run(program, &test, back_end) {
            Ok(None) => None,
            Ok(Some(found)) => Some(mismatch::of_stf(program, &file, &found)),
            Err(stf::StfFault::Line(error)) => Some(format!("{file}, {error}\n")),
            Err(error) => Some(format!("{}: {error}\n", tested.display())),
        };
        Outcome::of(&file, &name, back_end.name(), message)
    };
    Ok(back_ends.iter().map(|&back_end| result(back_end)).collect())
}

/// One line a test; a test that fails on one back end alone says on which.
fn lines(file: &Path, results: &[Outcome], back_ends: usize) -> String {
    if results.is_empty() {
        return String::new();
    }
    let good = anstyle::AnsiColor::Green.on_default();
    let bad = anstyle::AnsiColor::Red.on_default().bold();
    let mut text = format!("{}\n", file.display());
    let each = if results.len().is_multiple_of(back_ends) { back_ends } else { 1 };
    for test in results.chunks(each) {
        let failed: Vec<&Outcome> = test.iter().filter(|result| !result.passed).collect();
        let Some(first) = failed.first() else {
            text.push_str(&format!("  {good}ok{good:#}    {}\n", test[0].name));
            continue;
        };
        let only =
            if failed.len() < test.len() { format!(" (only {})", first.back_end) } else { String::new() };
        text.push_str(&format!("  {bad}FAIL{bad:#}  {}{only}\n", first.name));
        for line in first.message.as_deref().unwrap_or_default().lines() {
            text.push_str(&format!("        {line}\n"));
        }
    }
    text
}
