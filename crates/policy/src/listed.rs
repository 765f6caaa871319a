//! What rules of a list do to each other, found out by searches among those that overlap.
//!
//! Where a hook asks nothing but a list of rules that decide, the diagram of what decides grows with the
//! products of their addresses, and most of it says that rules which have nothing to do with each other may
//! come together. What is asked is smaller: whether a packet comes to a rule is a search within this rule,
//! and whether another one would decide next a search within both.

use crate::decisions::{AnalysisFault, memories};
use crate::diagram::{ALL, Diagram, NONE};
use crate::evaluate::Step;
use crate::limits::{MOST_COMPARED_RULES, MOST_COVERS, MOST_NODES, MOST_SEARCHED, MOST_SEARCHED_IN_ALL};
use crate::lines::RuleIndex;
use crate::model::{MatchOrder, Path, Policy, RuleAction, RuleCondition, RuleGroup};
use crate::opposed::{OpposedSource, opposed_pairs};
use crate::order::{OrderFindings, RedundantLine, effect, only_decides};
use crate::overlaps::Overlaps;
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::search::Search;
use crate::searches::{Searches, each_once};
use crate::unreached::{Covers, UnreachedCause};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// A policy whose hooks ask lists of rules that decide, and no packet comes to two of them.
pub(crate) struct ListedPolicy<'p> {
    policy: &'p Policy,
    space: PacketSpace,
    pub(crate) searches: Searches,
    memories: Vec<usize>,
    lines: Vec<Vec<RuleIndex>>,
    lists: Vec<HookList>,
}

/// The rules of a hook.
struct HookList {
    hook: usize,
    /// Sets that together hold the packets that come to it.
    asked: Vec<Diagram>,
    /// In the order in which they decide.
    rules: Vec<ListedRule>,
    overlaps: Overlaps,
    /// The places of the rules of each line.
    places: BTreeMap<usize, Vec<usize>>,
}

struct ListedRule {
    rule: RuleIndex,
    line: Option<usize>,
    /// The packets that it matches, and sets that together hold them. Sets of one field each tell a search
    /// that what it found does not depend on the others.
    matched: Diagram,
    parts: Vec<Diagram>,
}

/// Where the first rule of a pair decides and the second one would: a list, and their places there.
#[derive(Clone, Copy)]
pub(crate) struct PairPlace {
    list: usize,
    first: usize,
    second: usize,
}

impl HookList {
    /// Sets that together hold the packets that come to the hook and that all these rules match.
    fn inside(&self, rules: &[usize]) -> Vec<Diagram> {
        let parts = rules.iter().flat_map(|place| &self.rules[*place].parts);
        each_once(self.asked.iter().chain(parts).copied())
    }

    /// The sets of the rules that must not match for the first of a pair to decide and the second one, or the
    /// default, to be next. Rules of the line of the first one go with it.
    fn between(&self, first: usize, second: Option<usize>) -> Vec<Diagram> {
        let HookList { rules, overlaps, .. } = self;
        let goes_along = |place: usize| rules[first].line.is_some() && rules[place].line == rules[first].line;
        overlaps
            .before(second.unwrap_or(rules.len()), &[first, second.unwrap_or(first)])
            .filter(|place| *place < first || (*place > first && !goes_along(*place)))
            .map(|place| rules[place].matched)
            .collect()
    }
}

/// Whether the hooks of a policy ask lists of rules that decide, and no packet comes to two of them: it has
/// no jumps or other rules that do not decide, does not remember connections by itself, has no two hooks on
/// one way, and no list longer than `MOST_COMPARED_RULES`.
pub(crate) fn is_listed(policy: &Policy) -> bool {
    let one_each = [Path::Forwarded, Path::ToGateway, Path::FromGateway]
        .iter()
        .all(|path| policy.hooks.iter().filter(|hook| path.points().contains(&hook.point)).count() <= 1);
    one_each
        && policy.hooks.iter().all(|hook| {
            let rules = &policy.groups[hook.group].rules;
            policy.remembers.asks(hook.point).is_none()
                && rules.len() <= MOST_COMPARED_RULES
                && rules.iter().all(|rule| rule.action.decides())
        })
}

/// The rules of a group in the order in which they decide: the first that matches does.
pub(crate) fn decision_order(group: &RuleGroup) -> Vec<usize> {
    let at_once = |rule: &usize| group.order == MatchOrder::First || group.rules[*rule].decides_at_once;
    let all = 0..group.rules.len();
    all.clone().filter(at_once).chain(all.rev().filter(|rule| !at_once(rule))).collect()
}

impl<'p> ListedPolicy<'p> {
    /// The lists of a policy; `None` if it is not [listed](is_listed).
    pub(crate) fn of(policy: &'p Policy) -> Result<Option<ListedPolicy<'p>>, AnalysisFault> {
        if !is_listed(policy) {
            return Ok(None);
        }
        let mut space = PacketSpace::with_limit(MOST_NODES)?;
        let memories = memories(&mut space, policy)?;
        let search = Search::with_limits(MOST_SEARCHED, MOST_SEARCHED_IN_ALL);
        let mut listed = ListedPolicy {
            policy,
            space,
            searches: Searches::with_limits(search, usize::MAX),
            memories,
            lines: policy.lines(),
            lists: Vec::with_capacity(policy.hooks.len()),
        };
        for hook in 0..policy.hooks.len() {
            let list = listed.list(hook)?;
            listed.lists.push(list);
        }
        Ok(Some(listed))
    }

    fn list(&mut self, hook: usize) -> Result<HookList, AnalysisFault> {
        let policy = self.policy;
        let (point, group) = (policy.hooks[hook].point, policy.hooks[hook].group);
        let mut asked = self.space.bounds()?;
        asked.push(self.space.at(point)?);
        let of_rule: BTreeMap<RuleIndex, usize> = (0..self.lines.len())
            .flat_map(|line| self.lines[line].iter().map(move |rule| (*rule, line)))
            .collect();
        let (mut rules, mut places) = (Vec::new(), BTreeMap::<usize, Vec<usize>>::new());
        for rule in decision_order(&policy.groups[group]).into_iter().map(|rule| (group, rule)) {
            let matched = self.condition(rule)?;
            let line = of_rule.get(&rule).copied();
            if let Some(line) = line {
                places.entry(line).or_default().push(rules.len());
            }
            let condition = &policy.groups[rule.0].rules[rule.1].condition;
            let parts = self.space.parts(condition, &self.memories)?;
            rules.push(ListedRule { rule, line, matched, parts });
        }
        let conditions: Vec<&RuleCondition> =
            rules.iter().map(|listed| &policy.groups[group].rules[listed.rule.1].condition).collect();
        let overlaps = Overlaps::of(&conditions);
        Ok(HookList { hook, asked, rules, overlaps, places })
    }

    fn condition(&mut self, (group, rule): RuleIndex) -> Result<Diagram, AnalysisFault> {
        Ok(self.space.set(&self.policy.groups[group].rules[rule].condition, &self.memories)?)
    }

    fn action(&self, (group, rule): RuleIndex) -> RuleAction {
        self.policy.groups[group].rules[rule].action
    }

    /// Whether a packet of both rules comes to the second one, or if there is none of the first rule to the
    /// end, past all rules before them but those behind the first one that are of its line.
    fn meets(&mut self, list: usize, first: usize, second: Option<usize>) -> Result<bool, AnalysisFault> {
        let inside = self.lists[list].inside(&[first, second.unwrap_or(first)]);
        let outside = self.lists[list].between(first, second);
        self.searches.holds(&mut self.space, &inside, &outside)
    }

    /// The rules that decide about no packet, in the order of the policy.
    pub(crate) fn unreached(&mut self) -> Result<Vec<RuleIndex>, AnalysisFault> {
        let mut deciding = HashSet::new();
        for list in 0..self.lists.len() {
            for place in 0..self.lists[list].rules.len() {
                let rule = self.lists[list].rules[place].rule;
                if !deciding.contains(&rule) && self.comes(list, place)? {
                    deciding.insert(rule);
                }
            }
        }
        let groups = self.policy.groups.iter().enumerate();
        let rules = groups.flat_map(|(group, rules)| (0..rules.rules.len()).map(move |rule| (group, rule)));
        Ok(rules.filter(|rule| !deciding.contains(rule)).collect())
    }

    /// Whether a packet comes to a rule that it matches.
    fn comes(&mut self, list: usize, place: usize) -> Result<bool, AnalysisFault> {
        let HookList { rules, overlaps, .. } = &self.lists[list];
        let own = [place];
        let outside: Vec<Diagram> =
            overlaps.before(place, &own).map(|before| rules[before].matched).collect();
        let inside = self.lists[list].inside(&own);
        self.searches.holds(&mut self.space, &inside, &outside)
    }

    /// Why none of these rules decides about a packet.
    pub(crate) fn why_unreached(&mut self, rules: &[RuleIndex]) -> Result<UnreachedCause, AnalysisFault> {
        let mut covers = Covers::default();
        let possible = self.space.possible()?;
        for rule in rules {
            let condition = self.condition(*rule)?;
            if self.space.diagrams.both(possible, condition)? == NONE {
                continue;
            }
            covers.matches_in(rule.0);
            for list in 0..self.lists.len() {
                if self.policy.hooks[self.lists[list].hook].group != rule.0 {
                    continue;
                }
                covers.any_reached = true;
                let Some(place) = self.lists[list].rules.iter().position(|listed| listed.rule == *rule)
                else {
                    continue;
                };
                let before: Vec<usize> = self.lists[list].overlaps.before(place, &[place]).collect();
                for other in before {
                    if self.meets(list, place, Some(other))? {
                        let by = self.lists[list].rules[other].rule;
                        covers.add(self.action(*rule), self.action(by), Some(Step::Rule(by.0, by.1)));
                    }
                }
            }
        }
        Ok(covers.cause())
    }

    /// [`crate::DecidedPolicy::order_findings`] of the same policy.
    pub(crate) fn order_findings(
        &mut self,
        most: usize,
        most_pairs: usize,
    ) -> Result<OrderFindings, AnalysisFault> {
        let dead: HashSet<RuleIndex> = self.unreached()?.into_iter().collect();
        let mut pairs: BTreeMap<(usize, usize), PairPlace> = BTreeMap::new();
        let mut too_many_pairs = false;
        let mut redundant: BTreeSet<usize> = (0..self.lines.len())
            .filter(|line| {
                let rules = &self.lines[*line];
                rules.iter().all(|rule| only_decides(self.policy, *rule))
                    && rules.iter().any(|rule| !dead.contains(rule))
            })
            .collect();
        for list in 0..self.lists.len() {
            for line in self.lists[list].places.keys().copied().collect::<Vec<usize>>() {
                for (first, second) in self.overlapping(list, line, &dead) {
                    let [one, other] = [first, second].map(|place| &self.lists[list].rules[place]);
                    let is_dead = dead.contains(&other.rule);
                    let alike = !is_dead && self.alike(one.rule, other.rule);
                    let pair = other.line.filter(|_| {
                        !is_dead && self.action(one.rule).passes() != self.action(other.rule).passes()
                    });
                    let pair = pair.map(|second| (line, second));
                    let pair = pair.filter(|pair| !too_many_pairs && !pairs.contains_key(pair));
                    if (pair.is_none() && (alike || !redundant.contains(&line)))
                        || !self.meets(list, first, Some(second))?
                    {
                        continue;
                    }
                    if !alike {
                        redundant.remove(&line);
                    }
                    match pair {
                        Some(_) if pairs.len() == most_pairs => too_many_pairs = true,
                        Some(pair) => {
                            pairs.insert(pair, PairPlace { list, first, second });
                        }
                        None => {}
                    }
                }
                if redundant.contains(&line) && !self.default_is_alike(list, line)? {
                    redundant.remove(&line);
                }
            }
        }
        let mut told = Vec::with_capacity(redundant.len());
        for line in redundant {
            let by = self.deciding_without(line, &dead)?;
            let more = by.len().saturating_sub(MOST_COVERS);
            told.push(RedundantLine { line, by: by.into_iter().take(MOST_COVERS).collect(), more });
        }
        let pairs = match too_many_pairs {
            true => Err(AnalysisFault::TooManyPairs),
            false => opposed_pairs(self, pairs, most),
        };
        Ok(OrderFindings { redundant: told, pairs })
    }

    /// The places of rules of a line that decide, each with those of later rules of other lines that may
    /// match the same packets.
    fn overlapping(&self, list: usize, line: usize, dead: &HashSet<RuleIndex>) -> Vec<(usize, usize)> {
        let HookList { rules, overlaps, places, .. } = &self.lists[list];
        let mut found = Vec::new();
        for first in
            places.get(&line).into_iter().flatten().filter(|place| !dead.contains(&rules[**place].rule))
        {
            let others = overlaps.before(rules.len(), std::slice::from_ref(first));
            let others = others.filter(|place| place > first && rules[*place].line != Some(line));
            found.extend(others.map(|second| (*first, second)));
        }
        found
    }

    /// Whether packets of a rule are treated alike if another rule decides, and nothing else happens to them.
    fn alike(&self, one: RuleIndex, other: RuleIndex) -> bool {
        effect(self.policy, self.action(one)) == effect(self.policy, self.action(other))
            && only_decides(self.policy, other)
    }

    fn default_is_alike(&mut self, list: usize, line: usize) -> Result<bool, AnalysisFault> {
        let default = effect(self.policy, self.policy.hooks[self.lists[list].hook].default);
        for place in self.lists[list].places[&line].clone() {
            let action = effect(self.policy, self.action(self.lists[list].rules[place].rule));
            if action != default && self.meets(list, place, None)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What decides about the packets of a redundant line without it.
    fn deciding_without(
        &mut self,
        line: usize,
        dead: &HashSet<RuleIndex>,
    ) -> Result<BTreeSet<Step>, AnalysisFault> {
        let mut by = BTreeSet::new();
        for list in 0..self.lists.len() {
            for (first, second) in self.overlapping(list, line, dead) {
                let rule = self.lists[list].rules[second].rule;
                let step = Step::Rule(rule.0, rule.1);
                if !by.contains(&step) && self.meets(list, first, Some(second))? {
                    by.insert(step);
                }
            }
            for place in self.lists[list].places.get(&line).cloned().unwrap_or_default() {
                if self.meets(list, place, None)? {
                    by.insert(Step::Default(self.lists[list].hook));
                }
            }
        }
        Ok(by)
    }
}

impl OpposedSource for ListedPolicy<'_> {
    type Place = PairPlace;

    fn space(&mut self) -> &mut PacketSpace {
        &mut self.space
    }

    fn matched(&mut self, line: usize) -> Result<Diagram, AnalysisFault> {
        let mut matched = NONE;
        for list in &self.lists {
            for place in list.places.get(&line).into_iter().flatten() {
                let mut own = ALL;
                for set in list.inside(&[*place]) {
                    own = self.space.diagrams.both(own, set)?;
                }
                matched = self.space.diagrams.either(matched, own)?;
            }
        }
        Ok(matched)
    }

    fn witness(
        &mut self,
        _matched: [Diagram; 2],
        place: PairPlace,
    ) -> Result<Option<WitnessPacket>, AnalysisFault> {
        let usual = self.space.usual()?;
        let list = &self.lists[place.list];
        let outside = list.between(place.first, Some(place.second));
        let mut inside = list.inside(&[place.first, place.second]);
        for set in usual {
            inside.push(set);
            if !self.searches.holds(&mut self.space, &inside, &outside)? {
                inside.pop();
            }
        }
        let way = self.searches.least(&mut self.space, &inside, &outside)?;
        Ok(way.map(|way| self.space.packet_on(&way)))
    }
}
