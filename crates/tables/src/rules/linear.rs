//! The reference algorithm: tries the rules in order until one fits.

use super::{Hit, Rule, Rules, RulesBuildError, RulesInsertError, RulesSpec};
use std::collections::BTreeMap;

/// Rules tried one after the other. Slow and obviously right.
///
/// ```
/// use tables::rules::{Hit, Linear, Rule, RuleField, Rules, RulesSpec};
///
/// let mut rules = Linear::new(RulesSpec { widths: vec![32, 16], capacity: 10 })?;
/// let web = Rule { fields: vec![RuleField::Prefix { value: 10 << 24, length: 8 }, RuleField::Exact(80)] };
/// rules.insert(5, &web, 1)?;
/// rules.insert(9, &Rule { fields: vec![RuleField::Any, RuleField::Range { low: 0, high: 1023 }] }, 2)?;
/// assert_eq!(rules.find(&[0x0a000001, 80]), Some(Hit { order: 5, value: 1 }));
/// assert_eq!(rules.find(&[0x0b000001, 80]), Some(Hit { order: 9, value: 2 }));
/// assert_eq!(rules.find(&[0x0b000001, 8080]), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Linear {
    spec: RulesSpec,
    rules: BTreeMap<u64, (Rule, u32)>,
}

impl Linear {
    /// A table without rules.
    pub fn new(spec: RulesSpec) -> Result<Linear, RulesBuildError> {
        spec.check()?;
        Ok(Linear { spec, rules: BTreeMap::new() })
    }

    /// A table of these rules, given as order, rule and value.
    pub fn build(spec: &RulesSpec, rules: &[(u64, Rule, u32)]) -> Result<Linear, RulesBuildError> {
        let mut table = Linear::new(spec.clone())?;
        for (rule, (order, fields, value)) in rules.iter().enumerate() {
            table.insert(*order, fields, *value).map_err(|error| RulesBuildError::Rule { rule, error })?;
        }
        Ok(table)
    }

    /// The columns and the room it was made with.
    pub fn spec(&self) -> &RulesSpec {
        &self.spec
    }
}

impl Rules for Linear {
    fn insert(&mut self, order: u64, rule: &Rule, value: u32) -> Result<(), RulesInsertError> {
        self.spec.check_rule(rule)?;
        if self.rules.contains_key(&order) {
            return Err(RulesInsertError::Taken { order });
        }
        if self.rules.len() >= self.spec.capacity {
            return Err(RulesInsertError::Full { capacity: self.spec.capacity });
        }
        self.rules.insert(order, (rule.clone(), value));
        Ok(())
    }

    fn set_value(&mut self, order: u64, value: u32) -> Option<u32> {
        self.rules.get_mut(&order).map(|rule| std::mem::replace(&mut rule.1, value))
    }

    fn remove(&mut self, order: u64) -> Option<u32> {
        self.rules.remove(&order).map(|(_, value)| value)
    }

    fn find(&self, key: &[u64]) -> Option<Hit> {
        self.find_past(key, &|_| false)
    }

    fn find_past(&self, key: &[u64], over: &dyn Fn(u32) -> bool) -> Option<Hit> {
        let columns = self.spec.columns(key);
        let mut rules = self.rules.iter().filter(|(_, (_, value))| !over(*value));
        let (&order, &(_, value)) = rules.find(|(_, (rule, _))| rule.fits(&self.spec.widths, &columns))?;
        Some(Hit { order, value })
    }

    fn value(&self, order: u64) -> Option<u32> {
        self.rules.get(&order).map(|(_, value)| *value)
    }

    fn entries(&self) -> Vec<(u64, Rule, u32)> {
        self.rules.iter().map(|(&order, (rule, value))| (order, rule.clone(), *value)).collect()
    }

    fn len(&self) -> usize {
        self.rules.len()
    }
}
