//! Linux' nftables: reads what `nft -j list ruleset` prints, and writes rules as `nft -f` and `nft -j -f` take them.
//!
//! ```text
//! {"nftables": [
//!   {"table": {"family": "inet", "name": "filter", …}},
//!   {"chain": {"family", "table", "name", "type", "hook", "prio", "policy"}},    the last four in a base chain only
//!   {"set":   {"family", "table", "name", "type", "elem": […]}},
//!   {"rule":  {"family", "table", "chain", "expr": [{"match": {"op", "left", "right"}}, …, {"accept": null}]}}
//! ]}
//! ```
//!
//! As with iptables, what depends on more than the packet is refused; the place is that of the statement in the
//! JSON text.

mod matches;
mod read;
#[cfg(test)]
mod tests;
mod value;
mod write;

pub use read::read;
pub use write::{Layout, write_json, write_text};

use crate::address::Family;

/// What to read of a ruleset, and how strictly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The table.
    pub table: String,
    /// The chain whose decisions are wanted.
    pub chain: String,
    /// The family of the packets: a table of `inet` decides about both.
    pub family: Family,
    /// The names of all interfaces, for names that end in `*`. Without them such a name is refused.
    pub interfaces: Vec<String>,
    /// Whether the rules are read for the first packet of a connection: then it is known whether a match on the
    /// state of a connection fits. Without that such a match is refused.
    pub first_packets: bool,
    /// Rules that cannot be kept are left out and reported, instead of an error for all.
    pub lenient: bool,
    /// The most rules that may come out.
    pub limit: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            table: "filter".to_owned(),
            chain: "forward".to_owned(),
            family: Family::V4,
            interfaces: Vec::new(),
            first_packets: false,
            lenient: false,
            limit: 1_000_000,
        }
    }
}
