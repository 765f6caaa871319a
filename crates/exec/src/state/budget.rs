//! The budget of handlers that are due: how many of them begin before a packet.
//!
//! Time fills it, up to a bound, and each handler that begins takes its part. Something that has become due
//! since the moment before begins by what there was when it became due: so what falls due one after the other
//! in a gap between two packets of a capture begins as in a running gateway, which handles it as time passes.
//! Of what was due at one time, only as much begins as there was for then, however long the gap was. What was
//! due at the moment before already is *late*: it waits for what time brings from then on, and the later it
//! is, the more that is.

use super::limits::{LATE_ADDS, MAX_RUNS, MOST_ADDED, TIMERS_ADD};

/// How many handlers may begin.
#[derive(Clone, Debug)]
pub(super) struct Budget {
    /// What one takes, in ns.
    each: u64,
    /// The most that gathers, in ns.
    most: u64,
    /// What there was at the time `filled`, in ns.
    credit: u64,
    filled: u64,
    /// The moment before.
    before: u64,
    /// How many more begin at this moment, however long the time before it was.
    left: u32,
}

impl Budget {
    /// A full budget: so many handlers at one moment, and one more after each time of `each` ns.
    pub(super) fn new(each: u64, at_once: u32) -> Budget {
        let most = each * u64::from(at_once);
        Budget { each, most, credit: most, filled: 0, before: 0, left: MAX_RUNS }
    }

    /// Whether a handler begins at the moment `time` that is due at `due`, while so many timers are pending.
    pub(super) fn take(&mut self, due: u64, time: u64, timers: usize) -> bool {
        if due <= self.before {
            self.fill(time, time.saturating_sub(due) / LATE_ADDS + timers as u64 / TIMERS_ADD);
        } else {
            self.fill(due, 0);
        }
        let left = self.left.checked_sub(1).zip(self.credit.checked_sub(self.each));
        match left {
            Some(left) => (self.left, self.credit) = left,
            // What it waits for comes from now on.
            None => self.filled = time,
        }
        left.is_some()
    }

    /// The moment `time` is over.
    pub(super) fn close(&mut self, time: u64) {
        self.fill(time, 0);
        (self.before, self.left) = (time, MAX_RUNS);
    }

    /// Time brings as much as it takes, and so many sixteenths of that more.
    fn fill(&mut self, time: u64, more: u64) {
        let passed = time.saturating_sub(self.filled);
        let brings = passed.saturating_mul(16 + more.min(MOST_ADDED)) / 16;
        self.credit = self.credit.saturating_add(brings).min(self.most);
        self.filled = self.filled.max(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// How many of those begin at `time` that are due at these times.
    fn begun(budget: &mut Budget, dues: impl Iterator<Item = u64>, time: u64, timers: usize) -> usize {
        let begun = dues.take_while(|due| budget.take(*due, time, timers)).count();
        budget.close(time);
        begun
    }

    #[test]
    fn what_became_due_in_a_gap_begins_as_if_time_had_passed_in_small_steps() {
        let together = |budget: &mut Budget| begun(budget, std::iter::repeat_n(SECOND, 1000), 2 * SECOND, 0);
        let spread = |number: u64| SECOND + number * 1000;
        let mut budget = Budget::new(1000, 10);
        assert_eq!(together(&mut budget.clone()), 10, "all at one time");
        assert_eq!(begun(&mut budget, (0..1000).map(spread), 2 * SECOND, 0), 1000);
        // However long the gap was.
        let mut budget = Budget::new(1000, 10);
        assert_eq!(begun(&mut budget, (0..).map(spread), u64::MAX, 0), MAX_RUNS as usize);
    }

    #[test]
    fn what_is_late_waits_for_the_time_from_then_on_which_brings_more_the_later_it_is() {
        let mut budget = Budget::new(1000, 10);
        let mut at = |time: u64, timers| begun(&mut budget, std::iter::repeat(1), time, timers);
        assert_eq!(at(50_000, 0), 10, "time before does not count");
        assert_eq!([at(50_999, 0), at(51_000, 0), at(53_500, 0)], [0, 1, 2]);
        assert_eq!(at(SECOND, 0), 10, "and no more than that gathers");
        assert_eq!([at(SECOND + 2000, 0), at(4 * SECOND, 0), at(4 * SECOND + 2000, 0)], [4, 10, 10]);
        assert_eq!(at(4 * SECOND + 3000, 0), 5, "after four seconds five times as much");
        // Many timers bring more, too, and both no more than thirty-two times as much.
        let mut budget = Budget::new(1000, 100);
        let mut at = |time: u64, timers| begun(&mut budget, std::iter::repeat(1), time, timers);
        assert_eq!([at(1000, 0), at(3000, 3 * 2048), at(5000, 65_536), at(7000, 65_536)], [100, 8, 64, 64]);
    }
}
