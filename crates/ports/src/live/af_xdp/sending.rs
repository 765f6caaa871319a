//! A socket of AF_XDP by which frames leave, and nothing else: there is no program at the interface, so that
//! no right to load one is needed.

use super::calls;
use super::memory::Part;
use super::order::{Order, QueueId};
use super::ring::{Consumer, Producer};
use super::socket::Socket;
use crate::live::sys::{self, Shared};
use rustix::io::Errno;
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of the only frame; a power of two.
const CHUNK: usize = 2048;
/// How long a frame waits for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// The socket, at the first queue of an interface.
pub struct XdpSender {
    socket: Socket,
    transmit: Producer<Shared, 2>,
    completed: Consumer<Shared, 1>,
    part: Part,
}

impl XdpSender {
    /// One at an interface of the network of this thread.
    ///
    /// # Errors
    /// There is no such interface, the right is missing, or somebody has the queue.
    pub fn new(interface: &str) -> io::Result<XdpSender> {
        let (pages, mut parts) = Part::of_new_pages(&[CHUNK])?;
        let order =
            Order { pages: &pages, chunk: CHUNK, sends: true, zero_copy: false, patience: Duration::ZERO };
        let at = QueueId { interface: sys::interface_index(interface)?, queue: 0 };
        let mut socket = order.open(at, None)?;
        let ends = socket.sending.take().zip(parts.pop());
        let ((transmit, completed), part) = ends.ok_or(io::ErrorKind::Unsupported)?;
        Ok(XdpSender { socket, transmit, completed, part })
    }

    /// Sends a frame, and says whether Linux took it: one that is too long is sent to nobody.
    ///
    /// # Errors
    /// The interface is gone or off, or has no room for long.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        let start = self.part.start();
        let Some(place) = self.part.bytes().get_mut(..frame.len()) else { return Ok(false) };
        place.copy_from_slice(frame);
        // Linux copies it before it takes it off the ring.
        self.transmit.push([start as u64, frame.len() as u64]);
        self.transmit.publish();
        let end = Instant::now() + PATIENCE;
        while self.transmit.waiting() > 0 {
            match calls::kick_transmit(&self.socket.fd) {
                Ok(()) => {}
                Err(Errno::BUSY | Errno::AGAIN | Errno::NOBUFS) if Instant::now() < end => {
                    thread::yield_now()
                }
                Err(error) => return Err(error.into()),
            }
            while self.completed.pop().is_some() {}
            self.completed.free();
        }
        Ok(true)
    }
}
