//! The report of a run in figures: the JSON report, and the source of every table for people.

use crate::commit::{Ledger, Volume};
use exec::{Backend, DeviceTally, OnDevice, TableReport};
use ir::Program;
use packet::VerdictKind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// The account of a run does not add up: a back end is faulty.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Imbalance {
    /// Packets have no verdict that the program knows.
    #[error(
        "the {back_end} back end left {packets} packets without a verdict of the program; please report this as a bug"
    )]
    NoVerdict {
        /// How many packets.
        packets: u64,
        /// Which back end.
        back_end: &'static str,
    },
    /// Received packets are not forwarded, dropped and punted ones together.
    #[error(
        "{received} packets were received, but {forwarded} were forwarded, {dropped} dropped and {punted} punted; please report this as a bug"
    )]
    Sum {
        /// Packets received.
        received: u64,
        /// Packets with a `send`, `flood` or `multicast` verdict.
        forwarded: u64,
        /// Packets dropped.
        dropped: u64,
        /// Packets punted.
        punted: u64,
    },
}

/// The settings of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Setting {
    /// The program's file, as it was named.
    pub program: String,
    /// The capture, as it was named.
    pub capture: String,
    /// How much of each header is decoded: `lazy`, `declared` or `full`.
    pub decode: String,
    /// Which port a packet enters by, as the option spells it.
    pub ingress: String,
    /// The order of repeated packets: `replay` or `each`.
    pub order: String,
    /// How often every packet of the capture was run.
    pub repeat: u64,
    /// The seed of random choices.
    pub seed: u64,
}

/// The times of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// From text to IR.
    pub compile: Duration,
    /// From IR to a loaded back end.
    pub prepare: Duration,
    /// Opening and reading the capture.
    pub load: Duration,
    /// The packet loop alone.
    pub packets: Duration,
}

/// Packets by the kind of their verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verdicts {
    /// To one port.
    pub send: u64,
    /// To all ports but the one they came in by.
    pub flood: u64,
    /// To a set of ports.
    pub multicast: u64,
    /// Handed to the control plane.
    pub punt: u64,
    /// Dropped.
    pub drop: u64,
}

/// The packets of one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PortReport {
    /// Its number.
    pub port: u16,
    /// Packets that came in by it.
    pub received: u64,
    /// Packets that left by it, each copy.
    pub transmitted: u64,
    /// Their bytes on the wire.
    pub received_bytes: u64,
    /// Their bytes on the wire.
    pub transmitted_bytes: u64,
}

/// The state of one table at the end of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TableState {
    /// Entries it holds.
    pub entries: u64,
    /// The most it can hold.
    pub capacity: u64,
    /// New entries.
    pub inserts: u64,
    /// Entries whose value changed.
    pub moves: u64,
    /// Entries that were evicted because the table was full.
    pub evictions: u64,
    /// Entries that expired.
    pub expired: u64,
    /// New entries refused because the table was full.
    pub refused: u64,
}

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

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The settings of the run.
    #[serde(flatten)]
    pub setting: Setting,
    /// The back end: `interpreter` or `native`.
    pub back_end: &'static str,
    /// The filter of the packets in this report; without it, the report is about all packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<Filtered>,
    /// The device, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceReport>,
    /// Everything that arrived.
    pub received: Volume,
    /// Packets by the kind of verdict.
    pub verdicts: Verdicts,
    /// Packets sent, flooded or multicast, each once.
    pub forwarded: Volume,
    /// Every copy that left.
    pub transmitted: Volume,
    /// Packets dropped, by reason; reasons that dropped nothing are left out.
    pub drops: BTreeMap<String, u64>,
    /// Packets punted, by reason; reasons that punted nothing are left out.
    pub punts: BTreeMap<String, u64>,
    /// What each port saw.
    pub ports: Vec<PortReport>,
    /// Tables by name.
    pub tables: BTreeMap<String, TableState>,
    /// Counters by name, each cell that counted something: its number, packets and bytes.
    pub counters: BTreeMap<String, Vec<CounterCell>>,
    /// How often each event was raised.
    pub events: BTreeMap<String, u64>,
    /// Events that were lost because too many were waiting.
    pub events_lost: u64,
    /// Copies of received packets that the program sent in addition to verdicts.
    pub copies: u64,
    /// Packets that the program made.
    pub made: u64,
    /// Frames that the control plane sent past the program.
    pub injected: u64,
    /// Copies, made packets and frames of the control plane for ports that do not exist.
    pub outputs_lost: u64,
    /// Seconds in the packet loop alone.
    pub seconds: f64,
    /// Seconds from text to IR.
    pub compile_seconds: f64,
    /// Seconds from IR to a loaded back end.
    pub prepare_seconds: f64,
    /// Seconds for opening and reading the capture.
    pub load_seconds: f64,
    /// Packets received in a second of the packet loop, in millions.
    pub mpps: f64,
    /// Bits received in a second of the packet loop, in thousands of millions.
    pub gbps: f64,
    /// Bits forwarded in a second of the packet loop, each packet once, in thousands of millions.
    pub forwarded_gbps: f64,
}

/// The filter of a report that is about some packets of a run only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Filtered {
    /// The text of the filter that the counted packets match.
    pub text: String,
    /// All packets of the run: tables, counters, events and speed are about these.
    pub ran: Volume,
}

/// One cell of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CounterCell {
    /// Its number.
    pub cell: u64,
    /// Packets it counted.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
}

/// The statistics of a back end, or of several with the same program.
#[derive(Clone, Debug)]
pub struct Figures {
    back_end: &'static str,
    device: Option<DeviceReport>,
    tables: Vec<TableReport>,
    counters: Vec<Vec<(u64, u64)>>,
    events: Vec<u64>,
    lost_events: u64,
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
    fn capacity(&self, program: &Program, index: u32) -> u64 {
        let own = program.manifest.writes_tables.contains(&index);
        u64::from(program.tables[index as usize].capacity) * if own { self.backends } else { 1 }
    }
}

impl Report {
    /// The report of a run that has ended.
    ///
    /// # Errors
    /// If the accounting does not add up.
    pub fn new(
        setting: Setting,
        program: &Program,
        ledger: &Ledger,
        backend: &dyn Backend,
        times: Times,
    ) -> Result<Report, Imbalance> {
        Report::of(setting, program, ledger, Figures::of(program, backend), times)
    }

    /// As [`Report::new`], from figures that were taken before.
    ///
    /// # Errors
    /// If the accounting does not add up.
    pub fn of(
        setting: Setting,
        program: &Program,
        ledger: &Ledger,
        figures: Figures,
        times: Times,
    ) -> Result<Report, Imbalance> {
        let received = ledger.received();
        let forwarded = ledger.forwarded();
        let verdicts = Verdicts {
            send: ledger.verdicts(VerdictKind::Send).packets,
            flood: ledger.verdicts(VerdictKind::Flood).packets,
            multicast: ledger.verdicts(VerdictKind::Multicast).packets,
            punt: ledger.verdicts(VerdictKind::Punt).packets,
            drop: ledger.verdicts(VerdictKind::Drop).packets,
        };
        let back_end = figures.back_end;
        let drops = by_reason(program, |reason| ledger.dropped(reason).packets);
        let punts = by_reason(program, |reason| ledger.punted(reason).packets);
        check(ledger, received, forwarded, &drops, &punts, back_end)?;
        let mut report = Report {
            setting,
            back_end,
            filter: None,
            device: figures.device.clone(),
            received,
            verdicts,
            forwarded,
            transmitted: ledger.transmitted(),
            drops,
            punts,
            ports: (1..=ledger.ports()).map(|port| port_report(ledger, port)).collect(),
            tables: (0..)
                .zip(&figures.tables)
                .map(|(index, state)| {
                    (state.name.clone(), table_state(state, figures.capacity(program, index)))
                })
                .collect(),
            counters: counters(program, figures.counters),
            events: program.events.iter().map(|event| event.name.clone()).zip(figures.events).collect(),
            events_lost: figures.lost_events,
            copies: ledger.copies(),
            made: ledger.made(),
            injected: ledger.injected(),
            outputs_lost: ledger.lost(),
            seconds: times.packets.as_secs_f64(),
            compile_seconds: times.compile.as_secs_f64(),
            prepare_seconds: times.prepare.as_secs_f64(),
            load_seconds: times.load.as_secs_f64(),
            ..Report::default()
        };
        report.rate(received, forwarded);
        Ok(report)
    }

    /// Marks this as the report of the packets that match a filter. `ran` is the account of the whole run, to
    /// which the speed belongs.
    pub fn of_filtered(mut self, filter: &str, ran: &Ledger) -> Report {
        self.rate(ran.received(), ran.forwarded());
        self.filter = Some(Filtered { text: filter.to_owned(), ran: ran.received() });
        self
    }

    /// Adds what happened to the packets of an earlier program that this one has replaced: verdicts, reasons
    /// and events by name, ports, and the time of both. Tables and counters stay those of this program, which
    /// has taken over what it could.
    pub fn add_earlier(&mut self, earlier: &Report) {
        self.received += earlier.received;
        self.forwarded += earlier.forwarded;
        self.transmitted += earlier.transmitted;
        let verdicts = &mut self.verdicts;
        for (sum, more) in [
            (&mut verdicts.send, earlier.verdicts.send),
            (&mut verdicts.flood, earlier.verdicts.flood),
            (&mut verdicts.multicast, earlier.verdicts.multicast),
            (&mut verdicts.punt, earlier.verdicts.punt),
            (&mut verdicts.drop, earlier.verdicts.drop),
            (&mut self.events_lost, earlier.events_lost),
            (&mut self.copies, earlier.copies),
            (&mut self.made, earlier.made),
            (&mut self.injected, earlier.injected),
            (&mut self.outputs_lost, earlier.outputs_lost),
        ] {
            *sum += more;
        }
        for (sums, more) in [(&mut self.drops, &earlier.drops), (&mut self.punts, &earlier.punts)] {
            for (reason, packets) in more {
                *sums.entry(reason.clone()).or_default() += packets;
            }
        }
        for (event, raised) in &earlier.events {
            *self.events.entry(event.clone()).or_default() += raised;
        }
        for (port, more) in self.ports.iter_mut().zip(&earlier.ports) {
            port.received += more.received;
            port.transmitted += more.transmitted;
            port.received_bytes += more.received_bytes;
            port.transmitted_bytes += more.transmitted_bytes;
        }
        self.seconds += earlier.seconds;
        self.rate(self.received, self.forwarded);
    }

    /// Computes the rates from what was received and forwarded.
    fn rate(&mut self, received: Volume, forwarded: Volume) {
        let per_second = |amount: f64| if self.seconds > 0.0 { amount / self.seconds } else { 0.0 };
        self.mpps = per_second(received.packets as f64 / 1e6);
        self.gbps = per_second(received.bytes as f64 * 8.0 / 1e9);
        self.forwarded_gbps = per_second(forwarded.bytes as f64 * 8.0 / 1e9);
    }

    /// Packets dropped for any reason.
    pub fn dropped(&self) -> u64 {
        self.drops.values().sum()
    }

    /// Packets punted for any reason.
    pub fn punted(&self) -> u64 {
        self.punts.values().sum()
    }
}

fn check(
    ledger: &Ledger,
    received: Volume,
    forwarded: Volume,
    drops: &BTreeMap<String, u64>,
    punts: &BTreeMap<String, u64>,
    back_end: &'static str,
) -> Result<(), Imbalance> {
    if ledger.unaccounted() > 0 {
        return Err(Imbalance::NoVerdict { packets: ledger.unaccounted(), back_end });
    }
    let (dropped, punted) = (drops.values().sum::<u64>(), punts.values().sum::<u64>());
    if received.packets != forwarded.packets + dropped + punted {
        return Err(Imbalance::Sum {
            received: received.packets,
            forwarded: forwarded.packets,
            dropped,
            punted,
        });
    }
    Ok(())
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

fn port_report(ledger: &Ledger, port: u16) -> PortReport {
    let (received, transmitted) = (ledger.received_by(port), ledger.transmitted_by(port));
    PortReport {
        port,
        received: received.packets,
        transmitted: transmitted.packets,
        received_bytes: received.bytes,
        transmitted_bytes: transmitted.bytes,
    }
}

fn table_state(state: &TableReport, capacity: u64) -> TableState {
    TableState {
        entries: state.entries,
        capacity,
        inserts: state.inserts,
        moves: state.moves,
        evictions: state.evictions,
        expired: state.expired,
        refused: state.refused,
    }
}

fn counters(program: &Program, counted: Vec<Vec<(u64, u64)>>) -> BTreeMap<String, Vec<CounterCell>> {
    let cells = |cells: Vec<(u64, u64)>| {
        cells
            .into_iter()
            .zip(0..)
            .filter(|&((packets, bytes), _)| packets > 0 || bytes > 0)
            .map(|((packets, bytes), cell)| CounterCell { cell, packets, bytes })
            .collect()
    };
    program.counters.iter().map(|counter| counter.name.clone()).zip(counted.into_iter().map(cells)).collect()
}
