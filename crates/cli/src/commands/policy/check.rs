//! `ravelin policy check`: lines that decide about no packet, redundant lines, and pairs whose order decides.

use super::program::sources;
use super::source::{Source, one_or_all};
use crate::arguments::policy::PolicyCheckArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{
    AnalysisFault, CoverEffect, OpposedLines, OpposedPairs, Path, PolicyFindings, RedundantLine, Step,
    UnreachedCause, findings, packet_text, path_text,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyCheckArguments, json: bool) -> Result<(), Failure> {
    let (mut told, mut documents, mut is_clean) = (String::new(), Vec::new(), true);
    for source in sources(&arguments.file, &arguments.source, 0)? {
        let found = findings(&source.policy, arguments.most).map_err(|fault| source.fault(fault))?;
        is_clean &= found.unreached.is_empty() && redundant(&found).is_ok_and(<[_]>::is_empty);
        told.push_str(&text(&source, &found, arguments));
        documents.push(source.document(document(&source, &found, arguments.most)));
    }
    if json {
        render::json(&one_or_all(documents))?;
    } else {
        render::text(&told)?;
    }
    if is_clean { Ok(()) } else { Err(Failure::Told) }
}

/// The redundant lines, or why none was looked for.
fn redundant(found: &PolicyFindings) -> Result<&[RedundantLine], AnalysisFault> {
    found.order.as_ref().map(|order| &order.redundant[..]).map_err(|fault| *fault)
}

/// The pairs whose order decides, or why none was looked for.
fn pairs(found: &PolicyFindings) -> Result<&OpposedPairs, AnalysisFault> {
    found.order.as_ref().map_err(|fault| *fault)?.pairs.as_ref().map_err(|fault| *fault)
}

/// What tells a line: the first rule that it became.
fn step(found: &PolicyFindings, line: usize) -> Step {
    let (group, rule) = found.lines[line][0];
    Step::Rule(group, rule)
}

fn text(source: &Source, found: &PolicyFindings, arguments: &PolicyCheckArguments) -> String {
    let mut text = String::new();
    for (line, cause) in found.unreached.iter().zip(&found.causes) {
        tell_unreached(&mut text, source, step(found, *line), cause);
    }
    let count = |number: usize| quantity::count(number as u64);
    let mut counts = format!(
        "{}: {}; {} never decide{}",
        source.called(),
        quantity::of(found.lines.len() as u64, "rule"),
        count(found.unreached.len()),
        more(found.causes.len(), found.unreached.len()),
    );
    let mut not_looked_for = String::new();
    match redundant(found) {
        Ok(redundant) => {
            let shown = redundant.len().min(arguments.most);
            for line in &redundant[..shown] {
                let _ = writeln!(text, "{}", source.step_text(step(found, line.line)));
                text.push_str(
                    "  redundant: without it, these decide about all of its packets, and do the same:\n",
                );
                tell_steps(&mut text, source, &line.by, line.more);
            }
            let _ = write!(counts, ", {} redundant{}", count(redundant.len()), more(shown, redundant.len()));
        }
        Err(fault) => {
            let _ = writeln!(not_looked_for, "  redundant rules were not looked for: {fault}");
        }
    }
    match pairs(found) {
        Ok(pairs) => {
            tell_pairs(&mut text, source, found, pairs, arguments.exceptions);
            let _ = write!(
                counts,
                ", {} correlated{}, {}{}",
                quantity::of(pairs.correlated_count as u64, "pair"),
                more(pairs.correlated.len(), pairs.correlated_count),
                quantity::of(pairs.exceptions_count as u64, "exception"),
                match arguments.exceptions {
                    true => more(pairs.exceptions.len(), pairs.exceptions_count),
                    false => String::new(),
                },
            );
        }
        Err(fault) => {
            let _ = writeln!(not_looked_for, "  pairs were not looked for: {fault}");
        }
    }
    let _ = writeln!(text, "{counts}");
    if let Some(version) = source.policy.passing_family() {
        tell_passing(&mut text, "", version);
    } else {
        for (path, version) in source.policy.passing_families() {
            tell_passing(&mut text, way(path), version);
        }
    }
    text + &not_looked_for
}

/// Says of packets on some way that all of this version of IP pass, and what to do.
fn tell_passing(text: &mut String, way: &str, version: u8) {
    let other = if version == 4 { 6 } else { 4 };
    let _ = writeln!(
        text,
        "  these rules drop some packets of IPv{other}{way}, and none of IPv{version}: add rules for IPv{version}, or \
         drop it"
    );
}

/// What is said of packets that go a way.
fn way(path: Path) -> &'static str {
    match path {
        Path::Forwarded => " that are forwarded",
        Path::ToGateway => " for the gateway itself",
        Path::FromGateway => " of the gateway itself",
    }
}

/// How many of a list are shown, where that is not all.
pub(super) fn more(shown: usize, all: usize) -> String {
    if shown == all { String::new() } else { format!(" ({shown} of {all} shown)") }
}

/// So many rules are named that cover another one together.
const COVERS_SHOWN: usize = 5;

fn tell_unreached(text: &mut String, source: &Source, rule: Step, cause: &UnreachedCause) {
    let _ = writeln!(text, "{}", source.step_text(rule));
    let names = |groups: &[usize]| {
        groups.iter().map(|group| &*source.policy.groups[*group].name).collect::<Vec<&str>>().join(" or ")
    };
    let why = match cause {
        UnreachedCause::Impossible => "no packet can match it".to_owned(),
        UnreachedCause::GroupUnreached(groups) => format!("no packet comes to {}", names(groups)),
        UnreachedCause::NoneArrives(groups) => {
            format!("none of the packets that it matches comes to {}", names(groups))
        }
        UnreachedCause::Covered { effect, .. } => {
            let told = match effect {
                CoverEffect::Same => ", and do the same",
                CoverEffect::Opposite => ", and do the opposite",
                CoverEffect::Mixed => ", and do partly the same and partly the opposite",
                CoverEffect::NoDecision => "",
            };
            format!("these decide about all of its packets{told}:")
        }
    };
    let _ = writeln!(text, "  never decides: {why}");
    if let UnreachedCause::Covered { by, more, .. } = cause {
        tell_steps(text, source, by, *more);
    }
}

fn tell_steps(text: &mut String, source: &Source, steps: &[Step], more: usize) {
    for step in steps.iter().take(COVERS_SHOWN) {
        let _ = writeln!(text, "    {}", source.step_text(*step));
    }
    let more = more + steps.len().saturating_sub(COVERS_SHOWN);
    if more > 0 {
        let _ = writeln!(text, "    … and {more} more");
    }
}

fn tell_pairs(
    text: &mut String,
    source: &Source,
    found: &PolicyFindings,
    pairs: &OpposedPairs,
    exceptions: bool,
) {
    for pair in &pairs.correlated {
        tell_pair(text, source, found, pair, "correlated: both match this packet and do the opposite:");
    }
    if exceptions {
        for pair in &pairs.exceptions {
            tell_pair(text, source, found, pair, "exception: the other one does the opposite, also to:");
        }
    }
}

fn tell_pair(text: &mut String, source: &Source, found: &PolicyFindings, pair: &OpposedLines, what: &str) {
    let _ = writeln!(text, "{}", source.step_text(step(found, pair.first)));
    let _ = writeln!(text, "{}", source.step_text(step(found, pair.second)));
    let _ = writeln!(text, "  {what} {}", packet_text(&pair.witness, &source.policy.interfaces));
    for may in &pair.may {
        let _ = writeln!(text, "  only while this holds: {may}");
    }
}

fn document(source: &Source, found: &PolicyFindings, most: usize) -> Value {
    let step = |line: usize| source.step_document(step(found, line));
    let opposed = |shown: fn(&OpposedPairs) -> (&[OpposedLines], usize)| {
        looked_for(pairs(found).map(shown).map(|(pairs, count)| {
            let shown = pairs.iter().map(|pair| {
                json!({
                    "first": step(pair.first), "second": step(pair.second), "may": pair.may,
                    "witness": packet_text(&pair.witness, &source.policy.interfaces),
                })
            });
            (count, shown.collect())
        }))
    };
    let line = |line: &RedundantLine| json!({ "rule": step(line.line), "by": steps(source, &line.by), "more": line.more });
    let passing = source.policy.passing_families().into_iter();
    let passing = passing.map(|(path, version)| json!({ "path": path_text(path), "version": version }));
    let unreached = found.unreached.iter().zip(&found.causes);
    let unreached = unreached.map(|(line, cause)| unreached_document(source, step(*line), cause));
    json!({
        "file": source.file,
        "rules": found.lines.len(),
        "family_that_passes": source.policy.passing_family(),
        "passing_families": passing.collect::<Vec<Value>>(),
        "unreached": { "count": found.unreached.len(), "shown": unreached.collect::<Vec<Value>>() },
        "redundant": looked_for(redundant(found).map(|lines| {
            (lines.len(), lines.iter().take(most).map(line).collect())
        })),
        "correlated": opposed(|pairs| (&pairs.correlated, pairs.correlated_count)),
        "exceptions": opposed(|pairs| (&pairs.exceptions, pairs.exceptions_count)),
    })
}

/// How many there are and those that are shown, or why none was looked for.
fn looked_for(found: Result<(usize, Vec<Value>), AnalysisFault>) -> Value {
    match found {
        Ok((count, shown)) => json!({ "count": count, "shown": shown }),
        Err(fault) => json!({ "count": null, "shown": [], "not_looked_for": fault.to_string() }),
    }
}

fn steps(source: &Source, steps: &[Step]) -> Vec<Value> {
    steps.iter().map(|step| source.step_document(*step)).collect()
}

fn unreached_document(source: &Source, rule: Value, cause: &UnreachedCause) -> Value {
    let (cause, effect, by, more) = match cause {
        UnreachedCause::Impossible => ("impossible", None, &[][..], 0),
        UnreachedCause::GroupUnreached(_) => ("group_unreached", None, &[][..], 0),
        UnreachedCause::NoneArrives(_) => ("none_arrives", None, &[][..], 0),
        UnreachedCause::Covered { by, more, effect } => {
            let effect = match effect {
                CoverEffect::Same => "same",
                CoverEffect::Opposite => "opposite",
                CoverEffect::Mixed => "mixed",
                CoverEffect::NoDecision => "none",
            };
            ("covered", Some(effect), &by[..], *more)
        }
    };
    json!({
        "rule": rule,
        "cause": cause,
        "effect": effect,
        "by": steps(source, by),
        "more": more,
    })
}
