//! The signals by which a gateway of several processes ends, or reads its file again. The process that
//! answers at its control socket has no right to send them. The command that asks there sends them, to the
//! process that made the socket.

use crate::control::{Asked, ControlError};
use ports::live::sys::peer_process;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// The program of the process that makes the control socket of such a gateway.
const LAUNCH: &str = "ravelin-launch";
/// What Linux writes behind the name of a program whose file was replaced while it runs.
const REPLACED: &str = " (deleted)";

/// Sends the signal for what was asked to the process that made the socket at the other end of `stream`, and
/// returns what becomes of it, for people.
///
/// # Errors
/// There is no signal for what was asked, the process is not seen from here or is not `ravelin-launch`, or
/// this process may not send it one.
pub(crate) fn send(stream: &UnixStream, asked: &Asked) -> Result<&'static str, ControlError> {
    let (signal, name, done) = match asked {
        Asked::Stop => (Signal::TERM, "TERM", "stopping"),
        Asked::Reload(wish) if wish.is_unconditional() => (Signal::HUP, "HUP", "the file is read again"),
        _ => {
            let why = "the gateway asks for a signal that there is none of: `ravelin` and the gateway have to be of one version";
            return Err(ControlError::Refused(why.to_owned()));
        }
    };
    let sent = launch(stream).and_then(|launch| Ok(pidfd_send_signal(launch, signal)?));
    sent.map(|()| done).map_err(|source| ControlError::Signal { signal: name, source })
}

/// The `ravelin-launch` that made the socket at the other end. Linux keeps who began to listen, whoever
/// accepts connections since then.
fn launch(stream: &UnixStream) -> io::Result<OwnedFd> {
    let number = peer_process(stream)?;
    // To 0 and below, `kill` would send to whole groups of processes.
    let maker = Some(number).filter(|number| *number > 0).and_then(Pid::from_raw);
    let maker = maker.ok_or_else(|| io::Error::other("it is in another PID namespace"))?;
    let process = pidfd_open(maker, PidfdFlags::empty())?;
    // Its number may have gone to another process before it was opened; afterwards that does no harm.
    let program = fs::read_link(format!("/proc/{number}/exe"))?;
    let name = program.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match name.strip_suffix(REPLACED).unwrap_or(name) {
        LAUNCH => Ok(process),
        _ => Err(io::Error::other(format!(
            "process {number}, which made the socket, is {}",
            program.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::ReloadWish;
    use std::os::unix::net::UnixListener;

    /// A connection to a socket of this process.
    fn connected() -> (UnixStream, UnixListener) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        (UnixStream::connect(&path).expect("it listens"), listener)
    }

    #[test]
    fn no_signal_is_sent_for_other_questions() {
        let (stream, _listener) = connected();
        // A gateway that asks for one, although only a look was asked for, gets none.
        let looks = ReloadWish { check: true, ..ReloadWish::default() };
        for asked in [Asked::Picture, Asked::Reload(looks)] {
            let Err(ControlError::Refused(why)) = send(&stream, &asked) else { panic!("it is sent") };
            assert!(why.contains("of one version"), "{why}");
        }
    }

    #[test]
    fn no_signal_is_sent_to_another_program() {
        let (stream, _listener) = connected();
        // This test would end by it.
        let error = send(&stream, &Asked::Stop).expect_err("this is no `ravelin-launch`").to_string();
        let this = std::process::id();
        assert!(error.contains(&format!("process {this}, which made the socket")), "{error}");
        assert!(error.contains("`kill -TERM`"), "{error}");
    }
}
