//! Checks meters, registers, pools and groups, the keys of entries, and the instructions that use them.

use super::body::{Checker, widths};
use super::*;
use crate::limits::{MOST_BUCKETS, MOST_COLUMNS, MOST_COPIES, MOST_ITEMS, MOST_MEMBERS};
use tables::meter::{MAX_PERIOD, MeterSpec};

fn is_port(columns: &[Column]) -> bool {
    matches!(columns, [Column { kind: ColumnKind::Port, width: 16, .. }])
}

/// Checks the declarations.
pub(super) fn check(program: &Program, report: &mut impl FnMut(Fault)) {
    let good = |columns: &[Column]| columns.iter().all(|column| (1..=128).contains(&column.width));
    for (index, meter) in program.meters.iter().enumerate() {
        let largest = MeterSpec::largest_burst(meter.period);
        let rates = match meter.rates {
            Rates::Single { committed, burst, excess } => {
                committed > 0 && (1..=largest).contains(&burst.max(excess))
            }
            Rates::Two { committed, burst, peak, peak_burst } => {
                let bursts = 1..=largest;
                committed > 0 && peak >= committed && bursts.contains(&burst) && bursts.contains(&peak_burst)
            }
        };
        if meter.size == 0 || !(1..=MAX_PERIOD).contains(&meter.period) || !rates {
            report(Fault::Memory("meter", index as u32));
        }
    }
    for (index, register) in program.registers.iter().enumerate() {
        if register.size == 0 || !(1..=64).contains(&register.column.width) {
            report(Fault::Memory("register", index as u32));
        }
    }
    for (index, pool) in program.pools.iter().enumerate() {
        let in_range =
            |(column, (low, high)): (&Column, &(u128, u128))| low <= high && fits(*high, column.width);
        if pool.columns.is_empty()
            || pool.columns.len() != pool.ranges.len()
            || !good(&pool.columns)
            || !pool.columns.iter().zip(&pool.ranges).all(in_range)
            || pool.items() > MOST_ITEMS
            || pool.columns.len() > MOST_COLUMNS
        {
            report(Fault::Memory("pool", index as u32));
        }
    }
    for (index, group) in program.groups.iter().enumerate() {
        let member = |(at, columns, weight): &(u32, Vec<u128>, u32)| {
            *at < group.size
                && *weight > 0
                && columns.len() == group.columns.len()
                && columns.iter().zip(&group.columns).all(|(number, column)| fits(*number, column.width))
        };
        if group.size == 0
            || group.columns.is_empty()
            || !good(&group.columns)
            || !(1..=MOST_MEMBERS).contains(&group.capacity)
            || !group.buckets.is_power_of_two()
            || !(group.capacity..=MOST_BUCKETS).contains(&group.buckets)
            || !group.members.iter().all(member)
            || (group.multicast && (group.capacity > MOST_COPIES || !is_port(&group.columns)))
        {
            report(Fault::Memory("group", index as u32));
        }
    }
    for (index, table) in program.tables.iter().enumerate() {
        let Some(event) = table.expires else { continue };
        let Some(event) = program.events.get(event as usize) else {
            report(Fault::NoSuch("event", event));
            continue;
        };
        let ends = table.idle.is_some() || table.age.is_some();
        if !ends || table.secret || !table.ending_widths().eq(widths(&event.params)) {
            report(Fault::KindProperty(index as u32));
        }
    }
    for (index, table) in program.tables.iter().enumerate() {
        if table.lifetimes && (table.kind != TableKind::Exact || table.age.is_none()) {
            report(Fault::KindProperty(index as u32));
        }
        let Some(pool) = table.releases else { continue };
        let Some(pool) = program.pools.get(pool as usize) else {
            report(Fault::NoSuch("pool", pool));
            continue;
        };
        if widths(&pool.columns) != widths(&table.values) || table.evict != Eviction::Refuse {
            report(Fault::KindProperty(index as u32));
        }
    }
}

/// Whether the values of a table of patterns suit its answer: a set is made of numbers of up to 7 bits.
pub(super) fn answer_fits(table: &Table) -> bool {
    table.kind != TableKind::Patterns(Answer::Set)
        || matches!(&table.values[..], [column] if column.width <= 7)
}

impl Checker<'_> {
    /// Reports a table of a kind that this does not go with.
    pub(super) fn kind_is(&mut self, table: u32, good: impl Fn(TableKind) -> bool) {
        if self.program.tables.get(table as usize).is_some_and(|table| !good(table.kind)) {
            self.report(Fault::TableKind(table));
        }
    }

    fn key_parts(&mut self, table: u32, key: &[KeyPart]) {
        self.kind_is(table, |kind| matches!(kind, TableKind::Lpm | TableKind::Rules { .. }));
        let Some((widths, _)) = self.table(table) else { return };
        if key.len() != widths.len() {
            return self.report(Fault::Operands { due: widths.len(), found: key.len() });
        }
        for (part, width) in key.iter().zip(widths) {
            match part {
                KeyPart::Fixed(fixed) if !fixed.fits(width) => self.report(Fault::TableKind(table)),
                KeyPart::Fixed(_) => {}
                KeyPart::Exact(value) => self.is_wide(*value, width),
                KeyPart::Prefix(value, length) => {
                    self.is_wide(*value, width);
                    if *length > width {
                        self.report(Fault::TableKind(table));
                    }
                }
            }
        }
    }

    /// An index is needed where there are several cells, and has 32 bits.
    fn cell(&mut self, what: &'static str, number: u32, size: Option<u32>, index: Option<Value>) {
        match size {
            None => self.report(Fault::NoSuch(what, number)),
            Some(size) if size > 1 && index.is_none() => self.report(Fault::Memory(what, number)),
            Some(_) => {}
        }
        index.iter().for_each(|index| self.is_wide(*index, 32));
    }

    /// Checks an instruction on tables other than exact ones, meters, registers, pools and groups.
    pub(super) fn memory(&mut self, op: &Op, results: &[Value]) {
        let program = self.program;
        match op {
            Op::Scan { table, start, end } => {
                self.packet_only();
                self.are_wide(&[*start, *end], &[32, 32]);
                self.kind_is(*table, |kind| matches!(kind, TableKind::Patterns(_)));
                let Some((_, values)) = self.table(*table) else { return };
                match program.tables[*table as usize].kind {
                    TableKind::Patterns(Answer::All) => self.results(results, &[32]),
                    TableKind::Patterns(Answer::Set) => self.results(results, &[128]),
                    _ => self.found(results, &values),
                }
            }
            Op::Insert { table, key, value, .. } => {
                self.results(results, &[1]);
                self.key_parts(*table, key);
                if let Some((_, values)) = self.table(*table) {
                    self.are_wide(value, &values);
                }
            }
            Op::Withdraw { table, key, .. } => {
                self.results(results, &[]);
                self.key_parts(*table, key);
            }
            Op::Mark { meter, index, before } => {
                self.results(results, &[2]);
                let size = program.meters.get(*meter as usize).map(|meter| meter.size);
                self.cell("meter", *meter, size, *index);
                before.iter().for_each(|before| self.is_wide(*before, 2));
            }
            Op::ReadRegister { register, index } => {
                let found = program.registers.get(*register as usize);
                self.cell("register", *register, found.map(|register| register.size), *index);
                if let Some(found) = found {
                    self.results(results, &[found.column.width]);
                }
            }
            Op::WriteRegister { register, index, value } => {
                self.results(results, &[]);
                let found = program.registers.get(*register as usize);
                self.cell("register", *register, found.map(|register| register.size), *index);
                if let Some(found) = found {
                    self.is_wide(*value, found.column.width);
                }
            }
            Op::Take { pool, hint } => {
                self.is_wide(*hint, 32);
                if self.exists("pool", *pool, program.pools.len()) {
                    self.found(results, &widths(&program.pools[*pool as usize].columns));
                }
            }
            Op::Give { pool, item } => {
                self.results(results, &[]);
                if self.exists("pool", *pool, program.pools.len()) {
                    self.are_wide(item, &widths(&program.pools[*pool as usize].columns));
                }
            }
            Op::Choose { .. } | Op::Member { .. } | Op::Join { .. } | Op::Leave { .. } => {
                self.group_op(op, results);
            }
            _ => {}
        }
    }

    /// Checks an instruction on a group.
    fn group_op(&mut self, op: &Op, results: &[Value]) {
        match op {
            Op::Choose { group, index, hash } => {
                self.is_wide(*hash, 32);
                if let Some(due) = self.group(*group, *index) {
                    self.found(results, &due);
                }
            }
            Op::Member { group, index, .. } => {
                if let Some(due) = self.group(*group, *index) {
                    self.found(results, &due);
                    if !self.program.groups[*group as usize].multicast {
                        self.report(Fault::Memory("group", *group));
                    }
                }
            }
            Op::Join { group, index, member } => {
                self.results(results, &[1]);
                if let Some(due) = self.group(*group, *index) {
                    self.are_wide(member, &due);
                }
            }
            Op::Leave { group, index, member } => {
                self.results(results, &[]);
                if let Some(due) = self.group(*group, *index) {
                    self.are_wide(member, &due);
                }
            }
            _ => {}
        }
    }

    /// The widths of the columns of a group's members.
    fn group(&mut self, number: u32, index: Option<Value>) -> Option<Vec<u8>> {
        let found = self.program.groups.get(number as usize);
        self.cell("group", number, found.map(|group| group.size), index);
        found.map(|group| widths(&group.columns))
    }
}
