//! What a made program remembers and makes: tables of every kind, meters, registers, pools, groups, counters,
//! events, templates.
//!
//! All of a kind stand in fixed places, so that instructions that ask for a kind find one, and more of them
//! behind those.

use crate::random::SuiteRandom;
use ir::source::Span;
use ir::{
    Answer, BytePattern, Column, ColumnKind, Counter, Entry, Event, Every, Eviction, Group, Hole, Layout,
    Match, Meter, Pool, Program, Rates, Reason, Register, Stage, Sum, Table, TableKind, Template,
    prefix_mask,
};

/// The place of the table of prefixes.
const PREFIXES: usize = 2;
/// The counter that has a cell for every block of the program.
pub(super) const OF_BLOCKS: u32 = 0;

/// Declarations, without functions; events and handlers by the clock name the functions behind the packet
/// function in turn.
pub(super) fn made(random: &mut SuiteRandom) -> Program {
    let mut program = Program { name: "made".to_owned(), ..Program::default() };
    program.reasons = ["no_such_port", "one", "two"].map(reason).to_vec();
    program.port_sets = vec![vec![1, 3], Vec::new(), vec![4]];
    program.stages = ["first", "second"].map(stage).to_vec();
    program.layouts = vec![Layout { name: "shown".to_owned(), fields: Vec::new() }];
    program.counters = vec![counter("blocks", 1), counter("one", 1), counter("many", 5)];
    program.meters = (0..2).map(|number| meter(random, number)).collect();
    program.registers = (0..3).map(|number| register(random, number)).collect();
    program.pools = (0..2).map(|number| pool(random, number)).collect();
    program.groups = (0..2).map(|number| group(random, number)).collect();
    program.templates = (0..3).map(|_| template(random)).collect();
    program.tables = tables(random, &program.pools);
    let handlers = random.between(1, 3) as u32;
    program.events = (0..handlers).map(|number| event(random, number)).collect();
    if random.one_in(2) {
        expire(&mut program, 0, 0);
    }
    if random.one_in(2) && handlers > 1 {
        expire(&mut program, PREFIXES, 1);
    }
    program.every = vec![Every { period: random.between(1, 40) * 1_000_000, handler: handlers + 1 }];
    program
}

/// Lets the entries of a table raise an event when their time is up.
fn expire(program: &mut Program, table: usize, event: usize) {
    let table = &mut program.tables[table];
    (table.expires, table.age) = (Some(event as u32), Some(table.age.unwrap_or(20_000_000)));
    // An event would tell its entries.
    table.secret = false;
    let column = |width| Column { name: String::new(), width, kind: ColumnKind::Uint };
    program.events[event].params = table.ending_widths().map(column).collect();
}

fn reason(name: &str) -> Reason {
    Reason { name: name.to_owned(), help: String::new() }
}

fn stage(name: &str) -> Stage {
    Stage { name: name.to_owned(), span: Span::default() }
}

fn counter(name: &str, size: u32) -> Counter {
    Counter { name: name.to_owned(), size, indexed: size > 1 }
}

/// A width of a value; those of fields of headers are frequent.
pub(super) fn width(random: &mut SuiteRandom) -> u8 {
    match random.below(3) {
        0 => random.between(1, 128) as u8,
        _ => *random.pick(&[1, 2, 8, 16, 16, 24, 32, 32, 48, 63, 64, 65, 127, 128]),
    }
}

fn column(random: &mut SuiteRandom) -> Column {
    Column { name: String::new(), kind: ColumnKind::Uint, width: width(random) }
}

fn columns(random: &mut SuiteRandom, least: u64, most: u64) -> Vec<Column> {
    (0..random.between(least, most)).map(|_| column(random)).collect()
}

fn numbers(random: &mut SuiteRandom, columns: &[Column]) -> Vec<u128> {
    columns.iter().map(|column| random.value(column.width)).collect()
}

fn meter(random: &mut SuiteRandom, number: u32) -> Meter {
    let committed = random.between(1, 5_000);
    let burst = random.between(1, 2_000);
    let rates = if random.one_in(2) {
        Rates::Single { committed, burst, excess: random.below(2_000) }
    } else {
        let (peak, peak_burst) = (committed + random.below(5_000), random.between(1, 2_000));
        Rates::Two { committed, burst, peak, peak_burst }
    };
    Meter {
        name: format!("m{number}"),
        size: 1 + 3 * number,
        packets: random.one_in(2),
        period: [1, 60][number as usize % 2],
        rates,
    }
}

fn register(random: &mut SuiteRandom, number: u32) -> Register {
    let column = Column { width: random.between(1, 64) as u8, ..column(random) };
    Register { name: format!("x{number}"), size: 1 + 4 * number, column }
}

fn pool(random: &mut SuiteRandom, number: u32) -> Pool {
    let columns = columns(random, 1, 3);
    let range = |column: &Column| {
        let top = u128::MAX >> (128 - u32::from(column.width));
        let low = random.value(column.width).min(top.saturating_sub(1));
        (low, low.saturating_add(random.below(5).into()).min(top))
    };
    let ranges = columns.iter().map(range).collect();
    Pool { name: format!("q{number}"), columns, ranges }
}

/// The first is one of ports for multicast.
fn group(random: &mut SuiteRandom, number: u32) -> Group {
    let multicast = number == 0;
    let columns = if multicast {
        vec![Column { name: String::new(), kind: ColumnKind::Port, width: 16 }]
    } else {
        columns(random, 1, 3)
    };
    let size = random.between(1, 3) as u32;
    let members: Vec<_> = (0..random.below(4))
        .map(|place| {
            let member = if multicast { vec![u128::from(place) + 1] } else { numbers(random, &columns) };
            (random.below(size.into()) as u32, member, random.between(1, 3) as u32)
        })
        .collect();
    let (capacity, buckets) = (random.between(4, 8) as u32, 16 << random.below(3));
    Group { name: format!("u{number}"), size, buckets, capacity, multicast, columns, members, file: None }
}

fn event(random: &mut SuiteRandom, number: u32) -> Event {
    Event { name: format!("e{number}"), params: columns(random, 0, 4), handler: number + 1 }
}

fn template(random: &mut SuiteRandom) -> Template {
    let length = random.between(1, 60);
    let bytes: Vec<u8> = (0..length).map(|_| random.number() as u8).collect();
    let (mut holes, mut bit) = (Vec::new(), random.below(9) as u32);
    while !random.one_in(4) {
        let width = width(random);
        if u64::from(bit) + u64::from(width) > length * 8 {
            break;
        }
        holes.push(Hole { bit, width });
        bit += u32::from(width) + random.below(20) as u32;
    }
    let mut sums = Vec::new();
    while length > 1 && random.one_in(2) {
        let from = random.below(length) as u32;
        sums.push(Sum {
            at: random.below(length - 1) as u32,
            from,
            end: random.one_in(2).then(|| random.between(from.into(), length) as u32),
            besides: (0..random.below(2))
                .map(|_| {
                    let first = random.below(length);
                    (first as u32, random.between(0, length - first) as u32)
                })
                .collect(),
            plus: random.below(1 << 17) as u32,
            length: random.one_in(2),
            never_zero: random.one_in(2),
        });
    }
    Template { bytes, holes, sums }
}

/// Two exact tables, of which the second holds items of the first pool; then one of prefixes, one of rules,
/// and those of patterns with each answer.
fn tables(random: &mut SuiteRandom, pools: &[Pool]) -> Vec<Table> {
    use TableKind::{Exact, Lpm, Patterns, Rules};
    let by_priority = random.one_in(2);
    let kinds = [
        Exact,
        Exact,
        Lpm,
        Rules { by_priority },
        Patterns(Answer::First),
        Patterns(Answer::All),
        Patterns(Answer::Set),
        Exact,
    ];
    let mut tables = Vec::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let releases = (number == 1).then_some(0);
        let searched = matches!(kind, Patterns(_));
        let time = |random: &mut SuiteRandom| random.one_in(2).then(|| random.between(1, 50) * 1_000_000);
        let counted = kind != Exact && random.one_in(2);
        let mut table = Table {
            name: format!("t{number}"),
            kind,
            keys: if searched { Vec::new() } else { columns(random, 1, 3) },
            values: match releases {
                Some(_) => pools[0].columns.clone(),
                None => columns(random, 0, 3),
            },
            capacity: random.between(6, 12) as u32,
            idle: time(random).filter(|_| kind == Exact),
            age: time(random).filter(|_| !searched),
            lifetimes: false,
            evict: if releases.is_some() || random.one_in(2) { Eviction::Refuse } else { Eviction::Lru },
            counted,
            times: counted && random.one_in(2),
            secret: random.one_in(4),
            releases,
            expires: None,
            entries: Vec::new(),
            file: None,
            default: None,
            span: Span::default(),
        };
        if kind == Exact && table.idle.is_none() {
            table.age = Some(table.age.unwrap_or(20_000_000));
        }
        table.lifetimes = kind == Exact && table.age.is_some() && random.one_in(2);
        if kind == Lpm {
            table.keys =
                vec![Column { width: random.between(1, 60) as u8, ..column(random) }, table.keys[0].clone()];
            table.keys[1].width = table.keys[1].width.min(128 - table.keys[0].width);
        }
        if kind == Patterns(Answer::Set) {
            table.values = vec![Column { width: random.between(1, 7) as u8, ..column(random) }];
        }
        if releases.is_none() {
            table.entries = (0..random.below(6)).map(|_| entry(random, &table)).collect();
            table.entries.sort();
            table.entries.dedup_by(|one, other| one.key == other.key);
        }
        if !searched && random.one_in(3) {
            table.default = Some(numbers(random, &table.values));
        }
        tables.push(table);
    }
    tables
}

fn entry(random: &mut SuiteRandom, table: &Table) -> Entry {
    let last = table.keys.len().saturating_sub(1);
    let mut key: Vec<Match> = (table.keys.iter().enumerate())
        .map(|(place, column)| matched(random, table.kind, column.width, place == last))
        .collect();
    if matches!(table.kind, TableKind::Patterns(_)) {
        let bytes = (0..random.between(1, 3)).map(|_| byte(random)).collect();
        let (offset, depth) =
            (random.below(5) as u32, random.one_in(3).then(|| random.between(3, 40) as u32));
        key = vec![Match::Bytes(Box::new(BytePattern { bytes, nocase: random.one_in(3), offset, depth }))];
    }
    let by_priority = table.kind == (TableKind::Rules { by_priority: true });
    let priority = if by_priority { random.below(4) as u32 } else { 0 };
    Entry { key, value: numbers(random, &table.values), priority }
}

/// A match of a key's column that goes with tables of this kind.
pub(super) fn matched(random: &mut SuiteRandom, kind: TableKind, width: u8, last: bool) -> Match {
    let value = random.value(width);
    let prefix = |random: &mut SuiteRandom| {
        let length = random.between(0, width.into()) as u8;
        Match::Prefix { value: value & prefix_mask(width, length), length }
    };
    match (kind, random.below(5)) {
        (TableKind::Lpm, choice) if last => match choice {
            0 => Match::Any,
            1 => Match::Exact(value),
            _ => prefix(random),
        },
        (TableKind::Rules { .. }, 0) => Match::Any,
        (TableKind::Rules { .. }, 1) => prefix(random),
        (TableKind::Rules { .. }, 2) => {
            let mask = random.value(width);
            Match::Masked { value: value & mask, mask }
        }
        (TableKind::Rules { .. }, 3) => {
            let other = random.value(width);
            Match::Range { low: value.min(other), high: value.max(other) }
        }
        _ => Match::Exact(value),
    }
}

/// A byte as packets and patterns have it: few different ones, so that they meet.
pub(super) fn byte(random: &mut SuiteRandom) -> u8 {
    match random.below(4) {
        0 => random.number() as u8,
        _ => *random.pick(&[0, 1, 2, 4, b'A', b'a', 0x45, 0xff]),
    }
}
