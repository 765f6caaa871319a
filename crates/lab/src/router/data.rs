//! Routes, rules, next hops and patterns as entries of programs' tables, whatever program declares them.

use crate::plan::TablesPlan;
use crate::tables::{lpm, patterns, rules};
use ir::{BytePattern, Column, ColumnKind, Entry, Match, Program, Table};
use tables::generate::Version;
use tables::generate::routes::{GeneratedRoutes, RoutesSpec};
use tables::generate::rules::Flavour;
use tables::patterns::SearchPattern;
use tables::rules::{Rule, RuleField};

/// Ports of routers.
pub(crate) const PORTS: u16 = 4;
/// Next hops of a router, all of them in its table.
const NEXT_HOPS: u32 = 64;
/// The largest IP packet of every next hop, in bytes.
const MTU: u128 = 1500;
/// The seed of what is made.
const SEED: u64 = 1;

/// A set of rules and headers made for it.
pub(crate) struct Classifier {
    /// How many rules and whose, as a part of a case.
    pub(crate) name: String,
    /// Headers, five words each: addresses, ports, protocol.
    pub(crate) trace: Vec<u64>,
    rules: Vec<Rule>,
}

/// All data but rules.
pub(crate) struct Data {
    /// How many routes and whose, as a part of a case.
    pub(crate) name: String,
    /// The routes.
    pub(crate) routes: GeneratedRoutes,
    /// What is searched in payload.
    pub(crate) patterns: Vec<SearchPattern>,
}

impl Data {
    /// Reads or makes routes, and makes patterns.
    pub(crate) fn new(plan: &TablesPlan, quick: bool) -> Result<Data, String> {
        let (whose, routes) = match plan.routes.first() {
            Some(path) => (crate::tables::stem(path), lpm::read(path)?),
            None => {
                let count = if quick { 2000 } else { 900_000 };
                let spec = RoutesSpec { version: Version::V4, count, next_hops: NEXT_HOPS, seed: SEED };
                ("generated".to_owned(), GeneratedRoutes::new(&spec))
            }
        };
        if routes.version != Version::V4 {
            return Err(format!("{whose} holds routes of IPv6; name a file of IPv4 routes first"));
        }
        let name = format!("{} routes ({whose})", routes.routes.len());
        Ok(Data { name, routes, patterns: patterns::made(if quick { 300 } else { 4000 }) })
    }

    /// Puts the data into the tables of a program that are called as in `router`: `routes`, `next_hops`,
    /// `behind`, `interfaces`, `acl`, `signatures`. All rules permit, and so does a last one that fits
    /// everything, so that every packet goes all the way.
    pub(crate) fn fill(&self, program: &mut Program, classifier: &Classifier) -> Result<(), String> {
        for table in &mut program.tables {
            let entries = match table.name.as_str() {
                "routes" => self.routes_for(table),
                "next_hops" => next_hops(),
                "behind" => behind(),
                "interfaces" => interfaces(),
                "acl" => classifier.entries(table)?,
                "signatures" => self.signatures(table),
                _ => continue,
            };
            table.capacity = table.capacity.max(u32::try_from(entries.len()).unwrap_or(u32::MAX));
            table.entries = entries;
        }
        Ok(())
    }

    fn routes_for(&self, table: &Table) -> Vec<Entry> {
        let ports = matches!(table.values.first(), Some(Column { kind: ColumnKind::Port, .. }));
        let value = |hop: u32| if ports { port(hop % NEXT_HOPS) } else { u128::from(1 + hop % NEXT_HOPS) };
        let routes = self.routes.routes.iter();
        let entry = |key, hop| Entry { key: vec![key], value: vec![value(hop)], priority: 0 };
        let mut entries: Vec<Entry> =
            routes.map(|route| entry(prefix(route.bits, route.length), route.next_hop)).collect();
        // Where sources are checked, those that no route holds come from the rest of the world.
        if !ports && entries.iter().all(|entry| entry.key[0] != Match::Any) {
            entries.push(entry(Match::Any, 0));
        }
        entries
    }

    fn signatures(&self, table: &Table) -> Vec<Entry> {
        let width = table.values.first().map_or(0, |column| u32::from(column.width.min(32)));
        let entry = |(number, pattern): (u64, &SearchPattern)| {
            let (bytes, nocase) = (pattern.bytes.clone(), pattern.nocase);
            let bytes = BytePattern { bytes, nocase, offset: pattern.offset, depth: pattern.depth };
            let value = table.values.iter().map(|_| u128::from(number & ((1 << width) - 1))).collect();
            Entry { key: vec![Match::Bytes(Box::new(bytes))], value, priority: 0 }
        };
        (0..).zip(&self.patterns).map(entry).collect()
    }
}

impl Classifier {
    /// The sets of rules that are measured, from small to large where they are made.
    pub(crate) fn all(plan: &TablesPlan, quick: bool) -> Result<Vec<Classifier>, String> {
        let sets = if plan.rules.is_empty() {
            let sizes: &[usize] = if quick { &[200] } else { &[100, 1000, 10_000] };
            sizes.iter().map(|size| rules::made("acl", Flavour::AccessList, *size)).collect()
        } else {
            let files = rules::found(&plan.rules)?;
            files.iter().map(|path| rules::read(path)).collect::<Result<Vec<_>, _>>()?
        };
        let named = |set: rules::Set| {
            let name = format!("{} rules ({})", set.rules.len(), set.name);
            Classifier { name, trace: set.trace, rules: set.rules }
        };
        Ok(sets.into_iter().map(named).collect())
    }

    /// How many rules there are.
    pub(crate) fn len(&self) -> usize {
        self.rules.len()
    }

    fn entries(&self, table: &Table) -> Result<Vec<Entry>, String> {
        let Some(Column { kind: ColumnKind::Names(names), .. }) = table.values.first() else {
            return Err(format!("the rules of {} decide nothing", table.name));
        };
        let permit = names.iter().find(|(_, name)| name == "permit");
        let permit = permit.ok_or_else(|| format!("the rules of {} permit nothing", table.name))?.0;
        let mut value = vec![0; table.values.len()];
        value[0] = permit;
        let entry = |key| Entry { key, value: value.clone(), priority: 0 };
        let keys = |rule: &Rule| {
            rule.fields.iter().zip(&table.keys).map(|(field, column)| part(field, column.width)).collect()
        };
        let mut entries: Vec<Entry> = self.rules.iter().map(|rule| entry(keys(rule))).collect();
        entries.push(entry(vec![Match::Any; table.keys.len()]));
        Ok(entries)
    }
}

/// The port of a next hop.
fn port(hop: u32) -> u128 {
    u128::from(1 + hop % u32::from(PORTS))
}

fn prefix(bits: u128, length: u8) -> Match {
    match length {
        0 => Match::Any,
        32 => Match::Exact(bits),
        length => Match::Prefix { value: bits, length },
    }
}

/// What a field of a rule asks of a column of an entry.
pub(crate) fn part(field: &RuleField, width: u8) -> Match {
    match *field {
        RuleField::Any | RuleField::Prefix { length: 0, .. } => Match::Any,
        RuleField::Exact(number) => Match::Exact(number),
        RuleField::Prefix { value, length } if length == width => Match::Exact(value),
        RuleField::Prefix { value, length } => Match::Prefix { value, length },
        RuleField::Ternary { value, mask } => Match::Masked { value, mask },
        RuleField::Range { low, high } => Match::Range { low, high },
    }
}

/// Port, the neighbour's address, the own one, the MTU.
fn next_hops() -> Vec<Entry> {
    let entry = |hop: u32| {
        let (neighbour, own) = (0x0200_0000_0100 + u128::from(hop), 0x0200_0000_0000 + port(hop));
        Entry::exact(&[u128::from(1 + hop)], &[port(hop), neighbour, own, MTU])
    };
    (0..NEXT_HOPS).map(entry).collect()
}

/// Every way leads back by the port that all packets enter by.
fn behind() -> Vec<Entry> {
    (1..=u128::from(NEXT_HOPS)).map(|hop| Entry::exact(&[hop], &[1])).collect()
}

/// The addresses of each port.
fn interfaces() -> Vec<Entry> {
    let entry = |port: u16| {
        let port = u128::from(port);
        Entry::exact(&[port], &[0x0200_0000_0000 + port, 0xc000_0200 + port, (0x2001_0db8 << 96) + port])
    };
    (1..=PORTS).map(entry).collect()
}
