//! Calls of cargo, and the tree of crates that it tells.

use anyhow::{Context as _, bail, ensure};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// A crate's name and version.
pub(crate) type Crate = (String, String);

/// The crates that a program links, and which crates each one needs.
#[derive(Debug)]
pub(crate) struct Tree {
    /// That of the program.
    pub(crate) root: Crate,
    /// What each needs; a crate that is there twice with two versions is two crates.
    pub(crate) needs: BTreeMap<Crate, BTreeSet<Crate>>,
}

/// A call of cargo, at the root of the repository.
pub(crate) fn cargo(root: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).current_dir(root);
    command
}

/// What cargo tells on its standard output.
///
/// # Errors
/// It cannot be started, or fails.
pub(crate) fn told(root: &Path, words: &[&str]) -> anyhow::Result<Vec<u8>> {
    let output = cargo(root, words).output().context("cargo")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    Ok(output.stdout)
}

/// The crates that the program of a package links where it is built alone. Crates that run only while it is
/// built are none of them.
///
/// # Errors
/// Cargo cannot tell.
pub(crate) fn tree(root: &Path, package: &str) -> anyhow::Result<Tree> {
    let words =
        ["tree", "--locked", "--package", package, "--edges", "normal,no-proc-macro", "--prefix", "depth"];
    Tree::read(&String::from_utf8(told(root, &words)?)?)
}

impl Tree {
    /// Reads what cargo has printed with depths before the names.
    ///
    /// # Errors
    /// A line that is not understood.
    pub(crate) fn read(text: &str) -> anyhow::Result<Tree> {
        let mut needs: BTreeMap<Crate, BTreeSet<Crate>> = BTreeMap::new();
        // The crates from the program's to the one before.
        let mut path: Vec<Crate> = Vec::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.contains("(proc-macro)")) {
            let digits = line.bytes().take_while(u8::is_ascii_digit).count();
            let (depth, rest) = line.split_at(digits);
            let mut words = rest.split(' ');
            let (Ok(depth), Some(name), Some(version)) =
                (depth.parse::<usize>(), words.next(), words.next().and_then(|word| word.strip_prefix('v')))
            else {
                bail!("cargo's tree has a line that is not understood: {line}");
            };
            if depth > path.len() || (depth == 0) != path.is_empty() {
                bail!("cargo's tree has a crate at a place where none can be: {line}");
            }
            path.truncate(depth);
            let of = (name.to_owned(), version.to_owned());
            if let Some(above) = path.last() {
                needs.entry(above.clone()).or_default().insert(of.clone());
            }
            needs.entry(of.clone()).or_default();
            path.push(of);
        }
        let root = path.into_iter().next().context("cargo's tree is empty")?;
        Ok(Tree { root, needs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_says_what_each_crate_needs_also_where_it_is_shown_again() {
        let text = "0core v0.1.0 (/a/core)\n1one v1.2.3\n2two v0.2.0\n1two v0.2.0\n1derive v1.0.0 (proc-macro)\n\
                    1both v0.1.0 (/a/both)\n2one v1.2.3 (*)\n";
        let tree = Tree::read(text).expect("it is understood");
        let of = |name: &str, version: &str| (name.to_owned(), version.to_owned());
        let [core, one, two, both] =
            [of("core", "0.1.0"), of("one", "1.2.3"), of("two", "0.2.0"), of("both", "0.1.0")];
        assert_eq!(tree.root, core);
        let all = [
            (both.clone(), vec![one.clone()]),
            (core, vec![both, one.clone(), two.clone()]),
            (one, vec![two.clone()]),
            (two, vec![]),
        ];
        let all = all.into_iter().map(|(of, needs)| (of, needs.into_iter().collect()));
        assert_eq!(tree.needs, all.collect());
    }

    #[test]
    fn a_tree_that_is_not_understood_is_refused() {
        for text in [
            "",
            "core v0.1.0\n",
            "0core\n",
            "0core v0.1.0\n2one v1.2.3\n",
            "0core v0.1.0\n0one v1.2.3\n",
            "1one v1.2.3\n",
        ] {
            assert!(Tree::read(text).is_err(), "{text:?}");
        }
    }
}
