//! The vocabulary of ARCHITECTURE.md: words that it replaced may not come back in names of the code.

use super::{Finding, Tree, rust};
use std::collections::BTreeMap;

const RULE: &str = "glossary";
const PAGE: &str = "ARCHITECTURE.md";

/// Looks for old words in every name of every Rust file, as a part of a name too: `Letterbox`,
/// `letterbox_of`.
pub(super) fn old_words(tree: &Tree, findings: &mut Vec<Finding>) {
    let old = table(tree.text(PAGE).unwrap_or_default());
    for (path, text) in tree.ending("rs") {
        let code = rust::code_only(text);
        for (at, name) in names(&code) {
            for part in parts(name) {
                let one = part.strip_suffix("es").or(part.strip_suffix('s')).unwrap_or(&part);
                if let Some(word) = old.get(&part).or_else(|| old.get(one)) {
                    let text = format!("`{name}`: {PAGE} says {word} instead of {part}");
                    findings.push(Finding::new(path, rust::line_of(&code, at), RULE, text));
                }
            }
        }
    }
}

/// Old words with the word that stands for each: the last and the first cell of the rows under the heading
/// `## Vocabulary`.
fn table(page: &str) -> BTreeMap<String, String> {
    let mut old = BTreeMap::new();
    for (word, instead_of) in super::documents::rows(page, "## Vocabulary") {
        for name in instead_of.split('`').skip(1).step_by(2) {
            old.insert(name.to_owned(), word.to_owned());
        }
    }
    old
}

/// The names in code, each with its place.
fn names(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let inside = |character: char| character.is_ascii_alphanumeric() || character == '_';
    code.split(move |character| !inside(character))
        .filter(|name| !name.is_empty())
        .map(|name| (name.as_ptr() as usize - code.as_ptr() as usize, name))
}

/// The words that a name is made of, in small letters: those of `DeviceQueue` are `device` and `queue`.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut small = false;
    for character in name.chars() {
        if character == '_' || (character.is_ascii_uppercase() && small) {
            parts.push(String::new());
        }
        small = character.is_ascii_lowercase();
        if let Some(last) = parts.last_mut().filter(|_| character != '_') {
            last.push(character.to_ascii_lowercase());
        }
    }
    parts
}
