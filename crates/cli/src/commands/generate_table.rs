//! `ravelin generate routes|addresses|rules|trace|patterns|payload`: the same bytes for the same options.

use crate::arguments::generate::{
    FlavourChoice, GenerateKind, PatternShape, RouteTable, RuleShape, TrafficChoice,
};
use crate::arguments::table::FamilyChoice;
use crate::failure::Failure;
use import::address::{self, AddressFamily};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Write};
use tables::generate::payload::{Literals, PatternsSpec, Payload, PayloadSpec};
use tables::generate::routes::{GeneratedRoutes, RoutesSpec};
use tables::generate::rules::{Flavour, GeneratedRules, RuleSetSpec};
use tables::generate::trace::{GeneratedTrace, TraceSpec};
use tables::generate::{Version, addresses};

/// Runs the command.
pub(super) fn run(kind: &GenerateKind, json: bool) -> Result<(), Failure> {
    if json {
        return Err(Failure::Usage("only captures are told about with --json; leave it out".into()));
    }
    match kind {
        GenerateKind::Routes(arguments) => {
            let shared = &arguments.shared;
            text(&shared.output, |out| routes(&arguments.table, shared.seed).write(out))
        }
        GenerateKind::Addresses(arguments) => {
            let (shared, count) = (&arguments.shared, arguments.addresses as usize);
            let (family, version) = family(arguments.table.family);
            let routes = routes(&arguments.table, shared.seed);
            let found = match arguments.traffic {
                TrafficChoice::Uniform => addresses::uniform(version, count, shared.seed),
                TrafficChoice::Prefixes => addresses::inside(&routes, count, shared.seed),
                TrafficChoice::Zipf => addresses::zipf(&routes, DESTINATIONS, count, shared.seed),
            };
            text(&shared.output, |out| {
                found.iter().try_for_each(|found| writeln!(out, "{}", address::print(family, *found)))
            })
        }
        GenerateKind::Rules(arguments) => {
            let shared = &arguments.shared;
            text(&shared.output, |out| rules(&arguments.rules, shared.seed).write(out))
        }
        GenerateKind::Trace(arguments) => {
            let shared = &arguments.shared;
            let rules = rules(&arguments.rules, shared.seed);
            let (count, repeats, random) = (arguments.headers as usize, arguments.repeats, arguments.random);
            let trace = GeneratedTrace::new(&rules, &TraceSpec { count, repeats, random, seed: shared.seed });
            text(&shared.output, |out| trace.write(&rules, out))
        }
        GenerateKind::Patterns(arguments) => {
            let shared = &arguments.shared;
            text(&shared.output, |out| literals(&arguments.patterns, shared.seed).write(out))
        }
        GenerateKind::Payload(arguments) => {
            let (shared, length) = (&arguments.shared, arguments.bytes as usize);
            let (planted, opaque) = (arguments.planted, arguments.opaque);
            let spec = PayloadSpec { length, planted, opaque, seed: shared.seed };
            let payload = Payload::new(&literals(&arguments.patterns, shared.seed), &spec);
            write(&shared.output, &payload.bytes)
        }
    }
}

/// Among so many destinations the traffic of Zipf's law is spread.
const DESTINATIONS: u32 = 100_000;

fn family(choice: FamilyChoice) -> (AddressFamily, Version) {
    match choice {
        FamilyChoice::V4 => (AddressFamily::V4, Version::V4),
        FamilyChoice::V6 => (AddressFamily::V6, Version::V6),
    }
}

fn routes(table: &RouteTable, seed: u64) -> GeneratedRoutes {
    let (_, version) = family(table.family);
    GeneratedRoutes::new(&RoutesSpec {
        version,
        count: table.count as usize,
        next_hops: table.next_hops,
        seed,
    })
}

fn rules(shape: &RuleShape, seed: u64) -> GeneratedRules {
    let flavour = match shape.flavour {
        FlavourChoice::Acl => Flavour::AccessList,
        FlavourChoice::Firewall => Flavour::Firewall,
        FlavourChoice::Chains => Flavour::Chains,
    };
    GeneratedRules::new(&RuleSetSpec { flavour, count: shape.count as usize, seed })
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
