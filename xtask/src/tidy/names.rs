//! Names of public types: one name means one type in the whole workspace.

use super::{Finding, Tree, rust};
use std::collections::BTreeMap;

const RULE: &str = "type names";

/// Files whose types may be named alike, because they are the same thing at different steps of the compiler.
/// Code writes them with their module: `ast::Stage` is a stage as it was parsed, `hir::Stage` a checked one,
/// `ir::Stage` what is left of it for the back ends.
const FORMS: [&str; 3] = ["crates/lang/src/ast", "crates/lang/src/check/", "crates/ir/src/"];

const KINDS: [&str; 5] = ["struct", "enum", "trait", "type", "union"];

/// Looks for public types outside tests that share their name.
pub(super) fn unique(tree: &Tree, findings: &mut Vec<Finding>) {
    let mut types: BTreeMap<String, Vec<(&str, usize)>> = BTreeMap::new();
    let sources = tree.ending("rs").filter(|(path, _)| path.starts_with("crates/") && path.contains("/src/"));
    for (path, text) in sources.filter(|(path, _)| !rust::is_test_file(path)) {
        let code = rust::code_only(rust::without_tests(text));
        for (number, line) in code.lines().enumerate() {
            if let Some(name) = declared(line) {
                types.entry(name.to_owned()).or_default().push((path, number + 1));
            }
        }
    }
    for (name, places) in types {
        let mut seen: Vec<&str> = Vec::new();
        for (path, line) in places {
            let form = FORMS.into_iter().find(|form| path.starts_with(form));
            let clash = match form {
                Some(form) => seen.iter().find(|other| other.starts_with(form) || !is_form(other)),
                None => seen.first(),
            };
            if let Some(other) = clash {
                let text = format!(
                    "`{name}` is the name of a public type in {other}, too: give one of them another"
                );
                findings.push(Finding::new(path, line, RULE, text));
            }
            seen.push(path);
        }
    }
}

fn is_form(path: &str) -> bool {
    FORMS.into_iter().any(|form| path.starts_with(form))
}

/// The name of the public type that a line declares.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.trim_start().strip_prefix("pub ")?.split_whitespace();
    let kind = words.find(|word| *word != "unsafe")?;
    let name = words.next().filter(|_| KINDS.contains(&kind))?;
    let end = name.find(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    Some(&name[..end.unwrap_or(name.len())])
}
