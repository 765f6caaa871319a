//! The limits of a policy's rules: those of one rate share a meter, in which each rule has a cell.

use super::read_rules::Places;
use crate::ast::{Expr, ExprKind, PolicyDeclaration, RATE_TIMES, RuleLimit};
use crate::limits::MOST_POLICY_RATES;
use policy::{Memory, Policy};

/// A rate that rules of a policy have, and these rules.
pub(crate) struct PolicyRate<'p> {
    /// The first of their limits.
    pub(crate) limit: &'p RuleLimit,
    /// The number of the limit of the first rule; those of the others follow.
    pub(crate) first: u32,
    /// The numbers of the rules, from 1 in the order of the policy's text; where rules come from a file,
    /// those of its limits.
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
        let time = match self.limit.time {
            (_, 1) => String::new(),
            ("", seconds) => format!(".{seconds}s"),
            (word, _) => format!(".{word}"),
        };
        let (rate, burst) = (number(&self.limit.rate.kind), number(&self.limit.burst.kind));
        format!("{}.limit.{unit}.{rate}{time}.{burst}", policy.name.text)
    }

    /// The numbers of its limits, each with its rule.
    pub(crate) fn limits(&self) -> impl Iterator<Item = (u32, u32)> {
        self.rules.iter().copied().zip(self.first..).map(|(rule, limit)| (limit, rule))
    }
}

/// The limits of a policy's rules with their numbers, as [`PolicyRate::rules`] has them.
pub(crate) fn limits_of(policy: &PolicyDeclaration) -> impl Iterator<Item = (u32, &RuleLimit)> {
    let rules = (1..).zip(policy.groups.iter().flat_map(|group| &group.rules));
    let own = rules.filter_map(|(number, rule)| Some((number, rule.limit.as_ref()?)));
    let of_file = policy.file.iter().flat_map(|file| (1..).zip(&file.limits));
    own.chain(of_file)
}

/// The conditions on earlier packets that are rates, with their places in [`Policy::memories`].
pub(crate) fn rated(policy: &Policy) -> impl Iterator<Item = (usize, &Memory)> {
    policy.memories.iter().enumerate().filter(|(_, memory)| memory.rate.is_ok())
}

/// The limits that rules of a file have, in the order of its [`Policy::memories`].
pub(crate) fn limits_of_file(policy: &Policy, places: &Places<'_>) -> Vec<RuleLimit> {
    let rated = rated(policy).filter_map(|(_, memory)| Some((memory, memory.rate.as_ref().ok()?)));
    let limits = rated.map(|(memory, rate)| {
        let span = places.span(memory.place);
        let number = |number: u32| Expr { kind: ExprKind::Int(number.into()), span };
        let word = RATE_TIMES.iter().find(|(_, seconds)| *seconds == rate.seconds);
        RuleLimit {
            rate: number(rate.tokens),
            time: (word.map_or("", |(word, _)| word), rate.seconds),
            bytes: false,
            burst: number(rate.burst),
            span,
        }
    });
    limits.collect()
}

/// The rates of a policy in the order of its text, [`MOST_POLICY_RATES`] at most; the rules of others have
/// none.
pub(crate) fn rates_of(policy: &PolicyDeclaration) -> Vec<PolicyRate<'_>> {
    let mut rates: Vec<PolicyRate<'_>> = Vec::new();
    for (number, limit) in limits_of(policy) {
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
