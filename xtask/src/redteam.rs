//! `cargo xtask redteam`: builds the programs of a gateway that is split, and runs every attack against it.

use anyhow::{Context as _, bail};
use std::path::Path;
use std::process::Command;

/// Frames of each attack if nothing else is said: of all attacks together more than 100,000,000.
const FRAMES: &str = "2000000";

/// Runs it, and says whether nothing came through.
///
/// # Errors
/// The arguments are not understood, or something cannot be built.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    let (frames, json) = match *options {
        [] => (FRAMES, false),
        ["--json"] => (FRAMES, true),
        [frames] => (frames, false),
        [frames, "--json"] | ["--json", frames] => (frames, true),
        _ => bail!("it takes a number of frames of each attack, and `--json`"),
    };
    frames.parse::<u64>().context("the number of frames of each attack")?;
    // The compiler is not linked into the core: features of one package must not reach another.
    for packages in [&["cli"][..], &["ravelin-core", "ravelin-launch"], &["redteam"]] {
        let mut build = Command::new("cargo");
        build.args(["build", "--release"]).current_dir(root);
        for package in packages {
            build.args(["--package", package]);
        }
        if !build.status()?.success() {
            bail!("{} cannot be built", packages.join(", "));
        }
    }
    let mut attacks = Command::new("cargo");
    attacks.args(["run", "--release", "--quiet", "--package", "redteam", "--", "run", frames]);
    attacks.args(json.then_some("--json")).current_dir(root);
    Ok(attacks.status()?.success())
}
