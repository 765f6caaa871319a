//! Rules about programs and about the compiler's diagnostics.

use super::rust::{is_test_file, line_of, without_tests};
use super::{Finding, Tree};
use std::collections::BTreeMap;

/// Every program for users and every standard module begins with a comment that says what it does; programs
/// also test themselves.
pub(super) fn programs(tree: &Tree, findings: &mut Vec<Finding>) {
    let is_read = |path: &str| path.starts_with("programs/") || path.starts_with("std/");
    for (path, text) in tree.ending("rav").filter(|(path, _)| is_read(path)) {
        if !text.starts_with("//") {
            findings.push(Finding::new(
                path,
                1,
                "program",
                "begin with a comment that says what the program does",
            ));
        }
        if path.starts_with("programs/") && !text.lines().any(|line| line.trim_start().starts_with("test \""))
        {
            findings.push(Finding::new(
                path,
                0,
                "program",
                "has no `test \"…\"`: show what it does on a packet",
            ));
        }
    }
}

/// The text of a program up to its first test. Tests are data: they hold packets, one a line.
pub(super) fn without_programs_tests(text: &str) -> &str {
    let tests = text.match_indices("\ntest \"").next();
    tests.map_or(text, |(at, _)| &text[..=at])
}

/// Every diagnostic code has an explanation, and no explanation is left without its code. Explanations are
/// the sections of `crates/lang/src/explain/*.md`; a code begins the heading of its section.
pub(super) fn diagnostics(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut used = BTreeMap::new();
    for (path, text) in tree.ending("rs").filter(|(path, _)| path.starts_with("crates/lang/src/")) {
        if is_test_file(path) {
            continue;
        }
        for (at, code) in codes_in(without_tests(text)) {
            used.entry(code).or_insert((path, line_of(text, at)));
        }
    }
    let mut explained = BTreeMap::new();
    for (path, text) in tree.ending("md").filter(|(path, _)| path.starts_with("crates/lang/src/explain/")) {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some((code, _)) = line.strip_prefix("## ").and_then(|heading| heading.split_once(": ")) {
                explained.insert(code, (path, number));
            }
        }
    }
    let missing = used.iter().filter(|(code, _)| !explained.contains_key(*code));
    findings.extend(missing.map(|(code, (path, line))| {
        Finding::new(path, *line, "diagnostic", format!("`{code}` has no explanation for `ravelin explain`"))
    }));
    let left = explained.iter().filter(|(code, _)| !used.contains_key(*code));
    findings.extend(left.map(|(code, (path, line))| {
        Finding::new(path, *line, "diagnostic", format!("`{code}` is explained, but nothing reports it"))
    }));
}

/// String literals of the form `"E0412"` or `"W0001"`, with their positions.
fn codes_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices('"').filter_map(|(at, _)| {
        let code = text.get(at + 1..at + 6)?;
        let is_code = code.starts_with(['E', 'W']) && code[1..].bytes().all(|b| b.is_ascii_digit());
        (is_code && text.as_bytes().get(at + 6) == Some(&b'"')).then_some((at, code))
    })
}
