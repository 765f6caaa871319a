//! `ravelin table default`, `join` and `leave`: default entries of tables and members of groups of a running
//! gateway.

use super::live::{change, connect, entries, failed, find};
use super::written_value::number;
use crate::arguments::table_live::{DefaultArguments, MemberArguments};
use crate::failure::Failure;
use crate::render;
use client::message::TableRequest;
use client::{ColumnSchema, ColumnType, GroupSchema, KeyMatch, TableSchema, text};
use serde_json::json;

/// Runs `ravelin table default`.
pub(super) fn default(arguments: &DefaultArguments, json: bool) -> Result<(), Failure> {
    let mut client = connect(&arguments.socket.control)?;
    let (table, schema) = find(client.schema(), &arguments.table)?;
    let schema = schema.clone();
    let value = match (&arguments.value, arguments.clear) {
        (Some(value), _) => {
            let read = entries(&mut client, table, &format!("{} => {value}", any_key(&schema)), false, None)?;
            let [entry] = &read[..] else {
                return Err(Failure::Usage(format!("`{value}` is {} values; write one", read.len())));
            };
            Some(entry.value.clone())
        }
        (None, true) => None,
        (None, false) => {
            for held in client.default_of(table).map_err(failed)? {
                let value = text::values(&schema.values, &held.columns);
                if json {
                    render::line(&json!({ "worker": held.worker, "default": value }))?;
                } else {
                    render::text(&format!("{value}\n"))?;
                }
            }
            return Ok(());
        }
    };
    let what = if value.is_some() { "set" } else { "cleared" };
    change(&mut client, vec![TableRequest::SetDefault { table, value }], what, json)
}

/// A key that suits the table, for a text that has only a value.
fn any_key(schema: &TableSchema) -> String {
    let last = schema.keys.len().saturating_sub(1);
    let part = |(at, column): (usize, &ColumnSchema)| match &*schema.kind {
        "lpm" if at == last => KeyMatch::Any,
        "rules" => KeyMatch::Any,
        _ => KeyMatch::Exact(match column.kind {
            ColumnType::Port => 1,
            ColumnType::Names => {
                column.names.first().and_then(|(number, _)| number.parse().ok()).unwrap_or(0)
            }
            _ => 0,
        }),
    };
    let key: Vec<KeyMatch> = schema.keys.iter().enumerate().map(part).collect();
    let key = if key.is_empty() { "\"any\"".to_owned() } else { text::key(schema, &key) };
    if schema.ranked { format!("{key} priority 0") } else { key }
}

/// Runs `ravelin table join`.
pub(super) fn join(arguments: &MemberArguments, json: bool) -> Result<(), Failure> {
    let make = |group, index, member| TableRequest::Join { group, index, member };
    change_members(arguments, &make, "joined", json)
}

/// Runs `ravelin table leave`.
pub(super) fn leave(arguments: &MemberArguments, json: bool) -> Result<(), Failure> {
    let make = |group, index, member| TableRequest::Leave { group, index, member };
    change_members(arguments, &make, "left", json)
}

fn change_members(
    arguments: &MemberArguments,
    make: &dyn Fn(u16, u32, Vec<u128>) -> TableRequest,
    what: &str,
    json: bool,
) -> Result<(), Failure> {
    let mut client = connect(&arguments.socket.control)?;
    let schema = client.schema();
    let (number, group) = schema.group(&arguments.group).ok_or_else(|| {
        let names: Vec<&str> = schema.groups.iter().map(|group| group.name.as_str()).collect();
        let there = if names.is_empty() { "no groups".to_owned() } else { names.join(", ") };
        Failure::Finding(schema.untold.clone().unwrap_or_else(|| {
            format!("{} has no group `{}`; it has {there}", schema.program, arguments.group)
        }))
    })?;
    let members: Result<Vec<_>, _> = arguments.members.iter().map(|text| member(group, text)).collect();
    let changes = members?.into_iter().map(|member| make(number, arguments.index, member)).collect();
    change(&mut client, changes, what, json)
}

/// The columns of a member as people write it: a value, or several in parentheses.
fn member(group: &GroupSchema, written: &str) -> Result<Vec<u128>, Failure> {
    let inner = written.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let parts: Vec<&str> = inner.unwrap_or(written).split(',').map(str::trim).collect();
    if parts.len() != group.columns.len() {
        let wanted = group.columns.len();
        return Err(Failure::Usage(format!(
            "`{written}` has {} values; a member of `{}` has {wanted}: write `(A, B)` for several",
            parts.len(),
            group.name
        )));
    }
    let read = |(column, part): (&ColumnSchema, &str)| {
        number(column, part)
            .map_err(|wanted| Failure::Usage(format!("`{written}`: {wanted} is wanted and not `{part}`")))
    };
    group.columns.iter().zip(parts).map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::{any_key, member};
    use client::{ColumnSchema, ColumnType, GroupSchema, TableSchema};

    fn column(kind: ColumnType, bits: u8) -> ColumnSchema {
        ColumnSchema { name: String::new(), kind, bits, names: Vec::new() }
    }

    #[test]
    fn a_member_has_a_value_for_each_column_and_no_other_text() {
        let columns = vec![column(ColumnType::Ip4, 32), column(ColumnType::Port, 16)];
        let group = GroupSchema { name: "hops".into(), columns, size: 1, capacity: 4, refuses: None };
        let read = |text| member(&group, text).map_err(|_| ());
        assert_eq!(read("(10.0.0.1, 2)"), Ok(vec![0x0a00_0001, 2]));
        assert_eq!(read("10.0.0.1,2"), Ok(vec![0x0a00_0001, 2]));
        for wrong in ["10.0.0.1", "(10.0.0.1, 2, 3)", "(10.0.0.1, 65536)", "(10.0.0, 2)", "(10.0.0.1, 2", ""]
        {
            assert_eq!(read(wrong), Err(()), "{wrong}");
        }
    }

    #[test]
    fn a_key_that_is_not_looked_at_is_one_of_the_table() {
        let schema = |kind: &str, ranked, keys| TableSchema {
            name: "t".into(),
            kind: kind.into(),
            ranked,
            keys,
            values: Vec::new(),
            capacity: 1,
            idle: None,
            age: None,
            counts: None,
            refuses: Default::default(),
        };
        let (port, ip4) = (column(ColumnType::Port, 16), column(ColumnType::Ip4, 32));
        assert_eq!(any_key(&schema("exact", false, vec![port.clone()])), "1");
        assert_eq!(any_key(&schema("lpm", false, vec![port.clone(), ip4.clone()])), "(1, _)");
        assert_eq!(any_key(&schema("rules", true, vec![ip4, port])), "(_, _) priority 0");
        assert_eq!(any_key(&schema("patterns", false, Vec::new())), "\"any\"");
    }
}
