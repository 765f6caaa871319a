//! Watches a launch of a persistent kernel by the host's clock: decides when the kernel is told to end, and
//! when it counts as stalled.
//!
//! ```text
//!  started ──► its dispatcher begins ──── quantum ────► told to end ──── grace of asked time without any slot done ────► stalled
//! ```
//!
//! The clock begins with the dispatcher, as a launch may have to wait for whatever else uses the device. From
//! when it is told to end, only time in which somebody asks counts, and of the time between two questions no
//! more than [`STEP`]: whoever was stopped for a while finds no device stalled that was stopped, too. A slot
//! that is done begins the count anew.

use std::time::{Duration, Instant};

/// A kernel that was told to end has only slots to run that it knows. Where it shares processors with
/// everybody, it needs more grace.
pub const GRACE: Duration = Duration::from_secs(1);
/// The most that counts of the time between two questions.
pub const STEP: Duration = Duration::from_millis(10);

/// What is to be done about a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Nothing.
    Goes,
    /// It is to be told to end. This is said once.
    Stop,
    /// It does not come to an end.
    Stalled,
}

/// What is known of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    quantum: Duration,
    grace: Duration,
    begun: Option<Instant>,
    told: bool,
    asked: Duration,
    last: Instant,
}

impl Watch {
    /// A launch of so long at most, with so much grace, which was started now.
    pub fn new(quantum: Duration, grace: Duration, now: Instant) -> Watch {
        Watch { quantum, grace, begun: None, told: false, asked: Duration::ZERO, last: now }
    }

    /// A slot is done.
    pub fn goes_on(&mut self) {
        self.asked = Duration::ZERO;
    }

    /// It is told to end before its time.
    pub fn told(&mut self) {
        self.told = true;
        self.goes_on();
    }

    /// How long it has been asked in vain, since it was told to end.
    pub fn asked(&self) -> Duration {
        self.asked
    }

    /// It still runs. `has_begun`: whether its dispatcher has.
    pub fn look(&mut self, has_begun: bool, now: Instant) -> Notice {
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.last, now));
        let begun = match self.begun {
            Some(begun) => begun,
            None if has_begun => *self.begun.insert(now),
            None => return Notice::Goes,
        };
        if !self.told {
            if now.saturating_duration_since(begun) < self.quantum {
                return Notice::Goes;
            }
            self.told();
            return Notice::Stop;
        }
        // It did not run before it began.
        if begun < now {
            self.asked += passed.min(STEP);
        }
        if self.asked > self.grace.max(self.quantum) { Notice::Stalled } else { Notice::Goes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUANTUM: Duration = Duration::from_millis(50);

    /// Asks every few milliseconds until something is to be done; when that is.
    fn ask(watch: &mut Watch, now: &mut Instant, every: u64) -> Notice {
        for _ in 0..10_000 {
            *now += Duration::from_millis(every);
            match watch.look(true, *now) {
                Notice::Goes => {}
                notice => return notice,
            }
        }
        Notice::Goes
    }

    #[test]
    fn a_launch_is_told_to_end_after_its_time_and_has_stalled_a_while_later() {
        let (begin, mut now) = (Instant::now(), Instant::now());
        let mut watch = Watch::new(QUANTUM, GRACE, begin);
        now += Duration::from_millis(1);
        assert_eq!(watch.look(true, now), Notice::Goes);
        assert_eq!(ask(&mut watch, &mut now, 2), Notice::Stop);
        let told = now;
        assert!((50..60).contains(&(told - begin).as_millis()), "{:?}", told - begin);
        assert_eq!(ask(&mut watch, &mut now, 2), Notice::Stalled);
        assert!((1000..1010).contains(&(now - told).as_millis()), "{:?}", now - told);
        assert!(watch.asked() > GRACE);
    }

    #[test]
    fn a_launch_that_waits_for_the_device_and_one_that_does_something_have_not_stalled() {
        let mut now = Instant::now();
        let mut watch = Watch::new(QUANTUM, GRACE, now);
        for _ in 0..10_000 {
            now += Duration::from_millis(9);
            assert_eq!(watch.look(false, now), Notice::Goes, "it has not begun");
        }
        assert_eq!(watch.look(true, now), Notice::Goes);
        assert_eq!(ask(&mut watch, &mut now, 5), Notice::Stop);
        for _ in 0..10_000 {
            now += Duration::from_millis(9);
            watch.goes_on();
            assert_eq!(watch.look(true, now), Notice::Goes, "it runs what it knows");
        }
        assert_eq!(ask(&mut watch, &mut now, 5), Notice::Stalled);
    }

    #[test]
    fn whoever_was_stopped_asks_for_as_long_as_whoever_was_not() {
        let mut now = Instant::now();
        let mut watch = Watch::new(QUANTUM, GRACE, now);
        watch.told();
        assert_eq!(watch.look(true, now), Notice::Goes);
        let count = GRACE.as_millis() / STEP.as_millis();
        for question in 0..count {
            now += Duration::from_secs(3600);
            assert_eq!(watch.look(true, now), Notice::Goes, "question {question}");
        }
        now += Duration::from_secs(3600);
        assert_eq!(watch.look(true, now), Notice::Stalled);
    }

    #[test]
    fn a_long_quantum_is_its_own_grace() {
        let mut now = Instant::now();
        let mut watch = Watch::new(3 * GRACE, GRACE, now);
        assert_eq!(watch.look(true, now), Notice::Goes);
        assert_eq!(ask(&mut watch, &mut now, 10), Notice::Stop);
        let told = now;
        assert_eq!(ask(&mut watch, &mut now, 10), Notice::Stalled);
        assert!(now - told > 3 * GRACE);
    }
}
