//! Limits of the work of a program before, after and between packets.

/// The largest number of handlers that run after a packet or in the chain of events that one handler raises.
/// Further ones run before a later packet. As many of those that are due begin before a packet at most,
/// however long the time since the packet before it was.
pub const MAX_RUNS: u32 = 4096;
/// How many handlers of delayed events and of entries that end begin at one moment: with what an end of a
/// binding of names does, in less than half a millisecond.
pub const MAX_DUE_RUNS: u32 = 64;
/// The time (ns) after which one more of them begins. Since time decides, the division of packets into
/// batches changes nothing, and a batch runs at most the handlers of the budget and of its own time. One
/// takes a fraction of this time if what it needs is in the cache, and half of it if not, as where a million
/// bindings of names end together: with less time for each, handlers would leave nothing for packets until
/// all of them have run.
pub const TIME_OF_RUN: u64 = 8_000;
/// Handlers that are late by so much (ns) begin so much more often: by a sixteenth of what time brings.
pub(super) const LATE_ADDS: u64 = 1_000_000_000 / 16;
/// So many pending delayed events add as much, since there is room for [`MAX_TIMERS`] only.
pub(super) const TIMERS_ADD: u64 = MAX_TIMERS as u64 / 512;
/// The most that both add, in sixteenths: handlers begin 250 ns apart then.
pub(super) const MOST_ADDED: u64 = 31 * 16;
/// The time (ns) after which one more periodic handler runs; [`MAX_RUNS`] run at one moment. One that is late
/// then skips whole periods.
pub(super) const TIME_OF_PERIOD: u64 = 250;
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
/// The period (ns) in which exact tables move some entries after a takeover, more of them if no packet comes:
/// a million entries within three seconds.
pub(super) const MOVED_EVERY: u64 = 20_000;
/// The largest number of cells of all counters together.
pub const MAX_CELLS: usize = 1 << 26;
