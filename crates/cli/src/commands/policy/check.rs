//! `ravelin policy check`: rules that decide about no packet.

use super::source::Source;
use crate::arguments::policy::PolicyCheckArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{CoverEffect, DecidedPolicy, Step, UnreachedCause};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyCheckArguments, json: bool) -> Result<(), Failure> {
    let source = Source::load(&arguments.file, &arguments.source, 0)?;
    let mut decided = DecidedPolicy::new(&source.policy).map_err(|fault| source.fault(fault))?;
    let unreached = decided.unreached().map_err(|fault| source.fault(fault))?;
    let rules: usize = source.policy.groups.iter().map(|group| group.rules.len()).sum();
    let mut shown = Vec::new();
    for rule in unreached.iter().take(arguments.most) {
        let cause = decided.why_unreached(&[*rule]).map_err(|fault| source.fault(fault))?;
        shown.push((*rule, cause));
    }
    if json {
        let shown: Vec<Value> = shown.iter().map(|(rule, cause)| document(&source, *rule, cause)).collect();
        render::json(&json!({
            "file": source.file,
            "rules": rules,
            "unreached": { "count": unreached.len(), "shown": shown },
        }))?;
    } else {
        let mut text = String::new();
        for (rule, cause) in &shown {
            tell(&mut text, &source, *rule, cause);
        }
        let _ = writeln!(
            text,
            "{}: {}; {} of {} never decide{}",
            source.file,
            quantity::of(rules as u64, "rule"),
            quantity::count(unreached.len() as u64),
            if rules == 1 { "it" } else { "them" },
            more(shown.len(), unreached.len()),
        );
        render::text(&text)?;
    }
    if unreached.is_empty() { Ok(()) } else { Err(Failure::Told) }
}

/// How many of a list are shown, where that is not all.
pub(super) fn more(shown: usize, all: usize) -> String {
    if shown == all { String::new() } else { format!(" ({shown} of {all} shown)") }
}

/// So many rules are named that cover another one together.
const COVERS_SHOWN: usize = 5;

fn tell(text: &mut String, source: &Source, rule: (usize, usize), cause: &UnreachedCause) {
    let _ = writeln!(text, "{}", source.step_text(Step::Rule(rule.0, rule.1)));
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
        for step in by.iter().take(COVERS_SHOWN) {
            let _ = writeln!(text, "    {}", source.step_text(*step));
        }
        let more = more + by.len().saturating_sub(COVERS_SHOWN);
        if more > 0 {
            let _ = writeln!(text, "    … and {more} more");
        }
    }
}

fn document(source: &Source, rule: (usize, usize), cause: &UnreachedCause) -> Value {
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
        "rule": source.step_document(Step::Rule(rule.0, rule.1)),
        "cause": cause,
        "effect": effect,
        "by": by.iter().map(|step| source.step_document(*step)).collect::<Vec<Value>>(),
        "more": more,
    })
}
