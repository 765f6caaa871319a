//! Tables of rules: fields that name one value, a prefix, masked bits or a range, where the first rule in
//! order that fits wins.
//!
//! `Linear` tries the rules one after the other, as the literature's reference algorithm does; it is easy to
//! believe and judges the other. [`RulesTable`] is the fast one: trees that pick bits of the key and lead
//! to a handful of rules, which are then compared all at once. How it works, and the bytes of its image, are
//! in `docs/tables/rules.md`.

#[cfg(feature = "device")]
mod bytes;
mod dead;
pub(crate) mod encode;
pub(crate) mod fields;
mod free;
#[cfg(feature = "hygiene")]
mod hygiene;
mod image;
mod leaves;
#[cfg(feature = "reference")]
mod linear;
mod partition;
#[cfg(feature = "fastest")]
mod shared;
mod table;
mod tree;
mod update;
#[cfg(all(feature = "fastest", target_arch = "x86_64"))]
mod wide;

#[cfg(feature = "device")]
pub use bytes::RulesImageError;
pub use fields::{
    MAX_CAPACITY, MAX_COLUMNS, MAX_WIDTH, Rule, RuleField, RulesBuildError, RulesInsertError, RulesSpec,
};
#[cfg(feature = "hygiene")]
pub use hygiene::{HygieneFinding, HygieneKind, MOST_WORK, hygiene};
pub use image::{MOST_PACKED_WORDS, RulesImage};
#[cfg(feature = "reference")]
pub use linear::Linear;
#[cfg(feature = "fastest")]
pub use shared::{RulesReader, SharedRules};
pub use table::{RulesStatistics, RulesTable};

/// What a table of values answers where no rule fits.
pub const NONE: u32 = u32::MAX;

/// The rule that a key hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The place of the rule: no rule with a smaller one fits the key.
    pub order: u64,
    /// What the rule was given when it was put in.
    pub value: u32,
}

/// What every table of rules can do, whatever its inside.
///
/// A key is one word a column, or two, the upper 64 bits first, where the column is wider than 64 bits. Bits
/// of a word above the column's width are ignored.
pub trait Rules {
    /// Puts `rule` at `order`, before all rules of a larger order. Refuses a rule that does not suit the
    /// columns, an order that is taken and a rule more than the capacity; then nothing has changed.
    fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), RulesInsertError>;
    /// Gives the rule at `order` another value and answers the one that it had; `None` if there is none.
    fn set_value(&mut self, order: u64, value: u32) -> Option<u32>;
    /// Takes out the rule at `order` and answers its value; `None` if there is none.
    fn remove(&mut self, order: u64) -> Option<u32>;
    /// Goes on to take out what removed rules have left behind, which makes lookups that hit it slower.
    /// Begins nothing more after so many steps, and answers how many it has not taken: 0 if more may be left.
    fn sweep(&mut self, steps: usize) -> usize {
        steps
    }
    /// Whether something is left of removed rules.
    fn has_dead(&self) -> bool {
        false
    }
    /// The first rule that fits `key`.
    ///
    /// # Panics
    /// If `key` has not the words that the columns ask for.
    fn find(&self, key: &[u64]) -> Option<Hit>;
    /// The first rule that fits `key` and whose value is not passed over. It takes no longer than a search
    /// that finds nothing, besides what `over` takes.
    ///
    /// # Panics
    /// If `key` has not the words that the columns ask for.
    fn find_past(&self, key: &[u64], over: &dyn Fn(u32) -> bool) -> Option<Hit>;
    /// The value of the rule at `order`.
    fn value(&self, order: u64) -> Option<u32>;
    /// All rules in order: their order, the rule, its value.
    fn entries(&self) -> Vec<(u64, Rule, u32)>;
    /// The rules held.
    fn len(&self) -> usize;
    /// Whether it holds no rule.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests;
