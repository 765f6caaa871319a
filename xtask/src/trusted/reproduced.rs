//! `cargo xtask reproduce`: builds the core twice from nothing, in folders of different names, and compares
//! what comes out byte by byte. So everybody can see that a program is the one that its source makes.

use super::CORE;
use crate::cargo::cargo;
use anyhow::{Context as _, ensure};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the two copies of the source lie below cargo's folder: of different lengths, so that a path in the
/// program would show.
const COPIES: [&str; 2] = ["reproduced/one", "reproduced/another-one/below"];

/// Prints the hash of each build, and whether both are alike.
///
/// # Errors
/// A copy of the source cannot be made, or the core does not build.
pub(crate) fn reproduce(root: &Path, target: &Path) -> anyhow::Result<bool> {
    let mut built = Vec::new();
    for copy in COPIES {
        let folder = target.join(copy);
        if folder.exists() {
            fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
        }
        let cloned =
            Command::new("git").args(["clone", "--quiet", "--no-hardlinks"]).arg(root).arg(&folder).status();
        ensure!(cloned.context("git")?.success(), "the source cannot be copied to {}", folder.display());
        let program = build(&folder)?;
        let bytes = fs::read(&program).with_context(|| format!("cannot read {}", program.display()))?;
        println!("{} bytes, sha256 {:x}, in {}", bytes.len(), Sha256::digest(&bytes), program.display());
        built.push(bytes);
    }
    let differ = built[0].iter().zip(&built[1]).position(|(one, other)| one != other);
    let same = differ.is_none() && built[0].len() == built[1].len();
    match differ {
        _ if same => println!("both are alike"),
        Some(place) => println!("they differ from byte {place} on"),
        None => println!("they differ in length"),
    }
    Ok(same)
}

/// Builds the core of a copy for release; its file. Paths of the machine are left out of the program.
fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    let target = folder.join("target");
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let home = home.context("neither CARGO_HOME nor HOME is set")?;
    // Words that cannot be in a path part the flags (cargo reference, CARGO_ENCODED_RUSTFLAGS).
    let map = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [map(folder, "/ravelin"), map(&home, "/cargo")].join("\u{1f}");
    let status = cargo(folder, &["build", "--release", "--locked", "--quiet", "--package", CORE])
        .env("CARGO_TARGET_DIR", &target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags)
        .env_remove("RUSTFLAGS")
        .status()
        .context("cargo")?;
    ensure!(status.success(), "the core does not build in {}: cargo ended with {status}", folder.display());
    Ok(target.join("release").join(CORE))
}
