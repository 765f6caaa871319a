//! Requests and answers: the kinds of frames and their bodies.
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
//!
//! answer           kind  body
//! done              129  count u32
//! schema            130  JSON
//! entries           131  cursor (length u8, bytes), count u32, each: worker u16, entry
//! event             132  event u16, worker u16, time u64, delay u64, one value for each argument
//! punt              133  reason u16, worker u16, port u16, time u64, length u32, bytes
//! lost              134  count u64
//! error             255  code u8, place u8, entry u32, index u32, text
//!
//! name              length u8, bytes in UTF-8
//! ```

use crate::entry::{self, BodyReader, KeyMatch, ListedEntry, TableEntry};
use crate::frame::{self, LONGEST_ANSWER, LONGEST_REQUEST, TableFrame};
use crate::schema::{ProgramSchema, TableSchema};

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
    /// This cannot be changed from outside.
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
    const ALL: [RefusalCode; 9] = [
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

fn text(bytes: &[u8]) -> Result<String, RequestRefusal> {
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
            TableRequest::List { table, worker, most, cursor } => {
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
            TableRequest::Replace { table } => into.extend(table.to_be_bytes()),
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
            2 => {
                let (number, worker, most) = (bytes.short()?, bytes.short()?, bytes.word()?);
                table(schema, number)?;
                TableRequest::List { table: number, worker, most, cursor: cursor(bytes)? }
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
            kind => {
                let message = format!("there is no request of kind {kind}; there are 1 to 14");
                return Err(RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message));
            }
        })
    }
}

fn push_cursor(into: &mut Vec<u8>, cursor: &[u8]) -> Result<(), RequestRefusal> {
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

fn cursor(bytes: &mut BodyReader<'_>) -> Result<Vec<u8>, RequestRefusal> {
    let length = usize::from(bytes.byte()?);
    is_cursor(length)?;
    Ok(bytes.take(length)?.to_vec())
}

/// An answer of the gateway.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TableAnswer {
    /// The request was carried out.
    Done {
        /// How many entries or subscriptions it changed.
        count: u32,
    },
    /// The tables, events and reasons.
    Schema(ProgramSchema),
    /// Entries.
    Entries {
        /// Where to go on; empty at the end.
        cursor: Vec<u8>,
        /// The entries.
        entries: Vec<ListedEntry>,
    },
    /// An event of a subscription.
    Event(EventTold),
    /// A punted packet of a subscription.
    Punt(PuntTold),
    /// So many events and packets of a subscription found no room since it was last told.
    Lost {
        /// How many.
        count: u64,
    },
    /// The request was refused.
    Error(RequestRefusal),
}

/// An event that a program raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventTold {
    /// The number of the event.
    pub event: u16,
    /// The worker that raised it, from 1.
    pub worker: u16,
    /// When it was raised, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// Nanoseconds from then until its handler runs.
    pub delay: u64,
    /// Its arguments.
    pub arguments: Vec<u128>,
}

/// A packet that a program punted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PuntTold {
    /// The number of the reason.
    pub reason: u16,
    /// The worker that punted it, from 1.
    pub worker: u16,
    /// The port that it came in by.
    pub port: u16,
    /// When it came in, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// Its length.
    pub length: u32,
    /// Its bytes, as many as the subscription asked for.
    pub bytes: Vec<u8>,
}

/// The table that the entries of an answer belong to.
fn entries_table(schema: &ProgramSchema, of: Option<u16>) -> Result<&TableSchema, RequestRefusal> {
    let unasked =
        || RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, "no entries were asked for");
    table(schema, of.ok_or_else(unasked)?)
}

impl TableAnswer {
    /// Appends the answer as a frame. `table` is the table that entries belong to. What does not fit the
    /// schema, or is longer than an answer may be, becomes an error.
    pub fn push(&self, into: &mut Vec<u8>, number: u32, schema: &ProgramSchema, table: Option<u16>) {
        let kind = match self {
            TableAnswer::Done { .. } => 129,
            TableAnswer::Schema(_) => 130,
            TableAnswer::Entries { .. } => 131,
            TableAnswer::Event(_) => 132,
            TableAnswer::Punt(_) => 133,
            TableAnswer::Lost { .. } => 134,
            TableAnswer::Error(_) => 255,
        };
        let (begin, mut pushed) = (into.len(), Ok(()));
        frame::push(into, number, kind, |into| pushed = self.push_body(into, schema, table));
        let length = into.len() - begin - 4;
        if length > LONGEST_ANSWER {
            let message =
                format!("the answer has {length} bytes; at most {LONGEST_ANSWER} are possible: ask for less");
            pushed = Err(RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message));
        }
        if let Err(fault) = pushed {
            into.truncate(begin);
            TableAnswer::Error(fault).push(into, number, schema, None);
        }
    }

    fn push_body(
        &self,
        into: &mut Vec<u8>,
        schema: &ProgramSchema,
        of: Option<u16>,
    ) -> Result<(), RequestRefusal> {
        match self {
            TableAnswer::Done { count } => into.extend(count.to_be_bytes()),
            TableAnswer::Schema(schema) => {
                // Names and numbers can always be written as JSON.
                into.extend(serde_json::to_vec(schema).unwrap_or_default());
            }
            TableAnswer::Entries { cursor, entries } => {
                push_cursor(into, cursor)?;
                into.extend((entries.len() as u32).to_be_bytes());
                for (place, listed) in (0..).zip(entries) {
                    into.extend(listed.worker.to_be_bytes());
                    entry::push(into, entries_table(schema, of)?, &listed.entry, place)?;
                }
            }
            TableAnswer::Event(told) => {
                into.extend(told.event.to_be_bytes());
                into.extend(told.worker.to_be_bytes());
                into.extend(told.time.to_be_bytes());
                into.extend(told.delay.to_be_bytes());
                let columns = schema.events.get(usize::from(told.event)).map(|event| &event.arguments);
                for ((index, column), value) in (0..).zip(columns.into_iter().flatten()).zip(&told.arguments)
                {
                    entry::push_value(into, column, *value, RefusalPlace::value(0, index))?;
                }
            }
            TableAnswer::Punt(told) => {
                into.extend(told.reason.to_be_bytes());
                into.extend(told.worker.to_be_bytes());
                into.extend(told.port.to_be_bytes());
                into.extend(told.time.to_be_bytes());
                into.extend(told.length.to_be_bytes());
                into.extend(&told.bytes);
            }
            TableAnswer::Lost { count } => into.extend(count.to_be_bytes()),
            TableAnswer::Error(fault) => {
                into.extend([fault.code as u8, fault.place.part as u8]);
                into.extend(fault.place.entry.to_be_bytes());
                into.extend(fault.place.index.to_be_bytes());
                into.extend(fault.message.as_bytes());
            }
        }
        Ok(())
    }

    /// Reads the answer of a frame. `of` is the table that entries belong to.
    ///
    /// # Errors
    /// The body is not as the kind says.
    pub fn read(
        frame: TableFrame<'_>,
        schema: &ProgramSchema,
        of: Option<u16>,
    ) -> Result<TableAnswer, RequestRefusal> {
        let mut bytes = BodyReader(frame.body);
        let malformed =
            |message: String| RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message);
        let answer = match frame.kind {
            129 => TableAnswer::Done { count: bytes.word()? },
            130 => {
                let json = bytes.take(bytes.0.len())?;
                let schema = serde_json::from_slice(json).map_err(|error| malformed(error.to_string()))?;
                TableAnswer::Schema(schema)
            }
            131 => {
                let cursor = cursor(&mut bytes)?;
                let table = entries_table(schema, of)?;
                let entries: Result<Vec<ListedEntry>, RequestRefusal> = (0..bytes.word()?)
                    .map(|index| {
                        let worker = bytes.short()?;
                        Ok(ListedEntry { worker, entry: entry::entry(&mut bytes, table, index)? })
                    })
                    .collect();
                TableAnswer::Entries { cursor, entries: entries? }
            }
            132 => {
                let (event, worker) = (bytes.short()?, bytes.short()?);
                let (time, delay) = (bytes.number(8)? as u64, bytes.number(8)? as u64);
                let known = schema.events.get(usize::from(event));
                let columns = known.ok_or_else(|| malformed(format!("there is no event {event}")))?;
                let arguments: Result<Vec<u128>, RequestRefusal> = (0..)
                    .zip(&columns.arguments)
                    .map(|(index, column)| entry::value(&mut bytes, column, RefusalPlace::value(0, index)))
                    .collect();
                TableAnswer::Event(EventTold { event, worker, time, delay, arguments: arguments? })
            }
            133 => TableAnswer::Punt(PuntTold {
                reason: bytes.short()?,
                worker: bytes.short()?,
                port: bytes.short()?,
                time: bytes.number(8)? as u64,
                length: bytes.word()?,
                bytes: bytes.take(bytes.0.len())?.to_vec(),
            }),
            134 => TableAnswer::Lost { count: bytes.number(8)? as u64 },
            255 => {
                let code = bytes.byte()?;
                let part = match bytes.byte()? {
                    1 => RefusalPart::Key,
                    2 => RefusalPart::Value,
                    3 => RefusalPart::Text,
                    4 => RefusalPart::Entry,
                    _ => RefusalPart::Whole,
                };
                let place = RefusalPlace { part, entry: bytes.word()?, index: bytes.word()? };
                let code = RefusalCode::ALL.into_iter().find(|known| *known as u8 == code);
                let code = code.ok_or_else(|| malformed("the code of a refusal is unknown".into()))?;
                TableAnswer::Error(RequestRefusal { code, place, message: text(bytes.take(bytes.0.len())?)? })
            }
            kind => return Err(malformed(format!("there is no answer of kind {kind}"))),
        };
        bytes.end()?;
        Ok(answer)
    }
}
