//! AF_XDP ports that are opened for another process: the memory of frames is a file that it maps, and the
//! program at the interface stays with the process that opens.
//!
//! Sockets of a queue exclude each other. So a process that follows one which died gets new sockets, and one
//! that takes over while the other still runs gets the same.

use super::Layout;
use super::interface::{self, Interface, Memory, QueueSocket, chunk, longest};
use super::memory::{Pages, bytes_of_pages, file_of};
use super::redirect::{Place, Redirect};
use super::shared::XdpPort;
use super::wanted::{XdpError, may_be_zero_copy};
use crate::live::{AttachError, PortKind, WantedPort};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// How long is waited for what a process that has ended still has of an interface: whoever opens ports has
/// others to look after meanwhile.
const PATIENCE: Duration = Duration::from_millis(200);

/// The frames of all ports.
struct SharedFrames {
    layout: Layout,
    /// Whether they are laid out so that a driver can use them.
    zero_copy: bool,
    /// Of each worker.
    lanes: Vec<(OwnedFd, Pages)>,
}

/// The frames that all AF_XDP ports share, and which of these ports one is.
#[derive(Clone)]
pub struct FramePlace {
    frames: Arc<SharedFrames>,
    place: u16,
}

impl FramePlace {
    /// Makes memory for the ports of this kind, with so many lanes each: what each port has of it, `None` for
    /// those of another kind.
    ///
    /// # Errors
    /// An interface is missing, off, or cannot be such a port, or there is not so much memory.
    pub fn of_all(ports: &[WantedPort], lanes: u16) -> Result<Vec<Option<FramePlace>>, AttachError> {
        let xdp = || ports.iter().filter(|port| port.kind == PortKind::AfXdp);
        let interfaces: Vec<_> =
            xdp().map(|port| Interface::find(port, lanes, PATIENCE)).collect::<Result<_, AttachError>>()?;
        let Some(first) = interfaces.first() else { return Ok(ports.iter().map(|_| None).collect()) };
        let mtu = interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
        let make = |zero_copy| {
            let layout = Layout { chunk: chunk(mtu, zero_copy), sharing: interfaces.len() };
            SharedFrames::new(layout, zero_copy, lanes).map_err(first.failed("getting memory for frames"))
        };
        let mut made = None;
        if xdp().all(|port| may_be_zero_copy(&port.xdp)) {
            let frames = make(true)?;
            let tried = interfaces.iter().try_for_each(|interface| frames.sockets(interface, true).map(drop));
            match tried {
                Ok(()) => made = Some(frames),
                Err(error) if xdp().any(|port| port.xdp.zero_copy == Some(true)) => return Err(error),
                // Most drivers cannot, and say so in different ways.
                Err(_) => {}
            }
        }
        let frames = Arc::new(made.map_or_else(|| make(false), Ok)?);
        let mut places = 0..;
        let place = |port: &WantedPort| {
            let place = if port.kind == PortKind::AfXdp { places.next() } else { None };
            place.map(|place| FramePlace { frames: frames.clone(), place })
        };
        Ok(ports.iter().map(place).collect())
    }
}

impl SharedFrames {
    fn new(layout: Layout, zero_copy: bool, lanes: u16) -> io::Result<SharedFrames> {
        let bytes = bytes_of_pages(&layout.lengths());
        let lane = |_| {
            let file = file_of(bytes)?;
            let pages = Pages::of(&file, bytes)?;
            Ok((file, pages))
        };
        Ok(SharedFrames { layout, zero_copy, lanes: (0..lanes).map(lane).collect::<io::Result<_>>()? })
    }

    /// Sockets of an interface for each lane. The memory is registered for each port anew, so that none
    /// depends on the sockets of another one.
    fn sockets(&self, interface: &Interface, zero_copy: bool) -> Result<Vec<Vec<QueueSocket>>, AttachError> {
        let lanes = self.lanes.iter().enumerate().map(|(lane, (_, pages))| {
            let memory = Memory { pages, chunk: self.layout.chunk, zero_copy };
            interface.sockets(lane, self.lanes.len(), memory, None)
        });
        lanes.collect()
    }
}

/// An interface that was opened so.
pub(in crate::live) struct OpenedXdp {
    interface: Interface,
    redirect: Redirect,
    /// Where its program takes packets.
    at: Place,
    place: FramePlace,
}

impl OpenedXdp {
    /// Attaches the program: its packets are kept for sockets from then on.
    ///
    /// # Errors
    /// The interface is missing, off, or cannot be such a port, or another program is there.
    pub(in crate::live) fn open(wanted: &WantedPort, place: FramePlace) -> Result<OpenedXdp, AttachError> {
        let interface = Interface::find(wanted, place.frames.lanes.len() as u16, PATIENCE)?;
        let (mtu, most) = (interface.mtu, longest(place.frames.layout.chunk));
        if mtu > most {
            return Err(XdpError::Long { interface: wanted.interface.clone(), mtu, most }.into());
        }
        let (redirect, at) = interface.redirect([].into_iter())?;
        Ok(OpenedXdp { interface, redirect, at, place })
    }

    /// Whether the interface is there, and has been since it was opened.
    pub(in crate::live) fn is_there(&self) -> bool {
        self.interface.witness.is_there()
    }

    /// New sockets at its queues, once nobody has those before any more: what was obtained, and what another
    /// process has to know and to have.
    ///
    /// # Errors
    /// Linux refuses.
    pub(in crate::live) fn descriptors(&self) -> Result<(String, XdpPort, Vec<OwnedFd>), AttachError> {
        let OpenedXdp { interface, redirect, at, place: FramePlace { frames, place } } = self;
        let wishes = &interface.wanted.xdp;
        let open = |zero_copy| frames.sockets(interface, zero_copy);
        let (sockets, zero_copy) = interface::at_best(frames.zero_copy, wishes, open)?;
        interface.put_all(redirect, sockets.iter().flatten())?;
        let mode = interface.mode(*at, frames.layout.chunk, zero_copy, frames.lanes.len());
        let described = XdpPort {
            chunk: frames.layout.chunk as u32,
            sharing: frames.layout.sharing as u16,
            place: *place,
            queues: sockets.iter().map(|lane| lane.len() as u16).collect(),
            zero_copy: frames.zero_copy,
            metadata: sockets.iter().flatten().all(|socket| socket.socket.metadata),
        };
        let mut descriptors = Vec::new();
        for (lane, (file, _)) in sockets.into_iter().zip(&frames.lanes) {
            let failed = || interface.failed("handing it over");
            descriptors.push(file.try_clone().map_err(failed())?);
            descriptors.push(interface::any_of(&lane).map_err(failed())?);
            for socket in lane {
                descriptors.push(socket.socket.fd.try_clone().map_err(failed())?);
            }
        }
        Ok((mode, described, descriptors))
    }
}
