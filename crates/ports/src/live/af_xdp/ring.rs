//! The rings by which this process and Linux pass frames to each other: one side writes entries, the other
//! takes them.
//!
//! ```text
//!            consumer            producer
//!  entries  … │ full │ full │ full │ free │ free │ …      both count on for ever and wrap at 2^32;
//!             ▲ next to be taken   ▲ next to be written    an entry lies at its number modulo the ring's size
//! ```
//!
//! (Linux, Documentation/networking/af_xdp.rst.) Whoever writes entries publishes them by moving `producer`,
//! and whoever took them frees their places by moving `consumer`; each side keeps its own cursor to itself
//! until then, and looks at the other's only when it has run out.

use std::sync::atomic::{Ordering, fence};

/// Memory that both sides reach, in words at byte offsets.
pub(crate) trait Words {
    fn word(&self, at: usize, order: Ordering) -> u32;
    fn set_word(&self, at: usize, value: u32, order: Ordering);
    fn long(&self, at: usize) -> u64;
    fn set_long(&self, at: usize, value: u64);
}

/// Where the parts of a ring lie in its memory, and how many entries it has: a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) producer: usize,
    pub(crate) consumer: usize,
    pub(crate) flags: usize,
    pub(crate) entries: usize,
    pub(crate) size: u32,
}

impl Places {
    #[inline]
    fn entry<const LONGS: usize>(&self, number: u32) -> usize {
        self.entries + (number & (self.size - 1)) as usize * LONGS * 8
    }
}

/// The side that writes entries of so many numbers of 64 bits.
pub(crate) struct Producer<W, const LONGS: usize> {
    words: W,
    at: Places,
    /// The entry to be written next; published up to `published`.
    next: u32,
    published: u32,
    /// How far the other side had come when it was asked last.
    taken: u32,
}

impl<W: Words, const LONGS: usize> Producer<W, LONGS> {
    /// The writing end of an empty ring.
    pub(crate) fn new(words: W, at: Places) -> Producer<W, LONGS> {
        Producer { words, at, next: 0, published: 0, taken: 0 }
    }

    /// Goes on where another process that had this end has come to: what it wrote is published.
    pub(crate) fn resume(&mut self) {
        self.next = self.words.word(self.at.producer, Ordering::Acquire);
        self.published = self.next;
        self.taken = self.words.word(self.at.consumer, Ordering::Acquire);
    }

    /// Writes an entry, if one is free.
    #[inline]
    pub(crate) fn push(&mut self, entry: [u64; LONGS]) -> bool {
        if self.next.wrapping_sub(self.taken) >= self.at.size && self.waiting() >= self.at.size {
            return false;
        }
        let place = self.at.entry::<LONGS>(self.next);
        for (number, value) in entry.into_iter().enumerate() {
            self.words.set_long(place + 8 * number, value);
        }
        self.next = self.next.wrapping_add(1);
        true
    }

    /// Whether an entry is free.
    pub(crate) fn has_room(&mut self) -> bool {
        self.next.wrapping_sub(self.taken) < self.at.size || self.waiting() < self.at.size
    }

    /// Lets the other side take what was written. That comes before [`wants_wakeup`](Producer::wants_wakeup)
    /// asks: the other side says that it sleeps and then looks once more for entries, and without an order
    /// between the two on this side both could miss what the other one did.
    pub(crate) fn publish(&mut self) {
        if self.published != self.next {
            self.published = self.next;
            self.words.set_word(self.at.producer, self.next, Ordering::Release);
            fence(Ordering::SeqCst);
        }
    }

    /// How many entries the other side has not taken yet.
    pub(crate) fn waiting(&mut self) -> u32 {
        self.taken = self.words.word(self.at.consumer, Ordering::Acquire);
        self.next.wrapping_sub(self.taken)
    }

    /// Whether the kernel sleeps and wants to be told that there is something.
    pub(crate) fn wants_wakeup(&self) -> bool {
        self.words.word(self.at.flags, Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0
    }
}

/// The side that takes them.
pub(crate) struct Consumer<W, const LONGS: usize> {
    words: W,
    at: Places,
    /// The entry to be taken next; freed up to `freed`.
    next: u32,
    freed: u32,
    /// How far the other side had come when it was asked last.
    written: u32,
}

impl<W: Words, const LONGS: usize> Consumer<W, LONGS> {
    /// The taking end of an empty ring.
    pub(crate) fn new(words: W, at: Places) -> Consumer<W, LONGS> {
        Consumer { words, at, next: 0, freed: 0, written: 0 }
    }

    /// Goes on where another process that had this end has come to: what it took is freed.
    pub(crate) fn resume(&mut self) {
        self.next = self.words.word(self.at.consumer, Ordering::Acquire);
        self.freed = self.next;
        self.written = self.words.word(self.at.producer, Ordering::Acquire);
    }

    /// Whether there is nothing to take.
    #[inline]
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.next == self.written {
            self.written = self.words.word(self.at.producer, Ordering::Acquire);
        }
        self.next == self.written
    }

    /// Takes the next entry.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<[u64; LONGS]> {
        if self.is_empty() {
            return None;
        }
        let place = self.at.entry::<LONGS>(self.next);
        self.next = self.next.wrapping_add(1);
        Some(std::array::from_fn(|number| self.words.long(place + 8 * number)))
    }

    /// Lets the other side write where entries were taken.
    pub(crate) fn free(&mut self) {
        if self.freed != self.next {
            self.freed = self.next;
            self.words.set_word(self.at.consumer, self.next, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests;
