//! Where a frame ends, and what stands at a place of it.

/// Bytes of an Ethernet header.
pub(crate) const HEADER: usize = 14;
/// The shortest frame without its checksum, up to which a frame may be filled (IEEE 802.3).
const SHORTEST: usize = 60;

/// Two bytes of the network.
pub(crate) fn pair(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// Whether a packet of which `length` bytes are known may end there: what follows can only fill the shortest
/// frame.
pub(crate) fn ends(packet: &[u8], length: usize) -> bool {
    packet.len() == length || (packet.len() > length && packet.len() <= SHORTEST - HEADER)
}
