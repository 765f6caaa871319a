//! Link types: what a captured frame starts with, by the numbers of the tcpdump project.

use std::fmt;

/// A link type number (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LinkType(pub u16);

impl LinkType {
    /// Ethernet (IEEE 802.3).
    pub const ETHERNET: LinkType = LinkType(1);
    /// A bare IPv4 or IPv6 packet.
    pub const RAW: LinkType = LinkType(101);
    /// The "cooked" header of Linux, version 1.
    pub const LINUX_SLL: LinkType = LinkType(113);

    /// The name, or `None` for a number that is not one of the common ones.
    pub fn name(self) -> Option<&'static str> {
        NAMES.binary_search_by_key(&self.0, |&(number, _)| number).ok().map(|i| NAMES[i].1)
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{} ({name})", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

const NAMES: &[(u16, &str)] = &[
    (0, "BSD loopback"),
    (1, "Ethernet"),
    (3, "AX.25"),
    (6, "IEEE 802.5 Token Ring"),
    (7, "ARCNET"),
    (8, "SLIP"),
    (9, "PPP"),
    (10, "FDDI"),
    (50, "PPP in HDLC framing"),
    (51, "PPP over Ethernet"),
    (100, "ATM RFC 1483"),
    (101, "raw IP"),
    (104, "Cisco HDLC"),
    (105, "IEEE 802.11"),
    (107, "Frame Relay"),
    (108, "OpenBSD loopback"),
    (113, "Linux cooked v1"),
    (114, "LocalTalk"),
    (117, "OpenBSD pflog"),
    (119, "IEEE 802.11 with Prism header"),
    (122, "IP over Fibre Channel"),
    (123, "SunATM"),
    (127, "IEEE 802.11 with radiotap"),
    (129, "ARCNET with Linux header"),
    (132, "Juniper ES"),
    (135, "Juniper ATM2"),
    (137, "Juniper ATM1"),
    (138, "IP over IEEE 1394"),
    (143, "DOCSIS"),
    (144, "Linux IrDA"),
    (147, "user 0"),
    (149, "user 2"),
    (163, "IEEE 802.11 with AVS header"),
    (165, "BACnet MS/TP"),
    (166, "PPP with direction"),
    (177, "Linux LAPD"),
    (178, "Juniper Ethernet"),
    (182, "multi-link Frame Relay"),
    (187, "Bluetooth HCI H4"),
    (189, "Linux USB"),
    (192, "per-packet information"),
    (195, "IEEE 802.15.4 with FCS"),
    (201, "Bluetooth HCI H4 with direction"),
    (220, "Linux USB, memory-mapped"),
    (227, "SocketCAN"),
    (228, "raw IPv4"),
    (229, "raw IPv6"),
    (230, "IEEE 802.15.4 without FCS"),
    (239, "Linux netfilter log"),
    (240, "netANALYZER"),
    (242, "IP over InfiniBand"),
    (247, "InfiniBand"),
    (249, "USBPcap"),
    (252, "Wireshark upper PDU"),
    (253, "Linux netlink"),
    (256, "Bluetooth monitor"),
    (274, "Ethernet with mPacket preamble"),
    (276, "Linux cooked v2"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_unknown_numbers_stay_numbers() {
        assert!(NAMES.is_sorted_by_key(|&(number, _)| number));
        assert_eq!(LinkType::ETHERNET.to_string(), "1 (Ethernet)");
        assert_eq!(LinkType(276).to_string(), "276 (Linux cooked v2)");
        assert_eq!(LinkType(60_000).to_string(), "60000");
    }
}
