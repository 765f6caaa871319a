//! Every limit of what a virtual machine shares, in one place.

/// How many regions of memory there are at most: as many as a message of vhost-user has.
pub const MOST_REGIONS: usize = 8;
/// How long they are together at most, in bytes (4 GiB): a page that the machine has not used yet and lets
/// the core look at is counted to the core.
pub const MOST_GUEST_MEMORY: u64 = 4 << 30;
/// How many descriptors a ring has at most.
pub const LARGEST_RING: u16 = 1024;
/// How many descriptors a chain has at most: a frame that is not cut has some twenty.
pub const LONGEST_CHAIN: u32 = 64;
/// After so many descriptors a batch begins no further chain: chains of many that carry little have no more
/// of the time.
pub const STEPS_AT_ONCE: u32 = 2048;
/// After so many copied bytes it begins none, either, those of frames that are lost included.
pub const BYTES_AT_ONCE: usize = 1 << 20;
/// The longest frame that comes from there, in bytes: one of the largest IP packet, with what stands before
/// it.
pub const LONGEST_FRAME: usize = (64 << 10) + 64;
