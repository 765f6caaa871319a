//! Counts the lines and unsafe blocks of the files that a program was compiled from.

use crate::tidy::rust::{code_only, is_test_file, without_tests, words};
use anyhow::{Context as _, ensure};
use std::collections::BTreeMap;
use std::path::Path;

/// What a file has: without tests, comments and blank lines. What a feature leaves out of a file that is
/// compiled counts, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) lines: usize,
    pub(super) unsafe_blocks: usize,
}

impl Counted {
    fn of(text: &str) -> Counted {
        let text = without_tests(text);
        let line = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let code = code_only(text);
        let after = |at: usize| code[at + "unsafe".len()..].trim_start();
        let block = |at: &usize| after(*at).starts_with('{') || after(*at).starts_with("impl");
        Counted {
            lines: text.lines().filter(line).count(),
            unsafe_blocks: words(&code, "unsafe").filter(block).count(),
        }
    }
}

/// Our files that a program was compiled from, by the list that cargo has written beside it (The Cargo Book,
/// Build cache, Dep-info files), the largest first. Paths are from the root.
///
/// # Errors
/// The list or a file cannot be read.
pub(super) fn files(root: &Path, list: &Path) -> anyhow::Result<Vec<(String, Counted)>> {
    let read = |path: &Path| {
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
    };
    let mut files = Vec::new();
    for path in listed(&read(list)?) {
        let Ok(path) = Path::new(&path).strip_prefix(root) else { continue };
        let name = path.to_string_lossy().into_owned();
        if name.ends_with(".rs") && !is_test_file(&name) {
            files.push((name, Counted::of(&read(&root.join(path))?)));
        }
    }
    ensure!(!files.is_empty(), "{} names no file of ours", list.display());
    files.sort_by(|(name, one), (other, two)| (two.lines, name).cmp(&(one.lines, other)));
    Ok(files)
}

/// The files that a list names, in which `\ ` is a blank.
fn listed(list: &str) -> Vec<String> {
    let (_, files) = list.split_once(": ").unwrap_or_default();
    let blank = '\u{0}'.to_string();
    files.replace("\\ ", &blank).split_whitespace().map(|file| file.replace(&blank, " ")).collect()
}

/// The same by crate, the largest first.
pub(super) fn by_crate(files: &[(String, Counted)]) -> Vec<(String, Counted)> {
    let mut crates: BTreeMap<&str, Counted> = BTreeMap::new();
    for (path, counted) in files {
        let name = path.strip_prefix("crates/").and_then(|rest| rest.split('/').next()).unwrap_or(path);
        let sum = crates.entry(name).or_default();
        sum.lines += counted.lines;
        sum.unsafe_blocks += counted.unsafe_blocks;
    }
    let mut crates: Vec<_> = crates.into_iter().map(|(name, sum)| (name.to_owned(), sum)).collect();
    crates.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.lines));
    crates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_comments_and_blank_lines_are_not_counted() {
        let text = "//! A file.\n\nuse a::b;\n/// One.\nfn one() {\n    // SAFETY: why.\n    unsafe { two() }\n}\n\
                    unsafe impl Send for A {}\nunsafe fn three() {}\n\n#[cfg(test)]\nmod tests {\n    fn x() { unsafe { y() } }\n}\n";
        assert_eq!(Counted::of(text), Counted { lines: 6, unsafe_blocks: 2 });
    }

    #[test]
    fn a_list_names_files_behind_the_program() {
        assert_eq!(listed("/t/release/core: /a/b.rs /a/with\\ blank.rs\n"), ["/a/b.rs", "/a/with blank.rs"]);
        assert!(listed("").is_empty());
    }

    #[test]
    fn files_are_summed_by_their_crates() {
        let one = |lines| Counted { lines, unsafe_blocks: 1 };
        let files = [
            ("crates/a/src/lib.rs".to_owned(), one(2)),
            ("crates/b/src/lib.rs".to_owned(), one(9)),
            ("crates/a/src/x.rs".to_owned(), one(3)),
        ];
        let sums = by_crate(&files);
        assert_eq!(sums[0], ("b".to_owned(), Counted { lines: 9, unsafe_blocks: 1 }));
        assert_eq!(sums[1], ("a".to_owned(), Counted { lines: 5, unsafe_blocks: 2 }));
    }
}
