//! Builds frames with right lengths and checksums: Ethernet, 802.1Q, ARP, IPv4, IPv6, TCP, UDP, ICMP.
//!
//! The Internet checksum is the complement of the ones' complement sum of 16-bit words (RFC 1071); TCP, UDP
//! and ICMPv6 sum a pseudo-header of the addresses, the length and the protocol too (RFC 9293, RFC 768, RFC
//! 8200).

use packet::checksum::{folded, sum};

/// The least length of a frame without its check sequence (IEEE 802.3); shorter ones are padded.
pub(super) const SHORTEST: usize = 60;

/// The most a standard frame has, without its check sequence.
pub(super) const LONGEST: usize = 1_514;

pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// An end of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Host {
    /// The number of the host; addresses follow from it.
    pub(super) number: u32,
    /// Whether it is a server, which live in another network.
    pub(super) server: bool,
}

impl Host {
    pub(super) fn mac(self) -> [u8; 6] {
        let [_, a, b, c] = (self.number + 1).to_be_bytes();
        [0x02, 0, u8::from(self.server), a, b, c]
    }

    /// An address of a private network (RFC 1918), or for servers of the one for benchmarks (RFC 2544).
    pub(super) fn ipv4(self) -> [u8; 4] {
        let network = if self.server { 0xc612_0000 } else { 0x0a00_0000 };
        (network + self.number + 1).to_be_bytes()
    }

    /// An address of the network for documentation (RFC 3849).
    pub(super) fn ipv6(self) -> [u8; 16] {
        let mut address = [0; 16];
        address[..4].copy_from_slice(&[0x20, 0x01, 0x0d, 0xb8]);
        address[7] = u8::from(self.server);
        address[12..].copy_from_slice(&(self.number + 1).to_be_bytes());
        address
    }
}

/// What lies under the transport header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lower {
    pub(super) source: Host,
    pub(super) destination: Host,
    pub(super) vlan: Option<u16>,
    pub(super) ipv6: bool,
    /// The identification of an IPv4 packet.
    pub(super) identification: u16,
}

/// The fields of a TCP header that differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tcp {
    pub(super) source: u16,
    pub(super) destination: u16,
    pub(super) sequence: u32,
    pub(super) acknowledgement: u32,
    pub(super) flags: u8,
}

impl Lower {
    /// How many bytes come before the transport header.
    pub(super) fn header(&self) -> usize {
        self.link_header() + if self.ipv6 { 40 } else { 20 }
    }

    fn link_header(&self) -> usize {
        if self.vlan.is_some() { 18 } else { 14 }
    }

    /// Starts a frame with its Ethernet header.
    fn ethernet(&self, out: &mut Vec<u8>, destination: [u8; 6], ether_type: u16) {
        out.clear();
        out.extend(destination);
        out.extend(self.source.mac());
        if let Some(vlan) = self.vlan {
            out.extend([0x81, 0x00]);
            out.extend(vlan.to_be_bytes());
        }
        out.extend(ether_type.to_be_bytes());
    }

    /// Starts a frame with its IP header. `fragment` is the flags and the offset of IPv4.
    fn ip(&self, out: &mut Vec<u8>, protocol: u8, payload: usize, fragment: u16) {
        let protocol = if self.ipv6 && protocol == ICMP { ICMPV6 } else { protocol };
        if self.ipv6 {
            self.ethernet(out, self.destination.mac(), 0x86dd);
            out.extend([0x60, 0, 0, 0]);
            out.extend((payload as u16).to_be_bytes());
            out.extend([protocol, 64]);
            out.extend(self.source.ipv6());
            out.extend(self.destination.ipv6());
        } else {
            self.ethernet(out, self.destination.mac(), 0x0800);
            let start = out.len();
            out.extend([0x45, 0]);
            out.extend((payload as u16 + 20).to_be_bytes());
            out.extend(self.identification.to_be_bytes());
            out.extend(fragment.to_be_bytes());
            out.extend([64, protocol, 0, 0]);
            out.extend(self.source.ipv4());
            out.extend(self.destination.ipv4());
            let sum = checksum(0, &out[start..]);
            out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
        }
    }

    /// The sum of the pseudo-header.
    fn pseudo(&self, protocol: u8, length: usize) -> u64 {
        let sum = if self.ipv6 {
            u64::from(sum(&self.source.ipv6())) + u64::from(sum(&self.destination.ipv6()))
        } else {
            u64::from(sum(&self.source.ipv4())) + u64::from(sum(&self.destination.ipv4()))
        };
        sum + u64::from(protocol) + length as u64
    }

    /// A TCP packet.
    pub(super) fn tcp(&self, out: &mut Vec<u8>, tcp: Tcp, payload: &[u8]) {
        self.ip(out, TCP, 20 + payload.len(), 0x4000);
        let start = out.len();
        out.extend(tcp.source.to_be_bytes());
        out.extend(tcp.destination.to_be_bytes());
        out.extend(tcp.sequence.to_be_bytes());
        out.extend(tcp.acknowledgement.to_be_bytes());
        out.extend([0x50, tcp.flags, 0xff, 0xff, 0, 0, 0, 0]);
        out.extend(payload);
        let sum = checksum(self.pseudo(TCP, out.len() - start), &out[start..]);
        out[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        pad(out);
    }

    /// A UDP packet.
    pub(super) fn udp(&self, out: &mut Vec<u8>, ports: [u16; 2], payload: &[u8]) {
        self.ip(out, UDP, 8 + payload.len(), 0);
        let start = out.len();
        self.udp_datagram(out, ports, payload);
        debug_assert_eq!(out.len() - start, 8 + payload.len());
        pad(out);
    }

    /// The first fragment of a UDP packet, which carries the first `first` bytes (a multiple of 8, the header
    /// among them).
    pub(super) fn first_fragment(&self, out: &mut Vec<u8>, ports: [u16; 2], payload: &[u8], first: usize) {
        self.ip(out, UDP, first, 0x2000);
        let start = out.len();
        self.udp_datagram(out, ports, payload);
        out.truncate(start + first);
        pad(out);
    }

    /// The last fragment of a UDP packet, which carries what comes after the first `first` bytes.
    pub(super) fn last_fragment(&self, out: &mut Vec<u8>, payload: &[u8], first: usize) {
        let rest = &payload[first - 8..];
        self.ip(out, UDP, rest.len(), (first / 8) as u16);
        out.extend(rest);
        pad(out);
    }

    fn udp_datagram(&self, out: &mut Vec<u8>, ports: [u16; 2], payload: &[u8]) {
        let start = out.len();
        out.extend(ports[0].to_be_bytes());
        out.extend(ports[1].to_be_bytes());
        out.extend((8 + payload.len() as u16).to_be_bytes());
        out.extend([0, 0]);
        out.extend(payload);
        let sum = match checksum(self.pseudo(UDP, out.len() - start), &out[start..]) {
            // Zero would say that there is no checksum.
            0 => 0xffff,
            sum => sum,
        };
        out[start + 6..start + 8].copy_from_slice(&sum.to_be_bytes());
    }

    /// An ICMP echo request or reply.
    pub(super) fn echo(&self, out: &mut Vec<u8>, reply: bool, sequence: u16, payload: &[u8]) {
        self.ip(out, ICMP, 8 + payload.len(), 0);
        let start = out.len();
        let kind = match (self.ipv6, reply) {
            (false, false) => 8,
            (false, true) => 0,
            (true, false) => 128,
            (true, true) => 129,
        };
        out.extend([kind, 0, 0, 0, 0, 1]);
        out.extend(sequence.to_be_bytes());
        out.extend(payload);
        let pseudo = if self.ipv6 { self.pseudo(ICMPV6, out.len() - start) } else { 0 };
        let sum = checksum(pseudo, &out[start..]);
        out[start + 2..start + 4].copy_from_slice(&sum.to_be_bytes());
        pad(out);
    }

    /// An ARP request to all, or the reply to one (RFC 826).
    pub(super) fn arp(&self, out: &mut Vec<u8>, reply: bool) {
        let destination = if reply { self.destination.mac() } else { [0xff; 6] };
        self.ethernet(out, destination, 0x0806);
        out.extend([0, 1, 8, 0, 6, 4, 0, 1 + u8::from(reply)]);
        out.extend(self.source.mac());
        out.extend(self.source.ipv4());
        out.extend(if reply { destination } else { [0; 6] });
        out.extend(self.destination.ipv4());
        pad(out);
    }

    /// A frame of the Ethernet configuration testing protocol (EtherType 9000), to its group address.
    pub(super) fn loopback(&self, out: &mut Vec<u8>, payload: &[u8]) {
        self.ethernet(out, [0xcf, 0, 0, 0, 0, 0], 0x9000);
        out.extend([0, 0, 1, 0]);
        out.extend(payload);
        pad(out);
    }
}

fn pad(out: &mut Vec<u8>) {
    if out.len() < SHORTEST {
        out.resize(SHORTEST, 0);
    }
}

/// The Internet checksum of `bytes`, whose own checksum field is zero, on top of a sum.
pub(super) fn checksum(before: u64, bytes: &[u8]) -> u16 {
    !folded(before + u64::from(sum(bytes)))
}
