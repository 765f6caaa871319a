//! The fast table of rules: trees to a few rules each, compared at once, changed a rule at a time.

use super::encode::{Encoded, Layout, checks};
use super::image::Image;
use super::update::{Update, compacted};
use super::{BuildError, Field, Hit, InsertError, Rule, Rules, RulesSpec, partition};
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

/// A fast table of rules. Lookups run over its [`Image`]; [`super::Shared`] lets other threads look up while it is changed.
///
/// ```
/// use tables::rules::{Field, Hit, NONE, Rule, Rules, RulesSpec, Table};
///
/// let spec = RulesSpec { widths: vec![32, 16], capacity: 100 };
/// let web = Rule { fields: vec![Field::Prefix { value: 10 << 24, length: 8 }, Field::Exact(80)] };
/// let rest = Rule { fields: vec![Field::Any, Field::Any] };
/// let mut table = Table::build(&spec, vec![(10, web, 1), (20, rest, 2)])?;
/// assert_eq!(table.find(&[0x0a000001, 80]), Some(Hit { order: 10, value: 1 }));
/// assert_eq!(table.remove(20), Some(2));
/// assert_eq!(table.find_value(&[0x0b000001, 80]), NONE);
/// # Ok::<(), tables::rules::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    spec: RulesSpec,
    limit: usize,
    image: Image,
    encoded: Encoded,
    /// The rules by their number; free numbers hold none.
    rules: Vec<Option<Rule>>,
    free: Vec<u32>,
    orders: BTreeMap<u64, u32>,
    garbage: usize,
}

/// What a table is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
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

impl Table {
    /// A table without rules.
    pub fn new(spec: RulesSpec) -> Result<Table, BuildError> {
        Table::build(&spec, Vec::new())
    }

    /// A table of these rules, given as order, rule and value. Its image may have 1 KiB for every rule of the capacity, and besides
    /// 16 KiB for each up to 8 MiB.
    pub fn build(spec: &RulesSpec, rules: Vec<(u64, Rule, u32)>) -> Result<Table, BuildError> {
        let limit = limit(spec.capacity);
        Table::build_within(spec, rules, limit)
    }

    /// [`Table::build`] with the most bytes that the image may have. Less room means longer leaves and slower lookups; what
    /// cannot be in that room is refused.
    pub fn build_within(
        spec: &RulesSpec,
        mut rules: Vec<(u64, Rule, u32)>,
        limit: usize,
    ) -> Result<Table, BuildError> {
        spec.check()?;
        if let Some((rule, error)) =
            rules.iter().enumerate().find_map(|(at, (_, rule, _))| Some((at, spec.check_rule(rule).err()?)))
        {
            return Err(BuildError::Rule { rule, error });
        }
        let mut seen = BTreeMap::new();
        if let Some((rule, (order, _, _))) =
            rules.iter().enumerate().find(|(at, (order, _, _))| seen.insert(*order, *at).is_some())
        {
            return Err(BuildError::Rule { rule, error: InsertError::Taken { order: *order } });
        }
        if rules.len() > spec.capacity {
            let error = InsertError::Full { capacity: spec.capacity };
            return Err(BuildError::Rule { rule: spec.capacity, error });
        }
        rules.sort_unstable_by_key(|rule| rule.0);
        let layout = Layout::new(spec);
        let mut table = Table {
            spec: spec.clone(),
            limit,
            image: Image::new(layout.clone()),
            encoded: Encoded::new(&layout),
            rules: Vec::with_capacity(rules.len()),
            free: Vec::new(),
            orders: BTreeMap::new(),
            garbage: 0,
        };
        let least = rules.len() * (table.image.slot_bytes() + 16);
        if least > limit {
            return Err(BuildError::Memory { rules: rules.len(), bytes: least, limit });
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
            return Err(BuildError::Memory { rules: table.rules.len(), bytes, limit });
        }
        Ok(table)
    }

    /// The columns and the room it was made with.
    pub fn spec(&self) -> &RulesSpec {
        &self.spec
    }

    /// The flat form that lookups run over.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// What the table is made of now.
    pub fn statistics(&self) -> Statistics {
        Statistics {
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

    /// See [`RulesSpec::at_most`].
    pub(super) fn at_most(spec: &RulesSpec) -> u64 {
        let rules = spec.capacity as u64;
        let kept = Encoded::rule_bytes(&Layout::new(spec)) + size_of::<Option<Rule>>() as u64;
        let fields = (size_of::<Field>() * spec.widths.len()) as u64;
        sizes::roomy(limit(spec.capacity) as u64)
            .saturating_add(sizes::roomy(rules.saturating_mul(kept)))
            .saturating_add(rules.saturating_mul(fields))
            .saturating_add(sizes::grown::<u32>(rules))
            .saturating_add(sizes::ordered_at_most::<u64, u32>(rules))
    }

    /// Grows the trees anew. Many single changes make lookups slower; this makes them as fast as those of a table built now.
    pub fn rebuild(&mut self) -> Result<(), BuildError> {
        *self = Table::build_within(&self.spec, self.entries(), self.limit)?;
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

    /// [`Table::find_value`] for every key of `keys`, which lie one after the other.
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

impl Rules for Table {
    /// Takes about as long as the rule has leaves to be in: a change of one in 10,000 rules far less than 10 ms.
    fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), InsertError> {
        self.spec.check_rule(rule)?;
        if self.orders.contains_key(&order) {
            return Err(InsertError::Taken { order });
        }
        if self.orders.len() >= self.spec.capacity {
            return Err(InsertError::Full { capacity: self.spec.capacity });
        }
        let id = self.note(order, rule.clone(), value);
        self.change(id, true);
        let bytes = self.image.bytes();
        if bytes > self.limit {
            self.remove(order);
            return Err(InsertError::Memory { bytes, limit: self.limit });
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
