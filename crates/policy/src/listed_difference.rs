//! Which classes of packets two lists treat otherwise, found out by searches among rules that overlap.
//!
//! Rules in common have one order in both lists. So if a common rule decides about a packet in each list, it
//! is the same rule in both, and nothing differs. Of each class of packets that are treated otherwise, one
//! rule at least is in one list alone. Each such rule is brought together with the rules and the default of
//! the other list, and a search says whether a packet comes to both. The diagram of what decides, which has a
//! part for each combination of addresses, is not made.

use crate::changed::GroupChange;
use crate::decisions::{AnalysisFault, PolicyDecision};
use crate::diagram::Diagram;
use crate::difference::Compared;
use crate::evaluate::Step;
use crate::listed::decision_order;
use crate::model::{Policy, RuleCondition};
use crate::overlaps::Overlaps;
use crate::packet_space::PacketSpace;
use crate::searches::{Searches, each_once, left};
use std::collections::BTreeMap;

/// What decides in the old policy, and what in the new one.
pub(crate) type DecisionPair = (PolicyDecision, PolicyDecision);

/// Where a class has packets: at a hook, by its place in [`ListedDifference::hooks`], and there the rules
/// that decide, or none for a default.
#[derive(Clone, Copy)]
struct ClassPlace {
    hook: usize,
    old: Option<usize>,
    new: Option<usize>,
}

/// The classes that two policies treat otherwise.
pub(crate) struct ListedDifference {
    /// The hooks that have a rule in one policy alone. At others nothing differs.
    hooks: Vec<BothLists>,
    classes: BTreeMap<DecisionPair, Vec<ClassPlace>>,
}

/// The rules of a hook in both policies; those in common are there once.
struct BothLists {
    /// Sets that together hold the packets that come to the hook.
    asked: Vec<Diagram>,
    rules: Vec<ComparedRule>,
    overlaps: Overlaps,
    /// What the defaults decide.
    defaults: [PolicyDecision; 2],
}

/// A rule of one or both lists.
struct ComparedRule {
    matched: Diagram,
    parts: Vec<Diagram>,
    /// Its place in the order of the old and of the new list, and what it decides there.
    places: [Option<(usize, PolicyDecision)>; 2],
}

impl ComparedRule {
    fn is_common(&self) -> bool {
        self.places.iter().all(Option::is_some)
    }

    /// Whether it comes before a rule of a list, or before its default.
    fn is_before(&self, side: usize, end: Option<&ComparedRule>) -> bool {
        let Some((own, _)) = self.places[side] else { return false };
        end.is_none_or(|end| end.places[side].is_some_and(|(end, _)| own < end))
    }
}

impl BothLists {
    fn rule(&self, place: Option<usize>) -> Option<&ComparedRule> {
        place.map(|place| &self.rules[place])
    }

    fn decision(&self, side: usize, place: Option<usize>) -> Option<PolicyDecision> {
        match self.rule(place) {
            None => Some(self.defaults[side]),
            Some(rule) => rule.places[side].map(|(_, decision)| decision),
        }
    }

    /// The sets that hold the packets that all these rules match, and those of the rules before them, which
    /// hold none of the packets.
    fn sets(
        &self,
        with: &[usize],
        is_before: &dyn Fn(&ComparedRule) -> bool,
    ) -> (Vec<Diagram>, Vec<Diagram>) {
        let parts = with.iter().flat_map(|place| &self.rules[*place].parts);
        let overlapping = self.overlaps.before(self.rules.len(), with).map(|place| &self.rules[place]);
        let before = overlapping.filter(|rule| is_before(rule)).map(|rule| rule.matched);
        (each_once(self.asked.iter().chain(parts).copied()), each_once(before))
    }

    /// The same for the packets about which these rules or the defaults decide.
    fn decided(&self, places: [Option<usize>; 2]) -> (Vec<Diagram>, Vec<Diagram>) {
        let with: Vec<usize> = places.into_iter().flatten().collect();
        let ends = places.map(|place| self.rule(place));
        self.sets(&with, &|rule| (0..2).any(|side| rule.is_before(side, ends[side])))
    }

    fn of(
        space: &mut PacketSpace,
        policies: [(&Policy, &[usize]); 2],
        hook: usize,
        change: &GroupChange,
    ) -> Result<BothLists, AnalysisFault> {
        let [(old, of_old), (new, of_new)] = policies;
        let mut asked = space.bounds()?;
        asked.push(space.at(new.hooks[hook].point)?);
        let groups = [&old.groups[change.groups[0]], &new.groups[change.groups[1]]];
        let mut places = groups.map(|group| vec![None; group.rules.len()]);
        for side in 0..2 {
            for (place, rule) in decision_order(groups[side]).into_iter().enumerate() {
                let by = Some(Step::Rule(change.groups[side], rule));
                let decision = PolicyDecision { action: groups[side].rules[rule].action, by };
                places[side][rule] = Some((place, decision));
            }
        }
        let mut common = vec![None; groups[1].rules.len()];
        let mut own = vec![true; groups[0].rules.len()];
        for (before, now) in &change.common {
            (common[*now], own[*before]) = (Some(*before), false);
        }
        let of_new = (0..groups[1].rules.len()).map(|now| {
            let before = common[now].and_then(|before| places[0][before]);
            (&groups[1].rules[now].condition, of_new, [before, places[1][now]])
        });
        let of_old = (0..groups[0].rules.len())
            .filter(|before| own[*before])
            .map(|before| (&groups[0].rules[before].condition, of_old, [places[0][before], None]));
        let (mut rules, mut conditions): (Vec<ComparedRule>, Vec<&RuleCondition>) = (Vec::new(), Vec::new());
        for (condition, memories, places) in of_new.chain(of_old) {
            let (matched, parts) = (space.set(condition, memories)?, space.parts(condition, memories)?);
            rules.push(ComparedRule { matched, parts, places });
            conditions.push(condition);
        }
        let overlaps = Overlaps::of(&conditions);
        let defaults = [old, new].map(|policy| PolicyDecision {
            action: policy.hooks[hook].default,
            by: Some(Step::Default(hook)),
        });
        Ok(BothLists { asked, rules, overlaps, defaults })
    }
}

impl ListedDifference {
    /// The classes of two lists; `None` if their hooks or their connections differ, or more than `most` pairs
    /// of rules are to be looked at.
    pub(crate) fn of(
        space: &mut PacketSpace,
        compared: &Compared,
        searches: &mut Searches,
        most: usize,
    ) -> Result<Option<ListedDifference>, AnalysisFault> {
        let policies = compared.policies.each_ref().map(|(policy, memories)| (*policy, &memories[..]));
        let Some(changes) = &compared.changes else { return Ok(None) };
        let new = policies[1].0;
        let (mut changed, mut pairs) = (Vec::with_capacity(new.hooks.len()), 0);
        for (hook, asked) in new.hooks.iter().enumerate() {
            let Some(change) = changes.iter().find(|change| change.groups[1] == asked.group) else {
                return Ok(None);
            };
            let [before, now] = [0, 1].map(|side| policies[side].0.groups[change.groups[side]].rules.len());
            let common = change.common.len();
            let own = before + now - 2 * common;
            pairs += own * (before + now - common);
            if own > 0 {
                changed.push((hook, change));
            }
        }
        if pairs > most {
            return Ok(None);
        }
        let mut found = ListedDifference { hooks: Vec::new(), classes: BTreeMap::new() };
        for (hook, change) in changed {
            found.hooks.push(BothLists::of(space, policies, hook, change)?);
        }
        for hook in 0..found.hooks.len() {
            for place in candidates(space, searches, hook, &found.hooks[hook], compared)? {
                let lists = &found.hooks[hook];
                let (Some(before), Some(now)) = (lists.decision(0, place.old), lists.decision(1, place.new))
                else {
                    continue;
                };
                found.classes.entry((before, now)).or_default().push(place);
            }
        }
        Ok(Some(found))
    }

    /// What decides about each class.
    pub(crate) fn pairs(&self) -> Vec<DecisionPair> {
        self.classes.keys().copied().collect()
    }

    /// The packets of the class at a place of [`ListedDifference::pairs`].
    pub(crate) fn packets(&self, space: &mut PacketSpace, class: usize) -> Result<Diagram, AnalysisFault> {
        let mut sets = Vec::new();
        for place in self.classes.values().nth(class).into_iter().flatten() {
            let (inside, outside) = self.hooks[place.hook].decided([place.old, place.new]);
            sets.push(left(space, &inside, &outside)?);
        }
        Ok(space.diagrams.any(&sets)?)
    }
}

/// The pairs of rules, one of them in one list alone, between which a hook decides otherwise about a packet.
fn candidates(
    space: &mut PacketSpace,
    searches: &mut Searches,
    hook: usize,
    lists: &BothLists,
    compared: &Compared,
) -> Result<Vec<ClassPlace>, AnalysisFault> {
    let mut found = Vec::new();
    for (own, rule) in lists.rules.iter().enumerate().filter(|(_, rule)| !rule.is_common()) {
        let side = usize::from(rule.places[0].is_none());
        let Some(decision) = lists.decision(side, Some(own)) else { continue };
        // Where nothing comes to the rule in its own list, there is nothing to bring together.
        let (inside, outside) = lists.sets(&[own], &|other| other.is_before(side, Some(rule)));
        if !searches.holds(space, &inside, &outside)? {
            continue;
        }
        let others = lists.overlaps.before(lists.rules.len(), std::slice::from_ref(&own));
        let others: Vec<Option<usize>> = others.map(Some).chain([None]).collect();
        for other in others {
            let Some(treated) = lists.decision(1 - side, other) else { continue };
            let is_second_look = side == 1 && lists.rule(other).is_some_and(|other| !other.is_common());
            let is_hidden = lists.rule(other).is_some_and(|other| other.is_before(side, Some(rule)));
            if is_second_look || is_hidden || compared.is_alike(decision.action, treated.action) {
                continue;
            }
            let places = if side == 0 { [Some(own), other] } else { [other, Some(own)] };
            let (inside, outside) = lists.decided(places);
            if searches.holds(space, &inside, &outside)? {
                found.push(ClassPlace { hook, old: places[0], new: places[1] });
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis_tests::{forwarding, holds, rule};
    use crate::changed_tests::named;
    use crate::field::{PacketField, Values};
    use crate::model::{Hook, HookPoint, Path, RuleAction};
    use crate::search::Search;

    #[test]
    fn a_hook_without_a_changed_rule_is_not_looked_at() {
        let port = |port| rule(holds(PacketField::DestinationPort, Values::exact(port)), RuleAction::Pass);
        let policy = |last| {
            let mut policy = named(forwarding(vec![vec![port(1)], vec![port(last)]]));
            let own = Hook { point: HookPoint::ToGateway, group: 1, ..policy.hooks[0].clone() };
            policy.hooks.push(own);
            policy
        };
        let (old, new) = (policy(2), policy(3));
        let mut space = PacketSpace::new().expect("small");
        let mut of = |policies| {
            let compared = Compared::of(&mut space, policies).expect("small");
            let mut searches = Searches::with_limits(Search::with_limits(1_000, 1_000), 0);
            let found = ListedDifference::of(&mut space, &compared, &mut searches, 100);
            found.expect("short").expect("lists")
        };
        let (same, found) = (of([&old, &old]), of([&old, &new]));
        assert_eq!((same.hooks.len(), same.classes.len()), (0, 0));
        assert_eq!((found.hooks.len(), found.classes.len()), (1, 2));
        for class in 0..2 {
            let packets = found.packets(&mut space, class).expect("small");
            let witness = space.witness(packets).expect("small").expect("a packet");
            assert_eq!(witness.path, Path::ToGateway);
        }
    }
}
