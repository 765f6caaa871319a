//! Entries of tables as bytes, by the columns of their table.
//!
//! ```text
//! value     as many bytes as its column's bits need, big-endian
//! part      kind u8, then   0 anything       –
//!                           1 exact          value
//!                           2 prefix         value, length u8
//!                           3 masked         value, mask (as wide as the value)
//!                           4 range          first value, last value
//!                           5 bytes          flags u8, offset u32, depth u32, length u32, bytes
//!                                            flags: 1 letters of both cases are alike, 2 there is a depth
//! key       one part for each column; one part of bytes in a table of patterns
//! entry     key, priority u32 (0 where there are none), one value for each column
//! ```

use crate::message::{RefusalCode, RefusalPlace, RequestRefusal};
use crate::schema::{ColumnSchema, TableSchema};
use serde::{Deserialize, Serialize};

/// What a column of a key matches.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyMatch {
    /// Anything.
    Any,
    /// This number.
    Exact(u128),
    /// Numbers whose first bits are these.
    Prefix {
        /// The bits; the others are zero.
        value: u128,
        /// How many count.
        length: u8,
    },
    /// Numbers whose bits under the mask are these.
    Masked {
        /// The bits; the others are zero.
        value: u128,
        /// Which count.
        mask: u128,
    },
    /// Numbers from the first to the last.
    Range {
        /// The first.
        low: u128,
        /// The last.
        high: u128,
    },
    /// Bytes that are searched for.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// Whether letters of both cases are alike.
        nocase: bool,
        /// The first place at which they may begin.
        offset: u32,
        /// They end so many bytes behind `offset` at the latest.
        depth: Option<u32>,
    },
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableEntry {
    /// One part for each column of the key.
    pub key: Vec<KeyMatch>,
    /// The priority; 0 in tables without priorities.
    pub priority: u32,
    /// One number for each column of the value.
    pub value: Vec<u128>,
}

/// An entry and a worker that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The first worker that has it, from 1.
    pub worker: u16,
    /// The entry.
    pub entry: TableEntry,
}

/// An entry with what it has counted at a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedEntry {
    /// The worker, from 1.
    pub worker: u16,
    /// The entry.
    pub entry: TableEntry,
    /// What it has counted there.
    pub count: EntryCountTold,
}

/// What an entry was found for, or several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntryCountTold {
    /// The packets that found it.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// When the first of them came, in nanoseconds since 1970-01-01 UTC; `None` if none has, or the table
    /// does not keep that.
    pub first: Option<u64>,
    /// When the last of them came.
    pub last: Option<u64>,
}

impl EntryCountTold {
    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: EntryCountTold) {
        self.packets = self.packets.wrapping_add(other.packets);
        self.bytes = self.bytes.wrapping_add(other.bytes);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.max(other.last);
    }
}

/// Bytes that are read from their beginning.
#[derive(Clone, Copy, Debug)]
pub struct BodyReader<'a>(pub &'a [u8]);

impl<'a> BodyReader<'a> {
    /// The next so many bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], RequestRefusal> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or_else(|| {
            let message = format!("the body ends {} bytes too early", count - self.0.len());
            RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message)
        })?;
        self.0 = rest;
        Ok(taken)
    }

    /// The next number of so many bytes, at most 16.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn number(&mut self, bytes: usize) -> Result<u128, RequestRefusal> {
        Ok(self.take(bytes)?.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
    }

    /// The next byte.
    ///
    /// # Errors
    /// There is none.
    pub fn byte(&mut self) -> Result<u8, RequestRefusal> {
        Ok(self.number(1)? as u8)
    }

    /// The next number of two bytes.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn short(&mut self) -> Result<u16, RequestRefusal> {
        Ok(self.number(2)? as u16)
    }

    /// The next number of four bytes.
    ///
    /// # Errors
    /// There are fewer bytes.
    pub fn word(&mut self) -> Result<u32, RequestRefusal> {
        Ok(self.number(4)? as u32)
    }

    /// Nothing is left.
    ///
    /// # Errors
    /// Something is.
    pub fn end(self) -> Result<(), RequestRefusal> {
        if self.0.is_empty() {
            return Ok(());
        }
        let message = format!("{} bytes stand behind the end of the body", self.0.len());
        Err(RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message))
    }
}

/// Appends a value of a column.
///
/// # Errors
/// The value has more bits than the column.
pub fn push_value(
    into: &mut Vec<u8>,
    column: &ColumnSchema,
    value: u128,
    place: RefusalPlace,
) -> Result<(), RequestRefusal> {
    fits(column, value, place)?;
    into.extend(&value.to_be_bytes()[16 - column.bytes().min(16)..]);
    Ok(())
}

fn fits(column: &ColumnSchema, value: u128, place: RefusalPlace) -> Result<(), RequestRefusal> {
    if column.bits < 128 && value >> column.bits != 0 {
        let message = format!("{value} has more than the {} bits of the column", column.bits);
        return Err(RequestRefusal::new(RefusalCode::Misfit, place, message));
    }
    Ok(())
}

/// Reads a value of a column.
///
/// # Errors
/// There are too few bytes, or the value has more bits than the column.
pub fn value(
    bytes: &mut BodyReader<'_>,
    column: &ColumnSchema,
    place: RefusalPlace,
) -> Result<u128, RequestRefusal> {
    let number = bytes.number(column.bytes().min(16))?;
    fits(column, number, place)?;
    Ok(number)
}

fn push_part(
    into: &mut Vec<u8>,
    column: &ColumnSchema,
    part: &KeyMatch,
    place: RefusalPlace,
) -> Result<(), RequestRefusal> {
    match part {
        KeyMatch::Any => into.push(0),
        KeyMatch::Exact(number) => {
            into.push(1);
            push_value(into, column, *number, place)?;
        }
        KeyMatch::Prefix { value, length } => {
            into.push(2);
            push_value(into, column, *value, place)?;
            into.push(*length);
        }
        KeyMatch::Masked { value: first, mask: second } | KeyMatch::Range { low: first, high: second } => {
            into.push(if matches!(part, KeyMatch::Masked { .. }) { 3 } else { 4 });
            push_value(into, column, *first, place)?;
            push_value(into, column, *second, place)?;
        }
        KeyMatch::Bytes { bytes, nocase, offset, depth } => {
            into.push(5);
            into.push(u8::from(*nocase) | u8::from(depth.is_some()) << 1);
            into.extend(offset.to_be_bytes());
            into.extend(depth.unwrap_or(0).to_be_bytes());
            into.extend((bytes.len() as u32).to_be_bytes());
            into.extend(bytes);
        }
    }
    Ok(())
}

fn part(
    bytes: &mut BodyReader<'_>,
    column: &ColumnSchema,
    place: RefusalPlace,
) -> Result<KeyMatch, RequestRefusal> {
    Ok(match bytes.byte()? {
        0 => KeyMatch::Any,
        1 => KeyMatch::Exact(value(bytes, column, place)?),
        2 => KeyMatch::Prefix { value: value(bytes, column, place)?, length: bytes.byte()? },
        3 => KeyMatch::Masked { value: value(bytes, column, place)?, mask: value(bytes, column, place)? },
        4 => KeyMatch::Range { low: value(bytes, column, place)?, high: value(bytes, column, place)? },
        5 => {
            let flags = bytes.byte()?;
            let (offset, depth) = (bytes.word()?, bytes.word()?);
            let length = bytes.word()? as usize;
            KeyMatch::Bytes {
                bytes: bytes.take(length)?.to_vec(),
                nocase: flags & 1 != 0,
                offset,
                depth: (flags & 2 != 0).then_some(depth),
            }
        }
        kind => {
            let message = format!("a part of a key is of kind {kind}; there are 0 to 5");
            return Err(RequestRefusal::new(RefusalCode::Malformed, place, message));
        }
    })
}

/// A column for the bytes that a table of patterns searches for.
static SEARCHED: ColumnSchema =
    ColumnSchema { name: String::new(), kind: crate::schema::ColumnType::Uint, bits: 128, names: Vec::new() };

/// The columns that the parts of a key belong to.
fn columns(table: &TableSchema) -> &[ColumnSchema] {
    if table.kind == "patterns" { std::slice::from_ref(&SEARCHED) } else { &table.keys }
}

/// Appends a key and its priority. `entry` is the place of the entry in the request.
///
/// # Errors
/// The key has another number of parts than the table, or a number in it more bits than its column.
pub fn push_key(
    into: &mut Vec<u8>,
    table: &TableSchema,
    key: &[KeyMatch],
    priority: u32,
    entry: u32,
) -> Result<(), RequestRefusal> {
    let columns = columns(table);
    if columns.len() != key.len() {
        let message = format!("a key of `{}` has {} parts, not {}", table.name, columns.len(), key.len());
        return Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::entry(entry), message));
    }
    for ((index, column), part) in (0..).zip(columns).zip(key) {
        push_part(into, column, part, RefusalPlace::key(entry, index))?;
    }
    into.extend(priority.to_be_bytes());
    Ok(())
}

/// Reads a key and its priority. `entry` is the place of the entry in the request.
///
/// # Errors
/// The bytes are no key of the table.
pub fn key(
    bytes: &mut BodyReader<'_>,
    table: &TableSchema,
    entry: u32,
) -> Result<(Vec<KeyMatch>, u32), RequestRefusal> {
    let mut key = Vec::with_capacity(table.keys.len());
    for (index, column) in (0..).zip(columns(table)) {
        key.push(part(bytes, column, RefusalPlace::key(entry, index))?);
    }
    Ok((key, bytes.word()?))
}

/// Appends an entry. `place` is its place in the request.
///
/// # Errors
/// It has another number of columns than the table, or a number in it more bits than its column.
pub fn push(
    into: &mut Vec<u8>,
    table: &TableSchema,
    entry: &TableEntry,
    place: u32,
) -> Result<(), RequestRefusal> {
    push_key(into, table, &entry.key, entry.priority, place)?;
    let (wanted, there) = (table.values.len(), entry.value.len());
    if wanted != there {
        let message = format!("a value of `{}` has {wanted} columns, not {there}", table.name);
        return Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::entry(place), message));
    }
    for ((index, column), value) in (0..).zip(&table.values).zip(&entry.value) {
        push_value(into, column, *value, RefusalPlace::value(place, index))?;
    }
    Ok(())
}

/// Reads an entry. `place` is its place in the request.
///
/// # Errors
/// The bytes are no entry of the table.
pub fn entry(
    bytes: &mut BodyReader<'_>,
    table: &TableSchema,
    place: u32,
) -> Result<TableEntry, RequestRefusal> {
    let (key, priority) = key(bytes, table, place)?;
    let values = (0..).zip(&table.values);
    let value: Result<Vec<u128>, RequestRefusal> =
        values.map(|(index, column)| value(bytes, column, RefusalPlace::value(place, index))).collect();
    Ok(TableEntry { key, priority, value: value? })
}
