//! What a bundle holds once it is believed: a program, what it may be used for and until when, and the rights
//! of `control`; and its one encoding.

use crate::cbor::Reader;
use crate::limits;
use crate::refusal::BundleRefusal;
use crate::rights::TableRight;
use std::fmt;

/// The number of the format, which is the first field. A change that older readers would misread gets
/// another.
pub(crate) const FORMAT: u64 = 1;

/// A version of the engine. The first number that differs decides which is the newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EngineVersion {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
    /// The third number.
    pub patch: u32,
}

impl EngineVersion {
    /// That of the engine that this is built with.
    pub const OWN: Self = Self {
        major: number(env!("CARGO_PKG_VERSION_MAJOR")),
        minor: number(env!("CARGO_PKG_VERSION_MINOR")),
        patch: number(env!("CARGO_PKG_VERSION_PATCH")),
    };
}

/// A number of a version, while this is built.
const fn number(digits: &str) -> u32 {
    match u32::from_str_radix(digits, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version has three numbers"),
    }
}

impl fmt::Display for EngineVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// A policy as administrators sign it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedPolicy {
    /// The name of the only gateway that may accept it.
    pub gateway: String,
    /// Its version, at least 1. A gateway accepts only versions above the newest one that it has accepted.
    pub version: u64,
    /// The first second at which it may be accepted, in Unix time.
    pub not_before: u64,
    /// The first second at which it may no longer be accepted, in Unix time; above `not_before`.
    pub expiry: u64,
    /// The oldest engine that may accept it.
    pub engine: EngineVersion,
    /// The program with the entries of its tables: the text of its IR.
    pub program: String,
    /// What `control` may change, in ascending order of the tables' names, each table once.
    pub rights: Vec<TableRight>,
}

impl SignedPolicy {
    /// Reads a payload, whose first byte stands at `start` in the bundle. There is one encoding of each
    /// policy, and this reads no other.
    pub(crate) fn read(payload: &[u8], start: usize) -> Result<Self, BundleRefusal> {
        let reader = &mut Reader::new(payload, start);
        reader.map_of(8, "a payload of eight fields")?;
        reader.field(1)?;
        reader.exactly(&[FORMAT as u8], "format 1, the only one that this engine knows")?;
        reader.field(2)?;
        let gateway = name(reader, "the name of a gateway")?;
        reader.field(3)?;
        let at = reader.at();
        let version = reader.unsigned("the version", u64::MAX)?;
        if version == 0 {
            return Err(BundleRefusal::Malformed { at, what: "a version of at least 1" });
        }
        reader.field(4)?;
        let not_before = reader.unsigned("the first second", u64::MAX)?;
        reader.field(5)?;
        let at = reader.at();
        let expiry = reader.unsigned("the second of expiry", u64::MAX)?;
        if expiry <= not_before {
            return Err(BundleRefusal::Malformed { at, what: "an expiry after the first second" });
        }
        reader.field(6)?;
        let engine = read_engine(reader)?;
        reader.field(7)?;
        let program = reader.text("the length of the program in bytes", limits::PROGRAM_BYTES)?.to_owned();
        reader.field(8)?;
        let rights = read_rights(reader)?;
        reader.end()?;
        Ok(Self { gateway, version, not_before, expiry, engine, program, rights })
    }
}

fn read_engine(reader: &mut Reader<'_>) -> Result<EngineVersion, BundleRefusal> {
    reader.array_of(3, "three numbers of an engine's version")?;
    let mut number = || reader.unsigned("a number of an engine's version", u64::from(u32::MAX));
    Ok(EngineVersion { major: number()? as u32, minor: number()? as u32, patch: number()? as u32 })
}

fn read_rights(reader: &mut Reader<'_>) -> Result<Vec<TableRight>, BundleRefusal> {
    let count = reader.array("the number of rights", limits::RIGHTS)?;
    let mut rights: Vec<TableRight> = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.at();
        let right = TableRight::read(reader)?;
        if rights.last().is_some_and(|before| before.table >= right.table) {
            return Err(BundleRefusal::Malformed {
                at,
                what: "rights in ascending order of their tables' names",
            });
        }
        rights.push(right);
    }
    Ok(rights)
}

/// Whether this is a name: visible characters of ASCII, of which a terminal obeys none.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=limits::NAME_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Reads a name.
pub(crate) fn name(reader: &mut Reader<'_>, what: &'static str) -> Result<String, BundleRefusal> {
    let at = reader.at();
    let text = reader.text(what, limits::NAME_BYTES)?;
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(BundleRefusal::Malformed { at, what: "a name of visible characters of ASCII" })
    }
}
