//! The interface of native code for offload: effects of packets that a device has run, and single packets
//! that the host runs between them.
//!
//! Code and state stay together here, and no other module can replace the state alone: machine code is sound
//! only on a state of the program for which it was compiled.

use super::Native;
use crate::outputs::{Output, Outputs};
use crate::state::ProgramState;
use crate::state::rows::RowHit;
use crate::state::table_set::{Fast, TablePlace};
use packet::batch::Batch;
use tables::exact::Exact;

impl Native {
    /// What the program remembers.
    #[inline]
    pub fn state(&self) -> &ProgramState<Fast> {
        &self.state
    }

    /// Handles entries and timers that are due by `time` (ns), before a packet of that time.
    pub fn handle_due(&mut self, time: u64, outputs: &mut Outputs) {
        self.state.handle_due(time, &mut self.engine, outputs);
    }

    /// Handles the queued events.
    pub fn handle_queued(&mut self, outputs: &mut Outputs) {
        self.state.handle_queued(&mut self.engine, outputs);
    }

    /// Runs packet `index` of a batch from the beginning, and the events that it raises. What was due before
    /// it must have been handled.
    pub fn run_one(&mut self, memory: &mut [u8], batch: &mut Batch, index: usize, outputs: &mut Outputs) {
        self.engine.run_one(&mut self.state, memory, batch, index, outputs);
    }

    /// From now on, packet `index` of its batch is the cause of all changes, at `time` (ns).
    #[inline]
    pub fn begin_packet(&mut self, time: u64, index: usize) {
        (self.state.now, self.state.cause) = (time, index as u32);
    }

    /// From now on, no packet is the cause of changes.
    #[inline]
    pub fn end_packets(&mut self) {
        self.state.cause = Output::BETWEEN;
    }

    /// Counts a packet of so many bytes in a cell of a counter; does nothing if there is no such cell.
    #[inline]
    pub fn count(&mut self, counter: u32, cell: u64, bytes: u64) {
        self.state.count(counter, cell, bytes);
    }

    /// A packet has looked up a key in an exact table: renews the entry that it found, as a hit does.
    #[inline]
    pub fn ask(&mut self, table: u32, key: &[u64]) {
        if let TablePlace::Exact(place) = self.state.tables.places[table as usize] {
            self.state.tables.exact[place].find(key, self.state.now);
        }
    }

    /// A packet has learned an entry of an exact table: learns it here, too.
    #[inline]
    pub fn learn_words(&mut self, table: u32, key: &[u64], value: &[u64]) {
        self.state.learn_releasing(table, key, value);
    }

    /// Counts a packet of so many bytes for a row of a table with prefixes, rules or patterns.
    #[inline]
    pub fn count_row(&mut self, table: u32, row: u32, bytes: u64) {
        let hit = RowHit { bytes, time: self.state.now };
        let tables = &mut self.state.tables;
        match tables.places[table as usize] {
            TablePlace::Prefixes(place) => tables.prefixes[place].rows_mut().count(row, hit),
            TablePlace::Rules(place) => tables.rules[place].rows_mut().count(row, hit),
            TablePlace::Patterns(place) => tables.patterns[place].rows_mut().count(row, hit),
            TablePlace::Exact(_) => {}
        }
    }

    /// Reclaims the memory of all expired entries of a table with prefixes or rules.
    pub fn finish_matching(&mut self, table: u32) {
        let tables = &mut self.state.tables;
        match tables.places[table as usize] {
            TablePlace::Prefixes(place) => tables.prefixes[place].finish(),
            TablePlace::Rules(place) => tables.rules[place].finish(),
            TablePlace::Exact(_) | TablePlace::Patterns(_) => {}
        }
    }
}
