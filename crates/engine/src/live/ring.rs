//! A ring between two workers: one puts things in, the other takes them out in their order; and how the one
//! wakes the other.
//!
//! ```text
//!   taken % SLOTS            put % SLOTS
//!        v                        v
//! +------+------+------+------+------+------+
//! |      | full | full | full |      |      |     put - taken: how many are full
//! +------+------+------+------+------+------+
//! ```
//!
//! Each slot has a lock that nobody else holds when its turn comes, so no thread ever waits for it: between
//! `put` and `taken` the slots belong to the end that takes, all others to the end that puts.

use ports::live::Bell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// A number that one thread writes and another reads.
pub(super) trait Count {
    fn zero() -> Self;
    fn read(&self, order: Ordering) -> usize;
    fn write(&self, value: usize, order: Ordering);
}

/// Room for one thing; one thread at a time has access.
pub(super) trait Slot<T> {
    fn empty() -> Self;
    fn exchange(&self, thing: Option<T>) -> Option<T>;
}

impl Count for AtomicUsize {
    fn zero() -> AtomicUsize {
        AtomicUsize::new(0)
    }
    fn read(&self, order: Ordering) -> usize {
        self.load(order)
    }
    fn write(&self, value: usize, order: Ordering) {
        self.store(value, order);
    }
}

impl<T> Slot<T> for Mutex<Option<T>> {
    fn empty() -> Mutex<Option<T>> {
        Mutex::new(None)
    }
    fn exchange(&self, thing: Option<T>) -> Option<T> {
        std::mem::replace(&mut self.lock().unwrap_or_else(PoisonError::into_inner), thing)
    }
}

pub(super) struct Ring<T, N, S> {
    slots: Box<[S]>,
    /// How many things have been put in.
    put: N,
    /// How many of them have been taken out.
    taken: N,
    /// 1 as soon as nothing more will be put in.
    closed: N,
    /// 1 as soon as nothing more will be taken out.
    left: N,
    of: PhantomData<fn() -> T>,
}

impl<T, N: Count, S: Slot<T>> Ring<T, N, S> {
    pub(super) fn new(slots: usize) -> Ring<T, N, S> {
        let slots = (0..slots.max(1)).map(|_| S::empty()).collect();
        Ring { slots, put: N::zero(), taken: N::zero(), closed: N::zero(), left: N::zero(), of: PhantomData }
    }

    pub(super) fn put(&self, thing: T) -> Result<(), T> {
        let put = self.put.read(Ordering::Relaxed);
        if put.wrapping_sub(self.taken.read(Ordering::Acquire)) == self.slots.len() {
            return Err(thing);
        }
        self.slots[put % self.slots.len()].exchange(Some(thing));
        self.put.write(put.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    pub(super) fn take(&self) -> Option<T> {
        let taken = self.taken.read(Ordering::Relaxed);
        if taken == self.put.read(Ordering::Acquire) {
            return None;
        }
        let thing = self.slots[taken % self.slots.len()].exchange(None);
        self.taken.write(taken.wrapping_add(1), Ordering::Release);
        thing
    }

    pub(super) fn is_empty(&self) -> bool {
        self.taken.read(Ordering::Relaxed) == self.put.read(Ordering::Acquire)
    }

    fn filled(&self) -> usize {
        // What is taken was put in before.
        let taken = self.taken.read(Ordering::Acquire);
        self.put.read(Ordering::Acquire).wrapping_sub(taken)
    }

    /// Nothing is in the ring, and nothing more will come.
    fn is_over(&self) -> bool {
        // First whether more can come: what was put in before the end is seen by the second look.
        self.closed.read(Ordering::Acquire) == 1 && self.is_empty()
    }
}

type Threaded<T> = Ring<T, AtomicUsize, Mutex<Option<T>>>;

/// The end of a ring that puts things in. When it is dropped, nothing more will come.
pub(super) struct Giver<T>(Arc<Threaded<T>>);

/// The end of a ring that takes things out.
pub(super) struct Taker<T>(Arc<Threaded<T>>);

/// A ring with room for so many things.
pub(super) fn ring<T>(slots: usize) -> (Giver<T>, Taker<T>) {
    let ring = Arc::new(Ring::new(slots));
    (Giver(ring.clone()), Taker(ring))
}

impl<T> Giver<T> {
    /// Puts a thing in behind the others; gives it back if the ring is full.
    pub(super) fn put(&mut self, thing: T) -> Result<(), T> {
        self.0.put(thing)
    }

    /// How many things are in the ring, or were a moment ago.
    pub(super) fn filled(&self) -> usize {
        self.0.filled()
    }

    /// Says that nothing more will come.
    pub(super) fn close(&mut self) {
        self.0.closed.write(1, Ordering::Release);
    }

    /// Whether nobody takes anything out any more.
    pub(super) fn is_left(&self) -> bool {
        self.0.left.read(Ordering::Acquire) == 1
    }

    /// Takes back the first thing that nobody takes out any more.
    pub(super) fn take_back(&mut self) -> Option<T> {
        if self.is_left() { self.0.take() } else { None }
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Taker<T> {
    /// Takes the first thing out.
    pub(super) fn take(&mut self) -> Option<T> {
        self.0.take()
    }

    /// Says that nothing more will be taken out by this end.
    pub(super) fn leave(&mut self) {
        self.0.left.write(1, Ordering::Release);
    }

    /// Whether nothing is in the ring.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many things are in the ring, or were a moment ago.
    pub(super) fn filled(&self) -> usize {
        self.0.filled()
    }

    /// Whether nothing is in the ring, and nothing more will come.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over()
    }
}

impl<T> Drop for Taker<T> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Says whether a worker sleeps; a trait, so that a model checker may put its own in the place of the
/// machine's.
trait Asleep {
    fn set(&self, asleep: bool);
    fn is_set(&self) -> bool;
    fn fence();

    /// What is put into a ring before [`is_seen`](Asleep::is_seen) is found by a look after this, or this is
    /// seen.
    fn lies_down(&self) {
        self.set(true);
        Self::fence();
    }

    fn is_seen(&self) -> bool {
        Self::fence();
        self.is_set()
    }
}

impl Asleep for AtomicBool {
    fn set(&self, asleep: bool) {
        self.store(asleep, Ordering::Relaxed);
    }
    fn is_set(&self) -> bool {
        self.load(Ordering::Relaxed)
    }
    fn fence() {
        fence(Ordering::SeqCst);
    }
}

/// Says whether a worker sleeps, so that others ring its bell only then.
pub(super) struct Sleeper {
    asleep: AtomicBool,
    bell: Bell,
}

impl Sleeper {
    pub(super) fn new(bell: Bell) -> Sleeper {
        Sleeper { asleep: AtomicBool::new(false), bell }
    }

    /// The worker is about to sleep. It looks at its rings once more after this.
    pub(super) fn lies_down(&self) {
        self.asleep.lies_down();
    }

    /// The worker does not sleep (any more).
    pub(super) fn gets_up(&self) {
        self.asleep.set(false);
    }

    /// Wakes the worker after something was put into one of its rings.
    pub(super) fn wake(&self) {
        if self.asleep.is_seen() {
            self.bell.ring();
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use loom::sync::Arc as LoomArc;
    use std::collections::VecDeque;

    impl Count for loom::sync::atomic::AtomicUsize {
        fn zero() -> Self {
            loom::sync::atomic::AtomicUsize::new(0)
        }
        fn read(&self, order: Ordering) -> usize {
            self.load(order)
        }
        fn write(&self, value: usize, order: Ordering) {
            self.store(value, order);
        }
    }

    impl Asleep for loom::sync::atomic::AtomicBool {
        fn set(&self, asleep: bool) {
            self.store(asleep, Ordering::Relaxed);
        }
        fn is_set(&self) -> bool {
            self.load(Ordering::Relaxed)
        }
        fn fence() {
            loom::sync::atomic::fence(Ordering::SeqCst);
        }
    }

    /// A slot whose lock must be free when its turn comes.
    pub(in crate::live) struct Locked<T>(loom::sync::Mutex<Option<T>>);

    impl<T> Slot<T> for Locked<T> {
        fn empty() -> Self {
            Locked(loom::sync::Mutex::new(None))
        }
        fn exchange(&self, thing: Option<T>) -> Option<T> {
            let mut slot = self.0.try_lock().expect("nobody else is at this slot");
            assert_ne!(slot.is_some(), thing.is_some(), "full slots are emptied, and empty ones filled");
            std::mem::replace(&mut slot, thing)
        }
    }

    pub(in crate::live) type Modelled = Ring<u32, loom::sync::atomic::AtomicUsize, Locked<u32>>;

    /// Every order of the steps of an end that puts three things into a ring of two slots, as far as there is
    /// room, and closes it, and of an end that looks three times: what was put in comes out once, in its
    /// order, nobody waits for a slot, and the ring is not over before all has been taken.
    #[test]
    fn what_is_put_in_comes_out_once_and_in_order() {
        loom::model(|| {
            let ring = LoomArc::new(Modelled::new(2));
            let putting = {
                let ring = ring.clone();
                loom::thread::spawn(move || {
                    let put = (0..3).filter(|&number| ring.put(number).is_ok()).collect::<Vec<_>>();
                    ring.closed.write(1, Ordering::Release);
                    put
                })
            };
            let mut taken = Vec::new();
            for _ in 0..3 {
                let over = ring.is_over();
                let next = ring.take();
                assert!(!over || next.is_none(), "{next:?} came after the end");
                taken.extend(next);
            }
            let put = putting.join().expect("no panic");
            taken.extend(std::iter::from_fn(|| ring.take()));
            assert_eq!(taken, put);
            assert!(put.starts_with(&[0, 1]) && ring.is_over());
        });
    }

    /// Every order of the steps of a worker that puts something in and wakes the other, and of the other,
    /// which looks, lies down, and looks again: it never sleeps on while something is there.
    #[test]
    fn nobody_sleeps_while_something_waits() {
        loom::model(|| {
            use loom::sync::atomic::AtomicBool;
            let ring = LoomArc::new(Modelled::new(1));
            let (asleep, bell) = (LoomArc::new(AtomicBool::new(false)), LoomArc::new(AtomicBool::new(false)));
            let putting = {
                let (ring, asleep, bell) = (ring.clone(), asleep.clone(), bell.clone());
                loom::thread::spawn(move || {
                    assert!(ring.put(7).is_ok());
                    if asleep.is_seen() {
                        bell.store(true, Ordering::Release);
                    }
                })
            };
            asleep.lies_down();
            let sleeps = ring.is_empty();
            putting.join().expect("no panic");
            assert!(!sleeps || bell.load(Ordering::Acquire), "it sleeps, and nobody has rung");
        });
    }

    /// Beside a queue of the standard library, for rings of several sizes and any order of both ends' calls.
    #[test]
    fn a_ring_does_what_a_queue_of_its_size_does() {
        let mut random = 1u64;
        for slots in 1..6 {
            let (mut giver, mut taker) = ring(slots);
            let mut queue = VecDeque::new();
            for number in 0..10_000 {
                random =
                    random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                if random >> 63 == 0 {
                    let room = queue.len() < slots;
                    assert_eq!((giver.filled(), giver.put(number).is_ok()), (queue.len(), room));
                    queue.extend(room.then_some(number));
                } else {
                    assert_eq!(taker.take(), queue.pop_front());
                }
                assert_eq!(taker.is_empty(), queue.is_empty());
                assert!(!taker.is_over() && !giver.is_left());
            }
            drop(giver);
            assert_eq!(taker.is_over(), queue.is_empty());
            assert_eq!(std::iter::from_fn(|| taker.take()).collect::<VecDeque<_>>(), queue);
            assert!(taker.is_over());
        }
        let (mut giver, mut taker) = ring(2);
        assert_eq!((giver.put(1), giver.put(2), giver.take_back()), (Ok(()), Ok(()), None));
        assert_eq!(taker.take(), Some(1));
        drop(taker);
        assert!(giver.is_left());
        assert_eq!((giver.take_back(), giver.take_back()), (Some(2), None), "what nobody has taken");
    }
}
