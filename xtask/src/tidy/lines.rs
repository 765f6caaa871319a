//! Rules about the length of lines that people read: comments, code of programs, and paragraphs of Markdown.

use super::language::without_programs_tests;
use super::{Finding, Tree};

/// Columns of a comment line, which is a line of code too.
const COMMENT: usize = 110;

/// Columns of a line of a program or module: no formatter breaks it.
const PROGRAM: usize = 120;

/// Columns of a line of a Markdown paragraph or list.
const PARAGRAPH: usize = 120;

/// What stands in a fence (a diagram, output, code), rows of tables and single words may be wider: they
/// cannot be broken.
pub(super) fn lengths(tree: &Tree, findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("rs") {
        let comments = text.lines().map(|line| line.trim_start().starts_with("//").then_some(line));
        long(path, comments, COMMENT, |line| line.trim_start().trim_start_matches(['/', '!']), findings);
    }
    for (path, text) in super::layout::programs(tree) {
        let is_comment = |line: &&str| line.trim_start().starts_with("//");
        let comments = text.lines().map(|line| Some(line).filter(is_comment));
        long(path, comments, COMMENT, |line| line.trim_start().trim_start_matches('/'), findings);
        let code =
            without_programs_tests(text).lines().map(|line| Some(line).filter(|line| !is_comment(line)));
        long(path, code, PROGRAM, |line| line, findings);
    }
    for (path, text) in tree.ending("md") {
        long(path, text.lines().map(Some), PARAGRAPH, |line| line, findings);
    }
}

/// Reports lines that are too long outside fences; `inside` takes away the comment's mark.
fn long<'a>(
    path: &str,
    lines: impl Iterator<Item = Option<&'a str>>,
    most: usize,
    inside: impl Fn(&str) -> &str,
    findings: &mut Vec<Finding>,
) {
    let mut is_fenced = false;
    for (number, line) in (1..).zip(lines) {
        let Some(line) = line else {
            is_fenced = false;
            continue;
        };
        let words = inside(line).trim_start();
        if words.starts_with("```") {
            is_fenced = !is_fenced;
        }
        let columns = line.chars().count();
        if columns > most && words.contains(' ') && !is_fenced && !words.starts_with('|') {
            let text = format!("{columns} columns, at most {most} are allowed: break the line");
            findings.push(Finding::new(path, number, "line", text));
        }
    }
}
