//! What a worker is told that is to stand still: [`Resting`](super::Resting) is the other end.

use super::generation::Generation;
use ports::live::Receiver;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, mpsc};

/// What a worker that stands still does with its generation and its ports.
pub(super) type Turn = Box<dyn FnOnce(&mut Generation, &mut [Box<dyn Receiver>]) + Send>;

/// One worker's part of a rest.
pub(super) struct Rest {
    /// How many workers have put everything on its way that they had for others.
    pub(super) sent: Arc<AtomicUsize>,
    pub(super) workers: usize,
    pub(super) turns: mpsc::Receiver<Turn>,
}
