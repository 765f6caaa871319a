//! The network of an address, as limits count it.

use std::net::IpAddr;

/// A /24 of IPv4 or a /56 of IPv6, as a number. The two kinds never meet.
pub fn network(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => 0xffff_0000_0000 | u128::from(address.to_bits() >> 8),
        IpAddr::V6(address) => address.to_bits() >> 72 << 72,
    }
}

/// Whether an address begins with these bits of a network. The two kinds never meet.
pub(crate) fn is_in(address: IpAddr, (network, length): (IpAddr, u8)) -> bool {
    let differ = match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => u128::from(address.to_bits() ^ network.to_bits())
            .checked_shr(32_u32.saturating_sub(length.into())),
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            (address.to_bits() ^ network.to_bits()).checked_shr(128_u32.saturating_sub(length.into()))
        }
        _ => return false,
    };
    differ.unwrap_or(0) == 0
}
