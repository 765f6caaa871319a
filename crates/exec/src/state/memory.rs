//! Meters, registers, pools and groups of a program, as every back end of the processor uses them.

use crate::errors::{EntryError, LoadError};
use crate::pack::{MAX_WORDS, Packing};
use crate::state::table_set::{TableFamily, TablePlace, TableSet};
use ir::Program;
use tables::exact::Exact;
use tables::group::GroupTable;
use tables::meter::{Colour, MeterRates, MeterSpec, MeterTable, Unit};
use tables::pool::{PoolSpec, PoolTable};
use tables::register::{RegisterSpec, RegisterTable};

/// All of a program's meters, registers, pools and groups, each kind in order of declaration.
pub struct ProgramMemory {
    meters: Vec<MeterTable>,
    registers: Vec<RegisterTable>,
    pools: Vec<(PoolTable, ir::Pool)>,
    groups: Vec<Groups>,
}

/// The groups of one declaration.
struct Groups {
    declared: ir::Group,
    /// Whether the control plane added or removed members, or packets removed a member that no packet had
    /// made.
    altered: bool,
    groups: Vec<GroupTable>,
    packing: Packing,
    capacity: usize,
    /// The words of the members of all groups. Each group has `capacity` places, one for each number of a
    /// member. A member gets the lowest number that none of its group has, so that what a group does follows
    /// from its own history alone.
    words: Vec<u64>,
    /// Whether a packet made the member of this place.
    learned: Vec<bool>,
    /// How many members packets made.
    made: u64,
    /// For a multicast group: the members of every group, ascending.
    multicast: Option<Vec<Vec<u64>>>,
    /// How many ports there are.
    ports: u16,
    /// The width of every column of a member.
    widths: Vec<u8>,
}

impl ProgramMemory {
    /// The memory of a program at its start, in a gateway with `ports` ports.
    pub fn new(program: &Program, ports: u16) -> Result<ProgramMemory, LoadError> {
        let refused = |name: &str, cause: &dyn std::fmt::Display| LoadError::Memory {
            name: name.to_string(),
            cause: cause.to_string(),
        };
        let mut memory = ProgramMemory {
            meters: Vec::new(),
            registers: Vec::new(),
            pools: Vec::new(),
            groups: Vec::new(),
        };
        for meter in &program.meters {
            let made = MeterTable::new(meter_spec(meter)).map_err(|cause| refused(&meter.name, &cause))?;
            memory.meters.push(made);
        }
        for register in &program.registers {
            let spec = RegisterSpec { cells: register.size, width: register.column.width };
            let made = RegisterTable::new(spec).map_err(|cause| refused(&register.name, &cause))?;
            memory.registers.push(made);
        }
        for pool in &program.pools {
            let items = u32::try_from(pool.items()).unwrap_or(u32::MAX);
            let made = PoolTable::new(PoolSpec { items }).map_err(|cause| refused(&pool.name, &cause))?;
            memory.pools.push((made, pool.clone()));
        }
        for group in &program.groups {
            let empty = GroupTable::new(group.buckets).map_err(|cause| refused(&group.name, &cause))?;
            let mut groups = Groups {
                declared: group.clone(),
                altered: false,
                groups: Vec::new(),
                packing: Packing::new(&group.columns),
                capacity: group.capacity as usize,
                words: Vec::new(),
                learned: Vec::new(),
                made: 0,
                multicast: group.multicast.then(|| vec![Vec::new(); group.size as usize]),
                ports,
                widths: group.columns.iter().map(|column| column.width).collect(),
            };
            if groups.packing.words > MAX_WORDS {
                let cause =
                    format!("a member takes {} words and at most 8 are possible", groups.packing.words);
                return Err(refused(&group.name, &cause));
            }
            groups.groups.push(empty);
            for _ in 1..group.size {
                groups
                    .groups
                    .push(GroupTable::new(group.buckets).map_err(|cause| refused(&group.name, &cause))?);
            }
            for (index, member, weight) in &group.members {
                if let [port] = member[..]
                    && !groups.may_join(port as u64)
                {
                    let cause = format!("its member {port} is no port: there are {ports}, numbered from 1");
                    return Err(refused(&group.name, &cause));
                }
                if !groups.join(*index, member.iter().copied(), *weight, false) {
                    return Err(refused(&group.name, &"its members have no room"));
                }
            }
            memory.groups.push(groups);
        }
        Ok(memory)
    }

    /// Marks a packet of so many bytes and returns its colour: 0 green, 1 yellow, 2 red.
    #[inline]
    pub fn mark(&mut self, meter: u32, cell: u32, before: u8, bytes: u32, now: u64) -> u8 {
        let before = match before {
            0 => Colour::Green,
            1 => Colour::Yellow,
            _ => Colour::Red,
        };
        self.meters[meter as usize].mark(cell, bytes, before, now) as u8
    }

    /// What a cell holds.
    #[inline]
    pub fn read(&self, register: u32, cell: u32) -> u64 {
        self.registers[register as usize].read(cell)
    }

    /// Writes a value into a cell.
    #[inline]
    pub fn write(&mut self, register: u32, cell: u32, value: u64) {
        self.registers[register as usize].write(cell, value);
    }

    /// Writes a cell of a register; returns whether both are there.
    pub fn write_cell(&mut self, register: u32, cell: u32, value: u64) -> bool {
        self.registers.get_mut(register as usize).is_some_and(|register| register.write(cell, value))
    }

    /// All cells of a register.
    pub fn cells(&self, register: u32) -> &[u64] {
        self.registers[register as usize].cells()
    }

    /// Takes a free item and returns its columns.
    pub fn take(&mut self, pool: u32, hint: u32) -> Option<impl Iterator<Item = u128>> {
        let (items, declared) = &mut self.pools[pool as usize];
        let item = items.take(hint)?;
        Some(declared.columns_of(item))
    }

    /// How many columns an item has.
    pub fn item_columns(&self, pool: u32) -> usize {
        self.pools[pool as usize].1.columns.len()
    }

    /// For every column of an item, whether it is wider than a word.
    pub fn item_widths(&self, pool: u32) -> [bool; MAX_WORDS] {
        let mut wide = [false; MAX_WORDS];
        for (wide, column) in wide.iter_mut().zip(&self.pools[pool as usize].1.columns) {
            *wide = column.width > 64;
        }
        wide
    }

    /// Marks the item with these columns as taken, if there is such an item.
    pub fn take_item(&mut self, pool: u32, columns: &[u128]) {
        let (items, declared) = &mut self.pools[pool as usize];
        if let Some(item) = declared.number(columns) {
            // It may be taken already.
            items.take_item(item);
        }
    }

    /// Gives a table whose values are items of a pool the numbers of these items. The table has no entries of
    /// packets yet.
    pub(super) fn number_items<F: TableFamily>(&self, pool: u32, table: u32, tables: &mut TableSet<F>) {
        let (declared, packing) = (self.pools[pool as usize].1.clone(), &tables.shapes[table as usize].value);
        let (TablePlace::Exact(place), Ok(items)) =
            (tables.places[table as usize], u32::try_from(declared.items()))
        else {
            return;
        };
        let packing = packing.clone();
        let number = move |words: &[u64]| {
            let mut columns = [0; MAX_WORDS];
            declared.number(packing.columns(words, &mut columns))
        };
        tables.exact[place].number_items(items, Box::new(number));
    }

    /// How many items of a pool are free.
    pub fn free_items(&self, pool: u32) -> u32 {
        self.pools[pool as usize].0.free()
    }

    /// Gives an item back.
    pub fn give(&mut self, pool: u32, columns: &[u128]) {
        let (items, declared) = &mut self.pools[pool as usize];
        if let Some(item) = declared.number(columns) {
            items.give(item);
        }
    }

    /// Gives back the item whose columns these words of a table's value contain.
    pub fn give_words(&mut self, pool: u32, packing: &Packing, words: &[u64]) {
        self.give(pool, packing.columns(words, &mut [0; MAX_WORDS]));
    }

    /// The words of the member that a hash belongs to.
    #[inline]
    pub fn choose(&self, group: u32, index: u32, hash: u32) -> Option<&[u64]> {
        let groups = &self.groups[group as usize];
        let number = groups.groups.get(index as usize)?.find(hash)?;
        Some(groups.member(groups.place(index, number)))
    }

    /// The packing of the members of a group.
    pub fn packing(&self, group: u32) -> &Packing {
        &self.groups[group as usize].packing
    }

    /// The word of a multicast group's member, by its place in ascending order.
    #[inline]
    pub fn member(&self, group: u32, index: u32, place: u32) -> Option<&[u64]> {
        let members = self.groups[group as usize].multicast.as_ref()?.get(index as usize)?;
        members.get(place as usize..)?.get(..1)
    }

    /// Adds a member with weight 1. Returns whether there was room or the member was there already.
    pub fn join(&mut self, group: u32, index: u32, member: impl IntoIterator<Item = u128>) -> bool {
        self.groups[group as usize].join(index, member, 1, true)
    }

    /// Whether the control plane can add a member.
    ///
    /// # Errors
    /// As for [`ProgramControl::join`](crate::ProgramControl::join).
    pub fn may_take_in(&self, group: u32, index: u32, member: &[u128]) -> Result<(), EntryError> {
        if !self.has_shape(group, member) {
            return Err(EntryError::Key);
        }
        let groups = &self.groups[group as usize];
        let (capacity, ports) = (groups.capacity, groups.ports);
        if let [port] = member
            && !groups.may_join(*port as u64)
        {
            return Err(EntryError::Refused(format!(
                "{port} is no port: there are {ports}, numbered from 1"
            )));
        }
        let Some(one) = groups.groups.get(index as usize) else {
            let count = groups.groups.len();
            return Err(EntryError::Refused(format!(
                "there is no group {index}: there are {count}, numbered from 0"
            )));
        };
        let has_room = one.members().count() < capacity.min(one.buckets().len());
        (has_room || self.has_member(group, index, member)).then_some(()).ok_or(EntryError::Full { capacity })
    }

    /// Adds a member for the control plane; with `learned`, as if a packet had made it.
    ///
    /// # Errors
    /// As for [`ProgramControl::join`](crate::ProgramControl::join).
    pub fn take_in(
        &mut self,
        group: u32,
        index: u32,
        member: &[u128],
        learned: bool,
    ) -> Result<(), EntryError> {
        self.may_take_in(group, index, member)?;
        let was_there = self.has_member(group, index, member);
        let groups = &mut self.groups[group as usize];
        let joined = groups.join(index, member.iter().copied(), 1, learned);
        groups.altered |= joined && !was_there && !learned;
        joined.then_some(()).ok_or(EntryError::Full { capacity: groups.capacity })
    }

    /// How many members packets made.
    pub fn members_learned(&self, group: u32) -> u64 {
        self.groups[group as usize].made
    }

    /// The members that packets made: the index of the group and the columns, ascending.
    pub fn learned_members(&self, group: u32) -> Vec<(u32, Vec<u128>)> {
        let groups = &self.groups[group as usize];
        let mut members: Vec<(u32, Vec<u128>)> = (0..)
            .zip(&groups.groups)
            .flat_map(|(index, group)| group.members().map(move |(number, _)| (index, number)))
            .map(|(index, number)| (index, groups.place(index, number)))
            .filter(|(_, place)| groups.learned[*place])
            .map(|(index, place)| (index, groups.packing.unpack(groups.member(place))))
            .collect();
        members.sort();
        members
    }

    /// At most `most` members of a group, from this one on.
    pub fn members_part(&self, group: u32, index: u32, from: usize, most: usize) -> Vec<Vec<u128>> {
        let Some(groups) = self.groups.get(group as usize) else { return Vec::new() };
        let Some(one) = groups.groups.get(index as usize) else { return Vec::new() };
        let numbers = one.members().skip(from).take(most);
        let member = |number| groups.member(groups.place(index, number));
        numbers.map(|(number, _)| groups.packing.unpack(member(number))).collect()
    }

    /// Whether a group has a member with these columns, which suit it.
    pub fn has_member(&self, group: u32, index: u32, member: &[u128]) -> bool {
        let groups = &self.groups[group as usize];
        let words = groups.packed(member.iter().copied());
        groups.number(index, &words[..groups.packing.words]).is_some()
    }

    /// Whether both programs declare a pool in the same way, with the same name.
    pub fn same_pool(&self, pool: u32, other: &ProgramMemory, of_other: u32) -> bool {
        self.pools[pool as usize].1 == other.pools[of_other as usize].1
    }

    /// Whether the buckets of this group can be handed over to a group that is declared in the same way: all
    /// its members are those of the program text, each with its weight, or were made by packets.
    pub fn group_goes_whole(&self, group: u32, new: &ProgramMemory, of_new: u32) -> bool {
        let (old, new) = (&self.groups[group as usize], &new.groups[of_new as usize]);
        !old.altered && !new.altered && old.declared == new.declared && old.ports == new.ports
    }

    /// Exchanges a meter and its levels with a meter of the same shape.
    pub fn swap_meter(&mut self, meter: u32, other: &mut ProgramMemory, of_other: u32) {
        std::mem::swap(&mut self.meters[meter as usize], &mut other.meters[of_other as usize]);
    }

    /// Exchanges a register and its values with a register of the same shape.
    pub fn swap_register(&mut self, register: u32, other: &mut ProgramMemory, of_other: u32) {
        std::mem::swap(&mut self.registers[register as usize], &mut other.registers[of_other as usize]);
    }

    /// Exchanges a group, its members and their buckets with a group that is declared in the same way.
    pub fn swap_group(&mut self, group: u32, other: &mut ProgramMemory, of_other: u32) {
        std::mem::swap(&mut self.groups[group as usize], &mut other.groups[of_other as usize]);
    }

    /// Marks as taken all items of this pool that are taken in the pool of the other program. Pools that are
    /// declared in the same way are exchanged instead.
    pub fn take_over_pool(&mut self, pool: u32, other: &mut ProgramMemory, of_other: u32) {
        let ((items, declared), (old_items, old_declared)) =
            (&mut self.pools[pool as usize], &mut other.pools[of_other as usize]);
        if declared.ranges == old_declared.ranges {
            std::mem::swap(items, old_items);
            return;
        }
        let mut columns = Vec::with_capacity(old_declared.columns.len());
        for item in old_items.taken() {
            columns.clear();
            columns.extend(old_declared.columns_of(item));
            if let Some(item) = declared.number(&columns) {
                items.take_item(item);
            }
        }
    }

    /// Whether a member of the control plane fits the columns of a group.
    pub fn has_shape(&self, group: u32, member: &[u128]) -> bool {
        let Some(groups) = self.groups.get(group as usize) else { return false };
        let fits = |(number, width): (&u128, &u8)| *width == 128 || number >> width == 0;
        groups.widths.len() == member.len() && member.iter().zip(&groups.widths).all(fits)
    }

    /// Removes a member for the control plane. Returns whether it was there.
    pub fn take_out(&mut self, group: u32, index: u32, member: &[u128]) -> bool {
        let groups = &mut self.groups[group as usize];
        let left = groups.leave(index, member.iter().copied());
        groups.altered |= left;
        left
    }

    /// Removes a member. Returns whether it was there.
    pub fn leave(&mut self, group: u32, index: u32, member: impl IntoIterator<Item = u128>) -> bool {
        self.groups[group as usize].leave(index, member)
    }
}

impl Groups {
    /// The place of a group's member.
    fn place(&self, index: u32, number: u32) -> usize {
        index as usize * self.capacity + number as usize
    }

    fn member(&self, place: usize) -> &[u64] {
        let start = place * self.packing.words;
        &self.words[start..start + self.packing.words]
    }

    fn packed(&self, member: impl IntoIterator<Item = u128>) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        self.packing.pack(member, &mut words[..self.packing.words]);
        words
    }

    fn number(&self, index: u32, words: &[u64]) -> Option<u32> {
        let group = self.groups.get(index as usize)?;
        group
            .members()
            .map(|(number, _)| number)
            .find(|number| self.member(self.place(index, *number)) == words)
    }

    /// Adds a member. One that is there stays as it is, whoever made it.
    fn join(
        &mut self,
        index: u32,
        member: impl IntoIterator<Item = u128>,
        weight: u32,
        learned: bool,
    ) -> bool {
        let words = self.packed(member);
        let words = &words[..self.packing.words];
        if self.number(index, words).is_some() {
            return true;
        }
        if !self.may_join(words[0]) {
            return false;
        }
        let Some(group) = self.groups.get_mut(index as usize) else { return false };
        // Members are in the order of their numbers.
        let number = (0..).zip(group.members()).take_while(|(number, (held, _))| number == held).count();
        if number >= self.capacity || group.add(number as u32, weight).is_err() {
            return false;
        }
        let place = self.place(index, number as u32);
        let start = place * self.packing.words;
        if self.learned.len() <= place {
            self.learned.resize(place + 1, false);
            self.words.resize(start + self.packing.words, 0);
        }
        self.words[start..start + self.packing.words].copy_from_slice(words);
        self.learned[place] = learned;
        self.made += u64::from(learned);
        if let Some(ports) = &mut self.multicast {
            let ports = &mut ports[index as usize];
            let place = ports.partition_point(|port| *port < words[0]);
            ports.insert(place, words[0]);
        }
        true
    }

    /// Whether a port may join: members of a multicast group are ports that exist.
    fn may_join(&self, port: u64) -> bool {
        self.multicast.is_none() || (1..=u64::from(self.ports)).contains(&port)
    }

    fn leave(&mut self, index: u32, member: impl IntoIterator<Item = u128>) -> bool {
        let words = self.packed(member);
        let Some(number) = self.number(index, &words[..self.packing.words]) else { return false };
        let place = self.place(index, number);
        let learned = std::mem::take(&mut self.learned[place]);
        self.altered |= !learned;
        self.made -= u64::from(learned);
        self.groups[index as usize].remove(number);
        if let Some(ports) = &mut self.multicast {
            ports[index as usize].retain(|port| *port != words[0]);
        }
        true
    }
}

fn meter_spec(meter: &ir::Meter) -> MeterSpec {
    let small = |tokens: u64| u32::try_from(tokens).unwrap_or(u32::MAX);
    let rates = match meter.rates {
        ir::Rates::Single { committed, burst, excess } => {
            MeterRates::Single { committed, committed_burst: small(burst), excess_burst: small(excess) }
        }
        ir::Rates::Two { committed, burst, peak, peak_burst } => {
            MeterRates::Two { committed, committed_burst: small(burst), peak, peak_burst: small(peak_burst) }
        }
    };
    let unit = if meter.packets { Unit::Packets } else { Unit::Bytes };
    // A colour-blind mark passes green, for which a colour-aware meter gives the same result.
    MeterSpec { cells: meter.size, rates, period: meter.period, unit, aware: true }
}
