//! The tables of a confined core, as it declares them, in the place of its program.

use super::schema::{Known, describe};
use crate::beside_core::OneProcess;
use ir::source::Span;
use ir::{Answer, Column, ColumnKind, Eviction, Program, Table, TableKind};
use messages::control::{ShownColumn, ShownColumnKind, ShownKind, ShownTable};
use std::sync::Arc;

impl Known {
    /// What is known of a program with this number: these tables alone.
    pub(super) fn of_core(
        number: u64,
        workers: u16,
        tables: Vec<ShownTable>,
        one_process: OneProcess,
    ) -> Known {
        let refusals: Vec<_> = tables.iter().map(|table| refusal(table, one_process)).collect();
        let program = Program { tables: tables.into_iter().map(declared).collect(), ..Program::default() };
        let mut schema = describe(&program, "the policy in force", number, workers.into(), &[]);
        schema.untold = Some(one_process.misses("nobody tells of groups, events and reasons"));
        for (table, refusal) in schema.tables.iter_mut().zip(refusals) {
            let refuses = &mut table.refuses;
            refuses.insert = refusal.or_else(|| refuses.insert.take());
            refuses.remove = refuses.insert.clone();
            let one_by_one = || one_process.misses("entries are not replaced all at once");
            refuses.replace = refuses.insert.clone().or_else(|| Some(one_by_one()));
            refuses.default = refuses.replace.clone();
        }
        Known { schema, program: Arc::new(program) }
    }
}

/// Why no entry changes, if none does.
fn refusal(table: &ShownTable, one_process: OneProcess) -> Option<String> {
    let none = || {
        match one_process {
            OneProcess::Possible => {
                one_process.misses("entries change only by rights that a signed policy gives")
            }
            // It may be signed.
            OneProcess::Never => {
                "the policy in force gives no right for it: sign one that does (`[rights]`)".to_owned()
            }
        }
    };
    table.right.is_none().then(none)
}

fn declared(table: ShownTable) -> Table {
    Table {
        name: table.name,
        kind: match table.kind {
            ShownKind::Exact => TableKind::Exact,
            ShownKind::Lpm => TableKind::Lpm,
            ShownKind::Rules { by_priority } => TableKind::Rules { by_priority },
            // What a search answers is of no account for its patterns.
            ShownKind::Patterns => TableKind::Patterns(Answer::First),
        },
        keys: table.keys.into_iter().map(column).collect(),
        values: table.values.into_iter().map(column).collect(),
        capacity: table.capacity,
        idle: table.idle,
        age: table.age,
        secret: table.secret,
        releases: table.holds_items.then_some(0),
        // No more is told, nor needed to read and write entries.
        lifetimes: false,
        evict: Eviction::Refuse,
        counted: false,
        times: false,
        expires: None,
        entries: Vec::new(),
        file: None,
        default: None,
        span: Span::default(),
    }
}

fn column(ShownColumn { name, width, kind }: ShownColumn) -> Column {
    let kind = match kind {
        ShownColumnKind::Uint => ColumnKind::Uint,
        ShownColumnKind::Bool => ColumnKind::Bool,
        ShownColumnKind::Ip4 => ColumnKind::Ip4,
        ShownColumnKind::Ip6 => ColumnKind::Ip6,
        ShownColumnKind::Mac => ColumnKind::Mac,
        ShownColumnKind::Port => ColumnKind::Port,
        ShownColumnKind::Time => ColumnKind::Time,
        ShownColumnKind::Names(names) => ColumnKind::Names(names),
    };
    Column { name, kind, width }
}
