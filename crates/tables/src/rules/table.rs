//! The fast table of rules: trees lead to leaves of a few rules, which are compared at once; changes concern
//! one rule at a time.

use super::encode::{Encoded, Layout, checks};
use super::image::RulesImage;
use super::update::{Update, compacted};
use super::{Hit, Rule, RuleField, Rules, RulesBuildError, RulesInsertError, RulesSpec, partition};
use crate::sizes::{self, room};
use std::collections::BTreeMap;

/// What a table may have besides, bytes; a small one has so many for every rule.
const BASE_LIMIT: usize = 8 << 20;
const SMALL_LIMIT: usize = 16 << 10;
/// What a table may have more for every rule of its capacity, bytes.
const RULE_LIMIT: usize = 1024;

/// The most bytes of an image for so many rules.
pub(super) fn limit(capacity: usize) -> usize {
    let base = SMALL_LIMIT.saturating_mul(capacity.saturating_add(4)).min(BASE_LIMIT);
    base.saturating_add(RULE_LIMIT.saturating_mul(capacity))
}

/// A fast table of rules. Lookups run over its [`RulesImage`]; [`super::SharedRules`] lets other threads look
/// up while it is changed.
///
/// ```
/// use tables::rules::{RuleField, Hit, NONE, Rule, Rules, RulesSpec, RulesTable};
///
/// let spec = RulesSpec { widths: vec![32, 16], capacity: 100 };
/// let web = Rule { fields: vec![RuleField::Prefix { value: 10 << 24, length: 8 }, RuleField::Exact(80)] };
/// let rest = Rule { fields: vec![RuleField::Any, RuleField::Any] };
/// let mut table = RulesTable::build(&spec, vec![(10, web, 1), (20, rest, 2)])?;
/// assert_eq!(table.find(&[0x0a000001, 80]), Some(Hit { order: 10, value: 1 }));
/// assert_eq!(table.remove(20), Some(2));
/// assert_eq!(table.find_value(&[0x0b000001, 80]), NONE);
/// # Ok::<(), tables::rules::RulesBuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RulesTable {
    spec: RulesSpec,
    limit: usize,
    image: RulesImage,
    encoded: Encoded,
    /// The rules by their number; free numbers hold none.
    rules: Vec<Option<Rule>>,
    free: Vec<u32>,
    orders: BTreeMap<u64, u32>,
    garbage: usize,
}

/// What a table is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RulesStatistics {
    /// Rules held.
    pub rules: usize,
    /// Trees that every lookup walks.
    pub trees: usize,
    /// Nodes of all trees.
    pub nodes: usize,
    /// Blocks of rules in all leaves.
    pub blocks: usize,
    /// Bytes of the image.
    pub bytes: usize,
    /// The most bytes it may have.
    pub limit: usize,
}

impl RulesSpec {
    /// Bytes that a fast table of this shape comes to at most, whatever rules come and go: of its image,
    /// beyond whose bound rules are refused, and of what it keeps of every rule. A shape that is refused has
    /// no bound (`u64::MAX`). While a rule is put in there may be more for a moment.
    pub fn at_most(&self) -> u64 {
        if self.check().is_err() {
            return u64::MAX;
        }
        let rules = self.capacity as u64;
        let kept = Encoded::rule_bytes(&Layout::new(self)) + size_of::<Option<Rule>>() as u64;
        let fields = (size_of::<RuleField>() * self.widths.len()) as u64;
        sizes::roomy(limit(self.capacity) as u64)
            .saturating_add(sizes::roomy(rules.saturating_mul(kept)))
            .saturating_add(rules.saturating_mul(fields))
            .saturating_add(sizes::grown::<u32>(rules))
            .saturating_add(sizes::ordered_at_most::<u64, u32>(rules))
    }
}

impl RulesTable {
    /// A table without rules.
    pub fn new(spec: RulesSpec) -> Result<RulesTable, RulesBuildError> {
        RulesTable::build(&spec, Vec::new())
    }

    /// A table of these rules, given as order, rule and value. Its image may have 1 KiB for every rule of the
    /// capacity, and besides 16 KiB for each up to 8 MiB.
    pub fn build(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<RulesTable, RulesBuildError> {
        let limit = limit(spec.capacity);
        RulesTable::build_within(spec, rules, limit)
    }

    /// [`RulesTable::build`] with the most bytes that the image may have. Less room means longer leaves and
    /// slower lookups; what cannot be in that room is refused.
    pub fn build_within(
        spec: &RulesSpec,
        mut rules: Vec<(u64, Rule, u32)>,
        limit: usize,
    ) -> Result<RulesTable, RulesBuildError> {
        spec.check()?;
        if let Some((rule, error)) =
            rules.iter().enumerate().find_map(|(at, (_, rule, _))| Some((at, spec.check_rule(rule).err()?)))
        {
            return Err(RulesBuildError::Rule { rule, error });
        }
        let mut seen = BTreeMap::new();
        if let Some((rule, (order, _, _))) =
            rules.iter().enumerate().find(|(at, (order, _, _))| seen.insert(*order, *at).is_some())
        {
            return Err(RulesBuildError::Rule { rule, error: RulesInsertError::Taken { order: *order } });
        }
        if rules.len() > spec.capacity {
            let error = RulesInsertError::Full { capacity: spec.capacity };
            return Err(RulesBuildError::Rule { rule: spec.capacity, error });
        }
        rules.sort_unstable_by_key(|rule| rule.0);
        let layout = Layout::new(spec);
        let mut table = RulesTable {
            spec: spec.clone(),
            limit,
            image: RulesImage::new(layout.clone()),
            encoded: Encoded::new(&layout),
            rules: Vec::with_capacity(rules.len()),
            free: Vec::new(),
            orders: BTreeMap::new(),
            garbage: 0,
        };
        let least = rules.len() * (table.image.slot_bytes() + 16);
        if least > limit {
            return Err(RulesBuildError::Memory { rules: rules.len(), bytes: least, limit });
        }
        for (order, rule, value) in rules {
            table.note(order, rule, value);
        }
        table.encoded.shrink();
        // So that the map is as small as one can be that was filled one by one.
        table.orders = std::mem::take(&mut table.orders).into_iter().collect();
        partition::grow(&table.encoded, &mut table.image, growth(limit));
        table.image.shrink();
        let bytes = table.image.bytes();
        if bytes > limit {
            return Err(RulesBuildError::Memory { rules: table.rules.len(), bytes, limit });
        }
        Ok(table)
    }

    /// The columns and the room it was made with.
    pub fn spec(&self) -> &RulesSpec {
        &self.spec
    }

    /// The flat form that lookups run over.
    pub fn image(&self) -> &RulesImage {
        &self.image
    }

    /// What the table is made of now.
    pub fn statistics(&self) -> RulesStatistics {
        RulesStatistics {
            rules: self.orders.len(),
            trees: self.image.roots.len(),
            nodes: self.image.nodes.len() / self.image.node_words(),
            blocks: self.image.ids.len() / self.image.slots(),
            bytes: self.image.bytes(),
            limit: self.limit,
        }
    }

    /// Bytes that it takes where it was made of all its rules at once.
    pub fn allocated(&self) -> u64 {
        let rules = self.orders.len() as u64;
        self.image.allocated()
            + self.encoded.allocated()
            + sizes::vector(&self.rules)
            + self.rules.iter().flatten().map(|rule| sizes::vector(&rule.fields)).sum::<u64>()
            + sizes::vector(&self.free)
            + sizes::ordered::<u64, u32>(rules)
    }

    /// Grows the trees anew. Many single changes make lookups slower; this makes them as fast as those of a
    /// table built now.
    pub fn rebuild(&mut self) -> Result<(), RulesBuildError> {
        *self = RulesTable::build_within(&self.spec, self.entries(), self.limit)?;
        Ok(())
    }

    /// The value of the first rule that fits `key`, or [`super::NONE`].
    ///
    /// # Panics
    /// If `key` has not the words that the columns ask for.
    #[inline]
    pub fn find_value(&self, key: &[u64]) -> u32 {
        self.image.find_value(key)
    }

    /// [`RulesTable::find_value`] for every key of `keys`, which lie one after the other.
    ///
    /// # Panics
    /// If `keys` has not the words of as many keys as `values` has places.
    pub fn find_bulk(&self, keys: &[u64], values: &mut [u32]) {
        self.image.find_bulk(keys, values);
    }

    /// Gives a rule that suits the table a number, without putting it into a tree.
    fn note(&mut self, order: u64, rule: Rule, value: u32) -> u32 {
        let id = self.free.pop().unwrap_or(self.rules.len() as u32);
        self.encoded.set(&self.image.layout, id, &rule);
        let mut first = 0;
        if !self.encoded.exact(id) {
            first = self.image.checks.len() as u32;
            let checks = checks(&self.image.layout, &rule);
            room(&mut self.image.checks, checks.len());
            self.image.checks.extend(checks);
        }
        self.image.set_rule(id, order, value, first);
        if id as usize == self.rules.len() {
            room(&mut self.rules, 1);
            self.rules.push(Some(rule));
        } else {
            self.rules[id as usize] = Some(rule);
        }
        self.orders.insert(order, id);
        id
    }

    fn change(&mut self, id: u32, put: bool) {
        let rules = &self.rules;
        let live = |id: u32| rules[id as usize].is_some();
        let mut update = Update::new(&self.encoded, &mut self.image, &live, id, growth(self.limit));
        if put {
            update.put();
        } else {
            update.take();
        }
        self.garbage += update.garbage;
        if self.garbage > self.image.ids.len() / self.image.slots() / 2 || self.image.bytes() > self.limit {
            self.image = compacted(&self.image);
            self.image.checks.clear();
            for (id, rule) in self.rules.iter().enumerate() {
                let Some(rule) = rule else { continue };
                self.image.rules[id][3] = self.image.checks.len() as u32;
                self.image.checks.extend(checks(&self.image.layout, rule));
            }
            self.image.shrink();
            self.garbage = 0;
        }
    }
}

/// Up to how many bytes trees are grown, so that changes have some room left.
fn growth(limit: usize) -> usize {
    limit / 4 * 3
}

impl Rules for RulesTable {
    /// Takes about as long as the rule has leaves to be in: a change of one in 10,000 rules far less than 10
    /// ms.
    fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), RulesInsertError> {
        self.spec.check_rule(rule)?;
        if self.orders.contains_key(&order) {
            return Err(RulesInsertError::Taken { order });
        }
        if self.orders.len() >= self.spec.capacity {
            return Err(RulesInsertError::Full { capacity: self.spec.capacity });
        }
        let id = self.note(order, rule.clone(), value);
        self.change(id, true);
        let bytes = self.image.bytes();
        if bytes > self.limit {
            self.remove(order);
            return Err(RulesInsertError::Memory { bytes, limit: self.limit });
        }
        Ok(())
    }

    fn remove(&mut self, order: u64) -> Option<u32> {
        let id = self.orders.remove(&order)?;
        let value = self.image.rules[id as usize][2];
        self.change(id, false);
        let rule = self.rules[id as usize].take();
        // Its checks stay behind like a block that no entry names.
        self.garbage += rule.map_or(0, |rule| checks(&self.image.layout, &rule).len());
        self.free.push(id);
        Some(value)
    }

    fn find(&self, key: &[u64]) -> Option<Hit> {
        self.image.find(key)
    }

    fn find_past(&self, key: &[u64], over: &dyn Fn(u32) -> bool) -> Option<Hit> {
        self.image.find_past(key, over)
    }

    fn value(&self, order: u64) -> Option<u32> {
        self.orders.get(&order).map(|&id| self.image.rules[id as usize][2])
    }

    fn entries(&self) -> Vec<(u64, Rule, u32)> {
        let entry = |(&order, &id): (&u64, &u32)| {
            let rule = self.rules[id as usize].clone()?;
            Some((order, rule, self.image.rules[id as usize][2]))
        };
        self.orders.iter().filter_map(entry).collect()
    }

    fn len(&self) -> usize {
        self.orders.len()
    }
}
