//! A configuration of IOS as a policy: each access list is a group, and interfaces ask theirs about packets
//! that come in or go out.
//!
//! ```text
//! interface GigabitEthernet0/1
//!  ip access-group 101 in          In: packets by this port go to the list 101
//!  ip access-group web out         Out: packets from another port by this one go to the list `web`
//! ```
//!
//! A list that no interface asks is no part of the policy, though its lines must be understood. What no line
//! of a list permits is denied. No list is asked about packets of IPv6, and none about those of
//! the router itself where they leave.

use super::{ImportedPolicy, PolicyOptions};
use crate::ImportError;
use crate::cisco::access_list::{AccessGroup, configuration};
use crate::cisco::list::List;
use crate::conditions::{Interfaces, Naming};
use crate::text::shown;
use policy::{
    AskedFamilies, Hook, HookPoint, MOST_RULES, MatchOrder, PacketField, Policy, PolicyRule, RuleAction,
    RuleCondition, RuleGroup, RulePlace, Values,
};
use std::collections::{HashMap, HashSet};

pub(super) fn read(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    let configuration = configuration(text, true)?;
    let count = configuration.lists.iter().map(|list| list.len() + 1).sum::<usize>();
    if count > MOST_RULES {
        let what = format!("the lists have {count} rules");
        return Err(ImportError::new(1, 1, what, format!("a policy has at most {MOST_RULES}")));
    }
    let interfaces = options.interfaces.clone();
    let mut policy = Policy { interfaces, families: AskedFamilies::Version4, ..Policy::default() };
    let mut refused = configuration.refused;
    refused.extend(configuration.unclear);
    let mut kept = 0;
    let asked: HashSet<&str> = configuration.access_groups.iter().map(|asked| asked.list.as_str()).collect();
    let mut numbers = HashMap::new();
    for list in &configuration.lists {
        refused.extend(list.refused.iter().cloned());
        kept += list.len();
        // Other lists are about terminals, routes or NAT.
        if asked.contains(list.name.as_str()) {
            numbers.entry(list.name.as_str()).or_insert((policy.groups.len(), list));
            policy.groups.push(group(list));
        }
    }
    let mut interfaces = Interfaces::new(&Naming::Ports(options.interfaces.clone()));
    for (point, out) in [(HookPoint::In, false), (HookPoint::Out, true)] {
        let mut rules = Vec::new();
        for asked in configuration.access_groups.iter().filter(|asked| asked.out == out) {
            let list = numbers.get(asked.list.as_str()).copied();
            match rule(asked, list, &mut interfaces) {
                Ok(rule) => rules.push(rule),
                Err(error) => refused.push(error),
            }
        }
        kept += rules.len();
        if let Some(place) = rules.first().map(|rule| rule.place) {
            let name = if out { "interfaces out" } else { "interfaces in" };
            let group = policy.groups.len();
            policy.groups.push(RuleGroup { name: name.to_owned(), order: MatchOrder::First, rules });
            policy.hooks.push(Hook { point, group, default: RuleAction::Pass, place });
        }
    }
    refused.sort();
    Ok(ImportedPolicy { policy, kept, refused, skipped: None })
}

/// A list, with its last line, which nobody writes.
fn group(list: &List) -> RuleGroup {
    let mut rules: Vec<PolicyRule> = list
        .entries()
        .map(|entry| PolicyRule {
            place: RulePlace { line: entry.line, column: 1 },
            text: entry.text.clone(),
            condition: RuleCondition::Any(entry.packets.iter().map(|packets| packets.condition()).collect()),
            action: if entry.allow { RuleAction::Pass } else { RuleAction::Block },
            decides_at_once: false,
            log: entry.log,
            count: false,
        })
        .collect();
    rules.push(PolicyRule {
        place: RulePlace { line: list.line, column: 0 },
        text: "what no line permits is denied".into(),
        condition: RuleCondition::All(Vec::new()),
        action: RuleAction::Block,
        decides_at_once: false,
        log: false,
        count: false,
    });
    RuleGroup { name: list.name.clone(), order: MatchOrder::First, rules }
}

/// The rule that sends packets of an interface to its list, which is there with its number or not.
fn rule(
    asked: &AccessGroup,
    list: Option<(usize, &List)>,
    interfaces: &mut Interfaces,
) -> Result<PolicyRule, ImportError> {
    let error = |what: String, advice: &str| ImportError::new(asked.line, asked.column, what, advice);
    let port = interfaces.one(&asked.interface).map_err(|fault| {
        let (what, advice) = fault.words(&asked.interface);
        error(what, advice)
    })?;
    let Some((index, list)) = list else {
        let what = format!("there is no access list `{}`", shown(&asked.list));
        return Err(error(what, "write the list, or remove the line"));
    };
    // What a refused line would have been is told there; without it the list denies all.
    if list.is_empty() && list.refused.is_empty() {
        let what = format!("the access list `{}` has no line", shown(&asked.list));
        return Err(error(what, "IOS lets everything pass then; write `permit ip any any` if that is meant"));
    }
    let field = if asked.out { PacketField::OutPort } else { PacketField::InPort };
    let mut all = vec![
        RuleCondition::Holds(PacketField::Family, vec![Values::exact(4)]),
        RuleCondition::Holds(field, vec![port.into()]),
    ];
    if asked.out {
        all.push(RuleCondition::Not(Box::new(RuleCondition::Absent(PacketField::InPort))));
    }
    Ok(PolicyRule {
        place: RulePlace { line: asked.line, column: asked.column },
        text: asked.text.as_str().into(),
        condition: RuleCondition::All(all),
        action: RuleAction::Jump(index),
        decides_at_once: false,
        log: false,
        count: false,
    })
}

#[cfg(test)]
mod tests;
