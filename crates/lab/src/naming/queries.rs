//! DNS queries as bytes, and what is read of their replies (RFC 1035, RFC 6891, RFC 7871, RFC 7873).

use std::net::Ipv4Addr;

/// The zone of all names.
pub(super) const ZONE: &str = "home.example";
/// The type of a record with an address of IPv4, and of IPv6.
pub(super) const A: u8 = 1;
pub(super) const AAAA: u8 = 28;

/// Bytes of a client's half of a cookie, and of a whole one.
const HALF: usize = 8;
const WHOLE: usize = 24;

/// What a query tells besides its name.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// The client's half of a cookie, and the server's half if it has one.
    pub(super) cookie: Vec<u8>,
    /// A network of 24 bits that is asked for (RFC 7871).
    pub(super) network: Option<Ipv4Addr>,
}

/// A query for a name below the zone.
pub(super) fn query(number: u16, name: &str, kind: u8, told: &Told) -> Vec<u8> {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([1, 0, 0, 1, 0, 0, 0, 0, 0, 1]);
    for label in std::iter::once(name).chain(ZONE.split('.')) {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.extend([0, 0, kind, 0, 1]);
    let mut options = Vec::new();
    if !told.cookie.is_empty() {
        options.extend([0, 10, 0, told.cookie.len() as u8]);
        options.extend(&told.cookie);
    }
    if let Some(network) = told.network {
        options.extend([0, 8, 0, 7, 0, 1, 24, 0]);
        options.extend(&network.octets()[..3]);
    }
    bytes.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, options.len() as u8]);
    bytes.extend(options);
    bytes
}

/// The client's half of a cookie.
pub(super) fn half_cookie(client: u32) -> Vec<u8> {
    (u64::from(client) | 1 << 40).to_be_bytes().to_vec()
}

/// The whole cookie that a reply gives to this half.
pub(super) fn whole_cookie(half: &[u8], reply: &[u8]) -> Option<Vec<u8>> {
    let place = reply.windows(HALF).position(|part| part == half)?;
    Some(reply.get(place..place + WHOLE)?.to_vec())
}

/// The code of a reply, and how many answers are in it.
pub(super) fn outcome(reply: &[u8]) -> Option<(u8, u16)> {
    let flags = reply.get(3)?;
    Some((flags & 15, u16::from_be_bytes([*reply.get(6)?, *reply.get(7)?])))
}

/// The number of a query or reply.
pub(super) fn number(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes([*message.first()?, *message.get(1)?]))
}
