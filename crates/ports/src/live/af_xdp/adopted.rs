//! AF_XDP ports whose sockets another process opened: the frames and rings are mapped here.

use super::frames::Home;
use super::incoming::{Entrance, Incoming};
use super::memory::Part;
use super::outlet::{Exit, Outlet};
use super::port::{self, Port};
use super::shared::XdpPort;
use super::socket::Socket;
use super::{FRAMES, LONGEST_CHUNK, Layout, MOST_SHARING, Pool};
use crate::live::handed_over::another_kind;
use crate::live::{Attached, HandedOver, Lane, PortWay};
use packet::PortNumber;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// The frames of a worker's ports, of which some are not adopted yet.
pub(in crate::live) struct LaneFrames {
    pool: Arc<Pool>,
    /// What each port has of it, until it is adopted.
    shares: Vec<Option<Share>>,
}

/// What a port has of the frames of a worker.
struct Share {
    home: Home,
    receiving: Part,
    copies: Part,
}

/// A port that was adopted.
pub(in crate::live) struct Adopted(Arc<Port>);

/// The descriptors of a lane.
struct Descriptors {
    frames: OwnedFd,
    any: OwnedFd,
    sockets: Vec<OwnedFd>,
}

impl LaneFrames {
    /// Maps the file of a worker's frames.
    fn map(xdp: &XdpPort, file: &OwnedFd) -> io::Result<LaneFrames> {
        let layout = Layout { chunk: xdp.chunk as usize, sharing: xdp.sharing.into() };
        let (pages, parts) = Part::of_file(file, &layout.lengths())?;
        let shares: Vec<_> = layout
            .by_port(parts)
            .map(|[receiving, copies]| Share { home: Home::new(FRAMES), receiving, copies })
            .collect();
        let homes = shares.iter().map(|share| share.home.marks()).collect();
        let pool = Arc::new(Pool { pages, layout, homes });
        Ok(LaneFrames { pool, shares: shares.into_iter().map(Some).collect() })
    }

    /// What a port has of them, once.
    fn take(&mut self, xdp: &XdpPort) -> Option<Share> {
        let LaneFrames { pool, shares } = self;
        let same_layout =
            pool.layout.chunk == xdp.chunk as usize && pool.layout.sharing == usize::from(xdp.sharing);
        shares.get_mut(usize::from(xdp.index)).filter(|_| same_layout).and_then(Option::take)
    }
}

impl Adopted {
    /// Goes on with other sockets, lane by lane. The frames stay.
    ///
    /// # Errors
    /// There are not as many as lanes, or a ring cannot be mapped.
    pub(in crate::live) fn renew(&self, handed: &HandedOver, descriptors: Vec<OwnedFd>) -> io::Result<()> {
        let PortWay::AfXdp(xdp) = &handed.way else { return Err(another_kind()) };
        check(xdp)?;
        let lanes = by_lane(xdp, descriptors)?.into_iter();
        self.0.hand_over(lanes.map(|lane| Ok(mapped(xdp, lane)?.0)).collect::<io::Result<_>>()?)?;
        self.0.presence.back(handed.mode.clone());
        Ok(())
    }
}

/// Makes a port of sockets that another process opened. The first of the ports that share frames has them
/// mapped. One that `resumes` touches neither frames nor rings before it is told where another process
/// stands, which still has them.
///
/// # Errors
/// The descriptors do not suit the description, the port has been adopted before, or Linux refuses.
pub(in crate::live) fn adopt(
    xdp: &XdpPort,
    handed: &HandedOver,
    number: PortNumber,
    descriptors: Vec<OwnedFd>,
    (frames, resumes): (&mut Vec<LaneFrames>, bool),
) -> io::Result<(Attached, Adopted)> {
    check(xdp)?;
    let lanes = by_lane(xdp, descriptors)?;
    let port = Arc::new(Port::unwatched(number, handed.offloads, lanes.len()));
    let mut attached = Vec::new();
    for (index, lane) in lanes.into_iter().enumerate() {
        let ((entrance, exit), file) = mapped(xdp, lane)?;
        if frames.len() == index {
            frames.push(LaneFrames::map(xdp, &file)?);
        }
        let pool = frames[index].pool.clone();
        let share = frames[index]
            .take(xdp)
            .ok_or_else(|| wrong("another port has its frames, or they are laid out otherwise"))?;
        let Share { home, receiving, copies } = share;
        let mut incoming = Incoming::new(entrance, receiving, home, pool.clone(), port.clone(), index);
        let mut outlet = Outlet::new(exit, pool, copies, port.clone(), index, xdp.index.into());
        (incoming.owns_rings, outlet.owns_rings) = (!resumes, !resumes);
        attached.push(Lane { receive: Box::new(incoming), send: Box::new(outlet) });
    }
    let presence = port.presence.clone();
    Ok((Attached::alone(handed.interface.clone(), handed.mode.clone(), attached, presence), Adopted(port)))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Whether frames can be so long, and so many ports share them.
fn check(xdp: &XdpPort) -> io::Result<()> {
    let can_be =
        (1..=LONGEST_CHUNK).contains(&(xdp.chunk as usize)) && usize::from(xdp.sharing) <= MOST_SHARING;
    if can_be { Ok(()) } else { Err(wrong("no frame can be so long, or no memory have so many ports")) }
}

/// The descriptors of each lane.
fn by_lane(xdp: &XdpPort, descriptors: Vec<OwnedFd>) -> io::Result<Vec<Descriptors>> {
    let missing =
        || wrong("each lane needs its frames, a descriptor to wait for and a socket for each queue");
    let mut descriptors = descriptors.into_iter();
    let lanes = xdp.queues.iter().map(|&queues| {
        let (frames, any) = descriptors.next().zip(descriptors.next()).ok_or_else(missing)?;
        let sockets: Vec<_> = descriptors.by_ref().take(queues.into()).collect();
        if queues > 0 && sockets.len() == usize::from(queues) {
            Ok(Descriptors { frames, any, sockets })
        } else {
            Err(missing())
        }
    });
    let lanes = lanes.collect::<io::Result<Vec<_>>>()?;
    if lanes.is_empty() || descriptors.next().is_some() { Err(missing()) } else { Ok(lanes) }
}

/// What the halves of a lane have of its sockets, and the file of its frames.
fn mapped(xdp: &XdpPort, lane: Descriptors) -> io::Result<((Entrance, Exit), OwnedFd)> {
    let Descriptors { frames, any, sockets } = lane;
    let sockets = sockets.into_iter().zip(0..);
    let sockets = sockets.map(|(socket, number)| Socket::map(socket, number == 0, xdp.metadata));
    Ok((port::halves(sockets.collect::<io::Result<_>>()?, any)?, frames))
}

#[cfg(test)]
mod tests;
