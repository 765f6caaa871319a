//! Waits for packets of several ports at once; another thread can end the wait by a bell.

use super::sys;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Rings at a [`Waiter`].
#[derive(Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// Ends the wait that is going on, or the next one.
    pub fn ring(&self) {
        sys::ring(&self.0);
    }
}

/// Waits for descriptors and a bell.
pub struct Waiter {
    bell: Bell,
    fds: Vec<RawFd>,
    polled: Vec<libc::pollfd>,
}

impl Waiter {
    /// Waits for these descriptors, which must stay open as long as it lives.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub fn new(fds: &[RawFd]) -> io::Result<Waiter> {
        let bell = Bell(Arc::new(sys::bell()?));
        let fds = std::iter::once(bell.0.as_raw_fd()).chain(fds.iter().copied()).collect();
        Ok(Waiter { bell, fds, polled: Vec::new() })
    }

    /// Waits for these descriptors from now on, and for the same bell.
    pub fn watch(&mut self, fds: &[RawFd]) {
        self.fds.truncate(1);
        self.fds.extend_from_slice(fds);
    }

    /// A bell to ring from elsewhere.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Returns when a descriptor can be read, the bell was rung, or the time is up.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&mut self, nanoseconds: u64) -> io::Result<()> {
        if sys::wait(&self.fds, &mut self.polled, nanoseconds)? {
            sys::silence(&self.bell.0);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn an_error_that_stays_ends_no_wait_and_hides_no_bell() {
        // A pipe that nobody can read from has one.
        let (reader, writer) = io::pipe().expect("a pipe");
        drop(reader);
        let mut waiter = Waiter::new(&[writer.as_raw_fd()]).expect("a waiter");
        let start = Instant::now();
        waiter.wait(5_000_000).expect("waited");
        assert!(start.elapsed() >= Duration::from_millis(5));
        waiter.bell().ring();
        for rung in [true, false] {
            assert_eq!(sys::wait(&waiter.fds, &mut waiter.polled, 1_000_000).expect("waited"), rung);
            sys::silence(&waiter.bell.0);
        }
    }
}
