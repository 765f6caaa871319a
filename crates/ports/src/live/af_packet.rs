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
use super::{Attached, ReceiveLosses, Receiver, SendLosses, Sender};
use packet::region::SLACK;
use packet::{BATCH, Batch, Offload, PortNumber};
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

/// What to ask of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wishes {
    /// Take packets as hosts on virtual links hand them over: checksums unfinished, long segments whole.
    pub offloads: bool,
}

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// there is none of this name
    #[error("there is no interface {0} here; `ip link` lists those there are")]
    NoInterface(String),
    /// it is switched off
    #[error("interface {0} is switched off; `ip link set {0} up` switches it on")]
    Down(String),
    /// the right is missing
    #[error(
        "no right to take packets off interface {0}: it needs CAP_NET_RAW; run as root, or over a capture with `ravelin run`, which needs no rights"
    )]
    Rights(String),
    /// a call failed
    #[error("interface {interface}: {call}: {source}")]
    System {
        /// The interface's name.
        interface: String,
        /// What was asked of the kernel.
        call: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// The half by which packets come in.
struct Incoming {
    ring: FrameRing,
    socket: Arc<OwnedFd>,
    port: PortNumber,
    losses: ReceiveLosses,
}

/// The half by which they leave.
struct Outlet {
    socket: Arc<OwnedFd>,
    queue: Queue,
    losses: SendLosses,
}

/// Takes over the packets of an interface; they carry `port`.
///
/// # Errors
/// The interface is missing or off, or the kernel refuses; then nothing has changed.
pub fn attach(name: &str, port: PortNumber, wishes: Wishes) -> Result<Attached, AttachError> {
    let failed =
        |call| move |source: io::Error| AttachError::System { interface: name.to_owned(), call, source };
    let socket = sys::packet_socket().map_err(|source| match source.kind() {
        io::ErrorKind::PermissionDenied => AttachError::Rights(name.to_owned()),
        _ => failed("opening a packet socket")(source),
    })?;
    let index = sys::interface_index(name).map_err(|_| AttachError::NoInterface(name.to_owned()))?;
    if !sys::interface_is_up(&socket, name).map_err(failed("asking whether it is on"))? {
        return Err(AttachError::Down(name.to_owned()));
    }
    let mtu = sys::interface_mtu(&socket, name).map_err(failed("asking for its MTU"))? as usize;
    let longest = if wishes.offloads { LONGEST.max(mtu) } else { mtu };
    let geometry = Geometry::of(FIRST + ETHERNET + TAG + longest + SLACK);
    let option = |option, value: i32, call| {
        sys::set_option(&socket, libc::SOL_PACKET, option, value).map_err(failed(call))
    };
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
    sys::set_option(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, 8 << 20)
        .map_err(failed("asking for a send buffer"))?;
    let request = libc::tpacket_req {
        tp_block_size: BLOCK as u32,
        tp_block_nr: geometry.blocks as u32,
        tp_frame_size: geometry.frame as u32,
        tp_frame_nr: geometry.frames() as u32,
    };
    sys::set_option(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, request)
        .map_err(failed("asking for a ring"))?;
    let ring = FrameRing::map(&socket, geometry).map_err(failed("mapping the ring"))?;
    sys::bind_packet(&socket, index).map_err(failed("binding to it"))?;
    let offloads =
        if wishes.offloads { "whole segments and unfinished checksums taken" } else { "offloads not used" };
    let mode = format!("af_packet, ring of {} frames of {} bytes, {offloads}", geometry.frames(), geometry.frame);
    let socket = Arc::new(socket);
    let outlet = Outlet { socket: socket.clone(), queue: Queue::default(), losses: SendLosses::default() };
    let incoming = Incoming { ring, socket, port, losses: ReceiveLosses::default() };
    Ok(Attached { name: name.to_owned(), mode, receive: Box::new(incoming), send: Box::new(outlet) })
}

impl Receiver for Incoming {
    fn receive<'a>(&'a mut self, batch: &mut Batch, now: u64) -> &'a mut [u8] {
        batch.clear();
        let (memory, frames) = self.ring.take(BATCH);
        for frame in frames {
            match Received::read(&mut memory[frame.clone()]) {
                Some(received) => {
                    let packet = (frame.start + received.start) as u64;
                    batch.push(packet, received.length, received.length, self.port, now);
                    batch.leave_unfinished(received.offload);
                }
                None => self.losses.too_long += 1,
            }
        }
        batch.headroom = HEADROOM as u32;
        memory
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

/// What the header of a full frame says.
struct Received {
    start: usize,
    length: u32,
    offload: Offload,
}

impl Received {
    /// Reads the header, and puts a tag that the kernel took out of the packet back into it. `None` if the packet is not there whole.
    fn read(frame: &mut [u8]) -> Option<Received> {
        let word = |at: usize| u32::from_ne_bytes([frame[at], frame[at + 1], frame[at + 2], frame[at + 3]]);
        let pair = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
        let (status, length, captured) = (word(0), word(4), word(8));
        let mut start = usize::from(pair(12));
        let (tag, kind) = (pair(24), pair(26));
        if captured < length || start < FIRST || start + captured as usize + SLACK > frame.len() {
            return None;
        }
        let header = frame[start - Offload::LEN..start].first_chunk().copied()?;
        let mut offload = Offload::read(&header);
        offload.complete(&mut frame[start..start + captured as usize]);
        offload = offload.without_checksum();
        let mut length = length;
        if status & libc::TP_STATUS_VLAN_VALID != 0 && length >= 12 {
            let kind = if status & libc::TP_STATUS_VLAN_TPID_VALID != 0 { kind } else { 0x8100 };
            frame.copy_within(start..start + 12, start - 4);
            start -= 4;
            frame[start + 12..start + 14].copy_from_slice(&kind.to_be_bytes());
            frame[start + 14..start + 16].copy_from_slice(&tag.to_be_bytes());
            length += 4;
            offload = offload.moved(4).unwrap_or(Offload::NONE);
        }
        Some(Received { start, length, offload })
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
        let plain = Received::read(&mut frame).expect("whole");
        assert_eq!((plain.start, plain.length), (FIRST, 16));
        let status = libc::TP_STATUS_USER | libc::TP_STATUS_VLAN_VALID | libc::TP_STATUS_VLAN_TPID_VALID;
        let mut frame = written(16, 16, status, b"ddddddssssss\x08\x00xy");
        let tagged = Received::read(&mut frame).expect("whole");
        assert_eq!(
            &frame[tagged.start..][..tagged.length as usize],
            b"ddddddssssss\x88\xa8\x20\x64\x08\x00xy"
        );
        assert_eq!(plain.offload.moved(4), Some(tagged.offload));
    }

    #[test]
    fn a_packet_that_is_not_there_whole_is_none() {
        assert!(Received::read(&mut written(17, 16, 1, b"")).is_none());
        assert!(Received::read(&mut written(1800, 1800, 1, b"")).is_none(), "no slack behind it");
    }
}
