//! The payload of TCP and UDP in a captured frame.

use etherparse::{LaxSlicedPacket, TransportSlice, UdpHeader};
use packet::LinkType;

/// What stands behind the header of TCP or UDP in the IP packet, whatever length UDP's own header gives;
/// `None` for other packets, and for fragments, which are no whole segment.
pub(super) fn of(frame: &[u8], link: LinkType) -> Option<&[u8]> {
    let packet = if link == LinkType::ETHERNET {
        LaxSlicedPacket::from_ethernet(frame).ok()?
    } else {
        LaxSlicedPacket::from_ip(frame).ok()?
    };
    match packet.transport? {
        TransportSlice::Tcp(segment) => Some(segment.payload()),
        TransportSlice::Udp(_) => packet.net?.ip_payload_ref()?.payload.get(UdpHeader::LEN..),
        _ => None,
    }
}
