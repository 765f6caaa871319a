//! Describes the tables, events and reasons of the running program to clients, and turns entries of clients
//! into entries of the program and back.

use super::limits::MOST_BUCKETS;
use crate::names::FILLED;
use crate::routing::Routing;
use client::message::table;
use client::{
    ColumnSchema, ColumnType, CountsKept, EventSchema, GroupSchema, KeyMatch, ProgramSchema, ReasonSchema,
    RefusalCode, RefusalPlace, RefusedChanges, RequestRefusal, TableEntry, TableSchema, VERSION,
};
use engine::live::Remote;
use exec::EntryError;
use ir::{BytePattern, Column, ColumnKind, Entry, Group, Match, Program, Table, TableKind};
use std::sync::Arc;

/// What of a program's tables the control plane fills by itself.
#[derive(Clone)]
pub(crate) struct Fillers {
    pub(crate) routing: Arc<Routing>,
    /// Whether packets follow a waypoint of this process.
    pub(crate) waypoint: bool,
}

impl Fillers {
    /// The numbers of these tables, each with what to change in place of it.
    fn of(&self, program: &Program) -> Vec<(u32, &'static str)> {
        let routed = self.routing.fills().into_iter().map(|table| (table, BY_ROUTING));
        let by_names = |table: &Table| FILLED.iter().find(|(name, _)| table.name == *name);
        let tables = (0..).zip(&program.tables).filter(|_| self.waypoint);
        routed.chain(tables.filter_map(|(number, table)| Some((number, by_names(table)?.1)))).collect()
    }
}

const BY_ROUTING: &str = "from the addresses in its file and from the routes and neighbours of the machine: change those, as with `ip route add`";

/// What a client knows of a program.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) schema: ProgramSchema,
    pub(crate) program: Arc<Program>,
}

impl Known {
    /// The program that runs now.
    pub(crate) fn now(remote: &Remote, fillers: &Fillers, file: &str) -> Result<Known, RequestRefusal> {
        loop {
            let running = remote.ask_at(0, |generation| (generation.number, generation.program.clone()));
            let (number, program) = running.ok_or_else(ended)?;
            // A reload says which tables control fills after the program has taken over.
            let filled = fillers.of(&program);
            if remote.ask_at(0, |generation| generation.number).ok_or_else(ended)? == number {
                let schema = describe(&program, file, number, remote.workers(), &filled);
                return Ok(Known { schema, program });
            }
        }
    }

    /// A table by its number.
    pub(super) fn table(&self, number: u16) -> Result<(&TableSchema, &Table), RequestRefusal> {
        let known = table(&self.schema, number)?;
        let declared = self.program.tables.get(usize::from(number));
        Ok((
            known,
            declared.ok_or_else(|| {
                RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, "no such table")
            })?,
        ))
    }

    /// A table by its number, as the program declares it.
    pub(crate) fn declared(&self, number: u16) -> Option<&Table> {
        self.program.tables.get(usize::from(number))
    }

    /// Refuses to tell entries of a table that is `secret`.
    pub(super) fn may_be_told(&self, number: u16) -> Result<(), RequestRefusal> {
        let (_, table) = self.table(number)?;
        if !table.secret {
            return Ok(());
        }
        let message = format!("`{}` is `secret` in the program: its entries are told to nobody", table.name);
        Err(RequestRefusal::new(RefusalCode::Closed, RefusalPlace::NONE, message))
    }

    /// The entry of the program that an entry of a client means.
    pub(super) fn entry(&self, number: u16, entry: TableEntry, place: u32) -> Result<Entry, RequestRefusal> {
        let key = self.key(number, entry.key, entry.priority, place)?;
        check_variant(&self.table(number)?.1.values, &entry.value, place)?;
        Ok(Entry { key, value: entry.value, priority: entry.priority })
    }

    /// Refuses the value of a default entry that is none of the table's.
    pub(super) fn suits(&self, number: u16, value: &[u128]) -> Result<(), RequestRefusal> {
        check_variant(&self.table(number)?.1.values, value, 0)
    }

    /// Refuses a lifetime that an entry of a table cannot have.
    pub(super) fn may_live(&self, number: u16, lifetime: u64) -> Result<(), RequestRefusal> {
        let (schema, _) = self.table(number)?;
        let message = match schema.age {
            Some(age) if (1..=age).contains(&lifetime) => return Ok(()),
            Some(age) => format!(
                "an entry of `{}` lives for more than 0 ns and for {age} ns at most, the `age` of the table: give it such a lifetime",
                schema.name
            ),
            None => format!(
                "`{}` has no `age`, so its entries can have no lifetime of their own: give it an `age` in the program",
                schema.name
            ),
        };
        Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::NONE, message))
    }

    /// Refuses a prefix that covers so many addresses that changing it alone would keep packets waiting.
    pub(super) fn is_narrow(&self, number: u16, key: &[Match]) -> Result<(), RequestRefusal> {
        let (_, table) = self.table(number)?;
        let shortest = table.shortest_changed();
        let bits = |(part, column): (&Match, &Column)| match part {
            Match::Any => 0,
            Match::Prefix { length, .. } => u32::from(*length),
            _ => u32::from(column.width),
        };
        let length: u32 = key.iter().zip(&table.keys).map(bits).sum();
        if length >= shortest {
            return Ok(());
        }
        let message = format!(
            "packets would wait too long while a prefix of fewer than {shortest} bits changes in `{}`: replace the table",
            table.name
        );
        Err(RequestRefusal::new(
            RefusalCode::Closed,
            RefusalPlace::key(0, table.keys.len() as u32 - 1),
            message,
        ))
    }

    /// As [`Known::entry`], without a look at the table.
    #[cfg(test)]
    pub(super) fn unchecked(&self, key: Vec<KeyMatch>, value: Vec<u128>) -> Entry {
        Entry { key: key.into_iter().map(to_match).collect(), value, priority: 0 }
    }

    /// The key of the program that a key of a client means.
    pub(super) fn key(
        &self,
        number: u16,
        key: Vec<KeyMatch>,
        priority: u32,
        place: u32,
    ) -> Result<Vec<Match>, RequestRefusal> {
        let (_, table) = self.table(number)?;
        if priority != 0 && table.kind != (TableKind::Rules { by_priority: true }) {
            let message = format!("the entries of `{}` have no priorities: send 0", table.name);
            return Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::entry(place), message));
        }
        let mut key: Vec<Match> = key.into_iter().map(to_match).collect();
        let is_search = matches!(table.kind, TableKind::Patterns(_));
        for (index, part) in (0..).zip(&key) {
            let column = table.keys.get(index as usize);
            let last = key.len() == index as usize + 1;
            let is_searched =
                || is_search && matches!(part, Match::Bytes(pattern) if !pattern.bytes.is_empty());
            let suits = table.kind.takes_part(part, last)
                && column.map_or_else(is_searched, |column| part.fits(column.width));
            if !suits {
                let kind = table.kind.name();
                let message = format!(
                    "`{}` is a table of {kind}, whose keys have no such part here: see the kinds of parts in docs/control.md, and that bits which do not count are zero",
                    table.name
                );
                return Err(RequestRefusal::new(
                    RefusalCode::Misfit,
                    RefusalPlace::key(place, index),
                    message,
                ));
            }
        }
        if !table.kind.takes(&table.keys, &key) {
            let message = format!("the key is none of `{}`", table.name);
            return Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::entry(place), message));
        }
        if table.kind == TableKind::Lpm {
            let columns = key.iter_mut().zip(&table.keys);
            columns.for_each(|(part, column)| canonical(part, column.width));
        }
        Ok(key)
    }
}

/// The one form of each prefix in which tables list it, so that equal keys are equal.
fn canonical(part: &mut Match, width: u8) {
    match *part {
        Match::Prefix { length: 0, .. } => *part = Match::Any,
        Match::Prefix { value, length } if length == width => *part = Match::Exact(value),
        _ => {}
    }
}

/// Refuses a value whose variant the program does not have, and values of other variants than its own.
fn check_variant(columns: &[Column], value: &[u128], place: u32) -> Result<(), RequestRefusal> {
    let Some((Column { kind: ColumnKind::Names(names), name, .. }, number)) =
        columns.first().zip(value.first())
    else {
        return Ok(());
    };
    if name != "variant" {
        return Ok(());
    }
    let misfit = |index: u32, message: String| {
        Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::value(place, index), message))
    };
    let Some((_, variant)) = names.iter().find(|(known, _)| known == number) else {
        return misfit(0, format!("no variant has the number {number}"));
    };
    for (index, (column, value)) in (0..).zip(columns.iter().zip(value)).skip(1) {
        let is_own = column.name.split_once('.').is_some_and(|(owner, _)| owner == variant);
        if !is_own && *value != 0 {
            return misfit(index, format!("`{}` is not of the variant `{variant}`: send 0", column.name));
        }
    }
    Ok(())
}

pub(super) fn ended() -> RequestRefusal {
    RequestRefusal::new(RefusalCode::Ended, RefusalPlace::NONE, "the packet loop has ended")
}

/// The refusal of an entry that the table itself does not take.
pub(super) fn refusal_of(error: &EntryError, place: RefusalPlace) -> RequestRefusal {
    let code = match error {
        EntryError::Key
        | EntryError::NoDefault
        | EntryError::Ageless
        | EntryError::Lifetime { .. }
        | EntryError::Early { .. } => RefusalCode::Misfit,
        EntryError::Full { .. } => RefusalCode::Full,
        EntryError::Fixed => RefusalCode::Closed,
        EntryError::Refused(_) => RefusalCode::Refused,
    };
    RequestRefusal::new(code, place, error.to_string())
}

/// The schema of a program. `filled` are the numbers of the tables that control fills.
pub(super) fn describe(
    program: &Program,
    file: &str,
    generation: u64,
    workers: usize,
    filled: &[(u32, &'static str)],
) -> ProgramSchema {
    let may_default = exec::may_default(program);
    let table = |(number, table): (u32, &Table)| TableSchema {
        name: table.name.clone(),
        kind: table.kind.name().to_owned(),
        ranked: table.kind == TableKind::Rules { by_priority: true },
        keys: columns(&table.keys),
        values: columns(&table.values),
        capacity: table.capacity,
        idle: table.idle,
        age: table.age,
        counts: match (table.counted, table.times) {
            (false, _) => None,
            (true, false) => Some(CountsKept::Packets),
            (true, true) => Some(CountsKept::Times),
        },
        refuses: {
            let from = filled.iter().find(|(filled, _)| *filled == number).map(|(_, from)| *from);
            RefusedChanges {
                default: refused_default(table, from, may_default[number as usize]),
                ..refusals(table, from)
            }
        },
    };

    ProgramSchema {
        version: VERSION,
        generation,
        program: file.to_owned(),
        workers: workers as u16,
        tables: (0..).zip(&program.tables).map(table).collect(),
        groups: program.groups.iter().map(group).collect(),
        events: (program.events.iter())
            .map(|event| EventSchema { name: event.name.clone(), arguments: columns(&event.params) })
            .collect(),
        reasons: (program.reasons.iter())
            .map(|reason| ReasonSchema { name: reason.name.clone(), help: reason.help.clone() })
            .collect(),
        untold: None,
    }
}

fn group(group: &Group) -> GroupSchema {
    let refuses = (group.buckets > MOST_BUCKETS).then(|| {
        format!(
            "packets would wait too long while one of the {} buckets of `{}` changes: give it {MOST_BUCKETS} at most",
            group.buckets, group.name
        )
    });
    GroupSchema {
        name: group.name.clone(),
        columns: columns(&group.columns),
        size: group.size,
        capacity: group.capacity,
        refuses,
    }
}

/// Why the default entry of a table cannot be changed.
fn refused_default(table: &Table, filled: Option<&str>, may: bool) -> Option<String> {
    if filled.is_some() {
        return refusals(table, filled).insert;
    }
    (!may)
        .then(|| format!("the program gives `{}` no default entry: declare one (`default => …`)", table.name))
}

fn refusals(table: &Table, filled: Option<&str>) -> RefusedChanges {
    let name = &table.name;
    if let Some(from) = filled {
        let why = Some(format!("the gateway itself fills `{name}` {from}"));
        return RefusedChanges { insert: why.clone(), remove: why.clone(), replace: why, default: None };
    }
    if table.releases.is_some() {
        let why = Some(format!(
            "the entries of `{name}` hold items of a pool, which only packets take: such entries can be listed and removed"
        ));
        return RefusedChanges { insert: why.clone(), replace: why, ..RefusedChanges::default() };
    }
    if matches!(table.kind, TableKind::Patterns(_)) {
        let why =
            Some(format!("the search of `{name}` is built for all its patterns together: replace the table"));
        return RefusedChanges { insert: why.clone(), remove: why, ..RefusedChanges::default() };
    }
    RefusedChanges::default()
}

fn columns(columns: &[Column]) -> Vec<ColumnSchema> {
    let column = |column: &Column| {
        let (kind, names) = match &column.kind {
            ColumnKind::Uint => (ColumnType::Uint, Vec::new()),
            ColumnKind::Bool => (ColumnType::Bool, Vec::new()),
            ColumnKind::Ip4 => (ColumnType::Ip4, Vec::new()),
            ColumnKind::Ip6 => (ColumnType::Ip6, Vec::new()),
            ColumnKind::Mac => (ColumnType::Mac, Vec::new()),
            ColumnKind::Port => (ColumnType::Port, Vec::new()),
            ColumnKind::Time => (ColumnType::Time, Vec::new()),
            ColumnKind::Names(names) => {
                let named = names.iter().map(|(number, name)| (number.to_string(), name.clone()));
                (ColumnType::Names, named.collect())
            }
        };
        ColumnSchema { name: column.name.clone(), kind, bits: column.width, names }
    };
    columns.iter().map(column).collect()
}

fn to_match(part: KeyMatch) -> Match {
    match part {
        KeyMatch::Any => Match::Any,
        KeyMatch::Exact(number) => Match::Exact(number),
        KeyMatch::Prefix { value, length } => Match::Prefix { value, length },
        KeyMatch::Masked { value, mask } => Match::Masked { value, mask },
        KeyMatch::Range { low, high } => Match::Range { low, high },
        KeyMatch::Bytes { bytes, nocase, offset, depth } => {
            Match::Bytes(Box::new(BytePattern { bytes, nocase, offset, depth }))
        }
    }
}

fn from_match(part: Match) -> KeyMatch {
    match part {
        Match::Any => KeyMatch::Any,
        Match::Exact(number) => KeyMatch::Exact(number),
        Match::Prefix { value, length } => KeyMatch::Prefix { value, length },
        Match::Masked { value, mask } => KeyMatch::Masked { value, mask },
        Match::Range { low, high } => KeyMatch::Range { low, high },
        Match::Bytes(pattern) => {
            let BytePattern { bytes, nocase, offset, depth } = *pattern;
            KeyMatch::Bytes { bytes, nocase, offset, depth }
        }
    }
}

/// An entry for a client.
pub(super) fn to_client(entry: Entry) -> TableEntry {
    TableEntry {
        key: entry.key.into_iter().map(from_match).collect(),
        priority: entry.priority,
        value: entry.value,
    }
}
