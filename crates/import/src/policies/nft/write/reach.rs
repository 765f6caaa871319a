//! Which packets come to the groups of a policy, and the ways to meet the conditions of the rules there.

use super::ways::{ALL_STATES, Unsayable, Way, ways};
use crate::address::AddressFamily;
use policy::{Hook, HookPoint, MatchOrder, Policy, RuleAction, RulePlace};
use std::collections::BTreeMap;

/// The ways to meet the condition of a rule, for packets of IPv4 and of IPv6.
pub(super) type FamilyWays = [Vec<Way>; 2];

/// Which packets come somewhere: those of these families that come by these points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Arrivals {
    /// A bit for each point.
    points: u8,
    /// A bit for IPv4 and one for IPv6.
    families: u8,
}

const POINTS: [HookPoint; 5] =
    [HookPoint::In, HookPoint::Forward, HookPoint::ToGateway, HookPoint::FromGateway, HookPoint::Out];

impl Arrivals {
    /// Packets of both families at a point.
    pub(super) fn at(point: HookPoint) -> Arrivals {
        let points = POINTS.iter().position(|own| *own == point).map_or(0, |place| 1 << place);
        Arrivals { points, families: 0b11 }
    }

    /// Whether packets of IPv4 or (1) of IPv6 are among them.
    pub(super) fn has(self, family: usize) -> bool {
        self.families >> family & 1 == 1
    }

    pub(super) fn points(self) -> Vec<HookPoint> {
        let own = POINTS.into_iter().enumerate();
        own.filter(|(place, _)| self.points >> place & 1 == 1).map(|(_, point)| point).collect()
    }

    fn without(self, family: usize) -> Arrivals {
        Arrivals { families: self.families & !(1 << family), ..self }
    }

    /// Those that are left behind a rule.
    pub(super) fn behind(self, rule: RuleAction, order: MatchOrder, ways: &FamilyWays) -> Arrivals {
        let goes_on = matches!(rule, RuleAction::Jump(_) | RuleAction::Continue);
        let mut left = self;
        for (family, ways) in ways.iter().enumerate() {
            if order == MatchOrder::First && !goes_on && ways.contains(&Way::EVERY) {
                left = left.without(family);
            }
        }
        left
    }
}

/// What is known of a policy before it is written.
pub(super) struct Reach {
    /// Which packets come to each group that is reached.
    pub(super) arrivals: BTreeMap<usize, Arrivals>,
    /// The ways of each rule that is reached: by its group and its index there.
    pub(super) ways: BTreeMap<(usize, usize), FamilyWays>,
    /// Whether a rule asks for states.
    pub(super) asks_states: bool,
    /// Whether a rule tells later fragments from others.
    pub(super) tells_fragments: bool,
    /// Whether a rule or a default keeps connections.
    pub(super) keeps: bool,
}

impl Reach {
    /// # Errors
    /// The first rule that is reached and has no such ways.
    pub(super) fn of(policy: &Policy, hooks: &[Hook]) -> Result<Reach, (RulePlace, Unsayable)> {
        let mut reach = Reach {
            arrivals: BTreeMap::new(),
            ways: BTreeMap::new(),
            asks_states: false,
            tells_fragments: false,
            keeps: hooks.iter().any(|hook| hook.default == RuleAction::Keep),
        };
        let mut open = Vec::new();
        for hook in hooks {
            if reach.add(hook.group, Arrivals::at(hook.point)) {
                open.push(hook.group);
            }
        }
        // What comes to a group only grows, so that each is looked at again a few times at most.
        while let Some(number) = open.pop() {
            let group = &policy.groups[number];
            let mut coming = reach.arrivals.get(&number).copied().unwrap_or_default();
            for (index, rule) in group.rules.iter().enumerate() {
                if rule.action == RuleAction::Continue && !rule.log && !rule.count {
                    continue;
                }
                if !reach.ways.contains_key(&(number, index)) {
                    let own = |family| ways(&rule.condition, family, false);
                    let both = own(AddressFamily::V4).and_then(|v4| Ok([v4, own(AddressFamily::V6)?]));
                    let both = both.map_err(|fault| (rule.place, fault))?;
                    for way in both.iter().flatten() {
                        reach.asks_states |= way.states != ALL_STATES;
                        reach.tells_fragments |= !(way.whole && way.later);
                    }
                    reach.ways.insert((number, index), both);
                }
                reach.keeps |= rule.action == RuleAction::Keep;
                let own = &reach.ways[&(number, index)];
                let mut matched = coming;
                for (family, ways) in own.iter().enumerate() {
                    if ways.is_empty() {
                        matched = matched.without(family);
                    }
                }
                coming = coming.behind(rule.action, group.order, own);
                if let RuleAction::Jump(next) | RuleAction::Goto(next) = rule.action
                    && reach.add(next, matched)
                {
                    open.push(next);
                }
            }
        }
        Ok(reach)
    }

    /// Whether that is more than came to the group before.
    fn add(&mut self, group: usize, more: Arrivals) -> bool {
        let own = self.arrivals.entry(group).or_default();
        let before = *own;
        if more.families != 0 {
            own.points |= more.points;
            own.families |= more.families;
        }
        *own != before
    }
}
