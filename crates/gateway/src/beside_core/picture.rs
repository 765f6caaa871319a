//! The picture of a gateway whose core is confined, from what the core has counted.

use crate::control::{GatewayView, PortView};
use crate::leases::LeasesView;
use engine::Volume;
use engine::live::PortLosses;
use engine::report::{CounterCell, PortReport, Report, Setting, TableState, Verdicts};
use exec::BackendKind;
use messages::figures::{
    ShownCounter, ShownFigures, ShownLosses, ShownPort, ShownReason, ShownTableState, ShownVolume,
};
use ports::live::{ReceiveLosses, SendLosses};
use std::collections::BTreeMap;
use std::time::Duration;

impl From<ShownFigures> for GatewayView {
    fn from(figures: ShownFigures) -> GatewayView {
        let by_reason = |count: fn(&ShownReason) -> u64| -> BTreeMap<String, u64> {
            let counts = figures.reasons.iter().map(|reason| (reason.name.clone(), count(reason)));
            counts.filter(|(_, count)| *count > 0).collect()
        };
        let punts_lost = by_reason(|reason| reason.lost);
        let (drops, punts) = (by_reason(|reason| reason.dropped), by_reason(|reason| reason.punted));
        let seconds = Duration::from_nanos(figures.age).as_secs_f64();
        let [send, flood, multicast, punt, drop] = figures.verdicts;
        let kind = if figures.machine_code { BackendKind::Native } else { BackendKind::Bytecode };
        let (received, forwarded) = (volume(figures.received), volume(figures.forwarded));
        let mut report = Report {
            setting: Setting { program: figures.program, ..Setting::default() },
            back_end: kind.name(),
            received,
            verdicts: Verdicts { send, flood, multicast, punt, drop },
            forwarded,
            transmitted: volume(figures.transmitted),
            drops,
            punts,
            ports: (1..).zip(&figures.ports).map(port_report).collect(),
            tables: figures.tables.into_iter().map(table).collect(),
            counters: figures.counters.into_iter().map(counter).collect(),
            events: figures.events.into_iter().collect(),
            events_lost: figures.events_lost,
            copies: figures.copies,
            made: figures.made,
            outputs_lost: figures.outputs_lost,
            seconds,
            ..Report::default()
        };
        report.rate(received, forwarded);
        GatewayView {
            seconds,
            generation: figures.number,
            report,
            reasons: figures.reasons.into_iter().map(|reason| (reason.name, reason.help)).collect(),
            // The IR has no lines of a text.
            places: BTreeMap::new(),
            workers: figures.workers.into(),
            punt_queue_full: punts_lost.values().sum(),
            punts_lost,
            checksums_left_open: figures.left_open,
            segments_whole: figures.segments,
            kernel_routes_unmeant: 0,
            leases: LeasesView::default(),
            ports: (1..).zip(figures.ports).map(port).collect(),
        }
    }
}

fn volume(ShownVolume { packets, bytes }: ShownVolume) -> Volume {
    Volume { packets, bytes }
}

fn port_report((number, port): (u16, &ShownPort)) -> PortReport {
    PortReport {
        port: number,
        received: port.received.packets,
        transmitted: port.transmitted.packets,
        received_bytes: port.received.bytes,
        transmitted_bytes: port.transmitted.bytes,
    }
}

fn port((number, port): (u16, ShownPort)) -> PortView {
    PortView {
        port: number,
        interface: port.interface,
        mode: port.mode,
        gone_seconds: port.gone.map(|gone| Duration::from_nanos(gone).as_secs_f64()),
        gone_because: None,
        untraced_because: None,
        vanished: port.vanished,
        host: None,
        tunnel: None,
        losses: losses(port.losses),
        since_attached: losses(port.since_attached),
    }
}

fn losses(ShownLosses { receive, send }: ShownLosses) -> PortLosses {
    PortLosses { receive: ReceiveLosses::of_counts(receive), send: SendLosses::of_counts(send) }
}

fn table(table: ShownTableState) -> (String, TableState) {
    let ShownTableState { name, entries, capacity, inserts, moves, evictions, expired, refused } = table;
    (name, TableState { entries, capacity, inserts, moves, evictions, expired, refused })
}

fn counter(ShownCounter { name, cells }: ShownCounter) -> (String, Vec<CounterCell>) {
    let cell = |(cell, ShownVolume { packets, bytes })| CounterCell { cell, packets, bytes };
    (name, cells.into_iter().map(cell).collect())
}
