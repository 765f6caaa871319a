//! The one error of every importer: a place, what is wrong there, and what to do about it.

use thiserror::Error;

/// A line that cannot be imported. Nothing of the file is loaded with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("line {line}, column {column}: {what}; {advice}")]
pub struct ImportError {
    /// The line, from 1. In a binary format: the record, from 1.
    pub line: u32,
    /// The column in bytes, from 1. In a binary format: the byte of the file, from 1.
    pub column: u32,
    /// What is wrong there.
    pub what: String,
    /// Why it cannot be kept, or what to do about it.
    pub advice: String,
}

impl ImportError {
    /// An error at a place that is counted from 1.
    pub fn new(line: u32, column: u32, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { line, column, what: what.into(), advice: advice.into() }
    }
}
