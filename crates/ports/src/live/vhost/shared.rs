//! What a virtual machine shares: regions of memory, and where the rings lie in them.

use serde::{Deserialize, Serialize};

/// A part of a machine's memory that is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestRegion {
    /// Its first address at the machine.
    pub start: u64,
    /// Its bytes.
    pub length: u64,
    /// Where it begins in its file.
    pub offset: u64,
}

/// Where a ring lies: addresses at the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingPlace {
    /// How many descriptors it has.
    pub size: u16,
    /// The descriptors.
    pub descriptors: u64,
    /// The ring of available chains.
    pub available: u64,
    /// The ring of used chains.
    pub used: u64,
}

/// What a machine shares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rings {
    /// Its memory, with a file for each region.
    pub regions: Vec<GuestRegion>,
    /// The ring of what it receives.
    pub receive: RingPlace,
    /// The ring of what it sends.
    pub transmit: RingPlace,
    /// Whether it may send long segments, and packets with open checksums.
    pub unfinished: bool,
}

/// What has to be known of a port of this kind. Its descriptors are the bell and the files of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VhostPort {
    /// How many lanes it has: the first receives, all send.
    pub lanes: u16,
    /// Nothing while there is no machine whose driver is ready.
    pub rings: Option<Rings>,
}
