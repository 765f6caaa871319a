//! What a reload does to policies: the tests beside the new rules, and the packets that are treated otherwise
//! than by the program that runs.

use super::diff::{LEFT_OVER, document, told};
use super::program::of_model;
use super::test::{Tested, beside, test};
use crate::failure::Failure;
use gateway::{OnlyIf, PolicyReview, ReviewedProgram, Takeover};
use ir::source::{FileId, Span};
use lang::ast::Item;
use lang::lexer::lex;
use lang::parser::parse;
use lang::policy_model::PolicyModel;
use lang::token::{Token, TokenKind};
use policy::difference_within;
use serde_json::{Value, json};
use std::fmt::Write;

/// The most nodes of the diagrams of one analysis beside a packet loop, of 28 bytes each at most: less than
/// 256 MiB.
const MOST_NODES_BESIDE_PACKETS: usize = 8_000_000;

/// What a review says, as it grows.
#[derive(Default)]
struct Reviewing {
    text: String,
    documents: Vec<Value>,
    /// Why the new policies may let more pass, or treat packets otherwise: first the worst.
    opens: Vec<String>,
    differs: Vec<String>,
}

/// Runs the tests of the new policies, and compares them with those that run if the client wants that.
pub(crate) fn review(takeover: &Takeover<'_>) -> PolicyReview {
    let wish = takeover.wish;
    let mut refusal = takeover.new.policies.iter().find_map(|model| tested(model).err());
    if takeover.old.policies.is_empty() && takeover.new.policies.is_empty() {
        let nothing = || "neither program has a policy that could be compared".to_owned();
        let refusal = refusal.or_else(|| wish.only_if.map(|_| nothing()));
        return PolicyReview { told: Value::Null, refusal };
    }
    if !wish.diff && wish.only_if.is_none() {
        return PolicyReview { told: Value::Null, refusal };
    }
    let mut reviewing = Reviewing::default();
    for new in takeover.new.policies.iter() {
        let old = takeover.old.policies.iter().find(|old| old.name == new.name);
        reviewing.compare(old, new, wish.most);
    }
    let names = |model: &&PolicyModel| takeover.new.policies.iter().all(|new| new.name != model.name);
    for gone in takeover.old.policies.iter().filter(names) {
        reviewing.not_compared(&gone.name, "the new program does not have it");
    }
    let rows = rows(takeover);
    for (table, declared, held) in &rows {
        reviewing.remark(format!(
            "`{table}` holds {held} rows and was declared with {declared}: rows from outside are not compared, and end with the program"
        ));
    }
    let elsewhere = elsewhere(takeover.old, takeover.new);
    let changes: Vec<String> =
        takeover.file_changes.iter().map(|words| (*words).to_owned()).chain(elsewhere).collect();
    for change in &changes {
        reviewing.remark(format!("{change}, which is not compared"));
    }
    let Reviewing { text, documents, opens, differs } = reviewing;
    refusal = refusal.or_else(|| match wish.only_if? {
        OnlyIf::Narrower => not(&opens, "narrower"),
        OnlyIf::Same => not(&[opens, differs].concat(), "the same"),
    });
    let rows: Vec<Value> = rows
        .iter()
        .map(|(table, declared, held)| json!({ "table": table, "declared": declared, "held": held }))
        .collect();
    let document = json!({ "policies": documents, "not_compared": changes, "rows_from_outside": rows });
    PolicyReview { told: json!({ "text": text, "document": document }), refusal }
}

/// The sentence that refuses.
fn not(reasons: &[String], what: &str) -> Option<String> {
    (!reasons.is_empty())
        .then(|| format!("the new policies are not known to be {what}: {}", reasons.join("; ")))
}

/// Runs the tests of a policy; an error is what refuses it.
pub(crate) fn tested(model: &PolicyModel) -> Result<(), String> {
    if model.expectations.is_empty() {
        return Ok(());
    }
    let run = || -> Result<Tested, Failure> {
        let source = of_model(model)?;
        test(&source, &beside(&source)?, MOST_NODES_BESIDE_PACKETS)
    };
    match run() {
        Ok(tested) if tested.failed == 0 => Ok(()),
        Ok(Tested { text, tests, failed, .. }) => Err(format!(
            "{text}of {tests} tests beside the rules of the policy `{}`, {failed} failed",
            model.name
        )),
        Err(failure) => Err(format!("the tests beside the rules cannot be run: {failure}")),
    }
}

impl Reviewing {
    fn remark(&mut self, words: String) {
        let _ = writeln!(self.text, "{words}");
        self.opens.push(words);
    }

    fn not_compared(&mut self, name: &str, why: &str) {
        self.documents.push(json!({ "policy": name, "fault": why }));
        self.remark(format!("the policy `{name}` is not compared: {why}"));
    }

    fn compare(&mut self, old: Option<&PolicyModel>, new: &PolicyModel, most: usize) {
        let name = new.name.as_str();
        let Some(old) = old else {
            return self.not_compared(name, "the program that runs does not have it");
        };
        let (old, new) = match (of_model(old), of_model(new)) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(failure), _) | (_, Err(failure)) => return self.not_compared(name, &failure.to_string()),
        };
        let found = match difference_within(&old.policy, &new.policy, most, MOST_NODES_BESIDE_PACKETS) {
            Ok(found) => found,
            Err(fault) => return self.not_compared(name, &fault.to_string()),
        };
        let _ = write!(self.text, "policy {name}:\n{}", told(&old, &new, &found));
        self.documents.push(document(&old, &new, &found));
        let mut opens = |count: usize, words: &str| {
            if count > 0 {
                self.opens.push(format!("the policy `{name}` {words}"));
            }
        };
        opens(found.opened, "lets packets pass that were dropped");
        opens(found.kept, "keeps connections whose first packets only passed");
        if found.left_over {
            self.opens.push(format!("the policy `{name}`: {LEFT_OVER}"));
        }
        if old.policy.remembers != new.policy.remembers {
            self.opens.push(format!("the policy `{name}` remembers connections in another way"));
        }
        if found.closed + found.other > 0 {
            self.differs.push(format!("the policy `{name}` treats packets otherwise"));
        }
    }
}

/// The tables of policies that run with another number of rows than the program declares.
fn rows(takeover: &Takeover<'_>) -> Vec<(String, u64, u64)> {
    let old = takeover.old;
    let is_of_policy =
        |name: &str| old.policies.iter().any(|model| model.tables.iter().any(|own| own == name));
    let tables = old.program.tables.iter().zip(takeover.held);
    tables
        .filter(|(table, held)| is_of_policy(&table.name) && table.entries.len() as u64 != **held)
        .map(|(table, held)| (table.name.clone(), table.entries.len() as u64, *held))
        .collect()
}

/// What of two programs differs outside of the rules and hooks of their policies, in words.
fn elsewhere(old: &ReviewedProgram, new: &ReviewedProgram) -> Vec<String> {
    let mut found = Vec::new();
    let is_program = |name: &str| name.ends_with(".rav");
    let files = |program: &ReviewedProgram| -> Vec<(String, Vec<String>)> {
        let files = program.sources.iter().filter(|(_, file)| is_program(&file.name));
        files.map(|(_, file)| (file.name.clone(), outside_of_rules(&file.text))).collect()
    };
    let (before, after) = (files(old), files(new));
    for (name, words) in &after {
        if !before.iter().any(|(other, own)| other == name && own == words) {
            found.push(format!("{name} changes elsewhere than in rules of policies"));
        }
    }
    if before.len() != after.len() {
        found.push("the program has other modules".to_owned());
    }
    let is_of_policy = |program: &ReviewedProgram, name: &str| {
        program.policies.iter().any(|model| model.tables.iter().any(|own| own == name))
    };
    for table in new.program.tables.iter().filter(|table| !is_of_policy(new, &table.name)) {
        let before = old.program.tables.iter().find(|before| before.name == table.name);
        let is_same = |before: &ir::Table| before.entries == table.entries && before.default == table.default;
        if !before.is_some_and(is_same) {
            found.push(format!("the table `{}` has other entries", table.name));
        }
    }
    let members = |program: &ReviewedProgram| -> Vec<_> {
        program.program.groups.iter().map(|group| (group.name.clone(), group.members.clone())).collect()
    };
    if members(old) != members(new) {
        found.push("groups have other members".to_owned());
    }
    found
}

/// The words of a program, but for its comments and tests and the groups and hooks of its policies.
fn outside_of_rules(text: &str) -> Vec<String> {
    let file = FileId::default();
    let (tree, _) = parse(file, text);
    let mut inside: Vec<Span> = Vec::new();
    for item in &tree.items {
        match item {
            Item::Test(test) => inside.push(test.span),
            Item::Policy(policy) => {
                inside.extend(policy.groups.iter().map(|group| group.span));
                // A hook without a group takes its rules from a file.
                let hooks = policy.hooks.iter().filter(|hook| hook.group.is_some());
                inside.extend(hooks.map(|hook| hook.span));
            }
            _ => {}
        }
    }
    // No two of them share a word, so at most the last one that begins before a word holds it.
    inside.sort_unstable_by_key(|span| span.start);
    let is_outside = |token: &Token| {
        let begins = token.span.start;
        let before = inside.partition_point(|span| span.start <= begins);
        token.kind != TokenKind::Comment && inside[..before].last().is_none_or(|span| span.end <= begins)
    };
    let word =
        |token: Token| text.get(token.span.start as usize..token.span.end as usize).unwrap_or_default();
    lex(file, text).0.into_iter().filter(is_outside).map(|token| word(token).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "const A: u8 = 1
policy p(proto: u8) {
    hook in { group g default pass }
    pass => flood
    block => { count group drop no }
    group g { block proto A }
}
test \"one\" { ports 1 }
";

    #[test]
    fn only_rules_hooks_comments_and_tests_may_change() {
        let words = outside_of_rules(TEXT);
        for (from, to) in [
            ("block proto A", "pass proto 7 // seven\n"),
            ("group g {", "group h { } group g last {"),
            ("default pass", "default block"),
            ("ports 1", "ports 2"),
            ("const", "// new\nconst"),
        ] {
            assert!(TEXT.contains(from));
            assert_eq!(outside_of_rules(&TEXT.replace(from, to)), words, "{from}");
        }
        for (from, to) in [
            ("A: u8 = 1", "A: u8 = 2"),
            ("pass => flood", "pass => send 1"),
            ("drop no", "flood"),
            ("p(proto: u8)", "p(proto: u8, dscp: u6)"),
            ("hook in {", "hook out hook in {"),
        ] {
            assert!(TEXT.contains(from));
            assert_ne!(outside_of_rules(&TEXT.replace(from, to)), words, "{from}");
        }
    }
}
