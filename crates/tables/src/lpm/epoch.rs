//! Epoch-based reclamation: decides when memory can be reused that readers may still access (Fraser,
//! "Practical lock-freedom", 2004, section 5.2.3; readers behave as in RCU, read-copy-update, by McKenney and
//! Slingwine, 1998).
//!
//! The idea: the writer counts its changes, and the count is the epoch. A reader pins the current epoch when
//! it begins a batch and takes the pin back when the batch ends. Memory that was cut off in epoch n is free
//! once every pinned epoch is above n, because a reader that began later could not find it any more. A reader
//! stores and fences once a batch; it never waits.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The pin of a reader between two batches.
const IDLE: u64 = 0;

/// A number that threads share; a trait, so that a model checker may put its own in the place of the
/// machine's.
pub(super) trait Shared {
    fn with(value: u64) -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    fn fence();
}

impl Shared for AtomicU64 {
    fn with(value: u64) -> AtomicU64 {
        AtomicU64::new(value)
    }

    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }

    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }

    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// A reader begins a batch: from here on the writer keeps what the reader can find.
#[cfg(feature = "fastest")]
#[inline]
pub(super) fn enter<S: Shared>(changes: &S, pin: &S) {
    pin.store(changes.load(Ordering::Acquire), Ordering::Relaxed);
    // Either the writer, after its own fence, sees the pin, or the loads that follow see what the writer did
    // before it.
    S::fence();
}

/// A reader ends its batch: it uses nothing any more that it found.
#[cfg(feature = "fastest")]
#[inline]
pub(super) fn leave<S: Shared>(pin: &S) {
    pin.store(IDLE, Ordering::Release);
}

/// The epoch of everything that the writer has cut off so far; the next change belongs to the next epoch.
pub(super) fn number<S: Shared>(changes: &S) -> u64 {
    let number = changes.load(Ordering::Relaxed);
    changes.store(number + 1, Ordering::Release);
    number
}

/// The oldest epoch that a reader has pinned: what was cut off in an earlier epoch is free.
pub(super) fn oldest<'a, S: Shared + 'a>(pins: impl Iterator<Item = &'a S>) -> u64 {
    S::fence();
    pins.map(|pin| pin.load(Ordering::Acquire)).filter(|number| *number != IDLE).min().unwrap_or(u64::MAX)
}

/// The current epoch of one table, and the pins of its readers.
pub(super) struct Epochs {
    changes: AtomicU64,
    pins: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Epochs {
    pub(super) fn new() -> Epochs {
        Epochs { changes: AtomicU64::with(IDLE + 1), pins: Mutex::new(Vec::new()) }
    }

    /// The pin of a new reader.
    #[cfg(feature = "fastest")]
    pub(super) fn join(&self) -> Arc<AtomicU64> {
        let pin = Arc::new(AtomicU64::with(IDLE));
        self.pins().push(Arc::clone(&pin));
        pin
    }

    /// The reader with this pin has gone.
    #[cfg(feature = "fastest")]
    pub(super) fn part(&self, pin: &Arc<AtomicU64>) {
        self.pins().retain(|held| !Arc::ptr_eq(held, pin));
    }

    #[cfg(feature = "fastest")]
    #[inline]
    pub(super) fn enter(&self, pin: &AtomicU64) {
        enter(&self.changes, pin);
    }

    /// The current epoch.
    pub(super) fn now(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Ends the epoch: a reader that begins from here on sees the whole change.
    pub(super) fn advance(&self) {
        number(&self.changes);
    }

    pub(super) fn oldest(&self) -> u64 {
        oldest(self.pins().iter().map(|pin| &**pin))
    }

    fn pins(&self) -> MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::{Shared, enter, leave, number, oldest};

    impl Shared for loom::sync::atomic::AtomicU64 {
        fn with(value: u64) -> Self {
            Self::new(value)
        }

        fn load(&self, order: Ordering) -> u64 {
            self.load(order)
        }

        fn store(&self, value: u64, order: Ordering) {
            self.store(value, order);
        }

        fn fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    /// Every order of the steps of a reader and a writer: the writer publishes a new node in the place of an
    /// old one and uses the old one's memory again as soon as it may. The reader must find one of the two,
    /// whole.
    #[test]
    fn memory_is_never_used_again_under_a_reader() {
        use loom::sync::Arc;
        use loom::sync::atomic::AtomicU64;

        struct World {
            changes: AtomicU64,
            pin: AtomicU64,
            pointer: AtomicU64,
            nodes: [AtomicU64; 2],
        }
        loom::model(|| {
            let world = Arc::new(World {
                changes: Shared::with(1),
                pin: Shared::with(0),
                pointer: Shared::with(0),
                nodes: [Shared::with(10), Shared::with(0)],
            });
            let read = Arc::clone(&world);
            let reader = loom::thread::spawn(move || {
                for _ in 0..2 {
                    enter(&read.changes, &read.pin);
                    let node = read.pointer.load(Ordering::Acquire);
                    let found = read.nodes[node as usize].load(Ordering::Relaxed);
                    assert!(found == 10 || found == 20, "found {found} in node {node}");
                    leave(&read.pin);
                }
            });
            world.nodes[1].store(20, Ordering::Relaxed);
            world.pointer.store(1, Ordering::Release);
            let cut = number(&world.changes);
            if cut < oldest([&world.pin].into_iter()) {
                world.nodes[0].store(99, Ordering::Relaxed);
            }
            reader.join().unwrap();
        });
    }
}
