//! The policies of a program as models that other policies can be compared with.

use crate::source::{FileId, Sources, Span};
use policy::{Policy, RulePlace, comments};

/// A policy of a program, as what it decides about all packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyModel {
    /// Its name in the program.
    pub name: String,
    /// The file with its rules, whose lines its places name.
    pub file: String,
    /// What its rules say; or in a sentence why that is no policy over fields of packets.
    pub policy: Result<Policy, String>,
    /// The comments of this file that are about it and begin with `expect`, each with its line, from 1.
    pub expectations: Vec<(u32, String)>,
    /// The tables of its hooks, by their names in the program.
    pub tables: Vec<String>,
}

/// A policy that was checked, with the places of what it says.
#[derive(Clone, Debug)]
pub struct CheckedPolicy {
    /// The whole declaration.
    pub span: Span,
    /// Its name.
    pub name: String,
    /// What its rules say, without texts and places.
    pub policy: Result<Policy, String>,
    /// The places of the rules of each group; none for a rule that follows from
    /// the declaration as a whole.
    pub rules: Vec<Vec<Option<Span>>>,
    /// The places of the hooks.
    pub hooks: Vec<Span>,
    /// The tables of the hooks.
    pub tables: Vec<String>,
    /// The file that its rules come from, if they do not stand in the program. They have their texts and
    /// places.
    pub from: Option<FileId>,
}

/// The models of checked policies, with texts and places from the files.
pub(crate) fn located(checked: &[CheckedPolicy], sources: &Sources) -> Vec<PolicyModel> {
    let spans: Vec<Span> = checked.iter().map(|policy| policy.span).collect();
    checked.iter().map(|policy| one_located(policy, &spans, sources)).collect()
}

fn one_located(checked: &CheckedPolicy, policies: &[Span], sources: &Sources) -> PolicyModel {
    let place = |span: Span| {
        let (line, column) = sources.line_column(span);
        RulePlace { line, column }
    };
    let mut policy = checked.policy.clone();
    if let Ok(policy) = &mut policy {
        for (group, spans) in policy.groups.iter_mut().zip(&checked.rules) {
            for (rule, span) in group.rules.iter_mut().zip(spans) {
                rule.place = place(span.unwrap_or(checked.span));
                let Some(span) = span else { continue };
                let words: Vec<&str> = sources.text(*span).split_whitespace().collect();
                rule.text = words.join(" ").into();
            }
        }
        for (hook, span) in policy.hooks.iter_mut().zip(&checked.hooks) {
            hook.place = place(*span);
        }
    }
    let others: Vec<Span> = policies.iter().copied().filter(|span| *span != checked.span).collect();
    let mut expectations = expectations(checked.span, &others, sources);
    if let Some(from) = checked.from {
        let start = sources.line_column(checked.span).0;
        let lines = sources.text(checked.span).lines().count() as u32;
        if expectations.iter().any(|(line, _)| (start..start + lines).contains(line)) {
            policy =
                Err("its rules come from a file, and so do its tests: write them as comments there"
                    .to_owned());
        }
        let beside = comments(&sources.file(from).text).filter(|(_, words)| words.starts_with("expect "));
        expectations = beside.map(|(line, words)| (line, words.to_owned())).collect();
    }
    PolicyModel {
        name: checked.name.clone(),
        file: sources.file(checked.from.unwrap_or(checked.span.file)).name.clone(),
        policy,
        expectations,
        tables: checked.tables.clone(),
    }
}

/// The comments with expectations in the file of a policy that do not stand in another policy.
fn expectations(own: Span, others: &[Span], sources: &Sources) -> Vec<(u32, String)> {
    let text = &sources.file(own.file).text;
    let (mut found, mut at) = (Vec::new(), 0);
    for (line, whole) in (1..).zip(text.split_inclusive('\n')) {
        let words = whole.trim().strip_prefix("//").map(|comment| comment.trim_start_matches('/').trim());
        let elsewhere =
            others.iter().any(|other| other.file == own.file && (other.start..other.end).contains(&at));
        if let Some(words) = words.filter(|words| words.starts_with("expect ") && !elsewhere) {
            found.push((line, words.to_owned()));
        }
        at += whole.len() as u32;
    }
    found
}
