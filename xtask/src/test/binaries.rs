//! The tests of all crates: built by cargo, then each binary is a process of its own with a name, a time and
//! a limit.

use super::{Context, Outcome, cargo, deadline, execute, packages};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long one binary may take. The slowest takes a fifth of this on two cores.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// A test binary.
#[derive(Debug, PartialEq)]
struct Binary {
    /// Its crate and its target, as `cli live_router`.
    name: String,
    file: PathBuf,
    /// Where cargo runs it: the folder of its crate.
    folder: PathBuf,
}

/// Builds and runs unit, integration and doc tests.
pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let binaries = build(context)?;
    println!("{} test binaries were built in {:.0} s", binaries.len(), begin.elapsed().as_secs_f64());
    let mut failed = Vec::new();
    for binary in &binaries {
        println!("--- {}", binary.name);
        let begin = Instant::now();
        let mut command = Command::new(&binary.file);
        command.arg("--quiet").current_dir(&binary.folder).env("PATH", packages::search_path(context));
        let ended = deadline::run(&mut command, LONGEST);
        let word = match ended {
            Ok(status) if status.success() => "passed".to_owned(),
            Ok(status) => format!("FAILED: {status}"),
            Err(error) => format!("FAILED: {error:#}"),
        };
        println!("--- {}: {word} in {:.1} s", binary.name, begin.elapsed().as_secs_f64());
        if word != "passed" {
            failed.push(binary.name.as_str());
        }
    }
    println!("--- doc tests");
    let mut doc = cargo(context, &["test", "--doc", "--workspace", "--locked", "--no-fail-fast", "--quiet"]);
    execute(doc.env("PATH", packages::search_path(context)))?;
    ensure!(failed.is_empty(), "{} of {} test binaries: {}", failed.len(), binaries.len(), failed.join(", "));
    Ok(Outcome::Passed)
}

/// Builds all test binaries.
fn build(context: &Context) -> anyhow::Result<Vec<Binary>> {
    let arguments = [
        "test",
        "--workspace",
        "--locked",
        "--no-run",
        "--quiet",
        "--message-format=json-render-diagnostics",
    ];
    let output = cargo(context, &arguments).stderr(Stdio::inherit()).output().context("cargo")?;
    if !output.status.success() {
        bail!("the tests do not build: cargo ended with {}", output.status);
    }
    let binaries: Vec<Binary> = String::from_utf8_lossy(&output.stdout).lines().filter_map(binary).collect();
    ensure!(!binaries.is_empty(), "cargo named no test binary");
    Ok(binaries)
}

/// The test binary of which a line of cargo's messages tells, if it does (The Cargo Book, External tools,
/// JSON messages).
fn binary(message: &str) -> Option<Binary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let file = message["executable"].as_str()?.into();
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let package = folder.file_name()?.to_string_lossy().into_owned();
    let name = format!("{package} {}", message["target"]["name"].as_str()?);
    Some(Binary { name, file, folder })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_binaries_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml","target":{"name":"run"},
            "profile":{"test":TEST},"executable":FILE}"#;
        let found = |test, file| binary(&message.replace("TEST", test).replace("FILE", file));
        let expected =
            Binary { name: "cli run".to_owned(), file: "/t/run-1".into(), folder: "/r/crates/cli".into() };
        assert_eq!(found("true", "\"/t/run-1\""), Some(expected));
        assert_eq!(found("false", "\"/t/run-1\""), None);
        assert_eq!(found("true", "null"), None);
        assert_eq!(binary("Compiling"), None);
    }
}
