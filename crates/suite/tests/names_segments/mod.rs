//! Segments of the tests of names: their flags, the addresses of the frames around a waypoint, and a header.

use etherparse::TcpHeader;

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) const FIN: u8 = 1;
pub(crate) const SYN: u8 = 2;
pub(crate) const RST: u8 = 4;
pub(crate) const ACK: u8 = 16;

/// The cards of a waypoint's router and of the waypoint itself.
pub(crate) const ROUTER: [u8; 6] = [2, 0, 0x5e, 0, 0, 0xfe];
pub(crate) const WAYPOINT: [u8; 6] = [2, 0, 0x5e, 0, 0, 1];

pub(crate) type Address = [u8; 4];

/// The address that stands for a peer in the tunnel.
pub(crate) fn peer(number: u8) -> [u8; 6] {
    [2, 0x52, 0x56, 0, 0, number]
}

/// The header of a segment; it acknowledges something only with the flag.
pub(crate) fn tcp_header(ports: (u16, u16), seq: u32, ack: u32, flags: u8, window: u16) -> TcpHeader {
    TcpHeader {
        acknowledgment_number: if flags & ACK != 0 { ack } else { 0 },
        fin: flags & FIN != 0,
        syn: flags & SYN != 0,
        rst: flags & RST != 0,
        ack: flags & ACK != 0,
        ..TcpHeader::new(ports.0, ports.1, seq, window)
    }
}
