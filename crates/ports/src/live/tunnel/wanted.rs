//! What is wanted of a tunnel, and why it cannot be had.

use super::key_file::{self, KeyFileError};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tunnel::{PeerSetup, PublicKey, SecretKey, TunnelSetupError};

/// The end of a tunnel that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunnelWishes {
    /// The address at which datagrams come.
    pub listen: SocketAddr,
    /// The files of the secret keys of this end, of which the first is used where it begins.
    pub keys: Vec<PathBuf>,
    /// The longest packet that goes in, in bytes.
    pub mtu: u16,
    /// Who is at the other end.
    pub peers: Vec<WantedPeer>,
}

impl TunnelWishes {
    /// Reads the keys of this end, none of which is a peer's.
    ///
    /// # Errors
    /// A file cannot be read, or a key stands there twice or is a peer's.
    pub fn secrets(&self) -> Result<Vec<SecretKey>, TunnelError> {
        let mut secrets: Vec<SecretKey> = Vec::with_capacity(self.keys.len());
        for file in &self.keys {
            let secret = key_file::read(file)?;
            let public = secret.public();
            if secrets.iter().any(|other| other.public() == public) {
                return Err(TunnelError::SameKey { file: file.clone() });
            }
            if let Some(peer) = self.peers.iter().find(|peer| peer.keys.contains(&public)) {
                return Err(TunnelError::OwnKey { file: file.clone(), peer: peer.name.clone() });
            }
            secrets.push(secret);
        }
        Ok(secrets)
    }
}

/// A peer that is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedPeer {
    /// What people call it.
    pub name: String,
    /// The number that stands in its MAC address, from 1.
    pub number: u32,
    /// Its public keys.
    pub keys: Vec<PublicKey>,
    /// Where it is; without that it is only answered.
    pub endpoint: Option<SocketAddr>,
    /// How often something is sent to it at least, in nanoseconds.
    pub keepalive: Option<u64>,
    /// Whether packets come from it and go to it, or control messages alone.
    pub packets: bool,
}

impl WantedPeer {
    /// Whether it is still the same peer with all the keys that it had: a key that is taken away may have
    /// been stolen, and what was said by it is not to be believed any more.
    pub fn keeps_keys_of(&self, before: &WantedPeer) -> bool {
        self.name == before.name && before.keys.iter().all(|key| self.keys.contains(key))
    }

    pub(super) fn setup(&self) -> PeerSetup {
        let (keys, address, keepalive) = (self.keys.clone(), self.endpoint, self.keepalive);
        PeerSetup { keys, address, keepalive, greatest_timestamp: 0 }
    }
}

/// Why there cannot be such an end of a tunnel.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// a key cannot be read
    #[error(transparent)]
    KeyFile(#[from] KeyFileError),
    /// two files hold one key
    #[error("{file} holds the same key as another file of this end; leave one of them out", file = .file.display())]
    SameKey {
        /// The second file.
        file: PathBuf,
    },
    /// the key of this end is also that of a peer
    #[error(
        "{file} holds the key of the peer `{peer}`: each end needs a key of its own, which `ravelin naming key new FILE` makes",
        file = .file.display()
    )]
    OwnKey {
        /// The file.
        file: PathBuf,
        /// The peer.
        peer: String,
    },
    /// a peer or a key is wrong
    #[error(transparent)]
    Setup(#[from] TunnelSetupError),
    /// the system refuses
    #[error("the end of a tunnel: {0}")]
    System(#[from] io::Error),
    /// the address cannot be listened at
    #[error(
        "datagrams cannot be received at {address}: {source}; `listen` in the file names another address"
    )]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}
