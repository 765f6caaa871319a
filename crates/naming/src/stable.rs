//! Addresses of IPv6 that each lead to one host, whoever asks: the network of the waypoint and a number that
//! follows from the host.
//!
//! ```text
//!  0                              64                            128
//!  +------------------------------+------------------------------+
//!  |  network of the waypoint     |  number of the host          |
//!  +------------------------------+------------------------------+
//! ```
//!
//! The number is the SipHash-2-4 of the gateway's name and the host's address behind it, so the address is
//! the same after every restart, and nothing has to be kept. It is no secret.

use crate::service::Service;
use siphasher::sip::SipHasher24;
use std::hash::Hasher;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The network in which hosts have such addresses: its first 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StableNetwork(u64);

impl StableNetwork {
    /// The network of /64 that begins with this address.
    pub fn of(first: Ipv6Addr) -> StableNetwork {
        StableNetwork((first.to_bits() >> 64) as u64)
    }

    /// The address of the host that has this address behind the gateway of this name.
    pub fn address(self, gateway: &str, host: Ipv6Addr) -> Ipv6Addr {
        let mut hasher = SipHasher24::new();
        hasher.write(gateway.as_bytes());
        hasher.write(&host.octets());
        // Number 0 is the address of all routers of the network (RFC 4291, 2.6.1).
        Ipv6Addr::from_bits(u128::from(self.0) << 64 | u128::from(hasher.finish().max(1)))
    }

    /// Whether an address is one of this network.
    pub fn contains(self, address: Ipv6Addr) -> bool {
        (address.to_bits() >> 64) as u64 == self.0
    }
}

/// How a host is reached by IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostIpv6 {
    /// It has this address.
    Address(Ipv6Addr),
    /// It has IPv4 alone: its gateway translates.
    Translated,
}

impl HostIpv6 {
    /// The address that a host with this address of IPv4 has behind its gateway (RFC 4291, 2.5.5.2, where it
    /// is translated).
    pub fn behind_gateway(self, host: Ipv4Addr) -> Ipv6Addr {
        match self {
            HostIpv6::Address(address) => address,
            HostIpv6::Translated => host.to_ipv6_mapped(),
        }
    }
}

/// Text that says neither.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither an address of IPv6 nor `translated`")]
pub struct HostIpv6Error(String);

impl FromStr for HostIpv6 {
    type Err = HostIpv6Error;

    fn from_str(text: &str) -> Result<HostIpv6, HostIpv6Error> {
        if text == "translated" {
            return Ok(HostIpv6::Translated);
        }
        let address = text.parse().ok().filter(|address: &Ipv6Addr| address.to_ipv4_mapped().is_none());
        address.map(HostIpv6::Address).ok_or_else(|| HostIpv6Error(text.to_owned()))
    }
}

/// A service as packets of IPv6 have it: there, ICMP has a number of its own (RFC 4443, 1).
pub fn service_of_ipv6(service: Service) -> Service {
    Service { protocol: if service.protocol == 1 { 58 } else { service.protocol }, ..service }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn an_address_is_of_the_network_and_for_one_host_and_always_the_same() {
        let network = StableNetwork::of("2001:db8:100::".parse().expect("an address"));
        let host = |last: u128| Ipv6Addr::from_bits(0xfd00_0010 << 96 | last);
        let mut all = HashSet::new();
        for gateway in ["home", "homf", "hom"] {
            for last in 0..1_000 {
                let address = network.address(gateway, host(last));
                assert!(network.contains(address) && all.insert(address), "{address}");
            }
        }
        // It stands in resolvers and in people's notes: a change of the code must not change it.
        let known: Ipv6Addr = "2001:db8:100:0:32ea:9eba:8918:77c9".parse().expect("an address");
        assert_eq!(network.address("home", host(0x80)), known);
        assert!(!network.contains(host(0x80)));
    }

    #[test]
    fn a_host_has_an_address_or_is_translated() {
        let host = Ipv4Addr::new(10, 0, 0, 80);
        let behind = |text: &str| text.parse::<HostIpv6>().map(|six| six.behind_gateway(host).to_string());
        assert_eq!(behind("fd00:10::80").as_deref(), Ok("fd00:10::80"));
        assert_eq!(behind("translated").as_deref(), Ok("::ffff:10.0.0.80"));
        for text in ["::ffff:10.0.0.81", "10.0.0.80", "none", ""] {
            assert_eq!(behind(text), Err(HostIpv6Error(text.to_owned())));
        }
    }

    #[test]
    fn echo_has_the_number_of_icmpv6() {
        let of = |text: &str| service_of_ipv6(text.parse().expect("a service"));
        assert_eq!(of("icmp"), Service { protocol: 58, port: 0 });
        assert_eq!(of("tcp/22"), Service { protocol: 6, port: 22 });
    }
}
