//! The source guard: says of each frame of a router's services whether it carries the router's own addresses,
//! before any program sees it.
//!
//! A VNIC is the only link of a container whose root may be anybody. What comes from there is judged here
//! first, by rules that no policy changes: the Ethernet address is the router's, and so is every address by
//! which others would learn who is where, in ARP, IPv4, IPv6 and Neighbour Discovery. What is not understood
//! exactly is refused, by a named [`SourceRefusal`].
//!
//! The guard judges a whole, finished frame. A segment that is still to be cut, or a checksum that is still
//! to be written into the frame, would change bytes after they were judged, so whoever asks cuts and finishes
//! first.

#![forbid(unsafe_code)]

mod arp;
mod bounds;
mod ethernet;
mod icmpv6;
mod ipv4;
mod ipv6;
mod own;
mod refusal;

pub use own::OwnAddresses;
pub use refusal::SourceRefusal;

/// Judges the frames of one router.
#[derive(Clone, Debug)]
pub struct Guard {
    own: OwnAddresses,
}

impl Guard {
    /// A guard of a router with these addresses.
    pub fn new(own: OwnAddresses) -> Guard {
        Guard { own }
    }

    /// Whether a frame, from its Ethernet header on, may go to the program.
    ///
    /// # Errors
    /// Why it may not.
    #[inline]
    pub fn judge(&self, frame: &[u8]) -> Result<(), SourceRefusal> {
        ethernet::judge(&self.own, frame)
    }
}
