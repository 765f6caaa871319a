//! Lookups by several threads while one thread changes the table: a pointer to the current generation, which
//! is replaced as a whole (as in RCU).
//!
//! The idea: readers look up in an image that never changes. The writer changes its own table, and what it
//! has done becomes visible when it publishes a copy of the image by exchanging one pointer; a reader sees
//! all of it or nothing, never waits, and keeps the generation that it took until it takes the next.

use super::{Rule, Rules, RulesBuildError, RulesImage, RulesInsertError, RulesSpec, RulesTable};
use arc_swap::{ArcSwap, Cache};
use std::sync::Arc;

/// Steps of a sweep for removed rules before a copy, which goes over the whole image in any case.
const SWEPT: usize = 4096;

/// A table that is changed here and read through [`RulesReader`]s.
///
/// ```
/// use tables::rules::{NONE, Rule, RuleField, RulesSpec, RulesTable, SharedRules};
///
/// let any = Rule { fields: vec![RuleField::Any] };
/// let mut rules = SharedRules::new(RulesTable::new(RulesSpec { widths: vec![16], capacity: 8 })?);
/// let mut reader = rules.reader();
/// rules.insert(1, &any, 7).expect("there is room");
/// assert_eq!(reader.image().find_value(&[0]), NONE);
/// rules.publish();
/// assert_eq!(reader.image().find_value(&[0]), 7);
/// # Ok::<(), tables::rules::RulesBuildError>(())
/// ```
#[derive(Debug)]
pub struct SharedRules {
    table: RulesTable,
    current: Arc<ArcSwap<Generation>>,
}

#[derive(Debug)]
struct Generation {
    number: u64,
    image: RulesImage,
}

/// Looks up in the latest published generation; each thread has its own.
#[derive(Clone, Debug)]
pub struct RulesReader {
    current: Cache<Arc<ArcSwap<Generation>>, Arc<Generation>>,
}

impl SharedRules {
    /// Publishes `table` as generation 0.
    pub fn new(table: RulesTable) -> SharedRules {
        let first = Generation { number: 0, image: table.image().clone() };
        SharedRules { table, current: Arc::new(ArcSwap::from_pointee(first)) }
    }

    /// One more reader.
    pub fn reader(&self) -> RulesReader {
        RulesReader { current: Cache::new(Arc::clone(&self.current)) }
    }

    /// The table as the writer sees it, changes that are not published included.
    pub fn table(&self) -> &RulesTable {
        &self.table
    }

    /// [`Rules::insert`], not yet visible to readers.
    pub fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), RulesInsertError> {
        self.table.insert(order, rule, value)
    }

    /// [`Rules::remove`], not yet visible to readers.
    pub fn remove(&mut self, order: u64) -> Option<u32> {
        self.table.remove(order)
    }

    /// Shows readers all changes made so far, at once, and answers the generation's number. Copies the image.
    pub fn publish(&mut self) -> u64 {
        self.table.sweep(SWEPT);
        let number = self.current.load().number + 1;
        self.current.store(Arc::new(Generation { number, image: self.table.image().clone() }));
        number
    }

    /// Replaces the whole set by these rules, for all readers at once, and answers the generation's number.
    /// If they are refused, nothing changes.
    pub fn replace(
        &mut self,
        spec: &RulesSpec,
        rules: Vec<(u64, Rule, u32)>,
    ) -> Result<u64, RulesBuildError> {
        self.table = RulesTable::build(spec, rules)?;
        Ok(self.publish())
    }
}

impl RulesReader {
    /// The image of the latest generation. What is looked up in it while it is borrowed is answered from one
    /// generation.
    #[inline]
    pub fn image(&mut self) -> &RulesImage {
        &self.current.load().image
    }

    /// The image with the number of its generation.
    pub fn generation(&mut self) -> (u64, &RulesImage) {
        let generation = self.current.load();
        (generation.number, &generation.image)
    }
}
