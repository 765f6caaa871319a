//! `ravelin policy test`: what is expected of packets, in lines beside the rules.

use super::program::sources;
use super::source::{Source, one_or_all};
use crate::arguments::policy::PolicyTestArguments;
use crate::commands::table::files::read;
use crate::failure::Failure;
use crate::render::{self, quantity};
use policy::{
    AnalysisFault, DecidedPolicy, DescribedPackets, ExpectedVerdict, MOST_NODES, behind_expect, comment,
    packet_text, read_packets,
};
use serde_json::{Value, json};
use std::fmt::Write;

/// One expectation of a file.
pub(super) struct Expectation {
    file: String,
    line: u32,
    text: String,
    expected: ExpectedVerdict,
    packets: DescribedPackets,
}

/// What became of the expectations about a policy.
#[derive(Default)]
pub(super) struct Tested {
    /// How many there are.
    pub(super) tests: usize,
    /// How many of them fail.
    pub(super) failed: usize,
    /// Those that fail, in words.
    pub(super) text: String,
    /// All of them.
    pub(super) documents: Vec<Value>,
}

/// Runs the command.
pub(super) fn run(arguments: &PolicyTestArguments, json: bool) -> Result<(), Failure> {
    let (mut told, mut documents, mut failed) = (String::new(), Vec::new(), 0);
    for source in sources(&arguments.file, &arguments.source, 0)? {
        let mut expectations = beside(&source)?;
        if let Some(file) = &arguments.tests {
            expectations.extend(of_file(file, &source)?);
        }
        if expectations.is_empty() {
            return Err(Failure::Finding(format!(
                "{}: there are no tests; write comments like `# expect pass tcp 192.0.2.7:1024 > 10.0.0.1:22`",
                source.called()
            )));
        }
        let tested = test(&source, &expectations, MOST_NODES)?;
        failed += tested.failed;
        let tests = quantity::of(tested.tests as u64, "test");
        let _ = writeln!(told, "{}{}: {tests}, {} failed", tested.text, source.called(), tested.failed);
        documents.push(source.document(json!({ "failed": tested.failed, "tests": tested.documents })));
    }
    if json {
        render::json(&one_or_all(documents))?
    } else {
        render::text(&told)?
    }
    if failed == 0 { Ok(()) } else { Err(Failure::Told) }
}

/// Says which expectations hold, by an analysis of at most so many nodes.
pub(super) fn test(source: &Source, expectations: &[Expectation], nodes: usize) -> Result<Tested, Failure> {
    let mut decided = DecidedPolicy::within(&source.policy, nodes).map_err(|fault| source.fault(fault))?;
    let mut tested = Tested { tests: expectations.len(), ..Tested::default() };
    for expectation in expectations {
        let answers = match decided.why(&expectation.packets) {
            Err(fault) if fault != AnalysisFault::NotAsked => return Err(source.fault(fault)),
            answers => answers,
        };
        let wrong = answers
            .as_ref()
            .map(|answers| answers.iter().find(|answer| !expectation.expected.is(answer.decision.action)));
        let fault = match wrong {
            Err(fault) => Some(format!("{}: {fault}", source.called())),
            Ok(Some(answer)) => {
                let packet = packet_text(&answer.witness, &source.policy.interfaces);
                Some(format!("{packet}\n  {}", source.decision_text(answer.decision)))
            }
            Ok(None) if answers.as_ref().is_ok_and(Vec::is_empty) => {
                Some("there are no such packets".to_owned())
            }
            Ok(None) => None,
        };
        tested.documents.push(json!({
            "file": expectation.file, "line": expectation.line, "test": expectation.text,
            "passed": fault.is_none(), "fault": fault,
        }));
        if let Some(fault) = fault {
            tested.failed += 1;
            let Expectation { file, line, text, .. } = expectation;
            let _ = writeln!(tested.text, "{file}:{line}: {text}\n  {fault}");
        }
    }
    Ok(tested)
}

/// The expectations that stand in comments beside the rules.
pub(super) fn beside(source: &Source) -> Result<Vec<Expectation>, Failure> {
    let tests = source.tests.iter();
    tests.map(|(line, test)| expectation(&source.file, *line, test, source)).collect()
}

/// The expectations of a file of tests: every line is one that is no comment; a comment may be one.
fn of_file(file: &str, source: &Source) -> Result<Vec<Expectation>, Failure> {
    let text = read(file)?;
    let mut found = Vec::new();
    for (line, whole) in (1..).zip(String::from_utf8_lossy(&text).lines()) {
        let (words, is_comment) = comment(whole).map_or((whole.trim(), false), |words| (words, true));
        match behind_expect(words) {
            Some(test) => found.push(expectation(file, line, test, source)?),
            None if is_comment || words.is_empty() => {}
            None => {
                let what = format!("{file}:{line}: a test is a line `expect pass|block|reject PACKET`");
                return Err(Failure::Finding(what));
            }
        }
    }
    Ok(found)
}

/// Reads what stands behind `expect`.
fn expectation(file: &str, line: u32, test: &str, source: &Source) -> Result<Expectation, Failure> {
    let wrong = |what: String| Failure::Finding(format!("{file}:{line}: {what}"));
    let (expected, packets) = test.split_once(char::is_whitespace).unwrap_or((test, ""));
    Ok(Expectation {
        file: file.to_owned(),
        line,
        text: test.to_owned(),
        expected: expected.parse().map_err(wrong)?,
        packets: read_packets(packets, &source.policy.interfaces).map_err(wrong)?,
    })
}
