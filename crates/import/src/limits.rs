//! What bounds the importers' memory, in one place.

/// The most values that the conditions of one policy hold, those of a set counted wherever a rule asks for
/// it.
pub(crate) const MOST_SET_VALUES: usize = 4_000_000;
