//! The handover of state other than tables to the program that replaces this one: meters, registers, pools,
//! groups, counters, default entries, events, and the budgets of handlers that are due.
//!
//! State that both programs declare in the same way is moved as a whole, however large it is. Nothing here
//! can fail, so the handover happens when all workers have agreed to the takeover.

use super::budget::Budget;
use super::memory::ProgramMemory;
use super::pending::Pending;
use super::table_set::TableFamily;
use super::{Cell, DefaultEntry, ProgramState};

/// The state that one program hands over.
pub struct Handover<'a> {
    pub(crate) memory: &'a mut ProgramMemory,
    cells: &'a mut Vec<Cell>,
    first_cell: &'a [usize],
    defaults: &'a mut [DefaultEntry],
    given_defaults: &'a [DefaultEntry],
    may_default: &'a [bool],
    pending: &'a mut Pending,
    now: &'a mut u64,
    next_wake: &'a mut u64,
    budgets: [&'a mut Budget; 2],
}

/// Pairs of numbers of a declaration: in the old program and in the new one.
pub type Pairs = Vec<(u32, u32)>;

/// The declarations whose state is handed over; tables are listed for their default entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedState {
    /// Tables.
    pub tables: Pairs,
    /// Groups that are handed over with their buckets.
    pub groups: Pairs,
    /// Meters.
    pub meters: Pairs,
    /// Registers.
    pub registers: Pairs,
    /// Pools.
    pub pools: Pairs,
    /// Counters.
    pub counters: Pairs,
    /// Events.
    pub events: Pairs,
}

impl<F: TableFamily> ProgramState<F> {
    /// Whether the entries of a table hold no items of a pool, or both tables hold items of pools that are
    /// declared in the same way.
    pub fn shares_pool(&self, table: u32, other: &ProgramState<F>, theirs: u32) -> bool {
        let releases = |state: &ProgramState<F>, table: u32| state.tables.shapes[table as usize].releases;
        match (releases(self, table), releases(other, theirs)) {
            (None, None) => true,
            (Some(pool), Some(of_other)) => self.memory.same_pool(pool, &other.memory, of_other),
            _ => false,
        }
    }

    /// The state to hand over or to replace.
    pub fn handover(&mut self) -> Handover<'_> {
        Handover {
            memory: &mut self.memory,
            cells: &mut self.cells,
            first_cell: &self.first_cell,
            defaults: &mut self.defaults,
            given_defaults: &self.given_defaults,
            may_default: &self.may_default,
            pending: &mut self.pending,
            now: &mut self.now,
            next_wake: &mut self.next_wake,
            budgets: [&mut self.ends_budget, &mut self.periods_budget],
        }
    }
}

impl Handover<'_> {
    /// Takes over from another program, which must not run any more. Returns how many queued and delayed
    /// events are given up.
    pub fn take_over(&mut self, old: &mut Handover<'_>, shared: &SharedState) -> u64 {
        *self.now = (*self.now).max(*old.now);
        *self.next_wake = 0;
        for (own, old) in self.budgets.iter_mut().zip(&mut old.budgets) {
            std::mem::swap(*own, *old);
        }
        for &(from, to) in &shared.meters {
            self.memory.swap_meter(to, old.memory, from);
        }
        for &(from, to) in &shared.registers {
            self.memory.swap_register(to, old.memory, from);
        }
        for &(from, to) in &shared.groups {
            self.memory.swap_group(to, old.memory, from);
        }
        for &(from, to) in &shared.pools {
            self.memory.take_over_pool(to, old.memory, from);
        }
        self.take_counters(old, &shared.counters);
        for &(from, to) in &shared.tables {
            let (from, to) = (from as usize, to as usize);
            if old.defaults[from] != old.given_defaults[from] && self.may_default[to] {
                self.defaults[to] = old.defaults[from];
            }
        }
        self.pending.take_over(old.pending, &shared.events)
    }

    /// Writes a cell of a register, as a packet would; returns whether both are there.
    pub fn write_register(&mut self, register: u32, cell: u32, value: u64) -> bool {
        self.memory.write_cell(register, cell, value)
    }

    fn take_counters(&mut self, old: &mut Handover<'_>, counters: &Pairs) {
        let all = counters.len() + 1 == self.first_cell.len();
        if all && self.first_cell == old.first_cell && counters.iter().all(|(from, to)| from == to) {
            return std::mem::swap(self.cells, old.cells);
        }
        for &(from, to) in counters {
            let (from, to) = (from as usize, to as usize);
            let from = old.first_cell[from]..old.first_cell[from + 1];
            let to = self.first_cell[to]..self.first_cell[to + 1];
            self.cells[to].swap_with_slice(&mut old.cells[from]);
        }
    }

    /// Takes the items of a pool that these entries hold, or gives them back.
    pub fn items(&mut self, pool: u32, taken: bool, entries: impl Iterator<Item = Vec<u128>>) {
        for item in entries {
            if taken {
                self.memory.take_item(pool, &item);
            } else {
                self.memory.give(pool, &item);
            }
        }
    }
}
