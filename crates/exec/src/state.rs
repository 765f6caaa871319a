//! What a program remembers from packet to packet: tables, default entries, counters, queued events, timers and the time.
//!
//! The same state serves every back end and is pure: time comes with the packets. Before a packet, whatever is due by its
//! time is handled in the order of times: entries whose deadline has come go first, then timers run, ties in order of
//! creation. Three bounds keep a program from growing or running without end, also where a damaged capture jumps by
//! years: [`MAX_RUNS`], [`MAX_QUEUED`] and [`MAX_TIMERS`].

pub mod matching;
pub mod memory;
pub mod rows;
pub mod table_set;

use self::memory::Memory;
use self::table_set::{Family, TablePlace, TableSet};

use crate::load::LoadError;
use crate::outputs::{Output, Outputs, Raised};
use crate::pack::MAX_WORDS;
use crate::processor::EntryError;
use crate::stages::StageClock;
use lang::ir::{Entry, Match, Op, Program};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tables::exact::{Exact, Learned};

/// Handlers run after a packet at most, and as many again before the next one. What is left stays due for the next time; a
/// periodic handler that is behind then skips whole periods.
pub const MAX_RUNS: u32 = 4096;
/// Events queued at once at most; further ones are refused and counted.
pub const MAX_QUEUED: usize = 4096;
/// Delayed events pending at once at most; further ones are refused and counted.
pub const MAX_TIMERS: usize = 65_536;
/// Cells of all counters together at most.
pub const MAX_CELLS: usize = 1 << 26;

/// The time at which nothing ever happens.
const NEVER: u64 = u64::MAX;

/// A default entry. The layout is part of the interface to compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DefaultEntry {
    /// 1 if it is set, else 0.
    pub present: u64,
    /// Its words.
    pub words: [u64; MAX_WORDS],
}

/// One cell of a counter. The layout is part of the interface to compiled code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Cell {
    /// Packets counted.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// Everything a program remembers.
pub struct State<F: Family> {
    /// Its tables.
    pub tables: TableSet<F>,
    /// Meters, registers, pools and groups.
    pub memory: Memory,
    /// Their default entries.
    pub defaults: Vec<DefaultEntry>,
    /// Whether a table may ever have a default entry.
    pub may_default: Vec<bool>,
    /// Cells of all counters, one counter after the other.
    pub cells: Vec<Cell>,
    /// First cell of every counter, and the end.
    pub first_cell: Vec<usize>,
    /// The time, ns: never goes back.
    pub now: u64,
    /// The packet that is being run, as index in its batch, or [`Output::BETWEEN`].
    pub cause: u32,
    /// Nothing is due before this time, ns.
    pub next_wake: u64,
    events: Vec<EventState>,
    queue: VecDeque<u32>,
    queue_args: VecDeque<u128>,
    timers: BinaryHeap<Reverse<Timer>>,
    timer_args: Vec<u128>,
    free_timer_args: Vec<u32>,
    stride: usize,
    periodic: Vec<Periodic>,
    started: bool,
    created: u64,
    lost_events: u64,
    scratch: Vec<u128>,
    /// What the variant of a program that measures its stages calls.
    pub(crate) clock: StageClock,
}

#[derive(Clone, Debug)]
struct EventState {
    handler: u32,
    params: usize,
    raised: u64,
}

/// A delayed event; the order of the fields is the order in which timers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    due: u64,
    created: u64,
    event: u32,
    args: u32,
}

/// A periodic handler. `created` orders it among timers due at the same time.
#[derive(Clone, Copy, Debug)]
struct Periodic {
    due: u64,
    created: u64,
    period: u64,
    handler: u32,
}

/// Runs one handler: the function's index and its arguments.
pub trait RunHandler<F: Family> {
    /// Runs it at `state.now`.
    fn run_handler(&mut self, state: &mut State<F>, function: u32, args: &[u128], outputs: &mut Outputs);
}

impl<F: Family> State<F> {
    /// The state a program starts with. `seed` chooses the tables' hash functions.
    pub fn new(program: &Program, ports: u16, seed: u64) -> Result<State<F>, LoadError> {
        let tables = TableSet::<F>::new(program, seed)?;
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
        let events: Vec<EventState> = program
            .events
            .iter()
            .map(|event| EventState { handler: event.handler, params: event.params.len(), raised: 0 })
            .collect();
        let stride = events.iter().map(|event| event.params).max().unwrap_or(0);
        let periodic = program
            .every
            .iter()
            .map(|every| Periodic {
                due: NEVER,
                created: 0,
                period: every.period.max(1),
                handler: every.handler,
            })
            .collect();
        Ok(State {
            tables,
            memory: Memory::new(program, ports)?,
            defaults,
            may_default: may_default(program),
            cells: vec![Cell::default(); cells],
            first_cell,
            now: 0,
            cause: Output::BETWEEN,
            next_wake: 0,
            events,
            queue: VecDeque::new(),
            queue_args: VecDeque::new(),
            timers: BinaryHeap::new(),
            timer_args: Vec::new(),
            free_timer_args: Vec::new(),
            stride,
            periodic,
            started: false,
            created: 0,
            lost_events: 0,
            scratch: Vec::with_capacity(stride),
            clock: StageClock::default(),
        })
    }
}

impl<F: Family> State<F> {
    /// Whether events wait to be handled at once.
    #[inline]
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Handles what is due by `time`, and makes it the time if it is later.
    pub fn settle(&mut self, time: u64, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let time = time.max(self.now);
        self.cause = Output::BETWEEN;
        if !self.started {
            self.start(time);
        }
        let mut runs = MAX_RUNS;
        self.drain(&mut runs, runner, outputs);
        while runs > 0 {
            let (timer, periodic) = (self.first_timer(), self.first_periodic());
            let Some((due, ..)) =
                timer.into_iter().chain(periodic.map(|(at, ..)| at)).min().filter(|at| at.0 <= time)
            else {
                break;
            };
            self.now = self.now.max(due);
            self.expire();
            runs -= 1;
            match periodic.filter(|(at, _)| timer.is_none_or(|timer| *at < timer)) {
                Some((_, index)) => self.run_periodic(index, runner, outputs),
                None => self.run_timer(runner, outputs),
            }
            self.drain(&mut runs, runner, outputs);
        }
        self.now = time;
        self.expire();
        for periodic in &mut self.periodic {
            if runs == 0 && periodic.due <= time {
                let periods = (time - periodic.due) / periodic.period + 1;
                periodic.due = periodic.due.saturating_add(periods.saturating_mul(periodic.period));
            }
        }
        self.set_next_wake();
    }

    /// Handles the events that were raised to be handled at once.
    pub fn handle_queued(&mut self, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        self.cause = Output::BETWEEN;
        let mut runs = MAX_RUNS;
        self.drain(&mut runs, runner, outputs);
        if self.has_queued() {
            self.next_wake = 0;
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
        let params = self.events[event as usize].params;
        let full = match delay {
            None => self.queue.len() >= MAX_QUEUED,
            Some(_) => self.timers.len() >= MAX_TIMERS,
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
            self.queue.push_back(event);
            self.queue_args.extend(args);
            return;
        };
        let place = self.free_timer_args.pop().unwrap_or_else(|| {
            let place = self.timer_args.len();
            self.timer_args.resize(place + self.stride, 0);
            // At most 65,536 timers times 65,536 arguments.
            (place / self.stride.max(1)) as u32
        });
        let start = place as usize * self.stride;
        self.timer_args[start..start + params].copy_from_slice(args);
        let due = self.now.saturating_add(delay);
        let timer = Timer { due, created: self.next_created(), event, args: place };
        self.timers.push(Reverse(timer));
        self.next_wake = self.next_wake.min(due);
    }

    /// Whether every key is in its table or, where the table refuses when full, would find a free place; `keys` gives each
    /// key's table and whether it is there.
    pub fn has_room(&self, keys: &[(u32, bool)]) -> bool {
        keys.iter().all(|&(table, _)| {
            let new = keys.iter().filter(|key| key.0 == table && !key.1).count();
            new == 0 || !self.tables.shapes[table as usize].refuses || self.free(table) >= new
        })
    }

    /// Adds one packet to a cell; nothing where the counter has no such cell.
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
        let cells = self.first_cell[counter as usize]..self.first_cell[counter as usize + 1];
        self.cells[cells].iter().map(|cell| (cell.packets, cell.bytes)).collect()
    }

    /// Free places of an exact table.
    fn free(&self, table: u32) -> usize {
        match self.tables.places[table as usize] {
            TablePlace::Exact(place) => self.tables.exact[place].free(),
            _ => 0,
        }
    }

    /// Puts in an entry from outside: for ever, or as if a packet had made it at `now`. An item of a pool that it replaces goes back.
    pub fn insert_entry(&mut self, table: u32, entry: &Entry, now: Option<u64>) -> Result<(), EntryError> {
        let before = self.held_items(table, |held| held.key == entry.key && held.value != entry.value);
        if let Some(now) = now {
            self.now = self.now.max(now);
        }
        self.tables.insert(table, entry, now.map(|_| self.now))?;
        self.give_back(table, &before);
        self.wake_for(table);
        Ok(())
    }

    /// Takes out an entry from outside; an item of a pool that it holds goes back.
    pub fn remove_entry(&mut self, table: u32, key: &[Match], priority: u32) -> bool {
        let before = self.held_items(table, |held| held.key == key);
        let removed = self.tables.remove(table, key, priority);
        if removed {
            self.give_back(table, &before);
        }
        removed
    }

    /// Exchanges all entries of a table; items of a pool that they hold go back.
    pub fn replace_entries(&mut self, table: u32, entries: Vec<Entry>) -> Result<(), EntryError> {
        let before = self.held_items(table, |_| true);
        self.tables.replace(table, entries)?;
        self.give_back(table, &before);
        Ok(())
    }

    /// The items of a pool that these entries of a table hold; none where it holds no items.
    fn held_items(&self, table: u32, which: impl Fn(&Entry) -> bool) -> Vec<Vec<u128>> {
        if self.tables.shapes[table as usize].releases.is_none() {
            return Vec::new();
        }
        let entries = self.tables.entries(table).into_iter().map(|(held, _)| held);
        entries.filter(which).map(|held| held.value).collect()
    }

    fn give_back(&mut self, table: u32, items: &[Vec<u128>]) {
        if let Some(pool) = self.tables.shapes[table as usize].releases {
            items.iter().for_each(|item| self.memory.give(pool, item));
        }
    }

    /// Sets or removes a default entry from outside.
    pub fn replace_default(&mut self, table: u32, value: Option<&[u128]>) -> Result<(), EntryError> {
        if !self.may_default[table as usize] {
            return Err(EntryError::NoDefault);
        }
        let columns = self.tables.shapes[table as usize].value.places.len();
        if value.is_some_and(|value| value.len() != columns) {
            return Err(EntryError::Key);
        }
        self.set_default(table, value);
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

    fn start(&mut self, time: u64) {
        self.started = true;
        for index in 0..self.periodic.len() {
            self.periodic[index].due = time.saturating_add(self.periodic[index].period);
            self.periodic[index].created = self.next_created();
        }
    }

    fn next_created(&mut self) -> u64 {
        self.created += 1;
        self.created
    }

    /// When and in which order the first timer is due.
    fn first_timer(&self) -> Option<(u64, u64)> {
        let Reverse(timer) = self.timers.peek()?;
        (timer.due != NEVER).then_some((timer.due, timer.created))
    }

    /// When and in which order the first periodic handler is due, and its index.
    fn first_periodic(&self) -> Option<((u64, u64), usize)> {
        let all = self.periodic.iter().enumerate().filter(|(_, periodic)| periodic.due != NEVER);
        all.map(|(index, periodic)| ((periodic.due, periodic.created), index)).min()
    }

    fn run_periodic(&mut self, index: usize, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let periodic = &mut self.periodic[index];
        periodic.due = periodic.due.saturating_add(periodic.period);
        let handler = periodic.handler;
        runner.run_handler(self, handler, &[], outputs);
    }

    fn run_timer(&mut self, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        let Some(Reverse(timer)) = self.timers.pop() else { return };
        let EventState { handler, params, .. } = self.events[timer.event as usize];
        let start = timer.args as usize * self.stride;
        let mut args = std::mem::take(&mut self.scratch);
        args.clear();
        args.extend_from_slice(&self.timer_args[start..start + params]);
        self.free_timer_args.push(timer.args);
        runner.run_handler(self, handler, &args, outputs);
        self.scratch = args;
    }

    /// Runs queued events in order while the budget lasts.
    fn drain(&mut self, runs: &mut u32, runner: &mut impl RunHandler<F>, outputs: &mut Outputs) {
        while *runs > 0 {
            let Some(event) = self.queue.pop_front() else { return };
            *runs -= 1;
            let EventState { handler, params, .. } = self.events[event as usize];
            let mut args = std::mem::take(&mut self.scratch);
            args.clear();
            args.extend(self.queue_args.drain(..params));
            runner.run_handler(self, handler, &args, outputs);
            self.scratch = args;
        }
    }

    /// An entry was made by a packet: the next wake is not later than its end.
    pub fn wake_for(&mut self, table: u32) {
        let lifetime = self.tables.shapes[table as usize].lifetime;
        self.next_wake = self.next_wake.min(self.now.saturating_add(lifetime));
    }

    /// Learns in a table whose entries hold items of a pool: an item that is replaced goes back.
    pub fn learn_releasing(&mut self, table: u32, key: &[u64], value: &[u64]) -> Learned {
        let now = self.now;
        let shape = &self.tables.shapes[table as usize];
        let TablePlace::Exact(place) = self.tables.places[table as usize] else { return Learned::Refused };
        let held = &mut self.tables.exact[place];
        let mut before = [0; MAX_WORDS];
        let words = shape.value.words;
        if let Some(old) = held.peek(key) {
            before[..words].copy_from_slice(old);
        }
        let learned = held.learn(key, value, now);
        if let (Learned::Moved, Some(pool)) = (learned, shape.releases) {
            self.memory.give_words(pool, &shape.value, &before[..words]);
        }
        learned
    }

    /// Removes an entry of an exact table; an item of a pool that it holds goes back.
    pub fn remove_releasing(&mut self, table: u32, key: &[u64]) {
        let shape = &self.tables.shapes[table as usize];
        let TablePlace::Exact(place) = self.tables.places[table as usize] else { return };
        let held = &mut self.tables.exact[place];
        if let (Some(old), Some(pool)) = (held.peek(key), shape.releases) {
            self.memory.give_words(pool, &shape.value, old);
        }
        held.remove(key);
    }

    /// Takes out entries whose deadline has come.
    fn expire(&mut self) {
        if self.tables.next_deadline() > self.now {
            return;
        }
        let TableSet { exact, places, shapes, .. } = &mut self.tables;
        for (place, shape) in places.iter().zip(shapes) {
            let TablePlace::Exact(place) = *place else { continue };
            let table = &mut exact[place];
            if table.next_deadline() > self.now {
                continue;
            }
            match shape.releases {
                None => table.expire(self.now),
                Some(pool) => {
                    let (memory, value) = (&mut self.memory, &shape.value);
                    table.expire_telling(self.now, &mut |words| memory.give_words(pool, value, words))
                }
            };
        }
        self.tables.expire_others(self.now);
    }

    /// Entries learned from now on live at least as long as their table's shortest lifetime, so a learn need not bring
    /// the next wake forward.
    fn set_next_wake(&mut self) {
        if self.has_queued() {
            self.next_wake = 0;
            return;
        }
        let timer = self.first_timer().map_or(NEVER, |(due, _)| due);
        let periodic = self.periodic.iter().map(|periodic| periodic.due).min().unwrap_or(NEVER);
        let deadlines = self.tables.next_deadline();
        let lifetime = self.tables.shapes.iter().map(|shape| shape.lifetime).min().unwrap_or(NEVER);
        self.next_wake = timer.min(periodic).min(deadlines).min(self.now.saturating_add(lifetime));
    }
}

/// Which tables have a default entry or are given one by the program.
fn may_default(program: &Program) -> Vec<bool> {
    let mut may: Vec<bool> = program.tables.iter().map(|table| table.default.is_some()).collect();
    let blocks = program.functions.iter().flat_map(|function| &function.blocks);
    for instruction in blocks.flat_map(|block| &block.instructions) {
        if let Op::SetDefault { table, .. } = instruction.op {
            may[table as usize] = true;
        }
    }
    may
}
