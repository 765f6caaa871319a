//! `unsafe`: only in the files that ARCHITECTURE.md lists, and each block says why it is sound.

use super::rust::{code_only, line_of, words};
use super::{Finding, Tree, documents};
use std::collections::BTreeSet;

const RULE: &str = "unsafe";
const PAGE: &str = "ARCHITECTURE.md";

/// The list and the code name the same files.
pub(super) fn places(tree: &Tree, findings: &mut Vec<Finding>) {
    let listed: BTreeSet<&str> = documents::section(tree.text(PAGE).unwrap_or(""), "## Unsafe code")
        .filter_map(|(_, line)| line.strip_prefix("- `")?.split('`').next())
        .collect();
    for file in &listed {
        if tree.text(file).is_none_or(|text| words(&code_only(text), "unsafe").next().is_none()) {
            findings.push(Finding::new(PAGE, 0, RULE, format!("lists `{file}`, which holds no unsafe code")));
        }
    }
    for (path, text) in tree.ending("rs").filter(|(path, _)| !listed.contains(path)) {
        let code = code_only(text);
        if let Some(at) = words(&code, "unsafe").next() {
            let text = format!("unsafe code in a file that {PAGE} does not list");
            findings.push(Finding::new(path, line_of(&code, at), RULE, text));
        }
    }
}

/// A `SAFETY:` comment stands above each unsafe block and implementation, with no empty line between.
pub(super) fn reasons(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("rs") {
        let code = code_only(text);
        let lines: Vec<&str> = text.lines().collect();
        for at in words(&code, "unsafe") {
            let after = code[at + "unsafe".len()..].trim_start();
            if !after.starts_with('{') && !after.starts_with("impl") {
                continue;
            }
            let line = line_of(&code, at);
            let above = lines[..line].iter().rev().take_while(|line| !line.trim().is_empty());
            if !above.take(12).any(|line| line.contains("SAFETY:")) {
                findings.push(Finding::new(
                    path,
                    line,
                    RULE,
                    "say in a `// SAFETY:` comment above why this is sound",
                ));
            }
        }
    }
}
