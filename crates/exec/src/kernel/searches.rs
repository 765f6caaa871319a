//! Searches in tables on a device: which texts they need, and the layout of a table with its rows and default
//! in a buffer.
//!
//! ```text
//! word   0        1       2       3             4          5 …                      32 …
//!      ┌────────┬───────┬──────┬─────────────┬──────────┬───────────────────────┬───────────┬──────────────────────────────┐
//!      │default?│ image │ rows │ value words │ reserved │ default's value words │ image     │ rows, one after the other    │
//!      └────────┴───────┴──────┴─────────────┴──────────┴───────────────────────┴───────────┴──────────────────────────────┘
//! ```
//!
//! Words have 32 bits; places are counted in words from the first one. A value word has 64 bits, the less
//! significant half first. Entries of exact tables contain their value themselves and have no rows.

use super::form::KernelOptions;
use ir::{Program, Table, TableKind};
use tables::rules::RulesSpec;

/// How a table is searched on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KernelSearch {
    /// By the hash of the key.
    Exact,
    /// By the longest prefix.
    Prefixes,
    /// In trees of rules.
    Rules,
    /// By trying the rules one by one.
    RulesLinear,
    /// By an automaton that reads the bytes.
    Automaton,
    /// By Bloom filters over windows of the bytes.
    Bloom,
}

/// Words before the image.
pub const HEADER_WORDS: usize = 32;
/// Where the default's value words begin.
pub const DEFAULT: usize = 5;

/// The texts that searching these tables needs; a search of rules is written for the columns of its table.
pub(super) fn texts(program: &Program, tables: &[u32], searches: &[KernelSearch]) -> String {
    let mut needed = searches.to_vec();
    needed.sort_unstable_by_key(|search| search.text());
    needed.dedup_by_key(|search| search.text());
    let mut text: String = needed.into_iter().flat_map(|search| ["\n", search.text()]).collect();
    for (place, table) in tables.iter().enumerate() {
        let table = &program.tables[*table as usize];
        if let TableKind::Rules { .. } = table.kind {
            let widths = table.keys.iter().map(|column| column.width).collect();
            let spec = RulesSpec { widths, capacity: table.capacity as usize };
            text.push('\n');
            text.push_str(&tables::device::rules::text(&rules_name(place), &spec));
        }
    }
    text
}

/// The function that searches the rules of the kernel's table at this place.
pub(super) fn rules_name(place: usize) -> String {
    format!("rules_t{place}")
}

impl KernelSearch {
    /// The text of the search.
    fn text(self) -> &'static str {
        match self {
            KernelSearch::Exact => tables::device::exact::TEXT,
            KernelSearch::Prefixes => tables::device::lpm::TEXT,
            KernelSearch::Rules | KernelSearch::RulesLinear => tables::device::rules::TEXT,
            KernelSearch::Automaton | KernelSearch::Bloom => tables::device::patterns::TEXT,
        }
    }

    /// How a table is searched.
    pub(super) fn of(table: &Table, options: &KernelOptions) -> KernelSearch {
        match table.kind {
            TableKind::Exact => KernelSearch::Exact,
            TableKind::Lpm => KernelSearch::Prefixes,
            TableKind::Rules { .. } if options.linear_rules => KernelSearch::RulesLinear,
            TableKind::Rules { .. } => KernelSearch::Rules,
            TableKind::Patterns(_) if options.bloom => KernelSearch::Bloom,
            TableKind::Patterns(_) => KernelSearch::Automaton,
        }
    }
}
