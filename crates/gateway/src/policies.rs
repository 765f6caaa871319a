//! The policies of the program that runs, for clients: as the tables of their hooks hold them now, and what
//! their rules have counted.

use crate::tables::{Known, count_on_wall, row_text, whole_table};
use client::{EntryCountTold, RequestRefusal};
use engine::live::Remote;
use exec::EntryCount;
use ir::{Entry, Table};
use lang::policy_model::PolicyModel;
use lang::policy_rows::{HookRows, RowChanges, RowRole, changes, of_rows, rule_of};
use policy::Policy;
use ports::live::clock::{Clock, MachineClock};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};

/// A policy as its tables hold it now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PolicyView {
    /// Its name in the program.
    pub name: String,
    /// The file with its rules.
    pub file: String,
    /// What its rules say; or in a sentence why that cannot be told.
    pub policy: Result<Policy, String>,
    /// What the tests beside its rules say behind `expect`, each with its line.
    pub expectations: Vec<(u32, String)>,
    /// Rows of its tables that the program does not declare, or declares with another value.
    pub rows_from_outside: usize,
    /// Rows of the program that are not there any more, or have another value.
    pub rows_gone: usize,
}

/// What the rules of a policy have counted, at all workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyCounts {
    /// Its name in the program.
    pub name: String,
    /// The file with its rules.
    pub file: String,
    /// Whether its rows keep when they were found first and last.
    pub times: bool,
    /// The rules in the order of the text, also those that have counted nothing.
    pub rules: Vec<RuleCounts>,
    /// What belongs to no rule, by tables: the defaults.
    pub defaults: Vec<RowCounts>,
    /// Rows that are not those of the program, by tables in the order of matching.
    pub rows_from_outside: Vec<RowCounts>,
}

/// What the rows of a rule have counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleCounts {
    /// The number that its rows hold.
    pub rule: u32,
    /// Its line.
    pub line: u32,
    /// Its text; several texts where a line has several rules.
    pub text: String,
    /// Of rows that decide, count or return; `None` if it has none, such as a jump.
    pub hits: Option<EntryCountTold>,
    /// Of rows that log before; `None` if it has none.
    pub logged: Option<EntryCountTold>,
    /// Of rows that ask the limit of the rule before, about packets beyond it, too; `None` if it has none.
    pub asked_limit: Option<EntryCountTold>,
}

/// What a row has counted, or several of a table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowCounts {
    /// The table.
    pub table: String,
    /// The row as it is written; the table alone where it is a default.
    pub row: String,
    /// What it has counted.
    pub hits: EntryCountTold,
}

/// A table of a hook, with the rows that it holds.
struct HookTable<'a> {
    table: &'a Table,
    /// At one worker, or what all workers have counted together.
    rows: Vec<(Entry, EntryCount)>,
    text: Box<dyn Fn(&Entry) -> String + 'a>,
}

/// The tables of a policy's hooks, as these workers (from 0) hold them.
fn hook_tables<'a>(
    remote: &Remote,
    known: &'a Known,
    model: &PolicyModel,
    workers: u16,
) -> Result<Vec<HookTable<'a>>, RequestRefusal> {
    let table = |name: &String| {
        let (number, schema) = known.schema.table(name).ok_or_else(gone)?;
        let mut rows: Vec<(Entry, EntryCount)> = Vec::new();
        let mut places: BTreeMap<Entry, usize> = BTreeMap::new();
        for worker in 0..workers {
            for (entry, count) in whole_table(remote, known, number, worker)? {
                match places.get(&entry) {
                    Some(place) => rows[*place].1.add(count),
                    None => {
                        places.insert(entry.clone(), rows.len());
                        rows.push((entry, count));
                    }
                }
            }
        }
        let text = Box::new(move |entry: &Entry| row_text(schema, entry));
        Ok(HookTable { table: known.declared(number).ok_or_else(gone)?, rows, text })
    };
    model.tables.iter().map(table).collect()
}

/// The program has lost a table of its own policy.
fn gone() -> RequestRefusal {
    let message = "the program has no table for a hook of its policy";
    RequestRefusal::new(client::RefusalCode::Unknown, client::RefusalPlace::NONE, message)
}

/// A policy as its tables hold it.
pub(crate) fn view(
    remote: &Remote,
    known: &Known,
    model: &PolicyModel,
) -> Result<PolicyView, RequestRefusal> {
    // Changes from outside are made at all workers.
    let tables = hook_tables(remote, known, model, 1)?;
    let hooks: Vec<HookRows<'_>> = tables
        .iter()
        .map(|HookTable { table, rows, text }| HookRows {
            table,
            rows: rows.iter().map(|(entry, _)| entry.clone()).collect(),
            text,
        })
        .collect();
    let RowChanges { from_outside, gone } = changes(&hooks);
    let policy = match from_outside + gone {
        0 => model.policy.clone(),
        _ => of_rows(model, &hooks),
    };
    let PolicyModel { name, file, expectations, .. } = model.clone();
    Ok(PolicyView { name, file, policy, expectations, rows_from_outside: from_outside, rows_gone: gone })
}

/// What the rules of a policy have counted.
pub(crate) fn counts(
    remote: &Remote,
    known: &Known,
    model: &PolicyModel,
) -> Result<PolicyCounts, RequestRefusal> {
    let tables = hook_tables(remote, known, model, known.schema.workers)?;
    let now = MachineClock.now();
    let mut rules: BTreeMap<u32, RuleCounts> = BTreeMap::new();
    for rule in &model.rules {
        let text = rule.text.to_string();
        rules
            .entry(rule.number)
            .and_modify(|known| known.text += &format!("; {text}"))
            .or_insert_with(|| RuleCounts::new(rule.number, rule.place.line, text));
    }
    let (mut defaults, mut rows_from_outside) = (Vec::new(), Vec::new());
    for HookTable { table, rows, text } in &tables {
        let declared: HashSet<&Entry> = table.entries.iter().collect();
        let mut default =
            RowCounts { table: table.name.clone(), row: String::new(), hits: EntryCountTold::default() };
        for (entry, count) in rows {
            let (number, role) = rule_of(entry);
            if !declared.contains(entry) {
                let hits = count_on_wall(*count, now);
                rows_from_outside.push(RowCounts { table: table.name.clone(), row: text(entry), hits });
            } else if number == 0 {
                default.hits.add(count_on_wall(*count, now));
            } else {
                let rule = rules.entry(number);
                // A policy that cannot be analysed tells lines of a file alone.
                let rule = rule.or_insert_with(|| RuleCounts::new(number, number, String::new()));
                let hits = match role {
                    RowRole::Acts => &mut rule.hits,
                    RowRole::Logs => &mut rule.logged,
                    RowRole::Limits => &mut rule.asked_limit,
                };
                hits.get_or_insert_default().add(count_on_wall(*count, now));
            }
        }
        defaults.push(default);
    }
    Ok(PolicyCounts {
        name: model.name.clone(),
        file: model.file.clone(),
        times: tables.iter().any(|hook| hook.table.times),
        rules: rules.into_values().collect(),
        defaults,
        rows_from_outside,
    })
}

impl RuleCounts {
    fn new(rule: u32, line: u32, text: String) -> RuleCounts {
        RuleCounts { rule, line, text, hits: None, logged: None, asked_limit: None }
    }
}
