//! The clock of live programs: nanoseconds since 36 years before the machine started, including time in which
//! it was suspended; nobody can set it.
//!
//! Wall-clock time is for people, and may be set at any moment, so no deadline or interval uses it. A
//! wall-clock time for people is computed when it is shown or written, from the program's time and the
//! present difference between the two clocks.

use super::sys;
use std::fmt;
use std::time::SystemTime;

/// If the time stamp of a packet that has just come is older than this (ns), the wall clock was set
/// meanwhile.
const LONGEST_WAIT: u64 = 10_000_000_000;

/// The program's time when the machine started, 36 years. An entry that ends before its table's `age` is over
/// counts as learned that much earlier, so there must be time before the machine started.
const AT_START: u64 = 1 << 60;

/// A reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// The program's time in nanoseconds, which never goes back and cannot be set.
    pub program: u64,
    /// Wall-clock time: nanoseconds since 1970-01-01 UTC.
    pub wall: u64,
}

impl Now {
    /// The wall-clock time that belongs to a time of the program, if nobody has set the clock since.
    pub fn on_wall(self, program: u64) -> u64 {
        if program <= self.program {
            self.wall.saturating_sub(self.program - program)
        } else {
            self.wall.saturating_add(program - self.program)
        }
    }

    /// The program's time that belongs to a wall-clock time stamp, which Linux wrote on a packet that has
    /// just come. If the clock was set since, this is the present time.
    pub fn of_stamp(self, wall: u64) -> u64 {
        match self.wall.checked_sub(wall) {
            Some(ago) if ago <= LONGEST_WAIT => self.program.saturating_sub(ago),
            _ => self.program,
        }
    }
}

/// A source of live time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Reads both clocks.
    fn now(&self) -> Now;

    /// Reads the program's time only.
    fn program(&self) -> u64 {
        self.now().program
    }
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineClock;

impl Clock for MachineClock {
    fn now(&self) -> Now {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        Now { program: self.program(), wall: since.map_or(0, |since| since.as_nanos() as u64) }
    }

    #[inline]
    fn program(&self) -> u64 {
        AT_START.saturating_add(sys::since_start())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    #[test]
    fn stamps_of_packets_become_the_programs_time_whatever_the_wall_shows() {
        let now = Now { program: 50_000_000_000, wall: 7 * HOUR };
        assert_eq!(now.of_stamp(7 * HOUR - 5), 49_999_999_995);
        assert_eq!(now.of_stamp(7 * HOUR), now.program);
        // The clock was set an hour back or forward since Linux wrote the stamp.
        assert_eq!(now.of_stamp(8 * HOUR), now.program);
        assert_eq!(now.of_stamp(6 * HOUR), now.program);
        assert_eq!(Now { program: 3, wall: HOUR }.of_stamp(HOUR - 5), 0);
    }

    #[test]
    fn people_are_shown_what_the_wall_would_have_shown() {
        let now = Now { program: 50, wall: HOUR };
        assert_eq!((now.on_wall(50), now.on_wall(40), now.on_wall(60)), (HOUR, HOUR - 10, HOUR + 10));
        assert_eq!(Now { program: 50, wall: 7 }.on_wall(1), 0);
    }

    #[test]
    fn the_machines_time_goes_on() {
        let first = MachineClock.now();
        let second = MachineClock.program();
        assert!(first.program > AT_START && second >= first.program);
        assert!(first.wall > sys::since_start(), "1970 was before the machine started");
    }
}
