//! The share of time of guarded ports: how much of it they get while packets come by others.
//!
//! Behind a guarded port is somebody who may have been taken over, and a flood from there must leave the
//! other ports their throughput. Time that a guarded port takes makes a *debt* that is [`OTHERS`] times as
//! long, and time that other ports take pays it. All guarded ports have their turns where there is no debt
//! when a turn of all ports begins, and otherwise none has. Where nothing came by another port in a whole
//! turn of all ports, nobody waited, and the debt is forgotten.
//!
//! Time is measured, and no packets are counted: a frame that the guard refuses costs less than one that the
//! program looks through.

use ports::live::Receiver;

/// So much time others get for as much as a guarded port takes: about a seventeenth of the time is its.
const OTHERS: u64 = 16;
/// The longest debt in nanoseconds: that of a batch of 6 ms. A longer one arises where Linux suspends the
/// worker within a batch.
const LONGEST_DEBT: u64 = 100_000_000;

/// Which ports are guarded, and what they owe the others.
#[derive(Debug)]
pub(super) struct GuardedShare {
    /// By port; empty where none is guarded.
    guarded: Vec<bool>,
    /// In nanoseconds.
    debt: u64,
    /// Whether guarded ports have their turns in this turn of all ports.
    is_open: bool,
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
        GuardedShare { guarded, debt: 0, is_open: true, others_came: false }
    }

    /// Whether time has to be measured.
    #[inline]
    pub(super) fn is_needed(&self) -> bool {
        !self.guarded.is_empty()
    }

    /// Whether the port with this index has its turn.
    #[inline]
    pub(super) fn admits(&self, port: usize) -> bool {
        self.is_open || !self.is_guarded(port)
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
        self.is_open = self.debt == 0;
    }

    /// Whether the port with this index is guarded.
    #[inline]
    pub(super) fn is_guarded(&self, port: usize) -> bool {
        self.guarded.get(port).is_some_and(|guarded| *guarded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(guarded: &[bool]) -> GuardedShare {
        GuardedShare { guarded: guarded.to_vec(), debt: 0, is_open: true, others_came: false }
    }

    /// The time that guarded ports get together, that the first of them gets, and that the other port gets,
    /// in so many turns of all ports, where each takes as long as said whenever it has its turn; 0 for one
    /// that nothing comes by.
    fn times(guarded: [u64; 2], other: u64, turns: usize) -> (u64, u64, u64) {
        let mut share = share(&[true, false, true]);
        let (mut own, mut first, mut others) = (0, 0, 0);
        for _ in 0..turns {
            for (port, time) in [(0, guarded[0]), (1, other), (2, guarded[1])] {
                assert!(port != 1 || share.admits(port), "nobody else waits");
                if !share.admits(port) {
                    continue;
                }
                match port {
                    1 if time > 0 => share.took(port, time),
                    1 => {}
                    // To find that nothing came takes time, too.
                    _ => share.took(port, time.max(1)),
                }
                match port {
                    0 => (own, first) = (own + time, first + time),
                    1 => others += time,
                    _ => own += time,
                }
            }
            share.turn();
        }
        (own, first, others)
    }

    #[test]
    fn beside_others_guarded_ports_get_their_share_and_alone_all_time() {
        for (guarded, other) in [
            ([200_000, 0], 50_000),
            ([50_000, 0], 200_000),
            ([1_000, 2_000], 300),
            ([300_000, 100_000], 1_000),
            ([0, 300_000], 7_000),
        ] {
            let (own, _, others) = times(guarded, other, 20_000);
            let turn = guarded[0] + guarded[1] + 2;
            assert!(own * OTHERS <= others + turn * OTHERS, "{guarded:?} {other}: {own} beside {others}");
            // A turn more for them would be too much; each of theirs ends with one of the other port.
            let theirs = own / (guarded[0] + guarded[1]) + 1;
            let more = (own + turn) * OTHERS + theirs * (other + 2 * OTHERS);
            assert!(more >= others, "{guarded:?} {other}: {own} beside {others}");
        }
        assert_eq!(times([200_000, 0], 0, 100), (20_000_000, 20_000_000, 0));
    }

    #[test]
    fn a_guarded_port_does_not_keep_another_one_from_its_turns() {
        // The first has nothing, or always something.
        for first in [0, 300_000] {
            for other in [0, 40_000] {
                let (own, of_first, _) = times([first, 300_000], other, 10_000);
                assert!(own - of_first >= 300_000 * 40, "{first} {other}: {}", own - of_first);
                assert_eq!(of_first, if first == 0 { 0 } else { own - of_first });
            }
        }
    }

    #[test]
    fn a_debt_ends_with_the_packets_of_others_and_is_never_longer_than_the_longest() {
        let mut share = share(&[false, true]);
        share.took(1, u64::MAX);
        share.took(0, LONGEST_DEBT - 1);
        share.turn();
        assert!(!share.admits(1) && share.admits(0));
        share.took(0, 1);
        share.turn();
        assert!(share.admits(1));
        share.took(1, u64::MAX);
        share.took(0, 1);
        share.turn();
        assert!(!share.admits(1), "the other one had packets in this turn");
        share.turn();
        assert!(share.admits(1), "nobody had");
    }
}
