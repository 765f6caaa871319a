//! The tests of all crates: built by cargo, then each binary is a process of its own with a name, a time and
//! a limit.

use super::build::release_build;
use super::priority::Priority;
use super::{Context, Outcome, cargo, deadline, execute, packages};
use anyhow::{Context as _, bail, ensure};
use serde_json::Value;
use std::cmp::Reverse;
use std::fs::{self, File};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long one binary may take. The slowest takes a third of this on two cores.
const LONGEST: Duration = Duration::from_secs(15 * 60);

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
const MEASURING: &[&str] = &["cli lab_live", "ravelin-launch lab_trusted"];

/// The beginnings of names of binaries that run first, so that no core is idle at the end: they take longest.
const LONG: &[&str] = &["suite ", "lab "];

/// How many of the binaries that took longest the report names.
const LONGEST_NAMED: usize = 12;

/// How many lines of what a failed binary printed the report has: libtest prints the failures last.
const LINES_OF_FAILED: usize = 80;

/// A test binary.
#[derive(Debug, PartialEq)]
pub(super) struct Binary {
    /// Its crate and its target, as `cli live_router`, and whether it is that of a program.
    name: String,
    pub(super) file: PathBuf,
    /// Where cargo runs it: the folder of its crate.
    pub(super) folder: PathBuf,
}

impl Binary {
    fn waits(&self) -> bool {
        !self.measures() && WAITING.iter().any(|waiting| self.name.starts_with(waiting))
    }

    fn measures(&self) -> bool {
        MEASURING.iter().any(|measuring| self.name.starts_with(measuring))
    }
}

/// Builds and runs unit, integration and doc tests. Those that wait for the clock leave most of the time of
/// the processors over. All others use it, as many side by side as there are cores, and behind them the build
/// of the step `release`, if that was chosen, too. At the end come those that measure, and those that wait
/// for the clock and failed run once more: the report names them even if they pass then.
pub(super) fn run(context: &Context) -> anyhow::Result<Outcome> {
    let begin = Instant::now();
    let binaries = build(context, &["--workspace"])?;
    // The core once more, alone: built with all other crates, as the other programs that tests start, it has
    // their features, and it is to be the one that users have.
    execute(&mut cargo(context, &["build", "--locked", "--quiet", "--package", "ravelin-core"]))?;
    println!("{} test binaries were built in {:.0} s", binaries.len(), begin.elapsed().as_secs_f64());
    let (measuring, others): (Vec<_>, Vec<_>) = binaries.iter().partition(|binary| binary.measures());
    let (waiting, mut others): (Vec<_>, Vec<_>) = others.into_iter().partition(|binary| binary.waits());
    others.sort_by_key(|binary| !LONG.iter().any(|long| binary.name.starts_with(long)));
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let mut ran = thread::scope(|scope| {
        let beside = scope.spawn(|| {
            let ran = side_by_side(context, &others, cores, Priority::Low);
            if context.builds_release && ran.iter().all(|run| run.failure.is_none()) {
                // The step `release` tells if it cannot be built.
                let _ = execute(&mut Priority::Low.of(release_build(context)));
            }
            ran
        });
        let mut ran = side_by_side(context, &waiting, 1, Priority::Usual);
        ran.extend(beside.join().unwrap_or_else(|panic| resume_unwind(panic)));
        ran
    });
    ran.extend(side_by_side(context, &measuring, 1, Priority::Usual));
    let may_pass_alone = |name: &str| ran.iter().any(|run| run.name == name && run.may_pass_alone);
    let again: Vec<_> = waiting.into_iter().filter(|binary| may_pass_alone(&binary.name)).collect();
    let again = side_by_side(context, &again, 1, Priority::Usual);
    println!("--- doc tests");
    let mut doc = cargo(context, &["test", "--doc", "--workspace", "--locked", "--no-fail-fast", "--quiet"]);
    let documented = execute(doc.env("PATH", packages::search_path(context)));
    match (judged(ran, &again), documented) {
        (Err(report), _) => bail!("{report}"),
        (Ok(report), Err(error)) => bail!("doc tests: {error:#}; {report}"),
        (Ok(report), Ok(_)) => Ok(Outcome::Remarked(report)),
    }
}

/// What is reported of all binaries, of which some ran once more alone; an error if one failed and did not
/// pass then.
fn judged(ran: Vec<Run>, again: &[Run]) -> Result<String, String> {
    let (count, mut report) = (ran.len(), format!("longest: {}", longest(&ran)));
    let failures = ran.into_iter().filter(|run| run.failure.is_some());
    let passed = |run: &Run| again.iter().any(|other| other.name == run.name && other.failure.is_none());
    let (disturbed, failures): (Vec<Run>, Vec<Run>) = failures.partition(passed);
    if !disturbed.is_empty() {
        report += &format!("; failed beside others and passed alone: {}", told(&disturbed));
    }
    if failures.is_empty() {
        return Ok(report);
    }
    Err(format!("{} of {count} test binaries: {}\n{report}", failures.len(), told(&failures)))
}

/// The names of binaries that failed in a line, and behind it the end of what each printed.
fn told(failures: &[Run]) -> String {
    let names: Vec<&str> = failures.iter().map(|run| run.name).collect();
    let mut text = names.join(", ");
    for run in failures {
        let failure = run.failure.as_deref().unwrap_or_default();
        let lines: Vec<&str> = failure.lines().collect();
        let last = &lines[lines.len().saturating_sub(LINES_OF_FAILED)..];
        text += &format!("\n--- the last that {} printed:\n{}", run.name, last.join("\n"));
    }
    text
}

/// The binaries that took longest, with their seconds.
fn longest(ran: &[Run]) -> String {
    let mut ran: Vec<&Run> = ran.iter().collect();
    ran.sort_by_key(|run| Reverse(run.time));
    let named = |run: &&Run| format!("{} {:.0} s", run.name, run.time.as_secs_f64());
    ran.iter().take(LONGEST_NAMED).map(named).collect::<Vec<_>>().join(", ")
}

/// How a test binary ran.
#[derive(Debug)]
struct Run<'a> {
    /// As of [`Binary`].
    name: &'a str,
    time: Duration,
    /// What it printed, and how it ended, if it failed.
    failure: Option<String>,
    /// Whether it failed within its time.
    may_pass_alone: bool,
}

/// Runs binaries, at most `slots` at a time, and shows what each printed when it has ended.
fn side_by_side<'a>(
    context: &Context,
    binaries: &[&'a Binary],
    slots: usize,
    priority: Priority,
) -> Vec<Run<'a>> {
    let next = AtomicUsize::new(0);
    let ran = Mutex::new(Vec::new());
    let work = || {
        while let Some(binary) = binaries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let begin = Instant::now();
            let mut printed = Vec::new();
            let ended = run_one(context, binary, priority, &mut printed);
            let may_pass_alone = ended.as_ref().is_ok_and(|status| !status.success());
            let failed = match ended {
                Ok(status) if status.success() => None,
                Ok(status) => Some(format!("FAILED: {status}")),
                Err(error) => Some(format!("FAILED: {error:#}")),
            };
            let (time, printed) = (begin.elapsed(), String::from_utf8_lossy(&printed));
            let (word, seconds) = (failed.as_deref().unwrap_or("passed"), time.as_secs_f64());
            // In one piece, since other binaries end meanwhile. Of one that passed, how many tests it has.
            let shown = if failed.is_none() { last_line(&printed) } else { printed.trim() };
            println!("--- {}: {word} in {seconds:.1} s\n{shown}", binary.name);
            let failure = failed.map(|failed| format!("{}\n{failed}", printed.trim()));
            let run = Run { name: &binary.name, time, failure, may_pass_alone };
            ran.lock().unwrap_or_else(PoisonError::into_inner).push(run);
        }
    };
    thread::scope(|scope| {
        for _ in 0..slots {
            scope.spawn(work);
        }
    });
    ran.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn last_line(printed: &str) -> &str {
    printed.trim_end().lines().last().unwrap_or_default()
}

/// Runs a binary, and appends to `printed` what it printed.
fn run_one(
    context: &Context,
    binary: &Binary,
    priority: Priority,
    printed: &mut Vec<u8>,
) -> anyhow::Result<ExitStatus> {
    let path = super::printed(context, &binary.name)?;
    let file = File::create(&path)?;
    let mut command = Command::new(&binary.file);
    command.current_dir(&binary.folder).env("PATH", packages::search_path(context));
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
    let kind = if message["target"]["kind"][0] == "bin" { " program" } else { "" };
    let name = format!("{package} {}{kind}", message["target"]["name"].as_str()?);
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
        let binaries: Vec<&Binary> = binaries.iter().collect();
        for priority in [Priority::Usual, Priority::Low] {
            let mut ran = side_by_side(&context, &binaries, 2, priority);
            assert_eq!(ran.len(), binaries.len());
            ran.retain(|run| run.failure.is_some());
            ran.sort_unstable_by_key(|run| run.name);
            let text = told(&ran);
            assert_eq!(text.lines().next(), Some("a bad, a missing"));
            assert!(text.contains("a bad printed:\n") && text.contains("FAILED: exit status: 1"), "{text}");
        }
        fs::remove_dir_all(target).expect("it holds what was printed");
    }

    fn run<'a>(name: &'a str, seconds: u64, failure: Option<&str>) -> Run<'a> {
        let (time, may_pass_alone) = (Duration::from_secs(seconds), failure.is_some());
        Run { name, time, failure: failure.map(str::to_owned), may_pass_alone }
    }

    #[test]
    fn the_report_has_the_end_of_what_failed_and_the_longest_first() {
        let printed: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
        let text = told(&[run("a bad", 1, Some(&printed.join("\n")))]);
        assert!(text.ends_with("line 999") && !text.contains("line 919\n"), "{text}");
        assert_eq!(longest(&[run("a bad", 1, None), run("a slow", 9, None)]), "a slow 9 s, a bad 1 s");
    }

    #[test]
    fn what_passes_alone_is_reported_and_what_fails_twice_fails() {
        let ran =
            || vec![run("a good", 0, None), run("a bad", 0, Some("why")), run("a worse", 0, Some("that"))];
        assert_eq!(judged(vec![run("a good", 0, None)], &[]), Ok("longest: a good 0 s".to_owned()));
        let report = judged(ran(), &[run("a bad", 0, None), run("a worse", 0, None)]).expect("both pass");
        assert!(report.contains("passed alone: a bad, a worse\n") && report.contains("that"), "{report}");
        let report = judged(ran(), &[run("a bad", 0, None), run("a worse", 0, Some("that"))]);
        let report = report.expect_err("one fails twice");
        assert!(report.starts_with("1 of 3 test binaries: a worse\n"), "{report}");
        assert!(report.contains("passed alone: a bad\n"), "{report}");
        assert!(judged(ran(), &[run("a bad", 0, None)]).is_err(), "one did not run again");
    }

    #[test]
    fn binaries_that_wait_for_the_clock_or_measure_are_known_by_their_names() {
        assert!(named("cli live_router", "/t").waits() && named("ports ports", "/t").waits());
        assert!(!named("cli run", "/t").waits() && !named("suite router", "/t").waits());
        assert!(!named("ravelin-launch lab_trusted", "/t").waits());
        assert!(named("cli lab_live", "/t").measures() && !named("cli live_router", "/t").measures());
    }

    #[test]
    fn test_binaries_are_found_among_messages() {
        let message = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/cli/Cargo.toml","target":{"name":"run","kind":["test"]},
            "profile":{"test":TEST},"executable":FILE}"#;
        let found = |test, file| binary(&message.replace("TEST", test).replace("FILE", file));
        let expected =
            Binary { name: "cli run".to_owned(), file: "/t/run-1".into(), folder: "/r/crates/cli".into() };
        assert_eq!(found("true", "\"/t/run-1\""), Some(expected));
        let program = message.replace("[\"test\"]", "[\"bin\"]").replace("TEST", "true");
        let program = binary(&program.replace("FILE", "\"/t/run-2\"")).expect("it is one");
        assert_eq!(program.name, "cli run program");
        assert_eq!(found("false", "\"/t/run-1\""), None);
        assert_eq!(found("true", "null"), None);
        assert_eq!(binary("Compiling"), None);
    }
}
