//! Limits of what a program does before, after and between packets.

/// Handlers run after a packet at most, and by the clock at once. What is left stays due for the next time; a
/// periodic handler that is behind then skips whole periods.
pub const MAX_RUNS: u32 = 4096;
/// For each such time that passes, ns, one more handler may run by the clock, until [`MAX_RUNS`] may. Counted
/// by time, it is the same however packets come in batches, and a batch does no more than those and what its
/// own time brings.
pub const TIME_OF_RUN: u64 = 250;
/// Events queued at once at most; further ones are refused and counted.
pub const MAX_QUEUED: usize = 4096;
/// Delayed events pending at once at most; further ones are refused and counted.
pub const MAX_TIMERS: usize = 65_536;
/// Entries that have ended are taken out of tables in so many steps before a packet, whatever their number: a
/// batch of 256 packets does 2,048. What is left is as good as gone, see [`tables::exact::Exact`]. A packet
/// makes fewer entries in a table, so what is left becomes less.
///
/// A packet may have to take out what is in its way besides: the entry that ended with its key, one for each
/// new key of a full table, and for each item of a pool that it takes one in each table that holds items of
/// that pool.
pub const STEPS_BEFORE_PACKET: u32 = 8;
/// As [`STEPS_BEFORE_PACKET`], where time passes without a packet and nobody waits: live, once a millisecond.
pub const STEPS_WITHOUT_PACKET: u32 = 512;
/// Time that handlers may use up at once, ns.
pub(super) const MOST_CREDIT: u64 = MAX_RUNS as u64 * TIME_OF_RUN;
/// After a takeover entries of exact tables move so often, ns, some with a packet and more without: a million
/// within three seconds.
pub(super) const MOVED_EVERY: u64 = 20_000;
/// Cells of all counters together at most.
pub const MAX_CELLS: usize = 1 << 26;
