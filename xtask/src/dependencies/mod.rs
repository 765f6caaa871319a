//! Crates of others: that each comes from crates.io under a licence that lets anybody use the product, and a
//! bill of materials of a program.

mod bill;
mod licences;

use crate::cargo::{told, tree};
use anyhow::Context as _;
use serde::Deserialize;
use std::path::Path;

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
    let bill = bill::bill(&tree(root, package)?, &lock, &packages(root)?)?;
    println!("{}", serde_json::to_string_pretty(&bill)?);
    Ok(true)
}

fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    let told = told(root, &["metadata", "--format-version", "1", "--locked"])?;
    let metadata: Metadata = serde_json::from_slice(&told).context("what cargo tells")?;
    Ok(metadata.packages)
}
