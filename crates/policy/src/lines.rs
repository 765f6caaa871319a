//! The lines of a policy: one line of a file may have become several rules.
//!
//! A reject that is another one for each protocol, a rule for both directions and a map of verdicts are one
//! line for their author. What is said of a line holds for all rules that it became.

use crate::field::PacketField;
use crate::model::{AskedFamilies, Policy, RuleCondition};
use std::collections::HashMap;

/// A rule: its group, and its index there.
pub(crate) type RuleIndex = (usize, usize);

impl Policy {
    /// The rules that each line became, in the order of their first ones: of each rule its group and its
    /// index there. Rules with the same place and the same text are one line. What the reader added, since
    /// packets of the other family come to no hook of a file for one family, or no policy that is about IPv4
    /// alone is asked about them, and what stands at the end of a list without being written, is none.
    pub fn lines(&self) -> Vec<Vec<(usize, usize)>> {
        let mut lines: Vec<Vec<RuleIndex>> = Vec::new();
        let mut known = HashMap::new();
        for (group, rules) in self.groups.iter().enumerate() {
            for (index, rule) in rules.rules.iter().enumerate() {
                let is_unwritten = rule.place.line > 0 && rule.place.column == 0;
                if is_unwritten || (index == 0 && self.lets_other_family_pass(group)) {
                    continue;
                }
                let line = *known.entry((rule.place, &*rule.text)).or_insert_with(|| {
                    lines.push(Vec::new());
                    lines.len() - 1
                });
                lines[line].push((group, index));
            }
        }
        lines
    }

    /// Whether the first rule of a group stands for packets of the other family: where the policy is asked
    /// about IPv4 alone, each hook has one; elsewhere it stands where the group itself does, and asks for the
    /// family alone.
    fn lets_other_family_pass(&self, group: usize) -> bool {
        if self.families == AskedFamilies::Version4Alone {
            return self.hooks.iter().any(|hook| hook.group == group);
        }
        let Some(rule) = self.groups[group].rules.first() else { return false };
        let RuleCondition::Not(condition) = &rule.condition else { return false };
        matches!(**condition, RuleCondition::Holds(PacketField::Family, _))
            && self.hooks.iter().any(|hook| hook.group == group && hook.place == rule.place)
    }
}
