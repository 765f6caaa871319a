//! Longest prefixes: full Internet tables of IPv4 and IPv6.

use super::bench::{Bench, Built, SEED, contents, cost, held, stem};
use super::contest::{Entry, InProcess, NONE, Way};
use super::peer::{Library, Peer};
use crate::experiment::{Better, Figure, Row};
use cpu_time::ThreadTime;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use tables::generate::routes::{GeneratedRoutes, Route, RoutesSpec};
use tables::generate::{Random, Version, addresses};
use tables::lpm::{Lpm, LpmModel, LpmSpec, LpmTable, Prefix, Variant};

/// Routes of the tables that are made.
const COUNTS: [(Version, usize); 2] = [(Version::V4, 900_000), (Version::V6, 160_000)];
/// Queries of one pass, and destinations of Zipf traffic.
const QUERIES: usize = 1 << 20;
/// So many queries the twin answers.
const JUDGED: usize = 50_000;

/// The libraries of one family that run.
type Peers = Vec<(Library, Rc<RefCell<Peer>>)>;

/// The rows of all tables.
pub(super) fn rows(
    bench: &mut Bench,
    files: &[PathBuf],
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    if files.is_empty() {
        for (version, count) in COUNTS {
            let count = if bench.quick { count / 100 } else { count };
            let routes = GeneratedRoutes::new(&RoutesSpec { version, count, next_hops: 64, seed: SEED });
            rows.extend(one(bench, "generated", &routes, progress)?);
        }
    }
    for path in files {
        rows.extend(one(bench, &stem(path), &read(path)?, progress)?);
    }
    Ok(rows)
}

fn one(
    bench: &mut Bench,
    name: &str,
    routes: &GeneratedRoutes,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, String> {
    let v4 = routes.version == Version::V4;
    let case = format!("{} of {} prefixes ({name})", if v4 { "IPv4" } else { "IPv6" }, routes.routes.len());
    progress(&format!("{case}: build"));
    let list: Vec<(Prefix, u32)> = routes.routes.iter().map(entry).collect();
    let spec = LpmSpec { width: routes.version.width(), capacity: list.len() + list.len() / 4 + 1024 };
    let build = |variant| LpmTable::build(spec, variant, list.clone()).map_err(|error| error.to_string());
    let Built { what: mut table, seconds } = bench.build(|| build(Variant::Fast))?;
    // Only tables of 32 bits have a variant.
    let compact = if v4 { Some(bench.build(|| build(Variant::Compact))?) } else { None };
    let mut model = LpmModel::new(spec).map_err(|error| error.to_string())?;
    for (prefix, value) in &list {
        model.insert(*prefix, *value).map_err(|error| error.to_string())?;
    }
    progress(&format!("{case}: build of others"));
    let data: Vec<u8> =
        routes.routes.iter().flat_map(|route| record(routes.version, route, route.next_hop)).collect();
    let data = bench.workshop.write("routes", &data)?;
    let mut peers: Peers = Vec::new();
    for library in if v4 { &[Library::Fib, Library::Lpm][..] } else { &[Library::Fib6] } {
        peers.extend(bench.peer(*library, &data, &[])?.map(|peer| (*library, peer)));
    }

    let mut rows = Vec::new();
    let count = if bench.quick { QUERIES / 64 } else { QUERIES };
    let mut traffics = vec![
        ("in routes", addresses::inside(routes, count, SEED + 1)),
        ("Zipf", addresses::zipf(routes, count as u32, count, SEED + 2)),
    ];
    if v4 {
        // Of all IPv6 addresses next to none has a route.
        traffics.insert(0, ("uniform", addresses::uniform(routes.version, count, SEED + 3)));
    }
    for (traffic, queries) in &traffics {
        let case = format!("{case}, {traffic}");
        progress(&case);
        let judged = queries.iter().take(JUDGED);
        let right: Vec<u32> = judged.map(|address| model.find(*address).unwrap_or(NONE)).collect();
        let data: Vec<u8> = queries.iter().flat_map(|address| query(routes.version, *address)).collect();
        let path = bench.workshop.write("queries", &data)?;
        let short: Vec<u32> =
            if v4 { queries.iter().map(|address| *address as u32).collect() } else { Vec::new() };
        let mut entries = Vec::new();
        entries.extend(if v4 { ours32(&table, "", &short) } else { ours128(&table, queries) });
        if let Some(compact) = &compact {
            entries.extend(ours32(&compact.what, " compact", &short));
        }
        for (_, peer) in &peers {
            bench.enter(peer, &path, &mut entries)?;
        }
        let goals = [("", if v4 { 1.1 } else { 1.2 })];
        let contest = bench.contest(&case, queries.len() as f64 / 1e6, "M/s", &right, &goals);
        rows.extend(contest.rows(&mut entries));
    }
    let held_against: Vec<_> = peers.iter().map(|(library, peer)| (*library, peer)).collect();
    rows.extend(cost(&case, seconds, table.image_bytes() as u64, &held_against));
    if let Some(compact) = &compact {
        let bytes = compact.what.image_bytes() as u64;
        rows.extend(cost(&format!("{case} compact"), compact.seconds.clone(), bytes, &[]));
    }
    progress(&format!("{case}: changes"));
    rows.extend(changes(bench, &case, routes, &mut table, &peers)?);
    Ok(rows)
}

fn ours32<'a>(table: &'a LpmTable, suffix: &str, queries: &'a [u32]) -> Vec<Entry<'a>> {
    let bulk = InProcess::new(&format!("bulk{suffix}"), queries, 1, |keys, answers| {
        table.find_bulk32(keys, answers)
    });
    let single = InProcess::new(&format!("single{suffix}"), queries, 1, |keys, answers| {
        for (key, answer) in keys.iter().zip(answers) {
            *answer = table.find32(*key);
        }
    });
    vec![Entry::ours(Way::Bulk, bulk), Entry::ours(Way::Single, single)]
}

fn ours128<'a>(table: &'a LpmTable, queries: &'a [u128]) -> Vec<Entry<'a>> {
    let bulk = InProcess::new("bulk", queries, 1, |keys, answers| table.find_bulk128(keys, answers));
    let single = InProcess::new("single", queries, 1, |keys, answers| {
        for (key, answer) in keys.iter().zip(answers) {
            *answer = table.find128(*key);
        }
    });
    vec![Entry::ours(Way::Bulk, bulk), Entry::ours(Way::Single, single)]
}

/// The rows of routes that are withdrawn and announced again.
fn changes(
    bench: &Bench,
    case: &str,
    routes: &GeneratedRoutes,
    table: &mut LpmTable,
    peers: &Peers,
) -> Result<Vec<Row>, String> {
    let mut random = Random::new(SEED);
    let chosen: Vec<Route> = (0..20_000).filter_map(|_| random.pick(&routes.routes).copied()).collect();
    let mut rates = Vec::new();
    for _ in 0..bench.runs {
        let start = ThreadTime::now();
        for route in &chosen {
            let (prefix, value) = entry(route);
            table.remove(prefix);
            table.insert(prefix, value).map_err(|error| error.to_string())?;
        }
        rates.push(chosen.len() as f64 * 2.0 / start.elapsed().as_secs_f64() / 1e3);
    }
    let mut others = Vec::new();
    for (library, peer) in peers {
        // rte_lpm looks through all routes of a length for each change.
        let some = if *library == Library::Lpm { chosen.len() / 100 } else { chosen.len() };
        let record = |route: &Route| {
            let withdrawn = record(routes.version, route, NONE);
            withdrawn.into_iter().chain(record(routes.version, route, route.next_hop))
        };
        let changes: Vec<u8> = chosen[..some].iter().flat_map(record).collect();
        let path = bench.workshop.write("changes", &changes)?;
        let (count, seconds) = peer.borrow_mut().update(&path)?;
        others.push((library.name().to_owned(), count as f64 / seconds / 1e3));
    }
    let figure = Figure::of(rates).ok_or("nothing was changed")?;
    Ok(held(&format!("{case}, changes"), "withdraw, announce", "k/s", figure, &others, Better::More))
}

fn entry(route: &Route) -> (Prefix, u32) {
    (Prefix { bits: route.bits, length: route.length }, route.next_hop)
}

/// A route as other libraries' programs read it.
fn record(version: Version, route: &Route, hop: u32) -> Vec<u8> {
    let mut record = query(version, route.bits);
    record.extend(u32::from(route.length).to_le_bytes());
    record.extend(hop.to_le_bytes());
    record
}

/// An address as other libraries' programs read it: a number of IPv4, or 16 bytes in the order of the wire.
fn query(version: Version, address: u128) -> Vec<u8> {
    match version {
        Version::V4 => (address as u32).to_le_bytes().to_vec(),
        Version::V6 => address.to_be_bytes().to_vec(),
    }
}

/// The routes of a file.
pub(crate) fn read(path: &Path) -> Result<GeneratedRoutes, String> {
    let at = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let read = import::routes::read(&contents(path)?).map_err(|error| at(&error))?;
    let version = match read.family {
        import::address::AddressFamily::V4 => Version::V4,
        import::address::AddressFamily::V6 => Version::V6,
    };
    // rte_fib with next hops of 2 bytes has 15 bits of them.
    if read.next_hops.len() >= 0x7fff {
        return Err(at(&"more than 32,766 different next hops"));
    }
    let route = |(prefix, next_hop): &(Prefix, u32)| Route {
        bits: prefix.bits,
        length: prefix.length,
        next_hop: *next_hop,
    };
    let routes: Vec<Route> = read.entries.iter().map(route).collect();
    if routes.is_empty() {
        return Err(at(&"no routes"));
    }
    Ok(GeneratedRoutes { version, routes })
}
