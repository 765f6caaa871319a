//! Routes, rules and patterns from the formats in which others keep them: text or bytes in, values out, no I/O.

#![forbid(unsafe_code)]

pub mod address;
mod error;
pub mod snort;
mod text;

pub use error::ImportError;
