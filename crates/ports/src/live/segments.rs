//! Cuts long segments before the program sees them, and joins packets to segments again after it.
//!
//! A program may compare a packet's length with an MTU, put the packet into a tunnel, or count it. For a
//! segment of 64 KiB that stands for 45 packets, all this would give wrong results, so the program gets the
//! packets. One segment is far less work for Linux and for the other end than 45 packets. So consecutive
//! packets that a segment would be cut into are joined to a segment again when they leave. A segment that
//! means the same to the program as its packets goes to it whole and says so
//! ([`VirtioHeader::as_packets`](packet::VirtioHeader::as_packets)), so that it counts as these.

use super::clock::Now;
use super::{Attached, Lane, ReceiveLosses, Receiver, SendLosses, Sender};
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::segment::{Joined, Segments};
use packet::{BATCH, Batch, OpenClasses, PortNumber, Region, VirtioHeader};
use std::os::fd::RawFd;

/// Cuts segments that come in by a port's lanes, and joins packets that leave by them, where those take
/// segments.
pub(super) fn packets_only(attached: Attached) -> Attached {
    let each = |Lane { receive, send }: Lane| {
        let send = if send.takes_segments() { Box::new(Join::new(send)) } else { send };
        Lane { receive: Box::new(Cut::new(receive)), send }
    };
    Attached { lanes: attached.lanes.into_iter().map(each).collect(), ..attached }
}

/// How many bytes of packets are cut at once, headroom included, but for the last of them: 256 segments of 64
/// KiB whose packets are of the usual size. A host whose peer takes 36 bytes at once makes segments that
/// become more than six times as much.
const CUT_TOGETHER: usize = 20 << 20;

/// A packet in the region.
struct Piece {
    start: u64,
    length: u32,
    port: PortNumber,
    time: u64,
    virtio: VirtioHeader,
}

/// Cuts what comes in.
struct Cut {
    inner: Box<dyn Receiver>,
    /// Where the packets of a batch with segments are copied to, as packets, and which of them the program
    /// has.
    region: Region,
    pieces: Vec<Piece>,
    given: usize,
    /// What of a batch is to be cut when these are gone.
    uncut: Box<Batch>,
    uncut_region: Region,
    /// How many packets of the first of it were cut.
    begun: usize,
    /// Whether the checksums of packets may stay open.
    open: bool,
    /// The classes of segments that mean the same to the program as their packets.
    whole: OpenClasses,
    losses: ReceiveLosses,
}

impl Cut {
    fn new(inner: Box<dyn Receiver>) -> Cut {
        Cut {
            inner,
            region: Region::default(),
            pieces: Vec::new(),
            given: 0,
            uncut: Box::default(),
            uncut_region: Region::default(),
            begun: 0,
            open: false,
            whole: OpenClasses::NONE,
            losses: ReceiveLosses::default(),
        }
    }
}

impl Cut {
    /// Cuts what is left of a batch, as much as is cut at once; what is left then is kept.
    fn cut_on(&mut self) {
        let Cut { region, pieces, uncut, uncut_region, begun, open, losses, .. } = self;
        let left = cut(uncut_region.bytes(), uncut, *begun, region, pieces, *open, losses);
        let (first, begun) = left.unwrap_or((uncut.len, 0));
        (first..uncut.len).enumerate().for_each(|(to, from)| uncut.keep(to, from));
        uncut.len -= first;
        (self.given, self.begun) = (0, begun);
    }
}

impl Receiver for Cut {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        if self.given == self.pieces.len() && !self.uncut.is_empty() {
            self.cut_on();
        }
        let Cut { inner, region, pieces, given, uncut, uncut_region, begun, open, whole, losses } = self;
        if *given == pieces.len() {
            let memory = inner.receive(batch, now);
            // Segments are cut as soon as one of the batch must be, so that none waits whole when another
            // program takes over.
            if (0..batch.len).all(|index| stays_whole(memory, batch, index, *whole)) {
                (0..batch.len).for_each(|index| batch.count_as_packets(index));
                return memory;
            }
            *given = 0;
            if let Some((first, number)) = cut(memory, batch, 0, region, pieces, *open, losses) {
                keep(memory, batch, first, uncut_region, uncut);
                *begun = number;
            }
        }
        batch.clear();
        batch.headroom = HEADROOM as u32;
        for piece in pieces[*given..].iter().take(BATCH) {
            batch.push(piece.start, piece.length, piece.length, piece.port, piece.time);
            batch.leave_unfinished(piece.virtio);
        }
        *given += batch.len;
        region.bytes_mut()
    }

    fn descriptor(&self) -> RawFd {
        self.inner.descriptor()
    }

    fn due(&self) -> Option<u64> {
        let waits = self.given < self.pieces.len() || !self.uncut.is_empty();
        if waits { Some(0) } else { self.inner.due() }
    }

    fn has_more(&self) -> bool {
        self.given < self.pieces.len() || !self.uncut.is_empty() || self.inner.has_more()
    }

    fn checkpoint(&mut self) -> Vec<u32> {
        self.inner.checkpoint()
    }

    fn resume(&mut self, checkpoint: &[u32]) -> bool {
        self.inner.resume(checkpoint)
    }

    fn leave_checksums_open(&mut self, open: bool) {
        self.open = open;
        self.inner.leave_checksums_open(open);
    }

    fn leave_segments_whole(&mut self, classes: OpenClasses) {
        self.whole = classes;
    }

    fn losses(&mut self) -> ReceiveLosses {
        let packets = |index| {
            let frame = self.uncut.bytes(self.uncut_region.bytes(), index)?;
            Segments::of(frame, &self.uncut.virtio(index)).map(|segments| segments.count())
        };
        let uncut: usize = (0..self.uncut.len).map(|index| packets(index).unwrap_or(1)).sum();
        let waiting = (self.pieces.len() - self.given + uncut - self.begun) as u64;
        let own = ReceiveLosses { waiting, ..self.losses };
        self.inner.losses().each(own, |inner, own| inner + own)
    }
}

/// Whether a packet is none that is to be cut for a program to which these classes of segments mean the same.
/// A segment with a wrong checksum of IP would become packets with right ones.
fn stays_whole(memory: &[u8], batch: &Batch, index: usize, classes: OpenClasses) -> bool {
    let virtio = batch.virtio(index);
    let may = |frame| {
        virtio.open_class(frame).is_some_and(|class| classes.contains(class))
            && Segments::of(frame, &virtio).is_some_and(|segments| segments.is_headed_right(frame))
    };
    !virtio.segments() || batch.bytes(memory, index).is_some_and(may)
}

/// Copies the packets of a batch into the region, and of every segment the packets that it stands for, of
/// the first one those from `begun` on. Returns the first of which packets are left to be cut, and how many
/// of its packets were.
fn cut(
    memory: &[u8],
    batch: &Batch,
    begun: usize,
    region: &mut Region,
    pieces: &mut Vec<Piece>,
    open: bool,
    losses: &mut ReceiveLosses,
) -> Option<(usize, usize)> {
    pieces.clear();
    let (mut last, mut end) = (None, 0);
    for index in 0..batch.len {
        let Some(frame) = batch.bytes(memory, index) else { continue };
        let virtio = batch.virtio(index);
        let segments = if virtio.segments() { Segments::of(frame, &virtio) } else { None };
        if virtio.segments() && segments.is_none() {
            losses.unreadable += 1;
            continue;
        }
        let count = segments.map_or(1, |segments| segments.count());
        for number in if index == 0 { begun } else { 0 }..count {
            if end >= CUT_TOGETHER {
                return Some((index, number));
            }
            let length = segments.map_or(frame.len(), |segments| segments.length(number));
            let start = frame_with_headroom(last, end);
            (last, end) = (Some(start), start + length);
            region.reserve(end + SLACK);
            let piece = &mut region.bytes_mut()[start..end];
            let left = match segments {
                None => {
                    piece.copy_from_slice(frame);
                    virtio
                }
                Some(segments) if open => segments.write_open(frame, number, piece),
                Some(segments) => {
                    segments.write(frame, number, piece);
                    VirtioHeader::NONE
                }
            };
            let (port, time) = (batch.port[index], batch.time[index]);
            pieces.push(Piece { start: start as u64, length: length as u32, port, time, virtio: left });
        }
    }
    None
}

/// Keeps the packets of a batch from `first` on as they are.
fn keep(memory: &[u8], batch: &Batch, first: usize, region: &mut Region, kept: &mut Batch) {
    kept.clear();
    let mut end = 0;
    for index in first..batch.len {
        let Some(frame) = batch.bytes(memory, index) else { continue };
        let (start, length) = (end, frame.len() as u32);
        end += frame.len();
        region.reserve(end);
        region.bytes_mut()[start..end].copy_from_slice(frame);
        kept.push(start as u64, length, length, batch.port[index], batch.time[index]);
        kept.leave_unfinished(batch.virtio(index));
    }
}

/// Joins consecutive packets to segments.
#[derive(Default)]
pub(super) struct Joiner(Joined);

impl Joiner {
    /// Takes the next packet. Passes on, in order, what nothing can be joined to any more, with the number of
    /// its packets.
    pub(super) fn add(
        &mut self,
        frame: &[u8],
        virtio: VirtioHeader,
        mut pass: impl FnMut(&[u8], VirtioHeader, usize),
    ) {
        if !virtio.segments() && self.0.join(frame, virtio) {
            if self.0.is_closed() {
                self.release(pass);
            }
            return;
        }
        self.release(&mut pass);
        if virtio.segments() || !self.0.begin(frame, virtio) {
            pass(frame, virtio, 1);
        }
    }

    /// Passes on what was joined.
    pub(super) fn release(&mut self, mut pass: impl FnMut(&[u8], VirtioHeader, usize)) {
        let count = self.0.count();
        if let Some((frame, virtio)) = self.0.finish() {
            pass(frame, virtio, count);
            self.0.clear();
        }
    }
}

/// Joins what leaves.
struct Join {
    inner: Box<dyn Sender>,
    joiner: Joiner,
}

impl Join {
    fn new(inner: Box<dyn Sender>) -> Join {
        Join { inner, joiner: Joiner::default() }
    }
}

impl Sender for Join {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        self.joiner.add(frame, virtio, |frame, virtio, _| self.inner.send(frame, virtio));
    }

    fn flush(&mut self) {
        self.joiner.release(|frame, virtio, _| self.inner.send(frame, virtio));
        self.inner.flush();
    }

    fn due(&self) -> Option<u64> {
        self.inner.due()
    }

    fn takes_open_checksums(&self) -> bool {
        self.inner.takes_open_checksums()
    }

    fn takes_segments(&self) -> bool {
        self.inner.takes_segments()
    }

    fn losses(&self) -> SendLosses {
        self.inner.losses()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveOut;
    use crate::{Departure, Transmit};
    use packet::OpenClass;
    use std::sync::{Arc, Mutex};

    /// A packet's bytes, and what is left to do with it.
    type Frame = (Vec<u8>, VirtioHeader);

    /// Hands over batches of which the packets are given.
    struct Given(Vec<Vec<Frame>>, Region);

    impl Receiver for Given {
        fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
            batch.clear();
            if !self.0.is_empty() {
                for (number, (frame, virtio)) in self.0.remove(0).into_iter().enumerate() {
                    let start = number * 70_016 + HEADROOM;
                    self.1.reserve(start + frame.len() + SLACK);
                    self.1.bytes_mut()[start..start + frame.len()].copy_from_slice(&frame);
                    batch.push(start as u64, frame.len() as u32, frame.len() as u32, 3, now.program);
                    batch.leave_unfinished(virtio);
                }
            }
            self.1.bytes_mut()
        }

        fn descriptor(&self) -> RawFd {
            -1
        }

        fn losses(&mut self) -> ReceiveLosses {
            ReceiveLosses::default()
        }
    }

    /// Keeps what is sent; whether it takes segments.
    struct Kept(Arc<Mutex<Vec<Frame>>>, bool);

    impl Sender for Kept {
        fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
            self.0.lock().expect("whole").push((frame.to_vec(), virtio));
        }

        fn flush(&mut self) {}

        fn takes_segments(&self) -> bool {
            self.1
        }

        fn losses(&self) -> SendLosses {
            SendLosses::default()
        }
    }

    /// A finished segment of TCP over IPv4, and what is left to do with it; `kind` 1 says that it is to be
    /// cut.
    fn segment(data: usize, sequence: u32, kind: u8) -> Frame {
        let mut frame = vec![0u8; 54 + data];
        frame[12] = 8;
        frame[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6]);
        frame[16..18].copy_from_slice(&((40 + data) as u16).to_be_bytes());
        let sum = !packet::checksum::sum(&frame[14..34]);
        frame[24..26].copy_from_slice(&sum.to_be_bytes());
        frame[38..42].copy_from_slice(&sequence.to_be_bytes());
        frame[46] = 0x50;
        frame[47] = 0x10;
        for (index, byte) in frame[54..].iter_mut().enumerate() {
            *byte = index as u8;
        }
        let mut header = [1, kind, 54, 0, 0, 0, 34, 0, 16, 0];
        header[4..6].copy_from_slice(&1000u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16u16.to_ne_bytes());
        let virtio = VirtioHeader::read(&header);
        assert!(virtio.restart(&mut frame) && virtio.complete(&mut frame));
        (frame, virtio.without_checksum())
    }

    #[test]
    fn open_packets_of_a_segment_are_joined_as_finished_ones_are() {
        let (mut long, header) = segment(20_500, 5, 1);
        // As it came from its sender.
        let virtio = VirtioHeader::read(&header.write());
        assert!(virtio.restart(&mut long));
        let (single, alone) = {
            let (mut frame, _) = segment(700, 9, 0);
            let mut header = virtio.write();
            header[1] = 0;
            let alone = VirtioHeader::read(&header);
            assert!(alone.restart(&mut frame));
            (frame, alone)
        };
        for open in [false, true] {
            let batch = vec![(long.clone(), virtio), (single.clone(), alone)];
            let mut cut = Cut::new(Box::new(Given(vec![batch], Region::default())));
            cut.leave_checksums_open(open);
            let sent = Arc::new(Mutex::new(Vec::new()));
            let mut join = Join::new(Box::new(Kept(sent.clone(), true)));
            let mut batch = Batch::new();
            let memory = cut.receive(&mut batch, Now { program: 1, wall: 0 });
            assert_eq!(batch.len, 22);
            for index in 0..batch.len {
                let virtio = batch.virtio(index);
                assert_eq!(virtio.is_open(), open || index == 21, "what came whole stays as it is");
                let mut bytes = batch.bytes(memory, index).expect("lies there").to_vec();
                // One that somebody damaged on its way is not taken for right.
                if index == 7 {
                    bytes[51] ^= 1;
                }
                join.send(&bytes, virtio);
            }
            join.flush();
            let sent = sent.lock().expect("whole");
            let kinds: Vec<_> = sent
                .iter()
                .map(|(frame, virtio)| (frame.len(), virtio.segments(), virtio.is_open()))
                .collect();
            assert_eq!(
                kinds,
                [(7_054, true, true), (1_054, false, open), (12_554, true, true), (754, false, true)]
            );
            assert_eq!(sent[3], (single.clone(), alone));
        }
    }

    #[test]
    fn segments_that_mean_the_same_stay_whole_until_one_of_the_batch_does_not() {
        let (mut long, header) = segment(20_500, 5, 1);
        let virtio = VirtioHeader::read(&header.write());
        assert!(virtio.restart(&mut long));
        let four = [OpenClass::ALL[0]].into_iter().collect();
        let mut damaged = long.clone();
        damaged[24] ^= 1;
        let finished = segment(20_500, 5, 1);
        let single = (segment(700, 9, 0).0, VirtioHeader::NONE);
        let open = (long.clone(), virtio);
        for (whole, classes, frames) in [
            (true, four, vec![single.clone(), open.clone(), open.clone()]),
            (false, OpenClasses::NONE, vec![open.clone()]),
            (false, four, vec![open.clone(), finished]),
            (false, four, vec![(damaged, virtio), open.clone()]),
        ] {
            let mut cut = Cut::new(Box::new(Given(vec![frames.clone()], Region::default())));
            cut.leave_checksums_open(true);
            cut.leave_segments_whole(classes);
            let mut batch = Batch::new();
            let memory = cut.receive(&mut batch, Now { program: 1, wall: 0 });
            if !whole {
                assert!((0..batch.len).all(|index| !batch.virtio(index).segments()) && batch.len > 20);
                continue;
            }
            let counted: Vec<_> = (0..batch.len)
                .map(|index| {
                    let packets = batch.packets_of(memory, index);
                    (batch.captured[index], packets.map(|packets| (packets.count(), packets.wire_bytes())))
                })
                .collect();
            let each = Some((21, 20_500 + 21 * 54));
            assert_eq!(counted, [(754, None), (20_554, each), (20_554, each)]);
            assert_eq!(batch.virtio(1).write(), virtio.write(), "Linux does not see it");
            // Handed over whole where a port takes segments, and cut where it does not.
            for takes in [true, false] {
                let sent = Arc::new(Mutex::new(Vec::new()));
                let kept = Box::new(Kept(sent.clone(), takes));
                let mut out = LiveOut::new(if takes { vec![Box::new(Join::new(kept))] } else { vec![kept] });
                let bytes = batch.bytes(memory, 1).expect("lies there");
                let (wire, virtio) = (bytes.len() as u32, batch.virtio(1));
                let whole = Departure { port: 1, bytes, wire, time: 0, virtio, comment: None };
                out.transmit(&whole).expect("is sent");
                out.flush();
                let sent = sent.lock().expect("whole");
                assert_eq!(sent.len(), if takes { 1 } else { 21 });
                let packets = batch.packets_of(memory, 1).expect("is a segment");
                for (number, (frame, virtio)) in sent.iter().enumerate() {
                    let mut piece = vec![0; packets.length(number)];
                    packets.write(bytes, number, &mut piece);
                    let same = if takes { *frame == bytes } else { *frame == piece && virtio.is_none() };
                    assert!(same, "{number}");
                }
            }
        }
    }

    #[test]
    fn segments_of_tiny_packets_are_cut_a_part_at_a_time() {
        const SEGMENTS: usize = 40;
        let (long, header) = segment(65_000, 5, 1);
        let mut tiny = header.write();
        tiny[4..6].copy_from_slice(&8u16.to_ne_bytes());
        let tiny = (long.clone(), VirtioHeader::read(&tiny));
        let last = segment(300, 9, 0);
        let batch = [vec![tiny; SEGMENTS], vec![last.clone()]].concat();
        let mut cut = Cut::new(Box::new(Given(vec![batch, vec![last]], Region::default())));
        let (mut batch, mut sequence, mut alone) = (Batch::new(), Vec::new(), 0);
        let all = SEGMENTS * 65_000 / 8;
        while alone < 2 {
            let memory = cut.receive(&mut batch, Now { program: 1, wall: 0 });
            assert!(!batch.is_empty() && memory.len() <= 2 * CUT_TOGETHER, "{} bytes", memory.len());
            for index in 0..batch.len {
                let bytes = batch.bytes(memory, index).expect("lies there");
                match bytes.len() {
                    62 => sequence.push(u32::from_be_bytes([bytes[38], bytes[39], bytes[40], bytes[41]])),
                    _ => alone += 1,
                }
            }
            let left = if alone == 0 { all + 1 - sequence.len() } else { 0 };
            assert_eq!(cut.losses(), ReceiveLosses { waiting: left as u64, ..Default::default() });
            assert_eq!(cut.due(), (left > 0).then_some(0));
        }
        let expected = (0..SEGMENTS).flat_map(|_| (0..65_000 / 8).map(|number| 5 + 8 * number));
        assert!(sequence.into_iter().eq(expected), "each once, in order");
    }

    #[test]
    fn a_program_gets_packets_and_the_wire_segments() {
        let (long, last) = (segment(60_500, 5, 1), segment(300, 9, 0));
        let mut unknown = long.1.write();
        unknown[1] = 3;
        let mut tiny = long.1.write();
        tiny[4..6].copy_from_slice(&1u16.to_ne_bytes());
        let odd = [unknown, tiny].map(|header| (long.0.clone(), VirtioHeader::read(&header)));
        let batch = [&[last.clone(), long.clone()], &odd[..], std::slice::from_ref(&last)].concat();
        let batches = vec![vec![long.clone(); 5], vec![last.clone()], batch];
        let mut cut = Cut::new(Box::new(Given(batches, Region::default())));
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut join = Join::new(Box::new(Kept(sent.clone(), true)));
        let (mut batch, mut lengths, mut waiting) = (Batch::new(), Vec::new(), Vec::new());
        for time in 0..20 {
            let memory = cut.receive(&mut batch, Now { program: time, wall: 0 });
            for index in 0..batch.len {
                assert!(batch.virtio(index).is_none() && batch.port[index] == 3);
                assert!(batch.frame[index] as usize + batch.captured[index] as usize + SLACK <= memory.len());
                join.send(batch.bytes(memory, index).expect("lies there"), VirtioHeader::NONE);
            }
            lengths.push(batch.len);
            waiting.push(cut.losses().waiting);
            join.flush();
        }
        assert_eq!(lengths[..6], [256, 49, 1, 63, 0, 0], "61 packets a segment, at most 256 at once");
        assert_eq!(waiting[..3], [49, 0, 0], "they would be lost with the port");
        assert_eq!(cut.losses(), ReceiveLosses { unreadable: 2, ..Default::default() });
        let sent = sent.lock().expect("whole");
        let finished = |(frame, virtio): &Frame| {
            let mut frame = frame.clone();
            virtio.complete(&mut frame);
            frame
        };
        // The fifth segment was cut by the end of a batch.
        assert_eq!(sent.len(), 6 + 1 + 3);
        for place in [0, 1, 2, 3, 8] {
            assert!(sent[place].1.segments() && finished(&sent[place]) == long.0, "{place}");
        }
        assert_eq!(sent[4].0.len() + sent[5].0.len(), 54 + 60_500 + 54);
        for place in [6, 7, 9] {
            assert_eq!(sent[place], last);
        }
    }
}
