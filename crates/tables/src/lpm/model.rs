//! The model of a longest-prefix table, simple enough to be the reference: an ordered map, in which each
//! prefix length is looked up.
//!
//! The idea: the longest prefix that contains an address is found by looking up the address cut to every
//! length, the longest first. That is up to 129 searches of a map, which a judge may take.

use std::collections::BTreeMap;

use super::spec::leading;
use super::{Lpm, LpmInsertError, LpmSpec, LpmSpecError, NONE, Prefix};

/// A longest-prefix table made of one ordered map: the judge of [`LpmTable`](super::LpmTable).
pub struct LpmModel {
    spec: LpmSpec,
    entries: BTreeMap<Prefix, u32>,
}

impl LpmModel {
    /// An empty table; fails if the spec asks for more than there can be.
    pub fn new(spec: LpmSpec) -> Result<LpmModel, LpmSpecError> {
        spec.check()?;
        Ok(LpmModel { spec, entries: BTreeMap::new() })
    }
}

impl Lpm for LpmModel {
    fn insert(&mut self, prefix: Prefix, value: u32) -> Result<Option<u32>, LpmInsertError> {
        self.spec.check_prefix(prefix)?;
        if value == NONE {
            return Err(LpmInsertError::Value);
        }
        if !self.entries.contains_key(&prefix) && self.entries.len() >= self.spec.capacity {
            return Err(LpmInsertError::Full { capacity: self.spec.capacity });
        }
        Ok(self.entries.insert(prefix, value))
    }

    fn remove(&mut self, prefix: Prefix) -> Option<u32> {
        self.entries.remove(&prefix)
    }

    fn find(&self, address: u128) -> Option<u32> {
        self.find_entry(address).map(|(_, value)| value)
    }

    fn find_past(&self, address: u128, over: &dyn Fn(Prefix) -> bool) -> Option<(Prefix, u32)> {
        (0..=self.spec.width).rev().find_map(|length| {
            let prefix = Prefix { bits: address & leading(length, self.spec.width), length };
            self.entries.get(&prefix).filter(|_| !over(prefix)).map(|value| (prefix, *value))
        })
    }

    fn entries_from(&self, first: Prefix) -> impl Iterator<Item = (Prefix, u32)> {
        self.entries.range(first..).map(|(prefix, value)| (*prefix, *value))
    }

    fn len(&self) -> usize {
        self.entries.len()
    }
}
