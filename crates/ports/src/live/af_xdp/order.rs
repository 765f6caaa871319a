//! How AF_XDP sockets are made at queues of an interface, bound to memory of frames.

use super::calls::RingKind;
use super::calls::opening as calls;
use super::memory::Pages;
use super::metadata;
use super::socket::Socket;
use crate::live::sys;
use packet::BATCH;
use std::io;
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of packets that may be on their way out, as the kernel counts them.
const SEND_BUFFER: usize = 16 << 20;

/// What a socket is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QueueId {
    pub(super) interface: u32,
    pub(super) queue: u32,
}

/// How a socket is to be made.
pub(super) struct Order<'a> {
    pub(super) pages: &'a Pages,
    pub(super) chunk: usize,
    pub(super) sends: bool,
    pub(super) zero_copy: bool,
    /// How long is waited for a socket that was closed and still has the queue, as after a process was
    /// killed.
    pub(super) patience: Duration,
}

impl Order<'_> {
    /// Makes it, at the memory that `first` has registered or, without one, registers it.
    pub(super) fn open(&self, at: QueueId, first: Option<&Socket>) -> io::Result<Socket> {
        let end = Instant::now() + self.patience;
        loop {
            match self.try_open(at, first) {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                    thread::sleep(Duration::from_millis(20));
                }
                result => return result,
            }
        }
    }

    fn try_open(&self, at: QueueId, first: Option<&Socket>) -> io::Result<Socket> {
        let fd = calls::xdp_socket()?;
        let metadata = first.map_or_else(|| self.register(&fd), |first| Ok(first.metadata))?;
        // The kernel wants the first two, whether anything is sent or not.
        let sends = self.sends.then_some(RingKind::Transmit);
        for kind in [RingKind::Fill, RingKind::Completion, RingKind::Receive].into_iter().chain(sends) {
            calls::ask_ring(&fd, kind)?;
        }
        calls::send_at_once(&fd, BATCH as u32);
        sys::set_send_buffer(&fd, SEND_BUFFER)?;
        let socket = Socket::map(fd, self.sends, metadata)?;
        let copying = if self.zero_copy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
        let shared = first.map(|first| &*first.fd);
        let flags = copying | libc::XDP_USE_NEED_WAKEUP;
        calls::bind(&socket.fd, at.interface, at.queue, flags, shared)?;
        Ok(socket)
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
