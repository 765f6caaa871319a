//! What a policy lets `control` change while it is in force: entries under prefixes of keys of listed tables,
//! so many and so fast. A table that is not listed does not change, and rules never do.

use crate::cbor::Reader;
use crate::limits;
use crate::policy::name;
use crate::refusal::BundleRefusal;

/// Keys of a table that begin with the same bits. The columns of a key are joined, first column first, and
/// the first bit is the highest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPrefix {
    width: u8,
    length: u8,
    bits: u128,
}

impl KeyPrefix {
    /// The keys of `width` bits whose first `length` bits are those of `bits`, in which the key stands as in
    /// a number: its last bit is the lowest one. `None` where the width is 0 or above [`limits::KEY_BITS`],
    /// the length above the width, or a bit set that is not among the first `length` ones.
    #[must_use]
    pub fn new(width: u8, length: u8, bits: u128) -> Option<Self> {
        let fits = (1..=limits::KEY_BITS).contains(&width) && length <= width;
        let prefix = Self { width, length, bits };
        (fits && bits & !prefix.mask() == 0).then_some(prefix)
    }

    /// Bits of the whole key, at least 1.
    #[must_use]
    pub fn width(self) -> u8 {
        self.width
    }

    /// Bits that are given.
    #[must_use]
    pub fn length(self) -> u8 {
        self.length
    }

    /// The key with zeros behind the given bits.
    #[must_use]
    pub fn bits(self) -> u128 {
        self.bits
    }

    /// Whether each key under `other` lies under this prefix, and both are of keys of the same width.
    #[must_use]
    pub fn covers(self, other: KeyPrefix) -> bool {
        self.width == other.width && self.length <= other.length && other.bits & self.mask() == self.bits
    }

    /// Ones at the given bits.
    fn mask(self) -> u128 {
        low_ones(self.width) & !low_ones(self.width - self.length)
    }

    /// The given bits from the highest one on, with zeros up to a whole byte, as they stand in a bundle.
    pub(crate) fn bytes(self) -> ([u8; 16], usize) {
        let shift = u32::from(limits::KEY_BITS - self.width);
        ((self.bits << shift).to_be_bytes(), usize::from(self.length.div_ceil(8)))
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, BundleRefusal> {
        let at = reader.at();
        reader.array_of(3, "width, length and bits of a prefix")?;
        // Lossless: both are at most 128.
        let width = reader.unsigned("the width of a key in bits", u64::from(limits::KEY_BITS))? as u8;
        let length = reader.unsigned("the length of a prefix in bits", u64::from(width))? as u8;
        let given = reader.bytes("the bytes of a prefix", usize::from(length.div_ceil(8)))?;
        let mut bytes = [0; 16];
        bytes[..given.len()].copy_from_slice(given);
        let aligned = u128::from_be_bytes(bytes);
        let shift = u32::from(limits::KEY_BITS - width);
        let what = "a prefix with all of its bits and none behind them";
        let prefix = aligned.checked_shr(shift).and_then(|bits| KeyPrefix::new(width, length, bits));
        // A bit behind the key's last one is shifted out, so the bytes are compared as well.
        prefix
            .filter(|prefix| (bytes, given.len()) == prefix.bytes())
            .ok_or(BundleRefusal::Malformed { at, what })
    }
}

/// A number whose lowest `count` bits are ones, with `count` up to 128.
fn low_ones(count: u8) -> u128 {
    u128::MAX.checked_shr(u32::from(limits::KEY_BITS - count)).unwrap_or(0)
}

/// The right to insert, replace and remove entries of one table. It is for tables of exact keys and of
/// longest prefixes; whoever activates the policy refuses it for any other, whose entries are rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableRight {
    /// The name of the table in the program.
    pub table: String,
    /// The entries that may change are those whose keys lie under one of these, in ascending order. Under
    /// none of them nothing may change.
    pub prefixes: Vec<KeyPrefix>,
    /// The most entries that may be there because of this right, at one time.
    pub most_entries: u32,
    /// The most changes in one second.
    pub changes_per_second: u32,
}

impl TableRight {
    /// Whether an entry of this key may change: the whole key, or the prefix that the entry is for.
    #[must_use]
    pub fn covers(&self, key: KeyPrefix) -> bool {
        self.prefixes.iter().any(|prefix| prefix.covers(key))
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, BundleRefusal> {
        reader.map_of(4, "a right of four fields")?;
        reader.field(1)?;
        let table = name(reader, "the name of a table")?;
        reader.field(2)?;
        let count = reader.array("the number of prefixes", limits::PREFIXES)?;
        let mut prefixes: Vec<KeyPrefix> = Vec::with_capacity(count);
        for _ in 0..count {
            let at = reader.at();
            let prefix = KeyPrefix::read(reader)?;
            if prefixes.last().is_some_and(|before| *before >= prefix) {
                return Err(BundleRefusal::Malformed { at, what: "prefixes in ascending order" });
            }
            prefixes.push(prefix);
        }
        reader.field(3)?;
        let most_entries = reader.unsigned("the most entries", u64::from(u32::MAX))? as u32;
        reader.field(4)?;
        let changes_per_second = reader.unsigned("the changes per second", u64::from(u32::MAX))? as u32;
        Ok(Self { table, prefixes, most_entries, changes_per_second })
    }
}
