//! `ravelin table`: fills a table from a file and answers a file of queries, a line each.

mod lpm;
mod patterns;
mod payload;
mod rules;
pub(super) mod source;

use crate::arguments::table::{LookupArguments, TableArguments, TableKind};
use crate::failure::Failure;
use crate::render::quantity::{bytes, seconds};
use ports::files;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs the command.
pub(crate) fn run(arguments: &TableArguments, json: bool) -> Result<(), Failure> {
    if json {
        return Err(Failure::Usage(
            "the answers are lines with tabs between their columns; leave out --json".into(),
        ));
    }
    match &arguments.kind {
        TableKind::Lpm(arguments) => lpm::run(arguments),
        TableKind::Rules(arguments) => rules::run(arguments),
        TableKind::Patterns(arguments) => patterns::run(arguments),
    }
}

/// The bytes of a file or of standard input, without their compression.
pub(super) fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let name = if path == "-" { "standard input" } else { path };
    let contents = match path {
        "-" => files::read_standard_input(files::LARGEST),
        _ => files::read_unpacked(Path::new(path), files::LARGEST),
    };
    contents.map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))
}

/// The bytes of both files.
fn read_both(arguments: &LookupArguments) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    one_standard_input(arguments)?;
    Ok((read(&arguments.file)?, read(&arguments.lookup)?))
}

fn one_standard_input(arguments: &LookupArguments) -> Result<(), Failure> {
    if arguments.file == "-" && arguments.lookup == "-" {
        return Err(Failure::Usage("only one file can be standard input; name the other one".into()));
    }
    Ok(())
}

/// A line of a file that cannot be imported, as a failure of the command.
pub(super) fn import_failure(path: &str, error: &import::ImportError) -> Failure {
    let name = if path == "-" { "standard input" } else { path };
    Failure::Finding(format!("{name}: {error}"))
}

/// Standard output for many short lines.
fn output() -> impl Write {
    BufWriter::with_capacity(1 << 18, io::stdout().lock())
}

/// Figures of a table, told on standard error if wanted.
struct Figures {
    wanted: bool,
    text: String,
}

impl Figures {
    fn new(arguments: &LookupArguments) -> Self {
        Self { wanted: arguments.stats, text: String::new() }
    }

    fn note(&mut self, what: &str, value: impl std::fmt::Display) {
        self.text += &format!("{what:<10} {value}\n");
    }

    /// Does something once and notes how long it took.
    fn time<T>(&mut self, what: &str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        self.note(what, seconds(start.elapsed().as_secs_f64()));
        done
    }

    fn note_bytes(&mut self, number: usize) {
        self.note("image", bytes(number as u64));
    }

    /// Does something that looks up `lookups` times as often as it takes to know its rate, if figures are
    /// wanted.
    fn rate(&mut self, how: &str, lookups: usize, mut work: impl FnMut()) {
        const LEAST: Duration = Duration::from_millis(300);
        if !self.wanted || lookups == 0 {
            return;
        }
        // The first round warms the caches.
        work();
        let (start, mut rounds) = (Instant::now(), 0u32);
        while rounds == 0 || start.elapsed() < LEAST {
            work();
            rounds += 1;
        }
        let each = start.elapsed().as_secs_f64() / f64::from(rounds) / lookups as f64;
        self.note("lookups", format!("{:.2} million a second, {how}", 1e-6 / each));
    }

    fn tell(&self) {
        if self.wanted {
            anstream::eprint!("{}", self.text);
        }
    }
}
