//! A network interface through an AF_PACKET socket: frames come in by a ring shared with the kernel and leave many at a call.
//!
//! ```text
//! frame: word status | lengths, offsets, time, tag | … room to grow … | virtio-net header | the packet … | slack
//!        0           4                                                  FIRST - 10          FIRST (a multiple of 64)
//! ```
//!
//! The ring is of version 2 (Linux, Documentation/networking/packet_mmap.rst): its frames are handed over one by one the moment they are written.
//! Version 3 hands over whole blocks, the last of them by a timer of at least a millisecond, which every lonely packet would wait for.

use super::frame_ring::{BLOCK, FrameRing, Geometry};
use super::sys::{self, Outgoing};
use super::{AttachError, Attached, Lane, ReceiveLosses, Receiver, SendLosses, Sender, Wanted};
use packet::region::{FRAME_ALIGNMENT, SLACK};
use packet::{BATCH, Batch, Offload, PortNumber, Region};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Where the packet begins in a frame of the ring.
const FIRST: usize = 256;
/// What the kernel puts before a packet besides its own room: the header of the ring and the address of the sender, as it rounds them.
const KERNEL: usize = 80 - ETHERNET;
const ETHERNET: usize = 14;
const TAG: usize = 4;
/// Room for a packet to grow to the front, beside the virtio-net header.
const HEADROOM: usize = packet::region::HEADROOM;
/// The longest packet that hosts hand over uncut, with its headers.
const LONGEST: usize = (64 << 10) + 64;
/// Bytes for one such packet, with room to grow and slack.
const SLOT: usize = (HEADROOM + TAG + LONGEST + SLACK).next_multiple_of(FRAME_ALIGNMENT);
/// So many of them are a batch at most.
const LONG_AT_ONCE: usize = 32;
/// Bytes of such packets that may wait at the socket.
const LONG_BUFFER: i32 = 64 << 20;
/// Bytes of packets that may be on their way out.
const SEND_BUFFER: i32 = 8 << 20;

/// The half by which packets come in.
struct Incoming {
    ring: FrameRing,
    socket: Arc<OwnedFd>,
    port: PortNumber,
    losses: ReceiveLosses,
    /// Where long packets are received into.
    long: Region,
}

/// The half by which they leave.
struct Outlet {
    socket: Arc<OwnedFd>,
    queue: Queue,
    losses: SendLosses,
}

/// Takes over the packets of an interface; they carry `port`.
pub(crate) fn attach(wanted: &Wanted, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let interface = Interface::find(&wanted.interface)?;
    let sockets: Vec<_> = (0..lanes).map(|_| interface.open(wanted)).collect::<Result<_, _>>()?;
    if let [first, others @ ..] = &sockets[..]
        && !others.is_empty()
    {
        let group = sys::make_fanout(&first.0).map_err(interface.failed("sharing its packets out"))?;
        for (socket, _) in others {
            sys::join_fanout(socket, group).map_err(interface.failed("sharing its packets out"))?;
        }
    }
    for (socket, _) in &sockets {
        sys::begin(socket).map_err(interface.failed("letting packets in"))?;
    }
    let geometry = interface.geometry;
    let offloads =
        if wanted.offloads { "whole segments and unfinished checksums taken" } else { "offloads not used" };
    let mut mode =
        format!("af_packet, ring of {} frames of {} bytes, {offloads}", geometry.frames(), geometry.frame);
    if lanes > 1 {
        mode = format!("{mode}, flows shared out among {lanes} sockets");
    }
    let lanes = sockets.into_iter().map(|(socket, ring)| {
        let socket = Arc::new(socket);
        let outlet =
            Outlet { socket: socket.clone(), queue: Queue::default(), losses: SendLosses::default() };
        let long = Region::zeroed(if wanted.offloads { LONG_AT_ONCE * SLOT } else { 0 });
        let incoming = Incoming { ring, socket, port, losses: ReceiveLosses::default(), long };
        Lane { receive: Box::new(incoming), send: Box::new(outlet) }
    });
    Ok(Attached { name: wanted.interface.clone(), mode, lanes: lanes.collect() })
}

/// An interface that is there and switched on.
struct Interface<'a> {
    name: &'a str,
    index: u32,
    geometry: Geometry,
}

impl<'a> Interface<'a> {
    fn find(name: &'a str) -> Result<Interface<'a>, AttachError> {
        let failed = |call| system(name, call);
        let socket = socket(name)?;
        let index = sys::interface_index(name).map_err(|_| AttachError::NoInterface(name.to_owned()))?;
        if !sys::interface_is_up(&socket, name).map_err(failed("asking whether it is on"))? {
            return Err(AttachError::Down(name.to_owned()));
        }
        let mtu = sys::interface_mtu(&socket, name).map_err(failed("asking for its MTU"))? as usize;
        Ok(Interface { name, index, geometry: Geometry::of(FIRST + ETHERNET + TAG + mtu + SLACK) })
    }

    fn failed(&self, call: &'static str) -> impl FnOnce(io::Error) -> AttachError + use<> {
        system(self.name, call)
    }

    /// A socket bound to it, which gets nothing before [`sys::begin`], and its ring.
    fn open(&self, wanted: &Wanted) -> Result<(OwnedFd, FrameRing), AttachError> {
        let socket = socket(self.name)?;
        let option = |option, value: i32, call| {
            sys::set_option(&socket, libc::SOL_PACKET, option, value).map_err(self.failed(call))
        };
        sys::hold(&socket).map_err(self.failed("keeping packets out to begin with"))?;
        option(
            libc::PACKET_VERSION,
            libc::tpacket_versions::TPACKET_V2 as i32,
            "asking for a ring of version 2",
        )?;
        option(libc::PACKET_IGNORE_OUTGOING, 1, "asking not to see what leaves")?;
        option(libc::PACKET_VNET_HDR, 1, "asking for virtio-net headers")?;
        option(
            libc::PACKET_RESERVE,
            (FIRST - KERNEL - Offload::LEN) as i32,
            "asking for room before packets",
        )?;
        option(libc::PACKET_QDISC_BYPASS, 1, "asking to send past the queueing discipline")?;
        if wanted.offloads {
            option(libc::PACKET_COPY_THRESH, 1, "asking for packets that are longer than a frame")?;
            sys::set_buffer(&socket, (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), LONG_BUFFER)
                .map_err(self.failed("asking for a receive buffer"))?;
        }
        sys::set_buffer(&socket, (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF), SEND_BUFFER)
            .map_err(self.failed("asking for a send buffer"))?;
        let geometry = self.geometry;
        let request = libc::tpacket_req {
            tp_block_size: BLOCK as u32,
            tp_block_nr: geometry.blocks as u32,
            tp_frame_size: geometry.frame as u32,
            tp_frame_nr: geometry.frames() as u32,
        };
        sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
            .map_err(self.failed("asking for a ring"))?;
        let ring = FrameRing::map(&socket, geometry).map_err(self.failed("mapping the ring"))?;
        sys::bind_packet(&socket, self.index).map_err(self.failed("binding to it"))?;
        Ok((socket, ring))
    }
}

fn socket(name: &str) -> Result<OwnedFd, AttachError> {
    sys::packet_socket().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => AttachError::Rights(name.to_owned()),
        _ => system(name, "opening a packet socket")(source),
    })
}

fn system(name: &str, call: &'static str) -> impl FnOnce(io::Error) -> AttachError + use<> {
    let interface = name.to_owned();
    move |source| AttachError::System { interface, call, source }
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: u64) -> &'a mut [u8] {
        batch.clear();
        batch.headroom = HEADROOM as u32;
        let (memory, frames) = self.ring.take(BATCH, libc::TP_STATUS_COPY, LONG_AT_ONCE);
        let queued = frames
            .clone()
            .next()
            .is_some_and(|first| word(&memory[first], STATUS) & libc::TP_STATUS_COPY != 0);
        let mut take = |offset: usize, arrived: Option<Arrived>| match arrived {
            Some(Arrived { start, length, offload }) => {
                batch.push((offset + start) as u64, length, length, self.port, now);
                batch.leave_unfinished(offload);
            }
            None => self.losses.too_long += 1,
        };
        if !queued {
            frames.for_each(|place| take(place.start, Arrived::in_ring(&mut memory[place])));
            return memory;
        }
        let long = self.long.bytes_mut();
        for (number, (slot, place)) in long.chunks_exact_mut(SLOT).zip(frames).enumerate() {
            take(number * SLOT, Arrived::queued(&self.socket, Tag::of(&memory[place]), slot));
        }
        long
    }

    fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn losses(&mut self) -> ReceiveLosses {
        if let Ok((_, dropped)) = sys::packet_statistics(&self.socket) {
            self.losses.ring_full += u64::from(dropped);
        }
        self.losses
    }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], offload: Offload) {
        if frame.len() > Queue::SHORT {
            self.flush();
            let header = offload.write();
            let sent = sys::send_frames(&self.socket, std::iter::once(Outgoing { header: &header, frame }));
            if let Err(error) = sent {
                lose(&mut self.losses, &error);
            }
            return;
        }
        if self.queue.push(frame, offload) {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let mut first = 0;
        while first < self.queue.frames.len() {
            match sys::send_frames(&self.socket, self.queue.outgoing(first)) {
                Ok(sent) => first += sent.max(1),
                Err(error) => {
                    lose(&mut self.losses, &error);
                    first += 1;
                }
            }
        }
        self.queue.clear();
    }

    fn losses(&self) -> SendLosses {
        self.losses
    }
}

/// Counts a frame that did not leave.
fn lose(losses: &mut SendLosses, error: &io::Error) {
    match error.raw_os_error() {
        Some(libc::ENOBUFS | libc::EAGAIN) => losses.busy += 1,
        _ => losses.refused += 1,
    }
}

/// Offsets of the fields of a frame's header (struct tpacket2_hdr).
const STATUS: usize = 0;
const LENGTH: usize = 4;
const CAPTURED: usize = 8;
const START: usize = 12;
const TAG_CONTROL: usize = 24;
const TAG_PROTOCOL: usize = 26;

fn word(frame: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]])
}

fn pair(frame: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([frame[at], frame[at + 1]])
}

/// A VLAN tag that the kernel took out of a packet: its type and its control word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag(u16, u16);

impl Tag {
    /// The tag that the header of a frame tells of.
    fn of(frame: &[u8]) -> Option<Tag> {
        let status = word(frame, STATUS);
        let protocol =
            if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { pair(frame, TAG_PROTOCOL) } else { 0x8100 };
        (status & libc::TP_STATUS_VLAN_VALID != 0).then(|| Tag(protocol, pair(frame, TAG_CONTROL)))
    }
}

/// A packet that is ready for the program: where in its frame it lies, and what is left to do with it on the way out.
#[derive(Debug, PartialEq, Eq)]
struct Arrived {
    start: usize,
    length: u32,
    offload: Offload,
}

impl Arrived {
    /// The packet of a full frame of the ring; `None` if it is not there whole.
    fn in_ring(frame: &mut [u8]) -> Option<Arrived> {
        let (length, captured) = (word(frame, LENGTH), word(frame, CAPTURED));
        let start = usize::from(pair(frame, START));
        if captured < length || start < FIRST || start + captured as usize + SLACK > frame.len() {
            return None;
        }
        let header = frame[start - Offload::LEN..start].first_chunk().copied()?;
        Some(Arrived::finish(frame, start, length as usize, &header, Tag::of(frame)))
    }

    /// The next packet that was too long for a frame of the ring and waits at the socket, received into a slot; `None` if it does not fit there either.
    fn queued(socket: &OwnedFd, tag: Option<Tag>, slot: &mut [u8]) -> Option<Arrived> {
        let mut header = [0; Offload::LEN];
        let room = HEADROOM..slot.len() - SLACK;
        let length = sys::receive_frame(socket, &mut header, &mut slot[room.clone()]).ok()?;
        (length <= room.len()).then(|| Arrived::finish(slot, HEADROOM, length, &header, tag))
    }

    /// Finishes the checksum and puts the tag back.
    fn finish(
        frame: &mut [u8],
        mut start: usize,
        mut length: usize,
        header: &[u8; Offload::LEN],
        tag: Option<Tag>,
    ) -> Arrived {
        let mut offload = Offload::read(header);
        offload.complete(&mut frame[start..start + length]);
        offload = offload.without_checksum();
        if let Some(Tag(protocol, control)) = tag.filter(|_| length >= 12) {
            frame.copy_within(start..start + 12, start - TAG);
            start -= TAG;
            length += TAG;
            frame[start + 12..start + 14].copy_from_slice(&protocol.to_be_bytes());
            frame[start + 14..start + 16].copy_from_slice(&control.to_be_bytes());
            offload = offload.moved(TAG as i32).unwrap_or(Offload::NONE);
        }
        Arrived { start, length: length as u32, offload }
    }
}

/// Short frames on their way out, copied so that many can leave at a call; a long one is worth a call of its own.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    frames: Vec<Queued>,
}

/// A frame in the queue: `bytes` up to `end`, from where the one before it ends.
struct Queued {
    header: [u8; Offload::LEN],
    end: usize,
}

impl Queue {
    /// The longest frame that is copied, in bytes.
    const SHORT: usize = 2048;

    /// Appends a frame; says whether it is full now.
    fn push(&mut self, frame: &[u8], offload: Offload) -> bool {
        self.bytes.extend_from_slice(frame);
        self.frames.push(Queued { header: offload.write(), end: self.bytes.len() });
        self.frames.len() >= BATCH
    }

    fn outgoing(&self, first: usize) -> impl Iterator<Item = Outgoing<'_>> {
        (first..self.frames.len()).map(|index| {
            let start = index.checked_sub(1).map_or(0, |before| self.frames[before].end);
            let Queued { header, end } = &self.frames[index];
            Outgoing { header, frame: &self.bytes[start..*end] }
        })
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
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
        frame[FIRST - Offload::LEN..FIRST].copy_from_slice(&[1, 1, 66, 0, 0, 5, 34, 0, 16, 0]);
        frame[FIRST..FIRST + packet.len()].copy_from_slice(packet);
        frame
    }

    #[test]
    fn a_tag_that_the_kernel_took_out_is_put_back() {
        let mut frame = written(16, 16, libc::TP_STATUS_USER, b"ddddddssssss\x08\x00xy");
        let plain = Arrived::in_ring(&mut frame).expect("whole");
        assert_eq!((plain.start, plain.length), (FIRST, 16));
        let status = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let mut frame = written(16, 16, status, b"ddddddssssss\x08\x00xy");
        let tagged = Arrived::in_ring(&mut frame).expect("whole");
        assert_eq!(
            &frame[tagged.start..][..tagged.length as usize],
            b"ddddddssssss\x88\xa8\x20\x64\x08\x00xy"
        );
        assert_eq!(plain.offload.moved(4), Some(tagged.offload));
    }

    #[test]
    fn a_packet_that_is_not_there_whole_is_none() {
        assert_eq!(Arrived::in_ring(&mut written(17, 16, 1, b"")), None);
        assert_eq!(Arrived::in_ring(&mut written(1800, 1800, 1, b"")), None, "no slack behind it");
    }
}
