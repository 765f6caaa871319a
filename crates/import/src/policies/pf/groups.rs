//! Rules and anchors of pf as groups of a policy, for the way in and for the way out.

use super::Reader;
use super::rule::FilterRule;
use crate::policies::endpoints::{is, one_of, with};
use crate::policies::imported::ImportedPolicy;
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, Remembers, RuleAction, RuleGroup, RulePlace,
};
use std::sync::Arc;

/// Rules and anchors that follow each other.
#[derive(Debug, Default)]
pub(super) struct Block {
    pub(super) items: Vec<Item>,
}

/// A rule, or an anchor with what stands in it.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) place: RulePlace,
    pub(super) text: Arc<str>,
    pub(super) rule: FilterRule,
    pub(super) inner: Option<Block>,
}

impl Reader<'_> {
    /// What the file says.
    pub(super) fn policy(self, block: &Block) -> ImportedPolicy {
        let remembers = if self.keeps { self.remembers } else { Remembers::Nothing };
        let mut policy =
            Policy { remembers, follows_icmp: true, interfaces: self.bound.to_vec(), ..Policy::default() };
        for (point, field) in [(HookPoint::In, PacketField::InPort), (HookPoint::Out, PacketField::OutPort)] {
            let name = if point == HookPoint::In { "in" } else { "out" };
            let place = RulePlace { line: 1, column: 1 };
            let group = block.group(&mut policy, name.to_owned(), point, field);
            let skips = self.skipped.iter().map(|(port, place)| PolicyRule {
                place: *place,
                text: "set skip".into(),
                condition: is(field, (*port).into()),
                action: RuleAction::Pass,
                decides_at_once: true,
                log: false,
                count: false,
            });
            policy.groups[group].rules.splice(0..0, skips);
            policy.hooks.push(Hook { point, group, default: RuleAction::Pass, place });
        }
        ImportedPolicy { policy, kept: self.kept, refused: self.refused, skipped: None }
    }
}

impl Block {
    /// Makes a group of the rules for a point, behind those that there are. Gives its number.
    fn group(&self, policy: &mut Policy, name: String, point: HookPoint, field: PacketField) -> usize {
        let number = policy.groups.len();
        policy.groups.push(RuleGroup { name, order: MatchOrder::Last, rules: Vec::new() });
        let mut rules = Vec::new();
        for item in &self.items {
            let rule = &item.rule;
            if !(if point == HookPoint::In { rule.comes_in } else { rule.goes_out }) {
                continue;
            }
            let jump = item.inner.as_ref().map(|inner| {
                let name = format!("{} line {}", policy.groups[number].name, item.place.line);
                RuleAction::Jump(inner.group(policy, name, point, field))
            });
            let interfaces = (!rule.interfaces.is_empty()).then(|| {
                let one = |(not, port): &(bool, u16)| {
                    let own = is(field, (*port).into());
                    own.turned(*not)
                };
                one_of(rule.interfaces.iter().map(one).collect())
            });
            for (condition, action) in &rule.parts {
                rules.push(PolicyRule {
                    place: item.place,
                    text: item.text.clone(),
                    condition: with(interfaces.clone(), condition),
                    action: jump.unwrap_or(*action),
                    decides_at_once: rule.quick,
                    log: rule.log,
                    count: false,
                });
            }
        }
        policy.groups[number].rules = rules;
        number
    }
}
