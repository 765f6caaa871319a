//! What a gateway of several processes does at a signal: whoever answers at its control socket has no right
//! to do it, and whoever asks there sends the signal to the process that made the socket.

use crate::control::{Asked, ControlError};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Signal, kill_process};
use std::io;
use std::os::unix::net::UnixStream;

/// Sends the signal for what was asked to the process that made the socket at the other end of `stream`, and
/// returns what becomes of it, for people.
///
/// # Errors
/// There is no signal for what was asked, the process is not seen from here, or this process may not send it
/// one.
pub(crate) fn send(stream: &UnixStream, asked: &Asked) -> Result<&'static str, ControlError> {
    let (signal, name, done) = match asked {
        Asked::Stop => (Signal::TERM, "SIGTERM", "stopping"),
        Asked::Reload(_) => (
            Signal::HUP,
            "SIGHUP",
            "the file is read again: the gateway tells on its standard error what comes of it, and `ravelin show policy` which program runs",
        ),
        _ => {
            let why = "the gateway asks for a signal that there is none of: `ravelin` and the gateway have to be of one version";
            return Err(ControlError::Refused(why.to_owned()));
        }
    };
    // Linux keeps who began to listen, whoever accepts connections since then.
    let sent = socket_peercred(stream).and_then(|maker| match maker.pid.as_raw_pid() {
        // It is in a PID namespace that is not below this one.
        0 => Err(Errno::SRCH),
        _ => kill_process(maker.pid, signal),
    });
    sent.map(|()| done).map_err(|error| ControlError::Signal { signal: name, source: io::Error::from(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn no_signal_is_sent_for_other_questions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).expect("a socket");
        let stream = UnixStream::connect(&path).expect("it listens");
        let Err(ControlError::Refused(why)) = send(&stream, &Asked::Picture) else { panic!("it is sent") };
        assert!(why.contains("of one version"), "{why}");
    }
}
