//! What the generators know of a program: types, layouts, tables, and where packets go.

use crate::random::SuiteRandom;

/// A type of the language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GeneratedType {
    /// `u1` to `u128`.
    Uint(u8),
    /// `bool`.
    Bool,
    /// `ip4`.
    Ip4,
    /// `ip6`.
    Ip6,
    /// `mac`.
    Mac,
    /// `port`.
    Port,
    /// `time`.
    Time,
    /// The enum of this number.
    Enum(usize),
}

/// How many enums a program has.
pub(super) const ENUMS: usize = 2;

/// The width of every generated enum, in bits.
const ENUM_WIDTH: u8 = 8;

impl GeneratedType {
    /// Width in bits.
    pub fn width(&self) -> u8 {
        match self {
            GeneratedType::Uint(width) => *width,
            GeneratedType::Bool => 1,
            GeneratedType::Ip4 => 32,
            GeneratedType::Ip6 => 128,
            GeneratedType::Mac => 48,
            GeneratedType::Port => 16,
            GeneratedType::Time => 64,
            GeneratedType::Enum(_) => ENUM_WIDTH,
        }
    }

    /// As programs write it.
    pub fn text(&self) -> String {
        match self {
            GeneratedType::Uint(width) => format!("u{width}"),
            GeneratedType::Bool => "bool".to_string(),
            GeneratedType::Ip4 => "ip4".to_string(),
            GeneratedType::Ip6 => "ip6".to_string(),
            GeneratedType::Mac => "mac".to_string(),
            GeneratedType::Port => "port".to_string(),
            GeneratedType::Time => "time".to_string(),
            GeneratedType::Enum(number) => format!("e{number}"),
        }
    }

    /// True for types that arithmetic works on.
    pub(super) fn is_number(&self) -> bool {
        matches!(self, GeneratedType::Uint(_) | GeneratedType::Time)
    }

    /// Any type.
    pub(super) fn any(random: &mut SuiteRandom) -> GeneratedType {
        match random.below(14) {
            0 => GeneratedType::Bool,
            1 => GeneratedType::Ip4,
            2 => GeneratedType::Ip6,
            3 => GeneratedType::Mac,
            4 => GeneratedType::Port,
            5 => GeneratedType::Time,
            6 => GeneratedType::Enum(random.below(ENUMS as u64) as usize),
            7 => GeneratedType::Uint(random.between(1, 128) as u8),
            _ => GeneratedType::Uint(
                *random.pick(&[1, 3, 4, 7, 8, 8, 9, 12, 16, 16, 31, 32, 33, 48, 63, 64, 65, 100, 127, 128]),
            ),
        }
    }
}

/// A layout.
#[derive(Clone, Debug, Default)]
pub struct GeneratedLayout {
    /// Its name.
    pub name: String,
    /// Its fields; the first is eight bits wide and selects what follows.
    pub fields: Vec<GeneratedField>,
    /// The field that a pseudo header is made of.
    pub pseudo: Option<usize>,
}

/// A field of a layout.
#[derive(Clone, Debug)]
pub struct GeneratedField {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: FieldKind,
    /// The smallest and the largest value that decoders accept.
    pub constraint: Option<(u128, u128)>,
    /// It is there only if the field of this number is greater than the value.
    pub when: Option<(usize, u128)>,
    /// Sizes or conditions depend on it.
    pub shapes: bool,
    /// What the checksum in it covers, as programs write it.
    pub covers: Option<&'static str>,
}

/// What a field is.
#[derive(Clone, Debug)]
pub enum FieldKind {
    /// A number; the second part says that it is a `length of`.
    Scalar(GeneratedType, bool),
    /// One name a bit.
    Flags(Vec<String>),
    /// As many bytes as the field of this number times the factor, less the last.
    Bytes(usize, u128, u128),
}

impl GeneratedField {
    /// Its width in bits; none for bytes.
    pub fn width(&self) -> Option<u8> {
        match &self.kind {
            FieldKind::Scalar(ty, _) => Some(ty.width()),
            FieldKind::Flags(names) => Some(names.len() as u8),
            FieldKind::Bytes(..) => None,
        }
    }

    /// Its type if it can be read anywhere as a single value.
    pub(super) fn plain(&self) -> Option<GeneratedType> {
        match (&self.kind, &self.when) {
            (FieldKind::Scalar(ty, _), None) => Some(ty.clone()),
            (FieldKind::Flags(names), None) => Some(GeneratedType::Uint(names.len() as u8)),
            _ => None,
        }
    }
}

/// What entries of a table hold.
#[derive(Clone, Debug)]
pub(super) enum Holds {
    Nothing,
    Values(Vec<GeneratedType>),
    Variants(Vec<(String, Vec<GeneratedType>)>),
}

/// A table.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) keys: Vec<GeneratedType>,
    pub(super) holds: Holds,
    /// Packets may write it.
    pub(super) dynamic: bool,
    /// Writes need an `else`.
    pub(super) refuses: bool,
    /// Its `age` in milliseconds, which bounds the times that entries have of their own.
    pub(super) age: Option<u64>,
}

/// A decoder or stage.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// A decoder's header name and layout.
    pub header: Option<(String, usize)>,
    /// Nodes it may go to; a decoder goes to those by the value of its header's first field, counted from 1.
    pub targets: Vec<usize>,
    pub(super) params: Vec<(String, GeneratedType)>,
    pub(super) cap: Option<u64>,
    /// Headers that are decoded when a packet comes here.
    pub(super) known: Option<Vec<(String, usize)>>,
}
