//! A whole ruleset of nftables: base chains at their hooks by priority, chains as groups, and what rules ask
//! of connections.
//!
//! ```text
//! prerouting ─► In    forward ─► Forward    input ─► ToGateway    output ─► FromGateway    postrouting ─►
//! Out
//! ```
//!
//! A packet that a base chain accepts goes on to the next one; a packet that one drops goes nowhere. A table
//! of `ip` or `ip6` sees one family: the first rule of its base chains lets the other one pass.

mod conditions;
mod connection;
mod fields;
mod headers;
mod limits;
mod matches;
mod ruleset;
mod statements;
mod write;

use super::imported::{self, ImportedPolicy, PolicyOptions};
use crate::ImportError;
use crate::conditions::{Interfaces, Naming};
use crate::nft::document::{Source, document};
use crate::text::{Lines, shown, utf8};
use matches::Matcher;
use policy::{Hook, MOST_RULES, MatchOrder, Policy, PolicyRule, Remembers, RuleAction, RuleGroup, RulePlace};
use ruleset::{Chain, Families, Ruleset};
use std::cmp::Reverse;

pub use write::{write_nft, write_nft_json};

/// Reads what `nft -j list ruleset` prints.
///
/// # Errors
/// The first place that is no JSON or no ruleset; jumps in a circle or too deep; more rules than a policy
/// has.
pub(super) fn read(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    let text = utf8(text)?;
    let lines = Lines::of(text.as_bytes());
    let source = Source::new(text, &lines);
    let document = document(text)?;
    let ruleset = Ruleset::read(source, &document)?;
    let reached = ruleset.reached(source)?;
    let mut refused = ruleset.others(source);
    let interfaces = Interfaces::new(&Naming::Ports(options.interfaces.clone())).with_loopback();
    let mut matcher = Matcher::new(interfaces, ruleset.followed());
    let (mut groups, mut kept, mut count) = (Vec::with_capacity(reached.chains.len()), 0, 0);
    for (number, chain) in &reached.chains {
        let chain_object = &ruleset.chains[*number];
        let mut rules: Vec<PolicyRule> = gate(source, chain_object).into_iter().collect();
        count += rules.len();
        for rule in &ruleset.rules[*number] {
            match statements::rules(source, &ruleset, &reached, chain, rule, &mut matcher) {
                Ok(read) => {
                    count += read.len();
                    if count > MOST_RULES {
                        let what = format!("up to here the ruleset becomes more than {MOST_RULES} rules");
                        let advice = "put elements with the same verdict side by side, and use smaller maps";
                        return Err(source.error(rule.raw, what, advice));
                    }
                    rules.extend(read);
                    kept += 1;
                }
                Err(error) => refused.push(error),
            }
        }
        groups.push(RuleGroup { name: name(chain_object), order: MatchOrder::First, rules });
    }
    let mut hooks = Vec::new();
    for (number, way) in &reached.chains {
        let chain = &ruleset.chains[*number];
        let Some(point) = chain.point else { continue };
        let drops = chain.object.policy.as_deref() == Some("drop");
        let default = if drops { RuleAction::Block } else { RuleAction::Pass };
        let hook = Hook { point, group: way.group, default, place: place(source, chain) };
        // Linux puts a chain before those of the same priority that are there already.
        hooks.push((chain.priority, Reverse(way.group), hook));
    }
    hooks.sort_by_key(|(priority, index, _)| (*priority, *index));
    refused.sort();
    let policy = Policy {
        hooks: hooks.into_iter().map(|(_, _, hook)| hook).collect(),
        groups,
        remembers: if matcher.fields.asks_state { Remembers::Passed } else { Remembers::Nothing },
        follows_icmp: true,
        memories: matcher.into_memories(),
        interfaces: options.interfaces.clone(),
        ..Policy::default()
    };
    Ok(ImportedPolicy { policy, kept, refused, skipped: None })
}

/// The name of a chain with those of its table.
fn name(chain: &Chain<'_>) -> String {
    let object = &chain.object;
    format!("{} {} {}", object.family, shown(&object.table), shown(&object.name))
}

fn place(source: Source<'_>, chain: &Chain<'_>) -> RulePlace {
    let ImportError { line, column, .. } = source.error(chain.raw, "", "");
    RulePlace { line, column }
}

/// The rule by which a base chain of one family lets packets of the other one pass.
fn gate(source: Source<'_>, chain: &Chain<'_>) -> Option<PolicyRule> {
    let family = match chain.families {
        Families::V4 => 4,
        Families::V6 => 6,
        Families::Both => return None,
    };
    chain.point?;
    let text = format!("table {} {}", chain.object.family, shown(&chain.object.table));
    Some(imported::gate(family, place(source, chain), text))
}

#[cfg(test)]
mod tests;
