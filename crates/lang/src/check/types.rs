//! Types of the language and their widths.

use std::fmt;

/// Index of an enum in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EnumId(pub usize);

/// Index of a table in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TableId(pub usize);

/// A type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// One bit with names.
    Bool,
    /// An unsigned integer of so many bits.
    Uint(u8),
    /// An IPv4 address.
    Ip4,
    /// An IPv6 address.
    Ip6,
    /// A MAC address.
    Mac,
    /// A port of the gateway.
    Port,
    /// A point or span of time in nanoseconds.
    Time,
    /// One of the members of an enum; name and width stand here so that types can be shown.
    Enum(EnumId, String, u8),
    /// A value that may be missing.
    Option(Box<Type>),
    /// Several values.
    Tuple(Vec<Type>),
    /// One of the variants of a table's value.
    Variants(TableId, String),
    /// Bytes of the packet.
    View,
    /// Stands for a type after an error; fits everything.
    Unknown,
}

impl Type {
    /// Width in bits of a scalar; `None` for what is no single number.
    pub fn width(&self) -> Option<u8> {
        match self {
            Type::Bool => Some(1),
            Type::Uint(width) | Type::Enum(_, _, width) => Some(*width),
            Type::Ip4 => Some(32),
            Type::Ip6 => Some(128),
            Type::Mac => Some(48),
            Type::Port => Some(16),
            Type::Time => Some(64),
            Type::Unknown => Some(1),
            _ => None,
        }
    }

    /// The largest value of a scalar.
    pub fn largest(&self) -> u128 {
        largest(self.width().unwrap_or(128))
    }

    /// True for types that an integer literal may stand for.
    pub fn takes_integers(&self) -> bool {
        matches!(self, Type::Uint(_) | Type::Port | Type::Enum(..) | Type::Time | Type::Unknown)
    }

    /// True for types that arithmetic works on.
    pub fn is_number(&self) -> bool {
        matches!(self, Type::Uint(_) | Type::Time | Type::Unknown)
    }

    /// True if `as` between the two is something that people mean: numbers, or an address and the number it
    /// is.
    pub fn converts_to(&self, wanted: &Type) -> bool {
        let number = |ty: &Type| matches!(ty, Type::Uint(_) | Type::Port | Type::Enum(..) | Type::Time);
        let address = matches!(self, Type::Ip4 | Type::Ip6 | Type::Mac);
        number(self) && number(wanted)
            || address && matches!(wanted, Type::Uint(_)) && self.width() == wanted.width()
    }

    /// True if values of both may be compared or assigned.
    pub fn fits(&self, other: &Type) -> bool {
        match (self, other) {
            (Type::Unknown, _) | (_, Type::Unknown) => true,
            (Type::Option(a), Type::Option(b)) => a.fits(b),
            (Type::Tuple(a), Type::Tuple(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.fits(b)),
            (a, b) => a == b,
        }
    }
}

/// The type of the addresses of a prefix, the bits of the first address, and how many bits count.
pub(crate) type Prefix = (Type, u128, u8);

/// The largest value of a width.
pub fn largest(width: u8) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Bool => f.write_str("bool"),
            Type::Uint(width) => write!(f, "u{width}"),
            Type::Ip4 => f.write_str("ip4"),
            Type::Ip6 => f.write_str("ip6"),
            Type::Mac => f.write_str("mac"),
            Type::Port => f.write_str("port"),
            Type::Time => f.write_str("time"),
            Type::Enum(_, name, _) => f.write_str(name),
            Type::Option(inner) => write!(f, "{inner} or none"),
            Type::Tuple(parts) if parts.is_empty() => f.write_str("nothing"),
            Type::Tuple(parts) => {
                f.write_str("(")?;
                for (index, part) in parts.iter().enumerate() {
                    if index > 0 {
                        f.write_str(", ")?;
                    }
                    write!(f, "{part}")?;
                }
                f.write_str(")")
            }
            Type::Variants(_, table) => write!(f, "an entry of {table}"),
            Type::View => f.write_str("bytes"),
            Type::Unknown => f.write_str("unknown"),
        }
    }
}
