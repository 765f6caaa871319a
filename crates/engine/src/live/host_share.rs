//! The share of punted packets while others wait: how many of them are handed over then.
//!
//! Where a port has more packets than a batch of it takes, and others are among them, these wait behind what
//! is punted. The loop is *pressed* then, and hands over one punted packet for every [`PART`] others, and of
//! each reason one for every [`OWN_PART`] besides, so that many packets of one reason leave something to the
//! others. What is more is lost, so that a sender of TCP slows down. While the loop is not pressed, nothing
//! is lost here.
//!
//! ```text
//!              ENOUGH others in batches behind which more
//!              packets wait, within QUIET turns of the ports
//!  at leisure ──────────────────────────────────────────────► pressed
//!             ◄──────────────────────────────────────────────
//!               nothing came by any port, or not so many
//!               others in QUIET turns
//! ```
//!
//! The second way back is for a flood of packets that are punted: it would leave the loop nothing to do, and
//! the machine without any.
//!
//! Packets are counted, and no time is read: what a packet for the machine costs depends on who takes it.

/// One punted packet for so many others.
const PART: u64 = 8;
/// The same for each reason by itself, besides.
const OWN_PART: u64 = 64;
/// So many are handed over at once when the loop becomes pressed, or after a time without any.
const AT_ONCE: u64 = 256;
/// The same of each reason by itself, besides.
const OWN_AT_ONCE: u64 = 16;

/// So many others say that others wait: a few among thousands that are punted do not.
const ENOUGH: u64 = 32;
/// After so many turns of the ports without as many, these do not wait. The end of a ring cuts a batch short
/// now and then.
const QUIET: usize = 8;

/// How many punted packets may still be handed over.
#[derive(Debug, Default)]
pub(super) struct HostShare {
    pressed: bool,
    /// Turns of the ports since enough others waited, or since it was looked whether they do.
    quiet: usize,
    /// Others that have passed since the last batch was told to be over.
    passed: u64,
    /// Others of batches behind which more packets wait.
    waiting: u64,
    /// In others that have passed, of which a punted packet takes [`PART`].
    common: u64,
    /// The same by reason, of which a punted packet takes [`OWN_PART`].
    own: Vec<u64>,
}

impl HostShare {
    /// Every port has had its turn; `idle` says that nothing came.
    pub(super) fn turn(&mut self, idle: bool) {
        self.quiet += 1;
        if idle || self.quiet >= QUIET {
            (self.pressed, self.quiet, self.waiting) = (false, 0, 0);
        }
    }

    /// Whether others wait.
    pub(super) fn is_pressed(&self) -> bool {
        self.pressed
    }

    /// So many packets have passed, of which so many were punted.
    pub(super) fn passed(&mut self, packets: usize, punted: usize) {
        let others = (packets - punted) as u64;
        self.passed += others;
        // Where few others are among many that are punted, a stream to the machine is to become slower and
        // not to stop.
        let counted = if others > 0 { others.max(packets as u64 / 2) } else { 0 };
        self.common = (self.common + counted).min(AT_ONCE * PART);
        for own in &mut self.own {
            *own = (*own + counted).min(OWN_AT_ONCE * OWN_PART);
        }
    }

    /// All packets of a batch have passed that came in together, and `more` wait where they came from.
    pub(super) fn over(&mut self, more: bool) {
        let others = std::mem::take(&mut self.passed);
        if more {
            self.waiting += others;
        }
        if self.waiting >= ENOUGH {
            (self.quiet, self.waiting) = (0, 0);
            if !self.pressed {
                self.pressed = true;
                self.common = AT_ONCE * PART;
                self.own.fill(OWN_AT_ONCE * OWN_PART);
            }
        }
    }

    /// Whether a punted packet of the reason with this number is handed over; if so, it is counted.
    pub(super) fn admits(&mut self, reason: usize) -> bool {
        if !self.pressed {
            return true;
        }
        if self.own.len() <= reason {
            self.own.resize(reason + 1, OWN_AT_ONCE * OWN_PART);
        }
        for (left, part) in [(&mut self.own[reason], OWN_PART), (&mut self.common, PART)] {
            if let Some(less) = left.checked_sub(part) {
                *left = less;
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::BATCH;

    /// How many of so many packets of a reason are handed over.
    fn admitted(share: &mut HostShare, reason: usize, packets: usize) -> u64 {
        (0..packets).filter(|_| share.admits(reason)).count() as u64
    }

    /// A batch passes, and more wait if it is a full one.
    fn pass(share: &mut HostShare, packets: usize, punted: usize) {
        share.passed(packets, punted);
        share.over(packets == BATCH);
    }

    #[test]
    fn nothing_is_lost_while_no_others_wait() {
        let mut share = HostShare::default();
        for (packets, punted) in [(BATCH - 1, 0), (BATCH, BATCH), (BATCH, BATCH - ENOUGH as usize + 1)] {
            assert_eq!(admitted(&mut share, 3, 100_000), 100_000);
            pass(&mut share, packets, punted);
            assert!(!share.is_pressed());
        }
        pass(&mut share, BATCH, BATCH - 1);
        assert_eq!(admitted(&mut share, 3, 100_000), AT_ONCE + OWN_AT_ONCE);
        share.turn(true);
        assert_eq!(admitted(&mut share, 3, 100_000), 100_000);
    }

    #[test]
    fn a_few_others_wait_among_many_that_are_punted_if_they_go_on_coming() {
        let mut share = HostShare::default();
        // One other packet in each batch is none that waits.
        for _ in 0..10 * QUIET {
            pass(&mut share, BATCH, BATCH - 1);
            share.turn(false);
            assert!(!share.is_pressed());
        }
        for _ in 0..QUIET {
            pass(&mut share, BATCH, BATCH - 8);
            share.turn(false);
        }
        assert!(share.is_pressed());
        admitted(&mut share, 0, 100_000);
        admitted(&mut share, 1, 100_000);
        pass(&mut share, BATCH, BATCH - 8);
        let half = BATCH as u64 / 2;
        assert_eq!(admitted(&mut share, 0, 100_000), half / PART + half / OWN_PART);
    }

    #[test]
    fn packets_that_came_together_count_together_however_they_were_divided() {
        for part in [1, 32, BATCH / 2] {
            let mut share = HostShare::default();
            (0..BATCH / part).for_each(|_| share.passed(part, part / 2));
            assert!(!share.is_pressed());
            share.over(true);
            assert_eq!(share.is_pressed(), BATCH / part * (part - part / 2) >= ENOUGH as usize);
            // What passed before says nothing of a batch behind which nothing waits.
            let mut share = HostShare::default();
            share.passed(BATCH, 0);
            share.over(false);
            share.over(true);
            assert!(!share.is_pressed());
        }
    }

    #[test]
    fn a_flood_of_punted_packets_does_not_keep_the_loop_pressed() {
        let mut share = HostShare::default();
        pass(&mut share, BATCH, 0);
        for _ in 1..QUIET {
            pass(&mut share, BATCH, BATCH);
            share.turn(false);
            assert!(share.is_pressed());
        }
        // Others that come in between begin anew.
        pass(&mut share, BATCH, BATCH / 2);
        for _ in 0..QUIET {
            assert!(share.is_pressed());
            pass(&mut share, BATCH, BATCH);
            share.turn(false);
        }
        assert!(!share.is_pressed());
    }

    #[test]
    fn others_that_pass_bring_punted_packets_their_part() {
        let mut share = HostShare::default();
        pass(&mut share, BATCH, 0);
        admitted(&mut share, 0, 100_000);
        admitted(&mut share, 1, 100_000);
        // A batch that is not full brings less.
        for (packets, punted) in [(BATCH, 0), (100, 36), (BATCH, BATCH)] {
            pass(&mut share, packets, punted);
            let others = (packets - punted) as u64;
            assert_eq!(admitted(&mut share, 0, 100_000), others / PART + others / OWN_PART);
            assert_eq!(admitted(&mut share, 1, 100_000), others / OWN_PART, "its own is left to it");
        }
        // Long without any, it gets no more than it does at once.
        (0..1000).for_each(|_| pass(&mut share, BATCH, 0));
        assert_eq!(admitted(&mut share, 0, 100_000), AT_ONCE + OWN_AT_ONCE);
    }
}
