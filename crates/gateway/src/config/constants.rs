//! Constants of programs for names that the gateway's file has to agree with.

/// The network of the waypoint's addresses.
pub(super) const POOL: &str = "POOL";
/// Those of them that are the machine's own.
pub(super) const OURS: &str = "OURS";
/// The longest packet that the program sends into a tunnel, in bytes.
pub(super) const TUNNEL_MTU: &str = "TUNNEL_MTU";
