//! How much a waypoint remembers, and how long: every limit of this crate.

/// One second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// The shortest and the longest time for which an expectation has its slot to itself.
pub const EXCLUSIVE: std::ops::RangeInclusive<u64> = 300_000_000..=5 * SECOND;

/// This time before the delay of first packets was measured. The paper waits as long.
pub const EXCLUSIVE_AT_FIRST: u64 = 2 * SECOND;

/// How long an expectation stays where nobody else needs its slot: browsers keep an address for 60 s,
/// whatever its time to live says.
pub const TAIL: u64 = 65 * SECOND;

/// How long an initiator may take to prove that it is there: a SYN is repeated after 1 s and after 3 s (RFC
/// 6298, 2).
pub const EMBRYONIC: u64 = 5 * SECOND;

/// After a binding ends, its initiator reaches no other responder by the same address and service for so
/// long.
pub const QUARANTINE: u64 = 120 * SECOND;

/// Addresses of one pool.
pub const MOST_ADDRESSES: usize = 1_024;

/// Expectations of initiators that are known, waiting for their first packet.
pub const MOST_KNOWN: usize = 1 << 19;

/// Expectations of initiators that are not known, at one address.
pub const MOST_AT_ADDRESS: usize = 64;

/// One of so many addresses, and one at least, is kept for responders and resolvers that have less than their
/// share.
pub const RESERVED_OF: usize = 16;

/// Bindings whose initiator has not proved itself.
pub const MOST_EMBRYONIC: usize = 1 << 16;

/// The same, of initiators of one /24.
pub const MOST_EMBRYONIC_OF_PREFIX: u32 = 64;

/// Bindings, quarantined ones included.
pub const MOST_BINDINGS: usize = 1 << 21;

/// Ended bindings and embryonic ones that one call forgets.
pub const FORGOTTEN_AT_ONCE: usize = 64;

/// Bindings of one initiator, quarantined ones included.
pub const MOST_OF_INITIATOR: usize = 4_096;

/// How long an ended binding of an initiator that was not known is remembered if there is room, so that an
/// address that it kept for long leads nowhere and not to another responder.
pub const REMEMBERED: u64 = 600 * SECOND;
