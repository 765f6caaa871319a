//! Policies: groups and columns by their names, values of rules, and the rows of each hook's table.
//!
//! `pipeline::policies` has declared the tables. Each row has a priority: the larger, the earlier the rule.
//! Rules that go on ask again with a part of the key that only rows below them fit.

mod conditions;
mod from_file;
mod model;
mod rates;
mod read_rules;
mod region;
mod unroll;

use super::Checker;
use super::types::{TableId, Type};
use crate::ast::{self, ColumnPresence, EntryKey, Name, RuleDecision};
use crate::diagnostic::Diagnostic;
use crate::limits::{
    DEEPEST_POLICY, LARGEST_POLICY, LARGEST_TABLE, MOST_POLICY_RATES, MOST_POLICY_ROUNDS, MOST_POLICY_ROWS,
};
use conditions::{ColumnPlace, ConditionFault};
use ir::source::Span;
use ir::{Entry, Match, prefix_mask};
pub(crate) use model::POINTS;
use policy::{MAPPED, MatchOrder, Reject, Values};
pub(crate) use rates::{limits_of, rates_of};
use rates::{limits_of_file, memories_of_limits, rated};
pub(crate) use read_rules::limits_in;
use region::{Region, part_of_row};
use std::collections::HashMap;
use unroll::{Effect, Listed, UnrollFault, unroll};

/// The part of a key that says behind which priority a packet goes on.
pub(crate) const BELOW: &str = "below";

/// What a row of a table does: the members of `rule_action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum RowAction {
    Pass,
    Keep,
    Block,
    Reject,
    Log,
    Count,
    Return,
    Limit,
}

impl RowAction {
    /// All of them with their words.
    pub(crate) const ALL: [(RowAction, &str); 8] = [
        (RowAction::Pass, "pass"),
        (RowAction::Keep, "keep"),
        (RowAction::Block, "block"),
        (RowAction::Reject, "reject"),
        (RowAction::Log, "log"),
        (RowAction::Count, "count"),
        (RowAction::Return, "return"),
        (RowAction::Limit, "limit"),
    ];

    /// Its word.
    pub(crate) fn word(self) -> &'static str {
        RowAction::ALL[self as usize].1
    }
}

/// Where the packets of a connection pass that a rule of a file keeps: the members of `keep_reach`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeepReach {
    /// Everywhere.
    Connection,
    /// In its direction where the rule is asked, and in the other one at the opposite point.
    Direction,
    /// The same at the port of the rule alone.
    Port,
}

impl KeepReach {
    /// All of them with their words.
    pub(crate) const ALL: [(KeepReach, &str); 3] = [
        (KeepReach::Connection, "connection"),
        (KeepReach::Direction, "direction"),
        (KeepReach::Port, "port"),
    ];
}

/// The distance between the priorities of two rules that follow each other: so many more fit between them.
const STEP: u32 = 100;

/// The name of the column that says whether a packet has a value in another one.
pub(crate) fn presence_of(column: &str) -> String {
    format!("has_{column}")
}

/// The name of the table of a hook, and of the stage that asks it.
pub(crate) fn table_of(policy: &ast::PolicyDeclaration, hook: &ast::PolicyHook) -> Name {
    Name { text: format!("{}.{}", policy.name.text, hook.point.text), span: hook.point.span }
}

/// Whether a rule of the policy goes on: then its tables are asked again.
pub(crate) fn asks_again(policy: &ast::PolicyDeclaration) -> bool {
    // What a file says must not change the shape of a table, so that a change of the file keeps the counts.
    policy.file.is_some()
        || has_limits(policy)
        || policy.groups.iter().flat_map(|group| &group.rules).any(|rule| {
            rule.log || matches!(rule.action, ast::DeclaredAction::Return | ast::DeclaredAction::Continue)
        })
}

/// Whether a rule of the policy has a limit: then rows say which, and where packets beyond it go on.
pub(crate) fn has_limits(policy: &ast::PolicyDeclaration) -> bool {
    limits_of(policy).next().is_some()
}

/// The number of what a sender is told, in the enum `reject_kind`: codes of ICMP from 256 on, of ICMPv6 from
/// 512 on.
pub(crate) fn reject_number(reject: Reject) -> u128 {
    match reject {
        Reject::Icmp(code) => 256 + u128::from(code),
        Reject::Icmpv6(code) => 512 + u128::from(code),
        plain => ast::REJECTS.iter().take_while(|(_, known)| *known != plain).count() as u128,
    }
}

/// What a number of `reject_kind` tells the sender.
pub(crate) fn reject_of(number: u128) -> Option<Reject> {
    match number {
        0..=255 => ast::REJECTS.get(number as usize).map(|(_, reject)| *reject),
        256..=511 => Some(Reject::Icmp((number - 256) as u8)),
        512..=767 => Some(Reject::Icmpv6((number - 512) as u8)),
        _ => None,
    }
}

/// A group.
#[derive(Clone, Debug)]
struct CheckedGroup {
    order: MatchOrder,
    rules: Vec<CheckedRule>,
}

/// A rule.
#[derive(Clone, Debug)]
struct CheckedRule {
    /// From 1, in the order of the policy's text.
    number: u32,
    /// The limits that it asks one after the other.
    limits: Vec<CheckedLimit>,
    log: bool,
    action: CheckedAction,
    decides_at_once: bool,
    /// The packets that it matches.
    regions: Vec<Region>,
    span: Span,
}

/// A limit of a rule.
#[derive(Clone, Debug)]
struct CheckedLimit {
    /// Its number, from 0 through the policy.
    number: u32,
    /// Whether the rule is about packets beyond it.
    over: bool,
    /// The packets that it counts; `None` if those are the ones that its rule matches.
    regions: Option<Vec<Region>>,
}

/// What a rule does.
#[derive(Clone, Copy, Debug)]
enum CheckedAction {
    Decide(Decided),
    Jump(usize),
    Goto(usize),
    Return,
    Continue,
}

/// A verdict, and what the sender is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Decided {
    action: RowAction,
    reject: Option<Reject>,
}

/// A column of the key of a hook's table.
struct KeyColumn<'p> {
    name: &'p str,
    ty: Type,
    /// Its place in the key.
    place: usize,
    /// Where the table says whether the packet has it.
    presence: Option<usize>,
}

impl KeyColumn<'_> {
    /// Where regions say what they hold of it.
    fn place(&self) -> ColumnPlace {
        ColumnPlace { place: self.place, presence: self.presence, largest: self.ty.largest() }
    }
}

/// What a name means in a policy whatever its columns are.
fn own_meaning(policy: &ast::PolicyDeclaration, name: &str) -> Option<String> {
    let fixed = match name {
        "rule" => "the number or line of the rule that decided",
        "kind" => "what the sender of a rejected packet is told",
        "reach" => "where the packets of a kept connection pass",
        BELOW => "where in the table a packet goes on",
        _ => {
            let says_presence = |other: &&ast::PolicyColumn| {
                other.presence == ColumnPresence::Optional && presence_of(&other.param.name.text) == name
            };
            let of = policy.columns.iter().find(says_presence)?;
            return Some(format!("whether a packet has `{}`", of.param.name.text));
        }
    };
    Some(fixed.to_owned())
}

impl<'a> Checker<'a> {
    /// Fills the tables of a policy.
    pub(super) fn define_policy(&mut self, policy: &'a ast::PolicyDeclaration) {
        for (at, hook) in policy.hooks.iter().enumerate() {
            let points = POINTS.map(|(name, _)| name);
            if !points.contains(&hook.point.text.as_str()) {
                self.unknown("hook", &hook.point.text, hook.point.span, points.into_iter());
            }
            if policy.hooks[..at].iter().any(|other| other.point.text == hook.point.text) {
                self.diagnostics.declared_twice("hook", &hook.point, None);
                return;
            }
        }
        for (at, outcome) in policy.outcomes.iter().enumerate() {
            if policy.outcomes[..at].iter().any(|other| other.word.text == outcome.word.text) {
                self.diagnostics.declared_twice("outcome", &outcome.word, None);
                return;
            }
        }
        for (at, ast::PolicyColumn { param, .. }) in policy.columns.iter().enumerate() {
            let name = param.name.text.as_str();
            if policy.columns[..at].iter().any(|other| other.param.name.text == name) {
                self.diagnostics.declared_twice("column", &param.name, None);
                return;
            }
            if let Some(means) = own_meaning(policy, name) {
                let headline = format!("a policy gives the name `{name}` itself");
                let label = format!("in a policy it is {means}");
                let fault = Diagnostic::error("E0582", headline, param.name.span, label);
                return self.report(fault.help("give the column another name"));
            }
        }
        if policy.hooks.is_empty() {
            let headline = format!("nothing can ask the policy `{}`", policy.name.text);
            let fault = Diagnostic::error("E0550", headline, policy.name.span, "it has no hook");
            return self.report(fault.help("for example `hook forward { group lan default block }`"));
        }
        let mut names: HashMap<&str, usize> = HashMap::new();
        for (at, group) in policy.groups.iter().enumerate() {
            if names.insert(&group.name.text, at).is_some() {
                self.diagnostics.declared_twice("group", &group.name, None);
            }
        }
        let (columns, width) = self.key_columns_of(policy);
        if let Some(file) = &policy.file {
            return self.define_from_file(policy, file, &columns, width);
        }
        let limits = rates_of(policy)
            .iter()
            .flat_map(|rate| rate.limits())
            .map(|(limit, rule)| (rule, limit))
            .collect();
        let (mut number, mut work) = (0, LARGEST_POLICY);
        let mut groups = Vec::with_capacity(policy.groups.len());
        for group in &policy.groups {
            let mut rules = Vec::with_capacity(group.rules.len());
            for rule in &group.rules {
                number += 1;
                let place = (number, &columns[..], width);
                let limit = self.rule_limit(group, rule, number, &limits);
                let checked = self.policy_rule(policy, rule, place, &names, &mut work);
                let limited = |number| CheckedLimit { number, over: false, regions: None };
                let limits = limit.map(limited).into_iter().collect();
                rules.extend(checked.map(|checked| CheckedRule { limits, ..checked }));
            }
            groups.push(CheckedGroup { order: group.order, rules });
        }
        for hook in &policy.hooks {
            self.define_hook(policy, hook, &groups, width, &names);
        }
        if !self.failed() {
            let model = self.model(policy, &columns, &names);
            self.program.policies.push(model);
        }
    }

    /// The columns that rules compare, and how many parts a key has for them.
    fn key_columns_of(&mut self, policy: &'a ast::PolicyDeclaration) -> (Vec<KeyColumn<'a>>, usize) {
        let (mut columns, mut width) = (Vec::new(), 0);
        for column in &policy.columns {
            if column.presence == ColumnPresence::Carried {
                continue;
            }
            let ty = self.resolve_type(&column.param.ty);
            // Each column's key part stands at its place, and behind it the one that says if it is there.
            let presence = (column.presence == ColumnPresence::Optional).then_some(width + 1);
            columns.push(KeyColumn { name: &column.param.name.text, ty, place: width, presence });
            width += 1 + usize::from(presence.is_some());
        }
        (columns, width)
    }

    fn policy_rule(
        &mut self,
        policy: &ast::PolicyDeclaration,
        rule: &ast::DeclaredRule,
        (number, columns, width): (u32, &[KeyColumn<'_>], usize),
        groups: &HashMap<&str, usize>,
        work: &mut usize,
    ) -> Option<CheckedRule> {
        let action = match &rule.action {
            ast::DeclaredAction::Decide(decision) => {
                CheckedAction::Decide(self.decided(policy, decision, "this rule")?)
            }
            ast::DeclaredAction::Jump(name) => CheckedAction::Jump(self.group_named(name, groups)?),
            ast::DeclaredAction::Return => CheckedAction::Return,
            ast::DeclaredAction::Continue => CheckedAction::Continue,
        };
        if rule.log && !policy.outcomes.iter().any(|outcome| outcome.word.text == "log") {
            self.no_outcome(policy, "log", rule.span, "this rule");
            return None;
        }
        let mut regions = vec![vec![None; width]];
        for condition in &rule.conditions {
            regions = self.narrowed(&regions, condition, columns, work)?;
        }
        let &ast::DeclaredRule { log, decides_at_once, span, .. } = rule;
        Some(CheckedRule { number, limits: Vec::new(), log, action, decides_at_once, regions, span })
    }

    /// The number of a rule's limit; reports one that has no exact meaning, and one rate too many.
    fn rule_limit(
        &mut self,
        group: &ast::PolicyGroup,
        rule: &ast::DeclaredRule,
        number: u32,
        limits: &HashMap<u32, u32>,
    ) -> Option<u32> {
        let limit = rule.limit.as_ref()?;
        let later = match rule.action {
            ast::DeclaredAction::Decide(_) => !rule.decides_at_once,
            ast::DeclaredAction::Jump(_) | ast::DeclaredAction::Return => true,
            ast::DeclaredAction::Continue => false,
        };
        if group.order == MatchOrder::Last && later {
            let headline = "a limit needs a rule that acts at once";
            let label = "whether the last rule that matches is this one is known only behind it";
            let fault = Diagnostic::error("E0564", headline, limit.span, label);
            self.report(fault.place(group.name.span, "in this group the last match decides").help(
                "write `final` behind the decision, or jump to a group without `last` that has the limit",
            ));
            return None;
        }
        let known = limits.get(&number).copied();
        if known.is_none() {
            self.too_many_rates(limit.span);
        }
        known
    }

    fn too_many_rates(&mut self, span: Span) {
        let headline = format!("the limits of a policy have {MOST_POLICY_RATES} different rates at most");
        self.error("E0565", headline, span, "one too many");
    }

    /// The packets of these regions for which a condition holds.
    fn narrowed(
        &mut self,
        regions: &[Region],
        condition: &ast::DeclaredCondition,
        columns: &[KeyColumn<'_>],
        work: &mut usize,
    ) -> Option<Vec<Region>> {
        let name = &condition.column;
        let Some(column) = columns.iter().find(|column| column.name == name.text) else {
            let known: Vec<&str> = columns.iter().map(|column| column.name).take(self.candidates()).collect();
            self.unknown("column", &name.text, name.span, known.into_iter());
            return None;
        };
        let place = column.place();
        let Some(values) = &condition.values else {
            if column.presence.is_none() {
                let headline = format!("every packet has a value in `{}`", name.text);
                let fault = Diagnostic::error("E0551", headline, condition.span, "so it is never absent");
                self.report(fault.help(format!("declare it as `{}: … absent`", name.text)));
                return None;
            }
            return Some(place.with_presence(regions, false));
        };
        let mut runs = Vec::with_capacity(values.len());
        for value in values {
            runs.push(self.rule_values(value, &column.ty)?);
        }
        let narrowed = match condition.negated {
            true => place.without_values(regions, &runs, work),
            false => place.with_values(regions, &runs, work),
        };
        match narrowed {
            Ok(narrowed) => Some(narrowed),
            Err(ConditionFault::Mask) => self.mask_met(condition.span),
            Err(_) => self.too_large(condition.span),
        }
    }

    /// The values that a part of a condition names.
    fn rule_values(&mut self, value: &EntryKey, ty: &Type) -> Option<Values> {
        let part = match value {
            EntryKey::Value(written) if *ty == Type::Ip6 => match (self.prefix(written), &written.kind) {
                // An IPv4 address a.b.c.d is ::ffff:a.b.c.d (RFC 4291, 2.5.5.2).
                (Some((Type::Ip4, bits, length)), _) => {
                    Match::Prefix { value: MAPPED | bits, length: 96 + length }
                }
                (_, ast::ExprKind::Ip4(address)) => Match::Exact(MAPPED | u128::from(*address)),
                _ => self.entry_key(value, ty)?,
            },
            other => self.entry_key(other, ty)?,
        };
        let width = ty.width()?;
        Some(match part {
            Match::Any | Match::Bytes(_) => Values::Range { low: 0, high: ty.largest() },
            Match::Exact(value) => Values::exact(value),
            Match::Range { low, high } => Values::Range { low, high },
            Match::Masked { value, mask } => Values::Masked { value, mask },
            Match::Prefix { value, length } => {
                Values::Range { low: value, high: value | (ty.largest() & !prefix_mask(width, length)) }
            }
        })
    }

    fn define_hook(
        &mut self,
        policy: &ast::PolicyDeclaration,
        hook: &ast::PolicyHook,
        groups: &[CheckedGroup],
        width: usize,
        names: &HashMap<&str, usize>,
    ) {
        let point = &hook.point;
        let (Some(group), Some(default)) = (&hook.group, &hook.default) else {
            let missing = if hook.default.is_none() { "default" } else { "group" };
            let headline = format!("the hook `{}` has no {missing}", point.text);
            let label = match missing {
                "default" => "what happens to packets that no rule decides about?",
                _ => "which rules are asked?",
            };
            let fault = Diagnostic::error("E0552", headline, point.span, label);
            return self.report(fault.help("write `hook forward { group NAME default block }`"));
        };
        let group = self.group_named(group, names);
        let default = self.decided(policy, default, "this default");
        let id = self.names.tables.get(&table_of(policy, hook).text).copied();
        let (Some(group), Some(default), Some(id)) = (group, default, id) else { return };
        if self.failed() {
            return;
        }
        let capacity = policy.capacity.as_ref().map(|_| self.program.tables[id.0].capacity as usize);
        // The default has a row, too.
        let rows = capacity.unwrap_or(MOST_POLICY_ROWS) - 1;
        let list = match unroll(groups, group, vec![None; width], default, rows) {
            Ok(list) => list,
            Err(fault) => return self.not_unrolled(policy, hook, fault, rows),
        };
        self.fill_hook(policy, hook, id, &list, default, None);
    }

    /// Makes the rows of a hook's table, of which each rule that goes on is one round.
    fn fill_hook(
        &mut self,
        policy: &ast::PolicyDeclaration,
        hook: &ast::PolicyHook,
        id: TableId,
        list: &[Listed],
        default: Decided,
        reach: Option<KeepReach>,
    ) {
        let point = &hook.point;
        let rounds = 1 + list.iter().filter(|listed| !matches!(listed.effect, Effect::Decide(_))).count();
        if rounds > MOST_POLICY_ROUNDS {
            let headline = format!("the hook `{}` has too many rules that go on", point.text);
            let label = format!("{rounds} count, log, return or have a limit, and {MOST_POLICY_ROUNDS} may");
            return self.error("E0553", headline, point.span, label);
        }
        let shape = RowShape { again: asks_again(policy), limits: has_limits(policy), reach };
        self.fill(id, list, default, shape, point.span);
        let stage = self.names.stages.get(&format!("{}.again", table_of(policy, hook).text));
        if let Some(stage) = stage {
            self.program.stages[stage.0].cap = Some(rounds as u32);
        }
    }

    /// Makes the rows of a table.
    fn fill(&mut self, id: TableId, list: &[Listed], default: Decided, shape: RowShape, place: Span) {
        let table = &self.program.tables[id.0];
        let widths: Vec<u8> = table.keys.iter().map(|(_, ty)| ty.width().unwrap_or(128)).collect();
        let priority = |at: usize| (list.len() - at) as u32 * STEP;
        let below = |row: u32| Match::Range { low: u128::from(row) + 1, high: u128::from(u32::MAX) };
        let mut entries = Vec::new();
        for (at, Listed { regions, effect, rule, span }) in list.iter().enumerate() {
            // What goes on goes behind the row above the one that it goes on with.
            let value = match *effect {
                Effect::Decide(decided) => shape.row(decided, *rule, 0, [0, 0]),
                Effect::Log => shape.row(goes_on(RowAction::Log), *rule, priority(at), [0, 0]),
                Effect::Count => shape.row(goes_on(RowAction::Count), *rule, priority(at), [0, 0]),
                Effect::Leave(next) => {
                    shape.row(goes_on(RowAction::Return), *rule, priority(next - 1), [0, 0])
                }
                Effect::Limit { number, over, next } => {
                    let (here, behind) = (priority(at), priority(next - 1));
                    let (within, beyond) = if over { (behind, here) } else { (here, behind) };
                    shape.row(goes_on(RowAction::Limit), *rule, within, [beyond, number])
                }
            };
            for region in regions {
                let parts = region.iter().zip(&widths);
                let mut key: Vec<Match> = parts.map(|(part, width)| part_of_row(*part, *width)).collect();
                key.extend(shape.again.then(|| below(priority(at))));
                entries.push((Entry { key, value: value.clone(), priority: priority(at) }, *span));
            }
        }
        let every = vec![Match::Any; widths.len()];
        entries.push((Entry { key: every, value: shape.row(default, 0, 0, [0, 0]), priority: 0 }, place));
        let table = &mut self.program.tables[id.0];
        table.capacity = table.capacity.max(entries.len() as u32);
        (table.entries, table.entry_spans) = entries.into_iter().unzip();
    }

    /// A verdict by its word; reports one for which the policy says not what happens.
    fn decided(
        &mut self,
        policy: &ast::PolicyDeclaration,
        decision: &RuleDecision,
        who: &str,
    ) -> Option<Decided> {
        let RuleDecision { word, reject } = decision;
        let (action, _) = RowAction::ALL.into_iter().find(|(_, known)| *known == word.text)?;
        if !policy.outcomes.iter().any(|outcome| outcome.word.text == word.text) {
            self.no_outcome(policy, &word.text, word.span, who);
            return None;
        }
        Some(Decided { action, reject: *reject })
    }

    fn no_outcome(&mut self, policy: &ast::PolicyDeclaration, word: &str, span: Span, who: &str) {
        let headline = format!("the policy `{}` does not say what happens on `{word}`", policy.name.text);
        let example = match word {
            "block" => "block => drop blocked",
            "reject" => "reject => refuse(kind)",
            "log" => "log => count logged",
            "keep" => "keep => begins",
            _ => "pass => passed",
        };
        let fault = Diagnostic::error("E0554", headline, span, format!("{who} needs it"));
        self.report(fault.place(policy.name.span, "declared here").help(format!("for example `{example}`")));
    }

    fn group_named(&mut self, name: &Name, groups: &HashMap<&str, usize>) -> Option<usize> {
        let found = groups.get(name.text.as_str()).copied();
        if found.is_none() {
            let known: Vec<String> =
                groups.keys().map(|name| name.to_string()).take(self.candidates()).collect();
            self.unknown("group of this policy", &name.text, name.span, known.iter().map(String::as_str));
        }
        found
    }

    fn mask_met<T>(&mut self, span: Span) -> Option<T> {
        let headline = "a range meets a mask in one column";
        let fault = Diagnostic::error("E0555", headline, span, "no row of a table can say both");
        self.report(
            fault.help("write the range as prefixes or values: a prefix and a mask can be said together"),
        );
        None
    }

    fn too_large<T>(&mut self, span: Span) -> Option<T> {
        let headline = "the rules of this policy become too many when they are written out";
        let label = format!("more than {LARGEST_POLICY} parts are compared up to here");
        let fault = Diagnostic::error("E0556", headline, span, label);
        self.report(fault.help("jump less, or name fewer values in one rule"));
        None
    }

    fn not_unrolled(
        &mut self,
        policy: &ast::PolicyDeclaration,
        hook: &ast::PolicyHook,
        fault: UnrollFault,
        rows: usize,
    ) {
        let (headline, span, label) = match fault {
            UnrollFault::Mask(span) => return self.mask_met(span).unwrap_or_default(),
            UnrollFault::Work(span) => return self.too_large(span).unwrap_or_default(),
            UnrollFault::Circle(span) => (
                "jumps lead in a circle".to_string(),
                span,
                "this leads back to where it comes from".to_string(),
            ),
            UnrollFault::Deep(span) => {
                (format!("jumps lead deeper than {DEEPEST_POLICY} groups"), span, "one too many".to_string())
            }
            UnrollFault::Rows(span) => {
                let name = table_of(policy, hook).text;
                let (headline, label) = (
                    format!("`{name}` has room for {rows} rows of rules, and one for the default"),
                    "the rules up to here need more".to_string(),
                );
                let fault = Diagnostic::error("E0558", headline, span, label);
                let help = format!("raise the capacity, which is at most {LARGEST_TABLE}, or jump less");
                return self.report(fault.place(hook.point.span, "the hook").help(help));
            }
        };
        self.error("E0557", headline, span, label);
    }
}

/// The same region with another part.
fn with(region: &Region, at: usize, part: region::Part) -> Region {
    let mut region = region.clone();
    region[at] = part;
    region
}

/// What a row does with packets that go on.
fn goes_on(action: RowAction) -> Decided {
    Decided { action, reject: None }
}

/// What the rows of a table say besides the verdict.
#[derive(Clone, Copy)]
struct RowShape {
    /// Below which priority a packet goes on.
    again: bool,
    /// Below which one it goes on beyond a limit, and the number of the limit.
    limits: bool,
    /// What `keep` reaches.
    reach: Option<KeepReach>,
}

impl RowShape {
    /// The value of a row: what it does, what the sender is told, the rule, and what the shape adds.
    fn row(self, does: Decided, rule: u32, below: u32, over: [u32; 2]) -> Vec<u128> {
        let kind: u128 = does.reject.map_or(0, reject_number);
        let mut value = vec![does.action as u128, kind, u128::from(rule)];
        value.extend(self.again.then_some(u128::from(below)));
        value.extend(over.into_iter().filter(|_| self.limits).map(u128::from));
        value.extend(self.reach.map(|reach| reach as u128));
        value
    }
}
