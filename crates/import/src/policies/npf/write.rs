//! Policies as configurations of NPF, for those policies that NPF can say.
//!
//! Each group that a hook jumps to becomes a group for that direction, with its rules in their order; what a
//! hook does with all others stands in `group default`. A rule about both families becomes one for each where
//! they differ, and one about several protocols one for each.

mod conditions;

use crate::ImportError;
use crate::address::AddressFamily;
use crate::policies::endpoints::{Answers, LOOPBACK_OF_BSD, TCP, UDP};
use conditions::{Asked, Unsayable, asked, bounded};
use policy::{
    Hook, HookPoint, LOOPBACK, MOST_RULES, MatchOrder, PacketField, Policy, PolicyRule, Reject, Remembers,
    RuleAction, RuleCondition, RulePlace, Unreachable, Values,
};
use std::fmt::Write;

/// Writes a policy as a configuration of NPF that decides the same about every packet.
///
/// # Errors
/// The first rule or hook that NPF cannot say, or that makes too many rules, with its place in the file that
/// the policy comes from.
pub fn write_npf(policy: &Policy) -> Result<String, ImportError> {
    let mut writer = Writer { policy, text: String::new(), lines: 0 };
    if policy.groups.iter().any(|group| group.rules.iter().any(|rule| rule.log)) {
        writer.text.push_str("procedure \"log\" {\n\tlog: npflog0\n}\n\n");
    }
    if policy.follows_icmp {
        writer.text.push_str("alg \"icmp\"\n\n");
    }
    let mut defaults = String::new();
    for (word, point) in [("in", HookPoint::In), ("out", HookPoint::Out)] {
        let hooks: Vec<&Hook> = policy.hooks.iter().filter(|hook| hook.point == point).collect();
        match hooks[..] {
            [] => writeln!(defaults, "\tpass {word} all").unwrap_or_default(),
            [hook] => {
                writer.hook(word, hook)?;
                match hook.default {
                    RuleAction::Block => {}
                    RuleAction::Pass => writeln!(defaults, "\tpass {word} all").unwrap_or_default(),
                    _ => {
                        return Err(refuse(
                            hook.place,
                            "a default that keeps connections or tells the sender",
                        ));
                    }
                }
            }
            [_, second, ..] => return Err(refuse(second.place, "several base groups at one point")),
        }
    }
    if let Some(hook) = policy.hooks.iter().find(|hook| !matches!(hook.point, HookPoint::In | HookPoint::Out))
    {
        return Err(refuse(hook.place, "rules between the way in and the way out"));
    }
    write!(writer.text, "group default {{\n{defaults}}}\n").unwrap_or_default();
    Ok(writer.text)
}

/// The error that NPF cannot say something.
fn refuse(place: RulePlace, what: &str) -> ImportError {
    let what = format!("NPF cannot say {what}");
    ImportError::new(place.line.max(1), place.column.max(1), what, "write it otherwise, or leave it out")
}

struct Writer<'a> {
    policy: &'a Policy,
    text: String,
    /// How many rules are written.
    lines: usize,
}

impl Writer<'_> {
    fn hook(&mut self, word: &str, hook: &Hook) -> Result<(), ImportError> {
        let field = if hook.point == HookPoint::In { PacketField::InPort } else { PacketField::OutPort };
        let base = &self.policy.groups[hook.group];
        if !base.rules.iter().any(|rule| matches!(rule.action, RuleAction::Jump(_))) {
            return self.group(word, hook.group, "", field);
        }
        for rule in &base.rules {
            let (RuleAction::Jump(group), MatchOrder::First) = (rule.action, base.order) else {
                return Err(refuse(rule.place, "rules beside groups"));
            };
            if rule.log || rule.count {
                return Err(refuse(rule.place, "a group that logs or counts"));
            }
            match &rule.condition {
                RuleCondition::All(all) if all.is_empty() => self.group(word, group, "", field)?,
                RuleCondition::Holds(own, values) if *own == field => {
                    let on = self.interface(values, rule.place)?;
                    self.group(word, group, &on, field)?;
                }
                _ => return Err(refuse(rule.place, "a group that is not about one interface")),
            }
        }
        Ok(())
    }

    /// ` on "IF"` for the interface at a port.
    fn interface(&self, values: &[Values], place: RulePlace) -> Result<String, ImportError> {
        let port = match values {
            [Values::Range { low, high }] if low == high => *low,
            _ => return Err(refuse(place, "several interfaces in one place")),
        };
        let name = self.policy.interfaces.iter().find(|(_, own)| u128::from(*own) == port);
        // Bound to another port, the name means that one.
        let is_free = self.policy.interfaces.iter().all(|(name, _)| name != LOOPBACK_OF_BSD);
        let loopback = (port == u128::from(LOOPBACK) && is_free).then_some(LOOPBACK_OF_BSD);
        match name.map(|(name, _)| name.as_str()).or(loopback) {
            Some(name) if !name.contains(['"', '\n']) => Ok(format!(" on \"{name}\"")),
            _ => Err(refuse(place, "an interface without a name")),
        }
    }

    fn group(&mut self, word: &str, number: usize, on: &str, field: PacketField) -> Result<(), ImportError> {
        let group = &self.policy.groups[number];
        let name: String = group.name.chars().filter(|letter| !matches!(letter, '"' | '\n')).collect();
        writeln!(self.text, "group \"{name}\" {word}{on} {{").unwrap_or_default();
        let mut rules = &group.rules[..];
        while let Some(rule) = rules.first() {
            let (condition, block, count) = told(rules, rule)?;
            rules = &rules[count..];
            for asked in self.asked(rule, &condition)? {
                self.lines += 1;
                if self.lines > MOST_RULES {
                    let what = format!("up to here the policy becomes more than {MOST_RULES} rules of NPF");
                    let (line, column) = (rule.place.line.max(1), rule.place.column.max(1));
                    let advice = "ask for ranges of fewer types and codes, or leave rules out";
                    return Err(ImportError::new(line, column, what, advice));
                }
                let is_final = rule.decides_at_once || group.order == MatchOrder::First;
                let line = self.rule(rule, &asked, block, is_final, field)?;
                writeln!(self.text, "\t{line}").unwrap_or_default();
            }
        }
        self.text.push_str("}\n\n");
        Ok(())
    }

    /// What the rules ask that say a condition together.
    fn asked(&self, rule: &PolicyRule, condition: &RuleCondition) -> Result<Vec<Asked>, ImportError> {
        let unsayable = |Unsayable(what): Unsayable| refuse(rule.place, what);
        let v4 = asked(condition, AddressFamily::V4).map_err(unsayable)?;
        let v6 = asked(condition, AddressFamily::V6).map_err(unsayable)?;
        let both = match (v4, v6) {
            (Some(v4), Some(v6)) if v4.is_same(&v6) => vec![v4.of_both()],
            (v4, v6) => v4.into_iter().chain(v6).collect(),
        };
        let mut all = Vec::new();
        for asked in both {
            all.extend(asked.by_protocol().map_err(unsayable)?);
            bounded(all.len()).map_err(unsayable)?;
        }
        Ok(all)
    }

    fn rule(
        &self,
        rule: &PolicyRule,
        asked: &Asked,
        block: &str,
        is_final: bool,
        field: PacketField,
    ) -> Result<String, ImportError> {
        if rule.count {
            return Err(refuse(rule.place, "a rule that counts"));
        }
        let keeps = rule.action == RuleAction::Keep;
        let mut line = if block.is_empty() { "pass" } else { block }.to_owned();
        let is_tcp = asked.protocol == Some(TCP);
        if asked.first_segments && !keeps && block.is_empty() {
            return Err(refuse(rule.place, "the flags of TCP beside other protocols"));
        }
        if keeps {
            // Without these NPF would ask for the first segment of a connection.
            let says = asked.first_segments || asked.protocol.is_some() && (!is_tcp || asked.flags.is_some());
            if !says {
                return Err(refuse(rule.place, "a connection of TCP that is kept from any segment on"));
            }
        }
        if keeps || asked.first_segments {
            line.push_str(match self.policy.remembers {
                Remembers::Kept => " stateful-all",
                Remembers::KeptByDirection if keeps => {
                    return Err(refuse(rule.place, "connections that are kept by direction alone"));
                }
                _ => " stateful",
            });
        }
        if is_final {
            line.push_str(" final");
        }
        if let Some(values) = asked.interfaces(field).map_err(|Unsayable(what)| refuse(rule.place, what))? {
            line.push_str(&self.interface(values, rule.place)?);
        }
        let rest = asked.words().map_err(|Unsayable(what)| refuse(rule.place, what))?;
        line.push_str(&rest);
        if rule.log {
            line.push_str(" apply \"log\"");
        }
        Ok(line)
    }
}

/// What the next rules say together: their condition, the words of a rule that blocks, and how many they are.
/// A rule of NPF that tells senders stands for three rules that share no packet.
fn told(
    rules: &[PolicyRule],
    rule: &PolicyRule,
) -> Result<(RuleCondition, &'static str, usize), ImportError> {
    let prohibited = RuleAction::Reject(Reject::Unreachable(Unreachable::Prohibited));
    let plain = match rule.action {
        RuleAction::Pass | RuleAction::Keep => Some(""),
        RuleAction::Block => Some("block"),
        _ => None,
    };
    let (tcp, udp) = (Some(Reject::TcpReset), Answers::PROHIBITED);
    let ways = [
        ("block return", Answers { tcp, udp, others: None }),
        ("block return-rst", Answers { tcp, ..Answers::default() }),
        ("block return-icmp", Answers { udp, ..Answers::default() }),
    ];
    if let (Some(three), RuleCondition::All(all)) = (rules.get(..3), &rule.condition) {
        let base = RuleCondition::All(all[..all.len().saturating_sub(1)].to_vec());
        for (words, answers) in ways {
            let same = |(rule, part): (&PolicyRule, (RuleCondition, RuleAction))| {
                (&rule.condition, rule.action) == (&part.0, part.1)
                    && (rule.log, rule.decides_at_once) == (three[0].log, three[0].decides_at_once)
            };
            if three.iter().zip(answers.of(&base)).all(same) {
                return Ok((base, words, 3));
            }
        }
    }
    if let Some(words) = plain {
        return Ok((rule.condition.clone(), words, 1));
    }
    let is_of = |number: u8| conditions::is_about(&rule.condition, number);
    match rule.action {
        RuleAction::Reject(Reject::TcpReset) if is_of(TCP) => {
            Ok((rule.condition.clone(), "block return-rst", 1))
        }
        action if action == prohibited && is_of(UDP) => Ok((rule.condition.clone(), "block return-icmp", 1)),
        RuleAction::Reject(_) => Err(refuse(rule.place, "what the sender is told")),
        _ => Err(refuse(rule.place, "a rule that neither passes nor blocks")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use policy::RuleGroup;

    /// So many rules at the way in that block these codes of all types of ICMP and ICMPv6.
    fn policy(rules: usize, codes: u128) -> Policy {
        let holds = |field, values| RuleCondition::Holds(field, values);
        let protocols = vec![Values::exact(1), Values::exact(58)];
        let rule = PolicyRule {
            place: RulePlace { line: 7, column: 3 },
            text: "block icmp".into(),
            condition: RuleCondition::All(vec![
                holds(PacketField::Protocol, protocols),
                holds(PacketField::IcmpType, vec![Values::Range { low: 0, high: 0xff }]),
                holds(PacketField::IcmpCode, vec![Values::Range { low: 0, high: codes - 1 }]),
            ]),
            action: RuleAction::Block,
            decides_at_once: false,
            log: false,
            count: false,
        };
        let hook =
            Hook { point: HookPoint::In, group: 0, default: RuleAction::Pass, place: RulePlace::default() };
        let group = RuleGroup { name: "a".to_owned(), order: MatchOrder::First, rules: vec![rule; rules] };
        Policy { hooks: vec![hook], groups: vec![group], ..Policy::default() }
    }

    #[test]
    fn rules_do_not_multiply_without_limit() {
        assert_eq!(write_npf(&policy(1, 8)).expect("4,096 rules").matches("block final").count(), 4_096);
        for (policy, what) in [
            (policy(1, 9), "types and codes of one rule in at most 4096 rules"),
            (policy(1_000_000 / 4_096 + 1, 8), "more than 1000000 rules"),
        ] {
            let error = write_npf(&policy).expect_err("too many rules");
            assert!((error.line, error.column) == (7, 3) && error.what.contains(what), "{error}");
        }
    }
}
