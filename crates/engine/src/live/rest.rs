//! What a worker is told that is to stand still, and how all workers find out together that nothing is
//! between them any more: [`Resting`](super::Resting) is the other end.
//!
//! ```text
//! sent:     each has sent what it had for others
//! steered:  then each has taken what came; what an earlier program had steered may have gone on to another
//! still:    then each has taken that as well, and nothing comes any more
//! ```
//!
//! A packet is steered again once at most, since all workers run the same program when they are told. So two
//! rounds, in each of which every worker counts once, are enough.

use super::generation::Generation;
use ports::live::{Receiver, Sender};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

/// The halves of a worker's ports.
pub struct Halves<'a> {
    /// Those that receive.
    pub receive: &'a mut [Box<dyn Receiver>],
    /// Those that send.
    pub send: &'a mut [Box<dyn Sender>],
}

/// What a worker that stands still does with its generation and its ports.
pub(super) type Turn = Box<dyn FnOnce(&mut Generation, Halves<'_>) + Send>;

/// One worker's part of a rest.
pub(super) struct Rest {
    /// How often workers have come to the end of a round.
    pub(super) rounds: Arc<AtomicUsize>,
    pub(super) workers: usize,
    pub(super) turns: mpsc::Receiver<Turn>,
}

/// A number that all workers count on; a trait, so that a model checker may put its own in the place of the
/// machine's.
pub(super) trait Rounds {
    fn count_on(&self);
    fn counted(&self) -> usize;
    /// Lets other threads run.
    fn pause(&self);
}

impl Rounds for AtomicUsize {
    fn count_on(&self) {
        self.fetch_add(1, Ordering::AcqRel);
    }

    fn counted(&self) -> usize {
        self.load(Ordering::Acquire)
    }

    fn pause(&self) {
        std::thread::yield_now();
    }
}

/// How parcels go between one worker and the others.
pub(super) trait ParcelExchange {
    /// Runs some of what has come; it may go on to another worker.
    fn take(&mut self) -> io::Result<()>;
    /// Sends what goes on; whether something waits for room.
    fn send_all(&mut self) -> bool;
    /// Whether all that was sent here has been taken.
    fn nothing_arrives(&self) -> bool;
}

/// Runs what is between this worker and the others, until nothing is and nothing comes any more.
pub(super) fn drain(
    rounds: &impl Rounds,
    workers: usize,
    exchange: &mut impl ParcelExchange,
) -> io::Result<()> {
    let mut own = 0;
    loop {
        exchange.take()?;
        let waits = exchange.send_all();
        // The count is read before the rings: what the others had sent before they counted has come.
        let all = rounds.counted() >= own * workers;
        if waits || !all || own > 0 && !exchange.nothing_arrives() {
            rounds.pause();
        } else if own == 2 {
            return Ok(());
        } else {
            own += 1;
            rounds.count_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::tests::Modelled;
    use super::*;
    use loom::sync::Arc as LoomArc;

    impl Rounds for loom::sync::atomic::AtomicUsize {
        fn count_on(&self) {
            self.fetch_add(1, Ordering::AcqRel);
        }

        fn counted(&self) -> usize {
            self.load(Ordering::Acquire)
        }

        fn pause(&self) {
            loom::thread::yield_now();
        }
    }

    /// A worker with a ring from another one, of which each packet goes on by a ring, or stays.
    struct Worker {
        from: LoomArc<Modelled>,
        on: Option<LoomArc<Modelled>>,
        waits: Vec<u32>,
        ran: Vec<u32>,
    }

    impl ParcelExchange for Worker {
        fn take(&mut self) -> io::Result<()> {
            let to = if self.on.is_some() { &mut self.waits } else { &mut self.ran };
            to.extend(self.from.take());
            Ok(())
        }

        fn send_all(&mut self) -> bool {
            let Some(on) = &self.on else { return false };
            while let Some(packet) = self.waits.pop() {
                if let Err(packet) = on.put(packet) {
                    self.waits.push(packet);
                    return true;
                }
            }
            false
        }

        fn nothing_arrives(&self) -> bool {
            self.from.is_empty()
        }
    }

    /// Every order, with at most three preemptions, of the steps of a worker to whom two packets come that
    /// have to go on, by a ring of one slot, and of the worker to whom they go: both end, and the other one
    /// has run both packets.
    #[test]
    fn what_goes_on_while_workers_come_to_stand_still_is_run() {
        let mut model = loom::model::Builder::new();
        // All orders take a hundred times as long, since both look again and again.
        model.preemption_bound = Some(3);
        model.check(|| {
            let [come, on] = [2, 1].map(|slots| LoomArc::new(Modelled::new(slots)));
            (1..=2).for_each(|packet| assert!(come.put(packet).is_ok()));
            let rounds = LoomArc::new(loom::sync::atomic::AtomicUsize::new(0));
            let worker = |from: &LoomArc<Modelled>, on: Option<LoomArc<Modelled>>| {
                let mut worker = Worker { from: from.clone(), on, waits: Vec::new(), ran: Vec::new() };
                let rounds = rounds.clone();
                move || {
                    drain(&*rounds, 2, &mut worker).expect("it ends");
                    worker.ran
                }
            };
            let first = loom::thread::spawn(worker(&come, Some(on.clone())));
            let ran = worker(&on, None)();
            assert_eq!(first.join().expect("no panic"), []);
            assert_eq!(ran, [1, 2]);
            assert!(come.is_empty() && on.is_empty());
        });
    }
}
