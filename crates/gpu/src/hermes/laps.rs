//! Who is done, between threads of a device that finish in any order and the one that commits: a word a place, with the lap it was written in.
//!
//! ```text
//!  ticket   0 1 2 3 4 5 …                   place = ticket mod places; word = ticket + 1, wrapping
//!
//!           published                           who fills   writes the input of a place, then raises `published` (release)
//!  ┌─────┬─────┬─────┬─────┐                    a worker    takes a ticket, waits until it is published (acquire), runs,
//!  │  5  │  2  │  3  │  4  │  words                         writes results, then the word (release)
//!  └─────┴─────┴─────┴─────┘                    who commits waits for the word of its ticket (acquire), reads the results
//!     ▲ lap 1, done  ▲ lap 0, done
//! ```
//!
//! A word tells a result of this lap from one of the lap before by itself, so nobody ever clears it: there is no moment at which a place is
//! neither. Who fills and who commits are one thread, which fills a place only after it has committed what was there.

use std::sync::atomic::{AtomicU32, Ordering};

/// A place of the ring in one lap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket(u32);

/// The words of a ring.
#[derive(Debug)]
pub struct Laps<W = AtomicU32> {
    words: Box<[W]>,
    /// How many tickets were published.
    published: W,
    /// How many were taken by workers.
    taken: W,
}

/// A word that threads share.
pub trait Shared {
    /// A word that holds a number.
    fn new(number: u32) -> Self;
    /// Reads it, and sees what was written before it was.
    fn acquire(&self) -> u32;
    /// Writes it, behind all that was written before.
    fn release(&self, number: u32);
    /// Adds one; what it was.
    fn count(&self) -> u32;
}

impl Shared for AtomicU32 {
    fn new(number: u32) -> AtomicU32 {
        AtomicU32::new(number)
    }

    fn acquire(&self) -> u32 {
        self.load(Ordering::Acquire)
    }

    fn release(&self, number: u32) {
        self.store(number, Ordering::Release);
    }

    fn count(&self) -> u32 {
        // Who takes a ticket learns nothing else by it.
        self.fetch_add(1, Ordering::Relaxed)
    }
}

impl Ticket {
    /// The ticket behind it.
    pub fn next(self) -> Ticket {
        Ticket(self.0.wrapping_add(1))
    }
}

impl<W: Shared> Laps<W> {
    /// A ring of so many places, a power of two, whose first ticket is `first`, and that ticket.
    ///
    /// # Panics
    /// If `places` is not a power of two, or more than 2^31.
    pub fn new(places: usize, first: u32) -> (Laps<W>, Ticket) {
        assert!(places.is_power_of_two() && places <= 1 << 31, "{places} places are not a power of two");
        // What stands there is of the lap before the first.
        let before = |place: usize| {
            let ahead = (place as u32).wrapping_sub(first) & (places as u32 - 1);
            W::new(first.wrapping_add(ahead).wrapping_sub(places as u32).wrapping_add(1))
        };
        let words = (0..places).map(before).collect();
        (Laps { words, published: W::new(first), taken: W::new(first) }, Ticket(first))
    }

    /// Where a ticket's input and results are.
    pub fn place(&self, ticket: Ticket) -> usize {
        ticket.0 as usize & (self.words.len() - 1)
    }

    /// Who fills: all tickets before this one are filled.
    pub fn publish(&self, end: Ticket) {
        self.published.release(end.0);
    }

    /// A worker: the ticket that is its own from now on.
    pub fn take(&self) -> Ticket {
        Ticket(self.taken.count())
    }

    /// A worker: whether its ticket is published, so that it may read the input.
    pub fn is_published(&self, ticket: Ticket) -> bool {
        // Less than half of all numbers apart, tickets stand in order even where they wrap.
        (self.published.acquire().wrapping_sub(ticket.0) as i32) > 0
    }

    /// A worker: its results are written.
    pub fn finish(&self, ticket: Ticket) {
        self.words[self.place(ticket)].release(ticket.0.wrapping_add(1));
    }

    /// Who commits: whether the results of a ticket are there.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.words[self.place(ticket)].acquire() == ticket.0.wrapping_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    impl Shared for loom::sync::atomic::AtomicU32 {
        fn new(number: u32) -> Self {
            loom::sync::atomic::AtomicU32::new(number)
        }

        fn acquire(&self) -> u32 {
            self.load(Ordering::Acquire)
        }

        fn release(&self, number: u32) {
            self.store(number, Ordering::Release);
        }

        fn count(&self) -> u32 {
            self.fetch_add(1, Ordering::Relaxed)
        }
    }

    /// Every order of the steps of two workers and the thread that fills and commits, over two places and the end of the numbers: a ticket is
    /// one worker's, which sees its input, and whoever sees it done sees its own result and not that of the lap before.
    #[test]
    fn every_ticket_is_run_once_and_its_result_is_seen_whole() {
        use loom::sync::atomic::AtomicU32 as Word;
        for first in [0, u32::MAX - 1] {
            let mut model = loom::model::Builder::new();
            // All orders in which a thread is interrupted at most twice in the middle; more find nothing else in a time that anybody waits.
            model.preemption_bound = Some(2);
            model.check(move || {
                let (laps, start) = Laps::<Word>::new(2, first);
                let laps = loom::sync::Arc::new(laps);
                let places = || loom::sync::Arc::new([Word::new(0), Word::new(0)]);
                let (inputs, results) = (places(), places());
                let input = |ticket: Ticket| ticket.0.wrapping_mul(3);
                let fill = |ticket: Ticket| {
                    inputs[laps.place(ticket)].store(input(ticket), Ordering::Relaxed);
                    laps.publish(ticket.next());
                };
                let worker = || {
                    let (laps, inputs, results) = (laps.clone(), inputs.clone(), results.clone());
                    loom::thread::spawn(move || {
                        let mut run = Vec::new();
                        for _ in 0..2 {
                            let ticket = laps.take();
                            // A worker that would wait here ends instead: a model has no time to wait in.
                            if !laps.is_published(ticket) {
                                break;
                            }
                            let found = inputs[laps.place(ticket)].load(Ordering::Relaxed);
                            assert_eq!(found, input(ticket), "another input than its own");
                            results[laps.place(ticket)].store(found.wrapping_add(1), Ordering::Relaxed);
                            laps.finish(ticket);
                            run.push(ticket);
                        }
                        run
                    })
                };
                let commit = |ticket: Ticket| {
                    let done = laps.is_done(ticket);
                    if done {
                        let result = results[laps.place(ticket)].load(Ordering::Relaxed);
                        assert_eq!(result, input(ticket).wrapping_add(1), "another result than its own");
                    }
                    done
                };
                fill(start);
                let workers = [worker(), worker()];
                fill(start.next());
                // The second lap begins once the first place is committed.
                let third = start.next().next();
                if commit(start) {
                    fill(third);
                }
                commit(start.next());
                let mut run: Vec<Ticket> =
                    workers.into_iter().flat_map(|worker| worker.join().expect("it ends")).collect();
                run.sort_by_key(|ticket| ticket.0.wrapping_sub(first));
                let expected: Vec<Ticket> =
                    [start, start.next(), third].into_iter().filter(|one| run.contains(one)).collect();
                assert_eq!(run, expected, "each once");
                // The result of the first lap has gone where the second one has come.
                for ticket in run.iter().filter(|ticket| **ticket != start || !run.contains(&third)) {
                    assert!(commit(*ticket), "it is done");
                }
            });
        }
    }

    #[test]
    fn threads_go_round_many_times_and_over_the_end_of_the_numbers() {
        const TICKETS: u32 = 40_000;
        let first = u32::MAX - 20_000;
        let (laps, start) = Laps::<AtomicU32>::new(8, first);
        let laps = Arc::new(laps);
        let results: Arc<Vec<AtomicU32>> = Arc::new((0..8).map(AtomicU32::new).collect());
        let worker = |share: u32| {
            let (laps, results) = (laps.clone(), results.clone());
            std::thread::spawn(move || {
                for _ in 0..share {
                    let ticket = laps.take();
                    while !laps.is_published(ticket) {
                        std::thread::yield_now();
                    }
                    results[laps.place(ticket)].store(ticket.0 ^ 0x5555, Ordering::Relaxed);
                    laps.finish(ticket);
                }
            })
        };
        let workers = [worker(TICKETS / 4), worker(TICKETS / 4), worker(TICKETS / 2)];
        let (mut filled, mut committed) = (start, start);
        for _ in 0..TICKETS {
            while filled.0.wrapping_sub(committed.0) < 8 && filled.0.wrapping_sub(first) < TICKETS {
                filled = filled.next();
            }
            laps.publish(filled);
            while !laps.is_done(committed) {
                std::thread::yield_now();
            }
            assert_eq!(results[laps.place(committed)].load(Ordering::Relaxed), committed.0 ^ 0x5555);
            committed = committed.next();
        }
        workers.into_iter().for_each(|worker| worker.join().expect("it ends"));
        assert!(!laps.is_done(committed), "nothing is done that was not filled");
    }
}
