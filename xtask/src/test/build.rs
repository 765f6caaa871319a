//! Steps that cargo does.

use super::{Context, Outcome, cargo, execute};

pub(super) fn format(context: &Context) -> anyhow::Result<Outcome> {
    execute(&mut cargo(context, &["fmt", "--all", "--check"]))
}

pub(super) fn clippy(context: &Context) -> anyhow::Result<Outcome> {
    execute(&mut cargo(
        context,
        &["clippy", "--workspace", "--all-targets", "--locked", "--quiet", "--", "-D", "warnings"],
    ))
}

pub(super) fn documentation(context: &Context) -> anyhow::Result<Outcome> {
    let arguments = ["doc", "--workspace", "--locked", "--no-deps", "--document-private-items", "--quiet"];
    execute(cargo(context, &arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Builds `ravelin`, and with it the searches of later steps: by themselves they would have their libraries
/// built once more, with fewer features.
pub(super) fn release(context: &Context) -> anyhow::Result<Outcome> {
    execute(&mut cargo(
        context,
        &["build", "--release", "--locked", "--package", "cli", "--package", "suite"],
    ))
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
