//! A policy as the tables of its hooks hold it now, with rows that were put in, exchanged or taken out from
//! outside.
//!
//! Each hook becomes one group, whose rules are the rows in the order in which a packet meets them. A row
//! after which a packet goes on passes over the rows between it and the one that it goes on with: these rows
//! do not match what it matches.
//!
//! ```text
//! 400 return proto 6, below 200        not a rule, but:
//! 300 pass dport 22                    pass dport 22, and not proto 6
//! 200 block dport 1..1023              block dport 1..1023
//! ```

use crate::check::policies::{BELOW, POINTS, RowAction, presence_of, reject_of};
use crate::limits::LARGEST_POLICY;
use crate::policy_model::{ModelField, NumberedRule, PolicyModel, family};
use ir::{Column, ColumnKind, Entry, Match, Table, prefix_mask};
use policy::{
    AskedFamilies, Hook, MatchOrder, PacketField, Policy, PolicyRule, RuleAction, RuleCondition, RuleGroup,
    RulePlace, Values,
};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

/// The table of a hook, and what it holds.
pub struct HookRows<'a> {
    /// The table, with the rows of the program.
    pub table: &'a Table,
    /// The rows that it holds now, in the order of matching.
    pub rows: Vec<Entry>,
    /// A row as people write it.
    pub text: &'a dyn Fn(&Entry) -> String,
}

/// How the rows of a policy differ from those that its program declares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowChanges {
    /// Rows that the program does not declare, or declares with another value.
    pub from_outside: usize,
    /// Rows of the program that are not there any more, or have another value.
    pub gone: usize,
}

/// How the rows of these hooks differ from those of the program.
pub fn changes(hooks: &[HookRows<'_>]) -> RowChanges {
    let mut changes = RowChanges::default();
    for HookRows { table, rows, .. } in hooks {
        let declared: HashSet<&Entry> = table.entries.iter().collect();
        let held: HashSet<&Entry> = rows.iter().collect();
        changes.from_outside += held.difference(&declared).count();
        changes.gone += declared.difference(&held).count();
    }
    changes
}

/// The policy that these tables hold. Rows of the program are told by their rules, others as they are
/// written, without a line. `hooks` are those of [`PolicyModel::tables`], in this order.
///
/// # Errors
/// A row from outside means what no model can say; the sentence names it. Or the model is none.
pub fn of_rows(model: &PolicyModel, hooks: &[HookRows<'_>]) -> Result<Policy, String> {
    let policy = model.policy.as_ref().map_err(Clone::clone)?;
    let mut flat = Policy { hooks: Vec::new(), groups: Vec::new(), ..policy.clone() };
    for (at, hook) in hooks.iter().enumerate() {
        let declared = policy.hooks.get(at).filter(|_| !model.from_file);
        let name = &hook.table.name;
        let word = name.rsplit('.').next().unwrap_or_default();
        let point = POINTS.iter().find(|(known, _)| *known == word).map(|(_, point)| *point);
        let point = point.ok_or_else(|| format!("`{name}` is no table of a hook"))?;
        // Without its row, the default is what the program says; where its rules come from a file, it blocks.
        let default = declared.map_or(RuleAction::Block, |declared| declared.default);
        let place = declared.map_or(RulePlace::default(), |declared| declared.place);
        let reader = RowReader::new(model, hook, default)?;
        let (mut rules, default) = reader.rules(place)?;
        if policy.families == AskedFamilies::Version4Alone
            && let Some(front) = declared.and_then(|declared| policy.groups[declared.group].rules.first())
        {
            rules.insert(0, front.clone());
        }
        flat.hooks.push(Hook { point, group: at, default, place });
        flat.groups.push(RuleGroup { name: name.clone(), order: MatchOrder::First, rules });
    }
    Ok(flat)
}

/// A column of a key that rules compare.
struct FieldPart {
    field: ModelField,
    column: Column,
    place: usize,
    /// Where the key says whether the packet has it.
    presence: Option<usize>,
}

/// What a row does.
#[derive(Clone, Copy)]
enum Does {
    Decide(RuleAction),
    /// The packet goes on below this priority.
    On {
        below: u32,
        log: bool,
    },
    /// The same within the limit, or beyond it below another one.
    Limit {
        within: u32,
        beyond: u32,
        memory: usize,
    },
}

/// A row as a rule.
struct Row<'a> {
    entry: &'a Entry,
    /// Whether it is one of the program.
    own: bool,
    condition: RuleCondition,
    does: Does,
}

/// Rows that a packet passes over: those up to a place, if the packet meets a condition.
struct Passed {
    until: usize,
    condition: RuleCondition,
    /// How many conditions of rows it is made of.
    size: usize,
}

/// Reads the rows of a hook.
struct RowReader<'a> {
    model: &'a PolicyModel,
    hook: &'a HookRows<'a>,
    fields: Vec<FieldPart>,
    /// The place of the part of a key that says below which rows a packet asks.
    below: Option<usize>,
    /// Whether rows have limits.
    limits: bool,
    /// What the program does where it has nothing for a row.
    default: RuleAction,
    declared: HashSet<&'a Entry>,
    rules: HashMap<u32, Vec<&'a NumberedRule>>,
}

impl<'a> RowReader<'a> {
    fn new(
        model: &'a PolicyModel,
        hook: &'a HookRows<'a>,
        default: RuleAction,
    ) -> Result<RowReader<'a>, String> {
        let keys = &hook.table.keys;
        let below = keys.len().checked_sub(1).filter(|last| keys[*last].name == BELOW);
        let (mut fields, mut place) = (Vec::new(), 0);
        while let Some(column) = keys.get(place).filter(|_| below != Some(place)) {
            let presence = keys.get(place + 1).filter(|next| next.name == presence_of(&column.name));
            let presence = presence.map(|_| place + 1);
            let field = PacketField::ALL.into_iter().find(|field| field.name() == column.name);
            if let Some(field) = field {
                let field = ModelField { field, version_4: column.kind == ColumnKind::Ip4 };
                fields.push(FieldPart { field, column: column.clone(), place, presence });
            } else if let Some(row) = hook.rows.iter().find(|row| !is_any(&row.key, place)) {
                return Err(format!(
                    "the column `{}` is no field of packets, and this row compares it: {}",
                    column.name,
                    (hook.text)(row)
                ));
            }
            place = presence.unwrap_or(place) + 1;
        }
        let mut rules: HashMap<u32, Vec<&NumberedRule>> = HashMap::new();
        for rule in &model.rules {
            rules.entry(rule.number).or_default().push(rule);
        }
        // A verdict, what the sender is told and the rule; below which priority a packet goes on; two of a
        // limit; what is kept.
        let plain = 3 + usize::from(below.is_some()) + usize::from(model.from_file);
        let limits = hook.table.values.len() > plain;
        let declared = hook.table.entries.iter().collect();
        Ok(RowReader { model, hook, fields, below, limits, default, declared, rules })
    }

    /// The rules that the rows are, and what happens to packets that match none.
    fn rules(&self, place: RulePlace) -> Result<(Vec<PolicyRule>, RuleAction), String> {
        let mut entries: Vec<&Entry> = self.hook.rows.iter().collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.priority));
        let mut default = self.default;
        if let Some(last) = entries.last().filter(|last| self.declared.contains(**last) && is_default(last))
            && let Does::Decide(action) = self.does(last)?
        {
            default = action;
            entries.pop();
        }
        let rows: Vec<Row<'_>> =
            entries.into_iter().map(|entry| self.row(entry)).collect::<Result<_, _>>()?;
        self.asks_as_often_as_it_may(&rows)?;
        let behind = |priority: u32| rows.partition_point(|row| row.entry.priority >= priority);
        let (mut rules, mut passed, mut work) = (Vec::new(), Vec::<Passed>::new(), LARGEST_POLICY);
        for (at, row) in rows.iter().enumerate() {
            passed.retain(|passed| passed.until > at);
            let size: usize = 1 + passed.iter().map(|passed| passed.size).sum::<usize>();
            work = work.checked_sub(size).ok_or_else(|| {
                format!("the rows of `{}` pass over more than {LARGEST_POLICY} others", self.hook.table.name)
            })?;
            // What leads further than another row that it is passed over by matters behind that row, too.
            let and_not = |until: usize| {
                let within = passed.iter().filter(move |other| other.until < until);
                let nots = within.map(|other| RuleCondition::Not(Box::new(other.condition.clone())));
                [row.condition.clone()].into_iter().chain(nots).collect::<Vec<RuleCondition>>()
            };
            let rule = |action, log| {
                let (place, text) = self.place_of(row, place);
                PolicyRule {
                    place,
                    text,
                    condition: RuleCondition::All(and_not(usize::MAX)),
                    action,
                    decides_at_once: false,
                    log,
                    count: matches!(row.does, Does::On { log: false, .. }),
                }
            };
            // Rows of the same rule that follow do the same again.
            let same = rows[at + 1..].iter().take_while(|next| next.entry.value == row.entry.value).count();
            let mut new = Vec::new();
            let mut leads = |below: u32, more: Option<RuleCondition>| {
                let until = behind(below);
                if until > at + 1 + same || more.is_some() && until > at + 1 {
                    let condition = RuleCondition::All(and_not(until).into_iter().chain(more).collect());
                    new.push(Passed { until, condition, size });
                }
            };
            match row.does {
                Does::Decide(action) => rules.push(rule(action, false)),
                Does::On { below, log } => {
                    rules.push(rule(RuleAction::Continue, log));
                    leads(below, None);
                }
                Does::Limit { within, beyond, memory } => {
                    let (on, past) = if self.is_over(memory) { (beyond, within) } else { (within, beyond) };
                    leads(on, None);
                    leads(past, Some(RuleCondition::Not(Box::new(RuleCondition::Remembered(memory)))));
                }
            }
            passed.extend(new);
        }
        Ok((rules, default))
    }

    /// Whether a memory is about packets beyond its rate.
    fn is_over(&self, memory: usize) -> bool {
        let memories = self.model.policy.as_ref().map_or(&[][..], |policy| &policy.memories);
        memories.get(memory).and_then(|memory| memory.rate.as_ref().ok()).is_some_and(|rate| rate.over)
    }

    fn row<'r>(&self, entry: &'r Entry) -> Result<Row<'r>, String> {
        let own = self.declared.contains(entry);
        let (condition, does) = (self.condition(entry)?, self.does(entry)?);
        let refused = |why: &str| Err(format!("{why}: {}", (self.hook.text)(entry)));
        if let Some(place) = self.below.filter(|_| !own) {
            let fits = Match::Range { low: u128::from(entry.priority) + 1, high: u32::MAX.into() };
            let every_time = is_any(&entry.key, place);
            if entry.key.get(place) != Some(&fits) && !(every_time && entry.priority == 0) {
                return refused(&format!(
                    "a packet that is past this row may come to it again, since its part `{BELOW}` is not `{}..`",
                    u64::from(entry.priority) + 1
                ));
            }
        }
        match does {
            Does::On { below, .. } if below > entry.priority || below == 0 => {
                refused("a packet does not go on below this row")
            }
            Does::Limit { .. } if !own => refused("a row from outside shares a limit with a rule"),
            _ => Ok(Row { entry, own, condition, does }),
        }
    }

    /// Which packets a row matches.
    fn condition(&self, entry: &Entry) -> Result<RuleCondition, String> {
        let mut parts = Vec::new();
        for FieldPart { field, column, place, presence } in &self.fields {
            let (Some(part), largest) = (entry.key.get(*place), prefix_mask(column.width, column.width))
            else {
                return Err(format!("a part of the key is missing: {}", (self.hook.text)(entry)));
            };
            let values = values(part, column.width);
            let every = Values::Range { low: 0, high: largest };
            let any = is_any(&entry.key, *place) || values == every;
            let holds =
                |values| RuleCondition::Holds(field.field, field.values(values).into_iter().collect());
            let there = presence.and_then(|place| entry.key.get(place)).map(|part| {
                let values = self::values(part, 1);
                (values.hold(0), values.hold(1))
            });
            match there {
                None | Some((true, true)) if any => {}
                Some((false, false)) => return Ok(RuleCondition::Any(Vec::new())),
                Some((false, true)) => parts.push(holds(if any { every } else { values })),
                Some((true, false)) if any => parts.push(RuleCondition::Absent(field.field)),
                Some((true, _)) => {
                    return Err(format!(
                        "whether this row matches packets without a `{}` depends on what the program hands over for them: {}",
                        column.name,
                        (self.hook.text)(entry)
                    ));
                }
                None => {
                    // ::ffff:a.b.c.d may be an address of IPv6, too.
                    parts.extend(field.version_4.then(|| family(4)));
                    parts.push(holds(values));
                }
            }
        }
        Ok(RuleCondition::All(parts))
    }

    /// What the program does with packets of a row.
    fn does(&self, entry: &Entry) -> Result<Does, String> {
        let mut value = entry.value.iter().copied();
        let mut next = || value.next().unwrap_or_default();
        let (action, kind, _) = (next(), next(), next());
        let on = if self.below.is_some() { next() as u32 } else { 0 };
        let (over, limit) = if self.limits { (next() as u32, next()) } else { (0, 0) };
        let says = |action: RowAction| self.model.outcomes.iter().any(|word| word == action.word());
        let action = RowAction::ALL.get(action as usize).map(|(action, _)| *action);
        let goes_on = self.below.is_some();
        Ok(match action {
            Some(RowAction::Pass) if says(RowAction::Pass) => Does::Decide(RuleAction::Pass),
            Some(RowAction::Keep) if says(RowAction::Keep) => Does::Decide(RuleAction::Keep),
            Some(RowAction::Block) if says(RowAction::Block) => Does::Decide(RuleAction::Block),
            Some(RowAction::Reject) if says(RowAction::Reject) => match reject_of(kind) {
                Some(reject) => Does::Decide(RuleAction::Reject(reject)),
                None => {
                    let text = (self.hook.text)(entry);
                    return Err(format!("{kind} is no `reject_kind`: {text}"));
                }
            },
            Some(RowAction::Log) if goes_on && says(RowAction::Log) => Does::On { below: on, log: true },
            Some(RowAction::Count | RowAction::Return) if goes_on => Does::On { below: on, log: false },
            Some(RowAction::Limit) if self.limits => match self.model.limits.get(limit as usize) {
                Some(memory) => Does::Limit { within: on, beyond: over, memory: *memory },
                None => {
                    let text = (self.hook.text)(entry);
                    return Err(format!("no rule has this limit: {text}"));
                }
            },
            // What the program does with an action for which it has nothing.
            _ if says(RowAction::Block) => Does::Decide(RuleAction::Block),
            _ => Does::Decide(self.default),
        })
    }

    /// Refuses rows after which packets ask more often than the program lets them.
    fn asks_as_often_as_it_may(&self, rows: &[Row<'_>]) -> Result<(), String> {
        let goes_on = |does: &Does| !matches!(does, Does::Decide(_));
        let rounds: BTreeSet<u32> =
            rows.iter().filter(|row| goes_on(&row.does)).map(|row| row.entry.priority).collect();
        let mut declared = BTreeSet::new();
        for entry in &self.hook.table.entries {
            if goes_on(&self.does(entry)?) {
                declared.insert(entry.priority);
            }
        }
        let outside = rows.iter().find(|row| !row.own && goes_on(&row.does));
        match outside.filter(|_| rounds.len() > declared.len()) {
            Some(row) => Err(format!(
                "packets may ask the table more often than the {} times that the program lets them, since they go on behind this row: {}",
                1 + declared.len(),
                (self.hook.text)(row.entry)
            )),
            None => Ok(()),
        }
    }

    /// Where the rule of a row stands, and its text.
    fn place_of(&self, row: &Row<'_>, hook: RulePlace) -> (RulePlace, Arc<str>) {
        if !row.own {
            let text = format!("row from outside: {}", (self.hook.text)(row.entry));
            return (RulePlace::default(), text.into());
        }
        let number = row.entry.value.get(2).copied().unwrap_or_default() as u32;
        match self.rules.get(&number).map(Vec::as_slice) {
            Some([rule]) => (rule.place, rule.text.clone()),
            Some([rule, ..]) => (rule.place, "one of the rules in this line".into()),
            _ if self.model.from_file => (hook, "a default, or a connection that was kept".into()),
            _ => (hook, "the default".into()),
        }
    }
}

/// Whether a part of a key matches anything.
fn is_any(key: &[Match], place: usize) -> bool {
    key.get(place).is_none_or(|part| *part == Match::Any)
}

/// Whether an entry is the row of a default.
fn is_default(entry: &Entry) -> bool {
    entry.priority == 0 && entry.key.iter().all(|part| *part == Match::Any)
}

/// The values that a part of a key matches, in a column of so many bits.
fn values(part: &Match, width: u8) -> Values {
    let largest = prefix_mask(width, width);
    match *part {
        Match::Any | Match::Bytes(_) => Values::Range { low: 0, high: largest },
        Match::Exact(value) => Values::exact(value),
        Match::Range { low, high } => Values::Range { low, high },
        Match::Masked { value, mask } => Values::Masked { value, mask },
        Match::Prefix { value, length } => {
            Values::Range { low: value, high: value | (largest & !prefix_mask(width, length)) }
        }
    }
}

/// What a row is for its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRole {
    /// It decides, counts or returns.
    Acts,
    /// It logs what the rule matches.
    Logs,
    /// It asks the limit of the rule, before its other rows.
    Limits,
}

/// The number of the rule that a row of a hook's table belongs to, and what the row is for it; 0 for no rule.
pub fn rule_of(row: &Entry) -> (u32, RowRole) {
    let number = |place: usize| row.value.get(place).copied().unwrap_or_default();
    let role = match RowAction::ALL.get(number(0) as usize) {
        Some((RowAction::Log, _)) => RowRole::Logs,
        Some((RowAction::Limit, _)) => RowRole::Limits,
        _ => RowRole::Acts,
    };
    (number(2) as u32, role)
}
