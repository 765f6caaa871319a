//! The router of a VNIC: its addresses, its MTU and what it may send; and how an Ethernet address is read.

use std::net::IpAddr;

/// The router of a VNIC: its addresses, its MTU and what it may send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VnicWishes {
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
    /// Its addresses, with the lengths of their prefixes.
    pub addresses: Vec<(IpAddr, u8)>,
    /// The longest packet, in bytes.
    pub mtu: u16,
    /// Whether it sends router advertisements.
    pub advertises: bool,
    /// Whether it asks for an address by DHCP.
    pub dhcp_client: bool,
    /// How the router is linked, if it is a virtual machine in the container rather than the container's
    /// processes.
    pub guest: Option<GuestLink>,
    /// The number of the container among those of the gateway.
    pub container: u16,
}

/// How a virtual machine is linked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestLink {
    /// Its monitor has the queue of a TAP device.
    Tap,
    /// Its monitor shares the machine's memory (vhost-user).
    VhostUser,
}

impl GuestLink {
    /// All of them.
    pub const ALL: [GuestLink; 2] = [GuestLink::Tap, GuestLink::VhostUser];

    /// The name by which a file or an argument says it.
    pub fn name(self) -> &'static str {
        match self {
            GuestLink::Tap => "tap",
            GuestLink::VhostUser => "vhost-user",
        }
    }

    /// The one of this name.
    pub fn of(name: &str) -> Option<GuestLink> {
        GuestLink::ALL.into_iter().find(|link| link.name() == name)
    }
}

/// The MTU of Ethernet.
const MTU: u16 = 1500;

impl VnicWishes {
    /// A router with this Ethernet address, of which nothing else is said.
    pub fn new(ethernet: [u8; 6], container: u16) -> VnicWishes {
        let (addresses, mtu) = (Vec::new(), MTU);
        VnicWishes { ethernet, addresses, mtu, advertises: false, dhcp_client: false, guest: None, container }
    }
}

/// Reads an Ethernet address: six pairs of hexadecimal digits with colons between them.
pub fn station(text: &str) -> Option<[u8; 6]> {
    let mut station = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut station {
        let digits = |part: &&str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_hexdigit());
        let part = parts.next().filter(digits)?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(station)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ethernet_address_is_six_pairs_of_digits() {
        assert_eq!(station("02:00:00:aB:01:0c"), Some([2, 0, 0, 0xab, 1, 0xc]));
        for text in ["", "02:00:00:00:01", "02:00:00:00:01:0c:00", "2:00:00:00:01:0c", "02:00:00:00:01:+c"] {
            assert_eq!(station(text), None, "{text}");
        }
    }
}
