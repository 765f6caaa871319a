//! `iptables-save` and `ip6tables-save`: one chain of a table, with all that it jumps to, as rules in order.
//!
//! ```text
//! *filter                                   a table starts
//! :FORWARD DROP [0:0]                       a chain with its policy, `-` for one that others jump to
//! [12:640] -A FORWARD -s 10.0.0.0/8 -j x    a rule, with its counters or without
//! COMMIT                                    the table is whole
//! ```
//!
//! A stateless program can mean what depends on the packet alone. What asks for a connection, a rate, a
//! process or the payload is refused by its line.

mod address_type;
mod connections;
pub(crate) mod dump;
mod hooks;
mod limits;
mod mark;
pub(crate) mod matches;
mod numbers;
mod options;
pub(crate) mod rule;
mod security;
pub(crate) mod sets;
mod target;
#[cfg(test)]
mod tests;
mod traffic_class;
mod values;
pub(crate) mod words;

pub use crate::chains::ChainOptions;

use crate::ImportError;
use crate::chains::{Chain, Step, Target, unroll};
use crate::conditions::{Conditions, Fault};
use crate::region::Region;
use crate::ruleset::{ChainPolicy, ImportedRules};
use crate::text::{Line, one_of, shown};
use dump::{Table, refuse_other_family, tables};
use policy::RuleAction;
use rule::{ChainPlace, Context, Purpose};

/// Reads one chain: `FORWARD`, if none is asked for.
///
/// # Errors
/// The first line of the dump that is none; a table without its `COMMIT`, as the dump may be cut; the first
/// line of the wanted chain, or of one that it leads to, that means more than a rule can say; jumps in a
/// circle or to nowhere; more rules than the limit.
pub fn read(text: &[u8], options: &ChainOptions) -> Result<ImportedRules, ImportError> {
    refuse_other_family(text, options.family)?;
    let tables = tables(text, None)?;
    let Some(table) = tables.iter().find(|table| table.name == options.table) else {
        return Err(ImportError::new(
            1,
            1,
            format!("there is no table `{}`", shown(&options.table)),
            one_of(tables.iter().map(|table| table.name)),
        ));
    };
    let wanted = options.chain.as_deref().unwrap_or("FORWARD");
    let Some(start) = table.number(wanted) else {
        return Err(ImportError::new(
            table.line,
            1,
            format!("the table `{}` has no chain `{}`", shown(table.name), shown(wanted)),
            one_of(table.chains.iter().map(|(chain, _)| *chain)),
        ));
    };
    let other = hooks::others_decide_nothing(&tables, table, wanted).err();
    if let (false, Some(other)) = (options.lenient, &other) {
        return Err(other.clone());
    }
    let purpose = Purpose::Rows { first_packets: options.first_packets };
    let mut context = Context::new(purpose, options.family, &options.interfaces);
    let mut chains = Vec::with_capacity(table.chains.len());
    for (name, policy) in &table.chains {
        chains.push(Chain { name: (*name).to_owned(), policy: *policy, steps: Vec::new() });
    }
    for line in &table.rules {
        let (chain, step) = step(*line, table, &mut context, options.limit)?;
        chains[chain].steps.push(step);
    }
    let (decisions, refused) = unroll(&chains, start, options)?;
    let mut rules = ImportedRules::of(options.family, decisions, chains[start].policy);
    context.into_interfaces().tell(&mut rules);
    rules.refused = other.into_iter().chain(refused).collect();
    rules.policy = table.policies.get(start).copied().flatten().map(|line| ChainPolicy {
        line,
        words: format!(
            "the chain {} has the policy {}",
            shown(wanted),
            if rules.default == Some(true) { "ACCEPT" } else { "DROP" }
        ),
    });
    Ok(rules)
}

/// The chains with a policy: the table, then the chain, in the order of the dump.
///
/// # Errors
/// The first line of the dump that is none, and a table without its `COMMIT`.
pub fn chains(text: &[u8]) -> Result<Vec<(String, String)>, ImportError> {
    let mut all = Vec::new();
    for table in tables(text, None)? {
        let built_in = table.chains.iter().filter(|(_, policy)| policy.is_some());
        all.extend(built_in.map(|(chain, _)| (table.name.to_owned(), (*chain).to_owned())));
    }
    Ok(all)
}

/// The chain that a rule belongs to, and what it does there.
fn step(
    line: Line<'_>,
    table: &Table<'_>,
    context: &mut Context,
    limit: usize,
) -> Result<(usize, Step), ImportError> {
    let rule = dump::rule_line(line, table)?;
    let (chain, column) = (rule.chain, rule.append.column);
    let rule = context.rule(line, rule.words, &ChainPlace::default(), &|name| table.number(name));
    let rule = rule.and_then(|rule| {
        let target = match rule.action {
            RuleAction::Pass | RuleAction::Keep => Target::Decide(true),
            RuleAction::Block | RuleAction::Reject(_) => Target::Decide(false),
            RuleAction::Jump(chain) => Target::Jump(chain),
            RuleAction::Goto(chain) => Target::Goto(chain),
            RuleAction::Return => Target::Return,
            RuleAction::Continue => {
                let advice = "a rule decides something; remove the line if its count is not needed";
                return Err(line.error_at_end("the rule only counts packets", advice));
            }
        };
        Ok((regions(&rule.matches.conditions, line, limit)?, target))
    });
    Ok((chain, Step { line: line.number, column, text: line.text.trim().into(), log: false, rule }))
}

/// The conditions of a line as boxes.
fn regions(conditions: &Conditions, line: Line<'_>, limit: usize) -> Result<Vec<Region>, ImportError> {
    conditions.regions(limit).map_err(|fault| match fault {
        Fault::Mixed(part) => {
            let what = format!("two matches on {} meet in no range, prefix or mask", part.name());
            ImportError::new(line.number, 1, what, "write them as one")
        }
        Fault::TooMany => {
            let what = format!("the line makes more than {limit} rules");
            ImportError::new(line.number, 1, what, "split the line")
        }
        Fault::NoPorts => {
            ImportError::new(line.number, 1, "ports are asked for of a protocol without", "name it")
        }
    })
}
