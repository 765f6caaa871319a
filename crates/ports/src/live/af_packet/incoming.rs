//! The receiving half of an AF_PACKET lane: it takes full frames of the ring, and packets that were too long
//! for a frame.

use super::port::Port;
use super::sockets::{FIRST, TAG};
use crate::live::clock::Now;
use crate::live::frame_ring::FrameRing;
use crate::live::{Offloads, ReceiveLosses, Receiver, sys, untagged};
use packet::region::{FRAME_ALIGNMENT, HEADROOM, SLACK};
use packet::{BATCH, Batch, PortNumber, Region, VirtioHeader};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// The longest packet that hosts hand over uncut, with its headers.
const LONGEST: usize = (64 << 10) + 64;
/// Where such a packet begins in its slot: behind the room to grow, and a tag.
const LONG_FIRST: usize = (HEADROOM + TAG).next_multiple_of(FRAME_ALIGNMENT);
/// Bytes of a slot.
const SLOT: usize = (LONG_FIRST + LONGEST + SLACK).next_multiple_of(FRAME_ALIGNMENT);
/// So many long packets are a batch at most.
const LONG_AT_ONCE: usize = 32;
/// The same if they are to be cut: some 360 packets, which stay in a cache.
const CUT_AT_ONCE: usize = 8;

/// What comes in.
pub(super) struct Incoming {
    ring: FrameRing,
    /// Keeps its number when another socket takes its place.
    socket: OwnedFd,
    number: PortNumber,
    losses: ReceiveLosses,
    /// Where long packets are received into; empty until there is one.
    long: Region,
    /// Whether checksums may stay open.
    open: bool,
    port: Arc<Port>,
    lane: usize,
}

impl Incoming {
    pub(super) fn new(
        socket: OwnedFd,
        ring: FrameRing,
        number: PortNumber,
        port: Arc<Port>,
        lane: usize,
    ) -> Incoming {
        Incoming {
            ring,
            socket,
            number,
            losses: ReceiveLosses::default(),
            long: Region::default(),
            open: false,
            port,
            lane,
        }
    }

    /// Goes on with a ring and a socket of an interface that is there again.
    fn renew(&mut self, socket: OwnedFd, ring: FrameRing) {
        self.count_dropped();
        // The number stays, since others wait for it; if that fails nothing has changed and the port stays
        // away.
        if sys::replace(&self.socket, &socket).is_ok() {
            self.ring = ring;
        }
    }

    fn count_dropped(&mut self) {
        if let Ok((_, dropped)) = sys::packet_statistics(&self.socket) {
            self.losses.ring_full += u64::from(dropped);
        }
    }
}

impl Receiver for Incoming {
    /// Packets carry the time at which the kernel wrote them, which it tells by the clock on the wall.
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: Now) -> &'a mut [u8] {
        // What came before the interface vanished comes first: nothing follows it into the old ring.
        if self.ring.is_empty()
            && let Some((socket, ring)) = self.port.incoming[self.lane].take()
        {
            self.renew(socket, ring);
        }
        batch.clear();
        batch.headroom = HEADROOM as u32;
        let cut = self.port.wanted.offloads == Offloads::Cut;
        let long_at_once = if cut { CUT_AT_ONCE } else { LONG_AT_ONCE };
        let (memory, frames) = self.ring.take(BATCH, libc::TP_STATUS_COPY, long_at_once);
        let queued = frames
            .clone()
            .next()
            .is_some_and(|first| word(&memory[first], STATUS) & libc::TP_STATUS_COPY != 0);
        let (all, kept, open) = (self.port.wanted.promiscuous, self.port.keeps_tags, self.open);
        let mut take = |offset: usize, time: u64, foreign: bool, arrived: Arrived| {
            if foreign && !all {
                self.losses.foreign += 1;
                return;
            }
            batch.push((offset + arrived.start) as u64, arrived.length, arrived.length, self.number, time);
            batch.leave_unfinished(arrived.virtio);
        };
        if !queued {
            for place in frames {
                let frame = &mut memory[place.clone()];
                let (time, foreign) = (now.of_stamp(stamp(frame)), foreign(frame));
                match Arrived::in_ring(frame, kept, open) {
                    Some(arrived) => take(place.start, time, foreign, arrived),
                    None => self.losses.too_long += 1,
                }
            }
            return memory;
        }
        self.long.reserve(long_at_once * SLOT);
        let long = self.long.bytes_mut();
        for (number, (slot, place)) in long.chunks_exact_mut(SLOT).zip(frames).enumerate() {
            let frame = &memory[place];
            let (tag, time, foreign) = (Tag::of(frame, kept), now.of_stamp(stamp(frame)), foreign(frame));
            match Arrived::queued(&self.socket, tag, slot, open) {
                Ok(Some(arrived)) => take(number * SLOT, time, foreign, arrived),
                Ok(None) => self.losses.too_long += 1,
                Err(_) => self.losses.unreadable += 1,
            }
        }
        long
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn has_more(&self) -> bool {
        // Some of the frames may have been for others, and a batch ends where the ring does.
        self.ring.left_full()
    }

    fn leave_checksums_open(&mut self, open: bool) {
        self.open = open && self.port.wanted.offloads != Offloads::Off;
    }

    fn checkpoint(&mut self) -> Vec<u32> {
        if let Some((socket, ring)) = self.port.incoming[self.lane].take() {
            // What came by the interface that has vanished since is lost with it.
            self.renew(socket, ring);
        }
        vec![self.ring.checkpoint()]
    }

    fn resume(&mut self, checkpoint: &[u32]) -> bool {
        matches!(checkpoint, &[frame] if self.ring.resume(frame))
    }

    fn losses(&mut self) -> ReceiveLosses {
        self.count_dropped();
        self.losses
    }
}

/// Offsets of the fields of a frame's header (struct tpacket2_hdr).
const STATUS: usize = 0;
const LENGTH: usize = 4;
const CAPTURED: usize = 8;
const START: usize = 12;
const SECONDS: usize = 16;
const NANOSECONDS: usize = 20;
const TAG_CONTROL: usize = 24;
const TAG_PROTOCOL: usize = 26;
/// Whom the packet is for (`sll_pkttype` of the struct sockaddr_ll behind it).
const MEANT_FOR: usize = 32 + 10;

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

fn pair(frame: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([frame[at], frame[at + 1]])
}

/// When the frame was written, in nanoseconds since 1970-01-01 UTC.
fn stamp(frame: &[u8]) -> u64 {
    u64::from(word(frame, SECONDS)) * 1_000_000_000 + u64::from(word(frame, NANOSECONDS))
}

/// Whether the packet is meant for another station of the link.
fn foreign(frame: &[u8]) -> bool {
    frame[MEANT_FOR] == libc::PACKET_OTHERHOST
}

/// A VLAN tag that the kernel took out of a packet: its type and its control word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u16, u16);

impl Tag {
    /// The tag that the header of a frame tells of. One without the number of a VLAN says nothing but a
    /// priority, and its packet counts as untagged (IEEE 802.1Q, 6.9.1), unless such tags are `kept`.
    fn of(frame: &[u8], kept: bool) -> Option<Tag> {
        let status = word(frame, STATUS);
        let protocol =
            if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { pair(frame, TAG_PROTOCOL) } else { 0x8100 };
        let tag = (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| Tag(protocol, pair(frame, TAG_CONTROL)));
        tag.filter(|Tag(protocol, control)| kept || !untagged::is_priority(*protocol, *control))
    }
}

/// A packet that is ready for the program: where in its frame it lies, and what is left to do with it on the
/// way out.
#[derive(Debug, PartialEq, Eq)]
struct Arrived {
    start: usize,
    length: u32,
    virtio: VirtioHeader,
}

impl Arrived {
    /// The packet of a full frame of the ring; `None` if it is not there whole.
    fn in_ring(frame: &mut [u8], kept: bool, open: bool) -> Option<Arrived> {
        let (length, captured) = (word(frame, LENGTH), word(frame, CAPTURED));
        let (mut start, bytes) = (usize::from(pair(frame, START)), length as usize);
        if captured < length || start < FIRST || start + bytes > frame.len() {
            return None;
        }
        let (tag, header) =
            (Tag::of(frame, kept), frame[start - VirtioHeader::LEN..start].first_chunk().copied()?);
        if start + bytes + SLACK > frame.len() {
            // There is more room before a packet than it needs: what the kernel wrote there has been read.
            frame.copy_within(start..start + bytes, start - SLACK);
            start -= SLACK;
        }
        Some(Arrived::finish(frame, start, bytes, VirtioHeader::read(&header), tag, open))
    }

    /// The next packet that was too long for a frame of the ring and waits at the socket, received into a
    /// slot; `None` if it does not fit there either.
    ///
    /// # Errors
    /// It cannot be had.
    fn queued(
        socket: &OwnedFd,
        tag: Option<Tag>,
        slot: &mut [u8],
        open: bool,
    ) -> io::Result<Option<Arrived>> {
        let mut header = [0; VirtioHeader::LEN];
        let room = LONG_FIRST..slot.len() - SLACK;
        let length = once_more(|| sys::receive_frame(socket, &mut header, &mut slot[room.clone()]))?;
        let virtio = VirtioHeader::read(&header);
        Ok((length <= room.len()).then(|| Arrived::finish(slot, LONG_FIRST, length, virtio, tag, open)))
    }

    /// Finishes the checksum, unless it may stay open, and puts the tag back.
    fn finish(
        frame: &mut [u8],
        mut start: usize,
        mut length: usize,
        mut virtio: VirtioHeader,
        tag: Option<Tag>,
        open: bool,
    ) -> Arrived {
        if !open {
            virtio.complete(&mut frame[start..start + length]);
            virtio = virtio.without_checksum();
        }
        if let Some(Tag(protocol, control)) = tag.filter(|_| length >= 12) {
            frame.copy_within(start..start + 12, start - TAG);
            start -= TAG;
            length += TAG;
            frame[start + 12..start + 14].copy_from_slice(&protocol.to_be_bytes());
            frame[start + 14..start + 16].copy_from_slice(&control.to_be_bytes());
            virtio = virtio.moved(TAG as i32).unwrap_or(VirtioHeader::NONE);
        }
        Arrived { start, length: length as u32, virtio }
    }
}

/// Receives again where the kernel said what had happened to the interface instead of handing a packet over:
/// the ring counts on as many packets at the socket as it has marked frames. It says so once for each thing
/// that happened. EINVAL is of the packet, which is gone then.
fn once_more<T>(mut receive: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    const TRIES: usize = 8;
    let mut result = receive();
    for _ in 1..TRIES {
        match &result {
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINVAL)) => {}
            _ => break,
        }
        result = receive();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame as the kernel writes it.
    fn written(length: u32, captured: u32, status: u32, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; 2112];
        frame[0..4].copy_from_slice(&status.to_ne_bytes());
        frame[4..8].copy_from_slice(&length.to_ne_bytes());
        frame[8..12].copy_from_slice(&captured.to_ne_bytes());
        frame[12..14].copy_from_slice(&(FIRST as u16).to_ne_bytes());
        frame[24..26].copy_from_slice(&0x2064u16.to_ne_bytes());
        frame[26..28].copy_from_slice(&0x88a8u16.to_ne_bytes());
        frame[FIRST - VirtioHeader::LEN..FIRST].copy_from_slice(&[1, 1, 66, 0, 0, 5, 34, 0, 16, 0]);
        frame[FIRST..FIRST + packet.len()].copy_from_slice(packet);
        frame
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_is_put_back() {
        let mut frame = written(16, 16, libc::TP_STATUS_USER, b"ddddddssssss\x08\x00xy");
        frame[16..20].copy_from_slice(&7u32.to_ne_bytes());
        frame[20..24].copy_from_slice(&9u32.to_ne_bytes());
        assert_eq!(stamp(&frame), 7_000_000_009);
        let plain = Arrived::in_ring(&mut frame, false, false).expect("whole");
        assert_eq!((plain.start, plain.length), (FIRST, 16));
        let status = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let mut frame = written(16, 16, status, b"ddddddssssss\x08\x00xy");
        let tagged = Arrived::in_ring(&mut frame, false, false).expect("whole");
        assert_eq!(
            &frame[tagged.start..][..tagged.length as usize],
            b"ddddddssssss\x88\xa8\x20\x64\x08\x00xy"
        );
        assert_eq!(plain.virtio.moved(4), Some(tagged.virtio));
        // A priority alone, without the number of a VLAN.
        let mut frame = written(16, 16, status, b"ddddddssssss\x08\x00xy");
        frame[24..26].copy_from_slice(&0xa000u16.to_ne_bytes());
        frame[26..28].copy_from_slice(&0x8100u16.to_ne_bytes());
        assert_eq!(Arrived::in_ring(&mut frame, false, false), Some(plain));
        let kept = Arrived::in_ring(&mut frame, true, false).expect("whole");
        assert_eq!(frame[kept.start..][12..16], [0x81, 0, 0xa0, 0]);
    }

    #[test]
    fn a_packet_that_is_not_there_whole_is_none() {
        assert_eq!(Arrived::in_ring(&mut written(17, 16, 1, b""), false, false), None);
        assert_eq!(
            Arrived::in_ring(&mut written(2000, 2000, 1, b""), false, false),
            None,
            "longer than its frame"
        );
    }

    #[test]
    fn a_packet_that_fills_its_frame_is_there_with_slack_behind_it_and_room_before_it() {
        let status = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        for length in 2112 - FIRST - SLACK - 2..=2112 - FIRST {
            let packet: Vec<u8> = (0..length).map(|index| (index % 251) as u8).collect();
            for (status, tag) in [(1, 0), (status, TAG)] {
                let mut frame = written(length as u32, length as u32, status, &packet);
                frame[FIRST - VirtioHeader::LEN..FIRST].fill(0);
                let arrived = Arrived::in_ring(&mut frame, false, false).expect("whole");
                assert_eq!(arrived.length as usize, length + tag);
                let end = arrived.start + length + tag;
                assert!(end + SLACK <= 2112 && arrived.start >= HEADROOM + 8, "{length}: {}", arrived.start);
                assert!(frame[arrived.start..][..12] == packet[..12], "{length}");
                assert!(frame[arrived.start + 12 + tag..end] == packet[12..], "{length}");
            }
        }
    }

    #[test]
    fn what_befell_the_interface_is_no_packet() {
        let run = |codes: &[i32]| {
            let mut codes = codes.iter();
            let result = once_more(|| match codes.next() {
                Some(0) | None => Ok(()),
                Some(&code) => Err(io::Error::from_raw_os_error(code)),
            });
            (result.is_ok(), codes.len())
        };
        assert_eq!(run(&[libc::ENETDOWN, libc::ENETDOWN, 0, 0]), (true, 1));
        assert_eq!(run(&[libc::EINVAL, 0]), (false, 1), "a packet that is gone");
        assert_eq!(run(&[libc::EAGAIN, 0]), (false, 1), "there is none");
        assert!(!run(&[libc::ENETDOWN; 100]).0, "it ends");
    }
}
