//! What back ends have counted beside the account of packets, for reports.

use exec::{Backend, DeviceTally, OnDevice, TableReport};
use ir::Program;
use serde::Serialize;
use std::collections::BTreeMap;

/// How packets were divided between a device and the host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceReport {
    /// The device's name.
    pub name: String,
    /// Packets that it finished.
    pub finished: u64,
    /// Packets that the device handed back, because they came to a step of the program that no device takes.
    pub handed_back: u64,
    /// Packets that the host ran again, because an entry that they had read changed meanwhile.
    pub run_again: u64,
    /// Packets that only the host ran: they were not handed to the device, or the device was given up.
    pub not_asked: u64,
    /// Packets that were on the device when it was given up; the host has run them.
    pub taken_back: u64,
    /// The number of device batches.
    pub handed_over: u64,
    /// How many workers have given the device up.
    pub given_up: u64,
    /// Why the first of them gave it up.
    pub failure: Option<String>,
}

impl From<OnDevice> for DeviceReport {
    fn from(device: OnDevice) -> DeviceReport {
        let DeviceTally { device: finished, again, changed, host, taken_back, handed } = device.tally;
        DeviceReport {
            name: device.name,
            finished,
            handed_back: again,
            run_again: changed,
            not_asked: host,
            taken_back,
            given_up: device.failure.is_some().into(),
            handed_over: handed,
            failure: device.failure,
        }
    }
}

/// The statistics of a back end, or of several with the same program.
#[derive(Clone, Debug)]
pub struct Figures {
    #[cfg(feature = "observe")]
    pub(crate) back_end: &'static str,
    pub(crate) device: Option<DeviceReport>,
    /// The tables, in order of declaration.
    pub tables: Vec<TableReport>,
    /// Packets and bytes of every cell of every counter.
    pub counters: Vec<Vec<(u64, u64)>>,
    /// How often each event was raised.
    pub events: Vec<u64>,
    /// Events that were lost because too many were waiting.
    pub lost_events: u64,
    /// The number of back ends that are added up here.
    backends: u64,
}

impl Figures {
    /// The figures of a back end with this program that runs no packet at present.
    pub fn of(program: &Program, backend: &dyn Backend) -> Figures {
        let mut figures = Figures { tables: backend.tables(), ..Figures::begin(backend) };
        let mut most = usize::MAX;
        figures.count(program, backend, &mut most);
        figures
    }

    /// The figures between two packets, still without counters, which [`count`](Figures::count) adds.
    pub(crate) fn begin(backend: &dyn Backend) -> Figures {
        Figures {
            #[cfg(feature = "observe")]
            back_end: backend.back_end().name(),
            device: backend.on_device().map(DeviceReport::from),
            tables: backend.running_tables(),
            counters: Vec::new(),
            events: backend.events(),
            lost_events: backend.lost_events(),
            backends: 1,
        }
    }

    /// Copies at most `most` further cells of counters, and subtracts their number from `most`. Returns
    /// whether all cells are copied. Each cell has its value at the time when it is copied.
    pub(crate) fn count(&mut self, program: &Program, backend: &dyn Backend, most: &mut usize) -> bool {
        self.counters.reserve_exact(program.counters.len() - self.counters.len());
        let sizes = program.counters.iter().map(|counter| counter.size as usize);
        for (counter, size) in sizes.enumerate().skip(self.counters.len().saturating_sub(1)) {
            if counter == self.counters.len() {
                self.counters.push(Vec::with_capacity(size));
            }
            let cells = &mut self.counters[counter];
            let from = cells.len();
            backend.counter_part(counter as u32, from, (size - from).min(*most), cells);
            *most -= cells.len() - from;
            if cells.len() < size && *most == 0 {
                return false;
            }
        }
        true
    }

    /// Adds the figures of another back end with the same program. Each back end has its own tables that
    /// packets write, so their entries and capacities are added up; of other tables every back end has a
    /// copy.
    pub fn add(&mut self, program: &Program, other: &Figures) {
        for (index, (table, more)) in (0..).zip(self.tables.iter_mut().zip(&other.tables)) {
            if !program.manifest.writes_tables.contains(&index) {
                continue;
            }
            table.entries += more.entries;
            table.inserts += more.inserts;
            table.moves += more.moves;
            table.evictions += more.evictions;
            table.expired += more.expired;
            table.refused += more.refused;
        }
        for (cell, more) in self.counters.iter_mut().flatten().zip(other.counters.iter().flatten()) {
            *cell = (cell.0 + more.0, cell.1 + more.1);
        }
        self.events.iter_mut().zip(&other.events).for_each(|(events, more)| *events += more);
        self.lost_events += other.lost_events;
        if let (Some(device), Some(more)) = (&mut self.device, &other.device) {
            device.finished += more.finished;
            device.handed_back += more.handed_back;
            device.run_again += more.run_again;
            device.not_asked += more.not_asked;
            device.taken_back += more.taken_back;
            device.given_up += more.given_up;
            device.handed_over += more.handed_over;
            device.failure = device.failure.take().or_else(|| more.failure.clone());
        }
        self.backends += other.backends;
    }

    /// The capacity of the table with this index; the sum over all back ends if each has its own table.
    pub fn capacity(&self, program: &Program, index: u32) -> u64 {
        let own = program.manifest.writes_tables.contains(&index);
        u64::from(program.tables[index as usize].capacity) * if own { self.backends } else { 1 }
    }
}

/// Packets by the name of the reason, for reasons with packets.
pub fn by_reason(program: &Program, packets: impl Fn(u16) -> u64) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (index, reason) in program.reasons.iter().enumerate() {
        let count = packets(index as u16);
        if count > 0 {
            *found.entry(reason.name.clone()).or_default() += count;
        }
    }
    found
}
