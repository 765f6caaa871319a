//! What a policy decides, over the fields of packets: its columns are those that have the names of fields.

use super::super::Checker;
use super::super::types::Type;
use super::{KeyColumn, limits_of, memories_of_limits, rated, table_of};
use crate::ast::{self, DeclaredAction, RuleDecision};
use crate::policy_model::{CheckedPolicy, ModelField, family};
use crate::tree::limit_text;
use ir::source::{FileId, Span};
use policy::{
    AskedFamilies, Hook, HookPoint, MatchOrder, Memory, PacketField, Policy, PolicyRule, Remembers,
    RuleAction, RuleCondition, RuleGroup, RulePlace, State, Values,
};
use std::collections::HashMap;

/// The points of a gateway where a policy is asked, by their names.
pub(crate) const POINTS: [(&str, HookPoint); 5] = [
    ("in", HookPoint::In),
    ("forward", HookPoint::Forward),
    ("to_gateway", HookPoint::ToGateway),
    ("from_gateway", HookPoint::FromGateway),
    ("out", HookPoint::Out),
];

impl Checker<'_> {
    /// What a policy without faults decides.
    pub(super) fn model(
        &mut self,
        declared: &ast::PolicyDeclaration,
        columns: &[KeyColumn<'_>],
        groups: &HashMap<&str, usize>,
    ) -> CheckedPolicy {
        let mut checked = CheckedPolicy {
            span: declared.span,
            name: declared.name.text.clone(),
            policy: Ok(Policy::default()),
            rules: Vec::new(),
            hooks: declared.hooks.iter().map(|hook| hook.span).collect(),
            tables: declared.hooks.iter().map(|hook| table_of(declared, hook).text).collect(),
            from: None,
            numbered: declared.groups.iter().flat_map(|group| &group.rules).map(|rule| rule.span).collect(),
            limits: memories_of_limits(declared, 0..limits_of(declared).count()),
            outcomes: outcomes(declared),
        };
        let points = declared.hooks.iter().filter_map(point).collect::<Vec<HookPoint>>();
        let fields = columns.iter().map(|column| Ok((column.name, self.model_field(column, &points)?)));
        let fields: HashMap<&str, ModelField> = match fields.collect::<Result<_, String>>() {
            Ok(fields) => fields,
            Err(sentence) => return CheckedPolicy { policy: Err(sentence), ..checked },
        };
        checked.rules = declared.groups.iter().map(|group| spans(&group.rules)).collect();
        let Some(mut policy) = self.model_rules(declared, columns, &fields, groups) else {
            // The program has an error that was told before.
            return CheckedPolicy { policy: Err("its rules are not right".to_owned()), ..checked };
        };
        policy.remembers = remembers(declared);
        policy.interfaces = self.ports_named();
        if fields.values().any(|field| field.version_4) {
            about_version_4(&mut policy, &mut checked.rules);
        }
        checked.policy = Ok(policy);
        checked
    }

    /// The same of a policy whose rules come from a file. Columns that are no fields are compared by no rule.
    pub(super) fn model_from_file(
        &self,
        declared: &ast::PolicyDeclaration,
        (policy, from): (Policy, FileId),
        columns: &[KeyColumn<'_>],
    ) -> CheckedPolicy {
        let points = declared.hooks.iter().filter_map(point).collect::<Vec<HookPoint>>();
        let is_field = |column: &&KeyColumn<'_>| PacketField::ALL.iter().any(|it| it.name() == column.name);
        let fields =
            columns.iter().filter(is_field).map(|column| self.model_field(column, &points).map(drop));
        let limits = memories_of_limits(declared, rated(&policy).map(|(at, _)| at));
        CheckedPolicy {
            span: declared.span,
            name: declared.name.text.clone(),
            // A file about IPv4 says of packets of IPv6 that they pass, and the program asks about them.
            policy: fields
                .collect::<Result<(), String>>()
                .map(|()| Policy { families: AskedFamilies::Both, ..policy }),
            rules: Vec::new(),
            hooks: Vec::new(),
            tables: declared.hooks.iter().map(|hook| table_of(declared, hook).text).collect(),
            from: Some(from),
            numbered: Vec::new(),
            limits,
            outcomes: outcomes(declared),
        }
    }

    /// The hooks, groups and rules; `None` if one is wrong.
    fn model_rules(
        &mut self,
        declared: &ast::PolicyDeclaration,
        columns: &[KeyColumn<'_>],
        fields: &HashMap<&str, ModelField>,
        groups: &HashMap<&str, usize>,
    ) -> Option<Policy> {
        let mut policy = Policy { follows_icmp: true, ..Policy::default() };
        for group in &declared.groups {
            let mut rules = Vec::with_capacity(group.rules.len());
            for rule in &group.rules {
                let conditions = rule.conditions.iter();
                let conditions = conditions.map(|condition| self.model_condition(condition, columns, fields));
                let mut conditions = conditions.collect::<Option<Vec<_>>>()?;
                if let Some(limit) = &rule.limit {
                    conditions.push(RuleCondition::Remembered(policy.memories.len()));
                    let text = self.limit_with_values(limit).into();
                    let rate = Err("a meter of the program".into());
                    policy.memories.push(Memory { place: RulePlace::default(), text, rate });
                }
                rules.push(PolicyRule {
                    place: RulePlace::default(),
                    text: "".into(),
                    condition: RuleCondition::All(conditions),
                    action: action(&rule.action, groups)?,
                    decides_at_once: rule.decides_at_once,
                    log: rule.log,
                    count: rule.action == DeclaredAction::Continue && !rule.log,
                });
            }
            policy.groups.push(RuleGroup { name: group.name.text.clone(), order: group.order, rules });
        }
        for hook in &declared.hooks {
            let group = *groups.get(hook.group.as_ref()?.text.as_str())?;
            let default = decision(hook.default.as_ref()?)?;
            policy.hooks.push(Hook { point: point(hook)?, group, default, place: RulePlace::default() });
        }
        Some(policy)
    }

    /// The field that a column holds, or in a sentence why it holds none.
    fn model_field(&self, column: &KeyColumn<'_>, points: &[HookPoint]) -> Result<ModelField, String> {
        let name = column.name;
        let Some(field) = PacketField::ALL.into_iter().find(|field| field.name() == name) else {
            let names = PacketField::ALL.map(PacketField::name).join(", ");
            return Err(format!(
                "the column `{name}` has no name of a field of packets; those that can be compared are {names}"
            ));
        };
        let is_address = matches!(field, PacketField::Source | PacketField::Destination);
        let is_state = matches!(field, PacketField::State | PacketField::OutState);
        let fits = match &column.ty {
            Type::Ip4 | Type::Ip6 => is_address,
            Type::Mac => field == PacketField::SourceMac,
            Type::Time | Type::Option(_) | Type::Tuple(_) | Type::Variants(..) | Type::View => false,
            Type::Enum(id, ..) if is_state => self.enums[id.0].members.iter().all(|(member, number)| {
                State::ALL.iter().any(|state| state.name() == member && *state as u128 == *number)
            }),
            ty => !is_address && ty.width().is_some_and(|width| width >= field.width()),
        };
        if !fits {
            return Err(format!(
                "the column `{name}` is of type {}, which does not hold the field of this name",
                column.ty
            ));
        }
        let may_lack = match field {
            _ if field.is_of_some_packets() => true,
            PacketField::InPort | PacketField::SourceMac => {
                points.iter().any(|point| matches!(point, HookPoint::FromGateway | HookPoint::Out))
            }
            PacketField::OutPort | PacketField::OutState => {
                points.iter().any(|point| matches!(point, HookPoint::In | HookPoint::ToGateway))
            }
            _ => false,
        };
        if may_lack && column.presence.is_none() {
            return Err(format!(
                "not every packet has a value for the column `{name}`: declare it as `{name}: {} absent`",
                column.ty
            ));
        }
        Ok(ModelField { field, version_4: column.ty == Type::Ip4 })
    }

    fn model_condition(
        &mut self,
        condition: &ast::DeclaredCondition,
        columns: &[KeyColumn<'_>],
        fields: &HashMap<&str, ModelField>,
    ) -> Option<RuleCondition> {
        let column = columns.iter().find(|column| column.name == condition.column.text)?;
        let field = *fields.get(column.name)?;
        let Some(values) = &condition.values else { return Some(RuleCondition::Absent(field.field)) };
        let mut runs = Vec::with_capacity(values.len());
        for value in values {
            runs.extend(field.values(self.rule_values(value, &column.ty)?));
        }
        let holds = RuleCondition::Holds(field.field, runs);
        // ::ffff:a.b.c.d may be an address of IPv6, too.
        let family = field.version_4.then(|| family(4));
        if !condition.negated {
            return Some(RuleCondition::All(family.into_iter().chain([holds]).collect()));
        }
        let any = field.values(Values::Range { low: 0, high: column.ty.largest() });
        let there = RuleCondition::Holds(field.field, any.into_iter().collect());
        let other = [there, RuleCondition::Not(Box::new(holds))];
        Some(RuleCondition::All(family.into_iter().chain(other).collect()))
    }

    /// A limit as it is written, and what its constants are: the same name may have another value in another
    /// program.
    fn limit_with_values(&mut self, limit: &ast::RuleLimit) -> String {
        let mut text = limit_text(limit);
        for number in [&limit.rate, &limit.burst] {
            if let ast::LimitNumber::Constant(name) = number
                && let Some((_, value)) = self.constant_named(&name.text)
            {
                text.push_str(&format!(", {} = {value}", name.text));
            }
        }
        text
    }

    /// The ports that constants of the program name.
    fn ports_named(&mut self) -> Vec<(String, u16)> {
        let is_port =
            |item: &ast::Const| matches!(&item.ty.kind, ast::TypeKind::Named(name) if name == "port");
        let mut names: Vec<String> = self
            .names
            .constants
            .iter()
            .filter(|(_, item)| is_port(item))
            .map(|(name, _)| (*name).to_owned())
            .collect();
        names.sort_unstable();
        let value = |name: String| {
            let (_, value) = self.constant_named(&name)?;
            Some((name, u16::try_from(value).ok()?))
        };
        names.into_iter().filter_map(value).collect()
    }
}

fn outcomes(declared: &ast::PolicyDeclaration) -> Vec<String> {
    declared.outcomes.iter().map(|outcome| outcome.word.text.clone()).collect()
}

fn spans(rules: &[ast::DeclaredRule]) -> Vec<Option<Span>> {
    rules.iter().map(|rule| Some(rule.span)).collect()
}

fn point(hook: &ast::PolicyHook) -> Option<HookPoint> {
    POINTS.into_iter().find(|(name, _)| *name == hook.point.text).map(|(_, point)| point)
}

/// Which connections a program keeps that does so by its policy. Whether it asks about the packets of these
/// is not known: the model says what the policy does if it is asked.
fn remembers(declared: &ast::PolicyDeclaration) -> Remembers {
    match declared.outcomes.iter().any(|outcome| outcome.word.text == "keep") {
        false => Remembers::Nothing,
        true => Remembers::KeptAndAsked,
    }
}

fn action(declared: &DeclaredAction, groups: &HashMap<&str, usize>) -> Option<RuleAction> {
    Some(match declared {
        DeclaredAction::Decide(decided) => decision(decided)?,
        DeclaredAction::Jump(name) => RuleAction::Jump(*groups.get(name.text.as_str())?),
        DeclaredAction::Return => RuleAction::Return,
        DeclaredAction::Continue => RuleAction::Continue,
    })
}

fn decision(decided: &RuleDecision) -> Option<RuleAction> {
    match (decided.word.text.as_str(), decided.reject) {
        ("pass", None) => Some(RuleAction::Pass),
        ("keep", None) => Some(RuleAction::Keep),
        ("block", None) => Some(RuleAction::Block),
        ("reject", Some(reject)) => Some(RuleAction::Reject(reject)),
        _ => None,
    }
}

/// A program that hands over addresses of IPv4 asks about no packets of IPv6: they pass the model, which is
/// compared with no policy that is asked about them.
fn about_version_4(policy: &mut Policy, rules: &mut [Vec<Option<Span>>]) {
    policy.families = AskedFamilies::Version4Alone;
    let mut first: Vec<usize> = policy.hooks.iter().map(|hook| hook.group).collect();
    first.sort_unstable();
    first.dedup();
    for group in first {
        let rule = PolicyRule {
            place: RulePlace::default(),
            text: "the policy is asked about IPv4 alone".into(),
            condition: family(6),
            action: RuleAction::Pass,
            decides_at_once: policy.groups[group].order == MatchOrder::Last,
            log: false,
            count: false,
        };
        policy.groups[group].rules.insert(0, rule);
        rules[group].insert(0, None);
    }
}
