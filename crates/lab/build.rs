//! Tells the lab which compiler and which commit it is built from, so that its reports can say so.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = said(&rustc, &["--version"]).unwrap_or_else(|| "an unknown compiler".to_owned());
    println!("cargo:rustc-env=LAB_COMPILER={version}");
    // Figures of debug builds mean nothing, and whoever develops need not compile the lab at each commit.
    if std::env::var("PROFILE").as_deref() != Ok("release") {
        return;
    }
    for path in ["../../.git/logs/HEAD", "../../Cargo.lock", "../../crates", "../../std", "../../programs"] {
        // A path that is not there would run this at every build.
        if std::path::Path::new(path).exists() {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    if let Some(commit) = said("git", &["rev-parse", "--short=12", "HEAD"]) {
        let changed = said("git", &["status", "--porcelain", "--untracked-files=no"]);
        let changed = if changed.is_some_and(|files| !files.is_empty()) { ", changed" } else { "" };
        println!("cargo:rustc-env=LAB_COMMIT={commit}{changed}");
    }
}

/// What a program says; none if it is not there or fails, as git does outside of a repository.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
