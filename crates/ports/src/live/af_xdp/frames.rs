//! Ownership of the frames of the shared memory: every frame is in exactly one place.
//!
//! ```text
//!         next_free            lend              take            the kernel has sent it
//!  free ───────────► kernel's ──────► program's ──────► on its way ───────────────────► given back
//!   ▲ ▲                                │                                                   │
//!   │ └────────── settle: nobody took it                       settle                      │
//!   └──────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The lane that frames are received by is their [`Home`] and moves them along the upper line. Sending
//! halves, of this lane or of others, hold its [`Marks`]: they take a frame that is the program's, and give
//! it back when it is sent. What is given back is a list threaded through the frames
//! (R. K. Treiber, "Systems programming: coping with parallelism", 1986) that its home takes as a whole, so
//! that no frame can be met again on it while another half looks at it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A word that both halves reach.
pub(crate) trait Word: Send + Sync {
    fn new(value: u32) -> Self;
    fn load(&self, order: Ordering) -> u32;
    fn store(&self, value: u32, order: Ordering);
    fn swap(&self, value: u32, order: Ordering) -> u32;
    /// Puts `new` where `old` is; says whether it was.
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool;
}

impl Word for AtomicU32 {
    fn new(value: u32) -> AtomicU32 {
        AtomicU32::new(value)
    }
    fn load(&self, order: Ordering) -> u32 {
        AtomicU32::load(self, order)
    }
    fn store(&self, value: u32, order: Ordering) {
        AtomicU32::store(self, value, order);
    }
    fn swap(&self, value: u32, order: Ordering) -> u32 {
        AtomicU32::swap(self, value, order)
    }
    fn replace(&self, old: u32, new: u32, order: Ordering) -> bool {
        self.compare_exchange(old, new, order, Ordering::Relaxed).is_ok()
    }
}

/// What a mark says of a frame: free or given back.
const OTHERS: u32 = 0;
/// The kernel has it to receive into.
const KERNEL: u32 = 1;
/// The program has it.
const LENT: u32 = 2;
/// A sending half has it: the one of number 0, others count on from it.
const TAKEN: u32 = 3;

/// The end of a list.
const END: u32 = u32::MAX;

/// What both halves know of the frames of one home.
pub(crate) struct Marks<W = AtomicU32> {
    marks: Box<[W]>,
    /// What follows a frame in the list of those given back, which begins with `first`.
    next: Box<[W]>,
    first: W,
}

impl<W: Word> Marks<W> {
    fn new(frames: u32) -> Marks<W> {
        let words = |value| (0..frames).map(|_| W::new(value)).collect();
        Marks { marks: words(OTHERS), next: words(END), first: W::new(END) }
    }

    /// Takes a frame that the program has, for the sending half of a number. Says whether it was the
    /// program's.
    pub(crate) fn take(&self, frame: u32, by: u32) -> bool {
        self.marks.get(frame as usize).is_some_and(|mark| mark.replace(LENT, TAKEN + by, Ordering::AcqRel))
    }

    /// Gives a frame that was taken back to its home; says whether it was taken by that half. One that was
    /// not stays where it is.
    pub(crate) fn give_back(&self, frame: u32, by: u32) -> bool {
        let place = frame as usize;
        let taken =
            self.marks.get(place).is_some_and(|mark| mark.replace(TAKEN + by, OTHERS, Ordering::AcqRel));
        if !taken {
            return false;
        }
        loop {
            let first = self.first.load(Ordering::Relaxed);
            self.next[place].store(first, Ordering::Relaxed);
            // What the sender did with the frame comes before, for whoever takes the list.
            if self.first.replace(first, frame, Ordering::AcqRel) {
                return true;
            }
        }
    }

    /// How many frames a sending half has.
    pub(crate) fn taken_by(&self, by: u32) -> u32 {
        self.marks.iter().filter(|mark| mark.load(Ordering::Relaxed) == TAKEN + by).count() as u32
    }

    /// Gives all frames back that a sending half took.
    pub(crate) fn give_back_all(&self, by: u32) {
        for frame in 0..self.marks.len() as u32 {
            self.give_back(frame, by);
        }
    }
}

/// The frames that one lane receives into.
pub(crate) struct Home<W = AtomicU32> {
    marks: Arc<Marks<W>>,
    free: Vec<u32>,
    lent: Vec<u32>,
}

impl<W: Word> Home<W> {
    /// So many frames, numbered from 0 and all free.
    pub(crate) fn new(frames: u32) -> Home<W> {
        let free = (0..frames).rev().collect();
        Home { marks: Arc::new(Marks::new(frames)), free, lent: Vec::with_capacity(packet::BATCH) }
    }

    /// For sending halves.
    pub(crate) fn marks(&self) -> Arc<Marks<W>> {
        self.marks.clone()
    }

    /// Ends the loan to the program: frames that nobody took are free, and so are those that were given back
    /// since.
    pub(crate) fn settle(&mut self) {
        let Home { marks, free, lent } = self;
        free.extend(
            lent.drain(..)
                .filter(|&frame| marks.marks[frame as usize].replace(LENT, OTHERS, Ordering::Relaxed)),
        );
        if marks.first.load(Ordering::Relaxed) == END {
            return;
        }
        let mut next = marks.first.swap(END, Ordering::AcqRel);
        while next != END {
            free.push(next);
            next = marks.next[next as usize].load(Ordering::Relaxed);
        }
    }

    /// A free frame, which is the kernel's from now on; the one that was in use last, as the caches may hold
    /// it.
    pub(crate) fn next_free(&mut self) -> Option<u32> {
        let frame = self.free.pop()?;
        self.marks.marks[frame as usize].store(KERNEL, Ordering::Relaxed);
        Some(frame)
    }

    /// Gives a frame that the kernel has filled to the program. Says whether there is such a frame and the
    /// kernel had it.
    pub(crate) fn lend(&mut self, frame: u32) -> bool {
        let Some(mark) = self.marks.marks.get(frame as usize) else { return false };
        if mark.load(Ordering::Relaxed) != KERNEL {
            return false;
        }
        mark.store(LENT, Ordering::Release);
        self.lent.push(frame);
        true
    }

    /// Takes back a frame that was the kernel's and holds nothing for the program.
    pub(crate) fn put_back(&mut self, frame: u32) {
        let mark = self.marks.marks.get(frame as usize);
        if mark.is_some_and(|mark| mark.replace(KERNEL, OTHERS, Ordering::Relaxed)) {
            self.free.push(frame);
        }
    }

    /// Takes back every frame that is the kernel's, which has forgotten them all.
    pub(crate) fn reclaim(&mut self) {
        for frame in 0..self.marks.marks.len() as u32 {
            self.put_back(frame);
        }
    }

    /// Takes back what the program has, and says of each frame where it is, for a process that takes over: 0
    /// if it is free, 1 if the kernel has it to receive into, and 3 and more if the sending half of number 0
    /// and more has it.
    pub(crate) fn checkpoint(&mut self) -> Vec<u32> {
        self.settle();
        self.marks.marks.iter().map(|mark| mark.load(Ordering::Relaxed)).collect()
    }

    /// Goes on with the frames of another process, which said this of them. So many of them the kernel has,
    /// and there are so many sending halves. Returns whether that can be; if not, nothing has changed.
    pub(crate) fn resume(&mut self, marks: &[u32], of_kernel: usize, halves: u32) -> bool {
        let can_be = |mark: &u32| *mark != LENT && *mark < TAKEN + halves;
        if marks.len() != self.marks.marks.len()
            || !marks.iter().all(can_be)
            || marks.iter().filter(|mark| **mark == KERNEL).count() != of_kernel
        {
            return false;
        }
        for (own, &mark) in self.marks.marks.iter().zip(marks) {
            own.store(mark, Ordering::Relaxed);
        }
        let frames = (0..marks.len() as u32).rev();
        self.free = frames.filter(|&frame| marks[frame as usize] == OTHERS).collect();
        true
    }
}

#[cfg(test)]
mod tests;
