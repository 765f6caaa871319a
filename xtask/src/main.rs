//! Repository tasks: `cargo xtask test` and `cargo xtask tidy`.
fn main() {}
