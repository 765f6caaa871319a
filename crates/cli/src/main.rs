//! The `ravelin` binary.
fn main() {}
