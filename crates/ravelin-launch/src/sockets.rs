//! The sockets at which `control`, the front and tunnels listen. Each of these processes gets one that none
//! before it had: whoever has a socket can shut it for all who share it.

use crate::arguments::Fronting;
use crate::error::LaunchError;
use messages::listening::{Listening, listen};
use ports::live::{datagram_socket, secret_file};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a process that was ended may still hold the address. Nothing else goes on meanwhile.
const ENDS_WITHIN: Duration = Duration::from_millis(100);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(2);
/// How long processes of a gateway that was killed may still listen at the path when the next one starts.
const ENDED_WITHIN: Duration = Duration::from_secs(1);
/// How often is looked then: each look is a client, of which those that listen may have few waiting.
const CALL: Duration = Duration::from_millis(100);

/// The control socket, made anew.
///
/// # Errors
/// It cannot be made.
pub(crate) fn of_control(path: &Path) -> Result<Listening, LaunchError> {
    listen(path).map_err(|source| LaunchError::Control { path: path.to_owned(), source })
}

/// The same at the start of a gateway, where processes of one that was killed may still be ending.
///
/// # Errors
/// As for [`of_control`].
pub(crate) fn of_control_at_start(path: &Path) -> Result<Listening, LaunchError> {
    let made = once_free(|| listen(path), (ENDED_WITHIN, CALL));
    made.map_err(|source| LaunchError::Control { path: path.to_owned(), source })
}

/// A socket at which a front listens, which is there only if it has a key.
///
/// # Errors
/// It has no key, or the address cannot be listened at.
pub(crate) fn of_front(front: &Fronting) -> Result<TcpListener, LaunchError> {
    secret_file::read(&front.key)?;
    let failed = |source| LaunchError::Listen { at: front.listen, source };
    let listener = bound(front.listen).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    Ok(listener)
}

/// A socket at which `control` is asked for metrics.
///
/// # Errors
/// The address cannot be listened at.
pub(crate) fn of_metrics(at: SocketAddr) -> Result<TcpListener, LaunchError> {
    bound(at).map_err(|source| LaunchError::Metrics { at, source })
}

/// A socket for the datagrams of a tunnel.
///
/// # Errors
/// The address cannot be listened at.
pub(crate) fn of_tunnel(at: SocketAddr) -> Result<UdpSocket, LaunchError> {
    once_free(|| datagram_socket(at), (ENDS_WITHIN, LOOK))
        .map_err(|source| LaunchError::Tunnel { at, source })
}

fn bound(at: SocketAddr) -> io::Result<TcpListener> {
    once_free(|| TcpListener::bind(at), (ENDS_WITHIN, LOOK))
}

/// Tries to make a socket until nobody has its place any more, for so long, and with such pauses.
fn once_free<S>(make: impl Fn() -> io::Result<S>, (most, pause): (Duration, Duration)) -> io::Result<S> {
    let until = Instant::now() + most;
    loop {
        match make() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(pause);
            }
            made => return made,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_gateway_that_was_killed_is_waited_for_and_another_one_or_a_file_is_not_touched() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("control.sock");
        let ends = UnixListener::bind(&path).expect("nobody has it");
        assert!(of_control(&path).is_err(), "not where others wait meanwhile");
        let ending = thread::spawn(move || {
            thread::sleep(CALL * 2);
            drop(ends);
        });
        assert!(of_control_at_start(&path).is_ok(), "it has ended");
        ending.join().expect("it ended");
        let runs = UnixListener::bind(&path).expect("it was let go of");
        let Err(LaunchError::Control { source, .. }) = of_control_at_start(&path) else { panic!("it runs") };
        assert_eq!(source.kind(), ErrorKind::AddrInUse);
        drop(runs);
        std::fs::remove_file(&path).expect("it is there");
        std::fs::write(&path, "a letter").expect("written");
        let Err(LaunchError::Control { source, .. }) = of_control_at_start(&path) else { panic!("a file") };
        assert_eq!(source.kind(), ErrorKind::AlreadyExists, "nobody who might end");
    }
}
