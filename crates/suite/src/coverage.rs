//! Which constructs of the language random programs contained, and how often.

use std::collections::BTreeMap;

/// Every construct that the program generator knows; a long enough run must see each of them.
pub const CONSTRUCTS: [&str; 103] = [
    "layout",
    "sub-byte field",
    "wide field",
    "flags",
    "conditional field",
    "conditional bytes",
    "bytes",
    "constraint =",
    "constraint in",
    "length of",
    "next",
    "next when",
    "enum",
    "const",
    "fn",
    "call",
    "decoder loop",
    "stage",
    "stage parameter",
    "decoder parameter",
    "requires",
    "cap",
    "goto",
    "extract",
    "extract all",
    "let",
    "var",
    "assign",
    "set",
    "if",
    "else",
    "match",
    "match guard",
    "range pattern",
    "either pattern",
    "tuple pattern",
    "variant pattern",
    "for",
    "walk",
    "walk payload",
    "break",
    "lookup",
    "learn",
    "learn for",
    "insert",
    "together",
    "remove",
    "insert default",
    "remove default",
    "count",
    "count cell",
    "raise",
    "after",
    "event",
    "expires",
    "every",
    "emit",
    "emit payload",
    "copy",
    "push",
    "pop",
    "encapsulate",
    "decapsulate",
    "truncate",
    "send",
    "flood",
    "multicast",
    "drop",
    "punt",
    "recirculate",
    "set table",
    "tuple table",
    "variant table",
    "static table",
    "evict lru",
    "evict refuse",
    "age",
    "idle",
    "entries",
    "default",
    "exact arithmetic",
    "wrapping arithmetic",
    "saturating arithmetic",
    "division",
    "bits",
    "shift",
    "complement",
    "cast",
    "in",
    "if expression",
    "match expression",
    "comparison",
    "checksum",
    "checksum over payload",
    "checksum over pseudo",
    "pseudo",
    "no checksum",
    "valid",
    "take",
    "multicast group",
    "member joins",
    "member leaves",
    "member chosen",
];

/// How often each construct occurred.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    /// A construct occurred.
    pub fn saw(&mut self, construct: &'static str) {
        debug_assert!(CONSTRUCTS.contains(&construct), "{construct} is not listed");
        *self.0.entry(construct).or_default() += 1;
    }

    /// Adds what another saw.
    pub fn add(&mut self, other: &Coverage) {
        for (construct, times) in &other.0 {
            *self.0.entry(construct).or_default() += times;
        }
    }

    /// How often a construct occurred.
    pub fn times(&self, construct: &str) -> u64 {
        self.0.get(construct).copied().unwrap_or(0)
    }

    /// Constructs that never occurred.
    pub fn missing(&self) -> Vec<&'static str> {
        CONSTRUCTS.into_iter().filter(|construct| self.times(construct) == 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_seen_is_missing() {
        let mut coverage = Coverage::default();
        coverage.saw("emit");
        let mut all = Coverage::default();
        all.add(&coverage);
        all.add(&coverage);
        assert_eq!(all.times("emit"), 2);
        assert_eq!(all.missing().len(), CONSTRUCTS.len() - 1);
    }
}
