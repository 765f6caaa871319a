//! The tests of all crates: built by cargo, then each binary is a process of its own with a name, a time and
//! a limit.

use super::build::release_build;
use super::priority::Priority;
use super::{Context, Outcome, cargo, deadline, execute, packages};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::fs::{self, File};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one binary may take. The slowest takes an eighth of this on two cores.
const LONGEST: Duration = Duration::from_secs(40 * 60);

/// The beginnings of names of binaries that wait for the clock: they send packets in real time, or wait for
/// other threads with a limit. They run one after the other, and come first wherever they want a processor.
const WAITING: &[&str] = &[
    "cli live",
    "client ",
    "confinement ",
    "container ",
    "engine ",
    "gateway ",
    "gpu ",
    "import kernel",
    "ports ",
    "ravelin-launch ",
    "ravelin-vhost ",
    "redteam live",
    "rig ",
    "suite cuda",
    "suite holding",
    "suite nftables",
    "suite persistent",
    "xtask ",
];

/// The beginnings of names of binaries that measure, and run alone at the end: a figure needs what it
/// measures to have a processor at once.
const MEASURING: &[&str] = &["cli lab_live"];

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
    fn waits(&self) -> bool {
        WAITING.iter().any(|waiting| self.name.starts_with(waiting))
    }

    fn measures(&self) -> bool {
        MEASURING.iter().any(|measuring| self.name.starts_with(measuring))
    }
}

/// Builds and runs unit, integration and doc tests. Those that wait for the clock leave most of the time of
/// the processors over. All others use it, as many side by side as there are cores, and behind them the build
/// of the step `release`, if that was chosen, too. At the end come those that measure.
pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let binaries = build(context, &["--workspace"])?;
    // The core once more, alone: built with all other crates, as the other programs that tests start, it has
    // their features, and it is to be the one that users have.
    execute(&mut cargo(context, &["build", "--locked", "--quiet", "--package", "ravelin-core"]))?;
    println!("{} test binaries were built in {:.0} s", binaries.len(), begin.elapsed().as_secs_f64());
    let count = binaries.len();
    let (measuring, others): (Vec<Binary>, Vec<Binary>) = binaries.into_iter().partition(Binary::measures);
    let (waiting, mut others): (Vec<Binary>, Vec<Binary>) = others.into_iter().partition(Binary::waits);
    others.sort_by_key(|binary| !LONG.iter().any(|long| binary.name.starts_with(long)));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut failed = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let failed = side_by_side(context, &others, cores, Priority::Low);
            if context.builds_release && failed.is_empty() {
                // The step `release` tells if it cannot be built.
                let _ = execute(&mut Priority::Low.of(release_build(context)));
            }
            failed
        });
        let mut failed = side_by_side(context, &waiting, 1, Priority::Usual);
        failed.extend(beside.join().unwrap_or_else(|panic| resume_unwind(panic)));
        failed
    });
    failed.extend(side_by_side(context, &measuring, 1, Priority::Usual));
    println!("--- doc tests");
    let mut doc = cargo(context, &["test", "--doc", "--workspace", "--locked", "--no-fail-fast", "--quiet"]);
    execute(doc.env("PATH", packages::search_path(context)))?;
    ensure!(failed.is_empty(), "{} of {count} test binaries: {}", failed.len(), failed.join(", "));
    Ok(Outcome::Passed)
}

/// Runs binaries, at most `slots` at a time, and shows what each printed when it has ended. Returns the names
/// of those that failed.
fn side_by_side<'a>(
    context: &Context,
    binaries: &'a [Binary],
    slots: usize,
    priority: Priority,
) -> Vec<&'a str> {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    let work = || {
        while let Some(binary) = binaries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let mut printed = Vec::new();
            let word = match run_one(context, binary, priority, &mut printed) {
                Ok(status) if status.success() => "passed".to_owned(),
                Ok(status) => format!("FAILED: {status}"),
                Err(error) => format!("FAILED: {error:#}"),
            };
            let (seconds, printed) = (begin.elapsed().as_secs_f64(), String::from_utf8_lossy(&printed));
            // In one piece, since other binaries end meanwhile.
            println!("--- {}: {word} in {seconds:.1} s\n{}", binary.name, printed.trim());
            if word != "passed" {
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(binary.name.as_str());
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
fn run_one(
    context: &Context,
    binary: &Binary,
    priority: Priority,
    printed: &mut Vec<u8>,
) -> anyhow::Result<ExitStatus> {
    let folder = context.target.join("printed");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.txt", binary.name.replace(' ', "-")));
    let file = File::create(&path)?;
    let mut command = Command::new(&binary.file);
    command.arg("--quiet").current_dir(&binary.folder).env("PATH", packages::search_path(context));
    let mut command = priority.of(command);
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
        let context =
            Context { root: "/".into(), target: target.clone(), checkout: None, builds_release: false };
        let binaries = [
            named("a good", "/bin/true"),
            named("a bad", "/bin/false"),
            named("a missing", "/no/such/file"),
            named("b good", "/bin/true"),
        ];
        for priority in [Priority::Usual, Priority::Low] {
            let mut failed = side_by_side(&context, &binaries, 2, priority);
            failed.sort_unstable();
            assert_eq!(failed, ["a bad", "a missing"]);
        }
        fs::remove_dir_all(target).expect("it holds what was printed");
    }

    #[test]
    fn binaries_that_wait_for_the_clock_or_measure_are_known_by_their_names() {
        assert!(named("cli live_router", "/t").waits() && named("ports ports", "/t").waits());
        assert!(!named("cli run", "/t").waits() && !named("suite router", "/t").waits());
        assert!(named("cli lab_live", "/t").measures() && !named("cli live_router", "/t").measures());
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
