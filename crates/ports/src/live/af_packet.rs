//! Ports of the kind AF_PACKET: frames come in through a ring shared with the Linux kernel, and one system
//! call sends many frames.
//!
//! ```text
//! frame: word status | lengths, offsets, time, tag | … room to grow … | virtio-net header | the packet … | slack
//!        0           4                                                  FIRST - 10          FIRST (a multiple of 64)
//! ```
//!
//! The ring is of version 2 (Linux, Documentation/networking/packet_mmap.rst): its frames are handed over one
//! by one the moment they are written. Version 3 hands over whole blocks, the last of them by a timer of at
//! least a millisecond, which every lonely packet would wait for.
//!
//! With several lanes the sockets are a group (PACKET_FANOUT) that the kernel shares packets out in by a hash
//! of addresses and ports that is the same in both directions. Fragments of IP have no ports: those of one
//! pair of addresses come by one lane, which may be another than that of their flow.

mod claim;
mod incoming;
mod keep;
mod open;
mod outlet;
mod port;

use super::{AttachError, Attached, Lane, WantedPort};
use incoming::Incoming;
use outlet::Outlet;
use packet::PortNumber;
use port::Port;

/// Takes over the packets of an interface; they carry `number`.
pub(super) fn attach(wanted: &WantedPort, number: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let opened = open::open(wanted, lanes)?;
    let port = Port::watched(wanted, opened.held, lanes)?;
    let lanes = opened.lanes.into_iter().enumerate().map(|(index, lane)| Lane {
        receive: Box::new(Incoming::new(lane.incoming, lane.ring, number, port.clone(), index)),
        send: Box::new(Outlet::new(lane.outgoing, port.clone(), index)),
    });
    Ok(Attached {
        name: wanted.interface.clone(),
        mode: opened.mode,
        lanes: lanes.collect(),
        presence: port.presence.clone(),
        divided: None,
        tunnel: None,
    })
}
