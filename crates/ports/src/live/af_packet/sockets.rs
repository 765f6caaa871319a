//! The sockets of a lane of AF_PACKET, and how packets lie in its ring.

use crate::live::frame_ring::FrameRing;
use std::os::fd::OwnedFd;

/// Where the packet begins in a frame of the ring.
pub(super) const FIRST: usize = 256;
/// Bytes of a VLAN tag.
pub(super) const TAG: usize = 4;

/// The sockets of a lane.
pub(super) struct OpenLane {
    pub(super) incoming: OwnedFd,
    pub(super) ring: FrameRing,
    pub(super) outgoing: SendSockets,
}

/// The sockets by which a lane sends.
pub(super) struct SendSockets {
    /// Past the queueing discipline of the interface.
    pub(super) direct: OwnedFd,
    /// Through it.
    pub(super) queued: OwnedFd,
}
