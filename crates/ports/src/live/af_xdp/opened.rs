//! AF_XDP ports that are opened for another process: the memory of frames is a file that it maps, and the
//! program at the interface stays with the process that opens.
//!
//! Sockets of a queue exclude each other. So a process that follows one which died gets new sockets, and one
//! that takes over while the other still runs gets the same.

use super::interface::{Interface, Memory, QueueSocket, all_at_best, any_of, at_best, chunk};
use super::memory::{Pages, bytes_of_pages, file_of};
use super::redirect::Redirect;
use super::shared::XdpPort;
use super::wanted::{Mode, XdpError};
use super::{Layout, MOST_SHARING};
use crate::live::{AttachError, PortKind, WantedPort};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// How long is waited for what a process that has ended still has of an interface: whoever opens ports has
/// others to look after meanwhile.
const SHORT_PATIENCE: Duration = Duration::from_millis(200);

/// The frames of all ports.
struct SharedFrames {
    layout: Layout,
    /// Of each worker: the file, and the pages by whose address it is registered for each port.
    lanes: Vec<(OwnedFd, Pages)>,
}

/// The frames that all AF_XDP ports share, and which of these ports one is.
#[derive(Clone)]
pub struct FrameShare {
    frames: Arc<SharedFrames>,
    index: u16,
}

impl FrameShare {
    /// Makes memory for the ports of this kind, with so many lanes each: what each port has of it, `None` for
    /// those of another kind.
    ///
    /// # Errors
    /// An interface is missing, off, or cannot be such a port, or there is not so much memory.
    pub fn of_all(ports: &[WantedPort], lanes: u16) -> Result<Vec<Option<FrameShare>>, AttachError> {
        let xdp = || ports.iter().filter(|port| port.kind == PortKind::AfXdp);
        let interfaces: Vec<_> = xdp()
            .map(|port| Interface::find(port, lanes, SHORT_PATIENCE))
            .collect::<Result<_, AttachError>>()?;
        if interfaces.len() > MOST_SHARING {
            return Err(XdpError::Many { ports: interfaces.len(), most: MOST_SHARING }.into());
        }
        let Some(first) = interfaces.first() else { return Ok(ports.iter().map(|_| None).collect()) };
        let mtu = interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
        let wishes = xdp().map(|port| &port.xdp);
        let frames = all_at_best(wishes, AttachError::is_taken, |zero_copy| {
            let layout = Layout { chunk: chunk(mtu, zero_copy), sharing: interfaces.len() };
            let frames = SharedFrames::new(layout, lanes);
            let frames = frames.map_err(first.failed("getting memory for frames"))?;
            if zero_copy {
                interfaces.iter().try_for_each(|interface| frames.sockets(interface, true).map(drop))?;
            }
            Ok::<_, AttachError>(Arc::new(frames))
        })?;
        let mut indices = 0..;
        let share = |port: &WantedPort| {
            let index = if port.kind == PortKind::AfXdp { indices.next() } else { None };
            index.map(|index| FrameShare { frames: frames.clone(), index })
        };
        Ok(ports.iter().map(share).collect())
    }
}

impl SharedFrames {
    fn new(layout: Layout, lanes: u16) -> io::Result<SharedFrames> {
        let bytes = bytes_of_pages(&layout.lengths());
        let lane = |_| {
            let file = file_of(bytes)?;
            let pages = Pages::of(&file, bytes)?;
            Ok((file, pages))
        };
        Ok(SharedFrames { layout, lanes: (0..lanes).map(lane).collect::<io::Result<_>>()? })
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

/// An interface whose program hands packets to sockets of another process.
pub(in crate::live) struct OpenedXdp {
    interface: Interface,
    redirect: Redirect,
    /// Where its program takes packets.
    mode: Mode,
    share: FrameShare,
}

impl OpenedXdp {
    /// Attaches the program. Packets that come while no socket is there are dropped, but for those of queues
    /// where the port is to have others and Linux may see the rest.
    ///
    /// # Errors
    /// The interface is missing, off, or cannot be such a port, or another program is there.
    pub(in crate::live) fn open(wanted: &WantedPort, share: FrameShare) -> Result<OpenedXdp, AttachError> {
        let interface = Interface::find(wanted, share.frames.lanes.len() as u16, SHORT_PATIENCE)?;
        interface.fits(share.frames.layout.chunk)?;
        let (redirect, mode) = interface.redirect([].into_iter())?;
        Ok(OpenedXdp { interface, redirect, mode, share })
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
        let OpenedXdp { interface, redirect, mode, share: FrameShare { frames, index } } = self;
        let (wishes, chunk) = (&interface.wanted.xdp, frames.layout.chunk);
        let open = |zero_copy| frames.sockets(interface, zero_copy);
        let (sockets, zero_copy) = at_best(chunk.is_power_of_two(), wishes, open)?;
        interface.put_all(redirect, sockets.iter().flatten())?;
        let mode = interface.obtained(*mode, chunk, zero_copy, frames.lanes.len());
        let described = XdpPort {
            chunk: chunk as u32,
            sharing: frames.layout.sharing as u16,
            index: *index,
            queues: sockets.iter().map(|lane| lane.len() as u16).collect(),
            metadata: sockets.iter().flatten().all(|socket| socket.socket.metadata),
        };
        let mut descriptors = Vec::new();
        for (lane, (file, _)) in sockets.into_iter().zip(&frames.lanes) {
            let failed = || interface.failed("handing it over");
            descriptors.push(file.try_clone().map_err(failed())?);
            descriptors.push(any_of(&lane).map_err(failed())?);
            for socket in lane {
                descriptors.push(socket.socket.fd.try_clone().map_err(failed())?);
            }
        }
        Ok((mode, described, descriptors))
    }
}
