//! The step that shows that the other steps changed nothing in the checkout.

use super::{Context, Outcome};
use anyhow::ensure;
use std::path::Path;
use std::process::Command;

/// What git says of the checkout: a line for each path that is not as committed, and how it differs. Nothing
/// where git cannot say it.
pub(super) fn status(root: &Path) -> Option<String> {
    let said = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    Some(said(&["status", "--porcelain"])? + &said(&["diff", "HEAD"])?)
}

/// The checkout is as it was before the first step.
pub(super) fn unchanged(context: &Context) -> anyhow::Result<Outcome> {
    let Some(before) = &context.checkout else {
        return Ok(Outcome::Skipped("this is no checkout of git".to_owned()));
    };
    compare(before, &status(&context.root).unwrap_or_default())?;
    Ok(Outcome::Passed)
}

fn compare(before: &str, after: &str) -> anyhow::Result<()> {
    ensure!(before == after, "the steps changed the checkout. Before:\n{before}After:\n{after}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_lock_file_is_named() {
        assert!(compare(" M README.md\n", " M README.md\n").is_ok());
        let error = compare("", " M fuzz/Cargo.lock\n").unwrap_err().to_string();
        assert!(error.contains("fuzz/Cargo.lock"), "{error}");
    }
}
