//! A client of the control socket: asks, changes, lists and subscribes.
//!
//! Requests of one client are carried out in their order. [`TableClient::change`] keeps several of them in
//! flight; what a subscription tells is kept apart from the answers until somebody asks for it.

use crate::VERSION;
use crate::answer::{ListedValue, TableAnswer};
use crate::entry::{self, CountedEntry, KeyMatch, ListedEntry, TableEntry};
use crate::frame::{LONGEST_ANSWER, LONGEST_REQUEST, TableFrame};
use crate::message::{RefusalCode, RefusalPlace, RequestRefusal, TableRequest};
use crate::schema::ProgramSchema;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType, sockopt};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the answer to *commit* is waited for: a table of many entries is built for each worker.
const COMMITTED: Duration = Duration::from_secs(300);
/// The largest number of changes in flight.
const IN_FLIGHT: usize = 1024;
/// About how many bytes of entries a request of a replacement has, and the largest number that is possible.
const MORE: usize = 128 << 10;
const LONGEST_MORE: usize = LONGEST_REQUEST - 9;
/// Bytes that are read at once.
const PART: usize = 64 << 10;
/// The largest number of events and packets that wait until somebody asks for them; the oldest ones go first,
/// and are counted.
const WAITING: usize = 1 << 16;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody can be asked at the socket, or the connection broke.
    #[error("{0}")]
    Connection(#[from] io::Error),
    /// The gateway refused the request, or the client refuses to send it.
    #[error("{0}")]
    Refused(#[from] RequestRefusal),
    /// The gateway answers no requests of this client.
    #[error("{0}")]
    TurnedAway(String),
    /// Nothing came for this many seconds.
    #[error(
        "the gateway has said nothing for {0} s: it hangs or was stopped, or the machine has no time for it; what was asked may still be done"
    )]
    Silent(u64),
    /// An earlier failure of this connection, after which answers could not be told apart.
    #[error("the connection failed before: connect again")]
    Failed,
    /// The gateway said something that cannot be understood.
    #[error("the gateway's answer is not understood: {0}")]
    Answer(String),
}

/// What a subscription told, with the number of the subscription.
pub type Pushed = (u32, TableAnswer);

/// A connection to a gateway. After any error but a refusal, all further requests fail.
pub struct TableClient {
    stream: UnixStream,
    held: Vec<u8>,
    begin: usize,
    schema: Arc<ProgramSchema>,
    /// For each subscription, the schema by which its next events are numbered.
    told: HashMap<u32, Arc<ProgramSchema>>,
    /// The schema of what [`TableClient::next`] returned last.
    shown: Arc<ProgramSchema>,
    next: u32,
    pushed: VecDeque<(Pushed, Arc<ProgramSchema>)>,
    /// For each subscription, how much found no room in `pushed` since it was last told.
    lost: BTreeMap<u32, u64>,
    failed: bool,
}

/// A frame that has come.
enum Came {
    /// An answer, with the number of its request.
    Answer(u32, TableAnswer),
    /// What a subscription tells, with the schema by which it is numbered.
    Pushed(Pushed, Arc<ProgramSchema>),
}

/// Connects to the socket at `path`. Neither connecting nor anything that is sent or read over the connection
/// takes longer than `patience` without any progress.
///
/// # Errors
/// Nobody listens there, or the listener does not accept in time.
pub fn connect(path: &Path, patience: Duration) -> io::Result<UnixStream> {
    let socket = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // Connecting counts as sending here (unix(7), SO_SNDTIMEO).
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(patience))?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(patience))?;
    net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    Ok(UnixStream::from(socket))
}

impl TableClient {
    /// Connects to the gateway whose control socket is at `path`, and asks for its tables.
    ///
    /// # Errors
    /// Nobody answers there, or it speaks another version.
    pub fn connect(path: &Path) -> Result<TableClient, ClientError> {
        TableClient::over(connect(path, PATIENCE).map_err(broken)?)
    }

    /// As [`TableClient::connect`], over a connection that is there already.
    ///
    /// # Errors
    /// As for [`TableClient::connect`].
    pub fn over(stream: UnixStream) -> Result<TableClient, ClientError> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut client = TableClient {
            stream,
            held: Vec::new(),
            begin: 0,
            schema: Arc::default(),
            told: HashMap::new(),
            shown: Arc::default(),
            next: 1,
            pushed: VecDeque::new(),
            lost: BTreeMap::new(),
            failed: false,
        };
        client.write(format!("{{\"ask\":\"tables\",\"version\":{VERSION}}}\n").as_bytes())?;
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
        if let Some(error) = answer.get("error").and_then(serde_json::Value::as_str) {
            return Err(ClientError::TurnedAway(error.to_owned()));
        }
        let tables = answer.get_mut("tables").map(serde_json::Value::take);
        let tables =
            tables.ok_or_else(|| ClientError::Answer("its first line names no tables".to_owned()))?;
        client.schema = Arc::new(serde_json::from_value(tables).map_err(wrong)?);
        client.shown = client.schema.clone();
        Ok(client)
    }

    /// The tables, events and reasons of the program to which requests are addressed.
    pub fn schema(&self) -> &ProgramSchema {
        &self.schema
    }

    /// The events and reasons of the program that what [`TableClient::next`] returned last is about.
    pub fn told_schema(&self) -> &ProgramSchema {
        &self.shown
    }

    /// Asks for the schema again, after another program has taken over.
    ///
    /// # Errors
    /// As for every request: the connection, or what the gateway refuses.
    pub fn renew(&mut self) -> Result<&ProgramSchema, ClientError> {
        if let TableAnswer::Schema(schema) = self.ask(&TableRequest::Schema)? {
            self.schema = Arc::new(schema);
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

    /// At most `most` entries of a table from a cursor on, with what each has counted at a worker (from 1),
    /// and the cursor for the next ones, which is empty at the end.
    ///
    /// # Errors
    /// As for every request; also the entries of the table do not count.
    pub fn counts(
        &mut self,
        table: u16,
        worker: u16,
        most: u32,
        cursor: Vec<u8>,
    ) -> Result<(Vec<CountedEntry>, Vec<u8>), ClientError> {
        match self.ask(&TableRequest::Counts { table, worker, most, cursor })? {
            TableAnswer::Counts { cursor, entries } => Ok((entries, cursor)),
            other => Err(unexpected(&other)),
        }
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

    /// The default entry of a table, once for each different one that workers have; none if there is none.
    ///
    /// # Errors
    /// As for every request.
    pub fn default_of(&mut self, table: u16) -> Result<Vec<ListedValue>, ClientError> {
        self.values(&TableRequest::Default { table })
    }

    /// The members of a group, each once for all workers that have it.
    ///
    /// # Errors
    /// As for every request.
    pub fn members(&mut self, group: u16, index: u32) -> Result<Vec<ListedValue>, ClientError> {
        self.values(&TableRequest::Members { group, index })
    }

    fn values(&mut self, request: &TableRequest) -> Result<Vec<ListedValue>, ClientError> {
        match self.ask(request)? {
            TableAnswer::Values(values) => Ok(values),
            other => Err(unexpected(&other)),
        }
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
    /// The connection; what the gateway refuses, and what does not fit its table, goes to `told`.
    pub fn change(
        &mut self,
        changes: impl IntoIterator<Item = TableRequest>,
        mut told: impl FnMut(usize, Result<u32, RequestRefusal>),
    ) -> Result<(), ClientError> {
        let changed = self.change_all(&mut changes.into_iter(), &mut told);
        self.noted(changed)
    }

    fn change_all(
        &mut self,
        changes: &mut dyn Iterator<Item = TableRequest>,
        told: &mut dyn FnMut(usize, Result<u32, RequestRefusal>),
    ) -> Result<(), ClientError> {
        self.is_whole()?;
        // The number of each request in flight; or why it was not sent.
        let mut waiting: VecDeque<Result<u32, RequestRefusal>> = VecDeque::new();
        let mut place = 0;
        loop {
            let mut bytes = Vec::new();
            while waiting.len() < IN_FLIGHT
                && let Some(change) = changes.next()
            {
                let number = self.number();
                waiting.push_back(change.push(&mut bytes, number, &self.schema).map(|()| number));
                if bytes.len() >= PART {
                    break;
                }
            }
            self.write(&bytes)?;
            if waiting.is_empty() {
                return Ok(());
            }
            // Half of what is in flight is enough to keep the gateway busy meanwhile.
            let least = if bytes.is_empty() { waiting.len() } else { waiting.len().div_ceil(2) };
            for sent in waiting.drain(..least).collect::<Vec<_>>() {
                match sent {
                    Ok(number) => match self.answer(number, None)? {
                        TableAnswer::Done { count } => told(place, Ok(count)),
                        TableAnswer::Error(fault) => told(place, Err(fault)),
                        other => return Err(unexpected(&other)),
                    },
                    Err(fault) => told(place, Err(fault)),
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
    /// As for every request. If it was refused, nothing has changed, and the place of the refusal names the
    /// entry. If the connection broke, nobody knows.
    pub fn replace(
        &mut self,
        table: u16,
        entries: impl IntoIterator<Item = TableEntry>,
    ) -> Result<u32, ClientError> {
        self.change_one(&TableRequest::Replace { table })?;
        let replaced = self.collect(table, &mut entries.into_iter());
        let replaced = replaced.and_then(|()| self.change_one(&TableRequest::Commit));
        if let Err(ClientError::Refused(_)) = &replaced {
            // Until then no other client can replace a table. There may be nothing left to abandon.
            self.change_one(&TableRequest::Abandon)?;
        }
        replaced
    }

    /// Sends the entries of a replacement.
    fn collect(
        &mut self,
        table: u16,
        entries: &mut dyn Iterator<Item = TableEntry>,
    ) -> Result<(), ClientError> {
        let schema = self.schema.clone();
        let schema = crate::message::table(&schema, table)?;
        let (mut bytes, mut sent, mut count, mut one) = (Vec::new(), 0, 0, Vec::new());
        for entry in entries {
            one.clear();
            let place = sent + count;
            entry::push(&mut one, schema, &entry, place)?;
            if one.len() > LONGEST_MORE {
                let message =
                    format!("an entry has at most {LONGEST_MORE} bytes; this one has {}", one.len());
                let place = RefusalPlace::entry(place);
                return Err(RequestRefusal::new(RefusalCode::Limit, place, message).into());
            }
            if count > 0 && bytes.len() + one.len() > MORE {
                self.more(&mut sent, &mut count, &mut bytes)?;
            }
            bytes.extend(&one);
            count += 1;
        }
        if count > 0 { self.more(&mut sent, &mut count, &mut bytes) } else { Ok(()) }
    }

    /// Sends some entries of a replacement; the place of a refusal counts from the first one of all.
    fn more(&mut self, sent: &mut u32, count: &mut u32, bytes: &mut Vec<u8>) -> Result<(), ClientError> {
        let request = TableRequest::More { count: *count, entries: std::mem::take(bytes) };
        self.change_one(&request).map_err(|error| match error {
            ClientError::Refused(mut fault) => {
                fault.place.entry += *sent;
                ClientError::Refused(fault)
            }
            other => other,
        })?;
        *sent += std::mem::take(count);
        Ok(())
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
        let number = self.number();
        // The events of a program that takes over come behind its schema.
        self.told.insert(number, self.schema.clone());
        let request = TableRequest::Subscribe { snap, events, reasons };
        let subscribed = match self.ask_as(number, &request) {
            Ok(TableAnswer::Done { .. }) => Ok(number),
            Ok(other) => Err(unexpected(&other)),
            Err(error) => Err(error),
        };
        if subscribed.is_err() {
            self.told.remove(&number);
        }
        subscribed
    }

    /// Ends a subscription; returns whether there was one with this number. What it has told already is still
    /// there, and so is what found no room.
    ///
    /// # Errors
    /// As for every request.
    pub fn unsubscribe(&mut self, number: u32) -> Result<bool, ClientError> {
        let ended = self.change_one(&TableRequest::Unsubscribe { number })? > 0;
        // Frames that were on their way have no reader any more.
        self.told.remove(&number);
        Ok(ended)
    }

    /// The next thing that a subscription tells; `None` if nothing came within `patience`.
    ///
    /// # Errors
    /// The connection broke.
    pub fn next(&mut self, patience: Duration) -> Result<Option<Pushed>, ClientError> {
        self.is_whole()?;
        if let Some((number, count)) = self.lost.pop_first() {
            return Ok(Some((number, TableAnswer::Lost { count })));
        }
        let next = match self.pushed.pop_front() {
            Some(pushed) => Ok(Some(pushed)),
            None => self.wait(patience),
        };
        Ok(self.noted(next)?.map(|(pushed, schema)| {
            self.shown = schema;
            pushed
        }))
    }

    /// Waits for what a subscription tells.
    fn wait(&mut self, patience: Duration) -> Result<Option<(Pushed, Arc<ProgramSchema>)>, ClientError> {
        self.stream.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let pushed = loop {
            match self.one(None)? {
                Some(Came::Pushed(pushed, schema)) => break Some((pushed, schema)),
                Some(Came::Answer(_, answer)) => return Err(unexpected(&answer)),
                None => match self.receive() {
                    Ok(()) => {}
                    Err(ClientError::Silent(_)) => break None,
                    Err(error) => return Err(error),
                },
            }
        };
        self.stream.set_read_timeout(Some(PATIENCE))?;
        Ok(pushed)
    }

    /// A number that no request in flight and no subscription has.
    fn number(&mut self) -> u32 {
        loop {
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            // The gateway uses 0 for errors that belong to no request.
            if number != 0 && !self.told.contains_key(&number) {
                return number;
            }
        }
    }

    /// An error if an earlier request failed.
    fn is_whole(&self) -> Result<(), ClientError> {
        if self.failed { Err(ClientError::Failed) } else { Ok(()) }
    }

    /// Remembers a failure after which answers cannot be told apart.
    fn noted<T>(&mut self, result: Result<T, ClientError>) -> Result<T, ClientError> {
        self.failed |= matches!(&result, Err(error) if !matches!(error, ClientError::Refused(_)));
        result
    }

    fn ask(&mut self, request: &TableRequest) -> Result<TableAnswer, ClientError> {
        let number = self.number();
        self.ask_as(number, request)
    }

    fn ask_as(&mut self, number: u32, request: &TableRequest) -> Result<TableAnswer, ClientError> {
        self.is_whole()?;
        let mut bytes = Vec::new();
        request.push(&mut bytes, number, &self.schema)?;
        let answer = self.exchange(number, request, &bytes);
        match self.noted(answer)? {
            TableAnswer::Error(fault) => Err(fault.into()),
            answer => Ok(answer),
        }
    }

    fn exchange(
        &mut self,
        number: u32,
        request: &TableRequest,
        bytes: &[u8],
    ) -> Result<TableAnswer, ClientError> {
        self.write(bytes)?;
        if *request != TableRequest::Commit {
            return self.answer(number, request.table());
        }
        self.stream.set_read_timeout(Some(COMMITTED))?;
        let answer = self.answer(number, None);
        self.stream.set_read_timeout(Some(PATIENCE))?;
        answer
    }

    /// The answer to a request; what subscriptions tell meanwhile waits.
    fn answer(&mut self, number: u32, table: Option<u16>) -> Result<TableAnswer, ClientError> {
        loop {
            match self.one(table)? {
                Some(Came::Answer(of, answer)) if of == number => return Ok(answer),
                Some(Came::Answer(_, answer)) => return Err(unexpected(&answer)),
                Some(Came::Pushed(pushed, schema)) => self.keep(pushed, schema),
                None => self.receive()?,
            }
        }
    }

    /// Keeps what a subscription tells until somebody asks for it.
    fn keep(&mut self, pushed: Pushed, schema: Arc<ProgramSchema>) {
        if self.pushed.len() >= WAITING
            && let Some(((number, oldest), _)) = self.pushed.pop_front()
        {
            let count = if let TableAnswer::Lost { count } = oldest { count } else { 1 };
            *self.lost.entry(number).or_default() += count;
        }
        self.pushed.push_back((pushed, schema));
    }

    /// The next frame that has come whole. `table` is the table that entries belong to.
    fn one(&mut self, table: Option<u16>) -> Result<Option<Came>, ClientError> {
        let wrong = |error: &dyn std::fmt::Display| ClientError::Answer(error.to_string());
        loop {
            let first = TableFrame::first(&self.held[self.begin..], LONGEST_ANSWER);
            let Some((frame, taken)) = first.map_err(|error| wrong(&error))? else { return Ok(None) };
            let (number, is_told) = (frame.number, matches!(frame.kind, 132..=134));
            let told = self.told.get(&number);
            let schema = told.filter(|_| is_told).unwrap_or(&self.schema).clone();
            let answer = if is_told && told.is_none() {
                // A subscription that has ended.
                None
            } else {
                Some(TableAnswer::read(frame, &schema, table).map_err(|fault| wrong(&fault))?)
            };
            self.begin += taken;
            match answer {
                None => {}
                Some(TableAnswer::Error(fault)) if number == 0 => return Err(fault.into()),
                Some(TableAnswer::Schema(newer)) if self.told.contains_key(&number) => {
                    self.told.insert(number, Arc::new(newer));
                }
                Some(answer) if is_told => return Ok(Some(Came::Pushed((number, answer), schema))),
                Some(answer) => return Ok(Some(Came::Answer(number, answer))),
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), ClientError> {
        self.stream.write_all(bytes).map_err(broken)
    }

    /// Takes in what has come, at least one byte.
    fn receive(&mut self) -> Result<(), ClientError> {
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
        match read.map_err(broken)? {
            0 => Err(broken(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the gateway has ended the connection",
            ))),
            _ => Ok(()),
        }
    }
}

/// The error of a connection that broke, or over which nothing comes.
fn broken(error: io::Error) -> ClientError {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => ClientError::Silent(PATIENCE.as_secs()),
        _ => ClientError::Connection(error),
    }
}

fn unexpected(answer: &TableAnswer) -> ClientError {
    let name = match answer {
        TableAnswer::Done { .. } => "done",
        TableAnswer::Schema(_) => "a schema",
        TableAnswer::Entries { .. } => "entries",
        TableAnswer::Values(_) => "values",
        TableAnswer::Event(_) => "an event",
        TableAnswer::Punt(_) => "a packet",
        TableAnswer::Lost { .. } => "a loss",
        TableAnswer::Counts { .. } => "counts",
        TableAnswer::Error(_) => "an error",
    };
    ClientError::Answer(format!("{name} was not asked for"))
}
