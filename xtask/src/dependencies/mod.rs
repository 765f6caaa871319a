//! Crates of others: that each comes from crates.io under a licence that lets anybody use the product, and a
//! bill of materials of a program.

mod bill;
mod licences;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What cargo tells of all crates that `Cargo.lock` names.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// A crate, as cargo tells of it.
#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    /// An expression of SPDX.
    license: Option<String>,
    /// Where it comes from; nothing if it is of this repository.
    source: Option<String>,
}

/// Looks where all crates come from and what their licences are; returns what is wrong.
///
/// # Errors
/// Cargo cannot tell.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    Ok(licences::check(&packages(root)?))
}

/// Prints the bill of materials of a crate's program, that of the core if none is named.
///
/// # Errors
/// Too many arguments, no such crate, or cargo cannot tell.
pub(crate) fn print(root: &Path, arguments: &[&str]) -> anyhow::Result<bool> {
    let package = match arguments {
        [] => "ravelin-core",
        [package] => package,
        _ => anyhow::bail!("`sbom` takes the name of one crate"),
    };
    let lock = root.join("Cargo.lock");
    let lock = std::fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    let words = [
        "tree",
        "--locked",
        "--package",
        package,
        "--edges",
        "normal,no-proc-macro",
        "--prefix",
        "depth",
        "--charset",
        "ascii",
    ];
    let tree = String::from_utf8(told(root, &words)?)?;
    println!("{}", serde_json::to_string_pretty(&bill::bill(&tree, &lock, &packages(root)?)?)?);
    Ok(true)
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let told = told(root, &["metadata", "--format-version", "1", "--locked"])?;
    let metadata: Metadata = serde_json::from_slice(&told).context("what cargo tells")?;
    Ok(metadata.packages)
}

fn told(root: &Path, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).args(words).current_dir(root).output().context("cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(output.stdout)
}
