//! Frames sent and received as fast as a packet socket can: the load of experiments, the same whatever they measure.

use super::super::sys::{self as live, Outgoing};
use super::namespace::Namespace;
use super::sys;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that may wait at a receiving socket.
const BUFFER: usize = 64 << 20;

/// Sends frames by an interface; never receives.
pub struct FrameSender {
    socket: OwnedFd,
}

impl FrameSender {
    /// A sender at an interface of a namespace.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(namespace: &Namespace, interface: &str) -> io::Result<FrameSender> {
        let socket = namespace.inside(|| {
            let socket = live::packet_socket()?;
            live::set_option(&socket, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1i32)?;
            sys::bind(&socket, live::interface_index(interface)?, 0)?;
            Ok(socket)
        })?;
        Ok(FrameSender { socket })
    }

    /// Hands over the first of some frames, at most 64 of them, and says how many the kernel took.
    ///
    /// # Errors
    /// Not even one.
    pub fn send(&self, frames: &[&[u8]]) -> io::Result<usize> {
        live::send_frames(&self.socket, frames.iter().map(|frame| Outgoing { header: &[], frame }))
    }
}

/// Receives the IPv4 frames of an interface with the times at which the kernel got them.
pub struct FrameReceiver {
    socket: OwnedFd,
    room: Box<[[u8; sys::CAPTURED]; sys::AT_ONCE]>,
}

impl FrameReceiver {
    /// A receiver at an interface of a namespace, of all frames or of UDP packets for one port.
    ///
    /// # Errors
    /// There is no such interface, or the right is missing.
    pub fn new(namespace: &Namespace, interface: &str, port: Option<u16>) -> io::Result<FrameReceiver> {
        let socket = namespace.inside(|| {
            let socket = live::packet_socket()?;
            live::set_buffer(&socket, (libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), BUFFER)?;
            live::set_option(&socket, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1i32)?;
            sys::ask_for_times(&socket)?;
            port.map_or(Ok(()), |port| sys::only_port(&socket, port))?;
            sys::bind(&socket, live::interface_index(interface)?, libc::ETH_P_IP as u16)?;
            Ok(socket)
        })?;
        Ok(FrameReceiver { socket, room: Box::new([[0; sys::CAPTURED]; sys::AT_ONCE]) })
    }

    /// Takes what has come, without waiting: the first 128 bytes of each frame and when it came, in nanoseconds since 1970. Says how many there were.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn receive(&mut self, each: impl FnMut(u64, &[u8])) -> io::Result<usize> {
        sys::receive_frames(&self.socket, &mut self.room, each)
    }
}

/// Holds this thread on one processor.
///
/// # Errors
/// There is none of this number.
pub fn hold(processor: usize) -> io::Result<()> {
    sys::hold(processor)
}
