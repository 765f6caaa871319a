//! Which crates a program links: by what cargo says of its tree, and by the symbols that it holds.

use crate::cargo::tree;
use std::path::Path;

/// Crates that the core does without: the beginnings of their names, each with a `-` or `_` or nothing behind
/// it. `miniz_oxide` is none of them: the standard library holds it, for its traces of panics.
const FORBIDDEN: [&str; 35] = [
    // Native code.
    "cranelift",
    "regalloc2",
    "wasmtime",
    // Devices.
    "cl3",
    "cudarc",
    "dlopen2",
    "gpu",
    "libloading",
    "offload",
    "opencl",
    "opencl3",
    // Captures, and files that are read.
    "captures",
    "flate2",
    "pcap",
    "rand",
    "ruzstd",
    // Texts.
    "clap",
    "import",
    "lang",
    "policy",
    "serde_json",
    "toml",
    "toml_edit",
    "winnow",
    // The network of the machine.
    "client",
    "gateway",
    "http",
    "httparse",
    "hyper",
    "netlink",
    "prometheus",
    "rustls",
    "snow",
    "tokio",
    "tunnel",
];

/// Forbidden crates of which `ravelin` holds code.
pub(super) const MUST_SEE: [&str; 8] =
    ["captures", "cl3", "cranelift_codegen", "flate2", "gateway", "lang", "offload", "toml"];

/// The crates that a program links, itself among them, sorted.
///
/// # Errors
/// Cargo cannot tell.
pub(super) fn crates(root: &Path, package: &str) -> anyhow::Result<Vec<String>> {
    Ok(tree(root, package)?.needs.into_keys().map(|(name, _)| name).collect())
}

/// Those of these crates that the core does without.
pub(super) fn forbidden(crates: &[String]) -> impl Iterator<Item = &str> {
    crates.iter().map(String::as_str).filter(|name| is_forbidden(name))
}

fn is_forbidden(name: &str) -> bool {
    FORBIDDEN.iter().any(|beginning| {
        name.strip_prefix(beginning).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
    })
}

/// The forbidden crates of which a program holds code, by the names in its table of symbols; `None` if it has
/// no such table, in which the core itself would stand.
///
/// The names of Rust have those of crates with their lengths before them, in both forms of them
/// (The rustc book, Symbol Mangling): `_ZN12ravelin_core3run…`, `_RNvCs…_12ravelin_core3run`.
pub(super) fn symbols(program: &[u8]) -> Option<Vec<String>> {
    let mut names: Vec<String> = program
        .split(|byte| !byte.is_ascii_graphic())
        .filter_map(|word| std::str::from_utf8(word).ok())
        .filter(|word| word.starts_with("_ZN") || word.starts_with("_R"))
        .filter_map(crate_of)
        .collect();
    names.sort_unstable();
    names.dedup();
    if names.is_empty() {
        return None;
    }
    names.retain(|name| is_forbidden(name));
    Some(names)
}

/// The crate that a name begins with.
fn crate_of(symbol: &str) -> Option<String> {
    // In the newer form a path begins with `C`, a number of the crate, and `_`.
    let rest = match symbol.strip_prefix("_ZN") {
        Some(rest) => rest,
        None => symbol.split_once("Cs")?.1.split_once('_')?.1,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (length, rest) = rest.split_at(digits);
    let name = rest.strip_prefix('_').unwrap_or(rest).get(..length.parse().ok()?)?;
    // The older form has paths of traits as `_$LT$lang..ast..Type$u20$as$u20$…`.
    let name = name.trim_start_matches(['_', '$']).trim_start_matches("LT$").trim_start_matches("RF$");
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    Some(name[..end].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_are_forbidden_by_whole_words_of_their_names() {
        for name in
            ["cranelift-codegen", "cranelift_jit", "toml", "rand_pcg", "netlink-sys", "lang", "opencl3"]
        {
            assert!(is_forbidden(name), "{name}");
        }
        for name in ["landlock", "language", "import2", "exec", "random", "policyless"] {
            assert!(!is_forbidden(name), "{name}");
        }
    }

    #[test]
    fn crates_are_seen_in_symbols_of_both_forms() {
        for (symbol, name) in [
            ("_ZN17cranelift_codegen3isa6lookup17h0123456789abcdefE", "cranelift_codegen"),
            ("_ZN53_$LT$lang..ast..Type$u20$as$u20$core..fmt..Debug$GT$3fmt17h0E", "lang"),
            ("_RNvCs1234_17cranelift_codegen6lookup", "cranelift_codegen"),
            ("_RNvMs0_Cs7_4lang3abc", "lang"),
        ] {
            assert_eq!(crate_of(symbol).as_deref(), Some(name), "{symbol}");
        }
        let program = b"\x7fELF\0_ZN4lang5parse17h0E\0_ZN12ravelin_core3run17h0E\0_ZN4lang3run17h1E\0";
        assert_eq!(symbols(program), Some(vec!["lang".to_owned()]));
        assert_eq!(symbols(b"\x7fELF\0_ZN12ravelin_core3run17h0E\0"), Some(Vec::new()));
        assert_eq!(symbols(b"\x7fELF\0lang toml cranelift"), None, "a program without symbols says nothing");
    }
}
