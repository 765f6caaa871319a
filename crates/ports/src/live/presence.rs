//! Whether the interface of a port is there, and the handing over of what replaces a lost one.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Whether the interface of a port is there. Whoever watches it writes, whoever wants to know reads.
#[derive(Debug, Default)]
pub struct Presence {
    /// Nanoseconds since 1970-01-01 UTC; 0 while it is there.
    gone_since: AtomicU64,
    vanished: AtomicU64,
}

impl Presence {
    /// Since when it has been gone (nanoseconds since 1970-01-01 UTC); `None` while it is there.
    pub fn gone_since(&self) -> Option<u64> {
        Some(self.gone_since.load(Ordering::Relaxed)).filter(|&since| since != 0)
    }

    /// How often it has vanished.
    pub fn vanished(&self) -> u64 {
        self.vanished.load(Ordering::Relaxed)
    }

    /// It has vanished at `now`.
    pub fn gone(&self, now: u64) {
        self.vanished.fetch_add(1, Ordering::Relaxed);
        self.gone_since.store(now.max(1), Ordering::Relaxed);
    }

    /// It is there again.
    pub fn back(&self) {
        self.gone_since.store(0, Ordering::Relaxed);
    }
}

/// One thing on its way from one thread to another. To find that there is none costs a load.
#[derive(Debug)]
pub(crate) struct Letterbox<T> {
    full: AtomicBool,
    letter: Mutex<Option<T>>,
}

impl<T> Letterbox<T> {
    /// An empty one.
    pub(crate) fn new() -> Letterbox<T> {
        Letterbox { full: AtomicBool::new(false), letter: Mutex::new(None) }
    }

    /// Puts something in; what was still there goes.
    pub(crate) fn put(&self, letter: T) {
        let mut place = self.letter.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(letter);
        self.full.store(true, Ordering::Release);
    }

    /// Takes out what is there.
    #[inline]
    pub(crate) fn take(&self) -> Option<T> {
        if !self.full.load(Ordering::Relaxed) {
            return None;
        }
        let mut place = self.letter.lock().unwrap_or_else(PoisonError::into_inner);
        self.full.store(false, Ordering::Release);
        place.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_is_taken_once_and_the_last_one_counts() {
        let letterbox = Letterbox::new();
        assert_eq!(letterbox.take(), None);
        letterbox.put(1);
        letterbox.put(2);
        assert_eq!(letterbox.take(), Some(2));
        assert_eq!(letterbox.take(), None);
    }

    #[test]
    fn what_vanished_is_counted_and_comes_back() {
        let presence = Presence::default();
        assert_eq!((presence.gone_since(), presence.vanished()), (None, 0));
        presence.gone(7);
        assert_eq!((presence.gone_since(), presence.vanished()), (Some(7), 1));
        presence.back();
        assert_eq!((presence.gone_since(), presence.vanished()), (None, 1));
    }
}
