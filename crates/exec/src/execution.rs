//! The common part of the interpreter, bytecode and native code: a state, which the control plane reads and
//! changes, and an engine, which runs packets on this state.

use crate::backend::{AsyncBackend, Backend, BuiltTable, OnDevice, ProgramControl, Statistics, TableDraft};
use crate::errors::EntryError;
#[cfg(feature = "reference")]
use crate::inspect::{Inspect, Measurable};
use crate::outputs::Outputs;
use crate::reports::{BackendKind, CountedPart, EntryCount, EntryPlace, TableReport};
use crate::state::handover::Handover;
use crate::state::table_set::{TableFamily, TableSet};
use crate::state::{ProgramState, RunHandler};
use ir::{Entry, Match};
use packet::batch::Batch;
use std::any::Any;

/// Runs packets and handlers on a state.
pub trait Engine<F: TableFamily>: RunHandler<F> + Measurable<F> + Send {
    /// The kind of back end that this engine makes.
    const BACK_END: BackendKind;

    /// As [`Backend::run`].
    fn run(
        &mut self,
        state: &mut ProgramState<F>,
        memory: &mut [u8],
        batch: &mut Batch,
        outputs: &mut Outputs,
    );
}

/// What every engine is where nobody looks into one.
#[cfg(not(feature = "reference"))]
pub trait Unmeasured<F> {}
#[cfg(not(feature = "reference"))]
impl<F, E> Unmeasured<F> for E {}
#[cfg(not(feature = "reference"))]
use Unmeasured as Measurable;

/// A program that is loaded: its state and what runs it.
pub struct Execution<F: TableFamily, E> {
    pub(crate) state: ProgramState<F>,
    pub(crate) engine: E,
}

impl<F: TableFamily, E: Engine<F> + 'static> Backend for Execution<F, E> {
    fn run(&mut self, memory: &mut [u8], batch: &mut Batch, outputs: &mut Outputs) {
        self.engine.run(&mut self.state, memory, batch, outputs);
    }

    fn asynchronous(&mut self) -> Option<&mut dyn AsyncBackend> {
        None
    }

    #[cfg(feature = "reference")]
    fn inspect(&mut self) -> Option<&mut dyn Inspect> {
        Some(self)
    }

    fn advance(&mut self, now: u64, outputs: &mut Outputs) {
        self.state.advance(now, &mut self.engine, outputs);
    }

    fn due(&self) -> Option<u64> {
        Some(self.state.next_wake).filter(|due| *due != u64::MAX)
    }

    fn on_device(&self) -> Option<OnDevice> {
        None
    }

    fn back_end(&self) -> BackendKind {
        E::BACK_END
    }

    fn control(&self) -> &(dyn ProgramControl + 'static) {
        self
    }

    fn control_mut(&mut self) -> &mut (dyn ProgramControl + 'static) {
        self
    }
}

impl<F: TableFamily, E: Engine<F> + 'static> Statistics for Execution<F, E> {
    fn tables(&self) -> Vec<TableReport> {
        self.state.tables.reports()
    }

    fn running_tables(&self) -> Vec<TableReport> {
        self.state.tables.running_reports()
    }

    fn entries_held(&self, table: u32) -> u64 {
        self.state.tables.held(table)
    }

    fn entries(&self, table: u32) -> Vec<(Entry, EntryCount)> {
        self.state.tables.entries(table)
    }

    fn counted_part(&self, table: u32, from: EntryPlace, most: usize) -> CountedPart {
        self.state.tables.counted_part(table, from, most)
    }

    fn entry(&self, table: u32, key: &[Match], priority: u32) -> Option<Entry> {
        self.state.tables.entry(table, key, priority)
    }

    fn default_entry(&self, table: u32) -> Option<Vec<u128>> {
        let default = &self.state.defaults[table as usize];
        let packing = &self.state.tables.shapes[table as usize].value;
        (default.present != 0).then(|| packing.unpack(&default.words[..packing.words]))
    }

    fn members_part(&self, group: u32, index: u32, from: usize, most: usize) -> Vec<Vec<u128>> {
        self.state.memory.members_part(group, index, from, most)
    }

    fn has_member(&self, group: u32, index: u32, member: &[u128]) -> bool {
        self.state.memory.has_shape(group, member) && self.state.memory.has_member(group, index, member)
    }

    fn table_draft(&self, table: u32) -> Option<TableDraft> {
        Some(self.state.tables.draft(table))
    }

    fn learned(&self, table: u32) -> Vec<Entry> {
        self.state.tables.learned(table)
    }

    fn members_learned(&self, group: u32) -> u64 {
        self.state.memory.members_learned(group)
    }

    fn learned_members(&self, group: u32) -> Vec<(u32, Vec<u128>)> {
        self.state.memory.learned_members(group)
    }

    fn register(&self, register: u32) -> Vec<u64> {
        self.state.memory.cells(register).to_vec()
    }

    fn counter(&self, counter: u32) -> Vec<(u64, u64)> {
        self.state.counter(counter)
    }

    fn counter_part(&self, counter: u32, from: usize, most: usize, into: &mut Vec<(u64, u64)>) {
        into.extend(self.state.counted(counter).skip(from).take(most));
    }

    fn events(&self) -> Vec<u64> {
        self.state.events()
    }

    fn lost_events(&self) -> u64 {
        self.state.lost_events()
    }
}

impl<F: TableFamily, E: Engine<F> + 'static> ProgramControl for Execution<F, E> {
    fn insert(&mut self, table: u32, entry: &Entry) -> Result<(), EntryError> {
        self.state.insert_entry(table, entry, None)
    }

    fn learn(&mut self, table: u32, entry: &Entry, now: u64) -> Result<(), EntryError> {
        self.state.insert_entry(table, entry, Some(now))
    }

    fn learn_for(&mut self, table: u32, entry: &Entry, now: u64, lifetime: u64) -> Result<(), EntryError> {
        self.state.learn_entry_for(table, entry, now, lifetime)
    }

    fn age_of(&self, table: u32, key: &[Match], priority: u32) -> Option<u64> {
        self.state.tables.age_of(table, key, priority)
    }

    fn learn_until(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError> {
        self.state.learn_until(table, entry, now, ends)
    }

    fn put_back(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError> {
        self.state.put_back(table, entry, now, ends)
    }

    fn remove(&mut self, table: u32, key: &[Match], priority: u32) -> bool {
        self.state.remove_entry(table, key, priority)
    }

    fn replace(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        self.state.replace_entries(table, entries)
    }

    fn take_built(&mut self, table: u32, built: &mut BuiltTable) -> bool {
        let built = built.0.downcast_mut::<TableSet<F>>();
        built.is_some_and(|built| self.state.exchange_built(table, built))
    }

    fn set_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError> {
        self.state.replace_default(table, value)
    }

    fn join(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        self.state.memory.take_in(group, index, member, false)
    }

    fn may_join(&self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        self.state.memory.may_take_in(group, index, member)
    }

    fn leave(&mut self, group: u32, index: u32, member: &[u128]) -> bool {
        self.state.memory.has_shape(group, member) && self.state.memory.take_out(group, index, member)
    }

    fn learn_member(&mut self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        self.state.memory.take_in(group, index, member, true)
    }

    fn touch(&mut self, table: u32, entries: u64) {
        self.state.tables.touch(table, entries);
    }

    fn exchange(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32) -> bool {
        let Some(other) = other.as_any().downcast_mut::<Self>() else { return false };
        if !self.state.shares_pool(table, &other.state, theirs) {
            return false;
        }
        let exchanged = self.state.tables.exchange(table, &mut other.state.tables, theirs);
        if exchanged {
            for state in [&mut self.state, &mut other.state] {
                // Some of the new entries may expire earlier than all entries before.
                state.next_wake = 0;
            }
            let now = self.state.now.max(other.state.now);
            (self.state.now, other.state.now) = (now, now);
        }
        exchanged
    }

    fn exchange_back(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32) {
        if let Some(other) = other.as_any().downcast_mut::<Self>() {
            self.state.tables.exchange_back(table, &mut other.state.tables, theirs);
        }
    }

    fn settle(&mut self, table: u32, other: &mut dyn ProgramControl, theirs: u32) {
        if let Some(other) = other.as_any().downcast_mut::<Self>() {
            self.state.tables.settle(table, &mut other.state.tables, theirs);
        }
    }

    fn handover(&mut self) -> Option<Handover<'_>> {
        Some(self.state.handover())
    }

    fn finish(&mut self, table: u32) {
        self.state.finish(table);
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
