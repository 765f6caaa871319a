//! The packets by which neighbours find each other, ARP (RFC 826) and Neighbour Discovery (RFC 4861): which
//! frames they are, and which of them are urgent where a program that routes punts them.

use super::Urgent;

/// The protocol number of ICMPv6.
const ICMPV6: u8 = 58;

/// Whether a frame is ARP, or a neighbour solicitation or neighbour advertisement. Whether it is a right one
/// is not looked at.
pub fn finds_neighbours(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[0x08, 0x06]) || discovery(frame).is_some()
}

/// Whether a packet that was punted for this reason may keep a neighbour known, or find one: ARP, and
/// neighbour solicitations and advertisements.
pub fn of_neighbours(reason: &str, frame: &[u8]) -> Option<Urgent> {
    match reason {
        // A reply is an answer, and everything else as good as a question.
        "neighbours" if frame.get(20..22) == Some(&[0, 2]) => Some(Urgent::Answer),
        "neighbours" => Some(Urgent::Question),
        "ours" | "link_only" => discovery(frame),
        _ => None,
    }
}

/// A neighbour solicitation or advertisement, right behind the header of IPv6.
fn discovery(frame: &[u8]) -> Option<Urgent> {
    match (frame.get(12..14)?, frame.get(20)?, frame.get(54)?) {
        (&[0x86, 0xdd], &ICMPV6, 135) => Some(Urgent::Question),
        (&[0x86, 0xdd], &ICMPV6, 136) => Some(Urgent::Answer),
        _ => None,
    }
}
