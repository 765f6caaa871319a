//! The addresses of a router.

use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, Ipv6Addr};

/// What a router may say that it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnAddresses {
    /// Its Ethernet address.
    pub ethernet: [u8; 6],
    /// Its addresses of IPv4.
    pub ipv4: Vec<Ipv4Addr>,
    /// Its addresses of IPv6, beside the link-local one that its Ethernet address makes.
    pub ipv6: Vec<Ipv6Addr>,
    /// The longest packet that it sends, in bytes, without the Ethernet header.
    pub mtu: u16,
    /// Whether it sends router advertisements.
    pub advertises: bool,
    /// Whether it may ask for an address of IPv4 by DHCP, from 0.0.0.0.
    pub dhcp_client: bool,
}

impl OwnAddresses {
    pub(crate) fn has_ipv4(&self, address: [u8; 4]) -> bool {
        let address = Ipv4Addr::from(address);
        self.ipv4.contains(&address)
    }

    pub(crate) fn has_ipv6(&self, address: [u8; 16]) -> bool {
        address == self.link_local() || self.ipv6.contains(&Ipv6Addr::from(address))
    }

    /// The link-local address that the Ethernet address makes (RFC 4291, appendix A).
    pub(crate) fn link_local(&self) -> [u8; 16] {
        let [a, b, c, d, e, f] = self.ethernet;
        [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f]
    }
}
