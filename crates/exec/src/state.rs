//! The state of a program, which it keeps from packet to packet: tables, default entries, counters, queued
//! events, timers and the time.
//!
//! Every back end uses the same state, and the state is pure: time comes with the packets. Before a packet,
//! everything that is due by its time is handled in the order of times: first entries expire, then timers
//! run; timers of one time run in the order of their creation. Four limits keep a program from growing or
//! running without end, even if the time in a damaged capture jumps by years: [`MAX_RUNS`], [`MAX_DUE_RUNS`],
//! [`MAX_QUEUED`] and [`MAX_TIMERS`].

mod budget;
mod cells;
mod due;
mod ending;
pub mod handover;
mod limits;
pub mod matching;
pub mod memory;
mod pending;
mod rebuilt;
#[cfg(feature = "reference")]
pub mod reference;
pub mod rows;
pub mod table_set;

use self::budget::Budget;
pub use self::cells::{Cell, DefaultEntry};
pub use self::limits::{
    MAX_CELLS, MAX_DUE_RUNS, MAX_QUEUED, MAX_RUNS, MAX_TIMERS, STEPS_BEFORE_PACKET, STEPS_WITHOUT_PACKET,
    TIME_OF_RUN,
};
use self::limits::{MOVED_EVERY, TIME_OF_PERIOD};
use self::memory::ProgramMemory;
use self::pending::{NEVER, Pending};
use self::table_set::{TableFamily, TablePlace, TableSet, TableShape};

use crate::errors::{EntryError, LoadError};
use crate::outputs::{Output, Outputs, Raised};
use crate::pack::MAX_WORDS;
#[cfg(feature = "native")]
use crate::stages::StageClock;
use ir::{Entry, Match, Op, Program};
use tables::exact::{Exact, Learned};

/// The state of a program.
pub struct ProgramState<F: TableFamily> {
    /// All tables.
    pub tables: TableSet<F>,
    /// Meters, registers, pools and groups.
    pub memory: ProgramMemory,
    /// The default entry of each table.
    pub defaults: Vec<DefaultEntry>,
    /// For each table, whether it may ever have a default entry.
    pub may_default: Vec<bool>,
    /// The cells of all counters, one counter after the other.
    pub cells: Vec<Cell>,
    /// The index in `cells` of the first cell of every counter, and at the end the number of cells.
    pub first_cell: Vec<usize>,
    /// The program's time (ns), which never goes back.
    pub now: u64,
    /// The index in its batch of the packet that is running, or [`Output::BETWEEN`].
    pub cause: u32,
    /// Nothing is due before this time, ns.
    pub next_wake: u64,
    /// The default entries that the program text and the control plane have given.
    given_defaults: Vec<DefaultEntry>,
    events: Vec<EventState>,
    pending: Pending,
    lost_events: u64,
    scratch: Vec<u128>,
    /// How many handlers of entries that end and of delayed events may begin, and how many periodic ones.
    ends_budget: Budget,
    periods_budget: Budget,
    /// The stopwatch of the variant that measures stages.
    #[cfg(feature = "native")]
    pub(crate) clock: StageClock,
}

#[derive(Clone, Debug)]
struct EventState {
    handler: u32,
    raised: u64,
}

/// Runs handlers on a state.
pub trait RunHandler<F: TableFamily> {
    /// Runs the handler with the index `function` at `state.now`.
    fn run_handler(
        &mut self,
        state: &mut ProgramState<F>,
        function: u32,
        args: &[u128],
        outputs: &mut Outputs,
    );
}

impl<F: TableFamily> ProgramState<F> {
    /// The state a program starts with. `seed` chooses the tables' hash functions.
    pub fn new(program: &Program, ports: u16, seed: u64) -> Result<ProgramState<F>, LoadError> {
        let mut tables = TableSet::<F>::new(program, seed)?;
        let mut defaults = Vec::with_capacity(program.tables.len());
        for (table, shape) in program.tables.iter().zip(&tables.shapes) {
            let mut default = DefaultEntry::default();
            if let Some(columns) = &table.default {
                default.present = 1;
                shape.value.pack(columns.iter().copied(), &mut default.words[..shape.value.words]);
            }
            defaults.push(default);
        }
        let mut first_cell = vec![0];
        let mut cells = 0usize;
        for counter in &program.counters {
            cells = cells.saturating_add(counter.size as usize);
            first_cell.push(cells);
        }
        if cells > MAX_CELLS {
            return Err(LoadError::TooManyCells { cells });
        }
        let events: Vec<EventState> =
            program.events.iter().map(|event| EventState { handler: event.handler, raised: 0 }).collect();
        let most_params = program.events.iter().map(|event| event.params.len()).max().unwrap_or(0);
        let mut memory = ProgramMemory::new(program, ports)?;
        for (index, table) in (0..).zip(&program.tables) {
            let Some(pool) = table.releases else { continue };
            memory.number_items(pool, index, &mut tables);
            table.entries.iter().for_each(|entry| memory.take_item(pool, &entry.value));
        }
        Ok(ProgramState {
            tables,
            memory,
            given_defaults: defaults.clone(),
            defaults,
            may_default: may_default(program),
            cells: vec![Cell::default(); cells],
            first_cell,
            now: 0,
            cause: Output::BETWEEN,
            next_wake: 0,
            events,
            pending: Pending::new(program),
            lost_events: 0,
            scratch: Vec::with_capacity(most_params),
            ends_budget: Budget::new(TIME_OF_RUN, MAX_DUE_RUNS),
            periods_budget: Budget::new(TIME_OF_PERIOD, MAX_RUNS),
            #[cfg(feature = "native")]
            clock: StageClock::default(),
        })
    }
}

impl<F: TableFamily> ProgramState<F> {
    /// Whether events wait to be handled at once.
    #[inline]
    pub fn has_queued(&self) -> bool {
        self.pending.has_queued()
    }

    /// Wakes soon if rules are removed that the search still has to be rid of.
    pub fn wake_for_dead_rules(&mut self) {
        if self.tables.has_dead_rules() {
            self.next_wake = self.next_wake.min(self.now.saturating_add(MOVED_EVERY));
        }
    }

    /// Queues an event, or schedules it `delay` nanoseconds from now. A full queue refuses it.
    pub fn raise(
        &mut self,
        event: u32,
        args: impl Iterator<Item = u128>,
        delay: Option<u64>,
        outputs: &mut Outputs,
    ) {
        let params = self.pending.params(event);
        let full = match delay {
            None => self.pending.queued() >= MAX_QUEUED,
            Some(_) => self.pending.delayed() >= MAX_TIMERS,
        };
        if full {
            self.lost_events += 1;
            return;
        }
        self.events[event as usize].raised += 1;
        let first = outputs.arguments.len();
        outputs.arguments.extend(args.take(params));
        outputs.raised.push(Raised {
            event,
            time: self.now,
            delay: delay.unwrap_or(0),
            cause: self.cause,
            first: u32::try_from(first).unwrap_or(u32::MAX),
        });
        let args = &outputs.arguments[first..];
        let Some(delay) = delay else {
            self.pending.queue(event, args);
            return;
        };
        let due = self.now.saturating_add(delay);
        self.pending.delay(due, event, args);
        self.next_wake = self.next_wake.min(due);
    }

    /// Whether there is room for all keys in tables that refuse new keys when full; `keys` gives each key's
    /// table and whether the key is there already.
    pub fn has_room(&mut self, keys: &[(u32, bool)]) -> bool {
        keys.iter().all(|&(table, _)| {
            let new = keys.iter().filter(|key| key.0 == table && !key.1).count();
            new == 0 || !self.tables.shapes[table as usize].refuses || self.free_for(table, new) >= new
        })
    }

    /// Adds one packet to a cell; does nothing if the counter has no such cell.
    pub fn count(&mut self, counter: u32, index: u64, bytes: u64) {
        let (first, end) = (self.first_cell[counter as usize], self.first_cell[counter as usize + 1]);
        if index < (end - first) as u64 {
            let cell = &mut self.cells[first + index as usize];
            cell.packets = cell.packets.wrapping_add(1);
            cell.bytes = cell.bytes.wrapping_add(bytes);
        }
    }

    /// Events refused because a queue was full.
    pub fn lost_events(&self) -> u64 {
        self.lost_events
    }

    /// How often each event was raised.
    pub fn events(&self) -> Vec<u64> {
        self.events.iter().map(|event| event.raised).collect()
    }

    /// The cells of a counter.
    pub fn counter(&self, counter: u32) -> Vec<(u64, u64)> {
        self.counted(counter).collect()
    }

    /// Packets and bytes of the cells of a counter.
    pub(crate) fn counted(&self, counter: u32) -> impl Iterator<Item = (u64, u64)> {
        let cells = self.first_cell[counter as usize]..self.first_cell[counter as usize + 1];
        self.cells[cells].iter().map(|cell| (cell.packets, cell.bytes))
    }

    /// Takes an item of a pool, if one is free; items of expired entries are free, unless an event waits for
    /// the end of these.
    pub fn take(&mut self, pool: u32, hint: u32) -> Option<impl Iterator<Item = u128>> {
        let TableSet { exact, places, shapes, .. } = &mut self.tables;
        for (place, shape) in places.iter().zip(shapes).filter(|(_, shape)| shape.releases == Some(pool)) {
            let TablePlace::Exact(place) = *place else { continue };
            let (held, memory) = (&mut exact[place], &mut self.memory);
            if shape.expires.is_none() && held.next_deadline() <= self.now {
                let gone = &mut |words: &[u64]| release(memory, shape, words);
                held.expire_some(self.now, &mut 0, gone);
                held.free_first(hint, gone);
            }
        }
        self.memory.take(pool, hint)
    }

    /// Gives an item of a pool back. If an expired entry held the item, the item is given back once more when
    /// that entry is removed, but always before anybody takes the item.
    pub fn give(&mut self, pool: u32, item: &[u128]) {
        self.memory.give(pool, item);
    }

    /// Removes all expired entries that hold items of a pool and raise no event.
    #[inline]
    fn finish_for(&mut self, pool: u32) {
        for table in 0..self.tables.shapes.len() {
            if self.tables.shapes[table].releases == Some(pool) {
                self.finish(table as u32);
            }
        }
    }

    /// Removes all expired entries of a table that raises no event for them.
    pub fn finish(&mut self, table: u32) {
        let TableSet { exact, places, shapes, .. } = &mut self.tables;
        let (shape, TablePlace::Exact(place)) = (&shapes[table as usize], places[table as usize]) else {
            return;
        };
        let held = &mut exact[place];
        if shape.expires.is_none() && held.next_deadline() <= self.now {
            let memory = &mut self.memory;
            held.expire_some(self.now, &mut { u32::MAX }, &mut |words| release(memory, shape, words));
        }
    }

    /// Removes expired entries that are in the way of this key, or of `wanted` new keys. Returns how many
    /// keys then find room in an exact table.
    fn make_way(&mut self, table: u32, key: Option<&[u64]>, wanted: usize) -> usize {
        let TableSet { exact, places, shapes, .. } = &mut self.tables;
        let shape = &shapes[table as usize];
        let TablePlace::Exact(place) = places[table as usize] else { return 0 };
        let memory = &mut self.memory;
        exact[place].make_way(key, wanted, &mut |words| release(memory, shape, words))
    }

    /// How many of `wanted` new keys find room in an exact table.
    pub fn free_for(&mut self, table: u32, wanted: usize) -> usize {
        self.make_way(table, None, wanted)
    }

    /// Inserts an entry of the control plane: for ever, or as if a packet had made it at `now`. The entry
    /// takes its item of a pool, if that item is free; an entry that it replaces gives its item back.
    pub fn insert_entry(&mut self, table: u32, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        if let Some(now) = now {
            self.now = self.now.max(now);
        }
        if let Some(pool) = self.tables.shapes[table as usize].releases {
            self.finish_for(pool);
        }
        let before = self.held_item(table, &entry.key).filter(|item| *item != entry.value);
        self.tables.insert(table, entry, now.map(|_| self.now))?;
        self.give_back(table, before.as_slice());
        self.take_items(table, std::slice::from_ref(entry));
        self.wake_for(table);
        Ok(())
    }

    /// Inserts an entry as if a packet had made it at `now`; it ends when `lifetime` is over at the latest.
    pub fn learn_entry_for(
        &mut self,
        table: u32,
        entry: &Entry,
        now: u64,
        lifetime: u64,
    ) -> Result<(), EntryError> {
        let age = self.tables.declared[table as usize].age.ok_or(EntryError::Ageless)?;
        if lifetime == 0 || lifetime > age {
            return Err(EntryError::Lifetime { age });
        }
        let ends = self.now.max(now).saturating_add(lifetime);
        // A table without lifetimes keeps when an entry was learned, which is not before time began.
        if ends < age && !self.tables.declared[table as usize].lifetimes {
            return Err(EntryError::Early { age });
        }
        self.insert_entry(table, entry, Some(now))?;
        self.tables.end_by(table, entry, ends);
        self.next_wake = self.next_wake.min(ends);
        Ok(())
    }

    /// Makes an entry that is there one that packets made at `now`; it ends by its age at `ends` at the
    /// latest.
    pub fn put_back(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError> {
        if let TablePlace::Exact(_) = self.tables.places[table as usize] {
            // One that stays until it is removed would still stay.
            self.remove_entry(table, &entry.key, entry.priority);
        }
        self.learn_until(table, entry, now, ends)
    }

    /// Inserts an entry as if a packet had made it at `now`; it ends by its age at `ends` at the latest.
    pub fn learn_until(&mut self, table: u32, entry: &Entry, now: u64, ends: u64) -> Result<(), EntryError> {
        self.insert_entry(table, entry, Some(now))?;
        if ends < u64::MAX {
            // What should have ended meanwhile ends at once, as an entry does whose time is up.
            let ends = ends.max(self.now.saturating_add(1));
            self.tables.end_by(table, entry, ends);
            self.next_wake = self.next_wake.min(ends);
        }
        Ok(())
    }

    /// Removes an entry for the control plane; an item of a pool that it holds is given back.
    pub fn remove_entry(&mut self, table: u32, key: &[Match], priority: u32) -> bool {
        let before = self.held_item(table, key);
        let removed = self.tables.remove(table, key, priority);
        if removed {
            self.give_back(table, before.as_slice());
            self.wake_for_dead_rules();
        }
        removed
    }

    /// Replaces all entries of a table; the old entries give their items of a pool back, and the new ones
    /// take theirs.
    pub fn replace_entries(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        self.finish(table);
        let before = self.held_items(table);
        let items =
            if self.tables.shapes[table as usize].releases.is_some() { entries.clone() } else { Vec::new() };
        self.tables.replace(table, entries)?;
        if let Some(pool) = self.tables.shapes[table as usize].releases {
            self.memory.number_items(pool, table, &mut self.tables);
        }
        self.give_back(table, &before);
        self.take_items(table, &items);
        Ok(())
    }

    /// Exchanges a table with one that was built for it; not if its entries hold items of a pool.
    pub fn exchange_built(&mut self, table: u32, built: &mut TableSet<F>) -> bool {
        let is_free = self.tables.shapes[table as usize].releases.is_none();
        is_free && self.tables.exchange_built(table, built)
    }

    /// The items of a pool that the entries of a table hold; none if the table holds no items.
    fn held_items(&self, table: u32) -> Vec<Vec<u128>> {
        if self.tables.shapes[table as usize].releases.is_none() {
            return Vec::new();
        }
        self.tables.entries(table).into_iter().map(|(held, _)| held.value).collect()
    }

    /// The item of a pool that the entry with this key holds; `None` if the table holds no items.
    fn held_item(&self, table: u32, key: &[Match]) -> Option<Vec<u128>> {
        self.tables.shapes[table as usize].releases?;
        self.tables.exact_value(table, key)
    }

    fn give_back(&mut self, table: u32, items: &[Vec<u128>]) {
        if let Some(pool) = self.tables.shapes[table as usize].releases {
            items.iter().for_each(|item| self.memory.give(pool, item));
        }
    }

    /// Takes the items of a pool that these entries hold.
    fn take_items(&mut self, table: u32, entries: &[Entry]) {
        if let Some(pool) = self.tables.shapes[table as usize].releases {
            entries.iter().for_each(|entry| self.memory.take_item(pool, &entry.value));
        }
    }

    /// Sets or removes a default entry for the control plane.
    pub fn replace_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError> {
        if !self.may_default[table as usize] {
            return Err(EntryError::NoDefault);
        }
        let columns = self.tables.shapes[table as usize].value.places.len();
        if value.is_some_and(|value| value.len() != columns) {
            return Err(EntryError::Key);
        }
        self.set_default(table, value);
        self.given_defaults[table as usize] = self.defaults[table as usize];
        Ok(())
    }

    /// Sets or removes a default entry.
    pub fn set_default(&mut self, table: u32, value: Option<&[u128]>) {
        let packing = &self.tables.shapes[table as usize].value;
        let default = &mut self.defaults[table as usize];
        default.present = value.is_some().into();
        if let Some(columns) = value {
            packing.pack(columns.iter().copied(), &mut default.words[..packing.words]);
        }
    }

    /// A packet made an entry: the next wake must not be later than its deadline.
    pub fn wake_for(&mut self, table: u32) {
        let lifetime = self.tables.shapes[table as usize].lifetime;
        self.next_wake = self.next_wake.min(self.now.saturating_add(lifetime));
    }

    /// Learns in a table whose entries hold items of a pool, or raise an event when they end: an item that is
    /// replaced is given back.
    pub fn learn_releasing(&mut self, table: u32, key: &[u64], value: &[u64]) -> Learned {
        let now = self.now;
        self.make_way(table, Some(key), 1);
        let shape = &self.tables.shapes[table as usize];
        let TablePlace::Exact(place) = self.tables.places[table as usize] else { return Learned::Refused };
        let held = &self.tables.exact[place];
        let mut before = [0; MAX_WORDS];
        let words = shape.value.words;
        if let Some(old) = held.peek(key) {
            before[..words].copy_from_slice(old);
        }
        let learned = self.tables.learn(table, key, value, now);
        let shape = &self.tables.shapes[table as usize];
        if let (Learned::Moved, Some(pool)) = (learned, shape.releases) {
            self.memory.give_words(pool, &shape.value, &before[..words]);
        }
        learned
    }

    /// The entry with this key ends when so much time (ns) has passed, if packets made it and it would not
    /// end sooner.
    pub fn end_after(&mut self, table: u32, key: &[u64], after: u64) {
        let ends = self.now.saturating_add(after.max(1));
        // What was refused, or stays until it is removed, wakes nobody.
        if self.tables.end_key_by(table, key, ends) {
            self.next_wake = self.next_wake.min(ends);
        }
    }

    /// Removes an entry of an exact table; an item of a pool that it holds is given back.
    pub fn remove_releasing(&mut self, table: u32, key: &[u64]) {
        let shape = &self.tables.shapes[table as usize];
        let TablePlace::Exact(place) = self.tables.places[table as usize] else { return };
        let held = &mut self.tables.exact[place];
        if let (Some(old), Some(pool)) = (held.peek(key), shape.releases) {
            self.memory.give_words(pool, &shape.value, old);
        }
        held.remove(key);
        self.tables.forget_deadline(table, key);
    }

    /// Expires entries whose deadline has come, and removes as many of them as these steps allow.
    fn expire(&mut self, steps: &mut u32) {
        if self.tables.next_deadline() > self.now {
            return;
        }
        let TableSet { exact, places, shapes, .. } = &mut self.tables;
        for (place, shape) in places.iter().zip(shapes) {
            let TablePlace::Exact(place) = *place else { continue };
            if shape.expires.is_some() {
                continue;
            }
            let table = &mut exact[place];
            if table.next_deadline() > self.now {
                continue;
            }
            let memory = &mut self.memory;
            table.expire_some(self.now, steps, &mut |words| release(memory, shape, words));
        }
        self.tables.expire_others(self.now, steps);
    }

    /// Computes the next wake. Entries that are learned later live at least as long as their table's shortest
    /// lifetime, so a learn need not move the next wake to an earlier time; [`Self::end_after`] does.
    fn set_next_wake(&mut self) {
        if self.has_queued() {
            self.next_wake = 0;
            return;
        }
        let deadlines = self.tables.next_deadline();
        let lifetime = self.tables.shapes.iter().map(|shape| shape.lifetime).min().unwrap_or(NEVER);
        self.next_wake = self.pending.next_time().min(deadlines).min(self.now.saturating_add(lifetime));
    }
}

/// Gives back the item of a pool that an entry with this value holds.
fn release(memory: &mut ProgramMemory, shape: &TableShape, words: &[u64]) {
    if let Some(pool) = shape.releases {
        memory.give_words(pool, &shape.value, words);
    }
}

/// For each table, whether it has a default entry, or may get one from the program.
pub fn may_default(program: &Program) -> Vec<bool> {
    let mut may: Vec<bool> = program.tables.iter().map(|table| table.default.is_some()).collect();
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    for instruction in blocks.flat_map(|block| &block.instructions) {
        if let Op::SetDefault { table, .. } = instruction.op {
            may[table as usize] = true;
        }
    }
    may
}

#[cfg(test)]
mod tests;
