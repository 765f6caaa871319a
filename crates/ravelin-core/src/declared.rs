//! A table of the program that runs, as `control` is told it: its declaration, without its entries.

use crate::granted::Granted;
use ir::{Column, ColumnKind, TableKind};
use messages::control::{ShownColumn, ShownColumnKind, ShownKind, ShownRight, ShownTable};

/// The table with this number, if there is one.
pub(crate) fn declared(granted: &Granted, number: u32) -> Option<ShownTable> {
    let table = granted.program().tables.get(number as usize)?;
    let right = granted.right(number).map(|(right, entries)| ShownRight {
        prefixes: right.prefixes.iter().map(|prefix| (prefix.bits(), prefix.length())).collect(),
        most_entries: right.most_entries,
        entries: entries as u32,
        changes_per_second: right.changes_per_second,
    });
    Some(ShownTable {
        name: table.name.clone(),
        kind: match table.kind {
            TableKind::Exact => ShownKind::Exact,
            TableKind::Lpm => ShownKind::Lpm,
            TableKind::Rules { by_priority } => ShownKind::Rules { by_priority },
            TableKind::Patterns(_) => ShownKind::Patterns,
        },
        keys: table.keys.iter().map(column).collect(),
        values: table.values.iter().map(column).collect(),
        capacity: table.capacity,
        idle: table.idle,
        age: table.age,
        secret: table.secret,
        holds_items: table.releases.is_some(),
        right,
    })
}

fn column(Column { name, kind, width }: &Column) -> ShownColumn {
    let kind = match kind {
        ColumnKind::Uint => ShownColumnKind::Uint,
        ColumnKind::Bool => ShownColumnKind::Bool,
        ColumnKind::Ip4 => ShownColumnKind::Ip4,
        ColumnKind::Ip6 => ShownColumnKind::Ip6,
        ColumnKind::Mac => ShownColumnKind::Mac,
        ColumnKind::Port => ShownColumnKind::Port,
        ColumnKind::Time => ShownColumnKind::Time,
        ColumnKind::Names(names) => ShownColumnKind::Names(names.clone()),
    };
    ShownColumn { name: name.clone(), kind, width: *width }
}
