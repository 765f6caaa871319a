//! Which lines are redundant, and which pairs of lines overlap and do the opposite, so that their order
//! decides.
//!
//! For each packet the rules of a group are ranked: the one that decides, the one that would if the first
//! were not there, and so on. The function that gives the first two of them is made from the last rule to the
//! first one; a jump puts the ranks of the other group there. Of two lists of which one stands behind the
//! other, the first two together are among the first two of each, so no more are kept. The kinds of findings
//! are those of Al-Shaer and Hamed, "Modeling and Management of Firewall Policies" (IEEE TNSM 1(1), 2004),
//! for sets of packets instead of pairs of rules.

use crate::decisions::{AnalysisFault, HookDecisions, LONGEST_RUN};
use crate::diagram::{Diagram, NONE, Operation};
use crate::evaluate::{PolicyFault, Step};
use crate::limits::{DEEPEST_JUMPS, MOST_COVERS, MOST_PAIRS, MOST_RANKS};
use crate::lines::RuleIndex;
use crate::model::{MatchOrder, Policy, RuleAction};
use crate::opposed::{OpposedSource, opposed_pairs};
use crate::packet_space::{PacketSpace, WitnessPacket};
use crate::ranks::{RankLists, Ranked, Ranks};
use crate::why::DecidedPolicy;
use std::collections::btree_map::Entry as BTreeEntry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;

/// What is found out about the order of lines of a policy as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderFindings {
    /// The lines without any of which alone every hook decides the same about every packet.
    pub redundant: Vec<RedundantLine>,
    /// The pairs of lines that do the opposite, or why none was looked for.
    pub pairs: Result<OpposedPairs, AnalysisFault>,
}

/// The pairs of lines of which the first decides about a packet and the second would do the opposite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpposedPairs {
    /// The pairs of which neither line matches all packets of the other: those that are told.
    pub correlated: Vec<OpposedLines>,
    /// How many such pairs there are.
    pub correlated_count: usize,
    /// The pairs of which the second line matches all packets of the first: those that are told.
    pub exceptions: Vec<OpposedLines>,
    /// How many such pairs there are.
    pub exceptions_count: usize,
}

/// A line whose packets would be treated alike without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedundantLine {
    /// The line: an index of [`crate::Policy::lines`].
    pub line: usize,
    /// The rules and defaults that would decide: the first ones, at most `MOST_COVERS`.
    pub by: Vec<Step>,
    /// How many more would.
    pub more: usize,
}

/// Two lines: about some packets the first one decides, and if its rules that decide were not there, the
/// second one would do the opposite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpposedLines {
    /// The line that decides: an index of [`crate::Policy::lines`].
    pub first: usize,
    /// The line that would decide: an index of the same.
    pub second: usize,
    /// One of these packets.
    pub witness: WitnessPacket,
    /// The texts of conditions on earlier packets that hold for it.
    pub may: Vec<String>,
}

/// The operations on lists, each of which gives the same for the same numbers.
#[derive(Clone, Copy)]
struct RankOperations {
    behind: Operation,
    around: Operation,
    at_once: Operation,
}

/// What the lines of a policy are compared by.
struct Ranking<'a, 'p> {
    decided: &'a mut DecidedPolicy<'p>,
    lines: Vec<Vec<RuleIndex>>,
    /// The rules that decide about no packet and send none on.
    dead: HashSet<RuleIndex>,
    lists: RankLists,
    operations: RankOperations,
    /// The lists of each group; `None` while they are made.
    groups: HashMap<usize, Option<Diagram>>,
    /// The groups whose lists are made, each behind those that it jumps to.
    made: Vec<usize>,
    /// The packets that the jumps to each group let through, whatever rules before these decide.
    scopes: HashMap<usize, Diagram>,
}

/// A place where the first line of a pair decides and the second one would: a list of a hook.
#[derive(Clone, Copy)]
pub(crate) struct Overlap {
    function: Diagram,
    list: u32,
}

impl DecidedPolicy<'_> {
    /// Finds the lines that are redundant, and the pairs whose order decides; of the pairs of each kind at
    /// most `most` are told.
    ///
    /// A line is redundant by what it does to packets: one that logs, that sends packets on, or whose
    /// condition depends on earlier packets, is never told. Nor is one whose packets a rule would get that
    /// logs or depends on earlier packets, or one that never decides as long as the line is there: the two
    /// could not both go.
    ///
    /// # Errors
    /// It is too much, or groups jump in a circle, even if no packet goes all around.
    pub fn order_findings(&mut self, most: usize) -> Result<OrderFindings, AnalysisFault> {
        self.order_findings_within(most, MOST_RANKS, MOST_PAIRS)
    }

    /// The same with so many lists of ranks and so many pairs.
    pub(crate) fn order_findings_within(
        &mut self,
        most: usize,
        ranks: usize,
        pairs: usize,
    ) -> Result<OrderFindings, AnalysisFault> {
        let lines = self.policy.lines();
        let mut of_rule = HashMap::new();
        for (line, rules) in lines.iter().enumerate() {
            of_rule.extend(rules.iter().map(|rule| (*rule, line)));
        }
        let dead = self.unreached()?.into_iter().collect();
        let lists = RankLists::with_limit(ranks, of_rule);
        let diagrams = &mut self.space.diagrams;
        let operations = RankOperations {
            behind: diagrams.operation(true),
            around: diagrams.operation(true),
            at_once: diagrams.operation(false),
        };
        let (groups, made, scopes) = (HashMap::new(), Vec::new(), HashMap::new());
        Ranking { decided: self, lines, dead, lists, operations, groups, made, scopes }.findings(most, pairs)
    }
}

impl Ranking<'_, '_> {
    fn findings(mut self, most: usize, most_pairs: usize) -> Result<OrderFindings, AnalysisFault> {
        let mut redundant: BTreeMap<usize, Option<BTreeSet<Step>>> = BTreeMap::new();
        let mut opposed: BTreeMap<(usize, usize), Overlap> = BTreeMap::new();
        let mut too_many_pairs = false;
        let policy = self.decided.policy;
        for index in 0..self.decided.decisions.hooks.len() {
            let HookDecisions { hook, asked, .. } = self.decided.decisions.hooks[index];
            let (group, default) = {
                let hook = &self.decided.policy.hooks[hook];
                (hook.group, hook.default)
            };
            let function = self.group(group, 1)?;
            let diagrams = &mut self.decided.space.diagrams;
            let function = diagrams.choose(asked, function, NONE)?;
            for list in diagrams.numbers(asked, function)? {
                let Ranks { first, second } = self.lists.list(list);
                let Some((first, line)) =
                    first.and_then(|first| Some((first.rule, self.lists.line(first.rule)?)))
                else {
                    continue;
                };
                let (by, other) = match second {
                    Some(Ranked { rule, .. }) => (Step::Rule(rule.0, rule.1), self.action(rule)),
                    None => (Step::Default(hook), default),
                };
                let behind = second.map(|second| second.rule);
                if behind.is_some_and(|rule| self.dead.contains(&rule)) {
                    redundant.insert(line, None);
                    continue;
                }
                let alike = effect(policy, self.action(first)) == effect(policy, other)
                    && behind.is_none_or(|rule| only_decides(policy, rule));
                let found = redundant.entry(line).or_insert_with(|| Some(BTreeSet::new()));
                match found {
                    Some(found) if alike => {
                        found.insert(by);
                    }
                    _ => *found = None,
                }
                if let Some(second) = behind.and_then(|rule| self.lists.line(rule))
                    && self.action(first).passes() != other.passes()
                {
                    let known = opposed.len();
                    match opposed.entry((line, second)) {
                        BTreeEntry::Vacant(_) if known == most_pairs => too_many_pairs = true,
                        pair => {
                            pair.or_insert(Overlap { function, list });
                        }
                    }
                }
            }
        }
        let mut told = Vec::new();
        for (line, by) in redundant {
            let Some(by) = by.filter(|_| self.lines[line].iter().all(|rule| only_decides(policy, *rule)))
            else {
                continue;
            };
            let more = by.len().saturating_sub(MOST_COVERS);
            told.push(RedundantLine { line, by: by.into_iter().take(MOST_COVERS).collect(), more });
        }
        let pairs = match too_many_pairs {
            true => Err(AnalysisFault::TooManyPairs),
            false => {
                self.scopes = self.scopes()?;
                opposed_pairs(&mut self, opposed, most)
            }
        };
        Ok(OrderFindings { redundant: told, pairs })
    }

    fn action(&self, rule: RuleIndex) -> RuleAction {
        self.decided.policy.groups[rule.0].rules[rule.1].action
    }

    /// The lists of a group, wherever packets come from.
    fn group(&mut self, index: usize, depth: usize) -> Result<Diagram, AnalysisFault> {
        match self.groups.get(&index) {
            Some(Some(known)) => return Ok(*known),
            Some(None) => return Err(AnalysisFault::Walk(PolicyFault::TooDeep)),
            None if depth > DEEPEST_JUMPS => return Err(AnalysisFault::Walk(PolicyFault::TooDeep)),
            None => self.groups.insert(index, None),
        };
        let group = &self.decided.policy.groups[index];
        let first = group.order == MatchOrder::First;
        let (mut list, mut next) = (NONE, group.rules.len());
        while next > 0 {
            let run = self.run(index, next);
            if !run.is_empty() {
                next = run.start;
                let ends = self.ends((index, next));
                let decided = self.decided_by(index, run)?;
                let (front, back) = if ends { (decided, list) } else { (list, decided) };
                list = self.behind(front, back)?;
                continue;
            }
            next -= 1;
            let condition = self.condition((index, next))?;
            let action = group.rules[next].action;
            let inner = match action {
                RuleAction::Jump(inner) | RuleAction::Goto(inner) => self.group(inner, depth + 1)?,
                RuleAction::Return => NONE,
                _ => continue,
            };
            let inner = if first { self.at_once(inner)? } else { inner };
            let diagrams = &mut self.decided.space.diagrams;
            list = match action {
                RuleAction::Jump(_) => {
                    let inner = diagrams.choose(condition, inner, NONE)?;
                    if first { self.behind(inner, list)? } else { self.around(inner, list)? }
                }
                _ => diagrams.choose(condition, inner, list)?,
            };
        }
        self.groups.insert(index, Some(list));
        self.made.push(index);
        Ok(list)
    }

    /// Whether no later rule of the group can change what a rule decides.
    fn ends(&self, rule: RuleIndex) -> bool {
        let group = &self.decided.policy.groups[rule.0];
        group.order == MatchOrder::First || group.rules[rule.1].decides_at_once
    }

    /// The rules before this one that all decide, and all end the walk or all do not.
    fn run(&self, group: usize, end: usize) -> Range<usize> {
        let alike = |rule: &usize| {
            self.action((group, *rule)).decides() && self.ends((group, *rule)) == self.ends((group, end - 1))
        };
        let length = (0..end).rev().take(LONGEST_RUN).take_while(alike).count();
        end - length..end
    }

    /// The lists of rules that stand together.
    fn decided_by(&mut self, group: usize, run: Range<usize>) -> Result<Diagram, AnalysisFault> {
        let mut lists = Vec::with_capacity(run.len());
        for rule in run.clone().map(|rule| (group, rule)) {
            let condition = self.condition(rule)?;
            let ranked = Ranked { rule, at_once: self.ends(rule) };
            let list = self.lists.number(Ranks { first: Some(ranked), second: None });
            lists.push(self.decided.space.diagrams.choose(condition, Diagram::end(list), NONE)?);
        }
        if !self.ends((group, run.start)) {
            lists.reverse();
        }
        self.stacked(&lists)
    }

    fn stacked(&mut self, lists: &[Diagram]) -> Result<Diagram, AnalysisFault> {
        match lists {
            [] => Ok(NONE),
            [only] => Ok(*only),
            _ => {
                let (front, back) = lists.split_at(lists.len() / 2);
                let (front, back) = (self.stacked(front)?, self.stacked(back)?);
                self.behind(front, back)
            }
        }
    }

    fn behind(&mut self, front: Diagram, back: Diagram) -> Result<Diagram, AnalysisFault> {
        self.combined(self.operations.behind, front, back, RankLists::behind)
    }

    fn around(&mut self, inner: Diagram, later: Diagram) -> Result<Diagram, AnalysisFault> {
        self.combined(self.operations.around, inner, later, RankLists::around)
    }

    fn at_once(&mut self, list: Diagram) -> Result<Diagram, AnalysisFault> {
        self.combined(self.operations.at_once, list, NONE, |lists, list, _| lists.at_once(list))
    }

    fn combined(
        &mut self,
        operation: Operation,
        one: Diagram,
        other: Diagram,
        made: impl Fn(&mut RankLists, u32, u32) -> u32,
    ) -> Result<Diagram, AnalysisFault> {
        let (diagrams, lists) = (&mut self.decided.space.diagrams, &mut self.lists);
        let combined = diagrams.combine(operation, one, other, &mut |one, other| made(lists, one, other))?;
        if lists.are_too_many() { Err(AnalysisFault::TooManyRanks) } else { Ok(combined) }
    }

    fn condition(&mut self, rule: RuleIndex) -> Result<Diagram, AnalysisFault> {
        let condition = &self.decided.policy.groups[rule.0].rules[rule.1].condition;
        Ok(self.decided.space.set(condition, &self.decided.decisions.memories)?)
    }

    /// The packets that the jumps to each group let through, whatever rules before these decide.
    fn scopes(&mut self) -> Result<HashMap<usize, Diagram>, AnalysisFault> {
        let mut scopes: HashMap<usize, Diagram> = HashMap::new();
        let possible = self.decided.space.possible()?;
        let policy = self.decided.policy;
        for hook in &policy.hooks {
            let here = self.decided.space.at(hook.point)?;
            let here = self.decided.space.diagrams.both(possible, here)?;
            self.widen(&mut scopes, hook.group, here)?;
        }
        for group in self.made.clone().into_iter().rev() {
            for (index, rule) in policy.groups[group].rules.iter().enumerate() {
                let (RuleAction::Jump(next) | RuleAction::Goto(next)) = rule.action else { continue };
                let condition = self.condition((group, index))?;
                let through = self.decided.space.diagrams.both(scopes[&group], condition)?;
                self.widen(&mut scopes, next, through)?;
            }
        }
        Ok(scopes)
    }

    fn widen(
        &mut self,
        scopes: &mut HashMap<usize, Diagram>,
        group: usize,
        packets: Diagram,
    ) -> Result<(), AnalysisFault> {
        let scope = scopes.entry(group).or_insert(NONE);
        *scope = self.decided.space.diagrams.either(*scope, packets)?;
        Ok(())
    }
}

/// What counts as the same treatment of a packet.
pub(crate) fn effect(policy: &Policy, action: RuleAction) -> RuleAction {
    if action == RuleAction::Keep && !policy.remembers.keeps() { RuleAction::Pass } else { action }
}

/// Whether nothing but packets tells whether the rule is asked.
pub(crate) fn only_decides(policy: &Policy, rule: RuleIndex) -> bool {
    let rule = &policy.groups[rule.0].rules[rule.1];
    rule.action.decides() && !rule.log && !rule.condition.depends_on_earlier_packets()
}

impl OpposedSource for Ranking<'_, '_> {
    type Place = Overlap;

    fn space(&mut self) -> &mut PacketSpace {
        &mut self.decided.space
    }

    fn matched(&mut self, line: usize) -> Result<Diagram, AnalysisFault> {
        let mut matched = NONE;
        for rule in self.lines[line].clone() {
            // No jump leads to a group without a scope.
            let Some(scope) = self.scopes.get(&rule.0).copied() else { continue };
            let condition = self.condition(rule)?;
            let diagrams = &mut self.decided.space.diagrams;
            let here = diagrams.both(scope, condition)?;
            matched = diagrams.either(matched, here)?;
        }
        Ok(matched)
    }

    fn witness(
        &mut self,
        [first, second]: [Diagram; 2],
        place: Overlap,
    ) -> Result<Option<WitnessPacket>, AnalysisFault> {
        let space = &mut self.decided.space;
        // Where both match, the function is small.
        let both = space.diagrams.both(first, second)?;
        let function = space.diagrams.choose(both, place.function, NONE)?;
        let packets = space.diagrams.places_of(function, place.list)?;
        Ok(space.witness(packets)?)
    }
}
