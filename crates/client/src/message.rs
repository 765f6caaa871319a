//! Requests and refusals: the kinds of frames of a client, and their bodies.
//!
//! ```text
//! request          kind  body
//! schema              1  –
//! list                2  table u16, worker u16 (0 all), most u32, cursor (length u8, bytes)
//! find                3  table u16, key, priority u32
//! read                4  table u16, flags u8 (1 keys alone), text
//! insert              5  table u16, entry
//! learn               6  table u16, entry
//! remove              7  table u16, key, priority u32
//! replace             8  table u16
//! more                9  count u32, entries
//! commit             10  –
//! abandon            11  –
//! subscribe          12  snap u32, events (count u16, names), reasons (count u16, names)
//! unsubscribe        13  number u32
//! learn for          14  table u16, lifetime u64, entry
//! default            15  table u16
//! set default        16  table u16, present u8, one value for each column if it is 1
//! members            17  group u16, index u32
//! join               18  group u16, index u32, one value for each column
//! leave              19  group u16, index u32, one value for each column
//! counts             20  table u16, worker u16 (from 1), most u32, cursor (length u8, bytes)
//!
//! name              length u8, bytes in UTF-8
//! ```

use crate::entry::{self, BodyReader, KeyMatch, TableEntry};
use crate::frame::{self, LONGEST_REQUEST, TableFrame};
use crate::schema::{ColumnSchema, GroupSchema, ProgramSchema, TableSchema};

/// The longest cursor, in bytes.
pub const LONGEST_CURSOR: usize = 64;

/// Why a request was refused. Nothing has changed then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RequestRefusal {
    /// The kind of refusal.
    pub code: RefusalCode,
    /// The part of the request that is at fault.
    pub place: RefusalPlace,
    /// What was wrong, and what to do.
    pub message: String,
}

impl RequestRefusal {
    /// A refusal.
    pub fn new(code: RefusalCode, place: RefusalPlace, message: impl Into<String>) -> RequestRefusal {
        RequestRefusal { code, place, message: message.into() }
    }
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalCode {
    /// The body of the request is not as its kind says.
    Malformed = 1,
    /// There is no such table, event, reason, worker or replacement.
    Unknown = 2,
    /// An entry or text does not fit the table.
    Misfit = 3,
    /// There is no room.
    Full = 4,
    /// This cannot be changed from outside, or not be seen.
    Closed = 5,
    /// Another program has taken over: ask for the schema again.
    Changed = 6,
    /// A limit of the gateway was reached.
    Limit = 7,
    /// The table itself refuses the entry.
    Refused = 8,
    /// The packet loop has ended.
    Ended = 9,
}

impl RefusalCode {
    pub(crate) const ALL: [RefusalCode; 9] = [
        RefusalCode::Malformed,
        RefusalCode::Unknown,
        RefusalCode::Misfit,
        RefusalCode::Full,
        RefusalCode::Closed,
        RefusalCode::Changed,
        RefusalCode::Limit,
        RefusalCode::Refused,
        RefusalCode::Ended,
    ];
}

/// The part of a request that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalPlace {
    /// What `index` counts.
    pub part: RefusalPart,
    /// Which of the request's entries, from 0.
    pub entry: u32,
    /// Which column, from 0; in a text, which byte.
    pub index: u32,
}

/// What the index of a place counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum RefusalPart {
    /// Nothing: the whole request is meant.
    Whole = 0,
    /// Columns of the key.
    Key = 1,
    /// Columns of the value.
    Value = 2,
    /// Bytes of the text.
    Text = 3,
    /// Nothing: a whole entry is meant.
    Entry = 4,
}

impl RefusalPlace {
    /// The whole request.
    pub const NONE: RefusalPlace = RefusalPlace { part: RefusalPart::Whole, entry: 0, index: 0 };

    /// A column of an entry's key.
    pub fn key(entry: u32, index: u32) -> RefusalPlace {
        RefusalPlace { part: RefusalPart::Key, entry, index }
    }

    /// A column of an entry's value.
    pub fn value(entry: u32, index: u32) -> RefusalPlace {
        RefusalPlace { part: RefusalPart::Value, entry, index }
    }

    /// An entry.
    pub fn entry(entry: u32) -> RefusalPlace {
        RefusalPlace { part: RefusalPart::Entry, entry, index: 0 }
    }

    /// A byte of the text.
    pub fn text(index: u32) -> RefusalPlace {
        RefusalPlace { part: RefusalPart::Text, entry: 0, index }
    }
}

/// A request of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableRequest {
    /// The tables, events and reasons of the program that runs now.
    Schema,
    /// Entries of a table from a place on.
    List {
        /// The table.
        table: u16,
        /// The worker; 0 for all.
        worker: u16,
        /// The largest number of entries in the answer.
        most: u32,
        /// Where to go on, as an answer said; empty for the beginning.
        cursor: Vec<u8>,
    },
    /// The entry with a key.
    Find {
        /// The table.
        table: u16,
        /// The key.
        key: Vec<KeyMatch>,
        /// The priority.
        priority: u32,
    },
    /// The entries that a text of the language means; nothing changes.
    Read {
        /// The table.
        table: u16,
        /// Whether the text has keys without values.
        keys_alone: bool,
        /// The text.
        text: String,
    },
    /// Insert an entry that stays until it is removed.
    Insert {
        /// The table.
        table: u16,
        /// The entry.
        entry: TableEntry,
    },
    /// Insert an entry as if a packet had made it.
    Learn {
        /// The table.
        table: u16,
        /// The entry.
        entry: TableEntry,
        /// After so many nanoseconds it ends at the latest; `None` for the times of the table.
        lifetime: Option<u64>,
    },
    /// Remove an entry.
    Remove {
        /// The table.
        table: u16,
        /// The key.
        key: Vec<KeyMatch>,
        /// The priority.
        priority: u32,
    },
    /// Begin to collect entries that replace those of a table.
    Replace {
        /// The table.
        table: u16,
    },
    /// More entries for the replacement.
    More {
        /// How many.
        count: u32,
        /// Their bytes; only the gateway knows the table that they are for.
        entries: Vec<u8>,
    },
    /// Replace the table by what was collected.
    Commit,
    /// Forget what was collected.
    Abandon,
    /// Pass on events and punted packets as they come.
    Subscribe {
        /// At most so many bytes of each packet.
        snap: u32,
        /// The events by name.
        events: Vec<String>,
        /// The reasons of punted packets by name.
        reasons: Vec<String>,
    },
    /// The default entry of a table.
    Default {
        /// The table.
        table: u16,
    },
    /// Set the default entry of a table, or remove it.
    SetDefault {
        /// The table.
        table: u16,
        /// Its value; `None` to remove it.
        value: Option<Vec<u128>>,
    },
    /// The members of a group.
    Members {
        /// The group.
        group: u16,
        /// Which of the groups of this name, from 0.
        index: u32,
    },
    /// Add a member to a group, with weight 1.
    Join {
        /// The group.
        group: u16,
        /// Which of the groups of this name, from 0.
        index: u32,
        /// Its columns.
        member: Vec<u128>,
    },
    /// Remove a member from a group.
    Leave {
        /// The group.
        group: u16,
        /// Which of the groups of this name, from 0.
        index: u32,
        /// Its columns.
        member: Vec<u128>,
    },
    /// Entries with what they have counted at one worker.
    Counts {
        /// The table.
        table: u16,
        /// The worker, from 1.
        worker: u16,
        /// At most so many entries.
        most: u32,
        /// Where to go on; empty at the beginning.
        cursor: Vec<u8>,
    },
    /// End a subscription.
    Unsubscribe {
        /// The number of the request that began it.
        number: u32,
    },
}

fn push_names(into: &mut Vec<u8>, names: &[String]) -> Result<(), RequestRefusal> {
    let limit = |message| RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message);
    let count = u16::try_from(names.len());
    into.extend(count.map_err(|_| limit("there are more than 65,535 names".to_owned()))?.to_be_bytes());
    for name in names {
        let length = u8::try_from(name.len());
        into.push(length.map_err(|_| limit(format!("`{name}` is longer than a name can be, 255 bytes")))?);
        into.extend(name.as_bytes());
    }
    Ok(())
}

fn names(bytes: &mut BodyReader<'_>) -> Result<Vec<String>, RequestRefusal> {
    let count = bytes.short()?;
    (0..count)
        .map(|_| {
            let length = bytes.byte()?;
            text(bytes.take(usize::from(length))?)
        })
        .collect()
}

pub(crate) fn text(bytes: &[u8]) -> Result<String, RequestRefusal> {
    let wrong =
        |_| RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, "the text is not in UTF-8");
    String::from_utf8(bytes.to_vec()).map_err(wrong)
}

/// The table with a number.
///
/// # Errors
/// There is none.
pub fn table(schema: &ProgramSchema, number: u16) -> Result<&TableSchema, RequestRefusal> {
    schema.tables.get(usize::from(number)).ok_or_else(|| {
        let message = format!("there is no table {number}; the program has {}", schema.tables.len());
        RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message)
    })
}

/// The group with a number.
///
/// # Errors
/// There is none.
pub fn group(schema: &ProgramSchema, number: u16) -> Result<&GroupSchema, RequestRefusal> {
    schema.groups.get(usize::from(number)).ok_or_else(|| {
        let message = format!("there is no group {number}; the program has {}", schema.groups.len());
        RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message)
    })
}

fn push_values(into: &mut Vec<u8>, columns: &[ColumnSchema], values: &[u128]) -> Result<(), RequestRefusal> {
    if columns.len() != values.len() {
        let message = format!("there are {} columns, not {}", columns.len(), values.len());
        return Err(RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::NONE, message));
    }
    (0..).zip(columns).zip(values).try_for_each(|((index, column), value)| {
        entry::push_value(into, column, *value, RefusalPlace::value(0, index))
    })
}

fn values(bytes: &mut BodyReader<'_>, columns: &[ColumnSchema]) -> Result<Vec<u128>, RequestRefusal> {
    let value = |(index, column)| entry::value(bytes, column, RefusalPlace::value(0, index));
    (0..).zip(columns).map(value).collect()
}

impl TableRequest {
    /// Appends the request as a frame, or nothing of it.
    ///
    /// # Errors
    /// It does not fit the tables of the schema, or is longer than a request may be.
    pub fn push(
        &self,
        into: &mut Vec<u8>,
        number: u32,
        schema: &ProgramSchema,
    ) -> Result<(), RequestRefusal> {
        let begin = into.len();
        let mut pushed = Ok(());
        frame::push(into, number, self.kind(), |into| pushed = self.push_body(into, schema));
        // The length is told without its own four bytes.
        let length = into.len() - begin - 4;
        if pushed.is_ok() && length > LONGEST_REQUEST {
            let message = format!("a request has at most {LONGEST_REQUEST} bytes; this one has {length}");
            pushed = Err(RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message));
        }
        if pushed.is_err() {
            into.truncate(begin);
        }
        pushed
    }

    fn push_body(&self, into: &mut Vec<u8>, schema: &ProgramSchema) -> Result<(), RequestRefusal> {
        match self {
            TableRequest::Schema | TableRequest::Commit | TableRequest::Abandon => {}
            TableRequest::List { table, worker, most, cursor }
            | TableRequest::Counts { table, worker, most, cursor } => {
                into.extend(table.to_be_bytes());
                into.extend(worker.to_be_bytes());
                into.extend(most.to_be_bytes());
                push_cursor(into, cursor)?;
            }
            TableRequest::Find { table: number, key, priority }
            | TableRequest::Remove { table: number, key, priority } => {
                into.extend(number.to_be_bytes());
                entry::push_key(into, table(schema, *number)?, key, *priority, 0)?;
            }
            TableRequest::Read { table, keys_alone, text } => {
                into.extend(table.to_be_bytes());
                into.push((*keys_alone).into());
                into.extend(text.as_bytes());
            }
            TableRequest::Insert { table: number, entry }
            | TableRequest::Learn { table: number, entry, .. } => {
                into.extend(number.to_be_bytes());
                if let TableRequest::Learn { lifetime: Some(lifetime), .. } = self {
                    into.extend(lifetime.to_be_bytes());
                }
                entry::push(into, table(schema, *number)?, entry, 0)?;
            }
            TableRequest::Replace { table } | TableRequest::Default { table } => {
                into.extend(table.to_be_bytes());
            }
            TableRequest::SetDefault { table: number, value } => {
                into.extend(number.to_be_bytes());
                into.push(value.is_some().into());
                if let Some(value) = value {
                    push_values(into, &table(schema, *number)?.values, value)?;
                }
            }
            TableRequest::Members { group, index } => {
                into.extend(group.to_be_bytes());
                into.extend(index.to_be_bytes());
            }
            TableRequest::Join { group: number, index, member }
            | TableRequest::Leave { group: number, index, member } => {
                into.extend(number.to_be_bytes());
                into.extend(index.to_be_bytes());
                push_values(into, &group(schema, *number)?.columns, member)?;
            }
            TableRequest::More { count, entries } => {
                into.extend(count.to_be_bytes());
                into.extend(entries);
            }
            TableRequest::Subscribe { snap, events, reasons } => {
                into.extend(snap.to_be_bytes());
                push_names(into, events)?;
                push_names(into, reasons)?;
            }
            TableRequest::Unsubscribe { number } => into.extend(number.to_be_bytes()),
        }
        Ok(())
    }

    /// The table that the entries of the answer belong to, if the answer has entries.
    pub fn table(&self) -> Option<u16> {
        match self {
            TableRequest::List { table, .. }
            | TableRequest::Counts { table, .. }
            | TableRequest::Find { table, .. }
            | TableRequest::Read { table, .. } => Some(*table),
            _ => None,
        }
    }

    fn kind(&self) -> u8 {
        match self {
            TableRequest::Schema => 1,
            TableRequest::List { .. } => 2,
            TableRequest::Find { .. } => 3,
            TableRequest::Read { .. } => 4,
            TableRequest::Insert { .. } => 5,
            TableRequest::Learn { lifetime: None, .. } => 6,
            TableRequest::Learn { lifetime: Some(_), .. } => 14,
            TableRequest::Remove { .. } => 7,
            TableRequest::Replace { .. } => 8,
            TableRequest::More { .. } => 9,
            TableRequest::Commit => 10,
            TableRequest::Abandon => 11,
            TableRequest::Subscribe { .. } => 12,
            TableRequest::Unsubscribe { .. } => 13,
            TableRequest::Default { .. } => 15,
            TableRequest::SetDefault { .. } => 16,
            TableRequest::Members { .. } => 17,
            TableRequest::Join { .. } => 18,
            TableRequest::Leave { .. } => 19,
            TableRequest::Counts { .. } => 20,
        }
    }

    /// Reads the request of a frame.
    ///
    /// # Errors
    /// The body is not as the kind says, or what it names is not there or does not fit.
    pub fn read(frame: TableFrame<'_>, schema: &ProgramSchema) -> Result<TableRequest, RequestRefusal> {
        let mut bytes = BodyReader(frame.body);
        let request = TableRequest::body(frame.kind, &mut bytes, schema)?;
        bytes.end()?;
        Ok(request)
    }

    fn body(
        kind: u8,
        bytes: &mut BodyReader<'_>,
        schema: &ProgramSchema,
    ) -> Result<TableRequest, RequestRefusal> {
        let keyed = |bytes: &mut BodyReader<'_>| {
            let number = bytes.short()?;
            let (key, priority) = entry::key(bytes, table(schema, number)?, 0)?;
            Ok((number, key, priority))
        };
        let whole = |bytes: &mut BodyReader<'_>| {
            let number = bytes.short()?;
            Ok((number, entry::entry(bytes, table(schema, number)?, 0)?))
        };
        Ok(match kind {
            1 => TableRequest::Schema,
            2 | 20 => {
                let (number, worker, most) = (bytes.short()?, bytes.short()?, bytes.word()?);
                table(schema, number)?;
                let cursor = cursor(bytes)?;
                match kind {
                    2 => TableRequest::List { table: number, worker, most, cursor },
                    _ => TableRequest::Counts { table: number, worker, most, cursor },
                }
            }
            3 => keyed(bytes).map(|(table, key, priority)| TableRequest::Find { table, key, priority })?,
            4 => {
                let (number, flags) = (bytes.short()?, bytes.byte()?);
                table(schema, number)?;
                let text = text(bytes.take(bytes.0.len())?)?;
                TableRequest::Read { table: number, keys_alone: flags & 1 != 0, text }
            }
            5 => whole(bytes).map(|(table, entry)| TableRequest::Insert { table, entry })?,
            6 => whole(bytes).map(|(table, entry)| TableRequest::Learn { table, entry, lifetime: None })?,
            7 => keyed(bytes).map(|(table, key, priority)| TableRequest::Remove { table, key, priority })?,
            8 => {
                let number = bytes.short()?;
                table(schema, number)?;
                TableRequest::Replace { table: number }
            }
            9 => {
                let count = bytes.word()?;
                TableRequest::More { count, entries: bytes.take(bytes.0.len())?.to_vec() }
            }
            10 => TableRequest::Commit,
            11 => TableRequest::Abandon,
            12 => {
                TableRequest::Subscribe { snap: bytes.word()?, events: names(bytes)?, reasons: names(bytes)? }
            }
            13 => TableRequest::Unsubscribe { number: bytes.word()? },
            14 => {
                let (number, lifetime) = (bytes.short()?, Some(bytes.number(8)? as u64));
                let entry = entry::entry(bytes, table(schema, number)?, 0)?;
                TableRequest::Learn { table: number, entry, lifetime }
            }
            15 => {
                let number = bytes.short()?;
                table(schema, number)?;
                TableRequest::Default { table: number }
            }
            16 => {
                let (number, present) = (bytes.short()?, bytes.byte()? != 0);
                let columns = &table(schema, number)?.values;
                let value = present.then(|| values(bytes, columns)).transpose()?;
                TableRequest::SetDefault { table: number, value }
            }
            17 => {
                let (number, index) = (bytes.short()?, bytes.word()?);
                group(schema, number)?;
                TableRequest::Members { group: number, index }
            }
            18 | 19 => {
                let (number, index) = (bytes.short()?, bytes.word()?);
                let member = values(bytes, &group(schema, number)?.columns)?;
                match kind {
                    18 => TableRequest::Join { group: number, index, member },
                    _ => TableRequest::Leave { group: number, index, member },
                }
            }
            kind => {
                let message = format!("there is no request of kind {kind}; there are 1 to 20");
                return Err(RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message));
            }
        })
    }
}

pub(crate) fn push_cursor(into: &mut Vec<u8>, cursor: &[u8]) -> Result<(), RequestRefusal> {
    is_cursor(cursor.len())?;
    into.push(cursor.len() as u8);
    into.extend(cursor);
    Ok(())
}

fn is_cursor(length: usize) -> Result<(), RequestRefusal> {
    if length > LONGEST_CURSOR {
        let message = format!("a cursor has {length} bytes; at most {LONGEST_CURSOR} are possible");
        return Err(RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message));
    }
    Ok(())
}

pub(crate) fn cursor(bytes: &mut BodyReader<'_>) -> Result<Vec<u8>, RequestRefusal> {
    let length = usize::from(bytes.byte()?);
    is_cursor(length)?;
    Ok(bytes.take(length)?.to_vec())
}
