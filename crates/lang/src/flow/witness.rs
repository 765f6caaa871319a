//! The smallest packet that takes a path: the headers its decoders decode, with the values its conditions ask
//! for.
//!
//! Conditions that are not about plain fields cannot be met on purpose; then there is no witness.

use super::facts::{Argument, Condition, Subject, Transfer};
use super::graph::Flow;
use crate::check::constants::fold_with;
use crate::check::hir::{ConditionalSize, Group, HeaderId, Program, StageId};
use crate::check::layouts::smallest_allowed;
use crate::check::packets::put;
use crate::diagnostic::PacketWitness;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A checksum changes with what it covers.
fn is_checksum(program: &Program, header: HeaderId, field: usize) -> bool {
    let layout = program.layout(header);
    layout.checksum.is_some_and(|checksum| checksum.field == field)
}

/// The values a field may have: both ends belong to each range.
pub type Ranges = Vec<(u128, u128)>;

/// A packet that goes from the start along these transfers.
pub fn packet(program: &Program, flow: &Flow, start: StageId, steps: &[Transfer]) -> Option<PacketWitness> {
    packet_where(program, flow, start, steps, &[])
}

/// The same where fields lie in certain ranges besides.
pub fn packet_where(
    program: &Program,
    flow: &Flow,
    start: StageId,
    steps: &[Transfer],
    besides: &[((HeaderId, usize), Ranges)],
) -> Option<PacketWitness> {
    let mut wanted: BTreeMap<(HeaderId, usize), Vec<(u128, u128)>> = BTreeMap::new();
    for ((header, field), ranges) in besides {
        narrow(wanted.entry((*header, *field)).or_insert_with(|| allowed(program, *header, *field)), ranges);
    }
    // A condition on a field that is written may be about what was written and not about what came in; a walk
    // may write anywhere.
    let written: Vec<(HeaderId, usize)> =
        flow.facts.iter().flat_map(|facts| facts.written.iter().copied()).collect();
    let decoded = |header: HeaderId| program.stages.iter().any(|stage| stage.header == Some(header));
    if written.iter().any(|(header, _)| !decoded(*header)) {
        return None;
    }
    let mut params: BTreeMap<Subject, Argument> = BTreeMap::new();
    let mut headers: Vec<HeaderId> = Vec::new();
    let mut stage = start;
    for step in steps {
        if let Some(header) = program.stages[stage.0].header {
            // A header decoded twice on the way has two sets of values; one map cannot hold them.
            if headers.contains(&header) {
                return None;
            }
            headers.push(header);
        }
        for condition in flow.facts[stage.0].conditions_of(step) {
            let Condition::Within(subject, ranges) = condition else { return None };
            let subject = match params.get(subject) {
                None => *subject,
                Some(Argument::Subject(other)) => *other,
                Some(Argument::Constant(value)) => {
                    if !ranges.iter().any(|(low, high)| (low..=high).contains(&value)) {
                        return None;
                    }
                    continue;
                }
            };
            match subject {
                Subject::Field(header, field) if written.contains(&(header, field)) => return None,
                Subject::Field(header, field)
                    if !written.is_empty() && is_checksum(program, header, field) =>
                {
                    return None;
                }
                Subject::Field(header, field) => narrow(
                    wanted.entry((header, field)).or_insert_with(|| allowed(program, header, field)),
                    ranges,
                ),
                Subject::Local(_) | Subject::Own(_) => return None,
            }
        }
        // Parameters that are handed over something computed stay unknown; a condition on one gives up.
        let mut handed: BTreeMap<Subject, Argument> = BTreeMap::new();
        for (param, argument) in program.stages[step.to.0].params.iter().zip(&step.args) {
            let argument = match argument {
                Some(Argument::Subject(subject)) => match (params.get(subject), subject) {
                    (Some(known), _) => Some(*known),
                    (None, Subject::Field(..)) => Some(Argument::Subject(*subject)),
                    (None, Subject::Local(_) | Subject::Own(_)) => None,
                },
                known => *known,
            };
            if let Some(argument) = argument {
                handed.insert(Subject::Local(*param), argument);
            }
        }
        params = handed;
        stage = step.to;
    }
    if let Some(header) = program.stages[stage.0].header {
        headers.push(header);
    }
    finish(program, &headers, &wanted)
}

fn allowed(program: &Program, header: HeaderId, field: usize) -> Vec<(u128, u128)> {
    let field = &program.layout(header).fields[field];
    vec![field.constraint.unwrap_or((0, field.ty.largest()))]
}

fn narrow(have: &mut Vec<(u128, u128)>, ranges: &[(u128, u128)]) {
    *have = have
        .iter()
        .flat_map(|&(low, high)| ranges.iter().map(move |&(from, to)| (low.max(from), high.min(to))))
        .filter(|(low, high)| low <= high)
        .collect();
}

fn finish(
    program: &Program,
    headers: &[HeaderId],
    wanted: &BTreeMap<(HeaderId, usize), Vec<(u128, u128)>>,
) -> Option<PacketWitness> {
    let mut bytes = Vec::new();
    let mut decoded = String::new();
    for &header in headers {
        let layout = program.layout(header);
        let mut numbers = Vec::new();
        for (index, field) in layout.fields.iter().enumerate() {
            numbers.push(match wanted.get(&(header, index)) {
                Some(ranges) => Some(ranges.first()?.0),
                None => field.ty.width().map(|_| smallest_allowed(field)),
            });
        }
        let own = |field: usize| numbers[field];
        for group in &layout.groups {
            let base = bytes.len();
            let (size, fields) = match group {
                Group::Fixed { bytes, fields } => (*bytes as usize, fields.clone()),
                Group::Variable { length, .. } => (fold_with(length, &own)? as usize, Vec::new()),
                Group::Conditional { when, .. } if fold_with(when, &own)? == 0 => (0, Vec::new()),
                Group::Conditional { field, size: ConditionalSize::Fixed(size), .. } => {
                    (*size as usize, vec![*field])
                }
                Group::Conditional { size: ConditionalSize::Variable(length), .. } => {
                    (fold_with(length, &own)? as usize, Vec::new())
                }
            };
            if base + size > 2048 {
                return None;
            }
            bytes.resize(base + size, 0);
            for field in fields {
                let width = layout.fields[field].ty.width().unwrap_or(0);
                put(
                    &mut bytes,
                    base as u32 * 8 + layout.fields[field].bit,
                    width,
                    numbers[field].unwrap_or(0),
                );
            }
        }
        let said: Vec<String> = layout
            .fields
            .iter()
            .enumerate()
            .filter(|(index, _)| wanted.contains_key(&(header, *index)))
            .map(|(index, field)| format!("{} {}", field.name, in_words(numbers[index].unwrap_or(0))))
            .collect();
        if !decoded.is_empty() {
            decoded.push_str(" / ");
        }
        let _ = write!(decoded, "{}", layout.name);
        if !said.is_empty() {
            let _ = write!(decoded, "({})", said.join(", "));
        }
    }
    (!bytes.is_empty()).then_some(PacketWitness { bytes, decoded })
}

/// Small numbers as people count, large ones as they stand in the bytes.
fn in_words(number: u128) -> String {
    if number < 256 { number.to_string() } else { format!("{number:#06x}") }
}
