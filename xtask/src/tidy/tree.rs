//! The repository as the rules see it: paths, and the text of the files that are text.

use anyhow::Context;
use std::collections::BTreeMap;
use std::path::Path;

/// Folders that hold no source: build products and what tools leave behind.
const SKIPPED: [&str; 5] = [".git", "target", "corpus", "artifacts", "node_modules"];

/// Endings of files whose text is read.
const TEXT: [&str; 9] = ["rs", "md", "toml", "rav", "stf", "case", "sh", "html", "txt"];

/// Every file by its path from the root, with `/` between the parts.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
}

impl Tree {
    /// Reads the repository at `root`. Files that are not text are known by name only.
    ///
    /// # Errors
    /// A folder or file that cannot be read.
    pub(crate) fn load(root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self::default();
        tree.descend(root, "")?;
        Ok(tree)
    }

    /// Adds a file.
    #[cfg(test)]
    pub(crate) fn with(mut self, path: &str, text: &str) -> Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    /// The text of a file; empty for a file that is not text.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// True if `path` is a file or a folder with something in it.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// All paths.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Files with this ending, path and text.
    pub(crate) fn ending<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files
            .iter()
            .filter(move |(path, _)| path.strip_suffix(ending).is_some_and(|stem| stem.ends_with('.')))
            .map(|(path, text)| (path.as_str(), text.as_str()))
    }

    fn descend(&mut self, folder: &Path, prefix: &str) -> anyhow::Result<()> {
        let entries =
            std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}/{name}") };
            if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
                self.descend(&entry.path(), &path)?;
            } else if kind.is_file() {
                let is_text =
                    TEXT.iter().any(|ending| name.strip_suffix(ending).is_some_and(|s| s.ends_with('.')));
                let text = if is_text {
                    let bytes = std::fs::read(entry.path())
                        .with_context(|| format!("cannot read {}", entry.path().display()))?;
                    String::from_utf8_lossy(&bytes).into_owned()
                } else {
                    String::new()
                };
                self.files.insert(path, text);
            }
        }
        Ok(())
    }
}
