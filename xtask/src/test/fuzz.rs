//! `cargo xtask fuzz` and the step `fuzz`: build the fuzz targets with libFuzzer, by the pinned stable
//! toolchain, and run them for a bounded time each, side by side.

use super::{Context, Outcome, cargo, deadline, show};
use anyhow::{Context as _, bail, ensure};
use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File};
use std::hash::{Hash as _, Hasher as _};
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

/// How long a target runs if nothing else is said.
const SECONDS: u64 = 60;
/// What the step runs: the readers of what a confined core is handed. They are built without what only other
/// targets need.
const CORE: [&str; 6] =
    ["ir_read", "bundle_accept", "core_messages", "virtio_headers", "virtio_rings", "typed_changes"];
/// What `cargo xtask fuzz` runs beside these if nothing else is said: the readers of files that others write.
const READERS: [&str; 6] =
    ["policy_nft", "policy_npf", "policy_pf", "import_policies", "import_chains", "import_filters"];
/// How long one input may take, in seconds, before it counts as a fault.
const LONGEST_INPUT: u64 = 20;
/// How much memory a target may take, in MiB.
const MOST_MEMORY: u64 = 3_000;
/// For starting, reading the corpus, and the last input.
const BESIDE: Duration = Duration::from_secs(5 * 60);
/// The largest piece of a file that is a seed, in bytes: with whole files of 60 KiB, a minute has few inputs.
const LARGEST_SEED: usize = 2 << 10;

/// What the compiler is told so that libFuzzer sees which branches an input takes: the counters and tables of
/// the pass `sancov-module` of LLVM, which cargo-fuzz asks for as well. No sanitizer, as these need nightly.
const FLAGS: [&str; 9] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "--cfg",
    "fuzzing",
    "-Cdebug-assertions",
];
/// Where the programs of the build lie: flags for a named platform are not those of build scripts.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// The folders of the project with texts to begin from.
const SEEDS: [&str; 8] = [
    "programs",
    "programs/rules",
    "std",
    "crates/exec/examples",
    "crates/import/tests",
    "suite",
    "docs",
    "captures",
];

/// What to run.
#[derive(Debug, PartialEq)]
struct Wanted<'a> {
    seconds: u64,
    targets: Vec<&'a str>,
}

/// Runs it. False, if an input was found at which a target fails.
pub(super) fn run(context: &Context, options: &[&str]) -> anyhow::Result<bool> {
    let known = targets(&fs::read_to_string(context.root.join("fuzz/Cargo.toml"))?);
    fuzz(context, &wanted(options, &known)?)
}

/// The step: what a confined core reads.
pub(super) fn core(context: &Context) -> anyhow::Result<Outcome> {
    let compiler = Command::new("c++").arg("--version").stdout(Stdio::null()).status();
    if !compiler.is_ok_and(|status| status.success()) {
        return Ok(Outcome::Skipped("no C++ compiler (as root: apt-get install g++)".to_owned()));
    }
    let held = fuzz(context, &Wanted { seconds: SECONDS, targets: CORE.to_vec() })?;
    ensure!(held, "an input was found at which a target fails");
    Ok(Outcome::Passed)
}

/// Builds and runs targets, as many at a time as there are cores. False, if one fails.
fn fuzz(context: &Context, wanted: &Wanted<'_>) -> anyhow::Result<bool> {
    let built = build(context, &wanted.targets)?;
    let folder = context.target.join("fuzzing");
    let seeds = folder.join("seeds");
    write_seeds(&context.root, &seeds)?;
    let mut told = Vec::new();
    for together in wanted.targets.chunks(thread::available_parallelism().map_or(1, NonZero::get)) {
        let ended = thread::scope(|scope| {
            let run = |target: &&str| {
                let (binary, own) = (built.join(target), folder.join(target));
                let seeds = &seeds;
                scope.spawn(move || one(&binary, &own, seeds, wanted.seconds))
            };
            let running: Vec<_> = together.iter().map(run).collect();
            running.into_iter().map(|one| one.join().expect("it does not panic")).collect::<Vec<_>>()
        });
        for ended in ended {
            told.push(ended?);
        }
    }
    println!("{:<18} {:>12}  result", "target", "executions");
    for (target, (executions, crash)) in wanted.targets.iter().zip(&told) {
        let result = crash.as_ref().map_or("nothing found".to_owned(), |path| path.display().to_string());
        println!("{target:<18} {executions:>12}  {result}");
    }
    for (target, (_, crash)) in wanted.targets.iter().zip(&told) {
        if let Some(path) = crash {
            println!("{target} fails; again: {} {}", built.join(target).display(), path.display());
        }
    }
    Ok(told.iter().all(|(_, crash)| crash.is_none()))
}

/// The names of the targets that a manifest declares.
fn targets(manifest: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in manifest.split("[[bin]]").skip(1) {
        let name = part.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.extend(name.map(str::to_owned));
    }
    names
}

/// `[--seconds N] [TARGET]…`
fn wanted<'a>(options: &[&'a str], known: &[String]) -> anyhow::Result<Wanted<'a>> {
    let (seconds, targets) = match options {
        ["--seconds", seconds, targets @ ..] => {
            let number = seconds.parse::<u64>().ok().filter(|number| (1..=24 * 60 * 60).contains(number));
            (number.with_context(|| format!("`{seconds}` is no number of seconds up to a day"))?, targets)
        }
        ["--seconds"] => bail!("`--seconds` has no number"),
        targets => (SECONDS, targets),
    };
    if let Some(unknown) = targets.iter().find(|target| known.iter().all(|own| own != *target)) {
        bail!("there is no fuzz target `{unknown}`; there are {}", known.join(", "));
    }
    let targets = if targets.is_empty() { [&READERS[..], &CORE].concat() } else { targets.to_vec() };
    Ok(Wanted { seconds, targets })
}

/// Builds targets, and returns the folder in which they lie.
fn build(context: &Context, targets: &[&str]) -> anyhow::Result<PathBuf> {
    let folder = context.target.join("fuzz-run");
    let fixed =
        ["build", "--release", "--locked", "--manifest-path", "fuzz/Cargo.toml", "--target", PLATFORM];
    let mut build = cargo(context, &fixed);
    build.args(targets.iter().flat_map(|target| ["--bin", target]));
    if targets.iter().all(|target| CORE.contains(target)) {
        build.arg("--no-default-features");
    }
    build.env("CARGO_TARGET_DIR", &folder).env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    // libFuzzer is C++; the step `packages` installs g++.
    let shown = show(&build);
    let status = deadline::run(&mut build, deadline::LONGEST).with_context(|| format!("`{shown}`"))?;
    ensure!(
        status.success(),
        "`{shown}` ended with {status}; a C++ compiler is needed (apt-get install g++)"
    );
    Ok(folder.join(PLATFORM).join("release"))
}

/// Copies the lines of texts of the project into one folder, a piece a file, each under a name of its
/// contents. What an earlier run has copied goes.
fn write_seeds(root: &Path, seeds: &Path) -> anyhow::Result<()> {
    if seeds.exists() {
        fs::remove_dir_all(seeds)?;
    }
    fs::create_dir_all(seeds)?;
    for folder in SEEDS {
        let folder = root.join(folder);
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let entry = entry?;
            if !entry.metadata()?.is_file() {
                continue;
            }
            for piece in pieces(&fs::read(entry.path())?) {
                let mut hasher = DefaultHasher::new();
                piece.hash(&mut hasher);
                fs::write(seeds.join(format!("{:016x}", hasher.finish())), piece)?;
            }
        }
    }
    Ok(())
}

/// Whole lines of a text, as many together as are no more than [`LARGEST_SEED`]; longer lines are left out.
fn pieces(text: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces: Vec<Vec<u8>> = Vec::new();
    for line in text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.len() <= LARGEST_SEED) {
        match pieces.last_mut() {
            Some(piece) if piece.len() + line.len() <= LARGEST_SEED => piece.extend(line),
            _ => pieces.push(line.to_vec()),
        }
    }
    pieces
}

/// Runs a target: how many inputs it took, and the one at which it failed. What it finds of use stays in its
/// own folder, and is where the next run begins.
fn one(binary: &Path, own: &Path, seeds: &Path, seconds: u64) -> anyhow::Result<(u64, Option<PathBuf>)> {
    let (corpus, crashes, log) = (own.join("corpus"), own.join("crashes"), own.join("log"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&crashes)?;
    let file = File::create(&log)?;
    let mut run = Command::new(binary);
    run.arg(&corpus).arg(seeds).current_dir(own);
    run.arg(format!("-max_total_time={seconds}")).arg("-print_final_stats=1");
    run.arg(format!("-timeout={LONGEST_INPUT}")).arg(format!("-rss_limit_mb={MOST_MEMORY}"));
    run.arg(format!("-artifact_prefix={}/", crashes.display()));
    run.stdout(file.try_clone()?).stderr(file);
    let limit = Duration::from_secs(seconds) + BESIDE;
    let status = deadline::run(&mut run, limit).with_context(|| binary.display().to_string())?;
    let printed = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    found(status.success(), &printed)
        .with_context(|| format!("{} ended with {status}: {}", binary.display(), log.display()))
}

/// How many inputs a target took, and the one at which it failed, by how it ended and what it printed.
///
/// # Errors
/// It ended otherwise than it says, or took no input, so it has shown nothing.
fn found(success: bool, printed: &str) -> anyhow::Result<(u64, Option<PathBuf>)> {
    let (executions, crash) = (executions(printed), crash(printed));
    match (success, &crash) {
        (true, Some(path)) => bail!("it says that it failed at {}", path.display()),
        (false, None) => bail!("it names no input at which it failed"),
        (true, None) => ensure!(executions > 0, "it ran no input"),
        (false, Some(_)) => {}
    }
    Ok((executions, crash))
}

/// The input at which a target failed, by what libFuzzer prints.
fn crash(printed: &str) -> Option<PathBuf> {
    let line = printed.lines().find_map(|line| line.split_once("Test unit written to "));
    line.map(|(_, path)| PathBuf::from(path))
}

/// How many inputs a target took, by what libFuzzer prints at its end.
fn executions(printed: &str) -> u64 {
    let line = printed.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_choose_targets_that_exist() {
        let manifest = include_str!("../../../fuzz/Cargo.toml");
        let known = targets(manifest);
        let all = wanted(&[], &known).expect("nothing needs to be said");
        assert_eq!((all.seconds, &all.targets[..]), (SECONDS, &[&READERS[..], &CORE].concat()[..]));
        assert!(all.targets.iter().all(|name| known.iter().any(|own| own == name)));
        for part in manifest.split("[[bin]]").skip(1) {
            let alone = targets(&format!("[[bin]]{part}")).iter().any(|name| CORE.contains(&name.as_str()));
            assert_ne!(alone, part.contains("required-features"), "{part}");
        }
        let some = wanted(&["--seconds", "5", "policy_pf"], &known).expect("a target");
        assert_eq!(some, Wanted { seconds: 5, targets: vec!["policy_pf"] });
        for options in
            [&["policy"][..], &["--seconds"], &["--seconds", "0"], &["--seconds", "many"], &["--all"]]
        {
            assert!(wanted(options, &known).is_err(), "{options:?}");
        }
    }

    #[test]
    fn seeds_are_whole_lines_and_short() {
        let line = [vec![b'x'; LARGEST_SEED / 2 - 1], vec![b'\n']].concat();
        let long = [vec![b'y'; LARGEST_SEED], vec![b'\n']].concat();
        let found = pieces(&[&line[..], &line, &long, &line, b"end"].concat());
        assert_eq!(found, [[&line[..], &line].concat(), [&line[..], b"end"].concat()]);
        assert_eq!(pieces(b""), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn an_input_at_which_a_target_fails_is_found_in_what_it_prints() {
        let passed = "#2 DONE cov: 1\nstat::number_of_executed_units: 41\nstat::peak_rss_mb: 3\n";
        assert_eq!((executions(passed), crash(passed)), (41, None));
        let failed =
            "thread panicked\nartifact_prefix='/t/'; Test unit written to /t/crash-1f\nBase64: AA==\n";
        assert_eq!((executions(failed), crash(failed)), (0, Some(PathBuf::from("/t/crash-1f"))));
    }

    #[test]
    fn a_target_passes_only_if_it_ran_inputs_and_ended_well() {
        let count = "stat::number_of_executed_units: 7\n";
        let crash = "Test unit written to /t/crash-1\n";
        assert_eq!(found(true, count).expect("it passes"), (7, None));
        let at = Some(PathBuf::from("/t/crash-1"));
        assert_eq!(found(false, &format!("{crash}{count}")).expect("it is told"), (7, at.clone()));
        // One that is ended at once may say no count.
        assert_eq!(found(false, crash).expect("it is told"), (0, at));
        assert!(found(false, count).is_err(), "it failed and names no input");
        assert!(found(true, "").is_err(), "it ran nothing");
        assert!(found(true, &format!("{crash}{count}")).is_err(), "it says that it failed, and ended well");
    }
}
