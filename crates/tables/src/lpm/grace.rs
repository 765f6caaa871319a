//! When memory that readers may still look at can be used again.
//!
//! The idea: the writer numbers its changes; a reader notes the number of the moment it begins a batch and clears the note
//! when it ends. What was cut off before change n was numbered is free once every noted number is above n, since whoever
//! began later could not find it any more. A reader stores and fences once a batch; it never waits.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a reader's note holds between batches.
const IDLE: u64 = 0;

/// A number that threads share; a trait, so that a model checker may put its own in the place of the machine's.
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

/// The reader's side of one batch: from here on the writer keeps what the reader can find.
#[inline]
pub(super) fn enter<S: Shared>(changes: &S, note: &S) {
    note.store(changes.load(Ordering::Acquire), Ordering::Relaxed);
    // Either the writer, after its own fence, sees the note, or the loads that follow see what the writer did before it.
    S::fence();
}

/// The end of the batch: the reader looks at nothing it found.
#[inline]
pub(super) fn leave<S: Shared>(note: &S) {
    note.store(IDLE, Ordering::Release);
}

/// The writer's number for everything it has cut off so far; the next change gets another.
pub(super) fn number<S: Shared>(changes: &S) -> u64 {
    let number = changes.load(Ordering::Relaxed);
    changes.store(number + 1, Ordering::Release);
    number
}

/// What was cut off under a smaller number than this is free.
pub(super) fn oldest<'a, S: Shared + 'a>(notes: impl Iterator<Item = &'a S>) -> u64 {
    S::fence();
    notes.map(|note| note.load(Ordering::Acquire)).filter(|number| *number != IDLE).min().unwrap_or(u64::MAX)
}

/// The changes of one table and the notes of its readers.
pub(super) struct Grace {
    changes: AtomicU64,
    notes: Mutex<Vec<Arc<AtomicU64>>>,
}

impl Grace {
    pub(super) fn new() -> Grace {
        Grace { changes: AtomicU64::with(IDLE + 1), notes: Mutex::new(Vec::new()) }
    }

    /// A note for a new reader.
    pub(super) fn join(&self) -> Arc<AtomicU64> {
        let note = Arc::new(AtomicU64::with(IDLE));
        self.notes().push(Arc::clone(&note));
        note
    }

    /// The reader with this note has gone.
    pub(super) fn part(&self, note: &Arc<AtomicU64>) {
        self.notes().retain(|held| !Arc::ptr_eq(held, note));
    }

    #[inline]
    pub(super) fn enter(&self, note: &AtomicU64) {
        enter(&self.changes, note);
    }

    /// The number of the change that the writer is at.
    pub(super) fn now(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// The change is made: whoever begins from here on sees all of it.
    pub(super) fn advance(&self) {
        number(&self.changes);
    }

    pub(super) fn oldest(&self) -> u64 {
        oldest(self.notes().iter().map(|note| &**note))
    }

    fn notes(&self) -> MutexGuard<'_, Vec<Arc<AtomicU64>>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// Every order of the steps of a reader and a writer: the writer publishes a new node in the place of an old one and
    /// uses the old one's memory again as soon as it may. The reader must find one of the two, whole.
    #[test]
    fn memory_is_never_used_again_under_a_reader() {
        use loom::sync::Arc;
        use loom::sync::atomic::AtomicU64;

        struct World {
            changes: AtomicU64,
            note: AtomicU64,
            pointer: AtomicU64,
            nodes: [AtomicU64; 2],
        }
        loom::model(|| {
            let world = Arc::new(World {
                changes: Shared::with(1),
                note: Shared::with(0),
                pointer: Shared::with(0),
                nodes: [Shared::with(10), Shared::with(0)],
            });
            let read = Arc::clone(&world);
            let reader = loom::thread::spawn(move || {
                for _ in 0..2 {
                    enter(&read.changes, &read.note);
                    let node = read.pointer.load(Ordering::Acquire);
                    let found = read.nodes[node as usize].load(Ordering::Relaxed);
                    assert!(found == 10 || found == 20, "found {found} in node {node}");
                    leave(&read.note);
                }
            });
            world.nodes[1].store(20, Ordering::Relaxed);
            world.pointer.store(1, Ordering::Release);
            let cut = number(&world.changes);
            if cut < oldest([&world.note].into_iter()) {
                world.nodes[0].store(99, Ordering::Relaxed);
            }
            reader.join().unwrap();
        });
    }
}
