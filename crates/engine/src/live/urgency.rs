//! Which punted packets of a program that routes are urgent: those by which neighbours find each other, ARP
//! (RFC 826) and Neighbour Discovery (RFC 4861).

use super::Urgent;

/// The protocol number of ICMPv6.
const ICMPV6: u8 = 58;

/// Whether a packet that was punted for this reason may keep a neighbour known, or find one: ARP, and
/// solicitations and advertisements.
pub fn of_neighbours(reason: &str, frame: &[u8]) -> Option<Urgent> {
    let discovery = || match (frame.get(12..14)?, frame.get(20)?, frame.get(54)?) {
        (&[0x86, 0xdd], &ICMPV6, 135) => Some(Urgent::Question),
        (&[0x86, 0xdd], &ICMPV6, 136) => Some(Urgent::Answer),
        _ => None,
    };
    match reason {
        // A reply is an answer, and everything else as good as a question.
        "neighbours" if frame.get(20..22) == Some(&[0, 2]) => Some(Urgent::Answer),
        "neighbours" => Some(Urgent::Question),
        "ours" | "link_only" => discovery(),
        _ => None,
    }
}
