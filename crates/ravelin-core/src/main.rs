//! The program `ravelin-core`: `ravelin-launch` starts it with one end of a channel as its standard input.

#![forbid(unsafe_code)]

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    use std::os::fd::AsFd;
    let channel = std::io::stdin().as_fd().try_clone_to_owned().map(messages::Channel::of);
    let ended = channel
        .map_err(ravelin_core::CoreError::from)
        .and_then(|launch| ravelin_core::run(launch, exec::BackendKind::Interpreter));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ravelin-core: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-core: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
