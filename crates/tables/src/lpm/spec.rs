//! The shape of a longest-prefix table, its prefixes, and why a table or a prefix is refused.

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
pub(super) fn leading(length: u8, width: u8) -> u128 {
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
    pub(super) fn check(&self) -> Result<(), LpmSpecError> {
        if !(1..=MAX_WIDTH).contains(&self.width) {
            return Err(LpmSpecError::Width { width: self.width });
        }
        if self.capacity > MAX_CAPACITY {
            return Err(LpmSpecError::Capacity { capacity: self.capacity });
        }
        Ok(())
    }

    pub(super) fn check_prefix(&self, prefix: Prefix) -> Result<(), LpmInsertError> {
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
