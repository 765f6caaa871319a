//! The report of a run in figures: the JSON report, and the source of every table for people.

use crate::commit::{Ledger, Volume};
use crate::figures::{DeviceReport, Figures, by_reason};
use exec::{Backend, TableReport};
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

/// The report of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// The settings of the run.
    #[serde(flatten)]
    pub setting: Setting,
    /// The back end, as [`exec::BackendKind::name`] spells it.
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
    pub fn rate(&mut self, received: Volume, forwarded: Volume) {
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
