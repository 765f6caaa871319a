//! How the process begins: it gives up its rights, takes what `launch` hands over, locks itself in, and only
//! then takes the first datagram.

use crate::forward::Forwarder;
use confinement::{Layer, Missing, Role};
use lexopt::{Arg, Parser, ValueExt};
use messages::limits::LONGEST_TUNNEL_BEGIN;
use messages::tunnel::{TunnelBegin, TunnelPeer};
use messages::{Channel, ChannelError};
use ports::live::handed_over::Adopter;
use ports::live::tunnel::{WantedPeer, lane};
use ports::live::{HandedOver, Lane, Offloads, PortWay, TunnelError};
use std::convert::Infallible;
use std::io::{self, Write};
use std::net::UdpSocket;
use std::os::fd::{AsFd, OwnedFd};

/// The number of the port at which frames come from the core, and that of the peers.
const CORE: u16 = 1;
const PEERS: u16 = 2;

/// Why it ends.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    /// an argument
    #[error("{0}; `ravelin serve` starts it as it has to be")]
    Argument(#[from] lexopt::Error),
    /// a layer
    #[error(transparent)]
    Missing(#[from] Missing),
    /// what `launch` says
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// it is not told what it needs
    #[error("it is not told which tunnel it is, or gets other descriptors than it needs")]
    Begin,
    /// a key of its own
    #[error("a key of the tunnel is none: it is one line of base64")]
    Key,
    /// a key of a peer
    #[error("a key of the peer `{0}` is none: it is one line of base64")]
    PeerKey(String),
    /// the end of the tunnel
    #[error(transparent)]
    Tunnel(#[from] TunnelError),
    /// the system
    #[error("{0}")]
    System(#[from] io::Error),
}

/// Runs until the gateway is gone.
pub(crate) fn run(mut arguments: Parser) -> Result<Infallible, ProcessError> {
    let mut without: Vec<Layer> = Vec::new();
    while let Some(argument) = arguments.next()? {
        match argument {
            Arg::Long("without") => without.push(arguments.value()?.parse()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let entered = confinement::enter(Role::Tunnel, &without)?;
    let mut launch = Channel::of(io::stdin().as_fd().try_clone_to_owned()?);
    let (core, peers) = supplied(&mut launch)?;
    let forwarder = Forwarder::new(core, peers)?;
    entered.lock()?;
    Ok(forwarder.run()?)
}

/// The lanes to the core, one for each of its workers, and the lane to the peers.
fn supplied(launch: &mut Channel) -> Result<(Vec<Lane>, Lane), ProcessError> {
    let (begin, descriptors) =
        launch.receive::<TunnelBegin>(LONGEST_TUNNEL_BEGIN)?.ok_or(ProcessError::Begin)?;
    let TunnelBegin { mtu, keys, peers } = begin;
    let mut descriptors = descriptors.into_iter();
    let socket = UdpSocket::from(descriptors.next().ok_or(ProcessError::Begin)?);
    let frames: Vec<OwnedFd> = descriptors.collect();
    if frames.is_empty() {
        return Err(ProcessError::Begin);
    }
    let keys = keys.iter().map(|key| key.parse().map_err(|_| ProcessError::Key));
    let keys = keys.collect::<Result<_, _>>()?;
    let peers = peers.into_iter().map(wanted).collect::<Result<Vec<_>, _>>()?;
    let handed = HandedOver {
        interface: "core".to_owned(),
        way: PortWay::Process,
        offloads: Offloads::Cut,
        promiscuous: true,
        keeps_tags: true,
        mode: String::new(),
    };
    let (core, _) = Adopter::new(false).adopt(&handed, CORE, frames)?;
    Ok((core.lanes, lane(socket, PEERS, mtu, keys, &peers)?))
}

/// A peer with its keys.
fn wanted(peer: TunnelPeer) -> Result<WantedPeer, ProcessError> {
    let TunnelPeer { name, number, keys, endpoint, keepalive, packets } = peer;
    let keys = keys.iter().map(|key| key.parse().map_err(|_| ProcessError::PeerKey(name.clone())));
    let keys = keys.collect::<Result<_, _>>()?;
    Ok(WantedPeer { name, number, keys, endpoint, keepalive, packets })
}

/// Says a line. Where nobody can read it, the tunnel matters more.
pub(crate) fn say(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}
