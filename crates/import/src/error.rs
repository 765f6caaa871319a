//! The one error of every importer: a place, what is wrong there, and what to do about it.

use std::fmt;

/// A line that cannot be imported. Nothing of the file is loaded with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImportError {
    /// The line, from 1. In a binary format: the record, from 1.
    pub line: u32,
    /// The column in bytes, from 1. In a binary format: the byte of the file, from 1.
    pub column: u32,
    /// What is wrong there.
    pub what: String,
    /// Why it cannot be kept, or what to do about it.
    pub advice: String,
    /// Whether the format is binary.
    pub binary: bool,
}

impl ImportError {
    /// An error at a place of a text that is counted from 1.
    pub fn new(line: u32, column: u32, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { line, column, what: what.into(), advice: advice.into(), binary: false }
    }

    /// The same in a binary format: the place is a record and a byte.
    pub(crate) fn in_binary(self) -> Self {
        Self { binary: true, ..self }
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = if self.binary { ("record", "byte") } else { ("line", "column") };
        write!(formatter, "{line} {}, {column} {}: {}; {}", self.line, self.column, self.what, self.advice)
    }
}

impl std::error::Error for ImportError {}
