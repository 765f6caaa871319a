//! The sending half of a tunnel: collects the packets of a batch, seals them for the peers that their
//! destinations name, and sends several to one peer in one message.
//!
//! ```text
//! memory of a batch:  header 16 | packet | tag 16 | header 16 | packet | tag 16 | …
//! one message:       └─────────── datagrams of equal length, the last may be shorter ───────────┘
//! ```

use super::calls::{self, AT_ONCE, Leaving};
use super::incoming::ETHERNET;
use super::own_end::{OwnEnd, Port, TunnelRefusal};
use crate::live::clock::{Clock, MachineClock};
use crate::live::{SendLosses, Sender};
use packet::segment::Segments;
use packet::{BATCH, VirtioHeader};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;
use tunnel::{DATA_HEADER, DATA_TAG, PeerId, SendOutcome, mac_peer};

/// Bytes of a batch; a longer one is sent in parts.
const MEMORY: usize = 512 << 10;
/// The most datagrams of one message (UDP_MAX_SEGMENTS of older kernels), and its most bytes.
const MOST_TOGETHER: usize = 64;
const LONGEST_TOGETHER: usize = 65_000;
/// Bytes of the headers of IPv4 and IPv6.
const HEADERS: [usize; 2] = [20, 40];

/// A packet that waits to be sealed, with room for header and tag.
struct Packet {
    peer: u32,
    place: Range<usize>,
}

/// Datagrams that leave in one message.
struct Together {
    place: Range<usize>,
    each: usize,
    to: SocketAddr,
}

/// What leaves.
pub(super) struct Outlet {
    port: Arc<Port>,
    mtu: usize,
    memory: Vec<u8>,
    packets: Vec<Packet>,
    together: Vec<Together>,
    /// Room for a packet that a segment stands for.
    piece: Vec<u8>,
    /// Frames that were refused since the last batch, by reason.
    refusals: [u64; TunnelRefusal::ALL.len()],
    /// Whether this half tells what was lost: one for all lanes.
    tells: bool,
}

impl Outlet {
    pub(super) fn new(port: Arc<Port>, mtu: u16, tells: bool) -> Outlet {
        Outlet {
            port,
            mtu: usize::from(mtu),
            memory: Vec::with_capacity(MEMORY),
            packets: Vec::with_capacity(BATCH),
            together: Vec::with_capacity(BATCH),
            piece: Vec::new(),
            refusals: [0; TunnelRefusal::ALL.len()],
            tells,
        }
    }

    /// Takes a frame into the batch, if it can go to a peer.
    fn take(&mut self, frame: &[u8]) {
        match packet_of(frame, self.mtu) {
            Ok((peer, packet)) => {
                let needed = DATA_HEADER + packet.len() + DATA_TAG;
                if self.packets.len() == BATCH || self.memory.len() + needed > MEMORY {
                    self.hand_over();
                }
                let start = self.memory.len();
                self.memory.extend_from_slice(&[0; DATA_HEADER]);
                self.memory.extend_from_slice(packet);
                self.memory.extend_from_slice(&[0; DATA_TAG]);
                self.packets.push(Packet { peer, place: start..start + needed });
            }
            Err(reason) => self.refusals[reason as usize] += 1,
        }
    }

    /// Seals what was collected, and sends it.
    fn hand_over(&mut self) {
        let Outlet { port, memory, packets, together, refusals, .. } = self;
        let now = MachineClock.program();
        let mut end = port.end();
        for (all, own) in end.refusals.iter_mut().zip(refusals) {
            *all += std::mem::take(own);
        }
        let segments = end.segments;
        for Packet { peer, place } in packets.drain(..) {
            match end.tunnel.seal_in_place(now, PeerId(peer), &mut memory[place.clone()]) {
                Ok(SendOutcome::Sealed(transmit)) => match together.last_mut() {
                    Some(last) if segments && last.takes(&place, transmit.to) => last.place.end = place.end,
                    _ => together.push(Together { each: place.len(), place, to: transmit.to }),
                },
                Ok(SendOutcome::Queued) => {}
                Err(error) => end.refusals[TunnelRefusal::of(error) as usize] += 1,
            }
        }
        end.turn(&port.socket, now);
        send(port, &mut end, memory, together);
        drop(end);
        together.clear();
        memory.clear();
    }
}

impl Together {
    /// Whether a datagram behind the last one can leave with them.
    fn takes(&self, place: &Range<usize>, to: SocketAddr) -> bool {
        let is_whole = self.place.len().is_multiple_of(self.each);
        self.place.end == place.start
            && self.to == to
            && is_whole
            && place.len() <= self.each
            && self.place.len() / self.each < MOST_TOGETHER
            && place.end - self.place.start <= LONGEST_TOGETHER
    }

    fn datagrams(&self) -> u64 {
        self.place.len().div_ceil(self.each) as u64
    }
}

/// Sends messages. What the kernel does not take as several datagrams in one goes one by one.
fn send(port: &Port, end: &mut OwnEnd, memory: &[u8], mut left: &[Together]) {
    let leaving = |one: &Together| Leaving { bytes: &memory[one.place.clone()], each: one.each, to: one.to };
    while let Some(first) = left.first() {
        let error = match calls::send(&port.socket, left.iter().take(AT_ONCE).map(leaving)) {
            Ok(sent) => {
                left = &left[sent.max(1).min(left.len())..];
                continue;
            }
            Err(error) => error,
        };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS) => {
                // There is room for none that follows.
                let datagrams = left.iter().map(Together::datagrams).sum();
                return end.unsent(&error, datagrams);
            }
            Some(libc::EIO | libc::EINVAL | libc::EMSGSIZE) if first.datagrams() > 1 => {
                // The way there leads by a card that does not finish checksums, or is too narrow.
                end.segments &= error.raw_os_error() != Some(libc::EIO);
                for bytes in memory[first.place.clone()].chunks(first.each) {
                    let one = Leaving { bytes, each: bytes.len(), to: first.to };
                    if let Err(error) = calls::send(&port.socket, std::iter::once(one)) {
                        end.unsent(&error, 1);
                    }
                }
            }
            _ => end.unsent(&error, first.datagrams()),
        }
        left = &left[1..];
    }
}

/// The packet in a frame, without what is behind its end, and the peer that it goes to.
fn packet_of(frame: &[u8], mtu: usize) -> Result<(u32, &[u8]), TunnelRefusal> {
    let (header, packet) = frame.split_at_checked(ETHERNET).ok_or(TunnelRefusal::Short)?;
    let destination = std::array::from_fn(|at| header[at]);
    if header[0] & 1 != 0 {
        return Err(TunnelRefusal::Group);
    }
    let peer = mac_peer(destination).ok_or(TunnelRefusal::NoPeer)?;
    let kind = u16::from_be_bytes([header[12], header[13]]);
    if !matches!(kind, 0x0800 | 0x86dd) {
        return Err(TunnelRefusal::NotIp);
    }
    let is_six = kind == 0x86dd;
    let least = HEADERS[usize::from(is_six)];
    if packet.len() < least {
        return Err(TunnelRefusal::Short);
    }
    if packet[0] >> 4 != (if is_six { 6 } else { 4 }) {
        return Err(TunnelRefusal::NotIp);
    }
    let length = match is_six {
        true => least + usize::from(u16::from_be_bytes([packet[4], packet[5]])),
        false => usize::from(u16::from_be_bytes([packet[2], packet[3]])),
    };
    let packet = packet.get(..length).filter(|_| length >= least).ok_or(TunnelRefusal::Short)?;
    if packet.len() > mtu { Err(TunnelRefusal::TooLong) } else { Ok((peer, packet)) }
}

impl Sender for Outlet {
    fn send(&mut self, frame: &[u8], virtio: VirtioHeader) {
        if !virtio.segments() {
            return self.take(frame);
        }
        let Some(segments) = Segments::of(frame, &virtio) else {
            self.refusals[TunnelRefusal::Short as usize] += 1;
            return;
        };
        let mut piece = std::mem::take(&mut self.piece);
        for index in 0..segments.count() {
            piece.resize(segments.length(index), 0);
            segments.write_open(frame, index, &mut piece).complete(&mut piece);
            self.take(&piece);
        }
        self.piece = piece;
    }

    fn flush(&mut self) {
        if !self.packets.is_empty() || self.refusals.iter().any(|count| *count > 0) {
            self.hand_over();
        }
    }

    fn losses(&self) -> SendLosses {
        if self.tells { self.port.end().send_losses() } else { SendLosses::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tunnel::peer_mac;

    fn frame(to: [u8; 6], kind: u16, packet: &[u8]) -> Vec<u8> {
        [&to[..], &peer_mac(0), &kind.to_be_bytes(), packet].concat()
    }

    fn four(length: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(length)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet
    }

    #[test]
    fn a_frame_leads_to_the_peer_of_its_destination_or_nowhere() {
        let (to, packet) = (peer_mac(7), four(40));
        assert_eq!(packet_of(&frame(to, 0x0800, &packet), 40), Ok((7, &packet[..])));
        // Cards fill short frames up; that is no part of the packet.
        let filled = [frame(to, 0x0800, &packet), vec![0; 6]].concat();
        assert_eq!(packet_of(&filled, 40), Ok((7, &packet[..])));
        let mut six = vec![0x60; 48];
        six[4..6].copy_from_slice(&[0, 8]);
        assert_eq!(packet_of(&frame(to, 0x86dd, &six), 1_000), Ok((7, &six[..])));
        let refused = [
            (frame(peer_mac(0), 0x0800, &packet), TunnelRefusal::NoPeer),
            (frame([2, 0, 0, 0, 0, 7], 0x0800, &packet), TunnelRefusal::NoPeer),
            (frame([0xff; 6], 0x0800, &packet), TunnelRefusal::Group),
            (frame([1, 0, 0x5e, 0, 0, 1], 0x0800, &packet), TunnelRefusal::Group),
            (frame(to, 0x0806, &packet), TunnelRefusal::NotIp),
            (frame(to, 0x86dd, &packet), TunnelRefusal::NotIp),
            (frame(to, 0x0800, &six), TunnelRefusal::NotIp),
            (frame(to, 0x0800, &packet[..30]), TunnelRefusal::Short),
            (frame(to, 0x0800, &packet[..10]), TunnelRefusal::Short),
            (
                frame(to, 0x0800, &four(20)[..20].iter().map(|byte| byte & 0xf0 | 5).collect::<Vec<_>>()),
                TunnelRefusal::Short,
            ),
            (to.to_vec(), TunnelRefusal::Short),
            (frame(to, 0x0800, &four(41)), TunnelRefusal::TooLong),
        ];
        for (frame, reason) in refused {
            assert_eq!(packet_of(&frame, 40), Err(reason), "{frame:02x?}");
        }
    }
}
