//! `cargo xtask test`: every check of the repository as a list of named steps.

mod binaries;
mod build;
mod checkout;
mod console;
mod deadline;
mod fuzz;
mod judge;
mod kernel;
mod packages;
mod priority;
mod program;
mod soak;

use anyhow::{Context as _, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How a step ended.
enum Outcome {
    Passed,
    /// The step passed, and the report has a remark about it: a line, or more of which the first says what
    /// the others show.
    Remarked(String),
    /// The step could not be done here, and why.
    Skipped(String),
}

/// What steps need to know.
struct Context {
    /// The root of the repository.
    root: PathBuf,
    /// Where cargo puts what it builds.
    target: PathBuf,
    /// What git said of the checkout before the first step; nothing where this is no checkout of git.
    checkout: Option<String>,
    /// Whether the step `release` comes later.
    builds_release: bool,
}

struct Step {
    name: &'static str,
    what: &'static str,
    run: fn(&Context) -> anyhow::Result<Outcome>,
}

const RELEASE: &str = "release";

/// The steps in order: cheap ones first, then those that need the release binary. A new check is a new line
/// here.
const STEPS: &[Step] = &[
    Step { name: "packages", what: "Debian packages that tests use", run: packages::install },
    Step { name: "format", what: "cargo fmt --all --check", run: build::format },
    Step { name: "clippy", what: "clippy, warnings are errors", run: build::clippy },
    Step { name: "tidy", what: "the rules of the house", run: tidy },
    Step {
        name: "dependencies",
        what: "crates of others come from crates.io under permissive licences",
        run: dependencies,
    },
    Step { name: "unit", what: "unit, integration and doc tests", run: binaries::run },
    Step {
        name: "documentation",
        what: "the API documentation builds without a warning",
        run: build::documentation,
    },
    Step { name: "fuzz-targets", what: "the fuzz targets compile", run: build::fuzz_targets },
    Step { name: "fuzz", what: "hostile bytes to the readers of the core, 60 s each", run: fuzz::core },
    Step { name: RELEASE, what: "cargo build --release of ravelin and of the searches", run: build::release },
    Step {
        name: "core-tables",
        what: "bytecode and tables in the forms of the core mean what the judge says",
        run: build::core_tables,
    },
    Step { name: "core", what: "the core alone holds nothing that it does without", run: build::core },
    Step {
        name: "programs",
        what: "in-source tests of every program, all back ends",
        run: program::in_source_tests,
    },
    Step { name: "cases", what: "every good case of the suite, all back ends", run: program::cases },
    Step { name: "stf", what: "every STF file, all back ends", run: program::stf_files },
    Step {
        name: "rav-format",
        what: "programs and the standard library are formatted",
        run: program::format,
    },
    Step { name: "agree", what: "random programs mean the same on all back ends", run: program::agree },
    Step {
        name: "agree-ir",
        what: "random IR that the verifier admits touches nothing else as machine code",
        run: program::agree_ir,
    },
    Step { name: "demo-capture", what: "the shipped capture is what its seed makes", run: demo_capture },
    Step { name: "judge", what: "another decoder sees what Ravelin decides and writes", run: judge::tshark },
    Step { name: "readme", what: "commands of README.md print what it shows", run: console::readme },
    Step { name: "checkout", what: "the steps left the checkout as it was", run: checkout::unchanged },
];

/// Names of the steps.
pub(crate) fn names() -> Vec<&'static str> {
    STEPS.iter().map(|step| step.name).collect()
}

/// Runs all steps, or those that `--only NAME` chooses. True if none failed.
///
/// # Errors
/// An unknown option or step.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    if options == ["--list"] {
        for step in STEPS {
            println!("{:<14} {}", step.name, step.what);
        }
        return Ok(true);
    }
    let chosen = choose(options)?;
    let builds_release = chosen.iter().any(|step| step.name == RELEASE);
    let context = Context { builds_release, ..context(root)? };
    let strict = std::env::var("CI").is_ok_and(|value| value == "true");
    let mut report = Vec::new();
    for step in chosen {
        println!("\n=== {}: {}", step.name, step.what);
        let start = Instant::now();
        let outcome = match (step.run)(&context) {
            Ok(Outcome::Skipped(why)) if strict => {
                Err(anyhow::anyhow!("skipped, which CI=true does not allow: {why}"))
            }
            outcome => outcome,
        };
        let seconds = start.elapsed();
        if let Err(error) = &outcome {
            println!("error in {}: {error:#}", step.name);
        }
        report.push((step.name, seconds, outcome));
    }
    Ok(summarise(&report))
}

/// The random mix of what happens around names, for an hour or for as many seconds as are said. True if
/// everything held.
///
/// # Errors
/// The arguments are wrong, or the test cannot be run.
pub(crate) fn soak(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    soak::run(&context(root)?, options)
}

/// Rules beside the Linux kernel, until five million packets are judged, or as many as are said. True if it
/// decided about all of them as was wanted.
///
/// # Errors
/// The arguments are wrong, or the tests cannot be run.
pub(crate) fn kernel(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    kernel::run(&context(root)?, options)
}

/// Fuzz targets by libFuzzer for a bounded time each. True if no input was found at which one fails.
///
/// # Errors
/// The arguments are wrong, or the targets cannot be built or run.
pub(crate) fn fuzz(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    fuzz::run(&context(root)?, options)
}

fn context(root: &Path) -> anyhow::Result<Context> {
    Ok(Context {
        root: root.to_owned(),
        target: target()?,
        checkout: checkout::status(root),
        builds_release: false,
    })
}

/// Prints once more how steps failed, and what is remarked, at the end, where it is found; then a line a step
/// and the closing line. True if none failed.
fn summarise(report: &[(&str, Duration, anyhow::Result<Outcome>)]) -> bool {
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (name, _, outcome) in report {
        match outcome {
            Err(error) => println!("\nerror in {name}: {error:#}"),
            Ok(Outcome::Remarked(remark)) if remark.contains('\n') => println!("\nof {name}: {remark}"),
            Ok(_) => {}
        }
    }
    println!();
    for (name, time, outcome) in report {
        let word = match outcome {
            Ok(Outcome::Passed) => {
                passed += 1;
                "passed".to_owned()
            }
            Ok(Outcome::Remarked(remark)) => {
                passed += 1;
                format!("passed; {}", first_line(remark))
            }
            Ok(Outcome::Skipped(why)) => {
                skipped += 1;
                format!("skipped: {why}")
            }
            Err(error) => {
                failed += 1;
                format!("FAILED: {}", first_line(&error.to_string()))
            }
        };
        println!("{name:<14} {:>7.1} s  {word}", time.as_secs_f64());
    }
    if skipped > 0 {
        println!("{skipped} skipped");
    }
    println!("{passed} passed, {failed} failed");
    failed == 0
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

fn choose(options: &[&str]) -> anyhow::Result<Vec<&'static Step>> {
    if options.is_empty() {
        return Ok(STEPS.iter().collect());
    }
    options
        .chunks(2)
        .map(|pair| match pair {
            ["--only", name] => STEPS
                .iter()
                .find(|step| step.name == *name)
                .with_context(|| format!("no step is called `{name}`; there are {}", names().join(", "))),
            _ => bail!("unknown option `{}`; use --only NAME or --list", pair[0]),
        })
        .collect()
}

fn tidy(context: &Context) -> anyhow::Result<Outcome> {
    let findings = crate::tidy::check(&context.root, &names())?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Ok(Outcome::Passed) } else { bail!("{} findings", findings.len()) }
}

fn dependencies(context: &Context) -> anyhow::Result<Outcome> {
    let findings = crate::dependencies::check(&context.root)?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() { Ok(Outcome::Passed) } else { bail!("{} crates", findings.len()) }
}

fn demo_capture(context: &Context) -> anyhow::Result<Outcome> {
    crate::demo_capture::check(&context.root)?;
    Ok(Outcome::Passed)
}

/// The file for what a program prints.
fn printed(context: &Context, program: &str) -> anyhow::Result<PathBuf> {
    let folder = context.target.join("printed");
    fs::create_dir_all(&folder)?;
    Ok(folder.join(format!("{}.txt", program.replace(' ', "-"))))
}

/// Runs a command with its output shown; any exit status but 0 is an error.
fn execute(command: &mut Command) -> anyhow::Result<Outcome> {
    let shown = show(command);
    let status = deadline::run(command, deadline::LONGEST).with_context(|| format!("`{shown}`"))?;
    if status.success() { Ok(Outcome::Passed) } else { bail!("`{shown}` ended with {status}") }
}

/// The command as one would type it.
fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// `cargo` with arguments, at the root.
fn cargo(context: &Context, arguments: &[&str]) -> Command {
    crate::cargo::cargo(&context.root, arguments)
}

/// Two folders above this program: it lies in `TARGET/debug`.
pub(crate) fn target() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where is this program?")?;
    own.ancestors().nth(2).map(Path::to_owned).context("this program lies in no target folder")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_names_are_unique() {
        let mut sorted = names();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), STEPS.len());
    }

    #[test]
    fn options_choose_steps_or_say_what_exists() {
        assert_eq!(choose(&[]).unwrap().len(), STEPS.len());
        let chosen = choose(&["--only", "tidy", "--only", "format"]).unwrap();
        assert_eq!(chosen.iter().map(|step| step.name).collect::<Vec<_>>(), ["tidy", "format"]);
        assert!(choose(&["--only", "tidi"]).err().unwrap().to_string().contains("clippy"));
        assert!(choose(&["--only"]).is_err());
        assert!(choose(&["tidy"]).is_err());
    }

    #[test]
    fn a_failure_fails_the_whole() {
        let time = Duration::ZERO;
        assert!(summarise(&[
            ("a", time, Ok(Outcome::Passed)),
            ("r", time, Ok(Outcome::Remarked("long".into()))),
            ("b", time, Ok(Outcome::Skipped("no".into())))
        ]));
        assert!(!summarise(&[("a", time, Ok(Outcome::Passed)), ("b", time, Err(anyhow::anyhow!("no")))]));
    }
}
