//! What the control plane does with a running tunnel: it looks at it, changes its peers and keys, and
//! exchanges control messages with peers.

use super::mailbox::{Mailbox, PeerMessages};
use super::own_end::{Port, TunnelRefusal};
use super::wanted::{TunnelError, TunnelWishes, WantedPeer};
use crate::live::clock::{Clock, MachineClock};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tunnel::{
    CipherSuite, PeerId, PublicKey, SecretKey, Tunnel, TunnelDrop, TunnelSendError, TunnelSetupError,
};

/// A tunnel at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct TunnelView {
    /// The public keys of this end.
    pub keys: Vec<String>,
    /// The peers, in the order of their numbers.
    pub peers: Vec<TunnelPeerView>,
    /// Datagrams that were dropped, by reason.
    pub drops: BTreeMap<&'static str, u64>,
    /// Frames of the program that did not go to a peer, by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// Control messages of peers that nobody took.
    pub control_lost: u64,
}

/// A peer of a tunnel at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct TunnelPeerView {
    /// Its number, which its MAC address holds.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Where it is, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<SocketAddr>,
    /// How many seconds ago the session in use began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake_seconds: Option<f64>,
    /// What seals its packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cipher: Option<&'static str>,
    /// Packets that came from it.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Packets that went to it.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
}

/// A running tunnel, for the control plane.
#[derive(Clone)]
pub struct TunnelControl {
    port: Arc<Port>,
    messages: Arc<Mailbox>,
    /// The peers in force, in the order of their numbers.
    peers: Arc<Mutex<Vec<WantedPeer>>>,
}

impl fmt::Debug for TunnelControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TunnelControl").field("peers", &self.peers().len()).finish_non_exhaustive()
    }
}

/// A change of peers and keys that has been checked.
pub struct TunnelChange {
    tunnel: TunnelControl,
    secrets: Vec<SecretKey>,
    peers: Vec<WantedPeer>,
}

impl TunnelControl {
    pub(super) fn new(port: Arc<Port>, messages: Arc<Mailbox>, peers: Vec<WantedPeer>) -> TunnelControl {
        TunnelControl { port, messages, peers: Arc::new(Mutex::new(sorted(peers))) }
    }

    /// Whether both are the same running tunnel.
    pub fn is(&self, other: &TunnelControl) -> bool {
        Arc::ptr_eq(&self.port, &other.port)
    }

    /// Takes control messages of peers from now on; nothing if somebody else does.
    pub fn messages(&self) -> Option<PeerMessages> {
        self.messages.open()
    }

    /// Sends a control message to a peer, or lets it wait until there is a session.
    ///
    /// # Errors
    /// There is no such peer, or no way to it.
    pub fn send(&self, peer: u32, message: &[u8]) -> Result<(), TunnelSendError> {
        let sent = self.port.end().send_control(&self.port.socket, MachineClock.program(), peer, message);
        self.port.ring();
        sent
    }

    /// The peers in force, in the order of their numbers.
    pub fn peer_list(&self) -> Vec<WantedPeer> {
        self.peers().clone()
    }

    /// What there is to see.
    pub fn view(&self) -> TunnelView {
        let (now, peers) = (MachineClock.program(), self.peers());
        let end = self.port.end();
        TunnelView {
            keys: end.tunnel.keys().iter().map(PublicKey::to_string).collect(),
            peers: peers.iter().filter_map(|peer| view(&end.tunnel, peer, now)).collect(),
            drops: counted(TunnelDrop::ALL.map(TunnelDrop::name), end.drops),
            refusals: counted(TunnelRefusal::ALL.map(TunnelRefusal::name), end.refusals),
            control_lost: self.messages.lost(),
        }
    }

    /// Checks a change to what a file says now, and reads its keys. Nothing changes before it is
    /// [made](TunnelChange::make).
    ///
    /// # Errors
    /// A key cannot be read, or is also a peer's.
    pub fn change_to(&self, wishes: &TunnelWishes) -> Result<TunnelChange, TunnelError> {
        let secrets = wishes.secrets()?;
        Ok(TunnelChange { tunnel: self.clone(), secrets, peers: sorted(wishes.peers.clone()) })
    }

    fn peers(&self) -> MutexGuard<'_, Vec<WantedPeer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TunnelChange {
    /// Makes the change. Sessions of keys that are gone end at once, and all others go on.
    ///
    /// # Errors
    /// The tunnel does not take it; then it may be made in part, and no peer is left that is not wanted.
    pub fn make(self) -> Result<(), TunnelSetupError> {
        let TunnelChange { tunnel, secrets, peers } = self;
        let mut old = tunnel.peers();
        let mut end = tunnel.port.end();
        let made = change(&mut end.tunnel, &old, &peers, secrets);
        *old = peers;
        drop(end);
        tunnel.port.ring();
        made
    }
}

/// First everything goes that is not wanted any more, so that a key may change hands.
fn change(
    tunnel: &mut Tunnel,
    old: &[WantedPeer],
    new: &[WantedPeer],
    secrets: Vec<SecretKey>,
) -> Result<(), TunnelSetupError> {
    let of = |peers: &[WantedPeer], number: u32| peers.iter().position(|peer| peer.number == number);
    for peer in old {
        match of(new, peer.number).map(|index| &new[index]) {
            None => tunnel.remove_peer(PeerId(peer.number))?,
            Some(wanted) => {
                for key in peer.keys.iter().filter(|key| !wanted.keys.contains(key)) {
                    tunnel.revoke_key(key);
                }
            }
        }
    }
    tunnel.set_secrets(secrets)?;
    for peer in new {
        let id = PeerId(peer.number);
        let Some(before) = of(old, peer.number).map(|index| &old[index]) else {
            tunnel.add_peer(id, peer.setup())?;
            tunnel.set_control_only(id, !peer.packets)?;
            continue;
        };
        tunnel.set_control_only(id, !peer.packets)?;
        for key in peer.keys.iter().filter(|key| !before.keys.contains(key)) {
            tunnel.add_key(id, *key)?;
        }
        if let Some(endpoint) = peer.endpoint.filter(|_| peer.endpoint != before.endpoint) {
            tunnel.set_address(id, endpoint)?;
        }
        tunnel.set_keepalive(id, peer.keepalive)?;
    }
    Ok(())
}

fn view(tunnel: &Tunnel, peer: &WantedPeer, now: u64) -> Option<TunnelPeerView> {
    let seen = tunnel.peer_view(PeerId(peer.number))?;
    Some(TunnelPeerView {
        number: peer.number,
        name: peer.name.clone(),
        endpoint: seen.address,
        handshake_seconds: seen.session.map(|session| now.saturating_sub(session.born) as f64 / 1e9),
        cipher: seen.session.map(|session| match session.suite {
            CipherSuite::Aes256Gcm => "AES-256-GCM",
            CipherSuite::ChaCha20Poly1305 => "ChaCha20-Poly1305",
        }),
        received: seen.received.packets,
        received_bytes: seen.received.bytes,
        sent: seen.sent.packets,
        sent_bytes: seen.sent.bytes,
    })
}

fn counted<const N: usize>(names: [&'static str; N], counts: [u64; N]) -> BTreeMap<&'static str, u64> {
    names.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect()
}

fn sorted(mut peers: Vec<WantedPeer>) -> Vec<WantedPeer> {
    peers.sort_by_key(|peer| peer.number);
    peers
}
