//! An encrypted tunnel over UDP between ends that know each other's public keys.
//!
//! ```text
//!   datagrams ──► Tunnel::receive ──► packets and control messages of authenticated peers, or why not
//!   packets   ──► Tunnel::send    ──► datagrams, or they wait until there is a session
//!   time      ──► Tunnel::transmit ─► handshakes, answers, keepalives, packets that waited
//! ```
//!
//! The handshake is Noise IK; the rest follows WireGuard (J. A. Donenfeld, NDSS 2017) where it can:
//! cookies under load, timers, silence towards strangers, peers that move. Different from WireGuard, the
//! cipher of data is agreed on, each end can have several keys while they are changed, the last field of a
//! handshake message is zero or right, and the timers are shorter. `docs/decisions/0040-tunnel.md` says why.
//!
//! The crate is pure: time is an argument, in nanoseconds; random bytes come from a function that the caller
//! gives; no socket, clock or file is in it. What it remembers is bounded ([`limits`]), and sealing and
//! opening data asks for no memory.

#![forbid(unsafe_code)]

mod addresses;
mod cipher;
mod deadlines;
mod keys;
pub mod limits;
mod load;
mod macs;
mod message;
mod noise;
mod outcome;
mod peer;
mod receive;
mod send;
mod session;
mod tunnel;
mod window;

pub use addresses::{GREATEST_PEER_NUMBER, OWN_NUMBER, PEER_MAC_PREFIX, mac_peer, peer_mac};
pub use cipher::CipherSuite;
pub use keys::{KeyTextError, PublicKey, SecretKey};
pub use message::{DATA_HEADER, DATA_TAG};
pub use outcome::{
    Received, SendOutcome, TunnelDrop, TunnelPayload, TunnelSendError, TunnelSetupError, TunnelTransmit,
};
pub use peer::{CarriedPackets, PeerId, PeerSetup, PeerView, SessionView};
pub use send::LONGEST_HANDSHAKE_MESSAGE;
pub use tunnel::{RandomSource, Tunnel, TunnelSetup};
