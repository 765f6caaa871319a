//! Packets between the packet loop and control: copies of those that the program punts, and frames that control sends by a port.
//!
//! The loop never waits: what finds no room on its way is counted and goes no further. Room is kept apart, so that who sends much of one kind takes
//! no room from others: packets of each reason have a share of their own, and what control calls urgent has one for each port, beside these.

use packet::{Batch, Offload, PortNumber, VerdictKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// How many packets wait for control at most, and how many bytes they have together.
const WAITING: Size = Size { packets: 1024, bytes: 8 << 20 };
/// The same of those of one reason.
const OF_REASON: Size = Size { packets: WAITING.packets / 4, bytes: WAITING.bytes / 4 };
/// The same of those that are urgent, of one port.
const URGENT: Size = Size { packets: 128, bytes: 128 << 10 };
/// How many reasons have a share of their own, those first that are punted first; and ports, of which those share one whose numbers have the same rest.
const SHARES: usize = 64;
/// No reason has this share yet.
const NOBODY: usize = usize::MAX;

/// Whether control wants a packet of this reason before others: it says so of few and short ones.
pub type IsUrgent = fn(reason: &str, frame: &[u8]) -> bool;

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

/// So many packets, and bytes.
#[derive(Clone, Copy, Debug)]
struct Size {
    packets: usize,
    bytes: usize,
}

/// What may still wait.
#[derive(Debug)]
struct Room {
    packets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Room {
    fn new(size: Size) -> Room {
        Room { packets: AtomicUsize::new(size.packets), bytes: AtomicUsize::new(size.bytes) }
    }

    /// Takes room for a packet, or none.
    fn take(&self, bytes: usize) -> bool {
        let less = |from: &AtomicUsize, by: usize| {
            from.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(by)).is_ok()
        };
        if !less(&self.packets, 1) {
            return false;
        }
        let fits = less(&self.bytes, bytes);
        if !fits {
            self.packets.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.packets.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The room of all, and its shares.
#[derive(Debug)]
struct Rooms {
    all: Room,
    reasons: Vec<Room>,
    /// The numbers of the reasons that the shares belong to. A program numbers those it drops for, too, which need none.
    owners: Vec<AtomicUsize>,
    urgent: Vec<Room>,
}

/// Whose share a packet is taken from: which of those of reasons, or which port's.
#[derive(Clone, Copy, Debug)]
enum Share {
    Reason(usize),
    Urgent(usize),
}

impl Rooms {
    fn new() -> Rooms {
        let shares = |size| (0..SHARES).map(|_| Room::new(size)).collect();
        let owners = (0..SHARES).map(|_| AtomicUsize::new(NOBODY)).collect();
        Rooms { all: Room::new(WAITING), reasons: shares(OF_REASON), owners, urgent: shares(URGENT) }
    }

    /// The share of a reason: the one it has, or the next that nobody has; if all are taken, it is in with another.
    fn of_reason(&self, number: usize) -> Share {
        let has = |share: &usize| {
            let owner = &self.owners[*share];
            let take = || owner.compare_exchange(NOBODY, number, Ordering::Relaxed, Ordering::Relaxed);
            owner.load(Ordering::Relaxed) == number || take().map_or_else(|had| had == number, |_| true)
        };
        let share = (0..SHARES).map(|step| (number + step) % SHARES).find(has);
        Share::Reason(share.unwrap_or(number % SHARES))
    }

    fn share(&self, share: Share) -> &Room {
        match share {
            Share::Reason(number) => &self.reasons[number],
            Share::Urgent(number) => &self.urgent[number % SHARES],
        }
    }

    fn take(self: &Arc<Rooms>, share: Share, bytes: usize) -> Option<Held> {
        let room = self.share(share);
        if !room.take(bytes) {
            return None;
        }
        if matches!(share, Share::Reason(_)) && !self.all.take(bytes) {
            room.give_back(bytes);
            return None;
        }
        Some(Held { rooms: self.clone(), share, bytes })
    }
}

/// A packet and its bytes are taken from the room there is, until this goes.
#[derive(Debug)]
struct Held {
    rooms: Arc<Rooms>,
    share: Share,
    bytes: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.rooms.share(self.share).give_back(self.bytes);
        if matches!(self.share, Share::Reason(_)) {
            self.rooms.all.give_back(self.bytes);
        }
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
    /// Bounded by the room.
    queue: mpsc::Sender<Punted>,
    rooms: Arc<Rooms>,
    is_urgent: IsUrgent,
}

impl PuntQueue {
    /// An empty queue, and where its packets come out.
    pub(super) fn new(is_urgent: IsUrgent) -> (PuntQueue, mpsc::Receiver<Punted>) {
        let (queue, packets) = mpsc::channel();
        (PuntQueue { queue, rooms: Arc::new(Rooms::new()), is_urgent }, packets)
    }

    /// Copies every packet of the batch that was punted; those that find no room are counted in `lost` by reason. `reasons` are the names of the
    /// program's reasons.
    pub(super) fn copy(&self, memory: &[u8], batch: &Batch, reasons: &[Arc<str>], lost: &mut [u64]) {
        for (index, verdict) in batch.verdicts().iter().enumerate() {
            if verdict.kind() != VerdictKind::Punt {
                continue;
            }
            let bytes = batch.bytes(memory, index).unwrap_or_default();
            let number = usize::from(verdict.argument());
            let (Some(reason), Some(lost)) = (reasons.get(number), lost.get_mut(number)) else { continue };
            *lost += u64::from(!self.push((number, reason), bytes, batch, index));
        }
    }

    fn push(&self, (number, reason): (usize, &Arc<str>), bytes: &[u8], batch: &Batch, index: usize) -> bool {
        let port = batch.port[index];
        let urgent = (self.is_urgent)(reason, bytes);
        let share = if urgent { Share::Urgent(port.into()) } else { self.rooms.of_reason(number) };
        let Some(held) = self.rooms.take(share, bytes.len()) else { return false };
        let punted = Punted {
            reason: reason.clone(),
            port,
            time: batch.time[index],
            bytes: bytes.to_vec(),
            offload: batch.offload(index),
            _held: held,
        };
        self.queue.send(punted).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use packet::Verdict;

    /// Frames of this length at port 3, of these reasons.
    fn batch(length: u32, reasons: &[u16]) -> Batch {
        let mut batch = Batch::new();
        for reason in reasons {
            batch.push(0, length, length, 3, 7);
            batch.verdict[batch.len - 1] = Verdict::punt(*reason);
        }
        batch
    }

    fn left(rooms: &Rooms) -> Vec<(usize, usize)> {
        let rooms = rooms.reasons.iter().chain(&rooms.urgent).chain([&rooms.all]);
        rooms.map(|room| (room.packets.load(Ordering::Relaxed), room.bytes.load(Ordering::Relaxed))).collect()
    }

    #[test]
    fn what_finds_no_room_is_counted_by_reason_and_the_rest_arrives_in_order() {
        let (queue, packets) = PuntQueue::new(|_, _| false);
        let reasons = [Arc::from("arp"), Arc::from("mine")];
        let memory: Vec<u8> = (0..100).collect();
        let mut lost = [0; 2];
        let mut batch = batch(20, &[1, 0]);
        batch.push(40, 20, 20, 3, 7);
        batch.verdict[2] = Verdict::FLOOD;
        let more = 44;
        for _ in 0..OF_REASON.packets + more {
            queue.copy(&memory, &batch, &reasons, &mut lost);
        }
        assert_eq!(lost, [more as u64; 2]);
        let first = packets.recv().expect("is there");
        assert_eq!((&*first.reason, first.port, first.time), ("mine", 3, 7));
        assert_eq!(first.bytes, &memory[..20]);
        assert_eq!(&*packets.recv().expect("is there").reason, "arp");
        drop(first);
        drop(packets);
        assert_eq!(left(&queue.rooms), left(&Rooms::new()), "all came back");
    }

    #[test]
    fn a_flood_of_one_reason_takes_no_room_from_others_and_none_from_what_is_urgent() {
        let (queue, packets) = PuntQueue::new(|reason, _| reason == "arp");
        let reasons: Vec<Arc<str>> =
            ["scan", "mine", "other", "more", "fifth", "arp"].map(Arc::from).to_vec();
        let (memory, mut lost) = ([0; 60], [0; 6]);
        let mut flood = |number: u16, times: usize| {
            let before = lost;
            for _ in 0..times {
                queue.copy(&memory, &batch(60, &[number]), &reasons, &mut lost);
            }
            times - (lost[usize::from(number)] - before[usize::from(number)]) as usize
        };
        assert_eq!(flood(0, 10_000), OF_REASON.packets);
        assert_eq!([flood(1, 10_000), flood(2, 10_000)], [OF_REASON.packets; 2]);
        assert_eq!((flood(3, 300), flood(4, 300)), (OF_REASON.packets, 0), "all together are bounded, too");
        assert_eq!(flood(5, 100), 100, "whatever else waits");
        assert_eq!(flood(5, 100), URGENT.packets - 100);
        assert_eq!(packets.try_iter().filter(|packet| &*packet.reason == "arp").count(), URGENT.packets);
        assert_eq!(lost[5], 200 - URGENT.packets as u64);
    }

    #[test]
    fn reasons_whose_numbers_lie_far_apart_share_nothing() {
        let (queue, _packets) = PuntQueue::new(|_, _| false);
        let reasons: Vec<Arc<str>> = (0..=2 * SHARES).map(|number| number.to_string().into()).collect();
        let (memory, mut lost) = ([0; 60], vec![0; reasons.len()]);
        for number in [0, SHARES, 2 * SHARES] {
            for _ in 0..OF_REASON.packets + 9 {
                queue.copy(&memory, &batch(60, &[number as u16]), &reasons, &mut lost);
            }
        }
        assert_eq!((lost[0], lost[SHARES], lost[2 * SHARES]), (9, 9, 9));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (queue, _packets) = PuntQueue::new(|_, _| false);
        let (memory, mut lost) = (vec![0; 1 << 20], [0]);
        for _ in 0..20 {
            queue.copy(&memory, &batch(1 << 20, &[0]), &[Arc::from("big")], &mut lost);
        }
        assert_eq!(20 - lost[0], (OF_REASON.bytes >> 20) as u64);
    }
}
