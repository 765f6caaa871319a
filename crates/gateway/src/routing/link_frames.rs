//! Parses and builds the frames by which neighbours find each other: ARP (RFC 826) and neighbour discovery
//! (RFC 4861).
//!
//! ```text
//! ARP, behind the Ethernet header of 14 bytes:          a solicitation (135) or advertisement (136), behind Ethernet and IPv6:
//!  0     hardware 1   2     protocol 0x0800              0  type   1  code 0   2  checksum
//!  4  6  5  4         6     1 request, 2 reply           4  advertisement: router, solicited, override in the first three bits
//!  8     sender's Ethernet address                       8  target, 16 bytes
//! 14     sender's IPv4 address                          24  option: kind (1 sender's, 2 target's), length 1 (in 8 bytes),
//! 18     target's Ethernet address                                  Ethernet address
//! 24     target's IPv4 address
//! ```

use super::frame::{self, Ipv6};
use super::neighbours::Mac;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// To everybody on the link.
pub(crate) const EVERYBODY: Mac = [0xff; 6];

/// An ARP packet about IPv4 over Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arp {
    /// It asks; otherwise it answers.
    pub(crate) request: bool,
    /// Who says so.
    pub(crate) sender: (Mac, Ipv4Addr),
    /// Who is meant.
    pub(crate) target: (Mac, Ipv4Addr),
}

impl Arp {
    /// Reads a frame. `None` where it is none, or one about something else.
    pub(crate) fn read(frame: &[u8]) -> Option<Arp> {
        let arp = frame.get(14..42)?;
        let operation = match arp {
            [0, 1, 8, 0, 6, 4, 0, operation @ (1 | 2), ..] => *operation,
            _ => return None,
        };
        let side = |at: usize| -> Option<(Mac, Ipv4Addr)> {
            let address: [u8; 4] = frame::array(arp, at + 6)?;
            Some((frame::array(arp, at)?, Ipv4Addr::from(address)))
        };
        let arp = Arp { request: operation == 1, sender: side(8)?, target: side(18)? };
        // The frame and the message are to come from the same station.
        (frame.get(6..12) == Some(&arp.sender.0[..]) && frame::is_station(arp.sender.0)).then_some(arp)
    }

    /// The frame, to one station or to everybody.
    pub(crate) fn write(&self, to: Mac) -> Vec<u8> {
        let mut frame = frame::ethernet(to, self.sender.0, 0x0806);
        frame.extend([0, 1, 8, 0, 6, 4, 0, if self.request { 1 } else { 2 }]);
        for (mac, address) in [self.sender, self.target] {
            frame.extend(mac);
            frame.extend(address.octets());
        }
        frame
    }
}

/// A message of neighbour discovery that is about one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discovery {
    /// Who has this address?
    Solicitation {
        /// The address.
        target: Ipv6Addr,
        /// The Ethernet address of whoever asks.
        link: Option<Mac>,
    },
    /// This address is here.
    Advertisement {
        /// The address.
        target: Ipv6Addr,
        /// Its Ethernet address.
        link: Option<Mac>,
        /// It answers a solicitation.
        solicited: bool,
        /// It replaces what is known.
        replaces: bool,
    },
}

impl Discovery {
    /// Reads the ICMPv6 message of a packet whose checksum is right. `None` where it is another, or one that
    /// must be ignored (RFC 4861, 7.1).
    pub(crate) fn read(ip: &Ipv6<'_>) -> Option<Discovery> {
        let message = ip.payload;
        let (kind, code, option) = match *message.get(..2)? {
            [135, code] => (135, code, 1),
            [136, code] => (136, code, 2),
            _ => return None,
        };
        let target = Ipv6Addr::from(frame::array::<16>(message, 8)?);
        if ip.hop_limit != 255 || code != 0 || target.is_multicast() {
            return None;
        }
        let link = option_of(message.get(24..)?, option)?;
        if link.is_some_and(|mac| !frame::is_station(mac)) {
            return None;
        }
        if kind == 135 {
            let nobody = ip.source.is_unspecified();
            let proper = !nobody || (link.is_none() && ip.destination == group_of(target));
            return proper.then_some(Discovery::Solicitation { target, link });
        }
        let (solicited, replaces) = (message[4] & 0x40 != 0, message[4] & 0x20 != 0);
        let proper = !(solicited && ip.destination.is_multicast());
        proper.then_some(Discovery::Advertisement { target, link, solicited, replaces })
    }
}

/// The Ethernet address in the option of this kind, if it is there; `None` where an option has no length.
fn option_of(mut options: &[u8], wanted: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while !options.is_empty() {
        let size = usize::from(*options.get(1)?) * 8;
        if size == 0 || size > options.len() {
            return None;
        }
        if options[0] == wanted && size == 8 {
            found = frame::array(options, 2);
        }
        options = &options[size..];
    }
    Some(found)
}

/// The group that whoever has an address belongs to (RFC 4291, 2.7.1).
fn group_of(target: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = target.octets();
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 1, 0xff00 | u16::from(a), u16::from_be_bytes([b, c]))
}

/// The Ethernet address of a group (RFC 2464, 7).
fn station_of(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    [0x33, 0x33, a, b, c, d]
}

/// The address that a station gives itself on its link (RFC 4291, appendix A).
pub(crate) fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.map(u16::from);
    Ipv6Addr::new(0xfe80, 0, 0, 0, (a ^ 2) << 8 | b, c << 8 | 0xff, 0xfe00 | d, e << 8 | f)
}

/// Asks who has `target`: everybody, or only `to`.
pub(crate) fn question(own: (Mac, IpAddr), target: IpAddr, to: Option<Mac>) -> Option<Vec<u8>> {
    match (own.1, target) {
        (IpAddr::V4(address), IpAddr::V4(target)) => {
            let arp = Arp { request: true, sender: (own.0, address), target: ([0; 6], target) };
            Some(arp.write(to.unwrap_or(EVERYBODY)))
        }
        (IpAddr::V6(address), IpAddr::V6(target)) => {
            let (to, destination) = match to {
                Some(to) => (to, target),
                None => (station_of(group_of(target)), group_of(target)),
            };
            let message = discovery(135, 0, target, 1, own.0);
            Some(frame::ipv6(to, own.0, address, destination, 255, message))
        }
        _ => None,
    }
}

/// Answers a solicitation for an own address; one from nobody, which looks whether the address is taken, is
/// answered to all.
pub(crate) fn advertisement(own: (Mac, Ipv6Addr), asker: (Mac, Ipv6Addr)) -> Vec<u8> {
    const ALL: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let nobody = asker.1.is_unspecified();
    let (to, destination) = if nobody { (station_of(ALL), ALL) } else { asker };
    // Router and override, and solicited where somebody did.
    let message = discovery(136, if nobody { 0xa0 } else { 0xe0 }, own.1, 2, own.0);
    frame::ipv6(to, own.0, own.1, destination, 255, message)
}

fn discovery(kind: u8, flags: u8, target: Ipv6Addr, option: u8, mac: Mac) -> Vec<u8> {
    let mut message = vec![kind, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    message.extend([option, 1]);
    message.extend(mac);
    message
}
