//! A policy with the connections that it remembers, packet by packet.

use crate::packets::{Ends, Sent};
use import::policies::ImportedPolicy;
use policy::{
    HookPoint, PacketField, Policy, Reject, Remembers, RuleAction, State, Step, Unreachable, evaluate,
};
use std::collections::BTreeSet;

/// Where a connection is remembered: a point and a port, a point, or nowhere in particular.
type Place = (Option<HookPoint>, Option<u16>);

pub(crate) struct Firewall {
    policy: Policy,
    connections: BTreeSet<(Ends, Place)>,
}

impl Firewall {
    pub(crate) fn new(imported: &ImportedPolicy) -> Self {
        Self { policy: imported.policy.clone(), connections: BTreeSet::new() }
    }

    fn place(&self, point: HookPoint, port: Option<u16>) -> Place {
        match self.policy.remembers {
            Remembers::KeptByDirection => (Some(point), None),
            Remembers::KeptAtPort => (Some(point), port),
            _ => (None, None),
        }
    }

    /// What happens to a packet, as the models say it.
    pub(crate) fn packet(&mut self, sent: &Sent) -> &'static str {
        let points = [HookPoint::In, HookPoint::Out];
        let mut packet = sent.fields();
        for (at, field) in [PacketField::State, PacketField::OutState].into_iter().enumerate() {
            let here = (sent.ends(), self.place(points[at], sent.ways[at]));
            let back = (sent.answered(), self.place(points[1 - at], sent.ways[at]));
            let known = self.connections.contains(&here) || self.connections.contains(&back);
            packet = packet.with(field, Some(if known { State::Established } else { State::New } as u128));
        }
        let verdict = evaluate(&self.policy, sent.path(), &packet, &|_| false).expect("it ends");
        for (hook, port) in self.policy.hooks.iter().zip(sent.ways) {
            if self.decided(hook.point, &verdict.steps) == Some(RuleAction::Keep) {
                self.connections.insert((sent.ends(), self.place(hook.point, port)));
            }
        }
        match verdict.action {
            RuleAction::Pass => "pass",
            RuleAction::Keep => "keep",
            RuleAction::Block => "block",
            RuleAction::Reject(Reject::TcpReset) => "rst",
            RuleAction::Reject(Reject::ByProtocol) if sent.ends().0 == 6 => "rst",
            RuleAction::Reject(Reject::ByProtocol | Reject::Unreachable(Unreachable::Port)) => "port",
            RuleAction::Reject(Reject::Unreachable(Unreachable::Prohibited)) => "icmp",
            other => panic!("{other:?} is no decision of these filters"),
        }
    }

    /// The action of the rule that decided at a point: the last one there.
    fn decided(&self, point: HookPoint, steps: &[Step]) -> Option<RuleAction> {
        let base = |index: usize| self.policy.hooks[index].group;
        let index = self.policy.hooks.iter().position(|hook| hook.point == point)?;
        // The groups of a hook stand behind its base group, before that of the next hook.
        let groups = base(index)..self.policy.hooks.get(index + 1).map_or(usize::MAX, |hook| hook.group);
        let action = |group: usize, rule: usize| self.policy.groups[group].rules[rule].action;
        steps.iter().rev().find_map(|step| match *step {
            Step::Rule(group, rule) if groups.contains(&group) => {
                let action = action(group, rule);
                (!matches!(action, RuleAction::Continue | RuleAction::Jump(_))).then_some(action)
            }
            Step::Default(hook) if hook == index => Some(self.policy.hooks[hook].default),
            _ => None,
        })
    }
}
