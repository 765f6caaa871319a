//! What bounds the importers' memory, in one place.

/// The most values that the conditions of one policy hold, those of a set counted wherever a rule asks for
/// it.
pub(crate) const MOST_SET_VALUES: usize = 4_000_000;

/// The most members of object groups that the lists of one configuration of IOS use, those of a group counted
/// wherever a line uses it.
pub(crate) const MOST_GROUP_MEMBERS: usize = 1_000_000;

/// How deep object groups of IOS may name each other.
pub(crate) const DEEPEST_GROUPS: usize = 64;

/// The most rules that the access lists of one configuration of IOS become in tables.
pub(crate) const MOST_LIST_RULES: usize = 1_000_000;
