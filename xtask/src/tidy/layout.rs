//! Rules about files as such: first line, length, names, leftovers.

use super::language::without_programs_tests;
use super::rust::{code_only, is_test_file, line_of, without_tests, words};
use super::{Finding, Tree};

/// The most lines a file may have, tests aside.
const HARD_CAP: usize = 700;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 8] =
    ["util", "utils", "common", "helper", "helpers", "manager", "managers", "core"];

/// Marks of unfinished work, in comments or code. Each is written in two parts, so that this file does not
/// hold it.
const MARKERS: [&str; 4] =
    [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X"), concat!("HA", "CK")];

/// Code that is not meant to stay.
const LEFTOVERS: [&str; 4] =
    [concat!("todo", "!"), concat!("unimplemented", "!"), concat!("dbg", "!"), concat!("#[", "ignore")];

/// Every Rust file begins with its role.
pub(super) fn first_lines(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("rs") {
        let role = text.lines().next().and_then(|line| line.strip_prefix("//!")).map(str::trim);
        if role.is_none_or(str::is_empty) {
            findings.push(Finding::new(
                path,
                1,
                "first-line",
                "the first line must be `//!` and say the file's one role",
            ));
        }
    }
}

/// Programs and modules in the project's language, but for cases of the suite.
pub(super) fn programs(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.ending("rav").filter(|(path, _)| !path.starts_with("suite/"))
}

/// No file grows past the cap.
pub(super) fn caps(tree: &Tree, findings: &mut Vec<Finding>) {
    let rust = tree.ending("rs").filter(|(path, _)| !is_test_file(path));
    let rust = rust.map(|(path, text)| (path, without_tests(text)));
    let programs = programs(tree).map(|(path, text)| (path, without_programs_tests(text)));
    for (path, text) in rust.chain(programs) {
        let lines = text.lines().count();
        if lines > HARD_CAP {
            let text = format!("{lines} lines, at most {HARD_CAP} are allowed: split it by role");
            findings.push(Finding::new(path, 0, "cap", text));
        }
    }
}

/// No file or folder has a name that says nothing.
pub(super) fn names(tree: &Tree, findings: &mut Vec<Finding>) {
    for path in tree.paths() {
        for part in path.split('/') {
            let stem = part.split('.').next().unwrap_or(part);
            if EMPTY_NAMES.contains(&stem) {
                let text = format!("`{stem}` says nothing about what is inside: name the thing or the deed");
                findings.push(Finding::new(path, 0, "name", text));
            }
        }
    }
}

/// Nothing unfinished is left.
pub(super) fn markers(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in ["rs", "rav", "toml", "sh"].into_iter().flat_map(|ending| tree.ending(ending)) {
        for marker in MARKERS {
            for at in words(text, marker) {
                let text = format!("`{marker}` is left: do it, or open an issue");
                findings.push(Finding::new(path, line_of(tree.text(path).unwrap_or(""), at), "marker", text));
            }
        }
    }
    for (path, text) in tree.ending("rs") {
        let code = code_only(text);
        for leftover in LEFTOVERS {
            for (at, _) in code.match_indices(leftover) {
                let text = format!("`{leftover}` may not stay");
                findings.push(Finding::new(path, line_of(&code, at), "marker", text));
            }
        }
    }
}
