//! `ravelin table lpm`: routes, and the longest prefixes that contain the addresses asked for.

use super::figures::Figures;
use super::files::{import_failure, output, read_both};
use crate::arguments::table::{LpmArguments, RouteFormat};
use crate::failure::Failure;
use import::address::{self, AddressFamily};
use import::routes::{self, ImportedRoutes};
use import::{cisco, mrt};
use std::hint::black_box;
use std::io::Write;
use tables::lpm::{Lpm, LpmModel, LpmSpec, LpmTable, NONE, Variant};

/// An address that is asked for, as it was written and as a number.
type Query<'a> = (&'a str, u128);

/// Runs the command.
pub(super) fn run(arguments: &LpmArguments) -> Result<(), Failure> {
    let (file, lookup) = read_both(&arguments.lookup)?;
    let mut figures = Figures::new(&arguments.lookup);
    let routes = figures
        .time("read", || load(&file, arguments))
        .map_err(|error| import_failure(&arguments.lookup.file, &error))?;
    figures.note("prefixes", routes.entries.len());
    let queries = queries(&lookup, routes.family, &arguments.lookup.lookup)?;
    let width = routes.family.width();
    let spec = LpmSpec { width, capacity: routes.entries.len() };
    let full =
        |error: &dyn std::fmt::Display| Failure::Finding(format!("{}: {error}", arguments.lookup.file));
    if arguments.linear {
        let mut model = LpmModel::new(spec).map_err(|error| full(&error))?;
        figures
            .time("build", || {
                routes.entries.iter().try_for_each(|(prefix, hop)| model.insert(*prefix, *hop).map(drop))
            })
            .map_err(|error| full(&error))?;
        figures.rate("in an ordered map", queries.len(), || {
            for (_, address) in &queries {
                black_box(model.find(*address));
            }
        });
        answer(&routes, &queries, None, &model)?;
    } else {
        let variant = if arguments.compact { Variant::Compact } else { Variant::Fast };
        let entries = routes.entries.clone();
        let table = figures
            .time("build", || LpmTable::build(spec, variant, entries))
            .map_err(|error| full(&error))?;
        figures.note_bytes(table.image_bytes());
        let bulk = arguments.bulk.then(|| bulk(&table, &queries, width, &mut figures));
        if bulk.is_none() {
            single(&table, &queries, width, &mut figures);
        }
        answer(&routes, &queries, bulk.as_deref(), &table)?;
    }
    figures.tell();
    Ok(())
}

fn load(file: &[u8], arguments: &LpmArguments) -> Result<ImportedRoutes, import::ImportError> {
    match arguments.format.unwrap_or_else(|| recognise(file)) {
        RouteFormat::Text => routes::read(file),
        RouteFormat::Cef => cisco::forwarding_table(file),
        RouteFormat::Mrt => mrt::read(file).map(|dump| match arguments.family {
            AddressFamily::V4 => dump.v4,
            AddressFamily::V6 => dump.v6,
        }),
    }
}

fn recognise(file: &[u8]) -> RouteFormat {
    if file.starts_with(b"Prefix ") {
        RouteFormat::Cef
    } else if file.get(4..6) == Some(&[0, 13]) {
        // The type of the first record, after its time; no text holds a zero.
        RouteFormat::Mrt
    } else {
        RouteFormat::Text
    }
}

fn queries<'a>(lookup: &'a [u8], family: AddressFamily, path: &str) -> Result<Vec<Query<'a>>, Failure> {
    let text = std::str::from_utf8(lookup)
        .map_err(|_| Failure::Finding(format!("{path}: the queries are no text in UTF-8")))?;
    let mut queries = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(word) = line.split_ascii_whitespace().next().filter(|word| !word.starts_with('#')) else {
            continue;
        };
        match address::parse(word.as_bytes()) {
            Some((own, address)) if own == family => queries.push((word, address)),
            _ => {
                let family = family.name();
                return Err(Failure::Finding(format!(
                    "{path}: line {number}, column 1: `{}` is no {family} address; the routes are {family}, so ask for such addresses",
                    word.escape_debug()
                )));
            }
        }
    }
    Ok(queries)
}

fn single(table: &LpmTable, queries: &[Query<'_>], width: u8, figures: &mut Figures) {
    figures.rate("one at a time", queries.len(), || {
        for (_, address) in queries {
            // An IPv4 address has no more bits.
            let found = if width == 32 { table.find32(*address as u32) } else { table.find128(*address) };
            black_box(found);
        }
    });
}

/// The next hops of all queries, looked up together.
fn bulk(table: &LpmTable, queries: &[Query<'_>], width: u8, figures: &mut Figures) -> Vec<u32> {
    let mut hops = vec![NONE; queries.len()];
    if width == 32 {
        let addresses: Vec<u32> = queries.iter().map(|(_, address)| *address as u32).collect();
        figures.rate("in bulk", queries.len(), || table.find_bulk32(&addresses, black_box(&mut hops)));
        table.find_bulk32(&addresses, &mut hops);
    } else {
        let addresses: Vec<u128> = queries.iter().map(|(_, address)| *address).collect();
        figures.rate("in bulk", queries.len(), || table.find_bulk128(&addresses, black_box(&mut hops)));
        table.find_bulk128(&addresses, &mut hops);
    }
    hops
}

/// A line each: the address, its next hop and the prefix, or `-`. Next hops that were looked up in bulk are
/// what is printed, and must be those of the prefixes.
fn answer(
    routes: &ImportedRoutes,
    queries: &[Query<'_>],
    bulk: Option<&[u32]>,
    table: &impl Lpm,
) -> Result<(), Failure> {
    let mut output = output();
    for (index, (text, address)) in queries.iter().enumerate() {
        let found = table.find_entry(*address);
        let hop = match bulk {
            Some(hops) => Some(hops[index]).filter(|hop| *hop != NONE),
            None => table.find(*address),
        };
        match (found, hop) {
            (Some((prefix, value)), Some(hop)) if value == hop => {
                let prefix = address::print_prefix(routes.family, prefix.bits, prefix.length);
                writeln!(output, "{text} {} {prefix}", routes.next_hops[hop as usize])?;
            }
            (None, None) => writeln!(output, "{text} -")?,
            (found, hop) => {
                let what = "the table contradicts itself; please report this with both files";
                return Err(Failure::Finding(format!("{text}: {what} ({found:?} and {hop:?})")));
            }
        }
    }
    output.flush()?;
    Ok(())
}
