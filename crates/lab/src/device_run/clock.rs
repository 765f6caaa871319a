//! The clock of an experiment: that of the machine, or one that a test moves.

use std::time::{Duration, Instant};

/// The time of an experiment: to read it, and to wait.
pub trait LabClock {
    /// Time since some beginning.
    fn now(&self) -> Duration;

    /// Lets so much time pass.
    fn wait(&self, time: Duration);

    /// Is told that the host has run so many packets, so that an imitated clock can let the time for this
    /// pass.
    fn ran(&self, packets: usize) {
        let _ = packets;
    }
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Wall(Instant);

impl Default for Wall {
    /// Begins now.
    fn default() -> Wall {
        Wall(Instant::now())
    }
}

/// A sleep may take so much longer than it was to.
const OVERSLEPT: Duration = Duration::from_micros(200);

impl LabClock for Wall {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    fn wait(&self, time: Duration) {
        let until = self.now() + time;
        if time > OVERSLEPT {
            std::thread::sleep(time - OVERSLEPT);
        }
        while self.now() < until {
            std::hint::spin_loop();
        }
    }
}
