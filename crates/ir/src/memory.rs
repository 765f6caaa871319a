//! What a program remembers besides tables and counters: meters, registers, pools and groups.

use super::table::{Column, Match, prefix_mask};

/// A meter: each of its cells says of every packet whether it keeps to a rate (RFC 2697, RFC 2698).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meter {
    /// The name in the program.
    pub name: String,
    /// Number of cells, at least 1.
    pub size: u32,
    /// What tokens stand for: packets, or else bytes on the wire.
    pub packets: bool,
    /// In how many seconds the tokens of a rate arrive.
    pub period: u32,
    /// How tokens arrive and are spent.
    pub rates: Rates,
}

/// The rates of a meter; tokens are bytes or packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rates {
    /// Single rate, three colours (RFC 2697).
    Single {
        /// Committed rate, tokens in a period.
        committed: u64,
        /// Committed burst, tokens.
        burst: u64,
        /// Excess burst, tokens.
        excess: u64,
    },
    /// Two rates, three colours (RFC 2698).
    Two {
        /// Committed rate, tokens in a period.
        committed: u64,
        /// Committed burst, tokens.
        burst: u64,
        /// Peak rate, tokens in a period; not below the committed one.
        peak: u64,
        /// Peak burst, tokens.
        peak_burst: u64,
    },
}

/// Numbers that the program reads and writes; all are zero to begin with.
#[derive(Clone, Debug, PartialEq)]
pub struct Register {
    /// The name in the program.
    pub name: String,
    /// Number of cells, at least 1.
    pub size: u32,
    /// Kind and width of a cell.
    pub column: Column,
}

/// Items that are taken and given back, such as address and port pairs. Item `n` is the `n`th combination of
/// its ranges, the last column changing fastest.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The name in the program.
    pub name: String,
    /// The columns of an item.
    pub columns: Vec<Column>,
    /// For every column its first and last value.
    pub ranges: Vec<(u128, u128)>,
}

impl Pool {
    /// How many items there are.
    pub fn items(&self) -> u64 {
        let sizes = self.ranges.iter().map(|(low, high)| high.saturating_sub(*low).saturating_add(1));
        sizes.fold(1, |all: u64, size| all.saturating_mul(u64::try_from(size).unwrap_or(u64::MAX)))
    }

    /// The columns of an item.
    pub fn columns_of(&self, item: u32) -> impl Iterator<Item = u128> {
        let mut above = self.items().max(1);
        let mut rest = u64::from(item);
        self.ranges.iter().map(move |(low, high)| {
            let size = u64::try_from(high - low).map_or(u64::MAX, |span| span.saturating_add(1));
            above /= size;
            let place = rest / above.max(1);
            rest %= above.max(1);
            low + u128::from(place)
        })
    }

    /// The number of an item; `None` if these columns are none.
    pub fn number(&self, columns: &[u128]) -> Option<u32> {
        let mut number = 0;
        for (column, (low, high)) in columns.iter().zip(&self.ranges) {
            if !(low..=high).contains(&column) {
                return None;
            }
            number = number * (high - low + 1) + (column - low);
        }
        u32::try_from(number).ok()
    }
}

/// Members among which flows are shared out by a hash, so that a member that comes or goes moves as few flows
/// as possible.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// The name in the program.
    pub name: String,
    /// Number of independent groups that the declaration makes, at least 1.
    pub size: u32,
    /// Buckets of each: a power of two.
    pub buckets: u32,
    /// The most members of each.
    pub capacity: u32,
    /// Packets go to all members, which are ports that exist.
    pub multicast: bool,
    /// The columns of a member.
    pub columns: Vec<Column>,
    /// Members to begin with.
    pub members: Vec<GroupMember>,
    /// The file whose members belong to it, relative to the program's file: whoever loads the program reads
    /// it.
    pub file: Option<String>,
}

/// A member to begin with: the index of its group, its columns and its weight.
pub type GroupMember = (u32, Vec<u128>, u32);

/// One part of a key that a program makes while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyPart {
    /// A match that is known beforehand.
    Fixed(Match),
    /// This number.
    Exact(super::Value),
    /// The first bits of this number; bits behind them are cleared.
    Prefix(super::Value, u8),
}

impl KeyPart {
    /// The match that it is in this column, with these values of the program.
    pub fn filled(&self, column: &Column, value: impl FnOnce(super::Value) -> u128) -> Match {
        match self {
            KeyPart::Fixed(fixed) => fixed.clone(),
            KeyPart::Exact(number) => Match::Exact(value(*number)),
            KeyPart::Prefix(number, length) => {
                let value = value(*number) & prefix_mask(column.width, *length);
                Match::Prefix { value, length: *length }
            }
        }
    }
}
