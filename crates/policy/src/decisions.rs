//! What a policy decides about all packets at once: the walk of [`crate::evaluate()`] with sets in place of
//! one packet.
//!
//! At each rule there is the set of packets that have come so far. The rule takes those that it matches out
//! of the set and writes itself into the function of what decides; a jump sends them through another group
//! and gets those back that it does not decide. In a group of the last match the packets stay, so a later
//! rule writes over an earlier one. The defaults are written first. Rules that decide and stand together are
//! made one function before, whatever packets come to them: that is cheaper than one after the other.

use crate::diagram::{ALL, Diagram, NONE, TooManyNodes};
use crate::evaluate::{PolicyFault, Step};
use crate::field::{PacketField, Values};
use crate::limits::{DEEPEST_JUMPS, MOST_MEMORIES, MOST_STEPS};
use crate::model::{HookPoint, MatchOrder, Policy, Remembers, RuleAction, RuleCondition};
use crate::packet_space::PacketSpace;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// Why a policy is not analysed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnalysisFault {
    /// It cannot be walked to its end.
    #[error("{}", match .0 {
        PolicyFault::TooDeep => "a group jumps to itself, perhaps through others, or jumps lead too deep: remove a jump",
        PolicyFault::TooLong => "jumps lead through the same groups too often: jump less",
    })]
    Walk(PolicyFault),
    /// It has more conditions on earlier packets than `MOST_MEMORIES`.
    #[error(
        "more than {} of its conditions depend on earlier packets, such as rates: ask about a part of it",
        crate::limits::MOST_MEMORIES
    )]
    TooManyMemories,
    /// Its lists of rules that would decide are more than `MOST_RANKS`.
    #[error(
        "more than {} pairs of its rules overlap, one behind the other: ask about a part of it",
        crate::limits::MOST_RANKS
    )]
    TooManyRanks,
    /// It has more pairs of lines that do the opposite than `MOST_PAIRS`.
    #[error(
        "more than {} pairs of its rules overlap and do the opposite: ask about a part of it",
        crate::limits::MOST_PAIRS
    )]
    TooManyPairs,
    /// Of two policies one is [`crate::AskedFamilies::Version4Alone`], and the other one is asked about both.
    #[error(
        "one is about IPv4 alone, and the other one is asked about IPv6, too: declare `src` and `dst` as `ip6` in both, and ask about all packets"
    )]
    Families,
    /// It is [`crate::AskedFamilies::Version4Alone`], and was asked about packets of IPv6.
    #[error("it is asked about packets of IPv4 alone, and what becomes of those of IPv6 is not known")]
    NotAsked,
    /// The searches among its rules look at more than `MOST_SEARCHED_IN_ALL` nodes and sets.
    #[error(
        "the searches among its rules look at more than {} nodes and sets: ask about a part of it",
        crate::limits::MOST_SEARCHED_IN_ALL
    )]
    TooManySearches,
    /// It is too much.
    #[error("its diagrams need more than {} nodes: ask about a part of it", crate::limits::MOST_NODES)]
    TooLarge,
}

impl From<TooManyNodes> for AnalysisFault {
    fn from(TooManyNodes: TooManyNodes) -> AnalysisFault {
        AnalysisFault::TooLarge
    }
}

/// What happens to packets, and what decided it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyDecision {
    /// [`RuleAction::Pass`], [`RuleAction::Keep`], [`RuleAction::Block`] or [`RuleAction::Reject`].
    pub action: RuleAction,
    /// The rule that blocks; of packets that are kept, the first rule that keeps them; of others that pass,
    /// the last rule that let them pass, or else the last default. `None` if the policy has no hook on their
    /// way.
    pub by: Option<Step>,
}

impl RuleAction {
    /// Whether packets go on that this decides about.
    pub fn passes(self) -> bool {
        matches!(self, RuleAction::Pass | RuleAction::Keep)
    }

    /// Whether this decides about packets, rather than where they go on.
    pub fn decides(self) -> bool {
        self.passes() || matches!(self, RuleAction::Block | RuleAction::Reject(_))
    }
}

/// What one hook decides.
pub(crate) struct HookDecisions {
    /// The hook: an index of [`Policy::hooks`].
    pub(crate) hook: usize,
    /// The packets that come to it and are compared with rules.
    pub(crate) asked: Diagram,
    /// The numbers of decisions, within the packets that come to the hook.
    pub(crate) function: Diagram,
    /// The packets that come to each group.
    pub(crate) arrived: HashMap<usize, Diagram>,
}

/// What a policy decides.
pub(crate) struct Decisions {
    /// The numbers of decisions that [`Decisions::number_of`] gives, for all possible packets.
    pub(crate) function: Diagram,
    decisions: Vec<PolicyDecision>,
    numbers: HashMap<PolicyDecision, u32>,
    pub(crate) hooks: Vec<HookDecisions>,
    /// The rules that send packets on, log or count, and do so for some packet.
    pub(crate) taken: HashSet<(usize, usize)>,
    /// The numbers of the policy's conditions on earlier packets.
    pub(crate) memories: Vec<usize>,
}

impl Decisions {
    /// The decision of a number of the functions.
    pub(crate) fn decision(&self, number: u32) -> Option<PolicyDecision> {
        self.decisions.get((number as usize).checked_sub(1)?).copied()
    }

    fn number_of(&mut self, decision: PolicyDecision) -> u32 {
        // 0 is "not decided yet".
        let next = self.decisions.len() as u32 + 1;
        *self.numbers.entry(decision).or_insert_with(|| {
            self.decisions.push(decision);
            next
        })
    }

    /// The rules that decide about some packet at some hook.
    pub(crate) fn deciding(&self, space: &PacketSpace) -> Result<HashSet<Step>, TooManyNodes> {
        let mut deciding = HashSet::new();
        for hook in &self.hooks {
            let numbers = space.diagrams.numbers(crate::diagram::ALL, hook.function)?;
            deciding.extend(numbers.into_iter().filter_map(|number| self.decision(number)?.by));
        }
        Ok(deciding)
    }
}

const POINTS: [HookPoint; 5] =
    [HookPoint::In, HookPoint::Forward, HookPoint::ToGateway, HookPoint::FromGateway, HookPoint::Out];

/// The numbers of a policy's conditions on earlier packets.
pub(crate) fn memories(space: &mut PacketSpace, policy: &Policy) -> Result<Vec<usize>, AnalysisFault> {
    if policy.memories.len() > MOST_MEMORIES {
        return Err(AnalysisFault::TooManyMemories);
    }
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut memories = Vec::with_capacity(policy.memories.len());
    for memory in &policy.memories {
        let before = seen.entry(&*memory.text).or_default();
        memories.push(space.memory(&memory.text, *before));
        *before += 1;
    }
    Ok(memories)
}

/// Says what the policy decides about every possible packet.
pub(crate) fn decisions(space: &mut PacketSpace, policy: &Policy) -> Result<Decisions, AnalysisFault> {
    decisions_within(space, policy, ALL)
}

/// Says what the policy decides about the possible packets of a set, and nothing about the others.
pub(crate) fn decisions_within(
    space: &mut PacketSpace,
    policy: &Policy,
    within: Diagram,
) -> Result<Decisions, AnalysisFault> {
    let memories = memories(space, policy)?;
    let all = Decisions {
        function: NONE,
        decisions: Vec::new(),
        numbers: HashMap::new(),
        hooks: Vec::new(),
        taken: HashSet::new(),
        memories,
    };
    let mut walk = Walk { space, policy, all, runs: HashMap::new(), steps: 0, function: NONE, within };
    let possible = walk.space.possible()?;
    let mut coming = walk.space.diagrams.both(possible, within)?;
    let nothing = walk.all.number_of(PolicyDecision { action: RuleAction::Pass, by: None });
    walk.all.function = walk.space.diagrams.choose(coming, Diagram::end(nothing), NONE)?;
    for point in POINTS {
        let here = walk.space.at(point)?;
        let here = walk.without_remembered(coming, here, point)?;
        for (index, hook) in policy.hooks.iter().enumerate().filter(|(_, hook)| hook.point == point) {
            let asked = walk.space.diagrams.both(coming, here)?;
            let default = PolicyDecision { action: hook.default, by: Some(Step::Default(index)) };
            let default = walk.all.number_of(default);
            walk.function = walk.space.diagrams.choose(asked, Diagram::end(default), NONE)?;
            walk.all.hooks.push(HookDecisions {
                hook: index,
                asked,
                function: NONE,
                arrived: HashMap::new(),
            });
            walk.group(hook.group, asked, 1)?;
            coming = walk.end_of_hook(coming)?;
        }
    }
    Ok(walk.all)
}

/// Packets that a group leaves to what stands behind the jump.
#[derive(Clone, Copy)]
struct Left {
    packets: Diagram,
    /// Those of them about which a rule has decided so far.
    so_far: Diagram,
}

/// What rules that stand together decide.
#[derive(Clone, Copy)]
struct RunDecisions {
    /// The numbers of decisions; 0 for packets that none of them matches.
    function: Diagram,
    /// The packets that one of them matches.
    packets: Diagram,
}

/// So many rules are made one function at most. The functions of long lists are large, because rules in front
/// of them do not take packets away yet.
pub(crate) const LONGEST_RUN: usize = 64;

struct Walk<'a> {
    space: &'a mut PacketSpace,
    policy: &'a Policy,
    all: Decisions,
    /// What each run of rules decides: a group and the first rule.
    runs: HashMap<(usize, usize), RunDecisions>,
    steps: usize,
    /// What decides at the hook of now, so far.
    function: Diagram,
    /// The packets that are asked about.
    within: Diagram,
}

impl Walk<'_> {
    /// Gives back which packets of those that come here are compared with rules; the others pass, since their
    /// connections are remembered at this point.
    fn without_remembered(
        &mut self,
        coming: Diagram,
        here: Diagram,
        point: HookPoint,
    ) -> Result<Diagram, AnalysisFault> {
        let Some(field) = self.policy.remembers.asks(point) else { return Ok(here) };
        let known = RuleCondition::Holds(field, vec![Values::Range { low: 1, high: 2 }]);
        let mut known = self.space.set(&known, &[])?;
        if !self.policy.follows_icmp {
            let icmp = RuleCondition::Holds(PacketField::Protocol, [1, 58].map(Values::exact).to_vec());
            let icmp = self.space.set(&icmp, &[])?;
            known = self.space.diagrams.without(known, icmp)?;
        }
        let asked = self.space.diagrams.without(here, known)?;
        let passing = self.space.diagrams.both(coming, here)?;
        let passing = self.space.diagrams.both(passing, known)?;
        let remembered = PolicyDecision { action: RuleAction::Pass, by: Some(Step::Remembered) };
        let number = self.all.number_of(remembered);
        self.function = self.space.diagrams.choose(passing, Diagram::end(number), NONE)?;
        self.join_function()?;
        Ok(asked)
    }

    /// Sends packets through a group, and gives back those that it leaves to what stands behind the jump: in
    /// the function they have what decides unless a later rule does.
    fn group(&mut self, index: usize, packets: Diagram, depth: usize) -> Result<Left, AnalysisFault> {
        if depth > DEEPEST_JUMPS {
            return Err(AnalysisFault::Walk(PolicyFault::TooDeep));
        }
        let hook = self.all.hooks.len() - 1;
        let before = self.all.hooks[hook].arrived.get(&index).copied().unwrap_or(NONE);
        let arrived = self.space.diagrams.either(before, packets)?;
        self.all.hooks[hook].arrived.insert(index, arrived);
        let policy = self.policy;
        let rules = &policy.groups[index].rules;
        let first = policy.groups[index].order == MatchOrder::First;
        let (mut coming, mut back, mut so_far) = (packets, NONE, NONE);
        let mut next = 0;
        while next < rules.len() && coming != NONE {
            let number = next;
            let run = self.run(index, number);
            next = number + run.len().max(1);
            self.steps += next - number;
            if self.steps > MOST_STEPS {
                return Err(AnalysisFault::Walk(PolicyFault::TooLong));
            }
            if !run.is_empty() {
                let decided = self.decided_by(index, &run)?;
                let ends = self.ends(index, number);
                let diagrams = &mut self.space.diagrams;
                let here = diagrams.choose(coming, decided.function, NONE)?;
                self.function = diagrams.over(here, self.function)?;
                if ends {
                    coming = diagrams.without(coming, decided.packets)?;
                } else {
                    let matched = diagrams.both(coming, decided.packets)?;
                    so_far = diagrams.either(so_far, matched)?;
                }
                continue;
            }
            let condition = self.condition(index, number)?;
            let diagrams = &mut self.space.diagrams;
            let matched = diagrams.both(coming, condition)?;
            if matched == NONE {
                continue;
            }
            self.all.taken.insert((index, number));
            let (leaves, returned) = match rules[number].action {
                RuleAction::Return => (true, matched),
                RuleAction::Jump(next) | RuleAction::Goto(next) => {
                    let mut left = self.group(next, matched, depth + 1)?;
                    if first {
                        // What a group behind a jump has decided so far is decided here.
                        left.packets = self.space.diagrams.without(left.packets, left.so_far)?;
                    } else {
                        so_far = self.space.diagrams.either(so_far, left.so_far)?;
                    }
                    if matches!(rules[number].action, RuleAction::Goto(_)) {
                        (true, left.packets)
                    } else {
                        coming = self.space.diagrams.without(coming, matched)?;
                        coming = self.space.diagrams.either(coming, left.packets)?;
                        (false, NONE)
                    }
                }
                _ => (false, NONE),
            };
            if leaves {
                coming = self.space.diagrams.without(coming, condition)?;
                back = self.space.diagrams.either(back, returned)?;
            }
        }
        let packets = self.space.diagrams.either(coming, back)?;
        Ok(Left { packets, so_far: self.space.diagrams.both(packets, so_far)? })
    }

    /// Whether no rule behind this one can change what it decides.
    fn ends(&self, group: usize, rule: usize) -> bool {
        let group = &self.policy.groups[group];
        group.rules[rule].decides_at_once || group.order == MatchOrder::First
    }

    /// The rules from this one on that all decide, and all end the walk or all do not.
    fn run(&self, group: usize, first: usize) -> Range<usize> {
        let rules = &self.policy.groups[group].rules;
        let alike = |rule: &usize| {
            rules[*rule].action.decides() && self.ends(group, *rule) == self.ends(group, first)
        };
        let length = (first..rules.len()).take(LONGEST_RUN).take_while(alike).count();
        first..first + length
    }

    /// What rules that stand together decide, whatever packets come to them.
    fn decided_by(&mut self, group: usize, run: &Range<usize>) -> Result<RunDecisions, AnalysisFault> {
        if let Some(known) = self.runs.get(&(group, run.start)) {
            return Ok(*known);
        }
        let (mut functions, mut sets) = (Vec::with_capacity(run.len()), Vec::with_capacity(run.len()));
        for number in run.clone() {
            let action = self.policy.groups[group].rules[number].action;
            let decision = PolicyDecision { action, by: Some(Step::Rule(group, number)) };
            let decision = Diagram::end(self.all.number_of(decision));
            let condition = self.condition(group, number)?;
            let condition = self.space.diagrams.both(condition, self.within)?;
            functions.push(self.space.diagrams.choose(condition, decision, NONE)?);
            sets.push(condition);
        }
        if !self.ends(group, run.start) {
            functions.reverse();
        }
        let function = self.space.diagrams.stacked(&functions)?;
        let packets = self.space.diagrams.any(&sets)?;
        let decided = RunDecisions { function, packets };
        self.runs.insert((group, run.start), decided);
        Ok(decided)
    }

    fn condition(&mut self, group: usize, rule: usize) -> Result<Diagram, AnalysisFault> {
        let condition = &self.policy.groups[group].rules[rule].condition;
        Ok(self.space.set(condition, &self.all.memories)?)
    }

    /// Puts what a hook decides to what the hooks before it did, and gives back the packets that go on.
    fn end_of_hook(&mut self, coming: Diagram) -> Result<Diagram, AnalysisFault> {
        let function = self.function;
        if let Some(hook) = self.all.hooks.last_mut() {
            hook.function = function;
        }
        self.join_function()?;
        // What a rule keeps passes all points behind it, where connections are remembered for the whole way.
        let at_once = self.policy.remembers == Remembers::Kept;
        let decisions = &self.all;
        let goes_on = |number: u32| {
            decisions.decision(number).is_none_or(|decision| match decision.action {
                RuleAction::Keep => !at_once,
                action => action.passes(),
            })
        };
        let on = self
            .space
            .diagrams
            .join(coming, function, &mut |coming, now| u32::from(coming == 1 && goes_on(now)))?;
        Ok(on)
    }

    /// Joins the function of now to that of all points so far.
    fn join_function(&mut self) -> Result<(), AnalysisFault> {
        let Walk { space, all, function, .. } = self;
        all.function = space.diagrams.join(all.function, *function, &mut |before, now| {
            let (Some(earlier), Some(later)) = (all.decision(before), all.decision(now)) else {
                return before;
            };
            all.number_of(both_decisions(earlier, later))
        })?;
        Ok(())
    }
}

/// What is told of packets about which two hooks decide, one after the other.
fn both_decisions(earlier: PolicyDecision, later: PolicyDecision) -> PolicyDecision {
    if !earlier.action.passes() || !later.action.passes() {
        return if earlier.action.passes() { later } else { earlier };
    }
    let rule = |decision: PolicyDecision| matches!(decision.by, Some(Step::Rule(..)));
    let by = if rule(later) || !rule(earlier) { later.by } else { earlier.by };
    let keeps = [earlier, later].into_iter().find(|decision| decision.action == RuleAction::Keep);
    keeps.map_or(PolicyDecision { action: RuleAction::Pass, by }, |keeps| keeps)
}
