//! An interface with AF_XDP: its abilities, its sockets, the program that redirects packets to them, and the
//! errors when one of them cannot be made.

use super::calls::opening as calls;
use super::memory::Pages;
use super::order::{Order, QueueId};
use super::redirect::{self, Redirect};
use super::socket::Socket;
use super::wanted::{Mode, Wishes, XdpError};
use super::{FIRST, LONGEST_CHUNK};
use crate::live::witness::Witness;
use crate::live::{AttachError, VlanPlace, WantedPort, sys};
use packet::region::FRAME_ALIGNMENT;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest frame that the kernel takes, in bytes.
const SHORTEST_CHUNK: usize = 2048;
/// What a frame holds beside a packet's MTU: an Ethernet header and a tag.
const LINK: usize = 18;

/// An interface and what is wanted of it.
pub(super) struct Interface {
    pub(super) wanted: WantedPort,
    index: u32,
    pub(super) mtu: usize,
    queues: Vec<u32>,
    /// One more than the last queue there is.
    queue_count: u32,
    /// How long is waited for a program that still is there, and for sockets at its queues: they go a moment
    /// after their process.
    patience: Duration,
    /// Tells whether it is still there, and asks it for packets that are meant for others.
    pub(super) witness: Witness,
}

/// The memory of a lane that sockets are bound to.
#[derive(Clone, Copy)]
pub(super) struct Memory<'a> {
    pub(super) pages: &'a Pages,
    /// Bytes of a frame.
    pub(super) chunk: usize,
    /// Whether the driver is to use the frames themselves.
    pub(super) zero_copy: bool,
}

/// A queue, and the socket that is bound to it.
pub(super) struct QueueSocket {
    queue: u32,
    pub(super) socket: Socket,
}

/// A descriptor with a number of its own that can be read when one of the sockets can.
///
/// # Errors
/// Linux gives none.
pub(super) fn any_of(sockets: &[QueueSocket]) -> io::Result<OwnedFd> {
    match sockets {
        [one] => one.socket.fd.try_clone(),
        several => {
            calls::any_of(&several.iter().map(|socket| socket.socket.fd.as_raw_fd()).collect::<Vec<_>>())
        }
    }
}

/// Opens sockets so that the driver uses the frames themselves where they are laid out for that, or else so
/// that packets are copied. Says which it is.
///
/// # Errors
/// Neither can be had, copies are not wanted, or somebody still has a queue.
pub(super) fn at_best<T>(
    zero_copy: bool,
    wishes: &Wishes,
    open: impl Fn(bool) -> Result<T, AttachError>,
) -> Result<(T, bool), AttachError> {
    match zero_copy {
        true => match open(true) {
            Err(error) if wishes.zero_copy != Some(true) && !error.is_taken() => Ok((open(false)?, false)),
            opened => Ok((opened?, true)),
        },
        false => Ok((open(false)?, false)),
    }
}

/// Opens ports that share memory so that drivers use the frames themselves if that is wanted nowhere
/// otherwise and all can, or else so that packets are copied.
///
/// # Errors
/// Neither can be had, copies are not wanted somewhere, or a queue is taken, as an error says.
pub(super) fn all_at_best<'a, T, E>(
    wishes: impl Iterator<Item = &'a Wishes> + Clone,
    is_taken: impl Fn(&E) -> bool,
    open: impl Fn(bool) -> Result<T, E>,
) -> Result<T, E> {
    if wishes.clone().all(may_be_zero_copy) {
        let must = wishes.clone().any(|wishes| wishes.zero_copy == Some(true));
        match open(true) {
            Err(refused) if must || is_taken(&refused) => return Err(refused),
            // Most drivers cannot, and say so in different ways.
            Err(_) => {}
            opened => return opened,
        }
    }
    open(false)
}

/// Whether the driver may use the frames themselves.
fn may_be_zero_copy(wishes: &Wishes) -> bool {
    wishes.zero_copy != Some(false) && wishes.mode != Some(Mode::Generic)
}

impl Interface {
    pub(super) fn find(
        wanted: &WantedPort,
        lanes: u16,
        patience: Duration,
    ) -> Result<Interface, AttachError> {
        let name = || wanted.interface.clone();
        let failed = |call| move |source: io::Error| AttachError::System { interface: name(), call, source };
        let index = sys::interface_index(&wanted.interface).map_err(|_| AttachError::NoInterface(name()))?;
        let socket = sys::packet_socket().map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => {
                XdpError::Rights { interface: name(), what: "open a packet socket" }.into()
            }
            _ => failed("opening a packet socket")(source),
        })?;
        let kind = sys::interface_link_type(&socket, &wanted.interface)
            .map_err(failed("asking for its link type"))?;
        if kind != libc::ARPHRD_ETHER {
            return Err(AttachError::LinkType { interface: name(), kind });
        }
        if !sys::interface_is_up(&socket, &wanted.interface).map_err(failed("asking whether it is on"))? {
            return Err(AttachError::Down(name()));
        }
        if wanted.vlan != VlanPlace::Alone {
            // Otherwise the packets of a VLAN would come in as those without one.
            calls::leave_tags(&socket, &wanted.interface)
                .map_err(failed("asking it to leave VLAN tags in packets (`ethtool -K … rxvlan off`)"))?;
        }
        let mtu =
            sys::interface_mtu(&socket, &wanted.interface).map_err(failed("asking for its MTU"))? as usize;
        fits(wanted, mtu, LONGEST_CHUNK - FRAME_ALIGNMENT)?;
        let (queue_count, sending) = calls::queues(&socket, &wanted.interface);
        let queues = wanted.xdp.queues.clone().unwrap_or_else(|| (0..queue_count).collect());
        if let Some(&queue) = queues.iter().find(|&&queue| queue >= queue_count) {
            return Err(XdpError::NoQueue { interface: name(), queue, last: queue_count - 1 }.into());
        }
        if queues.len() < usize::from(lanes) {
            return Err(XdpError::Queues { interface: name(), queues: queues.len(), lanes }.into());
        }
        // Each lane sends by its first queue; the kernel keeps what is sent by one that there is not, and
        // says nothing.
        if let Some(&queue) = queues.iter().take(usize::from(lanes)).find(|&&queue| queue >= sending) {
            return Err(XdpError::NoSending { interface: name(), queue, sending, least: queue + 1 }.into());
        }
        let witness = Witness::of(index, wanted.promiscuous)
            .map_err(failed("asking for packets that are meant for others"))?;
        let wanted = wanted.clone();
        Ok(Interface { wanted, index, mtu, queues, queue_count, patience, witness })
    }

    /// Whether its packets fit into frames of so many bytes.
    pub(super) fn fits(&self, chunk: usize) -> Result<(), XdpError> {
        fits(&self.wanted, self.mtu, chunk)
    }

    pub(super) fn failed(&self, call: &'static str) -> impl Fn(io::Error) -> AttachError + use<> {
        let interface = self.wanted.interface.clone();
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                XdpError::Rights { interface: interface.clone(), what: call }.into()
            }
            _ => AttachError::System { interface: interface.clone(), call, source },
        }
    }

    /// Why a socket cannot be bound to a queue.
    fn unbound(&self, queue: u32, memory: Memory<'_>, source: io::Error) -> AttachError {
        let zero_copy = memory.zero_copy;
        let interface = self.wanted.interface.clone();
        match source.raw_os_error() {
            Some(libc::EBUSY) => XdpError::QueueTaken { interface, queue, owner: self.owner() }.into(),
            Some(libc::EOPNOTSUPP | libc::EINVAL) if zero_copy => {
                XdpError::Copies { interface, source }.into()
            }
            Some(libc::ENOMEM | libc::ENOBUFS) => {
                let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
                XdpError::Locked { interface, needed: memory.pages.len() >> 10, limit: lockable(&limits) }
                    .into()
            }
            _ => self.failed("binding an AF_XDP socket to a queue")(source),
        }
    }

    /// Who has the program at the interface.
    fn owner(&self) -> String {
        redirect::holder(self.index).unwrap_or_else(|| "somebody that /proc does not show".to_owned())
    }

    /// The sockets of one lane of so many: the first registers the memory, unless `first` has, and is the one
    /// that sends.
    pub(super) fn sockets(
        &self,
        lane: usize,
        lanes: usize,
        memory: Memory<'_>,
        first: Option<&Socket>,
    ) -> Result<Vec<QueueSocket>, AttachError> {
        let Memory { pages, chunk, zero_copy } = memory;
        let mut sockets: Vec<QueueSocket> = Vec::new();
        for &queue in self.queues.iter().skip(lane).step_by(lanes) {
            let (sends, patience) = (sockets.is_empty(), self.patience);
            let order = Order { pages, chunk, sends, zero_copy, patience };
            let queue_id = QueueId { interface: self.index, queue };
            let first = first.or(sockets.first().map(|own| &own.socket));
            let socket = order.open(queue_id, first).map_err(|source| self.unbound(queue, memory, source))?;
            sockets.push(QueueSocket { queue, socket });
        }
        Ok(sockets)
    }

    /// Attaches the program that hands the packets of each queue to its socket, in the driver if it can.
    pub(super) fn redirect<'b>(
        &self,
        sockets: impl Iterator<Item = &'b QueueSocket>,
    ) -> Result<(Redirect, Mode), AttachError> {
        let (redirect, mode) = self.attach_redirect()?;
        self.put_all(&redirect, sockets)?;
        Ok((redirect, mode))
    }

    /// Has the program at it hand the packets of each queue to its socket.
    pub(super) fn put_all<'b>(
        &self,
        redirect: &Redirect,
        mut sockets: impl Iterator<Item = &'b QueueSocket>,
    ) -> Result<(), AttachError> {
        sockets
            .try_for_each(|socket| redirect.put(socket.queue, &socket.socket.fd))
            .map_err(self.failed("handing its packets to a socket"))
    }

    fn attach_redirect(&self) -> Result<(Redirect, Mode), AttachError> {
        let keeps_all = self.wanted.keep_from_kernel || self.wanted.xdp.queues.is_none();
        let served = self.queues.iter().filter(|queue| **queue < u64::BITS).map(|queue| 1 << queue);
        let otherwise = match keeps_all {
            true => redirect::Otherwise::Drop,
            false => redirect::Otherwise::Pass { served: served.sum() },
        };
        let attach = |mode| {
            let end = Instant::now() + self.patience;
            loop {
                match Redirect::attach(self.index, self.queue_count, mode, otherwise) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                        thread::sleep(Duration::from_millis(20));
                    }
                    result => return result.map(|redirect| (redirect, mode)),
                }
            }
        };
        let result = match self.wanted.xdp.mode {
            Some(mode) => attach(mode),
            None => attach(Mode::Driver).or_else(|_| attach(Mode::Generic)),
        };
        result.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => {
                XdpError::Taken { interface: self.wanted.interface.clone(), owner: self.owner() }.into()
            }
            _ => self.failed("attaching the program that redirects packets")(error),
        })
    }

    /// What was obtained, for people.
    pub(super) fn obtained(&self, mode: Mode, chunk: usize, zero_copy: bool, lanes: usize) -> String {
        let mode = match mode {
            Mode::Driver => "driver mode",
            Mode::Generic => "generic mode",
        };
        let copies = if zero_copy { "zero-copy" } else { "copies" };
        let queues = match (self.queues.len(), lanes) {
            (1, _) => "1 queue".to_owned(),
            (queues, 1) => format!("{queues} queues"),
            (queues, lanes) => format!("{queues} queues on {lanes} workers"),
        };
        let kept = if self.wanted.keep_from_kernel { ", other queues kept from the kernel" } else { "" };
        format!("af_xdp, {mode}, {copies}, {queues}, frames of {chunk} bytes{kept}")
    }
}

/// How much memory a process may lock, as the kernel's list of its limits tells it (proc_pid_limits(5)), in
/// words.
fn lockable(limits: &str) -> String {
    let words = limits.lines().find_map(|line| line.strip_prefix("Max locked memory"));
    match words.and_then(|words| words.split_whitespace().next()) {
        Some(number) => {
            number.parse::<u64>().map_or(number.to_owned(), |bytes| format!("{} KiB", bytes >> 10))
        }
        None => "less".to_owned(),
    }
}

/// Whether packets of this MTU fit into frames of so many bytes.
fn fits(wanted: &WantedPort, mtu: usize, chunk: usize) -> Result<(), XdpError> {
    let most = longest(chunk);
    if mtu > most { Err(XdpError::Long { interface: wanted.interface.clone(), mtu, most }) } else { Ok(()) }
}

/// The largest MTU whose packets fit into frames of so many bytes.
fn longest(chunk: usize) -> usize {
    chunk.saturating_sub(FIRST + LINK)
}

/// Bytes of a frame for packets of this MTU.
pub(super) fn chunk(mtu: usize, zero_copy: bool) -> usize {
    let bytes = (FIRST + LINK + mtu).max(SHORTEST_CHUNK);
    if zero_copy {
        bytes.next_power_of_two()
    } else {
        (bytes.div_ceil(FRAME_ALIGNMENT) | 1) * FRAME_ALIGNMENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_locked_memory_is_read() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
            Max processes             31819                31819                processes \n\
            Max locked memory         65536                131072               bytes     \n";
        assert_eq!(lockable(limits), "64 KiB");
        assert_eq!(lockable(&limits.replace("65536", "unlimited")), "unlimited");
        assert_eq!(lockable(""), "less");
    }

    #[test]
    fn frames_have_room_for_packets_of_the_mtu_and_take_none_that_are_longer() {
        for zero_copy in [false, true] {
            for mtu in [68, 1500, 2000, 3498, 9000] {
                let most = longest(chunk(mtu, zero_copy));
                assert!(most >= mtu, "{mtu}: {most}");
                assert_eq!(FIRST + LINK + most, chunk(most, zero_copy));
            }
        }
        assert_eq!(longest(0), 0);
    }
}
