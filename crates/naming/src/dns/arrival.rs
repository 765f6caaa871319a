//! A query as it came: its bytes, where from, by what, and when.

use std::net::{IpAddr, SocketAddr};

/// By what a query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DnsTransport {
    /// Anybody can write any source address.
    Udp,
    /// The source has answered the handshake. The length before each message is the caller's.
    Tcp,
}

/// The time in the two forms that answers need.
#[derive(Clone, Copy, Debug)]
pub struct DnsMoment {
    /// Nanoseconds that never go back.
    pub now: u64,
    /// Seconds since 1970, modulo 2³²; only in cookies, which other servers may check (RFC 9018, 4.3).
    pub unix: u32,
}

/// A query as it came.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'a> {
    /// The message.
    pub bytes: &'a [u8],
    /// Who seems to have sent it.
    pub from: SocketAddr,
    /// By what it came.
    pub transport: DnsTransport,
    /// When it came.
    pub at: DnsMoment,
    /// Work is waiting elsewhere: unverified sources are asked to prove themselves first.
    pub under_load: bool,
}

/// An address as it is on the wire: IPv4 in a socket of IPv6 is IPv4.
pub(crate) fn source(from: SocketAddr) -> IpAddr {
    from.ip().to_canonical()
}
