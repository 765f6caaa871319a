//! The limits of a policy's rules: those of one rate share a meter, in which each rule has a cell.

use crate::ast::{ExprKind, PolicyDeclaration, RuleLimit};
use crate::limits::MOST_POLICY_RATES;

/// A rate that rules of a policy have, and these rules.
pub(crate) struct PolicyRate<'p> {
    /// The first of their limits.
    pub(crate) limit: &'p RuleLimit,
    /// The number of the limit of the first rule; those of the others follow.
    pub(crate) first: u32,
    /// The numbers of the rules, from 1 in the order of the policy's text.
    pub(crate) rules: Vec<u32>,
}

impl PolicyRate<'_> {
    /// The name of the meter, which says the rate: a new program takes over the levels of the same one.
    pub(crate) fn meter(&self, policy: &PolicyDeclaration) -> String {
        let number = |kind: &ExprKind| match kind {
            ExprKind::Word(constant) => constant.clone(),
            ExprKind::Int(number) => number.to_string(),
            _ => String::new(),
        };
        let unit = if self.limit.bytes { "bytes" } else { "packets" };
        // What a meter of a second is called has stood in running gateways before other times were known.
        let time = if self.limit.time.1 == 1 { String::new() } else { format!(".{}", self.limit.time.0) };
        let (rate, burst) = (number(&self.limit.rate.kind), number(&self.limit.burst.kind));
        format!("{}.limit.{unit}.{rate}{time}.{burst}", policy.name.text)
    }

    /// The numbers of its limits, each with its rule.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (u32, u32)> {
        self.rules.iter().copied().zip(self.first..).map(|(rule, limit)| (limit, rule))
    }
}

/// The rates of a policy in the order of its text, [`MOST_POLICY_RATES`] at most; the rules of others have
/// none.
pub(crate) fn rates_of(policy: &PolicyDeclaration) -> Vec<PolicyRate<'_>> {
    let mut rates: Vec<PolicyRate<'_>> = Vec::new();
    let rules = policy.groups.iter().flat_map(|group| &group.rules);
    for (rule, number) in rules.zip(1..) {
        let Some(limit) = &rule.limit else { continue };
        match rates.iter().position(|rate| rate.limit.has_rate_of(limit)) {
            Some(known) => rates[known].rules.push(number),
            None if rates.len() < MOST_POLICY_RATES => {
                rates.push(PolicyRate { limit, first: 0, rules: vec![number] });
            }
            None => {}
        }
    }
    let mut next = 0;
    for rate in &mut rates {
        rate.first = next;
        next += rate.rules.len() as u32;
    }
    rates
}
