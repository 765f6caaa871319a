//! Queues between the packet loop and the control plane: copies of packets that the program punts, and frames
//! that the control plane sends by a port.
//!
//! The loop never waits: a packet that finds its queue full is counted and goes no further. Each kind of
//! packet has its own share of the queue, so that many packets of one kind take no room from others. Packets
//! of each reason have a share. Urgent packets have shares beside these: answers (which neighbours are
//! learned from) one for each port; questions, which anybody may ask without limit, one for each of several
//! groups of stations at a port, with a rate limit for each group. So a station that asks a hundred thousand
//! times a second takes nothing from answers, and little from the questions of others. While other packets
//! wait for the loop, packets that are not urgent also need a [share](HostShare).
//!
//! To be woken costs control, and the loop, more than a packet does. So packets wait at the loop until there
//! are some, or the loop has nothing else to do.

use super::host_share::HostShare;
use packet::{Batch, PortNumber, VerdictKind, VirtioHeader};
use std::hash::{BuildHasher, RandomState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, SendError};

/// The largest number of packets that wait for the control plane, and their bytes together.
const WAITING: Size = Size { packets: 4096, bytes: 8 << 20 };
/// The same for packets of one reason.
const OF_REASON: Size = Size { packets: WAITING.packets / 4, bytes: WAITING.bytes / 4 };
/// The same for urgent answers of one port.
const ANSWERS: Size = Size { packets: 128, bytes: 128 << 10 };
/// The same for urgent questions of one group of stations at a port.
const QUESTIONS: Size = Size { packets: 16, bytes: 16 << 10 };
/// The number of groups of stations at a port, by their Ethernet addresses.
const GROUPS: usize = 64;
/// The time between two questions of a group, in nanoseconds, and how many may still come at once: hosts ask
/// a few times a minute.
const QUESTION: u64 = 10_000_000;
const AT_ONCE: u64 = 16;
/// How many reasons have a share of their own (those that are punted first), and how many ports; ports with
/// the same remainder share one.
const SHARES: usize = 64;
/// After so many turns of the ports packets are handed over, however few there are.
const TURNS: usize = 8;
/// The mark of a share that belongs to no reason yet.
const NOBODY: usize = usize::MAX;

/// The kinds of packets that the control plane needs before others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgent {
    /// A question to the control plane.
    Question,
    /// An answer that the control plane may have asked for.
    Answer,
}

/// Decides whether a punted packet is urgent. Only few and short packets may be.
pub type Urgency = fn(reason: &str, frame: &[u8]) -> Option<Urgent>;

/// A packet that the program punted, as it was then.
#[derive(Clone, Copy, Debug)]
pub struct Punted<'a> {
    /// The reason's name.
    pub reason: &'a Arc<str>,
    /// The port that it came in by.
    pub port: PortNumber,
    /// When it came in: the program's time, which [`Now::on_wall`](ports::live::clock::Now::on_wall) makes
    /// one for people.
    pub time: u64,
    /// The whole frame, with right checksums.
    pub bytes: &'a [u8],
    /// How the packet is to be cut when it leaves, if it is a segment that is longer than an MTU.
    pub virtio: VirtioHeader,
}

/// Packets that the program punted, in order, which go to the control plane together: it is woken once for
/// them, and their memory is one piece. Each has room in the queue until this is dropped.
#[derive(Debug)]
pub struct PuntedPackets {
    bytes: Vec<u8>,
    copies: Vec<PuntedCopy>,
    rooms: Arc<Rooms>,
}

/// One of them.
#[derive(Debug)]
struct PuntedCopy {
    /// The number of the reason, and its name.
    number: usize,
    reason: Arc<str>,
    port: PortNumber,
    time: u64,
    /// Where its bytes are.
    bytes: Range<usize>,
    virtio: VirtioHeader,
    /// The share in which it has room.
    share: Share,
}

impl PuntedPackets {
    /// The most packets that go together.
    pub const MOST: usize = 64;

    /// How many there are.
    #[allow(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.copies.len()
    }

    /// One of them, counted from 0.
    pub fn packet(&self, index: usize) -> Option<Punted<'_>> {
        let PuntedCopy { reason, port, time, bytes, virtio, .. } = self.copies.get(index)?;
        let bytes = &self.bytes[bytes.clone()];
        Some(Punted { reason, port: *port, time: *time, bytes, virtio: *virtio })
    }
}

impl Drop for PuntedPackets {
    fn drop(&mut self) {
        for PuntedCopy { share, bytes, .. } in &self.copies {
            self.rooms.give_back(*share, bytes.len());
        }
    }
}

/// A number of packets and bytes.
#[derive(Clone, Copy, Debug)]
struct Size {
    packets: usize,
    bytes: usize,
}

/// The room for packets that may still wait.
#[derive(Debug)]
struct Room {
    packets: AtomicUsize,
    bytes: AtomicUsize,
}

impl Room {
    fn new(size: Size) -> Room {
        Room { packets: AtomicUsize::new(size.packets), bytes: AtomicUsize::new(size.bytes) }
    }

    /// Takes room for a packet, if there is enough. Returns whether there was.
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

/// A rate limit, by the virtual time of the next event (the generic cell rate algorithm, ITU-T I.371).
#[derive(Debug, Default)]
struct Rate(AtomicU64);

impl Rate {
    /// Whether an event may happen at `now`, in nanoseconds; if so, it is counted.
    fn take(&self, now: u64) -> bool {
        let next = |at: u64| {
            // If a clock was set back, nobody must wait until it shows its former time again.
            let at = if at > now + (AT_ONCE + 1) * QUESTION { now } else { at.max(now) };
            (at < now + AT_ONCE * QUESTION).then_some(at + QUESTION)
        };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// The questions of a group of stations.
#[derive(Debug)]
struct Questions {
    room: Room,
    rate: Rate,
}

/// The common room, and its shares.
#[derive(Debug)]
struct Rooms {
    all: Room,
    reasons: Vec<Room>,
    /// The numbers of the reasons to which the shares belong. A program also has reasons for drops, which
    /// need no share.
    owners: Vec<AtomicUsize>,
    answers: Vec<Room>,
    /// The groups of the first port, then those of the second, and so on.
    questions: Vec<Questions>,
    /// The secret hash that divides stations into groups.
    grouping: RandomState,
}

/// The share to which a packet belongs: one of those for reasons, answers, or questions.
#[derive(Clone, Copy, Debug)]
enum Share {
    Reason(usize),
    Answers(usize),
    Questions(usize),
}

impl Rooms {
    fn new() -> Rooms {
        let shares = |size| (0..SHARES).map(|_| Room::new(size)).collect();
        let owners = (0..SHARES).map(|_| AtomicUsize::new(NOBODY)).collect();
        let questions =
            (0..SHARES * GROUPS).map(|_| Questions { room: Room::new(QUESTIONS), rate: Rate::default() });
        Rooms {
            all: Room::new(WAITING),
            reasons: shares(OF_REASON),
            owners,
            answers: shares(ANSWERS),
            questions: questions.collect(),
            grouping: RandomState::new(),
        }
    }

    /// The share of something urgent that came in by a port.
    fn of_urgent(&self, urgent: Urgent, port: PortNumber, frame: &[u8]) -> Share {
        let port = usize::from(port) % SHARES;
        match urgent {
            Urgent::Answer => Share::Answers(port),
            Urgent::Question => {
                let group = self.grouping.hash_one(frame.get(6..12)) as usize % GROUPS;
                Share::Questions(port * GROUPS + group)
            }
        }
    }

    /// The share of a reason: its own, or the next free one; if all are taken, the reason shares one with
    /// another.
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
            Share::Answers(number) => &self.answers[number],
            Share::Questions(number) => &self.questions[number].room,
        }
    }

    /// Takes room for a packet in its share, if there is enough. Returns whether there was.
    fn take(&self, share: Share, bytes: usize, now: u64) -> bool {
        let room = self.share(share);
        if !room.take(bytes) {
            return false;
        }
        let may_go_on = match share {
            Share::Reason(_) => self.all.take(bytes),
            Share::Questions(number) => self.questions[number].rate.take(now),
            Share::Answers(_) => true,
        };
        if !may_go_on {
            room.give_back(bytes);
        }
        may_go_on
    }

    fn give_back(&self, share: Share, bytes: usize) {
        self.share(share).give_back(bytes);
        if matches!(share, Share::Reason(_)) {
            self.all.give_back(bytes);
        }
    }
}

/// A frame that the control plane sends.
#[derive(Clone, Debug)]
pub struct Injected {
    /// The port that it leaves by.
    pub port: PortNumber,
    /// The frame, with right checksums.
    pub bytes: Vec<u8>,
    /// How the frame is to be cut; [`VirtioHeader::NONE`] unless the frame was punted with another header.
    pub virtio: VirtioHeader,
}

/// A worker's end of the queue.
#[derive(Debug)]
pub struct PuntQueue {
    /// The channel, which the room bounds.
    queue: mpsc::Sender<PuntedPackets>,
    rooms: Arc<Rooms>,
    urgency: Urgency,
    /// Packets that are handed over together, and how many turns of the ports they have waited.
    waiting: Option<PuntedPackets>,
    turns: usize,
}

impl PuntQueue {
    /// An empty queue, and its receiving end.
    pub(super) fn new(urgency: Urgency) -> (PuntQueue, mpsc::Receiver<PuntedPackets>) {
        let (queue, packets) = mpsc::channel();
        let rooms = Arc::new(Rooms::new());
        (PuntQueue { queue, rooms, urgency, waiting: None, turns: 0 }, packets)
    }

    /// The end of another worker.
    pub(super) fn another(&self) -> PuntQueue {
        let (queue, rooms) = (self.queue.clone(), self.rooms.clone());
        PuntQueue { queue, rooms, urgency: self.urgency, waiting: None, turns: 0 }
    }

    /// Copies every punted packet of the batch; packets that find no room, or have no share, are counted in
    /// `lost` by reason. `reasons` are the names of the program's reasons. Returns how many are punted.
    pub(super) fn copy(
        &mut self,
        memory: &[u8],
        batch: &Batch,
        reasons: &[Arc<str>],
        host_share: &mut HostShare,
        lost: &mut [u64],
    ) -> usize {
        let is_punted = |index: &usize| batch.verdict[*index].kind() == VerdictKind::Punt;
        let (mut punted, mut any_urgent) = (0, false);
        for index in (0..batch.len).filter(is_punted) {
            punted += 1;
            let (port, time, virtio) = (batch.port[index], batch.time[index], batch.virtio(index));
            let bytes = batch.bytes(memory, index).unwrap_or_default();
            let number = usize::from(batch.verdict[index].argument());
            let Some(reason) = reasons.get(number) else { continue };
            let urgent = (self.urgency)(reason, bytes);
            let share = match urgent {
                Some(urgent) => self.rooms.of_urgent(urgent, port, bytes),
                None => self.rooms.of_reason(number),
            };
            any_urgent |= urgent.is_some();
            // Room comes first, so that what finds none costs no share.
            if !self.rooms.take(share, bytes.len(), time) {
                count_lost(number, lost);
                continue;
            }
            if urgent.is_none() && !host_share.admits(number) {
                self.rooms.give_back(share, bytes.len());
                count_lost(number, lost);
                continue;
            }
            let packets = self.waiting.get_or_insert_with(|| {
                let to_come = (index..batch.len).filter(is_punted).take(PuntedPackets::MOST);
                let bytes = to_come.map(|index| batch.captured[index] as usize).sum();
                let rooms = self.rooms.clone();
                PuntedPackets { bytes: Vec::with_capacity(bytes), copies: Vec::new(), rooms }
            });
            let begin = packets.bytes.len();
            packets.bytes.extend_from_slice(bytes);
            let bytes = begin..packets.bytes.len();
            packets.copies.push(PuntedCopy {
                number,
                reason: reason.clone(),
                port,
                time,
                bytes,
                virtio,
                share,
            });
            if packets.len() == PuntedPackets::MOST {
                self.hand_over(lost);
            }
        }
        if any_urgent {
            self.hand_over(lost);
        }
        punted
    }

    /// Every port has had its turn. Hands packets over that have waited long enough, or all if that is to be
    /// `now`.
    #[inline]
    pub(super) fn turn(&mut self, now: bool, lost: &mut [u64]) {
        if self.waiting.is_some() {
            self.turns += 1;
            if now || self.turns >= TURNS {
                self.hand_over(lost);
            }
        }
    }

    /// Hands packets over. Where nobody takes them any more they are lost.
    fn hand_over(&mut self, lost: &mut [u64]) {
        self.turns = 0;
        if let Some(Err(SendError(packets))) = self.waiting.take().map(|packets| self.queue.send(packets)) {
            packets.copies.iter().for_each(|copy| count_lost(copy.number, lost));
        }
    }
}

fn count_lost(number: usize, lost: &mut [u64]) {
    if let Some(lost) = lost.get_mut(number) {
        *lost += 1;
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

    impl PuntQueue {
        /// Copies what is punted and hands it over, while nothing else waits.
        fn take(&mut self, memory: &[u8], batch: &Batch, reasons: &[Arc<str>], lost: &mut [u64]) {
            self.copy(memory, batch, reasons, &mut HostShare::default(), lost);
            self.turn(true, lost);
        }
    }

    fn left(rooms: &Rooms) -> Vec<(usize, usize)> {
        let questions = rooms.questions.iter().map(|questions| &questions.room);
        let rooms = rooms.reasons.iter().chain(&rooms.answers).chain(questions).chain([&rooms.all]);
        rooms.map(|room| (room.packets.load(Ordering::Relaxed), room.bytes.load(Ordering::Relaxed))).collect()
    }

    #[test]
    fn what_finds_no_room_is_counted_by_reason_and_the_rest_arrives_in_order() {
        let (mut queue, packets) = PuntQueue::new(|_, _| None);
        let reasons = [Arc::from("arp"), Arc::from("mine")];
        let memory: Vec<u8> = (0..100).collect();
        let mut lost = [0; 2];
        let mut batch = batch(20, &[1, 0]);
        batch.push(40, 20, 20, 3, 7);
        batch.verdict[2] = Verdict::FLOOD;
        let more = 44;
        for _ in 0..OF_REASON.packets + more {
            queue.take(&memory, &batch, &reasons, &mut lost);
        }
        assert_eq!(lost, [more as u64; 2]);
        let first = packets.recv().expect("is there");
        let told = |index| first.packet(index).map(|of| (&**of.reason, of.port, of.time, of.bytes));
        assert_eq!(told(0), Some(("mine", 3, 7, &memory[..20])));
        assert_eq!(told(1), Some(("arp", 3, 7, &memory[..20])));
        assert_eq!((told(2), first.len()), (None, 2));
        drop(first);
        drop(packets);
        assert_eq!(left(&queue.rooms), left(&Rooms::new()), "all came back");
    }

    #[test]
    fn packets_of_a_batch_go_together_and_those_that_nobody_takes_are_lost() {
        let (mut queue, packets) = PuntQueue::new(|_, _| None);
        let (memory, mut lost, reasons) = ([0; 60], [0], [Arc::from("mine")]);
        let many = PuntedPackets::MOST + 5;
        queue.take(&memory, &batch(60, &vec![0; many]), &reasons, &mut lost);
        let together: Vec<usize> = packets.try_iter().map(|some| some.len()).collect();
        assert_eq!((together, lost), (vec![PuntedPackets::MOST, 5], [0]));
        drop(packets);
        queue.take(&memory, &batch(60, &vec![0; many]), &reasons, &mut lost);
        assert_eq!(lost, [many as u64]);
        assert_eq!(left(&queue.rooms), left(&Rooms::new()), "they keep no room");
    }

    #[test]
    fn packets_wait_for_others_until_the_loop_has_time_or_one_is_urgent() {
        let (mut queue, packets) = PuntQueue::new(|reason, _| (reason == "arp").then_some(Urgent::Answer));
        let reasons = ["mine", "arp"].map(Arc::from);
        let (memory, mut lost, mut share) = ([0; 60], [0; 2], HostShare::default());
        let mut copy = |queue: &mut PuntQueue, number| {
            queue.copy(&memory, &batch(60, &[number]), &reasons, &mut share, &mut lost)
        };
        let come = || packets.try_iter().map(|some| some.len()).collect::<Vec<_>>();
        for turn in 1..TURNS {
            assert_eq!(copy(&mut queue, 0), 1);
            queue.turn(false, &mut []);
            assert_eq!(come(), [], "{turn}");
        }
        queue.turn(false, &mut []);
        assert_eq!(come(), [TURNS - 1]);
        copy(&mut queue, 0);
        queue.turn(true, &mut []);
        assert_eq!(come(), [1]);
        copy(&mut queue, 0);
        copy(&mut queue, 1);
        assert_eq!(come(), [2]);
        queue.turn(true, &mut []);
        assert_eq!(come(), []);
    }

    #[test]
    fn while_others_wait_packets_without_a_share_are_lost_and_urgent_ones_are_not() {
        let (mut queue, packets) = PuntQueue::new(|reason, _| (reason == "arp").then_some(Urgent::Answer));
        let reasons = ["mine", "arp"].map(Arc::from);
        let (memory, mut lost, mut share) = ([0; 60], [0; 2], HostShare::default());
        share.passed(packet::BATCH, 0);
        share.over(true);
        for _ in 0..1000 {
            queue.copy(&memory, &batch(60, &[0, 1]), &reasons, &mut share, &mut lost);
            packets.try_iter().for_each(drop);
        }
        let handed_over = 1000 - lost[0];
        assert!((1..1000).contains(&handed_over) && lost[1] == 0, "{lost:?}");
        drop(packets);
        assert_eq!(left(&queue.rooms), left(&Rooms::new()), "those that are lost keep no room");
    }

    #[test]
    fn what_finds_no_room_takes_nothing_of_the_share() {
        let (mut queue, packets) = PuntQueue::new(|_, _| None);
        let (memory, mut lost, reasons) = ([0; 60], [0], [Arc::from("mine")]);
        let batch = batch(60, &[0]);
        for _ in 0..OF_REASON.packets {
            queue.take(&memory, &batch, &reasons, &mut lost);
        }
        let mut share = HostShare::default();
        share.passed(packet::BATCH, 0);
        share.over(true);
        let mut copy = |times: u64| {
            let before = lost[0];
            (0..times).for_each(|_| {
                queue.copy(&memory, &batch, &reasons, &mut share, &mut lost);
            });
            lost[0] - before
        };
        assert_eq!(copy(1000), 1000, "nobody takes what fills the room");
        packets.try_iter().for_each(drop);
        assert_eq!(copy(200), 0, "the share is as large as before");
    }

    #[test]
    fn a_flood_of_one_reason_takes_no_room_from_others_and_none_from_what_is_urgent() {
        let (mut queue, packets) = PuntQueue::new(|reason, _| (reason == "arp").then_some(Urgent::Answer));
        let reasons: Vec<Arc<str>> =
            ["scan", "mine", "other", "more", "fifth", "arp"].map(Arc::from).to_vec();
        let (memory, mut lost) = ([0; 60], [0; 6]);
        let mut flood = |number: u16, times: usize| {
            let before = lost;
            for _ in 0..times {
                queue.take(&memory, &batch(60, &[number]), &reasons, &mut lost);
            }
            times - (lost[usize::from(number)] - before[usize::from(number)]) as usize
        };
        assert_eq!(flood(0, 10_000), OF_REASON.packets);
        assert_eq!([flood(1, 10_000), flood(2, 10_000)], [OF_REASON.packets; 2]);
        assert_eq!(
            (flood(3, 10_000), flood(4, 300)),
            (OF_REASON.packets, 0),
            "all together are bounded, too"
        );
        assert_eq!(flood(5, 100), 100, "whatever else waits");
        assert_eq!(flood(5, 100), ANSWERS.packets - 100);
        let all: Vec<PuntedPackets> = packets.try_iter().collect();
        let reasons = all.iter().flat_map(|some| &some.copies).map(|copy| &*copy.reason);
        assert_eq!(reasons.filter(|reason| *reason == "arp").count(), ANSWERS.packets);
        assert_eq!(lost[5], 200 - ANSWERS.packets as u64);
    }

    #[test]
    fn who_asks_without_end_takes_nothing_from_answers_and_little_from_the_questions_of_others() {
        let urgency: Urgency = |_, frame| Some(if frame[0] == 1 { Urgent::Question } else { Urgent::Answer });
        let (mut queue, packets) = PuntQueue::new(urgency);
        let (reasons, mut lost) = ([Arc::from("arp")], [0]);
        let mut send = |kind: u8, station: [u8; 6], time: u64| {
            let mut memory = [0; 60];
            memory[0] = kind;
            memory[6..12].copy_from_slice(&station);
            let (mut batch, before) = (batch(60, &[0]), lost[0]);
            batch.time[0] = time;
            queue.take(&memory, &batch, &reasons, &mut lost);
            lost[0] == before
        };
        // 100,000 questions in a second, of which control takes in every one at once.
        let (mut taken, mut answers) = (0, 0);
        for number in 0..100_000u64 {
            let time = 1_000_000_000 + number * 10_000;
            taken += u64::from(send(1, [2; 6], time));
            answers += u64::from(number % 1000 == 0 && send(2, [4; 6], time));
            assert!(packets.try_iter().count() <= 2);
        }
        let rate = 1_000_000_000 / QUESTION;
        assert!((rate..=rate + AT_ONCE).contains(&taken), "{taken}");
        assert_eq!(answers, 100);
        // Control takes nothing in: who asks fills the room of its group, and stations of others have their
        // own.
        let mut others = 0;
        for number in 0..100_000u64 {
            send(1, [2; 6], 3_000_000_000 + number * 10_000);
        }
        for station in 0..GROUPS as u8 {
            others += usize::from(send(1, [3, 0, 0, 0, 0, station], 4_000_000_000));
        }
        // Two stations are in one group as often as chance will have it.
        assert!(others >= GROUPS * 3 / 4, "{others}");
        assert!(send(2, [4; 6], 4_000_000_000));
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_nobody_from_asking() {
        let rate = Rate::default();
        let hour = 3_600_000_000_000;
        assert!((0..AT_ONCE).all(|_| rate.take(2 * hour)) && !rate.take(2 * hour));
        assert!((0..AT_ONCE).all(|_| rate.take(hour)) && !rate.take(hour));
        assert!(rate.take(hour + QUESTION));
    }

    #[test]
    fn reasons_whose_numbers_lie_far_apart_share_nothing() {
        let (mut queue, _packets) = PuntQueue::new(|_, _| None);
        let reasons: Vec<Arc<str>> = (0..=2 * SHARES).map(|number| number.to_string().into()).collect();
        let (memory, mut lost) = ([0; 60], vec![0; reasons.len()]);
        for number in [0, SHARES, 2 * SHARES] {
            for _ in 0..OF_REASON.packets + 9 {
                queue.take(&memory, &batch(60, &[number as u16]), &reasons, &mut lost);
            }
        }
        assert_eq!((lost[0], lost[SHARES], lost[2 * SHARES]), (9, 9, 9));
    }

    #[test]
    fn bytes_are_bounded_too() {
        let (mut queue, _packets) = PuntQueue::new(|_, _| None);
        let (memory, mut lost) = (vec![0; 1 << 20], [0]);
        for _ in 0..20 {
            queue.take(&memory, &batch(1 << 20, &[0]), &[Arc::from("big")], &mut lost);
        }
        assert_eq!(20 - lost[0], (OF_REASON.bytes >> 20) as u64);
    }
}
