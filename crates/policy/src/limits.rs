//! What bounds a policy, in one place.

/// The most rules that a reader makes of one file, where few lines may become many rules.
pub const MOST_RULES: usize = 1_000_000;

/// The deepest way of jumps from a hook; Linux allows 16 in nftables.
pub const DEEPEST_JUMPS: usize = 64;

/// The most rules that one packet is compared with, jumps that are taken twice counted twice.
pub const MOST_STEPS: usize = 4_000_000;

/// The most nodes of the diagrams of one analysis, of 12 bytes each, and up to 16 bytes for finding it
/// again: less than 2 GiB. No search remembers more pairs of diagrams than this. Lists of ranks and pairs of
/// rules have limits of their own.
pub const MOST_NODES: usize = 64_000_000;

/// The most conditions on earlier packets of a policy that is analysed. Each is a bit of packets, and
/// operations on diagrams go as deep as there are bits.
pub(crate) const MOST_MEMORIES: usize = 1_000;

/// The most ranges of one field by which a set of packets is told.
pub(crate) const MOST_RANGES: usize = 256;

/// The most boxes by which a set of packets is told.
pub(crate) const MOST_BOXES: usize = 4;

/// The most rules and defaults that are named as those that cover another rule; the others are counted.
pub(crate) const MOST_COVERS: usize = 64;

/// The most lists of the first two lines that would decide, of less than 256 bytes each.
pub(crate) const MOST_RANKS: usize = 1_000_000;

/// The most pairs of lines that do the opposite, of less than 64 bytes each. Of each it is looked whether one
/// line matches all packets of the other.
pub(crate) const MOST_PAIRS: usize = 100_000;

/// The most rules of a list each of which is compared with each, by a bit for each pair: 128 MiB. What longer
/// lists do is found out by diagrams.
pub(crate) const MOST_COMPARED_RULES: usize = 32_768;

/// The most pairs of rules, one of them in one of two lists alone, that a comparison of the lists looks at
/// one by one; of more changes it makes diagrams. A comparison with fewer nodes than [`MOST_NODES`] has
/// less of this and of the next limit, by the same part.
pub(crate) const MOST_COMPARED_PAIRS: u64 = 10_000_000;

/// The most nodes that all searches of a comparison look at together, and sets that they are given: some
/// seconds. Of lists whose searches take longer it makes diagrams.
pub(crate) const MOST_SEARCHED_IN_COMPARISON: u64 = 1_000_000_000;

/// The most searches of a comparison that a diagram answers, as they are long. Where more are, diagrams of
/// what decides are faster.
pub(crate) const MOST_LONG_SEARCHES: usize = 100;

/// The part of the nodes of a comparison that its searches may make.
pub(crate) const NODES_BESIDE_SEARCHES: usize = 4;

/// The most nodes that a search among the rules of a list looks at, some milliseconds; what would take
/// longer is found out by a diagram.
pub(crate) const MOST_SEARCHED: u64 = 200_000;

/// The most nodes that all searches of an analysis look at together, and sets that they are given: some
/// minutes.
pub(crate) const MOST_SEARCHED_IN_ALL: u64 = 20_000_000_000;
