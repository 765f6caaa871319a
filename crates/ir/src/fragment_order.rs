//! How much may wait for the first fragment of its packet at each worker, and how long, in a program that
//! says `order fragments`.

/// Of how many packets it is remembered which fragments came.
pub const PACKETS: u32 = 16 << 10;

/// How many bytes of frames wait at most (4 MiB); each frame counts as a multiple of 256.
pub const BYTES: u32 = 4 << 20;

/// How many of them are of one source: an address of IPv4, or the first 64 bits of one of IPv6 (256 KiB).
pub const BYTES_OF_SOURCE: u32 = 256 << 10;

/// How long a fragment waits for its first, in nanoseconds (1 s).
pub const WAIT: u64 = 1_000_000_000;

/// How long it is remembered that a first fragment came, in nanoseconds (30 s, as long as `std.fragments`
/// remembers its ports).
pub const REMEMBER: u64 = 30_000_000_000;

/// Bytes that a worker allocates for this (at most 8 MiB).
pub const ALLOCATED: u64 = 8 << 20;
