//! The network of an address, as limits count it.

use std::net::IpAddr;

/// A /24 of IPv4 or a /56 of IPv6, as a number. The two kinds never meet.
pub fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => 0xffff_0000_0000 | u128::from(address.to_bits() >> 8),
        IpAddr::V6(address) => address.to_bits() >> 72 << 72,
    }
}
