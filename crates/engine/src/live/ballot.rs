//! Whether all workers let another program take over, or none does.
//!
//! Every worker gets a ballot. Between two batches it tries whether the new program can have what the old one learned, casts its ballot, and waits until all
//! have: if all were for it every worker changes over, and if one was not none does. A ballot that is thrown away uncast, because its worker
//! has ended, is against it, so nobody waits for ever.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// One worker's say.
#[derive(Debug)]
pub(super) struct Ballot(Option<Arc<AtomicU64>>);

impl Ballot {
    /// So many ballots of one vote.
    pub(super) fn papers(count: u32) -> Vec<Ballot> {
        let votes = Arc::new(AtomicU64::new(u64::from(count)));
        (0..count).map(|_| Ballot(Some(votes.clone()))).collect()
    }

    /// Casts it, waits for the others, and says whether all were for it.
    pub(super) fn cast(mut self, agrees: bool) -> bool {
        let Some(votes) = self.0.take() else { return false };
        vote(&*votes, agrees);
        loop {
            match decision(&*votes) {
                Some(decision) => return decision,
                // The others are in the middle of a batch, which is a matter of microseconds, or not on a processor.
                None => thread::yield_now(),
            }
        }
    }
}

impl Drop for Ballot {
    fn drop(&mut self) {
        if let Some(votes) = &self.0 {
            vote(&**votes, false);
        }
    }
}

/// A word of 64 bits: the lower half counts the votes that are missing, the upper half those against.
trait Votes {
    fn add(&self, difference: u64);
    fn read(&self) -> u64;
}

impl Votes for AtomicU64 {
    fn add(&self, difference: u64) {
        self.fetch_add(difference, Ordering::AcqRel);
    }

    fn read(&self) -> u64 {
        self.load(Ordering::Acquire)
    }
}

fn vote(votes: &impl Votes, agrees: bool) {
    let against: u64 = if agrees { 0 } else { 1 << 32 };
    votes.add(against.wrapping_sub(1));
}

fn decision(votes: &impl Votes) -> Option<bool> {
    let now = votes.read();
    (now as u32 == 0).then_some(now == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Votes for loom::sync::atomic::AtomicU64 {
        fn add(&self, difference: u64) {
            self.fetch_add(difference, Ordering::AcqRel);
        }

        fn read(&self) -> u64 {
            self.load(Ordering::Acquire)
        }
    }

    /// Every order of the steps of three workers, of which the last one may have ended, so that its ballot is thrown away: whoever sees a decision,
    /// whenever it looks, sees the right one, and once all have voted there is one, so that waiting for it ends.
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
    fn a_ballot_that_is_thrown_away_is_against() {
        let mut papers = Ballot::papers(2);
        drop(papers.pop());
        assert!(!papers.pop().expect("the other one").cast(true));
        assert!(Ballot::papers(1).pop().expect("the only one").cast(true));
    }
}
