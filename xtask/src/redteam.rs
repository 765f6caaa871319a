//! `cargo xtask redteam`: builds the programs of a gateway that is split, and runs every attack against it.

use crate::cargo::cargo;
use crate::trusted;
use anyhow::{Context as _, bail, ensure};
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
    let target = crate::test::target()?;
    // The core that is attacked is the one that users have: built last, and alone.
    let words = ["build", "--release", "--locked", "--quiet"];
    let others = ["cli", "ravelin-launch", "ravelin-vhost", "redteam"].map(|name| ["--package", name]);
    let mut build = cargo(root, &words);
    let status =
        build.args(others.as_flattened()).env("CARGO_TARGET_DIR", &target).status().context("cargo")?;
    ensure!(status.success(), "the gateway and its attackers do not build: cargo ended with {status}");
    trusted::build(root, &target)?;
    let mut attacks = Command::new(target.join("release/redteam"));
    let guest = target.join("debian");
    attacks.args(["run", frames]);
    if guest.join("boot").exists() {
        attacks.arg("--guest").arg(guest);
    } else {
        eprintln!(
            "no virtual machine is attacked from: `cargo xtask test --only packages` fetches a Linux for it"
        );
    }
    attacks.args(json.then_some("--json")).current_dir(root);
    Ok(attacks.status().context("redteam")?.success())
}
