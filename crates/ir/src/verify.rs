//! The independent verifier: what every back end may rely on, checked on the IR alone.
//!
//! It trusts nothing that the compiler says: indexes, widths and single assignment are checked first
//! (`body`), then what depends on paths (`flow`: definitions before uses, captured bytes before accesses,
//! fuel in every cycle; `moving` for packets that change their size), then the rights (`manifest`). It is
//! written to be read in one sitting, takes time close to linear in the program, and does not recurse.

mod body;
mod fault;
mod flow;
mod manifest;
mod memory;
mod moving;
mod paths;

pub use self::fault::{Fault, FaultPlace, VerifyError};
pub use self::manifest::derive_manifest;

use super::*;
use crate::limits::{MOST_ARGUMENTS, MOST_HOLES, MOST_PORT_SETS, MOST_REASONS, MOST_SLOTS};
use std::collections::HashSet;

/// Checks that a program is well formed, reads and writes captured bytes only, ends, and does no more than
/// its manifest says.
///
/// # Errors
/// Every fault found. Faults that hide others stop the search: a function's paths are followed only if its
/// instructions are well formed.
pub fn verify(program: &Program) -> Result<(), Vec<VerifyError>> {
    let mut errors = Vec::new();
    check_declarations(program, &mut errors);
    for (index, function) in program.functions.iter().enumerate() {
        let before = errors.len();
        body::check(program, index, function, &mut errors);
        if errors.len() == before {
            flow::check(index, function, &mut errors);
        }
        if errors.len() == before {
            let frame = frame::frame(function);
            let place = FaultPlace { function: Some(index), ..FaultPlace::default() };
            let fault = Fault::LargeFrame(frame.bytes);
            errors.extend(frame.is_too_large().then_some(VerifyError { place, fault }));
        }
    }
    if errors.is_empty() {
        check_manifest(program, &mut errors);
    }
    if let Some(steering) = &program.steering {
        check_steering(steering, &mut errors);
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// What steers packets is a program without state, which steers nothing itself.
fn check_steering(steering: &Program, errors: &mut Vec<VerifyError>) {
    let impure = steering.functions.len() != 1 || steering::impure(steering).is_some();
    if steering.steering.is_some() || impure {
        errors.push(VerifyError { place: FaultPlace::default(), fault: Fault::Steering });
    } else if let Err(more) = verify(steering) {
        errors.extend(more);
    }
}

fn check_declarations(program: &Program, errors: &mut Vec<VerifyError>) {
    let mut report = |fault| errors.push(VerifyError { place: FaultPlace::default(), fault });
    if program.functions.is_empty() {
        report(Fault::NoPacketFunction);
    }
    if program.reasons.is_empty() {
        report(Fault::NoReasons);
    }
    let numbered = [
        ("reasons", program.reasons.len(), MOST_REASONS),
        ("sets of ports", program.port_sets.len(), MOST_PORT_SETS),
        ("fuel slots", program.slots as usize, MOST_SLOTS),
    ];
    for (what, count, most) in numbered {
        if count > most {
            report(Fault::TooMany(what, most));
        }
    }
    let mut names = HashSet::new();
    for reason in program.reasons.iter().filter(|reason| !names.insert(&reason.name)) {
        report(Fault::ReasonTwice(reason.name.clone()));
    }
    for (index, table) in program.tables.iter().enumerate() {
        check_table(index as u32, table, &mut report);
    }
    memory::check(program, &mut report);
    for (index, counter) in program.counters.iter().enumerate() {
        if counter.size == 0 {
            report(Fault::EmptyCounter(index as u32));
        }
    }
    for (index, template) in program.templates.iter().enumerate() {
        check_template(index as u32, template, &mut report);
    }
    let handler = |index: u32| program.functions.get(index as usize).filter(|_| index != 0);
    for (index, event) in program.events.iter().enumerate() {
        let widths: Vec<u8> = event.params.iter().map(|param| param.width).collect();
        if widths.len() > MOST_ARGUMENTS {
            report(Fault::TooManyArguments(index as u32));
        }
        match handler(event.handler) {
            None => report(Fault::NoSuchHandler(event.handler)),
            Some(function) if entry_widths(function) != widths => report(Fault::HandlerParams(index as u32)),
            Some(_) => {}
        }
    }
    for every in &program.every {
        if every.period == 0 {
            report(Fault::NoPeriod);
        }
        match handler(every.handler) {
            None => report(Fault::NoSuchHandler(every.handler)),
            Some(function) if !entry_widths(function).is_empty() => report(Fault::TimerParams(every.handler)),
            Some(_) => {}
        }
    }
}

fn check_table(index: u32, table: &Table, report: &mut impl FnMut(Fault)) {
    if table.keys.is_empty() != matches!(table.kind, TableKind::Patterns(_)) {
        report(Fault::NoKey(index));
    }
    let exact = table.kind == TableKind::Exact;
    let widths: u32 = table.keys.iter().map(|column| u32::from(column.width)).sum();
    if table.kind == TableKind::Lpm && widths > 128 {
        report(Fault::TooWide(index));
    }
    let searched = matches!(table.kind, TableKind::Patterns(_));
    if exact && table.counted
        || table.times && !table.counted
        || !exact && (table.idle.is_some() || table.releases.is_some())
        || !exact && table.kind != TableKind::Lpm && table.expires.is_some()
        || searched && (table.age.is_some() || table.default.is_some() || !memory::answer_fits(table))
    {
        report(Fault::KindProperty(index));
    }
    if table.keys.iter().chain(&table.values).any(|column| !(1..=128).contains(&column.width)) {
        report(Fault::ColumnWidth(index));
    }
    if table.capacity == 0 || table.entries.len() > table.capacity as usize {
        report(Fault::Capacity(index));
    }
    for (place, entry) in table.entries.iter().enumerate() {
        if !table.kind.takes(&table.keys, &entry.key) || !table.takes_value(&entry.value) {
            report(Fault::Entry(index, place));
        }
    }
    if table.default.as_ref().is_some_and(|value| !table.takes_value(value)) {
        report(Fault::Default(index));
    }
}

fn check_template(index: u32, template: &Template, report: &mut impl FnMut(Fault)) {
    let mut holes: Vec<(u64, u64)> = template
        .holes
        .iter()
        .map(|hole| (hole.bit.into(), u64::from(hole.bit) + u64::from(hole.width)))
        .collect();
    let bits = template.bytes.len() as u64 * 8;
    let outside = holes.iter().any(|&(_, end)| end > bits);
    if outside || template.holes.iter().any(|hole| !(1..=128).contains(&hole.width)) {
        report(Fault::HoleOutside(index));
    }
    if template.holes.len() > MOST_HOLES {
        report(Fault::TooManyHoles(index));
    }
    let length = template.bytes.len() as u64;
    let misplaced = |one: &Sum| {
        let end = one.end.map_or(length, u64::from);
        u64::from(one.at) + 2 > length
            || u64::from(one.from) > end
            || end > length
            || one.besides.iter().any(|&(first, count)| u64::from(first) + u64::from(count) > length)
    };
    if template.sums.iter().any(misplaced) {
        report(Fault::SumOutside(index));
    }
    holes.sort_unstable();
    if holes.windows(2).any(|pair| pair[0].1 > pair[1].0) {
        report(Fault::HolesOverlap(index));
    }
}

/// Widths of a function's parameters as far as they exist; `body` reports those that do not.
fn entry_widths(function: &Function) -> Vec<u8> {
    let params = function.blocks.first().map_or(&[][..], |block| &block.params);
    params.iter().filter_map(|param| function.widths.get(param.0 as usize).copied()).collect()
}

fn check_manifest(program: &Program, errors: &mut Vec<VerifyError>) {
    let mut report =
        |what: String| errors.push(VerifyError { place: FaultPlace::default(), fault: Fault::Right(what) });
    let (declared, derived) = (&program.manifest, derive_manifest(program));
    for &table in &declared.writes_tables {
        if table as usize >= program.tables.len() {
            report(format!("to write table t{table}, which does not exist"));
        }
    }
    for table in derived.writes_tables.iter().filter(|table| !declared.writes_tables.contains(table)) {
        report(format!("to write table t{table}"));
    }
    for port in derived.ports.iter().filter(|port| !declared.ports.contains(port)) {
        report(format!("to send to port {port}"));
    }
    for (has, needs, what) in [
        (declared.writes_packet, derived.writes_packet, "to write packets"),
        (declared.resizes_packet, derived.resizes_packet, "to change sizes of packets"),
        (declared.writes_memory, derived.writes_memory, "to write meters, registers, pools or groups"),
        (declared.makes_packets, derived.makes_packets, "to make packets"),
        (declared.reads_payload, derived.reads_payload, "to read payload"),
        (declared.any_port, derived.any_port, "to send to any port"),
    ] {
        if needs && !has {
            report(what.to_owned());
        }
    }
}

/// True if a number is smaller than two to the width.
fn fits(number: u128, width: u8) -> bool {
    width >= 128 || number >> width == 0
}
