//! `ravelin policy why`: which line decides about a packet.

use super::program::sources;
use super::source::{Source, action_text, one_or_all};
use crate::arguments::policy::PolicyWhyArguments;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{AnalysisFault, DecidedPolicy, WhyAnswer, packet_text, read_packets};
use serde_json::{Value, json};
use std::fmt::Write;

/// Runs the command.
pub(super) fn run(arguments: &PolicyWhyArguments, json: bool) -> Result<(), Failure> {
    let (mut text, mut documents) = (String::new(), Vec::new());
    for source in sources(&arguments.file, &arguments.source, 0)? {
        let packets = read_packets(&arguments.packet, &source.policy.interfaces).map_err(Failure::Usage)?;
        let mut decided = DecidedPolicy::new(&source.policy).map_err(|fault| source.fault(fault))?;
        let answers = match decided.why(&packets) {
            Err(fault @ AnalysisFault::NotAsked) => {
                let _ = writeln!(text, "{}: {fault}", source.called());
                documents.push(source.document(json!({ "answers": [], "not_asked": fault.to_string() })));
                continue;
            }
            answers => answers.map_err(|fault| source.fault(fault))?,
        };
        if answers.is_empty() {
            return Err(Failure::Usage(format!("`{}`: there are no such packets", arguments.packet)));
        }
        tell(&mut text, &source, &answers);
        let answers: Vec<Value> = answers.iter().map(|answer| document(&source, answer)).collect();
        documents.push(source.document(json!({ "answers": answers })));
    }
    if json {
        render::json(&one_or_all(documents))?
    } else {
        render::text(&text)?
    }
    Ok(())
}

fn tell(text: &mut String, source: &Source, answers: &[WhyAnswer]) {
    if answers.len() > 1 {
        let ways = quantity::of(answers.len() as u64, "line");
        let _ = writeln!(text, "{ways} decide, each about some of these packets");
    }
    for answer in answers {
        let _ = writeln!(text, "{}", packet_text(&answer.witness, &source.policy.interfaces));
        for step in &answer.verdict.steps {
            let does = match step {
                policy::Step::Rule(group, rule) => {
                    format!("{}: ", source.action_of(source.policy.groups[*group].rules[*rule].action))
                }
                _ => String::new(),
            };
            let _ = writeln!(text, "  {does}{}", source.step_text(*step));
        }
        for may in &answer.may {
            let _ = writeln!(text, "  only while this holds: {may}");
        }
        let _ = writeln!(text, "  {}", action_text(answer.verdict.action));
    }
}

fn document(source: &Source, answer: &WhyAnswer) -> Value {
    json!({
        "packet": packet_text(&answer.witness, &source.policy.interfaces),
        "decision": source.decision_document(answer.decision),
        "steps": answer.verdict.steps.iter().map(|step| source.step_document(*step)).collect::<Vec<Value>>(),
        "may": answer.may,
    })
}
