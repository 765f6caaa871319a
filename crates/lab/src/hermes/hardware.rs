//! The device that is simulated: cores that issue an instruction a cycle for 32 lanes, and channels of memory
//! that all share.
//!
//! The idea: a warp alternates between computing and waiting for memory, as often as its work says.
//! Instructions go through its core, and sectors through the channels, first come, first served; so when a
//! step ends is known when it begins, and a step is one event.
//!
//! ```text
//!            ┌────────────── trips times ──────────────┐
//!            │                                         │
//!  issue ─► compute: core, instructions / trips ─► memory: channels, sectors / trips, and the latency ─► finish
//! ```
//!
//! Time is in cycles, and a cycle is a nanosecond. Channels count much smaller parts, since a sector takes no
//! whole number of cycles.

use super::work::{SECTOR, Work};
use offload::hermes::{SettingsError, Warp};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Parts of a cycle that channels count in: so many that a sector takes 512 of them or more, whatever the
/// memory, and rounding next to nothing.
const PARTS: u64 = 1 << 16;
/// The most bytes that all channels together give in a cycle.
pub(super) const MOST_BANDWIDTH: u32 = 4096;
/// The most channels.
pub(super) const MOST_CHANNELS: u8 = 64;

/// What a device has. All of it can be varied; [`Hardware::published`] says what the publication says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hardware {
    /// Cores.
    pub(crate) cores: u16,
    /// Registers of a core, of 32 bits.
    pub(crate) registers: u32,
    /// Bytes of a core's shared memory.
    pub(crate) shared: u32,
    /// Channels of memory; from 1 to [`MOST_CHANNELS`].
    pub(crate) channels: u8,
    /// Cycles from asking for a sector to having it, where nobody else asks.
    pub(crate) latency: u64,
    /// Bytes that all channels together give in a cycle; from 1 to [`MOST_BANDWIDTH`].
    pub(crate) bandwidth: u32,
    /// Cycles of an instruction, in quarters: 4 is one.
    pub(crate) quarters: u32,
}

impl Hardware {
    /// 8 cores at 1 GHz, and what the publication leaves open: the latency of memory, and its bandwidth, of
    /// which 102 GB/s are left with a quarter where each sector of 32 bytes comes in a segment of 128, as
    /// such devices had it then.
    pub(crate) fn published() -> Hardware {
        let (latency, bandwidth) = (400, 25);
        Hardware { cores: 8, registers: 16_768, shared: 16_384, channels: 8, latency, bandwidth, quarters: 4 }
    }

    /// Whether so many warps, of a kernel with so many registers a thread and so many bytes of shared memory
    /// a core, fit on a core.
    ///
    /// # Errors
    /// They do not; the limit is named.
    pub(crate) fn check(
        &self,
        warps: u8,
        lanes: u8,
        registers: u32,
        shared: u32,
    ) -> Result<(), SettingsError> {
        let limit = |what, value: u32, least, most: u64| {
            let value = u64::from(value);
            let inside = (least..=most).contains(&value);
            if inside { Ok(()) } else { Err(SettingsError::Limit { what, value, least, most }) }
        };
        limit("bytes of memory a cycle", self.bandwidth, 1, MOST_BANDWIDTH.into())?;
        limit("channels of memory", self.channels.into(), 1, MOST_CHANNELS.into())?;
        limit("quarters of a cycle for an instruction", self.quarters, 1, 1024)?;
        let room = |what, one, needed: u32, there: u32| match needed > there {
            true => Err(SettingsError::Room { what, one, needed: needed.into(), there: there.into() }),
            false => Ok(()),
        };
        room("bytes of shared memory of a core", "the kernel", shared, self.shared)?;
        let warp = registers.max(1) * u32::from(lanes);
        room("registers of a core", "a warp of the kernel", warp, self.registers)?;
        limit("concurrent warps whose registers a core has", warps.into(), 1, (self.registers / warp).into())
    }
}

/// A warp on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Step {
    warp: Option<Warp>,
    left: u64,
    instructions: u64,
    sectors: u64,
    /// What division left over goes with the first step.
    more: (u64, u64),
}

/// What happens next to the warp in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Memory,
    Compute,
}

/// The device with what runs on it.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    hardware: Hardware,
    warps: usize,
    /// When each core has issued what it has taken on.
    cores: Vec<u64>,
    /// When each channel has given what was asked of it, in parts.
    channels: Vec<u64>,
    steps: Vec<Step>,
    events: BinaryHeap<Reverse<(u64, u64, u32, Next)>>,
    sequence: u64,
    turn: usize,
    /// Cycles that cores were issuing.
    pub(crate) busy: u64,
    /// Sectors that were moved.
    pub(crate) sectors: u64,
}

impl Machine {
    /// An idle one with so many warps a core.
    pub(crate) fn new(hardware: &Hardware, warps: u8) -> Machine {
        let places = usize::from(hardware.cores) * usize::from(warps);
        Machine {
            hardware: *hardware,
            warps: warps.into(),
            cores: vec![0; hardware.cores.into()],
            channels: vec![0; hardware.channels.into()],
            steps: vec![Step::default(); places],
            events: BinaryHeap::with_capacity(places),
            sequence: 0,
            turn: 0,
            busy: 0,
            sectors: 0,
        }
    }

    /// A warp begins. Its lanes' work is that of the warp where all lanes are masked until the longest has
    /// ended.
    pub(crate) fn start(&mut self, now: u64, warp: Warp, work: Work) {
        let place = usize::from(warp.core) * self.warps + usize::from(warp.slot);
        let trips = u64::from(work.trips.max(1));
        let cycles = u64::from(work.instructions) * u64::from(self.hardware.quarters) / 4;
        let sectors = u64::from(work.own + work.shared);
        self.steps[place] = Step {
            warp: Some(warp),
            left: trips,
            instructions: cycles / trips,
            sectors: sectors / trips,
            more: (cycles % trips, sectors % trips),
        };
        self.compute(now, place);
    }

    /// When something happens next.
    pub(crate) fn next(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((time, ..))| *time)
    }

    /// Lets the next thing happen; the warp that has finished by it.
    pub(crate) fn advance(&mut self) -> Option<Warp> {
        let Reverse((now, _, place, next)) = self.events.pop()?;
        let place = place as usize;
        match next {
            Next::Memory => self.ask(now, place),
            Next::Compute if self.steps[place].left == 0 => return self.steps[place].warp.take(),
            Next::Compute => self.compute(now, place),
        }
        None
    }

    fn compute(&mut self, now: u64, place: usize) {
        let step = &mut self.steps[place];
        let cycles = step.instructions + std::mem::take(&mut step.more.0);
        let core = &mut self.cores[place / self.warps];
        *core = now.max(*core) + cycles;
        self.busy += cycles;
        let end = *core;
        self.push(end, place, Next::Memory);
    }

    /// Asks for the sectors of a step, from all channels in turn.
    fn ask(&mut self, now: u64, place: usize) {
        let step = &mut self.steps[place];
        step.left -= 1;
        let sectors = step.sectors + std::mem::take(&mut step.more.1);
        self.sectors += sectors;
        let count = self.channels.len() as u64;
        let one = u64::from(SECTOR) * count * PARTS / u64::from(self.hardware.bandwidth);
        let (each, rest) = (sectors / count, sectors % count);
        let mut end = now * PARTS;
        for number in 0..count.min(sectors) {
            let channel = (self.turn + number as usize) % self.channels.len();
            let free = &mut self.channels[channel];
            *free = (now * PARTS).max(*free) + (each + u64::from(number < rest)) * one;
            end = end.max(*free);
        }
        self.turn = (self.turn + rest as usize) % self.channels.len();
        let latency = if sectors > 0 { self.hardware.latency } else { 0 };
        self.push(end.div_ceil(PARTS) + latency, place, Next::Compute);
    }

    fn push(&mut self, time: u64, place: usize, next: Next) {
        self.sequence += 1;
        self.events.push(Reverse((time, self.sequence, place as u32, next)));
    }
}

/// The work of a warp: its longest lane's instructions and trips, and the sectors of all lanes.
pub(crate) fn together(lanes: impl Iterator<Item = Work>) -> Work {
    let mut warp = lanes.fold(Work::default(), |warp, lane| Work {
        instructions: warp.instructions.max(lane.instructions),
        own: warp.own + lane.own,
        shared: warp.shared.max(lane.shared),
        trips: warp.trips.max(lane.trips),
        bytes: warp.bytes + lane.bytes,
    });
    // Verdicts lie side by side, a word a lane.
    warp.own += 4;
    warp
}
