//! How the loop waits while there is nothing to do: as a worker between interfaces does, in the kernel, for
//! packets or until the schedule wants to be asked.
//!
//! Packets in memory come by no interface. A timer in their place makes a descriptor readable when the next
//! one falls due.

use ports::live::Waiter;
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// As long as a worker sleeps at most while no packet comes.
const TICK: Duration = Duration::from_millis(1);

/// Waits for packets that fall due, and for the schedule.
pub(super) struct Waiting {
    waiter: Waiter,
    timer: OwnedFd,
}

impl Waiting {
    /// Nothing falls due yet.
    ///
    /// # Errors
    /// The kernel gives no further descriptor.
    pub(super) fn new() -> io::Result<Waiting> {
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        Ok(Waiting { waiter: Waiter::new(&[timer.as_raw_fd()])?, timer })
    }

    /// Returns when the next packet is due, when the schedule wants to be asked again if it does, or after a
    /// tick.
    ///
    /// # Errors
    /// What the kernel says.
    pub(super) fn wait(&mut self, packet: Duration, schedule: Option<Duration>) -> io::Result<()> {
        // Nothing would stop the timer.
        let packet = packet.max(Duration::from_nanos(1));
        let it_value = Timespec::try_from(packet).map_err(|_| Errno::INVAL)?;
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &once)?;
        let most = schedule.map_or(TICK, |schedule| schedule.min(TICK));
        self.waiter.wait(most.as_nanos() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn a_packet_that_falls_due_ends_a_wait_and_so_does_the_schedule() {
        let mut waiting = Waiting::new().expect("a timer");
        let mut wait = |packet: Duration, schedule: Option<Duration>| {
            let begin = Instant::now();
            waiting.wait(packet, schedule).expect("it can wait");
            begin.elapsed()
        };
        let [soon, late] = [Duration::from_micros(100), Duration::from_secs(3600)];
        // No wait is shorter than what ends it; that one ends at all says that the other one is not waited
        // for.
        assert!(wait(late, Some(soon)) >= soon);
        assert!(wait(late, None) >= TICK);
        wait(Duration::ZERO, Some(late));
        // A packet ends it before the tick; where the processor is taken away, it does so the next time or
        // the one after.
        let waits: Vec<Duration> = (0..200).map(|_| wait(soon, Some(late))).collect();
        assert!(
            waits.iter().all(|waited| *waited >= soon) && waits.iter().any(|waited| *waited < TICK),
            "{waits:?}"
        );
        // What was due is so no longer once another packet is waited for.
        assert!(wait(late, None) >= TICK);
    }
}
