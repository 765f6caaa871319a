//! A program ready to run: one trait for every back end.

use crate::outputs::Outputs;
use packet::batch::Batch;

/// Which execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackEnd {
    /// The interpreter over the IR: slow and obviously right.
    Interpreter,
    /// Machine code made by Cranelift.
    Native,
}

/// The state of one table, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableReport {
    /// Its name.
    pub name: String,
    /// Entries it holds now.
    pub entries: u64,
    /// New entries since the start.
    pub inserts: u64,
    /// Entries whose value changed.
    pub moves: u64,
    /// Entries that went because the table was full.
    pub evictions: u64,
    /// Entries that went because their time was up.
    pub expired: u64,
    /// New entries that were refused because the table was full.
    pub refused: u64,
}

/// A program with its tables, counters and timers.
pub trait Processor: Send {
    /// Runs every packet of the batch in order and writes its verdict into the batch. `memory` holds the frames the batch points into.
    ///
    /// Time is the larger of the last packet's time and this one's. Before each packet, entries and timers that are due by its time are handled in
    /// the order of their times; after each packet, the events it raised.
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs);

    /// Lets time pass to `now` without a packet: entries and timers that are due are handled.
    fn advance(&mut self, now: u64, outputs: &mut Outputs);

    /// The state of every table, in order of declaration.
    fn tables(&self) -> Vec<TableReport>;

    /// Every entry of a table, sorted by key: key columns and value columns.
    fn entries(&self, table: u32) -> Vec<(Vec<u128>, Vec<u128>)>;

    /// Packets and bytes of every cell of a counter.
    fn counter(&self, counter: u32) -> Vec<(u64, u64)>;

    /// How often each event was raised, in order of declaration.
    fn events(&self) -> Vec<u64>;

    /// How many events were refused because too many were waiting.
    fn lost_events(&self) -> u64;

    /// Which execution this is.
    fn back_end(&self) -> BackEnd;
}
