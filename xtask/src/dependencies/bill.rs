//! A bill of materials as CycloneDX 1.6 has it (ECMA-424): the crates that a program links, with their
//! versions, licences and checksums, and which of them needs which. It has no time and no random number, so
//! the same `Cargo.lock` always gives the same bytes.

use super::Package;
use crate::cargo::{Crate, Tree};
use anyhow::Context as _;
use serde::Deserialize;
use serde_json::{Value, json};

/// What of `Cargo.lock` is needed.
#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

/// A crate there.
#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    /// SHA-256 of its archive; nothing if it is of this repository.
    checksum: Option<String>,
}

/// The bill of what a program links.
///
/// # Errors
/// A crate of which cargo does not tell.
pub(super) fn bill(tree: &Tree, lock: &str, packages: &[Package]) -> anyhow::Result<Value> {
    let lock: Lock = toml::from_str(lock).context("Cargo.lock")?;
    let Tree { root, needs } = tree;
    let component = |of: &Crate| -> anyhow::Result<Value> {
        let (name, version) = of;
        let package = packages.iter().find(|package| package.name == *name && package.version == *version);
        let package = package.with_context(|| format!("cargo does not tell of {name} {version}"))?;
        let locked = lock.package.iter().find(|locked| locked.name == *name && locked.version == *version);
        let checksum = locked.and_then(|locked| locked.checksum.as_ref());
        // What slashes mean is said in words where the standard has none.
        let license =
            package.license.as_ref().map(|license| license.replace(" / ", " OR ").replace('/', " OR "));
        let mut component = json!({
            "type": if of == root { "application" } else { "library" },
            "bom-ref": reference(of),
            "name": name,
            "version": version,
            "purl": reference(of),
        });
        if let Some(license) = license {
            component["licenses"] = json!([{"expression": license}]);
        }
        if let Some(checksum) = checksum {
            component["hashes"] = json!([{"alg": "SHA-256", "content": checksum}]);
        }
        Ok(component)
    };
    let components: Vec<Value> =
        needs.keys().filter(|of| *of != root).map(component).collect::<Result<_, _>>()?;
    let dependencies: Vec<Value> = needs
        .iter()
        .map(|(of, needs)| {
            json!({"ref": reference(of), "dependsOn": needs.iter().map(reference).collect::<Vec<_>>()})
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(root)?},
        "components": components,
        "dependencies": dependencies,
    }))
}

/// The name that a crate has for others (Package URL, type `cargo`).
fn reference(of: &Crate) -> String {
    format!("pkg:cargo/{}@{}", of.0, of.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str = "0core v0.1.0 (/a/core)\n1one v1.2.3\n2two v0.2.0\n1two v0.2.0\n1derive v1.0.0 (proc-macro)\n1both v0.1.0 (/a/both)\n2one v1.2.3 (*)\n";
    const LOCK: &str = "version = 4\n[[package]]\nname = \"one\"\nversion = \"1.2.3\"\nchecksum = \"ab\"\n\
                        [[package]]\nname = \"core\"\nversion = \"0.1.0\"\n";

    fn packages() -> Vec<Package> {
        let package = |name: &str, version: &str, license: &str| Package {
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: None,
        };
        vec![
            package("core", "0.1.0", "MIT OR Apache-2.0"),
            package("both", "0.1.0", "MIT"),
            package("one", "1.2.3", "MIT/Apache-2.0"),
            package("two", "0.2.0", "ISC"),
        ]
    }

    #[test]
    fn each_crate_stands_there_once_with_what_it_needs() {
        let bill =
            bill(&Tree::read(TREE).expect("it is a tree"), LOCK, &packages()).expect("it is understood");
        assert_eq!(bill["metadata"]["component"]["purl"], "pkg:cargo/core@0.1.0");
        let names: Vec<&str> = bill["components"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|one| one["name"].as_str())
            .collect();
        assert_eq!(names, ["both", "one", "two"]);
        assert_eq!(bill["components"][1]["hashes"][0]["content"], "ab");
        assert_eq!(bill["components"][1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        let needs = |of: &str| {
            let all = bill["dependencies"].as_array().expect("a list");
            all.iter().find(|one| one["ref"] == of).map(|one| one["dependsOn"].clone()).expect("it is there")
        };
        let url = |name: &str| format!("pkg:cargo/{name}");
        assert_eq!(
            needs("pkg:cargo/core@0.1.0"),
            json!([url("both@0.1.0"), url("one@1.2.3"), url("two@0.2.0")])
        );
        // What was shown before is not shown again, and is needed all the same.
        assert_eq!(needs("pkg:cargo/both@0.1.0"), json!([url("one@1.2.3")]));
        assert_eq!(needs("pkg:cargo/one@1.2.3"), json!([url("two@0.2.0")]));
        assert_eq!(needs("pkg:cargo/two@0.2.0"), json!([]));
    }

    #[test]
    fn a_crate_of_which_nothing_is_known_is_refused() {
        let tree = Tree::read("0core v0.1.0\n1nobody v9.0.0\n").expect("it is a tree");
        assert!(bill(&tree, LOCK, &packages()).is_err());
    }
}
