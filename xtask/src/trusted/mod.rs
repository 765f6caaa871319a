//! `cargo xtask trusted` and `reproduce`, and the step `core` of the gate: what the program `ravelin-core`
//! consists of where it is built by itself, and that it holds nothing which it does without.
//!
//! Cargo gives a crate the features that any of the crates wants that are built together. So the core has no
//! more than it needs only where it is built alone, as here.

mod count;
mod linked;
mod reproduced;

pub(crate) use reproduced::reproduce;

use crate::cargo::cargo;
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The crate.
const CORE: &str = "ravelin-core";
/// The core of the second tier.
const NATIVE: &str = "ravelin-core-native";

/// What there is to be at most: own lines, crates, unsafe blocks. The step `core` holds the last two; why not
/// the first says decision 111.
const GOALS: [(&str, usize); 3] = [("lines", 20_000), ("crates", 30), ("unsafe", 60)];

/// How many of the largest files are listed.
const LISTED: usize = 12;

/// Builds the core alone for release into `target`; its file.
///
/// # Errors
/// It does not build.
pub(crate) fn build(root: &Path, target: &Path) -> anyhow::Result<PathBuf> {
    build_program(root, target, CORE)
}

fn build_program(root: &Path, target: &Path, program: &str) -> anyhow::Result<PathBuf> {
    let words = ["build", "--release", "--locked", "--quiet", "--package", program];
    let status = cargo(root, &words).env("CARGO_TARGET_DIR", target).status().context("cargo")?;
    ensure!(status.success(), "{program} does not build: cargo ended with {status}");
    Ok(target.join("release").join(program))
}

/// Looks whether the core names or holds a crate that it does without, or has more crates or unsafe blocks
/// than there are to be; returns what it found. `other` is a program that has such crates, by which the look
/// shows that it can see them.
///
/// # Errors
/// The core cannot be built, or the look does not see what is there.
pub(crate) fn check(root: &Path, target: &Path, other: &Path) -> anyhow::Result<Vec<String>> {
    let core = build(root, target)?;
    let crates = linked::crates(root, CORE)?;
    let mut found: Vec<String> =
        linked::forbidden(&crates).map(|name| format!("`{CORE}` depends on `{name}`")).collect();
    found.extend(above(totals(&own_files(root, target, CORE)?, crates.len())));
    let bytes = |file: &Path| std::fs::read(file).with_context(|| format!("cannot read {}", file.display()));
    let symbols = linked::symbols(&bytes(&core)?)
        .with_context(|| format!("{} has no symbols, so nobody can see what it holds", core.display()))?;
    found.extend(symbols.into_iter().map(|name| format!("{} holds code of `{name}`", core.display())));
    let others = linked::symbols(&bytes(other)?).unwrap_or_default();
    for name in linked::MUST_SEE {
        ensure!(
            others.iter().any(|other| other == name),
            "{} holds code of `{name}`, and the look at its symbols does not see it",
            other.display()
        );
    }
    Ok(found)
}

/// The files of ours that a program in `target` was compiled from.
fn own_files(root: &Path, target: &Path, program: &str) -> anyhow::Result<Vec<(String, count::Counted)>> {
    count::files(root, &target.join("release").join(format!("{program}.d")))
}

/// Lines, crates and unsafe blocks of a program of these files and so many crates.
fn totals(files: &[(String, count::Counted)], crates: usize) -> [usize; GOALS.len()] {
    let lines = files.iter().map(|(_, counted)| counted.lines).sum();
    let blocks = files.iter().map(|(_, counted)| counted.unsafe_blocks).sum();
    [lines, crates, blocks]
}

/// What of crates and unsafe blocks is above its goal.
fn above(totals: [usize; GOALS.len()]) -> impl Iterator<Item = String> {
    let held = GOALS.into_iter().zip(totals).filter(|((name, _), _)| *name != "lines");
    held.filter(|((_, most), total)| total > most).map(|((name, most), total)| {
        format!("`{CORE}` has more than it may, {name} {total} of {most}: `cargo xtask trusted` lists them")
    })
}

/// Prints what the core consists of, with `--native` the one that has machine code, with `--json` as JSON.
///
/// # Errors
/// An unknown option, or the core cannot be built.
pub(crate) fn print(root: &Path, target: &Path, options: &[&str]) -> anyhow::Result<bool> {
    let known = ["--json", "--native"];
    ensure!(
        options.iter().all(|option| known.contains(option)),
        "unknown option; there are --json and --native"
    );
    let program = if options.contains(&"--native") { NATIVE } else { CORE };
    build_program(root, target, program)?;
    let crates = linked::crates(root, program)?;
    let files = own_files(root, target, program)?;
    let totals = totals(&files, crates.len());
    let own = count::by_crate(&files);
    let [lines, _, blocks] = totals;
    if options.contains(&"--json") {
        let own = own.iter().map(
            |(name, counted)| json!({"crate": name, "lines": counted.lines, "unsafe": counted.unsafe_blocks}),
        );
        let own: Vec<_> = own.collect();
        let report = json!({
            "lines": lines, "crates": crates.len(), "unsafe": blocks, "own": own, "linked": crates,
            "goals": GOALS.iter().map(|(name, most)| ((*name).to_owned(), json!(most)))
                .collect::<serde_json::Map<_, _>>(),
        });
        println!("{report}");
        return Ok(true);
    }
    println!("{:<14} {:>7} {:>7}", "own crate", "lines", "unsafe");
    for (name, counted) in &own {
        println!("{name:<14} {:>7} {:>7}", counted.lines, counted.unsafe_blocks);
    }
    println!("\nlargest files");
    for (path, counted) in files.iter().take(LISTED) {
        println!("{:>7}  {path}", counted.lines);
    }
    println!("\ncrates of others: {}", others(&crates, &own).join(", "));
    println!();
    for ((name, most), total) in GOALS.iter().zip(totals) {
        match (program == NATIVE, total <= *most) {
            // The goals are those of the highest tier.
            (true, _) => println!("{name:<7} {total:>6}"),
            (false, true) => println!("{name:<7} {total:>6}  of {most} at most"),
            (false, false) => println!("{name:<7} {total:>6}  of {most} at most: over"),
        }
    }
    Ok(true)
}

/// The crates that are not ours.
fn others<'a>(crates: &'a [String], own: &[(String, count::Counted)]) -> Vec<&'a str> {
    let ours = |name: &&str| own.iter().any(|(own, _)| own == name);
    crates.iter().map(String::as_str).filter(|name| !ours(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_and_unsafe_blocks_above_their_goals_are_named_and_lines_are_not() {
        let [(_, lines), (_, crates), (_, blocks)] = GOALS;
        assert_eq!(above([lines + 1, crates, blocks]).next(), None);
        let named: Vec<_> = above([lines, crates + 1, blocks + 2]).collect();
        assert_eq!(
            named,
            [
                "`ravelin-core` has more than it may, crates 31 of 30: `cargo xtask trusted` lists them",
                "`ravelin-core` has more than it may, unsafe 62 of 60: `cargo xtask trusted` lists them"
            ]
        );
    }
}
