//! The program `ravelin-tunnel`: it encrypts what a core sends to the peers of a tunnel, and decrypts what
//! comes from them. `ravelin-launch` starts it with one end of a channel as its standard input; the arguments
//! are the layers to do without, `--without LAYER` each.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
mod forward;
#[cfg(target_os = "linux")]
mod process;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    match process::run(lexopt::Parser::from_env()) {
        Ok(never) => match never {},
        Err(error) => {
            process::say(&format!("ravelin-tunnel: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-tunnel: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
