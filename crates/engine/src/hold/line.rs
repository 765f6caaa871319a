//! The packets that are held, as memory: copies of frames in convoys, one behind the other.

use exec::Room;
use gpu::placement::Place;
use packet::Batch;
use ports::arena::Arena;
use std::collections::VecDeque;
use std::time::Instant;

/// Bytes of memory for each packet of a convoy. Where packets are longer, a convoy has fewer.
const PACKET_BYTES: usize = 2048;

/// Packets that are run together.
pub(super) struct Convoy {
    arena: Arena,
    batches: Vec<Batch>,
    /// So many batches hold packets.
    filled: usize,
    pub(super) packets: usize,
    /// Since when the first packet waits.
    pub(super) oldest: Instant,
    pub(super) place: Place,
    /// When it was placed.
    pub(super) placed: Instant,
}

impl Convoy {
    fn new(room: Room, now: Instant) -> Convoy {
        Convoy {
            arena: Arena::sized(room.packets * PACKET_BYTES),
            batches: Vec::new(),
            filled: 0,
            packets: 0,
            oldest: now,
            place: Place::Processor,
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
        last.leave_unfinished(batch.offload(index));
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

/// Convoys in order of arrival: those that are closed, and the open one that packets join.
pub(super) struct Line {
    pub(super) room: Room,
    pub(super) open: Convoy,
    /// Whether a packet found no room.
    pub(super) full: bool,
    pub(super) closed: VecDeque<Convoy>,
    spare: Vec<Convoy>,
}

impl Line {
    pub(super) fn new(room: Room, now: Instant) -> Line {
        Line {
            room,
            open: Convoy::new(room, now),
            full: false,
            closed: VecDeque::with_capacity(room.convoys),
            spare: Vec::new(),
        }
    }

    /// Takes a copy of a packet into the open convoy; says whether there was room.
    pub(super) fn push(&mut self, memory: &[u8], batch: &Batch, index: usize, now: Instant) -> bool {
        !self.is_complete() && self.open.push(memory, batch, index, now)
    }

    /// Whether the open convoy has all packets that it may have.
    pub(super) fn is_complete(&self) -> bool {
        self.open.packets >= self.room.packets
    }

    /// Lets no further packet join the open convoy, and opens the next one.
    pub(super) fn close(&mut self, now: Instant) {
        let next = self.spare.pop().unwrap_or_else(|| Convoy::new(self.room, now));
        self.closed.push_back(std::mem::replace(&mut self.open, next));
        self.full = false;
    }

    /// Takes back a convoy whose packets have been run.
    pub(super) fn give_back(&mut self, mut convoy: Convoy) {
        convoy.clear();
        self.spare.push(convoy);
    }
}
