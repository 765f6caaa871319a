//! Making interfaces AF_XDP ports, best way first: frames used in place by the driver, copied in the driver, copied behind it.

use super::frames::Home;
use super::memory::Part;
use super::redirect::{self, Redirect};
use super::socket::{Order, Place, Socket, TRANSMIT};
use super::{Attachment, FIRST, Incoming, Outlet, Pool, Queue, calls};
use crate::live::{AttachError, Attached, Lane, Offloads, ReceiveLosses, SendLosses, Wanted, sys};
use packet::PortNumber;
use packet::region::FRAME_ALIGNMENT;
use serde::Deserialize;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

/// How many frames a lane of a port receives into: some milliseconds of a fast interface, for which its thread may be off its processor.
const FRAMES: u32 = 4096;
/// The shortest and the longest frame that the kernel takes.
const SHORTEST_CHUNK: usize = 2048;
const LONGEST_CHUNK: usize = 4096;
/// What a frame holds beside a packet's MTU: an Ethernet header and a tag.
const LINK: usize = 18;
/// How long a program that still is at the interface is waited for: it goes a moment after its process.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where in the kernel packets are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// In the interface's driver.
    Driver,
    /// Behind it, where every interface can.
    Generic,
}

/// What is wanted of AF_XDP. Everything is chosen as well as it can be by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Where packets are taken.
    pub mode: Option<Mode>,
    /// Whether the driver uses the frames themselves, rather than copies.
    pub zero_copy: Option<bool>,
    /// Which queues of the interface are served: all by default.
    pub queues: Option<Vec<u32>>,
}

/// Why an interface cannot be an AF_XDP port.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// a right is missing
    #[error(
        "no right to {what} at interface {interface}: AF_XDP needs CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF (or root); `kind = \"af_packet\"` needs CAP_NET_RAW alone"
    )]
    Rights {
        /// The interface's name.
        interface: String,
        /// What was refused.
        what: &'static str,
    },
    /// packets are longer than frames may be
    #[error(
        "interface {interface} has an MTU of {mtu}, and AF_XDP takes at most {most}: `ip link set {interface} mtu {most}`, or `kind = \"af_packet\"`, which takes any"
    )]
    Long {
        /// The interface's name.
        interface: String,
        /// Its MTU.
        mtu: usize,
        /// The longest that can be.
        most: usize,
    },
    /// queues that the interface has not
    #[error(
        "interface {interface} has no queue {queue}: its queues are 0 to {last}, as `ethtool -l {interface}` says"
    )]
    NoQueue {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
        /// The last one there is.
        last: u32,
    },
    /// fewer queues than workers
    #[error(
        "interface {interface} has {queues} receive queue(s) for {lanes} workers, and each worker needs one: `ethtool -L {interface} rx {lanes}` (or `combined {lanes}`) gives it more, `kind = \"af_packet\"` needs none"
    )]
    Queues {
        /// The interface's name.
        interface: String,
        /// How many queues are served.
        queues: usize,
        /// How many workers there are.
        lanes: u16,
    },
    /// the queue is somebody else's
    #[error(
        "queue {queue} of interface {interface} is in use by {owner}; `queues` in the file names those to be served"
    )]
    QueueTaken {
        /// The interface's name.
        interface: String,
        /// The queue.
        queue: u32,
        /// Who has it.
        owner: String,
    },
    /// only copies can be had
    #[error(
        "the driver of interface {interface} cannot use frames in place, as `zero_copy = true` asks for ({source}); without that packets are copied"
    )]
    Copies {
        /// The interface's name.
        interface: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// a worker could not send
    #[error(
        "interface {interface} has {sending} queue(s) to send by, so nothing would leave by queue {queue}: `ethtool -L {interface} tx {least}` (or `combined {least}`) gives it more"
    )]
    NoSending {
        /// The interface's name.
        interface: String,
        /// The queue that a worker was to send by.
        queue: u32,
        /// How many there are.
        sending: u32,
        /// How many there must be.
        least: u32,
    },
    /// another program is there
    #[error(
        "interface {interface} has an XDP program of {owner} already, and there can be one: end that, or take the program away with `ip link set {interface} xdp off` if nobody needs it; `kind = \"af_packet\"` works beside it"
    )]
    Taken {
        /// The interface's name.
        interface: String,
        /// Whose it is.
        owner: String,
    },
}

/// An interface and what is wanted of it.
struct Interface<'a> {
    wanted: &'a Wanted,
    /// A packet socket by which it is asked about, and asked for packets that are meant for others.
    socket: Arc<OwnedFd>,
    port: PortNumber,
    index: u32,
    mtu: usize,
    queues: Vec<u32>,
    /// One more than the last queue there is.
    queue_count: u32,
}

/// Why a port cannot be attached, with its number.
pub(crate) type Refused = (PortNumber, AttachError);

/// Makes interfaces ports with so many lanes each.
pub(crate) fn attach_all(ports: &[(PortNumber, &Wanted)], lanes: u16) -> Result<Vec<Attached>, Refused> {
    if ports.is_empty() {
        return Ok(Vec::new());
    }
    let interfaces: Vec<_> = ports
        .iter()
        .map(|&(port, wanted)| Interface::find(port, wanted, lanes).map_err(|error| (port, error)))
        .collect::<Result<_, _>>()?;
    let wishes = || interfaces.iter().map(|interface| &interface.wanted.xdp);
    let mut opened = None;
    if wishes().all(|wishes| wishes.zero_copy != Some(false) && wishes.mode != Some(Mode::Generic)) {
        match open(&interfaces, lanes, true) {
            Ok(workers) => opened = Some(workers),
            Err(refused) if wishes().any(|wishes| wishes.zero_copy == Some(true)) => return Err(refused),
            // Most drivers cannot, and say so in different ways.
            Err(_) => {}
        }
    }
    let workers = opened.map_or_else(|| open(&interfaces, lanes, false), Ok)?;
    let first = workers.iter().flat_map(|worker| worker.ports.iter().flat_map(|port| &port.sockets)).next();
    let zero_copy = first.is_some_and(|first| calls::is_zero_copy(&first.socket.fd).unwrap_or(false));
    let chunk = workers.first().map_or(0, |worker| worker.pool.chunk);
    let mut attachments = Vec::new();
    for (number, interface) in interfaces.iter().enumerate() {
        let (redirect, place) = interface.redirect().map_err(|error| (interface.port, error))?;
        for socket in workers.iter().flat_map(|worker| &worker.ports[number].sockets) {
            redirect.put(socket.queue, &socket.socket.fd).map_err(|error| {
                (interface.port, interface.failed("handing its packets to a socket")(error))
            })?;
        }
        let attachment = Attachment {
            index: interface.index,
            socket: interface.socket.clone(),
            _redirect: redirect,
            presence: Arc::default(),
            gone: AtomicBool::new(false),
        };
        attachments.push((Arc::new(attachment), place));
    }
    let mut all: Vec<Vec<Lane>> = interfaces.iter().map(|_| Vec::new()).collect();
    for worker in workers {
        let pool = Arc::new(worker.pool);
        for (number, port) in worker.ports.into_iter().enumerate() {
            let interface = &interfaces[number];
            let lane = port.lane(interface, &pool, &attachments[number].0);
            all[number].push(
                lane.map_err(|error| {
                    (interface.port, interface.failed("waiting for several queues")(error))
                })?,
            );
        }
    }
    let attached =
        interfaces.iter().zip(all).zip(&attachments).map(|((interface, lanes), (attachment, place))| {
            let mode = interface.mode(*place, chunk, zero_copy, lanes.len());
            let name = interface.wanted.interface.clone();
            Attached { name, mode, lanes, presence: attachment.presence.clone() }
        });
    Ok(attached.collect())
}

/// Makes an interface a port with so many lanes.
pub(crate) fn attach(wanted: &Wanted, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let mut attached = attach_all(&[(port, wanted)], lanes).map_err(|(_, error)| error)?;
    attached.pop().ok_or_else(|| AttachError::NoInterface(wanted.interface.clone()))
}

impl<'a> Interface<'a> {
    fn find(port: PortNumber, wanted: &'a Wanted, lanes: u16) -> Result<Interface<'a>, AttachError> {
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
        let mtu =
            sys::interface_mtu(&socket, &wanted.interface).map_err(failed("asking for its MTU"))? as usize;
        let most = LONGEST_CHUNK - FRAME_ALIGNMENT - FIRST - LINK;
        if mtu > most {
            return Err(XdpError::Long { interface: name(), mtu, most }.into());
        }
        let (queue_count, sending) = calls::queues(&socket, &wanted.interface);
        let queues = wanted.xdp.queues.clone().unwrap_or_else(|| (0..queue_count).collect());
        if let Some(&queue) = queues.iter().find(|&&queue| queue >= queue_count) {
            return Err(XdpError::NoQueue { interface: name(), queue, last: queue_count - 1 }.into());
        }
        if queues.len() < usize::from(lanes) {
            return Err(XdpError::Queues { interface: name(), queues: queues.len(), lanes }.into());
        }
        // Each lane sends by its first queue; the kernel keeps what is sent by one that there is not, and says nothing.
        if let Some(&queue) = queues.iter().take(usize::from(lanes)).find(|&&queue| queue >= sending) {
            return Err(XdpError::NoSending { interface: name(), queue, sending, least: queue + 1 }.into());
        }
        if wanted.promiscuous {
            sys::take_all(&socket, index).map_err(failed("asking for packets that are meant for others"))?;
        }
        Ok(Interface { wanted, socket: Arc::new(socket), port, index, mtu, queues, queue_count })
    }

    fn failed(&self, call: &'static str) -> impl Fn(io::Error) -> AttachError + use<> {
        let interface = self.wanted.interface.clone();
        move |source| match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                XdpError::Rights { interface: interface.clone(), what: call }.into()
            }
            _ => AttachError::System { interface: interface.clone(), call, source },
        }
    }

    fn refused(&self, call: &'static str) -> impl FnOnce(io::Error) -> Refused + use<> {
        let (port, failed) = (self.port, self.failed(call));
        move |error| (port, failed(error))
    }

    /// Why a socket cannot be bound to a queue.
    fn unbound(&self, queue: u32, zero_copy: bool, source: io::Error) -> AttachError {
        let interface = self.wanted.interface.clone();
        match source.raw_os_error() {
            Some(libc::EBUSY) => XdpError::QueueTaken { interface, queue, owner: self.owner() }.into(),
            Some(libc::EOPNOTSUPP | libc::EINVAL) if zero_copy => {
                XdpError::Copies { interface, source }.into()
            }
            Some(libc::ENOMEM | libc::ENOBUFS) => {
                self.failed("pinning memory for frames (`ulimit -l` may be too small)")(source)
            }
            _ => self.failed("binding an AF_XDP socket to a queue")(source),
        }
    }

    /// Who has the program at the interface.
    fn owner(&self) -> String {
        redirect::holder(self.index).unwrap_or_else(|| "somebody that /proc does not show".to_owned())
    }

    /// Attaches the program that redirects packets, in the driver if it can.
    fn redirect(&self) -> Result<(Redirect, redirect::Place), AttachError> {
        let attach = |place| {
            let end = Instant::now() + PATIENCE;
            loop {
                match Redirect::attach(self.index, self.queue_count, place) {
                    Err(error) if error.raw_os_error() == Some(libc::EBUSY) && Instant::now() < end => {
                        thread::sleep(Duration::from_millis(20));
                    }
                    result => return result.map(|redirect| (redirect, place)),
                }
            }
        };
        let result = match self.wanted.xdp.mode {
            Some(Mode::Driver) => attach(redirect::Place::Driver),
            Some(Mode::Generic) => attach(redirect::Place::Generic),
            None => attach(redirect::Place::Driver).or_else(|_| attach(redirect::Place::Generic)),
        };
        result.map_err(|error| match error.raw_os_error() {
            Some(libc::EBUSY | libc::EEXIST) => {
                XdpError::Taken { interface: self.wanted.interface.clone(), owner: self.owner() }.into()
            }
            _ => self.failed("attaching the program that redirects packets")(error),
        })
    }

    /// What was obtained, for people.
    fn mode(&self, place: redirect::Place, chunk: usize, zero_copy: bool, lanes: usize) -> String {
        let place = match place {
            redirect::Place::Driver => "driver mode",
            redirect::Place::Generic => "generic mode",
        };
        let copies = if zero_copy { "zero-copy" } else { "copies" };
        let queues = match (self.queues.len(), lanes) {
            (1, _) => "1 queue".to_owned(),
            (queues, 1) => format!("{queues} queues"),
            (queues, lanes) => format!("{queues} queues on {lanes} workers"),
        };
        format!("af_xdp, {place}, {copies}, {queues}, frames of {chunk} bytes")
    }
}

/// Bytes of a frame for packets of this MTU.
fn chunk(mtu: usize, zero_copy: bool) -> usize {
    let bytes = (FIRST + LINK + mtu).max(SHORTEST_CHUNK);
    if zero_copy {
        bytes.next_power_of_two()
    } else {
        (bytes.div_ceil(FRAME_ALIGNMENT) | 1) * FRAME_ALIGNMENT
    }
}

/// What one worker has of a port, before anything is redirected.
struct PortParts {
    sockets: Vec<QueueSocket>,
    home: Home,
    receiving: Part,
    copies: Part,
}

struct QueueSocket {
    queue: u32,
    socket: Socket,
}

/// The ports of one worker with their memory.
struct Worker {
    pool: Pool,
    ports: Vec<PortParts>,
}

/// Makes the memory and the sockets of every worker.
fn open(interfaces: &[Interface<'_>], lanes: u16, zero_copy: bool) -> Result<Vec<Worker>, Refused> {
    (0..usize::from(lanes)).map(|lane| open_worker(interfaces, lane, usize::from(lanes), zero_copy)).collect()
}

fn open_worker(
    interfaces: &[Interface<'_>],
    lane: usize,
    lanes: usize,
    zero_copy: bool,
) -> Result<Worker, Refused> {
    let mtu = interfaces.iter().map(|interface| interface.mtu).max().unwrap_or(0);
    let chunk = chunk(mtu, zero_copy);
    // One frame more, so that what lies behind the last one is the port's own, too.
    let home = (FRAMES as usize + 1) * chunk;
    let copies = (TRANSMIT as usize + 1) * chunk;
    let lengths = [vec![home; interfaces.len()], vec![copies; interfaces.len()]].concat();
    let (pages, mut receiving) =
        Part::of_new_pages(&lengths).map_err(interfaces[0].refused("getting memory for frames"))?;
    let copies = receiving.split_off(interfaces.len());
    let homes: Vec<Home> = interfaces.iter().map(|_| Home::new(FRAMES)).collect();
    let pool = Pool { pages, chunk, home, homes: homes.iter().map(Home::marks).collect() };
    let mut first: Option<Arc<OwnedFd>> = None;
    let mut ports = Vec::new();
    for (((interface, home), receiving), copies) in interfaces.iter().zip(homes).zip(receiving).zip(copies) {
        let mut sockets: Vec<QueueSocket> = Vec::new();
        for &queue in interface.queues.iter().skip(lane).step_by(lanes) {
            let order =
                Order { pages: &pool.pages, chunk, frames: FRAMES, sends: sockets.is_empty(), zero_copy };
            let place = Place { interface: interface.index, queue };
            let socket = order
                .open(place, first.as_deref())
                .map_err(|source| (interface.port, interface.unbound(queue, zero_copy, source)))?;
            first.get_or_insert_with(|| socket.fd.clone());
            sockets.push(QueueSocket { queue, socket });
        }
        ports.push(PortParts { sockets, home, receiving, copies });
    }
    Ok(Worker { pool, ports })
}

impl PortParts {
    fn lane(
        self,
        interface: &Interface<'_>,
        pool: &Arc<Pool>,
        attachment: &Arc<Attachment>,
    ) -> io::Result<Lane> {
        let share = FRAMES as usize / self.sockets.len();
        let mut outlet = None;
        let mut queues = Vec::new();
        let mut parts = Some(self.copies);
        for QueueSocket { socket, .. } in self.sockets {
            if let (Some((transmit, completed)), Some(part)) = (socket.sending, parts.take()) {
                outlet = Some(Outlet {
                    socket: socket.fd.clone(),
                    transmit,
                    completed,
                    pool: pool.clone(),
                    part,
                    free: (0..TRANSMIT).rev().collect(),
                    off: false,
                    losses: SendLosses::default(),
                });
            }
            let Socket { fd: socket, fill, received, .. } = socket;
            queues.push(Queue { socket, fill, received, held: 0, share });
        }
        let descriptors: Vec<_> = queues.iter().map(|queue| queue.socket.as_raw_fd()).collect();
        let any = if queues.len() > 1 { Some(calls::any_of(&descriptors)?) } else { None };
        let mut incoming = Incoming {
            part: self.receiving,
            home: self.home,
            chunk: pool.chunk,
            queues,
            turn: 0,
            any,
            port: interface.port,
            offloads: interface.wanted.offloads != Offloads::Off,
            losses: ReceiveLosses::default(),
            interface: attachment.clone(),
        };
        incoming.refill();
        let outlet = outlet.ok_or(io::ErrorKind::NotFound)?;
        Ok(Lane { receive: Box::new(incoming), send: Box::new(outlet) })
    }
}
