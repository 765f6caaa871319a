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

pub(super) fn iptables(text: &[u8], options: &PolicyOptions) -> Result<ImportedPolicy, ImportError> {
    Ok(policy_of(crate::iptables::read(text, &chain_options(options))?))
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use policy::{Packet, Path, evaluate};

    #[test]
    fn a_chain_decides_as_the_list_that_it_becomes() {
        let dump = "*filter\n:FORWARD DROP [0:0]\n:x - [0:0]\n-A FORWARD -s 10.0.0.0/8 -j x\n\
                    -A x -p tcp -m tcp --dport 22:23 -j ACCEPT\n-A x -m state --state NEW -j ACCEPT\nCOMMIT\n";
        let read =
            super::super::read(dump.as_bytes(), "iptables", &PolicyOptions::default()).expect("a dump");
        assert_eq!((read.kept, read.refused.len(), read.refused[0].line), (1, 1, 6));
        let packet = |port: u128| {
            Packet::default()
                .with(PacketField::Family, Some(4))
                .with(PacketField::Source, Some(MAPPED | 0x0a00_0001))
                .with(PacketField::Destination, Some(MAPPED | 0x0b00_0001))
                .with(PacketField::Protocol, Some(6))
                .with(PacketField::DestinationPort, Some(port))
                .with(PacketField::LaterFragment, Some(0))
        };
        for (port, action) in [(22, RuleAction::Pass), (24, RuleAction::Block)] {
            let verdict = evaluate(&read.policy, Path::Forwarded, &packet(port), &|_| false).expect("ends");
            assert_eq!(verdict.action, action);
        }
        assert!(super::super::read(b"", "pf2", &PolicyOptions::default()).is_err());
    }
}
