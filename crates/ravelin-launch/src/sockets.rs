//! The sockets at which `control` and the front listen. Each of these processes gets one that none before it
//! had: whoever has a socket can shut it for all who share it.

use crate::arguments::Fronting;
use crate::error::LaunchError;
use messages::listening::{Listening, listen};
use ports::live::secret_file;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// How long a process that was ended may still hold the address, or listen at the path.
const ENDS_WITHIN: Duration = Duration::from_secs(1);
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(2);

/// The control socket, made anew.
///
/// # Errors
/// It cannot be made.
pub(crate) fn of_control(path: &Path) -> Result<Listening, LaunchError> {
    once_free(|| listen(path)).map_err(|source| LaunchError::Control { path: path.to_owned(), source })
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

fn bound(at: SocketAddr) -> io::Result<TcpListener> {
    once_free(|| TcpListener::bind(at))
}

/// Tries to make a socket until nobody has its place any more, for some time.
fn once_free<S>(make: impl Fn() -> io::Result<S>) -> io::Result<S> {
    let until = Instant::now() + ENDS_WITHIN;
    loop {
        match make() {
            Err(error) if error.kind() == ErrorKind::AddrInUse && Instant::now() < until => {
                thread::sleep(LOOK);
            }
            bound => return bound,
        }
    }
}
