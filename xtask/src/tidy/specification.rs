//! Rules about SPECIFICATION.md: promises are numbered, and each names a test that exists or says *pending*.

use super::rust::{code_only, defines_function};
use super::{Finding, Tree};

const PAGE: &str = "SPECIFICATION.md";
const RULE: &str = "promise";

/// Checks the numbering and every test that a promise names. `steps` are the steps of `cargo xtask test`.
pub(super) fn promises(tree: &Tree, steps: &[&str], findings: &mut Vec<Finding>) {
    let Some(text) = tree.text(PAGE) else {
        findings.push(Finding::new(PAGE, 0, RULE, "is missing"));
        return;
    };
    for (expected, promise) in (1..).zip(split(text)) {
        let mut report = |text: String| findings.push(Finding::new(PAGE, promise.line, RULE, text));
        if promise.number != expected {
            report(format!("promise {} should be number {expected}", promise.number));
        }
        let Some((_, shown)) = promise.text.split_once("Shown by:") else {
            report(format!("promise {expected} does not end in `Shown by:` with a test or *pending*"));
            continue;
        };
        let named: Vec<&str> = shown.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && !shown.contains("*pending*") {
            report(format!("promise {expected} names no test and does not say *pending*"));
        }
        for test in named.into_iter().filter(|test| !is_there(tree, steps, test)) {
            report(format!("promise {expected} names `{test}`, which does not exist"));
        }
    }
}

/// Checks every test that a page of a study says a mechanism is shown by; who says so names one in this line.
pub(super) fn studies(tree: &Tree, steps: &[&str], findings: &mut Vec<Finding>) {
    for (path, text) in tree.ending("md").filter(|(path, _)| path.starts_with("docs/studies/")) {
        for (line, content) in (1..).zip(text.lines()) {
            let Some(place) = content.to_ascii_lowercase().find("shown by") else { continue };
            let mut report = |text: String| findings.push(Finding::new(path, line, RULE, text));
            let named: Vec<&str> = content[place..].split('`').skip(1).step_by(2).collect();
            if named.is_empty() {
                report("the page says `shown by` and names no test in this line".to_owned());
            }
            for test in named.into_iter().filter(|test| !is_there(tree, steps, test)) {
                report(format!("the page names `{test}`, which does not exist"));
            }
        }
    }
}

struct Promise {
    line: usize,
    number: usize,
    text: String,
}

/// A promise begins with `12. ` at the start of a line and ends before the next one or a heading.
fn split(text: &str) -> Vec<Promise> {
    let mut promises: Vec<Promise> = Vec::new();
    let mut open = false;
    for (line, content) in (1..).zip(text.lines()) {
        let number = content.split_once(". ").and_then(|(number, _)| number.parse().ok());
        if let Some(number) = number {
            promises.push(Promise { line, number, text: String::new() });
            open = true;
        }
        open &= !content.starts_with('#');
        if let Some(promise) = promises.last_mut().filter(|_| open) {
            promise.text.push_str(content);
            promise.text.push('\n');
        }
    }
    promises
}

/// A test is named as `crate::module::tests::name`, as `path/to/file`, as `path/to/file.rs#name`, or as a
/// step: `cargo xtask test --only name`.
fn is_there(tree: &Tree, steps: &[&str], test: &str) -> bool {
    if let Some(step) = test.strip_prefix("cargo xtask test --only ") {
        return steps.contains(&step);
    }
    if let Some((file, function)) = test.split_once('#') {
        return tree.text(file).is_some_and(|text| defines_function(&code_only(text), function));
    }
    let Some((module, function)) = test.rsplit_once("::") else { return tree.exists(test) };
    let bare = module.strip_suffix("::tests").unwrap_or(module);
    tree.ending("rs").any(|(path, text)| {
        module_of(path).is_some_and(|own| own == module || own == bare)
            && defines_function(&code_only(text), function)
    })
}

/// The module path of a source file: `crates/lang/src/check/facts.rs` is `lang::check::facts`.
fn module_of(path: &str) -> Option<String> {
    let path = path.strip_prefix("crates/").unwrap_or(path).strip_suffix(".rs")?;
    let (name, inner) = path.split_once("/src/")?;
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    Some(match inner {
        "lib" | "main" | "mod" => name.to_owned(),
        inner => format!("{name}::{}", inner.replace('/', "::")),
    })
}
