//! Seeded generators: routes, rule sets with their traces, addresses to look up, and payload with planted
//! patterns.
//!
//! Each is pure and answers the same for the same seed on every machine: there is no floating-point
//! arithmetic and no order that depends on a hash. Time and memory grow with what is asked for. The shapes
//! (lengths of prefixes, how deep they nest, classes of ports, shares of protocols) are rounded from
//! published statistics, named where the constants stand.

pub mod addresses;
pub mod payload;
mod random;
pub mod routes;
pub mod rules;
pub mod trace;

pub use random::{Random, Weighted};

/// The version of the Internet Protocol that addresses belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 32 bits.
    V4,
    /// 128 bits.
    V6,
}

impl Version {
    /// Bits of an address.
    pub fn width(self) -> u8 {
        match self {
            Version::V4 => 32,
            Version::V6 => 128,
        }
    }
}

/// Writes an address (an integer of the version's width) as text: dotted decimal, or RFC 5952.
fn write_address(out: &mut impl std::fmt::Write, version: Version, address: u128) -> std::fmt::Result {
    match version {
        Version::V4 => write!(out, "{}", std::net::Ipv4Addr::from_bits(address as u32)),
        Version::V6 => write!(out, "{}", std::net::Ipv6Addr::from_bits(address)),
    }
}
