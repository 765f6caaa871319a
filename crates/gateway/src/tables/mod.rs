//! Tables, events and punted packets for other programs: answers a client of the control socket in the binary
//! protocol, which docs/control.md describes.
//!
//! ```text
//! bytes ──► frames ──► requests ──► changes, many together ──► slices between two batches ──► answers
//!                              └──► everything else, one by one, behind the changes before it ──► answers
//! ```

mod changes;
pub(crate) mod confined;
mod declared;
mod defaults;
pub(crate) mod limits;
mod listing;
mod output;
mod replacing;
mod schema;
mod subscriptions;
#[cfg(test)]
mod tests;

use crate::limits::{PATIENCE, SILENCE};
use crate::routing::Routing;
use changes::{Action, Change};
use client::answer::TableAnswer;
use client::frame::{LONGEST_REQUEST, TableFrame};
use client::message::TableRequest;
use client::{ListedEntry, RefusalCode, RefusalPlace, RequestRefusal};
use defaults::Member;
use engine::live::{Remote, SubscriptionWish};
use limits::{ANSWERS, CHANGES_TOGETHER, SNAP, SUBSCRIBERS, SUBSCRIPTIONS};
use listing::Listing;
pub(crate) use listing::{count_on_wall, row_text, whole_table};
use output::{Output, Waits};
use replacing::Replacement;
use schema::ended;
pub(crate) use schema::{Fillers, Known};
use std::io::{self, BufReader, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use subscriptions::Passing;

/// How many bytes are read at once.
const PART: usize = 64 << 10;
/// How often a client that says nothing is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// What the conversations with all clients share.
pub(crate) struct TableAccess {
    remote: Remote,
    pub(crate) fillers: Fillers,
    /// Held by who changes tables at several workers, or lets another program take over.
    turn: Mutex<()>,
    /// Whether a client is replacing a table.
    replacing: Arc<AtomicBool>,
    /// How many clients subscribe.
    subscribers: AtomicUsize,
}

impl TableAccess {
    pub(crate) fn new(remote: Remote, routing: Arc<Routing>) -> TableAccess {
        let (turn, replacing, subscribers) = Default::default();
        let fillers = Fillers { routing, waypoint: false };
        TableAccess { remote, fillers, turn, replacing, subscribers }
    }

    /// As long as this is held, no client is in the middle of a change.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a client that speaks another version of the protocol; the refusal is a text for people.
pub(crate) fn speaks(version: u32) -> Result<(), String> {
    let other =
        || format!("`version`: this gateway speaks version {} of the protocol of tables", client::VERSION);
    if version == client::VERSION { Ok(()) } else { Err(other()) }
}

/// Answers a client until it disconnects, sends something that is not a frame, or says nothing for too long.
/// `turn` is told when the client may be disconnected to make room for another one, and when it may not.
/// `program` is the program's file.
pub(crate) fn converse(
    access: &TableAccess,
    known: Known,
    program: &dyn Fn() -> String,
    stream: &UnixStream,
    reader: BufReader<&UnixStream>,
    turn: &dyn Fn(bool),
) -> io::Result<()> {
    let mut held = reader.buffer().to_vec();
    let output = Arc::new(Output::new(stream)?);
    let mut session = Session::new(access, stream, known, program, output);
    stream.set_read_timeout(Some(LOOK))?;
    let (mut begin, mut answers, mut since) = (0, Vec::new(), Instant::now());
    loop {
        loop {
            match requests(&held, &mut begin, &mut answers, |frame, answers| session.take(frame, answers)) {
                Ok(true) => break,
                Ok(false) => session.send(&mut answers, turn)?,
                Err(fault) => {
                    session.make_changes(&mut answers);
                    TableAnswer::Error(fault).push(&mut answers, 0, &session.known.schema, None);
                    return session.output.send(&answers, Waits::Limited);
                }
            }
        }
        session.make_changes(&mut answers);
        session.send(&mut answers, turn)?;
        if begin > 0 {
            since = Instant::now();
        }
        held.drain(..begin);
        begin = 0;
        if !session.receive(&mut held, &mut since, turn)? {
            return Ok(());
        }
    }
}

/// Has each request taken that has come whole, from `begin` on, until there are enough answers to send.
/// Returns whether none is left.
///
/// # Errors
/// What is no request: nothing behind it can be understood.
fn requests(
    held: &[u8],
    begin: &mut usize,
    answers: &mut Vec<u8>,
    mut take: impl FnMut(TableFrame<'_>, &mut Vec<u8>),
) -> Result<bool, RequestRefusal> {
    while answers.len() < ANSWERS {
        let malformed = |error: client::frame::FrameError| {
            RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, error.to_string())
        };
        match TableFrame::first(&held[*begin..], LONGEST_REQUEST).map_err(malformed)? {
            Some((frame, taken)) => {
                take(frame, answers);
                *begin += taken;
            }
            None => return Ok(true),
        }
    }
    Ok(false)
}

/// The conversation with one client.
struct Session<'a> {
    access: &'a TableAccess,
    stream: &'a UnixStream,
    known: Known,
    program: &'a dyn Fn() -> String,
    output: Arc<Output>,
    /// Changes that are not made yet, with the numbers of their requests.
    changes: Vec<(u32, Change)>,
    replacement: Option<Replacement>,
    passing: Vec<Passing>,
    /// Held by the thread of each subscription, too.
    threads: Arc<()>,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // The client may have closed its sending half alone and read nothing: then its subscriptions still
        // wait for it.
        let _ = self.stream.shutdown(Shutdown::Both);
        if !self.passing.is_empty() {
            self.access.subscribers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl<'a> Session<'a> {
    fn new(
        access: &'a TableAccess,
        stream: &'a UnixStream,
        known: Known,
        program: &'a dyn Fn() -> String,
        output: Arc<Output>,
    ) -> Session<'a> {
        let (changes, passing, threads) = Default::default();
        Session { access, stream, known, program, output, changes, replacement: None, passing, threads }
    }

    /// Sends answers. A client that does not read them may have to make room for another one meanwhile.
    fn send(&mut self, answers: &mut Vec<u8>, turn: &dyn Fn(bool)) -> io::Result<()> {
        turn(self.passing.is_empty());
        let sent = self.output.send(answers, Waits::Limited);
        turn(false);
        answers.clear();
        sent?;
        // What a subscription tells comes behind the answer to the request that began it.
        self.passing.iter_mut().for_each(Passing::begin);
        Ok(())
    }

    /// Takes in what has come. `since` is when the last whole frame came, or the first part of one behind it;
    /// a first part that comes now sets it. Returns whether the client is still there.
    fn receive(&self, held: &mut Vec<u8>, since: &mut Instant, turn: &dyn Fn(bool)) -> io::Result<bool> {
        // Whoever keeps others waiting gets less time, and a subscriber need not say anything.
        let patience = match (held.is_empty() && self.replacement.is_none(), self.passing.is_empty()) {
            (false, _) => Some(PATIENCE),
            (true, true) => Some(SILENCE),
            (true, false) => None,
        };
        turn(self.passing.is_empty());
        let had = held.len();
        held.resize(had + PART, 0);
        let read = loop {
            if patience.is_some_and(|patience| since.elapsed() >= patience) {
                break Ok(0);
            }
            match (&mut &*self.stream).read(&mut held[had..]) {
                Ok(read) => break Ok(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => break Err(error),
            }
        };
        turn(false);
        held.truncate(had + *read.as_ref().unwrap_or(&0));
        if had == 0 {
            *since = Instant::now();
        }
        read.map(|read| read > 0)
    }

    /// Takes a request. Its answer comes at once, or for a change behind that of the changes before it.
    fn take(&mut self, frame: TableFrame<'_>, answers: &mut Vec<u8>) {
        let number = frame.number;
        match TableRequest::read(frame, &self.known.schema).and_then(|request| self.change(request)) {
            Ok(Asked::Change(change)) => {
                self.changes.push((number, change));
                if self.changes.len() >= CHANGES_TOGETHER {
                    self.make_changes(answers);
                }
            }
            Ok(Asked::Other(request)) => {
                self.make_changes(answers);
                let table = request.table();
                let answer = self.answer(number, request).unwrap_or_else(TableAnswer::Error);
                answer.push(answers, number, &self.known.schema, table);
            }
            Err(fault) => {
                self.make_changes(answers);
                TableAnswer::Error(fault).push(answers, number, &self.known.schema, None);
            }
        }
    }

    /// The change that a request asks for, if it asks for one.
    fn change(&self, request: TableRequest) -> Result<Asked, RequestRefusal> {
        let (number, action, entry) = match request {
            TableRequest::Insert { table, entry } => (table, Action::Insert, entry),
            TableRequest::Learn { table, entry, lifetime } => {
                lifetime.map_or(Ok(()), |lifetime| self.known.may_live(table, lifetime))?;
                (table, Action::Learn { lifetime }, entry)
            }
            TableRequest::Remove { table, key, priority } => {
                (table, Action::Remove, client::TableEntry { key, priority, value: Vec::new() })
            }
            other => return Ok(Asked::Other(other)),
        };
        let refuses = &self.known.table(number)?.0.refuses;
        let refused = if action == Action::Remove { &refuses.remove } else { &refuses.insert };
        if let Some(why) = refused {
            return Err(RequestRefusal::new(RefusalCode::Closed, RefusalPlace::NONE, why));
        }
        let entry = self.known.entry(number, entry, 0)?;
        self.known.is_narrow(number, &entry.key)?;
        Ok(Asked::Change(Change { table: number.into(), action, entry }))
    }

    /// Makes the changes that were taken, and answers them.
    fn make_changes(&mut self, answers: &mut Vec<u8>) {
        if self.changes.is_empty() {
            return;
        }
        let (numbers, changes): (Vec<u32>, Vec<Change>) = self.changes.drain(..).unzip();
        let made =
            changes::make(&self.access.remote, &self.access.turn, self.known.schema.generation, changes);
        for (number, made) in numbers.into_iter().zip(made) {
            let answer = made.map_or_else(TableAnswer::Error, |count| TableAnswer::Done { count });
            answer.push(answers, number, &self.known.schema, None);
        }
    }

    fn answer(&mut self, number: u32, request: TableRequest) -> Result<TableAnswer, RequestRefusal> {
        let (remote, known) = (&self.access.remote, &self.known);
        match request {
            TableRequest::Schema => {
                self.known = Known::now(remote, &self.access.fillers, &(self.program)())?;
                self.replacement = None;
                Ok(TableAnswer::Schema(self.known.schema.clone()))
            }
            TableRequest::List { table, worker, most, cursor } => {
                let asked = Listing { table, worker, most, cursor };
                let (entries, cursor) = listing::list(remote, known, &asked)?;
                Ok(TableAnswer::Entries { cursor, entries })
            }
            TableRequest::Counts { table, worker, most, cursor } => {
                let asked = Listing { table, worker, most, cursor };
                let (entries, cursor) = listing::counts(remote, known, &asked)?;
                Ok(TableAnswer::Counts { cursor, entries })
            }
            TableRequest::Find { table, key, priority } => {
                let key = known.key(table, key, priority, 0)?;
                let entries = listing::find(remote, known, table, key, priority)?;
                Ok(TableAnswer::Entries { cursor: Vec::new(), entries })
            }
            TableRequest::Read { table, keys_alone, text } => {
                let entries = read(known, table, keys_alone, &text)?;
                Ok(TableAnswer::Entries { cursor: Vec::new(), entries })
            }
            TableRequest::Replace { table } => {
                // An earlier replacement of this client is forgotten.
                self.replacement = None;
                self.replacement = Some(Replacement::begin(&self.access.replacing, known, table)?);
                Ok(TableAnswer::Done { count: 0 })
            }
            TableRequest::More { count, entries } => {
                let replacement = self.replacement.as_mut().ok_or_else(nothing_begun)?;
                Ok(TableAnswer::Done { count: replacement.more(known, count, &entries)? })
            }
            TableRequest::Commit => {
                let replacement = self.replacement.take().ok_or_else(nothing_begun)?;
                Ok(TableAnswer::Done { count: replacement.commit(remote, &self.access.turn, known)? })
            }
            TableRequest::Abandon => {
                let begun = self.replacement.take();
                Ok(TableAnswer::Done { count: begun.is_some().into() })
            }
            TableRequest::Subscribe { snap, events, reasons } => {
                self.subscribe(number, SubscriptionWish { events, reasons, snap: snap.min(SNAP) })?;
                Ok(TableAnswer::Done { count: 1 })
            }
            TableRequest::Default { table } => {
                Ok(TableAnswer::Values(defaults::default_of(remote, known, table)?))
            }
            TableRequest::SetDefault { table, value } => {
                let count = defaults::set_default(remote, &self.access.turn, known, table, value)?;
                Ok(TableAnswer::Done { count })
            }
            TableRequest::Members { group, index } => {
                Ok(TableAnswer::Values(defaults::members(remote, known, group, index)?))
            }
            TableRequest::Join { group, index, member } => {
                let member = Member { group, index, columns: member };
                Ok(TableAnswer::Done { count: defaults::join(remote, &self.access.turn, known, member)? })
            }
            TableRequest::Leave { group, index, member } => {
                let member = Member { group, index, columns: member };
                Ok(TableAnswer::Done { count: defaults::leave(remote, &self.access.turn, known, member)? })
            }
            TableRequest::Unsubscribe { number } => Ok(TableAnswer::Done { count: self.unsubscribe(number) }),
            // Changes have been taken out before.
            TableRequest::Insert { .. } | TableRequest::Learn { .. } | TableRequest::Remove { .. } => {
                Err(RequestRefusal::new(
                    RefusalCode::Malformed,
                    RefusalPlace::NONE,
                    "a change is made in its turn",
                ))
            }
        }
    }

    fn subscribe(&mut self, number: u32, wish: SubscriptionWish) -> Result<(), RequestRefusal> {
        let limit = |message: String| RequestRefusal::new(RefusalCode::Limit, RefusalPlace::NONE, message);
        if self.passing.iter().any(|passing| passing.number == number) {
            let message = format!("request {number} has begun a subscription already: take another number");
            return Err(RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message));
        }
        let schema = &self.known.schema;
        let known = schema.events.iter().map(|event| &event.name);
        unknown("event", &wish.events, known.collect())?;
        let known = schema.reasons.iter().map(|reason| &reason.name);
        unknown("reason", &wish.reasons, known.collect())?;
        // One that was ended counts until its thread has ended, which may wait for the client.
        if Arc::strong_count(&self.threads) > SUBSCRIPTIONS {
            return Err(limit(format!("a client has at most {SUBSCRIPTIONS} subscriptions")));
        }
        if self.passing.is_empty() {
            let one_more = |now: usize| (now < SUBSCRIBERS).then_some(now + 1);
            let subscribers = &self.access.subscribers;
            subscribers
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
                .map_err(|_| limit(format!("{SUBSCRIBERS} clients subscribe already: ask again later")))?;
        }
        let begun = self.access.remote.subscribe(wish).ok_or_else(ended).and_then(|subscription| {
            Passing::new(
                number,
                subscription,
                self.known.schema.clone(),
                self.output.clone(),
                self.threads.clone(),
            )
            .map_err(|error| limit(format!("no thread for the subscription: {error}")))
        });
        match begun {
            Ok(passing) => {
                self.passing.push(passing);
                Ok(())
            }
            Err(fault) => {
                if self.passing.is_empty() {
                    self.access.subscribers.fetch_sub(1, Ordering::Relaxed);
                }
                Err(fault)
            }
        }
    }

    /// Ends a subscription; returns how many there were with this number.
    fn unsubscribe(&mut self, number: u32) -> u32 {
        let before = self.passing.len();
        self.passing.retain(|passing| passing.number != number);
        if before > 0 && self.passing.is_empty() {
            self.access.subscribers.fetch_sub(1, Ordering::Relaxed);
        }
        (before - self.passing.len()) as u32
    }
}

/// A request of a client.
enum Asked {
    /// A change, which is made together with those around it.
    Change(Change),
    /// Anything else.
    Other(TableRequest),
}

/// The entries that a text means.
fn read(known: &Known, table: u16, keys_alone: bool, text: &str) -> Result<Vec<ListedEntry>, RequestRefusal> {
    let (schema, declared) = known.table(table)?;
    let read = if keys_alone { lang::entries::read_keys } else { lang::entries::read };
    let entries = read(text, declared).map_err(|faults| {
        let Some(first) = faults.first() else {
            return RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::NONE, "the text has no entry");
        };
        let span = first.primary.span;
        let message = format!("{}: {}", first.headline, first.primary.text);
        RequestRefusal::new(RefusalCode::Misfit, RefusalPlace::text(span.start), message)
    })?;
    let entry = |mut entry: ir::Entry| {
        entry.value.resize(schema.values.len(), 0);
        ListedEntry { worker: 0, entry: schema::to_client(entry) }
    };
    Ok(entries.into_iter().map(entry).collect())
}

fn nothing_begun() -> RequestRefusal {
    let message = "no replacement has begun: ask to replace a table first";
    RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message)
}

/// An error for the first name that is not known.
fn unknown(what: &str, names: &[String], known: Vec<&String>) -> Result<(), RequestRefusal> {
    let Some(name) = names.iter().find(|name| !known.contains(name)) else { return Ok(()) };
    let known = match known.as_slice() {
        [] => "has none".to_owned(),
        known => format!("has {}", known.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ")),
    };
    let message = format!("there is no {what} `{name}`; the program {known}");
    Err(RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message))
}
