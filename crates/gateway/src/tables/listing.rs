//! Lists entries part by part, and finds single ones: workers copy a few entries between two batches.
//!
//! ```text
//! cursor    worker u16, place (bits u128, length u8): 19 bytes, big-endian
//! ```
//!
//! The entries of all workers are those of the first one, then those of the second one that the first has
//! not, and so on. What changes meanwhile may be listed twice or not at all; in an exact table, whose entries
//! move when others come and go, so may any entry.

use super::changes::changed;
use super::limits::{ENTRIES, LISTED, LISTED_BYTES, LISTED_STEPS};
use super::schema::{Known, ended, to_client};
use client::{
    CountedEntry, EntryCountTold, ListedEntry, RefusalCode, RefusalPlace, RequestRefusal, TableSchema,
};
use engine::live::Remote;
use exec::{CountedPart, EntryCount, EntryPlace};
use ir::{Entry, Match};
use ports::live::clock::{Clock, MachineClock, Now};
use std::ops::Range;
use std::sync::Arc;

/// Where a list goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The worker, from 0.
    pub(super) worker: u16,
    pub(super) place: EntryPlace,
}

impl Cursor {
    pub(super) fn bytes(self) -> Vec<u8> {
        let (bits, length) = self.place.numbers();
        [&self.worker.to_be_bytes()[..], &bits.to_be_bytes(), &[length]].concat()
    }

    fn read(bytes: &[u8]) -> Option<Cursor> {
        let (worker, rest) = bytes.split_first_chunk::<2>()?;
        let (bits, rest) = rest.split_first_chunk::<16>()?;
        let [length] = *rest else { return None };
        let place = EntryPlace::of_numbers((u128::from_be_bytes(*bits), length));
        Some(Cursor { worker: u16::from_be_bytes(*worker), place })
    }
}

/// Which entries are asked for.
pub(super) struct Listing {
    pub(super) table: u16,
    /// The worker, from 1; 0 for all.
    pub(super) worker: u16,
    pub(super) most: u32,
    pub(super) cursor: Vec<u8>,
}

impl Listing {
    /// The workers that are asked, from 0; there are so many.
    pub(super) fn workers(&self, workers: u16) -> Result<Range<u16>, RequestRefusal> {
        is_there(self.worker, workers)?;
        Ok(if self.worker == 0 { 0..workers } else { self.worker - 1..self.worker })
    }

    /// Where a list of entries of these workers begins or goes on.
    pub(super) fn begin(&self, workers: Range<u16>) -> Result<Cursor, RequestRefusal> {
        match self.cursor.as_slice() {
            [] => Ok(Cursor { worker: workers.start, place: EntryPlace::default() }),
            bytes => Cursor::read(bytes).filter(|cursor| workers.contains(&cursor.worker)).ok_or_else(|| {
                let message = "the cursor is none of this list: send the one of the last answer, or none";
                RequestRefusal::new(RefusalCode::Malformed, RefusalPlace::NONE, message)
            }),
        }
    }
}

/// Entries, and the bytes of the cursor for the next ones.
pub(super) type Part = (Vec<ListedEntry>, Vec<u8>);

/// Entries with what they have counted, and the bytes of the cursor for the next ones.
pub(super) type CountsPart = (Vec<CountedEntry>, Vec<u8>);

/// Entries of a table from the cursor on. There may be none, although a cursor says that more follow.
pub(super) fn list(remote: &Remote, known: &Known, asked: &Listing) -> Result<Part, RequestRefusal> {
    known.may_be_told(asked.table)?;
    let Range { start: first, end } = asked.workers(known.schema.workers)?;
    // No packet changes a table of patterns, so all workers have the same ones.
    let alike = asked.worker == 0 && known.table(asked.table)?.0.kind == "patterns";
    let end = if alike { 1 } else { end };
    let mut cursor = asked.begin(first..end)?;
    let most = (asked.most as usize).clamp(1, LISTED);
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for step in 1.. {
        let (part, next) = part(remote, known, asked.table, cursor, most - listed.len())?;
        let part = part.into_iter().map(|(entry, _)| entry).collect();
        let part = if cursor.worker > first {
            others(remote, known, asked.table, first, cursor, part)?
        } else {
            part
        };
        for entry in part {
            bytes += weight(&entry);
            listed.push(ListedEntry { worker: cursor.worker + 1, entry: to_client(entry) });
        }
        match next {
            Some(place) => cursor.place = place,
            None if cursor.worker + 1 < end => {
                cursor = Cursor { worker: cursor.worker + 1, place: EntryPlace::default() };
            }
            None => return Ok((listed, Vec::new())),
        }
        if listed.len() >= most || bytes >= LISTED_BYTES || step >= LISTED_STEPS {
            break;
        }
    }
    Ok((listed, cursor.bytes()))
}

/// Refuses a worker that is not there.
fn is_there(worker: u16, workers: u16) -> Result<(), RequestRefusal> {
    if worker <= workers {
        return Ok(());
    }
    let message = format!("there is no worker {worker}; there are {workers}");
    Err(RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message))
}

/// Entries of a table from the cursor on, with what each has counted at one worker. There may be none,
/// although a cursor says that more follow.
pub(super) fn counts(remote: &Remote, known: &Known, asked: &Listing) -> Result<CountsPart, RequestRefusal> {
    known.may_be_told(asked.table)?;
    let (schema, table) = known.table(asked.table)?;
    let refused = |message: String| RequestRefusal::new(RefusalCode::Unknown, RefusalPlace::NONE, message);
    if schema.counts.is_none() {
        let name = &table.name;
        return Err(refused(format!("the entries of `{name}` count nothing: declare it as `counted`")));
    }
    let Some(worker) = asked.worker.checked_sub(1) else {
        return Err(refused("each worker counts by itself: ask one of them, from 1 on".to_owned()));
    };
    is_there(asked.worker, known.schema.workers)?;
    let mut cursor = asked.begin(worker..asked.worker)?;
    let most = (asked.most as usize).clamp(1, LISTED);
    let (mut counted, mut bytes) = (Vec::new(), 0);
    for step in 1.. {
        let (part, next) = part(remote, known, asked.table, cursor, most - counted.len())?;
        let now = MachineClock.now();
        for (entry, count) in part {
            bytes += weight(&entry);
            let (entry, count) = (to_client(entry), count_on_wall(count, now));
            counted.push(CountedEntry { worker: asked.worker, entry, count });
        }
        match next {
            Some(place) => cursor.place = place,
            None => return Ok((counted, Vec::new())),
        }
        if counted.len() >= most || bytes >= LISTED_BYTES || step >= LISTED_STEPS {
            break;
        }
    }
    Ok((counted, cursor.bytes()))
}

/// What an entry has counted, with times for clients.
pub(crate) fn count_on_wall(count: EntryCount, now: Now) -> EntryCountTold {
    let EntryCount { packets, bytes, times } = count;
    let [first, last] = [times.map(|times| times.first), times.map(|times| times.last)];
    let on_wall = |time: Option<u64>| time.map(|time| now.on_wall(time));
    EntryCountTold { packets, bytes, first: on_wall(first), last: on_wall(last) }
}

/// All entries of a table with what they have counted at one worker (from 0).
pub(crate) fn whole_table(
    remote: &Remote,
    known: &Known,
    table: u16,
    worker: u16,
) -> Result<Vec<(Entry, EntryCount)>, RequestRefusal> {
    let (mut all, mut next) = (Vec::new(), Some(EntryPlace::default()));
    while let Some(place) = next {
        let (entries, further) = part(remote, known, table, Cursor { worker, place }, LISTED)?;
        all.extend(entries);
        next = further;
    }
    Ok(all)
}

/// An entry as people write it.
pub(crate) fn row_text(schema: &TableSchema, entry: &Entry) -> String {
    client::text::entry(schema, &to_client(entry.clone()))
}

/// A few entries of one worker.
fn part(
    remote: &Remote,
    known: &Known,
    table: u16,
    cursor: Cursor,
    most: usize,
) -> Result<CountedPart, RequestRefusal> {
    let (number, most) = (known.schema.generation, most.min(ENTRIES));
    // Patterns may be long, so each is looked at.
    let at_once = if known.table(table)?.0.kind == "patterns" { 1 } else { ENTRIES };
    let part = remote.ask_at(cursor.worker.into(), move |generation| {
        (generation.number == number).then(|| {
            // A table passes as many empty places as it is asked for entries.
            let (mut entries, mut next, mut asked, mut bytes) = (Vec::new(), Some(cursor.place), 0, 0);
            let is_full =
                |entries: &[(Entry, EntryCount)], bytes| entries.len() >= most || bytes >= LISTED_BYTES;
            while let Some(place) = next.filter(|_| !is_full(&entries, bytes) && asked < ENTRIES) {
                let wanted = at_once.min(most - entries.len());
                let (part, further) = generation.backend.counted_part(table.into(), place, wanted);
                bytes += part.iter().map(|(entry, _)| weight(entry)).sum::<usize>();
                entries.extend(part);
                (next, asked) = (further, asked + wanted);
            }
            (entries, next)
        })
    });
    part.ok_or_else(ended)?.ok_or_else(changed)
}

/// Those of a worker's entries that no worker before it has, from the first one listed on.
fn others(
    remote: &Remote,
    known: &Known,
    table: u16,
    first: u16,
    cursor: Cursor,
    mut part: Vec<Entry>,
) -> Result<Vec<Entry>, RequestRefusal> {
    for worker in first..cursor.worker {
        let (number, asked) = (known.schema.generation, part.clone());
        let held = remote.ask_at(worker.into(), move |generation| {
            let has = |entry: &Entry| {
                let held = generation.backend.entry(table.into(), &entry.key, entry.priority);
                held.is_some_and(|held| held.value == entry.value)
            };
            (generation.number == number).then(|| asked.iter().map(has).collect::<Vec<bool>>())
        });
        let held = held.ok_or_else(ended)?.ok_or_else(changed)?;
        part = part.into_iter().zip(held).filter(|(_, held)| !held).map(|(entry, _)| entry).collect();
    }
    Ok(part)
}

/// About how many bytes an entry takes in an answer.
fn weight(entry: &Entry) -> usize {
    let part = |part: &Match| match part {
        Match::Bytes(pattern) => pattern.bytes.len(),
        _ => 0,
    };
    40 * (1 + entry.key.len()) + 16 * entry.value.len() + entry.key.iter().map(part).sum::<usize>()
}

/// The entries with a key: one for each different value that workers have for it.
pub(super) fn find(
    remote: &Remote,
    known: &Known,
    table: u16,
    key: Vec<Match>,
    priority: u32,
) -> Result<Vec<ListedEntry>, RequestRefusal> {
    known.may_be_told(table)?;
    let (number, key) = (known.schema.generation, Arc::new(key));
    let held = remote.ask(move |generation, _| {
        (generation.number == number).then(|| generation.backend.entry(table.into(), &key, priority))
    });
    let mut found: Vec<(u16, Entry)> = Vec::new();
    for (worker, held) in (1..).zip(held.ok_or_else(ended)?) {
        let new = held.ok_or_else(changed)?.filter(|held| !found.iter().any(|(_, known)| known == held));
        found.extend(new.map(|entry| (worker, entry)));
    }
    Ok(found.into_iter().map(|(worker, entry)| ListedEntry { worker, entry: to_client(entry) }).collect())
}
