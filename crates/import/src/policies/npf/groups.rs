//! Groups of NPF as groups of a policy, one for the way in and one for the way out.

use super::Reader;
use super::rule::{Direction, FilterRule};
use crate::policies::endpoints::{all, is, never, with};
use crate::policies::imported::ImportedPolicy;
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, RuleAction, RuleCondition, RuleGroup,
    RulePlace,
};
use std::sync::Arc;

/// A group.
#[derive(Debug)]
pub(super) struct FilterGroup<'a> {
    pub(super) name: &'a str,
    pub(super) is_default: bool,
    pub(super) direction: Direction,
    pub(super) interface: GroupInterface,
    pub(super) place: RulePlace,
    pub(super) text: Arc<str>,
    pub(super) rules: Vec<(RulePlace, Arc<str>, FilterRule)>,
}

/// Which interface a group is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupInterface {
    /// Each.
    Any,
    /// That at a port.
    Port(u16),
    /// The line is refused: no packet fits.
    Refused,
}

impl Reader<'_> {
    /// What the file says.
    pub(super) fn policy(mut self, title: Option<&str>) -> ImportedPolicy {
        let kept = self.groups.iter().map(|group| group.rules.len()).sum();
        // `group default` comes last, wherever it stands.
        self.groups.sort_by_key(|group| group.is_default);
        let mut policy = Policy {
            remembers: self.remembers,
            follows_icmp: self.follows_icmp,
            interfaces: self.bound.to_vec(),
            ..Policy::default()
        };
        for (point, field) in [(HookPoint::In, PacketField::InPort), (HookPoint::Out, PacketField::OutPort)] {
            let base = policy.groups.len();
            let name = if point == HookPoint::In { "in" } else { "out" }.to_owned();
            policy.groups.push(RuleGroup { name, order: MatchOrder::First, rules: Vec::new() });
            let place = self.groups.last().map(|group| group.place).unwrap_or_default();
            policy.hooks.push(Hook { point, group: base, default: RuleAction::Block, place });
            for group in &self.groups {
                if let Some(rules) = group.rules(point, field) {
                    let jump = PolicyRule {
                        place: group.place,
                        text: group.text.clone(),
                        condition: group.condition(field),
                        action: RuleAction::Jump(policy.groups.len()),
                        decides_at_once: false,
                        log: false,
                        count: false,
                    };
                    policy.groups[base].rules.push(jump);
                    policy.groups.push(rules);
                }
            }
        }
        ImportedPolicy { policy, kept, refused: self.refused, skipped: title.map(str::to_owned) }
    }
}

impl FilterGroup<'_> {
    /// Which packets at a point fit the group.
    fn condition(&self, field: PacketField) -> RuleCondition {
        match self.interface {
            GroupInterface::Any => all(),
            GroupInterface::Port(port) => is(field, port.into()),
            GroupInterface::Refused => never(),
        }
    }

    /// The rules for a point; `None` if the group is about the other direction.
    fn rules(&self, point: HookPoint, field: PacketField) -> Option<RuleGroup> {
        let comes_in = point == HookPoint::In;
        let fits = |direction: Direction| if comes_in { direction.comes_in } else { direction.goes_out };
        if !fits(self.direction) {
            return None;
        }
        let mut rules = Vec::new();
        for (place, text, rule) in &self.rules {
            let never_here = !fits(rule.direction);
            // A rule that no packet of the group can match is kept once, where the group is.
            let elsewhere = self.direction.comes_in && self.direction.goes_out;
            if never_here && elsewhere {
                continue;
            }
            for (condition, action) in &rule.parts {
                let interface = rule.interface.map(|port| is(field, port.into()));
                let first = interface.into_iter().chain(never_here.then(never));
                rules.push(PolicyRule {
                    place: *place,
                    text: text.clone(),
                    condition: with(first, condition),
                    action: *action,
                    decides_at_once: rule.is_final,
                    log: rule.log,
                    count: false,
                });
            }
        }
        let side = if comes_in { "in" } else { "out" };
        Some(RuleGroup { name: format!("{} {side}", self.name), order: MatchOrder::Last, rules })
    }
}
