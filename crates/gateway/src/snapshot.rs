//! The snapshot: a file with what packets learned in exact tables, written when the gateway ends and read
//! before the next one takes its first packet.
//!
//! ```text
//! magic      "ravelin\0"                                      8 bytes
//! version    3                                                u16
//! written    the time of the program, in nanoseconds          u64
//! start      of the machine, as the kernel names it           length u16, UTF-8
//! workers                                                     u16
//! tables                                                      u32
//! each table:
//!   name     length u16, UTF-8
//!   shape    length u16, UTF-8: the kind and the width of each column
//!   bytes    of an entry                                      u16
//!   each worker:
//!     count  of entries                                       u32
//!     entry  the columns of the key, then those of the value, each in as few bytes as its width needs;
//!            where entries may have a lifetime of their own, the time when it ends by it or by `age`     u64
//! check      CRC-32 (ISO 3309) of all bytes before            u32
//! ```
//!
//! Numbers are big-endian. A file that is not exactly this is not read at all. Entries are known again by the
//! name and the shape of their table, as in a takeover, and live as if they had been made when the file was
//! written; an entry with a time of its end ends then at the latest. The file has times of the program,
//! which nobody can set, and which count from the start of the machine: a time of an earlier start means
//! nothing any more. So after another start of the machine, a table whose entries end by `idle` or `age`, or
//! have a column of times, does not come back. The file takes the place of an earlier one in one step.

use crate::limits::SNAPSHOT_BYTES;
use exec::replace::restore;
use exec::{Backend, ProgramControl};
use ir::{Column, ColumnKind, Entry, Match, Program, Table, TableKind};
use ports::files::{self, FileReadError};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process;

const SECOND: u64 = 1_000_000_000;
const MAGIC: &[u8; 8] = b"ravelin\0";
const VERSION: u16 = 3;
/// The length of the time when an entry ends.
const END_BYTES: usize = size_of::<u64>();

/// Why a snapshot is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    /// the file cannot be read
    #[error(transparent)]
    File(#[from] FileReadError),
    /// it is too long
    #[error("it has more than {SNAPSHOT_BYTES} bytes, and no more are read")]
    Long,
    /// it is none
    #[error("it is no snapshot of a gateway")]
    Foreign,
    /// its version is unknown
    #[error("its version is {0}, and only version {VERSION} is read")]
    Version(u16),
    /// it was damaged
    #[error("it is damaged: its checksum is wrong")]
    Damaged,
    /// it is not as its version says
    #[error("it is damaged: it ends too early, or too late")]
    Length,
    /// it is of another number of workers
    #[error("it is of {0} workers, and the gateway has {1}; state of one worker is of no use to another one")]
    Workers(u16, u16),
    /// the clock went back
    #[error("it was written {0} s later than now, by the clock of the machine since its start")]
    Later(u64),
}

/// When a snapshot is written or read.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The program's time, in nanoseconds.
    program: u64,
    /// A name of the machine's start that no other start has; empty if it is unknown.
    start: String,
}

impl Moment {
    /// Now, where the program's time is this.
    pub(crate) fn now(program: u64) -> Moment {
        let start = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Moment { program, start: start.trim().to_owned() }
    }

    /// How long (ns) it is since a file was written, if that was after the same start of the machine.
    fn since(&self, written: u64, start: &str) -> Result<Option<u64>, SnapshotError> {
        if start.is_empty() || start != self.start {
            return Ok(None);
        }
        let past = self.program.checked_sub(written);
        past.map(Some).ok_or_else(|| SnapshotError::Later((written - self.program) / SECOND))
    }
}

/// What came back from a snapshot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    /// How old it is, in seconds; `None` if it is of an earlier start of the machine.
    pub(crate) age: Option<u64>,
    /// By the name of the table: how many entries came back, and how many were left out.
    pub(crate) tables: Vec<(String, u64, u64)>,
}

/// Checks that a snapshot can be written at this path.
///
/// # Errors
/// There is something other than a regular file, or no file can be made beside it.
pub(crate) fn probe(path: &Path) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            return Err(io::Error::other("there is something that is no regular file"));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    new_file(path)?;
    fs::remove_file(beside(path))
}

/// Moves a file that is there away, so that no gateway reads it a second time: what it holds is over as soon
/// as the first packet has passed. It stays beside the place of the next one, for people.
///
/// # Errors
/// The file cannot be moved.
pub(crate) fn put_aside(path: &Path) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".old");
    match fs::rename(path, name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The bytes of a snapshot of full tables.
pub(crate) fn most_bytes(program: &Program, workers: u16, now: &Moment) -> u64 {
    let text = |text: &str| (size_of::<u16>() + text.len()) as u64;
    let head = (MAGIC.len() + size_of_val(&VERSION) + size_of::<u64>()) as u64 + text(&now.start);
    let ends = size_of::<u16>() + 2 * size_of::<u32>();
    let tables = program.tables.iter().filter(|table| is_kept(table)).map(|table| {
        let entries = u64::from(table.capacity).saturating_mul(entry_bytes(table) as u64);
        let of_workers = entries.saturating_add(size_of::<u32>() as u64).saturating_mul(workers.into());
        (text(&table.name) + text(&table.shape()) + size_of::<u16>() as u64).saturating_add(of_workers)
    });
    tables.fold(head + ends as u64, u64::saturating_add)
}

/// Writes what packets learned at each worker in exact tables. An earlier file stays as it is until the new
/// one is complete.
///
/// # Errors
/// The file cannot be written, or would be longer than is read.
pub(crate) fn write(
    path: &Path,
    program: &Program,
    workers: &[&dyn ProgramControl],
    now: &Moment,
) -> io::Result<()> {
    let mut file =
        Checked { file: BufWriter::new(new_file(path)?), check: crc32fast::Hasher::new(), bytes: 0 };
    let written = contents(&mut file, program, workers, now).and_then(|()| {
        let check = file.check.clone().finalize();
        file.write_all(&check.to_be_bytes())?;
        file.flush()?;
        file.file.get_ref().sync_all()?;
        fs::rename(beside(path), path)
    });
    if written.is_err() {
        // What is wrong is said already; an unfinished file is of no use.
        let _ = fs::remove_file(beside(path));
    }
    written
}

/// Reads a snapshot, and gives its entries to the programs of the workers, which have run no packet yet.
/// `None` if there is no file.
///
/// # Errors
/// The file cannot be read, or is not exactly a snapshot; then no entry came back.
pub(crate) fn read(
    path: &Path,
    program: &Program,
    workers: &mut [Box<dyn Backend>],
    now: &Moment,
) -> Result<Option<Returned>, SnapshotError> {
    let bytes = match files::read(path, SNAPSHOT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == Some(io::ErrorKind::NotFound) => return Ok(None),
        Err(FileReadError::TooLong(_)) => return Err(SnapshotError::Long),
        Err(error) => return Err(error.into()),
    };
    let (written, start, parts) = parts(&bytes, workers.len() as u16)?;
    let past = now.since(written, start)?;
    let made = if past.is_some() { written } else { now.program };
    let mut tables = Vec::new();
    for Part { name, shape, bytes, entries } in parts {
        let known = (0..).zip(&program.tables).find(|(_, table)| table.name == name);
        let suits = |table: &Table| {
            let is_over = |most: u64| past.is_none_or(|past| most <= past);
            let ends = [table.idle, table.age].into_iter().flatten().any(is_over);
            let has_time = columns(table).any(|column| column.kind == ColumnKind::Time);
            let least = columns_bytes(table);
            let is_same = table.shape() == shape && [least, least + END_BYTES].contains(&bytes);
            is_kept(table) && is_same && !ends && (past.is_some() || !has_time)
        };
        let (mut taken, mut all) = (0, 0);
        for (worker, entries) in workers.iter_mut().zip(entries) {
            all += (entries.len() / bytes) as u64;
            if let Some((number, table)) = known.filter(|(_, table)| suits(table)) {
                let entries = entries.chunks_exact(bytes).map(|bytes| entry(table, bytes));
                taken += restore(worker.as_mut(), program, number, entries, made);
            }
        }
        tables.push((name.to_owned(), taken, all - taken));
    }
    Ok(Some(Returned { age: past.map(|past| past / SECOND), tables }))
}

/// Whether what packets learn in a table is in a snapshot.
fn is_kept(table: &Table) -> bool {
    table.kind == TableKind::Exact && !table.secret
}

fn columns(table: &Table) -> impl Iterator<Item = &Column> {
    table.keys.iter().chain(&table.values)
}

fn column_bytes(column: &Column) -> usize {
    usize::from(column.width).div_ceil(8)
}

/// The length of an entry as it is written.
fn entry_bytes(table: &Table) -> usize {
    columns_bytes(table) + if table.lifetimes { END_BYTES } else { 0 }
}

/// The length of the columns of an entry; at least 1, since a key has a column.
fn columns_bytes(table: &Table) -> usize {
    columns(table).map(column_bytes).sum::<usize>().max(1)
}

/// The entry that these bytes are, and when it ends, if they say it. They are no fewer than its columns have.
fn entry(table: &Table, bytes: &[u8]) -> (Entry, Option<u64>) {
    let (mut bytes, end) = bytes.split_at(columns_bytes(table));
    let mut number = |column: &Column| {
        let (of_column, rest) = bytes.split_at(column_bytes(column).min(bytes.len()));
        bytes = rest;
        let number = of_column.iter().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
        number & u128::MAX >> (128 - u32::from(column.width.clamp(1, 128)))
    };
    let key = table.keys.iter().map(|column| Match::Exact(number(column))).collect();
    let value = table.values.iter().map(&mut number).collect();
    (Entry { key, value, priority: 0 }, end.try_into().ok().map(u64::from_be_bytes))
}

/// The path beside a snapshot at which this process, and no other one, writes the next one.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", process::id()));
    name.into()
}

/// A new file there, which only its owner can read: it tells who spoke to whom. What is there already, such
/// as a link, is removed and never opened.
fn new_file(path: &Path) -> io::Result<File> {
    let path = beside(path);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path),
    }
}

/// A file with the checksum of what was written.
struct Checked {
    file: BufWriter<File>,
    check: crc32fast::Hasher,
    bytes: u64,
}

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if self.bytes > SNAPSHOT_BYTES {
            let message = format!("a snapshot has at most {SNAPSHOT_BYTES} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        self.check.update(bytes);
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Everything but the checksum.
fn contents(
    file: &mut impl Write,
    program: &Program,
    workers: &[&dyn ProgramControl],
    now: &Moment,
) -> io::Result<()> {
    let kept: Vec<_> = (0..).zip(&program.tables).filter(|(_, table)| is_kept(table)).collect();
    file.write_all(MAGIC)?;
    file.write_all(&VERSION.to_be_bytes())?;
    file.write_all(&now.program.to_be_bytes())?;
    write_text(file, &now.start)?;
    file.write_all(&(workers.len() as u16).to_be_bytes())?;
    file.write_all(&(kept.len() as u32).to_be_bytes())?;
    for (number, table) in kept {
        for text in [&table.name, &table.shape()] {
            write_text(file, text)?;
        }
        file.write_all(&u16::try_from(entry_bytes(table)).map_err(too_long)?.to_be_bytes())?;
        for worker in workers {
            let learned = worker.learned(number);
            file.write_all(&u32::try_from(learned.len()).map_err(too_long)?.to_be_bytes())?;
            for Entry { key, value, .. } in learned {
                let exact = |part: &Match| if let Match::Exact(number) = part { Some(*number) } else { None };
                let numbers = key.iter().filter_map(exact).chain(value);
                for (column, number) in columns(table).zip(numbers) {
                    file.write_all(&number.to_be_bytes()[16 - column_bytes(column)..])?;
                }
                if table.lifetimes {
                    let ends = worker.age_of(number, &key, 0).unwrap_or(u64::MAX);
                    file.write_all(&ends.to_be_bytes())?;
                }
            }
        }
    }
    Ok(())
}

fn write_text(file: &mut impl Write, text: &str) -> io::Result<()> {
    file.write_all(&u16::try_from(text.len()).map_err(too_long)?.to_be_bytes())?;
    file.write_all(text.as_bytes())
}

fn too_long(_: std::num::TryFromIntError) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, "a name or a table is too long")
}

/// What a file has of a table: the length of an entry, and the entries of each worker.
struct Part<'a> {
    name: &'a str,
    shape: &'a str,
    bytes: usize,
    entries: Vec<&'a [u8]>,
}

/// When a file was written (a time of the program), after which start of the machine, and its tables, if it
/// is exactly a snapshot.
fn parts(bytes: &[u8], workers: u16) -> Result<(u64, &str, Vec<Part<'_>>), SnapshotError> {
    let after_magic = bytes.strip_prefix(MAGIC).ok_or(SnapshotError::Foreign)?;
    let version = u16::from_be_bytes(Reader(after_magic).array()?);
    if version != VERSION {
        return Err(SnapshotError::Version(version));
    }
    let (checked, check) = bytes.split_last_chunk().ok_or(SnapshotError::Length)?;
    if crc32fast::hash(checked).to_be_bytes() != *check {
        return Err(SnapshotError::Damaged);
    }
    let mut reader = Reader(checked.get(MAGIC.len() + size_of::<u16>()..).ok_or(SnapshotError::Length)?);
    let written = u64::from_be_bytes(reader.array()?);
    let start = reader.text()?;
    let of_workers = u16::from_be_bytes(reader.array()?);
    if of_workers != workers {
        return Err(SnapshotError::Workers(of_workers, workers));
    }
    let tables = u32::from_be_bytes(reader.array()?);
    let mut parts = Vec::new();
    for _ in 0..tables {
        let (name, shape) = (reader.text()?, reader.text()?);
        let bytes = usize::from(u16::from_be_bytes(reader.array()?));
        let mut entries = Vec::new();
        for _ in 0..workers {
            let count = u32::from_be_bytes(reader.array()?) as usize;
            entries.push(reader.take(count.checked_mul(bytes).ok_or(SnapshotError::Length)?)?);
        }
        if bytes == 0 {
            return Err(SnapshotError::Length);
        }
        parts.push(Part { name, shape, bytes, entries });
    }
    if reader.0.is_empty() { Ok((written, start, parts)) } else { Err(SnapshotError::Length) }
}

/// What is still to be read of a file.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], SnapshotError> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SnapshotError::Length)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], SnapshotError> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(SnapshotError::Length)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn text(&mut self) -> Result<&'a str, SnapshotError> {
        let length = u16::from_be_bytes(self.array()?);
        std::str::from_utf8(self.take(length.into())?).map_err(|_| SnapshotError::Length)
    }
}

#[cfg(test)]
mod tests;
