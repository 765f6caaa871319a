//! Steps that run programs with the release binary.

use super::{Context, Outcome, build, execute, printed};
use anyhow::{Context as _, anyhow, ensure};
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `ravelin`, as the step `release` made it, at the root.
pub(super) fn ravelin(context: &Context) -> Command {
    released(context, "ravelin")
}

fn released(context: &Context, program: &str) -> Command {
    let mut command = Command::new(context.target.join("release").join(program));
    command.current_dir(&context.root);
    command
}

/// `ravelin test` on every program for users, with all back ends.
pub(super) fn in_source_tests(context: &Context) -> anyhow::Result<Outcome> {
    test(context, &files(&context.root.join("programs"), "rav")?)
}

/// `ravelin test` on every good case of the suite, with all back ends; modules are imported by cases and
/// hold none.
pub(super) fn cases(context: &Context) -> anyhow::Result<Outcome> {
    let mut cases = files(&context.root.join("suite/good"), "rav")?;
    cases.retain(|path| !path.components().any(|part| part.as_os_str() == "modules"));
    test(context, &cases)
}

/// `ravelin test` on every STF file of the suite, with all back ends. The line `# program: PATH` names the
/// program, from the root.
pub(super) fn stf_files(context: &Context) -> anyhow::Result<Outcome> {
    let cases = files(&context.root.join("suite/stf"), "stf")?;
    ensure!(!cases.is_empty(), "suite/stf holds no STF file");
    for case in cases {
        let text =
            std::fs::read_to_string(&case).with_context(|| format!("cannot read {}", case.display()))?;
        let program = text.lines().find_map(|line| line.strip_prefix("# program: "));
        let program = program.with_context(|| format!("{} has no line `# program: PATH`", case.display()))?;
        execute(
            ravelin(context).args(["test", "--back-end", "all", "--program", program.trim()]).arg(&case),
        )?;
    }
    Ok(Outcome::Passed)
}

/// `ravelin fmt --check` on everything written in the language that is meant to be read.
pub(super) fn format(context: &Context) -> anyhow::Result<Outcome> {
    let mut all = files(&context.root.join("programs"), "rav")?;
    all.extend(files(&context.root.join("std"), "rav")?);
    execute(ravelin(context).args(["fmt", "--check"]).args(all))
}

/// Random programs and packets on all back ends, with a seed that is printed.
pub(super) fn agree(context: &Context) -> anyhow::Result<Outcome> {
    search(context, "agree")
}

/// Random IR on all back ends, half of it made from scratch, in memory that ends where what is in it ends;
/// seeds as above.
pub(super) fn agree_ir(context: &Context) -> anyhow::Result<Outcome> {
    search(context, "agree_ir")
}

/// How many programs a search of the gate tries, and how many seconds it has for them at most.
const SEARCH: [&str; 4] = ["--programs", "420", "--seconds", "300"];

/// The seed is a part of the name that git gives to all files of the commit together. Whoever repeats the
/// checks of a commit searches where they searched, and each change searches elsewhere. Without git the seed
/// is random.
fn search(context: &Context, program: &str) -> anyhow::Result<Outcome> {
    build::release(context)?;
    let seed = seed(context).unwrap_or_else(|| RandomState::new().hash_one(std::process::id())).to_string();
    println!("seed {seed}");
    // One of the searches tells each seed before it is tried: only the last is worth a line in a log.
    let path = printed(context, program)?;
    let mut command = released(context, program);
    let ended = execute(command.args(SEARCH).args(["--seed", &seed]).stderr(File::create(&path)?));
    ended.map_err(|error| {
        let told = fs::read(&path).unwrap_or_default();
        let told = String::from_utf8_lossy(&told);
        anyhow!("{error:#}\n{}", told.trim_end().rsplit('\r').next().unwrap_or_default())
    })
}

fn seed(context: &Context) -> Option<u64> {
    let mut git = Command::new("git");
    let output = git.args(["rev-parse", "HEAD^{tree}"]).current_dir(&context.root).output().ok()?;
    u64::from_str_radix(std::str::from_utf8(&output.stdout).ok()?.get(..16)?, 16).ok()
}

fn test(context: &Context, files: &[PathBuf]) -> anyhow::Result<Outcome> {
    ensure!(!files.is_empty(), "there are no files to test");
    execute(ravelin(context).args(["test", "--back-end", "all"]).args(files))
}

/// Files with this ending in a folder and the folders in it, sorted.
fn files(folder: &Path, ending: &str) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(files(&path, ending)?);
        } else if path.extension().is_some_and(|own| own == ending) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
