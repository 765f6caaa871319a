//! How values are written in kernel text: their types, constants and conversions.
//!
//! A value of up to 32 bits is a `u32`, of up to 64 bits a `u64`, of more a `wide`; bits beyond its width are
//! zero.

use crate::arithmetic::largest;
use ir::Value;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Type {
    Word,
    Long,
    Wide,
}

impl Type {
    pub(super) fn of(width: u8) -> Type {
        match width {
            0..=32 => Type::Word,
            33..=64 => Type::Long,
            _ => Type::Wide,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Type::Word => "u32",
            Type::Long => "u64",
            Type::Wide => "wide",
        }
    }

    /// The constant zero.
    pub(super) fn zero(self) -> &'static str {
        match self {
            Type::Word | Type::Long => "0",
            Type::Wide => "wide_of(0, 0)",
        }
    }
}

/// The name of a value.
pub(super) fn name(value: Value) -> String {
    format!("v{}", value.0)
}

/// A number as a constant of the type that values of this width have.
pub(super) fn constant(width: u8, number: u128) -> String {
    match Type::of(width) {
        Type::Word => format!("{number:#x}u"),
        Type::Long => format!("{number:#x}ul"),
        Type::Wide => format!("wide_of({:#x}ul, {:#x}ul)", (number >> 64) as u64, number as u64),
    }
}

/// An expression of one type as one of another; bits that do not fit are dropped.
pub(super) fn convert(expression: &str, from: Type, to: Type) -> String {
    match (from, to) {
        (Type::Wide, Type::Word) => format!("(u32){expression}.low"),
        (Type::Wide, Type::Long) => format!("{expression}.low"),
        (Type::Word | Type::Long, Type::Wide) => format!("wide_of(0, {expression})"),
        (Type::Long, Type::Word) => format!("(u32){expression}"),
        (Type::Word, Type::Long) => format!("(u64){expression}"),
        _ => expression.to_owned(),
    }
}

/// An expression of the type that values of `width` have, truncated to that width.
pub(super) fn cut(expression: &str, width: u8) -> String {
    match (Type::of(width), width) {
        (_, 32 | 64 | 128) => expression.to_owned(),
        (Type::Wide, _) => format!("wide_and({expression}, {})", constant(width, largest(width))),
        _ => format!("({expression}) & {}", constant(width, largest(width))),
    }
}
