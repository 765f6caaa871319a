//! The program `ravelin-core`: `ravelin-launch` starts it with one end of a channel as its standard input.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    ravelin_core::main(exec::BackendKind::Bytecode)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-core: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
