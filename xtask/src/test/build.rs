//! Steps that cargo does.

use super::{Context, Outcome, cargo, execute};
use anyhow::ensure;
use std::process::Command;

pub(super) fn format(context: &Context) -> anyhow::Result<Outcome> {
    execute(&mut cargo(context, &["fmt", "--all", "--check"]))
}

pub(super) fn clippy(context: &Context) -> anyhow::Result<Outcome> {
    let lint = |what: &[&str]| {
        let words = [&["clippy", "--locked", "--quiet"], what, &["--", "-D", "warnings"]].concat();
        execute(&mut cargo(context, &words))
    };
    lint(&["--workspace", "--all-targets"])?;
    // Alone, the core leaves files of other crates out.
    lint(&["--package", "ravelin-core"])
}

pub(super) fn documentation(context: &Context) -> anyhow::Result<Outcome> {
    let arguments = ["doc", "--workspace", "--locked", "--no-deps", "--document-private-items", "--quiet"];
    execute(cargo(context, &arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

/// The command that builds `ravelin` and the confined processes but the core, and with them the searches of
/// later steps: by themselves they would have their libraries built once more, with fewer features.
pub(super) fn release_build(context: &Context) -> Command {
    cargo(
        context,
        &[
            "build",
            "--release",
            "--locked",
            "--package",
            "cli",
            "--package",
            "suite",
            "--package",
            "ravelin-launch",
            "--package",
            "ravelin-front",
            "--package",
            "ravelin-vhost",
            "--package",
            "ravelin-tunnel",
        ],
    )
}

pub(super) fn release(context: &Context) -> anyhow::Result<Outcome> {
    execute(&mut release_build(context))
}

/// Builds the core alone, since together with other crates it would have their features.
pub(super) fn core(context: &Context) -> anyhow::Result<Outcome> {
    release(context)?;
    let ravelin = context.target.join("release/ravelin");
    let found = crate::trusted::check(&context.root, &context.target, &ravelin)?;
    ensure!(found.is_empty(), "{}", found.join("; "));
    Ok(Outcome::Passed)
}

/// Judges bytecode, and tables, in the forms that a confined core has: with the features of the workspace,
/// tests have others.
pub(super) fn core_tables(context: &Context) -> anyhow::Result<Outcome> {
    for (package, features, tests) in [
        ("exec", "reference", &["agree", "batched_lookup", "contract"][..]),
        ("tables", "reference,generate", &["patterns", "prefixes"]),
    ] {
        let words = ["test", "--locked", "--quiet", "--package", package];
        let mut test = cargo(context, &words);
        test.args(["--no-default-features", "--features", features]);
        tests.iter().for_each(|name| {
            test.args(["--test", name]);
        });
        execute(&mut test)?;
    }
    Ok(Outcome::Passed)
}

/// Compiles without linking, so that neither a C++ compiler nor a nightly toolchain is needed.
pub(super) fn fuzz_targets(context: &Context) -> anyhow::Result<Outcome> {
    let target = context.target.join("fuzz");
    execute(
        cargo(context, &["check", "--quiet", "--locked", "--manifest-path", "fuzz/Cargo.toml"])
            .env("CARGO_TARGET_DIR", target)
            .env("CUSTOM_LIBFUZZER_PATH", "/nowhere/libfuzzer.a"),
    )
}
