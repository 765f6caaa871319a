//! Answers: the kinds of frames of the gateway, and their bodies.
//!
//! ```text
//! answer           kind  body
//! done              129  count u32
//! schema            130  JSON
//! entries           131  cursor (length u8, bytes), count u32, each: worker u16, entry
//! event             132  event u16, worker u16, time u64, delay u64, one value for each argument
//! punt              133  reason u16, worker u16, port u16, time u64, length u32, bytes
//! lost              134  count u64
//! values            135  count u32, each: worker u16, columns u16, 16 bytes for each column
//! counts            136  cursor (length u8, bytes), count u32, each: worker u16, entry, packets u64, bytes u64,
//!                        times u8, and if it is 1: first u64, last u64
//! error             255  code u8, place u8, entry u32, index u32, text
//! ```

use crate::entry::{self, BodyReader, CountedEntry, EntryCountTold, ListedEntry};
use crate::frame::{self, LONGEST_ANSWER, TableFrame};
use crate::message::{
    RefusalCode, RefusalPart, RefusalPlace, RequestRefusal, cursor, push_cursor, table, text,
};
use crate::schema::{ProgramSchema, TableSchema};

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
    /// Entries with what they have counted.
    Counts {
        /// Where to go on; empty at the end.
        cursor: Vec<u8>,
        /// The entries.
        entries: Vec<CountedEntry>,
    },
    /// Default entries, or members of a group.
    Values(Vec<ListedValue>),
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

/// The columns of a default entry or of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedValue {
    /// The first worker that has it, from 1.
    pub worker: u16,
    /// Its columns.
    pub columns: Vec<u128>,
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
            TableAnswer::Values(_) => 135,
            TableAnswer::Counts { .. } => 136,
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
            TableAnswer::Counts { cursor, entries } => {
                push_cursor(into, cursor)?;
                into.extend((entries.len() as u32).to_be_bytes());
                for (place, CountedEntry { worker, entry, count }) in (0..).zip(entries) {
                    into.extend(worker.to_be_bytes());
                    entry::push(into, entries_table(schema, of)?, entry, place)?;
                    into.extend(count.packets.to_be_bytes());
                    into.extend(count.bytes.to_be_bytes());
                    let times = count.first.zip(count.last);
                    into.push(times.is_some().into());
                    for time in times.into_iter().flat_map(|(first, last)| [first, last]) {
                        into.extend(time.to_be_bytes());
                    }
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
            TableAnswer::Values(values) => {
                into.extend((values.len() as u32).to_be_bytes());
                for ListedValue { worker, columns } in values {
                    into.extend(worker.to_be_bytes());
                    into.extend((columns.len() as u16).to_be_bytes());
                    columns.iter().for_each(|value| into.extend(value.to_be_bytes()));
                }
            }
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
            136 => {
                let cursor = cursor(&mut bytes)?;
                let table = entries_table(schema, of)?;
                let entries: Result<Vec<CountedEntry>, RequestRefusal> = (0..bytes.word()?)
                    .map(|index| {
                        let (worker, entry) = (bytes.short()?, entry::entry(&mut bytes, table, index)?);
                        let (packets, octets) = (bytes.number(8)? as u64, bytes.number(8)? as u64);
                        let [first, last] = match bytes.byte()? {
                            0 => [None; 2],
                            1 => [Some(bytes.number(8)? as u64), Some(bytes.number(8)? as u64)],
                            other => return Err(malformed(format!("there are 0 or 1 times, not {other}"))),
                        };
                        let count = EntryCountTold { packets, bytes: octets, first, last };
                        Ok(CountedEntry { worker, entry, count })
                    })
                    .collect();
                TableAnswer::Counts { cursor, entries: entries? }
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
            135 => {
                let values: Result<Vec<ListedValue>, RequestRefusal> = (0..bytes.word()?)
                    .map(|_| {
                        let (worker, columns) = (bytes.short()?, bytes.short()?);
                        let columns: Result<_, _> = (0..columns).map(|_| bytes.number(16)).collect();
                        Ok(ListedValue { worker, columns: columns? })
                    })
                    .collect();
                TableAnswer::Values(values?)
            }
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
