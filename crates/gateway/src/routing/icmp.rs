//! ICMP and ICMPv6 of the gateway itself: answers to echo requests for own addresses, and errors about
//! packets that the control plane cannot deliver.
//!
//! ```text
//!  0 type   1 code   2 checksum   4 echo: identifier and sequence; errors: 0, or the MTU   8 the echo's data, or the start of the packet
//! ```
//!
//! Answers leave by the port that the packet came in by and go to the station that it came from, as those of
//! the programs do.

use super::frame::{self, ETHERNET, ICMP, ICMPV6, Ipv4, Ipv6};
use super::neighbours::Mac;
use packet::fragment::{Fragmenting, Pieces, SMALLEST_MTU};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Bytes of a packet that an error repeats at most: with its headers it has 576 (RFC 1812, 4.3.2.3) or 1280
/// (RFC 4443, 3.1).
const REPEATED: usize = 548;
const REPEATED6: usize = 1232;
/// The class of errors: internetwork control (RFC 1812, 4.3.2.5).
const CONTROL: u8 = 48;

/// Why a packet is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Nobody has the address.
    Host,
    /// No network has it.
    Network,
    /// It must not go there.
    Prohibited,
    /// Nobody listens at this port of an own address.
    Port,
    /// The own address knows no such protocol.
    Protocol,
    /// The TTL or hop limit is used up.
    Expired,
    /// Other pieces of it did not come in time.
    Late,
    /// It is larger than the MTU.
    TooBig(u16),
}

impl Cause {
    /// Type, code and what stands behind the checksum (RFC 792, 1191, 1812).
    fn four(self) -> (u8, u8, u32) {
        match self {
            Cause::Network => (3, 0, 0),
            Cause::Host => (3, 1, 0),
            Cause::Protocol => (3, 2, 0),
            Cause::Port => (3, 3, 0),
            Cause::TooBig(mtu) => (3, 4, mtu.into()),
            Cause::Prohibited => (3, 13, 0),
            Cause::Expired => (11, 0, 0),
            Cause::Late => (11, 1, 0),
        }
    }

    /// The same of ICMPv6 (RFC 4443, 3). An unknown protocol is a next header that is not recognized, at its
    /// place in the IPv6 header.
    fn six(self) -> (u8, u8, u32) {
        match self {
            Cause::Network => (1, 0, 0),
            Cause::Prohibited => (1, 1, 0),
            Cause::Host => (1, 3, 0),
            Cause::Port => (1, 4, 0),
            Cause::TooBig(mtu) => (2, 0, mtu.into()),
            Cause::Expired => (3, 0, 0),
            Cause::Late => (3, 1, 0),
            Cause::Protocol => (4, 1, 6),
        }
    }
}

/// The answer to an echo request for an own address.
pub(crate) fn echo(own: Mac, to: Mac, ip: &Ipv4<'_>) -> Option<Vec<u8>> {
    let right = packet::checksum::sum(ip.payload) == 0xffff;
    if ip.protocol != ICMP || ip.payload.len() < 8 || ip.payload[..2] != [8, 0] || !right {
        return None;
    }
    let mut message = ip.payload.to_vec();
    message[0] = 0;
    Some(frame::ipv4(to, own, ip.destination, ip.source, 0, message))
}

/// The same of IPv6.
pub(crate) fn echo6(own: Mac, to: Mac, ip: &Ipv6<'_>) -> Option<Vec<u8>> {
    let nobody = ip.source.is_unspecified() || ip.source.is_multicast();
    if nobody || !ip.icmp_is_right() || ip.payload.len() < 8 || ip.payload[..2] != [128, 0] {
        return None;
    }
    let mut message = ip.payload.to_vec();
    message[0] = 129;
    Some(frame::ipv6(to, own, ip.destination, ip.source, 64, message))
}

/// The answer to an echo as one frame, or as several where it is longer than the MTU (RFC 791, 3.2; RFC 8200,
/// 4.5). What identifies pieces of IPv4 is this number; those of IPv6 have room for what the sender's echo
/// has, which is its own for each that is under way: identifier and sequence.
pub(crate) fn in_pieces(mut bytes: Vec<u8>, mtu: u16, identification: u16) -> Vec<Vec<u8>> {
    let six = bytes[12..14] == [0x86, 0xdd];
    let header = if six { 40 } else { 20 };
    let mtu = usize::from(mtu).max(if six { 1280 } else { SMALLEST_MTU as usize });
    if bytes.len() <= ETHERNET + mtu {
        return vec![bytes];
    }
    let (headers, message) = bytes.split_at_mut(ETHERNET + header);
    let echo = message[4..8].to_vec();
    if six {
        let step = (mtu - header - 8) / 8 * 8;
        let piece = |(index, data): (usize, &[u8])| {
            let more = (index + 1) * step < message.len();
            let word = (index * step) as u16 | u16::from(more);
            let mut piece = headers.to_vec();
            piece[ETHERNET + 4..ETHERNET + 6].copy_from_slice(&(8 + data.len() as u16).to_be_bytes());
            piece[ETHERNET + 6] = 44;
            piece.extend([ICMPV6, 0]);
            piece.extend(word.to_be_bytes());
            piece.extend_from_slice(&echo);
            piece.extend_from_slice(data);
            piece
        };
        return message.chunks(step).enumerate().map(piece).collect();
    }
    let ip = &mut headers[ETHERNET..];
    ip[4..6].copy_from_slice(&identification.to_be_bytes());
    ip[6] = 0;
    frame::finish_ipv4(ip);
    let Some(pieces) =
        Pieces::of(&bytes, bytes.len() as u32, Fragmenting { at: ETHERNET as u32, mtu: mtu as u32 })
    else {
        return vec![bytes];
    };
    (0..pieces.count())
        .map(|index| {
            let mut piece = Vec::new();
            pieces.write(&bytes, index, &mut piece);
            piece
        })
        .collect()
}

/// An error about a packet, unless nothing may answer it (RFC 1812, 4.3.2.7): an error itself, a later piece,
/// one from or to more than one host.
pub(crate) fn error(own: (Mac, Ipv4Addr), to: Mac, ip: &Ipv4<'_>, cause: Cause) -> Option<Vec<u8>> {
    let reports = ip.protocol == ICMP && matches!(ip.payload.first(), None | Some(3..=5 | 11 | 12));
    let many = ip.source.is_unspecified()
        || ip.source.is_multicast()
        || ip.source.is_broadcast()
        || ip.source.is_loopback()
        || ip.destination.is_multicast()
        || ip.destination.is_broadcast();
    if reports || ip.later_piece || many {
        return None;
    }
    let (kind, code, value) = cause.four();
    let message = quoting(kind, code, value, &ip.bytes[..ip.bytes.len().min(REPEATED)]);
    Some(frame::ipv4(to, own.0, own.1, ip.source, CONTROL, message))
}

/// The same of IPv6 (RFC 4443, 2.4).
pub(crate) fn error6(own: (Mac, Ipv6Addr), to: Mac, ip: &Ipv6<'_>, cause: Cause) -> Option<Vec<u8>> {
    // Of a piece the fragment header says what follows, and where it belongs; a later one may be an error's,
    // too.
    let (next, first) = match (ip.next, ip.payload) {
        (44, [next, _, 0, 0..=7, _, _, _, _, first, ..]) => (*next, Some(first)),
        (44, [next, ..]) => (*next, None),
        (next, payload) => (next, payload.first()),
    };
    let reports = next == ICMPV6 && matches!(first, None | Some(0..=127 | 137));
    let many = ip.source.is_unspecified() || ip.source.is_multicast() || ip.destination.is_multicast();
    if reports || many {
        return None;
    }
    let (kind, code, value) = cause.six();
    let message = quoting(kind, code, value, &ip.bytes[..ip.bytes.len().min(REPEATED6)]);
    Some(frame::ipv6(to, own.0, own.1, ip.source, 64, message))
}

fn quoting(kind: u8, code: u8, value: u32, packet: &[u8]) -> Vec<u8> {
    let mut message = vec![kind, code, 0, 0];
    message.extend(value.to_be_bytes());
    message.extend(packet);
    message
}

/// So many errors a second of one port, with a reserve for as many at once (RFC 1812, 4.3.2.8; RFC 4443, 2.4
/// f).
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErrorRate {
    left: u64,
    since: u64,
}

impl ErrorRate {
    /// Errors a second.
    pub(crate) const RATE: u64 = 100;
    const EACH: u64 = 1_000_000_000 / ErrorRate::RATE;

    /// The whole reserve is there.
    pub(crate) fn new(now: u64) -> ErrorRate {
        ErrorRate { left: ErrorRate::RATE, since: now }
    }

    /// Whether another error may be sent, which is counted then.
    pub(crate) fn take(&mut self, now: u64) -> bool {
        let more = now.saturating_sub(self.since) / ErrorRate::EACH;
        self.since += more * ErrorRate::EACH;
        self.left = self.left.saturating_add(more).min(ErrorRate::RATE);
        let some = self.left > 0;
        self.left -= u64::from(some);
        some
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Icmpv4Type, Icmpv6Type, NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};

    const OWN: Mac = [2, 0, 0, 0, 0, 1];
    const PEER: Mac = [2, 0, 0, 0, 0, 2];

    /// Reads a frame by another library, which finds both checksums right.
    fn read(bytes: &[u8]) -> (PacketHeaders<'_>, Vec<u8>) {
        let headers = PacketHeaders::from_ethernet_slice(bytes).expect("a packet");
        let payload = headers.payload.slice().to_vec();
        match (headers.net.as_ref().expect("IP"), headers.transport.as_ref().expect("ICMP")) {
            (NetHeaders::Ipv4(ip, _), TransportHeader::Icmpv4(icmp)) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                assert_eq!(icmp.checksum, icmp.icmp_type.calc_checksum(&payload));
                assert_eq!(usize::from(ip.total_len), bytes.len() - 14);
            }
            (NetHeaders::Ipv6(ip, _), TransportHeader::Icmpv6(icmp)) => {
                let wanted = icmp.icmp_type.calc_checksum(ip.source, ip.destination, &payload);
                assert_eq!(Ok(icmp.checksum), wanted.map_err(|_| 0));
                assert_eq!(usize::from(ip.payload_length), bytes.len() - 54);
            }
            other => panic!("{other:?}"),
        }
        (headers, payload)
    }

    #[test]
    fn echoes_come_back_as_they_went() {
        let mut request = Vec::new();
        PacketBuilder::ethernet2(PEER, OWN)
            .ipv4([10, 0, 1, 2], [10, 0, 1, 1], 7)
            .icmpv4_echo_request(77, 3)
            .write(&mut request, b"hello")
            .expect("fits");
        let reply = echo(OWN, PEER, &Ipv4::read(&request).expect("IPv4")).expect("an answer");
        let (headers, payload) = read(&reply);
        let Some(TransportHeader::Icmpv4(icmp)) = headers.transport else { panic!("no ICMP") };
        assert!(matches!(icmp.icmp_type, Icmpv4Type::EchoReply(echo) if (echo.id, echo.seq) == (77, 3)));
        assert_eq!(payload, b"hello");
        request[40] ^= 1;
        assert_eq!(echo(OWN, PEER, &Ipv4::read(&request).expect("IPv4")), None, "its checksum is wrong now");

        let mut request = Vec::new();
        let (from, to) = ([0xfd; 16], [0xfc; 16]);
        PacketBuilder::ethernet2(PEER, OWN)
            .ipv6(from, to, 7)
            .icmpv6_echo_request(77, 3)
            .write(&mut request, b"hello!")
            .expect("fits");
        let reply = echo6(OWN, PEER, &Ipv6::read(&request).expect("IPv6")).expect("an answer");
        let (headers, payload) = read(&reply);
        let Some(TransportHeader::Icmpv6(icmp)) = headers.transport else { panic!("no ICMPv6") };
        assert!(matches!(icmp.icmp_type, Icmpv6Type::EchoReply(echo) if (echo.id, echo.seq) == (77, 3)));
        assert_eq!(payload, b"hello!");
        for source in [Ipv6Addr::UNSPECIFIED, "ff02::1".parse().expect("a group")] {
            let mut request = Vec::new();
            PacketBuilder::ethernet2(PEER, OWN)
                .ipv6(source.octets(), to, 7)
                .icmpv6_echo_request(77, 3)
                .write(&mut request, b"hello!")
                .expect("fits");
            assert_eq!(echo6(OWN, PEER, &Ipv6::read(&request).expect("IPv6")), None, "{source}");
        }
    }

    #[test]
    fn errors_repeat_the_packet_and_never_answer_errors() {
        let mut packet = Vec::new();
        PacketBuilder::ethernet2(PEER, OWN)
            .ipv4([10, 0, 1, 2], [10, 0, 2, 9], 7)
            .udp(5, 6)
            .write(&mut packet, &[7; 900])
            .expect("fits");
        let ip = Ipv4::read(&packet).expect("IPv4");
        let told = error((OWN, [10, 0, 1, 1].into()), PEER, &ip, Cause::TooBig(1280)).expect("an error");
        let (_, payload) = read(&told);
        assert_eq!(told[38..42], [0, 0, 5, 0]);
        assert_eq!(payload, &packet[14..14 + REPEATED]);
        let about = Ipv4::read(&told).expect("IPv4");
        assert_eq!(error((PEER, [10, 0, 1, 2].into()), OWN, &about, Cause::Host), None);

        let mut packet = Vec::new();
        PacketBuilder::ethernet2(PEER, OWN)
            .ipv6([0xfd; 16], [0xfc; 16], 7)
            .udp(5, 6)
            .write(&mut packet, &[7; 2000])
            .expect("fits");
        let ip = Ipv6::read(&packet).expect("IPv6");
        let told = error6((OWN, Ipv6Addr::LOCALHOST), PEER, &ip, Cause::Host).expect("an error");
        let (_, payload) = read(&told);
        assert_eq!((told.len(), payload.len()), (14 + 1280, REPEATED6));
        let about = Ipv6::read(&told).expect("IPv6");
        assert_eq!(error6((PEER, Ipv6Addr::LOCALHOST), OWN, &about, Cause::Host), None);
    }

    #[test]
    fn an_error_that_came_in_pieces_is_not_answered_either() {
        let piece = |kind: u8, offset: u8| {
            let from: [u8; 16] = [0xfd; 16];
            let mut bytes = frame::ipv6(OWN, PEER, from.into(), [0xfc; 16].into(), 64, vec![kind; 64]);
            bytes[ETHERNET + 5] += 8;
            bytes[ETHERNET + 6] = 44;
            bytes.splice(54..54, [ICMPV6, 0, 0, offset << 3 | 1, 0, 0, 0, 7]);
            let ip = Ipv6::read(&bytes).expect("IPv6");
            error6((OWN, Ipv6Addr::LOCALHOST), PEER, &ip, Cause::Late).is_some()
        };
        assert_eq!([piece(128, 0), piece(1, 0), piece(137, 0)], [true, false, false]);
        assert!(!piece(128, 1), "nobody sees what a later piece belongs to");
    }

    #[test]
    fn errors_keep_to_their_rate() {
        const SECOND: u64 = 1_000_000_000;
        let mut rate = ErrorRate::new(SECOND);
        let mut at = |now: u64| (0..1000).filter(|_| rate.take(now)).count() as u64;
        assert_eq!(at(SECOND), ErrorRate::RATE);
        assert_eq!(at(SECOND + SECOND / 2), ErrorRate::RATE / 2);
        assert_eq!(at(90 * SECOND), ErrorRate::RATE);
    }
}
