//! `ravelin policy check`: rules that decide about no packet.

use super::source::Source;
use crate::arguments::policy::PolicyCheckArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{CoverEffect, Step, UnreachedCause, UnreachedRule, findings};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyCheckArguments, json: bool) -> Result<(), Failure> {
    let source = Source::load(&arguments.file, &arguments.source, 0)?;
    let found = findings(&source.policy).map_err(|fault| source.fault(fault))?;
    let rules: usize = source.policy.groups.iter().map(|group| group.rules.len()).sum();
    let shown = &found.unreached[..found.unreached.len().min(arguments.most)];
    if json {
        let unreached: Vec<Value> = shown.iter().map(|rule| document(&source, rule)).collect();
        render::json(&json!({
            "file": source.file,
            "rules": rules,
            "unreached": { "count": found.unreached.len(), "shown": unreached },
        }))?;
    } else {
        let mut text = String::new();
        for rule in shown {
            tell(&mut text, &source, rule);
        }
        let _ = writeln!(
            text,
            "{}: {}; {} of {} never decide{}",
            source.file,
            quantity::of(rules as u64, "rule"),
            quantity::count(found.unreached.len() as u64),
            if rules == 1 { "it" } else { "them" },
            more(shown.len(), found.unreached.len()),
        );
        render::text(&text)?;
    }
    if found.unreached.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// How many of a list are shown, where that is not all.
pub(super) fn more(shown: usize, all: usize) -> String {
    if shown == all { String::new() } else { format!(" ({shown} of {all} shown)") }
}

/// So many rules are named that cover another one together.
const COVERS_SHOWN: usize = 5;

fn tell(text: &mut String, source: &Source, found: &UnreachedRule) {
    let _ = writeln!(text, "{}", source.step_text(Step::Rule(found.group, found.rule)));
    let group = &source.policy.groups[found.group].name;
    let why = match &found.cause {
        UnreachedCause::Impossible => "no packet can match it".to_owned(),
        UnreachedCause::GroupUnreached => format!("no packet comes to {group}"),
        UnreachedCause::NoneArrives => format!("none of the packets that it matches comes to {group}"),
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
    if let UnreachedCause::Covered { by, .. } = &found.cause {
        for step in by.iter().take(COVERS_SHOWN) {
            let _ = writeln!(text, "    {}", source.step_text(*step));
        }
        if by.len() > COVERS_SHOWN {
            let _ = writeln!(text, "    … and {} more", by.len() - COVERS_SHOWN);
        }
    }
}

fn document(source: &Source, found: &UnreachedRule) -> Value {
    let (cause, effect, by) = match &found.cause {
        UnreachedCause::Impossible => ("impossible", None, &[][..]),
        UnreachedCause::GroupUnreached => ("group_unreached", None, &[][..]),
        UnreachedCause::NoneArrives => ("none_arrives", None, &[][..]),
        UnreachedCause::Covered { by, effect } => {
            let effect = match effect {
                CoverEffect::Same => "same",
                CoverEffect::Opposite => "opposite",
                CoverEffect::Mixed => "mixed",
                CoverEffect::NoDecision => "none",
            };
            ("covered", Some(effect), &by[..])
        }
    };
    json!({
        "rule": source.step_document(Step::Rule(found.group, found.rule)),
        "cause": cause,
        "effect": effect,
        "by": by.iter().map(|step| source.step_document(*step)).collect::<Vec<Value>>(),
    })
}
