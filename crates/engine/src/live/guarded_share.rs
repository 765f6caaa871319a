//! The share of time of guarded ports: how much of it they get while packets come by others.
//!
//! Behind a guarded port is somebody who may have been taken over, and a flood from there must leave the
//! other ports their throughput. Time that a guarded port takes makes a *debt* that is [`OTHERS`] times as
//! long, and time that other ports take pays it. A guarded port has its turn where there is no debt. Where
//! nothing came by another port in a whole turn, nobody waited, and the debt is forgotten.
//!
//! Time is measured, and no packets are counted: a frame that the guard refuses costs less than one that the
//! program looks through.

use ports::live::Receiver;

/// So much time others get for as much as a guarded port takes: it has a seventeenth of the time at most.
const OTHERS: u64 = 16;
/// The longest debt in nanoseconds. More comes about where Linux lets the loop wait meanwhile.
const LONGEST_DEBT: u64 = 10_000_000;

/// Which ports are guarded, and what they owe the others.
#[derive(Debug)]
pub(super) struct GuardedShare {
    /// By port; empty where none is guarded.
    guarded: Vec<bool>,
    /// In nanoseconds.
    debt: u64,
    /// Whether packets came by another port in this turn.
    others_came: bool,
}

impl GuardedShare {
    /// Of the ports of a loop.
    pub(super) fn of(receivers: &[Box<dyn Receiver>]) -> GuardedShare {
        let mut guarded: Vec<bool> = receivers.iter().map(|port| port.is_guarded()).collect();
        if !guarded.contains(&true) {
            guarded.clear();
        }
        GuardedShare { guarded, debt: 0, others_came: false }
    }

    /// Whether time has to be measured.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        !self.guarded.is_empty()
    }

    /// Whether the port with this index has its turn.
    #[inline]
    pub(super) fn admits(&self, port: usize) -> bool {
        self.debt == 0 || !self.is_guarded(port)
    }

    /// A port took so many nanoseconds for packets that came by it, or to refuse them.
    pub(super) fn took(&mut self, port: usize, nanoseconds: u64) {
        if self.is_guarded(port) {
            self.debt = self.debt.saturating_add(nanoseconds.saturating_mul(OTHERS)).min(LONGEST_DEBT);
        } else {
            self.debt = self.debt.saturating_sub(nanoseconds);
            self.others_came = true;
        }
    }

    /// Every port has had its turn, or has to wait.
    #[inline]
    pub(super) fn turn(&mut self) {
        if !std::mem::take(&mut self.others_came) {
            self.debt = 0;
        }
    }

    fn is_guarded(&self, port: usize) -> bool {
        self.guarded.get(port).is_some_and(|guarded| *guarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time that the guarded port gets and that the other one gets in so many turns, where either takes
    /// as long as said for each turn that it has; 0 for one that nothing comes by.
    fn times(guarded: u64, other: u64, turns: usize) -> (u64, u64) {
        let mut share = GuardedShare { guarded: vec![true, false], debt: 0, others_came: false };
        let mut sums = (0, 0);
        for _ in 0..turns {
            if share.admits(0) && guarded > 0 {
                share.took(0, guarded);
                sums.0 += guarded;
            }
            assert!(share.admits(1), "nobody else waits");
            if other > 0 {
                share.took(1, other);
                sums.1 += other;
            }
            share.turn();
        }
        sums
    }

    #[test]
    fn beside_others_a_guarded_port_gets_its_share_and_alone_all_time() {
        for (guarded, other) in [(200_000, 50_000), (50_000, 200_000), (1_000, 300), (300_000, 1_000)] {
            let (own, others) = times(guarded, other, 10_000);
            assert!(own * OTHERS <= others + guarded * OTHERS, "{guarded} {other}: {own} beside {others}");
            // A turn more would be too many.
            let most = (own + 2 * guarded) * OTHERS + 2 * other;
            assert!(most >= others, "{guarded} {other}: {own} beside {others}");
        }
        assert_eq!(times(200_000, 0, 100), (20_000_000, 0));
    }

    #[test]
    fn a_debt_ends_with_the_packets_of_others_and_is_never_longer_than_the_longest() {
        let mut share = GuardedShare { guarded: vec![false, true], debt: 0, others_came: false };
        share.took(1, u64::MAX);
        share.took(0, LONGEST_DEBT - 1);
        share.turn();
        assert!(!share.admits(1) && share.admits(0));
        share.took(0, 1);
        assert!(share.admits(1));
        share.took(1, u64::MAX);
        share.turn();
        assert!(!share.admits(1), "the other one had packets in this turn");
        share.turn();
        assert!(share.admits(1), "nobody had");
    }
}
