//! Entries and values as people write them in the language: `10.0.0.0/8 priority 5 => (3, true)`.

use crate::entry::{KeyMatch, TableEntry};
use crate::schema::{ColumnSchema, ColumnType, TableSchema};
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// An entry, with its key, its priority if the table has priorities, and its value if it has one.
pub fn entry(table: &TableSchema, entry: &TableEntry) -> String {
    let mut text = key(table, &entry.key);
    if table.ranked {
        // Writing to a string cannot fail.
        let _ = write!(text, " priority {}", entry.priority);
    }
    if !table.values.is_empty() {
        text += " => ";
        text += &values(&table.values, &entry.value);
    }
    text
}

/// A key.
pub fn key(table: &TableSchema, key: &[KeyMatch]) -> String {
    if let [KeyMatch::Bytes { bytes, nocase, offset, depth }] = key {
        return searched(bytes, *nocase, *offset, *depth);
    }
    together(table.keys.iter().zip(key).map(|(column, part)| self::part(column, part)).collect())
}

/// The values of columns: one alone, several as a tuple, a variant with its own.
pub fn values(columns: &[ColumnSchema], values: &[u128]) -> String {
    let named = columns.first().filter(|first| first.name == "variant" && first.kind == ColumnType::Names);
    let variant = named.zip(values.first()).and_then(|(first, number)| name(first, *number));
    let of = |column: &ColumnSchema| match variant {
        Some(variant) => column.name.strip_prefix(variant).is_some_and(|rest| rest.starts_with('.')),
        None => true,
    };
    let own = columns.iter().zip(values).filter(|(column, _)| of(column));
    let own: Vec<String> = own.map(|(column, number)| value(column, *number)).collect();
    match variant {
        Some(variant) if own.is_empty() => variant.to_owned(),
        Some(variant) => format!("{variant}({})", own.join(", ")),
        None => together(own),
    }
}

fn together(mut parts: Vec<String>) -> String {
    if parts.len() == 1 { parts.remove(0) } else { format!("({})", parts.join(", ")) }
}

fn part(column: &ColumnSchema, part: &KeyMatch) -> String {
    let value = |number: &u128| self::value(column, *number);
    match part {
        KeyMatch::Any | KeyMatch::Bytes { .. } => "_".to_owned(),
        KeyMatch::Exact(number) => value(number),
        KeyMatch::Prefix { value: number, length } => {
            let is_address = matches!(column.kind, ColumnType::Ip4 | ColumnType::Ip6);
            let between = if is_address { "/" } else { " / " };
            format!("{}{between}{length}", value(number))
        }
        KeyMatch::Masked { value: number, mask } => format!("{} mask {}", value(number), value(mask)),
        KeyMatch::Range { low, high } => format!("{}..{}", value(low), value(high)),
    }
}

fn searched(bytes: &[u8], nocase: bool, offset: u32, depth: Option<u32>) -> String {
    let plain = |byte: &u8| (b' '..=b'~').contains(byte) && !br#""\{}"#.contains(byte);
    let mut text = if bytes.iter().all(plain) {
        format!("\"{}\"", String::from_utf8_lossy(bytes))
    } else {
        let pairs: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("hex \"{}\"", pairs.join(" "))
    };
    if nocase {
        text += " nocase";
    }
    if offset > 0 {
        text += &format!(" offset {offset}");
    }
    depth.into_iter().for_each(|depth| text += &format!(" depth {depth}"));
    text
}

fn name(column: &ColumnSchema, number: u128) -> Option<&str> {
    let digits = number.to_string();
    column.names.iter().find(|(known, _)| *known == digits).map(|(_, name)| name.as_str())
}

/// A value of a column.
pub fn value(column: &ColumnSchema, number: u128) -> String {
    match column.kind {
        ColumnType::Uint | ColumnType::Port => number.to_string(),
        ColumnType::Bool => if number == 0 { "false" } else { "true" }.to_owned(),
        ColumnType::Ip4 => Ipv4Addr::from(number as u32).to_string(),
        ColumnType::Ip6 => Ipv6Addr::from(number).to_string(),
        ColumnType::Mac => {
            let bytes = (number as u64).to_be_bytes();
            let pairs: Vec<String> = bytes[2..].iter().map(|byte| format!("{byte:02x}")).collect();
            pairs.join(":")
        }
        ColumnType::Time => {
            let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
            let unit = units.into_iter().find(|(long, _)| number.is_multiple_of(*long));
            unit.map_or_else(|| format!("{number}ns"), |(long, unit)| format!("{}{unit}", number / long))
        }
        ColumnType::Names => name(column, number).map_or_else(|| number.to_string(), str::to_owned),
    }
}
