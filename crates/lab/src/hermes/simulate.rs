//! A run of Hermes: packets come, the scheduler of [`offload::hermes`] makes warps of them, and the simulated
//! device runs these.
//!
//! The scheduler is the one that devices are driven with: it is told of every event and asked what to do, and
//! knows nothing of being simulated. A run is a function of its arguments; nothing in it depends on a clock,
//! a thread or an address.
//!
//! ```text
//!  a packet     arrives ──► in a task ──► issued ──► finished ──► committed
//!                  └ forming ──┘└ queued ──┘└ running ─┘└ in turn ──┘          the four parts of its delay
//! ```

use super::hardware::{Hardware, Machine, together};
use super::work::Work;
use offload::hermes::{HermesSettings, HermesStatistics, Scheduler, SettingsError, Warp};
use std::collections::VecDeque;

/// What is run: when packets come, and what each costs. Works are taken again from the beginning where there
/// are fewer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load<'a> {
    /// Nanoseconds, in order.
    pub(crate) arrivals: &'a [u64],
    /// At least one.
    pub(crate) works: &'a [Work],
    /// Whether the last packets wait for others as those before did; or it is known that none follow.
    pub(crate) waits_at_end: bool,
}

/// Sums of the parts of all packets' delays, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// Until a packet was in a task.
    pub(crate) forming: u64,
    /// Until its warp was issued.
    pub(crate) queued: u64,
    /// Until that had finished.
    pub(crate) running: u64,
    /// Until it was committed.
    pub(crate) in_turn: u64,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// Delays from arrival to commit, by packet.
    pub(crate) delays: Vec<u64>,
    /// Delays from arrival to the end of the warp: what they would be without a commit queue.
    pub(crate) unordered: Vec<u64>,
    /// When the last packet was committed.
    pub(crate) end: u64,
    /// Bits of all frames.
    pub(crate) bits: u64,
    /// The parts of all delays.
    pub(crate) parts: Parts,
    /// Packets inside, summed up over time.
    pub(crate) area: u128,
    /// Cycles that cores were issuing.
    pub(crate) busy: u64,
    /// Events, arrivals among them.
    pub(crate) events: u64,
    /// What the scheduler counted.
    pub(crate) statistics: Option<HermesStatistics>,
}

impl<'a> Load<'a> {
    /// One behind whose last packet nothing is waited for.
    pub(crate) fn new(arrivals: &'a [u64], works: &'a [Work]) -> Load<'a> {
        Load { arrivals, works, waits_at_end: false }
    }

    /// The work of a packet.
    pub(crate) fn work(&self, packet: usize) -> Work {
        self.works[packet % self.works.len()]
    }

    /// The work of a warp.
    pub(crate) fn warp(&self, first: u64, packets: u64) -> Work {
        together((first..first + packets).map(|packet| self.work(packet as usize)))
    }

    /// Bits of all frames.
    pub(crate) fn bits(&self) -> u64 {
        (0..self.arrivals.len()).map(|packet| u64::from(self.work(packet).bytes) * 8).sum()
    }
}

/// What runs warps, in simulated time.
pub(crate) trait Runner {
    /// What may go wrong.
    type Error: From<SettingsError>;

    /// A warp begins in the slot of its name.
    fn start(&mut self, now: u64, warp: Warp, work: Work) -> Result<(), Self::Error>;

    /// When something happens next.
    fn next(&self) -> Option<u64>;

    /// Lets the next thing happen; the warp that has finished by it.
    fn advance(&mut self) -> Result<Option<Warp>, Self::Error>;

    /// It is the turn of so many packets from this one on.
    fn commit(&mut self, first: u64, packets: u64) -> Result<(), Self::Error>;

    /// Cycles that cores were issuing.
    fn busy(&self) -> u64;
}

/// Times alone: nothing becomes of packets.
impl Runner for Machine {
    type Error = SettingsError;

    fn start(&mut self, now: u64, warp: Warp, work: Work) -> Result<(), SettingsError> {
        Machine::start(self, now, warp, work);
        Ok(())
    }

    fn next(&self) -> Option<u64> {
        Machine::next(self)
    }

    fn advance(&mut self) -> Result<Option<Warp>, SettingsError> {
        Ok(Machine::advance(self))
    }

    fn commit(&mut self, _first: u64, _packets: u64) -> Result<(), SettingsError> {
        Ok(())
    }

    fn busy(&self) -> u64 {
        self.busy
    }
}

/// Runs it to the end on a device of this kind.
///
/// # Errors
/// Settings that cannot be.
pub(crate) fn simulate(
    hardware: &Hardware,
    settings: &HermesSettings,
    load: Load<'_>,
) -> Result<Outcome, SettingsError> {
    simulate_on(&mut Machine::new(hardware, settings.warps), settings, load)
}

/// Runs it to the end on something that runs warps.
///
/// # Errors
/// Settings that cannot be, or what that says.
pub(crate) fn simulate_on<R: Runner>(
    runner: &mut R,
    settings: &HermesSettings,
    load: Load<'_>,
) -> Result<Outcome, R::Error> {
    let mut scheduler = Scheduler::new(settings)?;
    let count = load.arrivals.len();
    let mut run = Run {
        load,
        outcome: Outcome {
            delays: Vec::with_capacity(count),
            unordered: vec![0; count],
            bits: load.bits(),
            ..Outcome::default()
        },
        formed: VecDeque::new(),
        warps: usize::from(settings.warps),
        issued: vec![(0, 0); usize::from(settings.cores) * usize::from(settings.warps)],
        finished: vec![0; count],
    };
    let (mut next, mut before) = (0, 0);
    loop {
        let coming = load.arrivals.get(next).copied();
        let may_follow = coming.is_some() || load.waits_at_end;
        let due = if may_follow { scheduler.due() } else { None };
        let Some(now) = [coming, runner.next(), due].into_iter().flatten().min() else {
            debug_assert_eq!(scheduler.inside(), 0, "packets are inside, and nothing is about to happen");
            break;
        };
        // The wait for a warp may have become shorter than it has lasted.
        let now = now.max(before);
        run.outcome.area += u128::from(scheduler.inside()) * u128::from(now - before);
        before = now;
        while load.arrivals.get(next) == Some(&now) {
            scheduler.arrive(now, 1);
            next += 1;
            run.outcome.events += 1;
        }
        while runner.next() == Some(now) {
            run.outcome.events += 1;
            if let Some(warp) = runner.advance()? {
                run.finish(now, warp);
                // It was issued and has not finished before: the machine told of it once.
                let known = scheduler.finish(warp.core, warp.slot);
                debug_assert_eq!(known, Ok(()));
            }
        }
        // What is committed makes room for what is issued.
        while let Some(task) = scheduler.commit() {
            run.commit(now, task.first as usize, task.packets as usize);
            runner.commit(task.first, task.packets)?;
        }
        loop {
            let none_follow = next == count && !load.waits_at_end;
            let made = if none_follow { scheduler.flush() } else { scheduler.advance(now) };
            run.formed.extend((0..made).map(|_| now));
            let Some(warp) = scheduler.issue() else { break };
            run.issue(now, warp);
            runner.start(now, warp, load.warp(warp.first, warp.packets.into()))?;
        }
    }
    let mut outcome = run.outcome;
    outcome.end = before;
    outcome.busy = runner.busy();
    outcome.statistics = Some(*scheduler.statistics());
    Ok(outcome)
}

/// What is written down of packets on their way.
struct Run<'a> {
    load: Load<'a>,
    outcome: Outcome,
    /// When each task in the FIFO was made.
    formed: VecDeque<u64>,
    warps: usize,
    /// When a slot's warp was made a task, and when it was issued.
    issued: Vec<(u64, u64)>,
    /// When the warp had finished whose first packet this is.
    finished: Vec<u64>,
}

impl Run<'_> {
    fn place(&self, warp: Warp) -> usize {
        usize::from(warp.core) * self.warps + usize::from(warp.slot)
    }

    fn issue(&mut self, now: u64, warp: Warp) {
        let place = self.place(warp);
        self.issued[place] = (self.formed.pop_front().unwrap_or(now), now);
    }

    fn finish(&mut self, now: u64, warp: Warp) {
        let (formed, issued) = self.issued[self.place(warp)];
        let packets = u64::from(warp.packets);
        let first = warp.first as usize;
        self.finished[first] = now;
        let parts = &mut self.outcome.parts;
        parts.queued += (issued - formed) * packets;
        parts.running += (now - issued) * packets;
        for packet in first..first + usize::from(warp.packets) {
            parts.forming += formed - self.load.arrivals[packet];
            self.outcome.unordered[packet] = now - self.load.arrivals[packet];
        }
    }

    fn commit(&mut self, now: u64, first: usize, packets: usize) {
        self.outcome.parts.in_turn += (now - self.finished[first]) * packets as u64;
        let arrivals = &self.load.arrivals[first..first + packets];
        self.outcome.delays.extend(arrivals.iter().map(|arrival| now - arrival));
    }
}
