//! Makes AF_XDP ports of interfaces. It tries the fastest mode first: zero-copy in the driver, copies in the
//! driver, copies after the driver.

use super::attached::{Held, PATIENCE, halves};
use super::calls::opening as calls;
use super::frames::Home;
use super::incoming::Incoming;
use super::interface::{Interface, Memory, QueueSocket, all_at_best, chunk};
use super::memory::Part;
use super::outlet::Outlet;
use super::port::Port;
use super::{FRAMES, Layout, Pool};
use crate::live::{AttachError, Attached, Lane, WantedPort};
use packet::PortNumber;
use std::io;
use std::sync::Arc;

/// Why a port cannot be attached, with its number.
pub(crate) type Refused = (PortNumber, AttachError);

/// Makes interfaces ports with so many lanes each.
pub(crate) fn attach_all(ports: &[(PortNumber, &WantedPort)], lanes: u16) -> Result<Vec<Attached>, Refused> {
    if ports.is_empty() {
        return Ok(Vec::new());
    }
    let interfaces: Vec<_> = ports
        .iter()
        .map(|&(port, wanted)| {
            Ok((port, Interface::find(wanted, lanes, PATIENCE).map_err(|error| (port, error))?))
        })
        .collect::<Result<_, _>>()?;
    let wishes = ports.iter().map(|(_, wanted)| &wanted.xdp);
    let workers = all_at_best(
        wishes,
        |(_, error): &Refused| error.is_taken(),
        |zero_copy| open(&interfaces, lanes, zero_copy),
    )?;
    let first = workers.iter().flat_map(|worker| worker.ports.iter().flat_map(|port| &port.sockets)).next();
    let zero_copy = first.is_some_and(|first| calls::is_zero_copy(&first.socket.fd).unwrap_or(false));
    let chunk = workers.first().map_or(0, |worker| worker.pool.layout.chunk);
    let memory: Vec<_> = workers.iter().map(|worker| worker.pool.pages.clone()).collect();
    let mut attached = Vec::new();
    for (number, (port, interface)) in interfaces.into_iter().enumerate() {
        let refused = |error| (port, error);
        let sockets = workers.iter().flat_map(|worker| &worker.ports[number].sockets);
        let (redirect, mode) = interface.redirect(sockets).map_err(refused)?;
        let mode = interface.obtained(mode, chunk, zero_copy, workers.len());
        let held = Held::new(interface.witness, redirect);
        let port = Port::watched(port, &interface.wanted, held, &memory, chunk).map_err(refused)?;
        attached.push((port, interface.wanted.interface, mode));
    }
    let mut all: Vec<Vec<Lane>> = attached.iter().map(|_| Vec::new()).collect();
    for (lane, worker) in workers.into_iter().enumerate() {
        let pool = Arc::new(worker.pool);
        for (number, parts) in worker.ports.into_iter().enumerate() {
            let (port, interface, _) = &attached[number];
            all[number].push(parts.lane(port, lane, &pool, number as u32).map_err(|source| {
                let interface = interface.clone();
                (
                    ports[number].0,
                    AttachError::System { interface, call: "waiting for several queues", source },
                )
            })?);
        }
    }
    let each = attached.into_iter().zip(all).map(|((port, interface, mode), lanes)| {
        Attached::alone(interface, mode, lanes, port.presence.clone())
    });
    Ok(each.collect())
}

/// Makes an interface a port with so many lanes.
pub(crate) fn attach(wanted: &WantedPort, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let mut attached = attach_all(&[(port, wanted)], lanes).map_err(|(_, error)| error)?;
    attached.pop().ok_or_else(|| AttachError::NoInterface(wanted.interface.clone()))
}

/// What one worker has of a port, before anything is redirected.
struct PortParts {
    sockets: Vec<QueueSocket>,
    home: Home,
    receiving: Part,
    copies: Part,
}

/// The ports of one worker with their memory.
struct Worker {
    pool: Pool,
    ports: Vec<PortParts>,
}

/// Makes the memory and the sockets of every worker.
fn open(interfaces: &[(PortNumber, Interface)], lanes: u16, zero_copy: bool) -> Result<Vec<Worker>, Refused> {
    (0..usize::from(lanes)).map(|lane| open_worker(interfaces, lane, usize::from(lanes), zero_copy)).collect()
}

fn open_worker(
    interfaces: &[(PortNumber, Interface)],
    lane: usize,
    lanes: usize,
    zero_copy: bool,
) -> Result<Worker, Refused> {
    let mtu = interfaces.iter().map(|(_, interface)| interface.mtu).max().unwrap_or(0);
    let layout = Layout { chunk: chunk(mtu, zero_copy), sharing: interfaces.len() };
    let (pages, parts) = Part::of_new_pages(&layout.lengths()).map_err(|source| {
        let (port, interface) = &interfaces[0];
        (*port, interface.failed("getting memory for frames")(source))
    })?;
    let homes: Vec<Home> = interfaces.iter().map(|_| Home::new(FRAMES)).collect();
    let pool = Pool { pages, layout, homes: homes.iter().map(Home::marks).collect() };
    let memory = Memory { pages: &pool.pages, chunk: layout.chunk, zero_copy };
    let mut ports: Vec<PortParts> = Vec::new();
    for (((port, interface), home), [receiving, copies]) in
        interfaces.iter().zip(homes).zip(layout.by_port(parts))
    {
        let first = ports.iter().find_map(|port| port.sockets.first()).map(|first| &first.socket);
        let sockets = interface.sockets(lane, lanes, memory, first).map_err(|error| (*port, error))?;
        ports.push(PortParts { sockets, home, receiving, copies });
    }
    Ok(Worker { pool, ports })
}

impl PortParts {
    /// The lane of a port; `number` is the port's among those of the worker.
    fn lane(self, port: &Arc<Port>, lane: usize, pool: &Arc<Pool>, number: u32) -> io::Result<Lane> {
        let (entrance, exit) = halves(self.sockets)?;
        let mut incoming =
            Incoming::new(entrance, self.receiving, self.home, pool.clone(), port.clone(), lane);
        // Whoever sends before the first look is heard.
        incoming.refill();
        let outlet = Outlet::new(exit, pool.clone(), self.copies, port.clone(), lane, number);
        Ok(Lane { receive: Box::new(incoming), send: Box::new(outlet) })
    }
}
