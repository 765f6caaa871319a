//! What stands before a packet that leaves with an open checksum, for the kernel to see where it is (the
//! transmit metadata of AF_XDP, Linux 6.11: Documentation/networking/xsk-tx-metadata.rst).
//!
//! ```text
//!  0       8       10       12       16       24
//!  | flags | start | offset | nothing | nothing | the packet …
//! ```
//!
//! `start` counts from the packet, `offset` from there to the checksum. Only sockets that copy use it: the
//! kernel then finishes the sum where the interface cannot. A driver that sends frames in place without this
//! ability would send the packet with the open checksum, and say nothing.

use packet::VirtioHeader;

/// Bytes of it (`struct xsk_tx_metadata`).
pub(super) const LENGTH: usize = 24;

/// The metadata of a packet of which nothing is left to do but the checksum of TCP or UDP; `None` for all
/// others.
pub(super) fn of(virtio: &VirtioHeader) -> Option<[u8; LENGTH]> {
    if virtio.segments() {
        return None;
    }
    // That of SCTP is no such sum.
    let (start, offset) = virtio.open_sum().filter(|(_, offset)| matches!(offset, 6 | 16))?;
    let mut bytes = [0; LENGTH];
    bytes[..8].copy_from_slice(&u64::from(libc::XDP_TXMD_FLAGS_CHECKSUM).to_ne_bytes());
    bytes[8..10].copy_from_slice(&start.to_ne_bytes());
    bytes[10..12].copy_from_slice(&offset.to_ne_bytes());
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header that says that the sum from 34 on is open, of this kind of segment.
    fn open(kind: u8, offset: u16) -> VirtioHeader {
        let mut header = [1, kind, 0, 0, 0, 0, 0, 0, 0, 0];
        header[6..8].copy_from_slice(&34u16.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
        VirtioHeader::read(&header)
    }

    #[test]
    fn only_open_sums_of_tcp_and_udp_are_said() {
        for offset in [6u16, 16] {
            let bytes = of(&open(0, offset)).expect("is open");
            assert_eq!(bytes[..8], 2u64.to_ne_bytes());
            assert_eq!([&bytes[8..10], &bytes[10..12]], [34u16.to_ne_bytes(), offset.to_ne_bytes()]);
            assert_eq!(bytes[12..], [0; 12]);
        }
        for none in [VirtioHeader::NONE, open(0, 8), open(1, 16), open(0, 16).without_checksum()] {
            assert_eq!(of(&none), None);
        }
    }
}
