//! Ports of the kind tunnel: encrypted datagrams of UDP, shown to the program as one Ethernet port whose MAC
//! addresses name peers.
//!
//! ```text
//!              one turn of the worker                                        the worker sends a batch
//!  datagrams ─► incoming ─► tunnel::Tunnel ─► frame: own MAC | peer's MAC | type | IP packet ─► program
//!  datagrams ◄── outlet ◄── tunnel::Tunnel ◄─ frame: peer's MAC | any MAC | type | IP packet ◄─ program
//!                     control: views, peers, keys ──► the same, under one lock for each batch
//! ```
//!
//! A frame that goes to the program has as its source the peer that has sealed it, so nobody gets in who is
//! no peer, and no peer as another. Handshakes, keepalives and other dates are looked after in the turn of
//! the port, also while no packets come.
//!
//! With several workers, datagrams come in at the first one; a program that says where packets belong
//! (`steer`) has them brought there. All workers send.

mod calls;
mod control;
mod incoming;
pub mod key_file;
mod lone;
mod mailbox;
mod outlet;
mod own_end;
mod wanted;

pub use control::{TunnelChange, TunnelControl, TunnelPeerView, TunnelView};
pub use key_file::KeyFileError;
pub use lone::LoneTunnel;
pub use mailbox::{PeerMessage, PeerMessages};
pub use wanted::{TunnelError, TunnelWishes, WantedPeer};

use super::clock::{Clock, MachineClock};
#[cfg(feature = "attach")]
use super::empty::Nothing;
#[cfg(feature = "attach")]
use super::{AttachError, Attached, Presence, Receiver, WantedPort};
use super::{Lane, datagram_socket, secret_file};
use incoming::Incoming;
#[cfg(feature = "attach")]
use mailbox::Mailbox;
use outlet::Outlet;
use own_end::Port;
use packet::PortNumber;
use std::net::UdpSocket;
use std::sync::Arc;
use tunnel::{CipherSuite, PeerId, SecretKey, Tunnel, TunnelSetup};

/// Opens the end of a tunnel.
#[cfg(feature = "attach")]
pub(super) fn attach(wanted: &WantedPort, number: PortNumber, lanes: u16) -> Result<Attached, AttachError> {
    let wishes = wanted.tunnel.as_ref().ok_or_else(|| AttachError::NoInterface(wanted.interface.clone()))?;
    let port = Arc::new(open(wishes)?);
    let control = Arc::<Mailbox>::default();
    let lane = |index: u16| Lane {
        receive: match index {
            0 => Box::new(Incoming::new(port.clone(), number, control.clone())) as Box<dyn Receiver>,
            _ => Box::new(Nothing),
        },
        send: Box::new(Outlet::new(port.clone(), wishes.mtu, index == 0)),
    };
    Ok(Attached {
        name: wanted.name(),
        mode: format!("tunnel, packets of up to {} bytes", wishes.mtu),
        lanes: (0..lanes.max(1)).map(lane).collect(),
        presence: Arc::new(Presence::default()),
        divided: None,
        tunnel: Some(TunnelControl::new(port, control, wishes.peers.clone())),
    })
}

/// The only lane of an end that another process has opened the socket for. Control messages of peers go
/// nowhere.
///
/// # Errors
/// A peer or a key is wrong, or Linux gives no further descriptor.
pub fn lane(
    socket: UdpSocket,
    number: PortNumber,
    mtu: u16,
    secrets: Vec<SecretKey>,
    peers: &[WantedPeer],
) -> Result<Lane, TunnelError> {
    let port = Arc::new(end(socket, secrets, peers)?);
    let receive = Incoming::new(port.clone(), number, Arc::default());
    Ok(Lane { receive: Box::new(receive), send: Box::new(Outlet::new(port, mtu, true)) })
}

fn open(wishes: &TunnelWishes) -> Result<Port, TunnelError> {
    let socket = datagram_socket(wishes.listen)
        .map_err(|source| TunnelError::Listen { address: wishes.listen, source })?;
    end(socket, wishes.secrets()?, &wishes.peers)
}

/// An end with these secret keys and peers.
fn end(socket: UdpSocket, secrets: Vec<SecretKey>, peers: &[WantedPeer]) -> Result<Port, TunnelError> {
    let now = MachineClock.now();
    let setup =
        TunnelSetup { secrets, aes: CipherSuite::aes_in_hardware(), now: now.program, started: now.wall };
    // The system has random bytes for whoever asks, once it has any; so nothing fails later.
    secret_file::random(&mut [0; 32])?;
    let random = |bytes: &mut [u8]| secret_file::random(bytes).expect("the system gives random bytes");
    let mut tunnel = Tunnel::new(setup, Box::new(random))?;
    for peer in peers {
        tunnel.add_peer(PeerId(peer.number), peer.setup())?;
        tunnel.set_control_only(PeerId(peer.number), !peer.packets)?;
    }
    Ok(Port::of(socket, tunnel)?)
}
