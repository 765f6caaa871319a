//! Every limit of what a virtual machine shares, in one place.

/// How many regions of memory there are at most: as many as a message of vhost-user has.
pub const MOST_REGIONS: usize = 8;
/// How long they are together at most, in bytes (64 GiB).
pub const MOST_GUEST_MEMORY: u64 = 64 << 30;
/// How many descriptors a ring has at most.
pub const LARGEST_RING: u16 = 1024;
/// The longest frame that comes from there, in bytes: one of the largest IP packet, with what stands before
/// it.
pub const LONGEST_FRAME: usize = (64 << 10) + 64;
