//! A queue from the workers to one reader in the control plane, bounded in number and bytes, with tail drop:
//! a worker never waits, and what finds the queue full is counted and goes no further.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

/// The data that the reader shares with the workers.
#[derive(Debug)]
struct Shared {
    /// The bytes that may still wait.
    room: AtomicUsize,
    lost: AtomicU64,
    /// Whether the reader has gone.
    gone: AtomicBool,
}

/// The room that something takes in the queue, until this is dropped.
#[derive(Debug)]
pub(super) struct Held(Arc<Shared>, usize);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.room.fetch_add(self.1, Ordering::Relaxed);
    }
}

/// A worker's end of the queue.
#[derive(Debug)]
pub(super) struct TailDropSender<T> {
    queue: mpsc::SyncSender<(T, Held)>,
    shared: Arc<Shared>,
}

/// The reader's end of the queue. When it is dropped, the workers put nothing more in.
#[derive(Debug)]
pub struct TailDropReceiver<T> {
    queue: mpsc::Receiver<(T, Held)>,
    shared: Arc<Shared>,
}

/// The error after the end of the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the packet loop has ended")]
pub struct LoopEnded;

/// An empty queue for so many things, and so many bytes of them.
pub(super) fn tail_drop<T>(most: usize, bytes: usize) -> (TailDropSender<T>, TailDropReceiver<T>) {
    let (sender, receiver) = mpsc::sync_channel(most);
    let shared =
        Shared { room: AtomicUsize::new(bytes), lost: AtomicU64::new(0), gone: AtomicBool::new(false) };
    let shared = Arc::new(shared);
    (TailDropSender { queue: sender, shared: shared.clone() }, TailDropReceiver { queue: receiver, shared })
}

impl<T> Clone for TailDropSender<T> {
    fn clone(&self) -> Self {
        TailDropSender { queue: self.queue.clone(), shared: self.shared.clone() }
    }
}

impl<T> TailDropSender<T> {
    /// Takes room for something of so many bytes; counts it as lost if there is none.
    pub(super) fn take(&self, bytes: usize) -> Option<Held> {
        let less = |room: usize| room.checked_sub(bytes);
        let taken = self.shared.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if !taken {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
        taken.then(|| Held(self.shared.clone(), bytes))
    }

    /// Puts something into the queue, in the room that was taken; counts it as lost if too much waits.
    pub(super) fn send(&self, what: T, held: Held) {
        if self.queue.try_send((what, held)).is_err() {
            self.shared.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether the reader has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.shared.gone.load(Ordering::Relaxed)
    }
}

impl<T> TailDropReceiver<T> {
    /// What comes next; `None` if nothing came within `patience`.
    ///
    /// # Errors
    /// No worker puts anything in any more.
    pub fn next(&self, patience: Duration) -> Result<Option<T>, LoopEnded> {
        match self.queue.recv_timeout(patience) {
            Ok((what, _held)) => Ok(Some(what)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LoopEnded),
        }
    }

    /// How much found no room so far.
    pub fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl<T> Drop for TailDropReceiver<T> {
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is sent and read in any order: what fits by number and bytes comes in order, the rest is
        /// counted.
        #[test]
        fn what_fits_comes_in_order_and_the_rest_is_counted(
            steps in prop::collection::vec(prop::option::of(0_usize..60), 0..80),
        ) {
            let (sender, receiver) = tail_drop(8, 100);
            let (mut waiting, mut lost) = (std::collections::VecDeque::new(), 0);
            for (number, step) in steps.into_iter().enumerate() {
                if let Some(bytes) = step {
                    let used: usize = waiting.iter().map(|(_, bytes)| bytes).sum();
                    if used + bytes <= 100 && waiting.len() < 8 {
                        waiting.push_back((number, bytes));
                    } else {
                        lost += 1;
                    }
                    if let Some(held) = sender.take(bytes) {
                        sender.send(number, held);
                    }
                } else {
                    let read = receiver.next(Duration::ZERO).expect("the sender is there");
                    prop_assert_eq!(read, waiting.pop_front().map(|(number, _)| number));
                }
                prop_assert_eq!(receiver.lost(), lost);
            }
            prop_assert!(!sender.is_closed());
            drop(receiver);
            prop_assert!(sender.is_closed());
        }
    }

    #[test]
    fn the_reader_learns_that_every_worker_has_ended() {
        let (sender, receiver) = tail_drop(1, 1);
        let other = sender.clone();
        drop(sender);
        assert_eq!(receiver.next(Duration::ZERO), Ok(None::<u8>));
        drop(other);
        assert_eq!(receiver.next(Duration::ZERO), Err(LoopEnded));
    }
}
