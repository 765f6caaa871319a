//! `ravelin generate routes|addresses|rules|trace|patterns|payload`: the same bytes for the same options.

use crate::arguments::generate::{GenerateKind, PatternShape, RouteTable, RuleShape, TrafficChoice};
use crate::failure::Failure;
use import::address::{self, AddressFamily};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use tables::generate::payload::{Literals, PatternsSpec, Payload, PayloadSpec};
use tables::generate::routes::{GeneratedRoutes, RoutesSpec};
use tables::generate::rules::{GeneratedRules, RuleSetSpec};
use tables::generate::trace::{GeneratedTrace, TraceSpec};
use tables::generate::{Version, addresses};

/// Runs the command.
pub(super) fn run(kind: &GenerateKind, json: bool) -> Result<(), Failure> {
    if json {
        return Err(Failure::Usage("only captures are told about with --json; leave it out".into()));
    }
    match kind {
        GenerateKind::Routes { table, shared } => {
            text(&shared.output, |out| routes(table, shared.seed).write(out))
        }
        GenerateKind::Addresses { table, traffic, addresses, shared } => {
            let (count, seed) = (*addresses as usize, shared.seed);
            let routes = routes(table, seed);
            let found = match traffic {
                TrafficChoice::Uniform => addresses::uniform(version(table.family), count, seed),
                TrafficChoice::Prefixes => addresses::inside(&routes, count, seed),
                TrafficChoice::Zipf => addresses::zipf(&routes, DESTINATIONS, count, seed),
            };
            text(&shared.output, |out| {
                found.iter().try_for_each(|found| writeln!(out, "{}", address::print(table.family, *found)))
            })
        }
        GenerateKind::Rules { rules: shape, shared } => {
            text(&shared.output, |out| rules(shape, shared.seed).write(out))
        }
        GenerateKind::Trace { rules: shape, headers, repeats, random, shared } => {
            let rules = rules(shape, shared.seed);
            let (count, repeats, random) = (*headers as usize, *repeats, *random);
            let trace = GeneratedTrace::new(&rules, &TraceSpec { count, repeats, random, seed: shared.seed });
            text(&shared.output, |out| trace.write(&rules, out))
        }
        GenerateKind::Patterns { patterns, shared } => {
            text(&shared.output, |out| literals(patterns, shared.seed).write(out))
        }
        GenerateKind::Payload { patterns, bytes, planted, opaque, shared } => {
            let (length, planted, opaque) = (*bytes as usize, *planted, *opaque);
            let spec = PayloadSpec { length, planted, opaque, seed: shared.seed };
            write(&shared.output, &Payload::new(&literals(patterns, shared.seed), &spec).bytes)
        }
    }
}

/// Among so many destinations the traffic of Zipf's law is spread.
const DESTINATIONS: u32 = 100_000;

fn version(family: AddressFamily) -> Version {
    match family {
        AddressFamily::V4 => Version::V4,
        AddressFamily::V6 => Version::V6,
    }
}

fn routes(table: &RouteTable, seed: u64) -> GeneratedRoutes {
    let (version, count, next_hops) = (version(table.family), table.count as usize, table.next_hops);
    GeneratedRoutes::new(&RoutesSpec { version, count, next_hops, seed })
}

fn rules(shape: &RuleShape, seed: u64) -> GeneratedRules {
    GeneratedRules::new(&RuleSetSpec { flavour: shape.flavour, count: shape.count as usize, seed })
}

fn literals(shape: &PatternShape, seed: u64) -> Literals {
    Literals::new(&PatternsSpec { count: shape.count as usize, nocase: shape.nocase, seed })
}

fn text(output: &str, make: impl FnOnce(&mut String) -> fmt::Result) -> Result<(), Failure> {
    let mut text = String::new();
    // A string takes all that is written.
    make(&mut text).map_err(|_| Failure::Finding("the text could not be made".into()))?;
    write(output, text.as_bytes())
}

fn write(output: &str, bytes: &[u8]) -> Result<(), Failure> {
    if output == "-" {
        return Ok(io::stdout().lock().write_all(bytes)?);
    }
    let cannot = |error| Failure::Usage(format!("cannot write {output}: {error}"));
    File::create(output).and_then(|mut file| file.write_all(bytes)).map_err(cannot)
}
