//! Text and JSON for people and programs to read.

pub(crate) mod answer;
pub(crate) mod diagnostic;
pub(crate) mod kernel;
pub(crate) mod mismatch;
pub(crate) mod packet;
pub(crate) mod progress;
pub(crate) mod quantity;
pub(crate) mod report;
pub(crate) mod seen;
pub(crate) mod settable;
pub(crate) mod steps;
pub(crate) mod table;
pub(crate) mod top;

use serde::Serialize;
use std::io::{self, Write};

/// Prints a JSON document on standard output.
pub(crate) fn json(document: &impl Serialize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer_pretty(&mut output, document)?;
    writeln!(output)
}

/// Prints a JSON document on one line of standard output, at once.
pub(crate) fn line(document: &impl Serialize) -> io::Result<()> {
    let mut output = io::stdout().lock();
    serde_json::to_writer(&mut output, document)?;
    writeln!(output)?;
    output.flush()
}

/// Prints text on standard output, with colours only where it is a terminal.
pub(crate) fn text(text: &str) -> io::Result<()> {
    anstream::stdout().lock().write_all(text.as_bytes())
}
