//! Packets between the packet loop and control: copies of those that the program punts, and frames that control sends by a port.
//!
//! The loop never waits: what finds no room in the queue is counted and goes no further.

use packet::{Batch, Offload, PortNumber, VerdictKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// How many packets wait for control at most, and how many bytes they have together.
const WAITING: usize = 1024;
const WAITING_BYTES: usize = 8 << 20;

/// A packet that the program punted, as it was then.
#[derive(Debug)]
pub struct Punted {
    /// The reason's name.
    pub reason: Arc<str>,
    /// The port that it came in by.
    pub port: PortNumber,
    /// When it came in, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// The whole frame, with right checksums.
    pub bytes: Vec<u8>,
    /// How it is cut where it leaves, should it be a segment that is longer than an MTU.
    pub offload: Offload,
    _held: Held,
}

/// Bytes that are taken from the room there is, until this goes.
#[derive(Debug)]
struct Held(Arc<AtomicUsize>, usize);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.fetch_add(self.1, Ordering::Relaxed);
    }
}

/// A frame that control sends.
#[derive(Clone, Debug)]
pub struct Injected {
    /// The port that it leaves by.
    pub port: PortNumber,
    /// The frame, with right checksums.
    pub bytes: Vec<u8>,
    /// How it is cut; [`Offload::NONE`] unless it was punted with another.
    pub offload: Offload,
}

/// The loop's end of the queue.
#[derive(Clone, Debug)]
pub struct PuntQueue {
    queue: mpsc::SyncSender<Punted>,
    /// Bytes that may still wait; a frame longer than what is left does not.
    room: Arc<AtomicUsize>,
}

impl PuntQueue {
    /// An empty queue, and where its packets come out.
    pub(super) fn new() -> (PuntQueue, mpsc::Receiver<Punted>) {
        let (queue, packets) = mpsc::sync_channel(WAITING);
        (PuntQueue { queue, room: Arc::new(AtomicUsize::new(WAITING_BYTES)) }, packets)
    }

    /// Copies every packet of the batch that was punted; returns how many found no room. `reasons` are the names of the program's reasons.
    pub(super) fn copy(&self, memory: &[u8], batch: &Batch, reasons: &[Arc<str>]) -> u64 {
        let mut refused = 0;
        for (index, verdict) in batch.verdicts().iter().enumerate() {
            if verdict.kind() != VerdictKind::Punt {
                continue;
            }
            let bytes = batch.bytes(memory, index).unwrap_or_default();
            let reason = reasons.get(usize::from(verdict.argument()));
            let taken = reason.is_some_and(|reason| self.push(reason, bytes, batch, index));
            refused += u64::from(!taken);
        }
        refused
    }

    fn push(&self, reason: &Arc<str>, bytes: &[u8], batch: &Batch, index: usize) -> bool {
        let less = |room: usize| room.checked_sub(bytes.len());
        if self.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err() {
            return false;
        }
        let punted = Punted {
            reason: reason.clone(),
            port: batch.port[index],
            time: batch.time[index],
            bytes: bytes.to_vec(),
            offload: batch.offload(index),
            _held: Held(self.room.clone(), bytes.len()),
        };
        self.queue.try_send(punted).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Verdict;

    #[test]
    fn what_finds_no_room_is_counted_and_the_rest_arrives_in_order() {
        let (queue, packets) = PuntQueue::new();
        let reasons = [Arc::from("arp"), Arc::from("mine")];
        let memory: Vec<u8> = (0..100).collect();
        let mut batch = Batch::new();
        for (start, verdict) in [(0, Verdict::punt(1)), (20, Verdict::FLOOD), (40, Verdict::punt(0))] {
            batch.push(start, 20, 20, 3, 7);
            batch.verdict[batch.len - 1] = verdict;
        }
        let rounds = WAITING as u64;
        let refused: u64 = (0..rounds).map(|_| queue.copy(&memory, &batch, &reasons)).sum();
        assert_eq!(refused, rounds, "two a round, of which half fit");
        let first = packets.recv().expect("is there");
        assert_eq!((&*first.reason, first.port, first.time), ("mine", 3, 7));
        assert_eq!(first.bytes, &memory[..20]);
        assert_eq!(&*packets.recv().expect("is there").reason, "arp");
        drop(first);
        drop(packets);
        assert_eq!(queue.room.load(Ordering::Relaxed), WAITING_BYTES, "every byte came back");
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (queue, _packets) = PuntQueue::new();
        let memory = vec![0; 1 << 20];
        let mut batch = Batch::new();
        batch.push(0, 1 << 20, 1 << 20, 1, 0);
        batch.verdict[0] = Verdict::punt(0);
        let taken = (0..20).filter(|_| queue.copy(&memory, &batch, &[Arc::from("big")]) == 0).count();
        assert_eq!(taken, WAITING_BYTES >> 20);
    }
}
