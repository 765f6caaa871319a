//! Describes one packet on one line for people: addresses, protocols and notable fields, as far as its bytes
//! were captured.

use std::fmt::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr};

/// How many 802.1Q tags are shown before the rest counts as payload.
const TAGS: usize = 4;

/// How many extension headers of IPv6 are followed.
const EXTENSIONS: usize = 8;

/// Describes an Ethernet frame, of which `captured` are the captured bytes and which had `wire` bytes on the
/// wire.
///
/// ```
/// let arp = [
///     255, 255, 255, 255, 255, 255, 2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0,
///     10, 0, 0, 2,
/// ];
/// assert_eq!(
///     packet::describe::describe(&arp, 60),
///     "02:00:00:00:00:01 > ff:ff:ff:ff:ff:ff, arp who has 10.0.0.2 tell 10.0.0.1, 60 bytes (42 captured)"
/// );
/// ```
pub fn describe(captured: &[u8], wire: u32) -> String {
    let mut line = String::with_capacity(160);
    // Writing to a string does not fail.
    let _ = ethernet(&mut line, captured);
    let _ = write!(line, ", {wire} bytes");
    if captured.len() != wire as usize {
        let _ = write!(line, " ({} captured)", captured.len());
    }
    line
}

/// A MAC address as it is written.
struct Mac<'a>(&'a [u8]);

impl fmt::Display for Mac<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i > 0 { ":" } else { "" })?;
        }
        Ok(())
    }
}

fn ethernet(line: &mut String, frame: &[u8]) -> fmt::Result {
    let Some(header) = frame.get(..14) else {
        return line.write_str("ethernet cut short");
    };
    write!(line, "{} > {}", Mac(&header[6..12]), Mac(&header[..6]))?;
    let (mut at, mut ether_type) = (14, word(frame, 12));
    for _ in 0..TAGS {
        if !matches!(ether_type, Some(0x8100 | 0x88a8)) {
            break;
        }
        match word(frame, at) {
            Some(tag) => write!(line, ", vlan {}", tag & 0xfff)?,
            None => return line.write_str(", vlan cut short"),
        }
        ether_type = word(frame, at + 2);
        at += 4;
    }
    let payload = frame.get(at..).unwrap_or_default();
    match ether_type {
        Some(0x0800) => ipv4(line, payload),
        Some(0x86dd) => ipv6(line, payload),
        Some(0x0806) => arp(line, payload),
        Some(length) if length < 0x600 => write!(line, ", 802.3 length {length}"),
        Some(other) => write!(line, ", ethertype {other:#06x}"),
        None => line.write_str(", vlan cut short"),
    }
}

fn arp(line: &mut String, packet: &[u8]) -> fmt::Result {
    let (Some(&sender), Some(&target)) = (chunk::<4>(packet, 14), chunk::<4>(packet, 24)) else {
        return line.write_str(", arp cut short");
    };
    let (sender, target) = (Ipv4Addr::from(sender), Ipv4Addr::from(target));
    match (packet.get(..6), word(packet, 6)) {
        (Some([0, 1, 8, 0, 6, 4]), Some(1)) => write!(line, ", arp who has {target} tell {sender}"),
        (Some([0, 1, 8, 0, 6, 4]), Some(2)) => write!(line, ", arp {sender} is at {}", Mac(&packet[8..14])),
        (_, operation) => write!(line, ", arp operation {}", operation.unwrap_or_default()),
    }
}

fn ipv4(line: &mut String, packet: &[u8]) -> fmt::Result {
    let Some(header) = chunk::<20>(packet, 0) else {
        return line.write_str(", ipv4 cut short");
    };
    let (version, length) = (header[0] >> 4, usize::from(header[0] & 15) * 4);
    let source = Ipv4Addr::new(header[12], header[13], header[14], header[15]);
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    write!(line, ", {source} > {destination}")?;
    if version != 4 || length < 20 {
        return write!(line, ", ipv4 with version {version} and a header of {length} bytes");
    }
    write!(line, " ttl {}", header[8])?;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let fragment = u16::from_be_bytes([header[6], header[7]]);
    let offset = usize::from(fragment & 0x1fff) * 8;
    if fragment & 0x3fff != 0 {
        let more = if fragment & 0x2000 != 0 { "+" } else { "" };
        write!(line, ", fragment at {offset}{more} of {:#06x}", u16::from_be_bytes([header[4], header[5]]))?;
    }
    if offset > 0 {
        return write!(line, ", protocol {}", header[9]);
    }
    // Padding is no payload, and a total length beyond the frame is not believed.
    let end = if total < length { packet.len() } else { total.min(packet.len()) };
    transport(line, header[9], packet.get(length..end).unwrap_or_default())
}

fn ipv6(line: &mut String, packet: &[u8]) -> fmt::Result {
    let (Some(&source), Some(&destination)) = (chunk::<16>(packet, 8), chunk::<16>(packet, 24)) else {
        return line.write_str(", ipv6 cut short");
    };
    write!(line, ", {} > {}", Ipv6Addr::from(source), Ipv6Addr::from(destination))?;
    if packet[0] >> 4 != 6 {
        return write!(line, ", ipv6 with version {}", packet[0] >> 4);
    }
    write!(line, " hop limit {}", packet[7])?;
    let (mut protocol, mut at) = (packet[6], 40);
    for _ in 0..EXTENSIONS {
        // Hop-by-hop, routing, fragment and destination options (RFC 8200, section 4).
        let length = match (protocol, packet.get(at + 1)) {
            (0 | 43 | 60, Some(&units)) => usize::from(units) * 8 + 8,
            (44, Some(_)) => 8,
            _ => break,
        };
        if protocol == 44 {
            let field = word(packet, at + 2).unwrap_or_default();
            let more = if field & 1 != 0 { "+" } else { "" };
            write!(line, ", fragment at {}{more}", field & !7)?;
            if field & !7 != 0 {
                return write!(line, ", protocol {}", packet[at]);
            }
        }
        protocol = packet[at];
        at += length;
    }
    transport(line, protocol, packet.get(at..).unwrap_or_default())
}

fn transport(line: &mut String, protocol: u8, segment: &[u8]) -> fmt::Result {
    let ports = (word(segment, 0), word(segment, 2));
    match (protocol, ports) {
        (6, (Some(source), Some(destination))) => {
            write!(line, ", tcp {source} > {destination}")?;
            let Some(&flags) = segment.get(13) else {
                return line.write_str(" cut short");
            };
            line.write_str(" [")?;
            for (bit, letter) in "FSRPAUEC".chars().enumerate() {
                if flags & (1 << bit) != 0 {
                    line.write_char(letter)?;
                }
            }
            line.write_char(']')?;
            match usize::from(segment[12] >> 4) * 4 {
                offset if offset < 20 => write!(line, " with a header of {offset} bytes"),
                offset => write!(line, " payload {}", segment.len().saturating_sub(offset)),
            }
        }
        (17, (Some(source), Some(destination))) => {
            write!(line, ", udp {source} > {destination}")?;
            match word(segment, 4) {
                Some(length) => write!(line, " length {length}"),
                None => line.write_str(" cut short"),
            }
        }
        (6, _) => line.write_str(", tcp cut short"),
        (17, _) => line.write_str(", udp cut short"),
        (1, (Some(kind), _)) => write!(line, ", icmp {}", icmp_name(kind >> 8, [8, 0, 3, 11], kind & 0xff)),
        (58, (Some(kind), _)) => {
            write!(line, ", icmpv6 {}", icmp_name(kind >> 8, [128, 129, 1, 3], kind & 0xff))
        }
        (1 | 58, _) => line.write_str(", icmp cut short"),
        _ => write!(line, ", protocol {protocol}"),
    }
}

/// The name of an ICMP message, by the types of echo request, echo reply, unreachable and time exceeded.
fn icmp_name(kind: u16, types: [u16; 4], code: u16) -> String {
    let names = ["echo request", "echo reply", "unreachable", "time exceeded"];
    match types.iter().position(|&known| known == kind) {
        Some(i) if code == 0 => names[i].to_owned(),
        Some(i) => format!("{} code {code}", names[i]),
        None => format!("type {kind} code {code}"),
    }
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    chunk::<2>(bytes, at).map(|bytes| u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use captures::generate::{Generator, Profile};

    fn frame(parts: &[&[u8]]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1][..], &parts.concat()].concat()
    }

    const IPV4: [u8; 20] = [0x45, 0, 0, 40, 0, 7, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    const TCP: [u8; 20] = [0, 80, 200, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x50, 0x12, 0, 0, 0, 0, 0, 0];

    fn rest(bytes: &[u8]) -> String {
        let line = describe(bytes, bytes.len() as u32);
        let start = "02:00:00:00:00:01 > 02:00:00:00:00:02, ";
        line.strip_prefix(start).and_then(|line| line.rsplit_once(", ")).expect(&line).0.to_owned()
    }

    #[test]
    fn tcp_over_ipv4_with_and_without_tags() {
        let padded = frame(&[&[8, 0], &IPV4, &TCP, &[0; 6]]);
        assert_eq!(rest(&padded), "10.0.0.1 > 10.0.0.2 ttl 64, tcp 80 > 51200 [SA] payload 0");
        let tagged = frame(&[&[0x88, 0xa8, 0, 5, 0x81, 0, 0x20, 100, 8, 0], &IPV4, &TCP]);
        assert_eq!(
            rest(&tagged),
            "vlan 5, vlan 100, 10.0.0.1 > 10.0.0.2 ttl 64, tcp 80 > 51200 [SA] payload 0"
        );
        assert!(describe(&tagged, 99).ends_with(", 99 bytes (62 captured)"));
    }

    #[test]
    fn fragments_and_wrong_headers() {
        let mut first = IPV4;
        first[6] = 0x20;
        assert!(rest(&frame(&[&[8, 0], &first, &TCP])).contains("fragment at 0+ of 0x0007, tcp 80 > 51200"));
        let mut later = IPV4;
        later[7] = 3;
        assert!(rest(&frame(&[&[8, 0], &later, &TCP])).ends_with("fragment at 24 of 0x0007, protocol 6"));
        let mut short = IPV4;
        short[0] = 0x43;
        assert!(rest(&frame(&[&[8, 0], &short])).ends_with("ipv4 with version 4 and a header of 12 bytes"));
    }

    #[test]
    fn ipv6_with_extension_headers() {
        let mut header = [0; 40];
        header[0] = 0x60;
        header[6] = 0;
        header[7] = 9;
        header[39] = 1;
        let options = [44, 0, 0, 0, 0, 0, 0, 0];
        let fragment = [58, 0, 0, 1, 0, 0, 0, 7];
        let packet = frame(&[&[0x86, 0xdd], &header, &options, &fragment, &[128, 0, 0, 0]]);
        assert_eq!(rest(&packet), ":: > ::1 hop limit 9, fragment at 0+, icmpv6 echo request");
    }

    #[test]
    fn any_bytes_have_a_description() {
        let mut generator = Generator::new(&Profile::demo(), 3).expect("possible");
        let (mut bytes, mut seen) = (Vec::new(), String::new());
        while generator.next(&mut bytes).is_some() {
            for cut in (0..=bytes.len()).rev().step_by(7) {
                let line = describe(&bytes[..cut], 80);
                assert!(!line.contains('\n'));
                seen.push_str(&line);
            }
            bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
            assert!(describe(&bytes, 0).contains("bytes"));
        }
        for word in [
            "arp who has",
            "is at",
            "icmpv6 echo reply",
            "icmp echo request",
            "vlan 100",
            "udp",
            "fragment at",
        ] {
            assert!(seen.contains(word), "{word}");
        }
    }
}
