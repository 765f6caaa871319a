//! The program `ravelin-core-native`: the core of the second tier. It is `ravelin-core` with the compiler of
//! machine code, which it has make its one program before it locks itself in.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    ravelin_core::main(exec::BackendKind::Native)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-core-native: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
