//! What a policy says about one packet: the groups are walked as their authors describe it, rule by rule.
//!
//! At each point on its way a packet meets the base groups there, in order. The first one that blocks it ends
//! the way; a packet that none blocks passes. In a group of [`MatchOrder::First`] the first rule that matches
//! decides; in one of [`MatchOrder::Last`] the last one does, unless a rule before it decides at once. A jump
//! goes through the other group and comes back where no rule there has decided.

use crate::field::{Packet, PacketField, State};
use crate::limits::{DEEPEST_JUMPS, MOST_STEPS};
use crate::model::{Hook, HookPoint, MatchOrder, Path, Policy, Remembers, RuleAction, RuleCondition};

/// What happens to a packet, and what decided it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyVerdict {
    /// [`RuleAction::Pass`], [`RuleAction::Keep`], [`RuleAction::Block`] or [`RuleAction::Reject`].
    pub action: RuleAction,
    /// The rules that matched, in order, and the defaults that decided.
    pub steps: Vec<Step>,
}

/// One thing that had a say about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A rule: the index of its group, and its index there.
    Rule(usize, usize),
    /// The default of a hook: its index.
    Default(usize),
    /// The connection that the packet belongs to was let in before, here or at several points.
    Remembered,
}

/// A policy that cannot be walked to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyFault {
    /// A group jumps to itself, perhaps through others, or jumps lead deeper than [`DEEPEST_JUMPS`].
    TooDeep,
    /// The packet is compared with more rules than [`MOST_STEPS`].
    TooLong,
}

/// Says what the policy decides about a packet on this way. `remembered` says whether a
/// [`RuleCondition::Remembered`] holds.
///
/// # Errors
/// Jumps that lead too deep, and too many rules.
pub fn evaluate(
    policy: &Policy,
    path: Path,
    packet: &Packet,
    remembered: &dyn Fn(usize) -> bool,
) -> Result<PolicyVerdict, PolicyFault> {
    let mut walk = Walk { policy, packet, remembered, steps: Vec::new(), compared: 0 };
    let mut action = RuleAction::Pass;
    for point in path.points() {
        if is_remembered(policy, *point, packet) {
            if walk.steps.last() != Some(&Step::Remembered) {
                walk.steps.push(Step::Remembered);
            }
            continue;
        }
        for (index, hook) in policy.hooks.iter().enumerate().filter(|(_, hook)| hook.point == *point) {
            match walk.hook(index, hook)? {
                RuleAction::Pass => {}
                RuleAction::Keep => {
                    action = RuleAction::Keep;
                    if policy.remembers == Remembers::Kept {
                        return Ok(PolicyVerdict { action, steps: walk.steps });
                    }
                }
                blocks => return Ok(PolicyVerdict { action: blocks, steps: walk.steps }),
            }
        }
    }
    Ok(PolicyVerdict { action, steps: walk.steps })
}

/// Whether a packet passes a point since its connection is remembered there.
fn is_remembered(policy: &Policy, point: HookPoint, packet: &Packet) -> bool {
    let known = [State::Established, State::Related].map(|state| Some(state as u128));
    let is_icmp = matches!(packet.get(PacketField::Protocol), Some(1 | 58));
    let followed = policy.follows_icmp || !is_icmp;
    followed && policy.remembers.asks(point).is_some_and(|field| known.contains(&packet.get(field)))
}

struct Walk<'a> {
    policy: &'a Policy,
    packet: &'a Packet,
    remembered: &'a dyn Fn(usize) -> bool,
    steps: Vec<Step>,
    compared: usize,
}

/// How a packet leaves a group.
enum Left {
    /// Decided, and no rule elsewhere can change it.
    Decided(RuleAction),
    /// Decided, unless a later rule of a group of [`MatchOrder::Last`] that jumped here matches.
    SoFar(RuleAction),
    /// Not decided: it goes on behind the jump, or there is none, and the default decides.
    Back,
}

impl Walk<'_> {
    fn hook(&mut self, index: usize, hook: &Hook) -> Result<RuleAction, PolicyFault> {
        match self.group(hook.group, 1)? {
            Left::Decided(action) | Left::SoFar(action) => Ok(action),
            Left::Back => {
                self.steps.push(Step::Default(index));
                Ok(hook.default)
            }
        }
    }

    fn group(&mut self, index: usize, depth: usize) -> Result<Left, PolicyFault> {
        if depth > DEEPEST_JUMPS {
            return Err(PolicyFault::TooDeep);
        }
        let group = &self.policy.groups[index];
        let mut so_far = None;
        for (number, rule) in group.rules.iter().enumerate() {
            self.compared += 1;
            if self.compared > MOST_STEPS {
                return Err(PolicyFault::TooLong);
            }
            if !self.holds(&rule.condition) {
                continue;
            }
            self.steps.push(Step::Rule(index, number));
            let left = match rule.action {
                RuleAction::Continue => continue,
                RuleAction::Return => return Ok(so_far.map_or(Left::Back, Left::SoFar)),
                RuleAction::Jump(next) => self.group(next, depth + 1)?,
                RuleAction::Goto(next) => match self.group(next, depth + 1)? {
                    Left::Back => return Ok(so_far.map_or(Left::Back, Left::SoFar)),
                    left => left,
                },
                decided if rule.decides_at_once || group.order == MatchOrder::First => Left::Decided(decided),
                decided => Left::SoFar(decided),
            };
            match left {
                Left::Decided(_) => return Ok(left),
                Left::SoFar(action) if group.order == MatchOrder::First => return Ok(Left::Decided(action)),
                Left::SoFar(action) => so_far = Some(action),
                Left::Back => {}
            }
            if matches!(rule.action, RuleAction::Goto(_)) {
                break;
            }
        }
        Ok(so_far.map_or(Left::Back, Left::SoFar))
    }

    fn holds(&self, condition: &RuleCondition) -> bool {
        match condition {
            RuleCondition::Holds(field, values) => {
                let value = self.packet.get(*field);
                value.is_some_and(|value| values.iter().any(|values| values.hold(value)))
            }
            RuleCondition::Absent(field) => self.packet.get(*field).is_none(),
            RuleCondition::All(all) => all.iter().all(|each| self.holds(each)),
            RuleCondition::Any(any) => any.iter().any(|each| self.holds(each)),
            RuleCondition::Not(inner) => !self.holds(inner),
            RuleCondition::Remembered(index) => (self.remembered)(*index),
        }
    }
}

#[cfg(test)]
mod tests;
