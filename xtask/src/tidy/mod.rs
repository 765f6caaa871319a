//! `cargo xtask tidy`: the rules of the house that a program can check.

mod circles;
mod crates;
mod documents;
mod glossary;
mod language;
mod layout;
mod lines;
mod names;
pub(crate) mod rust;
mod specification;
mod tree;
mod unsafety;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

pub(crate) use tree::Tree;

/// One breach of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    /// The file, from the root of the repository.
    pub(crate) path: String,
    /// The line, from 1; 0 where the file as a whole is meant.
    pub(crate) line: usize,
    /// The rule that was broken.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl Finding {
    fn new(path: &str, line: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, text: text.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{}]", self.text, self.rule)
    }
}

/// Checks the repository at `root` and returns every breach, sorted by place. `steps` are the names of the
/// steps of `cargo xtask test`, which the specification may name.
///
/// # Errors
/// A file that cannot be read.
pub(crate) fn check(root: &Path, steps: &[&str]) -> anyhow::Result<Vec<Finding>> {
    Ok(check_tree(&Tree::load(root)?, steps))
}

/// Every rule, in the order of CONTRIBUTING.md.
fn check_tree(tree: &Tree, steps: &[&str]) -> Vec<Finding> {
    let mut findings = Vec::new();
    layout::first_lines(tree, &mut findings);
    layout::caps(tree, &mut findings);
    layout::names(tree, &mut findings);
    layout::markers(tree, &mut findings);
    lines::lengths(tree, &mut findings);
    crates::arrows(tree, &mut findings);
    circles::small(tree, &mut findings);
    names::unique(tree, &mut findings);
    glossary::old_words(tree, &mut findings);
    unsafety::places(tree, &mut findings);
    unsafety::reasons(tree, &mut findings);
    documents::links(tree, &mut findings);
    documents::excerpts(tree, &mut findings);
    documents::packet_walk(tree, &mut findings);
    documents::changelog(tree, &mut findings);
    specification::promises(tree, steps, &mut findings);
    specification::studies(tree, steps, &mut findings);
    language::programs(tree, &mut findings);
    language::diagnostics(tree, &mut findings);
    findings.sort();
    findings
}
