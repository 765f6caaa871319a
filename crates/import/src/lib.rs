//! Routes, rules and patterns from the formats in which others keep them: text or bytes in, values out, no
//! I/O.
//!
//! An importer keeps everything that a file means, or refuses the exact line; then nothing of the file is
//! loaded. Rules of all formats become one [`ImportedRules`], which nftables can be told again. What is kept
//! of each format, and what is refused and why, is in `docs/import.md`.

#![forbid(unsafe_code)]

pub mod address;
mod chains;
pub mod cisco;
pub mod classbench;
mod conditions;
pub mod entries;
mod error;
pub mod iptables;
mod keys;
mod limits;
pub mod literals;
pub mod mrt;
pub mod nft;
pub mod policies;
mod rates;
mod region;
pub mod routes;
mod ruleset;
mod services;
pub mod snort;
mod text;

pub use conditions::Naming;
pub use error::ImportError;
pub use ruleset::{ChainPolicy, ImportedRule, ImportedRules, RuleColumn};
