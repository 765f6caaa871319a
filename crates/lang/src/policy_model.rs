//! The policies of a program as models that other policies can be compared with.

use ir::source::{FileId, Sources, Span};
use policy::{MAPPED, PacketField, Policy, RuleCondition, RulePlace, Values, test_of_program, tests_in};
use std::collections::HashSet;
use std::sync::Arc;

/// A policy of a program, as what it decides about all packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyModel {
    /// Its name in the program.
    pub name: String,
    /// The file with its rules, whose lines its places name.
    pub file: String,
    /// What its rules say; or in a sentence why that is no policy over fields of packets.
    pub policy: Result<Policy, String>,
    /// What comments of this file that are about it say behind `expect`, each with its line, from 1.
    pub expectations: Vec<(u32, String)>,
    /// The tables of its hooks, by their names in the program.
    pub tables: Vec<String>,
    /// Its rules, by the numbers that rows of its tables hold.
    pub rules: Vec<NumberedRule>,
    /// The memory of each limit, an index of [`Policy::memories`], by the numbers that rows hold.
    pub limits: Vec<usize>,
    /// The words behind which the program says what happens to packets.
    pub outcomes: Vec<String>,
    /// Whether its rules come from a file.
    pub from_file: bool,
}

/// A rule by the number that rows hold; the number is the line where rules come from a file, and several
/// rules may have it then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedRule {
    /// The number.
    pub number: u32,
    /// Where it stands.
    pub place: RulePlace,
    /// Its text.
    pub text: Arc<str>,
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
    /// The places of the rules by their numbers, from 1 on; none if they come from a file.
    pub numbered: Vec<Span>,
    /// The memory of each limit by its number: an index of [`Policy::memories`].
    pub limits: Vec<usize>,
    /// The words behind which the program says what happens to packets.
    pub outcomes: Vec<String>,
}

/// A column as a field of packets.
#[derive(Clone, Copy)]
pub(crate) struct ModelField {
    pub(crate) field: PacketField,
    /// Its values are addresses of IPv4.
    pub(crate) version_4: bool,
}

/// The lowest bits, which an IPv4 address has of one of IPv6.
const LOW_32: u128 = 0xffff_ffff;

impl ModelField {
    /// Values of the column as values of the field; `None` if the field never has one of them.
    pub(crate) fn values(self, values: Values) -> Option<Values> {
        let most = self.field.most();
        match values {
            Values::Range { low, high } if self.version_4 => {
                Some(Values::Range { low: low | MAPPED, high: high | MAPPED })
            }
            Values::Masked { value, mask } if self.version_4 => {
                Some(Values::Masked { value: value | MAPPED, mask: mask | !LOW_32 })
            }
            Values::Range { low, high } => {
                (low <= most).then_some(Values::Range { low, high: high.min(most) })
            }
            Values::Masked { value, mask } => {
                (value <= most).then_some(Values::Masked { value, mask: mask & most })
            }
        }
    }
}

pub(crate) fn family(version: u128) -> RuleCondition {
    RuleCondition::Holds(PacketField::Family, vec![Values::exact(version)])
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
    let rules = match (&policy, checked.from) {
        (Ok(policy), Some(_)) => rules_of_lines(policy),
        _ => numbered(checked, sources),
    };
    if let Ok(policy) = &mut policy {
        for (group, spans) in policy.groups.iter_mut().zip(&checked.rules) {
            for (rule, span) in group.rules.iter_mut().zip(spans) {
                rule.place = place(span.unwrap_or(checked.span));
                let Some(span) = span else { continue };
                rule.text = rule_text(*span, sources);
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
        let beside = tests_in(&sources.file(from).text);
        expectations = beside.map(|(line, words)| (line, words.to_owned())).collect();
    }
    PolicyModel {
        name: checked.name.clone(),
        file: sources.file(checked.from.unwrap_or(checked.span.file)).name.clone(),
        policy,
        expectations,
        tables: checked.tables.clone(),
        rules,
        limits: checked.limits.clone(),
        outcomes: checked.outcomes.clone(),
        from_file: checked.from.is_some(),
    }
}

/// A rule on one line.
fn rule_text(span: Span, sources: &Sources) -> Arc<str> {
    let words: Vec<&str> = sources.text(span).split_whitespace().collect();
    words.join(" ").into()
}

/// The rules of a declaration by their numbers.
fn numbered(checked: &CheckedPolicy, sources: &Sources) -> Vec<NumberedRule> {
    let rules = (1..).zip(&checked.numbered).map(|(number, span)| {
        let (line, column) = sources.line_column(*span);
        NumberedRule { number, place: RulePlace { line, column }, text: rule_text(*span, sources) }
    });
    rules.collect()
}

/// The rules of a file by their lines.
fn rules_of_lines(policy: &Policy) -> Vec<NumberedRule> {
    let mut seen = HashSet::new();
    let rules = policy.groups.iter().flat_map(|group| &group.rules);
    let new = rules.filter(|rule| seen.insert((rule.place, rule.text.clone())));
    let numbered = |rule: &policy::PolicyRule| NumberedRule {
        number: rule.place.line,
        place: rule.place,
        text: rule.text.clone(),
    };
    new.map(numbered).collect()
}

/// The tests in comments of the file of a policy that do not stand in another policy.
fn expectations(own: Span, others: &[Span], sources: &Sources) -> Vec<(u32, String)> {
    let text = &sources.file(own.file).text;
    let (mut found, mut at) = (Vec::new(), 0);
    for (line, whole) in (1..).zip(text.split_inclusive('\n')) {
        if let Some(words) = test_of_program(whole) {
            let place = at + (whole.trim_end().len() - words.len()) as u32;
            let is_other = |other: &Span| other.file == own.file && (other.start..other.end).contains(&place);
            if !others.iter().any(is_other) {
                found.push((line, words.to_owned()));
            }
        }
        at += whole.len() as u32;
    }
    found
}
