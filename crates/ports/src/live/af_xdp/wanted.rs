//! The settings for AF_XDP at an interface, and the errors when they cannot be met.

use serde::Deserialize;
use std::io;

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
    /// too many ports
    #[error(
        "{ports} ports are of kind \"af_xdp\", and {most} can share their frames: take another kind for some"
    )]
    Many {
        /// How many there are.
        ports: usize,
        /// How many there can be.
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
    /// memory may not be locked
    #[error(
        "interface {interface}: AF_XDP locks {needed} KiB of memory for the frames of a worker, and again as much while an interface comes back, and this process may lock {limit}: raise that (`ulimit -l`, or `LimitMEMLOCK=infinity` in a systemd unit) or give it CAP_IPC_LOCK, for which there is no limit; `kind = \"af_packet\"` needs neither"
    )]
    Locked {
        /// The interface's name.
        interface: String,
        /// How much is needed, in KiB.
        needed: usize,
        /// How much there may be, for people.
        limit: String,
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
