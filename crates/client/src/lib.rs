//! Tables, events and punted packets of a running gateway, for other programs: the binary protocol of the
//! control socket, and a client that speaks it. Knows neither programs nor the gateway.
//!
//! docs/control.md describes the protocol byte by byte.

#![forbid(unsafe_code)]

pub mod answer;
mod connection;
pub mod entry;
pub mod frame;
pub mod message;
pub mod schema;
pub mod text;

pub use connection::{ClientError, Pushed, TableClient, connect};
pub use entry::{CountedEntry, EntryCountTold, KeyMatch, ListedEntry, TableEntry};
pub use message::{RefusalCode, RefusalPlace, RequestRefusal};
pub use schema::{
    ColumnSchema, ColumnType, CountsKept, EventSchema, GroupSchema, ProgramSchema, ReasonSchema,
    RefusedChanges, TableSchema,
};

/// The version of the protocol.
pub const VERSION: u32 = 1;
