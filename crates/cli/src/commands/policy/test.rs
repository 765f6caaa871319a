//! `ravelin policy test`: what is expected of packets, in lines beside the rules.

use super::source::Source;
use crate::arguments::policy::PolicyTestArguments;
use crate::commands::table::files::read;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{DecidedPolicy, DescribedPackets, ExpectedVerdict, packet_text, read_packets};
use serde_json::{Value, json};
use std::fmt::Write;

/// One expectation of a file.
struct Expectation {
    file: String,
    line: usize,
    text: String,
    expected: ExpectedVerdict,
    packets: DescribedPackets,
}

/// Runs the command.
pub(super) fn run(arguments: &PolicyTestArguments, json: bool) -> Result<(), Failure> {
    let source = Source::load(&arguments.file, &arguments.source, 0)?;
    let mut expectations = expectations(&source.file, &source.text, &source, true)?;
    if let Some(file) = &arguments.tests {
        expectations.extend(self::expectations(file, &read(file)?, &source, false)?);
    }
    if expectations.is_empty() {
        return Err(Failure::Finding(format!(
            "{}: there are no tests; write comments like `# expect pass tcp 192.0.2.7:1024 > 10.0.0.1:22`",
            source.file
        )));
    }
    let mut decided = DecidedPolicy::new(&source.policy).map_err(|fault| source.fault(fault))?;
    let (mut text, mut failed, mut documents) = (String::new(), 0, Vec::new());
    for expectation in &expectations {
        let answers = decided.why(&expectation.packets).map_err(|fault| source.fault(fault))?;
        let wrong = answers.iter().find(|answer| !expectation.expected.is(answer.decision.action));
        let fault = match wrong {
            Some(answer) => {
                let packet = packet_text(&answer.witness, &source.policy.interfaces);
                Some(format!("{packet}\n  {}", source.decision_text(answer.decision)))
            }
            None if answers.is_empty() => Some("there are no such packets".to_owned()),
            None => None,
        };
        documents.push(json!({
            "file": expectation.file, "line": expectation.line, "test": expectation.text,
            "passed": fault.is_none(), "fault": fault,
        }));
        if let Some(fault) = fault {
            failed += 1;
            let _ =
                writeln!(text, "{}:{}: {}\n  {fault}", expectation.file, expectation.line, expectation.text);
        }
    }
    if json {
        let tests: Vec<Value> = documents;
        render::json(&json!({ "file": source.file, "failed": failed, "tests": tests }))?;
    } else {
        let tests = quantity::of(expectations.len() as u64, "test");
        let _ = writeln!(text, "{}: {tests}, {failed} failed", source.file);
        render::text(&text)?;
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// The expectations of a file: of a policy those in comments, of a file of tests every line.
fn expectations(
    file: &str,
    text: &[u8],
    source: &Source,
    comments: bool,
) -> Result<Vec<Expectation>, Failure> {
    let mut found = Vec::new();
    for (index, line) in String::from_utf8_lossy(text).lines().enumerate() {
        let marks = |letter: char| letter.is_whitespace() || matches!(letter, '#' | '!' | '/' | ';');
        let words = line.trim_start_matches(marks).trim_end();
        let comment = line.trim_start().starts_with(['#', '!', ';']) || line.trim_start().starts_with("//");
        let Some(test) = words.strip_prefix("expect ").filter(|_| comment || !comments) else {
            if !comments && !comment && !words.is_empty() {
                let what =
                    format!("{file}:{}: a test is a line `expect pass|block|reject PACKET`", index + 1);
                return Err(Failure::Finding(what));
            }
            continue;
        };
        let wrong = |what: String| Failure::Finding(format!("{file}:{}: {what}", index + 1));
        let (expected, packets) = test.trim_start().split_once(' ').unwrap_or((test, ""));
        found.push(Expectation {
            file: file.to_owned(),
            line: index + 1,
            text: test.to_owned(),
            expected: expected.parse().map_err(wrong)?,
            packets: read_packets(packets, &source.policy.interfaces).map_err(wrong)?,
        });
    }
    Ok(found)
}
