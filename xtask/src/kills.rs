//! `cargo xtask kills`: builds the programs of a gateway that is split, and has its live test kill processes
//! many times.

use crate::cargo::cargo;
use crate::trusted;
use anyhow::{Context as _, bail, ensure};
use std::path::Path;

/// Kills if nothing else is said.
const KILLS: &str = "10000";
const TEST: &str = "killed::whatever_is_killed_packets_follow_the_policy_before_or_the_new_one";

/// Runs it, and says whether all was as it must be.
///
/// # Errors
/// The arguments are not understood, or something cannot be built.
pub(crate) fn run(root: &Path, options: &[&str]) -> anyhow::Result<bool> {
    let kills = match *options {
        [] => KILLS,
        [kills] => kills,
        _ => bail!("it takes a number of kills"),
    };
    kills.parse::<u64>().context("the number of kills")?;
    let target = crate::test::target()?;
    let words = ["build", "--release", "--locked", "--quiet"];
    let others = ["cli", "ravelin-launch", "ravelin-front", "ravelin-tunnel", "ravelin-vhost"];
    let others = others.iter().flat_map(|name| ["--package", name]);
    let mut build = cargo(root, &words);
    let status = build.args(others).env("CARGO_TARGET_DIR", &target).status().context("cargo")?;
    ensure!(status.success(), "the gateway does not build: cargo ended with {status}");
    trusted::build(root, &target)?;
    let words = ["test", "--release", "--locked", "--quiet", "--package", "ravelin-launch"];
    let mut test = cargo(root, &words);
    test.args(["--test", "live_trusted", "--", "--exact", TEST, "--nocapture"]);
    test.env("CARGO_TARGET_DIR", &target).env("RAVELIN_KILLS", kills);
    Ok(test.status().context("cargo")?.success())
}
