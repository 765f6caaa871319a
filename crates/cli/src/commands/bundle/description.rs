//! Files in TOML for `ravelin bundle`: what is to be signed, and whose signatures count.

use crate::failure::Failure;
use crate::program;
use bundle::{EngineVersion, KeyPrefix, SignedPolicy, TableRight, Trust};
use ir::{Table, print::print, read::read, verify::verify};
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
    let (program, tables) = ir_text(&path.with_file_name("").join(file.program), json)?;
    let mut rights = Vec::new();
    for (table, right) in file.rights {
        let declared = tables.iter().find(|declared| declared.name == table);
        let width = declared.and_then(|declared| u8::try_from(declared.key_bits()).ok());
        let mut prefixes = Vec::new();
        if right.prefixes.iter().any(|text| text == "*") && width.is_none() {
            return Err(told(format!(
                "rights.{table}: `*` stands for all keys of a table, and the program has no table `{table}` with keys of at most 128 bits: correct the name, or write prefixes"
            )));
        }
        for text in &right.prefixes {
            let what = format!(
                "rights.{table}: {text} is no prefix such as 10.0.0.0/8 or `0x800/5 of 16 bits`, with zeros behind it, and not `*`, for all keys"
            );
            let all = || KeyPrefix::new(width.filter(|_| text == "*")?, 0, 0);
            prefixes.push(prefix(text).or_else(all).ok_or_else(|| told(what))?);
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
        program,
        rights,
    })
}

/// The text of the IR of a program, whose tables are filled, or such a text, which is looked through; and its
/// tables.
fn ir_text(path: &Path, json: bool) -> Result<(String, Vec<Table>), Failure> {
    if path.extension().is_some_and(|extension| extension == "rav") {
        let program = program::ready(path, &CompileOptions::default(), json)?.program;
        return Ok((print(&program), program.tables));
    }
    let text = program::read(path)?;
    let told = |what: String| Failure::Finding(format!("{}: {what}", path.display()));
    let program = read(&text).map_err(|error| told(error.to_string()))?;
    match verify(&program) {
        Ok(()) => Ok((text, program.tables)),
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

/// A prefix, as [`prefix_text`] writes it.
fn prefix(text: &str) -> Option<KeyPrefix> {
    let (address, length) = text.split_once('/')?;
    if let Some((length, width)) = length.split_once(" of ") {
        let bits = u128::from_str_radix(address.strip_prefix("0x")?, 16).ok()?;
        return KeyPrefix::new(width.strip_suffix(" bits")?.parse().ok()?, length.parse().ok()?, bits);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_as_they_are_written() {
        for (width, length, bits) in
            [(32, 8, 10 << 24), (128, 32, 0x2001_0db8 << 96), (16, 5, 0x800), (24, 0, 0)]
        {
            let key = KeyPrefix::new(width, length, bits).expect("a prefix");
            assert_eq!(prefix(&prefix_text(key)), Some(key));
        }
        for wrong in [
            "",
            "*",
            "10.0.0.0",
            "10.0.0.1/8",
            "0x801/5 of 16 bits",
            "0x800/17 of 16 bits",
            "800/5 of 16 bits",
            "0x800/5 of 16",
        ] {
            assert_eq!(prefix(wrong), None, "{wrong}");
        }
    }
}
