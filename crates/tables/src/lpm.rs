//! Longest-prefix tables: what one is asked for, what it answers, and why it may refuse.
//!
//! Two implementations give the same answers. [`LpmTable`] is the fast one: a flat image that one thread
//! changes while others look up in it through a [`LpmReader`]; [`LpmModel`] is an ordered map, easy to
//! believe, and judges the other. The idea and the bytes of the image are taught in `docs/tables/lpm.md`.

mod bulk;
mod codes;
mod dir24_8;
mod epoch;
mod image;
mod lookup;
mod model;
mod most;
mod nodes;
mod reader;
mod routes;
mod table;
mod trie;
mod vector;
#[cfg(target_arch = "x86_64")]
mod walk512;
mod words;

#[cfg(test)]
mod tests;

pub use image::{LpmImage, LpmImageError};
pub use lookup::Method;
pub use model::LpmModel;
pub use reader::{LpmReader, Pinned};
pub use table::{LpmTable, Variant};

/// The answer of the lookups that return a bare number when no prefix contains the address. A table refuses
/// it as a value.
pub const NONE: u32 = u32::MAX;
/// The widest address, in bits.
pub const MAX_WIDTH: u8 = 128;
/// The largest capacity, in prefixes.
pub const MAX_CAPACITY: usize = 1 << 26;

/// A set of addresses that begin alike: the first `length` bits of `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// The lowest address of the set, a number as wide as the table; the bits after the first `length` are
    /// zero.
    pub bits: u128,
    /// How many leading bits count, 0 to the table's width.
    pub length: u8,
}

impl Prefix {
    /// Whether `address`, of `width` bits, begins with this prefix.
    pub fn contains(&self, address: u128, width: u8) -> bool {
        (address ^ self.bits) & leading(self.length, width) == 0
    }
}

/// A number of `width` bits whose first `length` are one.
fn leading(length: u8, width: u8) -> u128 {
    let all = u128::MAX.checked_shr(u32::from(128 - width)).unwrap_or(0);
    all & !all.checked_shr(u32::from(length)).unwrap_or(0)
}

/// The shape of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LpmSpec {
    /// Bits of an address, 1 to [`MAX_WIDTH`].
    pub width: u8,
    /// The most prefixes held at once, 0 to [`MAX_CAPACITY`].
    pub capacity: usize,
}

impl LpmSpec {
    /// Bytes that a fast table of this shape, whose values are at most its capacity, comes to at most,
    /// whatever prefixes come and go and however they lie: of its image, which grows no larger, and of what
    /// its writer keeps. A shape that is refused has no bound (`u64::MAX`). While an image takes the place of
    /// another there are both.
    pub fn at_most(&self) -> u64 {
        if self.check().is_err() { u64::MAX } else { most::bytes(*self) }
    }

    fn check(&self) -> Result<(), LpmSpecError> {
        if !(1..=MAX_WIDTH).contains(&self.width) {
            return Err(LpmSpecError::Width { width: self.width });
        }
        if self.capacity > MAX_CAPACITY {
            return Err(LpmSpecError::Capacity { capacity: self.capacity });
        }
        Ok(())
    }

    fn check_prefix(&self, prefix: Prefix) -> Result<(), LpmInsertError> {
        if prefix.length > self.width {
            return Err(LpmInsertError::Length { length: prefix.length, width: self.width });
        }
        if prefix.bits & !leading(prefix.length, self.width) != 0 {
            return Err(LpmInsertError::Bits { bits: prefix.bits, length: prefix.length });
        }
        Ok(())
    }
}

/// Why a table cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpmSpecError {
    /// No address, or one that is too wide.
    #[error("an address of {width} bits; an address has 1 to {MAX_WIDTH}: declare another width")]
    Width {
        /// The bits asked for.
        width: u8,
    },
    /// The capacity is too large.
    #[error("a capacity of {capacity} prefixes; the largest is {MAX_CAPACITY}: declare a smaller one")]
    Capacity {
        /// The prefixes asked for.
        capacity: usize,
    },
    /// The machine has no room for it.
    #[error("no memory for an image of {bytes} bytes: declare a smaller capacity")]
    Memory {
        /// The bytes that could not be had.
        bytes: usize,
    },
}

/// Why a prefix is refused; the table is as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpmInsertError {
    /// The prefix is longer than an address.
    #[error("a prefix of {length} bits in a table of addresses of {width} bits: shorten it")]
    Length {
        /// The prefix's length.
        length: u8,
        /// The table's width.
        width: u8,
    },
    /// Bits behind the prefix's length are set.
    #[error("the prefix {bits:#x}/{length} has bits set behind its length: clear them or lengthen it")]
    Bits {
        /// The prefix's bits.
        bits: u128,
        /// Its length.
        length: u8,
    },
    /// The value is the one that means no answer.
    #[error("the value {NONE:#x} means that no prefix matches: choose another")]
    Value,
    /// The table holds as many prefixes as it may.
    #[error("the table is full with {capacity} prefixes: remove one or declare a larger capacity")]
    Full {
        /// The prefixes it may hold.
        capacity: usize,
    },
    /// A whole set of entries names a prefix twice.
    #[error("the prefix {bits:#x}/{length} is there twice: keep one")]
    Duplicate {
        /// The prefix's bits.
        bits: u128,
        /// Its length.
        length: u8,
    },
    /// The image would be larger than its cells can tell places apart.
    #[error(
        "the prefixes need an image of more than {bytes} bytes, the most there can be: remove prefixes, or spread them over several tables"
    )]
    Cells {
        /// The bytes that an image has at most.
        bytes: usize,
    },
    /// The image must grow and the machine has no room for it.
    #[error("no memory for an image of {bytes} bytes: remove prefixes or give the machine more")]
    Memory {
        /// The bytes that could not be had.
        bytes: usize,
    },
}

/// Why a whole set of entries does not make a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LpmBuildError {
    /// The shape is impossible.
    #[error(transparent)]
    Spec(#[from] LpmSpecError),
    /// An entry is refused.
    #[error(transparent)]
    Insert(#[from] LpmInsertError),
}

/// A longest-prefix table. An address is a number of the table's width; bits above the width are ignored.
pub trait Lpm {
    /// Puts `prefix` in with `value`, or gives it that value; the value it had before.
    fn insert(&mut self, prefix: Prefix, value: u32) -> Result<Option<u32>, LpmInsertError>;
    /// Takes `prefix` out; the value it had.
    fn remove(&mut self, prefix: Prefix) -> Option<u32>;
    /// The value of the longest prefix that contains `address`.
    fn find(&self, address: u128) -> Option<u32>;
    /// The longest prefix that contains `address`, and its value.
    fn find_entry(&self, address: u128) -> Option<(Prefix, u32)> {
        self.find_past(address, &|_| false)
    }
    /// The longest prefix that contains `address` and is not passed over, and its value.
    fn find_past(&self, address: u128, over: &dyn Fn(Prefix) -> bool) -> Option<(Prefix, u32)>;
    /// All prefixes with their values, ascending by bits, then length.
    fn entries(&self) -> Vec<(Prefix, u32)> {
        self.entries_from(Prefix { bits: 0, length: 0 }).collect()
    }
    /// The same from `first` on, be it there or not; it begins at once, however many stand before.
    fn entries_from(&self, first: Prefix) -> impl Iterator<Item = (Prefix, u32)>;
    /// How many prefixes there are.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
