//! A ring of tickets between the host, which submits slots, and the workers of a persistent kernel: it says
//! whose turn it is, and who has finished.
//!
//! ```text
//! shared  word 0         published   the first ticket that is not handed over yet                          host
//!         word 1         stop        not 0: what is published is run, then the kernel ends                 host
//!         word 2         begun       the number of the launch whose dispatcher began last                     dispatcher
//!         word 32 …      entries     of ticket t, at t mod R: packets << 16 | slot                         host
//!         word 32 + R …  done        a word a slot: the ticket that it had last, plus 1                    workers
//! own     word 0         taken       the first ticket that no worker has                                   workers
//!         word 32        known       `published`, as the dispatcher saw it last                            dispatcher
//!         word 64        closing     the number of the launch that ends once nothing known is left         dispatcher
//!         word 96 …      republished the entries of tickets before `known`, where workers do not share the host's memory     dispatcher
//!
//! host        fills a slot ─► writes the entry ─► raises `published` (release)     …     `done` is its ticket + 1 (acquire) ─► reads the slot
//!                                                   │                                        ▲
//! dispatcher           reads `published` (acquire) ─► raises `known` (release)               │
//!                                                        │                                   │
//! worker              reads `known` (acquire) ─► reads the entry ─► t to t + 1 (both) ─► runs ─► writes `done` (release)
//! ```
//!
//! Tickets and words wrap. A word of `done` tells this ticket from the one before by itself, so nobody clears
//! it. A worker takes only what is published, so whenever a kernel ends nothing is half taken and the next
//! launch goes on at `taken`. The entry is read *before* the ticket is taken: as long as nobody has it, it
//! and all behind it are under way, each in a slot of its own, so that the host cannot have come round to the
//! entry again; afterwards it can. Taking is therefore a release, too, behind which the reading stays, and an
//! acquire, so that this holds for whoever takes a later ticket: from a reading over takings and the `done`
//! of any later one to the host, which writes the entry anew. That a reading stays before a taking that is
//! not ordered is no question of which thread goes when: loom, whose threads read as they go, does not ask
//! it.
//!
//! Where the host's memory is behind a bus, the dispatcher copies entries into memory of the device before it
//! raises `known`, and workers read the copies: else each of them reads each entry over the bus. A copy is
//! written anew after the entry, so what holds for reading the entry holds for reading the copy.
//!
//! The words of one side lie in a line of 128 bytes of their own, but for `begun`, which a launch writes
//! once. What workers do is also written in the text of persistent kernels (`exec::kernel`), step for step.

use std::sync::atomic::{AtomicU32, Ordering};

/// The first ticket: soon tickets wrap, so a device that has run for a moment has shown that it can.
pub const FIRST: u32 = 0_u32.wrapping_sub(300);
/// Words of a line.
pub const LINE: usize = 32;
/// Words of the device's own, without copies of entries.
pub const OWN_WORDS: usize = 3 * LINE;
/// Slots that an entry can name.
const SLOTS: usize = 1 << 16;

/// A word that several threads read and write.
pub trait Word {
    /// Reads it, whatever else was written.
    fn read(&self) -> u32;
    /// Reads it, and sees what was written before it was.
    fn acquire(&self) -> u32;
    /// Writes it.
    fn write(&self, number: u32);
    /// Writes it, behind all that was written before.
    fn release(&self, number: u32);
    /// Raises it by one, wrapping, if it is this number; whether it was. If so, what this thread has read and
    /// written before stays before, and it sees all that whoever raised it earlier had before.
    fn raise(&self, from: u32) -> bool;
}

/// The word that an atomic number is. The orders stand here alone: what a model checks is what devices get.
macro_rules! word {
    ($number:ty) => {
        impl Word for $number {
            fn read(&self) -> u32 {
                self.load(Ordering::Relaxed)
            }

            fn acquire(&self) -> u32 {
                self.load(Ordering::Acquire)
            }

            fn write(&self, number: u32) {
                self.store(number, Ordering::Relaxed);
            }

            fn release(&self, number: u32) {
                self.store(number, Ordering::Release);
            }

            fn raise(&self, from: u32) -> bool {
                let to = from.wrapping_add(1);
                self.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
            }
        }
    };
}
word!(AtomicU32);

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingShape {
    slots: usize,
    entries: usize,
}

impl RingShape {
    /// For so many slots; none where there is none, or more than an entry can name.
    pub fn new(slots: usize) -> Option<RingShape> {
        let entries = slots.next_power_of_two().max(LINE);
        (1..=SLOTS).contains(&slots).then_some(RingShape { slots, entries })
    }

    /// Its entries, a power of two.
    pub fn entries(self) -> usize {
        self.entries
    }

    /// Words of the device's own, with copies of entries.
    pub fn republishing_words(self) -> usize {
        OWN_WORDS + self.entries
    }

    /// Its shared words.
    pub fn words(self) -> usize {
        LINE + self.entries + self.slots
    }
}

/// The shared words of a ring, wherever they lie.
#[derive(Debug)]
pub struct Ring<'a, W = AtomicU32> {
    published: &'a W,
    stop: &'a W,
    begun: &'a W,
    entries: &'a [W],
    done: &'a [W],
}

impl<W> Clone for Ring<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Ring<'_, W> {}

impl<'a, W: Word> Ring<'a, W> {
    /// The ring that lies in these words.
    ///
    /// # Panics
    /// There are fewer than `shape` says.
    pub fn new(shape: RingShape, words: &'a [W]) -> Ring<'a, W> {
        let (entries, done) = words[LINE..shape.words()].split_at(shape.entries);
        Ring { published: &words[0], stop: &words[1], begun: &words[2], entries, done }
    }

    /// Writes what stands there before anything has happened. Nobody else uses the words yet.
    pub fn clear(&self, first: u32) {
        self.published.write(first);
        self.stop.write(0);
        self.begun.write(0);
        // No ticket before 2^32 others leaves this word.
        self.done.iter().for_each(|word| word.write(first));
    }

    /// Host: whether the kernel is to end, once it has run what is published.
    pub fn stop(&self, stop: bool) {
        self.stop.release(stop.into());
    }

    /// Host: whether the dispatcher of this launch has begun. Before it has, whatever else uses the device
    /// may be in its way.
    pub fn has_begun(&self, launch: u32) -> bool {
        self.begun.acquire() == launch
    }

    fn place(&self, ticket: u32) -> usize {
        ticket as usize & (self.entries.len() - 1)
    }

    fn entry(&self, ticket: u32) -> &'a W {
        &self.entries[self.place(ticket)]
    }
}

/// What the host knows of a ring besides its words.
#[derive(Debug)]
pub struct Publisher {
    next: u32,
    given: Box<[Option<u32>]>,
    under_way: usize,
}

impl Publisher {
    /// For a ring of this shape, which was cleared with the same first ticket.
    pub fn new(shape: RingShape, first: u32) -> Publisher {
        Publisher { next: first, given: vec![None; shape.slots].into(), under_way: 0 }
    }

    /// Hands a slot over, of which everything is written. It was not under way.
    pub fn publish<W: Word>(&mut self, ring: &Ring<'_, W>, slot: usize, packets: u16) {
        let ticket = self.next;
        self.next = ticket.wrapping_add(1);
        debug_assert_eq!(self.given[slot], None, "slot {slot} is under way");
        self.given[slot] = Some(ticket);
        self.under_way += 1;
        if ring.done[slot].read() == self.next {
            // It has rested for as many tickets as there are numbers, and would look done already.
            ring.done[slot].write(ticket);
        }
        ring.entry(ticket).write(u32::from(packets) << 16 | slot as u32);
        ring.published.release(self.next);
    }

    /// Whether a slot is at rest; its results can be read then.
    pub fn is_done<W: Word>(&mut self, ring: &Ring<'_, W>, slot: usize) -> bool {
        let Some(ticket) = self.given[slot] else { return true };
        let done = ring.done[slot].acquire() == ticket.wrapping_add(1);
        if done {
            self.given[slot] = None;
            self.under_way -= 1;
        }
        done
    }

    /// Whether a slot has not been seen to be done.
    pub fn is_under_way(&self, slot: usize) -> bool {
        self.given[slot].is_some()
    }

    /// The next ticket: all before it are handed over.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// A slot that is not done although its ticket is one of those before `next`. Where a launch that knew of
    /// them has ended, it has lost it.
    pub fn lost<W: Word>(&self, ring: &Ring<'_, W>, next: u32) -> Option<usize> {
        self.given.iter().zip(ring.done).position(|(given, done)| {
            given.is_some_and(|ticket| {
                next.wrapping_sub(ticket) as i32 > 0 && done.acquire() != ticket.wrapping_add(1)
            })
        })
    }

    /// How many have not.
    pub fn under_way(&self) -> usize {
        self.under_way
    }
}

/// A slot that is a worker's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its ticket.
    pub ticket: u32,
    /// The slot.
    pub slot: u16,
    /// How many packets are in it.
    pub packets: u16,
}

/// The words of a ring as its workers have them.
#[derive(Debug)]
pub struct RingWorkers<'a, W = AtomicU32> {
    ring: Ring<'a, W>,
    taken: &'a W,
    known: &'a W,
    closing: &'a W,
    /// Copies of entries; without them workers read the entries themselves.
    republished: Option<&'a [W]>,
}

impl<'a, W: Word> RingWorkers<'a, W> {
    /// Workers with [`OWN_WORDS`] words of their own, who read entries where the host writes them.
    ///
    /// # Panics
    /// There are fewer.
    pub fn new(ring: Ring<'a, W>, own: &'a [W]) -> RingWorkers<'a, W> {
        let [taken, known, closing] = [0, LINE, 2 * LINE].map(|word| &own[word]);
        RingWorkers { ring, taken, known, closing, republished: None }
    }

    /// Workers with [`republishing_words`](RingShape::republishing_words) of their own, who read copies of
    /// entries. They have one dispatcher.
    ///
    /// # Panics
    /// There are fewer.
    pub fn republishing(ring: Ring<'a, W>, own: &'a [W]) -> RingWorkers<'a, W> {
        let copies = &own[OWN_WORDS..][..ring.entries.len()];
        RingWorkers { republished: Some(copies), ..RingWorkers::new(ring, own) }
    }

    /// Writes what stands in their own words before anything has happened. No launch has the number 0, nor
    /// that of the one before.
    pub fn clear(&self, first: u32) {
        self.taken.write(first);
        self.known.write(first);
        self.closing.write(0);
    }

    /// The first ticket that no worker has; while none works, it stays so.
    pub fn taken(&self) -> u32 {
        self.taken.acquire()
    }

    /// The dispatcher: tells the host that this launch goes.
    pub fn begin(&self, launch: u32) {
        self.ring.begun.release(launch);
    }

    /// The dispatcher: tells workers of what is published. Whether they are to end with it.
    pub fn dispatch(&self) -> bool {
        // In this order: what was published before the host said so is known before they end.
        let stop = self.ring.stop.acquire() != 0;
        let published = self.ring.published.acquire();
        if let Some(copies) = self.republished {
            let mut ticket = self.known.read();
            while ticket != published {
                copies[self.ring.place(ticket)].write(self.ring.entry(ticket).read());
                ticket = ticket.wrapping_add(1);
            }
        }
        self.known.release(published);
        stop
    }

    /// The dispatcher: lets this launch end once nothing known is left.
    pub fn close(&self, launch: u32) {
        self.closing.release(launch);
    }

    /// A worker: whether this launch ends once nothing known is left. It is asked before
    /// [`claim`](RingWorkers::claim).
    pub fn is_closing(&self, launch: u32) -> bool {
        self.closing.read() == launch && self.closing.acquire() == launch
    }

    /// A worker: a slot that is its own from now on, if one is there.
    pub fn claim(&self) -> Option<Task> {
        loop {
            let task = self.look()?;
            if self.take(&task) {
                return Some(task);
            }
        }
    }

    /// What the next ticket is for, if one is known.
    fn look(&self) -> Option<Task> {
        let ticket = self.taken.read();
        // Less than half of all numbers apart, tickets stand in order even where they wrap.
        let is_before = |known: u32| known.wrapping_sub(ticket) as i32 > 0;
        // Only who sees a ticket acquires: on a graphics card that empties the cache of its neighbours, too.
        if !is_before(self.known.read()) || !is_before(self.known.acquire()) {
            return None;
        }
        let copies = self.republished.unwrap_or(self.ring.entries);
        let entry = copies[self.ring.place(ticket)].read();
        Some(Task { ticket, slot: entry as u16, packets: (entry >> 16) as u16 })
    }

    /// Takes the ticket that was looked at; not if it is another's by now, and then the entry may have been
    /// anything.
    fn take(&self, task: &Task) -> bool {
        self.taken.raise(task.ticket)
    }

    /// A worker: everything of its slot is written.
    pub fn finish(&self, task: &Task) {
        self.ring.done[usize::from(task.slot)].release(task.ticket.wrapping_add(1));
    }

    /// A worker for the time of a launch.
    pub fn work(&self, launch: u32, mut run: impl FnMut(&Task), mut rest: impl FnMut()) {
        loop {
            let closing = self.is_closing(launch);
            match self.claim() {
                Some(task) => {
                    run(&task);
                    self.finish(&task);
                }
                None if closing => return,
                None => rest(),
            }
        }
    }
}

#[cfg(test)]
mod tests;
