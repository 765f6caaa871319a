//! A client of the control socket: asks, changes, lists and subscribes.
//!
//! Requests of one client are carried out in their order. [`TableClient::change`] keeps several of them in
//! flight; what a subscription tells is kept apart from the answers until somebody asks for it.

use crate::VERSION;
use crate::entry::{self, KeyMatch, ListedEntry, TableEntry};
use crate::frame::{LONGEST_ANSWER, TableFrame};
use crate::message::{RequestRefusal, TableAnswer, TableRequest};
use crate::schema::ProgramSchema;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The largest number of changes in flight.
const IN_FLIGHT: usize = 1024;
/// The largest number of bytes of entries in a request of a replacement.
const MORE: usize = 128 << 10;
/// Bytes that are read at once.
const PART: usize = 64 << 10;
/// The largest number of events and packets that wait until somebody asks for them; the oldest ones go first.
const WAITING: usize = 1 << 16;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody can be asked at the socket, or the connection broke.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The gateway refused the request.
    #[error("{0}")]
    Refused(#[from] RequestRefusal),
    /// The gateway said something that cannot be understood.
    #[error("the gateway's answer is not understood: {0}")]
    Answer(String),
}

/// What a subscription told, with the number of the subscription.
pub type Pushed = (u32, TableAnswer);

/// A connection to a gateway.
pub struct TableClient {
    stream: UnixStream,
    held: Vec<u8>,
    begin: usize,
    schema: ProgramSchema,
    /// The schemas of subscriptions for which another program has taken over.
    newer: Option<ProgramSchema>,
    next: u32,
    pushed: VecDeque<Pushed>,
}

impl TableClient {
    /// Connects to the gateway whose control socket is at `path`, and asks for its tables.
    ///
    /// # Errors
    /// Nobody answers there, or it speaks another version.
    pub fn connect(path: &Path) -> Result<TableClient, ClientError> {
        TableClient::over(UnixStream::connect(path)?)
    }

    /// As [`TableClient::connect`], over a connection that is there already.
    ///
    /// # Errors
    /// As for [`TableClient::connect`].
    pub fn over(stream: UnixStream) -> Result<TableClient, ClientError> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        (&stream).write_all(format!("{{\"ask\":\"tables\",\"version\":{VERSION}}}\n").as_bytes())?;
        let mut client = TableClient {
            stream,
            held: Vec::new(),
            begin: 0,
            schema: ProgramSchema::default(),
            newer: None,
            next: 1,
            pushed: VecDeque::new(),
        };
        let line = loop {
            if let Some(end) = client.held.iter().position(|byte| *byte == b'\n') {
                let line = client.held[..end].to_vec();
                client.begin = end + 1;
                break line;
            }
            if client.held.len() > LONGEST_ANSWER {
                return Err(ClientError::Answer("its first line has no end".to_owned()));
            }
            client.receive()?;
        };
        let wrong = |error: serde_json::Error| ClientError::Answer(error.to_string());
        let mut answer: serde_json::Value = serde_json::from_slice(&line).map_err(wrong)?;
        if let Some(error) = answer["error"].as_str() {
            return Err(ClientError::Answer(error.to_owned()));
        }
        client.schema = serde_json::from_value(answer["tables"].take()).map_err(wrong)?;
        Ok(client)
    }

    /// The tables, events and reasons of the program to which requests are addressed.
    pub fn schema(&self) -> &ProgramSchema {
        &self.schema
    }

    /// The tables, events and reasons of the program that the subscription told of last.
    pub fn told_schema(&self) -> &ProgramSchema {
        self.newer.as_ref().unwrap_or(&self.schema)
    }

    /// Asks for the schema again, after another program has taken over.
    ///
    /// # Errors
    /// As for every request: the connection, or what the gateway refuses.
    pub fn renew(&mut self) -> Result<&ProgramSchema, ClientError> {
        if let TableAnswer::Schema(schema) = self.ask(&TableRequest::Schema)? {
            self.schema = schema;
        }
        Ok(&self.schema)
    }

    /// At most `most` entries of a table, and the cursor of the next part, which is empty at the end. An
    /// empty cursor begins. `worker` is 0 for what any worker has, each entry once.
    ///
    /// # Errors
    /// As for every request.
    pub fn list(
        &mut self,
        table: u16,
        worker: u16,
        most: u32,
        cursor: Vec<u8>,
    ) -> Result<(Vec<ListedEntry>, Vec<u8>), ClientError> {
        self.entries(&TableRequest::List { table, worker, most, cursor })
    }

    /// The entries with this key, one for each different value that workers have for it.
    ///
    /// # Errors
    /// As for every request.
    pub fn find(
        &mut self,
        table: u16,
        key: Vec<KeyMatch>,
        priority: u32,
    ) -> Result<Vec<ListedEntry>, ClientError> {
        Ok(self.entries(&TableRequest::Find { table, key, priority })?.0)
    }

    /// The entries that a text of the language means, or with `keys_alone` entries without values.
    ///
    /// # Errors
    /// As for every request; the place of a refusal is a byte of the text.
    pub fn read(&mut self, table: u16, text: &str, keys_alone: bool) -> Result<Vec<TableEntry>, ClientError> {
        // An answer has the entries with the table's values: zeros for keys alone.
        let request = TableRequest::Read { table, keys_alone, text: text.to_owned() };
        Ok(self.entries(&request)?.0.into_iter().map(|listed| listed.entry).collect())
    }

    fn entries(&mut self, request: &TableRequest) -> Result<(Vec<ListedEntry>, Vec<u8>), ClientError> {
        match self.ask(request)? {
            TableAnswer::Entries { cursor, entries } => Ok((entries, cursor)),
            other => Err(unexpected(&other)),
        }
    }

    /// Carries out changes (inserting, learning, removing) in their order, many of them in flight. Passes the
    /// place of each and what became of it to `told`: how many entries it changed, or why it was refused.
    ///
    /// # Errors
    /// The connection; what the gateway refuses goes to `told`.
    pub fn change(
        &mut self,
        changes: impl IntoIterator<Item = TableRequest>,
        mut told: impl FnMut(usize, Result<u32, RequestRefusal>),
    ) -> Result<(), ClientError> {
        let mut changes = changes.into_iter();
        let (mut waiting, mut place) = (VecDeque::new(), 0);
        loop {
            let mut bytes = Vec::new();
            while waiting.len() < IN_FLIGHT
                && let Some(change) = changes.next()
            {
                waiting.push_back(self.number());
                change.push(&mut bytes, self.next - 1, &self.schema);
                if bytes.len() >= PART {
                    break;
                }
            }
            self.stream.write_all(&bytes)?;
            if waiting.is_empty() {
                return Ok(());
            }
            // Half of what is in flight is enough to keep the gateway busy meanwhile.
            let least = if bytes.is_empty() { waiting.len() } else { waiting.len() / 2 };
            for _ in 0..least {
                let Some(number) = waiting.pop_front() else { break };
                match self.answer(number, None)? {
                    TableAnswer::Done { count } => told(place, Ok(count)),
                    TableAnswer::Error(fault) => told(place, Err(fault)),
                    other => return Err(unexpected(&other)),
                }
                place += 1;
            }
        }
    }

    /// Carries out one change; returns how many entries it changed.
    ///
    /// # Errors
    /// As for every request.
    pub fn change_one(&mut self, change: &TableRequest) -> Result<u32, ClientError> {
        match self.ask(change)? {
            TableAnswer::Done { count } => Ok(count),
            other => Err(unexpected(&other)),
        }
    }

    /// Replaces all entries of a table at once; returns how many there are now. Nothing changes before all
    /// of them have been taken.
    ///
    /// # Errors
    /// As for every request; then nothing has changed.
    pub fn replace(
        &mut self,
        table: u16,
        entries: impl IntoIterator<Item = TableEntry>,
    ) -> Result<u32, ClientError> {
        let Some(schema) = self.schema.tables.get(usize::from(table)).cloned() else {
            return Err(ClientError::Answer(format!("there is no table {table}")));
        };
        self.change_one(&TableRequest::Replace { table })?;
        let mut entries = entries.into_iter().peekable();
        while entries.peek().is_some() {
            let (mut bytes, mut count) = (Vec::new(), 0);
            while bytes.len() < MORE
                && let Some(next) = entries.next()
            {
                entry::push(&mut bytes, &schema, &next);
                count += 1;
            }
            self.change_one(&TableRequest::More { count, entries: bytes })?;
        }
        self.change_one(&TableRequest::Commit)
    }

    /// Subscribes to events and to packets that are punted for these reasons; returns the number of the
    /// subscription.
    ///
    /// # Errors
    /// As for every request.
    pub fn subscribe(
        &mut self,
        events: Vec<String>,
        reasons: Vec<String>,
        snap: u32,
    ) -> Result<u32, ClientError> {
        self.change_one(&TableRequest::Subscribe { snap, events, reasons })?;
        Ok(self.next - 1)
    }

    /// The next thing that a subscription tells; `None` if nothing came within `patience`.
    ///
    /// # Errors
    /// The connection broke.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Pushed>, ClientError> {
        if let Some(pushed) = self.pushed.pop_front() {
            return Ok(Some(pushed));
        }
        self.stream.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let pushed = loop {
            match self.one(None) {
                Ok(Some(pushed)) => break Ok(Some(pushed)),
                Ok(None) => match self.receive() {
                    Ok(()) => {}
                    Err(error) if is_silence(&error) => break Ok(None),
                    Err(error) => break Err(error.into()),
                },
                Err(error) => break Err(error),
            }
        };
        self.stream.set_read_timeout(Some(PATIENCE))?;
        pushed
    }

    fn number(&mut self) -> u32 {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        number
    }

    fn ask(&mut self, request: &TableRequest) -> Result<TableAnswer, ClientError> {
        let number = self.number();
        let mut bytes = Vec::new();
        request.push(&mut bytes, number, &self.schema);
        self.stream.write_all(&bytes)?;
        let table = match request {
            TableRequest::List { table, .. }
            | TableRequest::Find { table, .. }
            | TableRequest::Read { table, .. } => Some(*table),
            _ => None,
        };
        match self.answer(number, table)? {
            TableAnswer::Error(fault) => Err(fault.into()),
            answer => Ok(answer),
        }
    }

    /// The answer to a request; what subscriptions tell meanwhile waits.
    fn answer(&mut self, number: u32, table: Option<u16>) -> Result<TableAnswer, ClientError> {
        loop {
            match self.one(table)? {
                Some((of, answer)) if of == number => return Ok(answer),
                Some(pushed) => {
                    if self.pushed.len() >= WAITING {
                        self.pushed.pop_front();
                    }
                    self.pushed.push_back(pushed);
                }
                None => self.receive()?,
            }
        }
    }

    /// The next frame that has come whole.
    fn one(&mut self, table: Option<u16>) -> Result<Option<Pushed>, ClientError> {
        let wrong = |error: &dyn std::fmt::Display| ClientError::Answer(error.to_string());
        loop {
            let first = TableFrame::first(&self.held[self.begin..], LONGEST_ANSWER);
            let Some((frame, taken)) = first.map_err(|error| wrong(&error))? else { return Ok(None) };
            let told = matches!(frame.kind, 132..=134);
            let schema = if told { self.newer.as_ref().unwrap_or(&self.schema) } else { &self.schema };
            let (number, answer) = (frame.number, TableAnswer::read(frame, schema, table));
            self.begin += taken;
            match answer.map_err(|fault| wrong(&fault))? {
                // Only a request for the schema gets this as its answer, and it was the last one.
                TableAnswer::Schema(schema) if number != self.next.wrapping_sub(1) => {
                    self.newer = Some(schema);
                }
                answer => return Ok(Some((number, answer))),
            }
        }
    }

    /// Takes in what has come, at least one byte.
    fn receive(&mut self) -> io::Result<()> {
        self.held.drain(..self.begin);
        self.begin = 0;
        let had = self.held.len();
        self.held.resize(had + PART, 0);
        let read = loop {
            match self.stream.read(&mut self.held[had..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read,
            }
        };
        self.held.truncate(had + *read.as_ref().unwrap_or(&0));
        match read? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the gateway has ended the connection")),
            _ => Ok(()),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

fn unexpected(answer: &TableAnswer) -> ClientError {
    let name = match answer {
        TableAnswer::Done { .. } => "done",
        TableAnswer::Schema(_) => "a schema",
        TableAnswer::Entries { .. } => "entries",
        TableAnswer::Event(_) => "an event",
        TableAnswer::Punt(_) => "a packet",
        TableAnswer::Lost { .. } => "a loss",
        TableAnswer::Error(_) => "an error",
    };
    ClientError::Answer(format!("{name} was not asked for"))
}
