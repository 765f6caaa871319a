//! Entries that raise an event when their time is up.

use crate::pack::MAX_WORDS;
use tables::deadlines::Deadlines;
use tables::exact::{Exact, Learned};
use tables::lpm::Prefix;

/// An entry whose time is up.
pub(super) struct EntryEnd {
    pub(super) time: u64,
    pub(super) table: u32,
    pub(super) key: EndingKey,
}

/// The key of an entry whose time is up.
pub(super) enum EndingKey {
    /// The words of a key of an exact table, and zeros behind them.
    Words([u64; MAX_WORDS]),
    Prefix(Prefix),
}

/// Learns an entry, and lists when it ends if the table has a list.
pub(super) fn learn_listed<E: Exact>(
    table: &mut E,
    deadlines: &mut Option<Box<Deadlines>>,
    key: &[u64],
    value: &[u64],
    now: u64,
) -> Learned {
    let Some(deadlines) = deadlines else { return table.learn(key, value, now) };
    let learned = table.learn_telling(key, value, now, &mut |key| deadlines.forget(key));
    if learned == Learned::New
        && let Some(ends) = table.deadline_of(key)
    {
        deadlines.note(key, ends);
    }
    learned
}
