//! Load for experiments: sends and receives frames as fast as a packet socket can, in the same way for every
//! gateway.

use crate::namespace::Namespace;
use crate::sys;
use packet::checksum::{folded, sum};
use ports::live::sys::{self as live, Outgoing};
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that may wait at a receiving socket.
const BUFFER: usize = 64 << 20;

/// Sends frames by an interface; never receives.
pub struct FrameSender {
    socket: OwnedFd,
}

impl FrameSender {
    /// A sender at an interface of a namespace.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(namespace: &Namespace, interface: &str) -> io::Result<FrameSender> {
        let socket = namespace.inside(|| {
            let socket = live::packet_socket()?;
            live::set_number(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
            live::bind_packet(&socket, live::interface_index(interface)?, 0)?;
            Ok(socket)
        })?;
        Ok(FrameSender { socket })
    }

    /// Hands over the first of some frames, at most 64 of them, and says how many the kernel took.
    ///
    /// # Errors
    /// Not even one.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        live::send_frames(&self.socket, frames.iter().map(|frame| Outgoing { header: &[], frame }))
    }
}

/// Sends UDP packets by an interface as long segments, which the kernel cuts before they leave: twice as many
/// as one by one. For that the interface must not cut them itself, as one does not whose checksums are
/// switched off ([`RigLinks::checksums`](crate::RigLinks::checksums)).
pub struct BurstSender {
    socket: OwnedFd,
    bursts: Vec<(Vec<u8>, usize)>,
}

/// Headers of Ethernet, of IPv4 without options and of UDP, and where in them what differs stands.
const HEADERS: usize = 42;
const TOTAL_LENGTH: usize = 16;
const IP_SUM: usize = 24;
const DATAGRAM_LENGTH: usize = 38;
const UDP_SUM: usize = 40;
/// The longest segment, and how many packets it is at most.
const LONGEST: usize = 65_000;
const MOST: usize = 64;

impl BurstSender {
    /// A sender of bursts of packets as these, one burst for each: frames with UDP packets in IPv4 packets
    /// without options.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(namespace: &Namespace, interface: &str, frames: &[Vec<u8>]) -> io::Result<BurstSender> {
        let socket = namespace.inside(|| {
            let socket = live::packet_socket()?;
            live::set_number(&socket, libc::SOL_PACKET, libc::PACKET_VNET_HDR, 1)?;
            live::bind_packet(&socket, live::interface_index(interface)?, 0)?;
            Ok(socket)
        })?;
        let bursts = frames.iter().filter(|frame| frame.len() > HEADERS).map(|frame| burst(frame)).collect();
        Ok(BurstSender { socket, bursts })
    }

    /// Hands over the next burst in turn, and says how many packets it is.
    ///
    /// # Errors
    /// The kernel does not take it.
    pub fn send(&self, turn: usize) -> io::Result<usize> {
        let (frame, packets) = &self.bursts[turn % self.bursts.len().max(1)];
        live::send_frames(&self.socket, std::iter::once(Outgoing { header: &[], frame }))?;
        Ok(*packets)
    }
}

/// A packet as often as fits into a segment, with the header of virtio (version 1.2, 5.1.6) that says how to
/// cut it; and how often that is.
fn burst(frame: &[u8]) -> (Vec<u8>, usize) {
    let payload = &frame[HEADERS..];
    let packets = (LONGEST / payload.len()).clamp(1, MOST);
    let mut bytes = frame[..HEADERS].to_vec();
    for _ in 0..packets {
        bytes.extend_from_slice(payload);
    }
    let datagram = (bytes.len() - 34) as u16;
    bytes[TOTAL_LENGTH..TOTAL_LENGTH + 2].copy_from_slice(&(datagram + 20).to_be_bytes());
    bytes[DATAGRAM_LENGTH..DATAGRAM_LENGTH + 2].copy_from_slice(&datagram.to_be_bytes());
    bytes[IP_SUM..IP_SUM + 2].fill(0);
    let check = !sum(&bytes[14..34]);
    bytes[IP_SUM..IP_SUM + 2].copy_from_slice(&check.to_be_bytes());
    // What is before the kernel finishes it: the sum of the addresses, the protocol and the length.
    let unfinished = folded(u64::from(sum(&bytes[26..34])) + 17 + u64::from(datagram));
    bytes[UDP_SUM..UDP_SUM + 2].copy_from_slice(&unfinished.to_be_bytes());
    let [size, headers, start] = [payload.len() as u16, HEADERS as u16, 34].map(u16::to_ne_bytes);
    const CHECKSUM: u8 = 1;
    const UDP: u8 = 5;
    let header = [CHECKSUM, UDP, headers[0], headers[1], size[0], size[1], start[0], start[1], 6, 0];
    ([&header[..], &bytes].concat(), packets)
}

/// Receives the frames of an interface with IPv4 packets, with those of IPv6, or with ARP, and the times at
/// which the kernel got them.
pub struct FrameReceiver {
    socket: OwnedFd,
    room: Box<[[u8; sys::CAPTURED]; sys::AT_ONCE]>,
}

impl FrameReceiver {
    /// A receiver at an interface of a namespace, of all frames or of UDP packets for one port.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(namespace: &Namespace, interface: &str, port: Option<u16>) -> io::Result<FrameReceiver> {
        Self::of_type(namespace, interface, port, libc::ETH_P_IP)
    }

    /// The same of frames with IPv6 packets.
    ///
    /// # Errors
    /// As [`FrameReceiver::new`].
    pub fn of_ipv6(namespace: &Namespace, interface: &str) -> io::Result<FrameReceiver> {
        Self::of_type(namespace, interface, None, libc::ETH_P_IPV6)
    }

    /// The same of frames with ARP.
    ///
    /// # Errors
    /// As [`FrameReceiver::new`].
    pub fn of_arp(namespace: &Namespace, interface: &str) -> io::Result<FrameReceiver> {
        Self::of_type(namespace, interface, None, libc::ETH_P_ARP)
    }

    fn of_type(
        namespace: &Namespace,
        interface: &str,
        port: Option<u16>,
        ethertype: i32,
    ) -> io::Result<FrameReceiver> {
        let socket = namespace.inside(|| {
            let socket = live::packet_socket()?;
            live::set_buffer(&socket, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, BUFFER)?;
            live::set_number(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
            sys::ask_for_times(&socket)?;
            port.map_or(Ok(()), |port| sys::only_port(&socket, port))?;
            live::bind_packet(&socket, live::interface_index(interface)?, ethertype)?;
            Ok(socket)
        })?;
        Ok(FrameReceiver { socket, room: Box::new([[0; sys::CAPTURED]; sys::AT_ONCE]) })
    }

    /// Takes what has come, without waiting: the first 128 bytes of each frame and when it came, in
    /// nanoseconds since 1970. Says how many there were.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive(&mut self, each: impl FnMut(u64, &[u8])) -> io::Result<usize> {
        sys::receive_frames(&self.socket, &mut self.room, each)
    }
}

/// Holds this thread on one processor.
///
/// # Errors
/// There is none of this number.
pub fn hold(processor: usize) -> io::Result<()> {
    sys::hold(processor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_as_many_packets_as_fit_and_its_sums_are_right() {
        for (length, packets) in [(60, 64), (508, 64), (1456, 45)] {
            let mut frame = vec![7; length];
            (frame[14], frame[23]) = (0x45, 17);
            let (bytes, count) = burst(&frame);
            assert_eq!(count, packets);
            assert_eq!(bytes.len(), 10 + HEADERS + packets * (length - HEADERS));
            let frame = &bytes[10..];
            assert_eq!(sum(&frame[14..34]), 0xffff);
            let datagram = u16::from_be_bytes([frame[38], frame[39]]);
            assert_eq!(usize::from(datagram), frame.len() - 34);
            // With the sum over the whole datagram in its place, the pseudo-header's is finished, and all of
            // it is right.
            let pseudo = [&frame[26..34], &[0, 17], &frame[38..40]].concat();
            assert_eq!(frame[40..42], sum(&pseudo).to_be_bytes());
        }
    }
}
