//! The program `ravelin-launch`: the one process of a gateway with rights. It opens ports, starts the other
//! processes, hands descriptors over, and starts again what dies. It reads nothing that comes from a network.
//!
//! ```text
//! ravelin serve           ─becomes─► launch ─┬─ core      runs packets over the descriptors it is given
//!                                            ├─ compile   makes a program of a text, once
//!                                            ├─ control   answers at the control socket
//!                                            ├─ front     listens on a network
//!                                            ├─ vhost     speaks with the monitor of a virtual machine
//!                                            └─ tunnel    encrypts what goes through a tunnel
//! ```

#![forbid(unsafe_code)]

#[cfg(target_os = "linux")]
mod arguments;
#[cfg(target_os = "linux")]
mod children;
#[cfg(target_os = "linux")]
mod closing;
#[cfg(target_os = "linux")]
mod compiled;
#[cfg(target_os = "linux")]
mod error;
#[cfg(target_os = "linux")]
mod error_output;
#[cfg(target_os = "linux")]
mod kept;
#[cfg(target_os = "linux")]
mod machines;
#[cfg(target_os = "linux")]
mod port;
#[cfg(target_os = "linux")]
mod reported;
#[cfg(target_os = "linux")]
mod restart;
#[cfg(target_os = "linux")]
mod said;
#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod supervision;
#[cfg(target_os = "linux")]
mod tunnels;

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == container::HOLD) {
        return match container::hold(std::env::args_os().nth(2).as_deref()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                said::say(&format!("ravelin-launch: namespaces of a container: {error}"));
                ExitCode::FAILURE
            }
        };
    }
    let settings = match arguments::Settings::parse(lexopt::Parser::from_env()) {
        Ok(settings) => settings,
        Err(error) => {
            said::say(&format!("ravelin-launch: {error}; `ravelin serve FILE` starts it as it has to be"));
            return ExitCode::from(2);
        }
    };
    match supervision::supervise(&settings) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            said::say(&format!("ravelin-launch: {error}"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    eprintln!("ravelin-launch: it needs the namespaces of Linux; `ravelin run` works here");
    ExitCode::FAILURE
}
