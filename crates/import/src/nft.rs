//! Linux' nftables: reads what `nft -j list ruleset` prints, and writes rules as `nft -f` and `nft -j -f`
//! take them.
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
//! As with iptables, what depends on more than the packet is refused; the place is that of the statement in
//! the JSON text.

pub(crate) mod document;
pub(crate) mod hooks;
mod matches;
pub(crate) mod operands;
mod read;
#[cfg(test)]
mod tests;
pub(crate) mod value;
mod write;

pub use crate::chains::ChainOptions;
pub use read::read;
pub(crate) use write::is_interface;
pub use write::{ExportLayout, PORTS_OF_PROGRAMS, write_json, write_text};
