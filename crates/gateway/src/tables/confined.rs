//! Tables of a confined core for other programs: a client of the control socket is answered in the binary
//! protocol by what the core tells, and the core judges each change that the client wants.

use super::limits::{CHANGE_WAITS, LISTED, LISTED_STEPS};
use super::listing::{Cursor, Listing};
use super::output::{Output, Waits};
use super::schema::{Known, to_client};
use super::{PART, read, requests};
use crate::beside_core::OneProcess;
use crate::beside_core::core_channel::unexpected as why_unexpected;
use crate::limits::{PATIENCE, SILENCE};
use client::answer::TableAnswer;
use client::frame::TableFrame;
use client::message::TableRequest;
use client::{ListedEntry, RefusalCode, RefusalPlace, RequestRefusal};
use exec::EntryPlace;
use ir::{Entry, Match};
use messages::ChannelError;
use messages::control::{
    ControlQuestion, CoreAnswer, EntryChange, EntryOperation, EntryPage, ShownEntry, ShownMatch, ShownTable,
};
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

/// Asks the core.
type AskCore<'a> = dyn Fn(&ControlQuestion) -> Result<CoreAnswer, ChannelError> + 'a;

/// Where tables are asked for.
#[derive(Clone, Copy)]
pub(crate) struct ConfinedTables<'a> {
    /// The core.
    pub(crate) ask: &'a AskCore<'a>,
    /// Whether the gateway could be one process.
    pub(crate) one_process: OneProcess,
}

/// The tables of the program that runs in the core.
pub(crate) fn known(core: &ConfinedTables<'_>) -> Result<Known, RequestRefusal> {
    let mut tables: Vec<ShownTable> = Vec::new();
    let mut of = None;
    while tables.len() <= usize::from(u16::MAX) {
        match asked_core(core.ask, &ControlQuestion::Table(tables.len() as u32))? {
            // Another program has taken over meanwhile.
            CoreAnswer::Table { number, .. } if of.is_some_and(|of| of != number) => {
                (of, tables) = (None, Vec::new());
            }
            CoreAnswer::Table { number, workers, table: None } => {
                return Ok(Known::of_core(number, workers, tables, core.one_process));
            }
            CoreAnswer::Table { number, table: Some(table), .. } => {
                of = Some(number);
                tables.push(table);
            }
            other => return Err(unexpected(other)),
        }
    }
    let why = "the core tells of more tables than there are numbers for";
    Err(RequestRefusal::new(RefusalCode::Refused, RefusalPlace::NONE, why))
}

/// Answers a client until it disconnects, sends something that is not a frame, or says nothing for too long.
/// `turn` is told when the client may be disconnected to make room for another one, and when it may not.
pub(crate) fn converse(
    core: &ConfinedTables<'_>,
    known: Known,
    stream: &UnixStream,
    reader: BufReader<&UnixStream>,
    turn: &dyn Fn(bool),
) -> io::Result<()> {
    let mut session = Session { core, known };
    let (mut held, mut answers, mut part) = (reader.buffer().to_vec(), Vec::new(), vec![0; PART]);
    let (output, mut since) = (Output::new(stream)?, Instant::now());
    loop {
        let mut begin = 0;
        loop {
            match requests(&held, &mut begin, &mut answers, |frame, answers| session.take(frame, answers)) {
                Ok(true) => break,
                Ok(false) => {
                    output.send(&answers, Waits::Limited)?;
                    answers.clear();
                }
                Err(fault) => {
                    TableAnswer::Error(fault).push(&mut answers, 0, &session.known.schema, None);
                    return output.send(&answers, Waits::Limited);
                }
            }
        }
        held.drain(..begin);
        turn(true);
        output.send(&answers, Waits::Limited)?;
        answers.clear();
        if begin > 0 || held.is_empty() {
            since = Instant::now();
        }
        // A request that has begun has less time, in however many parts it comes.
        let patience = if held.is_empty() { SILENCE } else { PATIENCE };
        let left = patience.saturating_sub(since.elapsed()).max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left))?;
        let read = (&mut &*stream).read(&mut part)?;
        turn(false);
        if read == 0 {
            return Ok(());
        }
        if held.is_empty() {
            since = Instant::now();
        }
        held.extend_from_slice(&part[..read]);
    }
}

/// The conversation with one client.
struct Session<'a> {
    core: &'a ConfinedTables<'a>,
    known: Known,
}

impl Session<'_> {
    /// Answers a request.
    fn take(&mut self, frame: TableFrame<'_>, answers: &mut Vec<u8>) {
        let number = frame.number;
        let answer = TableRequest::read(frame, &self.known.schema).and_then(|request| {
            let table = request.table();
            Ok((self.answer(request)?, table))
        });
        let (answer, table) = answer.unwrap_or_else(|fault| (TableAnswer::Error(fault), None));
        answer.push(answers, number, &self.known.schema, table);
    }

    fn answer(&mut self, request: TableRequest) -> Result<TableAnswer, RequestRefusal> {
        match request {
            TableRequest::Schema => {
                self.known = known(self.core)?;
                Ok(TableAnswer::Schema(self.known.schema.clone()))
            }
            TableRequest::List { table, worker, most, cursor } => {
                self.list(&Listing { table, worker, most, cursor })
            }
            TableRequest::Find { table, key, priority } => {
                let key = self.known.key(table, key, priority, 0)?;
                let entries = self.find(table, &key)?;
                Ok(TableAnswer::Entries { cursor: Vec::new(), entries })
            }
            TableRequest::Read { table, keys_alone, text } => {
                let entries = read(&self.known, table, keys_alone, &text)?;
                Ok(TableAnswer::Entries { cursor: Vec::new(), entries })
            }
            TableRequest::Insert { table, entry } => {
                let entry = self.known.entry(table, entry, 0)?;
                let value = entry.value.clone();
                self.change(table, &entry, EntryOperation::Insert(value))?;
                Ok(TableAnswer::Done { count: 1 })
            }
            TableRequest::Remove { table, key, priority } => {
                let key = self.known.key(table, key, priority, 0)?;
                let entry = Entry { key, value: Vec::new(), priority };
                Ok(TableAnswer::Done { count: self.change(table, &entry, EntryOperation::Remove)? })
            }
            _ => Err(RequestRefusal::new(
                RefusalCode::Closed,
                RefusalPlace::NONE,
                self.core.one_process.misses(
                    "entries are told, inserted and removed, and nothing else is done with tables, groups and events",
                ),
            )),
        }
    }

    /// Entries from a cursor on; there may be none, although a cursor says that more follow.
    fn list(&self, asked: &Listing) -> Result<TableAnswer, RequestRefusal> {
        self.known.may_be_told(asked.table)?;
        let workers = asked.workers(self.known.schema.workers)?;
        let (first, end, mut cursor) = (workers.start, workers.end, asked.begin(workers)?);
        let most = (asked.most as usize).clamp(1, LISTED);
        let (mut listed, number) = (Vec::new(), self.known.schema.generation);
        for _ in 0..LISTED_STEPS {
            let Cursor { worker, place } = cursor;
            let (own, place) = (worker > first, place.numbers());
            let question = ControlQuestion::Entries { number, table: asked.table.into(), worker, own, place };
            let EntryPage { entries, next } = page(asked_core(self.core.ask, &question)?)?;
            listed.extend(entries.into_iter().map(|entry| listed_entry(worker, entry)));
            cursor = match next {
                Some(place) => Cursor { worker, place: EntryPlace::of_numbers(place) },
                None if worker + 1 < end => Cursor { worker: worker + 1, place: EntryPlace::default() },
                None => return Ok(TableAnswer::Entries { cursor: Vec::new(), entries: listed }),
            };
            // What has come goes as a whole: the next part begins behind it.
            if listed.len() >= most {
                break;
            }
        }
        Ok(TableAnswer::Entries { cursor: cursor.bytes(), entries: listed })
    }

    /// The entries with a key: one for each different value that workers have for it.
    fn find(&self, number: u16, key: &[Match]) -> Result<Vec<ListedEntry>, RequestRefusal> {
        self.known.may_be_told(number)?;
        let (bits, length) = self.known.table(number)?.1.joined_key(key);
        let mut found: Vec<ListedEntry> = Vec::new();
        for worker in 0..self.known.schema.workers {
            let (number, table) = (self.known.schema.generation, number.into());
            let question = ControlQuestion::Entry { number, table, worker, length, bits };
            let EntryPage { entries, .. } = page(asked_core(self.core.ask, &question)?)?;
            let new = entries.into_iter().map(|entry| listed_entry(worker, entry));
            let new: Vec<_> = new.filter(|new| !found.iter().any(|known| known.entry == new.entry)).collect();
            found.extend(new);
        }
        Ok(found)
    }

    /// Has the core change an entry, and waits where that is too fast. Returns how many were removed.
    fn change(&self, number: u16, entry: &Entry, operation: EntryOperation) -> Result<u32, RequestRefusal> {
        let (schema, table) = self.known.table(number)?;
        if let Some(why) = &schema.refuses.insert {
            return Err(RequestRefusal::new(RefusalCode::Closed, RefusalPlace::NONE, why));
        }
        let (bits, length) = table.joined_key(&entry.key);
        let changes = vec![EntryChange { table: number.into(), length, bits, operation }];
        let question = ControlQuestion::Change { number: self.known.schema.generation, changes };
        let end = Instant::now() + CHANGE_WAITS;
        loop {
            match asked_core(self.core.ask, &question)? {
                CoreAnswer::Changed { removed } => return Ok(removed),
                CoreAnswer::TooFast { why, milliseconds } => {
                    let wait = Duration::from_millis(milliseconds.max(1));
                    if Instant::now() + wait > end {
                        return Err(RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, why));
                    }
                    thread::sleep(wait);
                }
                other => return Err(unexpected(other)),
            }
        }
    }
}

/// What the core answers.
fn asked_core(core: &AskCore<'_>, question: &ControlQuestion) -> Result<CoreAnswer, RequestRefusal> {
    core(question).map_err(|error| {
        RequestRefusal::new(RefusalCode::Ended, RefusalPlace::NONE, format!("the core: {error}"))
    })
}

/// The refusal that an answer is which was not asked for.
fn unexpected(answer: CoreAnswer) -> RequestRefusal {
    let why = why_unexpected(answer);
    RequestRefusal::new(RefusalCode::Refused, RefusalPlace::NONE, why)
}

/// Entries of an answer.
fn page(answer: CoreAnswer) -> Result<EntryPage, RequestRefusal> {
    match answer {
        CoreAnswer::Entries(page) => Ok(page),
        other => Err(unexpected(other)),
    }
}

/// An entry of a worker, from 0.
fn listed_entry(worker: u16, entry: ShownEntry) -> ListedEntry {
    ListedEntry { worker: worker + 1, entry: to_client(entry_of(entry)) }
}

/// An entry as the core tells it.
pub(crate) fn entry_of(ShownEntry { key, value, priority }: ShownEntry) -> Entry {
    let part = |part| match part {
        ShownMatch::Any => Match::Any,
        ShownMatch::Exact(number) => Match::Exact(number),
        ShownMatch::Prefix(value, length) => Match::Prefix { value, length },
        ShownMatch::Masked(value, mask) => Match::Masked { value, mask },
        ShownMatch::Range(low, high) => Match::Range { low, high },
    };
    Entry { key: key.into_iter().map(part).collect(), value, priority }
}
