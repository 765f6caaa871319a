//! The fast table of rules: trees lead to leaves of a few rules, which are compared at once; changes concern
//! one rule at a time.

use super::dead::{DeadRule, DeadRules, SweepStep};
use super::encode::{Encoded, Layout, checks};
use super::free::FreeRuns;
use super::image::RulesImage;
use super::leaves::{Exhausted, Leaves};
use super::update::{MOST_LAST_STEPS, Update};
use super::{Hit, Rule, RuleField, Rules, RulesBuildError, RulesInsertError, RulesSpec, partition};
use crate::reserved::Reserved;
use crate::sizes;
use std::collections::BTreeMap;

/// What a table may have besides, bytes; a small one has so many for every rule.
const BASE_LIMIT: usize = 8 << 20;
const SMALL_LIMIT: usize = 16 << 10;
/// Steps of the sweep for dead rules with each change: blocks that it goes over. A leaf is swept whole.
const SWEPT: usize = 32;
/// How many numbers there are for each rule of the capacity, since dead rules keep theirs for a time.
const NUMBERS_FOR_RULE: usize = 2;
/// The home of a rule that is in no tree.
pub(super) const NOWHERE: u32 = u32::MAX;
/// What a table may have more for every rule of its capacity, bytes.
const RULE_LIMIT: usize = 1024;
/// A build grows its trees as if the table had room for one in so many more rules than it is built of, so it
/// costs what its rules cost, whatever the capacity.
const SPARE_RULES: usize = 4;

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
    pub(super) leaves: Leaves,
    pub(super) encoded: Encoded,
    /// The tree that each rule is in, by the rule's number; [`NOWHERE`] for those that are free or dead.
    pub(super) homes: Reserved<u32>,
    free: Reserved<u32>,
    /// The number of each rule, and the rule.
    orders: BTreeMap<u64, (u32, Rule)>,
    free_checks: FreeRuns,
    dead: DeadRules,
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
    /// Blocks of rules, in leaves or free.
    pub blocks: usize,
    /// Bytes of the image.
    pub bytes: usize,
    /// The most bytes it may have.
    pub limit: usize,
}

impl RulesSpec {
    /// Bytes that a fast table of this shape comes to at most, whatever rules come and go: of its image,
    /// beyond whose bound rules are refused, and of what it keeps of every rule. A shape that is refused has
    /// no bound (`u64::MAX`). While a rule is put in there may be more for a moment. Pages that a part of the
    /// image has once touched stay: parts that are large one after the other can come to more together.
    pub fn at_most(&self) -> u64 {
        if self.check().is_err() {
            return u64::MAX;
        }
        let rules = self.capacity as u64;
        let kept = Encoded::rule_bytes(&Layout::new(self)) + size_of::<u32>() as u64;
        let fields = (size_of::<RuleField>() * self.widths.len()) as u64;
        let limit = limit(self.capacity) as u64;
        let image = RulesImage::new(Layout::new(self), 0);
        // Dead rules keep their numbers for a time.
        let numbers = rules.saturating_mul(NUMBERS_FOR_RULE as u64);
        let checks =
            (limit / RulesImage::CHECK_BYTES as u64).min(numbers.saturating_mul(self.widths.len() as u64));
        sizes::roomy(limit)
            .saturating_add(Leaves::at_most(limit / image.block_bytes() as u64))
            .saturating_add(FreeRuns::at_most(checks))
            .saturating_add(sizes::grown::<DeadRule>(numbers))
            .saturating_add(sizes::roomy(numbers.saturating_mul(kept)))
            .saturating_add(rules.saturating_mul(fields))
            .saturating_add(sizes::grown::<u32>(numbers))
            .saturating_add(sizes::ordered_at_most::<u64, (u32, Rule)>(rules))
    }
}

impl RulesTable {
    /// A table without rules.
    pub fn new(spec: RulesSpec) -> Result<RulesTable, RulesBuildError> {
        RulesTable::build(&spec, Vec::new())
    }

    /// A table of these rules, given as order, rule and value. Its image may have 1 KiB for every rule of the
    /// capacity, and besides 16 KiB for each up to 8 MiB. The capacity changes nothing else.
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
            image: RulesImage::new(layout.clone(), limit),
            leaves: Leaves::new(limit),
            encoded: Encoded::new(&layout, limit),
            homes: Reserved::new(limit),
            free: Reserved::new(limit),
            orders: BTreeMap::new(),
            free_checks: FreeRuns::default(),
            dead: DeadRules::default(),
        };
        let least = rules.len() * (table.image.slot_bytes() + 16);
        if least > limit {
            return Err(RulesBuildError::Memory { rules: rules.len(), bytes: least, limit });
        }
        let count = rules.len();
        let refused = |Exhausted { bytes }| RulesBuildError::Memory { rules: count, bytes, limit };
        let growth = growth(limit.min(self::limit(count + count / SPARE_RULES)));
        for (order, rule, value) in rules {
            table.note(order, rule, value).map_err(refused)?;
        }
        table.encoded.shrink();
        // So that the map is as small as one can be that was filled one by one.
        table.orders = std::mem::take(&mut table.orders).into_iter().collect();
        table.leaves = partition::grow(&table.encoded, &mut table.image, &mut table.homes, growth, limit)
            .map_err(refused)?;
        table.image.shrink();
        table.leaves.shrink();
        let bytes = table.image.bytes();
        if bytes > limit {
            return Err(refused(Exhausted { bytes }));
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
            + self.homes.taken()
            + self.orders.values().map(|(_, rule)| sizes::vector(&rule.fields)).sum::<u64>()
            + self.leaves.allocated()
            + self.dead.allocated()
            + self.free.taken()
            + self.free_checks.allocated()
            + sizes::ordered::<u64, (u32, Rule)>(rules)
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

    /// Gives a rule that suits the table a number, without putting it into a tree. Where the image has no
    /// room for it, nothing has changed.
    fn note(&mut self, order: u64, rule: Rule, value: u32) -> Result<u32, Exhausted> {
        let checks = checks(&self.image.layout, &rule);
        let count = checks.len() as u32;
        let used = if count == 0 { None } else { self.free_checks.take(count) };
        let new_checks = if used.is_none() { checks.len() } else { 0 };
        let bytes = self.image.bytes()
            + size_of_val(&checks[..new_checks])
            + if self.free.is_empty() { RulesImage::RULE_BYTES } else { 0 };
        if bytes > self.limit {
            if let Some(first) = used {
                self.free_checks.give(first, count);
            }
            return Err(Exhausted { bytes });
        }
        let id = match self.free.last() {
            Some(&id) => {
                self.free.truncate(self.free.len() - 1);
                id
            }
            None => {
                self.homes.push(NOWHERE);
                self.homes.len() as u32 - 1
            }
        };
        self.encoded.set(&self.image.layout, id, &rule);
        let first = self.image.put_checks(used, &checks);
        self.image.set_rule(id, order, value, first);
        self.orders.insert(order, (id, rule));
        Ok(id)
    }

    /// Takes the rule at `order` from its number; also the reverse of [`RulesTable::note`].
    fn take_back(&mut self, order: u64) -> Option<DeadRule> {
        let (id, rule) = self.orders.remove(&order)?;
        self.homes[id as usize] = NOWHERE;
        Some(DeadRule { id, checks: checks(&self.image.layout, &rule).len() as u32 })
    }

    /// Makes the number and the checks of a rule that no leaf names any more free.
    fn make_free(&mut self, rule: DeadRule) {
        if rule.checks > 0 {
            // None is cut off at the end, since slots that fit no key any more may still lead there.
            self.free_checks.give(self.image.first_check(rule.id), rule.checks);
        }
        self.free.push(rule.id);
    }

    /// Runs one change of one rule.
    fn update<R>(&mut self, id: u32, change: impl FnOnce(&mut Update) -> R) -> R {
        let (image, leaves) = (&mut self.image, &mut self.leaves);
        change(&mut Update::new(&self.encoded, image, leaves, &self.homes, id, growth(self.limit)))
    }
}

/// Up to how many bytes trees are grown, so that changes have some room left.
fn growth(limit: usize) -> usize {
    limit / 4 * 3
}

impl Rules for RulesTable {
    /// Takes at most so many steps, however many rules there are: see `docs/tables/rules.md`.
    fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), RulesInsertError> {
        self.spec.check_rule(rule)?;
        if self.orders.contains_key(&order) {
            return Err(RulesInsertError::Taken { order });
        }
        if self.orders.len() >= self.spec.capacity {
            return Err(RulesInsertError::Full { capacity: self.spec.capacity });
        }
        let limit = self.limit;
        let refused = |Exhausted { bytes }| RulesInsertError::Memory { bytes, limit };
        self.sweep(SWEPT);
        if self.free.is_empty() && self.homes.len() >= NUMBERS_FOR_RULE * self.spec.capacity {
            return Err(RulesInsertError::Removing);
        }
        let id = self.note(order, rule.clone(), value).map_err(refused)?;
        let Some(home) = self.update(id, |update| update.tree()) else {
            if let Some(rule) = self.take_back(order) {
                self.make_free(rule);
            }
            return Err(RulesInsertError::Spread { most: MOST_LAST_STEPS });
        };
        self.homes[id as usize] = home;
        let put = self.update(id, |update| update.put(home));
        if put.is_err() {
            self.remove(order);
        }
        put.map_err(refused)
    }

    fn set_value(&mut self, order: u64, value: u32) -> Option<u32> {
        let id = self.orders.get(&order)?.0;
        Some(std::mem::replace(&mut self.image.rules[id as usize][2], value))
    }

    fn remove(&mut self, order: u64) -> Option<u32> {
        let id = self.orders.get(&order)?.0;
        let value = self.image.rules[id as usize][2];
        let home = self.homes[id as usize];
        let taken = self.update(id, |update| update.take(home));
        let dead = self.take_back(order)?;
        if taken {
            self.make_free(dead);
        } else {
            self.image.bury(id);
            self.dead.add(dead);
        }
        self.sweep(SWEPT);
        Some(value)
    }

    fn sweep(&mut self, steps: usize) -> usize {
        let mut left = steps;
        while left > 0
            && let Some(step) = self.dead.step(self.image.block_count())
        {
            match step {
                SweepStep::Leaf(block) => {
                    let live = |id: u32| self.homes[id as usize] != NOWHERE;
                    let held = self.leaves.sweep(&mut self.image, block, live);
                    self.dead.passed(held);
                    left = left.saturating_sub(held);
                }
                SweepStep::Free(rule) => {
                    self.image.unbury(rule.id);
                    self.make_free(rule);
                    left -= 1;
                }
            }
        }
        left
    }

    fn has_dead(&self) -> bool {
        self.image.dead > 0
    }

    fn find(&self, key: &[u64]) -> Option<Hit> {
        self.image.find(key)
    }

    fn find_past(&self, key: &[u64], over: &dyn Fn(u32) -> bool) -> Option<Hit> {
        self.image.find_past(key, over)
    }

    fn value(&self, order: u64) -> Option<u32> {
        self.orders.get(&order).map(|&(id, _)| self.image.rules[id as usize][2])
    }

    fn entries(&self) -> Vec<(u64, Rule, u32)> {
        let value = |id: u32| self.image.rules[id as usize][2];
        self.orders.iter().map(|(&order, (id, rule))| (order, rule.clone(), value(*id))).collect()
    }

    fn len(&self) -> usize {
        self.orders.len()
    }
}
