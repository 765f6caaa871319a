//! The files of `ravelin table`: read from disk or standard input, answered to standard output.

use crate::arguments::table::LookupArguments;
use crate::failure::Failure;
use ports::files;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The bytes of a file or of standard input, without their compression.
pub(crate) fn read(path: &str) -> Result<Vec<u8>, Failure> {
    let name = if path == "-" { "standard input" } else { path };
    let contents = match path {
        "-" => files::read_standard_input(files::LARGEST),
        _ => files::read_unpacked(Path::new(path), files::LARGEST),
    };
    contents.map_err(|error| Failure::Usage(format!("cannot read {name}: {error}")))
}

/// The bytes of both files.
pub(super) fn read_both(arguments: &LookupArguments) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    one_standard_input(arguments)?;
    Ok((read(&arguments.file)?, read(&arguments.lookup)?))
}

pub(super) fn one_standard_input(arguments: &LookupArguments) -> Result<(), Failure> {
    if arguments.file == "-" && arguments.lookup == "-" {
        return Err(Failure::Usage("only one file can be standard input; name the other one".into()));
    }
    Ok(())
}

/// A line of a file that cannot be imported, as a failure of the command.
pub(crate) fn import_failure(path: &str, error: &import::ImportError) -> Failure {
    let name = if path == "-" { "standard input" } else { path };
    Failure::Finding(format!("{name}: {error}"))
}

/// Standard output for many short lines.
pub(super) fn output() -> impl Write {
    BufWriter::with_capacity(1 << 18, io::stdout().lock())
}
