//! Making a network interface a port: what is wanted of it, by which way, and why that is not possible.

use super::{Attached, af_packet};
use packet::PortNumber;
use serde::Deserialize;
use std::io;

/// By which way packets come off an interface and leave by it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// AF_PACKET sockets: every interface has them.
    #[default]
    AfPacket,
}

/// What is wanted of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub interface: String,
    /// By which way.
    pub kind: Kind,
    /// Take packets as hosts on virtual links hand them over: checksums unfinished, long segments whole.
    pub offloads: bool,
}

/// Why an interface cannot be a port.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// there is none of this name
    #[error("there is no interface {0} here; `ip link` lists those there are")]
    NoInterface(String),
    /// it is switched off
    #[error("interface {0} is switched off; `ip link set {0} up` switches it on")]
    Down(String),
    /// it has no Ethernet headers
    #[error(
        "interface {interface} is not an Ethernet interface (its link type is {kind} in the kernel's list, ARPHRD_*), and programs are made for Ethernet frames"
    )]
    LinkType {
        /// The interface's name.
        interface: String,
        /// The number of its type.
        kind: u16,
    },
    /// the right is missing
    #[error(
        "no right to take packets off interface {0}: it needs CAP_NET_RAW; run as root, or over a capture with `ravelin run`, which needs no rights"
    )]
    Rights(String),
    /// a call failed
    #[error("interface {interface}: {call}: {source}")]
    System {
        /// The interface's name.
        interface: String,
        /// What was asked of the kernel.
        call: &'static str,
        /// What it said.
        source: io::Error,
    },
}

/// Makes an interface a port with so many lanes (at least one); its packets carry `port`.
///
/// # Errors
/// The interface is missing or off, or the kernel refuses; then nothing has changed.
pub fn attach(wanted: &Wanted, port: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    match wanted.kind {
        Kind::AfPacket => af_packet::attach(wanted, port, lanes.max(1)),
    }
}
