//! Rules that decide about no packet, and why: which others decide instead.

use crate::decisions::AnalysisFault;
use crate::diagram::NONE;
use crate::evaluate::Step;
use crate::limits::MOST_COVERS;
use crate::model::RuleAction;
use crate::why::DecidedPolicy;
use std::collections::BTreeSet;

/// Why rules decide about no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnreachedCause {
    /// No packet that there can be matches them.
    Impossible,
    /// No packet comes to these groups, in which they stand.
    GroupUnreached(Vec<usize>),
    /// None of the packets that they match comes to these groups, in which they stand.
    NoneArrives(Vec<usize>),
    /// Others decide about all packets of their groups that they match.
    Covered {
        /// Who decides about them together: the first ones, at most `MOST_COVERS`.
        by: Vec<Step>,
        /// How many more do.
        more: usize,
        /// Whether all these do the same as the rules, the opposite, or partly each. Rules that only send
        /// packets on do neither.
        effect: CoverEffect,
    },
}

/// What those do that decide in place of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoverEffect {
    /// All of them let pass what the rules let pass, or block what they block.
    Same,
    /// All of them do the opposite.
    Opposite,
    /// Some do the same and some the opposite.
    Mixed,
    /// The rules only send packets on, log or count.
    NoDecision,
}

impl DecidedPolicy<'_> {
    /// The rules that decide about no packet, in the order of the policy: of each its group and its index
    /// there.
    ///
    /// # Errors
    /// It is too much.
    pub fn unreached(&self) -> Result<Vec<(usize, usize)>, AnalysisFault> {
        let deciding = self.decisions.deciding(&self.space)?;
        let mut found = Vec::new();
        for (group, rules) in self.policy.groups.iter().enumerate() {
            for (index, rule) in rules.rules.iter().enumerate() {
                let stands = match rule.action.decides() {
                    true => deciding.contains(&Step::Rule(group, index)),
                    false => self.decisions.taken.contains(&(group, index)),
                };
                if !stands {
                    found.push((group, index));
                }
            }
        }
        Ok(found)
    }

    /// Why none of these rules decides about a packet; [`DecidedPolicy::unreached`] gave them. What one line
    /// of a file became is asked about together.
    ///
    /// # Errors
    /// It is too much.
    pub fn why_unreached(&mut self, rules: &[(usize, usize)]) -> Result<UnreachedCause, AnalysisFault> {
        let (space, decided) = (&mut self.space, &self.decisions);
        let possible = space.possible()?;
        let mut covers = Covers::default();
        for (group, index) in rules {
            let rule = &self.policy.groups[*group].rules[*index];
            let condition = space.set(&rule.condition, &decided.memories)?;
            let condition = space.diagrams.both(possible, condition)?;
            if condition == NONE {
                continue;
            }
            covers.matches_in(*group);
            for hook in &decided.hooks {
                let reached = hook.arrived.get(group).copied().unwrap_or(NONE);
                covers.any_reached |= reached != NONE;
                let here = space.diagrams.both(condition, reached)?;
                for number in space.diagrams.numbers(here, hook.function)? {
                    let Some(decision) = decided.decision(number) else { continue };
                    covers.add(rule.action, decision.action, decision.by);
                }
            }
        }
        Ok(covers.cause())
    }
}

/// What is found out about rules that decide about no packet.
#[derive(Default)]
pub(crate) struct Covers {
    /// The groups in which one of them matches packets.
    groups: Vec<usize>,
    /// Whether packets come to one of these groups.
    pub(crate) any_reached: bool,
    by: BTreeSet<Step>,
    same: bool,
    opposite: bool,
}

impl Covers {
    /// A rule of a group matches packets.
    pub(crate) fn matches_in(&mut self, group: usize) {
        if self.groups.last() != Some(&group) {
            self.groups.push(group);
        }
    }

    /// Something decides about packets that a rule with this action matches.
    pub(crate) fn add(&mut self, action: RuleAction, decided: RuleAction, by: Option<Step>) {
        self.by.extend(by);
        if action.decides() {
            let alike = decided.passes() == action.passes();
            (self.same, self.opposite) = (self.same || alike, self.opposite || !alike);
        }
    }

    /// Why the rules decide about none.
    pub(crate) fn cause(self) -> UnreachedCause {
        if self.by.is_empty() {
            return match () {
                () if self.groups.is_empty() => UnreachedCause::Impossible,
                () if self.any_reached => UnreachedCause::NoneArrives(self.groups),
                () => UnreachedCause::GroupUnreached(self.groups),
            };
        }
        let effect = match (self.same, self.opposite) {
            (true, false) => CoverEffect::Same,
            (false, true) => CoverEffect::Opposite,
            (true, true) => CoverEffect::Mixed,
            (false, false) => CoverEffect::NoDecision,
        };
        let more = self.by.len().saturating_sub(MOST_COVERS);
        UnreachedCause::Covered { by: self.by.into_iter().take(MOST_COVERS).collect(), more, effect }
    }
}
