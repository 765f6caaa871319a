//! Where crates come from, and under which licences.

use super::Package;
use spdx::{Expression, ParseMode};

/// Licences under which anybody may use, change and sell what contains the crate.
const PERMISSIVE: [&str; 9] =
    ["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "ISC", "MIT", "Unicode-3.0", "Zlib"];

/// Where crates of others may come from.
const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What is wrong with some crates.
pub(super) fn check(packages: &[Package]) -> Vec<String> {
    packages.iter().filter_map(wrong).collect()
}

fn wrong(package: &Package) -> Option<String> {
    let Package { name, version, license, source } = package;
    if let Some(source) = source.as_deref().filter(|source| *source != CRATES_IO) {
        return Some(format!("{name} {version} comes from {source}, and not from crates.io"));
    }
    let Some(license) = license else {
        return Some(format!("{name} {version} does not say its licence"));
    };
    // Older crates write `/` for `OR`.
    let mode = ParseMode { allow_slash_as_or_operator: true, ..ParseMode::STRICT };
    let expression = match Expression::parse_mode(license, mode) {
        Ok(expression) => expression,
        Err(error) => return Some(format!("{name} {version}: `{license}` is no licence: {}", error.reason)),
    };
    // Exceptions only allow more.
    let permissive = expression
        .evaluate(|wanted| wanted.license.id().is_some_and(|license| PERMISSIVE.contains(&license.name)));
    (!permissive).then(|| format!("{name} {version} is under `{license}`, which does not let anybody use it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(license: Option<&str>, source: Option<&str>) -> Package {
        let (license, source) = (license.map(str::to_owned), source.map(str::to_owned));
        Package { name: "one".to_owned(), version: "1.0.0".to_owned(), license, source }
    }

    #[test]
    fn permissive_licences_of_crates_io_pass_and_no_others() {
        for license in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "Apache-2.0 WITH LLVM-exception",
            "(MIT OR ISC) AND Zlib",
        ] {
            assert_eq!(wrong(&package(Some(license), Some(CRATES_IO))), None, "{license}");
            assert_eq!(wrong(&package(Some(license), None)), None, "{license}");
        }
        for license in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "MPL-2.0", "LicenseRef-own", "free", ""] {
            assert!(wrong(&package(Some(license), Some(CRATES_IO))).is_some(), "{license}");
        }
        assert!(wrong(&package(None, None)).is_some());
        for source in ["git+https://example.org/one", "registry+https://example.org/index"] {
            assert!(wrong(&package(Some("MIT"), Some(source))).is_some(), "{source}");
        }
    }
}
