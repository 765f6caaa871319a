//! Takes apart what says to which worker a packet goes: the stages from `steer decoder` on become a program
//! of their own, which shares constants, layouts and functions with the program that it steers for.

use super::reached::targets;
use super::{CompileOptions, Compiled, compiled, limit};
use crate::ast::{Block, File, Item};
use crate::diagnostic::{Diagnostic, Severity};
use ir::Program;
use ir::source::Sources;
use ir::steering::{declare_worker_busy, impure};
use std::collections::{HashMap, HashSet};

/// The files of the program that steers, if there is a stage that is marked so; the stages that only it
/// reaches are taken out of `files`.
pub(super) fn split(files: &mut [File]) -> Option<Vec<File>> {
    let steered = reached(files, |marks| marks.1);
    if steered.is_empty() {
        return None;
    }
    let run = reached(files, |marks| marks.0);
    let mut steering = files.to_vec();
    for file in &mut steering {
        file.items.retain(|item| match item {
            Item::Stage(stage) => steered.contains(&stage.name.text),
            Item::Test(_) | Item::Event(_) | Item::Every(_) | Item::Order(_) => false,
            _ => true,
        });
        for item in &mut file.items {
            if let Item::Stage(stage) = item {
                stage.start = stage.steers;
            }
        }
    }
    for file in files {
        file.items.retain(|item| match item {
            Item::Stage(stage) => run.contains(&stage.name.text) || !steered.contains(&stage.name.text),
            _ => true,
        });
    }
    Some(steering)
}

/// The names of the stages that can be reached from those with a mark: the first says that packets start
/// there, the second that they are steered from there.
fn reached(files: &[File], marked: impl Fn((bool, bool)) -> bool) -> HashSet<String> {
    let mut bodies: HashMap<&str, Vec<&Block>> = HashMap::new();
    let mut open: Vec<&str> = Vec::new();
    for stage in files.iter().flat_map(|file| &file.items).filter_map(|item| match item {
        Item::Stage(stage) => Some(stage),
        _ => None,
    }) {
        bodies.entry(&stage.name.text).or_default().push(&stage.body);
        if marked((stage.start, stage.steers)) {
            open.push(&stage.name.text);
        }
    }
    let mut reached = HashSet::new();
    while let Some(name) = open.pop() {
        if reached.insert(name.to_string()) {
            bodies.get(name).into_iter().flatten().for_each(|body| targets(body, &mut open));
        }
    }
    reached
}

/// Compiles what steers the packets of a program, and makes it part of it.
pub(super) fn join(
    whole: &mut Compiled,
    name: &str,
    steering: &[File],
    sources: &Sources,
    options: &CompileOptions,
) {
    let part = compiled(name, steering, sources, &[], options);
    let mut found: Vec<Diagnostic> = part.diagnostics;
    found.retain(|found| {
        let told = |other: &Diagnostic| (other.code, other.primary.span) == (found.code, found.primary.span);
        found.severity == Severity::Error && !whole.diagnostics.iter().any(told)
    });
    let mut steers = part.program;
    if let Some(program) = &mut steers {
        found.extend(state_used(program));
        forget_state(program);
    }
    if let (true, Some(program)) = (found.is_empty(), &mut whole.program) {
        found.extend(declare_worker_busy(program).err().map(|why| too_many_reasons(steering, why)));
    }
    if found.is_empty() {
        if let (Some(program), Some(steers)) = (&mut whole.program, steers) {
            program.steering = Some(Box::new(steers));
        }
        return;
    }
    whole.program = None;
    whole.refused = None;
    whole.tests.clear();
    whole.diagnostics.extend(found);
    whole.diagnostics.sort_by_key(|found| (found.severity != Severity::Error, found.primary.span));
    limit(&mut whole.diagnostics);
}

/// The error of a program that has no number left for the reason of packets that find no room on their way.
fn too_many_reasons(steering: &[File], why: String) -> Diagnostic {
    let start = steering.iter().flat_map(|file| &file.items).find_map(|item| match item {
        Item::Stage(stage) if stage.start => Some(stage.name.span),
        _ => None,
    });
    let start = start.unwrap_or_default();
    Diagnostic::error("E0233", "the program is too large", start, why)
}

/// The error of a table, a clock or anything else that is not in the packet.
fn state_used(program: &Program) -> Option<Diagnostic> {
    let span = impure(program)?;
    let headline = "packets are steered by what they hold alone";
    let label = "this does more than read the packet";
    let help = "tables, registers, pools and the time differ from worker to worker; use the packet's fields";
    Some(Diagnostic::error("E0438", headline, span, label).help(help))
}

/// What steers has no state: what the program declares is not needed twice.
fn forget_state(program: &mut Program) {
    let Program { tables, counters, meters, registers, pools, groups, .. } = program;
    tables.clear();
    counters.clear();
    meters.clear();
    registers.clear();
    pools.clear();
    groups.clear();
}
