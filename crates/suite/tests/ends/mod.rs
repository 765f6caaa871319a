//! Packets by their ends: addresses, ports and checksums of IPv4 with TCP, UDP or an echo, read and rewritten
//! with another library's sums.

use etherparse::checksum::Sum16BitWords;

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP: u8 = 1;

/// An address with a port, or with the identifier of an echo.
pub(crate) type End = ([u8; 4], u16);

/// What tells packets apart for the translation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ends {
    pub(crate) proto: u8,
    pub(crate) src: End,
    pub(crate) dst: End,
    /// Type of an ICMP message, flags of TCP.
    pub(crate) kind: u8,
}

pub(crate) fn number(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn transport(frame: &[u8]) -> usize {
    14 + usize::from(frame[14] & 15) * 4
}

/// Where the checksum of the transport header stands.
pub(crate) fn place(frame: &[u8]) -> usize {
    transport(frame)
        + match frame[23] {
            TCP => 16,
            UDP => 6,
            _ => 2,
        }
}

/// The ends of a whole, unfragmented packet of IPv4 that holds TCP, UDP or an echo and has sound lengths;
/// none of another.
pub(crate) fn ends(frame: &[u8]) -> Option<Ends> {
    if frame.len() < 34 || frame[12..14] != [8, 0] || !(0x45..=0x4f).contains(&frame[14]) {
        return None;
    }
    let (at, end) = (transport(frame), 14 + usize::from(number(frame, 16)));
    let proto = frame[23];
    let least = match proto {
        TCP => 20,
        UDP | ICMP => 8,
        _ => return None,
    };
    if number(frame, 20) & 0x3fff != 0 || end > frame.len() || end < at + least {
        return None;
    }
    let sound = match proto {
        TCP => frame[at + 12] >> 4 >= 5 && end >= at + usize::from(frame[at + 12] >> 4) * 4,
        UDP => usize::from(number(frame, at + 4)) == end - at,
        _ => matches!(frame[at], 0 | 8),
    };
    if !sound {
        return None;
    }
    let address = |at: usize| [frame[at], frame[at + 1], frame[at + 2], frame[at + 3]];
    let (from, to, kind) = match proto {
        ICMP => (number(frame, at + 4), number(frame, at + 4), frame[at]),
        UDP => (number(frame, at), number(frame, at + 2), 0),
        _ => (number(frame, at), number(frame, at + 2), frame[at + 13]),
    };
    Some(Ends { proto, src: (address(26), from), dst: (address(30), to), kind })
}

/// Both checksums of such a packet as they should be: the header's, the transport's.
pub(crate) fn right(frame: &[u8]) -> (u16, u16) {
    let (at, end) = (transport(frame), 14 + usize::from(number(frame, 16)));
    let mut header = frame[14..at].to_vec();
    put(&mut header, 10, 0);
    let header = Sum16BitWords::new().add_slice(&header).ones_complement().to_be();
    let mut segment = frame[at..end].to_vec();
    put(&mut segment, place(frame) - at, 0);
    let mut sum = Sum16BitWords::new();
    if frame[23] != ICMP {
        sum = sum.add_slice(&frame[26..34]).add_2bytes([0, frame[23]]);
        sum = sum.add_2bytes((segment.len() as u16).to_be_bytes());
    }
    let mut sum = sum.add_slice(&segment).ones_complement().to_be();
    if frame[23] == UDP && sum == 0 {
        sum = 0xffff;
    }
    (header, sum)
}

/// Whether the checksums are right.
pub(crate) fn valid(frame: &[u8]) -> (bool, bool) {
    let (header, sum) = right(frame);
    (number(frame, 24) == header, number(frame, place(frame)) == sum)
}

/// The packet with another source or destination, with right checksums where they were right.
pub(crate) fn rewritten(frame: &[u8], src: Option<End>, dst: Option<End>) -> Vec<u8> {
    let (at, good) = (transport(frame), valid(frame));
    let mut frame = frame.to_vec();
    for (end, address, port) in [(src, 26, at), (dst, 30, at + 2)] {
        let Some(end) = end else { continue };
        frame[address..address + 4].copy_from_slice(&end.0);
        let port = if frame[23] == ICMP { at + 4 } else { port };
        put(&mut frame, port, end.1);
    }
    let (header, sum) = right(&frame);
    if good.0 {
        put(&mut frame, 24, header);
    }
    if good.1 {
        let place = place(&frame);
        put(&mut frame, place, sum);
    }
    frame
}

/// The packet with zeros in place of checksums that were wrong.
pub(crate) fn without_wrong(frame: &[u8], good: (bool, bool)) -> Vec<u8> {
    let mut frame = frame.to_vec();
    if !good.0 {
        put(&mut frame, 24, 0);
    }
    let place = place(&frame);
    if !good.1 && number(&frame, place) != 0 {
        put(&mut frame, place, 0xdead);
    }
    frame
}
