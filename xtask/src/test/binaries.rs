//! The tests of all crates: built by cargo, then each binary is a process of its own with a name, a time and
//! a limit.

use super::{Context, Outcome, cargo, deadline, execute, packages};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one binary may take. The slowest takes a fifth of this on two cores.
const LONGEST: Duration = Duration::from_secs(20 * 60);

/// The beginnings of names of binaries that run alone: they send packets in real time, or wait for other
/// threads with a limit.
const ALONE: &[&str] = &[
    "cli lab_live",
    "cli live",
    "engine ",
    "gateway ",
    "gpu ",
    "import kernel",
    "ports ",
    "ravelin-launch ",
    "redteam live",
    "suite cuda",
    "suite holding",
    "suite persistent",
];

/// The beginnings of names of binaries that run first, so that no core is idle at the end: they take longest.
const LONG: &[&str] = &["suite ", "lab "];

/// A test binary.
#[derive(Debug, PartialEq)]
pub(super) struct Binary {
    /// Its crate and its target, as `cli live_router`.
    name: String,
    pub(super) file: PathBuf,
    /// Where cargo runs it: the folder of its crate.
    pub(super) folder: PathBuf,
}

impl Binary {
    fn runs_alone(&self) -> bool {
        ALONE.iter().any(|alone| self.name.starts_with(alone))
    }
}

/// Builds and runs unit, integration and doc tests: as many binaries side by side as there are cores, then
/// one after the other those that need the machine.
pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let binaries = build(context, &["--workspace"])?;
    // Programs that tests of other crates start are not built for these. The core comes last, alone: built
    // with all other crates, it has their features, and tests start the one that users have.
    for program in ["ravelin-front", "ravelin-vhost", "ravelin-core-native", "ravelin-core"] {
        execute(&mut cargo(context, &["build", "--locked", "--quiet", "--package", program]))?;
    }
    println!("{} test binaries were built in {:.0} s", binaries.len(), begin.elapsed().as_secs_f64());
    let count = binaries.len();
    let (alone, mut others): (Vec<Binary>, Vec<Binary>) = binaries.into_iter().partition(Binary::runs_alone);
    others.sort_by_key(|binary| !LONG.iter().any(|long| binary.name.starts_with(long)));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut failed = side_by_side(context, &others, cores);
    failed.extend(side_by_side(context, &alone, 1));
    println!("--- doc tests");
    let mut doc = cargo(context, &["test", "--doc", "--workspace", "--locked", "--no-fail-fast", "--quiet"]);
    execute(doc.env("PATH", packages::search_path(context)))?;
    ensure!(failed.is_empty(), "{} of {count} test binaries: {}", failed.len(), failed.join(", "));
    Ok(Outcome::Passed)
}

/// Runs binaries, at most `slots` at a time, and shows what each printed when it has ended. Returns the names
/// of those that failed.
fn side_by_side<'a>(context: &Context, binaries: &'a [Binary], slots: usize) -> Vec<&'a str> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(binary) = binaries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let mut printed = Vec::new();
            let word = match run_one(context, binary, &mut printed) {
                Ok(status) if status.success() => "passed".to_owned(),
                Ok(status) => format!("FAILED: {status}"),
                Err(error) => format!("FAILED: {error:#}"),
            };
            // Also keeps the output of one binary together.
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            println!("--- {}: {word} in {:.1} s", binary.name, begin.elapsed().as_secs_f64());
            println!("{}", String::from_utf8_lossy(&printed).trim());
            if word != "passed" {
                failed.push(binary.name.as_str());
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..slots {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a binary, and appends to `printed` what it printed.
fn run_one(context: &Context, binary: &Binary, printed: &mut Vec<u8>) -> anyhow::Result<ExitStatus> {
    let folder = context.target.join("printed");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.txt", binary.name.replace(' ', "-")));
    let file = File::create(&path)?;
    let mut command = Command::new(&binary.file);
    command.arg("--quiet").current_dir(&binary.folder).env("PATH", packages::search_path(context));
    let ended = deadline::run(command.stdout(file.try_clone()?).stderr(file), LONGEST);
    *printed = fs::read(&path)?;
    ended
}

/// Builds the test binaries that cargo chooses by these words.
pub(super) fn build(context: &Context, chosen: &[&str]) -> anyhow::Result<Vec<Binary>> {
    let arguments = ["test", "--locked", "--no-run", "--quiet", "--message-format=json-render-diagnostics"];
    let output = cargo(context, &[&arguments[..], chosen].concat())
        .stderr(Stdio::inherit())
        .output()
        .context("cargo")?;
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

    fn named(name: &str, file: &str) -> Binary {
        Binary { name: name.to_owned(), file: file.into(), folder: "/".into() }
    }

    #[test]
    fn what_fails_side_by_side_is_named() {
        let target = std::env::temp_dir().join(format!("ravelin-binaries-{}", std::process::id()));
        let context = Context { root: "/".into(), target: target.clone(), checkout: None };
        let binaries = [
            named("a good", "/bin/true"),
            named("a bad", "/bin/false"),
            named("a missing", "/no/such/file"),
            named("b good", "/bin/true"),
        ];
        let mut failed = side_by_side(&context, &binaries, 2);
        failed.sort_unstable();
        assert_eq!(failed, ["a bad", "a missing"]);
        fs::remove_dir_all(target).expect("it holds what was printed");
    }

    #[test]
    fn binaries_that_wait_for_the_clock_run_alone() {
        assert!(named("cli live_router", "/t").runs_alone() && named("ports ports", "/t").runs_alone());
        assert!(!named("cli run", "/t").runs_alone() && !named("suite router", "/t").runs_alone());
    }

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
