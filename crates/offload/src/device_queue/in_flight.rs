//! The packets of a device queue, in order of arrival: the open device batch, and the closed ones that are in
//! flight or wait to be committed.

use crate::policy::ExecutionPlace;
use exec::QueueDepth;
use packet::{Arena, Batch};

use std::collections::VecDeque;
use std::time::Instant;

/// Bytes of memory for each packet of a device batch. Where packets are longer, a device batch has fewer.
const PACKET_BYTES: usize = 2048;

/// Packets that are run together.
pub(super) struct DeviceBatch {
    arena: Arena,
    batches: Vec<Batch>,
    /// So many batches hold packets.
    filled: usize,
    pub(super) packets: usize,
    /// Since when the first packet waits.
    pub(super) oldest: Instant,
    pub(super) place: ExecutionPlace,
    /// When it was placed.
    pub(super) placed: Instant,
}

impl DeviceBatch {
    fn new(depth: QueueDepth, now: Instant) -> DeviceBatch {
        DeviceBatch {
            arena: Arena::sized(depth.packets * PACKET_BYTES),
            batches: Vec::new(),
            filled: 0,
            packets: 0,
            oldest: now,
            place: ExecutionPlace::Host,
            placed: now,
        }
    }

    fn clear(&mut self) {
        self.arena.clear();
        (self.filled, self.packets) = (0, 0);
    }

    /// Takes a copy of a packet of a batch that came at `now`; says whether there was room.
    fn push(&mut self, memory: &[u8], batch: &Batch, index: usize, now: Instant) -> bool {
        if self.filled == 0 || self.batches[self.filled - 1].is_full() {
            if self.filled == self.batches.len() {
                self.batches.push(Batch::new());
            }
            self.batches[self.filled].clear();
            self.filled += 1;
        }
        let last = &mut self.batches[self.filled - 1];
        let bytes = batch.bytes(memory, index).unwrap_or_default();
        if !self.arena.push(last, bytes, batch.wire[index], batch.time[index]) {
            return false;
        }
        last.port[last.len - 1] = batch.port[index];
        last.leave_unfinished(batch.virtio(index));
        if self.packets == 0 {
            self.oldest = now;
        }
        self.packets += 1;
        true
    }

    /// The frames of its packets, and its batches, to be run one after the other.
    pub(super) fn parts(&mut self) -> (&mut [u8], &mut [Batch]) {
        let filled = self.batches[..self.filled].iter().take_while(|batch| !batch.is_empty()).count();
        (self.arena.memory_mut(), &mut self.batches[..filled])
    }
}

/// Device batches in order of arrival: those that are closed, and the open one that packets join.
pub(super) struct InFlight {
    pub(super) depth: QueueDepth,
    pub(super) open: DeviceBatch,
    /// Whether a packet found no room.
    pub(super) full: bool,
    pub(super) closed: VecDeque<DeviceBatch>,
    spare: Vec<DeviceBatch>,
}

impl InFlight {
    pub(super) fn new(depth: QueueDepth, now: Instant) -> InFlight {
        InFlight {
            depth,
            open: DeviceBatch::new(depth, now),
            full: false,
            closed: VecDeque::with_capacity(depth.device_batches),
            spare: Vec::new(),
        }
    }

    /// Takes a copy of a packet into the open device batch; says whether there was room.
    pub(super) fn push(&mut self, memory: &[u8], batch: &Batch, index: usize, now: Instant) -> bool {
        !self.is_complete() && self.open.push(memory, batch, index, now)
    }

    /// Whether the open device batch has all packets that it may have.
    pub(super) fn is_complete(&self) -> bool {
        self.open.packets >= self.depth.packets
    }

    /// Lets no further packet join the open device batch, and opens the next one.
    pub(super) fn close(&mut self, now: Instant) {
        let next = self.spare.pop().unwrap_or_else(|| DeviceBatch::new(self.depth, now));
        self.closed.push_back(std::mem::replace(&mut self.open, next));
        self.full = false;
    }

    /// Takes back a device batch whose packets have been run.
    pub(super) fn give_back(&mut self, mut device_batch: DeviceBatch) {
        device_batch.clear();
        self.spare.push(device_batch);
    }
}
