//! What the program that runs has counted, as `control` is told it.

use crate::activation::Activation;
use engine::Volume;
use engine::live::PortLosses;
use engine::live::look::Counted;
use messages::figures::{
    ShownCounter, ShownFigures, ShownLosses, ShownPort, ShownReason, ShownTableState, ShownVolume,
};
use messages::limits::MOST_CELLS;
use packet::VerdictKind;
use ports::live::Presence;
use ports::live::clock::{Clock, MachineClock};
use std::sync::Arc;

/// A port, as it was attached at first.
pub(crate) struct SeenPort {
    pub(crate) interface: String,
    pub(crate) mode: String,
    pub(crate) presence: Arc<Presence>,
}

/// What was counted; `None` if a worker has ended.
pub(crate) fn figures(activation: &Activation, ports: &[SeenPort]) -> Option<ShownFigures> {
    let whole = activation.remote().look().and_then(Counted::whole)?;
    let (program, ledger, counted) = (&whole.program, &whole.ledger, &whole.figures);
    let verdicts =
        [VerdictKind::Send, VerdictKind::Flood, VerdictKind::Multicast, VerdictKind::Punt, VerdictKind::Drop];
    let reason = |(number, reason): (u16, &ir::Reason)| ShownReason {
        name: reason.name.clone(),
        help: reason.help.clone(),
        dropped: ledger.dropped(number).packets,
        punted: ledger.punted(number).packets,
        lost: whole.punts_lost.get(usize::from(number)).copied().unwrap_or_default(),
    };
    let port = |(number, seen): (u16, &SeenPort)| {
        let lost = whole.losses.get(usize::from(number) - 1).copied().unwrap_or_default();
        let gone = seen.presence.gone_since();
        ShownPort {
            interface: seen.interface.clone(),
            mode: seen.presence.mode().unwrap_or_else(|| seen.mode.clone()),
            gone: gone.map(|since| MachineClock.program().saturating_sub(since)),
            vanished: seen.presence.vanished(),
            received: volume(ledger.received_by(number)),
            transmitted: volume(ledger.transmitted_by(number)),
            losses: losses(lost.takeover),
            since_attached: losses(lost.attached),
        }
    };
    let table = |(number, state): (u32, &exec::TableReport)| ShownTableState {
        name: state.name.clone(),
        entries: state.entries,
        capacity: counted.capacity(program, number),
        inserts: state.inserts,
        moves: state.moves,
        evictions: state.evictions,
        expired: state.expired,
        refused: state.refused,
    };
    let mut left = MOST_CELLS;
    let counter = |(counter, cells): (&ir::Counter, &Vec<(u64, u64)>)| {
        let cells = (0..).zip(cells).map(|(cell, &(packets, bytes))| (cell, ShownVolume { packets, bytes }));
        let cells = cells.filter(|&(_, counted)| counted != ShownVolume::default()).take(left);
        let cells: Vec<(u64, ShownVolume)> = cells.collect();
        left -= cells.len();
        ShownCounter { name: counter.name.clone(), cells }
    };
    Some(ShownFigures {
        program: program.name.clone(),
        number: whole.number,
        age: u64::try_from(whole.age.as_nanos()).unwrap_or(u64::MAX),
        machine_code: activation.has_machine_code(),
        workers: activation.remote().workers() as u16,
        received: volume(ledger.received()),
        forwarded: volume(ledger.forwarded()),
        transmitted: volume(ledger.transmitted()),
        verdicts: verdicts.map(|kind| ledger.verdicts(kind).packets),
        reasons: (0..).zip(&program.reasons).map(reason).collect(),
        ports: (1..).zip(ports).map(port).collect(),
        tables: (0..).zip(&counted.tables).map(table).collect(),
        counters: program.counters.iter().zip(&counted.counters).map(counter).collect(),
        events: program.events.iter().map(|event| event.name.clone()).zip(counted.events.clone()).collect(),
        events_lost: counted.lost_events,
        copies: ledger.copies(),
        made: ledger.made(),
        outputs_lost: ledger.lost(),
        left_open: whole.left_open,
        segments: ledger.segments(),
    })
}

fn volume(Volume { packets, bytes }: Volume) -> ShownVolume {
    ShownVolume { packets, bytes }
}

fn losses(PortLosses { receive, send }: PortLosses) -> ShownLosses {
    ShownLosses {
        receive: receive.counts().map(|(.., count)| count),
        send: send.counts().map(|(.., count)| count),
    }
}
