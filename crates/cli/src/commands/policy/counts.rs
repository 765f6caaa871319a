//! `ravelin policy counts`: what the rules of a running gateway have counted.

use super::program::answered;
use crate::arguments::policy::PolicyCountsArguments;
use crate::failure::Failure;
use crate::render;
use crate::render::quantity::{count, moment};
use crate::render::table::{Side, table};
use client::EntryCountTold;
use gateway::{Asked, PolicyCounts, RowCounts, RuleCounts};
use serde_json::Value;

/// Runs the command.
pub(super) fn run(arguments: &PolicyCountsArguments, json: bool) -> Result<(), Failure> {
    let all: Vec<PolicyCounts> = answered(&arguments.socket.control, Asked::PolicyCounts, "policycounts")?;
    let names: Vec<&str> = all.iter().map(|policy| policy.name.as_str()).collect();
    let wanted = |policy: &&PolicyCounts| arguments.policy.as_ref().is_none_or(|name| *name == policy.name);
    let chosen: Vec<&PolicyCounts> = all.iter().filter(wanted).collect();
    if chosen.is_empty() {
        return Err(Failure::Finding(match &arguments.policy {
            Some(name) if !names.is_empty() => {
                format!("the program that runs has no policy `{name}`; it has {}", names.join(", "))
            }
            _ => "the program that runs declares no policy".to_owned(),
        }));
    }
    if json {
        let documents: Result<Vec<Value>, _> = chosen.iter().map(serde_json::to_value).collect();
        let documents = documents.map_err(|error| Failure::Finding(error.to_string()))?;
        return Ok(render::json(&super::source::one_or_all(documents))?);
    }
    let told: Vec<String> = chosen.iter().map(|policy| text(policy)).collect();
    Ok(render::text(&told.join("\n"))?)
}

/// What a policy has counted, in lines.
fn text(policy: &PolicyCounts) -> String {
    let mut rows = Vec::new();
    for RuleCounts { line, text, hits, logged, asked_limit, .. } in &policy.rules {
        let place = format!("{}:{line}", policy.file);
        for (what, counted) in [("asked the limit: ", asked_limit), ("logged: ", logged)] {
            if counted.is_some() {
                rows.push(row(policy, &place, counted.as_ref(), &format!("{what}{text}")));
            }
        }
        // A rule that only logs, or leads to another group within a limit, has no other rows.
        if hits.is_some() || logged.is_none() && asked_limit.is_none() {
            rows.push(row(policy, &place, hits.as_ref(), text));
        }
    }
    let of_row = |RowCounts { table, row: shown, hits }: &RowCounts, what: &str| {
        row(policy, table, Some(hits), &format!("{what}{shown}"))
    };
    rows.extend(policy.defaults.iter().map(|default| of_row(default, "the default")));
    rows.extend(policy.rows_from_outside.iter().map(|outside| of_row(outside, "row from outside: ")));
    let times = if policy.times { &["first", "last"][..] } else { &[] };
    let headings = [
        Side::Left.columns(&["place"]),
        Side::Right.columns(&["packets", "bytes"]),
        Side::Left.columns(times),
        Side::Wrapped.columns(&["rule"]),
    ];
    format!("policy {}\n\n{}", policy.name, table(&headings.concat(), rows))
}

/// A line; a rule that has no rows, such as a jump, counts nothing.
fn row(policy: &PolicyCounts, place: &str, hits: Option<&EntryCountTold>, text: &str) -> Vec<String> {
    let nothing = || "-".to_owned();
    let number = |of: fn(&EntryCountTold) -> u64| hits.map_or_else(nothing, |hits| count(of(hits)));
    let mut row = vec![place.to_owned(), number(|hits| hits.packets), number(|hits| hits.bytes)];
    if policy.times {
        let time = |of: fn(&EntryCountTold) -> Option<u64>| hits.and_then(of).map_or_else(nothing, moment);
        row.extend([time(|hits| hits.first), time(|hits| hits.last)]);
    }
    row.push(text.to_owned());
    row
}
