//! Sends answers and what subscriptions tell over one connection, each frame whole.

use crate::limits::PATIENCE;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a send waits before it looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(200);

/// The sending half of a connection.
pub(super) struct Output(Mutex<UnixStream>);

/// How long a client may leave what it is sent unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// For an answer: a limited time, since nobody else is kept from anything by giving the client up.
    Limited,
    /// For what a subscription tells: as long as the connection lasts, since more is counted meanwhile.
    Forever,
}

impl Output {
    pub(super) fn new(stream: &UnixStream) -> io::Result<Output> {
        stream.set_write_timeout(Some(LOOK))?;
        Ok(Output(Mutex::new(stream.try_clone()?)))
    }

    /// Sends frames.
    ///
    /// # Errors
    /// The connection has ended, or the client reads nothing for too long.
    pub(super) fn send(&self, mut frames: &[u8], waits: Waits) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut end = Instant::now() + PATIENCE;
        while !frames.is_empty() {
            match stream.write(frames) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => {
                    frames = &frames[length..];
                    end = Instant::now() + PATIENCE;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if waits == Waits::Limited && Instant::now() >= end {
                        return Err(io::ErrorKind::TimedOut.into());
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
