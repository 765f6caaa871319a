//! Packets that the machine sends as a host at a port: makes batches of them for a program that decides about
//! them.

use super::Injected;
use ir::FROM_HOST;
use packet::region::{HEADROOM, SLACK, frame_with_headroom};
use packet::segment::Segments;
use packet::{Batch, Region, VirtioHeader};
use ports::live::clock::Clock;
use std::collections::VecDeque;
use std::sync::mpsc::Sender;

/// The frames of a turn of the machine, which become packets a batch at a time, and memory for these.
#[derive(Default)]
pub(super) struct HostPackets {
    region: Region,
    frames: VecDeque<Injected>,
    /// How many packets of the first frame have been in a batch.
    begun: usize,
    cut: bool,
    sent: Option<Sender<()>>,
}

impl HostPackets {
    /// Begins a turn with these frames; the one before is over. With `cut`, the program gets the packets that
    /// a long segment stands for. A segment that nobody can cut stays whole. `sent` goes with the last one.
    pub(super) fn begin(&mut self, frames: Vec<Injected>, cut: bool, sent: Sender<()>) {
        (self.frames, self.begun, self.cut) = (frames.into(), 0, cut);
        self.sent = Some(sent).filter(|_| !self.frames.is_empty());
    }

    /// Fills a batch with the next packets of the turn, in their order; `None` if there are no more.
    pub(super) fn next(&mut self, clock: &dyn Clock, batch: &mut Batch) -> Option<&mut [u8]> {
        if self.frames.is_empty() {
            return None;
        }
        let (time, mut last, mut end) = (clock.program(), None, 0);
        batch.clear();
        batch.headroom = HEADROOM as u32;
        while !batch.is_full()
            && let Some(Injected { port, bytes, virtio }) = self.frames.front()
        {
            let segments = if self.cut { Segments::of(bytes, virtio) } else { None };
            let length = segments.map_or(bytes.len(), |segments| segments.length(self.begun));
            let start = frame_with_headroom(last, end);
            (last, end) = (Some(start), start + length);
            self.region.reserve(end + SLACK);
            let place = &mut self.region.bytes_mut()[start..end];
            match segments {
                Some(segments) => segments.write(bytes, self.begun, place),
                None => place.copy_from_slice(bytes),
            }
            batch.push(start as u64, length as u32, length as u32, port | FROM_HOST, time);
            batch.leave_unfinished(if segments.is_some() { VirtioHeader::NONE } else { *virtio });
            self.begun += 1;
            if self.begun >= segments.map_or(1, |segments| segments.count()) {
                self.frames.pop_front();
                self.begun = 0;
            }
        }
        if self.frames.is_empty() {
            self.sent = None;
        }
        Some(self.region.bytes_mut())
    }
}

/// Takes the marks of the machine's packets away, so that everything behind the program reads which port a
/// packet belongs to.
pub(super) fn forget(batch: &mut Batch) {
    batch.port[..batch.len].iter_mut().for_each(|port| *port &= !FROM_HOST);
}

/// Takes the machine's packets out of a batch, for a program that does not decide about them.
pub(super) fn take_marked(memory: &[u8], batch: &mut Batch) -> Vec<Injected> {
    let (mut marked, mut kept) = (Vec::new(), 0);
    for index in 0..batch.len {
        if batch.port[index] & FROM_HOST == 0 {
            batch.keep(kept, index);
            kept += 1;
        } else if let Some(bytes) = batch.bytes(memory, index) {
            let (port, virtio) = (batch.port[index] & !FROM_HOST, batch.virtio(index));
            marked.push(Injected { port, bytes: bytes.to_vec(), virtio });
        }
    }
    batch.len = kept;
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use ports::live::clock::MachineClock;
    use std::sync::mpsc::{self, TryRecvError};

    /// A segment of TCP over IPv4 with so many bytes of data, to be cut into packets of 1,000.
    fn segment(data: usize) -> Injected {
        let mut bytes = vec![0u8; 54 + data];
        bytes[12] = 8;
        bytes[14..24].copy_from_slice(&[0x45, 0, 0, 0, 0, 7, 0x40, 0, 64, 6]);
        bytes[16..18].copy_from_slice(&((40 + data) as u16).to_be_bytes());
        bytes[46..48].copy_from_slice(&[0x50, 0x10]);
        let mut header = [0, 1, 54, 0, 0, 0, 34, 0, 16, 0];
        header[4..6].copy_from_slice(&1000u16.to_ne_bytes());
        Injected { port: 7, bytes, virtio: VirtioHeader::read(&header) }
    }

    #[test]
    fn a_program_gets_marked_packets_and_of_a_segment_all_that_it_stands_for() {
        let short = Injected { port: 2, bytes: vec![5; 60], virtio: VirtioHeader::NONE };
        let mut frames = vec![short.clone()];
        frames.extend((0..6).map(|_| segment(60_500)));
        frames.push(short);
        for (cut, wanted) in [(true, 2 + 6 * 61usize), (false, 8)] {
            let (mut packets, mut batches, mut batch) = (Vec::new(), 0, Batch::new());
            let ((sent, heard), mut turn) = (mpsc::channel(), HostPackets::default());
            turn.begin(frames.clone(), cut, sent);
            while packets.len() < wanted {
                assert_eq!(heard.try_recv(), Err(TryRecvError::Empty), "the turn is not over");
                let memory = turn.next(&MachineClock, &mut batch).expect("there are more");
                batches += 1;
                for index in 0..batch.len {
                    let bytes = batch.bytes(memory, index).expect("it is there").to_vec();
                    packets.push((batch.port[index], bytes.len(), batch.virtio(index).segments()));
                }
                forget(&mut batch);
                assert!(batch.ports().iter().all(|port| [2, 7].contains(port)));
            }
            assert_eq!(heard.try_recv(), Err(TryRecvError::Disconnected), "the turn is over");
            assert!(turn.next(&MachineClock, &mut batch).is_none());
            assert_eq!((packets.len(), batches), (wanted, wanted.div_ceil(packet::BATCH)));
            let marked = |port: u16| port | FROM_HOST;
            let ends = (packets[0], packets[wanted - 1]);
            assert_eq!(ends, ((marked(2), 60, false), (marked(2), 60, false)));
            let longest = if cut { (marked(7), 1054, false) } else { (marked(7), 60_554, true) };
            assert_eq!(packets[1], longest);
            assert_eq!(packets[2].2, !cut, "what is left to be done goes with a whole one only");
        }
    }
}
