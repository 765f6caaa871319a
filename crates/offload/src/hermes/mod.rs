//! Hermes, a scheduler of warps: packets become warps as they come, a warp is issued as soon as a core has a
//! free slot, and results are committed in order of arrival.
//!
//! The mechanism is that of "Hermes: an integrated CPU/GPU microarchitecture for IP routing" (DAC 2011) in
//! software; the simulator and real devices share it. The scheduler reads no clock, starts nothing, and does
//! not allocate after it was made: the caller passes times and events, and the scheduler answers what to do
//! next.
//!
//! ```text
//!  packets ──► memory ──► task FIFO ──► round robin ──► cores × warps ──► commit queue ──► committed, in order of arrival
//!            ≥ 32, or     1,024 ×        a core with     each runs one     1,024 × (warp,
//!            after k warp  packet         a free slot     task              packets, done)
//!            arrival times counts
//!
//!  task     waiting ─► queued ─► running ─► done ─► committed
//!              ▲          ▲        │  ▲
//!              │          │        │  └── issued again: its core failed, or gave it back
//!              │          └ FIFO full: packets wait in memory, none is lost
//!              └ commit queue full: tasks wait in the FIFO
//! ```
//!
//! A slot of a core is free again when its warp *finishes*; the place of the warp in the commit queue is free
//! when the warp is *committed*. So the name of a warp (core and slot) can come back while an earlier warp of
//! that name still waits for its commit. The table from names to places is read only when a warp finishes,
//! and then the name is unambiguous.

mod arrivals;
mod commits;
mod cores;
mod fifo;
mod settings;
mod storage;
#[cfg(test)]
mod tests;

pub use arrivals::{Flush, Rate};
pub use settings::{HermesSettings, SettingsError};
pub use storage::{Storage, storage};

use arrivals::Arrivals;
use commits::{CommitQueue, Finish};
use cores::Cores;
use fifo::TaskFifo;

/// Packets of a full warp, unless settings say fewer.
pub const WARP: u8 = 32;

/// A task that a core is to run now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Warp {
    /// The core.
    pub core: u16,
    /// The core's slot; together with the core it names the warp until it finishes.
    pub slot: u8,
    /// Number of its first packet, counted from 0 in order of arrival.
    pub first: u64,
    /// How many packets.
    pub packets: u8,
}

/// Packets whose turn has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Number of the first one.
    pub first: u64,
    /// How many.
    pub packets: u64,
    /// What became of them.
    pub outcome: WarpOutcome,
}

/// What became of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarpOutcome {
    /// A core ran them.
    Done,
    /// No core did: the host runs them from their beginning, now.
    Again,
}

/// An event about a warp that does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no warp runs on core {core} in slot {slot}: it has finished before, or its core has failed")]
pub struct NotRunning {
    /// The core.
    pub core: u16,
    /// The slot.
    pub slot: u8,
}

/// What was counted since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HermesStatistics {
    /// Packets that were taken.
    pub arrived: u64,
    /// Packets that were committed; [`again`](HermesStatistics::again) among them.
    pub committed: u64,
    /// Those of them that no core ran.
    pub again: u64,
    /// Tasks that were made.
    pub tasks: u64,
    /// Those of them with fewer packets than a warp, since time had passed.
    pub flushed: u64,
    /// Tasks that were issued once more.
    pub reissued: u64,
    /// How often packets found the FIFO full and waited in memory.
    pub fifo_full: u64,
    /// How often a task found the commit queue full and waited in the FIFO.
    pub commits_full: u64,
    /// The most tasks in the FIFO.
    pub fifo_most: u16,
    /// The most tasks in the commit queue.
    pub commits_most: u16,
}

/// The scheduler.
#[derive(Clone, Debug)]
pub struct Scheduler {
    arrivals: Arrivals,
    fifo: TaskFifo,
    cores: Cores,
    commits: CommitQueue,
    /// Number of the first packet of the next task that leaves the FIFO.
    next: u64,
    given_up: bool,
    statistics: HermesStatistics,
}

impl Scheduler {
    /// A scheduler to which no packet has come yet. All memory is taken here.
    ///
    /// # Errors
    /// Settings that cannot be; the limit is named.
    pub fn new(settings: &HermesSettings) -> Result<Scheduler, SettingsError> {
        settings.check()?;
        Ok(Scheduler {
            arrivals: Arrivals::new(settings.warp, settings.flush),
            fifo: TaskFifo::new(settings.tasks),
            cores: Cores::new(settings.cores, settings.warps),
            commits: CommitQueue::new(settings.commits, settings.cores, settings.warps),
            next: 0,
            given_up: false,
            statistics: HermesStatistics::default(),
        })
    }

    /// So many packets have come into memory at a time in nanoseconds, which never goes back. Call
    /// [`advance`](Scheduler::advance) next.
    pub fn arrive(&mut self, now: u64, packets: u32) {
        self.arrivals.arrive(now, packets);
        self.statistics.arrived += u64::from(packets);
    }

    /// Makes tasks of packets that wait in memory; how many tasks. They stay in memory while the FIFO is
    /// full.
    pub fn advance(&mut self, now: u64) -> u32 {
        self.make(|arrivals| arrivals.take(now))
    }

    /// As [`advance`](Scheduler::advance), but what waits is flushed without a wait: no more packets are
    /// expected.
    pub fn flush(&mut self) -> u32 {
        self.make(Arrivals::take_all)
    }

    fn make(&mut self, mut take: impl FnMut(&mut Arrivals) -> Option<u8>) -> u32 {
        let mut made = 0;
        while !self.given_up && self.arrivals.waiting() > 0 {
            if self.fifo.is_full() {
                // Only packets that would be a task now were held up.
                self.statistics.fifo_full += u64::from(self.arrivals.is_full());
                break;
            }
            let Some(packets) = take(&mut self.arrivals) else { break };
            self.fifo.push(packets);
            made += 1;
            self.statistics.flushed += u64::from(packets < self.arrivals.warp());
            self.statistics.fifo_most = self.statistics.fifo_most.max(self.fifo.len());
        }
        self.statistics.tasks += u64::from(made);
        made
    }

    /// When [`advance`](Scheduler::advance) is to be called next even if nothing else happens; none while
    /// nothing waits or there is no room.
    pub fn due(&self) -> Option<u64> {
        if self.fifo.is_full() || self.given_up { None } else { self.arrivals.due() }
    }

    /// The next task with the core that is to run it; none while there is no task, no free slot or no place
    /// in the commit queue.
    pub fn issue(&mut self) -> Option<Warp> {
        if self.given_up {
            return None;
        }
        if self.commits.has_returned() {
            let (core, slot) = self.cores.take()?;
            let (first, packets) = self.commits.issue_again(core, slot)?;
            self.statistics.reissued += 1;
            return Some(Warp { core, slot, first, packets });
        }
        let packets = self.fifo.front()?;
        if self.commits.is_full() {
            self.statistics.commits_full += 1;
            return None;
        }
        let (core, slot) = self.cores.take()?;
        let first = self.next;
        self.fifo.pop();
        self.commits.push(core, slot, first, packets);
        self.next += u64::from(packets);
        self.statistics.commits_most = self.statistics.commits_most.max(self.commits.len());
        Some(Warp { core, slot, first, packets })
    }

    /// A warp is done; its slot is free.
    ///
    /// # Errors
    /// No such warp runs. Nothing has changed then.
    pub fn finish(&mut self, core: u16, slot: u8) -> Result<(), NotRunning> {
        self.end(core, slot, Finish::Done)
    }

    /// A warp came back without results; its slot is free, and the host runs its packets in their turn.
    ///
    /// # Errors
    /// As [`finish`](Scheduler::finish).
    pub fn refuse(&mut self, core: u16, slot: u8) -> Result<(), NotRunning> {
        self.end(core, slot, Finish::Refused)
    }

    fn end(&mut self, core: u16, slot: u8, how: Finish) -> Result<(), NotRunning> {
        if !self.cores.give_back(core, slot) {
            return Err(NotRunning { core, slot });
        }
        self.commits.finish(core, slot, how);
        Ok(())
    }

    /// A core has failed and gets no more warps. What ran on it is issued again, on other cores and before
    /// anything new; late news of it is refused. How many warps ran on it. Once no core is left, so that
    /// nothing could be issued any more, what is in flight and all that comes is committed in order for the
    /// host to run.
    pub fn fail(&mut self, core: u16) -> u32 {
        let running = self.cores.fail(core);
        for slot in (0..64_u8).filter(|slot| running >> slot & 1 == 1) {
            self.commits.finish(core, slot, Finish::Returned);
        }
        if self.cores.none_works() {
            self.commits.refuse_returned();
            self.given_up = true;
        }
        running.count_ones()
    }

    /// The packets whose turn it is, if they are done.
    pub fn commit(&mut self) -> Option<Committed> {
        let (packets, outcome) = match self.commits.pop() {
            Some((packets, finish)) => (
                packets.into(),
                if finish == Finish::Refused { WarpOutcome::Again } else { WarpOutcome::Done },
            ),
            // Nothing runs any more, so the queue is empty where nothing can be popped.
            None if self.given_up => {
                let packets = self.fifo.pop().map_or_else(|| self.arrivals.take_rest(), u64::from);
                if packets == 0 {
                    return None;
                }
                (packets, WarpOutcome::Again)
            }
            None => return None,
        };
        let first = self.statistics.committed;
        self.statistics.committed += packets;
        if outcome == WarpOutcome::Again {
            self.statistics.again += packets;
        }
        Some(Committed { first, packets, outcome })
    }

    /// Packets that came and were not committed yet, wherever they are.
    pub fn inside(&self) -> u64 {
        self.statistics.arrived - self.statistics.committed
    }

    /// What was counted.
    pub fn statistics(&self) -> &HermesStatistics {
        &self.statistics
    }
}
