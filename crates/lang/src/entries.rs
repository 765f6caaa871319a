//! Entries of a table and members of a group as text: what the program's own `entries { … }` and
//! `members { … }` would hold, read for what is compiled already.
//!
//! Files named by `from "…"`, packet tests and the control plane write entries in this form: a key, perhaps
//! `priority n`, and `=> value`; commas and line breaks between entries as in a program.

use crate::ast::{self, EntryKey, ExprKind};
use crate::diagnostic::{Diagnostic, Severity};
use crate::parser::{parse_entries, parse_members};
use ir::source::{FileId, Span};
use ir::{BytePattern, Column, ColumnKind, Entry, Group, GroupMember, Match, Table, TableKind, prefix_mask};
use std::collections::{HashMap, HashSet};

/// Reads entries of a table.
///
/// # Errors
/// Everything that is wrong with the text; nothing is kept then.
pub fn read(text: &str, table: &Table) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    read_with(text, table, value)
}

/// Reads keys of a table, with priorities where it has them, as entries without values.
///
/// # Errors
/// Everything that is wrong with the text, and each value in it; nothing is kept then.
pub fn read_keys(text: &str, table: &Table) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    read_with(text, table, |entry, _| match &entry.value {
        None => Ok(Vec::new()),
        Some(value) => {
            Err(wrong(value.span, "a key alone is wanted here".to_string(), "leave out `=>` and the value"))
        }
    })
}

/// Reads the value columns of an entry.
type ReadValue = fn(&ast::Entry, &Table) -> Result<Vec<u128>, Fault>;

fn read_with(text: &str, table: &Table, value: ReadValue) -> Result<Vec<Entry>, Vec<Diagnostic>> {
    let (parsed, mut faults) = parse_entries(FileId::default(), text);
    let mut entries = Vec::with_capacity(parsed.len());
    let mut seen = HashSet::new();
    // Equal rules are no contradiction: the first of them, or the one that goes before by priority, is found.
    let rules = matches!(table.kind, TableKind::Rules { .. });
    for parsed in &parsed {
        match one(parsed, table, value) {
            Ok(entry) if !rules && !seen.insert(entry.key.clone()) => {
                let headline = format!("`{}` has two entries for one key", table.name);
                faults.push(*wrong(parsed.span, headline, "this key stands above already"));
            }
            Ok(entry) => entries.push(entry),
            Err(fault) => faults.push(*fault),
        }
    }
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        faults.sort_by_key(|fault| fault.primary.span.start);
        return Err(faults);
    }
    Ok(entries)
}

/// Reads members of a group, as behind `members {`; those that the group has already are not to stand in the
/// text as well.
///
/// # Errors
/// Everything that is wrong with the text; nothing is kept then.
pub fn read_members(text: &str, group: &Group) -> Result<Vec<GroupMember>, Vec<Diagnostic>> {
    let (parsed, mut faults) = parse_members(FileId::default(), text);
    let mut members = Vec::with_capacity(parsed.len());
    let mut seen: HashSet<(u32, Vec<u128>)> = HashSet::new();
    let mut mates: HashMap<u32, u32> = HashMap::new();
    for (index, columns, _) in &group.members {
        seen.insert((*index, columns.clone()));
        *mates.entry(*index).or_default() += 1;
    }
    for parsed in &parsed {
        let taken = group_member(parsed, group).and_then(|taken| {
            let mates = mates.entry(taken.0).or_default();
            *mates += 1;
            let wrong = |headline, label: &str| Err(wrong(parsed.span, headline, label));
            if !seen.insert((taken.0, taken.1.clone())) {
                return wrong(
                    format!("a member stands twice in `{}`", group.name),
                    "it stands above, or in the program",
                );
            }
            if *mates > group.capacity {
                let headline = format!("`{}` has room for {} members", group.name, group.capacity);
                return wrong(headline, "this one is too many: raise its `capacity`");
            }
            Ok(taken)
        });
        match taken {
            Ok(member) => members.push(member),
            Err(fault) => faults.push(*fault),
        }
    }
    if faults.iter().any(|fault| fault.severity == Severity::Error) {
        faults.sort_by_key(|fault| fault.primary.span.start);
        return Err(faults);
    }
    Ok(members)
}

fn group_member(member: &ast::Member, group: &Group) -> Result<GroupMember, Fault> {
    let no_member =
        |span, label: String| Err(wrong(span, format!("this is no member of `{}`", group.name), label));
    let index = match &member.index {
        Some(index) => match number(index, 32)? as u32 {
            known if known < group.size => known,
            _ => {
                return no_member(index.span, format!("there are {} groups, numbered from 0", group.size));
            }
        },
        None if group.size > 1 => {
            return no_member(member.span, "its group's number is missing, as in `3: 7`".to_string());
        }
        None => 0,
    };
    if member.parts.len() != group.columns.len() {
        return no_member(member.span, format!("{} parts are wanted", group.columns.len()));
    }
    let columns = member
        .parts
        .iter()
        .zip(&group.columns)
        .map(|(part, column)| scalar(part, column))
        .collect::<Result<_, _>>()?;
    let weight = match &member.weight {
        Some(weight) => match number(weight, 16)? as u32 {
            0 => return no_member(weight.span, "a weight of zero gets nothing".to_string()),
            weight => weight,
        },
        None => 1,
    };
    Ok((index, columns, weight))
}

/// What is wrong with an entry.
type Fault = Box<Diagnostic>;

fn wrong(span: Span, headline: String, label: impl Into<String>) -> Fault {
    Box::new(Diagnostic::error("E0529", headline, span, label))
}

fn one(entry: &ast::Entry, table: &Table, value: ReadValue) -> Result<Entry, Fault> {
    let wants_priority = table.kind == TableKind::Rules { by_priority: true };
    let priority = match &entry.priority {
        Some(priority) if wants_priority => number(priority, 32)? as u32,
        None if !wants_priority => 0,
        _ => {
            let label =
                if wants_priority { "`priority n` is missing" } else { "this table has no priorities" };
            return Err(wrong(entry.span, format!("the entry does not suit `{}`", table.name), label));
        }
    };
    Ok(Entry { key: key(entry, table)?, value: value(entry, table)?, priority })
}

fn key(entry: &ast::Entry, table: &Table) -> Result<Vec<Match>, Fault> {
    if let TableKind::Patterns(_) = table.kind {
        let [EntryKey::Bytes { bytes, nocase, offset, depth, span }] = entry.keys.as_slice() else {
            return Err(wrong(
                entry.span,
                format!("`{}` searches for bytes", table.name),
                "write a text or `hex \"…\"`",
            ));
        };
        if bytes.is_empty() {
            return Err(wrong(*span, "nothing is searched for".to_string(), "there are no bytes"));
        }
        let offset = offset.as_ref().map_or(Ok(0), |offset| number(offset, 32))? as u32;
        let depth = match depth {
            Some(depth) => Some(number(depth, 32)? as u32),
            None => None,
        };
        return Ok(vec![Match::Bytes(Box::new(BytePattern {
            bytes: bytes.clone(),
            nocase: *nocase,
            offset,
            depth,
        }))]);
    }
    if entry.keys.len() != table.keys.len() {
        let label = format!("{} parts are wanted", table.keys.len());
        return Err(wrong(entry.span, format!("this is no key of `{}`", table.name), label));
    }
    let mut key = Vec::with_capacity(table.keys.len());
    for (index, (part, column)) in entry.keys.iter().zip(&table.keys).enumerate() {
        let matched = match_of(part, column)?;
        let last = index + 1 == table.keys.len();
        if !table.kind.takes_part(&matched, last) || !matched.fits(column.width) {
            let kind = table.kind.name();
            return Err(wrong(
                part.span(),
                format!("this is no key of `{}`", table.name),
                format!("a table of {kind} cannot hold it"),
            ));
        }
        key.push(matched);
    }
    Ok(key)
}

fn match_of(part: &EntryKey, column: &Column) -> Result<Match, Fault> {
    let width = column.width;
    Ok(match part {
        EntryKey::Any(_) => Match::Any,
        EntryKey::Value(value) => match (&value.kind, &column.kind) {
            (ExprKind::Prefix4(address, length), ColumnKind::Ip4) => prefix(u128::from(*address), *length),
            (ExprKind::Prefix6(address, length), ColumnKind::Ip6) => prefix(*address, *length),
            (ExprKind::Binary(ast::BinaryOp::Div, value, length), _) => {
                prefix(scalar(value, column)?, number(length, 8)? as u8)
            }
            _ => Match::Exact(scalar(value, column)?),
        },
        EntryKey::Range(low, high) => {
            let low = scalar(low, column)?;
            let high = match high {
                Some(high) => scalar(high, column)?,
                None => prefix_mask(width, width),
            };
            Match::Range { low, high }
        }
        EntryKey::Masked(value, mask) => {
            Match::Masked { value: scalar(value, column)?, mask: scalar(mask, column)? }
        }
        EntryKey::Bytes { span, .. } => {
            return Err(wrong(
                *span,
                "bytes cannot be matched here".to_string(),
                "a number or address is wanted",
            ));
        }
    })
}

fn prefix(value: u128, length: u8) -> Match {
    Match::Prefix { value, length }
}

fn value(entry: &ast::Entry, table: &Table) -> Result<Vec<u128>, Fault> {
    let columns = &table.values;
    let Some(value) = &entry.value else {
        if columns.is_empty() {
            return Ok(Vec::new());
        }
        return Err(wrong(
            entry.span,
            format!("an entry of `{}` holds a value", table.name),
            "`=> …` is missing",
        ));
    };
    columns_of(value, table)
}

/// The value columns that an expression stands for.
fn columns_of(value: &ast::Expr, table: &Table) -> Result<Vec<u128>, Fault> {
    let columns = &table.values;
    if let Some((first, variant)) = columns.first().zip(variant_of(value))
        && first.name == "variant"
        && let ColumnKind::Names(names) = &first.kind
    {
        let (name, args) = variant;
        let Some((number, _)) = names.iter().find(|(_, known)| known == name) else {
            return Err(wrong(
                value.span,
                format!("`{}` has no variant `{name}`", table.name),
                "no such variant",
            ));
        };
        let mut numbers = vec![0; columns.len()];
        numbers[0] = *number;
        let own: Vec<usize> = (1..columns.len())
            .filter(|&index| columns[index].name.split_once('.').is_some_and(|(owner, _)| owner == name))
            .collect();
        if own.len() != args.len() {
            return Err(wrong(
                value.span,
                format!("`{name}` takes {} values", own.len()),
                format!("{} given", args.len()),
            ));
        }
        for (index, arg) in own.into_iter().zip(args) {
            numbers[index] = scalar(arg, &columns[index])?;
        }
        return Ok(numbers);
    }
    let parts: Vec<&ast::Expr> = match &value.kind {
        ExprKind::Tuple(parts) => parts.iter().collect(),
        _ => vec![value],
    };
    if parts.len() != columns.len() {
        let label = format!("{} parts are wanted", columns.len());
        return Err(wrong(value.span, format!("this is no value of `{}`", table.name), label));
    }
    parts.iter().zip(columns).map(|(part, column)| scalar(part, column)).collect()
}

fn variant_of(value: &ast::Expr) -> Option<(&String, &[ast::Expr])> {
    match &value.kind {
        ExprKind::Word(name) => Some((name, &[])),
        ExprKind::Call(name, args) => Some((&name.text, args)),
        _ => None,
    }
}

fn number(expr: &ast::Expr, width: u8) -> Result<u128, Fault> {
    match &expr.kind {
        ExprKind::Int(number) if *number <= prefix_mask(width, width) => Ok(*number),
        ExprKind::Int(_) => Err(wrong(expr.span, format!("this has more than {width} bits"), "too large")),
        _ => Err(wrong(expr.span, "a number is wanted".to_string(), "this is none")),
    }
}

/// A single value of a column.
fn scalar(expr: &ast::Expr, column: &Column) -> Result<u128, Fault> {
    match (&expr.kind, &column.kind) {
        (ExprKind::Ip4(address), ColumnKind::Ip4) => Ok(u128::from(*address)),
        (ExprKind::Ip6(address), ColumnKind::Ip6) => Ok(*address),
        (ExprKind::Mac(address), ColumnKind::Mac) => Ok(u128::from(*address)),
        (ExprKind::Bool(truth), ColumnKind::Bool) => Ok(u128::from(*truth)),
        (ExprKind::Duration(time), ColumnKind::Time) => Ok(u128::from(*time)),
        (ExprKind::Word(name), ColumnKind::Names(names)) => member_of(name, names, expr.span),
        (ExprKind::Field(_, name), ColumnKind::Names(names)) => member_of(&name.text, names, expr.span),
        (ExprKind::Int(_), ColumnKind::Uint | ColumnKind::Port | ColumnKind::Time | ColumnKind::Names(_)) => {
            number(expr, column.width)
        }
        (_, kind) => {
            let wanted = match kind {
                ColumnKind::Uint => "a number",
                ColumnKind::Bool => "`true` or `false`",
                ColumnKind::Ip4 => "an IPv4 address",
                ColumnKind::Ip6 => "an IPv6 address",
                ColumnKind::Mac => "a MAC address",
                ColumnKind::Port => "the number of a port",
                ColumnKind::Time => "a time such as `5s`",
                ColumnKind::Names(_) => "one of the names of its type",
            };
            Err(wrong(expr.span, format!("{wanted} is wanted here"), "this is something else"))
        }
    }
}

fn member_of(name: &str, names: &[(u128, String)], span: Span) -> Result<u128, Fault> {
    let found = names.iter().find(|(_, known)| known == name).map(|(number, _)| *number);
    found.ok_or_else(|| wrong(span, format!("there is no `{name}` here"), "no member has this name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::{CompileOptions, compile};

    fn table(text: &str) -> Table {
        let text = format!("{text}\nstart stage all() {{ flood }}\n");
        let mut program =
            compile("t.rav", &text, &|_| None, &CompileOptions::default()).program.expect("compiles");
        program.tables.remove(0)
    }

    #[test]
    fn entries_of_a_file_are_those_of_the_program() {
        let declared = "table acl: rules(src: ip4, to: u16) -> { permit, via(out: port, mark: u8) } { capacity 9 entries { X } }";
        let entries = "(10.0.0.0/8, 80..89) => permit\n(_, 1024..) => via(3, 7), (10.1.2.3, 0x02 mask 0x12) => via(1, 0)";
        let there = table(&declared.replace('X', entries));
        assert_eq!(read(entries, &there).expect("reads"), there.entries);
        let declared = "table sigs: patterns(bytes) -> u16 { capacity 9 entries { X } }";
        let entries = "\"cmd.exe\" nocase offset 3 depth 20 => 5\nhex \"90 90\" => 6";
        let there = table(&declared.replace('X', entries));
        assert_eq!(read(entries, &there).expect("reads"), there.entries);
    }

    #[test]
    fn every_fault_is_told_with_its_place_and_nothing_is_kept() {
        let there = table("table routes: lpm(ip4) -> port { capacity 9 }");
        let faults = read("10.0.0.0/8 => 1\n10.0.0.0 => true\n_ => 70000\n(1, 2) => 3\n1..2 => 4\n", &there)
            .expect_err("faulty");
        let starts: Vec<u32> = faults.iter().map(|fault| fault.primary.span.start).collect();
        assert_eq!(starts, [28, 38, 44, 56]);
        assert!(read("10.0.0.0/8 =>", &there).is_err());
        let faults = read("10.0.0.0/8 => 1\n11.0.0.0/8 => 1\n10.0.0.0/8 => 2\n", &there).expect_err("twice");
        assert_eq!((faults.len(), faults[0].primary.span.start), (1, 32));
        let rules = table("table acl: rules(ip4) -> port { capacity 9 }");
        assert_eq!(read("10.0.0.0/8 => 1\n10.0.0.0/8 => 2\n", &rules).expect("reads").len(), 2);
    }

    #[test]
    fn keys_are_read_without_values() {
        let there = table("table acl: rules(ip4, u16) -> u8 { capacity 9 choose priority }");
        let keys = read_keys("(10.0.0.0/8, _) priority 3\n(_, 1..2) priority 4", &there).expect("reads");
        assert!(keys.iter().map(|entry| (entry.priority, entry.value.len())).eq([(3, 0), (4, 0)]));
        let faults = read_keys("(10.0.0.0/8, _) priority 3 => 7", &there).expect_err("a value");
        assert_eq!(faults[0].primary.span.start, 30, "{faults:?}");
    }

    #[test]
    fn members_of_a_file_are_those_of_the_program() {
        let group = |text: &str| {
            let text = format!("{text}\nstart stage all() {{ flood }}\n");
            let compiled = compile("t.rav", &text, &|_| None, &CompileOptions::default());
            compiled.program.expect("compiles").groups.remove(0)
        };
        let declared = "group hops[4]: (mac, port) { buckets 8 capacity 2 members { X } }";
        let members =
            "1: (02:00:00:00:00:07, 7) weight 2\n3: (02:00:00:00:00:08, 8), 3: (02:00:00:00:00:07, 7)";
        let there = group(&declared.replace('X', members));
        let empty = group(&declared.replace('X', ""));
        assert_eq!(read_members(members, &empty).expect("reads"), there.members);

        let servers = group("group servers: port { buckets 4 capacity 3 members { 1 } }");
        assert_eq!(
            read_members("2 weight 9\n3\n", &servers).expect("reads"),
            [(0, vec![2], 9), (0, vec![3], 1)]
        );
        for (text, group, column, wanted) in [
            ("2\n70000\n", &servers, 2, "more than 16 bits"),
            ("2\n1\n", &servers, 2, "stands twice"),
            ("2\n2\n", &servers, 2, "stands twice"),
            ("2\n3\n4\n", &servers, 4, "room for 3 members"),
            ("2 weight 0\n", &servers, 9, "no member"),
            ("1: 3\n", &servers, 0, "no member"),
            ("(2, 3)\n", &servers, 0, "no member"),
            ("2 weight\n", &servers, 9, ""),
            ("(02:00:00:00:00:07, 7)\n", &empty, 0, "no member"),
            ("4: (02:00:00:00:00:07, 7)\n", &empty, 0, "no member"),
        ] {
            let faults = read_members(text, group).expect_err(text);
            let first = &faults[0];
            assert!(first.headline.contains(wanted), "{text:?}: {first:?}");
            assert_eq!(first.primary.span.start, column, "{text:?}: {first:?}");
        }
    }
}
