//! The limits of a policy's rules: those of one rate share a meter, in which each rule has a cell.

use super::read_rules::Places;
use crate::ast::{LimitNumber, PolicyDeclaration, RuleLimit, rate_time};
use crate::limits::MOST_POLICY_RATES;
use policy::{Memory, Policy};
use std::collections::HashMap;
use std::fmt;

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

/// What makes limits those of one rate, so that a meter serves all of them.
#[derive(PartialEq, Eq, Hash)]
struct RateKey<'p> {
    rate: NumberKey<'p>,
    seconds: u32,
    bytes: bool,
    burst: NumberKey<'p>,
}

/// A number of a limit, wherever it stands.
#[derive(PartialEq, Eq, Hash)]
enum NumberKey<'p> {
    Int(u128),
    Constant(&'p str),
}

impl<'p> RateKey<'p> {
    fn of(limit: &'p RuleLimit) -> RateKey<'p> {
        let number = |number: &'p LimitNumber| match number {
            LimitNumber::Int(number, _) => NumberKey::Int(*number),
            LimitNumber::Constant(name) => NumberKey::Constant(&name.text),
        };
        let &RuleLimit { ref rate, seconds, bytes, ref burst, .. } = limit;
        RateKey { rate: number(rate), seconds, bytes, burst: number(burst) }
    }
}

impl fmt::Display for NumberKey<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NumberKey::Int(number) => write!(formatter, "{number}"),
            NumberKey::Constant(constant) => formatter.write_str(constant),
        }
    }
}

impl PolicyRate<'_> {
    /// The name of the meter, which says the rate: a new program takes over the levels of the same one.
    pub(crate) fn meter(&self, policy: &PolicyDeclaration) -> String {
        let RateKey { rate, seconds, bytes, burst } = RateKey::of(self.limit);
        let unit = if bytes { "bytes" } else { "packets" };
        // What a meter of a second is called has stood in running gateways before other times were known.
        let time = match (seconds, rate_time(seconds)) {
            (1, _) => String::new(),
            (_, Some(word)) => format!(".{word}"),
            (seconds, None) => format!(".{seconds}s"),
        };
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
pub(super) fn limits_of_file(policy: &Policy, places: &Places<'_>) -> Vec<RuleLimit> {
    let rated = rated(policy).filter_map(|(_, memory)| Some((memory, memory.rate.as_ref().ok()?)));
    let limits = rated.map(|(memory, rate)| {
        let span = places.span(memory.place);
        let number = |number: u32| LimitNumber::Int(number.into(), span);
        let (tokens, burst) = (number(rate.tokens), number(rate.burst));
        RuleLimit { rate: tokens, seconds: rate.seconds, bytes: false, burst, span }
    });
    limits.collect()
}

/// The rates of a policy in the order of its text, [`MOST_POLICY_RATES`] at most; the rules of others have
/// none.
pub(crate) fn rates_of(policy: &PolicyDeclaration) -> Vec<PolicyRate<'_>> {
    let mut rates: Vec<PolicyRate<'_>> = Vec::new();
    // A file may have many more limits than are kept.
    let mut places: HashMap<RateKey<'_>, usize> = HashMap::new();
    for (number, limit) in limits_of(policy) {
        let key = RateKey::of(limit);
        match places.get(&key) {
            Some(known) => rates[*known].rules.push(number),
            None if rates.len() < MOST_POLICY_RATES => {
                places.insert(key, rates.len());
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

/// The memories of limits by the numbers of these. `memories` are those of the limits in the order of the
/// text.
pub(super) fn memories_of_limits(
    policy: &PolicyDeclaration,
    memories: impl Iterator<Item = usize>,
) -> Vec<usize> {
    let by_rule: HashMap<u32, usize> = limits_of(policy).map(|(rule, _)| rule).zip(memories).collect();
    let rates = rates_of(policy);
    rates.iter().flat_map(|rate| &rate.rules).filter_map(|rule| by_rule.get(rule).copied()).collect()
}
