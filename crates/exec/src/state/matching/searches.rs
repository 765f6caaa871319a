//! What is asked of the searches of the crate `tables` alone: which memory they take, and lookups without a
//! branch for absent entries.

use super::{Place, ProgramPrefixes, ProgramRules};
use std::sync::Arc;
use tables::{lpm, rules, sizes};

impl ProgramPrefixes<lpm::LpmTable> {
    /// Bytes that it takes as it has been filled.
    pub(in crate::state) fn allocated(&self) -> u64 {
        self.search.allocated() + self.rows.allocated()
    }

    /// As [`ProgramPrefixes::find`] for an address of 32 bits; [`tables::lpm::NONE`] if there is none.
    #[inline]
    pub fn find32(&mut self, address: u32) -> u32 {
        if self.expiry.is_behind() {
            self.find_behind(address.into()).unwrap_or(lpm::NONE)
        } else {
            self.search.find32(address)
        }
    }
}

impl ProgramRules<rules::RulesTable> {
    /// Bytes that it takes as it has been filled.
    pub(in crate::state) fn allocated(&self) -> u64 {
        // For each key and priority: the two reference counts and its places.
        let place = |(place, orders): (&Arc<Place>, &Vec<u64>)| {
            let kept = 2 * size_of::<usize>() + size_of::<Place>();
            kept as u64 + sizes::vector(&place.0) + sizes::vector(orders)
        };
        self.search.allocated()
            + self.rows.allocated()
            + sizes::ordered::<Arc<Place>, Vec<u64>>(self.places.len() as u64)
            + self.places.iter().map(place).sum::<u64>()
            + sizes::ordered::<u64, Arc<Place>>(self.keys.len() as u64)
            + sizes::vector(&self.deadlines)
    }

    /// As [`ProgramRules::find`]; [`tables::rules::NONE`] if there is none.
    #[inline]
    pub fn find_value(&mut self, key: &[u64]) -> u32 {
        if self.expiry.is_behind() {
            self.find_behind(key).unwrap_or(rules::NONE)
        } else {
            self.search.find_value(key)
        }
    }
}
