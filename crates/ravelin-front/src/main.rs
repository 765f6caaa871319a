//! The program `ravelin-front`: it listens on a network, and passes the questions of clients on that it knows
//! by their keys. `ravelin-launch` starts it with one end of a channel as its standard input; the arguments
//! are the layers to do without, `--without LAYER` each.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod process;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    match process::run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::say(&format!("ravelin-front: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-front: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
