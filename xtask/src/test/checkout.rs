//! What git says of the checkout, and the step that shows that the other steps changed nothing in it.

use super::{Context, Outcome};
use anyhow::ensure;
use std::path::Path;
use std::process::Command;

/// What git says of the checkout: a line for each path that is not as committed, and how it differs. Nothing
/// where git cannot say it.
pub(super) fn status(root: &Path) -> Option<String> {
    Some(said(root, &["status", "--porcelain"])? + &said(root, &["diff", "HEAD"])?)
}

/// Whether everything is as committed but reports, one of which may be about to be written. False where git
/// cannot say it.
pub(super) fn is_clean(root: &Path) -> bool {
    said(root, &["status", "--porcelain", "--", ".", ":(exclude)docs/results"])
        .is_some_and(|changed| changed.is_empty())
}

fn said(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
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
    use std::fs;

    #[test]
    fn a_changed_lock_file_is_named() {
        assert!(compare(" M README.md\n", " M README.md\n").is_ok());
        let error = compare("", " M fuzz/Cargo.lock\n").unwrap_err().to_string();
        assert!(error.contains("fuzz/Cargo.lock"), "{error}");
    }

    #[test]
    fn a_checkout_with_another_change_than_a_report_is_not_clean() {
        let root = std::env::temp_dir().join(format!("ravelin-clean-{}", std::process::id()));
        let results = root.join("docs/results");
        fs::create_dir_all(&results).expect("made");
        let without_git = is_clean(&root);
        said(&root, &["init", "--quiet"]).expect("git is there");
        fs::write(results.join("kernel.json"), "{}").expect("written");
        let with_report = is_clean(&root);
        fs::write(root.join("docs/policy.md"), "").expect("written");
        let with_page = is_clean(&root);
        fs::remove_dir_all(&root).expect("is there");
        assert_eq!((without_git, with_report, with_page), (false, true, false));
    }
}
