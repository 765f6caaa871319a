//! Limits of the work of a program before, after and between packets.

/// The largest number of handlers that run after a packet, and of delayed and periodic handlers that run at
/// one moment. Further handlers stay due for the next time; a periodic handler that is late then skips whole
/// periods.
pub const MAX_RUNS: u32 = 4096;
/// The time (ns) in which the budget of delayed and periodic handlers grows by one handler, up to
/// [`MAX_RUNS`]. Since time decides, the division of packets into batches changes nothing, and a batch runs
/// at most the handlers of the budget and of its own time.
pub const TIME_OF_RUN: u64 = 250;
/// The largest number of queued events; further events are lost and counted.
pub const MAX_QUEUED: usize = 4096;
/// The largest number of delayed events; further events are lost and counted.
pub const MAX_TIMERS: usize = 65_536;
/// The number of steps before each packet in which the memory of expired entries is reclaimed, however many
/// there are: 2,048 steps in a batch of 256 packets. Until then, expired entries cannot be found, see
/// [`tables::exact::Exact`]. A packet makes fewer entries in a table than are reclaimed, so the number of
/// expired entries falls.
///
/// In addition, a packet may have to remove expired entries that are in its way: the one with its key, one
/// for each new key of a full table, and for each item of a pool that it takes, one in each table that holds
/// items of that pool.
pub const STEPS_BEFORE_PACKET: u32 = 8;
/// As [`STEPS_BEFORE_PACKET`], if time passes without a packet: in a running gateway once a millisecond.
pub const STEPS_WITHOUT_PACKET: u32 = 512;
/// For each of these steps, so many entries are looked at that seem to end first, in tables that raise an
/// event when an entry ends. An entry that was hit ends later and is put back; until the first one that
/// really ends is found, neither entries of these tables end nor timers run.
pub(super) const LOOKS_FOR_STEP: u32 = 8;
/// The largest budget of handlers, in ns.
pub(super) const MOST_CREDIT: u64 = MAX_RUNS as u64 * TIME_OF_RUN;
/// The period (ns) in which exact tables move some entries after a takeover, more of them if no packet comes:
/// a million entries within three seconds.
pub(super) const MOVED_EVERY: u64 = 20_000;
/// The largest number of cells of all counters together.
pub const MAX_CELLS: usize = 1 << 26;
