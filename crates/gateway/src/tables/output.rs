//! Sends answers and what subscriptions tell over one connection, each frame whole.

use super::limits::LEAST_RATE;
use crate::limits::PATIENCE;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a send waits before it looks whether it is to go on.
const LOOK: Duration = Duration::from_millis(200);
/// How many bytes are written at once: Linux waits anew for each part of a longer write that a reader makes
/// room for.
const PART: usize = 64 << 10;
/// How often an answer looks whether a subscription has sent its frames.
const TURN: Duration = Duration::from_millis(1);

/// The sending half of a connection.
pub(super) struct Output {
    stream: Mutex<UnixStream>,
    /// How long an answer may wait to be read, whatever its length, and how many bytes of it are read in a
    /// second at least.
    patience: Duration,
    rate: u64,
}

/// How long a client may leave what it is sent unread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// For an answer: a limited time. Giving the client up harms nobody else.
    Limited,
    /// For what a subscription tells: as long as the connection lasts, since more is counted meanwhile.
    Forever,
}

impl Output {
    pub(super) fn new(stream: &UnixStream) -> io::Result<Output> {
        stream.set_write_timeout(Some(LOOK))?;
        Ok(Output { stream: Mutex::new(stream.try_clone()?), patience: PATIENCE, rate: LEAST_RATE })
    }

    /// The stream; `None` if a subscription has kept it until `end`.
    fn stream(&self, end: Option<Instant>) -> Option<MutexGuard<'_, UnixStream>> {
        let Some(end) = end else { return Some(self.stream.lock().unwrap_or_else(PoisonError::into_inner)) };
        loop {
            match self.stream.try_lock() {
                Ok(stream) => return Some(stream),
                Err(TryLockError::Poisoned(stream)) => return Some(stream.into_inner()),
                Err(TryLockError::WouldBlock) if Instant::now() >= end => return None,
                Err(TryLockError::WouldBlock) => thread::sleep(TURN),
            }
        }
    }

    /// Sends frames.
    ///
    /// # Errors
    /// The connection has ended, or the client has not read all of it in time.
    pub(super) fn send(&self, mut frames: &[u8], waits: Waits) -> io::Result<()> {
        let allowed = self.patience + Duration::from_secs(frames.len() as u64 / self.rate);
        let end = (waits == Waits::Limited).then(|| Instant::now() + allowed);
        let mut stream = self.stream(end).ok_or(io::ErrorKind::TimedOut)?;
        while !frames.is_empty() {
            match stream.write(&frames[..frames.len().min(PART)]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(length) => frames = &frames[length..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if !frames.is_empty() && end.is_some_and(|end| Instant::now() >= end) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::sync::Arc;
    use std::sync::mpsc;

    /// An output whose patience is short, and the client's end.
    fn output() -> (Arc<Output>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let mut output = Output::new(&ours).expect("a copy");
        (output.patience, output.rate) = (Duration::from_millis(100), u64::MAX);
        (Arc::new(output), theirs)
    }

    /// What becomes of an answer that is sent on a thread of its own.
    fn sent(output: &Arc<Output>, answer: Vec<u8>) -> mpsc::Receiver<io::Result<()>> {
        let (done, result) = mpsc::channel();
        let output = output.clone();
        thread::spawn(move || done.send(output.send(&answer, Waits::Limited)));
        result
    }

    #[test]
    fn an_answer_waits_a_limited_time_for_a_subscription_that_nobody_reads() {
        let (output, client) = output();
        let told = output.clone();
        // More than a socket holds.
        let telling = thread::spawn(move || told.send(&vec![0; 16 << 20], Waits::Forever));
        while output.stream.try_lock().is_ok() {
            thread::yield_now();
        }
        let answered = sent(&output, vec![0; 9]).recv_timeout(Duration::from_secs(60));
        let answered = answered.expect("the answer waits for the subscription without an end");
        assert_eq!(answered.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(client);
        assert!(telling.join().expect("no panic").is_err());
    }

    #[test]
    fn a_client_that_reads_byte_by_byte_gains_no_time() {
        let (output, mut client) = output();
        let reading = thread::spawn(move || {
            let mut part = [0; 1 << 10];
            while matches!(client.read(&mut part), Ok(1..)) {
                thread::sleep(Duration::from_millis(5));
            }
        });
        let length = 4 << 20;
        let begun = Instant::now();
        let answered = sent(&output, vec![0; length]).recv_timeout(Duration::from_secs(300));
        let answered = answered.expect("the answer has no end");
        let kind = answered.map_err(|error| error.kind());
        assert_eq!(kind, Err(io::ErrorKind::TimedOut), "{:?} for {length} bytes", begun.elapsed());
        drop(output);
        reading.join().expect("no panic");
    }
}
