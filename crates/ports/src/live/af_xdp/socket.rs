//! An AF_XDP socket at one queue of an interface, with its rings, bound to the memory of a worker's ports.

use super::calls::{self, RingKind};
use super::memory::Pages;
use super::metadata;
use super::ring::{Consumer, Producer};
use crate::live::sys::{self, Shared};
use packet::BATCH;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Entries of the rings by which packets leave.
pub(super) const TRANSMIT: u32 = 2048;
/// Bytes of packets that may be on their way out, as the kernel counts them.
const SEND_BUFFER: usize = 16 << 20;
/// A queue may still be in use for a moment by a socket that was closed, as after a process was killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// What a socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) interface: u32,
    pub(super) queue: u32,
}

/// A socket that is bound.
pub(super) struct Socket {
    pub(super) fd: Arc<OwnedFd>,
    pub(super) fill: Producer<Shared, 1>,
    pub(super) received: Consumer<Shared, 2>,
    /// Whether bytes before a packet may describe it.
    pub(super) metadata: bool,
    /// For a socket that sends, too.
    pub(super) sending: Option<(Producer<Shared, 2>, Consumer<Shared, 1>)>,
}

/// How a socket is to be made.
pub(super) struct Order<'a> {
    pub(super) pages: &'a Pages,
    pub(super) chunk: usize,
    /// How many frames it may hold for receiving: a power of two.
    pub(super) frames: u32,
    pub(super) sends: bool,
    pub(super) zero_copy: bool,
}

impl Order<'_> {
    /// Makes it, at the memory that `first` has registered or, without one, registers it.
    pub(super) fn open(&self, place: Place, first: Option<&Socket>) -> io::Result<Socket> {
        let end = Instant::now() + PATIENCE;
        loop {
            match self.try_open(place, first) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                    thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(&self, place: Place, first: Option<&Socket>) -> io::Result<Socket> {
        let fd = calls::xdp_socket()?;
        let metadata = first.map_or_else(|| self.register(&fd), |first| Ok(first.metadata))?;
        let fill = calls::ring(&fd, RingKind::Fill, self.frames)?;
        // The kernel wants both, whether anything is sent or not.
        let completed = calls::ring(&fd, RingKind::Completion, TRANSMIT)?;
        let received = calls::ring(&fd, RingKind::Receive, self.frames)?;
        let transmit = self.sends.then(|| calls::ring(&fd, RingKind::Transmit, TRANSMIT)).transpose()?;
        calls::send_at_once(&fd, BATCH as u32);
        sys::set_send_buffer(&fd, SEND_BUFFER)?;
        let copying = if self.zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
        let shared = first.map(|first| &*first.fd);
        calls::bind(&fd, place.interface, place.queue, copying | libc::XDP_USE_NEED_WAKEUP, shared)?;
        Ok(Socket {
            fd: Arc::new(fd),
            fill: Producer::new(fill.0, fill.1),
            received: Consumer::new(received.0, received.1),
            metadata,
            sending: transmit.map(|transmit| {
                (Producer::new(transmit.0, transmit.1), Consumer::new(completed.0, completed.1))
            }),
        })
    }

    /// Registers the memory; says whether bytes before a packet may describe it. Frames of a power of two are
    /// laid out for drivers that use them in place.
    fn register(&self, fd: &OwnedFd) -> io::Result<bool> {
        if !self.zero_copy && !self.chunk.is_power_of_two() {
            match calls::register(fd, self.pages, self.chunk, metadata::LENGTH) {
                // Older kernels do not know of it.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
                done => return done.map(|()| true),
            }
        }
        calls::register(fd, self.pages, self.chunk, 0).map(|()| false)
    }
}
