//! The publication's other system: a processor collects batches, copies them over a bus, the device runs
//! them, and results are copied back.
//!
//! Serial, the next batch is taken up when the results of the one before are back. Overlapped, there are two
//! buffers, and copying in, running and copying back each go on with the next batch as soon as they are done
//! with one: what any program for such a device does today.
//!
//! ```text
//!  serial       wait 0 │ in 0 │ run 0 │ back 0 │ wait 1 │ in 1 │ …
//!  overlapped   wait 0 │ in 0 │ in 1  │        │ in 2   │
//!                             │ run 0 │ run 1  │        │ run 2       in 2 waits for the buffer of back 0
//!                                     │ back 0 │ back 1 │
//! ```

use super::hardware::{Hardware, Machine};
use super::simulate::{Load, Outcome};
use offload::hermes::{HermesSettings, Warp};
use std::collections::VecDeque;

/// How batches are made and moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Baseline {
    /// Packets of a batch.
    pub(crate) batch: usize,
    /// Nanoseconds that its first packet waits at most.
    pub(crate) timeout: u64,
    /// Nanoseconds to start a kernel and to notice its end.
    pub(crate) launch: u64,
    /// Bytes a nanosecond of the bus, in each direction.
    pub(crate) bus: u64,
    /// Whether whole frames come back, or a word a packet.
    pub(crate) frames_back: bool,
    /// Whether there are two buffers.
    pub(crate) overlapped: bool,
}

impl Baseline {
    /// The publication's bus, PCIe 2.0 with 8 GB/s, and what it leaves open.
    pub(crate) fn published() -> Baseline {
        Baseline {
            batch: 4096,
            timeout: 1_000_000,
            launch: 10_000,
            bus: 8,
            frames_back: true,
            overlapped: false,
        }
    }

    /// Runs it to the end. `settings` say how many warps run on a core at once, and how many packets are a
    /// warp.
    pub(crate) fn run(&self, hardware: &Hardware, settings: &HermesSettings, load: Load<'_>) -> Outcome {
        let count = load.arrivals.len();
        let mut outcome = Outcome { bits: load.bits(), ..Outcome::default() };
        let (mut in_free, mut run_free, mut back_free, mut back_before) = (0, 0, 0, 0);
        let mut first = 0;
        while first < count {
            let ready = if self.overlapped { back_before.max(in_free) } else { back_free };
            let full = load.arrivals.get(first + self.batch - 1).copied();
            let full = full.unwrap_or(if load.waits_at_end { u64::MAX } else { load.arrivals[count - 1] });
            let begin = ready.max(full.min(load.arrivals[first] + self.timeout));
            let there = load.arrivals[first..].partition_point(|arrival| *arrival <= begin);
            let packets = there.min(self.batch);
            let bytes: u64 = (first..first + packets).map(|packet| u64::from(load.work(packet).bytes)).sum();
            in_free = begin + bytes.div_ceil(self.bus);
            let (cycles, busy, events) = batch(hardware, settings, load, first, packets);
            run_free = in_free.max(run_free) + self.launch + cycles;
            let back = if self.frames_back { bytes } else { 4 * packets as u64 };
            back_before = back_free;
            back_free = run_free.max(back_free) + back.div_ceil(self.bus);
            outcome
                .delays
                .extend(load.arrivals[first..first + packets].iter().map(|arrival| back_free - arrival));
            outcome.busy += busy;
            outcome.events += events;
            first += packets;
        }
        outcome.end = back_free;
        outcome.unordered.clone_from(&outcome.delays);
        outcome
    }
}

/// How long an idle device takes for a batch, how long its cores were busy, and how many events that was.
fn batch(
    hardware: &Hardware,
    settings: &HermesSettings,
    load: Load<'_>,
    first: usize,
    packets: usize,
) -> (u64, u64, u64) {
    let mut machine = Machine::new(hardware, settings.warps);
    let size = usize::from(settings.warp);
    let end = first + packets;
    let mut tasks = (first..end).step_by(size).map(|first| (first, size.min(end - first)));
    let free = (0..settings.warps).flat_map(|slot| (0..hardware.cores).map(move |core| (core, slot)));
    let mut free: VecDeque<(u16, u8)> = free.collect();
    let (mut now, mut events) = (0, 0);
    loop {
        while let Some((core, slot)) = free.pop_front() {
            let Some((first, packets)) = tasks.next() else { break };
            let warp = Warp { core, slot, first: first as u64, packets: packets as u8 };
            machine.start(now, warp, load.warp(first as u64, packets as u64));
        }
        let Some(time) = machine.next() else { break };
        now = time;
        events += 1;
        free.extend(machine.advance().map(|warp| (warp.core, warp.slot)));
    }
    (now, machine.busy, events)
}
