//! A mailbox: one thread puts a message in, such as the socket that replaces a lost one, and another thread
//! takes it out.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Room for one message from one thread to another. To find it empty costs one load.
#[derive(Debug)]
pub(crate) struct Mailbox<T, F = AtomicBool, P = Mutex<Option<T>>> {
    full: F,
    message: P,
    of: PhantomData<fn() -> T>,
}

/// Says whether the mailbox is full; both threads read and write it.
pub(crate) trait Flag {
    fn new() -> Self;
    fn is_set(&self, order: Ordering) -> bool;
    fn set(&self, value: bool, order: Ordering);
}

/// Holds the message; one thread at a time has access.
pub(crate) trait Slot<T> {
    fn new() -> Self;
    fn with<R>(&self, look: impl FnOnce(&mut Option<T>) -> R) -> R;
}

impl Flag for AtomicBool {
    fn new() -> AtomicBool {
        AtomicBool::new(false)
    }
    fn is_set(&self, order: Ordering) -> bool {
        self.load(order)
    }
    fn set(&self, value: bool, order: Ordering) {
        self.store(value, order);
    }
}

impl<T> Slot<T> for Mutex<Option<T>> {
    fn new() -> Mutex<Option<T>> {
        Mutex::new(None)
    }
    fn with<R>(&self, look: impl FnOnce(&mut Option<T>) -> R) -> R {
        look(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T, F: Flag, P: Slot<T>> Mailbox<T, F, P> {
    /// An empty mailbox.
    pub(crate) fn new() -> Mailbox<T, F, P> {
        Mailbox { full: F::new(), message: P::new(), of: PhantomData }
    }

    /// Puts a message in; a message that was not taken yet is dropped.
    pub(crate) fn put(&self, message: T) {
        let before = self.message.with(|place| {
            let before = place.replace(message);
            // While nobody else reaches the place: whoever finds the word set finds the message, too.
            self.full.set(true, Ordering::Relaxed);
            before
        });
        drop(before);
    }

    /// Takes the message out, if there is one.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        if !self.full.is_set(Ordering::Relaxed) {
            return None;
        }
        self.message.with(|place| {
            self.full.set(false, Ordering::Relaxed);
            place.take()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loom::sync::Arc;

    impl Flag for loom::sync::atomic::AtomicBool {
        fn new() -> Self {
            loom::sync::atomic::AtomicBool::new(false)
        }
        fn is_set(&self, order: Ordering) -> bool {
            self.load(order)
        }
        fn set(&self, value: bool, order: Ordering) {
            self.store(value, order);
        }
    }

    impl<T> Slot<T> for loom::sync::Mutex<Option<T>> {
        fn new() -> Self {
            loom::sync::Mutex::new(None)
        }
        fn with<R>(&self, look: impl FnOnce(&mut Option<T>) -> R) -> R {
            look(&mut self.lock().unwrap())
        }
    }

    type Modelled = Mailbox<u32, loom::sync::atomic::AtomicBool, loom::sync::Mutex<Option<u32>>>;

    #[test]
    fn a_message_is_taken_once_and_the_last_one_counts() {
        let mailbox: Mailbox<u32> = Mailbox::new();
        assert_eq!(mailbox.take(), None);
        mailbox.put(1);
        mailbox.put(2);
        assert_eq!(mailbox.take(), Some(2));
        assert_eq!(mailbox.take(), None);
    }

    /// Every order of the steps of a thread that puts two messages in and one that looks twice: messages come
    /// in their order, none twice, and whatever was seen meanwhile, the last one is not lost.
    #[test]
    fn no_message_comes_twice_and_the_last_one_arrives() {
        loom::model(|| {
            let mailbox = Arc::new(Modelled::new());
            let putting = {
                let mailbox = mailbox.clone();
                loom::thread::spawn(move || {
                    mailbox.put(1);
                    mailbox.put(2);
                })
            };
            let mut taken: Vec<u32> = (0..2).filter_map(|_| mailbox.take()).collect();
            putting.join().unwrap();
            taken.extend(mailbox.take());
            assert!(taken.is_sorted_by(|one, next| one < next), "{taken:?}");
            assert_eq!(taken.last(), Some(&2), "the last one is not lost");
            assert_eq!(mailbox.take(), None);
        });
    }
}
