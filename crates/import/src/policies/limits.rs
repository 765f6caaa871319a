//! What bounds the readers of NPF and pf, and the writers of NPF and nftables, in one place.

/// The most words that variables and macros put into a file, each use counted.
pub(crate) const MOST_WORDS: usize = 1_000_000;

/// The most ranges of addresses and ports of all rules together; a table counts for each rule that asks it.
pub(crate) const MOST_ASKED_RANGES: usize = 4_000_000;

/// The most rules that one rule of a policy becomes: of NPF one for each protocol, set of flags, type and
/// code, of nftables one for each alternative.
pub(crate) const MOST_RULES_OF_ONE: usize = 4_096;

/// The deepest anchor of pf within anchors.
pub(crate) const DEEPEST_ANCHORS: usize = 32;

/// The most chains of nftables on a way of jumps, the base chain among them; Linux refuses more.
pub(crate) const DEEPEST_CHAINS: usize = 16;

/// The most rules of a written ruleset of nftables.
pub(crate) const MOST_WRITTEN_RULES: usize = 250_000;

/// The most rules that are looked at, again for each port, to find the ports at which any keeps connections.
pub(crate) const MOST_RULES_LOOKED_AT: usize = 4_000_000;

/// The most values that the rules of a written ruleset of nftables hold, those of a set counted in each rule.
pub(crate) const MOST_WRITTEN_VALUES: usize = 1_000_000;
