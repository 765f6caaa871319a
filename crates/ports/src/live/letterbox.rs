//! The handing over of one thing from one thread to another, as of what replaces a lost socket.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// One thing on its way from one thread to another. To find that there is none costs a load.
#[derive(Debug)]
pub(crate) struct Letterbox<T, F = AtomicBool, P = Mutex<Option<T>>> {
    full: F,
    letter: P,
    of: PhantomData<fn() -> T>,
}

/// A word that both threads reach.
pub(crate) trait Flag {
    fn new() -> Self;
    fn is_set(&self, order: Ordering) -> bool;
    fn set(&self, value: bool, order: Ordering);
}

/// A place that one thread reaches at a time.
pub(crate) trait Place<T> {
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

impl<T> Place<T> for Mutex<Option<T>> {
    fn new() -> Mutex<Option<T>> {
        Mutex::new(None)
    }
    fn with<R>(&self, look: impl FnOnce(&mut Option<T>) -> R) -> R {
        look(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T, F: Flag, P: Place<T>> Letterbox<T, F, P> {
    /// An empty one.
    pub(crate) fn new() -> Letterbox<T, F, P> {
        Letterbox { full: F::new(), letter: P::new(), of: PhantomData }
    }

    /// Puts something in; what was still there goes.
    pub(crate) fn put(&self, letter: T) {
        let before = self.letter.with(|place| {
            let before = place.replace(letter);
            // While nobody else reaches the place: whoever finds the word set finds the letter, too.
            self.full.set(true, Ordering::Relaxed);
            before
        });
        drop(before);
    }

    /// Takes out what is there.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        if !self.full.is_set(Ordering::Relaxed) {
            return None;
        }
        self.letter.with(|place| {
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

    impl<T> Place<T> for loom::sync::Mutex<Option<T>> {
        fn new() -> Self {
            loom::sync::Mutex::new(None)
        }
        fn with<R>(&self, look: impl FnOnce(&mut Option<T>) -> R) -> R {
            look(&mut self.lock().unwrap())
        }
    }

    type Modelled = Letterbox<u32, loom::sync::atomic::AtomicBool, loom::sync::Mutex<Option<u32>>>;

    #[test]
    fn a_letter_is_taken_once_and_the_last_one_counts() {
        let letterbox: Letterbox<u32> = Letterbox::new();
        assert_eq!(letterbox.take(), None);
        letterbox.put(1);
        letterbox.put(2);
        assert_eq!(letterbox.take(), Some(2));
        assert_eq!(letterbox.take(), None);
    }

    /// Every order of the steps of a thread that puts two letters in and one that looks twice: letters come in their order, none twice, and whatever was
    /// seen meanwhile, the last one is not lost.
    #[test]
    fn no_letter_comes_twice_and_the_last_one_arrives() {
        loom::model(|| {
            let letterbox = Arc::new(Modelled::new());
            let putting = {
                let letterbox = letterbox.clone();
                loom::thread::spawn(move || {
                    letterbox.put(1);
                    letterbox.put(2);
                })
            };
            let mut taken: Vec<u32> = (0..2).filter_map(|_| letterbox.take()).collect();
            putting.join().unwrap();
            taken.extend(letterbox.take());
            assert!(taken.is_sorted_by(|one, next| one < next), "{taken:?}");
            assert_eq!(taken.last(), Some(&2), "the last one is not lost");
            assert_eq!(letterbox.take(), None);
        });
    }
}
