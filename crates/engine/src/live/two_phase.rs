//! Two-phase takeover: all workers let another program take over, or none does (after the two-phase commit of
//! databases; Gray, 1978).
//!
//! The first phase prepares: between two batches, every worker tries whether the new program can take over
//! what the old one has learned, and votes. The second phase decides: a worker waits until all have voted,
//! and the new program takes over if every vote was for it. A vote that is dropped before it was cast,
//! because its worker has ended, counts as a vote against, so no worker waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The vote that one worker has.
#[derive(Debug)]
pub(super) struct Vote(Option<Arc<AtomicU64>>);

impl Vote {
    /// The votes of so many workers on one takeover.
    pub(super) fn of_all(count: u32) -> Vec<Vote> {
        let votes = Arc::new(AtomicU64::new(u64::from(count)));
        (0..count).map(|_| Vote(Some(votes.clone()))).collect()
    }

    /// Casts this vote, waits for those of the other workers, and returns the decision: whether all were for
    /// it.
    pub(super) fn cast(mut self, agrees: bool) -> bool {
        let Some(votes) = self.0.take() else { return false };
        vote(&*votes, agrees);
        loop {
            match decision(&*votes) {
                Some(decision) => return decision,
                // The other workers are in the middle of a batch, which takes microseconds, or do not run on
                // a core at present.
                None => thread::yield_now(),
            }
        }
    }
}

impl Drop for Vote {
    fn drop(&mut self) {
        if let Some(votes) = &self.0 {
            vote(&**votes, false);
        }
    }
}

/// A word of 64 bits: the lower half counts the votes that are missing, the upper half those against.
trait VoteWord {
    fn add(&self, difference: u64);
    fn read(&self) -> u64;
}

impl VoteWord for AtomicU64 {
    fn add(&self, difference: u64) {
        self.fetch_add(difference, Ordering::AcqRel);
    }

    fn read(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

fn vote(votes: &impl VoteWord, agrees: bool) {
    let against: u64 = if agrees { 0 } else { 1 << 32 };
    votes.add(against.wrapping_sub(1));
}

fn decision(votes: &impl VoteWord) -> Option<bool> {
    let now = votes.read();
    (now as u32 == 0).then_some(now == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl VoteWord for loom::sync::atomic::AtomicU64 {
        fn add(&self, difference: u64) {
            self.fetch_add(difference, Ordering::AcqRel);
        }

        fn read(&self) -> u64 {
            self.load(Ordering::Acquire)
        }
    }

    /// Every order of the steps of three workers, of which the last one may have ended, so that its vote is
    /// dropped: whoever sees a decision, whenever it looks, sees the right one, and once all have voted there
    /// is one, so that waiting for it ends.
    #[test]
    fn all_workers_change_over_or_none() {
        for votes in [[true, true, true], [true, false, true], [true, true, false]] {
            loom::model(move || {
                use loom::sync::Arc;
                let word = Arc::new(loom::sync::atomic::AtomicU64::new(3));
                let wanted = votes == [true; 3];
                let worker = |agrees: bool| {
                    let word = word.clone();
                    loom::thread::spawn(move || {
                        vote(&*word, agrees);
                        assert!([None, Some(wanted)].contains(&decision(&*word)));
                    })
                };
                let others = [worker(votes[0]), worker(votes[1])];
                assert_eq!(decision(&*word), None, "one vote is missing");
                vote(&*word, votes[2]);
                assert!([None, Some(wanted)].contains(&decision(&*word)));
                others.into_iter().for_each(|other| other.join().unwrap());
                assert_eq!(decision(&*word), Some(wanted));
            });
        }
    }

    #[test]
    fn a_vote_that_is_dropped_is_against() {
        let mut votes = Vote::of_all(2);
        drop(votes.pop());
        assert!(!votes.pop().expect("the other one").cast(true));
        assert!(Vote::of_all(1).pop().expect("the only one").cast(true));
    }
}
