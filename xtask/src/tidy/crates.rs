//! Dependency arrows between our crates: what ARCHITECTURE.md's table says is what the manifests have, no
//! more and no less.

use super::{Finding, Tree};
use std::collections::{BTreeMap, BTreeSet};

const RULE: &str = "arrows";
const PAGE: &str = "ARCHITECTURE.md";

/// Crates that hold experiments and tests: only the binary and each other may build on them, in tests as
/// well.
const ABOVE_PRODUCT: [&str; 2] = ["lab", "suite"];
const MAY_BUILD_ON_THEM: [&str; 4] = ["cli", "lab", "suite", "xtask"];

/// Compares the table with the manifests, crate by crate.
pub(super) fn arrows(tree: &Tree, findings: &mut Vec<Finding>) {
    let Some(page) = tree.text(PAGE) else {
        findings.push(Finding::new(
            PAGE,
            0,
            RULE,
            "is missing; its table of crates says which crate may use which",
        ));
        return;
    };
    let table = table(page);
    let manifests: BTreeMap<String, (&str, &str)> =
        tree.ending("toml").filter_map(|(path, text)| Some((folder(path)?, (path, text)))).collect();
    for name in table.keys().filter(|name| !manifests.contains_key(*name)) {
        findings.push(Finding::new(
            PAGE,
            0,
            RULE,
            format!("the table names `{name}`, but there is no such crate"),
        ));
    }
    for (name, (path, text)) in &manifests {
        let Ok(manifest) = text.parse::<toml::Table>() else {
            findings.push(Finding::new(path, 0, RULE, "is not valid TOML"));
            continue;
        };
        if manifest.get("package").and_then(|package| package.get("name")).and_then(toml::Value::as_str)
            != Some(name)
        {
            findings.push(Finding::new(
                path,
                0,
                RULE,
                format!("the crate in folder `{name}` must be called `{name}`"),
            ));
        }
        let Some(said) = table.get(name) else {
            findings.push(Finding::new(PAGE, 0, RULE, format!("the table lacks crate `{name}`")));
            continue;
        };
        let ours = |section: &str| -> BTreeSet<String> {
            let keys =
                manifest.get(section).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            keys.filter(|key| manifests.contains_key(*key)).cloned().collect()
        };
        let used: BTreeSet<String> =
            ours("dependencies").union(&ours("build-dependencies")).cloned().collect();
        for other in used.difference(said) {
            let text = format!("`{name}` may not depend on `{other}`: {PAGE} does not say so");
            findings.push(Finding::new(path, 0, RULE, text));
        }
        for other in said.difference(&used) {
            findings.push(Finding::new(
                PAGE,
                0,
                RULE,
                format!("says `{name}` depends on `{other}`, which it does not"),
            ));
        }
        for other in ours("dev-dependencies").iter().filter(|other| ABOVE_PRODUCT.contains(&other.as_str())) {
            if !MAY_BUILD_ON_THEM.contains(&name.as_str()) {
                let text =
                    format!("`{name}` may not use `{other}`, not even in tests: it lies above the product");
                findings.push(Finding::new(path, 0, RULE, text));
            }
        }
    }
}

/// The crate whose manifest this is: the folder under `crates/`, or `xtask`.
fn folder(path: &str) -> Option<String> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", name, "Cargo.toml"] | [name @ "xtask", "Cargo.toml"] => Some(name.to_owned()),
        _ => None,
    }
}

/// Rows of the table under the heading `## Crates`: the first cell is the crate, the last one what it depends
/// on.
fn table(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    super::documents::rows(page, "## Crates")
        .filter_map(|(name, others)| {
            let name = name.strip_prefix('`')?.strip_suffix('`')?;
            let others = others.split(',').map(|cell| cell.trim().trim_matches('`').to_owned());
            Some((name.to_owned(), others.filter(|other| !matches!(other.as_str(), "" | "–")).collect()))
        })
        .collect()
}
