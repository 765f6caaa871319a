//! Policies whose rules come from a file: groups, hooks and rows are those of the policy that was read.
//!
//! ```text
//! base chains at one point        rows of the point's table
//! raw:    return, pass, block     remembered => pass    (policies that keep connections by rule)
//! filter: keep, block             return, pass => on with filter; block; default of raw, if it blocks
//!                                 keep, block; default of filter
//! ```

use super::conditions::{ConditionFault, FieldColumns};
use super::read_rules::Places;
use super::region::Region;
use super::unroll::{Effect, Listed, UnrollFault, unroll};
use super::{
    CheckedAction, CheckedGroup, CheckedLimit, CheckedRule, Decided, KeepReach, KeyColumn, POINTS, RowAction,
    limits_of_file, memories_of_limits, rated, table_of,
};
use crate::ast::{self, RulesFile};
use crate::check::Checker;
use crate::diagnostic::Diagnostic;
use crate::limits::{LARGEST_POLICY, MOST_POLICY_ROWS};
use ir::source::Span;
use policy::{
    Hook, HookPoint, MatchOrder, PacketField, Policy, PolicyRule, Remembers, RuleAction, RuleCondition,
    RulePlace, State, Values,
};
use std::collections::{HashMap, HashSet};

/// What is told once, at the first line that needs it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Lack {
    Column(PacketField),
    Outcome(RowAction),
    /// Room for what is compared: every later rule lacks it, too.
    Work,
}

/// What the rows of a policy are made for.
struct Target<'p> {
    declaration: &'p ast::PolicyDeclaration,
    places: Places<'p>,
    fields: FieldColumns,
    /// How many parts a key has for columns.
    width: usize,
    /// The number of the limit of each condition on earlier packets that is a rate and that no rule has asked
    /// yet.
    limits: HashMap<usize, u32>,
    told: HashSet<Lack>,
}

/// What a rule asks: its limits one after the other, and the packets that it matches if they let it.
type AskedByRule = (Vec<CheckedLimit>, Vec<Region>);

impl<'a> Checker<'a> {
    /// Fills the tables of a policy from the rules of a file.
    pub(super) fn define_from_file(
        &mut self,
        declaration: &'a ast::PolicyDeclaration,
        file: &'a RulesFile,
        columns: &[KeyColumn<'_>],
        width: usize,
    ) {
        let own = declaration.hooks.iter().find_map(|hook| {
            let default = hook.default.as_ref().map(|default| default.word.span);
            hook.group.as_ref().map(|group| group.span).or(default)
        });
        let own = declaration.groups.first().map(|group| group.name.span).or(own);
        if let Some(own) = own {
            let headline = format!("the rules of `{}` come from a file", declaration.name.text);
            let fault = Diagnostic::error("E0570", headline, own, "groups and defaults come from there, too");
            let help = "take this out of the program, or write all rules into it, without `from`";
            return self.report(fault.place(file.span, "this file").help(help));
        }
        let fields = match FieldColumns::of(columns) {
            Ok(fields) => fields,
            Err((column, width)) => {
                let headline = format!("the column `{}` is too narrow", column.name);
                let span = declaration.columns.iter().map(|it| &it.param.name);
                let span = span.clone().find(|name| name.text == column.name).map_or(file.span, |it| it.span);
                let label = format!("its field has {width} bits, and {} has fewer", column.ty);
                return self.error("E0573", headline, span, label);
            }
        };
        let Some((policy, places)) = self.read_rules(file) else { return };
        let Some(limits) = self.numbers_of_limits(declaration, file, &policy, &places) else { return };
        let told = HashSet::new();
        let mut target = Target { declaration, places, fields, width, limits, told };
        // What happens to packets if somebody takes the default away from outside.
        self.needs(&mut target, RowAction::Block, file.span, "a policy from a file");
        self.asks_everywhere(&target, &policy);
        let groups = self.groups_of(&mut target, &policy);
        if self.failed() {
            return;
        }
        for hook in &declaration.hooks {
            self.define_hook_from_file(&mut target, &policy, hook, &groups);
        }
        if let (false, Some((from, _))) = (self.failed(), &file.text) {
            let model = self.model_from_file(declaration, (policy, *from), columns);
            self.program.policies.push(model);
        }
    }

    /// The numbers of the limits of a file, by its conditions on earlier packets; reports one rate too many.
    fn numbers_of_limits(
        &mut self,
        declaration: &ast::PolicyDeclaration,
        file: &RulesFile,
        policy: &Policy,
        places: &Places<'_>,
    ) -> Option<HashMap<usize, u32>> {
        // The meters were declared before the ports were known that interfaces stand for.
        if limits_of_file(policy, places) != file.limits {
            let headline = "the limits of the file depend on the ports that its interfaces have";
            self.error("E0575", headline, file.span, "their number must be the same for all ports");
            return None;
        }
        let memories = memories_of_limits(declaration, rated(policy).map(|(memory, _)| memory));
        let limits: HashMap<usize, u32> = memories.into_iter().zip(0..).collect();
        if let Some((_, asked)) = rated(policy).find(|(memory, _)| !limits.contains_key(memory)) {
            self.too_many_rates(places.span(asked.place));
            return None;
        }
        Some(limits)
    }

    /// Reports rules at points at which the program does not ask.
    fn asks_everywhere(&mut self, target: &Target<'_>, policy: &Policy) {
        let declared = &target.declaration.hooks;
        let mut told = Vec::new();
        for hook in &policy.hooks {
            let word = word_of(hook.point);
            let asks = declared.iter().any(|own| own.point.text == word);
            if asks || passes_all(policy, hook) || told.contains(&hook.point) {
                continue;
            }
            told.push(hook.point);
            let headline = format!("the policy `{}` has no hook `{word}`", target.declaration.name.text);
            let span = target.places.span(hook.place);
            let fault = Diagnostic::error("E0574", headline, span, "the file has rules for these packets");
            let help = format!(
                "declare `hook {word}`, and go to `{}.{word}` with packets that come to this point; if none do, it is enough to declare it",
                target.declaration.name.text
            );
            self.report(fault.place(target.declaration.name.span, "declared here").help(help));
        }
    }

    /// The groups that packets can come to; the others have no rules here.
    fn groups_of(&mut self, target: &mut Target<'_>, policy: &Policy) -> Vec<CheckedGroup> {
        let mut reached: HashSet<usize> = HashSet::new();
        let declared = &target.declaration.hooks;
        let asked = |hook: &&Hook| declared.iter().any(|own| own.point.text == word_of(hook.point));
        let mut open: Vec<usize> = policy.hooks.iter().filter(asked).map(|hook| hook.group).collect();
        while let Some(group) = open.pop() {
            if reached.insert(group) {
                let to = policy.groups[group].rules.iter().filter_map(|rule| match rule.action {
                    RuleAction::Jump(to) | RuleAction::Goto(to) => Some(to),
                    _ => None,
                });
                open.extend(to);
            }
        }
        let mut work = LARGEST_POLICY;
        let mut groups = Vec::with_capacity(policy.groups.len());
        for (index, group) in policy.groups.iter().enumerate() {
            let mut rules = Vec::new();
            let own = if reached.contains(&index) { &group.rules[..] } else { &[] };
            for rule in own {
                let span = target.places.span(rule.place);
                let Some((limits, regions)) =
                    self.asked_by(target, policy, (rule, group.order), span, &mut work)
                else {
                    continue;
                };
                if rule.log {
                    self.needs(target, RowAction::Log, span, "this rule");
                }
                let action = match rule.action {
                    RuleAction::Jump(to) => CheckedAction::Jump(to),
                    RuleAction::Goto(to) => CheckedAction::Goto(to),
                    RuleAction::Return => CheckedAction::Return,
                    RuleAction::Continue => CheckedAction::Continue,
                    decides => CheckedAction::Decide(decided(decides)),
                };
                let (number, &PolicyRule { log, decides_at_once, .. }) = (rule.place.line, rule);
                rules.push(CheckedRule { number, limits, log, action, decides_at_once, regions, span });
            }
            groups.push(CheckedGroup { order: group.order, rules });
        }
        groups
    }

    /// What a rule asks. A limit counts the packets that what stands before it has let through.
    fn asked_by(
        &mut self,
        target: &mut Target<'_>,
        policy: &Policy,
        (rule, order): (&PolicyRule, MatchOrder),
        span: Span,
        work: &mut usize,
    ) -> Option<AskedByRule> {
        let (mut limits, mut regions) = (Vec::new(), vec![vec![None; target.width]]);
        let mut parts = vec![&rule.condition];
        while let Some(part) = parts.pop() {
            if let RuleCondition::All(more) = part {
                parts.extend(more.iter().rev());
                continue;
            }
            if let RuleCondition::Remembered(memory) = part
                && order == MatchOrder::First
                && let Ok(rate) = &policy.memories[*memory].rate
                && let Some(number) = target.limits.remove(memory)
            {
                let counted = (!parts.is_empty()).then(|| regions.clone());
                limits.push(CheckedLimit { number, over: rate.over, regions: counted });
                continue;
            }
            regions = match target.fields.narrowed(regions, part, true, work) {
                Ok(regions) => regions,
                Err(fault) => return self.no_regions(target, policy, fault, span),
            };
        }
        Some((limits, regions))
    }

    fn no_regions<T>(
        &mut self,
        target: &mut Target<'_>,
        policy: &Policy,
        fault: ConditionFault,
        span: Span,
    ) -> Option<T> {
        match fault {
            ConditionFault::NoColumn(field) => {
                self.no_column(target, field, span);
                None
            }
            ConditionFault::Remembered(memory) => {
                let memory = &policy.memories[memory];
                let headline = format!("`{}` depends on earlier packets", memory.text);
                let span = target.places.span(memory.place);
                let label = memory.rate.as_ref().map_or_else(
                    |why| why.to_string(),
                    |_| "a limit is asked by itself, once, and where the first rule decides".to_owned(),
                );
                let fault = Diagnostic::error("E0575", headline, span, label);
                let help = "take the rule out of the file, and limit packets in the program, by a meter";
                self.report(fault.help(help));
                None
            }
            ConditionFault::Mask => self.mask_met(span),
            ConditionFault::Work if target.told.insert(Lack::Work) => self.too_large(span),
            ConditionFault::Work => None,
        }
    }

    fn no_column(&mut self, target: &mut Target<'_>, field: PacketField, span: Span) {
        if target.told.insert(Lack::Column(field)) {
            let name = &target.declaration.name;
            let headline = format!("the policy `{}` has no column `{}`", name.text, field.name());
            let fault = Diagnostic::error("E0573", headline, span, "this asks for it");
            let help = format!("declare a column `{}`", column_of(field));
            self.report(fault.place(name.span, "declared here").help(help));
        }
    }

    /// Reports a verdict for which the policy says not what happens.
    fn needs(&mut self, target: &mut Target<'_>, action: RowAction, span: Span, who: &str) {
        let word = action.word();
        let says = target.declaration.outcomes.iter().any(|outcome| outcome.word.text == word);
        if !says && target.told.insert(Lack::Outcome(action)) {
            self.no_outcome(target.declaration, word, span, who);
        }
    }

    fn define_hook_from_file(
        &mut self,
        target: &mut Target<'_>,
        policy: &Policy,
        hook: &ast::PolicyHook,
        groups: &[CheckedGroup],
    ) {
        let declaration = target.declaration;
        let point = POINTS.into_iter().find(|(word, _)| *word == hook.point.text);
        let id = self.names.tables.get(&table_of(declaration, hook).text).copied();
        let (Some((_, point)), Some(id)) = (point, id) else { return };
        let capacity = declaration.capacity.as_ref().map(|_| self.program.tables[id.0].capacity as usize);
        // The default has a row, too.
        let rows = capacity.unwrap_or(MOST_POLICY_ROWS) - 1;
        let Some((list, default)) = self.rows_at(target, policy, (hook, point), groups, rows) else { return };
        let reach = match policy.remembers {
            Remembers::Nothing | Remembers::Passed | Remembers::Kept | Remembers::KeptAndAsked => {
                KeepReach::Connection
            }
            Remembers::KeptByDirection => KeepReach::Direction,
            Remembers::KeptAtPort => KeepReach::Port,
        };
        if !self.failed() {
            self.fill_hook(declaration, hook, id, &list, default, Some(reach));
        }
    }

    /// The rows at a point, and its default.
    fn rows_at(
        &mut self,
        target: &mut Target<'_>,
        policy: &Policy,
        (hook, point): (&ast::PolicyHook, HookPoint),
        groups: &[CheckedGroup],
        rows: usize,
    ) -> Option<(Vec<Listed>, Decided)> {
        let pass = Decided { action: RowAction::Pass, reject: None };
        let mut bases: Vec<&Hook> = policy.hooks.iter().filter(|hook| hook.point == point).collect();
        // Where others are asked behind it, a chain that lets every packet pass would cost a lookup.
        if let Some(last) = bases.pop() {
            bases.retain(|hook| !passes_all(policy, hook));
            bases.push(last);
        }
        let remembers = policy.remembers;
        // Linux remembers what has passed all hooks.
        let keeps_what_passes = remembers == Remembers::Passed && ends_way(point, target.declaration);
        let kept = |decided: Decided| match decided.action {
            RowAction::Pass if keeps_what_passes => Decided { action: RowAction::Keep, reject: None },
            _ => decided,
        };
        let (mut list, mut default) = (Vec::new(), kept(pass));
        if let (Some(field), Some(first)) = (remembers.asks(point), bases.first()) {
            let (place, span) = (first.place, hook.point.span);
            let regions = self.connections_kept(target, policy, field, place)?;
            list.push(Listed { regions, effect: Effect::Decide(pass), rule: 0, span });
        }
        for (index, base) in bases.iter().enumerate() {
            let (last, span) = (index + 1 == bases.len(), target.places.span(base.place));
            let otherwise = decided(base.default);
            let before: usize = list.iter().map(|listed: &Listed| listed.regions.len()).sum();
            let every = vec![None; target.width];
            let own = unroll(groups, base.group, every.clone(), otherwise, rows.saturating_sub(before));
            let mut own = match own {
                Ok(own) => own,
                Err(fault) => {
                    self.not_unrolled(target.declaration, hook, fault, rows);
                    return None;
                }
            };
            let begin = list.len();
            if last {
                default = kept(otherwise);
                self.needs(target, default.action, span, "this default");
            } else if otherwise.action != RowAction::Pass {
                self.needs(target, otherwise.action, span, "this default");
                own.push(Listed { regions: vec![every], effect: Effect::Decide(otherwise), rule: 0, span });
            }
            let behind = begin + own.len();
            for mut listed in own {
                listed.effect = match listed.effect {
                    Effect::Leave(to) => Effect::Leave(begin + to),
                    Effect::Limit { number, over, next } => {
                        Effect::Limit { number, over, next: begin + next }
                    }
                    Effect::Decide(Decided { action: RowAction::Pass, .. }) if !last => Effect::Leave(behind),
                    Effect::Decide(Decided { action: RowAction::Keep, .. })
                        if !last && remembers != Remembers::Kept =>
                    {
                        let headline = "a rule keeps connections, and other chains are asked behind it";
                        let label = "no row of a table can say both";
                        self.error("E0575", headline, listed.span, label);
                        return None;
                    }
                    Effect::Decide(decided) => {
                        let decided = kept(decided);
                        self.needs(target, decided.action, listed.span, "this rule");
                        Effect::Decide(decided)
                    }
                    goes_on => goes_on,
                };
                list.push(listed);
            }
        }
        if bases.is_empty() || !list.is_empty() && remembers.asks(point).is_some() {
            self.needs(target, kept(pass).action, hook.point.span, "what passes without being compared");
        }
        let count: usize = list.iter().map(|listed| listed.regions.len()).sum();
        if count > rows {
            self.not_unrolled(target.declaration, hook, UnrollFault::Rows(hook.point.span), rows);
            return None;
        }
        Some((list, default))
    }

    /// The packets of connections that rules have kept: these pass without being compared with rules.
    fn connections_kept(
        &mut self,
        target: &mut Target<'_>,
        policy: &Policy,
        field: PacketField,
        place: RulePlace,
    ) -> Option<Vec<Region>> {
        let known = [State::Established, State::Related].map(|state| Values::exact(state as u128));
        let mut parts = vec![RuleCondition::Holds(field, known.into())];
        if !policy.follows_icmp {
            let icmp = RuleCondition::Holds(PacketField::Protocol, [1, 58].map(Values::exact).into());
            parts.push(RuleCondition::Not(Box::new(icmp)));
        }
        let (every, mut work) = (vec![vec![None; target.width]], LARGEST_POLICY);
        match target.fields.narrowed(every, &RuleCondition::All(parts), true, &mut work) {
            Ok(regions) => Some(regions),
            Err(fault) => {
                let span = target.places.span(place);
                self.no_regions(target, policy, fault, span)
            }
        }
    }
}

/// The word of a point.
fn word_of(point: HookPoint) -> &'static str {
    POINTS.into_iter().find(|(_, known)| *known == point).map_or("", |(word, _)| word)
}

/// Whether no hook that a policy declares comes behind this one on the way of a packet.
fn ends_way(point: HookPoint, declaration: &ast::PolicyDeclaration) -> bool {
    let declared =
        |points: &[&str]| declaration.hooks.iter().any(|hook| points.contains(&hook.point.text.as_str()));
    match point {
        HookPoint::In => !declared(&["forward", "to_gateway", "out"]),
        HookPoint::Forward | HookPoint::FromGateway => !declared(&["out"]),
        HookPoint::ToGateway | HookPoint::Out => true,
    }
}

/// Whether a hook lets every packet pass: there need be nobody who asks it.
fn passes_all(policy: &Policy, hook: &Hook) -> bool {
    let lets_pass = |rule: &PolicyRule| !rule.log && rule.action == RuleAction::Pass;
    hook.default == RuleAction::Pass && policy.groups[hook.group].rules.iter().all(lets_pass)
}

/// A verdict of a rule or default.
fn decided(action: RuleAction) -> Decided {
    match action {
        RuleAction::Pass => Decided { action: RowAction::Pass, reject: None },
        RuleAction::Keep => Decided { action: RowAction::Keep, reject: None },
        RuleAction::Reject(reject) => Decided { action: RowAction::Reject, reject: Some(reject) },
        _ => Decided { action: RowAction::Block, reject: None },
    }
}

/// What a program writes for the column of a field.
fn column_of(field: PacketField) -> String {
    let ty = match field {
        _ if field.is_of_some_packets() => return format!("{}: u{} absent", field.name(), field.width()),
        PacketField::Family | PacketField::Protocol | PacketField::TimeToLive => "u8",
        PacketField::State | PacketField::OutState => "u3",
        PacketField::Source | PacketField::Destination => "ip6",
        PacketField::LaterFragment => "u1",
        PacketField::InPort | PacketField::OutPort => "port",
        PacketField::Dscp => "u6",
        PacketField::Ecn => "u2",
        PacketField::Length => "u16",
        _ => "mac",
    };
    format!("{}: {ty}", field.name())
}
