//! When what has ended is started again: at once, and later if it ends soon after its start again and again.

use std::time::{Duration, Instant};

/// A process that ends within this time of its start is started again after a while.
const SOON: Duration = Duration::from_secs(1);
/// How long a while is: twice as long each time, up to the second.
const WHILE: Duration = Duration::from_millis(100);
const LONGEST_WHILE: Duration = Duration::from_secs(5);

/// The next start of a process.
pub(crate) struct Restart {
    started: Instant,
    wait: Duration,
    /// When, if it is to be started.
    pub(crate) at: Option<Instant>,
}

impl Restart {
    pub(crate) fn new() -> Restart {
        Restart { started: Instant::now(), wait: Duration::ZERO, at: None }
    }

    /// The process has ended.
    pub(crate) fn ended(&mut self) {
        self.wait = match self.started.elapsed() < SOON {
            true => (self.wait * 2).clamp(WHILE, LONGEST_WHILE),
            false => Duration::ZERO,
        };
        self.at = Some(Instant::now() + self.wait);
    }

    /// It could not be started, however long that took to find out.
    pub(crate) fn failed(&mut self) {
        self.started = Instant::now();
        self.ended();
    }

    /// Whether it is to be started now, which then is done.
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.at.is_some_and(|at| Instant::now() >= at);
        if due {
            (self.at, self.started) = (None, Instant::now());
        }
        due
    }

    /// How long it is until then, at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.at.map_or(most, |at| at.saturating_duration_since(Instant::now()).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_soon_after_its_start_is_started_later_each_time() {
        let mut restart = Restart::new();
        assert!(!restart.is_due(), "it runs");
        let mut waits = Vec::new();
        for _ in 0..8 {
            restart.ended();
            waits.push(restart.wait.as_millis());
            restart.at = restart.at.map(|_| Instant::now());
            assert!(restart.is_due() && !restart.is_due(), "once");
        }
        assert_eq!(waits, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        restart.started -= SOON;
        restart.ended();
        assert!(restart.is_due(), "at once after it has run for a while");
        restart.ended();
        restart.started -= SOON;
        restart.failed();
        assert!(!restart.is_due(), "it did not run");
        assert!(restart.left(SOON) > Duration::ZERO && restart.left(Duration::ZERO) == Duration::ZERO);
    }
}
