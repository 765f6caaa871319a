//! Opens ports of a gateway's file, at its start and for a reload that adds some, with one lane for each
//! worker.

use crate::serve::Telling;
use packet::PortNumber;
use ports::live::{
    AttachError, Attached, DividedInterface, Heard, Lane, NOBODY, Presence, TunnelControl, WantedPort,
    attach_all,
};
use std::sync::Arc;

/// A port that is open.
pub(crate) struct OpenPort {
    /// Its name.
    pub(crate) name: String,
    /// How it was attached at first, in words.
    pub(crate) mode: String,
    /// Whether its interface is there.
    pub(crate) presence: Arc<Presence>,
    /// Its interface, if ports divide it.
    pub(crate) divided: Option<DividedInterface>,
    /// The tunnel that it is, if it is one.
    pub(crate) tunnel: Option<TunnelControl>,
}

impl OpenPort {
    /// Whether there is a port, and not a number that none has.
    pub(crate) fn exists(&self) -> bool {
        self.name != NOBODY
    }
}

/// Ports that were opened, in the order of their numbers, and their lanes, worker by worker.
pub(crate) struct Opened {
    pub(crate) ports: Vec<OpenPort>,
    pub(crate) lanes: Vec<Vec<Lane>>,
}

/// Opens those ports of a file that are `anew`, the first of which is port 1. They join those of `running`
/// that divide the same interface.
///
/// # Errors
/// The first port that cannot be opened; then none is open.
pub(crate) fn open(
    wanted: &[WantedPort],
    anew: &[bool],
    workers: u16,
    telling: Telling,
    running: &[DividedInterface],
) -> Result<Opened, (PortNumber, AttachError)> {
    let wanted: Vec<_> =
        (1..).zip(wanted).zip(anew).filter_map(|(port, anew)| anew.then_some(port)).collect();
    let mut ports = Vec::new();
    let mut lanes: Vec<Vec<Lane>> = (0..workers).map(|_| Vec::new()).collect();
    for (port, attached) in attach_all(&wanted, workers, running)? {
        let Attached { name, mode, lanes: of_port, presence, divided, tunnel } = attached;
        let named = name.clone();
        let told = move |heard: &Heard| match heard {
            Heard::Back(mode) => (telling.back)(port, &named, mode),
            Heard::Remark(words) => (telling.remark)(&format!("port {port}: {named}: {words}")),
        };
        presence.tell(told).map_err(|source| {
            let (interface, call) = (name.clone(), "starting the thread that tells of it");
            (port, AttachError::System { interface, call, source })
        })?;
        ports.push(OpenPort { name, mode, presence, divided, tunnel });
        lanes.iter_mut().zip(of_port).for_each(|(worker, lane)| worker.push(lane));
    }
    Ok(Opened { ports, lanes })
}
