//! What a program remembers from packet to packet: tables, default entries, counters, queued events, timers and the time.
//!
//! The same state serves every back end and is pure: time comes with the packets. Before a packet, whatever is due by its
//! time is handled in the order of times: entries whose deadline has come go first, then timers run, ties in order of
//! creation. Three bounds keep a program from growing or running without end, also where a damaged capture jumps by
//! years: [`MAX_RUNS`], [`MAX_QUEUED`] and [`MAX_TIMERS`].

use crate::load::LoadError;
use crate::outputs::{Output, Outputs, Raised};
use crate::pack::{MAX_WORDS, Packing};
use crate::processor::TableReport;
use lang::ir::{self, Program};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use tables::exact::{Evict, Exact, ExactSpec, Model, SpecError, Table};

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

/// A table that can be made from its shape.
pub trait Make: Exact + Sized {
    /// An empty table.
    fn make(spec: ExactSpec) -> Result<Self, SpecError>;
}

impl Make for Model {
    fn make(spec: ExactSpec) -> Result<Model, SpecError> {
        Model::new(spec)
    }
}

impl Make for Table {
    fn make(spec: ExactSpec) -> Result<Table, SpecError> {
        Table::new(spec)
    }
}

/// A default entry. The layout is part of the interface to compiled code.
#[derive(Clone, Copy, Debug, Default)]
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

/// What does not change about a table.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// How its key columns are packed.
    pub key: Packing,
    /// How its value columns are packed.
    pub value: Packing,
    /// Whether it refuses new keys when full.
    pub refuses: bool,
    /// The shortest time an entry lives after a learn, ns.
    lifetime: u64,
}

/// Everything a program remembers.
pub struct State<T> {
    /// Tables in order of declaration.
    pub tables: Vec<T>,
    /// What does not change about them.
    pub shapes: Vec<Shape>,
    /// Their default entries.
    pub defaults: Vec<DefaultEntry>,
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
pub trait RunHandler<T> {
    /// Runs it at `state.now`.
    fn run_handler(&mut self, state: &mut State<T>, function: u32, args: &[u128], outputs: &mut Outputs);
}

impl<T: Make> State<T> {
    /// The state a program starts with. `seed` chooses the tables' hash functions.
    pub fn new(program: &Program, seed: u64) -> Result<State<T>, LoadError> {
        let mut tables = Vec::with_capacity(program.tables.len());
        let mut shapes = Vec::with_capacity(program.tables.len());
        let mut defaults = Vec::with_capacity(program.tables.len());
        for (index, table) in program.tables.iter().enumerate() {
            let shape = Shape::new(table);
            tables.push(made(table, &shape, seed.wrapping_add(index as u64))?);
            let mut default = DefaultEntry::default();
            if let Some(columns) = &table.default {
                default.present = 1;
                shape.value.pack(columns.iter().copied(), &mut default.words[..shape.value.words]);
            }
            defaults.push(default);
            shapes.push(shape);
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
            shapes,
            defaults,
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
        })
    }
}

impl<T: Exact> State<T> {
    /// Whether events wait to be handled at once.
    #[inline]
    pub fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Handles what is due by `time`, and makes it the time if it is later.
    pub fn settle(&mut self, time: u64, runner: &mut impl RunHandler<T>, outputs: &mut Outputs) {
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
    pub fn handle_queued(&mut self, runner: &mut impl RunHandler<T>, outputs: &mut Outputs) {
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
            new == 0 || !self.shapes[table as usize].refuses || self.tables[table as usize].free() >= new
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

    /// A report on every table.
    pub fn table_reports(&self) -> Vec<TableReport> {
        let report = |(table, shape): (&T, &Shape)| {
            let statistics = table.statistics();
            TableReport {
                name: shape.name.clone(),
                entries: statistics.entries,
                inserts: statistics.inserts,
                moves: statistics.moves,
                evictions: statistics.evictions,
                expired: statistics.expired,
                refused: statistics.refused,
            }
        };
        self.tables.iter().zip(&self.shapes).map(report).collect()
    }

    /// The entries of a table, sorted by key.
    pub fn entries(&self, table: u32) -> Vec<(Vec<u128>, Vec<u128>)> {
        let shape = &self.shapes[table as usize];
        let entries = self.tables[table as usize].entries();
        entries.iter().map(|entry| (shape.key.unpack(&entry.key), shape.value.unpack(&entry.value))).collect()
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

    fn run_periodic(&mut self, index: usize, runner: &mut impl RunHandler<T>, outputs: &mut Outputs) {
        let periodic = &mut self.periodic[index];
        periodic.due = periodic.due.saturating_add(periodic.period);
        let handler = periodic.handler;
        runner.run_handler(self, handler, &[], outputs);
    }

    fn run_timer(&mut self, runner: &mut impl RunHandler<T>, outputs: &mut Outputs) {
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
    fn drain(&mut self, runs: &mut u32, runner: &mut impl RunHandler<T>, outputs: &mut Outputs) {
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

    /// Takes out entries whose deadline has come.
    fn expire(&mut self) {
        for table in &mut self.tables {
            if table.next_deadline() <= self.now {
                table.expire(self.now);
            }
        }
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
        let deadlines = self.tables.iter().map(|table| table.next_deadline()).min().unwrap_or(NEVER);
        let lifetime = self.shapes.iter().map(|shape| shape.lifetime).min().unwrap_or(NEVER);
        self.next_wake = timer.min(periodic).min(deadlines).min(self.now.saturating_add(lifetime));
    }
}

impl Shape {
    fn new(table: &ir::Table) -> Shape {
        Shape {
            name: table.name.clone(),
            key: Packing::new(&table.keys),
            value: Packing::new(&table.values),
            refuses: table.evict == ir::Evict::Refuse,
            lifetime: table.idle.unwrap_or(NEVER).min(table.age.unwrap_or(NEVER)),
        }
    }
}

/// A table with the entries of the program text.
fn made<T: Make>(table: &ir::Table, shape: &Shape, seed: u64) -> Result<T, LoadError> {
    for (what, words) in [("key", shape.key.words), ("value", shape.value.words)] {
        if words > MAX_WORDS {
            return Err(LoadError::TooWide { table: table.name.clone(), what, words });
        }
    }
    let spec = ExactSpec {
        key_words: shape.key.words,
        value_words: shape.value.words,
        capacity: table.capacity as usize,
        idle: table.idle,
        age: table.age,
        evict: if shape.refuses { Evict::Refuse } else { Evict::Lru },
        seed,
    };
    let mut made = T::make(spec).map_err(|cause| LoadError::Table { table: table.name.clone(), cause })?;
    let (mut key, mut value) = ([0; MAX_WORDS], [0; MAX_WORDS]);
    let (key, value) = (&mut key[..shape.key.words], &mut value[..shape.value.words]);
    for (key_columns, value_columns) in &table.entries {
        shape.key.pack(key_columns.iter().copied(), key);
        shape.value.pack(value_columns.iter().copied(), value);
        if !made.insert_permanent(key, value) {
            return Err(LoadError::TooManyEntries { table: table.name.clone(), capacity: table.capacity });
        }
    }
    Ok(made)
}
