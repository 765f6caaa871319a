//! The capture that ships with the project: made by our own generator from a fixed seed, so that anybody can make it again.

use anyhow::{Context, bail, ensure};
use std::path::Path;
use std::process::Command;

const CAPTURE: &str = "captures/demo.pcapng";
const SEED: &str = "1";

/// Makes the capture.
///
/// # Errors
/// The generator failed, or the file cannot be written.
pub(crate) fn write(root: &Path) -> anyhow::Result<()> {
    let path = root.join(CAPTURE);
    std::fs::create_dir_all(root.join("captures"))?;
    std::fs::write(&path, generate(root)?).with_context(|| format!("cannot write {}", path.display()))?;
    println!("wrote {CAPTURE}");
    Ok(())
}

/// Compares the capture that is there with a new one, byte by byte.
///
/// # Errors
/// They differ, or one of them cannot be had.
pub(crate) fn check(root: &Path) -> anyhow::Result<()> {
    let there = std::fs::read(root.join(CAPTURE)).with_context(|| format!("cannot read {CAPTURE}"))?;
    let made = generate(root)?;
    if there == made {
        return Ok(());
    }
    let at = there.iter().zip(&made).position(|(a, b)| a != b).unwrap_or(there.len().min(made.len()));
    bail!(
        "{CAPTURE} differs from what the generator makes, first at byte {at}: run `cargo xtask demo-capture`"
    )
}

fn generate(root: &Path) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args([
        "run",
        "--release",
        "--quiet",
        "--",
        "generate",
        "--preset",
        "demo",
        "--seed",
        SEED,
        "-o",
        "-",
    ]);
    let output = command.current_dir(root).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "the generator failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout)
}
