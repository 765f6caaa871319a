//! One chain of a file without connections, unrolled into one group at the hook of forwarded packets.

use super::imported::{ImportedPolicy, PolicyOptions};
use crate::ImportError;
use crate::address::AddressFamily;
use crate::chains::ChainOptions;
use crate::conditions::Naming;
use crate::ruleset::{ImportedRule, ImportedRules};
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, RuleAction, RuleCondition, RuleGroup,
    RulePlace, Values,
};
use std::collections::BTreeSet;
use tables::rules::RuleField;

pub(super) fn nft(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    Ok(policy_of(crate::nft::read(text, &chain_options(options))?))
}

fn chain_options(options: &PolicyOptions) -> ChainOptions {
    ChainOptions {
        family: options.family,
        interfaces: Naming::Ports(options.interfaces.clone()),
        lenient: true,
        ..ChainOptions::default()
    }
}

fn policy_of(imported: ImportedRules) -> ImportedPolicy {
    let family = imported.family();
    let rules = imported.rules.iter().map(|rule| rule_of(rule, &imported, family)).collect();
    let place = RulePlace { line: imported.policy.as_ref().map_or(1, |policy| policy.line), column: 1 };
    let group = RuleGroup { name: "forward".to_owned(), order: MatchOrder::First, rules };
    let default = decision(imported.default);
    let hook = Hook { point: HookPoint::Forward, group: 0, default, place };
    let kept: BTreeSet<u32> = imported.rules.iter().map(|rule| rule.line).collect();
    let policy = Policy {
        hooks: vec![hook],
        groups: vec![group],
        interfaces: imported.interfaces,
        ..Policy::default()
    };
    ImportedPolicy { policy, kept: kept.len(), refused: imported.refused, skipped: None }
}

fn decision(allow: Option<bool>) -> RuleAction {
    if allow == Some(true) { RuleAction::Pass } else { RuleAction::Block }
}

fn rule_of(rule: &ImportedRule, imported: &ImportedRules, family: AddressFamily) -> PolicyRule {
    let version = if family == AddressFamily::V4 { 4 } else { 6 };
    let mut all = vec![RuleCondition::Holds(PacketField::Family, vec![Values::exact(version)])];
    for (field, column) in rule.rule.fields.iter().zip(&imported.columns) {
        let name = PacketField::ALL.into_iter().find(|field| field.name() == column.name);
        let (Some(name), Some(values)) = (name, values(*field, name, column.width)) else { continue };
        all.push(RuleCondition::Holds(name, vec![values]));
    }
    PolicyRule {
        place: RulePlace { line: rule.line, column: 1 },
        text: rule.text.clone(),
        condition: RuleCondition::All(all),
        action: decision(rule.allow),
        decides_at_once: false,
        log: rule.log,
        count: false,
    }
}

/// An address of IPv4 is one of IPv6 below ::ffff:0:0/96.
const MAPPED: u128 = 0xffff_0000_0000;

fn values(field: RuleField, name: Option<PacketField>, width: u8) -> Option<Values> {
    let address = matches!(name, Some(PacketField::Source | PacketField::Destination)) && width == 32;
    let base = if address { MAPPED } else { 0 };
    let bits = |value: u128| base | value;
    Some(match field {
        RuleField::Any => return None,
        RuleField::Exact(value) => Values::exact(bits(value)),
        RuleField::Prefix { value, length } => {
            let host = crate::address::host_mask(width, length);
            Values::Range { low: bits(value & !host), high: bits(value | host) }
        }
        RuleField::Range { low, high } => Values::Range { low: bits(low), high: bits(high) },
        RuleField::Ternary { value, mask } => {
            let fixed = if address { u128::MAX << 32 } else { 0 };
            Values::Masked { value: bits(value), mask: fixed | mask }
        }
    })
}
