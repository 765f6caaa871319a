//! `cargo xtask miri`: Miri interprets the tests of few steps over all unsafe code of the core that calls
//! nothing outside of Rust, and finds what has no defined behaviour. It needs a nightly toolchain with Miri.

use anyhow::Context as _;
use std::path::Path;
use std::process::Command;

/// The tables, in the form that a confined core has.
const TEST: [&str; 8] = [
    "test",
    "--package",
    "tables",
    "--no-default-features",
    "--features",
    "reference,generate",
    "--test",
    "few_steps",
];

/// Runs it. False, if a test fails or Miri finds something.
///
/// # Errors
/// There is no rustup.
pub(crate) fn run(root: &Path, target: &Path) -> anyhow::Result<bool> {
    let mut miri = Command::new("rustup");
    miri.args(["run", "nightly", "cargo", "miri"]).args(TEST).current_dir(root);
    miri.env("CARGO_TARGET_DIR", target.join("miri"));
    let status = miri.status().context("rustup; Miri comes by `rustup toolchain install nightly -c miri`")?;
    Ok(status.success())
}
