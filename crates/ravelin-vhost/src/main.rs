//! The program `ravelin-vhost`: it speaks with the monitor of a virtual machine about the machine's memory
//! and rings, and passes notifications on. `ravelin-launch` starts it with one end of a channel as its
//! standard input and the monitor's connection as its standard output; the arguments are the layers to do
//! without, `--without LAYER` each.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod process;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    match process::run(lexopt::Parser::from_env()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            process::say(&format!("ravelin-vhost: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-vhost: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
