//! Files in TOML for `ravelin bundle`: what is to be signed, and whose signatures count.

use crate::failure::Failure;
use crate::program;
use bundle::{EngineVersion, KeyPrefix, SignedPolicy, TableRight, Trust};
use ir::{print::print, read::read, verify::verify};
use lang::pipeline::CompileOptions;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The file that `sign` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PolicyFile {
    gateway: String,
    version: u64,
    not_before: String,
    expiry: String,
    engine: Option<String>,
    /// A program, or the text of its IR, beside the file.
    program: PathBuf,
    #[serde(default)]
    rights: BTreeMap<String, RightFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RightFile {
    prefixes: Vec<String>,
    most_entries: u32,
    changes_per_second: u32,
}

/// The file that `verify` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustFile {
    gateway: String,
    threshold: usize,
    keys: BTreeMap<String, String>,
}

fn parsed<T: DeserializeOwned>(path: &Path, text: &[u8]) -> Result<T, Failure> {
    let told = |what: &dyn std::fmt::Display| Failure::Finding(format!("{}: {what}", path.display()));
    let text = std::str::from_utf8(text).map_err(|_| told(&"it is neither text nor a bundle"))?;
    toml::from_str(text).map_err(|error| told(&error))
}

/// The policy that a file describes.
pub(super) fn policy(path: &Path, text: &[u8], json: bool) -> Result<SignedPolicy, Failure> {
    let file: PolicyFile = parsed(path, text)?;
    let told = |what: String| Failure::Finding(format!("{}: {what}", path.display()));
    let engine = match &file.engine {
        Some(text) => {
            engine(text).ok_or_else(|| told(format!("engine: {text} is no version such as 1.2.3")))?
        }
        None => EngineVersion::OWN,
    };
    let mut rights = Vec::new();
    for (table, right) in file.rights {
        let mut prefixes = Vec::new();
        for text in &right.prefixes {
            let what =
                format!("rights.{table}: {text} is no prefix such as 10.0.0.0/8, with zeros behind it");
            prefixes.push(prefix(text).ok_or_else(|| told(what))?);
        }
        prefixes.sort_unstable();
        let RightFile { most_entries, changes_per_second, .. } = right;
        rights.push(TableRight { table, prefixes, most_entries, changes_per_second });
    }
    Ok(SignedPolicy {
        gateway: file.gateway,
        version: file.version,
        not_before: seconds(&file.not_before).map_err(|error| told(format!("not_before: {error}")))?,
        expiry: seconds(&file.expiry).map_err(|error| told(format!("expiry: {error}")))?,
        engine,
        program: ir_text(&path.with_file_name("").join(file.program), json)?,
        rights,
    })
}

/// The text of the IR of a program, whose tables are filled; or such a text, which is looked through.
fn ir_text(path: &Path, json: bool) -> Result<String, Failure> {
    if path.extension().is_some_and(|extension| extension == "rav") {
        return Ok(print(&program::ready(path, &CompileOptions::default(), json)?.program));
    }
    let text = program::read(path)?;
    let told = |what: String| Failure::Finding(format!("{}: {what}", path.display()));
    let program = read(&text).map_err(|error| told(error.to_string()))?;
    match verify(&program) {
        Ok(()) => Ok(text),
        Err(errors) => {
            Err(told(errors.first().map_or_else(|| "refused".to_owned(), |error| error.to_string())))
        }
    }
}

/// The trust that a file describes.
pub(super) fn trust(path: &Path, text: &[u8]) -> Result<Trust, Failure> {
    let file: TrustFile = parsed(path, text)?;
    let told = |what: String| Failure::Finding(format!("{}: {what}", path.display()));
    Trust::of_digits(&file.gateway, &file.keys, file.threshold).map_err(|error| told(error.to_string()))
}

fn engine(text: &str) -> Option<EngineVersion> {
    let parts: Vec<u32> = text.split('.').map(str::parse).collect::<Result<_, _>>().ok()?;
    let [major, minor, patch] = parts[..] else { return None };
    Some(EngineVersion { major, minor, patch })
}

/// A time such as 2027-01-31T12:00:00Z in Unix time.
pub(super) fn seconds(text: &str) -> Result<u64, String> {
    let time = humantime::parse_rfc3339(text)
        .map_err(|error| format!("{text} is no time such as 2027-01-31T12:00:00Z: {error}"))?;
    time.duration_since(UNIX_EPOCH).map(|since| since.as_secs()).map_err(|_| format!("{text} is before 1970"))
}

/// A prefix of IPv4 or IPv6 addresses.
fn prefix(text: &str) -> Option<KeyPrefix> {
    let (address, length) = text.split_once('/')?;
    let length = length.parse().ok()?;
    match address.parse().ok()? {
        IpAddr::V4(address) => KeyPrefix::new(32, length, u128::from(address.to_bits())),
        IpAddr::V6(address) => KeyPrefix::new(128, length, address.to_bits()),
    }
}

/// A prefix as people read it: one of addresses where the key is as wide as an address.
pub(super) fn prefix_text(prefix: KeyPrefix) -> String {
    let (width, length, bits) = (prefix.width(), prefix.length(), prefix.bits());
    match width {
        // Lossless: the key has 32 bits.
        32 => format!("{}/{length}", Ipv4Addr::from_bits(bits as u32)),
        128 => format!("{}/{length}", Ipv6Addr::from_bits(bits)),
        _ => format!("{bits:#x}/{length} of {width} bits"),
    }
}
