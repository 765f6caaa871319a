//! A port as control knows it: what the file says of it, its link, and which addresses are the gateway's
//! there.

use super::icmp::ErrorRate;
use super::link_frames::link_local;
use super::neighbours::Mac;
use super::prefix::InterfaceAddress;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;

/// What the file says of a port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSettings {
    /// The interface, or the name of a port of a VLAN.
    pub interface: String,
    /// The interface that a port of a VLAN is on.
    pub tagged_on: Option<String>,
    /// The gateway's addresses there.
    pub addresses: Vec<InterfaceAddress>,
    /// The largest packet that leaves there, if not the interface's.
    pub mtu: Option<u16>,
    /// The interface's Ethernet address is that of the machine behind it, as a TAP device's is, and not the
    /// gateway's.
    pub shared: bool,
    /// The name of the interface by which the machine itself is to be a host there.
    pub host_interface: Option<String>,
}

/// What the system says of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Its number in the kernel.
    pub(crate) index: u32,
    /// Its Ethernet address.
    pub(crate) mac: Mac,
    /// The largest packet that it takes.
    pub(crate) mtu: u32,
    /// It is switched on and has a carrier.
    pub(crate) up: bool,
}

/// A port.
#[derive(Clone)]
pub(super) struct Port {
    pub(super) settings: PortSettings,
    /// The addresses of the file, or those of the host interface in place of them.
    pub(super) addresses: Vec<InterfaceAddress>,
    /// Addresses of the link that the host interface has.
    pub(super) link_locals: Vec<IpAddr>,
    pub(super) link: Option<Link>,
    pub(super) errors: ErrorRate,
}

impl Port {
    /// Whether the machine itself is a host there.
    pub(super) fn has_host(&self) -> bool {
        self.settings.host_interface.is_some()
    }

    /// The largest packet that leaves by it.
    pub(super) fn mtu(&self) -> u16 {
        let link = self.link.map_or(1500, |link| link.mtu).clamp(68, 65535) as u16;
        self.settings.mtu.map_or(link, |mtu| mtu.min(link))
    }

    /// Whether an address is one of its link.
    pub(super) fn reaches(&self, address: IpAddr) -> bool {
        is_link_local(address) || self.addresses.iter().any(|own| own.prefix().contains(address))
    }

    /// Whether an address is the gateway's own at this port.
    pub(super) fn owns(&self, address: IpAddr) -> bool {
        self.addresses.iter().any(|own| own.address == address)
            || self.link_locals.contains(&address)
            || self.link.is_some_and(|link| IpAddr::V6(link_local(link.mac)) == address)
    }

    /// The own address that a host of the link is asked from.
    pub(super) fn own_for(&self, address: IpAddr) -> Option<IpAddr> {
        let own = self.addresses.iter();
        let near = own.clone().find(|own| own.prefix().contains(address)).map(|own| own.address);
        match address {
            IpAddr::V4(_) => near.or_else(|| own.map(|own| own.address).find(IpAddr::is_ipv4)),
            IpAddr::V6(_) => near.or_else(|| self.link.map(|link| link_local(link.mac).into())),
        }
    }
}

/// An Ethernet address like this one that nobody else on its link has: one that is given out locally, and
/// another number.
pub(super) fn beside(mut mac: Mac) -> Mac {
    mac[0] |= 2;
    mac[5] ^= 1;
    mac
}

/// Whether an address is one of IPv6 that means something on its link only.
pub(super) fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(six) if six.segments()[0] & 0xffc0 == 0xfe80)
}
