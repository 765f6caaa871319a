//! Rules that decide about no packet, and why: which others decide instead.

use crate::decisions::{AnalysisFault, Decisions, decisions};
use crate::diagram::NONE;
use crate::evaluate::Step;
use crate::model::{Policy, RuleAction};
use crate::packet_space::PacketSpace;
use std::collections::HashSet;

/// A rule that is never reached, or whose decision never stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreachedRule {
    /// Its group.
    pub group: usize,
    /// Its index there.
    pub rule: usize,
    /// Why.
    pub cause: UnreachedCause,
}

/// Why a rule decides about no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreachedCause {
    /// No packet that there can be matches it.
    Impossible,
    /// No packet comes to its group.
    GroupUnreached,
    /// None of the packets that it matches comes to its group.
    NoneArrives,
    /// Others decide about all packets of its group that it matches.
    Covered {
        /// Who decides about them together.
        by: Vec<Step>,
        /// Whether these do the same as the rule, the opposite, or partly each. A rule that only sends
        /// packets on does neither.
        effect: CoverEffect,
    },
}

/// What those do that decide in place of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverEffect {
    /// All of them let pass what the rule lets pass, or block what it blocks.
    Same,
    /// All of them do the opposite.
    Opposite,
    /// Some do the same and some the opposite.
    Mixed,
    /// The rule only sends packets on, logs or counts.
    NoDecision,
}

/// The rules of a policy that decide about no packet.
pub(crate) fn unreached(
    space: &mut PacketSpace,
    policy: &Policy,
    decided: &Decisions,
) -> Result<Vec<UnreachedRule>, AnalysisFault> {
    let deciding = decided.deciding(space);
    let possible = space.possible()?;
    let mut found = Vec::new();
    for (group_index, group) in policy.groups.iter().enumerate() {
        let mut reached_group = NONE;
        for hook in &decided.hooks {
            let here = hook.arrived.get(&group_index).copied().unwrap_or(NONE);
            reached_group = space.diagrams.either(reached_group, here)?;
        }
        for (index, rule) in group.rules.iter().enumerate() {
            let stands = match rule.action.decides() {
                true => deciding.contains(&Step::Rule(group_index, index)),
                false => decided.taken.contains(&(group_index, index)),
            };
            if stands {
                continue;
            }
            let condition = space.set(&rule.condition, &decided.memories)?;
            let condition = space.diagrams.both(possible, condition)?;
            let arriving = space.diagrams.both(condition, reached_group)?;
            let cause = match () {
                () if condition == NONE => UnreachedCause::Impossible,
                () if reached_group == NONE => UnreachedCause::GroupUnreached,
                () if arriving == NONE => UnreachedCause::NoneArrives,
                () => {
                    let mut numbers = HashSet::new();
                    for hook in &decided.hooks {
                        let here = hook.arrived.get(&group_index).copied().unwrap_or(NONE);
                        let here = space.diagrams.both(condition, here)?;
                        numbers.extend(space.diagrams.numbers(here, hook.function));
                    }
                    covered(decided, numbers, rule.action)
                }
            };
            found.push(UnreachedRule { group: group_index, rule: index, cause });
        }
    }
    Ok(found)
}

fn covered(decided: &Decisions, numbers: HashSet<u32>, action: RuleAction) -> UnreachedCause {
    let decisions: Vec<_> = numbers.into_iter().filter_map(|number| decided.decision(number)).collect();
    let mut by: Vec<Step> = decisions.iter().filter_map(|decision| decision.by).collect();
    by.sort_unstable();
    by.dedup();
    let same = decisions.iter().any(|decision| decision.action.passes() == action.passes());
    let opposite = decisions.iter().any(|decision| decision.action.passes() != action.passes());
    let effect = match (same, opposite) {
        _ if !action.decides() => CoverEffect::NoDecision,
        (true, true) => CoverEffect::Mixed,
        (false, true) => CoverEffect::Opposite,
        _ => CoverEffect::Same,
    };
    UnreachedCause::Covered { by, effect }
}

/// What is found in a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFindings {
    /// The rules that decide about no packet.
    pub unreached: Vec<UnreachedRule>,
}

/// Looks for what is wrong with a policy.
///
/// # Errors
/// It cannot be walked, or it is too much.
pub fn findings(policy: &Policy) -> Result<PolicyFindings, AnalysisFault> {
    let mut space = PacketSpace::new()?;
    let decided = decisions(&mut space, policy)?;
    Ok(PolicyFindings { unreached: unreached(&mut space, policy, &decided)? })
}
