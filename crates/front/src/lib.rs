//! Questions to a gateway over a network: who may ask what, and both ends of a connection by mutual TLS 1.3
//! (RFC 8446). Both ends know each other by public keys of Ed25519 that were told to them before (RFC 7250);
//! there are no certificates.
//!
//! ```text
//! client   TLS handshake ─►                                      the front
//!                          ◄─ Welcome: whom it knows, and the role
//!          question      ─►  (messages::control)                 ─► control ─► core
//!                          ◄─ answer                             ◄─
//!          …                 one after the other, until the client closes
//! ```
//!
//! Each of these messages is `length 4, little-endian | the form of postcard`. A bundle is bytes here, and
//! nobody looks into it.

#![forbid(unsafe_code)]

mod asking;
mod inbox;
mod key;
pub mod limits;
mod pinned;
mod role;
mod tls;
mod welcome;

#[cfg(target_os = "linux")]
mod connection;
#[cfg(target_os = "linux")]
mod places;
#[cfg(target_os = "linux")]
mod serving;

pub use asking::{AskError, Session};
pub use inbox::{Inbox, QuestionRefusal};
pub use key::{IdentityKey, KeyError};
pub use pinned::{PinnedClient, PinnedError};
pub use role::ClientRole;
#[cfg(target_os = "linux")]
pub use serving::{Front, FrontError};
pub use tls::PinnedClients;
pub use welcome::Welcome;
